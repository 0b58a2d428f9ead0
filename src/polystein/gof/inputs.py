"""What a test may be given, and what makes its answer worthless: said in a sentence before anything is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from polystein._checks import sample_with_scores, whole, within
from polystein._types import Points, Scalar, Vector, scores_at
from polystein.discrepancy import Scored
from polystein.kernels import IMQ, RBF, AbstractKernel, Bank, Cosine, MatrixSVGDMedian, as_bank, check_kernels

REPEATS = 0.01  # the share of rows that may repeat others: on a line, float32 has no more than some millions of places
MEDIAN = 4  # which of `many_kernels` is that of `one_kernel`


def prepared(
    samples: Float[Array, "n d"], target: Scored | Float[Array, "n d"], *, least: int, repeats: bool = False
) -> Points:
    """A sample that can be tested, with its scores.

    Refuses fewer than ``least`` draws, a coordinate that never changes, and, unless chains may repeat themselves, rows that
    occur twice: independent draws of a density never do, but for the few that rounding makes one.
    """
    x, scores = sample_with_scores(samples, target)
    n = x.shape[0]
    if isinstance(scores, tuple):
        raise ValueError(
            "a pair of half-batch scores was given; a test needs exact scores, one a row, for its level holds for those only; "
            "pass the scores of all data"
        )
    if n < least:
        raise ValueError(f"{n} sample{'s' * (n > 1)} given; a test expected at least {least}; draw more")
    known = np.asarray(x)
    still = np.flatnonzero((known == known[:1]).all(0))
    if still.size:
        raise ValueError(
            f"column {still[0]} of the samples is constant ({known[0, still[0]]:.4g}); expected draws of a density, in which "
            "every coordinate moves; drop the column from samples and target, or mend the sampler"
        )
    distinct = len(np.unique(known, axis=0))
    if n - distinct > REPEATS * n and not repeats:
        raise ValueError(
            f"{n - distinct} of {n} samples are duplicates of others; expected independent draws, which never repeat; pass "
            "null=MarkovBootstrap() for the draws of a chain, or drop duplicates if they came from copying"
        )
    return Points.of(x, scores)


def standardised(points: Points) -> Points:
    """Coordinates in units of their standard deviations, scores in the inverse units.

    >>> import jax.numpy as jnp
    >>> points = standardised(Points.of(jnp.array([[0.0], [4.0]]), jnp.array([[1.0], [3.0]])))
    >>> points.x.tolist(), points.s.tolist()
    ([[0.0], [2.0]], [[2.0], [6.0]])
    """
    scale = jnp.std(points.x, 0, keepdims=True)
    return Points(points.x / scale, points.s * scale, points.id)


def placed(points: Points, kernel: AbstractKernel | Bank | None, *, default: Callable[[Points], Bank]) -> tuple[Points, Bank]:
    """The points and the bank that a test uses: in standardised coordinates the default, where no kernel is given.

    Kernels that are given see the samples as they are.
    """
    if kernel is None:
        points = standardised(points)
        return points, default(points)
    bank = as_bank(Bank(kernel) if isinstance(kernel, AbstractKernel) else kernel)
    check_kernels(bank, points.x)
    return points, bank


def one_kernel(points: Points) -> Bank:
    """IMQ with h the median of r^2.

    >>> import jax.numpy as jnp
    >>> one_kernel(Points.of(jnp.array([[0.0], [1.0], [3.0]]), jnp.zeros((3, 1))))[0].h.item()
    1.0
    """
    return Bank(IMQ(MatrixSVGDMedian()(points.x)))


def many_kernels(points: Points) -> Bank:
    """RBF with h = med r^2 4^k, k = -2, ..., 1, for differences of every size; IMQ, for far tails; Cosine, for moments.

    Chosen on the validation settings of ``benchmarks.goodness_of_fit``. A kernel more costs a share of the level, so there are
    few; bounded ones only, for under a polynomial the level is lost where target or sample has heavy or skewed tails.

    >>> import jax.numpy as jnp
    >>> len(many_kernels(Points.of(jnp.array([[0.0], [1.0], [3.0]]), jnp.zeros((3, 1)))))
    6
    """
    x = points.x
    h = MatrixSVGDMedian()(x)
    moments = Cosine(3, centre=jnp.mean(x, 0), length=x.shape[1] ** 0.5)
    return Bank(*(RBF(h * 4.0**k) for k in (-2, -1, 0, 1)), IMQ(h), moments)


def level_of(level: float) -> float:
    """A level in (0, 1)."""
    return float(within("level", 0.0, 1.0)(level))


def draws_of(bootstraps: int, level: float) -> int:
    """How many bootstrap draws; fewer than 1 / level - 1 could never reject."""
    count = whole("bootstraps", least=1, example=999)(bootstraps)
    if (count + 1) * level < 1 - 1e-9:
        raise ValueError(
            f"{count} bootstraps at level {level:g}; expected at least {round(1 / level) - 1}, for the least p-value is "
            f"1/{count + 1}; try bootstraps=999"
        )
    return count


class Verified(NamedTuple):
    """Scores with the log density they should be of, in place of a target: tried at a few draws whenever they are used.

    >>> import jax.numpy as jnp
    >>> from polystein import IMQ, ksd
    >>> x = jnp.array([[0.0], [1.0]])
    >>> ksd(x, Verified(x, lambda u: -0.5 * jnp.sum(u**2)), IMQ())
    Traceback (most recent call last):
        ...
    ValueError: scores[1] is [1.0] and the density's gradient there is [-1.0]; ...
    """

    scores: Float[Array, "n d"]
    log_density: Callable[[Vector], Scalar] | Any

    def score(self, x: Float[Array, "n d"], /) -> Float[Array, "n d"]:
        """The scores, once they are seen to be those of the density at x."""
        check_scores(x, self.scores, self.log_density)
        return self.scores


def check_scores(
    samples: Float[Array, "n d"], scores: Float[Array, "n d"], log_density: Callable[[Vector], Scalar] | Any, *, rows: int = 8
) -> None:
    """Refuses scores that are not the gradient of a log density, as tried at a few rows spread over the sample.

    **Arguments:**

    - ``samples``, ``scores``: one row per draw.
    - ``log_density``: a function of one row, or a ``Target``.
    - ``rows``: at how many rows it is tried.

    >>> import jax.numpy as jnp
    >>> x = jnp.ones((4, 2))
    >>> check_scores(x, -x, lambda u: -0.5 * jnp.sum(u**2))
    >>> check_scores(x, x, lambda u: -0.5 * jnp.sum(u**2))
    Traceback (most recent call last):
        ...
    ValueError: scores[0] is [1.0, 1.0] and the density's gradient there is [-1.0, -1.0]; ...
    """
    x, s = sample_with_scores(samples, scores)
    density = getattr(log_density, "log_density", log_density)
    n = x.shape[0]
    tried = np.unique(np.linspace(0, n - 1, min(rows, n)).round().astype(int))
    exact = np.asarray(scores_at(x[tried], jax.vmap(jax.grad(density))(x[tried])))
    given = np.asarray(s)[tried]
    size = np.sqrt((exact**2).mean()) + np.abs(exact)
    wrong = np.flatnonzero((np.abs(given - exact) > 1e-2 * size).any(1))
    if wrong.size:
        shown = lambda a: [float(f"{b:.4g}") for b in a[wrong[0]][:4]]
        raise ValueError(
            f"scores[{tried[wrong[0]]}] is {shown(given)} and the density's gradient there is {shown(exact)}; expected "
            "grad log p; look for a sign, a missing log-Jacobian, or coordinates in another order"
        )
