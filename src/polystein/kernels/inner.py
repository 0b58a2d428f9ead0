"""Kernels of the inner product t = (x - c).(y - c) / l^2 of two points, and of the angle between them."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein._checks import finite, kernel_scale, whole
from polystein._types import Scalar, Vector
from polystein.kernels.base import AbstractInner, AbstractKernel
from polystein.numerics import cast, every_digit
from polystein.stein import InnerJet, Jet, Tile


class Linear(AbstractInner):
    """1 + t: under it SVGD drives E s = 0 and E s x^T = -I, so a Gaussian's mean and covariance come out exact.

    >>> import jax.numpy as jnp
    >>> float(Linear()(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])))
    12.0
    """

    centre: Float[Array, "..."] = eqx.field(converter=finite("centre"), default=0.0, kw_only=True)
    length: Scalar = eqx.field(converter=kernel_scale("length"), default=1.0, kw_only=True)

    def profile(self, t: Float[Array, "*tile"]) -> InnerJet:
        """1 + t, 1, 0."""
        return InnerJet(1 + t, jnp.ones_like(t), jnp.zeros_like(t))


class Polynomial(AbstractInner):
    """(1 + t)^degree.

    >>> import jax.numpy as jnp
    >>> float(Polynomial(2)(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])))
    144.0
    """

    degree: int = eqx.field(static=True, converter=whole("degree", least=1), default=2)
    centre: Float[Array, "..."] = eqx.field(converter=finite("centre"), default=0.0, kw_only=True)
    length: Scalar = eqx.field(converter=kernel_scale("length"), default=1.0, kw_only=True)

    def profile(self, t: Float[Array, "*tile"]) -> InnerJet:
        """q (1 + t)^(q-1) and q (q-1) (1 + t)^(q-2); the last term has no negative power where q = 1."""
        q, base = self.degree, 1 + t
        return InnerJet(base**q, q * base ** (q - 1), q * (q - 1) * base ** max(q - 2, 0))


class Cosine(AbstractKernel):
    """cos^q of the angle between (l, x - c) and (l, y - c): g(x) (1 + t)^q g(y), g(x) = (1 + |x - c|^2 / l^2)^(-q / 2).

    It sees a shift, a change of covariance and skewness (q = 1, 2, 3) as a polynomial does, but is bounded, so that far points
    do not drown the others. The factor g is a tilt: A_p (g f) = g A_{pg} f, so that the Stein kernel is g(x) g(y) times that of
    the polynomial with scores s + grad log g.

    >>> import jax.numpy as jnp
    >>> float(Cosine(2)(jnp.array([1.0]), jnp.array([-1.0])).round(4)), float(Cosine()(jnp.ones(3), jnp.ones(3)).round(4))
    (0.0, 1.0)
    """

    degree: int = eqx.field(static=True, converter=whole("degree", least=1), default=3)
    centre: Float[Array, "..."] = eqx.field(converter=finite("centre"), default=0.0, kw_only=True)
    length: Scalar = eqx.field(converter=kernel_scale("length"), default=1.0, kw_only=True)

    def __call__(self, x: Vector, y: Vector) -> Scalar:
        """g(x) (1 + t)^degree g(y)."""
        return self._tilt(x)[0] * self._untilted(x, y) * self._tilt(y)[0]

    def jet(self, y: Vector, x: Vector) -> Jet:
        """The product rule."""
        (gy, ry), (gx, rx) = self._tilt(y), self._tilt(x)
        k, dy, dx, trace = self._untilted.jet(y, x)
        parts = k, dy + k * ry, dx + k * rx, trace + dy @ rx + dx @ ry + k * (ry @ rx)
        return Jet(*(gy * gx * part for part in parts))

    @every_digit
    def stein(self, tile: Tile) -> Float[Array, "a b"]:
        """That of the polynomial, its scores tilted."""
        (gy, ry), (gx, rx) = self._tilt(tile.rows.x), self._tilt(tile.cols.x)
        sy, sx = tile.row_scores + ry, tile.column_scores + rx
        at = lambda tile: (tile.row_scores, tile.column_scores, tile.ss)
        return gy[:, None] * gx[None, :] * self._untilted.stein(eqx.tree_at(at, tile, (sy, sx, sy @ sx.T)))

    @every_digit
    def drift(self, tile: Tile) -> Float[Array, "a d"]:
        """g(y_i) sum_j g(x_j) (psi (s_j + grad log g(x_j)) + psi' (y_i - c) / l^2)."""
        kernel = cast(self._untilted, tile.r2.dtype)
        (gy, _), (gx, rx) = self._tilt(tile.rows.x), self._tilt(tile.cols.x)
        y = kernel._scaled(tile.rows.x)
        jet = kernel.profile(y @ kernel._scaled(tile.cols.x).T)
        psi, first = (tile.among_live(gy[:, None] * gx[None, :] * part) for part in (jet.value, jet.first))
        return psi @ (tile.cols.s + rx) + jnp.sum(first, 1, keepdims=True) * y / kernel.length

    @property
    def _untilted(self) -> Polynomial:
        return Polynomial(self.degree, centre=self.centre, length=self.length)

    def _tilt(self, x: Float[Array, "*n d"]) -> tuple[Float[Array, "*n"], Float[Array, "*n d"]]:
        """g, and grad log g = -degree (x - c) / (l^2 + |x - c|^2)."""
        kernel = cast(self._untilted, x.dtype)
        away = kernel._scaled(x)
        square = 1 + jnp.sum(away**2, -1, keepdims=True)
        return square[..., 0] ** (-self.degree / 2), -self.degree * away / square / kernel.length
