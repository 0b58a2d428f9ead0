r"""Particle Langevin: SVGD with noise, which moves each particle by Langevin dynamics and all of them by Stein's drift.

x_i <- x_i + eps [tau s(x_i) + phi(x_i)] + sqrt(2 eps tau) xi,    xi ~ N(0, I)

(stochastic particle-optimisation sampling, SPOS: Zhang, Zhang & Chen 2020). With tau = 0 it is SVGD; with tau > 0 particles
that are alike part again, and one particle alone samples p: for infinitely small steps, p^(1 + 1/tau) with k(x, x) = 1.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein import _checks
from polystein._types import Key, Scalar, Trace
from polystein.methods.base import AbstractMethod, Swarm
from polystein.methods.svgd import SVGD


class Langevin(AbstractMethod):
    """A method with Langevin noise of temperature tau, to be run with ``optim=optax.sgd(step)``, which the noise is made for.

    **Arguments:**

    - ``drift``: the method that gives phi: ``SVGD()``, or ``MKSVGD()`` for a learned bank.
    - ``temperature``: tau, how much of the motion is Langevin's; 0 leaves phi alone.
    - ``step``: eps, the step size of the optimiser.

    >>> import jax, jax.numpy as jnp, optax, polystein as ps
    >>> target = ps.Target.of(lambda x: -jnp.sum(x**2) / 2, jnp.zeros(1))
    >>> method = ps.Langevin(step=0.05)
    >>> post = ps.run(method, target, particles=50, steps=200, key=jax.random.key(0), optim=optax.sgd(0.05))
    >>> bool(0.5 < jnp.std(post.particles) < 1.5)
    True
    """

    noisy: ClassVar[bool] = True

    drift: AbstractMethod = eqx.field(
        converter=_checks.instance("a method", AbstractMethod, example="SVGD() or MKSVGD()"), default_factory=SVGD
    )
    temperature: Scalar = eqx.field(converter=_checks.nonnegative("temperature"), default=1.0)
    step: Scalar = eqx.field(converter=_checks.positive("step"), default=1e-3)

    def init(self, x: Float[Array, "n d"]) -> Any:
        """What the drift remembers."""
        return self.drift.init(x)

    def check(self, x: Float[Array, "n d"]) -> None:
        """As the drift."""
        self.drift.check(x)

    def velocity(self, swarm: Swarm, memory: Any, key: Key) -> tuple[Float[Array, "n d"], Any, Trace]:
        """tau s + phi + sqrt(2 tau / eps) xi: times eps, the step."""
        phi, memory, trace = self.drift.velocity(swarm, memory, jax.random.fold_in(key, 0))
        tau, eps = (a.astype(swarm.x.dtype) for a in (self.temperature, self.step))
        xi = jax.random.normal(jax.random.fold_in(key, 1), swarm.x.shape, swarm.x.dtype)
        return tau * swarm.s + phi + jnp.sqrt(2 * tau / eps) * xi, memory, trace
