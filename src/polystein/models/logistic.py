r"""Bayesian logistic regression with a Gamma hyper-prior on the precision of its weights.

p(y = 1 | x, w) = sigma(w'x),    w | alpha ~ N(0, I/alpha),    alpha ~ Gamma(shape, rate)
"""

from __future__ import annotations

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


class Logistic(AbstractModel):
    """Logistic regression of targets 0 and 1; parameters are ``w``, one a feature, and its precision ``alpha``.

    There is no intercept of its own: give the features a column of ones, whose weight then has the prior of the others.

    **Arguments:**

    - ``features``: p, how many numbers a row has.
    - ``shape``, ``rate``: of the Gamma prior of alpha (the printed shape 0 is improper and has no draws: erratum 32).

    >>> import jax, jax.numpy as jnp
    >>> model = Logistic(3)
    >>> draws = jax.vmap(model.sample_prior)(jax.random.split(jax.random.key(0), 5))
    >>> model.predict(draws, jnp.zeros((2, 3))).tolist()
    [0.5, 0.5]
    """

    features: int = eqx.field(static=True, converter=_checks.whole("features", least=1), default=1)
    shape: Scalar = eqx.field(converter=_checks.positive("shape"), default=1.0)
    rate: Scalar = eqx.field(converter=_checks.positive("rate"), default=0.01)

    @property
    def constrain(self) -> dict[str, Any]:
        """The precision is positive."""
        return {"alpha": Positive()}

    def sample_prior(self, key: Key) -> dict[str, Any]:
        """alpha from its Gamma prior, w from N(0, I/alpha)."""
        precision, weights = jax.random.split(key)
        alpha = jax.random.gamma(precision, self.shape) / self.rate
        return {"w": jax.random.normal(weights, (self.features,)) / jnp.sqrt(alpha), "alpha": alpha}

    def log_prior(self, params: dict[str, Any]) -> Scalar:
        """log N(w; 0, I/alpha) + log Gamma(alpha)."""
        weights = jnp.sum(stats.norm.logpdf(params["w"], scale=1 / jnp.sqrt(params["alpha"])))
        return weights + stats.gamma.logpdf(params["alpha"], self.shape, scale=1 / self.rate)

    def log_likelihood(self, params: dict[str, Any], rows: Rows) -> Float[Array, "B"]:
        """log p(y_i | x_i, w) = log sigma((2 y_i - 1) w'x_i)."""
        return jax.nn.log_sigmoid((2 * rows.y - 1) * (rows.x @ params["w"]))

    def predict(self, draws: dict[str, Any], x: Float[Array, "B p"]) -> Float[Array, "B"]:
        """p(y = 1 | x): the mean of sigma(w'x) over draws with a leading axis of n (``Posterior.draws``)."""
        return jnp.mean(jax.nn.sigmoid(x @ draws["w"].T), 1)

    def accuracy(self, draws: dict[str, Any], rows: Rows) -> Scalar:
        """The share of rows whose target is the likelier one; at 1/2, that is 0."""
        return jnp.mean((self.predict(draws, rows.x) > 0.5) == (rows.y > 0.5))
