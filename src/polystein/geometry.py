r"""Affine changes of variables u = c + L z: where a posterior is long and narrow in u, it may be round in z.

    log p_z(z) = log p(c + L z) + const,   s_z = L' s_u

A method that runs in z never sees it. Three shapes of L: diagonal, lower triangular, and diagonal times low rank plus identity.
"""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from polystein._types import Key, Points, Scalar, Vector
from polystein.numerics import every_digit
from polystein.target import AbstractDensity, Target, scaled_scores


class AbstractGeometry(eqx.Module):
    """An invertible affine map z -> u = c + L z, applied to rows."""

    centre: eqx.AbstractVar[Float[Array, "d"]]

    @abstractmethod
    def stretch(self, z: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """L z, row by row."""

    @abstractmethod
    def shrink(self, gap: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """L^-1 times each row."""

    @abstractmethod
    def pull(self, s: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """L' s, row by row: scores in u as scores in z."""

    def out(self, z: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """u = c + L z."""
        return self.centre[None] + self.stretch(z)

    def into(self, u: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """z = L^-1 (u - c)."""
        return self.shrink(u - self.centre[None])


class Diagonal(AbstractGeometry):
    """u = c + scale z: each coordinate by itself; for any number of them.

    >>> import jax.numpy as jnp
    >>> Diagonal(jnp.array([1.0]), jnp.array([2.0])).out(jnp.array([[3.0]])).tolist()
    [[7.0]]
    """

    centre: Float[Array, "d"]
    scale: Float[Array, "d"]

    def stretch(self, z: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """scale z."""
        return z * self.scale[None]

    def shrink(self, gap: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """gap / scale."""
        return gap / self.scale[None]

    def pull(self, s: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """scale s."""
        return s * self.scale[None]


class Triangular(AbstractGeometry):
    """u = c + L z with L lower triangular: L L' is a covariance.

    >>> import jax.numpy as jnp
    >>> geometry = Triangular(jnp.zeros(2), jnp.array([[2.0, 0.0], [1.0, 1.0]]))
    >>> geometry.into(geometry.out(jnp.ones((1, 2)))).tolist()
    [[1.0, 1.0]]
    """

    centre: Float[Array, "d"]
    factor: Float[Array, "d d"]

    @every_digit
    def stretch(self, z: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """L z."""
        return z @ self.factor.T

    def shrink(self, gap: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """By forward substitution."""
        return jax.scipy.linalg.solve_triangular(self.factor, gap.T, lower=True).T

    @every_digit
    def pull(self, s: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """L' s."""
        return s @ self.factor


class LowRank(AbstractGeometry):
    """u = c + scale (I + V (diag(stretches) - I) V') z with r orthonormal columns V: r directions stretched apart, O(d r).

    >>> import jax.numpy as jnp
    >>> geometry = LowRank(jnp.zeros(2), jnp.ones(2), jnp.array([[1.0], [0.0]]), jnp.array([3.0]))
    >>> geometry.out(jnp.ones((1, 2))).tolist()
    [[3.0, 1.0]]
    """

    centre: Float[Array, "d"]
    scale: Float[Array, "d"]
    directions: Float[Array, "d r"]
    stretches: Float[Array, "r"]

    @every_digit
    def _along(self, z: Float[Array, "n d"], factor: Float[Array, "r"]) -> Float[Array, "n d"]:
        return z + ((z @ self.directions) * (factor - 1)[None]) @ self.directions.T

    def stretch(self, z: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Along the directions, then coordinate by coordinate."""
        return self._along(z, self.stretches) * self.scale[None]

    def shrink(self, gap: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Undone in the other order."""
        return self._along(gap / self.scale[None], 1 / self.stretches)

    def pull(self, s: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The transpose: coordinates first."""
        return self._along(s * self.scale[None], self.stretches)


def lower_factor(factor: np.ndarray) -> np.ndarray:
    """The lower triangular matrix L with L L' that of ``factor``, without forming the product.

    >>> lower_factor(np.array([[0.0, 2.0], [1.0, 0.0]])).tolist()
    [[2.0, 0.0], [0.0, 1.0]]
    """
    upper = np.asarray(np.linalg.qr(factor.T, mode="r"))
    return upper.T * np.sign(np.diag(upper))


class Whitened(AbstractDensity):
    """A density in the coordinates z of a geometry."""

    density: AbstractDensity
    geometry: AbstractGeometry

    def log_density(self, u: Vector) -> Scalar:
        """log p(c + L z), without the constant log|det L|."""
        return self.density.log_density(self.geometry.out(u[None])[0])

    def points(self, u: Float[Array, "n d"], key: Key | None, step: Int[Array, ""] | int) -> Points:
        """z with s_z = L' s_u, in every estimate of the score."""
        return eqx.tree_at(
            lambda points: points.x,
            scaled_scores(self.density.points(self.geometry.out(u), key, step), self.geometry.pull),
            u,
        )


def whitened(target: Target, geometry: AbstractGeometry) -> Target:
    """The same target in z, its first guess the geometry's centre."""
    return Target(Whitened(target.density, geometry), target.tree, jnp.zeros_like(target.start))
