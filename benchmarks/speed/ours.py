"""Polystein's own programs: a method's velocity on given scores, and a whole run on a model."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float

import polystein as ps
from benchmarks.speed.problems import STEP_SIZE, Problem
from benchmarks.speed.timing import Maker, Program
from benchmarks.speed.verdicts import WITHOUT
from polystein.flow import Flow, advance, begin
from polystein.methods import AbstractMethod, Swarm
from polystein.pairs import AbstractPairs, Compiled, default_pairs, native_package

median_rule = lambda n, d: 2 * d / math.log(n + 1)  # of draws from a standard normal
LADDERS = {1: (0, 0), 10: (-4, 5), 30: (-14, 15)}


def many(m: int, h: float = 1.0) -> ps.MKSVGD:
    """m kernels whose weights are learned at every step, as ``MKSVGD()`` learns them."""
    low, high = LADDERS[m]
    return ps.MKSVGD(ps.Bank.dyadic(h, low, high))


def own(n: int, d: int, kernels: tuple[int, ...] = (1, 10)) -> dict[str, Maker]:
    """The drift of one kernel alone, and banks with all discrepancies and learned weights, on given scores.

    Where polystein-native is installed, each is there a second time without it.
    """
    pairs = default_pairs(n)
    programs = _own(n, d, kernels, pairs)
    if native_package() is not None and isinstance(pairs, Compiled):
        programs |= {name + WITHOUT: make for name, make in _own(n, d, kernels, pairs.otherwise).items()}
    return programs


def _own(n: int, d: int, kernels: tuple[int, ...], pairs: AbstractPairs) -> dict[str, Maker]:
    one = {"1 kernel, drift alone": lambda: given_scores(ps.SVGD(ps.RBF(median_rule(n, d))), n, d, pairs)}
    name = lambda m: "1 kernel, KSD tracked" if m == 1 else f"{m} kernels, learned weights"
    return one | {name(m): lambda m=m: given_scores(many(m, median_rule(n, d)), n, d, pairs) for m in kernels}


def given_scores(method: AbstractMethod, n: int, d: int, pairs: AbstractPairs) -> Program:
    """Enough steps on the standard normal to be timed."""
    units, run = steps_a_call(n, d), stepping(method, n, d, pairs)
    return Program(lambda: run(units), units)


def stepping(method: AbstractMethod, n: int, d: int, pairs: AbstractPairs) -> Callable[[int], Any]:
    """``count`` steps x <- x + eps v(x) under the scores -x of a standard normal, which cost nothing.

    What a method records is summed, so that none of it is left uncomputed.
    """
    x = jax.random.normal(jax.random.key(0), (n, d))
    memory = jax.tree.map(lambda a: lax.convert_element_type(a, a.dtype), method.init(x))

    @eqx.filter_jit
    def run(method: AbstractMethod, x: Float[Array, "n d"], memory: Any, count: Array) -> tuple:
        def step(_: Array, carry: tuple) -> tuple:
            x, memory, total = carry
            swarm = Swarm(ps.Points.of(x, -x), pairs)
            velocity, memory, trace = method.velocity(swarm, memory, jax.random.key(0))
            return x + 1e-3 * velocity, memory, total + sum(jnp.sum(leaf) for leaf in jax.tree.leaves(trace))

        return lax.fori_loop(0, count, step, (x, memory, jnp.zeros((), x.dtype)))

    return lambda count: run(method, x, memory, jnp.asarray(count, jnp.int32))


def end_to_end(method: AbstractMethod, problem: Problem, n: int) -> Program:
    """Steps of a run: a minibatch's scores, the velocity, Adam, a trace, and the watch over particles that are not finite."""
    flow = Flow(method, problem.target(), optax.adam(STEP_SIZE), default_pairs(n))
    state, key = begin(flow, jnp.asarray(problem.start(n))), jax.random.key(0)
    units = steps_a_call(n, problem.dim)
    count = jnp.asarray(units, jnp.int32)
    return Program(lambda: advance(flow, state, key, count, units), units)


def steps_a_call(n: int, d: int) -> int:
    """So many that a call takes some hundredths of a second on a few cores."""
    return max(1, min(200, int(2e8 / (n * n * (d + 32)))))
