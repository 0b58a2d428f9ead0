"""Function-space SVGD: MK-SVGD where a parameter is its own function, and the force by a plain loop where it is not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from polystein import MKSVGD, RBF, Bank, Dense, FunctionSpace, Points
from polystein.methods import Swarm
from polystein.weights import Fixed
from tests.laws.registry import jit

KEY = jax.random.key(0)


@jit
def two(method, swarm):
    first, memory, _ = method.velocity(swarm, method.init(swarm.x), KEY)
    return first, method.velocity(swarm, memory, KEY)[0]


@pytest.mark.usefixtures("float64")
def test_without_functions_it_is_mksvgd_in_weight_space(rng):
    swarm = Swarm(Points.of(jnp.asarray(rng.normal(size=(5, 2))), jnp.asarray(rng.normal(size=(5, 2)))), Dense())
    np.testing.assert_allclose(two(FunctionSpace(), swarm), two(MKSVGD(balance=0.0), swarm), rtol=1e-12)


@pytest.mark.usefixtures("float64")
def test_the_force_is_a_plain_loop(rng):
    """Of f_i = tanh(x theta) with an unknown noise, which is no function."""
    inputs, y, theta, w = rng.normal(size=(3, 2)), rng.normal(size=3), rng.normal(size=(4, 3)), [0.6, 0.8]
    likelihood = lambda f, u, key: jnp.sum(-((y - f) ** 2) * jnp.exp(u[2]) / 2 + u[2] / 2)
    prior = lambda u: -jnp.sum(u**2) / 2
    method = FunctionSpace(lambda u, key: jnp.tanh(inputs @ u[:2]), likelihood, prior, Bank(RBF(1.0), RBF(3.0)), Fixed(w))
    found = two(method, Swarm(Points.of(jnp.asarray(theta), jnp.zeros((4, 3))), Dense()))[0]

    f = np.tanh(theta[:, :2] @ inputs.T)
    g = (y - f) * np.exp(theta[:, 2:])
    expected = np.zeros((4, 3))
    for i in range(4):
        jacobian = np.concatenate([(1 - f[i] ** 2)[:, None] * inputs, np.zeros((3, 1))], 1)
        direct = -theta[i] + np.array([0, 0, 1.5 - np.sum((y - f[i]) ** 2) * np.exp(theta[i, 2]) / 2])
        for j in range(4):
            gap = f[i] - f[j]
            for weight, h in zip(w, (1.0, 3.0), strict=True):
                k = weight * np.exp(-gap @ gap / h)
                expected[i] += (jacobian.T @ (k * g[j] + 2 / h * k * gap) + k * direct) / 4
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_functions_in_part_are_refused():
    with pytest.raises(TypeError, match="given in part"):
        FunctionSpace(lambda u, key: u)
