"""What the machine can do, measured beside what it does: matrix products, fused element-wise passes, memory.

A sweep over n^2 pairs of points in d dimensions cannot beat the sum of its matrix products and of its element-wise pass:

- the drift of one kernel takes three products of 2 n^2 d operations (X X', K S, K X) and, for every pair, an exponential;
- drift and discrepancies take five (X S' and S S' as well) and, for every pair and kernel, a squaring and the terms of u, u^2.
"""

from __future__ import annotations

import os
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from benchmarks.speed.timing import Program

# XLA takes half of the vector registers of a processor with AVX-512 unless it is told; a limit takes all
wide = partial(jax.jit, compiler_options={"xla_cpu_prefer_vector_width": "512"})
ROWS = 256  # of a tile of products: its n columns stay in a processor's cache
TINY = 1e-30
BLOCK = 1 << 14  # pairs of a pass: they stay in the cache


def products(n: int, d: int, how_many: int) -> Program:
    """So many products of an n x n x d kind, tile by tile: the first few inner products, the last two K S and K X."""
    rows = min(ROWS, n)
    tiles = -(-n // rows)
    units = often(n * n * d)
    x = jax.random.normal(jax.random.key(0), (n, d))
    s = jax.random.normal(jax.random.key(1), (n, d))
    pairs = [(x, x), (x, s), (s, s)][: how_many - 2]

    @jax.jit
    def run(x: Float[Array, "n d"], s: Float[Array, "n d"]) -> tuple:
        def tile(k: Array, kept: tuple) -> tuple:
            at = lambda a: lax.dynamic_slice_in_dim(a, jnp.minimum(k % tiles * rows, n - rows), rows)
            grams = tuple(at(a) @ b.T for a, b in pairs)
            return grams, tuple(kept[0][0] @ b for b in (s, x))

        zeros = tuple(jnp.zeros((rows, n), x.dtype) for _ in pairs), tuple(jnp.zeros((rows, d), x.dtype) for _ in range(2))
        return lax.fori_loop(0, units * tiles, tile, zeros)

    return Program(lambda: run(x, s), units)


def elementwise(n: int, m: int, *, discrepancies: bool) -> Program:
    """The arithmetic of n^2 pairs in one fused loop over numbers that stay in the cache: on one core, divided by the cores."""
    size = min(BLOCK, n * n)
    turns, units = -(-n * n // size), often(n * n * m)
    r2, ss, rs = jax.random.uniform(jax.random.key(0), (3, size))

    @wide
    def run(r2: Float[Array, "size"], ss: Float[Array, "size"], rs: Float[Array, "size"]) -> Float[Array, "size"]:
        def turn(k: Array, total: Array) -> Array:
            r = r2 + total * TINY  # so that no turn is the same as another
            e = jnp.exp(-r)
            terms = jnp.zeros_like(r)
            for i in range(m):
                h, w = 2.0 ** (m - 1 - i), 0.1 + 0.01 * i
                terms += w * e + w * h * e
                if discrepancies:
                    u = e * (ss + h * rs + h * h * r)
                    terms += u + u * u
                e = e * e
            return total + terms

        return lax.fori_loop(0, units * turns, turn, jnp.zeros_like(r2))

    return Program(lambda: run(r2, ss, rs), units * (os.cpu_count() or 1))


def often(work: int) -> int:
    """How many times over something small is done in one call, so that the call itself costs nothing."""
    return max(1, min(200, int(1e7 / work)))


def exponentials(size: int = BLOCK, turns: int = 512) -> Program:
    """Exponentials summed, the plainest fused pass, on one core; a unit is one number, divided by the cores."""
    a = jax.random.uniform(jax.random.key(0), (size,))

    @wide
    def run(a: Float[Array, "size"]) -> Float[Array, "size"]:
        return lax.fori_loop(0, turns, lambda k, t: t + jnp.exp(-(a + t * TINY)), jnp.zeros_like(a))

    return Program(lambda: run(a), size * turns * (os.cpu_count() or 1))


def product_rate(size: int = 2048) -> Program:
    """A square matrix product in float32. A unit is one operation, of which it has 2 size^3."""
    a = jax.random.normal(jax.random.key(0), (size, size))
    run = jax.jit(lambda a: a @ a)
    return Program(lambda: run(a), 2 * size**3)


def memory(size: int = 1 << 26) -> Program:
    """An array of 256 MB read and another written. A unit is one byte that was moved."""
    a = jnp.ones(size)
    run = jax.jit(lambda a: 2 * a)
    return Program(lambda: run(a), 2 * 4 * size)
