r"""Where a run begins: the Gaussian m + L z that fits a posterior best, found from nothing but a place to start.

First a mode, roughly: Newton steps with the Hessian from differences of scores, |eigenvalues|, a unit diagonal, and a hundred
dampings tried at once. Then the flow of SVGD under the kernel k(x, y) = 1 + x.y, which moves particles affinely:

    phi(x) = E s + (I + E s z') x,   re-whitened after every step: natural-gradient ascent of  E log p(m + L z) + log|det L|

over fixed points z. It needs no step size: a step is taken where the objective rises, and is shorter where it does not.
Where a full L is too large it is diagonal, and then stretched along the directions in which the averaged curvature, in the
coordinates so far, is farthest from the identity (``lanczos``): L = diag(l) (I + V (diag(c) - I) V').

The result is where the kernel flow starts and the coordinates in which it runs, not a posterior. All of it is linear algebra
in float64 on the host round one compiled function, the log densities and scores of n points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from polystein.geometry import AbstractGeometry, LowRank, Triangular, lower_factor
from polystein.lanczos import lanczos

Rows = np.ndarray
Evaluate = Callable[[Rows], tuple[Rows, Rows]]

FULL = 500  # up to this many dimensions a full matrix L is found, beyond it diagonal and low rank
RANK = 64  # directions beside a diagonal
AVERAGED = 32  # points over which their curvature is averaged
ASIDE = 0.3  # standard deviations to either side of each, for differences of scores
STRETCH = (1e-2, 1e2)  # the least and the most by which a direction is stretched
DIFFERENCE = 0.03  # in units of a coordinate's scale, for Hessians from differences of scores
NEAR_MODE = 0.1  # Newton decrement per dimension at which a mode is near enough
SETTLED = 1e-2  # rms deviation of E s and E s z' from 0 and -I, in units of the posterior
TRUST = 3.0  # standard deviations per root dimension that a step may move the mean
WILD = (1.5, 10.0)  # a starting particle's log density may lie below the centre's by 1.5 |z|^2 + 10, not more


class GaussianFit(NamedTuple):
    """m and L, how far E s and E s z' are from 0 and -I, the steps it took, and the objective.

    L is the matrix ``factor``; or, where that is a row, its diagonal after stretching by ``stretches`` along ``directions``.
    """

    mean: Rows
    factor: Rows
    residual: float
    steps: int
    objective: float
    directions: Rows | None = None
    stretches: Rows | None = None

    def geometry(self, dtype: np.dtype) -> AbstractGeometry:
        """u = m + L z."""
        make = lambda *parts: [jax.numpy.asarray(part, dtype) for part in parts]
        if self.factor.ndim == 1:
            return LowRank(*make(self.mean, self.factor, *self._stretching()))
        return Triangular(*make(self.mean, lower_factor(self.factor)))

    def rotated(self, z: Rows) -> Rows:
        """z in the coordinates of ``geometry``, whose L is lower triangular: the same particles m + L z."""
        return z if self.factor.ndim == 1 else np.linalg.solve(lower_factor(self.factor), (z @ self.factor.T).T).T

    def out(self, z: Rows) -> Rows:
        """m + L z, row by row."""
        return self.mean + (self._stretched(z) * self.factor if self.factor.ndim == 1 else z @ self.factor.T)

    def pull(self, s: Rows) -> Rows:
        """L' s, row by row."""
        return self._stretched(s * self.factor) if self.factor.ndim == 1 else s @ self.factor

    def _stretching(self) -> tuple[Rows, Rows]:
        """Without directions of its own, none is stretched: as many as there will be, all left alone."""
        if self.directions is None or self.stretches is None:
            rank = min(RANK, len(self.mean))
            return np.eye(len(self.mean), rank), np.ones(rank)
        return self.directions, self.stretches

    def _stretched(self, z: Rows) -> Rows:
        if self.directions is None or self.stretches is None:
            return z
        return z + ((z @ self.directions) * (self.stretches - 1)) @ self.directions.T


def normal_points(generator: np.random.Generator, n: int, d: int) -> Rows:
    """n antithetic normal points whose second moment is exactly I, where there are enough of them."""
    half = generator.standard_normal((max(n // 2, 1), d))
    if len(half) > d + 1:
        half = np.linalg.solve(np.linalg.cholesky(half.T @ half / len(half)), half.T).T
    elif len(half) == d or len(half) == d + 1:
        half = np.sqrt(len(half)) * np.linalg.qr(half)[0]
    return np.concatenate([half, -half, np.zeros((1, d))])[: max(n, 1)] if n % 2 else np.concatenate([half, -half])


def fit_gaussian(evaluate: Evaluate, start: Rows, z: Rows, steps: int = 300) -> GaussianFit:
    """The best of the affine flow from near a mode and, where that does not settle, from ``start`` itself."""
    d = len(start)
    if d > FULL:
        return _stretch(evaluate, _affine_flow(evaluate, start, np.full(d, 0.1), z, steps), z)
    near_mode = _affine_flow(evaluate, *_newton(evaluate, start, z), z, steps)
    if near_mode.residual < 5 * SETTLED:
        return near_mode
    from_start = _affine_flow(evaluate, start, 0.1 * np.eye(d), z, steps)
    return max(near_mode, from_start, key=lambda fit: fit.objective)


def finite_start(evaluate: Evaluate, start: Rows, z: Rows) -> Rows:
    """``start`` where its density is finite, a peak included; else the likeliest of points around it that has a slope.

    Points are looked at near and far; an error where none is finite, and where the density has no slope at any.
    """
    found, peak = False, -np.inf
    for reach in (0.0, 0.1, 1.0, 10.0, 100.0):
        points = start + reach * z
        values, scores = evaluate(points)
        values = np.where(np.isfinite(scores).all(1), np.where(np.isnan(values), 0.0, values), -np.inf)
        found |= bool(np.isfinite(values).any())
        sloped = np.where(scores.any(1), values, -np.inf)
        if np.isfinite(sloped).any():
            best = int(np.argmax(sloped))
            return start if reach == 0.1 and peak >= sloped[best] else points[best]
        if not reach:
            peak = values[0]
    if found:
        raise ValueError(
            "the score is zero at every starting point: the density is flat there; expected one that depends on its "
            "parameters and has a finite integral; look for stop_gradient, or start elsewhere with like="
        )
    raise ValueError(
        f"the log density or its gradient is not finite at like nor at any of {5 * len(z)} points up to 100 around it; "
        "expected a finite start; give like= inside the support, or declare constraints with constrain="
    )


def tame(evaluate: Evaluate, fit: GaussianFit, z: Rows) -> Rows:
    """Starting points pulled to the centre by halves until their log density is believable.

    A start of log density more than 1.5 |z|^2 + 10 below the centre's (a Gaussian's falls by |z|^2 / 2), or of none, would
    throw every other particle off by its score. Where only scores are known, |L' s| <= 3 |z| + 20 takes its place.
    """
    centre = evaluate(np.repeat(fit.mean[None], len(z), 0))[0][0]
    for _ in range(40):
        values, scores = evaluate(fit.out(z))
        radius = (z**2).sum(1)
        if np.isnan(centre):
            believable = np.sqrt((fit.pull(scores) ** 2).sum(1)) <= 3 * np.sqrt(radius) + 20
        else:
            believable = np.isfinite(values) & (centre - values <= WILD[0] * radius + WILD[1])
        believable &= np.isfinite(scores).all(1)
        if believable.all():
            break
        z = np.where(believable[:, None], z, z / 2)
    return z


def _stretch(evaluate: Evaluate, fit: GaussianFit, z: Rows) -> GaussianFit:
    """A diagonal fit stretched along the directions in which E of -d^2 log p, in its coordinates, is far from the identity."""
    points = z[: len(z) // 2][:AVERAGED]

    def product(v: Rows) -> Rows:
        there = np.concatenate([points + ASIDE * v, points - ASIDE * v])
        scores = fit.pull(evaluate(fit.out(there))[1])
        return np.nan_to_num((scores[len(points) :] - scores[: len(points)]).mean(0) / (2 * ASIDE), posinf=0.0, neginf=0.0)

    directions, curvature = lanczos(product, points[0], RANK)
    stretches = np.clip(np.abs(curvature), STRETCH[1] ** -2.0, STRETCH[0] ** -2.0) ** -0.5
    idle = min(RANK, len(fit.mean)) - len(stretches)  # exhausted before: as many as ever, the rest left alone
    directions = np.concatenate([directions, np.zeros((len(fit.mean), idle))], 1)
    return fit._replace(directions=directions, stretches=np.concatenate([stretches, np.ones(idle)]))


def _newton(evaluate: Evaluate, m: Rows, z: Rows, steps: int = 100) -> tuple[Rows, Rows]:
    """A place near a mode and a matrix L with L L' the inverse of |Hessian| there."""
    n, d = z.shape
    scale = np.ones(d)
    dampings = np.concatenate([[0.0], np.logspace(-10, 10, n - 1)])
    factor = 0.1 * np.eye(d)
    for step in range(steps):
        _, scores = evaluate(m + DIFFERENCE * z * scale)
        for _ in range(8):
            if np.isfinite(scores).all():
                break
            scale = scale / 10
            _, scores = evaluate(m + DIFFERENCE * z * scale)
        else:
            break
        slope = (scores * scale).mean(0)
        curvature = -z.T @ (scores * scale) / n / DIFFERENCE
        curvature = (curvature + curvature.T) / 2
        diagonal = np.abs(np.diag(curvature))
        unit = 1 / np.sqrt(np.maximum(diagonal, 1e-6 * max(diagonal.max(), 1e-300)))
        eigenvalues, vectors = np.linalg.eigh(curvature * unit[:, None] * unit)
        size = np.maximum(np.abs(eigenvalues), 1e-10)
        along = vectors.T @ (slope * unit)
        decrement = float(np.sum(along**2 / size))
        fine = scale * unit
        factor = (fine[:, None] * vectors) * np.maximum(size, 1e-8) ** -0.5
        moves = (along / (size + dampings[:, None])) @ vectors.T * fine
        centre = evaluate(np.repeat(m[None], n, 0))
        gains = _gain(m[None] + 0 * moves, *centre, m + moves, *evaluate(m + moves))
        best = int(np.argmax(gains))
        if gains[best] > 0:
            m = m + moves[best]
        scale = np.clip(fine, scale * 1e-2, scale * 1e2)
        if eigenvalues.min() > 0 and decrement < NEAR_MODE * d:
            break
        if gains[best] <= 1e-6 and step > 5 and best > 0:
            break
    return m, factor


def _affine_flow(evaluate: Evaluate, m: Rows, factor: Rows, z: Rows, steps: int) -> GaussianFit:
    """SVGD under 1 + x.y, re-whitened at every step, with accepted steps only."""
    n, d = z.shape
    diagonal = factor.ndim == 1
    out = lambda m, factor: m + (z * factor if diagonal else z @ factor.T)
    volume = lambda factor: np.log(np.abs(factor)).sum() if diagonal else np.linalg.slogdet(factor)[1]

    def moments(scores: Rows, factor: Rows) -> tuple[Rows, Rows]:
        """E s and -E s z' in whitened coordinates."""
        if diagonal:
            pulled = scores * factor
            return pulled.mean(0), -(z * pulled).mean(0) / (z * z).mean(0)
        pulled = scores @ factor
        curvature = -z.T @ pulled / n
        return pulled.mean(0), (curvature + curvature.T) / 2

    points = out(m, factor)
    values, scores = evaluate(points)
    for _ in range(60):
        if np.isfinite(scores).all() and not np.isinf(values).any():
            break
        factor = factor / 4
        points = out(m, factor)
        values, scores = evaluate(points)
    damping, still, taken = 1.0, 0, 0
    slope, curvature = moments(scores, factor)
    for _ in range(steps):
        taken += 1
        eigenvalues, vectors = (curvature, None) if diagonal else np.linalg.eigh(curvature)
        shrunk = np.clip(1 + damping * (eigenvalues - 1), 1 / (1 + 3 * damping), 1 + 3 * damping)
        along = slope if vectors is None else vectors.T @ slope
        move = damping * along / np.maximum(1 + damping * (np.abs(eigenvalues) - 1), 0.25)
        move = move * min(1.0, TRUST * np.sqrt(d) * damping / max(float(np.linalg.norm(move)), 1e-300))
        if vectors is None:
            m_next, factor_next = m + factor * move, factor * shrunk**-0.5
        else:
            m_next, factor_next = m + factor @ (vectors @ move), factor @ ((vectors * shrunk**-0.5) @ vectors.T)
        points_next = out(m_next, factor_next)
        values_next, scores_next = evaluate(points_next)
        gains = _gain(points, values, scores, points_next, values_next, scores_next)
        gain = gains.mean() + volume(factor_next) - volume(factor)
        if gain >= -1e-9 * np.abs(np.nan_to_num(values)).mean():
            m, factor, points, values, scores = m_next, factor_next, points_next, values_next, scores_next
            slope, curvature = moments(scores, factor)
            damping = min(1.0, 2 * damping)
            still = still + 1 if gain < 1e-4 * max(1.0, np.sqrt(d)) else 0
            if _residual(slope, curvature) < SETTLED or still >= 5:
                break
        else:
            damping *= 0.35
            if damping < 1e-8:
                break
    objective = float(np.mean(values) + volume(factor)) if not np.isnan(values).any() else -_residual(slope, curvature)
    return GaussianFit(m, factor, _residual(slope, curvature), taken, objective)


def _residual(slope: Rows, curvature: Rows) -> float:
    unit = np.ones_like(slope) if curvature.ndim == 1 else np.eye(len(slope))
    return float(np.sqrt(np.mean(slope**2) + np.sum((curvature - unit) ** 2) / len(slope)))


def _gain(x: Rows, values: Rows, scores: Rows, x_next: Rows, values_next: Rows, scores_next: Rows) -> Rows:
    """log p(x') - log p(x) row by row; where only scores are known, their mean along the way; -inf for what is not finite."""
    gain = values_next - values
    if np.isnan(values).all():
        gain = 0.5 * ((scores + scores_next) * (x_next - x)).sum(1)
    return np.where(np.isfinite(gain) & np.isfinite(scores_next).all(1), gain, -np.inf)
