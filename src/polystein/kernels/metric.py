"""Radial kernels of a distance of one's own: k = phi((x - y)' L (x - y)), L = A'A."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein._checks import finite, instance
from polystein._types import Scalar, Vector
from polystein.kernels.base import AbstractPairwise, AbstractRadial
from polystein.kernels.radial import IMQ
from polystein.numerics import cast
from polystein.stein import Jet

_radial = instance("a radial kernel", AbstractRadial, example="IMQ() or RBF()")


class Metric(AbstractPairwise):
    """phi(|A (x - y)|^2): a radial kernel in coordinates A x, and its Stein kernel in those of x.

    **Arguments:** ``kernel``: phi; ``root``: A, a matrix of shape (e, d), or one number for a multiple of the identity.

    >>> import jax.numpy as jnp
    >>> round(float(Metric(IMQ(), jnp.diag(jnp.array([1.0, 0.1])))(jnp.zeros(2), jnp.array([0.0, 10.0]))), 4)
    0.7071
    """

    kernel: AbstractRadial = eqx.field(converter=_radial, default_factory=IMQ)
    root: Float[Array, "..."] = eqx.field(converter=finite("root"), default=1.0)

    @property
    def smooth(self) -> bool:
        """As the kernel underneath."""
        return self.kernel.smooth

    def __call__(self, x: Vector, y: Vector) -> Scalar:
        """phi(|A (x - y)|^2)."""
        a = self._matrix(x)
        return self.kernel(a @ x, a @ y)

    def jet(self, y: Vector, x: Vector) -> Jet:
        """grad_x k = 2 phi' L (x - y) = -grad_y k; tr grad_y grad_x k = -2 phi' tr L - 4 phi'' |L (x - y)|^2."""
        a = self._matrix(x)
        z = a @ (x - y)
        slope, r2 = a.T @ z, z @ z
        jet = cast(self.kernel, x.dtype).profile(r2)
        second = jnp.where(r2 > 0, jet.second * (slope @ slope) / jnp.where(r2 > 0, r2, 1), 0)
        dx = 2 * jet.first * slope
        return Jet(jet.value, -dx, dx, -2 * jet.first * jnp.sum(a**2) - 4 * second)

    def _matrix(self, x: Vector) -> Float[Array, "e d"]:
        d, root = x.shape[0], self.root.astype(x.dtype)
        if root.shape and (len(root.shape) != 2 or root.shape[1] != d):
            raise ValueError(f"root of shape {root.shape} for points of {d} dimensions; expected (e, {d}), or one number")
        return root if root.shape else root * jnp.eye(d, dtype=x.dtype)
