r"""The kernel that thinning sees the draws with: k = (1 + (x - y)' L (x - y))^(-1/2), L from the draws.

The draws are in units of their mean absolute deviations first, which makes the choice free of scales. The choices of L are
those of Riabiz et al. (2022), Optimal Thinning of MCMC Output.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from polystein._checks import instance
from polystein._types import Points
from polystein.kernels import IMQ, AbstractKernel, Bank, Metric, as_kernel, check_kernels

SUBSET = 1000  # draws from which a median distance is taken


class AbstractPreconditioner(eqx.Module):
    """How L follows from draws in units of their mean absolute deviations."""

    @abstractmethod
    def kernel(self, x: Float[Array, "n d"]) -> AbstractKernel:
        """The kernel for these draws."""


class Identity(AbstractPreconditioner):
    """L = I.

    >>> import jax.numpy as jnp
    >>> Identity().kernel(jnp.zeros((3, 2)))
    IMQ(h=f32[], c=f32[], beta=f32[])
    """

    def kernel(self, x: Float[Array, "n d"]) -> AbstractKernel:
        """IMQ with h = 1."""
        return IMQ(jnp.ones((), x.dtype))


class Median(AbstractPreconditioner):
    """L = I / l^2, l the median distance.

    >>> import jax.numpy as jnp
    >>> float(Median().kernel(jnp.array([[0.0], [1.0], [3.0]])).h)
    4.0
    """

    def kernel(self, x: Float[Array, "n d"]) -> AbstractKernel:
        """IMQ with h = l^2."""
        return IMQ(jnp.asarray(median_square(np.asarray(x)), x.dtype))


class ScaledMedian(AbstractPreconditioner):
    """L = I log(n) / l^2, l the median distance and n at most 1000.

    >>> import jax.numpy as jnp
    >>> round(float(ScaledMedian().kernel(jnp.array([[0.0], [1.0], [3.0]])).h), 4)
    3.641
    """

    def kernel(self, x: Float[Array, "n d"]) -> AbstractKernel:
        """IMQ with h = l^2 / log n."""
        return IMQ(jnp.asarray(median_square(np.asarray(x)) / math.log(min(x.shape[0], SUBSET)), x.dtype))


class SampleCovariance(AbstractPreconditioner):
    """L = the inverse of the draws' covariance.

    >>> import jax.numpy as jnp
    >>> float(SampleCovariance().kernel(jnp.array([[0.0], [2.0], [4.0]])).root[0, 0])
    0.5
    """

    def kernel(self, x: Float[Array, "n d"]) -> AbstractKernel:
        """A = S^(-1/2), S the covariance."""
        known = np.asarray(x, np.float64)
        values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(known, rowvar=False)))
        if not values[0] > np.finfo(x.dtype).eps * values[-1]:
            raise ValueError(
                f"the covariance of {known.shape[0]} draws of {known.shape[1]} numbers is singular; expected more draws than "
                "numbers, and none a combination of others; use Median()"
            )
        return Metric(IMQ(jnp.ones((), x.dtype)), jnp.asarray((vectors / np.sqrt(values)).T, x.dtype))


as_choice = instance(
    "a kernel or a preconditioner", AbstractKernel, AbstractPreconditioner, example="IMQ(2.0), Median() or SampleCovariance()"
)


def median_square(x: Float[np.ndarray, "n d"]) -> float:
    """The square of the median distance among the draws, or among 1000 spread over them."""
    n = x.shape[0]
    x = x if n <= SUBSET else x[np.linspace(0, n - 1, SUBSET).astype(int)]
    x = x.astype(np.float64)
    distances = np.sqrt(np.concatenate([((x[i + 1 :] - x[i]) ** 2).sum(1) for i in range(len(x) - 1)] or [np.zeros(1)]))
    found = float(np.median(distances)) ** 2
    if not found > 0:
        raise ValueError(
            f"half of the pairs of {n} draws coincide, so that no median distance is known; expected draws that move; "
            "drop repeated draws, or use Identity()"
        )
    return found


def placed(points: Points, choice: AbstractKernel | AbstractPreconditioner | None) -> tuple[Points, AbstractKernel]:
    """The points and the kernel they are seen with: a kernel that is given sees them as they are."""
    chosen = Median() if choice is None else as_choice(choice)
    if isinstance(chosen, AbstractPreconditioner):
        known = np.asarray(points.x, np.float64)
        scale = np.abs(known - known.mean(0)).mean(0)
        if (known == known[:1]).all(0).any():
            column = int((known == known[:1]).all(0).argmax())
            raise ValueError(
                f"column {column} of the samples is constant ({known[0, column]:.4g}); expected draws in which every "
                "coordinate moves; drop the column from samples and target, or give a kernel, which sees them as they are"
            )
        width = jnp.asarray(scale, points.x.dtype)[None]
        points = Points(points.x / width, points.s * width, points.id)
        return points, chosen.kernel(points.x)
    kernel = as_kernel(chosen)
    check_kernels(Bank(kernel), points.x)
    return points, kernel
