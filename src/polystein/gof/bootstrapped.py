"""Tests on all pairs of a sample, calibrated by a wild bootstrap: one kernel, the maximum over a bank, and aggregation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein._checks import random_key
from polystein._types import Key, Points, Scalar
from polystein.discrepancy import Scored
from polystein.gof.aggregates import AbstractAggregate, LeastP, Sphere, StudentisedMax, as_aggregate
from polystein.gof.bootstrap import AbstractBootstrap, WildBootstrap, as_bootstrap
from polystein.gof.forms import quadratic_forms
from polystein.gof.inputs import draws_of, level_of, many_kernels, one_kernel, placed, prepared
from polystein.gof.result import Contributions, GoodnessOfFit, kernel_name
from polystein.kernels import AbstractKernel, Bank, as_kernel


class Trial(NamedTuple):
    """The numbers of one test: its statistic and p-value, and U_i, its null s.d. and p-value for each kernel."""

    statistic: Scalar
    p_value: Scalar
    u: Float[Array, "m"]
    deviation: Float[Array, "m"]
    alone: Float[Array, "m"]


@eqx.filter_jit
def trial(
    bank: Bank, points: Points, aggregate: AbstractAggregate, null: AbstractBootstrap, key: Key, bootstraps: int
) -> Trial:
    """The whole test as one program: signs, one sweep for all kernels and draws, the aggregate's rank among its draws.

    >>> import jax
    >>> from polystein import IMQ, Bank, Points
    >>> x = jax.random.normal(jax.random.key(0), (50, 1))
    >>> trial(Bank(IMQ()), Points.of(x, -x), Sphere(), WildBootstrap(), jax.random.key(1), 19).u.shape
    (1,)
    """
    forms = quadratic_forms(bank, points, null.signs(key, points, bootstraps))
    deviation = forms.spread if null.chains else forms.deviation
    t = aggregate(forms.u, deviation)
    return Trial(t[0], jnp.mean(t >= t[0]), forms.u[:, 0], deviation, forms.p_values)


def ksd_test(
    samples: Float[Array, "n d"],
    target: Scored | Float[Array, "n d"],
    kernel: AbstractKernel | None = None,
    *,
    key: Key,
    level: float = 0.05,
    bootstraps: int = 999,
    null: AbstractBootstrap | None = None,
) -> GoodnessOfFit:
    """Whether a sample is from a target, by the KSD of one kernel (Liu, Lee & Jordan 2016; Chwialkowski et al. 2016).

    **Arguments:**

    - ``samples``: x, one row per draw.
    - ``target``: a ``Target``, or the exact scores grad log p at each row.
    - ``kernel``: a kernel for the samples as they are; by default IMQ in standardised coordinates, h the median
      of r^2.
    - ``key``: for the signs of the bootstrap.
    - ``level``: how often a right sample may be rejected.
    - ``bootstraps``: how many draws of the null; the least p-value is 1 / (bootstraps + 1).
    - ``null``: ``WildBootstrap()`` for independent draws, the default; ``MarkovBootstrap()`` for those of a chain.

    >>> import jax
    >>> from polystein.gof import ksd_test
    >>> x = jax.random.normal(jax.random.key(0), (200, 1))
    >>> bool(ksd_test(x, -x, key=jax.random.key(1)).rejected), bool(ksd_test(x + 1, -x - 1, key=jax.random.key(1)).rejected)
    (False, True)
    """
    bank = None if kernel is None else Bank(as_kernel(kernel))
    return _test("KSD test", samples, target, bank, Sphere(), one_kernel, key, level, bootstraps, null)


def max_mksd_test(
    samples: Float[Array, "n d"],
    target: Scored | Float[Array, "n d"],
    bank: Bank | None = None,
    *,
    key: Key,
    aggregate: AbstractAggregate | None = None,
    level: float = 0.05,
    bootstraps: int = 999,
    null: AbstractBootstrap | None = None,
) -> GoodnessOfFit:
    """Whether a sample is from a target, by the maximum over mixtures of a bank's kernels (maxMKSD) in one sweep.

    Bootstrap draws are shared by all kernels, so that the maximum over kernels is calibrated as a whole.

    **Arguments:**

    - ``samples``, ``target``, ``key``, ``level``, ``bootstraps``, ``null``: as for ``ksd_test``.
    - ``bank``: kernels for the samples as they are; by default six in standardised coordinates: RBF kernels of four widths
      about the median distance, an IMQ kernel, and one for moments.
    - ``aggregate``: ``StudentisedMax()`` by default, the kernel that sees most in units of its null s.d.;
      ``StudentisedSphere()``, maxMKSD of kernels in those units; ``Sphere()``, that of the kernels as they are; ``LeastP()``.

    >>> import jax
    >>> from polystein.gof import max_mksd_test
    >>> x = jax.random.normal(jax.random.key(0), (200, 1))
    >>> bool(max_mksd_test(x, -x, key=jax.random.key(1)).rejected)
    False
    >>> bool(max_mksd_test(2 * x, -2 * x, key=jax.random.key(1)).rejected)
    True
    """
    chosen = StudentisedMax() if aggregate is None else as_aggregate(aggregate)
    return _test("maxMKSD test", samples, target, bank, chosen, many_kernels, key, level, bootstraps, null)


def ksd_agg_test(
    samples: Float[Array, "n d"],
    target: Scored | Float[Array, "n d"],
    bank: Bank | None = None,
    *,
    key: Key,
    weights: Float[Array, "m"] | None = None,
    level: float = 0.05,
    bootstraps: int = 999,
    null: AbstractBootstrap | None = None,
) -> GoodnessOfFit:
    """Whether a sample is from a target, by the least p-value over a bank's kernels, corrected for being the least (KSDAgg).

    **Arguments:** as for ``max_mksd_test``; ``weights``: the share of the level that each kernel gets, equal by default.

    >>> import jax
    >>> from polystein.gof import ksd_agg_test
    >>> x = jax.random.normal(jax.random.key(0), (200, 1))
    >>> bool(ksd_agg_test(x, -x, key=jax.random.key(1)).rejected)
    False
    """
    return _test("KSDAgg test", samples, target, bank, LeastP(weights), many_kernels, key, level, bootstraps, null)


def _test(
    name: str,
    samples: Float[Array, "n d"],
    target: Scored | Float[Array, "n d"],
    bank: Bank | None,
    aggregate: AbstractAggregate,
    default: Callable[[Points], Bank],
    key: Key,
    level: float,
    bootstraps: int,
    null: AbstractBootstrap | None,
) -> GoodnessOfFit:
    key, level = random_key(key), level_of(level)
    bootstraps = draws_of(bootstraps, level)
    signs: AbstractBootstrap = WildBootstrap() if null is None else as_bootstrap(null)
    points = prepared(samples, target, least=3, repeats=signs.chains)
    points, bank = placed(points, bank, default=default)
    found = trial(bank, points, aggregate, signs, key, bootstraps)
    parts = Contributions([kernel_name(kernel) for kernel in bank], found.u, found.deviation, found.alone)
    return GoodnessOfFit(name, points.x.shape[0], found.statistic, found.p_value, level, parts)
