"""Bandwidth rules against the table of what each library computes, and the ladders that are placed by them."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from polystein import IMQ, RBF, Bank, DyadicLadder, Matern52, QuantileLadder
from polystein.kernels import AbstractBandwidth, BlackJAX, LiuWang, MatrixSVGDMedian, NumPyro, PyroPerDimension


def all_pairs(x: np.ndarray) -> list[float]:
    """r^2 of all n^2 pairs, in loops."""
    return [sum((a - b) ** 2) for a in x for b in x]


def upper_pairs(x: np.ndarray) -> list[float]:
    """r^2 of the pairs i < j, in loops."""
    return [sum((x[i] - x[j]) ** 2) for i in range(len(x)) for j in range(i + 1, len(x))]


def lower_median(values: list[float]) -> float:
    """The lower of the two middle values, as torch has it."""
    return sorted(values)[(len(values) - 1) // 2]


def or_one(h: float) -> float:
    return h if h > 0 else 1.0


TABLE: dict[type[AbstractBandwidth], Callable[[np.ndarray], object]] = {
    LiuWang: lambda x: np.median(all_pairs(x)) / np.log(len(x) + 1),
    NumPyro: lambda x: np.median(np.sqrt(all_pairs(x))) ** 2 / np.log(len(x)),
    BlackJAX: lambda x: np.median(np.sqrt(upper_pairs(x))) ** 2 / np.log(len(x)),
    PyroPerDimension: lambda x: [or_one(lower_median(upper_pairs(c[:, None])) / np.log(len(x) + 1)) for c in x.T],
    MatrixSVGDMedian: lambda x: np.median(all_pairs(x)),
}
RULES = pytest.mark.parametrize("rule", TABLE, ids=lambda rule: rule.__name__)


def expected(rule: type[AbstractBandwidth], x: np.ndarray) -> np.ndarray:
    """By the table, in float64; 1 where there is no distance."""
    if len(x) == 1:
        return np.ones(x.shape[1] if rule is PyroPerDimension else ())
    h = np.asarray(TABLE[rule](x.astype(float)))
    return np.where(h > 0, h, 1.0)


@RULES
@pytest.mark.parametrize(("n", "d"), [(1, 3), (2, 3), (5, 1), (5, 3), (8, 3)])
def test_rule_is_its_row_of_the_table(rule: type[AbstractBandwidth], n: int, d: int, rng: np.random.Generator):
    x = rng.normal(size=(n, d)).astype(np.float32)
    np.testing.assert_allclose(rule()(jnp.asarray(x)), expected(rule, x), rtol=3e-6)


@RULES
@pytest.mark.parametrize("n", [5, 8])
def test_ties(rule: type[AbstractBandwidth], n: int, rng: np.random.Generator):
    x = rng.integers(0, 3, size=(n, 3)).astype(np.float32)
    np.testing.assert_allclose(rule()(jnp.asarray(x)), expected(rule, x), rtol=3e-6)


@RULES
@pytest.mark.parametrize("n", [2, 200])
def test_particles_all_equal_give_one(rule: type[AbstractBandwidth], n: int):
    assert np.all(np.asarray(rule()(jnp.full((n, 3), 0.1))) == 1)


@RULES
def test_most_particles_equal(rule: type[AbstractBandwidth]):
    x = np.zeros((8, 3), np.float32)
    x[6:] = [[1.0, 2.0, 0.0], [3.0, 5.0, 7.0]]
    np.testing.assert_allclose(rule()(jnp.asarray(x)), expected(rule, x), rtol=3e-6)


@RULES
def test_constant_coordinate(rule: type[AbstractBandwidth], rng: np.random.Generator):
    x = rng.normal(size=(8, 3)).astype(np.float32)
    x[:, 1] = 4.0
    np.testing.assert_allclose(rule()(jnp.asarray(x)), expected(rule, x), rtol=3e-6)


@RULES
@pytest.mark.parametrize("scale", [1e-10, 1e10])
def test_scales_with_the_square_of_the_particles(rule: type[AbstractBandwidth], scale: float, rng: np.random.Generator):
    x = rng.normal(size=(8, 3)).astype(np.float32)
    here, there = rule()(jnp.asarray(x)), rule()(jnp.asarray(x) * scale)
    np.testing.assert_allclose(np.asarray(there) / scale / scale, here, rtol=1e-5)


@RULES
def test_no_gradient_flows_through_the_choice(rule: type[AbstractBandwidth], rng: np.random.Generator):
    x = jnp.asarray(rng.normal(size=(8, 3)), jnp.float32)
    assert not np.any(jax.grad(lambda x: jnp.sum(rule()(x)))(x))


@RULES
def test_beyond_points_it_is_the_rule_of_those_at_an_even_stride(rule: type[AbstractBandwidth], rng: np.random.Generator):
    n, points = 50, 12
    x = rng.normal(size=(n, 2)).astype(np.float32)
    some = x[[k * n // points for k in range(points)]]
    divisor = {LiuWang: lambda n: np.log(n + 1), PyroPerDimension: lambda n: np.log(n + 1), MatrixSVGDMedian: lambda n: 1.0}
    log = divisor.get(rule, np.log)
    h = rule(points=points)(jnp.asarray(x))
    np.testing.assert_allclose(h, expected(rule, some) * log(points) / log(n), rtol=3e-6)
    np.testing.assert_array_equal(h, rule(points=points)(jnp.asarray(x)))  # no draw is involved


@pytest.mark.parametrize("d", [1, 2, 10])
def test_error_of_the_subsampled_median(d: int, rng: np.random.Generator):
    """Against the asymptotic s.d. of the median of r^2 between normal points; in one dimension 1.5 / sqrt(points)."""
    repetitions, n, points = 40, 1000, 128
    rule, errors = jax.jit(MatrixSVGDMedian(points=points)), []
    for _ in range(repetitions):
        x = rng.normal(size=(n, d)).astype(np.float32)
        squares = np.sum(x**2, 1)
        exact = np.median(squares[:, None] + squares[None, :] - 2 * x @ x.T)
        errors.append(float(rule(jnp.asarray(x))) / exact - 1)
    median = 2 * stats.chi2.median(d)
    within = stats.ncx2.cdf(median, d, rng.chisquare(d, size=4000))  # P(|x - X|^2 < median) for given x
    asymptotic = 2 * np.std(within) / (stats.chi2.pdf(median / 2, d) / 2) / median / np.sqrt(points)
    assert asymptotic < 1.55 / np.sqrt(points)
    # a root mean square of 40 errors has itself a relative s.d. of 1 / sqrt(80); four of them
    assert abs(np.sqrt(np.mean(np.square(errors))) / asymptotic - 1) < 4 / np.sqrt(2 * repetitions)


def test_dyadic_ladder_values(rng: np.random.Generator):
    x = rng.normal(size=(8, 3)).astype(np.float32)
    ladder = DyadicLadder()
    bank = ladder.at(jnp.asarray(x))
    assert len(bank) == len(ladder) == 10
    np.testing.assert_allclose([k.h for k in bank], expected(LiuWang, x) * 2.0 ** np.arange(-4, 6), rtol=3e-6)


@pytest.mark.parametrize("rule", [LiuWang, NumPyro, BlackJAX, MatrixSVGDMedian], ids=lambda rule: rule.__name__)
def test_dyadic_ladder_is_centred_by_its_rule(rule: type[AbstractBandwidth], rng: np.random.Generator):
    x = rng.normal(size=(8, 3)).astype(np.float32)
    bank = DyadicLadder(rule(), low=1, high=2).at(jnp.asarray(x))
    np.testing.assert_allclose([k.h for k in bank], expected(rule, x) * np.array([2.0, 4.0]), rtol=3e-6)


def test_dyadic_ladder_of_other_kernels(rng: np.random.Generator):
    x = rng.normal(size=(8, 3)).astype(np.float32)
    h = expected(LiuWang, x) * np.array([0.5, 1.0, 2.0])
    imq = DyadicLadder(low=-1, high=1, kernel=IMQ).at(jnp.asarray(x))
    assert all(isinstance(k, IMQ) for k in imq)
    np.testing.assert_allclose([k.h for k in imq], h, rtol=3e-6)
    matern = DyadicLadder(low=-1, high=1, kernel=lambda h: Matern52(jnp.sqrt(h))).at(jnp.asarray(x))
    np.testing.assert_allclose([k.length for k in matern], np.sqrt(h), rtol=3e-6)


def test_one_exponential_or_many_is_the_same_ladder(rng: np.random.Generator):
    x = jnp.asarray(rng.normal(size=(8, 3)), jnp.float32)
    fast, plain = DyadicLadder().at(x), DyadicLadder(kernel=lambda h: RBF(h)).at(x)
    w = jnp.arange(1.0, 11.0)
    np.testing.assert_allclose(fast.mix(w).gram(x, x), plain.mix(w).gram(x, x), rtol=2e-6)


@pytest.mark.parametrize(
    ("n", "size", "low", "high"), [(8, 1, 0.5, 0.5), (5, 3, 0.0, 1.0), (8, 10, 0.05, 0.95), (40, 4, 0.1, 0.6)]
)
def test_quantile_ladder_values(n: int, size: int, low: float, high: float, rng: np.random.Generator):
    x = rng.normal(size=(n, 2)).astype(np.float32)
    r2 = sorted(upper_pairs(x.astype(float)))
    ends = [r2[round(q * (len(r2) - 1))] for q in (low, high)]
    ladder = QuantileLadder(size=size, low=low, high=high)
    h = [k.h for k in ladder.at(jnp.asarray(x))]
    assert len(h) == len(ladder) == size
    np.testing.assert_allclose(h, np.geomspace(ends[0], ends[1], size), rtol=1e-5)


def test_quantile_ladder_of_other_kernels(rng: np.random.Generator):
    x = rng.normal(size=(8, 3)).astype(np.float32)
    bank = QuantileLadder(size=3, low=0.0, high=1.0, kernel=IMQ).at(jnp.asarray(x))
    r2 = upper_pairs(x.astype(float))
    assert all(isinstance(k, IMQ) for k in bank)
    np.testing.assert_allclose([k.h for k in bank], np.geomspace(min(r2), max(r2), 3), rtol=1e-5)


@pytest.mark.parametrize("placement", [DyadicLadder(), QuantileLadder()], ids=["dyadic", "quantile"])
@pytest.mark.parametrize("n", [1, 3])
def test_ladder_where_no_distance_says_anything(placement: DyadicLadder | QuantileLadder, n: int):
    h = np.array([k.h for k in placement.at(jnp.zeros((n, 2)))])
    np.testing.assert_allclose(h, 2.0 ** np.arange(-4, 6) if isinstance(placement, DyadicLadder) else np.ones(10))


def test_a_bank_is_its_own_placement():
    bank = Bank.dyadic()
    assert bank.at(jnp.zeros((3, 2))) is bank
