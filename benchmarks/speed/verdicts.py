"""The targets, each with what was measured and whether it was met: a pure function of the record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from benchmarks.speed.record import Cell, seconds

Groups = Mapping[str, Sequence[Cell]]
MANY, ONE, DRIFT = "10 kernels, learned weights", "1 kernel, KSD tracked", "1 kernel, drift alone"
WITHOUT = ", without native"  # after the name of a program that runs in pure JAX while polystein-native is installed


class Verdict(NamedTuple):
    """What was asked for, and what was found; ``met`` is None where it was not measured."""

    target: str
    needed: str
    found: str
    met: bool | None

    @staticmethod
    def at_most(target: str, needed: float, found: float, unit: str = "") -> Verdict:
        """Met where found <= needed."""
        return Verdict._judged(target, f"<= {needed:g}{unit}", found, unit, found <= needed)

    @staticmethod
    def at_least(target: str, needed: float, found: float, unit: str = "") -> Verdict:
        """Met where found >= needed."""
        return Verdict._judged(target, f">= {needed:g}{unit}", found, unit, found >= needed)

    @staticmethod
    def _judged(target: str, needed: str, found: float, unit: str, met: bool) -> Verdict:
        if not math.isfinite(found):
            return Verdict(target, needed, "not measured", None)
        return Verdict(target, needed, f"{found:.3g}{unit}", met)


def verdicts(groups: Groups) -> list[Verdict]:
    """Every target, in the order in which they were set."""
    return [*_own(groups), *_peers(groups), *_limits(groups), *_large(groups), *_waiting(groups)]


def pair_steps(groups: Groups) -> list[Cell]:
    """The two groups of steps over pairs as one."""
    return [*groups.get("pair step few", ()), *groups.get("pair step many", ())]


def limit(found: Sequence[Cell], program: str, **case: object) -> float:
    """What the products and the element-wise pass of a program take by themselves."""
    m = program.partition(" ")[0]
    products, one_pass = (
        ("3 products", "pass, drift alone") if program.startswith(DRIFT) else ("5 products", f"pass, {m} kernels")
    )
    return seconds(found, products, **case) + seconds(found, one_pass, **case)


def _own(groups: Groups) -> Iterator[Verdict]:
    found = pair_steps(groups)
    at = lambda program, n, d: seconds(found, program, n=n, d=d)
    for n, d in [(100, 64), (1000, 64), (1000, 512), (4096, 64)]:
        for program in (DRIFT, ONE):
            multiple = at(program, n, d) / limit(found, program, n=n, d=d)
            yield Verdict.at_most(f"{program}, over its own limit, n = {n}, d = {d}", 1.5, multiple, "x")
    for n, d, one, drift in [(100, 64, 1.5, 2.0), (1000, 64, 1.3, 2.2), (1000, 512, 1.1, 1.8)]:
        for way in _ways(found):
            many = at(MANY + way, n, d)
            yield Verdict.at_most(f"{MANY}, over {ONE}{way}, n = {n}, d = {d}", one, many / at(ONE + way, n, d), "x")
            yield Verdict.at_most(f"{MANY}, over {DRIFT}{way}, n = {n}, d = {d}", drift, many / at(DRIFT + way, n, d), "x")


def _ways(found: Sequence[Cell]) -> list[str]:
    """As it is, and in pure JAX where polystein-native was installed."""
    return ["", *([WITHOUT] if any(cell.program.endswith(WITHOUT) for cell in found) else [])]


def _peers(groups: Groups) -> Iterator[Verdict]:
    found = groups.get("end to end", ())
    wanted = [(100, "BlackJAX", 8), (100, "NumPy reference", 8), (100, "NumPyro SteinVI", 15), (1000, "BlackJAX", 60)]
    for n, peer, times in wanted:
        at = lambda program, n=n: seconds(found, program, model="logistic", n=n)
        yield Verdict.at_least(f"{peer} over {MANY}, logistic regression, n = {n}", times, at(peer) / at(MANY), "x")


def _limits(groups: Groups) -> Iterator[Verdict]:
    found = pair_steps(groups)
    compiled = len(_ways(found)) > 1
    place = {"n": 4096, "d": 64}
    for name, program, times in [("with", MANY if compiled else "", 1.3), ("without", MANY + _ways(found)[-1], 4.0)]:
        multiple = seconds(found, program, **place) / limit(found, MANY, **place)
        yield Verdict.at_most(f"{MANY}, over products and pass, n = 4096, d = 64, {name} native", times, multiple, "x")


def _large(groups: Groups) -> Iterator[Verdict]:
    found = groups.get("large", ())
    small, large = (seconds(found, MANY, n=n) for n in (4096, 100_000))
    peak = next((cell.facts["peak bytes"] for cell in found if cell.case["n"] == 100_000), math.nan)
    yield Verdict.at_most(f"{MANY}, n = 100 000, d = 64: peak memory", 2, peak / 1e9, " GB")
    growth = large / small / (100_000 / 4096) ** 2
    yield Verdict.at_most(f"{MANY}, n = 100 000, d = 64: time over n^2 from n = 4096", 2.5, growth, "x")


def _waiting(groups: Groups) -> Iterator[Verdict]:
    found = groups.get("first result", ())
    yield Verdict.at_most("first result of run: import, compilation, a step", 5, seconds(found, "no cache", call="run"), " s")
    facts = next((cell.facts for cell in found if cell.program == "no cache" and cell.case["call"] == "run"), {})
    again = facts.get("compiled by the second", math.nan)
    yield Verdict.at_most("programs compiled by a second run of the same shape", 0, again)
