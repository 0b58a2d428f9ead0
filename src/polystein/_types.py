"""Words shared by every room: arrays with shapes, keys, and a set of particles with its scores."""

from __future__ import annotations

from typing import TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt32

Scalar: TypeAlias = Float[Array, ""]
Vector: TypeAlias = Float[Array, "d"]
Key: TypeAlias = PRNGKeyArray | UInt32[Array, "2"]
Trace: TypeAlias = dict[str, Array]


class Points(eqx.Module):
    """n points x_i with scores s_i = grad log p(x_i): what a sum over pairs runs over.

    ``id`` tells which rows and columns are the same point (pairs on the diagonal), ``live`` which points take part
    in sums at all (all where None). Where scores are noisy (minibatches), ``left`` and ``right`` carry two
    independent estimates of s; a product of two scores then takes the left one of its row and the right one of its
    column, which keeps it unbiased (erratum 14). ``s`` is always the best single estimate, the one that drives.
    """

    x: Float[Array, "n d"]
    s: Float[Array, "n d"]
    id: Int[Array, "n"]
    left: Float[Array, "n d"] | None = None
    right: Float[Array, "n d"] | None = None
    live: Bool[Array, "n"] | None = None

    @staticmethod
    def of(
        x: Float[Array, "n d"],
        s: Float[Array, "n d"],
        *,
        halves: tuple[Float[Array, "n d"], Float[Array, "n d"]] | None = None,
        live: Bool[Array, "n"] | None = None,
    ) -> Points:
        """Number the points 0..n-1; ``halves`` are two independent score estimates, their mean being s."""
        left, right = (None, None) if halves is None else halves
        return Points(x, s, jnp.arange(x.shape[0]), left, right, live)

    @property
    def count(self) -> Scalar:
        """How many points take part in sums."""
        if self.live is None:
            return jnp.asarray(self.x.shape[0], self.x.dtype)
        return jnp.maximum(jnp.sum(self.live, dtype=self.x.dtype), 1)
