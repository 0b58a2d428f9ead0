"""The statistics of a discrepancy: what they estimate, how they are biased, and whether their standard errors are true."""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from polystein import IMQ, RBF, Bank, Dense, Incomplete, LinearTime, Matern52, Points, TwoBatch, U, V, ksd, max_mksd, mksd
from polystein.discrepancy import AbstractStatistic, AbstractSweep, sweep
from tests import oracles
from tests.laws.draws import CORRELATED, Gaussian, bound, cloud, score
from tests.laws.registry import jit, make, over

pytestmark = pytest.mark.usefixtures("float64")
BANK = Bank(RBF(0.5), RBF(4.0), IMQ(), Matern52(2.0))
Q = Gaussian(np.array([0.2, -0.4]), np.array([[0.8, 0.1], [0.1, 1.4]]))


@jit
def all_sums(bank: Bank, points: Points):
    return sweep(bank, points, Dense())


@jit
def each_pair(bank: Bank, points: Points) -> list:
    """u_p of every pair by the oracle, for every kernel."""
    found = []
    for kernel in bank:
        jet = oracles.jet_of(kernel)
        pair = lambda y, sy, x, sx, jet=jet: oracles.stein(jet(y, x), sy, sx)
        found.append(oracles.all_pairs(pair, (points.x, points.s), (points.x, points.s)))
    return found


@given(points=cloud(6, 2))
@settings(max_examples=10)
def test_v_is_u_and_the_mean_diagonal(points):
    """V = (n - 1)/n U + mean u(x, x) / n, and V is the mean over all n^2 pairs of the oracle's u_p."""
    sums = all_sums(BANK, points)
    for i, u in enumerate(map(np.asarray, each_pair(BANK, points))):
        scale = 1e-6 * (1 + np.abs(u).max())
        np.testing.assert_allclose(sums.v[i], u.mean(), rtol=0, atol=scale)
        np.testing.assert_allclose(sums.u[i], (u.sum() - np.trace(u)) / 30, rtol=0, atol=scale)
        np.testing.assert_allclose(sums.diagonal[i], np.diag(u), rtol=0, atol=scale)
        np.testing.assert_allclose(sums.squares[i], (u**2).sum(1) - np.diag(u) ** 2, rtol=0, atol=scale * (1 + np.abs(u).max()))
    np.testing.assert_allclose(sums.v, 5 / 6 * sums.u + sums.diagonal.mean(1) / 6, rtol=1e-12, atol=1e-12)


def test_diagonal_of_radial_kernels_is_the_bias_of_erratum_5(rng):
    """u(x, x) = |s|^2 + 2 d / h for an RBF: ordered by bandwidth alone."""
    x = CORRELATED.sample(rng, 6)
    points = Points.of(x, score(CORRELATED, x))
    h = np.array([0.25, 1.0, 64.0])
    diagonal = all_sums(Bank(*map(RBF, h)), points).diagonal
    np.testing.assert_allclose(diagonal, jnp.sum(points.s**2, 1)[None] + 4 / h[:, None], rtol=1e-12)


def test_closed_form_of_the_gaussian_discrepancy_against_quadrature():
    """In one dimension, by Gauss-Hermite quadrature of the textbook's u_p: the oracle is itself right."""
    m, C, mu, S, h = 0.3, 0.7, -0.5, 1.6, 1.3
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    x, w = jnp.asarray(m + np.sqrt(C) * nodes)[:, None], weights / weights.sum()
    s = -(x - mu) / S
    (u,) = each_pair(Bank(RBF(h)), Points.of(x, s))
    one = lambda a: np.array([a])
    closed = oracles.gaussian_rbf_ksd(one(m), np.diag(one(C)), one(mu), np.diag(one(S)), h)
    np.testing.assert_allclose(w @ u @ w, closed, rtol=1e-8)


UNBIASED = {"U": lambda _: U(), "LinearTime": lambda _: LinearTime(), "Incomplete": lambda key: Incomplete(key, size=400)}
TRIALS = 400
PAIRS_OF_DENSITIES = {"null": CORRELATED, "alternative": Q}


@eqx.filter_jit
def many(statistic, bank: Bank, keys, x, s):
    """One estimate per sample."""
    one = lambda sample: statistic(sample[0]).estimate(bank, Points.of(*sample[1:]), Dense())
    return jax.lax.map(one, (keys, x, s), batch_size=50)


@pytest.fixture(scope="module")
def trials(float64):
    """For q = p and q != p, each statistic on many samples of 60: values and standard errors under each kernel."""
    rng, n, found = np.random.default_rng(20260710), 60, {}
    keys = jax.random.split(jax.random.key(7), TRIALS)
    bank = Bank(RBF(0.5), RBF(4.0), IMQ())
    for case, q in PAIRS_OF_DENSITIES.items():
        x = q.sample(rng, TRIALS, n)
        s = score(CORRELATED, x)
        for name, statistic in {**UNBIASED, "V": lambda _: V()}.items():
            found[case, name] = many(statistic, bank, keys, x, s)
        found[case, "exact"] = [
            oracles.gaussian_rbf_ksd(q.mean, q.covariance, CORRELATED.mean, CORRELATED.covariance, h) for h in (0.5, 4.0)
        ]
    return SimpleNamespace(of=found, n=n, tests=3 * len(UNBIASED) * len(PAIRS_OF_DENSITIES))


@pytest.mark.parametrize("name", UNBIASED)
@pytest.mark.parametrize("case", PAIRS_OF_DENSITIES)
def test_unbiased_statistics_estimate_the_closed_form(trials, case, name):
    values = np.asarray(trials.of[case, name].value)[:, :2]
    error = values.std(0, ddof=1) / np.sqrt(TRIALS)
    assert (np.abs(values.mean(0) - trials.of[case, "exact"]) < bound(trials.tests) * error).all()


@pytest.mark.parametrize("name", UNBIASED)
@pytest.mark.parametrize("case", PAIRS_OF_DENSITIES)
def test_standard_errors_are_those_seen(trials, case, name):
    """mean of se^2 against the variance over trials, within the Monte-Carlo error of both.

    For U a tenth is granted on top: the first-order part is clipped at zero, which under the null leaves it positive.
    """
    values, se = (np.asarray(a) for a in trials.of[case, name])
    gap = (values - values.mean(0)) ** 2 - se**2  # of mean zero
    error = gap.std(0, ddof=1) / np.sqrt(TRIALS)
    granted = (0.1 if name == "U" else 0.0) * values.var(0)
    assert (np.abs(gap.mean(0)) < bound(trials.tests) * error + granted).all()


@pytest.mark.parametrize("case", PAIRS_OF_DENSITIES)
def test_bias_of_v_is_the_mean_diagonal(trials, case):
    """E V = (n - 1)/n S + E u(x, x)/n, with E u(x, x) = E_q |s_p|^2 + 2 d / h."""
    q, P = PAIRS_OF_DENSITIES[case], np.linalg.inv(CORRELATED.covariance)
    gap = P @ (q.mean - CORRELATED.mean)
    diagonal = gap @ gap + np.trace(P @ q.covariance @ P) + 4 / np.array([0.5, 4.0])
    expected = (1 - 1 / trials.n) * np.array(trials.of[case, "exact"]) + diagonal / trials.n
    values = np.asarray(trials.of[case, "V"].value)[:, :2]
    assert (np.abs(values.mean(0) - expected) < bound(4) * values.std(0, ddof=1) / np.sqrt(TRIALS)).all()


def test_noisy_scores_bias_one_batch_and_not_two(rng):
    """Scores share one noise e ~ N(0, E) over all particles: U gains tr E mean k, TwoBatch nothing (erratum 14)."""
    n, trials = 8, 4000
    x = Q.sample(rng, n)
    s, E = score(CORRELATED, x), np.array([[4.0, 1.0], [1.0, 2.0]])
    noise = jnp.asarray(rng.standard_normal((2, trials, 1, 2)) @ np.linalg.cholesky(E).T)
    bank = Bank(RBF(0.5), IMQ())

    @jit
    def noisy(a, b):
        two = sweep(bank, Points.of(x, s + (a + b) / 2, halves=(s + a, s + b)), Dense())
        return two.u, two.v, sweep(bank, Points.of(x, s + a), Dense()).u

    u, v, shared = (np.asarray(a) for a in jax.vmap(noisy)(*noise))
    exact = all_sums(bank, Points.of(x, s))
    off = ~np.eye(n, dtype=bool)
    gram = np.stack([np.asarray(kernel.gram(x, x))[off].mean() for kernel in bank])
    for draws, expected in ((u, exact.u), (v, exact.v), (shared, exact.u + np.trace(E) * gram)):
        error = draws.std(0, ddof=1) / np.sqrt(trials)
        assert (np.abs(draws.mean(0) - expected) < bound(6) * error).all()


@over(AbstractStatistic)
def test_noisy_scores_meet_in_no_product(cls):
    """Every statistic takes the left half of a row with the right half of a column: all noise on one side is linear."""
    rng = np.random.default_rng(0)
    x, s, e = (jnp.asarray(rng.standard_normal((6, 2))) for _ in range(3))
    points = lambda t: Points.of(x, s, halves=(s + t * e, s))
    value = lambda t: make(cls).estimate(Bank(RBF()), points(t), Dense()).value
    np.testing.assert_allclose(value(2.0) - value(1.0), value(1.0) - value(0.0), rtol=1e-9, atol=1e-12)


@over(AbstractStatistic, only=lambda cls: not issubclass(cls, AbstractSweep))
def test_statistics_of_few_pairs_take_any_number_of_points(cls, rng):
    """n (n - 1) of 1e5 points is beyond 32-bit integers."""
    x = jnp.asarray(rng.standard_normal((100_000, 2)), jnp.float32)
    found = ksd(x, -x, IMQ(), statistic=make(cls))
    assert abs(found.value) < bound(1) * found.standard_error


@over(AbstractStatistic)
def test_a_bank_of_one_is_its_kernel(cls, rng):
    """ksd of a kernel, of a bank of it, and mksd of unit weight are one number."""
    statistic = make(cls)
    x = Q.sample(rng, 9)
    s = score(CORRELATED, x)
    s = (s, s) if cls is TwoBatch else s
    one, many = ksd(x, s, IMQ(), statistic=statistic), ksd(x, s, Bank(IMQ()), statistic=statistic)
    mixed = mksd(x, s, Bank(IMQ()), jnp.ones(1), statistic=statistic)
    for a, b, c in zip(one, many, mixed, strict=True):
        assert a.shape == ()
        assert b.shape == (1,)
        np.testing.assert_allclose([b[0], c], a, rtol=1e-12)


@over(AbstractSweep)
def test_mksd_is_linear_in_the_weights_and_max_mksd_its_largest(cls, rng):
    statistic = make(cls)
    x = Q.sample(rng, 9)
    s = score(CORRELATED, x)
    s = (s, s) if cls is TwoBatch else s
    each = ksd(x, s, BANK, statistic=statistic).value
    w = rng.uniform(0, 1, len(BANK))
    mixed = lambda w: mksd(x, s, BANK, jnp.asarray(w), statistic=statistic).value
    np.testing.assert_allclose(mixed(w), w @ each, rtol=1e-10)
    best = max_mksd(x, s, BANK, statistic=statistic)
    np.testing.assert_allclose([mixed(best.w), jnp.linalg.norm(best.w)], [best.value, 1], rtol=1e-10)
    assert mixed(w / np.linalg.norm(w)) <= best.value + 1e-10
