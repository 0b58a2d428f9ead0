"""What makes a test's answer worthless is refused in a sentence: what was given, what was expected, what to do."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from polystein import IMQ, Bank, Target
from polystein.gof import (
    LeastP,
    MarkovBootstrap,
    check_scores,
    fssd_test,
    ksd_agg_test,
    ksd_test,
    linear_time_test,
    max_mksd_test,
)

KEY = jax.random.key(0)
X = np.random.default_rng(0).standard_normal((40, 2)).astype(np.float32)
TWICE, STILL, NAN = np.repeat(X[:20], 2, 0), X.copy(), X.copy()
STILL[:, 1], NAN[3, 0] = 2.5, np.nan
WRONG = Target.of(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(3))

CASES = {
    "duplicates": (lambda: ksd_test(TWICE, -TWICE, key=KEY), "20 of 40 samples are duplicates", "MarkovBootstrap"),
    "duplicates in pairs": (lambda: linear_time_test(TWICE, -TWICE), "20 of 40 samples are duplicates", "drop duplicates"),
    "a constant column": (lambda: max_mksd_test(STILL, -STILL, key=KEY), r"column 1 .* is constant \(2.5\)", "drop the column"),
    "a constant column of a chain": (
        lambda: max_mksd_test(STILL, -STILL, key=KEY, null=MarkovBootstrap()),
        "column 1 .* is constant",
        "drop the column",
    ),
    "nan": (lambda: ksd_agg_test(NAN, -X, key=KEY), "nan", ""),
    "nan scores": (lambda: fssd_test(X, -NAN, key=KEY), "nan", ""),
    "one sample": (lambda: ksd_test(X[:1], -X[:1], key=KEY), "1 sample given", "expected at least 3"),
    "few samples": (lambda: fssd_test(X[:10], -X[:10], key=KEY), "10 samples given", "expected at least 20"),
    "a target of another dimension": (lambda: ksd_test(X, WRONG, key=KEY), "2", "3"),
    "scores of another shape": (lambda: ksd_test(X, -X[:, :1], key=KEY), r"\(40, 1\)", r"\(40, 2\)"),
    "half batches": (lambda: ksd_test(X, (-X, -X), key=KEY), "pair of half-batch scores", "pass the scores of all data"),
    "a level beyond one": (lambda: ksd_test(X, -X, key=KEY, level=1.5), "level", "1.5"),
    "too few draws for the level": (
        lambda: ksd_test(X, -X, key=KEY, level=0.01, bootstraps=50),
        "50 bootstraps",
        "at least 99",
    ),
    "weights for other kernels": (
        lambda: ksd_agg_test(X, -X, Bank(IMQ(1.0), IMQ(2.0)), key=KEY, weights=jnp.ones(3)),
        r"shape \(3,\) for 2 kernels",
        "give one a kernel",
    ),
    "negative weights": (lambda: LeastP(jnp.array([1.0, -1.0])), "weights", "-1"),
    "chains that do not divide": (
        lambda: ksd_test(X, -X, key=KEY, null=MarkovBootstrap(chains=3)),
        "40 samples do not divide over 3 chains",
        "drop 1 samples",
    ),
    "flips beyond one half": (lambda: MarkovBootstrap(0.7), "flip", "0.7"),
    "no key": (lambda: ksd_test(X, -X, key=3.5), "key", ""),
    "an aggregate's class": (
        lambda: max_mksd_test(X, -X, key=KEY, aggregate=LeastP),
        "the class LeastP",
        "forgot the parentheses",
    ),
    "scores that are not the density's": (
        lambda: check_scores(X, X, lambda u: -0.5 * jnp.sum(u**2)),
        r"scores\[0\]",
        "look for a sign",
    ),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_mistakes_are_named(case):
    call, given, remedy = case
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert re.search(given, str(caught.value), re.I), caught.value
    assert re.search(remedy, str(caught.value)), caught.value


def test_repeats_of_a_chain_are_no_mistake():
    """A Metropolis chain stays where it is."""
    x = jnp.asarray(TWICE)
    assert 0 < float(ksd_test(x, -x, key=KEY, bootstraps=19, null=MarkovBootstrap()).p_value) <= 1
