"""What a run gives back: particles in the user's coordinates, and how they came about."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from polystein._types import Trace
from polystein.target import Target


class Posterior(eqx.Module):
    """n particles of equal weight, in flat coordinates, with the trace of the run that moved them."""

    particles: Float[Array, "n d"]
    target: Target
    trace: Trace

    def draws(self) -> Any:
        """The particles as the user's tree, with a leading axis of n.

        >>> import jax, jax.numpy as jnp, polystein as ps
        >>> target = ps.Target.of(lambda p: -0.5 * jnp.sum(p["a"] ** 2), {"a": jnp.zeros(2)})
        >>> ps.run(ps.SVGD(), target, particles=5, steps=2, key=jax.random.key(0)).draws()["a"].shape
        (5, 2)
        """
        return jax.vmap(self.target.unravel)(self.particles)
