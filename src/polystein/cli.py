"""The command line: ``polystein reproduce gaussian --out DIR``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 0 where it went well, 2 where the command was wrong.

    >>> main(["reproduce", "gaussian", "--steps", "0"])
    Traceback (most recent call last):
    SystemExit: 2
    """
    parser = argparse.ArgumentParser(prog="polystein", description="Posteriors from particles moved by many kernels.")
    commands = parser.add_subparsers(dest="command", required=True)
    reproduce = commands.add_parser("reproduce", help="rerun an experiment of the paper")
    reproduce.add_argument("experiment", choices=["gaussian"], help="which experiment")
    reproduce.add_argument(
        "--out", type=Path, default=Path("build/gaussian"), help="folder for figures and tables (%(default)s)"
    )
    reproduce.add_argument("--particles", type=_at_least(2), default=500, help="number of particles (%(default)s)")
    reproduce.add_argument("--steps", type=_at_least(1), default=1000, help="number of steps (%(default)s)")
    reproduce.add_argument("--seed", type=_at_least(0), default=0, help="seed of the random numbers (%(default)s)")
    given = parser.parse_args(arguments)

    from polystein.experiments import gaussian

    try:
        report = gaussian.reproduce(given.out, particles=given.particles, steps=given.steps, seed=given.seed)
    except (ImportError, OSError) as trouble:
        print(f"polystein: {trouble}", file=sys.stderr)
        return 1
    print(report)
    return 0


def _at_least(least: int):
    def whole(text: str) -> int:
        number = int(text)
        if number < least:
            raise argparse.ArgumentTypeError(f"{number} is less than {least}")
        return number

    return whole


if __name__ == "__main__":
    sys.exit(main())
