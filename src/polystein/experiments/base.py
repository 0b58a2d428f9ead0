"""What an experiment is: batches of trials that run together, and a section of the report made from their records alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import jax
from jaxtyping import Array, Key

from polystein.experiments.records import Config, Record, Result
from polystein.report.section import Section

Progress = Callable[[float], None]
Compute = Callable[[Sequence[Config], Progress], Sequence[Result]]


@dataclass(frozen=True)
class Wishes:
    """What was asked for; None and () leave the choice to the experiment."""

    trials: int | None = None
    methods: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    seed: int = 0
    data: Path | None = None
    quick: bool = False


@dataclass(frozen=True)
class Batch:
    """Trials of one method that run together, vectorised.

    **Arguments:**

    - ``configs``: a configuration (``records.configuration``) for each trial.
    - ``compute``: from those that have no record yet, and a function to call with the share of the work done, to a result
      each: numbers, lists and arrays. A trial's result may not depend on which others run beside it.
    - ``chunk``: how many run at once; records are written after each chunk.
    """

    configs: Sequence[Config]
    compute: Compute
    chunk: int = 10


class AbstractExperiment(ABC):
    """One experiment of the paper: derive, write the four, and name it in ``experiments/command.py``."""

    name: ClassVar[str]

    @abstractmethod
    def methods(self) -> Sequence[str]:
        """The names of the methods that it can run, as tables show them."""

    @abstractmethod
    def datasets(self) -> Sequence[str]:
        """The names of the data sets that it can run on."""

    @abstractmethod
    def batches(self, wishes: Wishes) -> Sequence[Batch]:
        """What there is to run. ``wishes`` name methods and data sets exactly, and may name some of other experiments."""

    def prepare(self, wishes: Wishes) -> None:
        """Called before anything runs, where something has to: load data sets, so that a missing one is seen early."""
        from polystein.data import load
        from polystein.data.catalogue import CATALOGUE

        for name in wishes.datasets or self.datasets():
            if name in CATALOGUE and name in self.datasets():
                load(name, wishes.data)

    @abstractmethod
    def section(self, records: Sequence[Record], wishes: Wishes, figures: Path | None) -> Section:
        """What the records say; figures are saved into the folder ``figures``, and left out where it is None."""


def keys(configs: Sequence[Config]) -> Key[Array, "trials"]:
    """A key for each trial, from its seed and its number alone.

    >>> one, both = keys([{"seed": 0, "trial": 1}]), keys([{"seed": 0, "trial": 0}, {"seed": 0, "trial": 1}])
    >>> bool((jax.random.key_data(one[0]) == jax.random.key_data(both[1])).all())
    True
    """
    return jax.vmap(lambda seed, trial: jax.random.fold_in(jax.random.key(seed), trial))(
        *(jax.numpy.array([config[name] for config in configs], "uint32") for name in ("seed", "trial"))
    )
