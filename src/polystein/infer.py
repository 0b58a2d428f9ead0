"""The one call with everything automatic: from a log density to a posterior, with no kernel and no step size to choose.

1. The Gaussian that fits best (``gaussian_start``) gives coordinates and a start.
2. MK-SVGD in those coordinates, by Adam whose steps shrink with the drift once that is small (``SMALL``); after ``FIRST``
   steps the coordinates are whitened anew by the particles' covariance.
3. When the particles' means and standard deviations have come to rest, the step size falls to nothing, and the run is over.
4. Climbs from far around look for modes that no particle knows of (``modes``).

The particles are the end state of that flow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from polystein import _checks
from polystein._types import Key, Scalar
from polystein.checkpoint import Checkpoint, fingerprint
from polystein.flow import Flow, State, begin, evaluate
from polystein.gaussian_start import FULL, GaussianFit, finite_start, fit_gaussian, normal_points, tame
from polystein.geometry import AbstractGeometry, Triangular, whitened
from polystein.kernels import DyadicLadder
from polystein.loop import AbstractPlan, Callback, RunFailed, follow, posterior_of
from polystein.methods import MKSVGD, AbstractMethod
from polystein.modes import unknown_mode
from polystein.pairs import AbstractPairs, default_pairs
from polystein.posterior import Posterior, Status
from polystein.run import as_method, as_target, callback_list, checkpoint_file
from polystein.target import Target
from polystein.weights import Uniform

FIRST = 200  # steps before the coordinates are whitened anew
BLOCK = 100  # steps over which rest is judged
LAST = 200  # steps over which the step size falls to nothing
REST = 0.005  # rms change of means and log standard deviations over a block, in standard deviations
REST_WORST = 0.02  # the same for the worst coordinate
RUNAWAY = 1e12  # no parameter is believed to lie so far from like, or to vary so much
SMALL = 0.01  # a drift below which Adam's steps are no longer of one length: with them the moments would never rest
ROWS = 64  # at least so many points are evaluated at once while a start is searched


class AnnealState(NamedTuple):
    """Steps left of a fall of the step size; -1 before it begins."""

    left: Int[Array, ""]


def annealed(steps: int) -> optax.GradientTransformation:
    """Leave updates as they are until ``left`` is set to ``steps``; then let them fall to nothing along half a cosine.

    >>> fall = annealed(2)
    >>> state = AnnealState(jnp.asarray(2))
    >>> update, state = fall.update(jnp.ones(()), state)
    >>> float(update), float(fall.update(jnp.ones(()), state)[0])
    (0.5, 0.0)
    """

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        del params
        done = (steps - state.left + 1) / steps
        factor = jnp.where(state.left < 0, 1.0, 0.5 * (1 + jnp.cos(jnp.pi * done)))
        left = jnp.where(state.left > 0, state.left - 1, state.left)
        return jax.tree.map(lambda u: factor.astype(u.dtype) * u, updates), AnnealState(left)

    return optax.GradientTransformation(lambda params: AnnealState(jnp.asarray(-1, jnp.int32)), update)


_OPTIM = optax.chain(optax.scale_by_adam(0.9, 0.99, eps=SMALL), annealed(LAST), optax.scale(-0.05))


class Course(eqx.Module):
    """Where an automatic run is: its coordinates, how far it has come, and the moments at the last look."""

    geometry: AbstractGeometry
    falling_since: Int[Array, ""]  # the step at which the step size began to fall, or -1
    rewhitened: Bool[Array, ""]
    rested: Bool[Array, ""]
    mean: Float[Array, "d"]
    deviation: Float[Array, "d"]


class Automatic(AbstractPlan):
    """First steps, new coordinates, steps until rest, and the fall of the step size."""

    method: AbstractMethod
    target: Target
    pairs: AbstractPairs
    steps: int = eqx.field(static=True)
    chunk: int = eqx.field(static=True)

    def begin(self, geometry: AbstractGeometry, z: Float[Array, "n d"]) -> Course:
        """Before the first step."""
        no = jnp.asarray(False)
        return Course(geometry, jnp.asarray(-1, jnp.int32), no, no, *_as_arrays(z.dtype, *_moments(z)))

    def flow(self, memory: Course) -> Flow:
        """The method in the coordinates of now."""
        return Flow(self.method, whitened(self.target, memory.geometry), _OPTIM, self.pairs)

    def geometry(self, memory: Course) -> AbstractGeometry:
        """The coordinates of now."""
        return memory.geometry

    def count(self, memory: Course, done: int) -> int:
        """A block; what is left of the fall."""
        since = int(memory.falling_since)
        return self.chunk if since < 0 else min(self.chunk, since + LAST - done)

    def after(self, memory: Course, state: State, done: int) -> tuple[Course, State]:
        """New coordinates after the first steps; the fall once the moments rest, or once the steps run out."""
        if int(memory.falling_since) >= 0:
            return memory, state
        n, d = state.x.shape
        if not bool(memory.rewhitened):
            if done < FIRST:
                return memory, state
            if 2 * d < n:
                memory, state = _rewhiten(self, memory, state)
            seen = (jnp.asarray(True), *_as_arrays(state.x.dtype, *_moments(state.x)))
            return eqx.tree_at(lambda m: (m.rewhitened, m.mean, m.deviation), memory, seen), state
        mean, deviation = _moments(state.x)
        moved = (mean - np.asarray(memory.mean)) / deviation
        grown = np.log(deviation / np.asarray(memory.deviation))
        rms = lambda a: float(np.sqrt(np.mean(a**2)))
        worst = float(max(np.abs(moved).max(), np.abs(grown).max()))
        rested = rms(moved) < REST and rms(grown) < REST and worst < REST_WORST
        memory = eqx.tree_at(
            lambda m: (m.mean, m.deviation, m.rested),
            memory,
            (*_as_arrays(state.x.dtype, mean, deviation), jnp.asarray(rested)),
        )
        if rested or done + LAST >= self.steps:
            memory = eqx.tree_at(lambda m: m.falling_since, memory, state.step)
            left = jnp.asarray(LAST, jnp.int32)
            state = eqx.tree_at(lambda s: s.optim[1], state, AnnealState(left), is_leaf=lambda a: isinstance(a, AnnealState))
        return memory, state

    def status(self, memory: Course, done: int) -> Status:
        """Converged if the moments came to rest."""
        if bool(memory.rested):
            return Status("converged", f"means and standard deviations came to rest; {done} steps")
        return Status(
            "not converged",
            f"means or standard deviations still moved by more than {REST} of a standard deviation in {BLOCK} steps when the "
            f"{self.steps} steps ran out; the posterior may have heavy tails, a funnel, several modes or no finite integral; "
            "look at the diagnostics, use more particles, or raise max_steps",
        )


def infer(
    log_density: Callable[[Any], Scalar] | Target,
    like: Any = None,
    *,
    key: Key,
    particles: int = 100,
    method: AbstractMethod | None = None,
    constrain: Any = None,
    max_steps: int = 2000,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Posterior:
    """The posterior of a log density: everything else is found, the run stops by itself, and says how sure it is.

    **Arguments:**

    - ``log_density``: log p up to a constant, of a tree like ``like``; or a ``Target``.
    - ``like``: an example of the tree (arrays of floats, or ``jax.ShapeDtypeStruct``): its structure and a first guess. The
      start is searched, not drawn around it.
    - ``key``: of ``jax.random``; the same key gives the same bits.
    - ``particles``: how many.
    - ``method``: how they move; by default ``MKSVGD`` over two Gaussian kernels of 8 and 16 times the median rule's bandwidth,
      evenly weighted: of a wider bank, learned weights choose the widest, too wide for what is curved or skewed.
    - ``constrain``: bijections for parameters that are not free, such as ``{"sigma": ps.Positive()}``.
    - ``max_steps``: after so many steps it ends, converged or not; not converging is a status, never an exception.
    - ``callbacks``, ``progress``, ``checkpoint``: as for ``run``.

    >>> import jax, jax.numpy as jnp, polystein as ps
    >>> post = ps.infer(lambda x: -0.5 * jnp.sum((x / jnp.array([1.0, 1000.0])) ** 2), jnp.zeros(2), key=jax.random.key(0))
    >>> post.status.kind, (post.particles.std(0, ddof=1) / jnp.array([1.0, 1000.0])).round(1).tolist()
    ('converged', [1.0, 1.0])
    """
    target = _target_of(log_density, like, constrain)
    mover: AbstractMethod = default_method() if method is None else as_method(method)
    key = _checks.random_key(key)
    n = _checks.whole("particles", least=1)(particles)
    max_steps = _checks.whole("max_steps", least=FIRST + BLOCK + LAST, example=2000)(max_steps)
    callbacks, file_name = callback_list(callbacks), checkpoint_file(checkpoint)
    d, dtype = target.dim, target.start.dtype
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    z = normal_points(generator, n, d)
    plan = Automatic(method=mover, target=target, pairs=default_pairs(n), steps=max_steps, chunk=BLOCK)
    if file_name is not None and file_name.exists():
        size = np.ones(d) if d > FULL else np.eye(d)
        fit = GaussianFit(np.zeros(d), size, 0.0, 0, 0.0)
        first = z
    else:
        fit, first = _search(target, z, generator)
    geometry = fit.geometry(dtype)
    x = jnp.asarray(fit.rotated(first), dtype)
    mover.check(x)
    mover.optimiser(_OPTIM)
    memory = plan.begin(geometry, x)
    marks = fingerprint(plan.flow(memory), jnp.asarray(z, dtype), key)
    file = None if file_name is None else Checkpoint(file_name, marks)
    memory, state, trace, status = follow(
        plan, memory, begin(plan.flow(memory), x), key, callbacks=callbacks, shown=progress, file=file
    )
    if status.kind == "converged":
        status = _other_modes(target, memory.geometry, state, generator, status)
    post = posterior_of(plan.flow(memory), target, memory.geometry, state, trace, status)
    if int(state.halted) >= 0:
        raise RunFailed(status.sentence, post)
    return post


def default_method() -> MKSVGD:
    """How ``infer`` moves particles where no method is given."""
    return MKSVGD(DyadicLadder(low=3, high=4), Uniform())


def _search(target: Target, z: np.ndarray, generator: np.random.Generator) -> tuple[GaussianFit, np.ndarray]:
    """The Gaussian fit, and the starting points in its coordinates."""
    n, d = z.shape
    rows = max(n, ROWS)
    look = lambda u: _in_rows(target, u, rows)
    many = n if 2 * d <= n else 2 * d + 4
    points = z if many == n and n > 4 else normal_points(generator, max(many, 8), d)
    start = finite_start(look, np.asarray(target.start, np.float64), points)
    fit = fit_gaussian(look, start, points)
    _refuse_runaway(fit, target)
    return fit, tame(look, fit, z)


def _other_modes(
    target: Target, geometry: AbstractGeometry, state: State, generator: np.random.Generator, status: Status
) -> Status:
    """Not converged, where there is a mode that no particle knows of."""

    def look(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, scores = _in_rows(target, np.asarray(geometry.out(jnp.asarray(z, state.x.dtype)), np.float64), rows)
        return values, np.asarray(geometry.pull(jnp.asarray(scores, state.x.dtype)), np.float64)

    rows = max(len(state.x), ROWS)
    mode = unknown_mode(look, np.asarray(state.x, np.float64), generator.standard_normal((ROWS // 2, target.dim)))
    if mode is None:
        return status
    place = np.asarray(geometry.out(jnp.asarray(mode[None], state.x.dtype)))[0]
    shown = ", ".join(f"{value:.3g}" for value in place[:6]) + (", ..." if len(place) > 6 else "")
    return Status(
        "not converged",
        f"the density has another mode, at ({shown}) in unconstrained coordinates, and no particle is in its basin; these "
        f"particles tell of theirs alone, after {int(state.step)} steps; start there with like= to see it, or reparametrise",
    )


def _refuse_runaway(fit: GaussianFit, target: Target) -> None:
    """A density that rises or stays for ever has no posterior: its best Gaussian grows out of all bounds."""
    scale = np.abs(fit.factor) if fit.factor.ndim == 1 else np.abs(fit.factor).max(1)
    size = np.maximum(np.abs(fit.mean - np.asarray(target.start, np.float64)), scale)
    worst = int(np.argmax(np.where(np.isfinite(size), size, np.inf)))
    if not size[worst] < RUNAWAY:
        raise ValueError(
            f"the density does not fall off: the search for a start ran away to {size[worst]:.1g} along coordinate {worst} "
            f"of {len(size)}; expected a density with a finite integral; give that parameter a prior or a constraint, or "
            "look for a wrong sign, with check_model"
        )


def _in_rows(target: Target, u: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Log densities and scores of any number of points by one program for ``rows`` of them."""
    with np.errstate(over="ignore"):  # what no float32 holds is infinite, and refused as such
        padded = np.concatenate([u, np.repeat(u[-1:], -len(u) % rows, 0)]).astype(target.start.dtype)
    parts = [evaluate(target, jnp.asarray(padded[i : i + rows])) for i in range(0, len(padded), rows)]
    values, scores = (np.concatenate([np.asarray(part[k], np.float64) for part in parts])[: len(u)] for k in (0, 1))
    return values, scores


def _as_arrays(dtype: np.dtype, *rows: np.ndarray) -> tuple[Array, ...]:
    return tuple(jnp.asarray(a, dtype) for a in rows)


def _moments(x: Float[Array, "n d"]) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations, on the host; where particles meet, a thousandth of the best Gaussian's."""
    rows = np.asarray(x, np.float64)
    return rows.mean(0), np.maximum(rows.std(0), 1e-3)


def _rewhiten(plan: Automatic, memory: Course, state: State) -> tuple[Course, State]:
    """Coordinates in which the particles' covariance is the identity; the method and the optimiser begin anew in them."""
    old = memory.geometry
    if not isinstance(old, Triangular):
        return memory, state
    z, factor = np.asarray(state.x, np.float64), np.asarray(old.factor, np.float64)
    mean = z.mean(0)
    covariance = np.atleast_2d(np.cov(z.T))
    values = np.linalg.eigvalsh(covariance)
    if values[0] <= 1e-10 * values[-1]:
        return memory, state
    root = np.linalg.cholesky(covariance)
    geometry = Triangular(*_as_arrays(state.x.dtype, np.asarray(old.centre, np.float64) + factor @ mean, factor @ root))
    x = jnp.asarray(np.linalg.solve(root, (z - mean).T).T, state.x.dtype)
    memory = eqx.tree_at(lambda m: m.geometry, memory, geometry)
    fresh = begin(plan.flow(memory), x)
    return memory, eqx.tree_at(lambda s: (s.step, s.redrawn), fresh, (state.step, state.redrawn))


def _target_of(log_density: Any, like: Any, constrain: Any) -> Target:
    if isinstance(log_density, Target):
        if like is not None or constrain is not None:
            raise ValueError("a Target was given with like= or constrain=; expected them in Target.of; leave them out here")
        return log_density
    if isinstance(log_density, type) and issubclass(log_density, Target):
        return as_target(log_density)
    if like is None:
        raise ValueError(
            "like is missing; expected an example of the density's argument, its structure; write infer(f, jnp.zeros(d), ...)"
        )
    return Target.of(log_density, like, constrain=constrain)
