"""Particle Langevin: SVGD without noise, and the variance that one particle's recursion has exactly."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from polystein import SVGD, Dense, Langevin, Points, Target, infer, run
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
    )
    found = np.asarray(post.particles).ravel()
    assert abs(found.var() / variance - 1) < 5 * np.sqrt(2 / d)
    assert abs(np.corrcoef(found, np.asarray(start).ravel())[0, 1]) < 5 / np.sqrt(d)


def test_particles_get_noise_of_their_own():
    swarm = Swarm(Points.of(jnp.zeros((500, 40)), jnp.zeros((500, 40))), Dense())
    found = np.asarray(VELOCITY(Langevin(temperature=2.0, step=0.01), swarm, jax.random.key(0)))
    assert abs(found.var() / (2 * 2.0 / 0.01) - 1) < 5 * np.sqrt(2 / found.size)
    assert abs(np.corrcoef(found[0], found[1])[0, 1]) < 5 / np.sqrt(40)


TARGET = Target.of(lambda x: -jnp.sum(x**2) / 2, jnp.zeros(2))
SENTENCE = r"moves a slope of [13] by 0\.\d+ was given; Langevin expected plain steps of 0.1, .*; move it by run\("


OTHERS = {"adam": optax.adam(0.05), "half": optax.sgd(0.05), "momentum": optax.sgd(0.1, momentum=0.9)}


@pytest.mark.parametrize("optim", OTHERS.values(), ids=OTHERS)
def test_steps_that_the_noise_is_not_made_for_are_refused(optim):
    with pytest.raises(ValueError, match=SENTENCE):
        run(Langevin(step=0.1), TARGET, particles=3, steps=1, key=jax.random.key(0), optim=optim)


def test_plain_steps_of_its_own_length_are_taken():
    one = run(Langevin(step=0.1), TARGET, particles=3, steps=2, key=jax.random.key(0), optim=optax.sgd(0.1))
    other = run(Langevin(step=0.1), TARGET, particles=3, steps=2, key=jax.random.key(0))
    np.testing.assert_array_equal(one.particles, other.particles)


def test_infer_does_not_move_it():
    with pytest.raises(ValueError, match=SENTENCE):
        infer(TARGET, key=jax.random.key(0), method=Langevin(step=0.1), particles=4)
