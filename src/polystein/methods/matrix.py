r"""SVGD with matrix-valued kernels: a metric of curvature in the kernel, and its inverse in the step (Wang et al. 2019).

constant   K(x, y) = Q^-1 k(x, y),                            k of distances |x - y|_Q
           phi(x_i) = Q^-1 (1/n) sum_j [k_ji s_j + grad_{x_j} k_ji]

mixture    K(x, y) = sum_l w_l(x) w_l(y) Q_l^-1 k_l(x, y),     w_l(x) = N(x; z_l, Q_l^-1) / sum_m N(x; z_m, Q_m^-1)
           phi(x_i) = sum_l w_l(x_i) Q_l^-1 (1/n) sum_j w_l(x_j) [k_l (s_j + grad log w_l(x_j)) + grad_{x_j} k_l]
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein import _checks
from polystein._types import Key, Points, Trace
from polystein.curvature import AbstractCurvature, Fisher, Roots
from polystein.kernels import AbstractBandwidth, AbstractRadial, LiuWang, kernel_of
from polystein.methods.base import AbstractMethod, Swarm
from polystein.numerics import cast
from polystein.stein import RadialJet, Tile, radial_drift

_curvature = _checks.instance("a curvature", AbstractCurvature, example="Fisher() or Hessian(target.log_density)")
_kernel = _checks.instance(
    "a radial kernel or a bandwidth rule", AbstractRadial, AbstractBandwidth, example="RBF(1.0) or LiuWang()"
)


class MatrixSVGD(AbstractMethod):
    """SVGD in the metric of the curvature of the density, averaged over particles or with an anchor at each.

    **Arguments:**

    - ``curvature``: Q at every particle: ``Fisher()`` and ``Kronecker(shapes)`` from scores, ``Hessian(log_density)``, or
      ``Given(matrix)``.
    - ``mixture``: whether every particle is an anchor z_l with its own Q_l, at n times the cost; else their mean is used.
    - ``kernel``: k, or a rule for the bandwidth of a Gaussian, in distances of each metric.

    >>> MatrixSVGD(mixture=True).mixture
    True
    """

    curvature: AbstractCurvature = eqx.field(converter=_curvature, default_factory=Fisher)
    mixture: bool = eqx.field(static=True, converter=_checks.flag("mixture"), default=False)
    kernel: AbstractRadial | AbstractBandwidth = eqx.field(converter=_kernel, default_factory=LiuWang)

    def init(self, x: Float[Array, "n d"]) -> Any:
        """What the curvature remembers."""
        return self.curvature.init(x)

    def velocity(self, swarm: Swarm, memory: Any, key: Key) -> tuple[Float[Array, "n d"], Any, Trace]:
        """phi(x_i)."""
        roots, memory = self.curvature.roots(swarm.points, memory, each=self.mixture)
        if self.mixture:
            return mixed(swarm, swarm.x, roots, self.kernel), memory, {}
        white = whitened(swarm, roots)
        return jax.vmap(roots.back)(white.drift(_kernel_at(self.kernel, white.x))), memory, {}


class Preconditioned(AbstractMethod):
    """x_i <- x_i + eps Q_i^-1 s_i: independent ascents in the metric of the curvature, the control of ``MatrixSVGD``.

    **Arguments:** ``curvature``; ``own``: whether each particle has a metric of its own, or all their mean.

    >>> Preconditioned(own=True).own
    True
    """

    curvature: AbstractCurvature = eqx.field(converter=_curvature, default_factory=Fisher)
    own: bool = eqx.field(static=True, converter=_checks.flag("own"), default=False)

    def init(self, x: Float[Array, "n d"]) -> Any:
        """What the curvature remembers."""
        return self.curvature.init(x)

    def velocity(self, swarm: Swarm, memory: Any, key: Key) -> tuple[Float[Array, "n d"], Any, Trace]:
        """Q_i^-1 s_i."""
        roots, memory = self.curvature.roots(swarm.points, memory, each=self.own)
        inverse = lambda root, s: root.back(root.scores(s))
        return jax.vmap(inverse, in_axes=(0 if self.own else None, 0))(roots, swarm.s), memory, {}


def whitened(swarm: Swarm, roots: Roots) -> Swarm:
    """Particles L'x and scores L^-1 s."""
    points = swarm.points
    both = jax.vmap(roots.whiten)(points.x), jax.vmap(roots.scores)(points.s)
    return Swarm(eqx.tree_at(lambda p: (p.x, p.s), points, both), swarm.pairs)


def log_weights(x: Float[Array, "n d"], anchors: Float[Array, "a d"], roots: Roots) -> Float[Array, "n a"]:
    """log w_l(x_j): normal densities about the anchors, normalised over them."""

    def one(anchor: Float[Array, "d"], root: Roots) -> Float[Array, "n"]:
        gap = jax.vmap(root.whiten)(x - anchor[None])
        return root.log_volume - jnp.sum(gap**2, 1) / 2

    return jax.nn.log_softmax(jax.vmap(one)(anchors, roots).T, 1)


def mixed(
    swarm: Swarm, anchors: Float[Array, "a d"], roots: Roots, kernel: AbstractRadial | AbstractBandwidth
) -> Float[Array, "n d"]:
    """The drift of the mixture of matrix-valued kernels about some anchors; ``roots`` have a leading axis of anchors."""
    points = swarm.points
    weights = jnp.exp(log_weights(points.x, anchors, roots)).T
    pulls = jax.vmap(lambda z, root: jax.vmap(lambda x: -root.lift(root.whiten(x - z)))(points.x))(anchors, roots)
    slopes = pulls - jnp.einsum("aj,ajd->jd", weights, pulls)[None]  # grad log w_l(x_j)

    def about(weight: Float[Array, "n"], slope: Float[Array, "n d"], root: Roots) -> Float[Array, "n d"]:
        tilted = eqx.tree_at(lambda p: p.s, points, points.s + slope)
        white = whitened(Swarm(tilted, swarm.pairs), root)
        k = cast(_kernel_at(kernel, white.x), white.x.dtype)
        if not isinstance(k, AbstractRadial):
            raise TypeError(
                f"kernel={kernel} has a bandwidth per dimension; expected one number; use LiuWang() with mixture=True"
            )

        def block(rows: Points, cols: Points) -> Float[Array, "r d"]:
            tile = Tile.of(rows, cols)
            jet = RadialJet(*(part * weight[cols.id][None] for part in k.profile(tile.r2)))
            return weight[rows.id][:, None] * radial_drift(jet, tile)

        return jax.vmap(root.back)(swarm.pairs.sum(block, white.points, white.points)) / points.count

    return jnp.sum(jax.vmap(about)(weights, slopes, roots), 0)


def _kernel_at(kernel: AbstractRadial | AbstractBandwidth, x: Float[Array, "n d"]) -> Any:
    return kernel_of(kernel(x)) if isinstance(kernel, AbstractBandwidth) else kernel
