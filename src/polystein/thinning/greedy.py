r"""Stein thinning: from n draws the m that stand for the target best, chosen one by one (Riabiz et al. 2022).

    j_t = argmin_j  u(x_j, x_j) / 2 + sum_{s < t} u(x_{j_s}, x_j)

so that the KSD of the first t is as small as one more draw can make it. Memory is O(n d), time O(m n d).
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from polystein._checks import sample_with_scores, whole
from polystein._types import Points, Scalar
from polystein.discrepancy import Scored
from polystein.kernels import AbstractKernel, Bank
from polystein.stein import Tile
from polystein.thinning.preconditioners import AbstractPreconditioner, placed


class Thinned(NamedTuple):
    """``indices`` of the chosen draws, in the order of choice, repeats among them; ``ksd``: of the first t, for every t."""

    indices: Int[Array, "m"]
    ksd: Float[Array, "m"]


def thin(
    samples: Float[Array, "n d"],
    target: Scored | Float[Array, "n d"],
    size: int,
    *,
    kernel: AbstractKernel | AbstractPreconditioner | None = None,
) -> Thinned:
    """The ``size`` draws that stand for a target best, whatever the draws are: burn-in, repeats and bias included.

    **Arguments:**

    - ``samples``: x, one row per draw.
    - ``target``: a ``Target``, or the scores grad log p at each row.
    - ``size``: m, how many to keep; a draw may be kept more than once.
    - ``kernel``: ``Median()`` by default, or another preconditioner of ``polystein.thinning``: an IMQ kernel in units of the
      draws' mean absolute deviations; or a kernel for the samples as they are.

    >>> import jax
    >>> from polystein import thin
    >>> x = jax.random.normal(jax.random.key(0), (500, 1)) + 1.0
    >>> kept = x[thin(x, -x, 30).indices]
    >>> bool(abs(kept.mean()) < 0.1), bool(abs(x.mean()) < 0.1)
    (True, False)
    """
    size = whole("size", least=1)(size)
    points = points_of(samples, target)
    points, kernel = placed(points, kernel)
    return chosen(points, kernel, size)


def points_of(samples: Float[Array, "n d"], target: Scored | Float[Array, "n d"]) -> Points:
    """Draws with their exact scores."""
    x, scores = sample_with_scores(samples, target)
    if isinstance(scores, tuple):
        raise ValueError("a pair of half-batch scores was given; expected exact scores, one a row; pass those of all data")
    return Points.of(x, scores)


@eqx.filter_jit
def chosen(points: Points, kernel: AbstractKernel, size: int) -> Thinned:
    """The whole search as one loop on the device.

    >>> import jax.numpy as jnp
    >>> from polystein import IMQ, Points
    >>> x = jnp.array([[0.0], [3.0], [-3.0]])
    >>> chosen(Points.of(x, -x), IMQ(), 1).indices.tolist()
    [0]
    """

    def step(carry: tuple[Array, Scalar], t: Int[Array, ""]) -> tuple[tuple[Array, Scalar], tuple[Array, Scalar]]:
        sums, total = carry
        j = jnp.argmin(sums)
        total = total + sums[j]
        one = jax.tree.map(lambda a: lax.dynamic_slice_in_dim(a, j, 1), points)
        column = kernel.stein(Tile.of(points, one))[:, 0]
        return (sums + 2 * column, total), (j, jnp.sqrt(jnp.maximum(total, 0)) / (t + 1))

    start = (Bank(kernel).diagonal(points)[0], jnp.zeros((), points.x.dtype))
    _, (indices, ksd) = lax.scan(step, start, jnp.arange(size))
    return Thinned(indices, ksd)


def distinct(indices: Int[Array, "m"]) -> Int[np.ndarray, "k"]:
    """The chosen rows, each once, in order."""
    return np.unique(np.asarray(indices))
