r"""What samples goodness-of-fit tests are tried on: a target's score, and draws that differ from it by a known amount.

    gamma     Gamma(5, 5) against Gamma(5 + a, 5), n = 500                        KSDAgg, section 4.3
    rbm       Gaussian-Bernoulli RBM, 50 visible and 40 hidden units, n = 1000,
              weights +-1 against weights + a N(0, 1), 2000 sweeps of burn-in     KSDAgg, section 4.4
    normal    N(0, I_d) against itself, d = a, n = 1000                           kernel-gof, ex2 "sg"
    laplace   N(0, I_d) against Laplace of variance 1, d = a, n = 1000            kernel-gof, ex2 "glaplace"
    student   N(0, 1) against Student with 1 / a degrees of freedom, n = 1400     Chwialkowski, Strathmann & Gretton 2016

The validation settings are those that defaults were chosen on; none of them is published with any of the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

Draws = Callable[[np.random.Generator, float, int], tuple[Array, Array]]


class Setting(NamedTuple):
    """Draws of x, and the target's scores there, for each size of the difference; where it is 0 the target is right."""

    sizes: tuple[float, ...]
    draws: Draws  # (generator, size of the difference, repeats) -> x and s of shape (repeats, n, d)
    axis: str
    right: tuple[float, ...] = (0.0,)  # at which sizes the target is right
    published: tuple[float, ...] = ()  # what KSDAgg's authors report for it, at these sizes, over 200 repeats


def _of(sampler: Callable[[np.random.Generator, float, int], Any], score: Callable[[Any, float], Any]) -> Draws:
    def draws(rng: np.random.Generator, size: float, repeats: int) -> tuple[Array, Array]:
        x = sampler(rng, size, repeats)
        return jnp.asarray(x, jnp.float32), jnp.asarray(score(x, size), jnp.float32)

    return draws


def _normal(x: Any, _: float) -> Any:
    return -x


class Machine(NamedTuple):
    """p(x, h) ~ exp(x.B h / 2 + b.x + c.h - |x|^2 / 2), h in {-1, 1}^k: a Gaussian-Bernoulli restricted Boltzmann machine."""

    weights: np.ndarray
    b: np.ndarray
    c: np.ndarray

    def score(self, x: np.ndarray) -> np.ndarray:
        """grad log p = b - x + B tanh(B'x / 2 + c) / 2."""
        return self.b - x + np.tanh(x @ self.weights / 2 + self.c) @ self.weights.T / 2

    def gibbs(self, rng: np.random.Generator, x: np.ndarray, sweeps: int) -> np.ndarray:
        """h | x and x | h in turn, in every row's chain."""
        for _ in range(sweeps):
            up = rng.random((len(x), len(self.c)), np.float32) < (1 + np.tanh(x @ self.weights / 2 + self.c)) / 2
            x = (
                rng.standard_normal(x.shape, np.float32)
                + np.where(up, np.float32(0.5), np.float32(-0.5)) @ self.weights.T
                + self.b
            )
        return x


BURN_IN, APART = 2000, 100  # sweeps before the first sample, and from one to the next in the same thousand chains


def _rbm(n: int = 1000, d: int = 50, hidden: int = 40) -> Draws:
    """The model is one for all sizes and repeats, and so is the direction in which its weights are perturbed."""
    model = np.random.RandomState(0)
    weights, b, c = model.randint(0, 2, (d, hidden)) * 2 - 1.0, model.randn(d), model.randn(hidden)
    noise = model.randn(d, hidden)
    of = lambda weights: Machine(*(np.asarray(a, np.float32) for a in (weights, b, c)))

    def draws(rng: np.random.Generator, size: float, repeats: int) -> tuple[Array, Array]:
        perturbed, samples = of(weights + size * noise), []
        x = perturbed.gibbs(rng, rng.standard_normal((n, d), np.float32), BURN_IN)
        for _ in range(repeats):
            samples.append(x)
            x = perturbed.gibbs(rng, x, APART)
        x = np.stack(samples)
        return jnp.asarray(x), jnp.asarray(of(weights).score(x))

    return draws


DIMENSIONS = (1.0, 5.0, 10.0, 15.0)
PUBLISHED = {
    "gamma": Setting(
        (0.0, 0.1, 0.2, 0.3, 0.4),
        _of(lambda rng, a, r: rng.gamma(5 + a, 5, (r, 500, 1)), lambda x, a: 4 / x - 1 / 5),
        "shift of the shape",
        published=(0.02, 0.17, 0.43, 0.75, 0.915),
    ),
    "rbm": Setting((0.0, 0.01, 0.02, 0.03, 0.04), _rbm(), "s.d. of the perturbation", published=(0.06, 0.31, 0.99, 1.0, 1.0)),
    "normal": Setting(
        DIMENSIONS, _of(lambda rng, d, r: rng.standard_normal((r, 1000, int(d))), _normal), "dimension", right=DIMENSIONS
    ),
    "laplace": Setting(
        DIMENSIONS, _of(lambda rng, d, r: rng.laplace(0, 2**-0.5, (r, 1000, int(d))), _normal), "dimension", right=()
    ),
    "student": Setting(
        (0.0, 0.1, 0.2, 1.0),
        _of(
            lambda rng, a, r: rng.standard_t(1 / a, (r, 1400, 1)) if a else rng.standard_normal((r, 1400, 1)),
            _normal,
        ),
        "1 / degrees of freedom",
    ),
}


def _first(x: Any, change: Callable[[Any], Any]) -> Any:
    x[..., 0] = change(x[..., 0])
    return x


def _correlated(rng: np.random.Generator, a: float, r: int) -> Any:
    x = rng.standard_normal((r, 300, 5))
    return _first(x, lambda one: a * x[..., 1] + np.sqrt(1 - a**2) * one)


def _factors(rng: np.random.Generator, a: float, r: int) -> Any:
    """N(0, I) but for a common factor: the covariance is I + a^2 11'/d, rescaled to variance 1."""
    x = rng.standard_normal((r, 400, 30)) + a * rng.standard_normal((r, 400, 1))
    return x / np.sqrt(1 + a**2)


def _bumps(rng: np.random.Generator, a: float, r: int) -> Any:
    """Two modes at +-4 of which one is a wider than the other."""
    left = rng.random((r, 400, 1)) < 0.5
    return np.where(left, -4 + rng.standard_normal((r, 400, 1)), 4 + (1 + a) * rng.standard_normal((r, 400, 1)))


def _bumps_score(x: Any, _: float) -> Any:
    return 4 * np.tanh(4 * x) - x


VALIDATION = {
    "skewed": Setting(
        (0.0, 0.3, 0.4),
        _of(
            lambda rng, a, r: (rng.gamma(1 / a**2, 1, (r, 300, 1)) - 1 / a**2) * a if a else rng.standard_normal((r, 300, 1)),
            _normal,
        ),
        "skewness / 2",
    ),
    "one coordinate wide": Setting(
        (0.0, 0.3), _of(lambda rng, a, r: _first(rng.standard_normal((r, 300, 10)), lambda one: (1 + a) * one), _normal), "s.d."
    ),
    "correlated": Setting((0.0, 0.3), _of(_correlated, _normal), "correlation"),
    "shifted": Setting((0.0, 0.08), _of(lambda rng, a, r: rng.standard_normal((r, 300, 20)) + a, _normal), "mean"),
    "common factor": Setting((0.0, 0.2), _of(_factors, _normal), "s.d. of the factor"),
    "two modes": Setting((0.0, 0.25), _of(_bumps, _bumps_score), "s.d."),
    "ripple": Setting((0.0, 0.5), _of(lambda rng, a, r: _ripple(rng, a, (r, 300, 1)), _normal), "amplitude"),
    "logistic": Setting(
        (0.0, 1.0),
        _of(
            lambda rng, a, r: rng.standard_normal((r, 300, 4)) * 1.7 if a else rng.logistic(size=(r, 300, 4)),
            lambda x, a: -np.tanh(x / 2),
        ),
        "normal for logistic",
    ),
}


def _ripple(rng: np.random.Generator, a: float, shape: tuple[int, ...]) -> Any:
    """N(0, 1) times 1 + a sin(6 x), by rejection."""
    x = rng.standard_normal((4, *shape))
    kept = rng.random(x.shape) * (1 + a) < 1 + a * np.sin(6 * x)
    return np.take_along_axis(x, kept.argmax(0)[None], 0)[0]
