"""Probabilistic backpropagation: a factorised belief about the weights, moved by one row at a time.

q = prod_i N(w_i; m_i, v_i) Gamma(gamma; a, b) Gamma(lambda; a_w, b_w)

Each row moves the belief to the moments of the tilted one (assumed density filtering), with log Z from moments that went
forward through the network; after each pass over the rows the factors of the prior are refined by expectation propagation
(Hernandez-Lobato & Adams 2015).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from polystein._types import Key, Scalar
from polystein.experiments.regressors.base import AbstractRegressor, Predictive, Progress, Standardised
from polystein.experiments.regressors.moments import Gamma, Normals, network, observed, tilted

WIDE = 1e6  # a weight of which the rows say less than this variance leaves its factor of the prior as it is


class Layer(NamedTuple):
    """A layer's weights, biases in the last column, and their factors of the prior in q.

    A factor gives its weight a precision, and adds to the two counts of Gamma(lambda).
    """

    weights: Normals
    precision: Float[Array, "out n"]
    shape: Float[Array, "out n"]
    rate: Float[Array, "out n"]


class Belief(NamedTuple):
    """q: of the layers of the network, of the noise's precision gamma, and of the weights' precision lambda."""

    layers: list[Layer]
    noise: Gamma
    scale: Gamma


class PBP(AbstractRegressor):
    """Probabilistic backpropagation with the settings of its paper.

    **Arguments:**

    - ``hidden``: units of the hidden layer.
    - ``passes``: over the training rows, each in an order of its own.
    - ``shape``: of the Gamma priors of the noise's and the weights' precisions; their rate is the same.

    >>> x = jnp.linspace(-1, 1, 40)[None, :, None]
    >>> found = PBP(hidden=10, passes=20).fit(x, 2 * x[..., 0], jnp.array([[[0.5]]]), jax.random.split(jax.random.key(0), 1))
    >>> bool(jnp.abs(found.mean - 1).max() < 0.2), found.sd.shape
    (True, (1, 1, 1))
    """

    label: ClassVar[str] = "PBP"
    printed: ClassVar[str | None] = "PBP"
    trials: ClassVar[int] = 10

    hidden: int = eqx.field(static=True, default=50)
    passes: int = eqx.field(static=True, default=40)
    shape: float = 6.0

    def quickly(self) -> PBP:
        """Three passes over the rows."""
        return PBP(self.hidden, 3, self.shape)

    def fit(
        self,
        x: Float[Array, "S N p"],
        y: Float[Array, "S N"],
        test_x: Float[Array, "S T p"],
        keys: Any,
        *,
        progress: Progress | None = None,
    ) -> Predictive:
        """Every split at once, a pass at a time."""
        units = Standardised.of(x, y)
        rows, targets = units.features(x), units.targets(y)
        sizes = (x.shape[2], self.hidden, 1)
        prior = jnp.full(x.shape[:1], self.shape, x.dtype)
        belief = jax.vmap(lambda shape, key: start(sizes, shape, key))(prior, keys)
        for number in range(self.passes):
            belief = _pass(belief, rows, targets, jax.vmap(lambda key, n=number: jax.random.fold_in(key, n))(keys))
            if progress:
                jax.block_until_ready(belief)
                progress((number + 1) / self.passes)
        out = _predicted(belief, units.features(test_x))
        return units.raw(out.mean[:, None], jnp.sqrt(out.var)[:, None])


def start(sizes: tuple[int, ...], shape: Scalar, key: Key) -> Belief:
    """Means drawn from N(0, 1/(n + 1)), variances as the prior expects them, and the two Gamma priors."""
    prior = Gamma(shape, shape)
    layers = []
    for number, (n, out) in enumerate(pairwise(sizes)):
        draw = jax.random.normal(jax.random.fold_in(key, number), (out, n + 1), shape.dtype)
        precision = jnp.full_like(draw, 1) * (shape - 1) / shape
        layers.append(Layer(Normals(draw / jnp.sqrt(n + 1.0), 1 / precision), precision, 0 * draw, 0 * draw))
    return Belief(layers, prior, prior)


def filtered(weights: list[Normals], noise: Gamma, x: Float[Array, "p"], y: Scalar) -> tuple[list[Normals], Gamma]:
    """The belief after one more row; a weight whose update is not finite or has no positive variance stays as it was."""

    def log_z(weights: list[Normals]) -> tuple[Scalar, Normals]:
        out = network(weights, x)
        total = out.var + noise.rate / (noise.shape - 1)
        return -(jnp.log(total) + (y - out.mean) ** 2 / total) / 2, out

    def moved(old: Normals, slope: Normals) -> Normals:
        new = tilted(old, *slope)
        good = jnp.isfinite(new.mean) & jnp.isfinite(new.var) & (new.var > jnp.finfo(new.var.dtype).tiny)
        return Normals(jnp.where(good, new.mean, old.mean), jnp.where(good, new.var, old.var))

    slopes, out = jax.grad(log_z, has_aux=True)(weights)
    return list(map(moved, weights, slopes)), observed(noise, y - out.mean, out.var)


def refined(layer: Layer, scale: Gamma) -> tuple[Layer, Gamma]:
    """One sweep of expectation propagation over the factors N(w; 0, 1/lambda) of the prior of a layer.

    A factor's part for its weight is N(0, b/(a - 1)), with the Gamma (a, b) that is without the factor.
    """

    def sweep(scale: Gamma, old: Layer) -> tuple[Gamma, Layer]:
        rows = 1 / old.weights.var - old.precision  # the precision that comes from the rows alone
        pull = old.weights.mean / old.weights.var
        without = Gamma(scale.shape - old.shape, scale.rate - old.rate)
        good = (rows > 1 / WIDE) & (without.shape > 1) & (without.rate > 0)
        new = observed(without, pull / rows, 1 / rows)
        precision = (without.shape - 1) / without.rate
        weights = Normals(pull / (rows + precision), 1 / (rows + precision))
        now = Layer(weights, precision, new.shape - without.shape, new.rate - without.rate)
        return jax.tree.map(lambda yes, no: jnp.where(good, yes, no), (new, now), (scale, old))

    scale, flat = lax.scan(sweep, scale, jax.tree.map(jnp.ravel, layer))
    return jax.tree.map(lambda part, like: part.reshape(like.shape), flat, layer), scale


@jax.jit
@jax.vmap
def _pass(belief: Belief, x: Float[Array, "N p"], y: Float[Array, "N"], key: Key) -> Belief:
    order = jax.random.permutation(key, y.shape[0])
    learn = lambda state, row: (filtered(*state, *row), None)
    (weights, noise), _ = lax.scan(learn, ([layer.weights for layer in belief.layers], belief.noise), (x[order], y[order]))
    layers, scale = [], belief.scale
    for layer, now in zip(belief.layers, weights, strict=True):
        layer, scale = refined(layer._replace(weights=now), scale)
        layers.append(layer)
    return Belief(layers, noise, scale)


@jax.jit
@jax.vmap
def _predicted(belief: Belief, x: Float[Array, "T p"]) -> Normals:
    out = jax.vmap(lambda row: network([layer.weights for layer in belief.layers], row))(x)
    return Normals(out.mean, out.var + belief.noise.rate / (belief.noise.shape - 1))
