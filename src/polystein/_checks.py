"""What a user may have got wrong, said in one sentence: what was given, what was expected, what to do.

Values that are being traced have no value yet and pass; every public entrance checks concrete input.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array


def concrete(value: Any) -> np.ndarray | None:
    """The value as a numpy array, or None while it is being traced or is no array at all (a placeholder in a tree)."""
    if isinstance(value, Tracer | jax.ShapeDtypeStruct):
        return None
    try:
        return np.asarray(value)
    except (TypeError, ValueError):
        return None


def floating(name: str) -> Callable[[Any], Array]:
    """A converter to a floating array; refuses what has no numbers in it."""

    def convert(value: Any) -> Array:
        if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jnp.inexact):
            return value
        known = concrete(value)
        if known is not None and not (np.issubdtype(known.dtype, np.number) or known.dtype == bool):
            raise TypeError(f"{name}={value!r} is no number; expected a positive real number, for example {name}=1.0")
        return jnp.asarray(value, float)

    return convert


def finite(name: str) -> Callable[[Any], Array]:
    """A converter to a finite floating array."""

    def convert(value: Any) -> Array:
        array = floating(name)(value)
        known = concrete(array)
        if known is not None and not np.isfinite(known).all():
            raise ValueError(
                f"{name}={_show(known)} is not finite; expected finite numbers; look for a 0/0 where it was computed"
            )
        return array

    return convert


def positive(name: str) -> Callable[[Any], Array]:
    """A converter to a positive finite floating array."""

    def convert(value: Any) -> Array:
        array = floating(name)(value)
        known = concrete(array)
        if known is not None and not (np.isfinite(known).all() and (known > 0).all()):
            raise ValueError(
                f"{name}={_show(known)}; expected a positive finite number; a scale of the data is a fair first choice"
            )
        return array

    return convert


def nonnegative(name: str) -> Callable[[Any], Array]:
    """A converter to a nonnegative finite floating array."""

    def convert(value: Any) -> Array:
        array = floating(name)(value)
        known = concrete(array)
        if known is not None and not (np.isfinite(known).all() and (known >= 0).all()):
            raise ValueError(
                f"{name}={_show(known)}; expected nonnegative finite numbers; clip or re-estimate the negative ones"
            )
        return array

    return convert


def within(name: str, low: float, high: float) -> Callable[[Any], Array]:
    """A converter to an array in the open interval (low, high)."""

    def convert(value: Any) -> Array:
        array = floating(name)(value)
        known = concrete(array)
        if known is not None and not ((known > low).all() and (known < high).all()):
            middle = (low + high) / 2
            raise ValueError(
                f"{name}={_show(known)}; expected a number in the open interval ({low}, {high}); try {name}={middle}"
            )
        return array

    return convert


def share(name: str) -> Callable[[Any], Array]:
    """A converter to an array in [0, 1)."""

    def convert(value: Any) -> Array:
        array = nonnegative(name)(value)
        known = concrete(array)
        if known is not None and not (known < 1).all():
            raise ValueError(f"{name}={_show(known)}; expected a share in [0, 1), 0 keeping nothing; try {name}=0.9")
        return array

    return convert


def whole(name: str, *, least: int) -> Callable[[Any], int]:
    """A converter to an integer that is at least ``least``."""

    def convert(value: Any) -> int:
        try:
            number = operator.index(value)
        except TypeError:
            raise TypeError(
                f"{name}={value!r} is not a whole number; expected an int >= {least}; try {name}={max(least, 2)}"
            ) from None
        if number < least:
            raise ValueError(f"{name}={number}; expected at least {least}; try {name}={max(least, 2)}")
        return number

    return convert


def particles(x: Any, name: str = "particles") -> Array:
    """Particles as a floating (n, d) array; refuses other shapes, integers and non-finite numbers."""
    known = concrete(x)
    dtype = getattr(x, "dtype", None if known is None else known.dtype)
    if dtype is None or not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(f"{name} of dtype {dtype}; expected float32 or float64; convert with {name}.astype(float)")
    shape = jnp.shape(x)
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"{name} of shape {shape}; expected (n, d), one row per point, none empty; {_reshape(name, shape)}")
    if known is not None and not np.isfinite(known.astype(np.float64)).all():
        row, column = np.argwhere(~np.isfinite(known.astype(np.float64)))[0]
        raise ValueError(
            f"{name}[{row}, {column}] is {known[row, column]}; expected finite numbers; drop the row or find what made it so"
        )
    return jnp.asarray(x)


def sample_with_scores(x: Any, target: Any) -> tuple[Array, Any]:
    """A sample and the scores at it (or two half-batch scores), of one shape and dtype."""
    x = particles(x, "samples")
    scores = target.score(x) if hasattr(target, "score") else target
    halves = isinstance(scores, tuple)
    if halves and len(scores) != 2:
        raise ValueError(
            f"{len(scores)} scores given; expected an array, or a pair of independent half-batch estimates; "
            "pass (first, second)"
        )
    checked = tuple(particles(s, "scores") for s in (scores if halves else (scores,)))
    for s in checked:
        if s.shape != x.shape:
            raise ValueError(
                f"scores of shape {s.shape} for samples of shape {x.shape}; expected the same shape; "
                "evaluate grad log p at each row, with jax.vmap(jax.grad(log_density))"
            )
    dtype = jnp.result_type(x, *checked)
    checked = tuple(s.astype(dtype) for s in checked)
    return x.astype(dtype), checked if halves else checked[0]


def density_tree(like: Any) -> Any:
    """The structure a density takes, as arrays of floats; refuses integers."""

    def leaf(path: Any, a: Any) -> Array:
        where = f"like{jax.tree_util.keystr(path)}"
        if isinstance(a, jax.ShapeDtypeStruct):
            a = jnp.zeros(a.shape, a.dtype)
        known = jnp.asarray(a)
        if not jnp.issubdtype(known.dtype, jnp.floating):
            raise TypeError(
                f"{where} has dtype {known.dtype}; particles move continuously, so floats are expected; write 0.0 for 0"
            )
        return known

    tree = jax.tree_util.tree_map_with_path(leaf, like)
    if not sum(a.size for a in jax.tree.leaves(tree)):
        raise ValueError(f"like={like!r} holds no number; expected an example of the density's argument; try jnp.zeros(d)")
    return tree


def smooth_kernel(kernel: Any, samples: Array) -> None:
    """Refuses a kernel on which the Stein operator cannot act twice; a user's own function is tried at the first sample."""
    known = concrete(samples)
    if not kernel.smooth or (known is not None and not kernel.meets_smoothly(samples[0], 1e-4 * (float(known.std()) or 1.0))):
        raise ValueError(
            f"{type(kernel).__name__} is not differentiable where two points meet, so it has no Stein discrepancy; expected "
            "a kernel with a finite, continuous grad_x grad_y k(x, y) at x = y; use SmoothLaplace or Matern32 instead"
        )


def _reshape(name: str, shape: tuple[int, ...]) -> str:
    if len(shape) == 1 and shape[0]:
        return f"use {name}[:, None] for points on a line, {name}[None, :] for a single point"
    return f"reshape with {name}.reshape(n, d)"


def _show(value: np.ndarray) -> str:
    return np.array2string(value, precision=4, threshold=6, separator=", ")


def random_key(key: Any) -> Any:
    """A typed or raw jax.random key; refuses seeds."""
    dtype = getattr(key, "dtype", None)
    typed = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    raw = dtype == jnp.uint32 and jnp.shape(key) == (2,)
    if typed and jnp.shape(key):
        raise ValueError(f"{jnp.shape(key)} keys given; expected one; pick one with key[0], or vmap over them")
    if not (typed or raw):
        raise TypeError(f"key={key!r} is no random key; expected one of jax.random; write key=jax.random.key(0)")
    return key
