r"""Are these draws of that target? The one call, whose verdict is wrong for a right sample with probability ``level`` at most.

Half of the level goes to the maxMKSD test, which sees everything that its kernels see; half, shared by all of them, to the
statements on parameters and directions, which say what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from polystein._checks import random_key, whole
from polystein._types import Key, Points
from polystein.gof import AbstractBootstrap, GoodnessOfFit, MarkovBootstrap, WildBootstrap, max_mksd_test
from polystein.gof.inputs import MEDIAN, level_of, one_kernel, placed
from polystein.quality.discrepancy import discrepancy
from polystein.quality.effective import effective_size
from polystein.quality.identities import critical_deviations, directions, parameters
from polystein.quality.sample import Sample, sample_of
from polystein.quality.verdict import Check
from polystein.target import Target


def check(
    draws: Any,
    target: Target | Callable[[Any], Any] | Float[Array | np.ndarray, "..."],
    *,
    constrain: Any = None,
    variables: Sequence[str] | None = None,
    by_chain: bool | None = None,
    independent: bool | None = None,
    level: float = 0.01,
    max_draws: int = 4000,
    key: Key | None = None,
) -> Check:
    """How good draws of any sampler are: parameters, directions, discrepancy, test, effective draws, and what is wrong.

    **Arguments:**

    - ``draws``: an ArviZ object; a dict or another tree of arrays; an array (draws, d) or (chains, draws, d); a ``Posterior``.
      Arrays begin with axes of chains and draws, or of draws alone, and go on with the parameter's own shape.
    - ``target``: a ``Target``; or a log density in JAX, of a dict of the variables or of one vector of all their numbers in
      their order; or the scores at the draws, an array of their shape.
    - ``constrain``: for a log density of constrained parameters, bijections by name, such as ``{"sigma": ps.Positive()}``.
      Draws are then judged in free coordinates (log sigma), to which the log-Jacobian belongs that is added here: near an edge
      at which a density does not vanish, Stein's identity fails.
    - ``variables``: which variables of the draws are parameters, and their order in a vector; all by default.
    - ``by_chain``: whether arrays of a dict begin with (chains, draws), or with draws; told from the target's shapes, else by
      whether all share two first axes, the first the shorter.
    - ``independent``: whether draws are independent, as a ``Posterior``'s are taken to be, or those of Markov chains in their
      order, as all others.
    - ``level``: how often a right sample may be called wrong.
    - ``max_draws``: how many draws the test and the KSD see, whose time is quadratic: every so manieth of each chain.
    - ``key``: of the test's random signs.

    >>> import jax, jax.numpy as jnp, polystein as ps
    >>> x = jax.random.normal(jax.random.key(0), (500, 2))
    >>> ps.check(x, lambda x: -0.5 * jnp.sum(x**2)).fine
    True
    >>> print(ps.check(0.7 * x, lambda x: -0.5 * jnp.sum(x**2)).problems[0])
    x[0] is too narrow: its variance is about 0.5... of what it should be (± 0.0...)
    """
    sample = sample_of(draws, target, constrain=constrain, variables=variables, by_chain=by_chain, independent=independent)
    return judged(sample, level=level_of(level), max_draws=whole("max_draws", least=20, example=4000)(max_draws), key=key)


def judged(sample: Sample, *, level: float, max_draws: int, key: Key | None) -> Check:
    """The verdict on a sample."""
    chains, n, d = sample.x.shape
    signs: Key = random_key(jax.random.key(0) if key is None else key)
    critical = critical_deviations(level / 2, 2 * d + 2)
    each = [
        min(effective_size(sample.x[c : c + 1, :, j]) for j in range(d)) if not sample.independent else float(n)
        for c in range(chains)
    ]
    thinned, words = thin_chains(sample, max_draws)
    null = bootstrap(thinned)
    test = tested(thinned, null, level / 2, signs)
    points, bank = placed(points_of(thinned), None, default=one_kernel)
    measured = discrepancy(bank, points, thinned, float(test.contributions.deviation[MEDIAN]))
    return Check(
        sample,
        parameters(sample, critical),
        directions(sample, critical),
        each,
        measured,
        float(test.contributions.p_value[MEDIAN]),
        test,
        level,
        words,
    )


def tested(sample: Sample, null: AbstractBootstrap, level: float, key: Key) -> GoodnessOfFit:
    """The maxMKSD test, with draws of the null enough for the level."""
    flat = lambda a: jnp.asarray(a.reshape(-1, a.shape[2]))
    count = max(999, math.ceil(5 / level) - 1)
    return max_mksd_test(flat(sample.x), flat(sample.s), key=key, level=level, bootstraps=count, null=null)


def bootstrap(sample: Sample) -> AbstractBootstrap:
    """Signs as correlated as the draws."""
    return WildBootstrap() if sample.independent else MarkovBootstrap(chains=sample.x.shape[0])


def points_of(sample: Sample) -> Points:
    """All draws, chain after chain."""
    flat = lambda a: jnp.asarray(a.reshape(-1, a.shape[2]))
    return Points.of(flat(sample.x), flat(sample.s))


def thin_chains(sample: Sample, most: int) -> tuple[Sample, str]:
    """Every so manieth draw of each chain, so that ``most`` are left at most, and a sentence on it where any was left out.

    >>> import numpy as np
    >>> sample = Sample(np.zeros((2, 100, 1)), np.zeros((2, 100, 1)), ["a"], False, {})
    >>> few, words = thin_chains(sample, 50)
    >>> few.x.shape, words
    ((2, 25, 1), 'the test and the KSD see every 4th draw of each chain, 50 in all')
    """
    chains, n, _ = sample.x.shape
    step = -(-chains * n // most)
    if step == 1:
        return sample, ""
    few = sample._replace(x=sample.x[:, ::step], s=sample.s[:, ::step])
    last = {1: "st", 2: "nd", 3: "rd"}.get(step % 10 if step % 100 not in (11, 12, 13) else 0, "th")
    of = "" if sample.independent else " of each chain"
    return few, f"the test and the KSD see every {step}{last} draw{of}, {few.x[:, :, 0].size} in all"
