"""Figures of a record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed.record import Cell, seconds
from benchmarks.speed.verdicts import DRIFT, MANY, ONE, WITHOUT, Groups, limit, pair_steps
from polystein.report.drawing import saved, style

D = 64


def draw(groups: Groups, folder: Path) -> None:
    """What there are numbers for."""
    if pair_steps(groups):
        _sweep(pair_steps(groups), folder)
    if groups.get("approximate"):
        _curves(groups["approximate"], folder)


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
            slower = [seconds(found, program + WITHOUT, n=n, d=D) / limit(found, program, n=n, d=D) for n in sizes]
            left.loglog(sizes, slower, "o:", ms=2, color=left.lines[-1].get_color())
        left.set(title="Over the machine's limit", ylabel="times products and pass")
        for peer in peers:
            right.loglog(sizes, [at(peer, n) / at(MANY, n) for n in sizes], "o-", ms=3, label=peer)
        right.set(title="Over ours with ten kernels", ylabel="times our step")
        _finish(left, right)
        saved(figure, folder, "speed", f"A step over all pairs on given scores, d = {D}")


def _curves(found: Sequence[Cell], folder: Path) -> None:
    """Error against speed."""
    with style() as plt:
        figure, axis = plt.subplots(figsize=(5.5, 3.4))
        for way in ("batches", "landmarks"):
            for case in {tuple(cell.case.items()): cell.case for cell in found}.values():
                some = [cell for cell in found if cell.case == case and way in cell.program and cell.seconds]
                times = [seconds(found, "exact", **case) / cell.seconds for cell in some if cell.seconds]
                label = f"{way}, d = {case['d']}, kernels: {case['kernels']}"
                axis.loglog(times, [cell.facts["phi"] for cell in some], "o-", ms=3, label=label)
        axis.set(title="Less than n² work", xlabel="times as fast as the exact sweep", ylabel="relative error of the drift")
        axis.legend()
        saved(figure, folder, "approximate", "Error of the drift against speed, n = 20 000")


def _finish(*axes: Any) -> None:
    for axis in axes:
        axis.axhline(1, color="#6b7785", lw=0.8)
        axis.set_xlabel("particles n")
        axis.legend()
