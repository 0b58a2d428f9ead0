"""Running what has no record yet, batch by batch, with progress and time left; and what records say of how they were made."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from polystein.experiments.base import Batch
from polystein.experiments.records import Record, Records
from polystein.progress import bar, somebody_looks
from polystein.report.page import Facts


def perform(batches: Sequence[Batch], records: Records) -> None:
    """Run the trials that have no record; a kill loses at most one chunk of one batch.

    >>> import tempfile
    >>> from pathlib import Path
    >>> batch = Batch([{"trial": 0}, {"trial": 1}], lambda configs, progress: [{"double": 2 * c["trial"]} for c in configs])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = Records(Path(folder))
    ...     perform([batch], records)
    ...     perform([batch], records)  # nothing is left to run
    ...     [record.result["double"] for record in records]
    [0, 2]
    """
    waiting = [[config for config in batch.configs if records.find(config) is None] for batch in batches]
    total = sum(len(batch.configs) for batch in batches)
    left = sum(map(len, waiting))
    began, ran, looked_at = time.monotonic(), 0, somebody_looks()
    with bar(total, total - left, looked_at, unit="trial") as shown:
        for batch, configs in zip(batches, waiting, strict=True):
            for start in range(0, len(configs), batch.chunk):
                some = configs[start : start + batch.chunk]
                words = ", ".join(filter(None, (some[0].get(name, "") for name in ("experiment", "data", "method"))))
                shown.set_description_str(words)
                done = total - left + ran

                def progress(share: float, done: int = done, size: int = len(some)) -> None:
                    shown.n = round(done + share * size, 1)
                    shown.refresh()

                before = time.monotonic()
                results = batch.compute(some, progress)
                seconds = (time.monotonic() - before) / len(some)
                for config, result in zip(some, results, strict=True):
                    records.keep(config, result, seconds)
                ran += len(some)
                progress(1.0)
                if not looked_at:
                    remaining = (time.monotonic() - began) / ran * (left - ran)
                    print(f"{done + len(some)} of {total} trials ({words}), {_words(remaining)} left", file=sys.stderr)


def facts_of(records: Sequence[Record], *, quick: bool) -> Facts:
    """Versions, machines and wall clock, from the records themselves."""
    values: dict[str, list[str]] = {}
    for record in records:
        for name, value in record.made.items():
            if value not in values.setdefault(name, []):
                values[name].append(value)
    days = sorted({moment[:10] for moment in values.pop("at", [])})
    span = days[:1] if days[:1] == days[-1:] else [f"{days[0]} to {days[-1]}"]
    rows = [(name, "; ".join(sorted(found))) for name, found in values.items()]
    seconds = sum(record.seconds for record in records)
    clock = f"{seconds / 60:.1f} min" if seconds >= 100 else f"{seconds:.0f} s"
    rows = [("trials", str(len(records))), ("wall clock", f"{clock}, compilation included"), ("run on", "".join(span)), *rows]
    return Facts(tuple(rows), quick)


def _words(seconds: float) -> str:
    """A duration to the precision in which it is known.

    >>> _words(12.3), _words(300.0)
    ('about 12 s', 'about 5 min')
    """
    return f"about {seconds:.0f} s" if seconds < 100 else f"about {seconds / 60:.0f} min"
