"""Plain text tables that read well in a terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table with aligned columns; numbers with four significant digits.

    >>> print(markdown(["kernel", "w"], [["2^0", 0.25], ["2^10", 0.123456]]))
    | kernel |      w |
    |--------|-------:|
    | 2^0    |   0.25 |
    | 2^10   | 0.1235 |
    """
    cells = [[f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    numeric = [all(isinstance(row[k], int | float) for row in rows) for k in range(len(header))]
    width = [max(len(line[k]) for line in [header, *cells]) for k in range(len(header))]

    def line(row: Sequence[str]) -> str:
        aligned = (cell.rjust(w) if n else cell.ljust(w) for cell, w, n in zip(row, width, numeric, strict=True))
        return "| " + " | ".join(aligned) + " |"

    rule = "|" + "|".join("-" * (w + 1) + (":" if n else "-") for w, n in zip(width, numeric, strict=True)) + "|"
    return "\n".join([line(list(header)), rule, *(line(row) for row in cells)])
