"""The step over all pairs on given scores: ours with one kernel and with many, beside its limits and the peers'."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.speed import limits
from benchmarks.speed.ours import own
from benchmarks.speed.peers import given_scores
from benchmarks.speed.record import Cell, cells
from benchmarks.speed.timing import Maker, take_turns

FEW = [(20, 2), (20, 64), (20, 512), (20, 5000), (100, 2), (100, 64), (100, 512), (100, 5000)]
MANY = [(1000, 64), (1000, 512), (4096, 64), (4096, 512), (20000, 64), (1000, 2)]
QUICK = [(20, 2), (100, 64)]
CAP = 2.5  # seconds that a call may take
KERNELS = (1, 10, 30)


def few(quick: bool) -> Iterator[Cell]:
    """Seconds a step, up to a hundred particles."""
    yield from _measure(QUICK[:1] if quick else FEW, quick)


def many(quick: bool) -> Iterator[Cell]:
    """Seconds a step, from a thousand particles on."""
    yield from _measure(QUICK[1:] if quick else MANY, quick)


def _measure(cases: list[tuple[int, int]], quick: bool) -> Iterator[Cell]:
    for n, d in cases:
        kernels = KERNELS if n <= 4096 else KERNELS[:2]
        hosts = floors(n, d, kernels) | own(n, d, kernels)
        found = take_turns(hosts, given_scores(n, d), seconds=0.2 if quick else 1.0, cap=CAP)
        yield from cells({"n": n, "d": d}, found)


def floors(n: int, d: int, kernels: tuple[int, ...]) -> dict[str, Maker]:
    """What the machine needs for the products and for the element-wise pass of each of our programs."""
    return {
        "3 products": lambda: limits.products(n, d, 3),
        "5 products": lambda: limits.products(n, d, 5),
        "pass, drift alone": lambda: limits.elementwise(n, 1, discrepancies=False),
        **{f"pass, {m} kernels": lambda m=m: limits.elementwise(n, m, discrepancies=True) for m in kernels},
    }
