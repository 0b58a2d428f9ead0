"""What every kernel is: symmetric, positive semi-definite, with the derivatives that its textbook formula has."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from polystein import Function, Laplace, Points, ksd
from polystein.kernels import AbstractKernel, AbstractRadial
from polystein.stein import Tile
from tests import oracles
from tests.laws.draws import cloud, seeds
from tests.laws.registry import concrete, jit, over, varied

pytestmark = pytest.mark.usefixtures("float64")
N = 5
smooth = lambda cls: cls().smooth


@jit
def anatomy(kernel: AbstractKernel, points: Points) -> dict:
    """Everything a kernel says of all pairs, and what the oracles say."""
    kernel = in_float64(kernel)
    pairs = lambda jet: oracles.all_pairs(jet, (points.x,), (points.x,))
    jets = {"library": pairs(kernel.jet), "textbook": pairs(oracles.jet_of(kernel))}
    if points.x.shape[1] == 2:  # one dimension is enough to see that autodiff of the kernel is right where points meet
        jets["autodiff"] = pairs(lambda y, x: oracles.pair_jet(kernel, y, x))
    over_pairs = lambda f, jet: jax.vmap(jax.vmap(f, (0, None, 0)), (0, 0, None))(jet, points.s, points.s)
    tile = Tile.of(points, points)
    return {
        "gram": kernel.gram(points.x, points.x),
        "jets": {name: tuple(jet) for name, jet in jets.items()},
        "stein": {name: over_pairs(oracles.stein, jet) for name, jet in jets.items()} | {"tile": kernel.stein(tile)},
        "drift": {name: over_pairs(lambda jet, _, s: oracles.drift(jet, s), jet).sum(1) for name, jet in jets.items()}
        | {"tile": kernel.drift(tile)},
    }


def in_float64(kernel: AbstractKernel) -> AbstractKernel:
    return jax.tree.map(lambda a: a.astype(float) if eqx.is_inexact_array(a) else a, kernel)


def close(actual, desired, *, share: float) -> None:
    """Equal up to a share of the largest entry."""
    desired = np.asarray(desired)
    np.testing.assert_allclose(actual, desired, rtol=0, atol=share * (1 + np.abs(desired).max()))


SHARES = {"library": 1e-12, "autodiff": 1e-10, "textbook": 1e-7}  # the textbook's limit at coincident points is approximate


@over(AbstractKernel, only=smooth)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_derivatives_are_those_of_the_formula(cls, d):
    """Jets, Stein tiles and drifts, at points some of which coincide."""

    @given(cloud(N, d), seeds)
    @settings(max_examples=6)
    def law(points, seed):
        found = anatomy(varied(cls(), seed), points)
        for oracle in found["jets"]:
            for kind in ("stein", "drift"):
                close(found[kind]["tile"], found[kind][oracle], share=SHARES[oracle])
            for actual, desired in zip(found["jets"]["library"], found["jets"][oracle], strict=True):
                close(actual, desired, share=SHARES[oracle])

    law()


@over(AbstractKernel)
@given(points=cloud(N, 2), seed=seeds)
@settings(max_examples=6)
def test_symmetric_and_positive_semidefinite(cls, points, seed):
    """k, and u_p, which is itself a kernel whatever the scores."""
    found = anatomy(varied(cls(), seed), points)
    psd(np.asarray(found["gram"]))
    if smooth(cls):
        psd(np.asarray(found["stein"]["tile"]))


TICKS = np.arange(36)
LATTICES = (0.7 * np.stack([TICKS // 6 - 2.5, TICKS % 6 - 2.5], 1), 0.5 * np.stack([TICKS - 17.5, 0 * TICKS], 1))


@jit
def grams(kernel: AbstractKernel, points: Points) -> tuple[jax.Array, ...]:
    """k, and u_p where there is one, of all pairs."""
    kernel = in_float64(kernel)
    gram = kernel.gram(points.x, points.x)
    return (gram, kernel.stein(Tile.of(points, points))) if kernel.smooth else (gram,)


@over(AbstractKernel)
def test_positive_semidefinite_on_lattices(cls, rng):
    """A square and a line of 36 points: a few scattered ones see almost nothing of a spectrum that is negative in places."""
    for x in LATTICES:
        points = Points.of(jnp.asarray(x), jnp.asarray(rng.standard_normal(x.shape)))
        for gram in grams(varied(cls(), 0), points):
            psd(np.asarray(gram))


@pytest.mark.parametrize("phi", [lambda r2: jnp.exp(-(r2**2)), lambda r2: 1 - jnp.tanh(r2)], ids=["exp(-r^4)", "1-tanh(r^2)"])
def test_functions_that_are_no_kernels_are_seen(phi, rng):
    """Symmetric, smooth, 1 at the origin, falling off, and not positive semi-definite."""
    for x in LATTICES:
        points = Points.of(jnp.asarray(x), jnp.asarray(rng.standard_normal(x.shape)))
        for gram in grams(Function(lambda x, y: phi(jnp.sum((x - y) ** 2))), points):
            with pytest.raises(AssertionError):
                psd(np.asarray(gram))


def psd(gram: np.ndarray) -> None:
    np.testing.assert_allclose(gram, gram.T, rtol=0, atol=1e-12 * np.abs(gram).max())
    eigenvalues = np.linalg.eigvalsh(gram)
    assert eigenvalues[0] >= -1e-10 * eigenvalues[-1]


@over(AbstractRadial)
def test_radial_kernels_are_one_at_coincident_points(cls):
    assert varied(cls(), 0)(jnp.ones(3), jnp.ones(3)) == 1


@over(AbstractKernel)
def test_gradients_in_hyperparameters(cls, rng):
    """Finite, and those of central differences, at points of which two coincide."""
    x = rng.standard_normal((4, 2))
    x[-1] = x[0]
    points = Points.of(jnp.asarray(x), jnp.asarray(rng.standard_normal((4, 2))))
    weights = jnp.asarray(rng.standard_normal((4, 4)))
    arrays, rest = eqx.partition(in_float64(varied(cls(), 1)), eqx.is_inexact_array)

    @jit
    @jax.value_and_grad
    def total(arrays):
        kernel = eqx.combine(arrays, rest)
        tile = Tile.of(points, points)
        seen = [jnp.sum(weights * kernel.gram(points.x, points.x)), jnp.sum(kernel.drift(tile)[0] * points.x[1])]
        return sum([*seen, jnp.sum(weights * kernel.stein(tile))] if kernel.smooth else seen)

    direction = jax.tree.map(lambda a: jnp.asarray(rng.standard_normal(a.shape)), arrays)
    slope = jax.tree.reduce(jnp.add, jax.tree.map(lambda g, v: jnp.sum(g * v), total(arrays)[1], direction), 0.0)
    at = lambda e: total(jax.tree.map(lambda a, v: a + e * v, arrays, direction))[0]
    np.testing.assert_allclose(slope, (at(1e-5) - at(-1e-5)) / 2e-5, rtol=1e-6, atol=1e-7)


def test_laplace_has_no_stein_discrepancy(rng):
    assert [cls for cls in concrete(AbstractKernel) if not smooth(cls)] == [Laplace]
    x = jnp.asarray(rng.standard_normal((4, 2)))
    with pytest.raises(ValueError, match="no Stein discrepancy"):
        ksd(x, -x, Laplace())


def test_laplace_drift_away_from_the_diagonal(rng):
    """Where no two points meet, its drift is the textbook's; two coincident points exert no force on each other."""
    points = Points.of(jnp.asarray(rng.standard_normal((4, 2))), jnp.asarray(rng.standard_normal((4, 2))))
    found = anatomy(varied(Laplace(), 0), points)["jets"]
    off = ~np.eye(4, dtype=bool)
    for actual, desired in zip(found["library"], found["textbook"], strict=True):
        close(np.asarray(actual)[off], np.asarray(desired)[off], share=1e-10)
    assert not np.asarray(found["library"][2])[~off].any()
