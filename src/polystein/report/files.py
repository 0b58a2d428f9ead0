"""What a report is on disk: report.html, report.md, results.json and a CSV file a table, all made from sections."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from polystein.report.page import Facts, page
from polystein.report.section import Cell, Measured, Section, Table, Verdict, slug
from polystein.storage import replacing


def write(out: Path, sections: Sequence[Section], facts: Facts, *, results: Any = None) -> Path:
    """Write everything into the folder ``out``; the place of the page. ``results.json`` holds the sections, or ``results``."""
    out.mkdir(parents=True, exist_ok=True)
    found = [_plain(section) for section in sections] if results is None else results
    _replace(out / "report.html", page(sections, facts))
    _replace(out / "report.md", markdown(sections, facts))
    _replace(out / "results.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    for section in sections:
        for table in section.tables:
            place = out / "tables" / f"{slug(section.title)}-{slug(table.title)}.csv"
            place.parent.mkdir(exist_ok=True)
            _replace(place, comma_separated(table))
    return out / "report.html"


def markdown(sections: Sequence[Section], facts: Facts) -> str:
    """The whole report as text.

    >>> print(markdown([Section("A", "Words.")], Facts((("jax", "1"),), True)).splitlines()[2])
    A quick run on a small budget: it shows that everything works, and its numbers mean little.
    """
    parts = [f"# {facts.title}", *([facts.warning] if facts.quick else []), *(part.markdown() for part in sections)]
    return "\n\n".join([*parts, "## Made by", "\n".join(f"- {name}: {value}" for name, value in facts.rows)]) + "\n"


def comma_separated(table: Table) -> str:
    """A table for other programs: of a measured cell, the mean, its standard error, the standard deviation and the trials.

    >>> print(comma_separated(Table("T", ["data", "rmse"], [["yacht", Measured(0.5, 0.1, 0.2, 4)]])).strip())
    data,rmse,rmse se,rmse sd,rmse trials
    yacht,0.5,0.1,0.2,4
    """
    measured = [any(isinstance(row[k], Measured) for row in table.rows) for k in range(len(table.header))]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = list(zip(table.header, measured, strict=True))
    names = ([name, *([f"{name} se", f"{name} sd", f"{name} trials"] if wide else [])] for name, wide in columns)
    writer.writerow(chain.from_iterable(names))
    for row in table.rows:
        writer.writerow(chain.from_iterable(_columns(cell, wide) for cell, wide in zip(row, measured, strict=True)))
    return text.getvalue()


def _columns(cell: Cell, wide: bool) -> list[Any]:
    if isinstance(cell, Measured):
        return list(cell)
    return [str(cell) if isinstance(cell, Verdict) else cell, *([""] * 3 if wide else [])]


def _plain(section: Section) -> dict[str, Any]:
    return {
        "title": section.title,
        "claims": [{"claim": c.claim, "found": c.found, "verdict": str(c.verdict)} for c in section.claims],
        "tables": [
            {"title": t.title, "header": list(t.header), "rows": [[_json(cell) for cell in row] for row in t.rows]}
            for t in section.tables
        ],
        "figures": [figure.name for figure in section.figures],
        "settings": dict(section.settings),
    }


def _json(cell: Cell) -> Any:
    if isinstance(cell, Measured):
        return {name: _json(value) for name, value in cell._asdict().items()}
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    return str(cell) if isinstance(cell, Verdict) else cell


def _replace(place: Path, text: str) -> None:
    with replacing(place) as file:
        file.write(text.encode())
