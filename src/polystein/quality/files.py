"""Files of draws: NetCDF and Zarr as ArviZ writes them, npz and npy, CSV as Stan writes it or any, a saved Posterior.

NetCDF, Zarr    the group ``posterior``, or the file itself: variables with dimensions (chain, draw, ...);
                Zarr keeps no order, so they come by name
npz             an array a variable, (chains, draws, ...) or (draws, ...); or what ``Posterior.save`` wrote
npy             (draws, numbers) or (chains, draws, numbers)
csv, tsv, txt   a column a number: mu, theta[0], theta[1] or Stan's theta.1, theta.2; lines with # and columns like lp__ are
                left out; a column chain or .chain tells chains apart; without a header all columns are one vector

Several files are chains of one run, in their order.
"""

from __future__ import annotations

import csv
import importlib
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polystein.posterior import load
from polystein.quality.outside import of_dataset

COUNTERS = re.compile(r"\.?(draw|iteration|iter)_*", re.I)
CHAIN = re.compile(r"\.?chain_*", re.I)
INDEXED = re.compile(r"(.+?)(?:\[([\d, ]+)\]|((?:\.\d+)+))")


def read_draws(paths: Sequence[Path]) -> Any:
    """What ``check`` takes as draws: arrays by name with (chains, draws) first, one array, or a Posterior."""
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path} is not there; expected a file of draws; check the path")
    found = [_reader(path)(path) for path in paths]
    if len(found) == 1:
        return found[0]
    if not all(isinstance(part, Mapping) and list(part) == list(found[0]) for part in found):
        raise ValueError(
            f"{', '.join(map(str, paths))} do not hold the same variables by name; expected one chain of the same run in each; "
            "check them one by one"
        )
    try:
        return {name: np.concatenate([part[name] for part in found]) for name in found[0]}
    except ValueError as wrong:
        shapes = ", ".join(str(next(iter(part.values())).shape) for part in found)
        raise ValueError(
            f"{', '.join(map(str, paths))} hold arrays of shapes {shapes}; expected (chains, draws, ...) with as many draws in "
            "each; cut the longer ones"
        ) from wrong


def _reader(path: Path) -> Callable[[Path], Any]:
    known = {
        **dict.fromkeys([".nc", ".nc4", ".netcdf", ".h5", ".hdf5"], of_netcdf),
        ".zarr": of_zarr,
        ".npz": of_npz,
        ".npy": of_npy,
        **dict.fromkeys([".csv", ".tsv", ".txt"], of_text),
    }
    try:
        return known[path.suffix.lower()]
    except KeyError:
        raise ValueError(
            f"{path} has the ending {path.suffix or 'none'!r}; expected one of {', '.join(known)}; convert it, with arviz "
            "for example"
        ) from None


def of_netcdf(path: Path) -> dict[str, np.ndarray]:
    """The posterior of a NetCDF file."""
    xarray = _needed(path, "xarray", "h5netcdf", "h5py")
    return _group(path, lambda group: xarray.open_dataset(path, group=group, engine="h5netcdf"))


def of_zarr(path: Path) -> dict[str, np.ndarray]:
    """The posterior of a Zarr store, which keeps no order of its variables: that of their names."""
    xarray = _needed(path, "xarray", "zarr")
    found = _group(path, lambda group: xarray.open_dataset(path, group=group, engine="zarr", consolidated=False))
    return dict(sorted(found.items()))


def _needed(path: Path, *modules: str) -> Any:
    """The first of some packages, all of which are there."""
    try:
        first, *_ = [importlib.import_module(name) for name in modules]
    except ImportError as missing:
        raise ImportError(
            f"reading {path} needs {missing.name}, which is not installed; run: pip install 'polystein[arviz]'"
        ) from missing
    return first


def _group(path: Path, opened: Callable[[str | None], Any]) -> dict[str, np.ndarray]:
    for group in ("posterior", None):
        try:
            with opened(group) as found:
                if found.data_vars:
                    return of_dataset(found)
        except (OSError, KeyError) as trouble:
            if group is None or "posterior" not in str(trouble):
                raise ValueError(
                    f"{path} cannot be read ({trouble}); expected draws as ArviZ writes them; write it again with to_netcdf or "
                    "to_zarr"
                ) from trouble
    raise ValueError(f"{path} has no group 'posterior' with variables; expected draws as ArviZ writes them; look at its groups")


def of_npz(path: Path) -> Any:
    """Arrays by name, or a Posterior."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            if "manifest" in archive.files:
                return load(path)
            found = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, OSError, EOFError) as damage:
        raise ValueError(f"{path} is no npz file ({damage}); expected one of numpy.savez; write it again") from damage
    except ValueError as wrong:
        if "pickle" not in str(wrong):
            raise
        raise ValueError(f"{path} holds pickled objects; expected arrays of numbers; convert them with np.asarray") from wrong
    if len(found) == 1:
        (name, a), *_ = found.items()
        return a if a.ndim in (2, 3) and name.startswith("arr_") else found
    return found


def of_npy(path: Path) -> np.ndarray:
    """One array."""
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as damage:
        raise ValueError(f"{path} is no array of numbers ({damage}); expected one of numpy.save; write it again") from damage


def of_text(path: Path) -> Any:
    """A table with a column a number."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            lines = [line for line in file if line.strip() and not line.startswith("#")]
    except UnicodeDecodeError as damage:
        raise ValueError(f"{path} is no text ({damage}); expected numbers separated by commas; check the file") from damage
    if not lines:
        raise ValueError(f"{path} is empty; expected a header and a row a draw; check the file")
    rows = list(csv.reader(lines, delimiter=max(",\t; ", key=lines[0].count)))
    header = None if all(_is_number(cell) for cell in rows[0]) else [cell.strip() for cell in rows[0]]
    body = rows if header is None else rows[1:]
    width = len(rows[0])
    try:
        table = np.array(body, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != width:
            raise ValueError
    except ValueError:
        bad = next(
            (i, row) for i, row in enumerate(body) if len(row) != width or not all(map(_is_number, row))
        ) if body else (0, [])  # fmt: skip
        raise ValueError(
            f"{path}: row {bad[0] + 1} is {','.join(bad[1])[:60]!r}; expected {width} numbers, as in the first; mend the row"
        ) from None
    return table if header is None else by_name(header, table)


def by_name(header: Sequence[str], table: np.ndarray) -> dict[str, np.ndarray]:
    """Columns as arrays (chains, draws, ...), put together where they are numbered.

    >>> found = by_name(["chain", "lp__", "b[0]", "b[1]"], np.array([[1.0, -3, 5, 6], [2.0, -3, 7, 8]]))
    >>> {name: a.tolist() for name, a in found.items()}
    {'b': [[[5.0, 6.0]], [[7.0, 8.0]]]}
    """
    chain = next((k for k, name in enumerate(header) if CHAIN.fullmatch(name)), None)
    labels = np.zeros(len(table)) if chain is None else table[:, chain]
    sizes = {int((labels == label).sum()) for label in np.unique(labels)}
    if len(sizes) > 1:
        raise ValueError(
            f"column {header[chain or 0]} has chains of {sorted(sizes)} draws; expected equal lengths; cut the longer"
        )
    table = np.stack([table[labels == label] for label in np.unique(labels)])
    entries: dict[str, dict[tuple[int, ...], np.ndarray]] = {}
    for k, name in enumerate(header):
        if k == chain or COUNTERS.fullmatch(name) or name.endswith("__") or not name:
            continue
        match = INDEXED.fullmatch(name)
        base, index = (name, ()) if match is None else (match[1], tuple(map(int, re.findall(r"\d+", match[2] or match[3]))))
        entries.setdefault(base, {})[index] = table[:, :, k]
    return {base: _assembled(base, parts) for base, parts in entries.items()}


def _assembled(base: str, parts: Mapping[tuple[int, ...], np.ndarray]) -> np.ndarray:
    """One array of numbered columns, whatever their order and whether they count from 0 or 1."""
    if list(parts) == [()]:
        return parts[()]
    index = np.array(list(parts))
    index = index - index.min(0)
    shape = tuple(index.max(0) + 1)
    if len(parts) != np.prod(shape):
        raise ValueError(
            f"{base} has {len(parts)} columns, numbered up to {shape}; expected {int(np.prod(shape))}; add what is missing"
        )
    first = next(iter(parts.values()))
    out = np.empty((*first.shape, *shape))
    for place, column in zip(index, parts.values(), strict=True):
        out[(slice(None), slice(None), *place)] = column
    return out


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
