"""The host's side of any run: chunks of steps under a plan, progress, callbacks, checkpoints, and how it ended."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from polystein import progress
from polystein._types import Key, Trace
from polystein.checkpoint import Checkpoint
from polystein.diagnostics import neighbours
from polystein.flow import Flow, State, advance, evaluate, scores_at, values_at
from polystein.geometry import AbstractGeometry
from polystein.kernels import AbstractPlacement, Bank
from polystein.posterior import Posterior, Status
from polystein.target import Target


class Progress(NamedTuple):
    """What a callback gets at the end of a chunk; ``trace`` is of the steps so far."""

    step: int
    steps: int
    particles: Float[Array, "n d"]
    trace: Trace


Callback = Callable[[Progress], bool | None]


class RunFailed(FloatingPointError):
    """More than a fifth of the particles became non-finite. ``posterior`` holds the particles as they were before."""

    def __init__(self, sentence: str, posterior: Posterior):
        super().__init__(sentence)
        self.posterior = posterior


class AbstractPlan(eqx.Module):
    """What a run does from chunk to chunk: which flow, for how long, and when it is over.

    A plan's own memory is a tree of arrays that goes into checkpoints beside the state.
    """

    steps: eqx.AbstractVar[int]
    chunk: eqx.AbstractVar[int]

    @abstractmethod
    def flow(self, memory: Any) -> Flow:
        """The flow to follow now."""

    @abstractmethod
    def geometry(self, memory: Any) -> AbstractGeometry | None:
        """The coordinates in which it runs."""

    @abstractmethod
    def count(self, memory: Any, done: int) -> int:
        """How many steps the next chunk has; none where the run is over."""

    @abstractmethod
    def after(self, memory: Any, state: State, done: int) -> tuple[Any, State]:
        """The memory and the state after a chunk."""

    @abstractmethod
    def status(self, memory: Any, done: int) -> Status:
        """How it ended, once it is over."""


def follow(
    plan: AbstractPlan,
    memory: Any,
    state: State,
    key: Key,
    *,
    callbacks: Sequence[Callback],
    shown: bool | None,
    file: Checkpoint | None,
) -> tuple[Any, State, Trace, Status]:
    """Chunks until the plan is done, somebody stops it, or too many particles are not finite."""
    traces: list[Trace] = []
    if file is not None:
        stored = file.resume(plan.flow, (memory, state), key)
        if stored is not None:
            memory, state, trace = stored
            traces = [trace]
    done = int(state.step)
    ended: Status | None = None
    with progress.bar(plan.steps, done, shown) as bar:
        try:
            while (count := plan.count(memory, done)) > 0:
                began = time.perf_counter()
                flow = plan.flow(memory)
                state, rows = jax.block_until_ready(advance(flow, state, key, jnp.asarray(count, jnp.int32), plan.chunk))
                made = int(state.step) - done
                seconds = np.full(made, (time.perf_counter() - began) / max(made, 1))
                traces.append({name: np.asarray(a[:made]) for name, a in rows.items()} | {"seconds": seconds})
                done += made
                bar.update(made)
                if int(state.halted) >= 0:
                    break
                bar.set_postfix_str(progress.describe(traces[-1]), refresh=False)
                memory, state = plan.after(memory, state, done)
                if file is not None:
                    file.save(memory, state, scores_at(plan.flow(memory).target, state.x, key, state.step), joined(traces))
                if callbacks:
                    so_far = Progress(done, plan.steps, outside(plan.geometry(memory), state.x), joined(traces))
                    if any([_says_stop(callback(so_far)) for callback in callbacks]):  # noqa: C419  every callback is called
                        ended = Status("stopped", f"a callback ended the run after {done} of {plan.steps} steps")
                        break
        except KeyboardInterrupt:
            ended = Status("interrupted", f"interrupted after {done} of {plan.steps} steps; these are the particles so far")
    if int(state.halted) >= 0:
        ended = Status("not converged", why_halted(state))
    ended = plan.status(memory, done) if ended is None else ended
    redrawn = int(state.redrawn)
    if redrawn and int(state.halted) < 0:
        ended = Status(ended.kind, f"{ended.sentence}; {redrawn} times a particle was not finite and was drawn anew")
    return memory, state, joined(traces), ended


def _says_stop(answer: Any) -> bool:
    """A single true value, of Python, numpy or jax."""
    return answer is not None and np.shape(answer) == () and bool(answer)


def posterior_of(
    flow: Flow, target: Target, geometry: AbstractGeometry | None, state: State, trace: Trace, status: Status
) -> Posterior:
    """The particles in the user's coordinates, with all that is known of them."""
    x = outside(geometry, state.x)
    bank = getattr(flow.method, "bank", None)
    reach = neighbours(bank, state.x) if isinstance(bank, Bank | AbstractPlacement) else None
    return Posterior(x, evaluate(target, x)[1], values_at(target, x), trace, status, reach)


def outside(geometry: AbstractGeometry | None, z: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """Particles in the user's flat coordinates."""
    return z if geometry is None else geometry.out(z)


def joined(traces: list[Trace]) -> Trace:
    """One trace of several, row after row."""
    return {name: np.concatenate([trace[name] for trace in traces]) for name in traces[0]} if traces else {}


def why_halted(state: State) -> str:
    """Which step and which particle, and what to do."""
    return (
        f"at step {int(state.halted)} more than a fifth of {state.x.shape[0]} particles had a position, log density or "
        f"score that is not finite, particle {int(state.culprit)} the first of them; expected a density that is finite where "
        "the particles go; check it with check_model, start closer (particles=array), or take smaller steps"
    )
