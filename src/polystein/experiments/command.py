"""``polystein reproduce``: rerun an experiment of the paper."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

EXPERIMENTS = ("gaussian",)


def add(commands: Any) -> None:
    """Register the command."""
    reproduce = commands.add_parser("reproduce", help="rerun an experiment of the paper")
    reproduce.add_argument("experiment", choices=EXPERIMENTS, help="which experiment")
    reproduce.add_argument("--out", type=Path, help="folder for records, tables, figures and the report (build/EXPERIMENT)")
    reproduce.add_argument("--trials", type=whole("--trials", least=1), help="independent trials (10, or as many as splits)")
    reproduce.add_argument("--seed", type=whole("--seed", least=0), default=0, help="seed of the random numbers (%(default)s)")
    reproduce.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Run the experiment and print its tables."""
    from polystein.experiments import gaussian

    print(gaussian.reproduce(given.out or Path("build") / given.experiment, seed=given.seed))
    return 0


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
