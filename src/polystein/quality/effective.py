r"""How many independent draws correlated ones are worth, and the standard error of their mean.

    N_eff = N / tau,   tau = -1 + 2 sum_t (rho_2t + rho_{2t+1})

rho_t is the autocorrelation over all chains, in units of the variance that includes the differences between chains (Gelman
et al., Bayesian Data Analysis, 11.5); the sum runs while its terms are positive, each at most the one before (Geyer 1992).
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float


def effective_size(series: Float[np.ndarray, "chains draws"]) -> float:
    """N_eff of the mean of one quantity over all draws of some chains of equal length.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(4, 1000))
    >>> 3000 < effective_size(x) < 5000, effective_size(np.repeat(x, 10, 1)) < 5000
    (True, True)
    """
    chains, n = series.shape
    total = chains * n
    if n < 4:
        return float(total)
    centred = series - series.mean(1, keepdims=True)
    within = (centred**2).mean(1).mean()
    between = series.mean(1).var(ddof=1) if chains > 1 else 0.0
    variance = within + between
    if not variance > 0:
        return float(total)
    size = 1 << (2 * n - 1).bit_length()
    covariance = np.zeros(n)
    for chain in centred:
        covariance += np.fft.irfft(np.abs(np.fft.rfft(chain, size)) ** 2, size)[:n] / (n * chains)
    rho = 1 - (within - covariance) / variance
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(1)
    ends = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: ends[0] if ends.size else len(pairs)])
    tau = max(2 * float(pairs.sum()) - 1, 1 / math.log10(max(total, 10)))
    return total / tau


def mean_and_error(series: Float[np.ndarray, "chains draws"], *, independent: bool = False) -> tuple[float, float, float]:
    """The mean of all draws, its standard error, and the effective number of draws behind it.

    >>> mean_and_error(np.array([[1.0, 2.0, 3.0]]), independent=True)
    (2.0, 0.577..., 3.0)
    """
    size = float(series.size) if independent else effective_size(series)
    return float(series.mean()), float(series.std(ddof=1) / math.sqrt(size)), size


def potential_scale_reduction(series: Float[np.ndarray, "chains draws"]) -> float:
    """Split R-hat: the root of the whole variance over that within half chains; above 1.05, they disagree.

    >>> x = np.random.default_rng(0).normal(size=(2, 500))
    >>> potential_scale_reduction(x) < 1.02 < potential_scale_reduction(x + np.array([[0.0], [1.0]]))
    True
    """
    n = series.shape[1] // 2
    if n < 2:
        return math.nan
    halves = np.concatenate([series[:, :n], series[:, -n:]])
    within = halves.var(1, ddof=1).mean()
    return math.sqrt((n - 1) / n + halves.mean(1).var(ddof=1) / within) if within > 0 else math.nan
