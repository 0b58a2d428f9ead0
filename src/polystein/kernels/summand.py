"""What a sweep over all pairs sums: the drift under a kernel, the Stein kernels of its members, or both at once."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein._types import Points, Scalar
from polystein.kernels.bank import Bank, Mixture
from polystein.kernels.base import AbstractKernel
from polystein.stein import Tile


class Summand(eqx.Module):
    """For every row y, summed over columns x_j: the drift under a kernel, and u^i and its square for each of its members.

        drift   sum_j k(x_j, y) s_j + (1 + I) grad_{x_j} k(x_j, y)
        sums    sum_j u^i(y, x_j) and sum_j u^i(y, x_j)^2, over the columns that are other, live points

    **Arguments:** the kernel, a ``Mixture`` where there are ``sums``; which of the two are wanted; the balance I, 0 where None.
    """

    kernel: AbstractKernel
    balance: Scalar | None = None
    drift: bool = eqx.field(static=True, default=True, kw_only=True)
    sums: bool = eqx.field(static=True, default=False, kw_only=True)

    def __call__(self, rows: Points, cols: Points) -> tuple[Any, Any]:
        """What a block of pairs contributes to its rows, the drift (a, d) and two sums (a, m); None for what is not wanted."""
        tile = Tile.of(rows, cols)
        sums = row_sums(self.kernel.bank, tile) if self.sums and isinstance(self.kernel, Mixture) else None
        return self._drift(tile) if self.drift else None, sums

    def _drift(self, tile: Tile) -> Float[Array, "a d"]:
        """A drift is linear in the scores: dividing them by 1 + I, and multiplying all, strengthens the repulsion alone."""
        if self.balance is None:
            return self.kernel.drift(tile)
        weaker = eqx.tree_at(lambda t: t.cols.s, tile, tile.cols.s / (1 + self.balance))
        return (1 + self.balance) * self.kernel.drift(weaker)


def row_sums(bank: Bank, tile: Tile) -> tuple[Float[Array, "a m"], Float[Array, "a m"]]:
    """Per row of a tile: the sums of u^i and of its square over the columns that are other, live points."""
    other = tile.among_live(jnp.where(tile.same, 0, jnp.ones_like(tile.r2)))
    u = jnp.where(other > 0, bank.stein(tile), 0)
    return jnp.sum(u, 2).T, jnp.sum(u**2, 2).T
