"""Tests on all pairs: exact where a draw of the null is exchangeable with the sample, and right in level and power."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from polystein import IMQ, RBF, Bank, Points, ksd
from polystein.gof import (
    AbstractAggregate,
    LeastP,
    MarkovBootstrap,
    Sphere,
    StudentisedMax,
    StudentisedSphere,
    WildBootstrap,
    ksd_agg_test,
    ksd_test,
    max_mksd_test,
)
from polystein.gof.bootstrap import estimated_flip
from polystein.gof.bootstrapped import trial
from polystein.gof.forms import quadratic_forms
from polystein.gof.inputs import MEDIAN, many_kernels, placed
from polystein.stein import Tile
from tests import oracles
from tests.laws.draws import bound
from tests.laws.registry import concrete, jit, over

BANK = Bank(IMQ(0.5), IMQ(2.0), IMQ(8.0))
AGGREGATES = [cls() for cls in concrete(AbstractAggregate)]
REPEATS, DRAWS = 400, 79
standard_errors = partial(bound, risk=1e-4)


@jit
def p_values(x, s, keys, null):
    """The p-value of each aggregate of the default bank, and of its IMQ kernel alone, from one sweep a sample."""

    def one(x, s, key):
        points, bank = placed(Points.of(x, s), None, default=many_kernels)
        forms = quadratic_forms(bank, points, null.signs(key, points, DRAWS))
        deviation = forms.spread if null.chains else forms.deviation
        ranks = [jnp.mean((t := aggregate(forms.u, deviation)) >= t[0]) for aggregate in AGGREGATES]
        return jnp.stack([*ranks, forms.p_values[MEDIAN]])

    return jax.vmap(one)(x, s, keys)


def rejections(x, s, key, null=WildBootstrap()):
    """How often each aggregate, and one kernel by itself, rejects at the level 0.05."""
    return np.mean(np.asarray(p_values(x, s, jax.random.split(key, len(x)), null)) <= 0.05, 0)


def test_independent_draws_of_the_target_are_rejected_as_often_as_the_level_says(rng, key):
    x = jnp.asarray(rng.standard_normal((REPEATS, 60, 2)), jnp.float32)
    found = rejections(x, -x, key)
    assert np.all(np.abs(found - 0.05) < standard_errors(len(found)) * np.sqrt(0.05 * 0.95 / REPEATS)), found


def test_a_shift_is_seen(rng, key):
    """Of 0.6 standard deviations in one of two coordinates, by every aggregate in most samples of 60."""
    x = jnp.asarray(rng.standard_normal((REPEATS, 60, 2)) + np.array([0.6, 0.0]), jnp.float32)
    assert np.all(rejections(x, -x, key) > 0.8)


def chain(rng, phi, repeats, n):
    """An autoregression with marginal N(0, 1)."""
    noise = rng.standard_normal((n, repeats))
    x = [noise[0]]
    for e in noise[1:]:
        x.append(phi * x[-1] + np.sqrt(1 - phi**2) * e)
    return jnp.asarray(np.stack(x, 1)[:, :, None], jnp.float32)


def test_a_markov_bootstrap_holds_the_level_for_a_chain_where_the_wild_one_does_not(rng, key):
    x = chain(rng, 0.8, REPEATS, 200)
    wild, estimated, chosen = (
        rejections(x, -x, key, null) for null in (WildBootstrap(), MarkovBootstrap(), MarkovBootstrap(0.03))
    )
    off = standard_errors(len(wild)) * np.sqrt(0.05 * 0.95 / REPEATS)
    assert np.all(wild > 0.05 + off), wild
    for markov in (estimated, chosen):
        assert np.all(markov < 0.05 + off), markov


def test_quadratic_forms_are_those_of_the_textbook(rng):
    """Over several blocks of pairs, with signs; the deviation is that of independent signs."""
    with jax.enable_x64(True):
        n = 270  # more than a block
        x = rng.standard_normal((n, 2))
        s = np.sin(x) - x
        signs = rng.choice([-1.0, 1.0], (n, 3))
        bank = Bank(RBF(3.0), RBF(0.5))
        found = quadratic_forms(bank, Points.of(jnp.asarray(x), jnp.asarray(s)), jnp.asarray(signs))
        for i, h in enumerate((3.0, 0.5)):
            u = oracles.rbf_parts(x, s, h)["u"]
            np.fill_diagonal(u, 0)
            w = np.concatenate([np.ones((n, 1)), signs], 1)
            np.testing.assert_allclose(found.u[i], np.sum(w * (u @ w), 0) / (n * (n - 1)), rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(found.deviation[i], np.sqrt(2 * np.sum(u**2)) / (n * (n - 1)), rtol=1e-6)


def test_deviation_is_that_of_all_signs():
    """Over all 2^6 signs of six points U* has mean 0 and this standard deviation."""
    with jax.enable_x64(True):
        x = jnp.array([0.0, 0.3, 1.0, -0.7, 2.0, -1.1])[:, None]
        signs = jnp.array(list(product([-1.0, 1.0], repeat=6))).T
        forms = quadratic_forms(BANK, Points.of(x, -x), signs)
        np.testing.assert_allclose(forms.u[:, 1:].mean(1), 0, atol=1e-12)
        np.testing.assert_allclose(forms.deviation, np.sqrt((forms.u[:, 1:] ** 2).mean(1)), rtol=1e-9)


@over(AbstractAggregate)
def test_aggregates_know_no_column_from_another(cls, rng):
    """Permuting the sample's column among the draws' permutes the numbers: ranks of exchangeable columns are uniform."""
    u = jnp.asarray(rng.standard_normal((3, 40)))
    deviation, order = jnp.array([1.0, 2.0, 0.5]), rng.permutation(40)
    found = cls()(u, deviation)
    np.testing.assert_allclose(cls()(u[:, order], deviation), found[order], rtol=1e-6)
    ranks = np.sort([float(jnp.mean(found >= a)) for a in found])
    assert np.all(ranks >= np.arange(1, 41) / 40 - 1e-6), "a p-value of at most k/40 for more than k columns"
    assert np.mean(np.diff(ranks) > 0) > 0.9, "many columns tie"


def test_maxmksd_has_no_atom_where_no_kernel_sees_anything(rng):
    """Below zero it is the largest U_i, so that columns without a positive one still rank; else |U_+|_2 (erratum 45)."""
    u = jnp.asarray(rng.standard_normal((3, 200)))
    t, positive = Sphere()(u, jnp.ones(3)), np.asarray(u).max(0) > 0
    assert np.mean(~positive) > 0.05
    np.testing.assert_allclose(t, np.where(positive, np.linalg.norm(np.maximum(u, 0), axis=0), u.max(0)), rtol=1e-6)
    assert len(np.unique(t)) == 200


def test_a_studentised_aggregate_does_not_know_the_size_of_a_kernel(rng):
    """k_i and 1000 k_i are one kernel; for maxMKSD as it is they are not."""
    u, size = jnp.asarray(rng.standard_normal((3, 40))), jnp.array([1.0, 1000.0, 1.0])
    for aggregate in (StudentisedMax(), StudentisedSphere(), LeastP()):
        np.testing.assert_allclose(aggregate(u * size[:, None], size), aggregate(u, jnp.ones(3)), rtol=1e-5)
    assert not np.allclose(Sphere()(u * size[:, None], size), Sphere()(u, jnp.ones(3)))
    np.testing.assert_allclose(StudentisedMax()(u, size), np.max(np.asarray(u) / np.asarray(size)[:, None], 0), rtol=1e-6)


def test_one_program_and_one_sweep_whatever_the_bank(monkeypatch, key):
    """Twelve kernels are as many operations as three, and pairs of points are looked at as often."""
    points, tiles = Points.of(x := jnp.ones((300, 2)), -x), []
    of = Tile.of
    monkeypatch.setattr(Tile, "of", staticmethod(lambda rows, cols: tiles.append(1) or of(rows, cols)))

    def operations(bank):
        tiles.clear()
        run = lambda x: quadratic_forms(bank, Points.of(x, -x), WildBootstrap().signs(key, points, 19)).u
        return str(jax.make_jaxpr(run)(x)).count("\n"), len(tiles)

    few, many = (operations(Bank(*(IMQ(2.0**k) for k in range(m)))) for m in (3, 12))
    assert few == many


@over(AbstractAggregate)
def test_a_larger_discrepancy_is_never_less_suspect(cls, rng):
    u = jnp.asarray(rng.standard_normal((3, 40)))
    rank = lambda u: float(jnp.mean((t := cls()(u, jnp.ones(3))) >= t[0]))
    for i in range(3):
        assert rank(u.at[i, 0].add(1.5)) <= rank(u)


def test_least_p_rejects_where_some_kernel_exceeds_its_corrected_quantile(rng):
    """KSDAgg by its definition: the largest u at which at most a share alpha of the columns is rejected by any kernel."""
    w, columns, alpha = np.array([0.5, 0.3, 0.2]), 200, 0.1
    u = rng.standard_normal((3, columns))
    p = np.array([[np.mean(row >= a) for a in row] for row in u]) / (3 * w[:, None])
    share = lambda level: np.mean(np.any(p <= level, 0))
    levels = np.unique(p)
    largest = levels[np.flatnonzero([share(level) <= alpha for level in levels]).max()]
    t = LeastP(jnp.asarray(w))(jnp.asarray(u), jnp.ones(3))
    rejected = np.array([float(jnp.mean(t >= a)) <= alpha for a in t])
    agreed = rejected == np.any(p <= largest, 0)
    assert rejected.sum() == alpha * columns, "the level is not used up"
    assert np.all(agreed | rejected), "a column that KSDAgg rejects is not rejected"
    assert agreed.mean() > 0.97, "what differs is more than the breaking of ties"


def test_draws_are_shared_by_kernels(key, rng):
    """A bank of one kernel many times is that kernel, under every aggregate, p-value and all."""
    x = jnp.asarray(rng.standard_normal((50, 2)) + 0.25, jnp.float32)
    one = ksd_test(x, -x, IMQ(2.0), key=key, bootstraps=99)
    thrice = Bank(IMQ(2.0), IMQ(2.0), IMQ(2.0))
    for aggregate in (StudentisedSphere(), LeastP()):
        found = max_mksd_test(x, -x, thrice, aggregate=aggregate, key=key, bootstraps=99)
        np.testing.assert_allclose(found.contributions.statistic, one.statistic, rtol=1e-5)
        np.testing.assert_allclose(found.p_value, one.p_value, atol=0.011)  # two draws may be a rounding error apart


def test_what_is_answered(key, rng):
    """The statistic is that of `ksd`, p-values are ranks among all draws, and the decision compares p with the level."""
    x = jnp.asarray(rng.standard_normal((70, 2)), jnp.float32)
    one = ksd_test(x, -x, RBF(2.0), key=key, bootstraps=39)
    np.testing.assert_allclose(one.statistic, ksd(x, -x, RBF(2.0)).value, rtol=1e-4)
    assert float(one.p_value) * 40 == pytest.approx(round(float(one.p_value) * 40), abs=1e-4)
    many = max_mksd_test(x, -x, BANK, key=key, bootstraps=39, aggregate=Sphere())
    np.testing.assert_allclose(
        [ksd(x, -x, kernel).value for kernel in BANK], many.contributions.statistic, rtol=1e-3, atol=1e-6
    )
    far = max_mksd_test(x + 3, -x - 3, BANK, key=key, bootstraps=39, aggregate=Sphere())
    np.testing.assert_allclose(far.statistic, jnp.linalg.norm(far.contributions.statistic), rtol=1e-5)
    assert far.rejected
    assert float(far.p_value) == pytest.approx(1 / 40)
    assert "differ from" in str(far)
    assert "IMQ(h=8" in str(far)


def test_bad_samples_are_rejected_by_the_defaults(key, rng):
    """Too narrow, under default kernels, which follow the units of the samples."""
    x = jnp.asarray(1e3 * 0.6 * rng.standard_normal((70, 2)), jnp.float32)
    for test in (max_mksd_test, ksd_agg_test):
        assert test(x, -x / 1e6, key=key, bootstraps=99).rejected


def test_a_second_sample_of_the_same_shape_compiles_nothing(key, rng):
    x = jnp.asarray(rng.standard_normal((2, 40, 2)), jnp.float32)
    run = partial(max_mksd_test, bootstraps=19, key=key)
    run(x[0], -x[0], BANK)
    before = trial._cached._cache_size()
    run(x[1], -x[1], BANK, level=0.1)
    run(x[1], -x[1], Bank(IMQ(0.1), IMQ(1.0), IMQ(10.0)))
    assert trial._cached._cache_size() == before


def test_wild_signs_are_fair(key, rng):
    x = jnp.asarray(rng.standard_normal((100, 1)))
    signs = np.asarray(WildBootstrap().signs(key, Points.of(x, -x), 1000))
    assert set(np.unique(signs)) == {-1.0, 1.0}
    np.testing.assert_allclose(signs.mean(), 0, atol=bound(2) / np.sqrt(signs.size))
    covariance = signs @ signs.T / 1000 - np.eye(100)
    assert np.abs(covariance).max() < bound(4950) / np.sqrt(1000)


def test_markov_signs_are_as_correlated_as_they_say(key):
    """(1 - 2a)^lag along a chain, nothing across chains."""
    x, flip, size = jnp.arange(40.0)[:, None], 0.1, 4000
    signs = np.asarray(MarkovBootstrap(flip, chains=2).signs(key, Points.of(x, -x), size))
    covariance = signs @ signs.T / size
    lag = np.abs(np.subtract.outer(np.arange(40), np.arange(40)))
    same = np.equal.outer(np.arange(40) // 20, np.arange(40) // 20)
    np.testing.assert_allclose(covariance, 0.8**lag * same, rtol=0, atol=bound(820) / np.sqrt(size))


def test_estimated_flip_follows_the_autocorrelation(rng):
    """By the formula, at the autocorrelation that the chain was made with; two chains are not one."""
    n, phi = 4000, 0.7
    x = chain(rng, phi, 1, n)[0]
    length = 1.1447 * np.cbrt(4 * phi**2 * n / (1 - phi**2) ** 2)
    assert float(estimated_flip(Points.of(x, -x))) == pytest.approx((1 - np.exp(-1 / length)) / 2, rel=0.1)
    apart = jnp.concatenate([x[: n // 2], x[n // 2 :] + 100])
    near, far = (float(estimated_flip(Points.of(x, -x), chains=c)) for c, x in ((2, x), (2, apart)))
    assert near == pytest.approx(float(estimated_flip(Points.of(x, -x))), rel=0.1)
    assert far < near
