"""BlackJAX's svgd, its RBF kernel and median heuristic, in one compiled scan."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax

from benchmarks.speed.peers.limits import within_memory
from benchmarks.speed.problems import STEP_SIZE, Problem
from benchmarks.speed.timing import Program

NAME = "BlackJAX"


def given_scores(n: int, d: int) -> Program:
    """grad log p(x) = -x."""
    x = jax.random.normal(jax.random.key(0), (n, d))
    return _program(lambda x, step: -x, lambda step: {"step": step}, x)


def whole_step(problem: Problem, n: int) -> Program:
    """Batches by ``grad_params``."""
    score = jax.grad(problem.density())
    return _program(lambda u, rows: score(u, rows), lambda step: {"rows": problem.batch(step)}, jnp.asarray(problem.start(n)))


def _program(score: Any, batch: Any, x: jax.Array) -> Program:
    from blackjax import svgd

    n, d = x.shape
    within_memory(n * n * d, "n^2 d")
    units = max(1, min(50, int(1e8 / (n * n * d))))
    algorithm = svgd(score, optax.adam(STEP_SIZE))

    @jax.jit
    def run(x: jax.Array) -> jax.Array:
        state = algorithm.init(x, {"length_scale": jnp.ones(())})
        step = lambda state, k: (algorithm.step(state, **batch(k)), None)
        return jax.lax.scan(step, state, jnp.arange(units))[0].particles

    return Program(lambda: run(x), units)
