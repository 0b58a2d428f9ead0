"""The same sweeps on an accelerator and on the processor beside it: are the numbers the same, and how long does each take?

    python benchmarks/accelerator.py [--out build/accelerator]

Runs where JAX finds an accelerator (elsewhere it says so, and ends). A case is a step's sweep over all pairs of n particles in
d dimensions: the drift of ten kernels with their discrepancies (``drift_and_sums``), or the drift of one. Seconds are
medians of warm calls, waited for; the error is the largest difference from the processor's result, relative to its largest
entry. ``infer`` and a test of goodness of fit run on both as a user would call them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import polystein as ps
from polystein.methods import Swarm
from polystein.pairs import default_pairs
from polystein.tables import markdown

CASES = [(100, 56), (1000, 64), (4096, 64), (20000, 64), (1000, 512)]
SLOW = 20_000  # points from which the processor takes one call of its own, and no more
HEADER = ["n", "d", "sweep", "accelerator, s", "processor, s", "ratio", "error"]


@eqx.filter_jit
def ten(bank: ps.Bank, points: ps.Points) -> Any:
    """A step of ten kernels: their drift, and the sums their discrepancies are read off."""
    w = jnp.full(len(bank), len(bank) ** -0.5)
    return Swarm(points, default_pairs(points.x.shape[0])).drift_and_sums(bank, w)


@eqx.filter_jit
def one(bank: ps.Bank, points: ps.Points) -> Any:
    """A step of one kernel."""
    return Swarm(points, default_pairs(points.x.shape[0])).drift(bank[len(bank) - 1])


def timed(call: Callable[[], Any], rounds: int) -> tuple[Any, float]:
    """The result, and the median seconds of warm calls."""
    found = jax.block_until_ready(call())
    spent = []
    for _ in range(rounds):
        began = time.perf_counter()
        jax.block_until_ready(call())
        spent.append(time.perf_counter() - began)
    return found, float(np.median(spent))


def apart(a: Any, b: Any) -> float:
    """The largest difference of two trees, relative to the largest entry of each leaf."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return max(float(np.abs(np.asarray(x) - np.asarray(y)).max() / np.abs(np.asarray(y)).max()) for x, y in pairs)


def sweeps(device: Any, host: Any) -> list[list[Any]]:
    """Every case on both."""
    rows = []
    for n, d in CASES:
        generator = np.random.default_rng(0)
        x = generator.standard_normal((n, d), np.float32)
        s = (-x + 0.1 * generator.standard_normal((n, d), np.float32)).astype(np.float32)
        for name, sweep in (("ten kernels, drift and KSDs", ten), ("one kernel, drift", one)):
            found = []
            for place, rounds in ((device, 7), (host, 1 if n >= SLOW else 3)):
                with jax.default_device(place):
                    bank, points = ps.Bank.dyadic(d / 4.0, -4, 5), ps.Points.of(*jax.device_put((x, s), place))
                    found.append(timed(lambda b=bank, p=points, f=sweep: f(b, p), rounds))
            (on_device, fast), (on_host, slow) = found
            rows.append([n, d, name, fast, slow, slow / fast, apart(on_device, on_host)])
            print(rows[-1], flush=True)
    return rows


def calls(place: Any) -> dict[str, Any]:
    """What a user would call, on one device: seconds with compilation, and what came out."""
    scale = jnp.logspace(0, 3, 10)
    with jax.default_device(place):
        began = time.perf_counter()
        post = ps.infer(lambda u: -0.5 * jnp.sum((u / scale) ** 2), jnp.zeros(10), key=jax.random.key(0))
        ratios = np.asarray(post.particles.std(0, ddof=1) / scale)
        seconds = time.perf_counter() - began
        test = ps.gof.max_mksd_test(post.particles / scale, -post.particles / scale, key=jax.random.key(1))
        return {
            "infer, s": seconds,
            "status": post.status.kind,
            "sd ratios": [float(ratios.min()), float(ratios.max())],
            "maxMKSD statistic": float(test.statistic),
        }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/accelerator"))
    given = parser.parse_args()
    device, host = jax.devices()[0], jax.devices("cpu")[0]
    if device.platform == "cpu":
        parser.exit(message="JAX finds no accelerator here, so there is nothing to compare\n")
    rows = sweeps(device, host)
    record = {
        "device": device.device_kind,
        "jax": jax.__version__,
        "header": HEADER,
        "rows": rows,
        "calls": {"accelerator": calls(device), "processor": calls(host)},
    }
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "accelerator.json").write_text(json.dumps(record, indent=1) + "\n")
    print("\n" + markdown(HEADER, rows), json.dumps(record["calls"], indent=1), sep="\n\n")


if __name__ == "__main__":
    main()
