r"""Particle Langevin: SVGD with noise, which moves each particle by Langevin dynamics and all of them by Stein's drift.

x_i <- x_i + eps [tau s(x_i) + phi(x_i)] + sqrt(2 eps tau) xi,    xi ~ N(0, I)

(stochastic particle-optimisation sampling, SPOS: Zhang, Zhang & Chen 2020). With tau = 0 it is SVGD; with tau > 0 particles
that are alike part again, and one particle alone samples p: for infinitely small steps, p^(1 + 1/tau) with k(x, x) = 1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from polystein import _checks
from polystein._types import Key, Scalar, Trace
from polystein.methods.base import AbstractMethod, Swarm
from polystein.methods.svgd import SVGD


class Langevin(AbstractMethod):
    """A method with Langevin noise of temperature tau, which moves by plain steps of length eps: its noise is made for those.

    **Arguments:**

    - ``drift``: the method that gives phi: ``SVGD()``, or ``MKSVGD()`` for a learned bank.
    - ``temperature``: tau, how much of the motion is Langevin's; 0 leaves phi alone.
    - ``step``: eps, the step size; ``run`` takes ``optax.sgd(step)``, and no other optimiser.

    >>> import jax, jax.numpy as jnp, polystein as ps
    >>> target = ps.Target.of(lambda x: -jnp.sum(x**2) / 2, jnp.zeros(1))
    >>> method = ps.Langevin(step=0.05)
    >>> post = ps.run(method, target, particles=50, steps=200, key=jax.random.key(0))
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

    def optimiser(self, chosen: optax.GradientTransformation | None) -> optax.GradientTransformation:
        """Plain steps of length eps; whatever else makes noise of another temperature."""
        step = _checks.concrete(self.step)
        if chosen is None:
            return optax.sgd(self.step) if step is None else _plain(float(step))
        for slope, move in _moves(chosen):
            if step is not None and not np.isclose(move, -step * slope, rtol=1e-5, atol=0):
                raise ValueError(
                    f"an optimiser that moves a slope of {slope:g} by {-move:.3g} was given; Langevin expected plain steps of "
                    f"{step:g}, for which its noise is made; move it by run(Langevin(step=...), target, ...), without optim"
                )
        return chosen

    def velocity(self, swarm: Swarm, memory: Any, key: Key) -> tuple[Float[Array, "n d"], Any, Trace]:
        """tau s + phi + sqrt(2 tau / eps) xi: times eps, the step."""
        phi, memory, trace = self.drift.velocity(swarm, memory, jax.random.fold_in(key, 0))
        tau, eps = (a.astype(swarm.x.dtype) for a in (self.temperature, self.step))
        xi = jax.random.normal(jax.random.fold_in(key, 1), swarm.x.shape, swarm.x.dtype)
        return tau * swarm.s + phi + jnp.sqrt(2 * tau / eps) * xi, memory, trace


@lru_cache(maxsize=16)
def _plain(step: float) -> optax.GradientTransformation:
    """One object a step size: a fresh optimiser is a fresh compilation."""
    return optax.sgd(step)


def _moves(optim: optax.GradientTransformation) -> list[tuple[float, float]]:
    """What an optimiser makes of two slopes, one after the other."""
    x = jnp.zeros(1)
    state, out = optim.init(x), []
    for slope in (1.0, 3.0):
        move, state = optim.update(jnp.full(1, slope), state, x)
        out.append((slope, float(jnp.asarray(move)[0])))
    return out
