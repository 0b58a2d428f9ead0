"""One sweep over all pairs, for every kernel of a bank: what the statistics of all pairs are read off."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein._types import Points, Scalar
from polystein.kernels import Bank, Summand, check_kernels
from polystein.pairs import AbstractPairs


class Sums(eqx.Module):
    """What one sweep over all pairs leaves behind, for every kernel i and row x: sums over the other points x'."""

    others: Float[Array, "m n"]  # sum over x' != x of u^i(x, x')
    squares: Float[Array, "m n"]  # sum over x' != x of u^i(x, x')^2
    diagonal: Float[Array, "m n"]  # u^i(x, x)
    count: Scalar  # n, the points that took part
    independent: bool = eqx.field(static=True, default=False)  # whether a pair's two scores came from different batches

    @property
    def v(self) -> Float[Array, "m"]:
        """V_i = (1/n^2) sum_{x,x'} u^i: biased by E u(x,x)/n, ordered by bandwidth alone (erratum 5)."""
        return jnp.sum(self.others + self.diagonal, 1) / self.count**2

    @property
    def u(self) -> Float[Array, "m"]:
        """U_i = sum_{x != x'} u^i / (n (n - 1)): unbiased, may be negative; nan for one point."""
        return jnp.sum(self.others, 1) / (self.count * (self.count - 1))

    @property
    def null_deviation(self) -> Float[Array, "m"]:
        """sqrt(2 E u^2) / n: the s.d. of U_i where q = p."""
        return jnp.sqrt(2 * jnp.sum(self.squares, 1) / (self.count * (self.count - 1))) / self.count

    @property
    def power_deviation(self) -> Float[Array, "m"]:
        """2 sqrt(Var_x E_x' u) / sqrt(n): the s.d. of U_i to first order where q differs from p (the power criterion)."""
        return 2 * jnp.sqrt(self._between / self.count)

    @property
    def standard_error(self) -> Float[Array, "m"]:
        """S.d. of U_i, by zeta_2 = Var u and zeta_1 = Var_x E_x' u, less the noise that a finite row adds to it."""
        n = self.count
        mean_square = jnp.sum(self.squares, 1) / (n * (n - 1))
        zeta_2 = jnp.maximum(mean_square - self.u**2, 0)
        zeta_1 = jnp.maximum(self._between - zeta_2 / (n - 1), 0)
        return jnp.sqrt(hoeffding(n, zeta_1, zeta_2))

    @property
    def _between(self) -> Float[Array, "m"]:
        """Variance over x of the row means, over live rows (a dead row's sums are zero)."""
        means = self.others / (self.count - 1)
        return jnp.maximum(jnp.sum(means**2, 1) / self.count - self.u**2, 0) * self.count / (self.count - 1)


def hoeffding(n: Scalar | int, zeta_1: Float[Array, "m"], zeta_2: Float[Array, "m"]) -> Float[Array, "m"]:
    """Var U = (4 (n - 2) zeta_1 + 2 zeta_2) / (n (n - 1)), with zeta_1 = Cov(u(x, x'), u(x, x'')) and zeta_2 = Var u."""
    return (4 * (n - 2) * zeta_1 + 2 * zeta_2) / n / (n - 1)


def gather(bank: Bank, points: Points, rows: tuple[Float[Array, "n m"], Float[Array, "n m"]]) -> Sums:
    """Per-row sums of a finished sweep, with the diagonal, as ``Sums``; every sweep ends here, so here kernels are checked."""
    check_kernels(bank)
    live = jnp.ones_like(points.s[:, 0]) if points.live is None else points.live.astype(points.s.dtype)
    alive = lambda a: jnp.where(live > 0, a, 0)
    halves = points.left is not None and points.right is not None
    return Sums(alive(rows[0].T), alive(rows[1].T), alive(bank.diagonal(points)), points.count, halves)


def sweep(bank: Bank, points: Points, pairs: AbstractPairs) -> Sums:
    """All pairs once, for every kernel of the bank."""
    kernels = Summand(bank.mix(jnp.ones(len(bank))), drift=False, sums=True)
    return gather(bank, points, pairs.sum(kernels, points, points)[1])
