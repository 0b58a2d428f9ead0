r"""Kernel Stein discrepancies of a sample from a target, for one kernel or a whole bank in one sweep.

    KSD       S_k(q || p)  = E_{x,x'~q} u_p(x, x') = |phi*|^2_{H^d}             (KSD, squared: erratum 2)
    MKSD      S_{k_w}      = sum_i w_i S_{k_i}                                  (Eq_MKSD)
    maxMKSD   max_{w >= 0, |w| = 1} S_{k_w} = |S_+|_2, or max_i S_i where no S_i > 0   (maxMKSD, erratum 45)

Each can be estimated by several statistics, which are never the same number: say which (errata 5 and 6).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein._checks import sample_with_scores, smooth_kernel, whole
from polystein._types import Key, Points, Scalar
from polystein.kernels import AbstractKernel, Bank
from polystein.pairs import AbstractPairs, default_pairs
from polystein.stein import Tile


class Sums(eqx.Module):
    """What one sweep over all pairs leaves behind, for every kernel i and row x: sums over the other points x'."""

    others: Float[Array, "m n"]  # sum over x' != x of u^i(x, x')
    squares: Float[Array, "m n"]  # sum over x' != x of u^i(x, x')^2
    diagonal: Float[Array, "m n"]  # u^i(x, x)
    count: Scalar  # n, the points that took part

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
        """S.d. of U_i by Hoeffding's decomposition: Var U = (4 (n - 2) zeta_1 + 2 zeta_2) / (n (n - 1)).

        zeta_2 = Var u; zeta_1 = Var_x E_x' u, from which the noise that a finite row adds is taken off.
        """
        n = self.count
        mean_square = jnp.sum(self.squares, 1) / (n * (n - 1))
        zeta_2 = jnp.maximum(mean_square - self.u**2, 0)
        zeta_1 = jnp.maximum(self._between - zeta_2 / (n - 1), 0)
        return jnp.sqrt((4 * (n - 2) * zeta_1 + 2 * zeta_2) / (n * (n - 1)))

    @property
    def _between(self) -> Float[Array, "m"]:
        """Variance over x of the row means, over live rows (a dead row's sums are zero)."""
        means = self.others / (self.count - 1)
        return jnp.maximum(jnp.sum(means**2, 1) / self.count - self.u**2, 0) * self.count / (self.count - 1)


def row_sums(bank: Bank, tile: Tile) -> tuple[Float[Array, "a m"], Float[Array, "a m"]]:
    """Per row of a tile: the sums of u^i and of its square over the columns that are other, live points."""
    other = tile.among_live(jnp.where(tile.same, 0, jnp.ones_like(tile.r2)))
    u = jnp.where(other > 0, bank.stein(tile), 0)
    return jnp.sum(u, 2).T, jnp.sum(u**2, 2).T


def gather(bank: Bank, points: Points, rows: tuple[Float[Array, "n m"], Float[Array, "n m"]]) -> Sums:
    """Per-row sums of a finished sweep, with the diagonal, as ``Sums``."""
    live = jnp.ones_like(points.s[:, 0]) if points.live is None else points.live.astype(points.s.dtype)
    alive = lambda a: jnp.where(live > 0, a, 0)
    return Sums(alive(rows[0].T), alive(rows[1].T), alive(bank.diagonal(points)), points.count)


def sweep(bank: Bank, points: Points, pairs: AbstractPairs) -> Sums:
    """All pairs once, for every kernel of the bank."""
    return gather(bank, points, pairs.sum(lambda rows, cols: row_sums(bank, Tile.of(rows, cols)), points, points))


@runtime_checkable
class Scored(Protocol):
    """What can tell the score of a sample, such as a ``Target``."""

    def score(self, x: Float[Array, "n d"], /) -> Float[Array, "n d"]:
        """grad log p at every row."""
        ...


class Estimate(NamedTuple):
    """An estimated discrepancy and its standard error: a number each for a kernel, an array over a bank."""

    value: Array
    standard_error: Array


class AbstractStatistic(eqx.Module):
    """How E_{x,x'~q} u_p(x, x') is estimated from points."""

    @abstractmethod
    def estimate(self, bank: Bank, points: Points, pairs: AbstractPairs) -> Estimate:
        """One value and standard error per kernel."""


class AbstractSweep(AbstractStatistic):
    """A statistic of all pairs: read off the sums that a step of SVGD has at hand anyway."""

    @abstractmethod
    def read(self, sums: Sums) -> Float[Array, "m"]:
        """The value per kernel."""

    def estimate(self, bank: Bank, points: Points, pairs: AbstractPairs) -> Estimate:
        """One sweep; V and U share their standard error to first order."""
        sums = sweep(bank, points, pairs)
        return Estimate(self.read(sums), sums.standard_error)


class V(AbstractSweep):
    """The mean over all n^2 pairs, self-terms too: nonnegative, biased upward by E u(x, x) / n.

    >>> V()
    V()
    """

    def read(self, sums: Sums) -> Float[Array, "m"]:
        """V_i."""
        return sums.v


class U(AbstractSweep):
    """The mean over the n (n - 1) pairs of different points: unbiased for exact scores.

    >>> U()
    U()
    """

    def read(self, sums: Sums) -> Float[Array, "m"]:
        """U_i."""
        return sums.u


class TwoBatch(AbstractSweep):
    """U with a pair's two scores from two independent minibatches: unbiased where scores are noisy (erratum 14).

    One batch shared by both would add tr Cov(s_hat) E k to every S_i. The halves must come from independent draws or
    independent permutations: two halves of one shuffled epoch are negatively correlated.

    >>> TwoBatch()
    TwoBatch()
    """

    def read(self, sums: Sums) -> Float[Array, "m"]:
        """U_i; the halves are in the products already."""
        return sums.u

    def estimate(self, bank: Bank, points: Points, pairs: AbstractPairs) -> Estimate:
        """As U, over points that carry two halves."""
        if points.left is None or points.right is None:
            raise ValueError(
                "TwoBatch() was given points with one score each; expected two independent half-batch scores; "
                "pass the pair (first, second), or use U() where scores are exact"
            )
        sums = sweep(bank, points, pairs)
        return Estimate(self.read(sums), sums.standard_error)


class LinearTime(AbstractStatistic):
    """The mean of u over the pairs (1,2), (3,4), ...: O(n), unbiased for independent draws, much noisier than U.

    >>> LinearTime()
    LinearTime()
    """

    def estimate(self, bank: Bank, points: Points, pairs: AbstractPairs) -> Estimate:
        """Neighbours in the order given; an odd last point is left out."""
        del pairs
        half = points.x.shape[0] // 2
        first, second = (jax.tree.map(lambda a, k=k: a[k : 2 * half : 2], points) for k in (0, 1))
        u = bank.stein_pairs(first, second)
        return _mean(u)


class Incomplete(AbstractStatistic):
    """The mean of u over ``size`` random pairs of different points, drawn with replacement by ``key``.

    >>> import jax
    >>> Incomplete(jax.random.key(0), size=100).size
    100
    """

    key: Key
    size: int = eqx.field(static=True, converter=whole("size", least=2), default=10_000)

    def estimate(self, bank: Bank, points: Points, pairs: AbstractPairs) -> Estimate:
        """Uniform pairs i != j; the standard error is of the draw of pairs and of the sample's first-order part."""
        del pairs
        n = points.x.shape[0]
        key_i, key_j = jax.random.split(self.key)
        i = jax.random.randint(key_i, (self.size,), 0, n)
        j = (i + jax.random.randint(key_j, (self.size,), 1, n)) % n
        u = bank.stein_pairs(jax.tree.map(lambda a: a[i], points), jax.tree.map(lambda a: a[j], points))
        return _mean(u)


def _mean(u: Float[Array, "m pairs"]) -> Estimate:
    return Estimate(jnp.mean(u, 1), jnp.std(u, 1, ddof=1) / jnp.sqrt(u.shape[1]))


def ksd(
    samples: Float[Array, "n d"],
    target: Scored | Float[Array, "n d"] | tuple[Float[Array, "n d"], Float[Array, "n d"]],
    kernel: AbstractKernel | Bank,
    *,
    statistic: AbstractStatistic | None = None,
    pairs: AbstractPairs | None = None,
) -> Estimate:
    r"""Kernel Stein discrepancy S_k(q || p) = E_{x,x'~q} u_p(x, x') of a sample from q: the square of |phi*|.

    **Arguments:**

    - ``samples``: x, one row per draw.
    - ``target``: a ``Target``; or the scores grad log p at each row; or, for ``TwoBatch``, a pair of independent half-batch
      scores.
    - ``kernel``: a kernel, or a bank: then one value per kernel.
    - ``statistic``: ``U()`` by default; ``V()``, ``LinearTime()``, ``Incomplete(key)``, ``TwoBatch()``.
    - ``pairs``: ``Dense()`` or ``Tiled()``; chosen by the number of rows if not given.

    A discrepancy that is to tell whether a sample converges wants an IMQ kernel (erratum 25).

    >>> import jax, jax.numpy as jnp
    >>> from polystein import IMQ, ksd
    >>> x = jax.random.normal(jax.random.key(0), (500, 2))
    >>> right, shifted = ksd(x, -x, IMQ()), ksd(x + 1, -(x + 1), IMQ())
    >>> bool(abs(right.value) < 3 * right.standard_error), bool(shifted.value > 10 * shifted.standard_error)
    (True, True)
    """
    bank = kernel if isinstance(kernel, Bank) else Bank(kernel)
    samples, scores = sample_with_scores(samples, target)
    for member in bank:
        smooth_kernel(member, samples)
    if isinstance(scores, tuple):
        points = Points.of(samples, (scores[0] + scores[1]) / 2, halves=scores)
    else:
        points = Points.of(samples, scores)
    found = _estimate(statistic or U(), bank, points, pairs or default_pairs(samples.shape[0]))
    return found if isinstance(kernel, Bank) else Estimate(found.value[0], found.standard_error[0])


@eqx.filter_jit
def _estimate(statistic: AbstractStatistic, bank: Bank, points: Points, pairs: AbstractPairs) -> Estimate:
    return statistic.estimate(bank, points, pairs)


class MaxMKSD(NamedTuple):
    """The largest MKSD over the nonnegative unit sphere, and the weights that attain it."""

    value: Scalar
    w: Float[Array, "m"]


def mksd(
    samples: Float[Array, "n d"],
    target: Scored | Float[Array, "n d"] | tuple[Float[Array, "n d"], Float[Array, "n d"]],
    bank: Bank,
    w: Float[Array, "m"],
    *,
    statistic: AbstractStatistic | None = None,
    pairs: AbstractPairs | None = None,
) -> Estimate:
    """Multiple kernel Stein discrepancy sum_i w_i S_{k_i}: the KSD of the kernel sum_i w_i k_i, with its standard error.

    >>> import jax, jax.numpy as jnp
    >>> from polystein import Bank, mksd
    >>> x = jax.random.normal(jax.random.key(0), (100, 2)) + 1
    >>> bool(mksd(x, -x, Bank.dyadic(1.0, 0, 1), jnp.array([0.6, 0.8])).value > 0)
    True
    """
    return ksd(samples, target, bank.mix(w), statistic=statistic, pairs=pairs)


def max_mksd(
    samples: Float[Array, "n d"],
    target: Scored | Float[Array, "n d"] | tuple[Float[Array, "n d"], Float[Array, "n d"]],
    bank: Bank,
    *,
    statistic: AbstractStatistic | None = None,
    pairs: AbstractPairs | None = None,
) -> MaxMKSD:
    """max of MKSD over {w >= 0, |w|_2 = 1}: |S_+|_2 at S_+ / |S_+|_2 where some S_i > 0, else max_i S_i at that vertex.

    >>> import jax, jax.numpy as jnp
    >>> from polystein import Bank, max_mksd
    >>> x = jax.random.normal(jax.random.key(0), (100, 2)) + 1
    >>> float(jnp.linalg.norm(max_mksd(x, -x, Bank.dyadic(1.0, -1, 1)).w).round(4))
    1.0
    """
    return maximise(ksd(samples, target, bank, statistic=statistic, pairs=pairs).value)


def maximise(s: Float[Array, "m"]) -> MaxMKSD:
    """max <w, S> over the nonnegative unit sphere, in closed form (errata 1, 4 and 45).

    >>> import jax.numpy as jnp
    >>> [a.round(2).tolist() for a in maximise(jnp.array([3.0, 4.0, -1.0]))]
    [5.0, [0.6, 0.8, 0.0]]
    >>> [a.round(2).tolist() for a in maximise(jnp.array([-3.0, -1.0]))]
    [-1.0, [0.0, 1.0]]
    """
    gain = jnp.maximum(s, 0)
    largest = jnp.max(gain)
    some = largest > 0
    unit = gain / jnp.where(some, largest, 1)
    norm = jnp.linalg.norm(jnp.where(some, unit, 1))
    vertex = jnp.arange(s.shape[0]) == jnp.argmax(s)
    return MaxMKSD(jnp.where(some, norm * largest, jnp.max(s)), jnp.where(some, unit / norm, vertex.astype(s.dtype)))
