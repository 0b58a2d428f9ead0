"""How long a user waits for the first result, in processes of their own: import, compilation, first step; and again.

The second step of a shape must compile nothing. With ``JAX_COMPILATION_CACHE_DIR`` set, JAX keeps what it compiled, and the
second process finds it there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.speed.record import Cell, rounded

CALLS = ("run", "infer")
WAIT = Path(__file__).with_name("wait.py")


def measure(quick: bool) -> Iterator[Cell]:
    """Fresh processes: without a cache, with an empty one, and with the one that the process before left behind."""
    for call in CALLS[:1] if quick else CALLS:
        with tempfile.TemporaryDirectory() as folder:
            ways = {"no cache": {}, "first with a cache": {"JAX_COMPILATION_CACHE_DIR": folder}}
            ways["again with the cache"] = ways["first with a cache"]
            for name, variables in ways.items():
                times = 3 if (call, name) == ("run", "no cache") and not quick else 1
                found = [_fresh(call, variables) for _ in range(times)]
                total = [one["import"] + one["first"] for one in found]
                low, median, high = (rounded(float(q)) for q in np.quantile(total, [0.25, 0.5, 0.75]))
                facts = {key: rounded(float(np.median([one[key] for one in found]))) for key in found[0]}
                yield Cell({"call": call}, name, median, low, high, times, facts=facts)


def _fresh(call: str, variables: dict[str, str]) -> dict[str, float]:
    own = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"} if variables else {}
    words = [sys.executable, str(WAIT), call]
    done = subprocess.run(words, env=os.environ | own | variables, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])
