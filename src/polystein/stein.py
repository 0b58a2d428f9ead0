r"""The Langevin-Stein operator A_p phi = s phi^T + grad phi, and what follows from it for a pair of points.

For a kernel k, a row point y and a column point x with scores s_y, s_x:

    drift    A_p k(x, .) at y      =  k s_x + grad_x k                                             (best_phi)
    stein    u_p(y, x)             =  k s_y.s_x + s_y.grad_x k + s_x.grad_y k + tr grad_y grad_x k (MKSD, erratum 17)

KSD(q || p) = E_{y,x~q} u_p(y, x), and phi*(y) = E_{x~q} drift(y, x) is the direction of steepest descent of KL(q || p),
along which -d/de KL = E_q tr A_p phi (key_obs, errata 15 and 16). ``Jet`` says what a kernel has to know about a pair;
radial and inner-product kernels know it in closed form for a whole tile of pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from polystein._types import Points, Scalar, Vector
from polystein.numerics import every_digit, pair_products, weighted_differences


def stein_operator(phi: Callable[[Vector], Vector], x: Vector, s: Vector) -> Float[Array, "d d"]:
    r"""A_p phi(x) = s(x) phi(x)^T + grad phi(x), whose mean under p vanishes (stein_identity).

    Under another density q its mean is E_q[(s_p - s_q) phi^T] (stein_diff).

    >>> import jax.numpy as jnp
    >>> x = jnp.array([1.0, 2.0])
    >>> print(stein_operator(lambda x: x, x, -x))
    [[ 0. -2.]
     [-2. -3.]]
    """
    return jnp.outer(s, phi(x)) + jax.jacobian(phi)(x).T


class Jet(NamedTuple):
    """A kernel at one pair: k, grad_y k, grad_x k and the trace of grad_y grad_x k."""

    k: Scalar
    dy: Vector
    dx: Vector
    trace: Scalar


def stein_of_pair(jet: Jet, sy: Vector, sx: Vector) -> Scalar:
    """u_p(y, x) = k s_y.s_x + s_y.grad_x k + s_x.grad_y k + tr grad_y grad_x k."""
    return jet.k * (sy @ sx) + sy @ jet.dx + sx @ jet.dy + jet.trace


def drift_of_pair(jet: Jet, sx: Vector) -> Vector:
    """What the point x does to a particle at y: k s_x + grad_x k, the pull of the density and the repulsion."""
    return jet.k * sx + jet.dx


class Tile(eqx.Module):
    """Rows against columns, with everything that all kernels share on them.

    r2 = |y - x|^2, ss = s_y.s_x, rs = (y - x).(s_y - s_x): three matrices serve every radial kernel of a bank.
    """

    rows: Points
    cols: Points
    row_scores: Float[Array, "a d"]
    column_scores: Float[Array, "b d"]
    same: Bool[Array, "a b"]
    r2: Float[Array, "a b"]
    ss: Float[Array, "a b"]
    rs: Float[Array, "a b"]
    close: Bool[Array, ""] | bool

    @staticmethod
    @every_digit
    def of(rows: Points, cols: Points) -> Tile:
        """Compute the shared matrices of a block of pairs."""
        sy, sx = rows.meeting, cols.met
        same = rows.id[:, None] == cols.id[None, :]
        r2, rs, close = pair_products(rows.x, cols.x, sy, sx, same)
        return Tile(rows, cols, sy, sx, same, r2, sy @ sx.T, rs, close)

    @property
    def dim(self) -> int:
        """d, the dimension of the points."""
        return self.rows.x.shape[1]

    def among_live(self, weight: Float[Array, "a b"]) -> Float[Array, "a b"]:
        """Zero in the columns of points that take no part."""
        return weight if self.cols.live is None else jnp.where(self.cols.live[None, :], weight, 0)


class RadialJet(NamedTuple):
    """phi, phi' and r^2 phi'' of k = phi(r^2) on a tile; the last as a product, for phi'' may be infinite at r = 0."""

    value: Float[Array, "*tile"]
    first: Float[Array, "*tile"]
    second: Float[Array, "*tile"]


def radial_stein(jet: RadialJet, tile: Tile) -> Float[Array, "*tile"]:
    """u_p = phi s_y.s_x - 2 phi' (y-x).(s_y-s_x) - 2 d phi' - 4 r^2 phi''."""
    return jet.value * tile.ss - 2 * jet.first * (tile.rs + tile.dim) - 4 * jet.second


@every_digit
def radial_drift(jet: RadialJet, tile: Tile) -> Float[Array, "a d"]:
    """sum_j phi s_j + 2 phi' (x_j - y_i), over the columns j: two matrix products."""
    pull = tile.among_live(jet.value) @ tile.cols.s
    return pull + weighted_differences(2 * tile.among_live(jet.first), tile.rows.x, tile.cols.x, tile.close)


class InnerJet(NamedTuple):
    """psi, psi' and psi'' of k = psi(t), t the inner product of the two points, on a tile."""

    value: Float[Array, "*tile"]
    first: Float[Array, "*tile"]
    second: Float[Array, "*tile"]
