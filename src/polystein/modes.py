"""Modes that no particle knows of: climbs from far around end where no climb from a particle does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Rows = np.ndarray
REACH = (3.0, 10.0)  # standard deviations around the particles from which is climbed
CLIMB = 150  # steps at the most
APART = 1.0  # standard deviations between two modes, at the least
LEVEL = 0.05  # a slope per standard deviation that counts as none
DEEP = 4.0  # a mode whose log density is lower by more is left unsaid


def climb(evaluate: Callable[[Rows], tuple[Rows, Rows]], z: Rows) -> tuple[Rows, Rows, Rows]:
    """Each row's end of an ascent with a step of its own; its log density, and the size of the slope left there.

    >>> bowl = lambda z: (-(z**2).sum(1), -2 * z)
    >>> climb(bowl, np.array([[3.0], [-5.0]]))[0].round(3).ravel().tolist()
    [0.0, -0.0]
    """
    values, slopes = _finite(*evaluate(z))
    rate = np.full((len(z), 1), 0.1)
    for _ in range(CLIMB):
        size = np.linalg.norm(slopes, axis=1, keepdims=True)
        if (size[np.isfinite(values)] < LEVEL / 10).all():
            break
        ahead = z + slopes * np.minimum(rate, np.sqrt(z.shape[1]) / np.maximum(size, 1e-30))
        values_ahead, slopes_ahead = _finite(*evaluate(ahead))
        up = values_ahead > values
        z, slopes = np.where(up[:, None], ahead, z), np.where(up[:, None], slopes_ahead, slopes)
        values, rate = np.where(up, values_ahead, values), np.where(up[:, None], rate * 1.6, rate * 0.3)
    return z, values, np.linalg.norm(slopes, axis=1)


def unknown_mode(evaluate: Callable[[Rows], tuple[Rows, Rows]], particles: Rows, around: Rows) -> Rows | None:
    """The highest mode, of those nearly as high as the particles', that climbs from far ``around`` reach and none from a
    particle; ``evaluate`` and both sets of rows in coordinates in which the particles' covariance is about I."""
    half = len(around) // 2
    centre = particles.mean(0)
    far = centre + np.concatenate([REACH[0] * around[:half], REACH[1] * around[half:]])
    chosen = particles[:: max(1, len(particles) // max(len(around), 1))]
    ends, values, slopes = climb(evaluate, np.concatenate([chosen, far]))
    known, found = np.arange(len(ends)) < len(chosen), np.isfinite(values) & (slopes < LEVEL)
    if not (known & found).all(where=known) or not (known & np.isfinite(values)).any():
        return None  # where climbs from particles do not end at modes, those from elsewhere prove nothing
    top = values[known].max()
    gaps = np.linalg.norm(ends[:, None] - ends[None, known], axis=2).min(1)
    new = ~known & found & (gaps > APART) & (values > top - DEEP)
    return ends[np.argmax(np.where(new, values, -np.inf))] if new.any() else None


def _finite(values: Rows, slopes: Rows) -> tuple[Rows, Rows]:
    """Points without a log density or a slope, as the lowest and level."""
    fine = np.isfinite(values) & np.isfinite(slopes).all(1)
    return np.where(fine, values, -np.inf), np.where(fine[:, None], slopes, 0.0)
