r"""Goodness of fit: is a sample from a target? A statistic, a p-value, a decision, and which kernel saw the difference.

    ksd_test            U under one kernel, wild bootstrap
    max_mksd_test       max over mixtures of a bank, one sweep, bootstrap draws shared by all kernels
    ksd_agg_test        the least p-value over a bank
    linear_time_test    O(n), asymptotically normal
    fssd_test           a few locations, found on one part of the sample, tested on the other

All take the samples and a ``Target`` or exact scores, and hold their level whatever the kernels, for independent draws; for
those of a Markov chain with ``null=MarkovBootstrap()``.
"""

from polystein.gof.aggregates import AbstractAggregate, LeastP, Sphere, StudentisedMax, StudentisedSphere
from polystein.gof.bootstrap import AbstractBootstrap, MarkovBootstrap, WildBootstrap
from polystein.gof.bootstrapped import ksd_agg_test, ksd_test, max_mksd_test
from polystein.gof.fssd import fssd_test
from polystein.gof.inputs import Verified, check_scores
from polystein.gof.linear import linear_time_test
from polystein.gof.result import Contributions, GoodnessOfFit

__all__ = [
    "AbstractAggregate",
    "AbstractBootstrap",
    "Contributions",
    "GoodnessOfFit",
    "LeastP",
    "MarkovBootstrap",
    "Sphere",
    "StudentisedMax",
    "StudentisedSphere",
    "Verified",
    "WildBootstrap",
    "check_scores",
    "fssd_test",
    "ksd_agg_test",
    "ksd_test",
    "linear_time_test",
    "max_mksd_test",
]
