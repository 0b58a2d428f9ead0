"""From the discrepancies under m kernels to one statistic: what is large where some kernel, or several, see a difference.

Every aggregate takes the U_i of the sample and of all bootstrap draws, one per column, and answers with one number a column.
Whatever it is, the rank of the sample's number among the draws' is a p-value: kernels need no correction for their number.
"""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein._checks import instance, nonnegative
from polystein.discrepancy import maximise


class AbstractAggregate(eqx.Module):
    """One number from the discrepancies under m kernels."""

    @abstractmethod
    def __call__(self, u: Float[Array, "m c"], deviation: Float[Array, "m"]) -> Float[Array, "c"]:
        """One number a column; ``deviation`` is the null s.d. of each kernel's discrepancy."""


class Sphere(AbstractAggregate):
    """maxMKSD itself: |U_+|_2, and max_i U_i where none is positive, so that it has no atom (erratum 45).

    >>> import jax.numpy as jnp
    >>> Sphere()(jnp.array([[3.0, -2.0], [4.0, -1.0]]), jnp.ones(2)).tolist()
    [5.0, -1.0]
    """

    def __call__(self, u: Float[Array, "m c"], deviation: Float[Array, "m"]) -> Float[Array, "c"]:
        """The largest MKSD over the nonnegative unit sphere."""
        return jax.vmap(maximise, 1)(u).value


class StudentisedSphere(AbstractAggregate):
    """maxMKSD of the bank k_i / sigma_i, sigma_i the null s.d. of U_i: none counts more by its size alone.

    >>> import jax.numpy as jnp
    >>> StudentisedSphere()(jnp.array([[3.0], [8.0]]), jnp.array([1.0, 2.0])).tolist()
    [5.0]
    """

    def __call__(self, u: Float[Array, "m c"], deviation: Float[Array, "m"]) -> Float[Array, "c"]:
        """The largest MKSD of the rescaled bank."""
        return jax.vmap(maximise, 1)(u / deviation[:, None]).value


class StudentisedMax(AbstractAggregate):
    """max_i U_i / sigma_i: the single kernel that sees most.

    >>> import jax.numpy as jnp
    >>> StudentisedMax()(jnp.array([[3.0], [8.0]]), jnp.array([1.0, 2.0])).tolist()
    [4.0]
    """

    def __call__(self, u: Float[Array, "m c"], deviation: Float[Array, "m"]) -> Float[Array, "c"]:
        """The largest."""
        return jnp.max(u / deviation[:, None], 0)


class LeastP(AbstractAggregate):
    """-min_i p_i / w_i, p_i the rank of a column among all: KSDAgg (Schrab, Guedj & Gretton 2022).

    Rejecting where it is large is to reject where some U_i exceeds its own quantile at level u w_i, with u as large as the
    level allows. KSDAgg finds u by bisection on draws of its own; ranking the minima finds the same u exactly, from the same
    draws. Ties of the minimum, of which there are many with few draws, are broken by the mean of the p_i.

    **Arguments:** ``weights``: w_i, one per kernel; equal where not given.

    >>> import jax.numpy as jnp
    >>> LeastP()(jnp.array([[3.0, 1.0], [8.0, 9.0]]), jnp.ones(2)).round(2).tolist()
    [-0.69, -0.69]
    """

    weights: Float[Array, "m"] | None = eqx.field(
        converter=lambda w: None if w is None else nonnegative("weights")(w), default=None
    )

    def __call__(self, u: Float[Array, "m c"], deviation: Float[Array, "m"]) -> Float[Array, "c"]:
        """Less the least weighted p-value."""
        m, columns = u.shape
        if self.weights is not None and self.weights.shape != (m,):
            raise ValueError(f"weights of shape {self.weights.shape} for {m} kernels; expected shape ({m},); give one a kernel")
        ranks = jax.vmap(lambda row: columns - jnp.searchsorted(jnp.sort(row), row))(u) / columns
        p = ranks if self.weights is None else ranks / (m * self.weights[:, None] / jnp.sum(self.weights))
        return -(jnp.min(p, 0) + jnp.mean(ranks, 0) / (2 * columns))


as_aggregate = instance("an aggregate", AbstractAggregate, example="StudentisedMax(), Sphere() or LeastP()")
