"""Small targets and comparisons that the tests of the engine share; one object each, so that compiled programs are reused."""

from __future__ import annotations

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from polystein import RBF, SVGD, Target

MEAN = np.array([1.0, -0.5])
COVARIANCE = np.array([[1.0, 0.6], [0.6, 1.5]])
SGD, ADAM = optax.sgd(0.1), optax.adam(0.05)
SVGD_RBF = SVGD(RBF(2.0))


def gaussian(mean: Any = MEAN, covariance: Any = COVARIANCE, dtype: Any = jnp.float32) -> Target:
    """A Gaussian of any mean and covariance, started about 0."""
    mean, precision = jnp.asarray(mean, dtype), jnp.asarray(np.linalg.inv(covariance), dtype)
    return Target.of(lambda x: -0.5 * (x - mean) @ precision @ (x - mean), jnp.zeros(mean.shape, dtype))


@cache
def plain() -> Target:
    """The same one for all tests of a process: its programs are compiled once."""
    return gaussian()


def same_bits(a: Any, b: Any) -> None:
    """Two trees of arrays, equal bit for bit in structure, dtype, shape and content."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()


def steps_of(trace: dict[str, Any]) -> dict[str, Any]:
    """A trace without wall clock."""
    return {name: np.asarray(a) for name, a in trace.items() if name != "seconds"}


def normalised(size: float = 0.1) -> optax.GradientTransformation:
    """Steps of one length: the whole update divided by its root mean square."""

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        return -size * updates / jnp.sqrt(jnp.mean(updates**2)), state

    return optax.GradientTransformation(lambda params: (), update)


class Pair(eqx.Module):
    """A tree of a class of one's own."""

    first: Any
    second: Any
