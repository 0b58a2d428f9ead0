"""The Stein operator: its mean under p is zero, under q the difference of the scores, and along it KL falls as it should."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polystein import Points
from polystein.kernels import AbstractKernel, AbstractRadial
from polystein.stein import Tile, stein_operator
from tests import oracles
from tests.laws.draws import CORRELATED, HUMPS, bound, cloud, score, seeds
from tests.laws.registry import concrete, jit, make, over, varied

pytestmark = pytest.mark.usefixtures("float64")
smooth = lambda cls: make(cls).smooth
DENSITIES = {"gaussian": CORRELATED, "two humps": HUMPS}
ROWS = jnp.array([[0.0, 0.0], [1.0, -2.0], [3.0, 1.0]], "float32")
ENTRIES = 2 * 2
TESTS = len(DENSITIES) * len(ROWS) * len(concrete(AbstractKernel))


@jit
def stein_and_drift(kernel: AbstractKernel, rows: Points, cols: Points) -> tuple[jax.Array, jax.Array]:
    tile = Tile.of(rows, cols)
    return kernel.stein(tile), kernel.drift(tile)


@over(AbstractKernel, only=smooth)
@pytest.mark.parametrize("density", DENSITIES.values(), ids=DENSITIES)
def test_mean_of_stein_kernel_under_the_target_is_zero(cls, density, rng):
    """E_{x~p} u_p(y, x) = 0 for every y: unlike k, u_p knows the target."""
    x, y = density.sample(rng, 20_000), ROWS.astype(float)
    u, _ = stein_and_drift(varied(make(cls), 0), Points.of(y, score(density, y)), elsewhere(x, score(density, x)))
    assert_mean_zero(u.T, TESTS)


@over(AbstractKernel, only=smooth)
@pytest.mark.parametrize("density", DENSITIES.values(), ids=DENSITIES)
def test_mean_drift_of_the_target_is_zero(cls, density, rng):
    """E_{x~p} [k(x, y) s(x) + grad_x k(x, y)] = 0: exact samples stay where they are."""
    x, y = density.sample(rng, 20_000), ROWS.astype(float)
    blocks = x.reshape(200, 100, 2)
    drift = jax.vmap(lambda b, s: stein_and_drift(varied(make(cls), 0), Points.of(y, y), elsewhere(b, s))[1])
    assert_mean_zero(drift(blocks, score(density, blocks)), 2 * TESTS)


def elsewhere(x: jax.Array, s: jax.Array) -> Points:
    """Points of which none is one of the rows."""
    return Points(x, s, 1000 + jnp.arange(x.shape[0]))


def assert_mean_zero(draws: jax.Array, tests: int) -> None:
    """The mean over the leading axis is within its Monte-Carlo error."""
    error = jnp.std(draws, 0, ddof=1) / np.sqrt(draws.shape[0])
    np.testing.assert_array_less(jnp.abs(jnp.mean(draws, 0)), bound(tests) * error + 1e-12)


def phi(x: jax.Array) -> jax.Array:
    """A smooth bounded field that is no gradient."""
    return jnp.sin(jnp.array([[1.0, 0.5], [-0.7, 0.3]]) @ x + jnp.array([0.2, 1.0]))


def test_stein_identity(rng):
    """E_p A_p phi = 0."""
    x = HUMPS.sample(rng, 20_000)
    assert_mean_zero(jax.vmap(lambda x, s: stein_operator(phi, x, s))(x, score(HUMPS, x)), ENTRIES)


def test_stein_equation(rng):
    """E_q A_p phi = E_q (s_p - s_q) phi^T."""
    x = HUMPS.sample(rng, 20_000)
    sp, sq = score(CORRELATED, x), score(HUMPS, x)
    gap = jax.vmap(lambda x, sp, sq: stein_operator(phi, x, sp) - jnp.outer(sp - sq, phi(x)))(x, sp, sq)
    assert_mean_zero(gap, ENTRIES)


@jit
def rates(B, b, m, C, mu, S, axes):
    """The slope of KL(q_[x + e phi] || p) at e = 0, and E_q tr A_p phi, for affine phi and Gaussian q and p."""

    def kl(e):
        step = jnp.eye(len(m)) + e * B
        return oracles.gaussian_kl(m + e * (B @ m + b), step @ C @ step.T, mu, S)

    points = jnp.concatenate([m[None] + axes, m[None] - axes])
    operator = lambda x: stein_operator(lambda x: B @ x + b, x, -jnp.linalg.solve(S, x - mu))
    return jax.grad(kl)(0.0), jnp.mean(jax.vmap(lambda x: jnp.trace(operator(x)))(points))


@given(seed=seeds, d=st.sampled_from([1, 3]))
@settings(max_examples=10)
def test_divergence_falls_at_the_rate_of_the_operator(seed, d):
    """d/de KL(q_[x + e phi] || p) = -E_q tr A_p phi at e = 0 (errata 15 and 16).

    The mean under q = N(m, L L^T) of a quadratic function is that over the 2 d points m +- sqrt(d) L e_i.
    """
    rng = np.random.default_rng(seed)
    B, L, root = rng.standard_normal((3, d, d))
    m, mu, b = rng.standard_normal((3, d))
    C, S = L @ L.T + np.eye(d), root @ root.T + np.eye(d)
    slope, rate = rates(*map(jnp.asarray, (B, b, m, C, mu, S, np.sqrt(d) * np.linalg.cholesky(C).T)))
    np.testing.assert_allclose(slope, -rate, rtol=1e-10, atol=1e-10)


@over(AbstractKernel, only=smooth)
@given(points=cloud(5, 2), order=st.permutations(range(5)))
@settings(max_examples=4)
def test_permuting_points_permutes_drift_and_stein_kernel(cls, points, order):
    order, kernel = np.array(order), varied(make(cls), 0)
    u, drift = stein_and_drift(kernel, points, points)
    permuted = jax.tree.map(lambda a: a[order], points)
    u_permuted, drift_permuted = stein_and_drift(kernel, permuted, permuted)
    same(u_permuted, u[order][:, order])
    same(drift_permuted, drift[order])


@over(AbstractRadial, only=smooth)
@given(points=cloud(5, 2), angle=st.floats(0, 6), shift=st.integers(-50, 50))
@settings(max_examples=4)
def test_radial_kernels_follow_rigid_motions(cls, points, angle, shift):
    """Where points and density move together, u_p stays and the drift turns with them."""
    kernel = varied(make(cls), 0)
    turn = jnp.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved = Points.of(points.x @ turn + shift, points.s @ turn)
    u, drift = stein_and_drift(kernel, points, points)
    u_moved, drift_moved = stein_and_drift(kernel, moved, moved)
    same(u_moved, u, share=1e-9)
    same(drift_moved, drift @ turn, share=1e-9)


def same(actual, desired, *, share: float = 1e-12) -> None:
    np.testing.assert_allclose(actual, desired, rtol=0, atol=share * (1 + np.abs(desired).max()))
