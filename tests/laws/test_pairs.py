"""How a sum over pairs is evaluated does not change it: in one block, in tiles of any shape, or with points left out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polystein import IMQ, RBF, Bank, Dense, Linear, Matern32, Points, Product, Tiled
from polystein.methods import Swarm
from polystein.pairs import AbstractPairs
from tests.laws.draws import grids, seeds
from tests.laws.registry import jit, over

BANK = Bank(RBF(0.5), RBF(2.0), Linear(), Product(RBF(), IMQ()), Matern32())
W = jnp.linspace(0.2, 1.0, 5)
RAGGED = [(1, Tiled(3, 4)), (7, Tiled(3, 2)), (8, Tiled(4, 8)), (5, Tiled(1, 1)), (5, Tiled(64, 4096))]  # rows, columns or both


@jit
def everything(pairs: AbstractPairs, points: Points):
    """Drift and sums in one sweep, and each by itself."""
    swarm = Swarm(points, pairs)
    return swarm.drift_and_sums(BANK, W), swarm.drift(BANK.mix(W)), swarm.sums(BANK)


def points_of(x: np.ndarray, seed: int, dtype: type = float, live: np.ndarray | None = None) -> Points:
    s = np.random.default_rng(seed).standard_normal(x.shape)
    as_array = lambda a: jnp.asarray(a, dtype)
    halves = (as_array(s + 0.5), as_array(s - 0.5))
    return Points.of(as_array(x), as_array(s), halves=halves, live=None if live is None else jnp.asarray(live))


def same(found, expected, share: float) -> None:
    """Equal up to a share of the largest entry of each array; nan (the U-statistic of one point) where expected."""

    def leaf(a, b):
        scale = 1 + np.abs(np.nan_to_num(b)).max()
        np.testing.assert_allclose(a, b, rtol=0, atol=share * scale)

    jax.tree.map(leaf, found, expected)


@pytest.mark.parametrize(("n", "tiles"), RAGGED)
@pytest.mark.parametrize(("dtype", "share"), [(np.float64, 1e-12), (np.float32, 1e-5)], ids=["float64", "float32"])
def test_tiled_is_dense(n, tiles, dtype, share):
    @given(grids(n, 2), seeds)
    @settings(max_examples=3)
    def law(x, seed):
        points = points_of(x, seed, dtype)
        found, expected = everything(tiles, points), everything(Dense(), points)
        assert all(leaf.dtype == dtype for leaf in jax.tree.leaves(found))
        same(found, expected, share)

    with jax.enable_x64(dtype is np.float64):
        law()


@pytest.mark.usefixtures("float64")
@over(AbstractPairs)
@example(order=[0, 1, 2, 3, 4, 5, 6], seed=0)
@given(order=st.permutations(range(7)), seed=seeds)
@settings(max_examples=4)
def test_dead_points_are_as_if_removed(cls, order, seed):
    """Their rows mean nothing; to all others, and in every sum, they are not there."""
    live = np.array(order) < 4
    x = np.random.default_rng(seed).integers(-9, 9, (7, 2)) / 4
    pairs = Tiled(2, 3) if cls is Tiled else cls()
    whole = points_of(x, seed, live=live)
    left = Points(*(a[live] for a in (whole.x, whole.s, whole.id, whole.left, whole.right)))
    ((phi, sums), alone, again), ((phi_left, sums_left), alone_left, _) = everything(pairs, whole), everything(pairs, left)
    same((phi[live], alone[live]), (phi_left, alone_left), 1e-12)
    for found in (sums, again):
        same((found.v, found.u, found.null_deviation), (sums_left.v, sums_left.u, sums_left.null_deviation), 1e-12)
        same((found.power_deviation, found.standard_error), (sums_left.power_deviation, sums_left.standard_error), 1e-6)


@pytest.mark.usefixtures("float64")
@given(seed=seeds)
@settings(max_examples=5)
def test_rows_need_not_be_columns(seed):
    """Each row's sum is its own: any part of the rows against all columns gives that part of the sums."""
    rng = np.random.default_rng(seed)
    points = points_of(rng.standard_normal((7, 2)), seed)
    block = lambda rows, cols: jnp.sum((rows.x[:, None] - cols.x[None]) ** 3, (1, 2))
    total = lambda pairs, rows: pairs.sum(block, jax.tree.map(lambda a: a[rows], points), points)
    whole = total(Dense(), slice(None))
    for rows in (slice(0, 1), slice(2, 7)):
        same(total(Tiled(2, 3), rows), whole[rows], 1e-12)
        same(total(Dense(), rows), whole[rows], 1e-12)


def test_tiles_take_memory_linear_in_the_points():
    """The temporaries of a sweep with ten kernels are some tiles for each, and grow by some rows of floats a point."""
    d, m, tiles = 2, 10, Tiled()

    def temporaries(n: int) -> int:
        points = jax.eval_shape(lambda: Points.of(jnp.zeros((n, d)), jnp.zeros((n, d))))
        sweep = jax.jit(lambda points: Swarm(points, tiles).drift_and_sums(Bank.dyadic(1.0), jnp.ones(m)))
        return sweep.lower(points).compile().memory_analysis().temp_size_in_bytes

    n = 20_000
    small, large = temporaries(n), temporaries(2 * n)
    assert small < 4 * n**2 / 4
    assert small < 4 * (32 * m * tiles.rows * tiles.cols + 16 * n * (d + m))
    assert large - small < 4 * 16 * n * (d + m)
