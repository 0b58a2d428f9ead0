"""The numbers of the paper's Tables 1 and 2, as printed: mean and what stands behind the ± (erratum 38)."""

from __future__ import annotations

from typing import NamedTuple


class Printed(NamedTuple):
    """A printed cell."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.error:.3f}"


COLUMNS = ("PBP", "Vanilla SVGD", "Matrix-SVGD", "MK-SVGD")

# The row "Wine" is set beside red wine: the printed baselines ran on it (erratum 34).
RMSE = {
    "boston": ((2.977, 0.093), (2.957, 0.099), (2.898, 0.184), (2.750, 0.316)),
    "combined": ((4.052, 0.031), (4.033, 0.033), (4.056, 0.033), (4.029, 0.110)),
    "concrete": ((5.506, 0.103), (5.324, 0.104), (4.869, 0.124), (5.162, 0.219)),
    "wine-red": ((0.614, 0.008), (0.609, 0.010), (0.637, 0.008), (0.601, 0.050)),
    "yacht": ((0.778, 0.042), (0.864, 0.052), (2.750, 0.125), (0.688, 0.100)),
}
LOG_LIKELIHOOD = {
    "boston": ((-2.579, 0.052), (-2.504, 0.029), (-2.669, 0.141), (-2.474, 0.070)),
    "combined": ((-2.819, 0.008), (-2.815, 0.008), (-2.824, 0.009), (-2.835, 0.035)),
    "concrete": ((-3.137, 0.021), (-3.082, 0.018), (-3.150, 0.054), (-3.080, 0.031)),
    "wine-red": ((-0.931, 0.014), (-0.925, 0.014), (-0.980, 0.016), (-0.902, 0.040)),
    "yacht": ((-1.221, 0.044), (-1.225, 0.042), (-2.390, 0.452), (-1.199, 0.053)),
}


def printed(score: str, data: str, column: str | None) -> Printed | None:
    """The cell of a table, ``score`` being "RMSE" or "log-likelihood"; None where the paper has none.

    >>> print(printed("RMSE", "yacht", "MK-SVGD"), printed("RMSE", "wine-white", "PBP"))
    0.688 ± 0.100 None
    """
    row = _table(score).get(data)
    return Printed(*row[COLUMNS.index(column)]) if row is not None and column in COLUMNS else None


def best_printed(score: str, data: str) -> tuple[str, Printed] | None:
    """The best cell of a row, with its column.

    >>> best_printed("RMSE", "concrete")
    ('Matrix-SVGD', Printed(mean=4.869, error=0.124))
    """
    row = _table(score).get(data)
    if row is None:
        return None
    pick = min if score == "RMSE" else max
    place = pick(range(len(row)), key=lambda k: row[k][0])
    return COLUMNS[place], Printed(*row[place])


def _table(score: str) -> dict[str, tuple[tuple[float, float], ...]]:
    return {"RMSE": RMSE, "log-likelihood": LOG_LIKELIHOOD}[score]
