r"""How good is a sample, of anybody's sampler: one sample judged, several compared, a run followed.

check         tables, test, words and figures for one sample
compare       several samplers under one kernel, with the significance of their differences
convergence   a discrepancy, a Stein ratio and a test against the steps of a run
"""

from polystein.quality.comparison import Comparison, compare
from polystein.quality.convergence import Convergence, Snapshots, convergence
from polystein.quality.judge import check
from polystein.quality.verdict import Check

__all__ = ["Check", "Comparison", "Convergence", "Snapshots", "check", "compare", "convergence"]
