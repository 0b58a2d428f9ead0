"""How figures look, and where they are kept: SVG and PNG files, and SVG that takes its colours from the page around it."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polystein.report.figures import pyplot
from polystein.report.section import Figure
from polystein.storage import replacing

INK, PAPER = "#1b1f24", "#fefefe"
PALETTE = ["#2f7fb8", "#d1495b", "#3a9d6e", "#c98a1b", "#8a63c7", "#6b7785", "#1a9aa0", "#b0568f", "#8f8f2a", "#a0603c"]
WIDEN = 1.5  # how much larger than drawn a figure may be shown
STYLE = {
    "svg.fonttype": "none",
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    **dict.fromkeys(["text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "grid.color"], INK),
}


@contextlib.contextmanager
def style() -> Iterator[Any]:
    """matplotlib.pyplot in the report's style: ``with style() as plt``."""
    plt = pyplot()
    with plt.rc_context(STYLE | {"axes.prop_cycle": plt.cycler(color=PALETTE)}):
        yield plt


def saved(figure: Any, folder: Path, name: str, caption: str) -> Figure:
    """Write a matplotlib figure, drawn within ``style``, as NAME.svg and NAME.png into the folder, and close it.

    The same figure gives the same bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    plt = pyplot()
    text = io.StringIO()
    with plt.rc_context({"svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    with replacing(folder / f"{name}.png") as file:
        figure.savefig(file, format="png", dpi=150, metadata={"Software": None})
    plt.close(figure)
    svg = re.sub(r"^.*?(?=<svg)", "", text.getvalue(), count=1, flags=re.S)
    with replacing(folder / f"{name}.svg") as file:
        file.write(svg.encode())
    return Figure(name, caption, svg)


def inline(figure: Figure) -> str:
    """The SVG as part of a page: no wider than it was drawn by half, in the page's colours, with names of its own.

    >>> inline(Figure("a", "A line", f'<svg width="9pt" height="9pt"><path id="p" style="fill: {INK}"/></svg>'))
    '<svg style="max-width:13.5pt" role="img" aria-label="A line"><path id="a-p" style="fill: currentColor"/></svg>'
    """
    svg = figure.svg.replace(INK, "currentColor").replace(PAPER, "none")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'\bid="', f'id="{figure.name}-', svg)
    svg = re.sub(r"url\(#", f"url(#{figure.name}-", svg)
    svg = re.sub(r'href="#', f'href="#{figure.name}-', svg)
    label = figure.caption.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    width = re.search(r'<svg width="([0-9.]+)pt"', svg)
    most = f'style="max-width:{float(width[1]) * WIDEN:g}pt" ' if width else ""
    return re.sub(r'<svg( width="[^"]*")?( height="[^"]*")?', f'<svg {most}role="img" aria-label="{label}"', svg, count=1)
