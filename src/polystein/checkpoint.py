"""Runs that survive a kill: the whole state at a chunk's edge, under a fingerprint of the configuration.

Resuming continues bit for bit as if nothing had happened, on the same machine and versions. Before it does, the scores of the
stored particles are computed again and compared, so that another density is noticed whatever its name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from polystein import storage
from polystein._types import Key, Trace
from polystein.flow import Flow, State, scores_at


def fingerprint(flow: Flow, x: Float[Array, "n d"], key: Key) -> dict[str, str]:
    """What must be equal for a run to be continued: every array and every setting, functions by their code and closures."""
    data = jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key
    return {
        "method": _digest(flow.method),
        "pairs": _digest(flow.pairs),
        "optimiser": _digest(flow.optim),
        "start": _digest(x),
        "key": _digest(data),
        "particles": f"{x.dtype}{x.shape}",
        "jax": jax.__version__,
    }


class Checkpoint(eqx.Module):
    """A file to which a run writes and from which it goes on."""

    path: Path
    marks: dict[str, str]

    def save(self, memory: Any, state: State, scores: Float[Array, "n d"], trace: Trace) -> None:
        """Write the plan's memory, the state, the scores at it and the trace so far, atomically."""
        arrays = storage.pack((memory, state), "state") | {"scores": scores} | {f"trace.{name}": a for name, a in trace.items()}
        storage.write(self.path, arrays, {"kind": "checkpoint", "marks": self.marks})

    def resume(self, flow_of: Callable[[Any], Flow], like: tuple[Any, State], key: Key) -> tuple[Any, State, Trace] | None:
        """The stored memory, state and trace; None where there is no file; refused where it belongs to another run."""
        if not os.path.exists(self.path):
            return None
        arrays, manifest = storage.read(self.path, "checkpoint")
        other = [name for name, mark in self.marks.items() if manifest["marks"].get(name) != mark]
        if other:
            raise ValueError(
                f"{self.path} was written by a run of another {', '.join(other)}; expected the same configuration; "
                "delete the file to start afresh, or name another"
            )
        memory, state = storage.unpack(arrays, "state", like)
        now = np.asarray(scores_at(flow_of(memory).target, state.x, key, state.step))
        if not np.array_equal(now, arrays["scores"], equal_nan=True):
            worst = float(np.nanmax(np.abs(now - arrays["scores"])))
            raise ValueError(
                f"{self.path} was written by a run of another density: scores at the stored particles differ by "
                f"up to {worst:.3g}; expected the same log density, data and machine; delete the file to start afresh"
            )
        trace = {name.removeprefix("trace."): a for name, a in arrays.items() if name.startswith("trace.")}
        return memory, state, trace


def _digest(tree: Any) -> str:
    """A hash of everything that a configuration is made of."""
    sha = hashlib.sha256()
    _feed(sha, tree, {})
    return sha.hexdigest()[:16]


def _feed(sha: Any, value: Any, seen: dict[int, Any]) -> None:
    """Feed a value to a hash: numbers and text as they are, functions by code and closure, the rest by its parts.

    ``seen`` keeps what was visited alive, for an id says nothing once its owner is gone.
    """
    put = lambda text: sha.update(f"{text};".encode())
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    if isinstance(value, Array | np.ndarray | np.generic):
        put(f"{value.dtype}{value.shape}")
        sha.update(np.asarray(value).tobytes())
    elif value is None or isinstance(value, bool | int | float | complex | str | bytes | type):
        put(repr(value))
    elif id(value) in seen:
        put("again")
    elif isinstance(value, dict | list | tuple):
        seen[id(value)] = value
        put(type(value).__qualname__)
        for part in [*value, *value.values()] if isinstance(value, dict) else value:
            _feed(sha, part, seen)
    elif isinstance(value, CodeType):
        put(value.co_name)
        sha.update(value.co_code)
        for part in (value.co_consts, value.co_names):
            _feed(sha, part, seen)
    elif isinstance(value, FunctionType):
        seen[id(value)] = value
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        for part in (value.__code__, value.__defaults__, value.__kwdefaults__, *cells):
            _feed(sha, part, seen)
    else:
        seen[id(value)] = value
        put(type(value).__qualname__)
        for name in ("__wrapped__", "__self__", "func", "args", "keywords"):
            _feed(sha, getattr(value, name, None), seen)
        for name, part in sorted(getattr(value, "__dict__", {}).items()):
            put(name)
            _feed(sha, part, seen)
