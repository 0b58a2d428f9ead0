"""Geometries: laws over every affine change of variables, and runs that do not notice which one they are in."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from polystein import MKSVGD, SVGD, Ensemble, Target, run
from polystein.geometry import AbstractGeometry, Diagonal, LowRank, Triangular, whitened
from tests.engine.common import SGD, SVGD_RBF, normalised
from tests.laws.registry import over

D = 4


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def example(cls: type, rng: np.random.Generator, d: int = D) -> AbstractGeometry:
    """One with nothing special about it."""
    centre, scale = jnp.asarray(rng.normal(size=d)), jnp.asarray(rng.uniform(0.3, 3.0, d))
    if cls is Diagonal:
        return Diagonal(centre, scale)
    if cls is Triangular:
        return Triangular(centre, jnp.asarray(np.tril(rng.normal(size=(d, d)), -1) + np.diag(scale)))
    if cls is LowRank:
        directions = np.linalg.qr(rng.normal(size=(d, 2)))[0]
        return LowRank(centre, scale, jnp.asarray(directions), jnp.asarray(rng.uniform(0.2, 5.0, 2)))
    raise AssertionError(f"say here how a {cls.__name__} is made")


def matrix(geometry: AbstractGeometry) -> np.ndarray:
    """L, column by column."""
    return np.asarray(geometry.stretch(jnp.eye(geometry.centre.shape[0]))).T


@over(AbstractGeometry)
def test_out_and_into_undo_each_other(cls: type, rng: np.random.Generator):
    geometry, z = example(cls, rng), jnp.asarray(rng.normal(size=(6, D)))
    np.testing.assert_allclose(geometry.into(geometry.out(z)), z, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(geometry.out(geometry.into(z)), z, rtol=1e-10, atol=1e-10)


@over(AbstractGeometry)
def test_all_four_are_one_matrix(cls: type, rng: np.random.Generator):
    geometry, z = example(cls, rng), rng.normal(size=(6, D))
    L = matrix(geometry)
    assert np.linalg.matrix_rank(L) == D
    np.testing.assert_allclose(geometry.out(jnp.asarray(z)), np.asarray(geometry.centre) + z @ L.T, rtol=1e-10)
    np.testing.assert_allclose(geometry.shrink(jnp.asarray(z)), np.linalg.solve(L, z.T).T, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(geometry.pull(jnp.asarray(z)), z @ L, rtol=1e-8, atol=1e-10)


@over(AbstractGeometry)
def test_float32_stays(cls: type, rng: np.random.Generator):
    geometry = jax.tree.map(lambda a: a.astype(jnp.float32), example(cls, rng))
    z = jnp.ones((2, D), jnp.float32)
    assert {a.dtype for a in (geometry.out(z), geometry.into(z), geometry.pull(z))} == {jnp.dtype("float32")}


def quartic(x: jax.Array) -> jax.Array:
    return -0.5 * jnp.sum((x - 1.0) ** 2) - 0.05 * jnp.sum(x**4) - 0.3 * x[0] * x[1]


@over(AbstractGeometry)
def test_whitened_score_is_the_gradient_in_z(cls: type, rng: np.random.Generator):
    geometry, z = example(cls, rng), jnp.asarray(rng.normal(size=(3, D)))
    target = Target.of(quartic, jnp.zeros(D))
    inner = whitened(target, geometry)
    by_hand = jax.vmap(jax.grad(lambda v: quartic(geometry.out(v[None])[0])))(z)
    np.testing.assert_allclose(inner.score(z), by_hand, rtol=1e-9)
    np.testing.assert_allclose(geometry.out(inner.start[None])[0], geometry.centre, atol=1e-10)
    np.testing.assert_allclose(inner.log_density(z[0]), quartic(geometry.out(z)[0]), rtol=1e-10)


def test_whitened_halves_are_pulled_too(rng: np.random.Generator, key: jax.Array):
    geometry = example(Triangular, rng, 1)
    target = Target.minibatched(
        lambda m: 0.0, lambda m, y: -0.5 * (y - m[0]) ** 2, jnp.arange(8.0), jnp.zeros(1), batch=4, halves=True
    )
    z = jnp.asarray(rng.normal(size=(3, 1)))
    inner, outer = whitened(target, geometry).points(z, key, 1), target.points(geometry.out(z), key, 1)
    for name in ("s", "left", "right"):
        np.testing.assert_allclose(getattr(inner, name), geometry.pull(getattr(outer, name)), rtol=1e-10)


METHODS = {"SVGD": SVGD_RBF, "median": SVGD(), "MKSVGD": MKSVGD()}


@over(AbstractGeometry)
def test_a_run_in_a_geometry_is_a_run_of_the_density_in_z(cls: type, rng: np.random.Generator, key: jax.Array):
    geometry, x = example(cls, rng), jnp.asarray(rng.normal(size=(8, D)))
    target = Target.of(quartic, jnp.zeros(D))
    in_z = Target.of(lambda z: quartic(geometry.out(z[None])[0]), jnp.zeros(D))
    how: Any = {"steps": 5, "key": key, "optim": SGD}
    post = run(SVGD_RBF, target, particles=x, geometry=geometry, **how)
    expected = run(SVGD_RBF, in_z, particles=geometry.into(x), **how)
    np.testing.assert_allclose(post.particles, geometry.out(expected.particles), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(post.scores, target.score(post.particles), rtol=1e-8)  # in the user's coordinates
    np.testing.assert_allclose(post.draws(), post.particles)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("optim", [optax.sgd(0.01), normalised()], ids=["sgd", "norm-wise"])
def test_affine_equivariance(optim: optax.GradientTransformation, name: str, rng: np.random.Generator, key: jax.Array):
    """Parameters mapped by any affine map, the start and the metric along with them: the same particles, mapped."""
    geometry, x = example(Triangular, rng), jnp.asarray(rng.normal(size=(8, D)))
    A = np.tril(rng.normal(size=(D, D)), -1) + np.diag(rng.uniform(1e-3, 1e3, D))  # keeps the factor lower triangular
    b = rng.normal(size=D) * 10
    map_out = lambda u: u @ jnp.asarray(A).T + jnp.asarray(b)[None]
    back = lambda v: jnp.linalg.solve(jnp.asarray(A), v - jnp.asarray(b))
    mapped = Triangular(map_out(geometry.centre[None])[0], jnp.asarray(A) @ geometry.factor)
    how: Any = {"steps": 20, "key": key, "optim": optim}
    post = run(METHODS[name], Target.of(quartic, jnp.zeros(D)), particles=x, geometry=geometry, **how)
    other = run(
        METHODS[name], Target.of(lambda v: quartic(back(v)), jnp.zeros(D)), particles=map_out(x), geometry=mapped, **how
    )
    found, expected = mapped.into(other.particles), geometry.into(post.particles)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_drawn_particles_are_normal_in_the_geometry(key: jax.Array):
    geometry = Triangular(jnp.array([5.0, -5.0]), jnp.array([[3.0, 0.0], [2.0, 0.5]]))
    n = 2000
    target = Target.of(lambda x: -jnp.sum(x**2), jnp.zeros(2))
    post = run(Ensemble(), target, particles=n, steps=0, key=key, geometry=geometry)
    z = np.asarray(geometry.into(post.particles))
    assert np.abs(z.mean(0)).max() < 4 / np.sqrt(n)
    assert np.abs(np.cov(z.T) - np.eye(2)).max() < 4 * np.sqrt(2 / n)


def test_callbacks_see_the_users_coordinates(rng: np.random.Generator, key: jax.Array):
    geometry, seen = example(Diagonal, rng), []
    target = Target.of(quartic, jnp.zeros(D))
    post = run(
        Ensemble(),
        target,
        particles=5,
        steps=4,
        chunk=4,
        key=key,
        optim=SGD,
        geometry=geometry,
        callbacks=[lambda p: seen.append(p.particles)],
    )
    np.testing.assert_array_equal(seen[0], post.particles)
