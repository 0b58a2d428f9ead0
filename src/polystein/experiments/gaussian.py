"""The paper's two-dimensional Gaussian: particles, weights, mean and covariance over ten runs, for both readings of Sigma."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from polystein._types import Key
from polystein.discrepancy import U, ksd
from polystein.experiments.base import AbstractExperiment, Batch, Progress, Wishes, keys
from polystein.experiments.gaussian_section import gaussian_section
from polystein.experiments.records import Config, Record, Result, configuration
from polystein.kernels import IMQ
from polystein.methods import MKSVGD, SVGD, AbstractMethod
from polystein.models.gaussian import Gaussian, toy
from polystein.report.section import Section
from polystein.run import run
from polystein.target import Target
from polystein.weights import Argmax

READINGS = {"sigma-covariance": "covariance", "sigma-precision": "precision"}


class Contestant(NamedTuple):
    """A method with its optimiser."""

    method: AbstractMethod
    optim: str


PUBLISHED, STEADY, TRUE_ADAGRAD = "RMSProp(0.9), rate 0.05", "Adam, rate 0.1 falling to 0 by a cosine", "AdaGrad, rate 0.1"


def contestants() -> dict[str, Contestant]:
    """What is compared: Algorithm 1 literally, what the paper leaves open in it, one kernel, and the library's own."""
    return {
        "MK-SVGD": Contestant(MKSVGD.paper(), PUBLISHED),
        "MK-SVGD, AdaGrad": Contestant(MKSVGD.paper(), TRUE_ADAGRAD),
        "MK-SVGD, maximiser": Contestant(MKSVGD.paper(rule=Argmax), PUBLISHED),
        "MK-SVGD, U": Contestant(MKSVGD.paper(statistic=U()), PUBLISHED),
        "MK-SVGD, U, maximiser": Contestant(MKSVGD.paper(statistic=U(), rule=Argmax), PUBLISHED),
        "SVGD, median": Contestant(SVGD(), PUBLISHED),
        "ours": Contestant(MKSVGD(), STEADY),
    }


def optimiser(name: str, steps: int) -> optax.GradientTransformation:
    """An optimiser by its words."""
    return {
        PUBLISHED: partial(optax.rmsprop, 0.05, decay=0.9),
        STEADY: partial(optax.adam, optax.cosine_decay_schedule(0.1, steps)),
        TRUE_ADAGRAD: partial(optax.adagrad, 0.1),
    }[name]()


class GaussianToy(AbstractExperiment):
    """500 particles from N(0, I), 200 steps, every method from the same starting points."""

    name = "gaussian"

    def methods(self) -> Sequence[str]:
        """Algorithm 1 and its readings, one kernel, and the library's defaults."""
        return list(contestants())

    def datasets(self) -> Sequence[str]:
        """The two readings of Sigma (erratum 30)."""
        return list(READINGS)

    def batches(self, wishes: Wishes) -> Sequence[Batch]:
        """A batch a method, of all trials on both readings."""
        particles, steps, trials = (100, 100, 3) if wishes.quick else (500, 200, 10)
        readings = [name for name in READINGS if not wishes.datasets or name in wishes.datasets]
        batches = []
        for name, (method, optim) in contestants().items():
            if readings and (not wishes.methods or name in wishes.methods):
                settings = {"method": method, "optimiser": optim, "particles": particles, "steps": steps}
                make = partial(configuration, self.name, name, settings, seed=wishes.seed, quick=wishes.quick)
                configs = [make(data=data, trial=trial) for data in readings for trial in range(wishes.trials or trials)]
                trial = partial(_trial, method, optimiser(optim, steps), particles, steps)
                batches.append(Batch(configs, partial(_compute, trial), chunk=20))
        return batches

    def section(self, records: Sequence[Record], wishes: Wishes, figures: Path | None) -> Section:
        """Verdicts on the mean, on Fig. 1(b) and on what the paper does not report: the covariance."""
        models = {name: toy(sigma_is=reading) for name, reading in READINGS.items()}
        return gaussian_section(records, models, figures)


def _trial(
    method: AbstractMethod,
    optim: optax.GradientTransformation,
    n: int,
    steps: int,
    mean: Float[Array, "d"],
    precision: Float[Array, "d d"],
    key: Key,
) -> dict[str, Any]:
    """One run, from draws of N(0, I), and what is said of its particles."""
    target = Target.of(Gaussian(mean, precision), jnp.zeros_like(mean))
    start, moving = jax.random.split(key)
    x = jax.random.normal(start, (n, mean.shape[0]))
    post = run(method, target, particles=x, steps=steps, key=moving, optim=optim)
    last = post.trace["weights"][-1:] if "weights" in post.trace else jnp.zeros((0, 0))
    return {
        "mean": jnp.mean(post.particles, 0),
        "covariance": jnp.cov(post.particles.T),
        "ksd": ksd(post.particles, target, IMQ()).value,
        "weights": last.ravel(),
        "particles": post.particles,
    }


def _compute(trial: Any, configs: Sequence[Config], progress: Progress) -> list[Result]:
    """Trials side by side; the particles of the first are kept for the figure."""
    models = [toy(sigma_is=READINGS[config["data"]]) for config in configs]
    mean, precision = (jnp.stack([getattr(model, name) for model in models]) for name in ("mean", "precision"))
    found = jax.tree.map(np.asarray, eqx.filter_jit(jax.vmap(trial))(mean, precision, keys(configs)))
    results = []
    for i, config in enumerate(configs):
        result = {name: values[i] for name, values in found.items()}
        result["particles"] = np.round(result["particles"].astype(float), 3) if config["trial"] == 0 else []
        results.append(result)
    return results
