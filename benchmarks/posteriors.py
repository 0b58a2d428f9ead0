"""How right and how fast: `infer` against SVGD, MK-SVGD as printed, an ensemble, NUTS and exact draws.

    python benchmarks/posteriors.py --posteriors FOLDER [--names a,b] [--keys 3] [--nuts 1] [--out build/posteriors]

FOLDER holds `posteriors.py` with `names()`, `load(name)` and `score(name, particles)`; by default it is the folder
`posteriors` of the one that the environment variable POLYSTEIN_SHARED names. Every row is the mean over keys: rms error of
means and extreme ratios of standard deviations in unconstrained coordinates, the largest error of a correlation, and
seconds, with compilation for `infer` and NUTS. SVGD, its best bandwidth in hindsight, MK-SVGD as printed and the ensemble
run in the coordinates that `infer` ends in, for 1000 Adam steps. "Twice the steps" goes on from `infer`'s particles for as many
steps again. NUTS (NumPyro, if it is installed) runs 4 vectorised chains with the first keys, each with the quickest of three
warm-ups, and keeps on drawing until its rms is ours. Names given one after another add to the record in the folder.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import polystein as ps
from polystein.geometry import Triangular
from polystein.infer import SMALL, default_method
from polystein.kernels import LiuWang
from polystein.tables import markdown

PARTICLES = 100
LONGEST = 60.0  # seconds after which NUTS draws no more
MULTIPLES = [2.0**k for k in range(-2, 7, 2)]


def main() -> None:
    """Measure, print the table, write it and the figures behind it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = os.environ.get("POLYSTEIN_SHARED")
    parser.add_argument("--posteriors", type=Path, default=Path(shared) / "posteriors" if shared else None)
    parser.add_argument("--names", help="comma separated; all by default")
    parser.add_argument("--keys", type=int, default=3)
    parser.add_argument("--nuts", type=int, default=1, help="with how many of the keys NUTS runs; it takes minutes")
    parser.add_argument("--out", type=Path, default=Path("build/posteriors"))
    given = parser.parse_args()
    if given.posteriors is None or not (given.posteriors / "posteriors.py").is_file():
        parser.error(
            f"{given.posteriors} has no posteriors.py; expected a folder of reference posteriors; give --posteriors FOLDER"
        )
    source = _module(given.posteriors / "posteriors.py")
    given.out.mkdir(parents=True, exist_ok=True)
    record = given.out / "posteriors.json"
    found: dict[str, dict[str, list[float | None]]] = json.loads(record.read_text())["found"] if record.is_file() else {}
    for name in given.names.split(",") if given.names else source.names():
        found[name] = measure(source, name, given.keys, given.nuts)
        print(table({name: found[name]}), flush=True)
        machine = (
            f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, jax {jax.__version__}, "
            f"{PARTICLES} particles, {given.keys} keys, NUTS with {given.nuts}"
        )
        command = f"python benchmarks/posteriors.py --keys {given.keys} --nuts {given.nuts}"
        record.write_text(json.dumps({"command": command, "machine": machine, "header": HEADER, "found": found}, indent=1))
        said = "\n".join(f"- {line}" for line in verdicts(found))
        (given.out / "posteriors.md").write_text(f"{TITLE}\n{table(found)}\n\n{said}\n\n{machine}. Command: `{command}`\n")
    print((given.out / "posteriors.md").read_text())


TITLE = """# Real posteriors with reference draws

`infer(log_density, jnp.zeros(d), key=key)` with its defaults against other ways to the same posterior; errors in
unconstrained coordinates, against ten thousand reference draws. rms: of the errors of means, in posterior standard deviations;
sd: least and largest ratio of standard deviations; correlation: the largest error.
"""
HEADER = ["posterior", "method", "rms", "sd min", "sd max", "correlation", "seconds", "steps"]
OURS, MEDIAN, BEST, NUTS = "polystein.infer", "SVGD, median rule", "SVGD, best bandwidth in hindsight", "NUTS until as right"


def table(found: dict[str, dict[str, list[float | None]]]) -> str:
    """A row per posterior and method."""
    rows = [[name, method, *row] for name, methods in found.items() for method, row in methods.items()]
    return markdown(HEADER, [["" if value is None else value for value in row] for row in rows])


def verdicts(found: dict[str, dict[str, list[float | None]]]) -> list[str]:
    """What was hoped for, and where it does not hold."""
    off = lambda row: max(abs(row[1] - 1), abs(row[2] - 1))
    claims = {
        "rms no larger than that of SVGD by the median rule": (MEDIAN, lambda ours, other: ours[0] <= other[0]),
        "standard deviations no worse than those of SVGD by the median rule": (MEDIAN, lambda a, b: off(a) <= off(b)),
        "rms within 0.01 of the best single bandwidth in hindsight": (BEST, lambda a, b: a[0] <= b[0] + 0.01),
        "standard deviations within 0.02 of the best single bandwidth's": (BEST, lambda a, b: off(a) <= off(b) + 0.02),
        "quicker than NUTS": (NUTS, lambda a, b: a[4] < b[4]),
    }
    said = []
    for claim, (other, holds) in claims.items():
        seen = [name for name, methods in found.items() if other in methods]
        failed = [name for name in seen if not holds(found[name][OURS], found[name][other])]
        said.append(f"{claim}: {len(seen) - len(failed)} of {len(seen)}" + (f", not {', '.join(failed)}" if failed else ""))
    return said


def measure(source: Any, name: str, keys: int, with_nuts: int) -> dict[str, list[float | None]]:
    """Every method on one posterior: the mean over keys of the errors, the seconds and the steps."""
    problem = source.load(name)
    density, like = problem["logdensity"], jnp.zeros(problem["dim"])
    out: dict[str, list[list[float | None]]] = {}

    def add(method: str, run: Callable[[], tuple[Any, float]]) -> Any:
        began = time.perf_counter()
        particles, steps = run()
        seconds = time.perf_counter() - began
        out.setdefault(method, []).append([*errors(source, problem, name, particles), seconds, steps])
        return particles

    for seed in range(keys):
        key = jax.random.key(seed)
        posts: list[ps.Posterior] = []

        def ours(key: Any = key, posts: list[ps.Posterior] = posts) -> tuple[Any, float]:
            jax.clear_caches()
            posts.append(ps.infer(density, like, key=key, particles=PARTICLES))
            return posts[-1].particles, len(posts[-1].trace["phi"])

        particles = np.asarray(add(OURS, ours), np.float64)
        gap = np.cov(particles.T).reshape(problem["dim"], problem["dim"])
        geometry = Triangular(jnp.asarray(particles.mean(0), like.dtype), jnp.asarray(np.linalg.cholesky(gap), like.dtype))

        run = partial(ps.run, target=ps.Target.of(density, like), geometry=geometry, key=key)
        under = lambda method, run=run: (run(method, particles=PARTICLES, steps=1000, optim=_adam(1000)).particles, 1000)
        more = partial(run, default_method(), particles=posts[0].particles)
        steps = len(posts[0].trace["phi"])
        add("twice the steps", lambda more=more, steps=steps: (more(steps=steps, optim=_adam(steps)).particles, steps))
        add(MEDIAN, lambda under=under: under(ps.SVGD()))
        add("MK-SVGD as printed", lambda under=under: under(ps.MKSVGD.paper()))
        add("ensemble", lambda under=under: under(ps.Ensemble()))
        scale = float(LiuWang()(geometry.into(jnp.asarray(particles, like.dtype))))
        swept = [errors(source, problem, name, under(ps.SVGD(ps.RBF(scale * multiple)))[0]) for multiple in MULTIPLES]
        best = min(swept, key=lambda row: row[0] + max(abs(row[1] - 1), abs(row[2] - 1)))
        out.setdefault(BEST, []).append([*best, None, 1000])
        pick = np.random.default_rng(seed).choice(len(problem["ref_u"]), PARTICLES, replace=False)
        out.setdefault("exact draws", []).append([*errors(source, problem, name, problem["ref_u"][pick]), None, None])
        if seed < with_nuts and importlib.util.find_spec("numpyro"):
            out.setdefault(NUTS, []).append(nuts(source, problem, name, key, out[OURS][-1][0]))
    mean = lambda column: None if column[0] is None else float(np.mean(column))
    return {method: [mean(column) for column in zip(*rows, strict=True)] for method, rows in out.items()}


def _adam(steps: int) -> optax.GradientTransformation:
    return optax.adam(optax.cosine_decay_schedule(0.05, steps), b2=0.99, eps=SMALL)


def errors(source: Any, problem: dict[str, Any], name: str, particles: Any) -> list[float]:
    """rms of means, least and largest ratio of standard deviations, largest error of a correlation."""
    particles = np.asarray(particles, np.float64)
    found = source.score(name, particles)
    exact = problem["ref_u_cov"] / np.sqrt(np.outer(np.diag(problem["ref_u_cov"]), np.diag(problem["ref_u_cov"])))
    gap = np.abs(np.corrcoef(particles.T) - exact).max()
    return [found["u_rms_mean_err_in_sd"], found["u_min_sd_ratio"], found["u_max_sd_ratio"], float(gap)]


def nuts(source: Any, problem: dict[str, Any], name: str, key: Any, goal: float | None) -> list[float | None]:
    """NumPyro's NUTS, 4 vectorised chains: the quickest of three warm-ups, drawing until its rms is at most ``goal``."""
    from numpyro.infer import MCMC, NUTS

    goal = 0.0 if goal is None else goal
    rows = []
    for warmup in (200, 500, 1000):
        jax.clear_caches()
        began = time.perf_counter()
        kernel = NUTS(potential_fn=lambda u: -problem["logdensity"](u))
        sampler = MCMC(kernel, num_warmup=warmup, num_samples=250, num_chains=4, chain_method="vectorized", progress_bar=False)
        start = 0.1 * jax.random.normal(jax.random.fold_in(key, 1), (4, problem["dim"]), jnp.float64)
        sampler.run(key, init_params=start)
        draws = np.asarray(sampler.get_samples())
        while time.perf_counter() - began < LONGEST and errors(source, problem, name, draws)[0] > goal:
            state = sampler.post_warmup_state = sampler.last_state
            sampler.run(getattr(state, "rng_key", key))
            draws = np.concatenate([draws, np.asarray(sampler.get_samples())])
        rows.append([*errors(source, problem, name, draws), time.perf_counter() - began, float(len(draws))])
    right = [row for row in rows if row[0] <= goal]
    return min(right or rows, key=lambda row: row[4])


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("posteriors", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python module; expected posteriors.py; give --posteriors FOLDER")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
