"""How right and how fast: `infer` against SVGD, MK-SVGD as printed, an ensemble, NUTS and exact draws.

    python benchmarks/posteriors.py --posteriors FOLDER [--names a,b] [--keys 3] [--out build/posteriors]

FOLDER holds `posteriors.py` with `names()`, `load(name)` and `score(name, particles)`; by default it is the folder
`posteriors` of the one that the environment variable POLYSTEIN_SHARED names. Every row is the mean over keys: rms error of
means and extreme ratios of standard deviations in unconstrained coordinates, the largest error of a correlation, and
seconds with compilation, caches cleared. SVGD, its best bandwidth in hindsight, MK-SVGD as printed and the ensemble run in
the coordinates that `infer` ends in, for 1000 Adam steps. NUTS (NumPyro, if it is installed) runs 4 vectorised chains and
keeps on drawing until its rms is ours.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import polystein as ps
from polystein.geometry import Triangular
from polystein.kernels import LiuWang
from polystein.tables import markdown

PARTICLES = 100
MULTIPLES = [2.0**k for k in range(-4, 9, 2)]


def main() -> None:
    """Measure, print the table, write it and the figures behind it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = os.environ.get("POLYSTEIN_SHARED")
    parser.add_argument("--posteriors", type=Path, default=Path(shared) / "posteriors" if shared else None)
    parser.add_argument("--names", help="comma separated; all by default")
    parser.add_argument("--keys", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("build/posteriors"))
    given = parser.parse_args()
    if given.posteriors is None or not (given.posteriors / "posteriors.py").is_file():
        parser.error(
            f"{given.posteriors} has no posteriors.py; expected a folder of reference posteriors; give --posteriors FOLDER"
        )
    source = _module(given.posteriors / "posteriors.py")
    rows: list[list[Any]] = []
    for name in given.names.split(",") if given.names else source.names():
        for method, found in measure(source, name, given.keys).items():
            rows.append([name, method, *found])
            print(markdown(HEADER, rows[-1:]).splitlines()[-1], flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    machine = (
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, jax {jax.__version__}, {PARTICLES} particles"
    )
    table = f"{markdown(HEADER, rows)}\n\n{machine}, {given.keys} keys. Command: `python {' '.join(sys.argv)}`\n"
    (given.out / "posteriors.md").write_text(table)
    (given.out / "posteriors.json").write_text(json.dumps({"header": HEADER, "rows": rows, "machine": machine}, indent=1))
    print("\n" + table)


HEADER = ["posterior", "method", "rms", "sd min", "sd max", "correlation", "seconds", "steps"]


def measure(source: Any, name: str, keys: int) -> dict[str, list[float]]:
    """Every method on one posterior: the mean over keys of the errors, the seconds and the steps."""
    problem = source.load(name)
    density, like = problem["logdensity"], jnp.zeros(problem["dim"], jnp.float32)
    out: dict[str, list[list[float]]] = {}

    def add(method: str, run: Callable[[], tuple[Any, float]]) -> Any:
        jax.clear_caches()
        began = time.perf_counter()
        particles, steps = run()
        seconds = time.perf_counter() - began
        out.setdefault(method, []).append([*errors(source, problem, name, particles), seconds, steps])
        return particles

    for seed in range(keys):
        key = jax.random.key(seed)
        posts: list[ps.Posterior] = []

        def ours(key: Any = key, posts: list[ps.Posterior] = posts) -> tuple[Any, float]:
            posts.append(ps.infer(density, like, key=key, particles=PARTICLES))
            return posts[-1].particles, len(posts[-1].trace["phi"])

        particles = np.asarray(add("polystein.infer", ours), np.float64)
        gap = np.cov(particles.T).reshape(problem["dim"], problem["dim"])
        geometry = Triangular(jnp.asarray(particles.mean(0), like.dtype), jnp.asarray(np.linalg.cholesky(gap), like.dtype))
        target = ps.Target.of(density, like)

        def under(method: Any, key: Any = key, geometry: Any = geometry, target: Any = target) -> tuple[Any, float]:
            adam = optax.adam(optax.cosine_decay_schedule(0.05, 1000), b2=0.99)
            post = ps.run(method, target, particles=PARTICLES, steps=1000, key=key, optim=adam, geometry=geometry)
            return post.particles, 1000

        add("SVGD, median rule", lambda: under(ps.SVGD()))
        add("MK-SVGD as printed", lambda: under(ps.MKSVGD.paper()))
        add("ensemble", lambda: under(ps.Ensemble()))
        scale = float(LiuWang()(geometry.into(jnp.asarray(particles, like.dtype))))
        best = min(
            (
                [*errors(source, problem, name, under(ps.SVGD(ps.RBF(scale * multiple)))[0]), float("nan"), 1000.0]
                for multiple in MULTIPLES
            ),
            key=lambda row: row[0],
        )
        out.setdefault("SVGD, best bandwidth in hindsight", []).append(best)
        pick = np.random.default_rng(seed).choice(len(problem["ref_u"]), PARTICLES, replace=False)
        out.setdefault("exact draws", []).append(
            [*errors(source, problem, name, problem["ref_u"][pick]), float("nan"), float("nan")]
        )
        if importlib.util.find_spec("numpyro"):
            out.setdefault("NUTS until as right", []).append(nuts(source, problem, name, key, out["polystein.infer"][-1][0]))
    return {method: [float(value) for value in np.mean(rows, 0)] for method, rows in out.items()}


def errors(source: Any, problem: dict[str, Any], name: str, particles: Any) -> list[float]:
    """rms of means, least and largest ratio of standard deviations, largest error of a correlation."""
    particles = np.asarray(particles, np.float64)
    found = source.score(name, particles)
    exact = problem["ref_u_cov"] / np.sqrt(np.outer(np.diag(problem["ref_u_cov"]), np.diag(problem["ref_u_cov"])))
    gap = np.abs(np.corrcoef(particles.T) - exact).max()
    return [found["u_rms_mean_err_in_sd"], found["u_min_sd_ratio"], found["u_max_sd_ratio"], float(gap)]


def nuts(source: Any, problem: dict[str, Any], name: str, key: Any, goal: float) -> list[float]:
    """NumPyro's NUTS, 4 vectorised chains: the quickest of three warm-ups, drawing until its rms is at most ``goal``."""
    from numpyro.infer import MCMC, NUTS

    rows = []
    for warmup in (200, 500, 1000):
        jax.clear_caches()
        began = time.perf_counter()
        kernel = NUTS(potential_fn=lambda u: -problem["logdensity"](u))
        sampler = MCMC(kernel, num_warmup=warmup, num_samples=250, num_chains=4, chain_method="vectorized", progress_bar=False)
        start = 0.1 * jax.random.normal(jax.random.fold_in(key, 1), (4, problem["dim"]), jnp.float64)
        sampler.run(key, init_params=start)
        draws = np.asarray(sampler.get_samples())
        for _ in range(15):
            found = errors(source, problem, name, draws)
            if found[0] <= goal:
                break
            sampler.post_warmup_state = sampler.last_state
            sampler.run(sampler.post_warmup_state.rng_key)
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
