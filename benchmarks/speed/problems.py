"""The problems that every program solves alike: the same model, numbers, starting particles, batch and optimiser.

    logistic   w | alpha ~ N(0, I/alpha), alpha ~ Gamma(1, 0.01), y ~ Bernoulli(sigma(w'x)); u = (w, log alpha), d = 56
    network    y ~ N(f_W(x), 1/gamma), one hidden layer of 50, W ~ N(0, 1/lambda), gamma, lambda ~ Gamma(1, 0.1); d = 753

Every step sees ``BATCH`` rows of ``ROWS`` and scales their likelihood; the optimiser is Adam.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from polystein import Target
from polystein.models import AbstractModel, Logistic, Network, Rows

ROWS, BATCH, STEP_SIZE = 2000, 100, 0.01


@dataclass(frozen=True)
class Problem:
    """A model with its rows, ready for whoever brings a step."""

    name: str
    model: AbstractModel
    rows: Rows

    def target(self) -> Target:
        """With minibatches that Polystein draws."""
        return self.model.target(self.rows, batch=BATCH)

    @property
    def dim(self) -> int:
        """d."""
        return self.target().dim

    def start(self, n: int) -> np.ndarray:
        """The particles that everybody starts from."""
        return 0.1 * np.random.default_rng(1).standard_normal((n, self.dim)).astype(np.float32)

    def density(self) -> Callable[[Float[Array, "d"], Any], Float[Array, ""]]:
        """log p(u) of the whole posterior as estimated from some rows: what JAX's other libraries get."""
        target = self.target()

        def log_p(u: Float[Array, "d"], rows: Any) -> Float[Array, ""]:
            params, jacobian = target.tree(u)
            likelihood = jnp.sum(self.model.log_likelihood(params, rows))
            return self.model.log_prior(params) + jacobian + len(self.rows.y) / rows.y.shape[0] * likelihood

        return log_p

    def batch(self, step: Array) -> Rows:
        """The next rows in the order in which they are stored: the cheapest batches there are."""
        at = (step * BATCH) % len(self.rows.y)
        return Rows(*(jax.lax.dynamic_slice_in_dim(jnp.asarray(a), at, BATCH) for a in self.rows))


@cache
def logistic() -> Problem:
    """54 features and a column of ones, as Covertype has them."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.standard_normal((ROWS, 54)), np.ones((ROWS, 1))], 1).astype(np.float32)
    y = (rng.random(ROWS) < 1 / (1 + np.exp(-x @ rng.standard_normal(55) / 4))).astype(np.float32)
    return Problem("logistic", Logistic(55), Rows(x, y))


@cache
def network(features: int = 13) -> Problem:
    """One hidden layer of 50, as in the paper; 13 features, as Boston housing has them."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, features)).astype(np.float32)
    y = (np.sin(x[:, 0]) + 0.1 * rng.standard_normal(ROWS)).astype(np.float32)
    return Problem("network", Network(features), Rows(x, y))
