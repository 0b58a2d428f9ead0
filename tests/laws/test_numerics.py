"""Floating point: single precision close to double where a naive program is not, finite on every degenerate input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from polystein import RBF, Points
from polystein.kernels import AbstractKernel
from polystein.numerics import order_statistic
from polystein.stein import Tile
from tests import oracles
from tests.laws.registry import jit, make, over

N = 12
DIMENSIONS = [1, 2, 9, 20]
SHARE = 2e-5  # of the largest entry


def far_away(rng, d):
    """One cluster of spread 1/10, ten thousand from the origin."""
    return 1e4 + 0.1 * rng.standard_normal((N, d)), 0.01


def two_clusters(rng, d):
    """Two clusters of spread 1, at plus and minus ten thousand: no common centre helps."""
    return np.where(np.arange(N) % 2, 1e4, -1e4)[:, None] + rng.standard_normal((N, d)), 1.0


def coincident(rng, d):
    """Far from the origin, every point there twice."""
    return 1e3 + np.repeat(rng.standard_normal((N // 2, d)), 2, 0), 1.0


def spread_out(rng, d):
    """No two points close: matrix products are taken."""
    return 3 * rng.standard_normal((N, d)), 9.0


def displaced(rng, d):
    """A hundred away from the origin, no two close: centring alone saves the digits."""
    return 100 + 3 * rng.standard_normal((N, d)), 9.0


@jax.jit
def parts(kernel: AbstractKernel, points: Points):
    tile = Tile.of(points, points)
    return {"k": kernel.profile(tile.r2).value, "drift": kernel.drift(tile), "u": kernel.stein(tile)}


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("place", [far_away, two_clusters, coincident, spread_out, displaced])
def test_single_precision_is_close_to_double(place, d, rng):
    """k, drift and u_p of an RBF against pair by pair differences of the same float32 numbers in double precision."""
    x, scale = place(rng, d)
    x = x.astype(np.float32)
    s = (-rng.standard_normal((N, d)) / np.sqrt(scale)).astype(np.float32)
    h = np.float32(2 * d * scale)
    single = parts(RBF(h), Points.of(jnp.asarray(x), jnp.asarray(s)))
    exact = oracles.rbf_parts(x.astype(float), s.astype(float), float(h))
    for name, value in jax.tree.map(np.asarray, single).items():
        assert value.dtype == np.float32
        assert np.abs(value - exact[name]).max() < SHARE * np.abs(exact[name]).max(), name


@over(AbstractKernel)
@pytest.mark.parametrize("case", ["one", "all coincide", "line"])
def test_degenerate_points_give_finite_numbers(cls, case):
    """One particle, five on one spot, and three on a line of which two coincide."""
    x = {"one": jnp.full((1, 2), 3.0), "all coincide": jnp.full((5, 2), -2.0), "line": jnp.array([[0.0], [1.0], [0.0]])}[case]
    kernel = make(cls)
    gram, drift, u = jit(lambda k, p: (k.gram(p.x, p.x), k.drift(Tile.of(p, p)), k.stein(Tile.of(p, p))))(
        kernel, Points.of(x, -x)
    )
    assert np.isfinite(gram).all()
    assert np.isfinite(drift).all()
    assert np.isfinite(u).all() or not kernel.smooth


bits = lambda dtype: hnp.arrays(
    dtype,
    9,
    elements=st.floats(0, width=8 * np.dtype(dtype).itemsize, allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, 1.0, 1.0]),
)
find = jax.jit(lambda values, ranks: jax.vmap(lambda rank: order_statistic(values, rank))(ranks))


@example(values=np.array([0, 0, 0, 1e-45, 1e-45, 3e-39, 1, 1, 3.4e38], np.float32))
@example(values=np.zeros(9, np.float32))
@given(values=bits(np.float32))
def test_order_statistics_are_those_of_sorting(values):
    """Zeros, ties, subnormal and largest numbers included, to the bit."""
    np.testing.assert_array_equal(find(jnp.asarray(values), jnp.arange(9)), np.sort(values))


@pytest.mark.usefixtures("float64")
@example(values=np.array([0, 0, 5e-324, 5e-324, 1e-310, 1, 1, 2, 1.7e308]))
@given(values=bits(np.float64))
def test_order_statistics_in_double_precision(values):
    np.testing.assert_array_equal(find(jnp.asarray(values), jnp.arange(9)), np.sort(values))


@settings(max_examples=5)
@given(st.integers(1, 400))
def test_order_statistics_of_one_value_and_of_many_ties(n):
    values = jnp.asarray(np.arange(n) // 3 % 5, float)
    for rank in {0, n // 2, n - 1}:
        assert order_statistic(values, rank) == np.sort(values)[rank]
