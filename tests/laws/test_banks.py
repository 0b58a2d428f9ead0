"""A bank is the list of its kernels, whatever families it keeps them in; a mixture is their weighted sum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from polystein import IMQ, RBF, Bank, Linear, Matern32, Mixture, Points, Polynomial, Product
from polystein.kernels import AbstractFamily, Alike, Octaves
from polystein.stein import Tile
from tests.laws.draws import cloud, seeds
from tests.laws.registry import concrete, jit, over

MIXED = (RBF(0.5), RBF(2.0), Linear(), Product(), RBF(8.0), Octaves(4.0, 3), Matern32(), Matern32(2.0), Polynomial(), IMQ())
NAIVE = (*MIXED[:5], RBF(1.0), RBF(2.0), RBF(4.0), *MIXED[6:])


@jit
def together(bank: Bank, points: Points, w):
    tile = Tile.of(points, points)
    mixture = bank.mix(w)
    jet = jax.vmap(mixture.jet)(points.x, points.x[::-1])
    drifts = [family.drifts(tile) for family in bank.families]
    value = jax.vmap(mixture)(points.x, points.x[::-1])
    return bank.stein(tile), mixture.stein(tile), mixture.drift(tile), tuple(jet), value, bank.diagonal(points), drifts


@jit
def one_by_one(kernels, points: Points, w):
    tile = Tile.of(points, points)
    stein = jnp.stack([kernel.stein(tile) for kernel in kernels])
    drift = jnp.stack([kernel.drift(tile) for kernel in kernels])
    jets = [jax.vmap(kernel.jet)(points.x, points.x[::-1]) for kernel in kernels]
    jet = tuple(sum(wi * a for wi, a in zip(w, parts, strict=True)) for parts in zip(*jets, strict=True))
    value = sum(wi * jax.vmap(kernel)(points.x, points.x[::-1]) for wi, kernel in zip(w, kernels, strict=True))
    weighted = lambda a: jnp.tensordot(w, a, 1)
    return stein, weighted(stein), weighted(drift), jet, value, jnp.diagonal(stein, axis1=1, axis2=2), drift


@pytest.mark.usefixtures("float64")
@given(points=cloud(5, 2), seed=seeds)
@settings(max_examples=8)
def test_a_mixed_bank_is_the_list_of_its_kernels(points, seed):
    """Order, Stein kernels, drifts, jets, values and diagonal; u^w = sum w_i u^i and drift^w = sum w_i drift^i."""
    w = jnp.asarray(np.random.default_rng(seed).uniform(0, 1, len(NAIVE)))
    *found, drifts = together(Bank(*MIXED), points, w)
    *expected, drift = one_by_one(NAIVE, points, w)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * (1 + np.abs(b).max())), found, expected)
    np.testing.assert_allclose(np.concatenate(drifts), drift, rtol=1e-10, atol=1e-10 * (1 + np.abs(drift).max()))


def test_indexing_and_iteration_keep_the_order():
    bank = Bank(*MIXED)
    assert len(bank) == len(NAIVE)
    for i, (kernel, expected) in enumerate(zip(bank, NAIVE, strict=True)):
        for found in (kernel, bank[i], bank[i - len(bank)]):
            assert type(found) is type(expected)
            jax.tree.map(np.testing.assert_array_equal, jax.tree.leaves(found), jax.tree.leaves(expected))
    for outside in (len(bank), -len(bank) - 1):
        with pytest.raises(IndexError):
            bank[outside]


@pytest.mark.usefixtures("float64")
@given(points=cloud(5, 2))
@settings(max_examples=4)
def test_a_bank_of_one_is_its_kernel(points):
    stein, mixed, drift, *_ = together(Bank(IMQ()), points, jnp.ones(1))
    expected, _, expected_drift, *_ = one_by_one((IMQ(),), points, jnp.ones(1))
    np.testing.assert_allclose(stein, expected, rtol=1e-12)
    np.testing.assert_allclose(mixed, expected[0], rtol=1e-12)
    np.testing.assert_allclose(drift, expected_drift, rtol=1e-12, atol=1e-12)


LADDERS = {Alike: lambda: Alike.of(*(RBF(2.0**i) for i in range(-9, 1))), Octaves: lambda: Octaves(1.0, 10)}


def test_every_family_has_a_ladder():
    assert set(LADDERS) == set(concrete(AbstractFamily))


@over(AbstractFamily)
def test_ladders_in_float32(cls):
    """k, h phi' and h^2 r^2 phi'' / r^2 of ten octaves, within 1e-6 of float64 absolutely, for r^2/h from 1e-12 to 1e3.

    Absolutely: where k has fallen to 1e-6 its digits no longer matter, and squaring loses them.
    """
    r2 = np.logspace(-12, 3, 2000).astype(np.float32)
    family = LADDERS[cls]()
    h = np.array([kernel.h for kernel in Bank(family)], np.float64)[:, None]
    np.testing.assert_array_equal(h[:, 0], 2.0 ** np.arange(-9, 1))
    k = np.exp(-r2.astype(np.float64) / h)
    found = jax.jit(lambda r2: family.profiles(r2))(jnp.asarray(r2))
    assert all(part.dtype == jnp.float32 for part in found)
    assert np.abs(found.value - k).max() < 1e-6
    assert np.abs(found.first * h + k).max() < 1e-6
    assert np.abs(found.second * h - r2 / h * k).max() < 1e-6
    at_zero = family.profiles(jnp.zeros(1))
    np.testing.assert_array_equal(at_zero.value, np.ones((10, 1)))
    np.testing.assert_array_equal(at_zero.first * h, -np.ones((10, 1)))
    np.testing.assert_array_equal(at_zero.second, np.zeros((10, 1)))


def test_weights_of_a_mixture_are_differentiable(rng):
    """d u^w / d w_i = u^i: what a rule that climbs in w needs."""
    x = jnp.asarray(rng.standard_normal((3, 2)), jnp.float32)
    tile, bank = Tile.of(Points.of(x, -x), Points.of(x, -x)), Bank.dyadic(1.0, 0, 2)
    jacobian = jax.jacobian(lambda w: Mixture(bank, w).stein(tile))(jnp.ones(3))
    np.testing.assert_allclose(jnp.moveaxis(jacobian, 2, 0), bank.stein(tile), rtol=1e-5, atol=1e-5)
