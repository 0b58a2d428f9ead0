r"""How good is a sample, of anybody's sampler: one sample judged, several compared, a run followed.

check         tables, test, words and figures for one sample
"""

from polystein.quality.judge import check
from polystein.quality.verdict import Check

__all__ = ["Check", "check"]
