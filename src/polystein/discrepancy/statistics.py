"""How a discrepancy is estimated from a sample: several statistics, which are never the same number (errata 5, 6, 14)."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein._checks import instance, random_key, whole
from polystein._types import Key, Points
from polystein.discrepancy.sums import Sums, hoeffding, sweep
from polystein.kernels import Bank
from polystein.pairs import AbstractPairs


class Estimate(NamedTuple):
    """An estimated discrepancy and its standard error: a number each for a kernel, an array over a bank."""

    value: Array
    standard_error: Array


class AbstractStatistic(eqx.Module):
    """How E_{x,x'~q} u_p(x, x') is estimated from points, of which it needs at ``least`` so many."""

    least: ClassVar[int]

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

    least: ClassVar[int] = 1

    def read(self, sums: Sums) -> Float[Array, "m"]:
        """V_i."""
        return sums.v


class U(AbstractSweep):
    """The mean over the n (n - 1) pairs of different points: unbiased for exact scores.

    >>> U()
    U()
    """

    least: ClassVar[int] = 2

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

    least: ClassVar[int] = 2

    def read(self, sums: Sums) -> Float[Array, "m"]:
        """U_i; the halves are in the products already."""
        if not sums.independent:
            raise ValueError(
                "TwoBatch() was given points with one score each; expected two independent half-batch scores; "
                "pass the pair (first, second), or use U() where scores are exact"
            )
        return sums.u


class LinearTime(AbstractStatistic):
    """The mean of u over the pairs (1,2), (3,4), ...: O(n), unbiased for independent draws, much noisier than U.

    >>> LinearTime()
    LinearTime()
    """

    least: ClassVar[int] = 4

    def estimate(self, bank: Bank, points: Points, pairs: AbstractPairs) -> Estimate:
        """Neighbours in the order given; an odd last point is left out."""
        del pairs
        half = points.x.shape[0] // 2
        first, second = (jax.tree.map(lambda a, k=k: a[k : 2 * half : 2], points) for k in (0, 1))
        u = bank.stein_pairs(first, second)
        return Estimate(jnp.mean(u, 1), jnp.std(u, 1, ddof=1) / jnp.sqrt(half))


class Incomplete(AbstractStatistic):
    """The mean of u over ``size`` random pairs of different points, drawn with replacement by ``key``.

    Its variance is that of U and that of the draw, zeta_2 / size. Pairs that share a point tell zeta_1: two of them are the
    same pair once in n - 1 times, which is taken off.

    >>> import jax
    >>> Incomplete(jax.random.key(0), size=100).size
    100
    """

    least: ClassVar[int] = 2
    key: Key = eqx.field(converter=random_key)
    size: int = eqx.field(static=True, converter=whole("size", least=2), default=10_000)

    def estimate(self, bank: Bank, points: Points, pairs: AbstractPairs) -> Estimate:
        """Uniform pairs i != j."""
        del pairs
        n = points.x.shape[0]
        key_i, key_j = jax.random.split(self.key)
        i = jax.random.randint(key_i, (self.size,), 0, n)
        j = (i + jax.random.randint(key_j, (self.size,), 1, n)) % n
        u = bank.stein_pairs(jax.tree.map(lambda a: a[i], points), jax.tree.map(lambda a: a[j], points))
        mean, zeta_2 = jnp.mean(u, 1), jnp.var(u, 1, ddof=1)
        at_points = lambda a: jnp.zeros((a.shape[0], n), u.dtype).at[:, i].add(a).at[:, j].add(a)
        sharing = lambda a: jnp.sum(at_points(a) ** 2 - at_points(a**2), 1)  # sum of a a' over pairs that share a point
        off = u - mean[:, None]
        shared = sharing(off) / jnp.maximum(sharing(jnp.ones_like(off[:1])), 1)
        zeta_1 = jnp.maximum((n - 1) * shared - zeta_2, 0) / max(n - 2, 1)
        return Estimate(mean, jnp.sqrt(zeta_2 / self.size + hoeffding(n, zeta_1, zeta_2)))


as_statistic = instance("a statistic", AbstractStatistic, example="U() or V()")
