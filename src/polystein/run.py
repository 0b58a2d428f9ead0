"""A run with every choice in hand: a method, a target, an optimiser, a number of steps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
from jax.core import Tracer
from jaxtyping import Array, Float

from polystein import _checks
from polystein._types import Key
from polystein.checkpoint import Checkpoint, fingerprint
from polystein.flow import Flow, State, advance, begin
from polystein.geometry import AbstractGeometry, whitened
from polystein.loop import AbstractPlan, Callback, RunFailed, follow, posterior_of
from polystein.methods import AbstractMethod
from polystein.pairs import AbstractPairs, as_pairs, default_pairs
from polystein.posterior import Posterior, Status
from polystein.target import Target

_ADAM = optax.adam(0.05)  # one object: a fresh optimiser is a fresh compilation
as_method = _checks.instance("a method", AbstractMethod, example="run(SVGD(), target, ...)")
_is_target = _checks.instance("a target", Target, example="Target.of(log_density, like)")


class Fixed(AbstractPlan):
    """One flow for a number of steps."""

    only: Flow
    coordinates: AbstractGeometry | None
    steps: int = eqx.field(static=True)
    chunk: int = eqx.field(static=True)

    def flow(self, memory: None) -> Flow:
        """The one there is."""
        return self.only

    def geometry(self, memory: None) -> AbstractGeometry | None:
        """The one there is."""
        return self.coordinates

    def count(self, memory: None, done: int) -> int:
        """A chunk, or what is left."""
        return min(self.chunk, self.steps - done)

    def after(self, memory: None, state: State, done: int) -> tuple[None, State]:
        """Nothing changes."""
        return None, state

    def status(self, memory: None, done: int) -> Status:
        """All steps were made."""
        return Status("completed", f"{done} steps")


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
    - ``optim``: an optax optimiser; by default the method's own, or ``optax.adam(0.05)``.
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
    method, target, pairs = as_method(method), as_target(target), _pairs(pairs)
    optim = _optimiser(optim, method)
    key = _checks.random_key(key)
    steps = _checks.whole("steps", least=0)(steps)
    chunk = max(10, min(500, steps // 20)) if chunk is None else _checks.whole("chunk", least=1)(chunk)
    callbacks = callback_list(callbacks)
    file_name = checkpoint_file(checkpoint)
    _check_geometry(geometry, target)
    start_key, run_key = jax.random.split(key)
    x = _starting_points(particles, target, geometry, start_key)
    inner = target if geometry is None else whitened(target, geometry)
    z = x if geometry is None else geometry.into(x)
    method.check(z)
    flow = Flow(method, inner, optim, default_pairs(x.shape[0]) if pairs is None else pairs)
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((flow, x, key))):
        state, trace = advance(flow, flow.start(z), run_key, steps, max(steps, 1))
        trace = {name: rows[:steps] for name, rows in trace.items()}
        return posterior_of(flow, target, geometry, state, trace, Status("completed", f"{steps} steps in one program"))
    plan = Fixed(only=flow, coordinates=geometry, steps=steps, chunk=chunk)
    file = None if file_name is None else Checkpoint(file_name, fingerprint(flow, z, key))
    _, state, trace, status = follow(plan, None, begin(flow, z), run_key, callbacks=callbacks, shown=progress, file=file)
    if int(state.step) > steps:
        raise ValueError(
            f"{checkpoint} holds {int(state.step)} steps; expected at most steps={steps}; ask for more, or delete the file"
        )
    post = posterior_of(flow, target, geometry, state, trace, status)
    if int(state.halted) >= 0:
        raise RunFailed(status.sentence, post)
    return post


def as_target(target: Any) -> Target:
    """A target, and not the class."""
    if target is Target:
        raise TypeError("the class Target was given; expected a target; write Target.of(log_density, like)")
    return _is_target(target)


def _optimiser(optim: Any, method: AbstractMethod) -> optax.GradientTransformation:
    if optim is not None and not (hasattr(optim, "init") and hasattr(optim, "update")):
        raise TypeError(
            f"optim={_checks.brief(optim)}; expected an optax optimiser, called with its step size; write optax.adam(0.05)"
        )
    chosen = method.optimiser(optim)
    return _ADAM if chosen is None else chosen


def _pairs(pairs: Any) -> AbstractPairs | None:
    return None if pairs is None else as_pairs(pairs)


def callback_list(callbacks: Any) -> list[Callback]:
    """Functions, each of a ``Progress``."""
    each = _checks.function("a function of a Progress", example="callbacks=[lambda progress: print(progress.step)]")
    if callable(callbacks):
        raise TypeError(f"callbacks={_checks.brief(callbacks)} is one function; expected a list of them; write callbacks=[f]")
    return [each(callback) for callback in callbacks]


def checkpoint_file(path: Any) -> Path | None:
    """A file in an existing folder, or none."""
    if path is None:
        return None
    path = _checks.path(path, "checkpoint")
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
