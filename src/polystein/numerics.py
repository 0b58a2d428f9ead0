"""Floating point, once and for all: |y - x|^2 and its kin without cancellation, exact order statistics, dtypes.

A matrix product gives all |y_i - x_j|^2 = |y_i|^2 + |x_j|^2 - 2 y_i.x_j at once, but its rounding error is that of the
norms, not of the difference. Here points are centred first; where some pair still lies close compared with its norms
(two distant clusters, coincident points), the whole tile is taken by differences instead. Up to ``UNROLLED``
dimensions differences are as cheap as the product and are always taken.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

Tree = TypeVar("Tree")
Out = TypeVar("Out")
Given = ParamSpec("Given")

UNROLLED = 8
CLOSE = 1e-2  # |y - x|^2 below this share of |y|^2 + |x|^2 would lose more than two digits in the matrix product


def cast(tree: Tree, dtype: np.dtype) -> Tree:
    """The same tree with every floating array in ``dtype``: hyper-parameters follow the particles."""
    return jax.tree.map(lambda a: a.astype(dtype) if eqx.is_inexact_array(a) else a, tree)


def every_digit(function: Callable[Given, Out]) -> Callable[Given, Out]:
    """The same function with matrix products that keep every digit: of float32, an accelerator takes three unless told.

    >>> twice = every_digit(lambda a: a @ a)
    >>> "HIGHEST" in str(jax.make_jaxpr(twice)(jnp.eye(2)))
    True
    """

    @wraps(function)
    def exactly(*args: Given.args, **kwargs: Given.kwargs) -> Out:
        with jax.default_matmul_precision("highest"):
            return function(*args, **kwargs)

    return exactly


@every_digit
def pair_products(
    y: Float[Array, "a d"],
    x: Float[Array, "b d"],
    sy: Float[Array, "a d"],
    sx: Float[Array, "b d"],
    same: Bool[Array, "a b"],
) -> tuple[Float[Array, "a b"], Float[Array, "a b"], Bool[Array, ""] | bool]:
    """r2 = |y - x|^2 and rs = (y - x).(s_y - s_x) for all pairs; and whether differences were needed.

    Pairs marked ``same`` are exactly zero.
    """

    def by_differences() -> tuple[Float[Array, "a b"], Float[Array, "a b"]]:
        def add(total: tuple[Array, Array], column: tuple[Array, ...]) -> tuple[tuple[Array, Array], None]:
            yk, xk, syk, sxk = column
            gap = yk[:, None] - xk[None, :]
            return (total[0] + gap**2, total[1] + gap * (syk[:, None] - sxk[None, :])), None

        zero = jnp.zeros((y.shape[0], x.shape[0]), y.dtype)
        unroll = UNROLLED if y.shape[1] <= UNROLLED else 1
        return lax.scan(add, (zero, zero), (y.T, x.T, sy.T, sx.T), unroll=unroll)[0]

    def off_diagonal(r2: Array, rs: Array) -> tuple[Array, Array]:
        return jnp.where(same, 0, r2), jnp.where(same, 0, rs)

    if y.shape[1] <= UNROLLED:
        return *off_diagonal(*by_differences()), True
    (yc, xc), (syc, sxc) = centred(y, x), centred(sy, sx)
    yy, xx = jnp.sum(yc**2, 1), jnp.sum(xc**2, 1)
    norms = yy[:, None] + xx[None, :]
    r2 = jnp.maximum(norms - 2 * yc @ xc.T, 0)
    rs = jnp.sum(yc * syc, 1)[:, None] + jnp.sum(xc * sxc, 1)[None, :] - yc @ sxc.T - syc @ xc.T
    close = jnp.any((r2 < CLOSE * norms) & ~same)
    return *off_diagonal(*lax.cond(close, by_differences, lambda: (r2, rs))), close


@every_digit
def weighted_differences(
    weight: Float[Array, "a b"], y: Float[Array, "a d"], x: Float[Array, "b d"], close: Bool[Array, ""] | bool
) -> Float[Array, "a d"]:
    """sum_j weight_ij (x_j - y_i): by differences where ``close``, by one matrix product elsewhere."""

    def by_differences() -> Float[Array, "a d"]:
        def one(column: tuple[Array, Array]) -> Array:
            yk, xk = column
            return jnp.sum(weight * (xk[None, :] - yk[:, None]), 1)

        if y.shape[1] <= UNROLLED:
            return jnp.stack([one((y[:, k], x[:, k])) for k in range(y.shape[1])], 1)
        return lax.map(one, (y.T, x.T)).T

    def by_product() -> Float[Array, "a d"]:
        yc, xc = centred(y, x)
        return weight @ xc - jnp.sum(weight, 1, keepdims=True) * yc

    if isinstance(close, bool):
        return by_differences() if close else by_product()
    return lax.cond(close, by_differences, by_product)


def centred(y: Float[Array, "a d"], x: Float[Array, "b d"]) -> tuple[Float[Array, "a d"], Float[Array, "b d"]]:
    """Both sets moved by the same vector, the mean of x: every difference stays, the norms shrink."""
    origin = lax.stop_gradient(jnp.mean(x, 0, keepdims=True))
    return y - origin, x - origin


@jax.jit
def order_statistic(values: Float[Array, "*shape"], rank: Int[Array, ""] | int) -> Float[Array, ""]:
    """The element of nonnegative ``values`` that a sort would put at ``rank``: exact, without sorting.

    Nonnegative floats are ordered as their bits are, so bisecting over the bit pattern finds the value in 31 (63)
    counting passes, each of which is one fused reduction.
    """
    bits_type = jnp.int32 if values.dtype.itemsize == 4 else jnp.int64
    bits = lax.bitcast_convert_type(values, bits_type)
    width = 8 * values.dtype.itemsize - 1

    def narrow(k: Int[Array, ""], low: Int[Array, ""]) -> Int[Array, ""]:
        trial = low + (jnp.ones((), bits_type) << (width - 1 - k).astype(bits_type))
        return jnp.where(jnp.sum(bits < trial) <= rank, trial, low)

    low = lax.fori_loop(0, width, narrow, jnp.zeros((), bits_type))
    return lax.bitcast_convert_type(low, values.dtype)
