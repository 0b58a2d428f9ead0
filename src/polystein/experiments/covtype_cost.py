"""What a step costs by the number of kernels and of particles: times of programs called in turn, so that ratios are fair."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from polystein.experiments.covtype_run import Table, flow_of, trial_of
from polystein.flow import advance, begin
from polystein.kernels import RBF
from polystein.methods import MKSVGD, SVGD, AbstractMethod, Ensemble

FEATURES, ROWS = 54, 2000
PARTICLES, KERNELS = (100, 200, 400), (5, 10, 20)
BASE = (10, 100)  # kernels where particles vary, particles where kernels vary


def bank(m: int) -> MKSVGD:
    """Algorithm 1 with m kernels."""
    return MKSVGD.paper(low=2, high=1 + m)


def costs(repeats: int, progress: Callable[[float], None]) -> dict[str, Any]:
    """Milliseconds of a step: the least of some repeats, programs taking turns.

    By particles, with ten kernels; by kernels, with 100 particles; and of one kernel, and of none.
    """
    sizes = dict.fromkeys([*((BASE[0], n) for n in PARTICLES), *((m, BASE[1]) for m in KERNELS)])
    programs = {f"m={m}, n={n}": _program(bank(m), n) for m, n in sizes}
    programs |= {"SVGD": _program(SVGD(RBF(16.0)), BASE[1]), "ensemble": _program(Ensemble(), BASE[1])}
    best = dict.fromkeys(programs, float("inf"))
    for k in range(repeats):
        for name, program in programs.items():
            best[name] = min(best[name], program())
        progress((k + 1) / repeats)
    by = lambda values, place: [best[place(value)] for value in values]
    return {
        "particles": [PARTICLES, by(PARTICLES, lambda n: f"m={BASE[0]}, n={n}")],
        "kernels": [KERNELS, by(KERNELS, lambda m: f"m={m}, n={BASE[1]}")],
        "SVGD": best["SVGD"],
        "ensemble": best["ensemble"],
    }


def _program(method: AbstractMethod, n: int, steps: int = 20) -> Callable[[], float]:
    """A compiled run on rows of noise with the shape of Covertype's; calling it gives the milliseconds of a step."""
    key = jax.random.key(0)
    rows = Table(jax.random.uniform(key, (ROWS, FEATURES)), jnp.arange(ROWS) % 2 * 1.0)
    flow = flow_of(method, optax.rmsprop(0.05, decay=0.9), rows, trial_of(rows, 0), n)
    state = begin(flow, jax.random.normal(key, (n, FEATURES + 2)))
    jax.block_until_ready(advance(flow, state, key, steps, steps)[0].x)

    def timed() -> float:
        began = time.perf_counter()
        jax.block_until_ready(advance(flow, state, key, steps, steps)[0].x)
        return (time.perf_counter() - began) / steps * 1000

    return timed
