r"""Particles of a Bayesian network moved by a method of the library: what the recipes of the paper's comparison share.

y | x, W, gamma ~ N(f_W(x), 1/gamma),    W | lambda ~ N(0, I/lambda),    gamma, lambda ~ Gamma(1, rate 0.1)

One protocol for all (erratum 41), as Liu & Wang (2016) published it in code: the last tenth of the training rows, at most 500,
is withheld; the other rows set the units and are trained on, 100 at a step; the steps are their "AdaGrad", which is RMSProp
with decay 0.9 (erratum 42); the standard deviation of a particle's noise is the root mean square of its residuals on the rows
withheld, in the units of the data. (Their code compares with the learned noise first, in other units, and nearly always takes
this one, which is the likeliest on those rows anyway.)
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from functools import lru_cache
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from polystein._types import Key
from polystein.curvature import Held, Roots
from polystein.experiments.regressors.base import AbstractRegressor, Predictive, Progress, Standardised
from polystein.flow import Flow, State, advance, begin
from polystein.methods import AbstractMethod
from polystein.models import Network, Rows
from polystein.pairs import Dense
from polystein.target import Target

CHUNKS = 20  # of a run: how often progress is shown
MOST_WITHHELD = 500
INITIAL_ROWS = 1000  # training rows on which a particle's first noise is read
LADDER = tuple(2.0**k for k in range(-4, 6))  # the bandwidths whose kernel values are noted (erratum 13)


class AbstractStart(eqx.Module):
    """Where particles start."""

    @abstractmethod
    def __call__(self, model: Network, rows: Rows, key: Key, n: int) -> Float[Array, "n d"]:
        """n flat, unconstrained particles."""


class Prior(AbstractStart):
    """Draws from the prior."""

    def __call__(self, model: Network, rows: Rows, key: Key, n: int) -> Float[Array, "n d"]:
        """``Network.particles``."""
        return model.particles(key, n)


class FanIn(AbstractStart):
    """As Liu & Wang's code starts: W_l ~ N(0, 1/(inputs + 1)), b = 0, gamma = 1 / mean squared residual.

    ``scale_for_rate``: lambda is drawn from Gamma(1, *scale* 0.1), as in their code, where prior and text say rate 0.1.
    """

    scale_for_rate: bool = eqx.field(static=True, default=True)

    def __call__(self, model: Network, rows: Rows, key: Key, n: int) -> Float[Array, "n d"]:
        """Drawn on the host: this happens once, and takes the compiler long."""
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
        sizes = list(pairwise((model.features, *model.hidden, 1)))
        draws = {
            "weights": [rng.standard_normal((n, a, b)) / np.sqrt(a + 1) for a, b in sizes],
            "biases": [np.zeros((n, b)) for _, b in sizes],
            "lambda": rng.standard_exponential(n) * (model.rate if self.scale_for_rate else 1 / model.rate),
            "gamma": np.ones(n),
        }
        draws = jax.tree.map(lambda a: jnp.asarray(a, rows.x.dtype), draws)
        return _with_noise(model, draws, Rows(rows.x[:INITIAL_ROWS], rows.y[:INITIAL_ROWS]))


class AbstractParticles(AbstractRegressor):
    """A recipe that is a method of the library, run on a network by the common protocol: write ``method``.

    **Arguments:**

    - ``steps``, ``batch``, ``particles``, ``hidden``: of the run, rows a step, particles, units of the hidden layer.
    - ``rate``: of RMSProp with decay 0.9.
    - ``withheld``: the share of the training rows that is withheld for the noise.
    - ``start``: where particles start.
    """

    steps: int = eqx.field(static=True, default=2000)
    batch: int = eqx.field(static=True, default=100)
    particles: int = eqx.field(static=True, default=20)
    hidden: int = eqx.field(static=True, default=50)
    rate: float = eqx.field(static=True, default=1e-3)
    withheld: float = eqx.field(static=True, default=0.1)
    start: AbstractStart = eqx.field(default_factory=FanIn)

    @abstractmethod
    def method(self, model: Network) -> AbstractMethod:
        """What moves the particles."""

    def curvature(self, model: Network, rows: Rows, x: Float[Array, "S n d"]) -> Roots | None:
        """The curvature of every split that the method holds until it is asked again; None where it holds none."""

    def quickly(self) -> AbstractParticles:
        """A hundred steps."""
        return dataclasses.replace(self, steps=100)

    def fit(
        self,
        x: Float[Array, "S N p"],
        y: Float[Array, "S N"],
        test_x: Float[Array, "S T p"],
        keys: Any,
        *,
        progress: Progress | None = None,
    ) -> Predictive:
        """Every split at once, on the rows that are not withheld."""
        kept = y.shape[1] - min(int(self.withheld * y.shape[1]), MOST_WITHHELD)
        units = Standardised.of(x[:, :kept], y[:, :kept])
        rows = Rows(units.features(x[:, :kept]), units.targets(y[:, :kept]))
        model = Network(x.shape[2], hidden=self.hidden)
        training = Training(self.method(model), model, _rmsprop(self.rate), self.batch)
        each = [jax.tree.map(lambda a, i=i: a[i], rows) for i in range(len(y))]
        x0 = [self.start(model, some, key, self.particles) for some, key in zip(each, keys, strict=True)]
        x0 = jnp.stack(x0)
        held = self.curvature(model, rows, x0)
        state = _begin(training, held, rows, x0)
        size = -(-self.steps // CHUNKS)
        for done in range(0, self.steps, size):
            held = self.curvature(model, rows, state.x) if done else held
            state = _advance(training, held, rows, keys, state, jnp.asarray(min(size, self.steps - done)), size)
            if progress:
                jax.block_until_ready(state.x)
                progress(min(done + size, self.steps) / self.steps)
        withheld = slice(kept if kept < y.shape[1] else 0, None)  # where none is withheld: all
        mean = _means(model, state.x, units.features(test_x), units)
        residual = y[:, None, withheld] - _means(model, state.x, units.features(x[:, withheld]), units)
        sd = jnp.sqrt(jnp.mean(residual**2, 2, keepdims=True))
        whole = state.halted[:, None, None] < 0  # a run that broke down predicts nothing
        return Predictive(
            jnp.where(whole, mean, jnp.nan), jnp.broadcast_to(sd, mean.shape), {"kernel values": _kernel_values(state.x)}
        )


class Training(eqx.Module):
    """What moves the particles of a network: a program of its own for each structure of these."""

    method: AbstractMethod
    model: Network
    optim: optax.GradientTransformation = eqx.field(static=True)
    batch: int = eqx.field(static=True)

    def flow(self, rows: Rows, held: Roots | None = None) -> Flow:
        """The flow of one split, by the curvature that its method holds, if any."""
        method = self.method if held is None else eqx.tree_at(lambda m: m.curvature, self.method, Held(held))
        return Flow(method, self.model.target(rows, batch=min(self.batch, rows.y.shape[0])), self.optim, Dense())


@lru_cache
def _rmsprop(rate: float) -> optax.GradientTransformation:
    """One object a rate, so that recipes share programs; at the first step the mean of squares is the square itself."""
    return optax.rmsprop(rate, decay=0.9, eps=1e-6, eps_in_sqrt=False, bias_correction=True)


@eqx.filter_jit
def _with_noise(model: Network, draws: Any, rows: Rows) -> Float[Array, "n d"]:
    """Flat particles, the noise of each being its mean squared residual."""

    def one(params: dict[str, Any]) -> Float[Array, "d"]:
        params = params | {"gamma": 1 / jnp.mean((rows.y - model.mean(params, rows.x)) ** 2)}
        return Target.of(model.log_prior, params, constrain=model.constrain).start

    return jax.vmap(one)(draws)


@eqx.filter_jit
def _begin(training: Training, held: Roots | None, rows: Rows, x: Float[Array, "S n d"]) -> State:
    return jax.vmap(lambda held, rows, x: begin(training.flow(rows, held), x))(held, rows, x)


@eqx.filter_jit
def _advance(training: Training, held: Roots | None, rows: Rows, keys: Any, state: State, count: Any, size: int) -> State:
    """Some steps of every split."""

    def move(held: Roots | None, rows: Rows, key: Any, state: State) -> State:
        return advance(training.flow(rows, held), state, jax.random.fold_in(key, 1), count, size)[0]

    return jax.vmap(move)(held, rows, keys, state)


@eqx.filter_jit
def _means(model: Network, x: Float[Array, "S n d"], rows: Float[Array, "S T p"], units: Standardised) -> Float[Array, "S n T"]:
    """f_W of every particle on every row, in the units of the data."""
    unravel = Target.of(model.log_prior, model.sample_prior(jax.random.key(0)), constrain=model.constrain).constrained
    means = jax.vmap(lambda x, rows: jax.vmap(lambda one: model.mean(unravel(one), rows))(x))(x, rows)
    return units.raw(means, means).mean


@jax.jit
@jax.vmap
def _kernel_values(x: Float[Array, "n d"]) -> Float[Array, "m"]:
    """Means over pairs of different particles of exp(-r^2 / h), by bandwidth."""
    gaps = x[:, None] - x[None]
    r2 = jnp.sum(gaps**2, 2)
    n = x.shape[0]
    return jnp.stack([(jnp.sum(jnp.exp(-r2 / h)) - n) / (n * (n - 1)) for h in LADDER])
