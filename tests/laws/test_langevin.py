"""Particle Langevin: SVGD without noise, and the variance that one particle's recursion has exactly."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax

from polystein import SVGD, Dense, Langevin, Points, Target, run
from polystein.methods import Swarm
from tests.laws.registry import jit

VELOCITY = jit(lambda method, swarm, key: method.velocity(swarm, None, key)[0])


def test_without_temperature_it_is_svgd(rng):
    x = jnp.asarray(rng.normal(size=(4, 2)))
    swarm = Swarm(Points.of(x, -x), Dense())
    key = jax.random.key(0)
    found = VELOCITY(Langevin(temperature=0.0), swarm, key)
    np.testing.assert_array_equal(found, VELOCITY(SVGD(), swarm, key))


def test_one_particles_variance_is_that_of_its_recursion():
    """x <- (1 - eps (1 + tau)) x + sqrt(2 eps tau) xi in each of many independent coordinates, from the stationary law."""
    d, eps, tau = 20_000, 0.1, 0.5
    variance = 2 * eps * tau / (1 - (1 - eps * (1 + tau)) ** 2)
    target = Target.of(lambda x: -jnp.sum(x**2) / 2, jnp.zeros(d))
    start = jax.random.normal(jax.random.key(1), (1, d))
    post = run(
        Langevin(temperature=tau, step=eps),
        target,
        particles=start,
        steps=60,
        key=jax.random.key(0),
        optim=optax.sgd(eps),
    )
    found = np.asarray(post.particles).ravel()
    assert abs(found.var() / variance - 1) < 5 * np.sqrt(2 / d)
    assert abs(np.corrcoef(found, np.asarray(start).ravel())[0, 1]) < 5 / np.sqrt(d)


def test_particles_get_noise_of_their_own():
    swarm = Swarm(Points.of(jnp.zeros((500, 40)), jnp.zeros((500, 40))), Dense())
    found = np.asarray(VELOCITY(Langevin(temperature=2.0, step=0.01), swarm, jax.random.key(0)))
    assert abs(found.var() / (2 * 2.0 / 0.01) - 1) < 5 * np.sqrt(2 / found.size)
    assert abs(np.corrcoef(found[0], found[1])[0, 1]) < 5 / np.sqrt(40)
