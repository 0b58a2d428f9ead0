"""What laws are tried on: points on a grid (where ties and coincidences are common), and densities that can be sampled."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import norm

from polystein import Points

seeds = st.integers(0, 2**32 - 1)


def grids(n: int, d: int) -> st.SearchStrategy[np.ndarray]:
    """n points with coordinates in eighths between -3 and 3; of two or more, the last coincides with the first."""

    def meet(a: np.ndarray) -> np.ndarray:
        a = a / 8
        a[-1] = a[0]
        return a

    return hnp.arrays(np.int64, (n, d), elements=st.integers(-24, 24)).map(meet)


def cloud(n: int, d: int) -> st.SearchStrategy[Points]:
    """Such points, with scores of any kind."""
    arrays = st.tuples(grids(n, d), hnp.arrays(np.int64, (n, d), elements=st.integers(-24, 24)))
    return arrays.map(lambda a: Points.of(jnp.asarray(a[0], float), jnp.asarray(a[1] / 8, float)))


def bound(tests: int, risk: float = 1e-3) -> float:
    """How many standard errors all of so many tests together exceed with probability ``risk``, two-sided."""
    return float(norm.isf(risk / tests / 2))


class Gaussian(NamedTuple):
    """N(mean, covariance)."""

    mean: np.ndarray
    covariance: np.ndarray

    def sample(self, rng: np.random.Generator, *shape: int) -> jax.Array:
        """Draws with leading axes ``shape``."""
        z = rng.standard_normal((*shape, len(self.mean)))
        return jnp.asarray(self.mean + z @ np.linalg.cholesky(self.covariance).T)

    def log_density(self, x: jax.Array) -> jax.Array:
        """Up to a constant."""
        gap = x - jnp.asarray(self.mean)
        return -0.5 * gap @ jnp.asarray(np.linalg.inv(self.covariance)) @ gap


class TwoHumps(NamedTuple):
    """An even mixture of N(-mean, I) and N(mean, I): not log-concave."""

    mean: np.ndarray

    def sample(self, rng: np.random.Generator, *shape: int) -> jax.Array:
        """Draws with leading axes ``shape``."""
        side = rng.choice([-1.0, 1.0], (*shape, 1))
        return jnp.asarray(side * self.mean + rng.standard_normal((*shape, len(self.mean))))

    def log_density(self, x: jax.Array) -> jax.Array:
        """Up to a constant."""
        hump = lambda side: -0.5 * jnp.sum((x - side * jnp.asarray(self.mean)) ** 2)
        return jnp.logaddexp(hump(-1.0), hump(1.0))


def score(density: Gaussian | TwoHumps, x: jax.Array) -> jax.Array:
    """grad log p at every point, by autodiff."""
    flat = jax.vmap(jax.grad(density.log_density))(x.reshape(-1, x.shape[-1]))
    return flat.reshape(x.shape)


CORRELATED = Gaussian(np.array([0.5, -1.0]), np.array([[1.0, 0.4], [0.4, 0.7]]))
HUMPS = TwoHumps(np.array([1.2, 0.6]))
