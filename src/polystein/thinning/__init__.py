r"""Which of the draws to keep, and with what weights, so that they stand for the target as well as they can.

thin            m draws, chosen one by one:           min over j of KSD^2 of the draws so far and x_j
stein_weights   a weight for every draw:              min over the simplex of sum_ij w_i w_j u(x_i, x_j)
recombine       either of several runs put together
"""

from polystein.thinning.greedy import Thinned, thin
from polystein.thinning.importance import Weighted, stein_weights
from polystein.thinning.pool import Recombined, recombine
from polystein.thinning.preconditioners import (
    AbstractPreconditioner,
    Identity,
    Median,
    SampleCovariance,
    ScaledMedian,
)

__all__ = [
    "AbstractPreconditioner",
    "Identity",
    "Median",
    "Recombined",
    "SampleCovariance",
    "ScaledMedian",
    "Thinned",
    "Weighted",
    "recombine",
    "stein_weights",
    "thin",
]
