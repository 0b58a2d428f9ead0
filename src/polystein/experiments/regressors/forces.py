r"""The force on the outputs of n networks, by MK-SVGD between the functions that they are.

f_i = (f_i(x_b))_b on a batch,    g_i = d log p(y | f_i) / d f_i

v_i = (1 - a) g_i + a M phi_w(f_i),    phi_w(f_i) = (1/n) sum_j [k_w(f_j, f_i) g_j + grad_{f_j} k_w(f_j, f_i)]
k_w = sum_l w_l exp(-r^2 / h_l),    w_l = sqrt(U_l+) / sum sqrt(U+),    h_l = 2^-4 .. 2^5 mean_{i != j} r_ij^2 / log(n + 1)

a is the share of interaction; U_l is the U-statistic of the functions' discrepancy under kernel l (erratum 5), and weights sum
to 1, so that k_w(f, f) = 1 (erratum 8). With M = n networks v_i is g_i plus what the others say; fewer networks feel the force
of M. Networks of different weights and one function are near here, where in the space of weights kernels saturate (erratum
13). (Wang, Ren, Zhu & Zhang 2019, Function space particle optimization, with one kernel.)

The control has the same force and no cross-talk:  v_i = (1 - a) g_i + a (M/n) sum_j k_w(f_j, f_i) g_i.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein._types import Points, Scalar
from polystein.kernels.bank import octaves
from polystein.numerics import centred
from polystein.stein import Tile, radial_drift, radial_stein

LOW, HIGH = -4, 5
LEAST = 1e-6  # per row: functions that differ by less than a thousandth of a standard deviation are one function


def force(f: Float[Array, "n b"], g: Float[Array, "n b"], share: Scalar, crosstalk: Scalar, of: int) -> Float[Array, "n b"]:
    """v_i of n networks that stand for M = ``of``; the control's where ``crosstalk`` is 0, nothing between where it is 1.

    >>> f, g = jnp.array([[0.0], [1.0]]), jnp.array([[1.0], [3.0]])
    >>> force(f, g, jnp.array(0.0), jnp.array(1.0), 2).tolist()
    [[1.0], [3.0]]
    """
    n = f.shape[0]
    tile = _tile(f, g)
    h = jnp.sum(tile.r2) / max(n * (n - 1), 1) / jnp.log(n + 1.0)
    family = octaves(jnp.maximum(h, LEAST * f.shape[1]), LOW, HIGH)
    jets = family.profiles(tile.r2)
    w = weights(jax.vmap(radial_stein, (0, None))(jets, tile))
    mixed = jax.tree.map(lambda part: jnp.tensordot(w, part, 1), jets)
    others = radial_drift(mixed, tile) / n
    alone = jnp.mean(mixed.value, 1, keepdims=True) * g
    return (1 - share) * g + share * of * (crosstalk * others + (1 - crosstalk) * alone)


def weights(u: Float[Array, "m n n"]) -> Float[Array, "m"]:
    """sqrt(U+) / sum sqrt(U+); all alike where no U is positive (erratum 4).

    >>> weights(jnp.array([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 9.0], [9.0, 0.0]]])).round(2).tolist()
    [0.25, 0.75]
    """
    root = jnp.sqrt(jnp.maximum(jnp.sum(u, (1, 2)) - jnp.trace(u, axis1=1, axis2=2), 0))
    total = jnp.sum(root)
    return jnp.where(total > 0, root / jnp.where(total > 0, total, 1), 1 / u.shape[0])


def _tile(f: Float[Array, "n b"], g: Float[Array, "n b"]) -> Tile:
    """All pairs by matrix products, without the fallback of ``Tile.of``, of which vmap would run both branches.

    What is lost where two functions nearly coincide is lost to k = 1 - r^2/h there.
    """
    points = Points.of(f, g)
    fc, _ = centred(f, f)
    norms, along = jnp.sum(fc**2, 1), jnp.sum(fc * g, 1)
    same = jnp.eye(f.shape[0], dtype=bool)
    r2 = jnp.where(same, 0, jnp.maximum(norms[:, None] + norms[None] - 2 * fc @ fc.T, 0))
    cross = fc @ g.T
    return Tile(points, points, g, g, same, r2, g @ g.T, along[:, None] + along[None] - cross - cross.T, False)
