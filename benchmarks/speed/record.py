"""What was measured, as JSON: cells by group, each group with the machine, the versions and the load it was measured under."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.speed.timing import Times

PACKAGES = "polystein polystein-native jax jaxlib numpy optax equinox numpyro blackjax torch pyro-ppl pymc svgd pykeops".split()


@dataclass(frozen=True)
class Cell:
    """One program on one case: seconds for a unit of its work, or why there are none; and what else was found."""

    case: dict[str, Any]
    program: str
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    first: float | None = None
    left_out: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


def cells(case: Mapping[str, Any], times: Mapping[str, Times | str], **facts: Any) -> Iterator[Cell]:
    """A cell for each program that took its turn, or did not."""
    for program, found in times.items():
        if isinstance(found, str):
            yield Cell(dict(case), program, left_out=found)
        else:
            numbers = (rounded(value) for value in (found.median, found.low, found.high))
            yield Cell(dict(case), program, *numbers, found.rounds, rounded(found.first), facts=facts)


def rounded(value: float, digits: int = 5) -> float:
    """To so many significant digits."""
    return float(f"{value:.{digits}g}")


class Record:
    """The groups in a folder's ``speed.json``; a group that is measured again replaces what was there."""

    def __init__(self, folder: Path):
        self.file = folder / "speed.json"
        self.groups: dict[str, Any] = json.loads(self.file.read_text("utf-8")) if self.file.is_file() else {}

    def keep(self, group: str, found: Sequence[Cell], command: str) -> None:
        """Write a group's cells, with when and on what."""
        self.groups[group] = {"made": circumstances(command), "cells": [asdict(cell) for cell in found]}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(self.groups, indent=1) + "\n", "utf-8")

    def cells(self, group: str) -> list[Cell]:
        """The cells of a group; none if it was not measured."""
        return [Cell(**cell) for cell in self.groups.get(group, {}).get("cells", [])]


def seconds(found: Sequence[Cell], program: str, **case: Any) -> float:
    """The median seconds of a program on a case; nan if it has none."""
    for cell in found:
        if cell.program == program and cell.seconds is not None and case.items() <= cell.case.items():
            return cell.seconds
    return float("nan")


def circumstances(command: str) -> dict[str, Any]:
    """When, on what hardware, at which load, with which versions, by which command."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "command": command,
        "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": os.cpu_count(),
        "load": rounded(os.getloadavg()[0], 3),
        "python": platform.python_version(),
        "versions": versions,
    }


def processor() -> str:
    """Its name and its vector extension."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    flags = {flag for line in lines if line.startswith("flags") for flag in line.split()}
    widest = next((name for flag, name in [("avx512f", "AVX-512"), ("avx2", "AVX2")] if flag in flags), "")
    return ", ".join(filter(None, [names[0] if names else platform.machine(), widest]))
