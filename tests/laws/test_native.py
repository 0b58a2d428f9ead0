"""The compiled sweep is the same sum: against tiles and one block in double precision, and in its derivatives."""

import importlib.util
from types import SimpleNamespace

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jax.extend import backend

from polystein import IMQ, RBF, Bank, Dense, Points, Tiled
from polystein.kernels import Octaves
from polystein.methods import Swarm
from polystein.pairs import AbstractPairs, Compiled
from tests.laws.draws import seeds
from tests.laws.registry import jit

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("polystein_native") is None, reason="polystein-native is not installed: make native"
)
W = jnp.linspace(0.2, 1.0, 4)
LADDERS = {"octaves": Bank(Octaves(4.0, 4)), "any": Bank(RBF(0.3), RBF(1.0), RBF(5.0), RBF(90.0))}
BALANCE = jnp.asarray(0.3)


@jit
def everything(pairs: AbstractPairs, bank: Bank, points: Points, scale):
    """The three sweeps there are; bandwidths in units of ``scale``."""
    wider = jax.tree.map(lambda h: h * scale, bank)
    swarm = Swarm(points, pairs)
    return swarm.drift_and_sums(wider, W, BALANCE.astype(points.x.dtype)), swarm.drift(RBF(scale)), swarm.sums(wider)


def cloud(n: int, d: int, seed: int, place: str = "spread", dtype: type = np.float64) -> Points:
    """Points of several kinds with their two estimates of scores, a fifth of them dead where there are many."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    if place == "coincident":
        x = x[rng.integers(0, n // 2 + 1, n)] + 100
    if place == "clusters":
        x += np.where(rng.random((n, 1)) < 0.5, 1e3, -1e3)
    s = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-2, 3)
    live = rng.random(n) < 0.8 if n > 4 else np.ones(n, bool)
    left, right = s + 0.1, s - 0.1
    as_array = lambda a: jnp.asarray(a, dtype)
    return Points.of(as_array(x), as_array(s), halves=(as_array(left), as_array(right)), live=jnp.asarray(live))


def close(found, expected, share: float) -> None:
    """Equal up to a share of the largest entry of each array."""

    def leaf(a, b):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=0, atol=share * (np.abs(np.nan_to_num(b)).max() + 1e-30))

    jax.tree.map(leaf, found, expected)


SHAPES = [(shape, "octaves") for shape in [(1, 1), (7, 1), (33, 3), (50, 9), (131, 20), (70, 600)]]
SHAPES += [((40, 8), "any"), ((51, 20), "any")]


@pytest.mark.parametrize(("shape", "ladder"), SHAPES)
def test_compiled_is_tiled_is_dense(shape, ladder):
    """Odd numbers of points, few and many dimensions, more than one block; dead points, two estimates of scores."""

    @example(seed=0, place="coincident")
    @example(seed=1, place="clusters")
    @given(seed=seeds, place=st.sampled_from(["spread", "coincident", "clusters"]))
    @settings(max_examples=3)
    def law(seed, place):
        n, d = shape
        points, scale = cloud(n, d, seed, place), jnp.asarray(2.0 * d)
        found = everything(Compiled(), LADDERS[ladder], points, scale)
        close(found, everything(Dense(), LADDERS[ladder], points, scale), 1e-10)
        if shape == (33, 3):
            close(found, everything(Tiled(8, 16), LADDERS[ladder], points, scale), 1e-10)

    with jax.enable_x64(True):
        law()


@pytest.mark.parametrize("place", ["spread", "coincident", "clusters"])
@pytest.mark.parametrize("d", [3, 20])
def test_single_precision_is_close_to_double(d, place):
    """As the laws on pairs ask of the JAX path."""
    with jax.enable_x64(True):
        scale = jnp.asarray(2.0 * d)
        single = cloud(50, d, 3, place, np.float32)
        double = jax.tree.map(lambda a: a.astype(np.float64) if a.dtype == np.float32 else a, single)
        found = everything(Compiled(), LADDERS["octaves"], single, scale.astype(np.float32))
        assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(found))
        close(found, everything(Dense(), LADDERS["octaves"], double, scale), 2e-5)


def test_a_wild_score_spoils_no_other_pair():
    """A particle whose score is 1e10 times the others' leaves the discrepancies among the others their digits."""
    points = cloud(40, 20, 0, dtype=np.float32)
    wild = jnp.where(jnp.arange(40)[:, None] == 7, 1e10, 1) * points.s
    dead = jnp.arange(40) != 7
    of = lambda s: Points(points.x, s, points.id, live=dead)
    found, expected = (Swarm(p, Compiled()).sums(Bank.dyadic(40.0, 0, 1)) for p in (of(wild), of(points.s)))
    close(found.others, expected.others, 1e-5)


def test_what_is_not_finite_stays_so():
    points = cloud(20, 9, 0, dtype=np.float32)
    broken = Points.of(points.x.at[3, 0].set(jnp.nan), points.s)
    sums = Swarm(broken, Compiled()).sums(Bank.dyadic(1.0, 0, 1))
    assert np.isnan(sums.others).all()


def test_derivatives_and_batches():
    """Gradients in bandwidths, weights and particles, forwards and backwards, and a batch of swarms."""
    points = cloud(20, 9, 0, dtype=np.float32)

    def value(pairs, h, w, x):
        swarm = Swarm(Points.of(x, points.s), pairs)
        phi, sums = swarm.drift_and_sums(Bank.dyadic(h, 0, 3), w)
        return jnp.sum(phi**2) + jnp.sum(sums.u)

    arguments = (jnp.asarray(9.0), W, points.x)
    gradients = [jit(jax.grad(value, (1, 2, 3)))(pairs, *arguments) for pairs in (Compiled(), Dense())]
    close(*gradients, 1e-4)
    push = jit(lambda pairs: jax.jvp(lambda *a: value(pairs, *a), arguments, jax.tree.map(jnp.ones_like, arguments)))
    close(push(Compiled()), push(Dense()), 1e-4)
    batch = jnp.stack([points.x, 2 * points.x])
    batched = jax.jit(jax.vmap(lambda x: Swarm(Points.of(x, points.s), Compiled()).drift(RBF(9.0))))(batch)
    close(batched, jnp.stack([Swarm(Points.of(x, points.s), Dense()).drift(RBF(9.0)) for x in batch]), 1e-5)


def test_it_is_called_for_gaussians_alone_and_compiled_once():
    """The program of a ladder holds the foreign call and no exponential of a tile; other kernels keep to XLA."""
    points = cloud(20, 9, 0, dtype=np.float32)
    text = lambda bank: jax.jit(lambda p: Swarm(p, Compiled()).sums(bank)).lower(points).as_text()
    assert "polystein_sweep_f32" in text(Bank.dyadic(1.0))
    assert "polystein_sweep" not in text(Bank(IMQ()))
    step = jax.jit(lambda points: Swarm(points, Compiled()).drift(RBF(1.0)))
    step(points)
    step(jax.tree.map(lambda a: a[::-1], points))
    assert step._cache_size() == 1


def test_accelerators_keep_to_xla(monkeypatch):
    """Where there are other devices than CPUs, the program for each is chosen when it is lowered."""
    monkeypatch.setattr(backend, "backends", lambda: {"cuda": SimpleNamespace(platform="cuda")})
    points = cloud(20, 9, 0, dtype=np.float32)
    drift = jax.jit(lambda p: Swarm(p, Compiled()).drift(RBF(9.0)))
    with jax.enable_x64(False):
        texts = [jax.export.export(drift, platforms=[name])(points).mlir_module() for name in ("cuda", "tpu")]
        assert not any("polystein_sweep" in text for text in texts)
        assert "polystein_sweep_f32" in drift.lower(points).as_text()
    close(drift(points), Swarm(points, Dense()).drift(RBF(9.0)), 1e-5)
