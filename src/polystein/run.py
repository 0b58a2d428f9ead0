"""From a method and a target to a posterior: x_i <- x_i + eps v(x_i) (particles_map), the step by any optax optimiser."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int

from polystein import _checks
from polystein._types import Key, Points, Trace
from polystein.methods import AbstractMethod, Swarm
from polystein.pairs import AbstractPairs, default_pairs
from polystein.posterior import Posterior
from polystein.target import Target

_ADAM = optax.adam(0.05)  # one object: a fresh optimiser is a fresh compilation


class State(eqx.Module):
    """Everything a step changes."""

    x: Float[Array, "n d"]
    memory: Any
    optim: Any
    step: Int[Array, ""]


def run(
    method: AbstractMethod,
    target: Target,
    *,
    particles: int | Float[Array, "n d"] = 100,
    steps: int = 1000,
    key: Key,
    optim: optax.GradientTransformation | None = None,
    pairs: AbstractPairs | None = None,
) -> Posterior:
    """Move particles by a method for a number of steps, every choice in hand.

    **Arguments:**

    - ``method``: a vector field on particles, such as ``MKSVGD()``.
    - ``target``: ``Target.of(log_density, like)``.
    - ``particles``: how many, to be drawn from a unit normal about ``like``; or an (n, d) array of starting points.
    - ``steps``: how many steps.
    - ``key``: of ``jax.random``; the same key gives the same bits.
    - ``optim``: an optax optimiser; ``optax.adam(0.05)`` by default.
    - ``pairs``: how sums over pairs are evaluated; by the number of particles if not given.

    >>> import jax, jax.numpy as jnp, optax, polystein as ps
    >>> target = ps.Target.of(lambda x: -0.5 * jnp.sum((x - 3.0) ** 2), jnp.zeros(1))
    >>> post = ps.run(ps.MKSVGD(), target, particles=50, steps=500, key=jax.random.key(0), optim=optax.adam(0.05))
    >>> bool(abs(post.particles.mean() - 3) < 0.1), bool(abs(post.particles.std() - 1) < 0.1)
    (True, True)
    """
    key = _checks.random_key(key)
    steps = _checks.whole("steps", least=0)(steps)
    start_key, run_key = jax.random.split(key)
    if jnp.ndim(particles):
        x = _checks.particles(particles)
        if x.shape[1] != target.dim:
            raise ValueError(
                f"particles of shape {x.shape} for a density of {target.dim} numbers; expected (n, {target.dim}); check like"
            )
    else:
        n = _checks.whole("particles", least=1)(particles)
        x = target.start[None] + jax.random.normal(start_key, (n, target.dim), target.start.dtype)
    x, trace = _scan(method, target, x, run_key, optim or _ADAM, pairs or default_pairs(x.shape[0]), steps)
    return Posterior(x, target, trace)


@eqx.filter_jit
def _scan(
    method: AbstractMethod,
    target: Target,
    x: Float[Array, "n d"],
    key: Key,
    optim: optax.GradientTransformation,
    pairs: AbstractPairs,
    steps: int,
) -> tuple[Float[Array, "n d"], Trace]:
    def step(state: State, _: None) -> tuple[State, Trace]:
        score_key, method_key = jax.random.split(jax.random.fold_in(key, state.step))
        swarm = Swarm(Points.of(state.x, target.score(state.x, score_key)), pairs)
        velocity, memory, trace = method.velocity(swarm, state.memory, method_key)
        update, opt = optim.update(-velocity, state.optim, state.x)
        x = jnp.asarray(optax.apply_updates(state.x, update))
        return State(x, memory, opt, state.step + 1), trace

    start = State(x, method.init(x), optim.init(x), jnp.zeros((), jnp.int32))
    final, trace = lax.scan(step, start, length=steps)
    return final.x, trace
