"""The groups of the benchmark, each measured in one go: a name and a function from ``quick`` to its cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from benchmarks.speed.cases import approximate, end_to_end, first_result, large, limits, pair_step
from benchmarks.speed.record import Cell

GROUPS: dict[str, Callable[[bool], Iterable[Cell]]] = {
    "limits": limits.measure,
    "pair step few": pair_step.few,
    "pair step many": pair_step.many,
    "end to end": end_to_end.measure,
    "large": large.measure,
    "approximate": approximate.measure,
    "first result": first_result.measure,
}
