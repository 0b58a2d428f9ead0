"""A test in O(n): the mean of u over disjoint pairs of draws is asymptotically normal."""

from __future__ import annotations

import equinox as eqx
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from polystein._types import Points
from polystein.discrepancy import Estimate, LinearTime, Scored
from polystein.gof.inputs import level_of, one_kernel, placed, prepared
from polystein.gof.result import Contributions, GoodnessOfFit, kernel_name
from polystein.kernels import AbstractKernel, Bank, as_kernel
from polystein.pairs import Dense


def linear_time_test(
    samples: Float[Array, "n d"],
    target: Scored | Float[Array, "n d"],
    kernel: AbstractKernel | None = None,
    *,
    level: float = 0.05,
) -> GoodnessOfFit:
    """Whether a sample is from a target, from n / 2 pairs of independent draws: for millions of them (Liu, Lee & Jordan 2016).

    The statistic is the mean of u in units of its standard error; its null is N(0, 1). It takes many more draws than
    ``ksd_test`` to see the same difference.

    **Arguments:** as for ``ksd_test``.

    >>> import jax
    >>> from polystein.gof import linear_time_test
    >>> x = jax.random.normal(jax.random.key(0), (10_000, 1))
    >>> bool(linear_time_test(x, -x).rejected), bool(linear_time_test(x + 1, -x - 1).rejected)
    (False, True)
    """
    level = level_of(level)
    points, bank = placed(
        prepared(samples, target, least=20), None if kernel is None else Bank(as_kernel(kernel)), default=one_kernel
    )
    found = _estimate(bank, points)
    t = found.value / found.standard_error
    p = norm.sf(t)
    parts = Contributions([kernel_name(kernel) for kernel in bank], found.value, found.standard_error, p)
    return GoodnessOfFit("linear-time KSD test", points.x.shape[0], t[0], p[0], level, parts)


@eqx.filter_jit
def _estimate(bank: Bank, points: Points) -> Estimate:
    return LinearTime().estimate(bank, points, Dense())
