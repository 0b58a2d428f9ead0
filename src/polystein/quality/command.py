"""``polystein check``: is a file of draws from a target? Status 0: nothing is wrong; 1: something is; 2: it cannot be told."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

FINE, WRONG, UNUSABLE = 0, 1, 2


def add(commands: Any) -> None:
    """Register the command."""
    check = commands.add_parser(
        "check",
        help="how good draws of any sampler are",
        description="Judge draws of any sampler by the density that they should be draws of: Stein ratios per parameter and "
        "direction, a kernel Stein discrepancy, a test, effective draws. Exit status: 0 where nothing is wrong with them, "
        "1 where something is, 2 where it cannot be told.",
    )
    option = check.add_argument
    option("draws", nargs="+", type=Path, metavar="FILE", help="ArviZ NetCDF or Zarr, npz, npy, CSV, or a saved Posterior; "
           "several files are chains of one run")  # fmt: skip
    option("--target", required=True, metavar="MODULE:NAME", help="a log density in JAX, of a dict of the variables or of one "
           "vector of their numbers; or a polystein Target; modules of the current folder are found")  # fmt: skip
    option("--constrain", nargs="+", action="extend", default=[], metavar="NAME=KIND", help="for a log density of constrained "
           "parameters: positive, unit, interval:LOW:HIGH, simplex, ordered or correlation; they are then judged in free "
           "coordinates, with the log-Jacobian added")  # fmt: skip
    option("--variables", nargs="+", action="extend", metavar="NAME", help="which variables are parameters, in the order of "
           "the vector (all)")  # fmt: skip
    option("--by-chain", action=argparse.BooleanOptionalAction, default=None, help="whether arrays of an npz begin with "
           "(chains, draws), or with draws (told from their shapes)")  # fmt: skip
    option("--independent", action="store_true", default=None, help="draws are independent, not those of chains")
    option("--level", type=float, default=0.01, metavar="P", help="how often right draws may be called wrong (%(default)s)")
    option("--max-draws", type=int, default=4000, metavar="N", help="how many draws the test sees; longer chains are thinned "
           "evenly for it, and it says so (%(default)s)")  # fmt: skip
    option("--seed", type=int, default=0, metavar="N", help="seed of the test's random signs (%(default)s)")
    option("--float32", action="store_true", help="compute in single precision: faster")
    option("--out", type=Path, metavar="DIR", help="write report.html, figures, tables and results.json into this folder")
    option("--json", action="store_true", help="print the numbers as JSON in place of tables")
    check.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Read, judge, print, and write the report."""
    import jax

    from polystein.quality.files import read_draws
    from polystein.quality.judge import check
    from polystein.quality.named import bijections_of, target_of
    from polystein.report.figures import pyplot

    if not given.float32:
        jax.config.update("jax_enable_x64", True)
    try:
        draws = read_draws(given.draws)
        found = check(
            draws,
            target_of(given.target),
            constrain=bijections_of(given.constrain),
            variables=given.variables,
            by_chain=given.by_chain,
            independent=given.independent,
            level=given.level,
            max_draws=given.max_draws,
            key=jax.random.key(given.seed),
        )
    except (ImportError, OSError, ValueError, TypeError, AttributeError) as unusable:
        print(f"polystein: {unusable}", file=sys.stderr)
        return UNUSABLE
    print(json.dumps(found.as_dict(), indent=1, ensure_ascii=False) if given.json else found)
    if given.out is not None:
        try:
            pyplot()
        except ImportError as missing:
            print(f"polystein: the report has no figures: {missing}", file=sys.stderr)
        print(f"Report: {found.save(given.out)}", file=sys.stderr if given.json else sys.stdout)
    return FINE if found.fine else WRONG
