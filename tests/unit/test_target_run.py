"""Targets of any tree, and runs: what goes in comes back in the user's own form, and the moments are right."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from polystein import (
    IMQ,
    MKSVGD,
    RBF,
    SVGD,
    Bank,
    Linear,
    Target,
    Tiled,
    run,
)
from polystein.kernels import PyroPerDimension

TREE = {"a": 1.5, "b": [jnp.arange(3.0), (jnp.ones((2, 2)), 0.5)]}


def tree_density(p: Any) -> jax.Array:
    """Not Gaussian in any leaf, each leaf by another function."""
    inner, last = p["b"][1]
    return -(p["a"] ** 4) - jnp.sum(jnp.cosh(p["b"][0])) - jnp.sum(inner**2 * last**2) - last**2


def quadratic(mean: jax.Array, covariance: jax.Array) -> Target:
    """A Gaussian."""
    precision = jnp.linalg.inv(covariance)
    return Target.of(lambda x: -0.5 * (x - mean) @ precision @ (x - mean), jnp.zeros(mean.shape))


def structure(tree: Any) -> tuple[Any, list[tuple[int, ...]]]:
    return jax.tree.structure(tree), [jnp.shape(leaf) for leaf in jax.tree.leaves(tree)]


# Targets --------------------------------------------------------------------------------------------------------------


def test_nested_tree_there_and_back():
    target = Target.of(tree_density, TREE)
    assert target.dim == 1 + 3 + 4 + 1
    back = target.constrained(target.start)
    assert structure(back) == structure(TREE)
    jax.tree.map(np.testing.assert_array_equal, back, jax.tree.map(jnp.asarray, TREE))


def test_log_density_of_a_flat_vector_is_that_of_the_tree():
    target = Target.of(tree_density, TREE)
    np.testing.assert_allclose(target.log_density(target.start), tree_density(TREE), rtol=1e-6)


def test_score_is_the_gradient_leaf_by_leaf(rng: np.random.Generator):
    target = Target.of(tree_density, TREE)
    x = jnp.asarray(rng.normal(size=(4, target.dim)), jnp.float32)
    for row, score in zip(x, target.score(x), strict=True):
        by_leaf = jax.grad(tree_density)(target.constrained(row))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), target.constrained(score), by_leaf)


def test_scalar():
    target = Target.of(lambda x: -0.5 * (x - 3) ** 2, 0.0)
    assert target.dim == 1
    np.testing.assert_allclose(target.score(jnp.array([[1.0], [5.0]])), [[2.0], [-2.0]])
    assert run(SVGD(), target, particles=3, steps=1, key=jax.random.key(0)).draws().shape == (3,)


def test_shape_without_values_starts_at_zero():
    like = {"a": jax.ShapeDtypeStruct((2, 3), jnp.float32), "b": jax.ShapeDtypeStruct((), jnp.float32)}
    target = Target.of(lambda p: -jnp.sum(p["a"] ** 2) - p["b"] ** 2, like)
    np.testing.assert_array_equal(target.start, np.zeros(7))
    assert structure(target.constrained(target.start)) == structure({"a": np.zeros((2, 3)), "b": 0.0})


@pytest.mark.parametrize("like", [0.0, np.zeros(2), jax.ShapeDtypeStruct((2,), np.float64)], ids=["scalar", "numpy", "shape"])
def test_float64_where_it_is_on(like: Any):
    with jax.enable_x64(True):
        target = Target.of(lambda x: -jnp.sum(x**2), like)
        assert target.start.dtype == target.score(jnp.ones((3, target.dim))).dtype == jnp.float64


def test_run_in_float64():
    with jax.enable_x64(True):
        target = Target.of(lambda x: -jnp.sum(x**2), 0.0)
        assert run(SVGD(), target, particles=4, steps=1, key=jax.random.key(0)).particles.dtype == jnp.float64


def test_float32_particles_stay_float32_under_x64():
    with jax.enable_x64(True):
        target = Target.of(lambda x: -jnp.sum(x**2), jnp.zeros(2, jnp.float32))
        post = run(SVGD(), target, particles=4, steps=1, key=jax.random.key(0))
        assert post.particles.dtype == jnp.float32


def test_density_that_is_flat_or_ignores_a_leaf():
    flat = Target.of(lambda x: 0.0, jnp.zeros(2))
    np.testing.assert_array_equal(flat.score(jnp.ones((3, 2))), 0)
    partial = Target.of(lambda p: -(p["a"] ** 2), {"a": 0.0, "b": jnp.zeros(2)})
    np.testing.assert_array_equal(partial.score(jnp.ones((1, 3))), [[-2.0, 0.0, 0.0]])


# Runs -----------------------------------------------------------------------------------------------------------------


def test_zero_steps_give_the_start_back(rng: np.random.Generator, key: jax.Array):
    x = jnp.asarray(rng.normal(size=(5, 2)), jnp.float32)
    target = quadratic(jnp.zeros(2), jnp.eye(2))
    post = run(MKSVGD(), target, particles=x, steps=0, key=key)
    np.testing.assert_array_equal(post.particles, x)
    assert all(leaf.shape[0] == 0 for leaf in jax.tree.leaves(post.trace))


def test_particles_given_are_not_changed_and_do_not_depend_on_the_key(rng: np.random.Generator):
    x = jnp.asarray(rng.normal(size=(5, 2)), jnp.float32)
    before, target = np.array(x), quadratic(jnp.ones(2), jnp.eye(2))
    first, second = (run(SVGD(), target, particles=x, steps=3, key=jax.random.key(k)).particles for k in (0, 1))
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(first, second)


def test_particles_drawn_depend_on_the_key_alone():
    target = Target.of(lambda x: -jnp.sum(x**2), jnp.array([100.0, -100.0]))
    a, b, c = (run(SVGD(), target, particles=200, steps=0, key=jax.random.key(k)).particles for k in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert not np.any(a == c)
    assert np.all(np.abs(np.mean(a, 0) - np.array([100.0, -100.0])) < 4 / np.sqrt(200))  # about like, not about zero
    assert np.all(np.abs(np.std(a, 0) - 1) < 4 / np.sqrt(400))


def test_one_step_is_the_formula(rng: np.random.Generator, key: jax.Array):
    """x + eps phi*(x), phi* in loops."""
    x, h, step = rng.normal(size=(5, 2)), 0.7, 0.3
    score = -(x - 1.0)
    phi = np.zeros_like(x)
    for i in range(5):
        for j in range(5):
            k = np.exp(-np.sum((x[j] - x[i]) ** 2) / h)
            phi[i] += (k * score[j] - 2 / h * (x[j] - x[i]) * k) / 5
    target = quadratic(jnp.ones(2), jnp.eye(2))
    post = run(SVGD(RBF(h)), target, particles=jnp.asarray(x, jnp.float32), steps=1, key=key, optim=optax.sgd(step))
    np.testing.assert_allclose(post.particles, x + step * phi, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", [SVGD(), MKSVGD(Bank.dyadic(1.0, 0, 1))], ids=["SVGD", "MKSVGD"])
def test_one_particle_climbs_to_the_mode(method: Any, key: jax.Array):
    mode = jnp.array([1.0, -2.0])
    post = run(method, quadratic(mode, jnp.eye(2)), particles=1, steps=300, key=key, optim=optax.sgd(0.1))
    np.testing.assert_allclose(post.particles, mode[None], atol=1e-4)


def test_draws_are_the_users_tree(key: jax.Array):
    target = Target.of(tree_density, TREE)
    post = run(SVGD(), target, particles=6, steps=2, key=key)
    draws = post.draws()
    assert structure(draws) == structure(jax.tree.map(lambda a: np.zeros((6, *np.shape(a))), TREE))
    for i in (0, 5):
        one = jax.tree.map(lambda a, i=i: a[i], draws)
        jax.tree.map(np.testing.assert_array_equal, one, target.constrained(post.particles[i]))


def test_weights_first_or_particles_first(rng: np.random.Generator, key: jax.Array):
    """The weights recorded at a step lag by one where particles move first (erratum 10)."""
    x, target = jnp.asarray(rng.normal(size=(6, 2)), jnp.float32), quadratic(jnp.ones(2), jnp.eye(2))
    still = optax.sgd(0.0)
    lagged, fresh = (
        run(MKSVGD.paper(low=-4, high=-3, lagged=lagged), target, particles=x, steps=3, key=key, optim=still).trace["weights"]
        for lagged in (True, False)
    )
    assert lagged.shape == fresh.shape == (3, 2)
    np.testing.assert_allclose(lagged[0], 2**-0.5, rtol=1e-6)  # the first step moves by even weights (erratum 9)
    np.testing.assert_allclose(lagged[1:], fresh[:-1], rtol=1e-6)
    assert np.max(np.abs(lagged[0] - fresh[0])) > 0.01


def test_how_pairs_are_summed_does_not_matter(rng: np.random.Generator, key: jax.Array):
    x, target = jnp.asarray(rng.normal(size=(11, 2)), jnp.float32), quadratic(jnp.ones(2), jnp.eye(2))
    ragged, default = (
        run(SVGD(IMQ()), target, particles=x, steps=5, key=key, pairs=p, optim=optax.sgd(0.1)).particles
        for p in (Tiled(4, 5), None)
    )
    np.testing.assert_allclose(ragged, default, rtol=1e-5, atol=1e-6)


def test_bandwidth_per_dimension(rng: np.random.Generator, key: jax.Array):
    """prod_d exp(-r_d^2 / h_d), in loops; n = d, where a bandwidth laid along the wrong axis would go unnoticed."""
    x = rng.normal(size=(3, 3)).astype(np.float32) * np.array([0.1, 1.0, 10.0], np.float32)
    h = np.asarray(PyroPerDimension()(jnp.asarray(x)), float)
    phi = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            k = np.exp(-np.sum((x[j] - x[i]) ** 2 / h))
            phi[i] += (k * -x[j] - 2 / h * (x[j] - x[i]) * k) / 3
    target = quadratic(jnp.zeros(3), jnp.eye(3))
    post = run(SVGD(PyroPerDimension()), target, particles=jnp.asarray(x), steps=1, key=key, optim=optax.sgd(1.0))
    np.testing.assert_allclose(post.particles, x + phi, rtol=1e-5, atol=1e-5)


MEAN, COVARIANCE = np.array([1.0, -0.5], np.float32), np.array([[1.0, 0.6], [0.6, 1.5]], np.float32)


def test_linear_kernel_gives_gaussian_moments_exactly(key: jax.Array):
    """At a fixed point E s = 0 and E s x^T = -I, whatever n > d is."""
    post = run(
        SVGD(Linear(centre=[3.0, 1.0], length=2.0)),
        quadratic(jnp.asarray(MEAN), jnp.asarray(COVARIANCE)),
        particles=8,
        steps=2000,
        key=key,
        optim=optax.sgd(0.1),
    )
    np.testing.assert_allclose(np.mean(post.particles, 0), MEAN, atol=1e-4)
    np.testing.assert_allclose(np.cov(post.particles.T, bias=True), COVARIANCE, atol=1e-3)


METHODS = {
    "RBF": SVGD(RBF(2.0)),
    "a sum": SVGD(RBF(2.0) + 0.1 * Linear()),
    "mixed bank": MKSVGD(Bank(RBF(1.0), IMQ(4.0), RBF(4.0))),
    "default": MKSVGD(),
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_gaussian_moments(method: Any, key: jax.Array):
    """Within the error of as many independent draws: 3 s.d. of a mean and of a variance of n of them."""
    n = 64
    target = quadratic(jnp.asarray(MEAN), jnp.asarray(COVARIANCE))
    post = run(method, target, particles=n, steps=800, key=key, optim=optax.adam(optax.cosine_decay_schedule(0.05, 800)))
    deviation = np.sqrt(np.diag(COVARIANCE))
    assert np.all(np.abs(np.mean(post.particles, 0) - MEAN) < 3 * deviation / np.sqrt(n))
    found = np.cov(post.particles.T, bias=True)
    spread = np.sqrt((np.outer(deviation**2, deviation**2) + COVARIANCE**2) / n)
    assert np.all(np.abs(found - COVARIANCE) < 3 * spread)
