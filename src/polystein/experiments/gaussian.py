"""The paper's two-dimensional Gaussian: particles, weights, moments and discrepancies, for both readings of Sigma."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from polystein.discrepancy import ksd
from polystein.kernels import IMQ, DyadicLadder
from polystein.methods import MKSVGD, SVGD, AbstractMethod
from polystein.models.gaussian import toy
from polystein.posterior import Posterior
from polystein.report.figures import particles_over_contours
from polystein.run import run
from polystein.tables import markdown
from polystein.target import Target

METHODS: dict[str, Callable[[], AbstractMethod]] = {
    "MK-SVGD": MKSVGD,
    "MK-SVGD as printed": MKSVGD.paper,
    "SVGD, median rule": SVGD,
}


def reproduce(out: Path, *, particles: int = 500, steps: int = 1000, seed: int = 0) -> str:
    """Run every method on both readings of Sigma (erratum 30), write a figure each, and return the tables."""
    out.mkdir(parents=True, exist_ok=True)
    text = []
    for reading in ("precision", "covariance"):
        model = toy(sigma_is=reading)
        target = Target.of(model, jnp.zeros(2))
        key = jax.random.key(seed)
        posts = {name: run(method(), target, particles=particles, steps=steps, key=key) for name, method in METHODS.items()}
        ladder = DyadicLadder()
        bank = ladder.at(posts["MK-SVGD"].particles)
        weights = posts["MK-SVGD"].trace["weights"][-1]
        labels = [f"2^{k}" for k in range(ladder.low, ladder.high + 1)]
        figure = out / f"gaussian-{reading}.png"
        particles_over_contours(figure, model, {name: post.particles for name, post in posts.items()}, weights, labels)
        per_kernel = ksd(posts["MK-SVGD"].particles, target, bank)
        text += [
            f"## Sigma as {reading}: {particles} particles, {steps} steps",
            markdown(
                ["", "mean", "sd", "correlation", "KSD^2 (IMQ)", "s.e."],
                [_row("exact", model.mean, model.covariance), *(_of(name, post, target) for name, post in posts.items())],
            ),
            markdown(
                ["bandwidth / median rule's", "weight", "KSD^2 (U)", "s.e."],
                [
                    [label, float(w), float(value), float(error)]
                    for label, w, value, error in zip(labels, weights, *per_kernel, strict=True)
                ],
            ),
            f"Figure: {figure}",
        ]
    report = "\n\n".join(text)
    (out / "gaussian.md").write_text(report + "\n")
    return report


def _of(name: str, post: Posterior, target: Target) -> list[object]:
    found = ksd(post.particles, target, IMQ())
    row = _row(name, jnp.mean(post.particles, 0), jnp.cov(post.particles.T))
    return [*row[:-2], float(found.value), float(found.standard_error)]


def _row(name: str, mean: jax.Array, covariance: jax.Array) -> list[object]:
    sd = np.sqrt(np.diag(np.asarray(covariance)))
    pair = lambda a: f"({a[0]:.4f}, {a[1]:.4f})"
    return [name, pair(mean), pair(sd), float(covariance[0, 1] / (sd[0] * sd[1])), 0.0, 0.0]
