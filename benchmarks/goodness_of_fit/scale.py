"""Time and peak memory of `ps.ksd` for many draws in 50 dimensions, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import jax
import numpy as np

from benchmarks.goodness_of_fit.record import Record
from polystein import IMQ, ksd
from polystein.discrepancy import Incomplete, LinearTime, U

SIZES = [*(("U", n) for n in (10_000, 20_000, 40_000, 100_000)), ("LinearTime", 1_000_000), ("Incomplete", 1_000_000)]


def measure(record: Record) -> None:
    """Every statistic and size; the exponent by least squares in logarithms, the constant of n^2 by least squares."""
    found = record.content.setdefault("scale", {})
    for statistic, n in SIZES:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as alone:
            found[f"{statistic}, {n}"] = alone.submit(of, statistic, n).result()
        record.save()
        print(f"{statistic}, {n}: {found[f'{statistic}, {n}']}", flush=True)
    n, taken = np.array([(n, found[f"U, {n}"]["seconds"]) for statistic, n in SIZES if statistic == "U"]).T
    slope, _ = np.polyfit(np.log(n), np.log(taken), 1)
    found["fit"] = f"U: seconds grow as n^{slope:.2f}; {1e9 * np.sum(taken * n**2) / np.sum(n**4):.2f} ns a pair in all."
    record.save()


def of(statistic: str, n: int) -> dict[str, Any]:
    """Seconds of a compiled call (of the first at 1e5 draws, where compiling is nothing), and this process's peak memory."""
    x = np.random.default_rng(0).standard_normal((n, 50), np.float32)
    chosen = {"U": U(), "LinearTime": LinearTime(), "Incomplete": Incomplete(jax.random.key(0), size=1_000_000)}[statistic]
    peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    before, taken = peak(), 0.0
    for _ in range(1 if n == 100_000 else 2):
        began = time.perf_counter()
        jax.block_until_ready(ksd(x, -x, IMQ(), statistic=chosen).value)
        taken = time.perf_counter() - began
    count, per = (n**2, "pair") if statistic == "U" else (n, "row")
    return {"seconds": taken, "ns": 1e9 * taken / count, "per": per, "peak": peak(), "before": before}
