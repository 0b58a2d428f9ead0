"""Words shared by every room: arrays with shapes, keys, and a set of particles with its scores."""

from __future__ import annotations

from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt32

Scalar: TypeAlias = Float[Array, ""]
Vector: TypeAlias = Float[Array, "d"]
Key: TypeAlias = PRNGKeyArray | UInt32[Array, "2"]
Trace: TypeAlias = dict[str, Any]


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
        x = float_rows(x, "particles")
        if halves is not None and not (isinstance(halves, tuple) and len(halves) == 2):
            raise ValueError(f"halves of {len(halves)} scores; expected two independent estimates; pass (first, second)")
        left, right = (None, None) if halves is None else (scores_at(x, half) for half in halves)
        if live is not None and (jnp.shape(live) != x.shape[:1] or not jnp.issubdtype(jnp.result_type(live), bool)):
            raise ValueError(
                f"live of shape {jnp.shape(live)} and dtype {jnp.result_type(live)} for {x.shape[0]} points; expected shape "
                f"{x.shape[:1]} and bool; give one True or False a point"
            )
        return Points(x, scores_at(x, s), jnp.arange(x.shape[0]), left, right, live)

    @property
    def meeting(self) -> Float[Array, "n d"]:
        """The scores with which rows enter a product of two scores."""
        return self.s if self.left is None else self.left

    @property
    def met(self) -> Float[Array, "n d"]:
        """The scores with which columns enter a product of two scores."""
        return self.s if self.right is None else self.right

    @property
    def count(self) -> Scalar:
        """How many points take part in sums."""
        if self.live is None:
            return jnp.asarray(self.x.shape[0], self.x.dtype)
        return jnp.maximum(jnp.sum(self.live, dtype=self.x.dtype), 1)


def float_rows(a: Any, name: str) -> Array:
    """An (n, d) array of floats, none empty; looks at shape and dtype only, so it holds while tracing and costs nothing."""
    try:
        a = a if isinstance(a, jax.Array) else np.asarray(a)
    except (TypeError, ValueError):  # a ragged list
        a = np.asarray(None)
    if not is_float(a.dtype):
        raise TypeError(f"{name} of dtype {a.dtype}; expected float32 or float64; convert with {name}.astype(float)")
    if a.ndim != 2 or 0 in a.shape:
        remedy = f"reshape with {name}.reshape(n, d)"
        if a.ndim == 1 and a.size:
            remedy = f"use {name}[:, None] for points on a line, {name}[None, :] for a single point"
        raise ValueError(f"{name} of shape {a.shape}; expected (n, d), one row per point, none empty; {remedy}")
    return jnp.asarray(a)


def scores_at(x: Float[Array, "n d"], s: Any) -> Array:
    """One score per row of x; looks at shape and dtype only."""
    s = float_rows(s, "scores")
    if s.shape != x.shape:
        raise ValueError(
            f"scores of shape {s.shape} for samples of shape {x.shape}; expected the same shape; "
            "evaluate grad log p at each row, with jax.vmap(jax.grad(log_density))"
        )
    return s


def is_float(dtype: np.dtype) -> bool:
    """Whether particles may have this dtype: half precision has too few digits for sums over pairs."""
    return jnp.issubdtype(dtype, jnp.floating) and dtype.itemsize in (4, 8)
