"""A step of a run on a model, scores and optimiser included: ours with ten kernels, the peers' with one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polystein as ps
from benchmarks.speed.ours import end_to_end, many
from benchmarks.speed.peers import whole_steps
from benchmarks.speed.problems import Problem, logistic, network
from benchmarks.speed.record import Cell, cells
from benchmarks.speed.timing import Maker, take_turns
from polystein.methods import AbstractMethod

CASES = [(logistic(), 100), (logistic(), 1000), (logistic(), 20), (network(), 20), (network(98), 20)]
METHODS: dict[str, Callable[[], AbstractMethod]] = {
    "10 kernels, learned weights": lambda: many(10),
    "10 kernels on the median rule": lambda: ps.MKSVGD(ps.DyadicLadder()),
    "the default, MKSVGD()": lambda: ps.MKSVGD(),
    "1 kernel": lambda: ps.SVGD(ps.RBF(1.0)),
    "1 kernel, median rule": lambda: ps.SVGD(),
}
QUICK = [(logistic(), 20)]


def measure(quick: bool) -> Iterator[Cell]:
    """Seconds a step."""
    for problem, n in QUICK if quick else CASES:
        case = {"model": problem.name, "n": n, "d": problem.dim}
        found = take_turns(ours(problem, n), whole_steps(problem, n), seconds=0.2 if quick else 1.5, cap=2.5)
        yield from cells(case, found)


def ours(problem: Problem, n: int) -> dict[str, Maker]:
    """Our methods on a model."""
    return {name: lambda make=make: end_to_end(make(), problem, n) for name, make in METHODS.items()}
