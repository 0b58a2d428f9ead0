"""Bandwidth rules and placements: each its published formula, in the units of r^2, and a number whatever the particles."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polystein.kernels import AbstractBandwidth, AbstractPlacement
from tests import oracles
from tests.laws.draws import grids
from tests.laws.registry import make, over

pytestmark = pytest.mark.usefixtures("float64")


@over(AbstractBandwidth)
@given(x=grids(6, 2) | grids(5, 2))
@settings(max_examples=15)
def test_rules_are_their_published_formulas(cls, x):
    """With a plain sort, over all particles; 1 where the formula gives 0."""
    expected = oracles.BANDWIDTHS[cls.__name__](x)
    np.testing.assert_allclose(make(cls)(jnp.asarray(x)), np.where(expected > 0, expected, 1), rtol=1e-12)


@over(AbstractBandwidth)
@given(x=grids(6, 2), order=st.permutations(range(6)))
@settings(max_examples=5)
def test_rules_do_not_depend_on_the_order_and_scale_as_squares(cls, x, order):
    x = x + np.arange(6)[:, None]
    rule = make(cls)
    h = rule(jnp.asarray(x))
    np.testing.assert_allclose(rule(jnp.asarray(x[order] + 7)), h, rtol=1e-12)
    np.testing.assert_allclose(rule(jnp.asarray(4 * x)), 16 * h, rtol=1e-12)


@over(AbstractPlacement)
def test_placed_banks_follow_the_scale_of_the_particles(cls, rng):
    """k(c x, c y) under the bank placed on c x is k(x, y) under the one placed on x; its length is as announced."""
    x = rng.standard_normal((7, 2))
    placement = make(cls)
    one, other = placement.at(jnp.asarray(x)), placement.at(jnp.asarray(8 * x))
    assert len(one) == len(other) == len(placement)
    gram = lambda bank, x: np.stack([kernel.gram(x, x) for kernel in bank])
    np.testing.assert_allclose(gram(other, jnp.asarray(8 * x)), gram(one, jnp.asarray(x)), rtol=1e-9, atol=1e-12)
    h = [kernel.h for kernel in one]
    assert (np.diff(h) > 0).all()


@over(AbstractBandwidth)
@pytest.mark.parametrize("x", [np.ones((1, 2)), np.ones((4, 2))], ids=["one", "coincident"])
def test_rules_know_what_to_do_without_distances(cls, x):
    np.testing.assert_array_equal(make(cls)(jnp.asarray(x)), 1)


@over(AbstractPlacement)
@pytest.mark.parametrize("x", [np.ones((1, 2)), np.ones((4, 2))], ids=["one", "coincident"])
def test_placements_know_what_to_do_without_distances(cls, x):
    bank = make(cls).at(jnp.asarray(x))
    assert len(bank) == len(make(cls))
    assert all(np.isfinite(kernel.h) and kernel.h > 0 for kernel in bank)
