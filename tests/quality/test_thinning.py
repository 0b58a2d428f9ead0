"""Thinning, weights and recombination: agreement with independent implementations, optimality, and what cannot be done."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import polystein as ps
from polystein.discrepancy import Scored
from polystein.thinning import AbstractPreconditioner, Identity, SampleCovariance, ScaledMedian
from polystein.thinning.simplex import least_on_simplex
from tests import oracles
from tests.laws.registry import over

pytestmark = pytest.mark.usefixtures("float64")
THEIR_NAMES = {"Identity": "id", "Median": "med", "ScaledMedian": "sclmed", "SampleCovariance": "smpcov"}


def gaussian(rng: np.random.Generator, n: int, d: int) -> tuple[jax.Array, jax.Array]:
    """Draws of the wrong density, and the scores of the right one."""
    a = rng.normal(size=(d, d))
    x = rng.normal(size=(n, d)) * np.linspace(0.5, 3, d) + 0.4
    return jnp.asarray(x), jnp.asarray(-x @ (a @ a.T / d + np.eye(d)))


@over(AbstractPreconditioner)
def test_thinning_is_that_of_the_package_stein_thinning(cls, rng):
    """The same draws in the same order, and the same discrepancies; draws that repeat each other are among them."""
    theirs = pytest.importorskip(
        "stein_thinning.thinning", reason="stein-thinning is not installed: pip install stein-thinning"
    )
    from stein_thinning.stein import ksd

    x, s = gaussian(rng, 150, 3)
    x, s = (a.at[100:120].set(a[:20]) for a in (x, s))
    expected = theirs.thin(np.asarray(x), np.asarray(s), 25, preconditioner=THEIR_NAMES[cls.__name__])
    found = ps.thin(x, s, 25, kernel=cls())
    np.testing.assert_array_equal(found.indices, expected)
    u = theirs._make_stein_integrand(np.asarray(x), np.asarray(s), preconditioner=THEIR_NAMES[cls.__name__])
    np.testing.assert_allclose(found.ksd, ksd(lambda i, j: u(expected[i], expected[j]), 25), rtol=1e-6)


def test_stein_kernel_and_thinning_are_those_of_goodpoints(rng):
    """The preconditioned kernel of goodpoints is ours in whitened coordinates; its Stein thinning chooses the same draws."""
    pytest.importorskip("goodpoints", reason="goodpoints is not installed (it needs a C compiler): pip install goodpoints")
    from goodpoints.jax.kernel.precond_stein import PrecondSteinKernel
    from goodpoints.jax.kt_swap_ls import kernel_swap_ls

    x, s = gaussian(rng, 80, 3)
    covariance = np.cov(x, rowvar=False)
    theirs = PrecondSteinKernel(lambda t: (1 + t) ** -0.5, covariance, 2.0)
    points = theirs.prepare_input(np.asarray(x), np.asarray(s))
    root = np.linalg.cholesky(np.linalg.inv(covariance))
    z, t = x @ root, s @ np.linalg.inv(root).T
    kernel = ps.IMQ(2.0)
    with jax.numpy_rank_promotion("allow"):
        u = np.asarray(theirs(points[:, None], points[None, :]))
    np.testing.assert_allclose(ps.ksd(z, t, kernel, statistic=ps.V()).value, u.mean(), rtol=1e-9)
    first = int(u.diagonal().argmin())
    with jax.numpy_rank_promotion("allow"):
        weights, _ = kernel_swap_ls(theirs, points, np.eye(80)[first], np.array([first]), "integer", grow_until=20)
    ours = np.bincount(np.asarray(ps.thin(z, t, 20, kernel=kernel).indices), minlength=80) / 20
    np.testing.assert_allclose(ours, weights, atol=1e-9)


def test_every_choice_is_the_best_next_draw(rng):
    """Trying every draw as the next one by the V-statistic finds none better, and the reported KSD is the V-statistic's."""
    x, s = gaussian(rng, 30, 2)
    kernel = ps.IMQ(1.5)
    found = ps.thin(x, s, 4, kernel=kernel)
    rows = list(np.asarray(found.indices))
    value = lambda rows: float(ps.ksd(x[np.array(rows)], s[np.array(rows)], kernel, statistic=ps.V(), pairs=ps.Dense()).value)
    # repeated rows are pairs of different points to the V-statistic, as they are to thinning
    tried = [value([*rows[:3], j]) for j in range(30)]
    assert int(np.argmin(tried)) == rows[3]
    np.testing.assert_allclose(found.ksd[3] ** 2, min(tried), rtol=1e-9)


def test_simplex_programme_has_its_closed_form():
    """For a diagonal U the weights are 1 / u_i, normalised; a dominated draw gets none."""
    u = np.array([1.0, 2.0, 5.0])
    np.testing.assert_allclose(least_on_simplex(np.diag(u)), (1 / u) / (1 / u).sum(), rtol=1e-6)
    np.testing.assert_allclose(least_on_simplex(np.array([[1.0, 1.5], [1.5, 4.0]])), [1.0, 0.0], atol=1e-8)
    # equal draws: any split is optimal
    np.testing.assert_allclose(least_on_simplex(np.ones((3, 3))).sum(), 1.0)


def test_weights_are_optimal_by_their_certificate(rng):
    """w'Uw is what is reported, and no other weights that are tried are below it by more than the gap."""
    x, s = gaussian(rng, 40, 2)
    kernel = ps.IMQ(2.0)
    found = ps.stein_weights(x, s, kernel=kernel)
    w = np.asarray(found.weights)
    jet = oracles.jet_of(kernel)
    pair = lambda y, sy, x, sx: oracles.stein(jet(y, x), sy, sx)
    u = np.asarray(oracles.all_pairs(pair, (x, s), (x, s)))
    assert w.min() >= 0
    np.testing.assert_allclose(w.sum(), 1, rtol=1e-12)
    np.testing.assert_allclose(found.ksd**2, w @ u @ w, rtol=1e-9)
    assert 0 <= found.gap <= 1e-6 * found.ksd**2
    for other in [*np.eye(40), np.full(40, 1 / 40), *rng.dirichlet(np.full(40, 0.1), 50), *rng.dirichlet(100 * w + 1e-3, 50)]:
        assert other @ u @ other >= found.ksd**2 - found.gap


def test_weights_mend_a_shifted_sample(rng):
    """Draws of N(0.7, 1) under the score of N(0, 1): weighted mean and variance are 0 and 1."""
    x = jnp.asarray(rng.normal(size=(300, 1)) + 0.7)
    w = np.asarray(ps.stein_weights(x, -x).weights)
    assert abs(w @ x[:, 0]) < 0.03
    assert abs(w @ x[:, 0] ** 2 - 1) < 0.1
    assert abs(x.mean()) > 0.5


def test_runs_that_miss_a_half_each_are_recombined(rng):
    """Of a run right of the mean, one left of it and one far away, the far one gets no weight and the mean is right."""
    target = ps.Target.of(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(1))
    x = jnp.asarray(rng.normal(size=(400, 1)))
    runs = {"right": x[x[:, 0] > 0][:100], "left": x[x[:, 0] <= 0][:60], "far": x[:50] + 8}
    for size in (None, 40):
        both = ps.recombine(runs, target, size=size)
        assert abs(float(both.weights @ both.samples[:, 0])) < 0.1
        assert float(both.weights[both.run == 2].sum()) < 0.01
        np.testing.assert_allclose(float(both.weights.sum()), 1, rtol=1e-12)
        for k in range(len(both.run)):
            np.testing.assert_array_equal(both.samples[k], list(runs.values())[both.run[k]][both.row[k]])
    assert "| left " in str(both)


def test_bad_input_is_told_in_a_sentence(rng, unchecked):
    x, s = gaussian(rng, 20, 2)
    still = jnp.concatenate([x, jnp.ones((20, 1))], 1)
    line = jnp.concatenate([x, x[:, :1]], 1)
    same = jnp.repeat(x[:1], 20, 0)
    for call, words in [
        (lambda: ps.thin(x, s, 0), "size=0; expected at least 1"),
        (lambda: ps.thin(x, s[:, :1], 5), "expected the same shape"),
        (lambda: ps.thin(x.at[3, 1].set(jnp.nan), s, 5), "expected finite numbers"),
        (lambda: ps.thin(still, still, 5), "column 2 of the samples is constant"),
        (lambda: ps.thin(line, line, 5, kernel=SampleCovariance()), "singular"),
        (lambda: ps.stein_weights(jnp.zeros((5001, 1)), jnp.zeros((5001, 1)), kernel=ps.IMQ()), "at most 5000"),
        (lambda: ps.thin(x, (s, s), 5), "half-batch"),
        (lambda: ps.recombine({}, ps.Target.of(lambda x: -x @ x, jnp.zeros(2))), "no runs were given"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="expected a kernel or a preconditioner"):
        ps.thin(x, s, 5, kernel="med")
    few = jnp.concatenate([same, x[:3]])
    with pytest.raises(ValueError, match="half of the pairs of 23 draws coincide"):
        ps.thin(few, few, 5, kernel=ScaledMedian())
    assert ps.thin(few, few, 5, kernel=Identity()).indices.shape == (5,)
    assert isinstance(ps.Target.of(lambda x: -x @ x, jnp.zeros(2)), Scored)
