"""Records of trials: one immutable JSON file each, named by a hash of everything that determines its numbers.

A record is written atomically when the batch it ran in ends, and read back only if it is whole and answers to its name. So a
killed run goes on where it stopped, and nothing runs twice.
"""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from polystein import storage

Config = dict[str, Any]
Result = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """What was run, what came out, how long it took (its share of its batch, compilation included), when and on what."""

    config: Config
    result: Result
    seconds: float
    made: dict[str, str]

    @property
    def key(self) -> str:
        """The name of the configuration."""
        return key(self.config)


def configuration(
    experiment: str,
    method: str,
    settings: Any,
    *,
    trial: int,
    seed: int,
    data: str = "",
    checksum: str = "",
    quick: bool = False,
) -> Config:
    """Everything that determines the numbers of one trial, as JSON.

    **Arguments:**

    - ``settings``: hyper-parameters: a module, a mapping, or anything made of such, of numbers, arrays and text.
    - ``trial``: its number, from 0; of a data set with standard splits, the split.
    - ``data``, ``checksum``: name and checksum of the data set, where there is one.

    >>> configuration("gaussian", "SVGD", {"steps": 10}, trial=0, seed=0)["settings"]
    {'steps': 10}
    """
    versions = {name: importlib.metadata.version(name) for name in ("polystein", "jax")}
    return {
        "experiment": experiment,
        "data": data,
        "checksum": checksum,
        "method": method,
        "settings": plain(settings),
        "trial": trial,
        "seed": seed,
        "quick": quick,
        "versions": versions,
    }


def key(config: Config) -> str:
    """The name of a configuration: the same whatever the order of its entries, another if any of them changes.

    >>> key({"a": 1, "b": [0.5]}) == key({"b": [0.5], "a": 1}) != key({"a": 1, "b": [0.25]})
    True
    """
    return hashlib.sha256(_canonical(config)).hexdigest()[:20]


def plain(value: Any) -> Any:
    """Settings as JSON: modules as mappings under the name of their class, functions by their names, arrays as lists.

    >>> plain({"h": np.float32(0.5), "at": (1, np.array([1, 2]))})
    {'h': 0.5, 'at': [1, [1, 2]]}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        return plain(np.asarray(value).tolist())
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {"is": type(value).__qualname__} | {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Path):
        return str(value)
    if callable(value):
        return getattr(value, "__qualname__", type(value).__qualname__)
    raise TypeError(f"{type(value).__name__} is no setting that can be recorded; expected numbers, text, arrays or modules")


class Records:
    """The records in a folder: ``records/KEY.json``, and ``records.jsonl`` with one line each, as a report is kept.

    ``fresh`` leaves aside what is there. What is damaged is refused with a sentence on standard error, and counts as missing.
    """

    def __init__(self, folder: Path, *, fresh: bool = False):
        self.folder = folder
        self._found: dict[str, Record] = {}
        if not fresh:
            self._load()

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._found.values())

    def find(self, config: Config) -> Record | None:
        """The record of a configuration, if it has been run."""
        return self._found.get(key(config))

    def keep(self, config: Config, result: Result, seconds: float) -> Record:
        """Write the record of a trial; its numbers may be arrays, and come back as lists of nine digits."""
        record = Record(plain(config), plain(result), round(seconds, 4), circumstances())
        places = self.folder / "records"
        places.mkdir(parents=True, exist_ok=True)
        with storage.replacing(places / f"{record.key}.json") as file:
            file.write(_line(record))
        self._found[record.key] = record
        return record

    def pack(self) -> Path:
        """Write all of them into ``records.jsonl``, in an order of their own, and say where."""
        place = self.folder / "records.jsonl"
        order = lambda record: [str(record.config.get(name)) for name in ("experiment", "data", "method")]
        records = sorted(self, key=lambda record: (*order(record), record.config.get("trial", 0), record.key))
        self.folder.mkdir(parents=True, exist_ok=True)
        with storage.replacing(place) as file:
            file.writelines(_line(record) for record in records)
        return place

    def _load(self) -> None:
        packed = self.folder / "records.jsonl"
        if packed.is_file():
            for number, line in enumerate(packed.read_bytes().splitlines(keepends=True), 1):
                self._add(line, f"{packed}, line {number}", None)
        for file in sorted((self.folder / "records").glob("*.json")):
            self._add(file.read_bytes(), str(file), file.stem)

    def _add(self, line: bytes, place: str, name: str | None) -> None:
        try:
            parts = json.loads(line)
            if parts.pop("sealed") != _seal(parts) or name not in (None, key(parts["config"])):
                raise ValueError("its contents were changed")
            record = Record(**parts)
        except (ValueError, TypeError, KeyError, AttributeError) as damage:
            print(f"polystein: {place} is damaged ({damage}): it is left aside, and its trial runs again", file=sys.stderr)
        else:
            self._found[record.key] = record


def circumstances() -> dict[str, str]:
    """When and on what: nothing of it determines the numbers."""
    versions = {name: importlib.metadata.version(name) for name in ("polystein", "jax", "jaxlib", "equinox", "optax", "numpy")}
    return {
        "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "device": jax.devices()[0].device_kind,
        "python": platform.python_version(),
        **versions,
    }


def _canonical(parts: Any) -> bytes:
    return json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def _seal(parts: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(parts)).hexdigest()[:16]


def _line(record: Record) -> bytes:
    parts = asdict(record)
    return _canonical(parts | {"sealed": _seal(parts)}) + b"\n"
