"""What the machine can do."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.speed import limits
from benchmarks.speed.record import Cell, cells
from benchmarks.speed.timing import take_turns


def measure(quick: bool) -> Iterator[Cell]:
    """Rates: seconds for one operation of a product, one exponential, one byte."""
    size = 512 if quick else 2048
    programs = {
        "matrix product, float32": lambda: limits.product_rate(size),
        "exponentials in a fused pass": lambda: limits.exponentials(),
        "memory": lambda: limits.memory(1 << 22 if quick else 1 << 26),
    }
    yield from cells({}, take_turns(programs, seconds=0.2 if quick else 4.0))
