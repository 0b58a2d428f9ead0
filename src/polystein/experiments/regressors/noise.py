r"""Noise of a mixture of networks, fitted to rows that they have not seen.

y = f + noise,    f = mean + t (f_m - mean) of a network m,    noise ~ (1/5) sum_l N(0, (sigma e^{s z_l})^2)

z_l = Phi^-1((l + 1/2) / 5): s = 0 is a normal, larger s has heavier tails. sigma is found by expectation maximisation,

sigma^2 <- mean over rows of sum_{m,l} p(m, l | y) (y - f_m)^2 e^{-2 s z_l},

for every spread t and tail s of a grid; of these the pair of largest likelihood is taken.
"""

from __future__ import annotations

from itertools import product
from statistics import NormalDist
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from polystein._types import Scalar

SPREADS = (0.0, 0.5, 1.0, 1.5)
TAILS = (0.0, 0.3, 0.6, 0.9)
LEVELS = tuple(NormalDist().inv_cdf((level + 0.5) / 5) for level in range(5))
ROUNDS = 12
LEAST = 1e-3  # sigma, in units of the targets' standard deviation


class Noise(NamedTuple):
    """sigma, tail s and spread t."""

    sigma: Scalar
    tail: Scalar
    spread: Scalar


def components(noise: Noise, f: Float[Array, "M N"]) -> tuple[Float[Array, "M5 N"], Float[Array, "M5 N"]]:
    """Means and standard deviations of the 5M normals, each of weight 1/(5M).

    >>> mean, sd = components(Noise(jnp.array(2.0), jnp.array(0.0), jnp.array(1.0)), jnp.array([[1.0], [3.0]]))
    >>> mean.ravel().tolist() == 5 * [1.0] + 5 * [3.0], sd.ravel().tolist() == 10 * [2.0]
    (True, True)
    """
    centre = jnp.mean(f, 0, keepdims=True)
    mean = jnp.repeat(centre + noise.spread * (f - centre), len(LEVELS), 0)
    sd = noise.sigma * jnp.exp(noise.tail * jnp.array(LEVELS, f.dtype))
    return mean, jnp.broadcast_to(jnp.tile(sd, f.shape[0])[:, None], mean.shape)


def row_likelihoods(noise: Noise, f: Float[Array, "M N"], y: Float[Array, "N"]) -> Float[Array, "N"]:
    """log p(y) of every row."""
    return _joint(noise, f, y)[0]


def refined(noise: Noise, f: Float[Array, "M N"], y: Float[Array, "N"]) -> Noise:
    """One round of expectation maximisation: the likelihood of all rows does not fall."""
    whole, each, z2 = _joint(noise, f, y)
    share = jnp.exp(each - whole[None])
    sigma = noise.sigma * jnp.sqrt(jnp.mean(jnp.sum(share * z2, 0)))
    return noise._replace(sigma=jnp.maximum(sigma, LEAST))


def fitted(f: Float[Array, "M N"], y: Float[Array, "N"]) -> Noise:
    """The likeliest noise for predictions f of rows that were not seen."""
    error = jnp.sqrt(jnp.mean((jnp.mean(f, 0) - y) ** 2))

    def one(choice: Float[Array, "2"]) -> tuple[Noise, Scalar]:
        start = Noise(jnp.maximum(error * jnp.exp(-choice[0]), LEAST), choice[0], choice[1])
        found = lax.fori_loop(0, ROUNDS, lambda _, noise: refined(noise, f, y), start)
        return found, jnp.mean(row_likelihoods(found, f, y))

    found, score = lax.map(one, jnp.array(list(product(TAILS, SPREADS)), f.dtype))
    best = jnp.argmax(score)
    return jax.tree.map(lambda part: part[best], found)


def _joint(
    noise: Noise, f: Float[Array, "M N"], y: Float[Array, "N"]
) -> tuple[Float[Array, "N"], Float[Array, "M5 N"], Float[Array, "M5 N"]]:
    """log p(y), log p(y, m, l), and the squared residuals in units of each component's standard deviation."""
    mean, sd = components(noise, f)
    z2 = ((y[None] - mean) / sd) ** 2
    each = -z2 / 2 - jnp.log(sd) - jnp.log(2 * jnp.pi) / 2 - jnp.log(float(mean.shape[0]))
    return jax.nn.logsumexp(each, 0), each, z2
