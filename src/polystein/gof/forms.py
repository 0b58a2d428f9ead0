"""Quadratic forms of Stein kernels in many signs at once: the discrepancies of a sample and of all its bootstrap draws."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein._types import Points
from polystein.kernels import Bank
from polystein.numerics import every_digit
from polystein.pairs import over_unordered
from polystein.stein import Tile


class Forms(NamedTuple):
    """U_i of the sample (column 0) and of every bootstrap draw, and the s.d. of U_i over all signs, for each kernel i."""

    u: Float[Array, "m c"]
    deviation: Float[Array, "m"]

    @property
    def spread(self) -> Float[Array, "m"]:
        """The root mean square of the draws: their s.d. whatever way the signs were drawn."""
        return jnp.sqrt(jnp.mean(self.u[:, 1:] ** 2, 1))

    @property
    def p_values(self) -> Float[Array, "m"]:
        """(1 + the number of draws at least as large) / (1 + the number of draws), for each kernel by itself."""
        return jnp.mean(self.u >= self.u[:, :1], 1)


@every_digit
def quadratic_forms(bank: Bank, points: Points, signs: Float[Array, "n b"]) -> Forms:
    r"""sum_{i != j} w_i u(x_i, x_j) w_j / (n (n - 1)) for w = 1 and for every column w of ``signs``, in one sweep.

    The tiles are multiplied into all columns at once; memory is O(n (d + b)) and a tile, never n x n.

    >>> import jax.numpy as jnp
    >>> from polystein import IMQ, Bank, Points
    >>> x = jnp.array([[0.0], [1.0], [3.0]])
    >>> forms = quadratic_forms(Bank(IMQ()), Points.of(x, -x), -jnp.ones((3, 1)))
    >>> bool(forms.u[0, 0] == forms.u[0, 1])
    True
    """
    n, dtype = points.x.shape[0], points.x.dtype
    if points.left is not None:
        raise ValueError(
            "two half-batch scores were given; a test's null distribution is known for exact scores only; "
            "expected one score a row; pass those of the whole data"
        )
    w = jnp.concatenate([jnp.ones((n, 1), dtype), signs], 1)
    pads = min(n, n // 128 + 2)  # mirrored points coincide with none, which would cost differences instead of products
    mirrored = Points(2 * jnp.mean(points.x, 0, keepdims=True) - points.x[:pads], points.s[:pads], n + jnp.arange(pads))

    def block(rows: tuple[Points, Array], cols: tuple[Points, Array]) -> tuple[Float[Array, "m c"], Float[Array, "m"]]:
        (y, v), (x, w) = rows, cols
        tile = Tile.of(y, x)
        u = bank.stein(tile) * jnp.where(tile.same, 0, v[:, :1] * w[:, 0][None, :])[None]
        forms = jnp.sum((u @ w) * v[None], 1)
        return forms, jnp.sum(u**2, (1, 2))

    total, squares = over_unordered(block, (points, w), (mirrored, jnp.zeros((pads, w.shape[1]), dtype)))
    pairs = n * (n - 1)
    return Forms(total / pairs, jnp.sqrt(2 * squares) / pairs)
