"""Matrix-SVGD: kernels in the metric of a Kronecker curvature of each layer (K-FAC), averaged or anchored at each particle.

All else is as for SVGD, so that the columns compare methods; the published runs had two hidden layers, ten particles, no biases
and a fixed noise (erratum 37). The curvature is that of the first 1000 training rows, computed anew twenty times a run:

N gamma E[h h'] kron E[g g'] of a layer's weights, with h its inputs and g the slope of the output in its activations.

The mixture costs n times as much, and its weights saturate as every kernel here does: it runs on request only. Controls move
each particle alone by its score in the same metric.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein.curvature import Blocks, Fisher, Roots, damped
from polystein.experiments.regressors.particles import INITIAL_ROWS, AbstractParticles
from polystein.methods import AbstractMethod, MatrixSVGD
from polystein.methods.matrix import Preconditioned
from polystein.models import Network, Rows
from polystein.target import Target

DAMPING = 0.1


def fisher(model: Network, params: dict[str, Any], rows: Rows, total: int) -> Blocks:
    """Kronecker factors of the Fisher information and the prior's precision, for a network with one hidden layer.

    Blocks in order of the flat vector: biases, gamma, lambda, weights; gamma and lambda by their logarithms.
    """
    hidden, out = params["weights"]
    z = rows.x @ hidden + params["biases"][0][None]
    h, g = jax.nn.relu(z), (z > 0) * out[:, 0][None]
    pull, prior = total * params["gamma"], params["lambda"]
    mean = lambda a: a.T @ a / a.shape[0]
    inner, outer = pull * mean(g) + prior * jnp.eye(h.shape[1]), pull * mean(h) + prior * jnp.eye(h.shape[1])
    one, number = jnp.ones((1, 1)), lambda a: jnp.reshape(a, (1, 1))
    free = sum(leaf.size for leaf in jax.tree.leaves((params["weights"], params["biases"])))
    left = [inner, number(pull + prior), number(total / 2), number(free / 2), mean(rows.x), outer]
    return Blocks([a.astype(rows.x.dtype) for a in left], [one, one, one, one, inner, one])


@eqx.filter_jit
def curvatures(model: Network, rows: Rows, x: Float[Array, "S n d"], *, each: bool) -> Roots:
    """Roots of the damped curvature of every split: of their mean over particles, or of each."""
    total = rows.y.shape[1]
    some = Rows(rows.x[:, :INITIAL_ROWS], rows.y[:, :INITIAL_ROWS])
    free = Target.of(model.log_prior, model.sample_prior(jax.random.key(0)), constrain=model.constrain)

    def split(rows: Rows, x: Float[Array, "n d"]) -> Roots:
        blocks = jax.vmap(lambda one: fisher(model, free.constrained(one), rows, total))(x)
        if not each:
            blocks = jax.tree.map(lambda a: jnp.mean(a, 0), blocks)
        return damped(blocks, jnp.asarray(DAMPING)).roots()

    return jax.vmap(split)(some, x)


class Averaged(AbstractParticles):
    """One metric: the mean curvature of all particles."""

    label: ClassVar[str] = "Matrix-SVGD"
    interacting: ClassVar[bool] = True
    printed: ClassVar[str | None] = "Matrix-SVGD"
    control: ClassVar[str | None] = "ensemble, mean curvature"
    trials: ClassVar[int] = 10

    def curvature(self, model: Network, rows: Rows, x: Float[Array, "S n d"]) -> Roots:
        """The mean."""
        return curvatures(model, rows, x, each=False)

    def method(self, model: Network) -> AbstractMethod:
        """The constant preconditioner ("average")."""
        return MatrixSVGD(Fisher())


class AveragedAlone(AbstractParticles):
    """The control of the mean curvature."""

    label: ClassVar[str] = "ensemble, mean curvature"
    trials: ClassVar[int] = 10

    def curvature(self, model: Network, rows: Rows, x: Float[Array, "S n d"]) -> Roots:
        """The mean."""
        return curvatures(model, rows, x, each=False)

    def method(self, model: Network) -> AbstractMethod:
        """No particle sees another."""
        return Preconditioned(Fisher())


class Anchored(AbstractParticles):
    """A mixture of metrics, with an anchor at every particle."""

    label: ClassVar[str] = "Matrix-SVGD, mixture"
    interacting: ClassVar[bool] = True
    control: ClassVar[str | None] = "ensemble, own curvature"
    on_request: ClassVar[bool] = True
    trials: ClassVar[int] = 10

    def curvature(self, model: Network, rows: Rows, x: Float[Array, "S n d"]) -> Roots:
        """Of each particle."""
        return curvatures(model, rows, x, each=True)

    def method(self, model: Network) -> AbstractMethod:
        """The mixture preconditioner."""
        return MatrixSVGD(Fisher(), mixture=True)


class AnchoredAlone(AbstractParticles):
    """The control of the mixture."""

    label: ClassVar[str] = "ensemble, own curvature"
    on_request: ClassVar[bool] = True
    trials: ClassVar[int] = 10

    def curvature(self, model: Network, rows: Rows, x: Float[Array, "S n d"]) -> Roots:
        """Of each particle."""
        return curvatures(model, rows, x, each=True)

    def method(self, model: Network) -> AbstractMethod:
        """No particle sees another."""
        return Preconditioned(Fisher(), own=True)
