"""What a user may have got wrong, said in one sentence: what was given, what was expected, what to do.

Values that are being traced have no value yet and pass; every public entrance checks concrete input.
"""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from polystein._types import float_rows, is_float, scores_at

Converter = Callable[[Any], Array]


def concrete(value: Any) -> np.ndarray | None:
    """The value as a numpy array, or None while it is being traced or is no array at all (a placeholder in a tree)."""
    if isinstance(value, Tracer | jax.ShapeDtypeStruct):
        return None
    try:
        return np.asarray(value)
    except (TypeError, ValueError):
        return None


# Numbers


def positive(name: str, *, several: str | None = "give one number") -> Converter:
    """A converter to a positive finite number, or, where ``several`` is None, to an array of them."""
    holds = lambda a: np.isfinite(a) & (a > 0)
    remedy = f"try {name}=1.0; a scale of the data is a fair first choice"
    return partial(_convert, name, holds, "a positive finite number", remedy, several)


def kernel_scale(name: str) -> Converter:
    """A converter to a positive hyper-parameter of one kernel: a vector would broadcast against pairs of points."""
    several = "several kernels are Bank(RBF(1.0), RBF(2.0)), a scale per dimension is Transformed(RBF(), Stretch(scale))"
    return positive(name, several=several)


def finite(name: str) -> Converter:
    """A converter to an array of finite numbers."""
    remedy = f"try {name}=0.0, or look for a 0/0 where it was computed"
    return partial(_convert, name, np.isfinite, "finite numbers", remedy, None)


def nonnegative(name: str) -> Converter:
    """A converter to an array of nonnegative finite numbers."""
    holds = lambda a: np.isfinite(a) & (a >= 0)
    remedy = f"clip or re-estimate negative ones, or try {name}=1.0"
    return partial(_convert, name, holds, "nonnegative finite numbers", remedy, None)


def within(name: str, low: float, high: float) -> Converter:
    """A converter to a number in the open interval (low, high)."""
    holds = lambda a: (a > low) & (a < high)
    expected = f"a real number in the open interval ({low}, {high})"
    return partial(_convert, name, holds, expected, f"try {name}={(low + high) / 2}", "give one number")


def share(name: str) -> Converter:
    """A converter to a number in [0, 1)."""
    holds = lambda a: (a >= 0) & (a < 1)
    expected = "a share, a number in [0, 1)"
    return partial(_convert, name, holds, expected, f"try {name}=0.9", "give one number")


def _convert(
    name: str, holds: Callable[[np.ndarray], np.ndarray], expected: str, remedy: str, several: str | None, value: Any
) -> Array:
    array = _floats(value)
    if array is None:
        raise TypeError(f"{name}={brief(value)} is no real number; expected {expected}; {remedy}")
    if several is not None and array.shape:
        raise ValueError(f"{name} of shape {array.shape}; expected {expected}, shape (); {several}")
    known = concrete(array)
    if known is not None and not holds(known).all():
        raise ValueError(f"{name}={_show(known)}; expected {expected}; {remedy}")
    return array


def _floats(value: Any) -> Array | None:
    """The value as a floating array; None where it holds anything but real numbers."""
    array = value if isinstance(value, jax.Array) else concrete(value)
    is_a = lambda kind: array is not None and jnp.issubdtype(array.dtype, kind)
    if isinstance(array, jax.Array) and is_a(jnp.floating):
        return array
    if array is not None and not (is_a(jnp.floating) or is_a(jnp.integer) or is_a(jnp.bool_)):
        return None
    try:
        return jnp.asarray(value, float)
    except (TypeError, ValueError):  # a ragged list
        return None


def whole(name: str, *, least: int | None = None, example: int | None = None) -> Callable[[Any], int]:
    """A converter to an integer, that is at least ``least``."""
    example = max(least or 0, 2) if example is None else example

    def convert(value: Any) -> int:
        try:
            number = operator.index(value)
        except TypeError:
            bound = "" if least is None else f" >= {least}"
            raise TypeError(
                f"{name}={brief(value)} is not a whole number; expected an int{bound}; try {name}={example}"
            ) from None
        if least is not None and number < least:
            raise ValueError(f"{name}={number}; expected at least {least}; try {name}={example}")
        return number

    return convert


# Things


def instance(what: str, *bases: type, example: str) -> Callable[[Any], Any]:
    """A converter that lets instances of the bases through: ``what`` was expected, and an ``example`` of it."""

    def convert(value: Any) -> Any:
        if isinstance(value, bases):
            return value
        if isinstance(value, type) and issubclass(value, bases):
            name = value.__name__
            raise TypeError(f"the class {name} was given; expected {what}; forgot the parentheses? write {name}()")
        raise TypeError(f"{brief(value)} was given; expected {what}; write {example}")

    return convert


def flag(name: str) -> Callable[[Any], Any]:
    """A converter that lets True and False through: any other thing would be taken for one of them."""
    return instance("True or False", bool, np.bool_, example=f"{name}=True")


def function(what: str, *others: type, example: str, arguments: int = 1) -> Callable[[Any], Any]:
    """A converter that lets callables through, unless they are instances of ``others``, callable for other reasons."""

    def convert(value: Any) -> Any:
        if not callable(value) or isinstance(value, others):
            raise TypeError(f"{brief(value)} was given; expected {what}; write {example}")
        if wrong := cannot_take(value, *range(arguments)):
            raise TypeError(f"{brief(value)} cannot be called so ({wrong}); expected {what}; write {example}")
        return value

    return convert


def cannot_take(function: Callable[..., Any], *arguments: Any) -> str:
    """Why a function cannot be called with these arguments, empty where it can; some have no signature to look at."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as wrong:
        return str(wrong)
    except ValueError:
        pass
    return ""


@contextmanager
def tracing(name: str) -> Iterator[None]:
    """Calls a user's function; what a function that is no pure JAX raises is said in a sentence."""
    try:
        yield
    except (
        jax.errors.TracerArrayConversionError,
        jax.errors.TracerBoolConversionError,
        jax.errors.ConcretizationTypeError,
    ) as wrong:
        raise TypeError(
            f"{name} uses the value of an argument while it is being traced ({type(wrong).__name__}), as numpy and if do; "
            "expected pure JAX; "
            "use jnp in place of np, jnp.where in place of if, lax.fori_loop in place of a loop over values"
        ) from wrong


def random_key(key: Any) -> Any:
    """A typed or raw jax.random key; refuses seeds."""
    dtype, shape = getattr(key, "dtype", None), np.shape(key) if isinstance(key, jax.Array | np.ndarray) else None
    typed = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    raw = dtype == jnp.uint32
    if (typed and shape) or (raw and shape is not None and shape[1:] == (2,)):
        raise ValueError(f"{shape} keys given; expected one key; pick one with key[0], or vmap over them")
    if not (typed or (raw and shape == (2,))):
        raise TypeError(f"key={brief(key)} is no random key; expected one of jax.random; write key=jax.random.key(0)")
    return key


def path(value: Any, name: str = "path") -> Path:
    """The path of a file."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name}={brief(value)} is no path; expected the name of a file; write 'run.npz'")
    return Path(value)


# Points


def particles(x: Any, name: str = "particles") -> Array:
    """Particles as a floating (n, d) array; refuses other shapes, integers and non-finite numbers."""
    x = float_rows(x, name)
    known = concrete(x)
    if known is not None and not np.isfinite(known).all():
        row, column = np.argwhere(~np.isfinite(known))[0]
        raise ValueError(
            f"{name}[{row}, {column}] is {known[row, column]}; expected finite numbers; drop the row or find what made it so"
        )
    return x


def sample_with_scores(x: Any, target: Any) -> tuple[Array, Any]:
    """A sample and the scores at it (or two half-batch scores), of one shape and dtype."""
    x = particles(x, "samples")
    scores = target.score(x) if hasattr(target, "score") and not isinstance(target, type) else target
    if callable(scores):
        raise TypeError(
            f"scores={brief(scores)} is a function; expected an array with a score per row; evaluate it, with jax.vmap(f)(x)"
        )
    halves = isinstance(scores, tuple)
    if halves and len(scores) != 2:
        raise ValueError(
            f"{len(scores)} scores given; expected an array, or a pair of independent half-batch estimates; "
            "pass (first, second)"
        )
    checked = tuple(scores_at(x, particles(s, "scores")) for s in (scores if halves else (scores,)))
    dtype = jnp.result_type(x, *checked)
    checked = tuple(s.astype(dtype) for s in checked)
    return x.astype(dtype), checked if halves else checked[0]


def two_points(x: Any, y: Any) -> None:
    """Refuses what is no pair of points; looks at shape and dtype only, so it holds while tracing and costs nothing."""
    for a in (x, y):
        if not isinstance(a, jax.Array | np.ndarray):
            raise TypeError(f"{brief(a)} is no array; expected two points, each of shape (d,); write jnp.array([0.0, 1.0])")
        if not jnp.issubdtype(a.dtype, jnp.floating):
            raise TypeError(f"points of dtype {a.dtype}; expected two points of floats; convert with x.astype(float)")
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(
            f"points of shapes {x.shape} and {y.shape}; expected two points of the same shape (d,); "
            "for all pairs of rows call kernel.gram(x, y)"
        )


def per_dimension(name: str, value: Array, d: int) -> Array:
    """A hyper-parameter that is one number, or one for each of d dimensions."""
    if value.shape not in ((), (d,)):
        raise ValueError(
            f"{name} of shape {value.shape} for points of {d} dimensions; expected shape () or ({d},); "
            f"give one number, or one per dimension"
        )
    return value


def scalar(name: str, value: Any) -> Array:
    """What a user's function returned, as a floating scalar; looks at shape and dtype only."""
    found = value if isinstance(value, jax.Array) else concrete(value)
    if found is None or found.dtype == object:
        raise TypeError(f"{name} returned {brief(value)}; expected a scalar, one float; return a jax array")
    if found.shape:
        raise ValueError(
            f"{name} returned shape {found.shape}; expected a scalar, one float; reduce it with jnp.sum or jnp.prod"
        )
    if not jnp.issubdtype(found.dtype, jnp.floating):
        raise TypeError(f"{name} returned dtype {found.dtype}; expected a float; write 1.0 for 1")
    return jnp.asarray(value)


def density_tree(like: Any) -> Any:
    """The structure a density takes, as arrays of finite floats; refuses integers."""

    def leaf(path: Any, a: Any) -> Array:
        where = f"like{jax.tree_util.keystr(path)}"
        asked = getattr(a, "dtype", None) if isinstance(a, np.ndarray | jax.ShapeDtypeStruct) else None
        if asked == np.float64 and jax.dtypes.canonicalize_dtype(np.float64) != np.float64:
            raise TypeError(
                f"{where} is float64 and JAX is at 32 bit, where it would be cut to float32; expected float32, or 64 bit "
                "switched on; call jax.config.update('jax_enable_x64', True), or write jnp.zeros(d) for float32"
            )
        if isinstance(a, jax.ShapeDtypeStruct):
            a = jnp.zeros(a.shape, a.dtype)
        a = a if isinstance(a, jax.Array) else np.asarray(a)
        if not is_float(a.dtype):
            raise TypeError(
                f"{where} has dtype {a.dtype}; particles move continuously, so floats are expected, float32 or float64; "
                "write 0.0 for 0, jnp.zeros(d) for d numbers; call Target.of(log_density, like)"
            )
        known = concrete(a)
        if known is not None and not np.isfinite(known).all():
            raise ValueError(f"{where} is {_show(known)}; expected finite numbers, about which particles start; write zeros")
        return jnp.asarray(a)

    tree = jax.tree_util.tree_map_with_path(leaf, like)
    if not sum(a.size for a in jax.tree.leaves(tree)):
        raise ValueError(f"like={like!r} holds no number; expected an example of the density's argument; try jnp.zeros(d)")
    return tree


# Words


def brief(value: Any) -> str:
    """What was given, on one line that is not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _show(value: np.ndarray) -> str:
    return np.array2string(value, precision=4, threshold=6, separator=", ")
