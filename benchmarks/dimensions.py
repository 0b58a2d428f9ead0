"""Collapse of variance in many dimensions: ratios of standard deviations at n = 50, 100, 500, every method in one whitening.

    python benchmarks/dimensions.py [--dims 100,300] [--particles 50,100,500] [--out build/dimensions]

Targets are correlated Gaussians whose covariance has a condition number of 1e4 and eigenvalues evenly spaced in logarithm. The
coordinates are those of the Gaussian from which `infer` starts; every method makes the same 500 Adam steps in them from the
same draws. Ratios are along the eigenvectors of the covariance, where no direction hides another: least, median, largest,
and the root of the mean squared ratio, which is 1 where the spread as a whole is right.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import polystein as ps
from polystein.flow import evaluate
from polystein.gaussian_start import fit_gaussian, normal_points
from polystein.infer import SMALL, default_method
from polystein.methods import MatrixSVGD
from polystein.tables import markdown

STEPS = 500
HEADER = ["dimensions", "particles", "method", "rms ratio", "least", "median", "largest"]
METHODS: dict[str, Any] = {
    "infer's": default_method(),
    "SVGD, median rule": ps.SVGD(),
    "Matrix-SVGD, Fisher": MatrixSVGD(),
    "ensemble": ps.Ensemble(),
}


def main() -> None:
    """Measure, print the table, write it and its record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dims", default="100,300")
    parser.add_argument("--particles", default="50,100,500")
    parser.add_argument("--out", type=Path, default=Path("build/dimensions"))
    given = parser.parse_args()
    rows = [row for d in given.dims.split(",") for row in measure(int(d), [int(n) for n in given.particles.split(",")])]
    machine = f"{platform.machine()}, {os.cpu_count()} cores, jax {jax.__version__}"
    command = f"python benchmarks/dimensions.py --dims {given.dims} --particles {given.particles}"
    given.out.mkdir(parents=True, exist_ok=True)
    record = {"command": command, "machine": machine, "header": HEADER, "rows": rows}
    (given.out / "dimensions.json").write_text(json.dumps(record, indent=1) + "\n")
    said = " ".join(str(__doc__).split("\n\n")[2].split())
    text = f"# Many dimensions\n\n{said}\n\n{markdown(HEADER, rows)}\n\n{machine}. Made by `{command}`.\n"
    (given.out / "dimensions.md").write_text(text)
    print(text)


def measure(d: int, sizes: list[int]) -> list[list[Any]]:
    """A row per number of particles and method."""
    generator = np.random.default_rng(d)
    axes = np.linalg.qr(generator.normal(size=(d, d)))[0]
    deviations = np.logspace(-1, 1, d)
    precision = jnp.asarray((axes / deviations**2) @ axes.T, jnp.float32)
    target = ps.Target.of(lambda u: -0.5 * u @ precision @ u, jnp.zeros(d, jnp.float32))

    def look(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, scores = evaluate(target, jnp.asarray(u, jnp.float32))
        return np.asarray(values, np.float64), np.asarray(scores, np.float64)

    fit = fit_gaussian(look, np.zeros(d), normal_points(generator, 2 * d + 4, d))
    geometry = fit.geometry(np.dtype(np.float32))
    optim = optax.adam(optax.cosine_decay_schedule(0.05, STEPS), b2=0.99, eps=SMALL)
    rows = []
    for n in sizes:
        start = geometry.out(jnp.asarray(generator.normal(size=(n, d)), jnp.float32))
        for name, method in METHODS.items():
            post = ps.run(method, target, particles=start, steps=STEPS, key=jax.random.key(0), optim=optim, geometry=geometry)
            ratio = (np.asarray(post.particles, np.float64) @ axes).std(0, ddof=1) / deviations
            found = [np.sqrt(np.mean(ratio**2)), ratio.min(), np.median(ratio), ratio.max()]
            rows.append([d, n, name, *(float(a) for a in found)])
            print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    main()
