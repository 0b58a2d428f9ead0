"""How right and how fast: `infer` against SVGD, MK-SVGD as printed, an ensemble, NUTS and exact draws.

    python benchmarks/posteriors.py --posteriors FOLDER [--names a,b] [--keys 3] [--nuts 1] [--out build/posteriors]

FOLDER holds `posteriors.py` with `names()`, `load(name)` and `score(name, particles)`; by default it is the folder
`posteriors` of the one that the environment variable POLYSTEIN_SHARED names. Every row is the mean over keys: rms error of
means and extreme ratios of standard deviations in unconstrained coordinates, the largest error of a correlation, and
seconds, with compilation for `infer` and NUTS. SVGD, its best bandwidth in hindsight, MK-SVGD as printed and the ensemble
run in the coordinates that `infer` ends in, for 1000 Adam steps. Twice the steps: on from `infer`'s particles for as many
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
from collections.abc import Sequence
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
    before = json.loads(record.read_text()) if record.is_file() else {"found": {}, "commands": {}}
    found, commands = before["found"], before["commands"]
    for name in given.names.split(",") if given.names else source.names():
        found[name] = measure(source, name, given.keys, given.nuts)
        print(table({name: found[name]}), flush=True)
        commands[name] = f"python benchmarks/posteriors.py --names {name} --keys {given.keys} --nuts {given.nuts}"
        machine = f"{platform.machine()}, {os.cpu_count()} cores, jax {jax.__version__}, {PARTICLES} particles"
        kept = {"machine": machine, "commands": commands, "header": HEADER, "found": found}
        record.write_text(json.dumps(kept, indent=1) + "\n")
        said = "\n".join(f"- {line}" for line in verdicts(found))
        made = "\n".join(["```", *commands.values(), "```"])
        (given.out / "posteriors.md").write_text(f"{TITLE}\n{table(found)}\n\n{said}\n\n{machine}. Made by\n\n{made}\n")
    print((given.out / "posteriors.md").read_text())


TITLE = """# Real posteriors with reference draws

`infer(log_density, jnp.zeros(d), key=key)` with its defaults against other ways to the same posterior; errors in
unconstrained coordinates, against ten thousand reference draws. rms: of the errors of means, in posterior standard deviations;
sd: least and largest ratio of standard deviations; correlation: the largest error. All are means over keys. NUTS draws until
its rms is at most that of `infer`, or for a minute: where its rms is larger, it did not get there.
"""
HEADER = ["posterior", "method", "rms", "sd min", "sd max", "correlation", "seconds", "steps"]
OURS, TWICE, EXACT, NUTS = "polystein.infer", "the same, twice the steps", "exact draws", "NUTS until as right"
MEDIAN, BEST = "SVGD, median rule", "SVGD, best bandwidth in hindsight"


def table(found: dict[str, dict[str, list[float | None]]]) -> str:
    """A row per posterior and method."""
    rows = [[name, method, *row] for name, methods in found.items() for method, row in methods.items()]
    return markdown(HEADER, [["" if value is None else value for value in row] for row in rows])


def verdicts(found: dict[str, dict[str, list[float | None]]]) -> list[str]:
    """What was hoped for, and where it does not hold."""
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
    all_keys, posts = [jax.random.key(seed) for seed in range(keys)], []
    for key in all_keys:
        jax.clear_caches()
        began = time.perf_counter()
        posts.append(ps.infer(density, like, key=key, particles=PARTICLES))
        seconds = time.perf_counter() - began
        out.setdefault(OURS, []).append(
            [*errors(source, problem, name, posts[-1].particles), seconds, len(posts[-1].trace["phi"])]
        )
    moved = [np.asarray(post.particles, np.float64) for post in posts]
    centres = jnp.asarray(np.stack([x.mean(0) for x in moved]), like.dtype)
    factors = jnp.asarray(np.stack([np.linalg.cholesky(np.cov(x.T)) for x in moved]), like.dtype)
    target = ps.Target.of(density, like)

    def under(method: Any, key: Any, centre: Any, factor: Any, start: Any = PARTICLES, steps: int = 1000) -> Any:
        """The particles of a run of ``method`` in the coordinates of one of ours."""
        adam = optax.adam(optax.cosine_decay_schedule(0.05, steps), b2=0.99, eps=SMALL)
        geometry = Triangular(centre, factor)
        return ps.run(method, target, particles=start, steps=steps, key=key, optim=adam, geometry=geometry).particles

    each_key = (jnp.stack(all_keys), centres, factors)
    for post, *of_one in zip(posts, *each_key, strict=True):
        more = under(default_method(), *of_one, start=post.particles, steps=len(post.trace["phi"]))
        out.setdefault(TWICE, []).append([*errors(source, problem, name, more), None, 2 * len(post.trace["phi"])])
    for label, method in {MEDIAN: ps.SVGD(), "MK-SVGD as printed": ps.MKSVGD.paper(), "ensemble": ps.Ensemble()}.items():
        began = time.perf_counter()
        found = np.asarray(jax.jit(jax.vmap(partial(under, method)))(*each_key))
        seconds = (time.perf_counter() - began) / keys
        out[label] = [[*errors(source, problem, name, x), seconds, 1000] for x in found]
    median = [float(LiuWang()(Triangular(c, f).into(jnp.asarray(x)))) for x, c, f in zip(moved, centres, factors, strict=True)]
    widths = jnp.asarray(np.outer(median, MULTIPLES), like.dtype)
    sweep = jax.vmap(lambda h, *of_one: jax.vmap(lambda h: under(ps.SVGD(ps.RBF(h)), *of_one))(h))
    swept = [[errors(source, problem, name, x) for x in rows] for rows in np.asarray(jax.jit(sweep)(widths, *each_key))]
    out[BEST] = [[*min(rows, key=lambda row: row[0] + off(row)), None, 1000] for rows in swept]
    for seed in range(keys):
        pick = np.random.default_rng(seed).choice(len(problem["ref_u"]), PARTICLES, replace=False)
        out.setdefault(EXACT, []).append([*errors(source, problem, name, problem["ref_u"][pick]), None, None])
    if importlib.util.find_spec("numpyro"):
        for key, ours in list(zip(all_keys, out[OURS], strict=True))[:with_nuts]:
            out.setdefault(NUTS, []).append(nuts(source, problem, name, key, ours[0]))
    mean = lambda column: None if column[0] is None else float(np.mean(column))
    return {method: [mean(column) for column in zip(*rows, strict=True)] for method, rows in out.items()}


def off(row: Sequence[float | None]) -> float:
    """How far the worst ratio of standard deviations is from 1."""
    return max(abs((ratio or 0.0) - 1) for ratio in row[1:3])


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
        rows.append([*errors(source, problem, name, draws), time.perf_counter() - began, len(draws)])
        if rows[-1][4] > LONGEST:
            break  # a longer warm-up takes longer still
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
