"""A multivariate normal distribution: the one target about which everything is known."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein._types import Key, Scalar, Vector


class Gaussian(eqx.Module):
    """N(mean, covariance), by its mean and the Cholesky factor of its precision.

    >>> import jax.numpy as jnp
    >>> model = Gaussian.of_covariance(jnp.zeros(2), 4 * jnp.eye(2))
    >>> float(model(jnp.array([2.0, 0.0])))
    -0.5
    """

    mean: Float[Array, "d"]
    precision: Float[Array, "d d"]

    @staticmethod
    def of_covariance(mean: Float[Array, "d"], covariance: Float[Array, "d d"]) -> Gaussian:
        """By the covariance matrix."""
        return Gaussian(mean, jnp.linalg.inv(covariance))

    @property
    def covariance(self) -> Float[Array, "d d"]:
        """The inverse of the precision."""
        return jnp.linalg.inv(self.precision)

    def __call__(self, x: Vector) -> Scalar:
        """log p(x) up to a constant: -(x - mean)' precision (x - mean) / 2."""
        gap = x - self.mean
        return -0.5 * gap @ self.precision @ gap

    def sample(self, key: Key, n: int) -> Float[Array, "n d"]:
        """n exact draws."""
        factor = jnp.linalg.cholesky(self.covariance)
        return self.mean[None] + jax.random.normal(key, (n, self.mean.shape[0])) @ factor.T


def toy(*, sigma_is: str = "precision") -> Gaussian:
    """The paper's two-dimensional Gaussian, its matrix read as ``precision`` (where its numbers come from) or ``covariance``.

    The text calls the matrix a covariance, and the published code it stems from uses it as a precision (erratum 30).

    >>> toy().covariance.round(2).tolist()
    [[5.38, -1.31], [-1.31, 1.79]]
    """
    if sigma_is not in ("precision", "covariance"):
        raise ValueError(f"sigma_is={sigma_is!r}; expected 'precision' or 'covariance'; leave it out for 'precision'")
    mean = jnp.array([-0.6871, 0.8010])
    sigma = jnp.array([[0.2260, 0.1652], [0.1652, 0.6779]])
    return Gaussian(mean, sigma) if sigma_is == "precision" else Gaussian.of_covariance(mean, sigma)
