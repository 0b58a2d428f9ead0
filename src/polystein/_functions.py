"""What a user's own function may have got wrong, found by evaluating its shapes before anything is compiled or run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from polystein import _checks


def scalar_function(name: str, function: Callable[..., Any], *arguments: Any) -> None:
    """Refuses a density that is no function of these arguments, does not trace, or returns anything but one real number."""
    found = shapes_of(name, function, *arguments)
    leaves = jax.tree.leaves(found)
    if len(leaves) != 1 or not hasattr(found, "shape"):
        raise TypeError(f"{name} returned {_type_of(found)}; expected one real number, the log density; return a scalar array")
    if found.shape != ():
        raise ValueError(f"{name} returned shape {found.shape}; expected a scalar, shape (); sum over its entries with jnp.sum")
    _real(name, found.dtype)


def likelihood_function(function: Callable[..., Any], value: Any, rows: Any, batch: int) -> None:
    """Refuses a log likelihood that returns neither one number per row nor their sum."""
    name = "log_likelihood"
    found = shapes_of(name, function, value, rows)
    if not hasattr(found, "shape") or found.shape not in ((), (batch,)):
        shape = getattr(found, "shape", None)
        raise ValueError(
            f"{name} returned {_type_of(found) if shape is None else f'shape {shape}'} for {batch} rows; "
            f"expected one number per row, shape ({batch},), or their sum, shape (); reduce the other axes"
        )
    _real(name, found.dtype)


def score_function(function: Callable[..., Any], value: Any) -> None:
    """Refuses a score whose tree or shapes are not those of its argument."""
    found = shapes_of("score", function, value)
    shapes = lambda tree: jax.tree.map(lambda a: tuple(jnp.shape(a)), tree)
    if jax.tree.structure(found) != jax.tree.structure(value) or jax.tree.leaves(shapes(found)) != jax.tree.leaves(
        shapes(value)
    ):
        raise ValueError(
            f"score returned {_type_of(found)} for {_type_of(value)}; expected the tree and shapes of its argument; "
            "return grad log p, one number for each number it takes"
        )
    for leaf in jax.tree.leaves(found):
        _real("score", leaf.dtype)


def batch_size(batch: Any, data: Any, halves: bool) -> int:
    """A number of rows that the data have; even where it is to be halved."""
    batch = _checks.whole("batch", least=2 if halves else 1)(batch)
    lengths = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(data)}
    if len(lengths) != 1 or () in lengths:
        raise ValueError(
            f"data with leading axes {sorted(lengths)}; expected arrays with the same number of rows; index rows first"
        )
    ((rows,),) = lengths
    if batch > rows:
        raise ValueError(
            f"batch={batch} of {rows} rows; expected at most {rows}; use batch={rows}, or Target.of for the full density"
        )
    if halves and batch % 2:
        raise ValueError(f"batch={batch} cannot be halved; expected an even number of rows; use batch={batch - 1}")
    return batch


def forward_only(function: Callable[[Any], Any], u: Any) -> bool:
    """Whether a density can be differentiated forwards alone, as through ``lax.while_loop``."""
    try:
        jax.eval_shape(jax.grad(function), u)
    except ValueError as refused:
        if "Reverse-mode differentiation" not in str(refused):
            raise
        return True
    return False


def is_function(name: str, function: Any) -> None:
    """Refuses what cannot be called."""
    if not callable(function):
        raise TypeError(
            f"{name}={_checks.brief(function)} is no function; expected one written in JAX; write lambda x: -jnp.sum(x**2)"
        )


def shapes_of(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """The shapes that a function returns, by tracing it; what goes wrong there is said in a sentence."""
    is_function(name, function)
    if wrong := _checks.cannot_take(function, *arguments):
        raise TypeError(
            f"{name} cannot be called with {len(arguments)} argument(s) ({wrong}); expected a function of one tree, "
            f"{'the parameters' if len(arguments) == 1 else 'the parameters and the rows'}; close over data with a lambda"
        )
    try:
        with _checks.tracing(name):
            return jax.eval_shape(function, *arguments)
    except TypeError as wrong:
        if "valid JAX type" not in str(wrong):
            raise
        raise TypeError(f"{name} returned no number ({wrong}); expected one real number; return the log density") from wrong


def _real(name: str, dtype: Any) -> None:
    if not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(
            f"{name} returned dtype {dtype}, which has no gradient; expected one real float; compute in floats, write 1.0 for 1"
        )


def _type_of(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"an array of shape {value.shape}"
    return f"a {type(value).__name__} of shapes {[tuple(jnp.shape(leaf)) for leaf in jax.tree.leaves(value)]}"
