"""Which rows of the data a step sees: an order of all rows, drawn anew every epoch, of which nothing is stored."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt32

from polystein._types import Key


def batch_rows(key: Key, step: Int[Array, ""] | int, size: int, rows: int) -> Int[Array, "size"]:
    """The rows of a step: consecutive places in an order of all rows that is drawn anew every epoch.

    The order is a keyed bijection of {0..rows-1} evaluated only where it is needed: rounds of adding to one coordinate of a
    grid a random function of the other, walked on until the place falls inside. Nothing of length N is sorted or stored.

    >>> import jax, numpy as np
    >>> rows = [batch_rows(jax.random.key(0), step, 3, 9) for step in range(3)]
    >>> sorted(np.concatenate(rows).tolist())
    [0, 1, 2, 3, 4, 5, 6, 7, 8]
    """
    per_epoch = rows // size
    step = jnp.asarray(step, jnp.uint32)
    side = max(int(np.ceil(np.sqrt(rows))), 1)
    other = -(-rows // side)
    seeds = jax.random.bits(jax.random.fold_in(key, step // per_epoch), (8,), jnp.uint32)

    def shuffle(place: UInt32[Array, ""]) -> UInt32[Array, ""]:
        a, b = place // other, place % other
        for k in range(0, 8, 2):
            a = (a + _mixed(b, seeds[k]) % side) % side
            b = (b + _mixed(a, seeds[k + 1]) % other) % other
        return a * other + b

    def inside(place: UInt32[Array, ""]) -> UInt32[Array, ""]:
        return jax.lax.while_loop(lambda p: p >= rows, shuffle, shuffle(place))

    places = (step % per_epoch) * size + jnp.arange(size, dtype=jnp.uint32)
    return jax.vmap(inside)(places).astype(jnp.int32)


def _mixed(value: UInt32[Array, ""], seed: UInt32[Array, ""]) -> UInt32[Array, ""]:
    """A 32-bit hash of a number under a seed (multiply, fold the high bits down, twice)."""
    h = value * jnp.uint32(0x9E3779B1) ^ seed
    h = (h ^ (h >> 16)) * jnp.uint32(0x85EBCA6B)
    h = (h ^ (h >> 13)) * jnp.uint32(0xC2B2AE35)
    return h ^ (h >> 16)
