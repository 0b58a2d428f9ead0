"""Independent answers, each the plainest that is right: textbook formulas, pair by pair autodiff, closed forms.

Nothing here is taken from the library but the names of its classes and of their hyper-parameters, and the formula k of a
kernel that no textbook has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from polystein.kernels import AbstractRadial

# k as a function of r = |x - y|; the kernel is only asked for its hyper-parameters.
RADIAL: dict[str, Callable[[Any, jax.Array], jax.Array]] = {
    "RBF": lambda k, r: jnp.exp(-(r**2) / k.h),
    "IMQ": lambda k, r: (k.c**2 + r**2 / k.h) ** k.beta / k.c ** (2 * k.beta),
    "RationalQuadratic": lambda k, r: (1 + r**2 / (k.alpha * k.h)) ** -k.alpha,
    "Matern52": lambda k, r: (1 + 5**0.5 * r / k.length + 5 * r**2 / (3 * k.length**2)) * jnp.exp(-(5**0.5) * r / k.length),
    "Matern32": lambda k, r: (1 + 3**0.5 * r / k.length) * jnp.exp(-(3**0.5) * r / k.length),
    "SmoothLaplace": lambda k, r: jnp.exp((k.c - jnp.sqrt(k.c**2 + r**2)) / k.length),
    "Laplace": lambda k, r: jnp.exp(-r / k.length),
}
# k as a function of both points.
INNER: dict[str, Callable[[Any, jax.Array, jax.Array], jax.Array]] = {
    "Linear": lambda k, x, y: 1 + jnp.sum((x - k.centre) * (y - k.centre)) / k.length**2,
    "Polynomial": lambda k, x, y: (1 + jnp.sum((x - k.centre) * (y - k.centre)) / k.length**2) ** k.degree,
    "Cosine": lambda k, x, y: (
        (_lifted(k, x) @ _lifted(k, y) / jnp.sqrt(jnp.sum(_lifted(k, x) ** 2) * jnp.sum(_lifted(k, y) ** 2))) ** k.degree
    ),
}


def _lifted(k: Any, x: jax.Array) -> jax.Array:
    """The point (l, x - c), of one dimension more."""
    return jnp.concatenate([jnp.ones(1, x.dtype) * k.length, x - k.centre])


class PairJet(NamedTuple):
    """k(y, x), its gradients in y and in x, and sum_a d^2 k / dy_a dx_a."""

    k: jax.Array
    dy: jax.Array
    dx: jax.Array
    trace: jax.Array


def pair_jet(k: Callable[[jax.Array, jax.Array], jax.Array], y: jax.Array, x: jax.Array) -> PairJet:
    """By autodiff of k."""
    mixed = jax.jacfwd(jax.grad(k, 0), 1)(y, x)
    return PairJet(k(y, x), jax.grad(k, 0)(y, x), jax.grad(k, 1)(y, x), jnp.trace(mixed))


def radial_jet(f: Callable[[jax.Array], jax.Array], y: jax.Array, x: jax.Array, tiny: float = 1e-5) -> PairJet:
    """By the chain rule from f(r), f'(r), f''(r); where r = 0, by extrapolation from r = ``tiny`` and twice that."""
    d = x.shape[0]
    first, second = jax.grad(f), jax.grad(jax.grad(f))
    trace = lambda r: -(second(r) + (d - 1) * first(r) / r)
    r2 = jnp.sum((x - y) ** 2)
    r = jnp.where(r2 > 0, jnp.sqrt(jnp.where(r2 > 0, r2, 1)), tiny)
    dx = first(r) / r * (x - y)
    near = jnp.asarray(tiny, x.dtype)
    at_zero = 2 * trace(near) - trace(2 * near)
    return PairJet(jnp.where(r2 > 0, f(r), 1), -dx, dx, jnp.where(r2 > 0, trace(r), at_zero))


def jet_of(kernel: Any) -> Callable[[jax.Array, jax.Array], PairJet]:
    """The textbook's derivatives where the textbook has the kernel.

    Else those of its own formula: in r for a radial kernel, whose own derivatives are written in r^2.
    """
    name = type(kernel).__name__
    if name in RADIAL:
        return lambda y, x: radial_jet(lambda r: RADIAL[name](kernel, r), y, x)
    if isinstance(kernel, AbstractRadial):
        return lambda y, x: radial_jet(lambda r: kernel.profile(r**2).value, y, x)
    if name in INNER:
        return lambda y, x: pair_jet(lambda a, b: INNER[name](kernel, a, b), y, x)
    return lambda y, x: pair_jet(kernel, y, x)


def stein(jet: PairJet, sy: jax.Array, sx: jax.Array) -> jax.Array:
    """u_p(y, x), term by term: k s_y.s_x + s_y.grad_x k + grad_y k.s_x + tr grad_y grad_x k."""
    return jet.k * jnp.sum(sy * sx) + jnp.sum(sy * jet.dx) + jnp.sum(jet.dy * sx) + jet.trace


def drift(jet: PairJet, sx: jax.Array) -> jax.Array:
    """What x does at y: k s_x + grad_x k."""
    return jet.k * sx + jet.dx


def all_pairs(f: Callable[..., Any], rows: tuple[jax.Array, ...], cols: tuple[jax.Array, ...]) -> Any:
    """f(*row, *column) for every row and column."""
    return jax.vmap(lambda *row: jax.vmap(lambda *col: f(*row, *col))(*cols))(*rows)


def rbf_parts(x: np.ndarray, s: np.ndarray, h: float) -> dict[str, np.ndarray]:
    """k, sum_j drift and u_p of exp(-r^2/h) for all pairs, every difference taken first."""
    gap = x[:, None] - x[None]  # y - x
    k = np.exp(-(gap**2).sum(2) / h)
    cross = 2 / h * (gap * (s[:, None] - s[None])).sum(2)  # s_y.grad_x k + s_x.grad_y k, over k
    trace = 2 * x.shape[1] / h - 4 / h**2 * (gap**2).sum(2)
    return {"k": k, "drift": k @ s + 2 / h * (k[:, :, None] * gap).sum(1), "u": k * (s @ s.T + cross + trace)}


def gaussian_rbf_ksd(m: np.ndarray, C: np.ndarray, mu: np.ndarray, S: np.ndarray, h: float) -> float:
    """E_{x,x'~q} u_p(x, x') for q = N(m, C), p = N(mu, S) and k = exp(-r^2/h), in closed form.

    It is E[delta(x).delta(x') k] with delta = s_p - s_q = A (x - m) + c, A = C^-1 - S^-1, c = -S^-1 (m - mu). The sum and
    the difference of x - m and x' - m, over sqrt 2, are independent N(0, C); the kernel is exp(-2 |v|^2 / h) of the
    difference v alone, which makes its covariance D = (C^-1 + 4 I / h)^-1 at the price of a factor |I + 4 C / h|^-1/2.
    """
    identity = np.eye(len(m))
    A = np.linalg.inv(C) - np.linalg.inv(S)
    c = -np.linalg.solve(S, m - mu)
    D = np.linalg.inv(np.linalg.inv(C) + 4 / h * identity)
    return float((np.trace(A.T @ A @ (C - D)) / 2 + c @ c) / np.sqrt(np.linalg.det(identity + 4 * C / h)))


def gaussian_kl(m: jax.Array, C: jax.Array, mu: jax.Array, S: jax.Array) -> jax.Array:
    """KL(N(m, C) || N(mu, S))."""
    gap = mu - m
    logdet = lambda M: jnp.linalg.slogdet(M)[1]
    return 0.5 * (jnp.trace(jnp.linalg.solve(S, C)) + gap @ jnp.linalg.solve(S, gap) - len(m) + logdet(S) - logdet(C))


def _squares(x: np.ndarray, *, all_pairs: bool) -> np.ndarray:
    """|x_i - x_j|^2 over all n^2 pairs, or over i < j."""
    n = len(x)
    pairs = [(i, j) for i in range(n) for j in range(n) if all_pairs or i < j]
    return np.array([((x[i] - x[j]) ** 2).sum() for i, j in pairs])


# Median rules as published, by sorting.
BANDWIDTHS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "LiuWang": lambda x: np.median(_squares(x, all_pairs=True)) / np.log(len(x) + 1),
    "NumPyro": lambda x: np.median(np.sqrt(_squares(x, all_pairs=True))) ** 2 / np.log(len(x)),
    "BlackJAX": lambda x: np.median(np.sqrt(_squares(x, all_pairs=False))) ** 2 / np.log(len(x)),
    "MatrixSVGDMedian": lambda x: np.median(_squares(x, all_pairs=True)),
    "PyroPerDimension": lambda x: np.array(
        [
            np.sort(_squares(column[:, None], all_pairs=False))[(len(x) * (len(x) - 1) // 2 - 1) // 2] / np.log(len(x) + 1)
            for column in x.T
        ]
    ),
}
