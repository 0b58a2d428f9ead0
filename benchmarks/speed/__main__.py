"""Measure, keep the record, print tables, verdicts and figures.

    python -m benchmarks.speed [--quick] [--only "limits,end to end"] [--out build/speed]

Groups that are not named keep the numbers they have in the folder's speed.json, so that a long benchmark can be made in slices;
``--only none`` measures nothing and makes the report anew.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import jax

from benchmarks.speed.cases import GROUPS
from benchmarks.speed.record import Cell, Record
from benchmarks.speed.report import write


def main(words: list[str] | None = None) -> None:
    """Measure the groups asked for, one after another."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, some seconds: whether everything runs")
    parser.add_argument("--only", default=",".join(GROUPS), help=f"groups, separated by commas: {', '.join(GROUPS)}; or none")
    parser.add_argument("--out", type=Path, default=Path("build/speed"))
    given = parser.parse_args(words)
    groups = [name.strip() for name in given.only.split(",") if name.strip() != "none"]
    unknown = [name for name in groups if name not in GROUPS]
    if unknown:
        parser.error(f"no group is called {unknown[0]!r}; expected some of {', '.join(GROUPS)}")
    command = " ".join(["python -m benchmarks.speed", *(sys.argv[1:] if words is None else words)])
    record = Record(given.out)
    for name in groups:
        found: list[Cell] = []
        for cell in GROUPS[name](given.quick):
            found.append(cell)
            record.keep(name, found, command)  # at every cell: what is interrupted keeps what it has
            print(f"{name}: {cell.case} {cell.program}: {said(cell)}", flush=True)
        jax.clear_caches()
    print("\n" + write(record, given.out))


def said(cell: Cell) -> str:
    """A cell in a few words."""
    return cell.left_out or f"{cell.seconds:.4g} s ({cell.low:.3g} to {cell.high:.3g}, {cell.rounds} rounds) {cell.facts or ''}"


if __name__ == "__main__":
    main()
