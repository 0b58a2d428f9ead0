"""Other libraries' SVGD, each at its best: compiled where it compiles, warm, batches as cheap as they come.

A peer is a module with a ``NAME`` and one or both of

    given_scores(n, d)         a step on the standard normal, whose scores -x cost nothing
    whole_step(problem, n)     a step on a model: scores of a minibatch, the update, Adam
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from benchmarks.speed.peers import blackjax, keops, numpyro, pymc, pyro, reference, svgd
from benchmarks.speed.problems import Problem
from benchmarks.speed.timing import Maker, Program

PEERS: list[ModuleType] = [blackjax, numpyro, pyro, pymc, reference, svgd, keops]


def given_scores(n: int, d: int) -> dict[str, Maker]:
    """The peers that step on given scores."""
    return {peer.NAME: _bound(peer.given_scores, n, d) for peer in PEERS if hasattr(peer, "given_scores")}


def whole_steps(problem: Problem, n: int) -> dict[str, Maker]:
    """The peers that step on a model."""
    return {peer.NAME: _bound(peer.whole_step, problem, n) for peer in PEERS if hasattr(peer, "whole_step")}


def _bound(make: Callable[..., Program], *given: object) -> Maker:
    return lambda: make(*given)
