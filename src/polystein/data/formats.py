"""The formats in which the data sets are published, each read as one table of float64, its rows in the order of the file."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable

import numpy as np

Reader = Callable[[bytes], np.ndarray]


def delimited(delimiter: str, *, header: int) -> Reader:
    """Lines of numbers with a delimiter between them, after some lines of header.

    >>> delimited(";", header=1)(b"a;b\\n1;2\\n3;4\\n").tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return lambda content: np.loadtxt(io.BytesIO(content), delimiter=delimiter, skiprows=header, ndmin=2)


def blanks(columns: int, *, header: int = 0) -> Reader:
    """Numbers with blanks between them, a row perhaps on several lines, after some lines of header.

    >>> blanks(3, header=1)(b"title\\n1 2\\n 3\\n4 5\\n 6\\n\\n").tolist()
    [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    """
    return lambda content: np.array(b" ".join(content.splitlines()[header:]).split(), float).reshape(-1, columns)


def integers(content: bytes) -> np.ndarray:
    """Whole numbers with commas between them.

    >>> integers(b"1,-2\\n3,4\\n").tolist()
    [[1, -2], [3, 4]]
    """
    return np.loadtxt(io.BytesIO(content), delimiter=",", dtype=np.int32, ndmin=2)


def gzipped(reader: Reader) -> Reader:
    """A file compressed by gzip.

    >>> gzipped(integers)(gzip.compress(b"1,2\\n")).tolist()
    [[1, 2]]
    """
    return lambda content: reader(gzip.decompress(content))


def workbook(sheet: str) -> Reader:
    """One sheet of an .xlsx workbook, under one line of header."""

    def read(content: bytes) -> np.ndarray:
        try:
            import openpyxl
        except ImportError as missing:
            raise _needed("openpyxl", ".xlsx") from missing
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        return np.array(list(book[sheet].iter_rows(min_row=2, values_only=True)), float)

    return read


def old_workbook(sheet: str) -> Reader:
    """One sheet of an .xls workbook, under one line of header."""

    def read(content: bytes) -> np.ndarray:
        try:
            import xlrd
        except ImportError as missing:
            raise _needed("xlrd", ".xls") from missing
        rows = xlrd.open_workbook(file_contents=content, logfile=io.StringIO()).sheet_by_name(sheet)
        return np.array([rows.row_values(i) for i in range(1, rows.nrows)], float)

    return read


def zipped(member: str, reader: Reader) -> Reader:
    """One member of a zip archive, by the end of its name."""

    def read(content: bytes) -> np.ndarray:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            name = next(name for name in archive.namelist() if name.endswith(member))
            return reader(archive.read(name))

    return read


def _needed(package: str, format: str) -> ImportError:
    return ImportError(f"{format} workbooks need {package}, which is not installed; run: pip install 'polystein[data]'")
