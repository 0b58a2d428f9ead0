"""What is sampled: a log density over a flat vector, its score, and the way back to the user's own tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from polystein._checks import density_tree
from polystein._types import Key, Scalar, Vector


class Target(eqx.Module):
    """log p over flat vectors u of length ``dim``, and ``unravel``, which turns u into the user's tree."""

    log_density: Callable[[Vector], Scalar]
    unravel: Callable[[Vector], Any]
    start: Float[Array, "d"]

    @staticmethod
    def of(log_density: Callable[[Any], Scalar], like: Any) -> Target:
        """The target of a log density that takes trees like ``like``.

        **Arguments:**

        - ``log_density``: log p up to a constant; takes a tree of arrays, returns a scalar; written in JAX.
        - ``like``: an example of that tree (arrays of floats, or ``jax.ShapeDtypeStruct``): its structure and a first guess.

        >>> import jax.numpy as jnp
        >>> target = Target.of(lambda p: -p["a"] ** 2 - jnp.sum(p["b"] ** 2), {"a": 0.0, "b": jnp.zeros(2)})
        >>> target.dim, target.score(jnp.ones((1, 3))).tolist()
        (3, [[-2.0, -2.0, -2.0]])
        """
        start, unravel = ravel_pytree(density_tree(like))
        return Target(lambda u: log_density(unravel(u)), unravel, start)

    @property
    def dim(self) -> int:
        """d, the length of the flat vector."""
        return self.start.shape[0]

    def score(self, x: Float[Array, "n d"], key: Key | None = None) -> Float[Array, "n d"]:
        """s(x_i) = grad log p(x_i), for every row; ``key`` is for targets that draw a minibatch."""
        del key
        return jax.vmap(jax.grad(lambda u: jnp.asarray(self.log_density(u), u.dtype)))(x)
