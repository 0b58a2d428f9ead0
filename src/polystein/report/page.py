"""One self-contained page: verdicts, tables, figures, settings, versions; no script, and nothing fetched from elsewhere."""

from __future__ import annotations

import importlib.resources
import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from polystein.report.drawing import inline
from polystein.report.section import Cell, Claim, Figure, Measured, Section, Table, Verdict, slug

GOOD = (Verdict.REPRODUCED, Verdict.BETTER, Verdict.HOLDS)
BAD = (Verdict.WORSE, Verdict.FAILS)
TITLE = "Many kernels, rerun"
LEAD = (
    "Every experiment of Stein Variational Gradient Descent with Multiple Kernel (Ai, Liu, He & Xu), run again from its text, "
    "with the printed numbers beside what came out, and the settings of this library beside both. Error bars are standard "
    "errors over trials; losses are shown as plainly as wins."
)
LONG = 48  # characters from which a cell may be broken into lines


class Facts(NamedTuple):
    """What a report was made by: names and values, and whether it was a quick run; and what stands at its head."""

    rows: tuple[tuple[str, str], ...]
    quick: bool = False
    title: str = TITLE
    lead: str = LEAD

    @property
    def warning(self) -> str:
        """What is said of a quick run."""
        return "A quick run on a small budget: it shows that everything works, and its numbers mean little."


def page(sections: Sequence[Section], facts: Facts) -> str:
    """The page of some sections.

    >>> text = page([Section("A & B", "Words.")], Facts((("jax", "1"),), False))
    >>> "A &amp; B" in text, "<script" in text, "http" in text
    (True, False, False)
    """
    style = importlib.resources.files("polystein.report").joinpath("page.css").read_text("utf-8")
    links = [f'<a href="#{slug(section.title)}">{escape(section.title)}</a>' for section in sections]
    tally = Counter(claim.verdict for section in sections for claim in section.claims)
    counts = [f"<li>{chip(verdict, f'{tally[verdict]} {verdict}')}</li>" for verdict in Verdict if tally[verdict]]
    nav = f'<nav aria-label="Parts">{"".join(links)}</nav>' if len(links) > 1 else ""
    warning = f'<p class="warning">{escape(facts.warning)}</p>' if facts.quick else ""
    made = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.rows)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(facts.title)}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{escape(facts.title)}</h1>
<p class="lead">{escape(facts.lead)}</p>
<ul class="tally">{"".join(counts)}</ul>
{warning}
{nav}
</header>
<main>
{"".join(map(section_html, sections))}</main>
<footer><h2>Made by</h2><dl>{made}</dl></footer>
</body>
</html>
"""


def chip(verdict: Verdict, words: str = "") -> str:
    """A verdict as a coloured chip.

    >>> chip(Verdict.BETTER)
    '<span class="chip good">better</span>'
    """
    kind = " good" if verdict in GOOD else " bad" if verdict in BAD else ""
    return f'<span class="chip{kind}">{escape(words or str(verdict))}</span>'


def section_html(section: Section) -> str:
    """A section as it stands in a page, and in a notebook.

    >>> section_html(Section("A", "Words.")).splitlines()[0]
    '<section id="a">'
    """
    claims = "".join(map(_claim, section.claims))
    parts = [f"<h2>{escape(section.title)}</h2>", *(f"<p>{_text(words)}</p>" for words in section.lead.split("\n\n"))]
    if claims:
        parts.append(f'<ul class="claims">{claims}</ul>')
    parts += map(_figure, section.figures)
    parts += map(_table, section.tables)
    if section.settings:
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{_text(value)}</td></tr>" for name, value in section.settings)
        table = _scrolling(f"<table><tbody>{rows}</tbody></table>", f"Settings of {section.title}")
        parts.append(f"<details><summary>Settings</summary>{table}</details>")
    return f'<section id="{slug(section.title)}">\n' + "\n".join(parts) + "\n</section>\n"


def _claim(claim: Claim) -> str:
    return f"<li>{chip(claim.verdict)}<q>{_text(claim.claim)}</q><p>{_text(claim.found)}</p></li>"


def _figure(figure: Figure) -> str:
    return f"<figure>{_scrolling(inline(figure), figure.caption)}<figcaption>{_text(figure.caption)}</figcaption></figure>"


def _table(table: Table) -> str:
    numeric = [all(isinstance(row[k], int | float | Measured) for row in table.rows) for k in range(len(table.header))]
    head = "".join(
        f'<th scope="col"{_classes("number" if number else "")}>{_text(name)}</th>'
        for name, number in zip(table.header, numeric, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(_cell(cell, k, (i, k) in table.best, numeric[k]) for k, cell in enumerate(row)) + "</tr>"
        for i, row in enumerate(table.rows)
    )
    note = f'<p class="note">{_text(table.note)}</p>' if table.note else ""
    table_html = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<h3>{_text(table.title)}</h3>{_scrolling(table_html, table.title)}{note}"


def _cell(cell: Cell, column: int, best: bool, number: bool) -> str:
    if isinstance(cell, Verdict):
        inside = chip(cell)
    elif isinstance(cell, Measured):
        spread = f"<small>sd {cell.sd:.3f}, {cell.trials} trials</small>" if cell.sd == cell.sd else ""
        inside = escape(str(cell)) + spread
    else:
        inside = f"{cell:.4g}" if isinstance(cell, float) else _text(str(cell))
    if column == 0:
        return f'<th scope="row">{inside}</th>'
    long = isinstance(cell, str) and len(cell) > LONG
    return f"<td{_classes('number' if number else '', 'best' if best else '', 'long' if long else '')}>{inside}</td>"


def _classes(*names: str) -> str:
    given = " ".join(filter(None, names))
    return f' class="{given}"' if given else ""


def _scrolling(inside: str, label: str) -> str:
    """What is too wide for a phone scrolls in a box of its own, which the keyboard reaches."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">{inside}</div>'


def _text(words: str) -> str:
    """Text with powers set as such and errata in italics.

    >>> _text("h = 2^-4 (erratum 5)")
    'h = 2<sup>−4</sup> (<em>erratum 5</em>)'
    """
    text = escape(words)
    text = re.sub(r"\^(-?\d+)", lambda found: f"<sup>{found[1].replace('-', '−')}</sup>", text)
    return re.sub(r"\b(errat(?:um|a) \d+(?:, \d+)*(?: and \d+)?)", r"<em>\1</em>", text)
