"""Files that are whole or not there: arrays and a manifest in one npz, written atomically, read without running anything.

A file is written beside its place, flushed to the disk and moved over it, so that a kill at any moment leaves the older
one. Members carry a checksum each (zip's CRC); a truncated file and a flipped bit are both refused. Nothing is pickled.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from polystein import _checks

MANIFEST = "manifest"
DAMAGE = (  # what reading a file with arbitrary bytes in it was seen to raise
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OSError,
    EOFError,
    RuntimeError,
    MemoryError,
    SyntaxError,
    OverflowError,
)


def write(path: str | os.PathLike[str], arrays: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
    """Write arrays and a JSON manifest to ``path``, atomically."""
    path = _checks.path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"{path} cannot be written: there is no folder {path.parent}; expected an existing one; create it first"
        )
    dtypes = {name: str(a.dtype) for name, a in arrays.items()}
    members = {name: _storable(np.asarray(a)) for name, a in arrays.items()}
    members[MANIFEST] = np.frombuffer(json.dumps({"dtypes": dtypes, **manifest}).encode(), np.uint8)
    with replacing(path) as file:
        np.savez(file, **members)  # pyright: ignore[reportArgumentType]


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes its place at ``path`` once it is whole and on the disk, and never if writing fails."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(beside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    _flush_folder(path.parent)


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the manifest of a file of this ``kind``; a sentence where it is damaged or of another kind."""
    path = _checks.path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there; expected a file that polystein wrote ({kind}); check the path")
    try:
        members = _members(path)
        manifest = dict(json.loads(members.pop(MANIFEST).tobytes()))
        dtypes = dict(manifest.pop("dtypes"))
        found = manifest["kind"]
        arrays = {name: _restored(a, dtypes[name]) for name, a in members.items()}
        if set(arrays) != set(dtypes):
            raise KeyError("members are missing")
    except DAMAGE as damage:
        raise ValueError(
            f"{path} is damaged or was not written by polystein ({type(damage).__name__}: {damage}); expected a whole file of "
            f"kind {kind!r}; delete it or restore it from a copy"
        ) from damage
    if found != kind:
        raise ValueError(f"{path} is of kind {found!r}; expected {kind!r}; check the path")
    return arrays, manifest


def pack(tree: Any, prefix: str) -> dict[str, Array]:
    """The leaves of a tree by number."""
    return {f"{prefix}{i}": leaf for i, leaf in enumerate(jax.tree.leaves(tree))}


def unpack(arrays: Mapping[str, np.ndarray], prefix: str, like: Any) -> Any:
    """The leaves back into the structure, shapes and dtypes of ``like``."""
    leaves, structure = jax.tree.flatten(like)
    found = [arrays.get(f"{prefix}{i}") for i in range(len(leaves))]
    for i, (a, leaf) in enumerate(zip(found, leaves, strict=True)):
        if a is None or a.shape != leaf.shape or a.dtype != leaf.dtype:
            given = "nothing" if a is None else f"{a.dtype}{a.shape}"
            raise ValueError(
                f"stored array {prefix}{i} is {given}; expected {leaf.dtype}{leaf.shape}; it is of another configuration"
            )
    return jax.tree.unflatten(structure, [jnp.asarray(a) for a in found])


def describe(tree: Any) -> Any:
    """The structure of a tree of dicts, lists and tuples as JSON, leaves numbered in jax's order; None for other nodes."""
    numbers = iter(range(len(jax.tree.leaves(tree))))

    def node(value: Any) -> Any:
        if type(value) is dict:
            if not all(isinstance(key, str) for key in value):
                raise KeyError
            return {"dict": {key: node(value[key]) for key in sorted(value)}}
        if type(value) in (list, tuple):
            return {type(value).__name__: [node(part) for part in value]}
        if value is None:
            return {"none": 0}
        if jax.tree.structure(value) != jax.tree.structure(0):
            raise KeyError
        return {"leaf": next(numbers)}

    try:
        return node(tree)
    except KeyError:
        return None


def rebuild(description: Any, leaves: list[Any]) -> Any:
    """The tree that ``describe`` described."""
    ((kind, value),) = description.items()
    if kind == "dict":
        return {key: rebuild(part, leaves) for key, part in value.items()}
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(rebuild(part, leaves) for part in value)
    return None if kind == "none" else leaves[value]


def _members(path: Path) -> dict[str, np.ndarray]:
    """Every array of the archive, each read to its end before it is parsed, so that its checksum is compared."""
    with zipfile.ZipFile(path) as archive:
        whole = os.path.getsize(path)
        for info in archive.infolist():
            if info.compress_type != zipfile.ZIP_STORED or info.file_size > whole or not info.filename.endswith(".npy"):
                raise ValueError(f"member {info.filename} is none that polystein writes")
        contents = {info.filename.removesuffix(".npy"): io.BytesIO(archive.read(info)) for info in archive.infolist()}
    arrays = {name: np.lib.format.read_array(content, allow_pickle=False) for name, content in contents.items()}
    if any(content.read(1) for content in contents.values()):
        raise ValueError("a member is longer than its array")
    return arrays


def _storable(a: np.ndarray) -> np.ndarray:
    """Dtypes that npz does not know (bfloat16) as bytes of the same width."""
    return a.view(f"u{a.dtype.itemsize}") if a.dtype.kind == "V" or a.dtype.name == "bfloat16" else a


def _restored(a: np.ndarray, dtype: str) -> np.ndarray:
    wanted = jnp.dtype(dtype)
    return a if a.dtype == wanted else a.view(wanted)


def _flush_folder(folder: Path) -> None:
    """Make the move itself durable where the system allows a folder to be opened."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
