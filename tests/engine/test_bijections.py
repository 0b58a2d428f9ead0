"""Constrained parameters: laws over every bijection of the library, and trees of them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from polystein import CorrelationCholesky, Interval, Ordered, Positive, Simplex, Target, UnitInterval
from polystein.bijections import AbstractBijection, Real
from tests.laws.registry import over


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


# What each class maps onto: is every value inside, which entries are free, and the shapes of values that are tried.
INSIDE = {
    Real: lambda v: np.isfinite(v).all(),
    Positive: lambda v: (v > 0).all(),
    Interval: lambda v: ((v > 0) & (v < 1)).all(),
    UnitInterval: lambda v: ((v > 0) & (v < 1)).all(),
    Simplex: lambda v: (v > 0).all() and np.allclose(v.sum(-1), 1, rtol=1e-12),
    Ordered: lambda v: (np.diff(v, axis=-1) > 0).all(),
    CorrelationCholesky: lambda v: (
        np.allclose((v**2).sum(-1), 1, rtol=1e-12)
        and (np.diagonal(v, axis1=-2, axis2=-1) > 0).all()
        and (v == np.tril(v)).all()
    ),
}
ANY = [(), (3,), (2, 3)]
SHAPES = {
    Simplex: [(2,), (5,), (2, 4)],
    Ordered: [(1,), (5,), (2, 3)],
    CorrelationCholesky: [(2, 2), (4, 4), (2, 3, 3)],
}


def free_entries(cls: type, value: jax.Array) -> jax.Array:
    """As many entries of a value as there are numbers behind it, which determine the others."""
    if cls is Simplex:
        return value[..., :-1]
    if cls is CorrelationCholesky:
        rows, columns = np.tril_indices(value.shape[-1], -1)
        return value[..., rows, columns]
    return value


def cases(cls: type, rng: np.random.Generator) -> list[tuple[AbstractBijection, tuple[int, ...], jax.Array]]:
    """An instance, a shape of its values, and real numbers, of sizes up to a few."""
    bijection = cls()
    shapes = SHAPES.get(cls, ANY)
    return [(bijection, shape, jnp.asarray(2 * rng.normal(size=bijection.free_shape(shape)))) for shape in shapes]


@over(AbstractBijection)
def test_tables_here_know_the_class(cls: type):
    assert cls in INSIDE, f"say in INSIDE what set {cls.__name__} maps onto, and in SHAPES what it is tried on"


@over(AbstractBijection)
def test_forward_lands_in_the_set_in_the_shape_promised(cls: type, rng: np.random.Generator):
    for bijection, shape, u in cases(cls, rng):
        value, log_jacobian = bijection.forward(u)
        assert value.shape == shape
        assert value.dtype == log_jacobian.dtype == u.dtype
        assert log_jacobian.shape == ()
        assert INSIDE[cls](np.asarray(value))


@over(AbstractBijection)
def test_inverse_undoes_forward(cls: type, rng: np.random.Generator):
    for bijection, _, u in cases(cls, rng):
        np.testing.assert_allclose(bijection.inverse(bijection.forward(u)[0]), u, rtol=1e-8, atol=1e-8)


@over(AbstractBijection)
def test_log_jacobian_is_that_of_autodiff(cls: type, rng: np.random.Generator):
    for bijection, _, u in cases(cls, rng):
        jacobian = jax.jacfwd(lambda v, b=bijection: free_entries(cls, b.forward(v)[0]))(u).reshape(u.size, u.size)
        sign, expected = np.linalg.slogdet(jacobian)
        assert sign > 0
        np.testing.assert_allclose(bijection.forward(u)[1], expected, rtol=1e-8, atol=1e-10)


@over(AbstractBijection)
def test_rows_are_independent(cls: type, rng: np.random.Generator):
    """A leading axis is so many parameters of the kind, their log-Jacobians added."""
    bijection, shape = cls(), SHAPES.get(cls, ANY)[1]
    u = jnp.asarray(rng.normal(size=(3, *bijection.free_shape(shape))))
    value, total = bijection.forward(u)
    one_by_one = [bijection.forward(row) for row in u]
    np.testing.assert_allclose(value, np.stack([v for v, _ in one_by_one]), rtol=1e-12)
    np.testing.assert_allclose(total, sum(float(j) for _, j in one_by_one), rtol=1e-12)


@over(AbstractBijection)
def test_float32_far_out_is_finite(cls: type):
    """exp, log and atanh of large numbers: value, log-Jacobian and their gradients stay numbers where float32 has them."""
    bijection, shape = cls(), SHAPES.get(cls, ANY)[1]
    for size in (-30.0, 0.0, 30.0):
        u = jnp.full(bijection.free_shape(shape), size, jnp.float32)
        value, log_jacobian = bijection.forward(u)
        assert value.dtype == log_jacobian.dtype == jnp.float32
        assert np.isfinite(value).all()
        assert np.isfinite(log_jacobian)
        gradient = jax.grad(lambda v, b=bijection: b.forward(v)[1] + jnp.sum(b.forward(v)[0]))(u)
        assert np.isfinite(gradient).all()


@over(AbstractBijection)
def test_same_under_jit_and_vmap(cls: type, rng: np.random.Generator):
    bijection, shape = cls(), SHAPES.get(cls, ANY)[1]
    u = jnp.asarray(rng.normal(size=(2, *bijection.free_shape(shape))))
    values, jacobians = jax.jit(jax.vmap(bijection.forward))(u)
    for row, value, jacobian in zip(u, values, jacobians, strict=True):
        np.testing.assert_allclose(value, bijection.forward(row)[0], rtol=1e-12)
        np.testing.assert_allclose(jacobian, bijection.forward(row)[1], rtol=1e-12)


def test_intervals(rng: np.random.Generator):
    u = jnp.asarray(rng.normal(size=4) * 3)
    value, log_jacobian = Interval(-2.0, 5.0).forward(u)
    assert ((value > -2) & (value < 5)).all()
    slopes = jax.vmap(jax.grad(lambda v: Interval(-2.0, 5.0).forward(v)[0]))(u)
    np.testing.assert_allclose(log_jacobian, np.log(slopes).sum(), rtol=1e-12)
    np.testing.assert_allclose(Interval(-2.0, 5.0).inverse(value), u, rtol=1e-9)


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0), (0.0, np.inf), (np.nan, 1.0)])
def test_empty_and_unbounded_intervals_are_refused(low: float, high: float):
    with pytest.raises(ValueError, match=r"expected low < high.*;"):
        Interval(low, high)


@pytest.mark.usefixtures("unchecked")
def test_unit_interval_is_one_thing():
    with pytest.raises((TypeError, ValueError)):
        UnitInterval(2.0, 5.0)


def test_zero_is_the_middle():
    """Where a first guess is outside of the set, u = 0 stands in."""
    np.testing.assert_allclose(Simplex().forward(jnp.zeros(3))[0], 0.25)
    np.testing.assert_allclose(CorrelationCholesky().forward(jnp.zeros(3))[0], np.eye(3))
    np.testing.assert_allclose(UnitInterval().forward(jnp.zeros(()))[0], 0.5)


WRONG_SHAPES = [
    (Simplex(), ()),
    (Simplex(), (1,)),
    (Ordered(), ()),
    (CorrelationCholesky(), (3,)),
    (CorrelationCholesky(), (2, 3)),
    (CorrelationCholesky(), (1, 1)),
]


@pytest.mark.parametrize(("bijection", "shape"), WRONG_SHAPES, ids=str)
def test_values_of_impossible_shape_are_refused(bijection: AbstractBijection, shape: tuple[int, ...]):
    with pytest.raises(ValueError, match=r"expected.*; give like"):
        Target.of(lambda v: jnp.sum(v), jnp.zeros(shape), constrain=bijection)


# Trees ----------------------------------------------------------------------------------------------------------------

LIKE = {"a": np.zeros(2), "s": {"x": 1.0, "y": np.ones(2)}, "l": [np.full(3, 1 / 3), (0.5, np.arange(3.0))]}


def kinds(constrain: Any, like: Any = LIKE) -> list[str]:
    target = Target.of(lambda p: -sum(jnp.sum(leaf) for leaf in jax.tree.leaves(p)), like, constrain=constrain)
    return [type(b).__name__ for b in target.tree.bijections]


TREES = [
    (None, ["Real"] * 6),
    ({}, ["Real"] * 6),
    ({"s": Positive()}, ["Real", "Real", "Real", "Real", "Positive", "Positive"]),
    ({"s": {"y": Positive()}}, ["Real", "Real", "Real", "Real", "Real", "Positive"]),
    (
        {"l": [Simplex(), (Interval(0.0, 2.0), Ordered())], "a": None},
        ["Real", "Simplex", "Interval", "Ordered", "Real", "Real"],
    ),
    ({"l": [None, (None, Ordered())]}, ["Real", "Real", "Real", "Ordered", "Real", "Real"]),
]


@pytest.mark.parametrize(("constrain", "expected"), TREES, ids=range(len(TREES)))
def test_a_tree_of_bijections_names_what_it_names(constrain: Any, expected: list[str]):
    assert kinds(constrain) == expected


def test_one_bijection_for_all():
    assert kinds(Positive(), {"a": 1.0, "b": [jnp.ones(2)]}) == ["Positive", "Positive"]
    assert kinds(Positive(), 1.0) == ["Positive"]


MISTAKES = {
    "a class": ({"s": Positive}, TypeError),
    "a word": ({"s": "positive"}, TypeError),
    "a misspelt key": ({"sigma": Positive()}, ValueError),
    "a misspelt key within": ({"s": {"z": Positive()}}, ValueError),
    "a list too short": ({"l": [Simplex()]}, ValueError),
    "a list too long": ({"l": [None, (None, None, Ordered())]}, ValueError),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_in_a_tree_of_bijections_are_refused(name: str):
    constrain, kind = MISTAKES[name]
    with pytest.raises((kind, ValueError), match=r"constrain.*expected.*;"):
        kinds(constrain)


def test_density_and_start_of_a_constrained_target():
    """log p_u(u) = log p(b(u)) + log|det db/du|, u = b^-1(like), in jax.flatten_util's order."""
    constrain = {"s": Positive(), "l": [Simplex(), (UnitInterval(), Ordered())]}
    density = lambda p: -sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(p))
    target = Target.of(density, LIKE, constrain=constrain)
    value = target.constrained(target.start)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), value, jax.tree.map(jnp.asarray, LIKE))
    u = target.start + 0.3

    def determining(v: jax.Array) -> jax.Array:
        tree = target.constrained(v)
        tree["l"][0] = tree["l"][0][:-1]
        return ravel_pytree(tree)[0]

    expected = density(target.constrained(u)) + np.linalg.slogdet(jax.jacfwd(determining)(u))[1]
    np.testing.assert_allclose(target.log_density(u), expected, rtol=1e-12)
    np.testing.assert_allclose(target.score(u[None])[0], jax.grad(target.log_density)(u), rtol=1e-12)


@pytest.mark.parametrize(("bijection", "like"), [(Positive(), -1.0), (UnitInterval(), 1.0), (Simplex(), jnp.zeros(3))], ids=str)
def test_first_guess_outside_of_the_set(bijection: AbstractBijection, like: Any):
    target = Target.of(lambda v: -jnp.sum(v**2), like, constrain=bijection)
    np.testing.assert_array_equal(target.start, 0)


def test_exponential_by_its_logarithm(rng: np.random.Generator):
    """Without the log-Jacobian the score would be -v and no density: here it is 1 - v, of mean 0 under exact draws."""
    target = Target.of(lambda v: -v, 1.0, constrain=Positive())
    u = np.log(rng.exponential(size=4000))[:, None]
    score = np.asarray(target.score(jnp.asarray(u)))
    np.testing.assert_allclose(score, 1 - np.exp(u), rtol=1e-12)
    assert abs(score.mean()) < 4 / np.sqrt(4000)
