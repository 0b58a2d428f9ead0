"""One line on a sample under a kernel that is the same for all samples it stands beside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from polystein._types import Key, Points
from polystein.gof import ksd_test
from polystein.kernels import IMQ, Bank, MatrixSVGDMedian
from polystein.quality.discrepancy import Discrepancy, discrepancy
from polystein.quality.effective import effective_size
from polystein.quality.identities import ratio_of
from polystein.quality.judge import bootstrap
from polystein.quality.sample import Sample

HEADER = ["KSD²", "±", "Stein ratio", "±", "p", "eff. draws"]


class Yardstick(NamedTuple):
    """Units of the coordinates, and an IMQ kernel in these."""

    scale: Float[np.ndarray, "d"]
    kernel: IMQ


class Measured(NamedTuple):
    """KSD^2, the Stein ratio of all coordinates together, the p-value of the KSD test, effective draws."""

    ksd: Discrepancy
    ratio: float
    ratio_error: float
    p_value: float
    effective: float

    @property
    def cells(self) -> list[Any]:
        """Under ``HEADER``."""
        return [self.ksd.value, self.ksd.error, self.ratio, self.ratio_error, self.p_value, round(self.effective)]


def yardstick(samples: Sequence[Sample]) -> Yardstick:
    """Standard deviations and median distance of as many draws of each sample, put together."""
    few = min(sample.x[:, :, 0].size for sample in samples)
    parts = [sample.x.reshape(-1, sample.x.shape[2]) for sample in samples]
    pooled = np.concatenate([part[np.linspace(0, len(part) - 1, few).astype(int)] for part in parts])
    scale = pooled.std(0)
    return Yardstick(scale, IMQ(MatrixSVGDMedian()(jnp.asarray(pooled / scale))))


def measured(sample: Sample, by: Yardstick, level: float, key: Key) -> Measured:
    """The line on a sample."""
    x, s = sample.x / by.scale, sample.s * by.scale
    flat = lambda a: jnp.asarray(a.reshape(-1, a.shape[2]), sample.x.dtype)
    test = ksd_test(flat(x), flat(s), by.kernel, key=key, level=level, null=bootstrap(sample))
    ksd = discrepancy(Bank(by.kernel), Points.of(flat(x), flat(s)), sample, float(test.contributions.deviation[0]))
    total = float(sample.x[:, :, 0].size)
    effective = total if sample.independent else min(effective_size(sample.x[:, :, j]) for j in range(x.shape[2]))
    gap = x - x.mean((0, 1), keepdims=True)
    ratio, error = ratio_of(-(gap * s).mean(2), effective, sample.independent)
    return Measured(ksd, ratio, error, float(test.p_value), effective)
