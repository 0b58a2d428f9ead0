"""Level, power and time of the tests of goodness of fit, ours beside KSDAgg and the tests of kernel-gof.

    python -m benchmarks.goodness_of_fit power [--settings a,b] [--null 1000] [--repeats 500] [--out build/goodness_of_fit]
    python -m benchmarks.goodness_of_fit seconds                  one test at a time, compiled
    python -m benchmarks.goodness_of_fit agreement --originals F  the ports beside clones of ksdagg and kernel-gof in F
    python -m benchmarks.goodness_of_fit scale                    ps.ksd for up to 1e5 x 50 and 1e6 x 50, time and peak memory
    python -m benchmarks.goodness_of_fit report                   table and figure of what was measured so far

Every test of a setting sees the same samples. What is measured is written to OUT/record.json setting by setting, and a second
call goes on where the first was interrupted. ``--validation`` takes the settings that defaults were chosen on.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import resource
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from benchmarks.goodness_of_fit import originals as programs
from benchmarks.goodness_of_fit import ports, report
from benchmarks.goodness_of_fit.settings import PUBLISHED, VALIDATION, Setting
from polystein import IMQ, Points, ksd
from polystein.discrepancy import Incomplete, LinearTime, U
from polystein.gof import (
    LeastP,
    Sphere,
    StudentisedMax,
    StudentisedSphere,
    WildBootstrap,
    fssd_test,
    ksd_agg_test,
    ksd_test,
    linear_time_test,
    max_mksd_test,
)
from polystein.gof.forms import quadratic_forms
from polystein.gof.fssd import _fssd
from polystein.gof.inputs import many_kernels, one_kernel, placed, standardised
from polystein.gof.linear import _estimate

LEVEL, DRAWS = 0.05, 999
AGGREGATES = {
    "max_mksd_test": StudentisedMax(),
    "max_mksd_test, StudentisedSphere": StudentisedSphere(),
    "max_mksd_test, Sphere": Sphere(),
    "ksd_agg_test": LeastP(),
}
PUBLIC = {
    "max_mksd_test": lambda x, s, key: max_mksd_test(x, s, key=key),
    "max_mksd_test, StudentisedSphere": lambda x, s, key: max_mksd_test(x, s, key=key, aggregate=StudentisedSphere()),
    "max_mksd_test, Sphere": lambda x, s, key: max_mksd_test(x, s, key=key, aggregate=Sphere()),
    "ksd_agg_test": lambda x, s, key: ksd_agg_test(x, s, key=key),
    "ksd_test": lambda x, s, key: ksd_test(x, s, key=key),
    "linear_time_test": lambda x, s, key: linear_time_test(x, s),
    "fssd_test": lambda x, s, key: fssd_test(x, s, key=key),
}


def p_values(x: Float[Array, "n d"], s: Float[Array, "n d"], key: Array) -> dict[str, Array]:
    """Those of our tests, the public functions' own where they use no randomness but the key; one sweep for the first five."""
    n = x.shape[0]
    points, bank = placed(Points.of(x, s), None, default=many_kernels)
    forms = quadratic_forms(bank, points, WildBootstrap().signs(key, points, DRAWS))
    found = {}
    for name, aggregate in AGGREGATES.items():
        t = aggregate(forms.u, forms.deviation)
        found[name] = jnp.mean(t >= t[0])
    found["ksd_test"] = forms.p_values[4]  # its kernel is the fifth of the default bank
    linear = _estimate(placed(Points.of(x, s), None, default=one_kernel)[1], points)
    found["linear_time_test"] = jax.scipy.stats.norm.sf(linear.value / linear.standard_error)[0]
    learn, whole = round(0.3 * n), standardised(Points.of(x, s))  # the draws are in no order, so that any 30% will do
    part = lambda at: jax.tree.map(lambda a: a[at], whole)
    found["fssd_test"] = _fssd(part(slice(learn)), part(slice(learn, n)), None, key, 5, DRAWS)[2]
    return found


@jax.jit
def rejected(x: Float[Array, "r n d"], s: Float[Array, "r n d"], keys: Array) -> dict[str, Array]:
    """How many samples each test rejects."""

    def one(sample: tuple[Array, Array, Array]) -> dict[str, Array]:
        x, s, key = sample
        ours = {name: p <= LEVEL for name, p in p_values(x, s, key).items()}
        return ours | ports.rejections(x, s, jax.random.fold_in(key, 1))

    together = 1 if jax.default_backend() == "cpu" else 25
    return jax.tree.map(jnp.sum, lax.map(one, (x, s, keys), batch_size=together))


def power(settings: dict[str, Setting], record: Record, null: int, repeats: int) -> None:
    """Rejections of every test at every size of the difference, fifty samples at a time."""
    rounds = [
        (name, setting, size, share) for share in (0.2, 1.0) for name, setting in settings.items() for size in setting.sizes
    ]
    for name, setting, size, share in rounds:
        wanted = round(share * (null if size in setting.right else repeats))
        entry = record.entry("power", f"{name} {size:g}", {"samples": 0, "rejected": {}})
        while entry["samples"] < wanted:
            count = min(50, wanted - entry["samples"])
            seed = [zlib.crc32(f"{name} {size:g}".encode()), entry["samples"]]
            rng = np.random.default_rng(seed)
            x, s = setting.draws(rng, size, count)
            began = time.perf_counter()
            found = rejected(x, s, jax.random.split(jax.random.key(int(rng.integers(2**31))), count))
            for test, number in found.items():
                entry["rejected"][test] = entry["rejected"].get(test, 0) + int(number)
            entry["samples"] += count
            record.save()
            print(f"{name} {size:g}: {entry['samples']} samples, {time.perf_counter() - began:.1f} s", flush=True)


def seconds(settings: dict[str, Setting], record: Record, originals: Path | None) -> None:
    """The least time of some calls of every test, compiled, on a sample of its own."""
    for name in ("gamma", "laplace", "rbm"):
        setting = settings[name]
        size = setting.sizes[-1]
        x, s = setting.draws(np.random.default_rng(0), size, 3)
        n, d = x.shape[1:]
        entry = record.entry("seconds", f"n = {n}, d = {d}", {})
        calls: dict[str, Any] = dict(PUBLIC)
        for test in ports.TESTS:
            compiled = jax.jit(lambda x, s, key, test=test: ports.rejections(x, s, key, (test,)))
            calls[f"port: {test}"] = lambda x, s, key, compiled=compiled: jax.block_until_ready(compiled(x, s, key))
        if originals is not None:
            calls |= programs.calls(originals)
        for test, call in calls.items():
            taken = []
            for i in range(3):
                given = np.asarray(x[i]), np.asarray(s[i]), jax.random.key(i)
                began = time.perf_counter()
                call(*given)
                taken.append(time.perf_counter() - began)
            entry[test] = min(taken[1:])
            record.save()
            print(f"n = {n}, d = {d}: {test}: {entry[test]:.3f} s", flush=True)


def agreement(settings: dict[str, Setting], record: Record, originals: Path, samples: int) -> None:
    """The ports beside the originals on the same samples, and the batched figures beside our public functions."""
    for name in ("gamma", "rbm"):
        size = settings[name].sizes[1]
        x, s = settings[name].draws(np.random.default_rng(1), size, samples)
        entry = record.entry("agreement", f"{name} {size:g}", {})
        entry |= programs.compared(originals, np.asarray(x), np.asarray(s))
        keys = jax.random.split(jax.random.key(1), 3)
        inside = [jax.jit(p_values)(x[i], s[i], keys[i]) for i in range(3)]
        entry["ours: p-values of the public functions less those counted here, largest"] = {
            test: max(abs(float(call(x[i], s[i], keys[i]).p_value) - float(inside[i][test])) for i in range(3))
            for test, call in PUBLIC.items()
            if test != "fssd_test"  # which shuffles the draws
        }
        record.save()
        print(json.dumps({name: entry}, indent=1), flush=True)


def scale(record: Record) -> None:
    """`ps.ksd` of n x 50 standard normal draws, each in a process of its own; the constant of n^2 by least squares in logs."""
    fresh = multiprocessing.get_context("spawn")
    found = record.content.setdefault("scale", {})
    for statistic, n in SCALES:
        with fresh.Pool(1) as alone:
            found[f"{statistic}, {n}"] = alone.apply(ksd_of, (statistic, n))
        record.save()
        print(f"{statistic}, {n}: {found[f'{statistic}, {n}']}", flush=True)
    n, taken = np.array([(n, found[f"U, {n}"]["seconds"]) for statistic, n in SCALES if statistic == "U"]).T
    slope, _ = np.polyfit(np.log(n), np.log(taken), 1)
    found["fit"] = f"U: seconds grow as n^{slope:.2f}; {1e9 * np.sum(taken * n**2) / np.sum(n**4):.2f} ns n^2 in all."
    record.save()


SCALES = [*(("U", n) for n in (10_000, 20_000, 40_000, 100_000)), ("LinearTime", 1_000_000), ("Incomplete", 1_000_000)]


def ksd_of(statistic: str, n: int) -> dict[str, Any]:
    """Seconds of the second call, and the peak of this process's memory."""
    x = np.random.default_rng(0).standard_normal((n, 50), np.float32)
    chosen = {"U": U(), "LinearTime": LinearTime(), "Incomplete": Incomplete(jax.random.key(0), size=1_000_000)}[statistic]
    peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    before, taken = peak(), 0.0
    for _ in range(2 if n != 100_000 else 1):  # compiling takes a second
        began = time.perf_counter()
        jax.block_until_ready(ksd(x, -x, IMQ(), statistic=chosen).value)
        taken = time.perf_counter() - began
    count, per = (n**2, "pair") if statistic == "U" else (n, "row")
    return {"seconds": taken, "ns": 1e9 * taken / count, "per": per, "peak": peak(), "before": before}


class Record:
    """What was measured, on disk after every step."""

    def __init__(self, path: Path):
        self.path = path
        self.content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def entry(self, kind: str, key: str, empty: Any) -> Any:
        """What is known of it; ``empty`` where that is nothing."""
        return self.content.setdefault(kind, {}).setdefault(key, empty)

    def save(self) -> None:
        """Whole or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(self.content, indent=1))
        fresh.replace(self.path)


def main() -> None:
    """Measure what is asked for; report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["power", "seconds", "agreement", "scale", "report"])
    parser.add_argument("--settings", help="comma separated; all by default")
    parser.add_argument("--validation", action="store_true")
    parser.add_argument("--null", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=500)
    parser.add_argument("--originals", type=Path)
    parser.add_argument("--out", type=Path, default=Path("build/goodness_of_fit"))
    given = parser.parse_args()
    jax.config.update("jax_default_matmul_precision", "highest")
    known = VALIDATION if given.validation else PUBLISHED
    settings = {name: known[name] for name in given.settings.split(",")} if given.settings else known
    record = Record(given.out / ("validation.json" if given.validation else "record.json"))
    device = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"
    device = device if jax.default_backend() == "cpu" else jax.devices()[0].device_kind
    if given.part != "report":
        record.entry(
            "machine",
            given.part,
            f"{device}, jax {jax.__version__}; `python -m benchmarks.goodness_of_fit {' '.join(sys.argv[1:])}`",
        )
    if given.part == "power":
        power(settings, record, given.null, given.repeats)
    elif given.part == "seconds":
        seconds(settings, record, given.originals)
    elif given.part == "agreement":
        if given.originals is None:
            parser.error("no --originals given; expected a folder with clones of ksdagg and kernel-gof; clone them there")
        agreement(settings, record, given.originals, 20)
    elif given.part == "scale":
        scale(record)
    report.write(settings, record.content, given.out)


if __name__ == "__main__":
    main()
