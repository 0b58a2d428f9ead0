"""Two methods on the same splits: the mean of their differences, and whether it is more than noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jax.scipy.special import betainc

from polystein.report.section import Measured, Verdict

LEVEL = 0.05


class Paired(NamedTuple):
    """Differences a - b over the trials that both have, and the p-value of Student's paired test that their mean is 0.

    >>> found = Paired.of({0: 1.0, 1: 2.0, 2: 3.5}, {0: 0.5, 1: 1.4, 2: 2.8, 3: 9.0})
    >>> round(found.difference.mean, 3), found.difference.trials, round(found.p, 4)
    (0.6, 3, 0.0092)
    """

    difference: Measured
    p: float

    @staticmethod
    def of(a: dict[int, float], b: dict[int, float]) -> Paired:
        """By trial number."""
        gaps = [a[trial] - b[trial] for trial in sorted(a.keys() & b.keys())]
        difference = Measured.of(gaps)
        return Paired(difference, two_sided(difference))

    def verdict(self, *, less_is_better: bool) -> Verdict:
        """Of a, at the level of 5 %."""
        if not self.p < LEVEL:
            return Verdict.NOISE
        return Verdict.BETTER if (self.difference.mean < 0) == less_is_better else Verdict.WORSE


def two_sided(difference: Measured) -> float:
    """P(|T| >= |mean / s.e.|) for Student's T with trials - 1 degrees of freedom; 1 where nothing differs, nan of one trial.

    >>> round(two_sided(Measured(1.0, 0.5, 1.0, 4)), 4)
    0.1393
    """
    if not math.isfinite(difference.se):
        return math.nan
    if difference.se == 0:
        return 1.0 if difference.mean == 0 else 0.0
    freedom, t2 = difference.trials - 1, (difference.mean / difference.se) ** 2
    return float(betainc(freedom / 2, 0.5, freedom / (freedom + t2)))


def against(ours: Measured, mean: float, se: float, *, less_is_better: bool) -> Verdict:
    """A mean of ours beside a number known with a standard error: apart where they differ by more than two errors of both.

    >>> str(against(Measured(1.0, 0.1, 0.3, 10), 1.5, 0.1, less_is_better=True))
    'better'
    """
    gap = (ours.mean - mean) * (1 if less_is_better else -1)
    error = math.hypot(0.0 if math.isnan(ours.se) else ours.se, se)
    if abs(gap) <= 2 * error:
        return Verdict.NOISE
    return Verdict.BETTER if gap < 0 else Verdict.WORSE


def by_trial(trials: Sequence[int], values: Sequence[float]) -> dict[int, float]:
    """Numbers under the numbers of their trials; those that are not finite are left out.

    >>> by_trial([0, 1], [0.5, float("nan")])
    {0: 0.5}
    """
    return {trial: float(value) for trial, value in zip(trials, values, strict=True) if np.isfinite(value)}
