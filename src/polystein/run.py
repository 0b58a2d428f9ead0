"""The host's side of a run: chunks of steps, callbacks, progress, checkpoints, and a status at the end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.core import Tracer
from jaxtyping import Array, Float

from polystein import _checks, progress
from polystein._types import Key, Trace
from polystein.checkpoint import Checkpoint, fingerprint
from polystein.flow import Flow, State, advance, begin, scores_at, values_at
from polystein.geometry import AbstractGeometry, whitened
from polystein.kernels import AbstractPlacement, Bank
from polystein.methods import AbstractMethod
from polystein.pairs import AbstractPairs, as_pairs, default_pairs
from polystein.posterior import Posterior, Status
from polystein.target import Target

_ADAM = optax.adam(0.05)  # one object: a fresh optimiser is a fresh compilation
_method = _checks.instance("a method", AbstractMethod, example="run(SVGD(), target, ...)")
_is_target = _checks.instance("a target", Target, example="Target.of(log_density, like)")


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


def run(
    method: AbstractMethod,
    target: Target,
    *,
    particles: int | Float[Array, "n d"] = 100,
    steps: int = 1000,
    key: Key,
    optim: optax.GradientTransformation | None = None,
    geometry: AbstractGeometry | None = None,
    pairs: AbstractPairs | None = None,
    callbacks: Sequence[Callback] = (),
    chunk: int | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Posterior:
    """Move particles by a method for a number of steps, every choice in hand.

    **Arguments:**

    - ``method``: a vector field on particles, such as ``MKSVGD()``.
    - ``target``: ``Target.of(log_density, like)``.
    - ``particles``: how many, to be drawn from a unit normal about ``like`` (of the geometry, if there is one); or an (n, d)
      array of starting points.
    - ``steps``: how many steps.
    - ``key``: of ``jax.random``; the same key gives the same bits.
    - ``optim``: an optax optimiser; ``optax.adam(0.05)`` by default.
    - ``geometry``: an affine change of variables in which the particles move; none by default.
    - ``pairs``: how sums over pairs are evaluated; by the number of particles if not given.
    - ``callbacks``: functions of a ``Progress``, called at the end of every chunk; one that returns True ends the run.
    - ``chunk``: steps between two callbacks; a twentieth of all, from 10 to 500, if not given.
    - ``progress``: whether to draw a bar; by default where somebody looks on.
    - ``checkpoint``: a file to which the state goes at the end of every chunk, and from which a run that finds it continues.

    Inside ``jax.jit`` or ``jax.vmap`` (over keys, say) it is one compiled program without callbacks, bar and checkpoints.

    >>> import jax, jax.numpy as jnp, optax, polystein as ps
    >>> target = ps.Target.of(lambda x: -0.5 * jnp.sum((x - 3.0) ** 2), jnp.zeros(1))
    >>> post = ps.run(ps.MKSVGD(), target, particles=50, steps=500, key=jax.random.key(0), optim=optax.adam(0.05))
    >>> bool(abs(post.particles.mean() - 3) < 0.1), bool(abs(post.particles.std() - 1) < 0.1)
    (True, True)
    """
    method, target, optim, pairs = _method(method), _target(target), _optimiser(optim), _pairs(pairs)
    key = _checks.random_key(key)
    steps = _checks.whole("steps", least=0)(steps)
    chunk = max(10, min(500, steps // 20)) if chunk is None else _checks.whole("chunk", least=1)(chunk)
    callbacks = _callbacks(callbacks)
    checkpoint = _checkpoint_file(checkpoint)
    _check_geometry(geometry, target)
    start_key, run_key = jax.random.split(key)
    x = _starting_points(particles, target, geometry, start_key)
    inner = target if geometry is None else whitened(target, geometry)
    z = x if geometry is None else geometry.into(x)
    method.check(z)
    flow = Flow(method, inner, optim, default_pairs(x.shape[0]) if pairs is None else pairs)
    finish = lambda state, trace, status: _posterior(flow, target, geometry, state, trace, status)
    if isinstance(key, Tracer) or isinstance(x, Tracer):
        state, trace = advance(flow, flow.start(z), run_key, steps, steps)
        return finish(state, trace, Status("completed", f"{steps} steps in one compiled program"))
    state = begin(flow, z)
    traces: list[Trace] = []
    file = None
    if checkpoint is not None:
        file = Checkpoint(checkpoint, fingerprint(flow, z, key))
        stored = file.resume(flow, state, run_key)
        if stored is not None:
            state, traces = stored[0], [stored[1]]
            if int(state.step) > steps:
                raise ValueError(
                    f"{checkpoint} holds {int(state.step)} steps; expected at least that many, not steps={steps}; "
                    "ask for more steps, or delete the file to start afresh"
                )
    state, traces, status = _loop(flow, state, run_key, steps, chunk, traces, callbacks, progress, file, geometry)
    post = finish(state, _joined(traces), status)
    if int(state.halted) >= 0:
        raise RunFailed(_why_halted(state, z.shape[0]), post)
    return post


def _loop(
    flow: Flow,
    state: State,
    key: Key,
    steps: int,
    chunk: int,
    traces: list[Trace],
    callbacks: Sequence[Callback],
    shown: bool | None,
    file: Checkpoint | None,
    geometry: AbstractGeometry | None,
) -> tuple[State, list[Trace], Status]:
    """Chunks until the steps are done, somebody stops them, or too many particles are not finite."""
    done = int(state.step)
    status = Status("completed", f"{steps} steps")
    with progress.bar(steps, done, shown) as bar:
        try:
            while done < steps:
                began, count = time.perf_counter(), min(chunk, steps - done)
                state, rows = advance(flow, state, key, jnp.asarray(count, jnp.int32), chunk)
                state = jax.block_until_ready(state)
                made = int(state.step) - done
                seconds = np.full(made, (time.perf_counter() - began) / max(made, 1))
                traces.append({name: np.asarray(a[:made]) for name, a in rows.items()} | {"seconds": seconds})
                done += made
                bar.update(made)
                if int(state.halted) >= 0:
                    return state, traces, Status("not converged", _why_halted(state, state.x.shape[0]))
                bar.set_postfix_str(progress.describe(traces[-1]), refresh=False)
                if file is not None:
                    file.save(state, scores_at(flow.target, state.x, key, state.step), _joined(traces))
                if callbacks:
                    x = state.x if geometry is None else geometry.out(state.x)
                    so_far = Progress(done, steps, x, _joined(traces))
                    if any([callback(so_far) is True for callback in callbacks]):  # noqa: C419  every callback is called
                        return state, traces, Status("stopped", f"a callback ended the run after {done} of {steps} steps")
        except KeyboardInterrupt:
            status = Status("interrupted", f"interrupted after {done} of {steps} steps; these are the particles so far")
    redrawn = int(state.redrawn)
    if redrawn:
        status = Status(status.kind, f"{status.sentence}; {redrawn} times a particle was not finite and was drawn anew")
    return state, traces, status


def _posterior(
    flow: Flow,
    target: Target,
    geometry: AbstractGeometry | None,
    state: State,
    trace: Trace,
    status: Status,
) -> Posterior:
    x = state.x if geometry is None else geometry.out(state.x)
    bank = getattr(flow.method, "bank", None)
    if isinstance(bank, AbstractPlacement):
        bank = bank.at(x)
    bank = bank if isinstance(bank, Bank) else None
    return Posterior(x, scores_at(target, x, None, state.step), values_at(target, x), trace, status, bank)


def _target(target: Any) -> Target:
    if target is Target:
        raise TypeError("the class Target was given; expected a target; write Target.of(log_density, like)")
    return _is_target(target)


def _optimiser(optim: Any) -> optax.GradientTransformation:
    if optim is None:
        return _ADAM
    if not (hasattr(optim, "init") and hasattr(optim, "update")):
        raise TypeError(
            f"optim={_checks.brief(optim)}; expected an optax optimiser, called with its step size; write optax.adam(0.05)"
        )
    return optim


def _pairs(pairs: Any) -> AbstractPairs | None:
    return None if pairs is None else as_pairs(pairs)


def _callbacks(callbacks: Any) -> list[Callback]:
    each = _checks.function("a function of a Progress", example="callbacks=[lambda progress: print(progress.step)]")
    if callable(callbacks):
        raise TypeError(f"callbacks={_checks.brief(callbacks)} is one function; expected a list of them; write callbacks=[f]")
    return [each(callback) for callback in callbacks]


def _checkpoint_file(path: Any) -> Path | None:
    if path is None:
        return None
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        trouble = "is a folder" if path.is_dir() else f"lies in {path.parent}, which is no folder"
        raise ValueError(f"checkpoint={str(path)!r} {trouble}; expected a file in an existing folder; name one like 'run.npz'")
    return path


def _check_geometry(geometry: Any, target: Target) -> None:
    if geometry is None:
        return
    _checks.instance("a geometry", AbstractGeometry, example="Diagonal(centre, scale)")(geometry)
    if geometry.centre.shape != (target.dim,):
        raise ValueError(
            f"a geometry of {geometry.centre.shape} for a density of {target.dim} numbers; expected ({target.dim},); check like"
        )


def _starting_points(particles: Any, target: Target, geometry: AbstractGeometry | None, key: Key) -> Float[Array, "n d"]:
    if not isinstance(particles, int | np.integer) and np.ndim(particles) > 0:
        x = _checks.particles(particles)
        if x.shape[1] != target.dim:
            raise ValueError(
                f"particles of shape {x.shape} for a density of {target.dim} numbers; expected (n, {target.dim}); "
                "give one row per particle, or check like"
            )
        return x
    n = _checks.whole("particles", least=1)(particles)
    z = jax.random.normal(key, (n, target.dim), target.start.dtype)
    return target.start[None] + z if geometry is None else geometry.out(z)


def _joined(traces: list[Trace]) -> Trace:
    return {name: np.concatenate([trace[name] for trace in traces]) for name in traces[0]} if traces else {}


def _why_halted(state: State, n: int) -> str:
    return (
        f"at step {int(state.halted)} more than a fifth of {n} particles had a position or score that is not finite, particle "
        f"{int(state.culprit)} the first of them; expected a density that is finite where the particles go; check it with "
        "check_model, start closer (particles=array), or take smaller steps"
    )
