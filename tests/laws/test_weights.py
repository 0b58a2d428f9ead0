"""Rules for weights: always a usable mixture, the maximiser they claim to be, and what they do not depend on."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polystein.discrepancy import AbstractSweep, Sums, maximise
from polystein.weights import (
    AbstractDivisor,
    AbstractFallback,
    AbstractLearned,
    AbstractWeights,
    Argmax,
    Ascent,
    NoDivisor,
    Paper,
    Softmax,
)
from tests.laws.draws import seeds
from tests.laws.registry import concrete, make, over

pytestmark = pytest.mark.usefixtures("float64")
M, N = 4, 9
SETTINGS = [
    {"statistic": make(s), "divisor": make(d), "fallback": make(f)}
    for s, d, f in itertools.product(*map(concrete, (AbstractSweep, AbstractDivisor, AbstractFallback)))
]
values = st.lists(st.integers(-4, 4), min_size=M, max_size=M).map(lambda s: np.array(s, float))


def sums_of(s: np.ndarray, seed: int = 0, *, noise: float = 0.0) -> Sums:
    """Sums of a sweep whose U- and two-batch statistics, and V-statistic too, are s for each kernel."""
    rng = np.random.default_rng(seed)
    spread = noise * rng.standard_normal((len(s), N))
    others = s[:, None] * (N - 1) + spread - spread.mean(1, keepdims=True)
    squares = others**2 / (N - 1) + 1 + rng.uniform(0, 1, others.shape)
    as_array = lambda a: jnp.asarray(a, float)
    return Sums(*map(as_array, (others, squares, np.repeat(s[:, None], N, 1), N)), independent=True)


def steps(rule: AbstractWeights, *all_sums: Sums):
    """The states a rule goes through."""
    state = rule.init(M)
    return [state] + [state := rule(sums, state) for sums in all_sums]


def rules(cls: type) -> list[AbstractWeights]:
    """A rule in every setting it has."""
    return [cls(**setting) for setting in SETTINGS] if issubclass(cls, AbstractLearned) else [make(cls)]


def assert_usable(w: jax.Array, start: jax.Array) -> None:
    """Finite, nonnegative, and of the length of the first weights: on the sphere, or the simplex if they start there."""
    assert np.isfinite(w).all()
    assert (w >= 0).all()
    order = 2 if np.isclose(np.linalg.norm(start), 1) else 1
    np.testing.assert_allclose(np.linalg.norm(w, order), np.linalg.norm(start, order), rtol=1e-12)


@over(AbstractWeights)
def test_weights_are_usable_whatever_the_sums(cls):
    """Mixed signs, none positive (the particles must keep moving: erratum 4), all zero, and unknown."""
    cases = ([1, -2, 3, 0], [-1, -2, -3, -0.5], [0, 0, 0, 0], [1e-30, 0, -1, 0], [1e20, 1, 0, -1], [np.nan] * 4)
    for rule in rules(cls):
        start, *after = steps(rule, *(sums_of(np.array(s, float)) for s in cases))
        for state in after:
            assert_usable(state.w, start.w)
        np.testing.assert_array_equal(after[-1].w, after[-2].w)  # nothing was learned from an unknown S


def test_fallbacks_without_a_positive_discrepancy():
    """Last keeps the last weights, Even starts anew, Vertex takes the largest S alone."""
    expected = {"Last": [0.6, 0.8, 0, 0], "Even": [0.5] * 4, "Vertex": [0, 0, 0, 1]}
    assert set(expected) == {cls.__name__ for cls in concrete(AbstractFallback)}
    for cls in concrete(AbstractFallback):
        *_, state = steps(Argmax(fallback=cls()), sums_of(np.array([3.0, 4, 0, -1])), sums_of(-np.array([4.0, 3, 2, 1])))
        np.testing.assert_allclose(state.w, expected[cls.__name__], rtol=1e-12)


@given(values, seeds)
def test_argmax_is_the_maximum_over_the_sphere(s, seed):
    """<w, S> at Argmax is maxMKSD, and no nonnegative unit vector has more."""
    best = maximise(jnp.asarray(s))
    np.testing.assert_allclose([best.w @ s, np.linalg.norm(best.w)], [best.value, 1], rtol=1e-12, atol=1e-12)
    assert (best.w >= 0).all()
    others = np.abs(np.random.default_rng(seed).standard_normal((500, M)))
    others = np.concatenate([others / np.linalg.norm(others, axis=1, keepdims=True), np.eye(M)])
    assert (others @ s <= best.value + 1e-12).all()
    if (s > 0).any():
        np.testing.assert_allclose(steps(Argmax(), sums_of(s))[-1].w, best.w, rtol=1e-9, atol=1e-12)


@given(values.filter(lambda s: (s > 0).any()), seeds)
def test_paper_maximises_the_sum_of_norms(s, seed):
    """sqrt(S_i / sum S) maximises sum_i w_i sqrt(S_i), which is no more than <w, S> of Argmax (errata 1 and 2)."""
    gain = np.maximum(s, 0)
    w = np.asarray(steps(Paper(), sums_of(s))[-1].w)
    np.testing.assert_allclose(w, np.sqrt(gain / gain.sum()), rtol=1e-9)
    others = np.abs(np.random.default_rng(seed).standard_normal((500, M)))
    assert (others / np.linalg.norm(others, axis=1, keepdims=True) @ np.sqrt(gain) <= w @ np.sqrt(gain) + 1e-9).all()


@pytest.mark.parametrize("cls", [Paper, Argmax, Softmax])
@given(s=values, scale=st.floats(1e-6, 1e6))
def test_closed_forms_do_not_depend_on_the_scale_of_the_discrepancies(cls, s, scale):
    """A density or kernel in other units mixes alike."""
    one, other = (steps(cls(), sums_of(c * s))[-1].w for c in (1.0, scale))
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@over(AbstractDivisor, only=lambda cls: cls is not NoDivisor)
@given(s=values.filter(lambda s: (s > 0).any()), seed=seeds, factor=st.floats(0.01, 100))
def test_divided_discrepancies_do_not_depend_on_the_scale_of_one_kernel(cls, s, seed, factor):
    """k and c k have the same ratio of S to its deviation (erratum 6)."""
    sums = sums_of(s, seed, noise=1.0)
    c = np.array([factor, 1, 1, 1])[:, None]
    scaled = Sums(sums.others * c, sums.squares * c**2, sums.diagonal * c, sums.count, True)
    rule = Argmax(divisor=cls())
    np.testing.assert_allclose(steps(rule, scaled)[-1].w, steps(rule, sums)[-1].w, rtol=1e-9, atol=1e-12)


def test_divisors_are_the_deviations_they_name():
    """sqrt(2 E u^2) / n, and 2 sd_x(E_x' u) / sqrt(n)."""
    sums = sums_of(np.array([1.0, 2, 3, 4]), 1, noise=2.0)
    null = np.sqrt(2 * np.asarray(sums.squares).sum(1) / (N * (N - 1))) / N
    power = 2 * np.std(np.asarray(sums.others) / (N - 1), axis=1, ddof=1) / np.sqrt(N)
    found = {cls.__name__: cls()(sums) for cls in concrete(AbstractDivisor)}
    np.testing.assert_allclose(found["NullDeviation"], null, rtol=1e-12)
    np.testing.assert_allclose(found["PowerDeviation"], power, rtol=1e-9)
    np.testing.assert_array_equal(found["NoDivisor"], np.ones(4))


@over(AbstractLearned, only=lambda cls: cls is not Ascent)
def test_memory_averages_past_discrepancies(cls):
    """With memory r the weights are those of sum_t r^(T-t) S_t / sum_t r^(T-t); an unknown S leaves no trace."""
    past = [np.array(s, float) for s in ([1, 2, 3, 4], [4, 0, 1, 1], [2, 2, -9, 0])]
    share = 0.75 ** np.arange(3)[::-1]
    mean = share @ np.stack(past) / share.sum()
    unknown = sums_of(np.full(M, np.nan))
    *_, state = steps(cls(memory=0.75), sums_of(past[0]), unknown, *map(sums_of, past[1:]))
    np.testing.assert_allclose(state.w, steps(cls(), sums_of(mean))[-1].w, rtol=1e-9, atol=1e-12)


def test_ascent_reaches_the_maximum():
    """On constant S, gradient steps projected to the sphere end where the closed form is."""
    s = np.array([3.0, 1, 0.5, -1])
    rule, sums = Ascent(optax.sgd(0.1)), sums_of(s)
    state = jax.lax.scan(lambda state, _: (rule(sums, state), None), rule.init(M), length=500)[0]
    np.testing.assert_allclose(state.w, maximise(jnp.asarray(s)).w, rtol=1e-6, atol=1e-6)
