"""The headline table of the README, from the records of a full run:

    python -m polystein.experiments.headline docs/paper README.md

It stands between two comments in the file, ``<!-- headline -->`` and ``<!-- /headline -->``; nothing else is touched.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from polystein.data.catalogue import CATALOGUE
from polystein.experiments.printed import RMSE, best_printed
from polystein.experiments.records import Record, Records
from polystein.experiments.regressors import recipes
from polystein.report.section import Measured
from polystein.storage import replacing
from polystein.tables import markdown

SCORES = ("RMSE", "log-likelihood")
PLACE = re.compile(r"(<!-- headline -->\n).*?(<!-- /headline -->)", re.S)


def table(records: Sequence[Record]) -> str:
    """A row a printed set: the best printed number, the paper's method rerun, and the library's own recipe."""
    own = next((label for label, recipe in recipes().items() if recipe.ours and recipe.interacting), None)
    rows = []
    for data in RMSE:
        row: list[str] = [CATALOGUE[data].title]
        for score in SCORES:
            best = best_printed(score, data)
            row += [
                str(best[1]) if best is not None else "-",
                *(_cell(records, data, name, score) for name in ("MK-SVGD", own)),
            ]
        rows.append(row)
    header = [""]
    for score in SCORES:
        header += [f"{score}: best printed", "MK-SVGD rerun", f"{own}"]
    return markdown(header, rows)


def _cell(records: Sequence[Record], data: str, method: str | None, score: str) -> str:
    found = [
        r.result[score] for r in records if r.config["data"] == data and r.config["method"] == method and not r.config["quick"]
    ]
    values = [value for value in found if np.isfinite(value)]
    return f"{Measured.of(values)} ({len(values)})" if values else "-"


def put(folder: Path, file: Path) -> None:
    """Write the table of the records in ``folder`` into the place of ``file``."""
    records = [record for record in Records(folder) if record.config["experiment"] == "uci"]
    text = file.read_text("utf-8")
    if not PLACE.search(text):
        raise ValueError(
            f"{file} has no place for the table; expected <!-- headline --> and <!-- /headline --> on lines of their own"
        )
    with replacing(file) as out:
        out.write(PLACE.sub(lambda found: f"{found[1]}{table(records)}\n{found[2]}", text).encode())


if __name__ == "__main__":
    put(Path(sys.argv[1]), Path(sys.argv[2]))
