r"""A Bayesian network for regression, with k hidden layers of rectified units.

y | x, W, gamma ~ N(f_W(x), 1/gamma),    W | lambda ~ N(0, I/lambda),    gamma, lambda ~ Gamma(shape, rate)

f_W(x) = W_k relu(... relu(W_1 x + b_1) ...) + b_k: inputs of a layer are not scaled by their number (erratum 40)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy import stats
from jaxtyping import Array, Float

from polystein import _checks
from polystein._types import Key, Scalar
from polystein.bijections import Positive
from polystein.models.base import AbstractModel, Rows


def _widths(value: Any) -> tuple[int, ...]:
    each = _checks.whole("hidden", least=1, example=50)
    return tuple(map(each, value)) if isinstance(value, Sequence) else (each(value),)


class Network(AbstractModel):
    """A network with Gamma priors on the precisions of its noise (``gamma``) and of its weights and biases (``lambda``).

    **Arguments:**

    - ``features``: p, how many numbers a row has.
    - ``hidden``: units of each hidden layer; one number for a single layer.
    - ``shape``, ``rate``: of both Gamma priors (erratum 32: a rate, not a scale).

    >>> import jax, jax.numpy as jnp
    >>> model = Network(3, hidden=(5, 4))
    >>> draw = model.sample_prior(jax.random.key(0))
    >>> [w.shape for w in draw["weights"]], model.mean(draw, jnp.zeros((7, 3))).shape
    ([(3, 5), (5, 4), (4, 1)], (7,))
    """

    features: int = eqx.field(static=True, converter=_checks.whole("features", least=1), default=1)
    hidden: tuple[int, ...] = eqx.field(static=True, converter=_widths, default=(50,))
    shape: Scalar = eqx.field(converter=_checks.positive("shape"), default=1.0)
    rate: Scalar = eqx.field(converter=_checks.positive("rate"), default=0.1)

    @property
    def constrain(self) -> dict[str, Any]:
        """Both precisions are positive."""
        return {"gamma": Positive(), "lambda": Positive()}

    def sample_prior(self, key: Key) -> dict[str, Any]:
        """Precisions from their Gamma priors, weights and biases from N(0, 1/lambda)."""
        precisions, weights = jax.random.split(key)
        gamma, lam = jax.random.gamma(precisions, self.shape, (2,)) / self.rate
        sizes = list(pairwise((self.features, *self.hidden, 1)))
        keys = jax.random.split(weights, 2 * len(sizes))
        draw = lambda key, shape: jax.random.normal(key, shape) / jnp.sqrt(lam)
        return {
            "weights": [draw(key, size) for key, size in zip(keys[::2], sizes, strict=True)],
            "biases": [draw(key, size[1:]) for key, size in zip(keys[1::2], sizes, strict=True)],
            "gamma": gamma,
            "lambda": lam,
        }

    def mean(self, params: dict[str, Any], x: Float[Array, "B p"]) -> Float[Array, "B"]:
        """f_W(x) of every row."""
        layers = list(zip(params["weights"], params["biases"], strict=True))
        for weights, biases in layers[:-1]:
            x = jax.nn.relu(x @ weights + biases[None])
        weights, biases = layers[-1]
        return (x @ weights + biases[None])[:, 0]

    def log_prior(self, params: dict[str, Any]) -> Scalar:
        """log N(W; 0, 1/lambda) + log Gamma(gamma) + log Gamma(lambda)."""
        scale = 1 / jnp.sqrt(params["lambda"])
        free = jax.tree.leaves((params["weights"], params["biases"]))
        weights = sum((jnp.sum(stats.norm.logpdf(leaf, scale=scale)) for leaf in free), jnp.zeros(()))
        precisions = jnp.stack([params["gamma"], params["lambda"]])
        return weights + jnp.sum(stats.gamma.logpdf(precisions, self.shape, scale=1 / self.rate))

    def log_likelihood(self, params: dict[str, Any], rows: Rows) -> Float[Array, "B"]:
        """log N(y_i; f_W(x_i), 1/gamma)."""
        return stats.norm.logpdf(rows.y, self.mean(params, rows.x), 1 / jnp.sqrt(params["gamma"]))

    def predict(self, draws: dict[str, Any], x: Float[Array, "B p"]) -> Float[Array, "B"]:
        """E[y | x]: the mean of f_W over draws with a leading axis of n (``Posterior.draws``)."""
        return jnp.mean(jax.vmap(lambda params: self.mean(params, x))(draws), 0)

    def rmse(self, draws: dict[str, Any], rows: Rows) -> Scalar:
        """sqrt(mean_i (E[y | x_i] - y_i)^2)."""
        return jnp.sqrt(jnp.mean((self.predict(draws, rows.x) - rows.y) ** 2))
