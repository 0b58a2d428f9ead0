"""Regression on the UCI sets: every recipe on the same 20 standard splits, beside the paper's Tables 1 and 2."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from polystein.data import load
from polystein.data.catalogue import CATALOGUE
from polystein.data.splits import standard_splits
from polystein.experiments.base import AbstractExperiment, Batch, Progress, Wishes, keys
from polystein.experiments.records import Config, Record, Result, configuration
from polystein.experiments.regressors import AbstractRegressor, log_likelihood, recipes, rmse
from polystein.experiments.uci_section import uci_section
from polystein.report.section import Section

DATA = ("boston", "combined", "concrete", "wine-red", "wine-white", "yacht")
QUICK_DATA, QUICK_TRIALS = ("yacht",), 2


class Rows(NamedTuple):
    """Training and test rows of some splits, in the units of the data."""

    x: Float[Array, "S N p"]
    y: Float[Array, "S N"]
    test_x: Float[Array, "S T p"]
    test_y: Float[Array, "S T"]


class UCI(AbstractExperiment):
    """Five sets of the paper, red and white wine separately; a trial is a split."""

    name = "uci"

    def methods(self) -> Sequence[str]:
        """Every recipe in the folder ``regressors``."""
        return list(recipes())

    def datasets(self) -> Sequence[str]:
        """Boston, Combined, Concrete, both wines, Yacht."""
        return list(DATA)

    def batches(self, wishes: Wishes) -> Sequence[Batch]:
        """A batch a data set and recipe, of all splits; the quick version has no variants, and the smallest set alone."""
        chosen = [name for name in DATA if name in (wishes.datasets or (QUICK_DATA if wishes.quick else DATA))]
        if wishes.datasets and not chosen:
            return []
        batches, controls = [], {recipe.control for recipe in recipes().values()}
        for label, recipe in recipes().items():
            variant = recipe.printed is None and not recipe.ours and label not in controls
            if label in wishes.methods or not (wishes.methods or recipe.on_request or (wishes.quick and variant)):
                one = recipe().quickly() if wishes.quick else recipe()
                count = wishes.trials or (QUICK_TRIALS if wishes.quick else recipe.trials)
                for data in chosen:
                    make = partial(
                        configuration,
                        self.name,
                        label,
                        one,
                        seed=wishes.seed,
                        data=data,
                        checksum=CATALOGUE[data].checksum,
                        quick=wishes.quick,
                    )
                    configs = [make(trial=trial) for trial in range(count)]
                    batches.append(Batch(configs, partial(_compute, one, wishes.data), chunk=20))
        return batches

    def section(self, records: Sequence[Record], wishes: Wishes, figures: Path | None) -> Section:
        """Tables 1 and 2 beside the printed ones, all methods, what interaction buys, how far kernels saturate."""
        return uci_section(records, recipes(), figures)


@lru_cache(maxsize=8)
def rows_of(data: str, folder: Path | None, splits: tuple[int, ...]) -> Rows:
    """The rows of some of the standard splits of a data set."""
    whole = load(data, folder)
    chosen = [standard_splits(len(whole.y), max(splits) + 1)[number] for number in splits]
    train, test = (np.stack([getattr(split, part) for split in chosen]) for part in ("train", "test"))
    x, y = np.asarray(whole.x, np.float32), np.asarray(whole.y, np.float32)
    return Rows(*map(jnp.asarray, (x[train], y[train], x[test], y[test])))


def _compute(recipe: AbstractRegressor, folder: Path | None, configs: Sequence[Config], progress: Progress) -> list[Result]:
    """Splits side by side: the recipe sees training rows and test features, the scores test targets."""
    rows = rows_of(configs[0]["data"], folder, tuple(config["trial"] for config in configs))
    found = recipe.fit(rows.x, rows.y, rows.test_x, keys(configs), progress=progress)
    error, likelihood = (np.asarray(score(found, rows.test_y)) for score in (rmse, log_likelihood))
    notes = {name: np.asarray(values) for name, values in (found.notes or {}).items()}
    return [
        {"RMSE": error[i], "log-likelihood": likelihood[i], **{name: values[i] for name, values in notes.items()}}
        for i in range(len(configs))
    ]
