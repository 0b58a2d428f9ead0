r"""A KSD with the standard error that correlated draws give it.

    Var U = 4 Var_x E_x' u(x, x') / n_eff + (null s.d. of U)^2 Var u / E u^2

The first part is that of a mean of row means h(x) over draws of a chain, the second what is left where they all vanish.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from polystein._types import Points, Scalar
from polystein.discrepancy import sweep
from polystein.kernels import Bank
from polystein.pairs import default_pairs
from polystein.quality.effective import effective_size
from polystein.quality.sample import Sample


class Discrepancy(NamedTuple):
    """KSD^2 as a U-statistic, its standard error, and its standard deviation were the draws the target's."""

    value: float
    error: float
    chance: float


def discrepancy(bank: Bank, points: Points, sample: Sample, chance: float) -> Discrepancy:
    """Of the points of a sample, under the first kernel of a bank; ``chance`` is the null s.d. for draws so correlated."""
    value, rows, square = (np.asarray(a, np.float64) for a in _rows(bank, points))
    n = rows.size
    between = max(float(rows.var(ddof=1) - (square - value**2) / (n - 1)), 0.0)
    size = n if sample.independent else effective_size(rows.reshape(sample.x.shape[:2]))
    centred = float(max(1 - value**2 / square, 0)) if square > 0 else 1.0
    return Discrepancy(float(value), math.sqrt(4 * between / size + centred * chance**2), chance)


@eqx.filter_jit
def _rows(bank: Bank, points: Points) -> tuple[Scalar, Float[Array, "n"], Scalar]:
    """U, the mean of u over the others for every draw, and the mean square of u."""
    sums = sweep(bank, points, default_pairs(points.x.shape[0]))
    n = points.x.shape[0]
    return sums.u[0], sums.others[0] / (n - 1), jnp.sum(sums.squares[0]) / (n * (n - 1))
