"""Many particles in a process of its own: the time of a step against n^2 extrapolated, and the most memory it ever held.

python -m benchmarks.speed.cases.large 100000     prints the seconds of a step and the peak of this process, as JSON
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.speed.record import Cell, rounded

SMALL, D, M = 4096, 64, 10
PROGRAM = "10 kernels, learned weights"


def measure(quick: bool) -> Iterator[Cell]:
    """n = 4096 and 100 000, d = 64, ten kernels."""
    for n in (256, 512) if quick else (SMALL, 100_000):
        words = [sys.executable, "-m", "benchmarks.speed.cases.large", str(n)]
        found = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
        case = {"n": n, "d": D, "m": M}
        yield Cell(case, PROGRAM, *[rounded(found["seconds"])] * 3, found["steps"], facts={"peak bytes": found["peak"]})


def step(n: int) -> dict[str, float]:
    """Seconds of the step, compiled beforehand, and the peak of the resident memory in bytes."""
    import resource

    import jax

    from benchmarks.speed.ours import many, median_rule, stepping
    from polystein.pairs import default_pairs

    run, steps = stepping(many(M, median_rule(n, D)), n, D, default_pairs(n)), 5 if n <= SMALL else 1
    jax.block_until_ready(run(0))  # compiles
    began = time.perf_counter()
    jax.block_until_ready(run(steps))
    seconds = (time.perf_counter() - began) / steps
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"seconds": seconds, "steps": steps, "peak": peak}


if __name__ == "__main__":
    print(json.dumps(step(int(sys.argv[1]))))
