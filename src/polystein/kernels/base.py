"""What a kernel is: a function of two points that knows its Stein drift and Stein kernel on a tile of pairs.

An author writes one method and picks the base by what it is: ``profile(r2)`` of an ``AbstractRadial`` kernel
k = phi(|x-y|^2), ``profile(t)`` of an ``AbstractInner`` kernel k = psi(x.y), or ``__call__(x, y)`` of an
``AbstractPointwise`` one; everything else follows.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from polystein._checks import instance, nonnegative, particles, per_dimension, two_points
from polystein._types import Scalar, Vector
from polystein.numerics import cast, every_digit
from polystein.stein import (
    InnerJet,
    Jet,
    RadialJet,
    Tile,
    drift_of_pair,
    radial_drift,
    radial_stein,
    stein_of_pair,
)


class AbstractKernel(eqx.Module):
    """A positive semi-definite k(x, y) with array hyper-parameters as leaves.

    ``smooth`` says whether grad_x grad_y k exists on the diagonal, which a Stein discrepancy needs.
    """

    @property
    def smooth(self) -> bool:
        """Whether the Stein operator may be applied in both arguments."""
        return True

    def meets_smoothly(self, x: Vector, size: Vector) -> Bool[Array, ""]:
        """Whether grad_x grad_y k is found to be finite at (x, x): tried where only a user's code knows.

        ``size`` is the magnitude of each coordinate.
        """
        del x, size
        return jnp.ones((), bool)

    @abstractmethod
    def __call__(self, x: Vector, y: Vector) -> Scalar:
        """k(x, y)."""

    @abstractmethod
    def jet(self, y: Vector, x: Vector) -> Jet:
        """k, its two gradients and the trace of the mixed second derivative at one pair."""

    @abstractmethod
    def stein(self, tile: Tile) -> Float[Array, "a b"]:
        """u_p(y_i, x_j) for every pair of the tile."""

    @abstractmethod
    def drift(self, tile: Tile) -> Float[Array, "a d"]:
        """sum_j k(x_j, y_i) s_j + grad_{x_j} k(x_j, y_i), for every row of the tile."""

    def gram(self, x: Float[Array, "a d"], y: Float[Array, "b d"]) -> Float[Array, "a b"]:
        """k(x_i, y_j) for all pairs."""
        x, y = particles(x, "x"), particles(y, "y")
        if x.shape[1] != y.shape[1]:
            raise ValueError(
                f"points of shapes {x.shape} and {y.shape}; expected the same number of columns; pass points of one space"
            )
        return jax.vmap(lambda xi: jax.vmap(lambda yj: self(xi, yj))(y))(x)

    def __add__(self, other: AbstractKernel) -> AbstractKernel:
        """The sum of two kernels."""
        from polystein.kernels.bank import Bank  # a kernel's algebra lives in the rooms that import this one

        return Bank(self, other).mix(jnp.ones(2))

    def __mul__(self, other: AbstractKernel | float) -> AbstractKernel:
        """The product with a kernel, or a scaling by a nonnegative number."""
        from polystein.kernels.bank import Bank
        from polystein.kernels.pointwise import Product

        if isinstance(other, AbstractKernel):
            return Product(self, other)
        return Bank(self).mix(nonnegative("factor")(other)[None])

    __rmul__ = __mul__


class AbstractPairwise(AbstractKernel):
    """A kernel known by its jet at one pair; a tile is all pairs, vmapped."""

    @every_digit
    def stein(self, tile: Tile) -> Float[Array, "a b"]:
        """u_p at every pair of the tile."""
        kernel = cast(self, tile.r2.dtype)
        sy, sx = tile.row_scores, tile.column_scores
        one = lambda y, sy, x, sx: stein_of_pair(kernel.jet(y, x), sy, sx)
        over_columns = jax.vmap(one, (None, None, 0, 0))
        return jax.vmap(over_columns, (0, 0, None, None))(tile.rows.x, sy, tile.cols.x, sx)

    @every_digit
    def drift(self, tile: Tile) -> Float[Array, "a d"]:
        """The drift of each row, summed over the columns."""
        kernel = cast(self, tile.r2.dtype)
        one = lambda y, x, s: drift_of_pair(kernel.jet(y, x), s)
        per_pair = jax.vmap(jax.vmap(one, (None, 0, 0)), (0, None, None))(tile.rows.x, tile.cols.x, tile.cols.s)
        return jnp.einsum("ab,abd->ad", tile.among_live(jnp.ones_like(tile.r2)), per_pair)


class AbstractPointwise(AbstractPairwise):
    """A kernel of which only k(x, y) is written; its jet is autodiff's. The slowest base, and the tests' oracle."""

    def meets_smoothly(self, x: Vector, size: Vector) -> Bool[Array, ""]:
        """Whether the jet is finite at (x, x), and the jump of grad_x k from y = x - e to y = x + e is linear in e.

        That of Laplace's kernel tends to a constant instead. Near and far e are tried: the near one may be lost in
        rounding, the far one may be longer than the kernel is wide.
        """
        return _meets_smoothly(self, x, size)

    def jet(self, y: Vector, x: Vector) -> Jet:
        """Derivatives of ``__call__``."""
        value, (dy, dx) = jax.value_and_grad(self.__call__, (0, 1))(y, x)
        return Jet(value, dy, dx, jnp.trace(jax.jacfwd(jax.grad(self.__call__, 1), 0)(y, x)))


class AbstractRadial(AbstractKernel):
    """k(x, y) = phi(|x - y|^2)."""

    @abstractmethod
    def profile(self, r2: Float[Array, "*tile"]) -> RadialJet:
        """phi, phi' and r^2 phi'' with their limits at r = 0. ``derivatives(phi, r2)`` finds them where phi is smooth."""

    def __call__(self, x: Vector, y: Vector) -> Scalar:
        """phi(|x - y|^2), differentiable at x = y too."""
        two_points(x, y)
        return _phi(cast(self, x.dtype), jnp.sum((x - y) ** 2))

    def jet(self, y: Vector, x: Vector) -> Jet:
        """grad_x k = 2 phi' (x - y) = -grad_y k; tr grad_y grad_x k = -2 d phi' - 4 r^2 phi''."""
        jet = cast(self, x.dtype).profile(jnp.sum((x - y) ** 2))
        dx = 2 * jet.first * (x - y)
        return Jet(jet.value, -dx, dx, -2 * x.shape[0] * jet.first - 4 * jet.second)

    def stein(self, tile: Tile) -> Float[Array, "a b"]:
        """u_p at every pair of the tile."""
        return radial_stein(cast(self, tile.r2.dtype).profile(tile.r2), tile)

    def drift(self, tile: Tile) -> Float[Array, "a d"]:
        """The drift of each row, summed over the columns."""
        return radial_drift(cast(self, tile.r2.dtype).profile(tile.r2), tile)


def derivatives(phi: Any, r2: Float[Array, "*tile"]) -> RadialJet:
    """phi, phi' and r^2 phi'' of a function that is smooth in r^2, by autodiff.

    >>> import jax.numpy as jnp
    >>> [float(round(a, 3)) for a in derivatives(lambda r2: r2**2, jnp.array(3.0))]
    [9.0, 6.0, 6.0]
    """
    along = lambda f: lambda t: jax.jvp(f, (t,), (jnp.ones_like(t),))[1]
    return RadialJet(phi(r2), along(phi)(r2), r2 * along(along(phi))(r2))


class AbstractInner(AbstractKernel):
    """k(x, y) = psi(t), t = (x - c).(y - c) / l^2: not translation invariant, so the origin c is its own."""

    centre: eqx.AbstractVar[Float[Array, "..."]]
    length: eqx.AbstractVar[Scalar]

    @abstractmethod
    def profile(self, t: Float[Array, "*tile"]) -> InnerJet:
        """psi, psi' and psi'' at the inner product t."""

    def __call__(self, x: Vector, y: Vector) -> Scalar:
        """psi((x - c).(y - c) / l^2)."""
        two_points(x, y)
        kernel = cast(self, x.dtype)
        return kernel.profile(kernel._scaled(x) @ kernel._scaled(y)).value

    def jet(self, y: Vector, x: Vector) -> Jet:
        """grad_x k = psi' (y - c) / l^2; tr grad_y grad_x k = (d psi' + t psi'') / l^2."""
        kernel = cast(self, x.dtype)
        x, y = kernel._scaled(x), kernel._scaled(y)
        t = x @ y
        jet = kernel.profile(t)
        trace = (x.shape[0] * jet.first + t * jet.second) / kernel.length**2
        return Jet(jet.value, jet.first * x / kernel.length, jet.first * y / kernel.length, trace)

    @every_digit
    def stein(self, tile: Tile) -> Float[Array, "a b"]:
        """psi s_y.s_x + psi' (s_y.y + s_x.x + d / l^2) + psi'' t / l^2 (y and x centred, and scaled once)."""
        kernel = cast(self, tile.r2.dtype)
        y, x, length = kernel._scaled(tile.rows.x), kernel._scaled(tile.cols.x), kernel.length
        t = y @ x.T
        jet = kernel.profile(t)
        own = lambda s, z: jnp.sum(s * z, 1) / length
        reach = own(tile.row_scores, y)[:, None] + own(tile.column_scores, x)[None, :] + tile.dim / length**2
        return jet.value * tile.ss + jet.first * reach + jet.second * t / length**2

    @every_digit
    def drift(self, tile: Tile) -> Float[Array, "a d"]:
        """sum_j psi s_j + psi' (y_i - c) / l^2."""
        kernel = cast(self, tile.r2.dtype)
        y, x = kernel._scaled(tile.rows.x), kernel._scaled(tile.cols.x)
        jet = kernel.profile(y @ x.T)
        repulsion = jnp.sum(tile.among_live(jet.first), 1, keepdims=True) * y / kernel.length
        return tile.among_live(jet.value) @ tile.cols.s + repulsion

    def _scaled(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        return (x - jnp.broadcast_to(per_dimension("centre", self.centre, x.shape[-1]), x.shape)) / self.length


as_kernel = instance("a kernel", AbstractKernel, example="RBF(1.0), or Function(f) for a plain function f")


@eqx.filter_jit
def _meets_smoothly(kernel: AbstractPointwise, x: Vector, size: Vector) -> Bool[Array, ""]:
    away = size * (1 + jnp.arange(x.shape[0], dtype=x.dtype) % 3) / x.shape[0] ** 0.5  # no coordinate stays as it is
    slope = lambda y: jax.grad(kernel.__call__)(x, y)
    jump = lambda e: jnp.max(jnp.abs(slope(x + e * away) - slope(x - e * away)))
    linear = [jnp.abs(2 * jump(e) - jump(2 * e)) <= 0.3 * jump(e) for e in (2.0**-18, 2.0**-14)]
    finite = [jnp.all(jnp.isfinite(part)) for part in kernel.jet(x, x)]
    return jnp.all(jnp.stack(finite)) & jnp.any(jnp.stack(linear))


@jax.custom_jvp
def _phi(kernel: AbstractRadial, r2: Scalar) -> Scalar:
    """phi(r2), whose derivatives in r2 are those of the profile: autodiff of a root would be wrong at r = 0."""
    return kernel.profile(r2).value


@jax.custom_jvp
def _dphi(kernel: AbstractRadial, r2: Scalar) -> Scalar:
    """phi'(r2); its own derivative times (x - y)(x - y)^T vanishes at r = 0, so any finite value serves there."""
    return kernel.profile(r2).first


@_phi.defjvp
def _phi_jvp(primals: tuple, tangents: tuple) -> tuple[Scalar, Scalar]:
    (kernel, r2), (dkernel, dr2) = primals, tangents
    value, along_kernel = jax.jvp(lambda k: k.profile(r2).value, (kernel,), (dkernel,))
    return value, along_kernel + _dphi(kernel, r2) * dr2


@_dphi.defjvp
def _dphi_jvp(primals: tuple, tangents: tuple) -> tuple[Scalar, Scalar]:
    (kernel, r2), (dkernel, dr2) = primals, tangents
    value, along_kernel = jax.jvp(lambda k: k.profile(r2).first, (kernel,), (dkernel,))
    away = r2 > 0
    second = jnp.where(away, kernel.profile(r2).second / jnp.where(away, r2, 1), 0)
    return value, along_kernel + second * dr2
