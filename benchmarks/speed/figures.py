"""Figures of a record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed.record import Cell, seconds
from benchmarks.speed.verdicts import DRIFT, MANY, ONE, Groups, limit
from polystein.report.drawing import saved, style

D = 64


def draw(groups: Groups, folder: Path) -> None:
    """What there are numbers for."""
    if groups.get("pair step"):
        _sweep(groups["pair step"], folder)


def _sweep(found: Sequence[Cell], folder: Path) -> None:
    """Multiples of the limit, and of our time, by the number of particles."""
    sizes = sorted({cell.case["n"] for cell in found if cell.case["d"] == D})
    peers = [
        name for name in dict.fromkeys(cell.program for cell in found) if name[0].isalpha() and not name.startswith("pass")
    ]
    at = lambda program, n: seconds(found, program, n=n, d=D)
    with style() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
        for program in (DRIFT, ONE, MANY):
            left.loglog(sizes, [at(program, n) / limit(found, program, n=n, d=D) for n in sizes], "o-", ms=3, label=program)
        left.set(title="Over the machine's limit", ylabel="times products and pass")
        for peer in peers:
            right.loglog(sizes, [at(peer, n) / at(MANY, n) for n in sizes], "o-", ms=3, label=peer)
        right.set(title="Over ours with ten kernels", ylabel="times our step")
        _finish(left, right)
        saved(figure, folder, "speed", f"A step over all pairs on given scores, d = {D}")


def _finish(*axes: Any) -> None:
    for axis in axes:
        axis.axhline(1, color="#6b7785", lw=0.8)
        axis.set_xlabel("particles n")
        axis.legend()
