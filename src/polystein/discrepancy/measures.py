"""KSD, MKSD and maxMKSD of a sample."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein._checks import sample_with_scores
from polystein._types import Points, Scalar
from polystein.discrepancy.statistics import AbstractStatistic, Estimate, U, as_statistic
from polystein.kernels import AbstractKernel, Bank, as_bank, check_kernels
from polystein.pairs import AbstractPairs, as_pairs, default_pairs


@runtime_checkable
class Scored(Protocol):
    """What can tell the score of a sample, such as a ``Target``."""

    def score(self, x: Float[Array, "n d"], /) -> Float[Array, "n d"]:
        """grad log p at every row."""
        ...


def ksd(
    samples: Float[Array, "n d"],
    target: Scored | Float[Array, "n d"] | tuple[Float[Array, "n d"], Float[Array, "n d"]],
    kernel: AbstractKernel | Bank,
    *,
    statistic: AbstractStatistic | None = None,
    pairs: AbstractPairs | None = None,
) -> Estimate:
    r"""Kernel Stein discrepancy S_k(q || p) = E_{x,x'~q} u_p(x, x') of a sample from q: the square of |phi*|.

    **Arguments:**

    - ``samples``: x, one row per draw.
    - ``target``: a ``Target``; or the scores grad log p at each row; or, for ``TwoBatch``, a pair of independent half-batch
      scores.
    - ``kernel``: a kernel, or a bank: then one value per kernel.
    - ``statistic``: ``U()`` by default; ``V()``, ``LinearTime()``, ``Incomplete(key)``, ``TwoBatch()``.
    - ``pairs``: ``Dense()`` or ``Tiled()``; chosen by the number of rows if not given.

    A discrepancy that is to tell whether a sample converges wants an IMQ kernel (erratum 25).

    >>> import jax, jax.numpy as jnp
    >>> from polystein import IMQ, ksd
    >>> x = jax.random.normal(jax.random.key(0), (500, 2))
    >>> right, shifted = ksd(x, -x, IMQ()), ksd(x + 1, -(x + 1), IMQ())
    >>> bool(abs(right.value) < 3 * right.standard_error), bool(shifted.value > 10 * shifted.standard_error)
    (True, True)
    """
    chosen = U() if statistic is None else as_statistic(statistic)
    bank = kernel if isinstance(kernel, Bank) else Bank(kernel)
    samples, scores = sample_with_scores(samples, target)
    n = samples.shape[0]
    if n < chosen.least:
        raise ValueError(
            f"{n} sample{'s' * (n > 1)} given; expected at least {chosen.least} for {type(chosen).__name__}(); "
            "take more, or V(), which is known for a single one"
        )
    check_kernels(bank, samples)
    if isinstance(scores, tuple):
        points = Points.of(samples, (scores[0] + scores[1]) / 2, halves=scores)
    else:
        points = Points.of(samples, scores)
    found = _estimate(chosen, bank, points, default_pairs(n) if pairs is None else as_pairs(pairs))
    return found if isinstance(kernel, Bank) else Estimate(found.value[0], found.standard_error[0])


@eqx.filter_jit
def _estimate(statistic: AbstractStatistic, bank: Bank, points: Points, pairs: AbstractPairs) -> Estimate:
    return statistic.estimate(bank, points, pairs)


class MaxMKSD(NamedTuple):
    """The largest MKSD over the nonnegative unit sphere, and the weights that attain it."""

    value: Scalar
    w: Float[Array, "m"]


def mksd(
    samples: Float[Array, "n d"],
    target: Scored | Float[Array, "n d"] | tuple[Float[Array, "n d"], Float[Array, "n d"]],
    bank: Bank,
    w: Float[Array, "m"],
    *,
    statistic: AbstractStatistic | None = None,
    pairs: AbstractPairs | None = None,
) -> Estimate:
    """Multiple kernel Stein discrepancy sum_i w_i S_{k_i}: the KSD of the kernel sum_i w_i k_i, with its standard error.

    >>> import jax, jax.numpy as jnp
    >>> from polystein import Bank, mksd
    >>> x = jax.random.normal(jax.random.key(0), (100, 2)) + 1
    >>> bool(mksd(x, -x, Bank.dyadic(1.0, 0, 1), jnp.array([0.6, 0.8])).value > 0)
    True
    """
    return ksd(samples, target, as_bank(bank).mix(w), statistic=statistic, pairs=pairs)


def max_mksd(
    samples: Float[Array, "n d"],
    target: Scored | Float[Array, "n d"] | tuple[Float[Array, "n d"], Float[Array, "n d"]],
    bank: Bank,
    *,
    statistic: AbstractStatistic | None = None,
    pairs: AbstractPairs | None = None,
) -> MaxMKSD:
    """max of MKSD over {w >= 0, |w|_2 = 1}: |S_+|_2 at S_+ / |S_+|_2 where some S_i > 0, else max_i S_i at that vertex.

    >>> import jax, jax.numpy as jnp
    >>> from polystein import Bank, max_mksd
    >>> x = jax.random.normal(jax.random.key(0), (100, 2)) + 1
    >>> float(jnp.linalg.norm(max_mksd(x, -x, Bank.dyadic(1.0, -1, 1)).w).round(4))
    1.0
    """
    return maximise(ksd(samples, target, as_bank(bank), statistic=statistic, pairs=pairs).value)


def maximise(s: Float[Array, "m"]) -> MaxMKSD:
    """max <w, S> over the nonnegative unit sphere, in closed form (errata 1, 4 and 45).

    >>> import jax.numpy as jnp
    >>> [a.round(2).tolist() for a in maximise(jnp.array([3.0, 4.0, -1.0]))]
    [5.0, [0.6, 0.8, 0.0]]
    >>> [a.round(2).tolist() for a in maximise(jnp.array([-3.0, -1.0]))]
    [-1.0, [0.0, 1.0]]
    """
    gain = jnp.maximum(s, 0)
    largest = jnp.max(gain)
    some = largest > 0
    unit = gain / jnp.where(some, largest, 1)
    norm = jnp.linalg.norm(jnp.where(some, unit, 1))
    vertex = jnp.arange(s.shape[0]) == jnp.argmax(s)
    return MaxMKSD(jnp.where(some, norm * largest, jnp.max(s)), jnp.where(some, unit / norm, vertex.astype(s.dtype)))
