"""What models of targets given features share: rows, and the target of inference that a prior and a likelihood make.

p(theta | x, y) = p(theta) prod_i p(y_i | x_i, theta)
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein._types import Key, Scalar
from polystein.target import Target


class Rows(NamedTuple):
    """Features and targets, row by row."""

    x: Float[Array, "B p"]
    y: Float[Array, "B"]


class AbstractModel(eqx.Module):
    """A prior over parameters and a likelihood of rows; parameters are a dict of arrays, in their own units."""

    @property
    @abstractmethod
    def constrain(self) -> dict[str, Any]:
        """The bijections of parameters that are not free, by name."""

    @abstractmethod
    def sample_prior(self, key: Key) -> dict[str, Any]:
        """Parameters drawn from the prior."""

    @abstractmethod
    def log_prior(self, params: dict[str, Any]) -> Scalar:
        """log p(theta), normalised, in the parameters' own units: a target adds the log-Jacobians."""

    @abstractmethod
    def log_likelihood(self, params: dict[str, Any], rows: Rows) -> Float[Array, "B"]:
        """log p(y_i | x_i, theta) of every row."""

    def target(self, rows: Rows, *, batch: int | None = None, halves: bool = False) -> Target:
        """The posterior given the rows, for ``infer`` and ``run``; of ``batch`` rows at a step, or of all where it is None.

        ``halves``: two independent half-batches a step (``Target.minibatched``).
        """
        rows = Rows(*map(jnp.asarray, rows))
        like = self.sample_prior(jax.random.key(0))
        if batch is None:
            whole = lambda params: self.log_prior(params) + jnp.sum(self.log_likelihood(params, rows))
            return Target.of(whole, like, constrain=self.constrain)
        return Target.minibatched(
            self.log_prior, self.log_likelihood, rows, like, batch=batch, halves=halves, constrain=self.constrain
        )

    def particles(self, key: Key, n: int) -> Float[Array, "n d"]:
        """n draws from the prior, flat and unconstrained: where the particles of a run start (``particles=`` of ``run``)."""
        flat = lambda one: Target.of(self.log_prior, self.sample_prior(one), constrain=self.constrain).start
        return jax.vmap(flat)(jax.random.split(key, n))

    def log_predictive(self, draws: dict[str, Any], rows: Rows) -> Float[Array, "B"]:
        """log (1/n) sum_j p(y_i | x_i, theta_j) of every row, over draws with a leading axis of n (``Posterior.draws``)."""
        each = jax.vmap(lambda params: self.log_likelihood(params, rows))(draws)
        return jax.nn.logsumexp(each, 0) - jnp.log(float(each.shape[0]))
