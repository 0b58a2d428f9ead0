"""``polystein reproduce``: rerun the paper's experiments, and write what came out as records, tables, figures and a page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from polystein.data import Damaged
from polystein.experiments.base import AbstractExperiment, Batch, Wishes
from polystein.experiments.covtype import Covtype
from polystein.experiments.gaussian import GaussianToy
from polystein.experiments.records import Record, Records
from polystein.experiments.uci import UCI

EXPERIMENTS: tuple[type[AbstractExperiment], ...] = (GaussianToy, Covtype, UCI)
ALL = "paper"
UNUSABLE = 2  # the exit status where a data set is missing or damaged


def add(commands: Any) -> None:
    """Register the command."""
    names = [experiment.name for experiment in EXPERIMENTS]
    reproduce = commands.add_parser(
        "reproduce",
        help="rerun the paper's experiments",
        description="Rerun an experiment of the paper, or all of them, and write records, tables, figures and report.html.",
    )
    option = reproduce.add_argument
    option("experiment", choices=[*names, ALL], help=f"which experiment; {ALL}: all of them")
    option("--trials", type=whole("--trials", least=1), metavar="N", help="independent trials (10, or as many as splits)")
    option("--methods", nargs="+", action="extend", default=[], metavar="NAME", help="only these methods")
    option("--datasets", nargs="+", action="extend", default=[], metavar="NAME", help="only these data sets")
    option("--seed", type=whole("--seed", least=0), default=0, metavar="N", help="seed of the random numbers (%(default)s)")
    option("--out", type=Path, metavar="DIR", help="folder for everything that is written (build/EXPERIMENT)")
    option("--data", type=Path, metavar="DIR", help="folder with the files of data sets (else POLYSTEIN_DATA, the cache, ...)")
    option("--quick", action="store_true", help="a small budget: shows that all works, and no more")
    option(
        "--resume",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="use the records that are in the folder, so that nothing runs twice (default), or run all anew",
    )
    reproduce.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Run what has no record yet, and write the report; a record is kept as soon as its batch ends."""
    from polystein.experiments.runner import perform

    chosen = [experiment() for experiment in EXPERIMENTS if given.experiment in (experiment.name, ALL)]
    wishes = Wishes(
        trials=given.trials,
        methods=_known("--methods", given.methods, (name for each in chosen for name in each.methods())),
        datasets=_known("--datasets", given.datasets, (name for each in chosen for name in each.datasets())),
        seed=given.seed,
        data=given.data,
        quick=given.quick,
    )
    out: Path = given.out or Path("build") / given.experiment
    records = Records(out, fresh=not given.resume)
    try:
        plan = [(experiment, experiment.batches(wishes)) for experiment in chosen]
        plan = [(experiment, batches) for experiment, batches in plan if batches]
        for experiment, batches in plan:
            if any(records.find(config) is None for batch in batches for config in batch.configs):
                experiment.prepare(wishes)
    except (FileNotFoundError, Damaged) as trouble:
        print(f"polystein: {trouble}", file=sys.stderr)
        return UNUSABLE
    if not plan:
        raise argparse.ArgumentError(None, f"none of the experiments has both {_listed(given.methods + given.datasets)}")
    try:
        perform([batch for _, batches in plan for batch in batches], records)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted with {len(records)} records in {out}; the same command goes on from there"
        ) from None
    finally:
        if len(records):
            records.pack()
    return _report(plan, records, wishes, out)


def _report(plan: Sequence[tuple[AbstractExperiment, Sequence[Batch]]], records: Records, wishes: Wishes, out: Path) -> int:
    """Write what the records say, print its claims and where it lies."""
    from polystein.experiments.runner import facts_of
    from polystein.report.figures import pyplot
    from polystein.report.files import write

    figures: Path | None = out / "figures"
    try:
        pyplot()
    except ImportError as missing:
        print(f"polystein: the report has no figures: {missing}", file=sys.stderr)
        figures = None
    sections, shown = [], []
    for experiment, batches in plan:
        mine = _records_of(experiment, batches, records, wishes)
        sections.append(experiment.section(mine, wishes, figures))
        shown += mine
    page = write(out, sections, facts_of(shown, quick=wishes.quick))
    for section in sections:
        print(section.brief(), end="\n\n")
    print(f"Report: {page}")
    return 0


def _records_of(experiment: AbstractExperiment, batches: Sequence[Batch], records: Records, wishes: Wishes) -> list[Record]:
    """The records that were asked for; where no method was named, also those of methods that run on request only."""
    planned = [config for batch in batches for config in batch.configs]
    methods, datasets = ({config[name] for config in planned} for name in ("method", "data"))
    asked = [record for record in map(records.find, planned) if record is not None]
    like = {"experiment": experiment.name, "seed": wishes.seed, "quick": wishes.quick}
    extra = [
        record
        for record in records
        if not wishes.methods
        and all(record.config[name] == value for name, value in like.items())
        and record.config["method"] not in methods
        and record.config["method"] in experiment.methods()
        and record.config["data"] in datasets
    ]
    return asked + extra


def _known(option: str, names: Sequence[str], choices: Iterable[str]) -> tuple[str, ...]:
    """Names as the experiments spell them, whatever their case."""
    exact = {choice.lower(): choice for choice in choices}
    unknown = [name for name in names if name.lower() not in exact]
    if unknown:
        raise argparse.ArgumentError(
            None, f"{option} {_listed(unknown)}: not known here; expected some of {', '.join(map(repr, exact.values()))}"
        )
    return tuple(dict.fromkeys(exact[name.lower()] for name in names))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def whole(name: str, *, least: int) -> Any:
    """An argparse type: an integer that is at least ``least``."""

    def convert(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} was given; expected a whole number from {least} on; try {name} {least}")
        return number

    return convert
