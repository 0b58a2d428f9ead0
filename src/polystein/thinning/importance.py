r"""Stein importance weights: draws of any density made to stand for the target by weights (Liu & Lee 2017).

    min  sum_ij w_i w_j u(x_i, x_j)   over   w >= 0, sum w = 1

The least is bounded from below by any feasible w: f(w*) >= f(w) - gap, gap = 2 max_i (w'Uw - (Uw)_i), which comes back with
the weights. Draws close to the target all get some weight, so the programme is dense: O(n^2) memory, O(n^3) time.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from polystein._types import Points, Scalar
from polystein.discrepancy import Scored
from polystein.kernels import AbstractKernel
from polystein.stein import Tile
from polystein.thinning.greedy import points_of
from polystein.thinning.preconditioners import AbstractPreconditioner, placed
from polystein.thinning.simplex import least_on_simplex

MOST = 5000  # draws of which the matrix is 200 MB and the search takes minutes


class Weighted(NamedTuple):
    """``weights`` of the draws, the ``ksd`` they attain, and the ``gap``: by which its square may be above the least."""

    weights: Float[Array, "n"]
    ksd: Scalar
    gap: Scalar

    @property
    def effective(self) -> Scalar:
        """How many draws of equal weight would be as many: 1 / sum w^2."""
        return 1 / jnp.sum(self.weights**2)


def stein_weights(
    samples: Float[Array, "n d"],
    target: Scored | Float[Array, "n d"],
    *,
    kernel: AbstractKernel | AbstractPreconditioner | None = None,
) -> Weighted:
    """Weights under which the draws stand for a target best, whatever they were drawn from.

    **Arguments:** as for ``thin``.

    >>> import jax
    >>> from polystein import stein_weights
    >>> x = jax.random.normal(jax.random.key(0), (200, 1)) + 1.0
    >>> found = stein_weights(x, -x)
    >>> bool(abs(found.weights @ x[:, 0]) < 0.05), bool(found.gap < 1e-3 * found.ksd**2)
    (True, True)
    """
    points, kernel = placed(points_of(samples, target), kernel)
    return optimal(points, kernel)


def optimal(points: Points, kernel: AbstractKernel) -> Weighted:
    """The optimal weights of points seen with a kernel."""
    n, dtype = points.x.shape[0], points.x.dtype
    if n > MOST:
        raise ValueError(
            f"{n} draws given; optimal weights expected at most {MOST}, for their matrix is n x n; choose from the draws "
            f"first, with thin(samples, target, {MOST}) or every {-(-n // MOST)}th draw"
        )
    with jax.enable_x64(True):  # the least may be a millionth of the matrix's entries
        double = lambda a: jnp.asarray(np.asarray(a, np.float64))
        wide = Points(double(points.x), double(points.s), points.id)
        u = np.asarray(_matrix(kernel, wide))
    w = least_on_simplex(u)
    slope = u @ w
    value = w @ slope
    number = lambda a: jnp.asarray(max(float(a), 0.0), dtype)
    return Weighted(jnp.asarray(w, dtype), number(value**0.5), number(2 * (value - slope.min())))


@eqx.filter_jit
def _matrix(kernel: AbstractKernel, points: Points) -> Float[Array, "n n"]:
    return kernel.stein(Tile.of(points, points))
