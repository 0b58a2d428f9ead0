r"""Bandwidth rules under their own names, and ladders placed on the particles.

No two libraries agree on "the median heuristic". With R the set of squared distances r^2 it is taken over:

| rule | pairs | quantity | divided by |
|---|---|---|---|
| ``LiuWang`` | all n^2, the zeros too | med r^2 | log(n + 1) |
| ``NumPyro`` | all n^2, the zeros too | (med r)^2 | log n |
| ``BlackJAX`` | i < j | (med r)^2 | log n |
| ``PyroPerDimension`` | i < j, each coordinate by itself | lower median of r_d^2 | log(n + 1) |
| ``MatrixSVGDMedian`` | all n^2, the zeros too | med r^2 | 1 |

Each is a bandwidth h of exp(-r^2/h). The median is exact up to ``points`` particles; beyond, it is that of ``points``
of them at an even stride: deterministic, with a relative error of about 1.5/sqrt(points) in one dimension, 1.1/sqrt(points)
in two and 0.4/sqrt(points) in ten (normal draws).
Where all particles coincide, or there is only one, no distance says anything and h is 1.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from numbers import Real

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from polystein import _checks
from polystein._types import Scalar
from polystein.kernels.bank import Bank, octaves
from polystein.kernels.base import AbstractKernel
from polystein.kernels.pointwise import Stretch, Transformed
from polystein.kernels.radial import RBF
from polystein.numerics import order_statistic, pair_products


class AbstractBandwidth(eqx.Module):
    """A bandwidth h read off the particles: one, or one per dimension."""

    @abstractmethod
    def of(self, x: Float[Array, "n d"]) -> Float[Array, "..."]:
        """h; 0 where no distance says anything."""

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "..."]:
        """h for these particles, no gradient flowing through the choice; 1 where no distance says anything."""
        return _or_one(self.of(_checks.particles(x)))


def kernel_of(h: Float[Array, "..."]) -> AbstractKernel:
    """The Gaussian kernel of a bandwidth, or of one per dimension: exp(-sum_d (x_d - y_d)^2 / h_d).

    >>> [type(kernel_of(jnp.array(h))).__name__ for h in (4.0, [1.0, 4.0])]
    ['RBF', 'Transformed']
    """
    return Transformed(RBF(1.0), Stretch(jnp.sqrt(h))) if jnp.ndim(h) else RBF(h)


class LiuWang(AbstractBandwidth):
    """h = med r^2 / log(n + 1) over all n^2 pairs (Liu & Wang 2016, as published in code).

    >>> import jax.numpy as jnp
    >>> round(float(LiuWang()(jnp.array([[0.0], [1.0], [3.0]]))), 4)
    0.7213
    """

    points: int = eqx.field(static=True, converter=_checks.whole("points", least=2), default=128)

    def of(self, x: Float[Array, "n d"]) -> Scalar:
        """Median of squares."""
        return _median(_distances(x, self.points)) / math.log(x.shape[0] + 1)


class NumPyro(AbstractBandwidth):
    """h = (med r)^2 / log n over all n^2 pairs.

    >>> import jax.numpy as jnp
    >>> round(float(NumPyro()(jnp.array([[0.0], [1.0], [3.0]]))), 4)
    0.9102
    """

    points: int = eqx.field(static=True, converter=_checks.whole("points", least=2), default=128)

    def of(self, x: Float[Array, "n d"]) -> Scalar:
        """Square of the median."""
        return _median(jnp.sqrt(_distances(x, self.points))) ** 2 / math.log(max(x.shape[0], 2))


class BlackJAX(AbstractBandwidth):
    """h = (med r)^2 / log n over the pairs i < j.

    >>> import jax.numpy as jnp
    >>> round(float(BlackJAX()(jnp.array([[0.0], [1.0], [3.0]]))), 4)
    3.641
    """

    points: int = eqx.field(static=True, converter=_checks.whole("points", least=2), default=128)

    def of(self, x: Float[Array, "n d"]) -> Scalar:
        """Square of the median, no self-distances."""
        distances = jnp.sqrt(_distances(x, self.points))
        return _median(distances, zeros=False) ** 2 / math.log(max(x.shape[0], 2))


class PyroPerDimension(AbstractBandwidth):
    """h_d = lower median of r_d^2 over i < j, / log(n + 1), for each coordinate d: k = prod_d exp(-r_d^2 / h_d).

    >>> import jax.numpy as jnp
    >>> PyroPerDimension()(jnp.array([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])).round(3).tolist()
    [2.885, 2.885]
    """

    points: int = eqx.field(static=True, converter=_checks.whole("points", least=2), default=128)

    def of(self, x: Float[Array, "n d"]) -> Float[Array, "d"]:
        """A median per coordinate."""
        lower = lambda column: _median(_distances(column[:, None], self.points), zeros=False, lower=True)
        return jax.vmap(lower, 1)(x) / math.log(x.shape[0] + 1)


class MatrixSVGDMedian(AbstractBandwidth):
    """h = med r^2 over all n^2 pairs, undivided (Wang et al. 2019, as published in code).

    >>> import jax.numpy as jnp
    >>> float(MatrixSVGDMedian()(jnp.array([[0.0], [1.0], [3.0]])))
    1.0
    """

    points: int = eqx.field(static=True, converter=_checks.whole("points", least=2), default=128)

    def of(self, x: Float[Array, "n d"]) -> Scalar:
        """Median of squares."""
        return _median(_distances(x, self.points))


class AbstractPlacement(eqx.Module):
    """A bank that is placed anew on the particles at every step."""

    @abstractmethod
    def __len__(self) -> int:
        """How many kernels the bank will have."""

    @abstractmethod
    def at(self, x: Float[Array, "n d"]) -> Bank:
        """The bank for particles x."""


_maker = _checks.function(
    "a class or function that makes a kernel from a bandwidth",
    AbstractKernel,
    example="kernel=RBF, kernel=IMQ or kernel=lambda h: IMQ(h, beta=-0.3)",
)


class DyadicLadder(AbstractPlacement):
    """Bandwidths h 2^low, ..., h 2^high about the h of a bandwidth rule.

    ``kernel`` makes a kernel from a bandwidth in units of r^2, such as ``lambda h: Matern52(jnp.sqrt(h))`` where a length
    is wanted; the ladder of RBFs costs one exponential.

    >>> import jax.numpy as jnp
    >>> ladder = DyadicLadder(low=-1, high=1)
    >>> [round(float(kernel.h), 3) for kernel in ladder.at(jnp.array([[0.0], [1.0], [3.0]]))]
    [0.361, 0.721, 1.443]
    """

    rule: AbstractBandwidth = eqx.field(
        converter=_checks.instance(
            "a bandwidth rule", AbstractBandwidth, example="LiuWang(), or Bank.dyadic(h) for a bandwidth that is known"
        ),
        default_factory=LiuWang,
    )
    low: int = eqx.field(static=True, converter=_checks.whole("low", example=-4), default=-4)
    high: int = eqx.field(static=True, converter=_checks.whole("high", example=5), default=5)
    kernel: Callable[[Scalar], AbstractKernel] = eqx.field(static=True, converter=_maker, default=RBF)

    def __check_init__(self) -> None:
        Bank.dyadic(1.0, self.low, self.high)

    def __len__(self) -> int:
        return self.high - self.low + 1

    def at(self, x: Float[Array, "n d"]) -> Bank:
        """Centred on the rule's h."""
        h = self.rule(x)
        if h.shape:
            raise ValueError(
                f"{type(self.rule).__name__} gives bandwidths of shape {h.shape}; expected one number to centre a ladder on; "
                "use LiuWang(), or the rule by itself in SVGD"
            )
        family = octaves(h, self.low, self.high)
        return Bank(family) if self.kernel is RBF else Bank(*map(self.kernel, family.bandwidths))


class QuantileLadder(AbstractPlacement):
    """m bandwidths in geometric progression from the ``low`` to the ``high`` quantile of r^2 over i < j.

    >>> import jax.numpy as jnp
    >>> ladder = QuantileLadder(size=2, low=0.0, high=1.0)
    >>> [round(float(kernel.h), 3) for kernel in ladder.at(jnp.array([[0.0], [1.0], [3.0]]))]
    [1.0, 9.0]
    """

    size: int = eqx.field(static=True, converter=_checks.whole("size", least=1), default=10)
    low: float = eqx.field(static=True, default=0.05)
    high: float = eqx.field(static=True, default=0.95)
    kernel: Callable[[Scalar], AbstractKernel] = eqx.field(static=True, converter=_maker, default=RBF)
    points: int = eqx.field(static=True, converter=_checks.whole("points", least=2), default=128)

    def __check_init__(self) -> None:
        real = isinstance(self.low, Real) and isinstance(self.high, Real)
        if not real or not 0 <= self.low <= self.high <= 1:
            raise (ValueError if real else TypeError)(
                f"quantiles {self.low!r} to {self.high!r}; expected numbers 0 <= low <= high <= 1; try low=0.05, high=0.95"
            )

    def __len__(self) -> int:
        return self.size

    def at(self, x: Float[Array, "n d"]) -> Bank:
        """Spanning the distances there are."""
        x = _checks.particles(x)
        r2 = _distances(x, self.points)
        pairs = r2.shape[0] * (r2.shape[0] - 1) // 2
        at_quantile = lambda q: _or_one(_of_pairs(r2, round(q * (pairs - 1)))) if pairs else jnp.ones((), x.dtype)
        low, high = jnp.log(at_quantile(self.low)), jnp.log(at_quantile(self.high))
        return Bank(*map(self.kernel, jnp.exp(jnp.linspace(low, high, self.size))))


def _distances(x: Float[Array, "n d"], points: int) -> Float[Array, "k k"]:
    """r^2 of all pairs of at most ``points`` particles, taken at an even stride: n zeros and every other value twice."""
    n = x.shape[0]
    x = lax.stop_gradient(x)
    if n > points:
        x = x[np.arange(points) * n // points]
    return pair_products(x, x, x, x, jnp.eye(x.shape[0], dtype=bool))[0]


def _of_pairs(r2: Float[Array, "k k"], rank: int) -> Scalar:
    """The value at a rank among the pairs i < j."""
    return order_statistic(r2, r2.shape[0] + 2 * rank)


def _median(r2: Float[Array, "k k"], *, zeros: bool = True, lower: bool = False) -> Scalar:
    """The median of all pairs, or of those with i < j; 0 where there are none."""
    n = r2.shape[0]
    total = n * n if zeros else n * (n - 1) // 2
    if not total:
        return jnp.zeros((), r2.dtype)
    below, above = (total - 1) // 2, total // 2
    at_below = order_statistic(r2, below) if zeros else _of_pairs(r2, below)
    if lower or below == above:
        return at_below
    place = above if zeros else n + 2 * above
    greater = jnp.min(jnp.where(r2 > at_below, r2, jnp.inf))
    return (at_below + jnp.where(jnp.sum(r2 <= at_below) > place, at_below, greater)) / 2


def _or_one(h: Float[Array, "..."]) -> Float[Array, "..."]:
    return jnp.where(h > 0, h, 1)
