r"""SVGD between functions: particles theta_i push each other by how far apart their functions are, not their parameters.

f_i = f(theta_i) at some inputs,    g_i = grad_f log p(y | f_i),    J_i = df / dtheta at theta_i

v_i = J_i' phi_w(f_i) + (1/n) sum_j k_w(f_j, f_i) grad_theta [log p(theta_i) + log p(y | f_i, theta_i)],   f_i held fixed

with phi_w(f_i) = (1/n) sum_j [k_w(f_j, f_i) g_j + grad_{f_j} k_w(f_j, f_i)], the drift of a bank whose weights are learned
from the discrepancies of the functions. Networks of different weights and one function are near here, and far in the space of
weights, where kernels saturate (erratum 13). (Wang, Ren, Zhu & Zhang 2019, Function space particle optimization; with one
kernel there.)
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein import _checks
from polystein._types import Key, Points, Scalar, Trace, Vector
from polystein.kernels import AbstractKernel, AbstractPlacement, Bank, DyadicLadder
from polystein.methods.base import AbstractMethod, Swarm
from polystein.weights import AbstractWeights, Argmax, NullDeviation, Vertex, WeightState


def _itself(theta: Vector, key: Key) -> Vector:
    del key
    return theta


class FunctionSpace(AbstractMethod):
    """Multiple-kernel SVGD in the space of functions.

    **Arguments:**

    - ``outputs``: (theta, key) -> f, the function of a flat parameter vector at inputs that may be drawn with the key.
    - ``log_likelihood``: (f, theta, key) -> log p(y | f, theta) of those inputs' targets, scaled to all rows.
    - ``log_prior``: theta -> log p(theta).
    - ``bank``, ``weights``: as in ``MKSVGD``, over functions.

    Without the three functions, a parameter vector is its own function: MK-SVGD in weight space, by the scores of the target.

    >>> x, y = jnp.linspace(-1, 1, 5), jnp.linspace(-2, 2, 5)
    >>> method = FunctionSpace(
    ...     lambda theta, key: theta[0] * x, lambda f, theta, key: -jnp.sum((y - f) ** 2), lambda theta: -jnp.sum(theta**2) / 2
    ... )
    >>> method.outputs(jnp.array([2.0]), jax.random.key(0)).tolist() == y.tolist()
    True
    """

    outputs: Callable[[Vector, Key], Vector] = eqx.field(
        converter=_checks.function("outputs, a function of theta and key", example="lambda theta, key: ...", arguments=2),
        default=_itself,
    )
    log_likelihood: Callable[[Vector, Vector, Key], Scalar] | None = None
    log_prior: Callable[[Vector], Scalar] | None = None
    bank: Bank | AbstractPlacement = eqx.field(
        converter=_checks.instance("a bank or a placement of one", Bank, AbstractPlacement, example="DyadicLadder()"),
        default_factory=lambda: DyadicLadder(low=3, high=6),
    )
    weights: AbstractWeights = eqx.field(
        converter=_checks.instance("a rule for the weights", AbstractWeights, example="Argmax()"),
        default_factory=lambda: Argmax(divisor=NullDeviation(), memory=0.9, fallback=Vertex()),
    )

    def __check_init__(self) -> None:
        given = [self.outputs is not _itself, self.log_likelihood is not None, self.log_prior is not None]
        if any(given) and not all(given):
            raise TypeError(
                "outputs, log_likelihood and log_prior were given in part; expected all three, or none of them; "
                "write FunctionSpace(outputs, log_likelihood, log_prior)"
            )

    def init(self, x: Float[Array, "n d"]) -> WeightState:
        """The first weights."""
        return self.weights.init(len(self.bank))

    def velocity(self, swarm: Swarm, memory: WeightState, key: Key) -> tuple[Float[Array, "n d"], WeightState, Trace]:
        """v_i, the next w; weights lag one step, as in ``MKSVGD``."""
        f, back = jax.vjp(lambda x: jax.vmap(lambda theta: self.outputs(theta, key))(x), swarm.x)
        g, direct = self._pulls(swarm, f, key)
        functions = Swarm(Points(f, g, swarm.points.id, live=swarm.points.live), swarm.pairs)
        bank = self.bank.at(f)
        phi, sums = functions.drift_and_sums(bank, memory.w)
        weight = row_means(functions, bank.mix(memory.w))
        after = self.weights(sums, memory)
        return back(phi)[0] + weight[:, None] * direct, after, {"weights": memory.w, "ksd": sums.u}

    def _pulls(self, swarm: Swarm, f: Float[Array, "n b"], key: Key) -> tuple[Float[Array, "n b"], Float[Array, "n d"]]:
        """g_i, and the slope in theta at fixed f."""
        likelihood, prior = self.log_likelihood, self.log_prior
        if likelihood is None or prior is None:
            return swarm.s, jnp.zeros_like(swarm.x)
        total = lambda f, theta: likelihood(f, theta, key) + prior(theta)
        return jax.vmap(jax.grad(total, (0, 1)))(f, swarm.x)


def row_means(swarm: Swarm, kernel: AbstractKernel) -> Float[Array, "n"]:
    """(1/n) sum_j k(x_j, x_i), over the particles that take part."""

    def block(rows: Points, cols: Points) -> Float[Array, "r"]:
        k = jax.vmap(lambda y: jax.vmap(lambda x: kernel(x, y))(cols.x))(rows.x)
        return jnp.sum(k if cols.live is None else jnp.where(cols.live[None], k, 0), 1)

    return swarm.pairs.sum(block, swarm.points, swarm.points) / swarm.points.count
