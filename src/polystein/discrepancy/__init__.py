r"""Kernel Stein discrepancies of a sample from a target, for one kernel or a whole bank in one sweep.

    KSD       S_k(q || p)  = E_{x,x'~q} u_p(x, x') = |phi*|^2_{H^d}             (KSD, squared: erratum 2)
    MKSD      S_{k_w}      = sum_i w_i S_{k_i}                                  (Eq_MKSD)
    maxMKSD   max_{w >= 0, |w| = 1} S_{k_w} = |S_+|_2, or max_i S_i where no S_i > 0   (maxMKSD, erratum 45)

Each can be estimated by several statistics, which are never the same number: say which (errata 5 and 6).
"""

from __future__ import annotations

from polystein.discrepancy.measures import MaxMKSD, Scored, ksd, max_mksd, maximise, mksd
from polystein.discrepancy.statistics import (
    AbstractStatistic,
    AbstractSweep,
    Estimate,
    Incomplete,
    LinearTime,
    TwoBatch,
    U,
    V,
    as_statistic,
)
from polystein.discrepancy.sums import Sums, gather, sweep
from polystein.kernels import check_kernels

__all__ = [
    "AbstractStatistic",
    "AbstractSweep",
    "Estimate",
    "Incomplete",
    "LinearTime",
    "MaxMKSD",
    "Scored",
    "Sums",
    "TwoBatch",
    "U",
    "V",
    "as_statistic",
    "check_kernels",
    "gather",
    "ksd",
    "max_mksd",
    "maximise",
    "mksd",
    "sweep",
]
