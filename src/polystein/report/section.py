"""What an experiment reports: claims with verdicts, tables and figures, from which the text and the page are made."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from polystein.tables import markdown


class Verdict(enum.Enum):
    """What came of a comparison, or of a claim."""

    REPRODUCED = "reproduced"
    BETTER = "better"
    WORSE = "worse"
    NOISE = "within noise"
    HOLDS = "holds"
    FAILS = "does not hold"

    def __str__(self) -> str:
        return self.value


class Measured(NamedTuple):
    """A mean over trials with its standard error and the standard deviation between trials.

    >>> Measured.of([1.0, 2.0, 3.0])
    Measured(mean=2.0, se=0.577, sd=1.0, trials=3)
    >>> print(Measured.of([1.0, 2.0, 3.0]), f"{Measured.of([1.0, 2.0, 3.0]):+.1f}", Measured.of([1.0]))
    2.000 ± 0.577 +2.0 ± 0.6 1.000
    """

    mean: float
    se: float
    sd: float
    trials: int

    @staticmethod
    def of(values: Sequence[float]) -> Measured:
        """The mean of one number a trial; a single trial has no error."""
        sd = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
        return Measured(float(np.mean(values)), sd / math.sqrt(len(values)), sd, len(values))

    def __format__(self, form: str) -> str:
        form = form or ".3f"
        error = f" ± {self.se:{form.removeprefix('+')}}" if math.isfinite(self.se) else ""
        return f"{self.mean:{form}}{error}"

    def __str__(self) -> str:
        return format(self)


Cell = str | float | int | Verdict | Measured


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, what was measured of it, and the verdict."""

    claim: str
    found: str
    verdict: Verdict


@dataclass(frozen=True)
class Table:
    """Rows of cells under a header; the first column names the row. ``best`` marks cells as (row, column)."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    best: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class Figure:
    """A drawing: the name of its files, what it shows, and its SVG."""

    name: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Section:
    """One experiment's part of the report."""

    title: str
    lead: str
    claims: Sequence[Claim] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    settings: Sequence[tuple[str, str]] = field(default=())

    def brief(self) -> str:
        """Title and verdicts, for a terminal.

        >>> print(Section("A", "Words.", claims=[Claim("Faster", "it was not", Verdict.FAILS)]).brief())
        A
          does not hold   Faster: it was not
        """
        return "\n".join([self.title, *(f"  {c.verdict!s:<14}  {c.claim}: {c.found}" for c in self.claims)])

    def markdown(self) -> str:
        """The section as text; figures by the names of their files.

        >>> print(Section("A", "Words.", claims=[Claim("Faster", "It was not", Verdict.FAILS)]).markdown())
        ## A
        <BLANKLINE>
        Words.
        <BLANKLINE>
        | claim  | measured   | verdict       |
        |--------|------------|---------------|
        | Faster | It was not | does not hold |
        """
        parts = [f"## {self.title}", self.lead]
        if self.claims:
            parts.append(markdown(["claim", "measured", "verdict"], [[c.claim, c.found, str(c.verdict)] for c in self.claims]))
        for table in self.tables:
            rows = [[cell if isinstance(cell, str | float | int) else str(cell) for cell in row] for row in table.rows]
            parts += filter(None, [f"### {table.title}", markdown(table.header, rows), table.note])
        parts += [f"![{figure.caption}](figures/{figure.name}.svg)" for figure in self.figures]
        if self.settings:
            parts.append(markdown(["setting", "value"], [list(pair) for pair in self.settings]))
        return "\n\n".join(parts)


def slug(title: str) -> str:
    """A title as the name of a file, and of a place in a page.

    >>> slug("Test RMSE (20 splits)")
    'test-rmse-20-splits'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
