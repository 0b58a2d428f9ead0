"""Signs for a wild bootstrap: what a discrepancy would have been by chance, were the sample from the target.

    U*_b = sum_{i != j} w_ib u(x_i, x_j) w_jb / (n (n - 1)),   w_ib = +-1

Under the target u is degenerate, E u(x, .) = 0, and U* is distributed as U is. For draws of a Markov chain the signs have to
be as correlated as the draws: w keeps its sign from one draw to the next but for flips of probability a, so that
Cov(w_i, w_j) = (1 - 2a)^|i-j| (Leucht & Neumann 2013; Chwialkowski, Strathmann & Gretton 2016). Independent draws: a = 1/2.
"""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein._checks import instance, whole, within
from polystein._types import Key, Points, Scalar


class AbstractBootstrap(eqx.Module):
    """How signs of a wild bootstrap are drawn for a sample."""

    @property
    @abstractmethod
    def chains(self) -> bool:
        """Whether draws may repeat each other, as those of a chain do."""

    @abstractmethod
    def signs(self, key: Key, points: Points, size: int) -> Float[Array, "n size"]:
        """+1 or -1 for every point, ``size`` times."""


class WildBootstrap(AbstractBootstrap):
    """Independent signs, for independent draws.

    >>> import jax, jax.numpy as jnp
    >>> from polystein import Points
    >>> x = jnp.arange(100.0)[:, None]
    >>> signs = WildBootstrap().signs(jax.random.key(0), Points.of(x, -x), 50)
    >>> signs.shape, jnp.unique(signs).tolist()
    ((100, 50), [-1.0, 1.0])
    """

    @property
    def chains(self) -> bool:
        """Independent draws of a density never repeat."""
        return False

    def signs(self, key: Key, points: Points, size: int) -> Float[Array, "n size"]:
        """Thirty-two signs from each random word."""
        return 1 - 2 * _bits(key, points.x.shape[0], size).astype(points.x.dtype)


class MarkovBootstrap(AbstractBootstrap):
    """Signs that flip from one draw to the next with probability ``flip``, for draws in the order of a Markov chain.

    **Arguments:**

    - ``flip``: a in (0, 1/2]; estimated where not given: with rho the largest lag-one autocorrelation of a coordinate of x or s
      beyond what chance gives, 1 - 2a = exp(-1 / l), l = 1.1447 (4 rho^2 n / (1 - rho^2)^2)^(1/3) (the length that Andrews 1991
      finds best for an autoregression).
    - ``chains``: how many chains of equal length follow one another in the sample; signs start anew with each.

    >>> import jax, jax.numpy as jnp
    >>> from polystein import Points
    >>> x = jnp.sin(jnp.arange(200.0) / 20)[:, None]
    >>> signs = MarkovBootstrap(flip=0.1).signs(jax.random.key(0), Points.of(x, -x), 100)
    >>> round(float(jnp.mean(signs[1:] * signs[:-1])), 1)
    0.8
    """

    flip: Scalar | None = None
    count: int = eqx.field(static=True, default=1)

    def __init__(self, flip: float | Scalar | None = None, *, chains: int = 1):
        self.flip = None if flip is None else within("flip", 0.0, 0.5 + 1e-6)(flip)
        self.count = whole("chains", least=1)(chains)

    @property
    def chains(self) -> bool:
        """A chain that stays where it is repeats its draw."""
        return True

    def signs(self, key: Key, points: Points, size: int) -> Float[Array, "n size"]:
        """A first sign by chance in every chain, then flips."""
        n, dtype = points.x.shape[0], points.x.dtype
        if n % self.count:
            raise ValueError(
                f"{n} samples do not divide over {self.count} chains; expected chains of equal length, one after another; "
                f"drop {n % self.count} samples, or say how many chains there are"
            )
        flip = estimated_flip(points, self.count) if self.flip is None else self.flip.astype(dtype)
        first, later = jax.random.split(key)
        start = 1 - 2 * _bits(first, self.count, size).astype(dtype)
        flips = jax.random.bernoulli(later, flip, (self.count, n // self.count - 1, size))
        turns = jnp.concatenate([start[:, None], 1 - 2 * flips.astype(dtype)], 1)
        return jnp.cumprod(turns, 1).reshape(n, size)


as_bootstrap = instance("a bootstrap", AbstractBootstrap, example="WildBootstrap(), or MarkovBootstrap() for draws of a chain")


def estimated_flip(points: Points, chains: int = 1) -> Scalar:
    """The flip probability that suits a chain's autocorrelation; 1/2 where none is to be seen.

    >>> import jax, jax.numpy as jnp
    >>> from polystein import Points
    >>> x = jax.random.normal(jax.random.key(0), (500, 2))
    >>> float(estimated_flip(Points.of(x, -x)))
    0.5
    """
    n = points.x.shape[0]
    a = jnp.concatenate([points.x, points.s], 1)
    a = a - jnp.mean(a, 0, keepdims=True)
    a = a.reshape(chains, n // chains, -1)
    own = jnp.sum(a**2, (0, 1))
    rho = jnp.max(jnp.abs(jnp.sum(a[:, 1:] * a[:, :-1], (0, 1))) / jnp.where(own > 0, own, 1))
    chance = jnp.sqrt(2 * jnp.log(2.0 * a.shape[-1]) / n)
    rho = jnp.where(rho > chance, jnp.minimum(rho, 1 - 1 / n), 0)
    length = 1.1447 * jnp.cbrt(4 * rho**2 * n / (1 - rho**2) ** 2)
    return (1 - jnp.exp(-1 / length)) / 2


def _bits(key: Key, n: int, size: int) -> Array:
    words = jax.random.bits(key, (n, -(-size // 32)), jnp.uint32)
    unpacked = (words[:, :, None] >> jnp.arange(32, dtype=jnp.uint32)[None, None]) & 1
    return unpacked.reshape(n, -1)[:, :size]
