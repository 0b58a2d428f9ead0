"""Logistic regression on Covertype: accuracy and log-likelihood as particles move, ten splits, one kernel against many."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from polystein.data.catalogue import CATALOGUE
from polystein.discrepancy import V
from polystein.experiments.base import AbstractExperiment, Batch, Progress, Wishes, keys
from polystein.experiments.covtype_cost import costs
from polystein.experiments.covtype_run import curves, split, table
from polystein.experiments.covtype_section import covtype_section
from polystein.experiments.records import Config, Record, Result, configuration
from polystein.kernels import RBF, Bank
from polystein.methods import MKSVGD, SVGD, AbstractMethod, Ensemble
from polystein.report.section import Section
from polystein.weights import Ascent

DATA, COST = "covtype", "cost of a step"
PUBLISHED, FALLING = "RMSProp(0.9), rate 0.05", "RMSProp(0.9), rate 0.05 falling to 0 by a cosine"
CURVE = 20_000  # test rows on which curves are drawn; all of them at the end


class Contestant(NamedTuple):
    """A method and the rule of its steps."""

    method: AbstractMethod
    optim: str = PUBLISHED


@lru_cache
def optimiser(name: str, steps: int) -> optax.GradientTransformation:
    """An optimiser by its words: one object, so that methods of one structure share a program."""
    rate = {PUBLISHED: 0.05, FALLING: optax.cosine_decay_schedule(0.05, steps)}[name]
    return optax.rmsprop(rate, decay=0.9)


def literal(low: int) -> MKSVGD:
    """Algorithm 1 as this experiment words it: ten kernels, w moved by the optimiser that moves the particles."""
    rule = Ascent(optimiser(PUBLISHED, 1), statistic=V())
    return MKSVGD(Bank.dyadic(1.0, low, low + 9), rule, 0.0, False)


def contestants() -> dict[str, Contestant]:
    """The paper's six curves, its method with weights in closed form and on other banks, ours, controls, falling rates."""
    return {
        "MK-SVGD": Contestant(literal(2)),
        "MK-SVGD, closed form": Contestant(MKSVGD.paper(low=2, high=11)),
        **{f"SVGD, h = 2^{k}": Contestant(SVGD(RBF(2.0**k))) for k in (0, 4, 8, 12)},
        "SVGD, median": Contestant(SVGD()),
        "ours": Contestant(MKSVGD()),
        "ensemble": Contestant(Ensemble()),
        **{f"MK-SVGD, bank 2^{k}..2^{k + 9}": Contestant(literal(k)) for k in (-10, -4, 8)},
        "SVGD, median, falling rate": Contestant(SVGD(), FALLING),
        "ours, falling rate": Contestant(MKSVGD(), FALLING),
        "ensemble, falling rate": Contestant(Ensemble(), FALLING),
    }


class Covtype(AbstractExperiment):
    """100 particles from the prior, minibatches of 100 rows, 80 % of 581 012 rows for training."""

    name = "covtype"

    def methods(self) -> Sequence[str]:
        """All contestants, and the cost of a step by kernels and particles."""
        return [*contestants(), COST]

    def datasets(self) -> Sequence[str]:
        """Covertype."""
        return [DATA]

    def prepare(self, wishes: Wishes) -> None:
        """Read the table."""
        table(wishes.data)

    def batches(self, wishes: Wishes) -> Sequence[Batch]:
        """A batch a method, of all trials; the quick version leaves out what is not a curve of Fig. 2 or its control."""
        if wishes.datasets and DATA not in wishes.datasets:
            return []
        particles, steps, count = (50, 200, 3) if wishes.quick else (100, 3000, 10)
        make = partial(
            configuration, self.name, data=DATA, checksum=CATALOGUE[DATA].checksum, seed=wishes.seed, quick=wishes.quick
        )
        batches = []
        for name, (method, optim) in contestants().items():
            extra = optim == FALLING or name.startswith("MK-SVGD,")
            if name in wishes.methods or not (wishes.methods or (wishes.quick and extra)):
                settings = {"method": method, "optimiser": optim, "particles": particles, "steps": steps, "batch": 100}
                configs = [make(name, settings, trial=trial) for trial in range(wishes.trials or count)]
                batches.append(Batch(configs, partial(_compute, method, optimiser(optim, steps), wishes.data)))
        if COST in wishes.methods or not (wishes.methods or wishes.quick):
            batches.append(Batch([make(COST, {"repeats": 3 if wishes.quick else 15}, trial=0)], _costs))
        return batches

    def section(self, records: Sequence[Record], wishes: Wishes, figures: Path | None) -> Section:
        """The two panels of Fig. 2, and a verdict on each of the paper's claims."""
        return covtype_section(records, figures)


def marks_of(steps: int) -> list[int]:
    """The steps after which test rows are looked at: a few early ones, then twenty at equal distances.

    >>> marks_of(3000)[:6], len(marks_of(3000))
    ([10, 30, 75, 150, 300, 450], 23)
    """
    apart = max(steps // 20, 1)
    return sorted({mark for mark in (10, 30, apart // 2) if 0 < mark < apart} | set(range(apart, steps, apart)) | {steps})


def _compute(
    method: AbstractMethod,
    optim: optax.GradientTransformation,
    folder: Path | None,
    configs: Sequence[Config],
    progress: Progress,
) -> list[Result]:
    """Trials side by side."""
    settings = configs[0]["settings"]
    marks = marks_of(settings["steps"])
    each = [split(folder, config["seed"], config["trial"]) for config in configs]
    trials = jax.tree.map(lambda *parts: jnp.stack(parts), *each)
    seen = min(CURVE, trials.test.shape[1])
    found = []
    for pair in curves(
        method, optim, table(folder), trials, keys(configs), particles=settings["particles"], marks=marks, seen=seen
    ):
        found.append(pair)
        progress(min(len(found) / len(marks), 1.0))
    *path, (accuracy, likelihood), (weights, halted) = found
    shown = {name: np.stack([pair[k] for pair in path], 1) for k, name in enumerate(("accuracy", "log-likelihood"))}
    return [
        {
            "at": marks,
            "accuracy": float(accuracy[i]),
            "log-likelihood": float(likelihood[i]),
            "curves": {name: values[i] for name, values in shown.items()},
            "weights": weights[i],
            "halted": int(halted[i]),
        }
        for i in range(len(configs))
    ]


def _costs(configs: Sequence[Config], progress: Progress) -> list[Result]:
    """The only result that is of a machine."""
    return [costs(config["settings"]["repeats"], progress) for config in configs]
