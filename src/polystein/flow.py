"""One step after another, on the device: x_i <- x_i + eps v(x_i) (particles_map), the step made by any optax optimiser.

A particle whose position or score is not finite takes no part in the sums of that step and is drawn anew near another; where
more than a fifth are so, the flow halts where it was.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from polystein._types import Key, Points, Trace
from polystein.methods import AbstractMethod, Swarm
from polystein.pairs import AbstractPairs
from polystein.target import Target, scaled_scores

TOO_MANY = 0.2  # of the particles not finite: the density is at fault, not a particle
NEARBY = 0.1  # of the distance between two particles: how far from another particle one is drawn anew


class State(eqx.Module):
    """Everything a step changes. ``halted`` is the step at which too many particles were not finite, or -1."""

    x: Float[Array, "n d"]
    memory: Any
    optim: Any
    step: Int[Array, ""]
    redrawn: Int[Array, ""]
    halted: Int[Array, ""]
    culprit: Int[Array, ""]


class Flow(eqx.Module):
    """What a step consists of: the configuration of a run."""

    method: AbstractMethod
    target: Target
    optim: optax.GradientTransformation
    pairs: AbstractPairs

    def start(self, x: Float[Array, "n d"]) -> State:
        """The state before the first step."""
        none = jnp.full((), -1, jnp.int32)
        return State(x, self.method.init(x), self.optim.init(x), none + 1, none + 1, none, none)

    def step(self, state: State, key: Key) -> tuple[State, Trace]:
        """Scores, velocity, optimiser; what became of particles that are not finite."""
        batch_key, method_key = jax.random.split(key)
        points, bad = living(self.target.points(state.x, batch_key, state.step))
        swarm = Swarm(points, self.pairs)
        velocity, memory, trace = self.method.velocity(swarm, state.memory, jax.random.fold_in(method_key, state.step))
        velocity = jnp.where(bad[:, None], 0, velocity)
        update, optim = self.optim.update(-velocity, state.optim, state.x)
        moved = jnp.asarray(optax.apply_updates(points.x, update)).astype(state.x.dtype)
        lost = ~jnp.all(jnp.isfinite(moved), 1)
        bad, x = bad | lost, jnp.where(lost[:, None], points.x, moved)
        x = lax.cond(jnp.any(bad), lambda: redraw(x, bad, state.step), lambda: x)
        count = jnp.sum(bad, dtype=jnp.int32)
        halt = count > TOO_MANY * x.shape[0]
        trace = {"phi": rms(velocity), "score": rms(points.s), **trace}
        after = State(
            x,
            memory,
            optim,
            state.step + 1,
            state.redrawn + count,
            jnp.where(halt, state.step, state.halted),
            jnp.where(halt, jnp.argmax(bad).astype(jnp.int32), state.culprit),
        )
        kept = jax.tree.map(lambda new, old: jnp.where(halt, old, new), after, state)
        return eqx.tree_at(lambda s: (s.halted, s.culprit), kept, (after.halted, after.culprit)), trace


@eqx.filter_jit
def begin(flow: Flow, x: Float[Array, "n d"]) -> State:
    """The state before the first step, compiled; no weak dtypes, which would make the first chunk a program of its own."""
    return jax.tree.map(lambda a: lax.convert_element_type(a, a.dtype), flow.start(x))


@eqx.filter_jit
def advance(flow: Flow, state: State, key: Key, count: Int[Array, ""] | int, size: int) -> tuple[State, Trace]:
    """``count`` <= ``size`` steps, their trace in the first rows of arrays of ``size`` rows; halts where a step halts.

    The number of steps is no part of the program: whatever the chunks, a step is the same bits.
    """
    rows = jax.tree.map(
        lambda a: jnp.zeros((size, *a.shape), a.dtype), eqx.filter_eval_shape(lambda s: flow.step(s, key)[1], state)
    )

    def going(carry: tuple[Int[Array, ""], State, Trace]) -> Bool[Array, ""]:
        return (carry[0] < count) & (carry[1].halted < 0)

    def once(carry: tuple[Int[Array, ""], State, Trace]) -> tuple[Int[Array, ""], State, Trace]:
        i, state, rows = carry
        state, row = flow.step(state, key)
        return i + 1, state, jax.tree.map(lambda all_rows, a: all_rows.at[i].set(a), rows, row)

    _, state, rows = lax.while_loop(going, once, (jnp.zeros((), jnp.int32), state, rows))
    return state, rows


@eqx.filter_jit
def scores_at(target: Target, x: Float[Array, "n d"], key: Key, step: Int[Array, ""]) -> Float[Array, "n d"]:
    """The scores at x, of the minibatch that belongs to key and step."""
    return target.points(x, key, step).s


@eqx.filter_jit
def evaluate(target: Target, x: Float[Array, "n d"]) -> tuple[Float[Array, "n"], Float[Array, "n d"]]:
    """Log densities and scores, of all rows where there are any."""
    return jax.vmap(target.log_density)(x), target.points(x, None, 0).s


@eqx.filter_jit
def values_at(target: Target, x: Float[Array, "n d"]) -> Any:
    """The user's constrained trees at flat vectors."""
    return jax.vmap(target.constrained)(x)


def living(points: Points) -> tuple[Points, Bool[Array, "n"]]:
    """Points that are not finite made finite and taken out of all sums; which they are."""
    halves = [] if points.left is None or points.right is None else [points.left, points.right]
    fine = jnp.stack([jnp.all(jnp.isfinite(a), 1) for a in [points.x, points.s, *halves]])
    live = jnp.all(fine, 0)
    count = jnp.maximum(jnp.sum(live), 1)
    centre = jnp.sum(jnp.where(live[:, None], points.x, 0), 0, keepdims=True) / count
    cleaned = scaled_scores(points, lambda s: jnp.where(live[:, None], s, 0))
    x = jnp.where(live[:, None], points.x, centre)
    return eqx.tree_at(lambda p: (p.x, p.live), cleaned, (x, live), is_leaf=lambda leaf: leaf is None), ~live


def redraw(x: Float[Array, "n d"], bad: Bool[Array, "n"], step: Int[Array, ""]) -> Float[Array, "n d"]:
    """Bad particles put near others: at a live particle, moved a tenth of the way from the first live one to another.

    Which ones is a matter of counting on from the step, so that nothing random is needed.
    """
    order = jnp.argsort(bad, stable=True)  # the live ones first
    count = jnp.maximum(jnp.sum(~bad), 1)
    turn = jnp.arange(x.shape[0]) + step
    chosen, other = order[turn % count], order[(3 * turn + 1) % count]
    near = x[chosen] + NEARBY * (x[other] - x[order[0]][None])
    return jnp.where(bad[:, None], near, x)


def rms(a: Array) -> Float[Array, ""]:
    """Root of the mean square."""
    return jnp.sqrt(jnp.mean(a**2))
