"""Times of programs that take turns in one process, so that whatever else the machine does meets all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

LEAST, MOST = 5, 31  # rounds
REST = 0.05  # seconds before a turn: idle threads of the program before spin for some hundredths, on cores that are needed now
MOMENT = 0.01  # seconds that a turn lasts at least: far above the clock's grain and a call's overhead


@dataclass(frozen=True)
class Program:
    """Work that is ready to run: ``call`` does ``units`` of it and returns what has to be waited for."""

    call: Callable[[], Any]
    units: int = 1


@dataclass(frozen=True)
class Times:
    """Seconds for one unit: the median over rounds with its quartiles; and of the first call, compilation included."""

    median: float
    low: float
    high: float
    rounds: int
    first: float


class LeftOut(Exception):
    """Why a program is not even tried."""


Maker = Callable[[], Program]


def take_turns(
    hosts: Mapping[str, Maker], guests: Mapping[str, Maker] | None = None, *, seconds: float, cap: float = 20.0
) -> dict[str, Times | str]:
    """Times of every program, or why there is none.

    Each is made, called once to compile and once to see how long it takes; then all take turns for about ``seconds``, each
    turn blocked until its result is there. What takes more than ``cap`` seconds a call is left out, with the reason; so is a
    guest whose package is absent or which fails, while a host must run.
    """
    guests = guests or {}
    found: dict[str, Times | str] = {}
    ready: dict[str, tuple[Program, int, float]] = {}
    for name, make in [*hosts.items(), *guests.items()]:
        try:
            program = make()
            first, again = once(program.call), once(program.call)
        except LeftOut as reason:
            found[name] = str(reason)
        except Exception as failure:
            if name in hosts:
                raise
            absent = failure.name if isinstance(failure, ImportError) else None
            found[name] = f"{absent} is not installed here" if absent else f"fails: {type(failure).__name__}: {failure}"[:200]
        else:
            if again > cap:
                found[name] = f"{program.units} steps take {again:.0f} s"
            else:
                ready[name] = program, max(1, round(MOMENT / again)), first
    spent: dict[str, list[float]] = {name: [] for name in ready}
    rounds, began = 0, time.perf_counter()
    while ready and rounds < MOST and (rounds < LEAST or time.perf_counter() - began < seconds):
        for name, (program, times, _) in ready.items():
            time.sleep(REST)
            spent[name].append(turn(program, times))
        rounds += 1
    for name, (_, _, first) in ready.items():
        low, median, high = (float(q) for q in np.quantile(spent[name], [0.25, 0.5, 0.75]))
        found[name] = Times(median, low, high, rounds, first)
    return {name: found[name] for name in [*hosts, *guests]}


def turn(program: Program, times: int) -> float:
    """Seconds for one unit, over so many calls."""
    began = time.perf_counter()
    for _ in range(times):
        jax.block_until_ready(program.call())
    return (time.perf_counter() - began) / times / program.units


def once(call: Callable[[], Any]) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - began
