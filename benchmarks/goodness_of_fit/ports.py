r"""The tests of other projects, from the mathematics of their papers, for many repetitions in one program.

    KSDAgg        U_i of IMQ kernels of lengths (L/1)^(i/(N-1)) / d, L = max r; quantiles from B1 draws of a wild bootstrap, the
                  correction of the level from B2 others by bisection          (Schrab, Guedj & Gretton 2022)
    KSD, IMQ      n V of (1 + r^2)^(-1/2), wild bootstrap                       (Gorham & Mackey 2017; kernel-gof)
    KSD, Gauss    n V of exp(-r^2 / 2 m^2), m the median of r                   (Chwialkowski et al. 2016; kernel-gof)
    linear KSD    mean of u over n / 2 pairs, asymptotically normal             (Liu, Lee & Jordan 2016; kernel-gof)
    FSSD-opt      5 locations and a width found on a fifth of the draws         (Jitkrittum et al. 2017; kernel-gof)

u(x, y) = phi s.s' - 2 phi' (s - s').(x - y) - 2 d phi' - 4 r^2 phi''  for a kernel phi(r^2), here with s = s(x), s' = s(y).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float

LEVEL = 0.05
B1, B2, BISECTIONS, KERNELS = 2000, 2000, 50, 10  # of KSDAgg
DRAWS = 1000  # of kernel-gof's wild bootstrap
LOCATIONS, TRAIN, WIDTHS, NOISE, ITERATIONS, NULLS = 5, 0.2, 5, 0.01, 40, 2000  # of FSSD-opt

Jet = tuple[Array, Array, Array]


def imq(r2: Array, length: Array | float) -> Jet:
    """(1 + r^2 / l^2)^(-1/2) and two derivatives in r^2."""
    b = 1 + r2 / length**2
    return b**-0.5, -0.5 / length**2 * b**-1.5, 0.75 / length**4 * b**-2.5


def gauss(r2: Array, variance: Array) -> Jet:
    """exp(-r^2 / 2 v) and two derivatives in r^2."""
    phi = jnp.exp(-r2 / (2 * variance))
    return phi, -phi / (2 * variance), phi / (4 * variance**2)


class Pairs(NamedTuple):
    """What u of any radial kernel is made of: r^2, s.s' and (s - s').(x - y) for pairs of draws, and the dimension."""

    r2: Array
    ss: Array
    sx: Array
    d: int

    @classmethod
    def all(cls, x: Float[Array, "n d"], s: Float[Array, "n d"]) -> Pairs:
        """Every pair."""
        x = x - jnp.mean(x, 0)
        square, own, cross = jnp.sum(x**2, 1), jnp.sum(s * x, 1), s @ x.T
        r2 = jnp.maximum(square[:, None] + square[None] - 2 * x @ x.T, 0)
        r2 = jnp.where(jnp.eye(len(x), dtype=bool), 0, r2)
        return cls(r2, s @ s.T, own[:, None] + own[None] - cross - cross.T, x.shape[1])

    @classmethod
    def halves(cls, x: Float[Array, "n d"], s: Float[Array, "n d"]) -> Pairs:
        """The first half of the draws with the second, one to one."""
        h = len(x) // 2
        gap, turn = x[:h] - x[h : 2 * h], s[:h] - s[h : 2 * h]
        return cls(jnp.sum(gap**2, 1), jnp.sum(s[:h] * s[h : 2 * h], 1), jnp.sum(gap * turn, 1), x.shape[1])

    def stein(self, jet: Jet) -> Array:
        """u."""
        phi, first, second = jet
        return phi * self.ss - 2 * first * (self.sx + self.d) - 4 * self.r2 * second


def forms(u: Float[Array, "n n"], w: Float[Array, "n b"]) -> Float[Array, "b"]:
    """w'uw for every column."""
    return jnp.sum(w * (u @ w), 0)


class Aggregated(NamedTuple):
    """KSDAgg's answer: U_i, p_i, the level u at which each is tested, and whether one is rejected."""

    u: Float[Array, "m"]
    p: Float[Array, "m"]
    threshold: Float[Array, ""]
    rejected: Bool[Array, ""]


def lengths(pairs: Pairs) -> Float[Array, "m"]:
    """KSDAgg's lengths: from 1/d to max(2, the largest distance among 500 draws)/d, evenly in the logarithm."""
    largest = jnp.maximum(jnp.sqrt(jnp.max(pairs.r2[:500, :500])), 2)
    return largest ** (jnp.arange(KERNELS) / (KERNELS - 1)) / pairs.d


def ksdagg(pairs: Pairs, signs: Float[Array, "n b"]) -> Aggregated:
    """KSDAgg with equal weights; the first ``B1`` signs make quantiles, the others the correction."""
    n = pairs.r2.shape[0]
    off = 1 - jnp.eye(n, dtype=signs.dtype)
    w = jnp.concatenate([jnp.ones((n, 1), signs.dtype), signs], 1)
    every = lax.map(lambda length: forms(pairs.stein(imq(pairs.r2, length)) * off, w) / (n * (n - 1)), lengths(pairs))
    u, quantiled, others = every[:, 0], jnp.sort(every[:, : B1 + 1], 1), every[:, B1 + 1 :]

    def halve(between: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        low, high = between
        at = (low + high) / 2
        rank = jnp.ceil((B1 + 1) * (1 - at / KERNELS)).astype(int) - 1
        large = jnp.mean(jnp.any(others > quantiled[:, rank][:, None], 0)) > LEVEL
        return (jnp.where(large, low, at), jnp.where(large, at, high)), None

    start = (jnp.zeros((), u.dtype), jnp.full((), KERNELS, u.dtype))
    found = lax.scan(halve, start, None, BISECTIONS)[0][0]
    p = jnp.mean(quantiled >= u[:, None], 1)
    return Aggregated(u, p, found / KERNELS, jnp.any(p <= found / KERNELS))


def wild_p(u: Float[Array, "n n"], signs: Float[Array, "n b"]) -> Float[Array, ""]:
    """How many draws of n V exceed that of the sample."""
    return jnp.mean(forms(u, signs) > jnp.sum(u))


def median_square(r2: Float[Array, "n n"]) -> Float[Array, ""]:
    """The square of the median distance between two draws."""
    n = r2.shape[0]
    i, j = jnp.tril_indices(n, -1)
    return jnp.median(jnp.sqrt(r2[i, j])) ** 2


def linear_p(pairs: Pairs, jet: Jet) -> Float[Array, ""]:
    """The mean over pairs in units of sqrt(E u^2)."""
    u = pairs.stein(jet)
    return norm.sf(jnp.sqrt(len(u)) * jnp.mean(u) / jnp.sqrt(jnp.mean(u**2)))


def features(x: Array, s: Array, v: Float[Array, "J d"], variance: Array) -> Float[Array, "n Jd"]:
    """xi(x, v) = k(x, v) s(x) + grad_x k(x, v), over sqrt(dJ)."""
    gap = x[:, None] - v[None]
    k = jnp.exp(-jnp.sum(gap**2, 2) / (2 * variance))[:, :, None]
    return (k * (s[:, None] - gap / variance) / jnp.sqrt(v.size)).reshape(len(x), -1)


def fssd(xi: Float[Array, "n Jd"]) -> tuple[Array, Array]:
    """The unbiased FSSD^2, and its asymptotic variance where it is not zero."""
    n, mean = len(xi), jnp.mean(xi, 0)
    square = jnp.sum(mean**2)
    statistic = (n * square - jnp.mean(jnp.sum(xi**2, 1))) / (n - 1)
    return statistic, 4 * jnp.mean((xi @ mean) ** 2) - 4 * square**2


def fssd_opt(x: Array, s: Array, key: Array) -> Float[Array, ""]:
    """The p-value: a width from a grid, then locations and width by L-BFGS on the power criterion, tested on the rest."""
    d, learn = x.shape[1], round(TRAIN * len(x))
    start, null = jax.random.split(key)
    a, sa = x[:learn], s[:learn]
    spread = jnp.atleast_2d(jnp.cov(a.T)) + 1e-6 * jnp.eye(d, dtype=x.dtype)
    v = jnp.mean(a, 0) + jax.random.normal(start, (LOCATIONS, d), x.dtype) @ jnp.linalg.cholesky(spread).T

    def power(of: tuple[Array, Array]) -> Array:
        statistic, variance = fssd(features(a, sa, of[1], of[0] ** 2))
        return statistic / jnp.sqrt(variance + NOISE)

    grid = jnp.sqrt(median_square(Pairs.all(a, sa).r2) * 2 ** jnp.linspace(-3, 3, WIDTHS))
    width = grid[jnp.argmax(jax.vmap(lambda width: power((width, v)))(grid))]
    loss = lambda of: -power(of)
    search = optax.lbfgs()
    value = optax.value_and_grad_from_state(loss)

    def step(carry: tuple, _: None) -> tuple[tuple, None]:
        of, state = carry
        now, slope = value(of, state=state)
        change, state = search.update(slope, state, of, value=now, grad=slope, value_fn=loss)
        return (optax.apply_updates(of, change), state), None

    (width, v), _ = lax.scan(step, ((width, v), search.init((width, v))), None, ITERATIONS)[0]
    return fssd_p(x[learn:], s[learn:], v, jnp.clip(width**2, 0.1, 1e4), null)


def fssd_p(x: Array, s: Array, v: Array, variance: Array, key: Array) -> Float[Array, ""]:
    """n FSSD^2 among draws of its asymptotic null, z'Cz - tr C with the features' covariance C."""
    xi = features(x, s, v, variance)
    covariance = jnp.atleast_2d(jnp.cov(xi.T))
    z = jax.random.normal(key, (NULLS, xi.shape[1]), xi.dtype)
    draws = jnp.sum((z @ covariance) * z, 1) - jnp.trace(covariance)
    return jnp.mean(draws > len(x) * fssd(xi)[0])


TESTS: tuple[str, ...] = ("KSDAgg", "KSD, IMQ", "KSD, Gauss", "linear KSD, Gauss", "FSSD-opt")


def rejections(x: Float[Array, "n d"], s: Float[Array, "n d"], key: Array, tests: tuple[str, ...] = TESTS) -> dict[str, Array]:
    """Whether each of them rejects."""
    wild, search = jax.random.split(key)
    signs = 2 * jax.random.bernoulli(wild, 0.5, (len(x), B1 + B2)).astype(x.dtype) - 1
    pairs = Pairs.all(x, s)
    run: dict[str, Callable[[], Array]] = {
        "KSDAgg": lambda: ksdagg(pairs, signs).rejected,
        "KSD, IMQ": lambda: wild_p(pairs.stein(imq(pairs.r2, 1.0)), signs[:, :DRAWS]) < LEVEL,
        "KSD, Gauss": lambda: wild_p(pairs.stein(gauss(pairs.r2, median_square(pairs.r2))), signs[:, :DRAWS]) < LEVEL,
        "linear KSD, Gauss": lambda: (
            linear_p(half := Pairs.halves(x, s), gauss(half.r2, median_square(pairs.r2[:1000, :1000]))) < LEVEL
        ),
        "FSSD-opt": lambda: fssd_opt(x, s, search) < LEVEL,
    }
    return {test: run[test]() for test in tests}
