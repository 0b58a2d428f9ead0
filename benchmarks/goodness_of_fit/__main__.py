"""Level, power and time of the tests of goodness of fit, ours beside KSDAgg and the tests of kernel-gof.

    python -m benchmarks.goodness_of_fit power [--settings a,b] [--null 1000] [--repeats 500]
                                                   [--null-ports 1000] [--repeats-ports 500]
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
import os
import platform
import sys
import time
import zlib
from itertools import product
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from benchmarks.goodness_of_fit import originals as programs
from benchmarks.goodness_of_fit import ports, report, scale
from benchmarks.goodness_of_fit.record import Record
from benchmarks.goodness_of_fit.settings import PUBLISHED, VALIDATION, Setting
from polystein import Points
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
from polystein.gof.inputs import MEDIAN, many_kernels, one_kernel, placed, standardised
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
    found["ksd_test"] = forms.p_values[MEDIAN]
    linear = _estimate(placed(Points.of(x, s), None, default=one_kernel)[1], points)
    found["linear_time_test"] = jax.scipy.stats.norm.sf(linear.value / linear.standard_error)[0]
    learn, whole = round(0.3 * n), standardised(Points.of(x, s))  # the draws are in no order, so that any 30% will do
    part = lambda at: jax.tree.map(lambda a: a[at], whole)
    found["fssd_test"] = _fssd(part(slice(learn)), part(slice(learn, n)), None, key, 5, DRAWS)[2]
    return found


@jax.jit
def ours(x: Float[Array, "r n d"], s: Float[Array, "r n d"], keys: Array) -> dict[str, Array]:
    """How many samples each of our tests rejects."""
    one = lambda sample: {name: p <= LEVEL for name, p in p_values(*sample).items()}
    return jax.tree.map(jnp.sum, lax.map(one, (x, s, keys)))


@jax.jit
def ported(x: Float[Array, "r n d"], s: Float[Array, "r n d"], keys: Array) -> dict[str, Array]:
    """How many samples each of the ports rejects."""
    one = lambda sample: ports.rejections(sample[0], sample[1], jax.random.fold_in(sample[2], 1))
    return jax.tree.map(jnp.sum, lax.map(one, (x, s, keys)))


def power(settings: dict[str, Setting], record: Record, wanted: dict[str, tuple[int, int]]) -> None:
    """Rejections of every test at every size of the difference, fifty samples at a time, ours and the ports' of the same."""
    for (name, setting), (group, run) in product(settings.items(), {"ours": ours, "ports": ported}.items()):
        for size in setting.sizes:
            entry = record.entry("power", f"{name} {size:g}", {}).setdefault(group, {"samples": 0, "rejected": {}})
            while entry["samples"] < wanted[group][size not in setting.right]:
                rng = np.random.default_rng([zlib.crc32(f"{name} {size:g}".encode()), entry["samples"]])
                x, s = setting.draws(rng, size, 50)
                began = time.perf_counter()
                found = run(x, s, jax.random.split(jax.random.key(int(rng.integers(2**31))), 50))
                for test, number in found.items():
                    entry["rejected"][test] = entry["rejected"].get(test, 0) + int(number)
                entry["samples"] += 50
                record.save()
                taken = time.perf_counter() - began
                print(f"{name} {size:g}, {group}: {entry['samples']} samples, the last 50 in {taken:.1f} s", flush=True)


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


def main() -> None:
    """Measure what is asked for; report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["power", "seconds", "agreement", "scale", "report"])
    parser.add_argument("--settings", help="comma separated; all by default")
    parser.add_argument("--validation", action="store_true")
    parser.add_argument("--null", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=500)
    parser.add_argument("--null-ports", type=int, default=1000)
    parser.add_argument("--repeats-ports", type=int, default=500)
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
        power(settings, record, {"ours": (given.null, given.repeats), "ports": (given.null_ports, given.repeats_ports)})
    elif given.part == "seconds":
        seconds(settings, record, given.originals)
    elif given.part == "agreement":
        if given.originals is None:
            parser.error("no --originals given; expected a folder with clones of ksdagg and kernel-gof; clone them there")
        agreement(settings, record, given.originals, 10)
    elif given.part == "scale":
        scale.measure(record)
    report.write(settings, record.content, given.out)


if __name__ == "__main__":
    main()
