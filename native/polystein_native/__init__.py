"""The sweep over pairs of Polystein for Gaussian kernels, compiled: one pass for both mixtures and all discrepancies.

For rows y_i and columns x_j, kernels k_h = exp(-r^2 / h_h) and live columns j:

    drift_i     = sum_j sum_h value_h k_h s_j + first_h k_h (x_j - y_i)
    others_ih   = sum_{j: id_j != id_i} u_h,    u_h = k_h (s_y.s_x + (2/h) ((y - x).(s_y - s_x) + d - 2 r^2/h))
    squares_ih  = sum_{j: id_j != id_i} u_h^2

Nobody calls it by hand: ``polystein.pairs`` does, where this package is installed and the pairs are on a CPU.
"""

from __future__ import annotations

import ctypes
import re
from functools import cache
from pathlib import Path

import jax

INTERFACE = 1  # of ``sweep``: polystein.pairs asks for it by number


_library = ctypes.cdll.LoadLibrary(str(next(Path(__file__).parent.glob("_sweep.*"))))


def _check_fit() -> None:
    """Refuse to be registered with an older XLA than this was compiled for: it could not start at all."""
    header = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text()
    there = int(re.findall(r"define XLA_FFI_API_MINOR (\d+)", header)[0])
    own = _library.PolysteinMinorVersion()
    if own > there:
        raise ImportError(
            f"polystein-native compiled for version 0.{own} of XLA's foreign functions; expected at most 0.{there}, that of "
            "this JAX; pip install --force-reinstall --no-deps ./native, or pip uninstall polystein-native"
        )


_check_fit()


@cache
def _targets() -> dict[str, str]:
    """The names XLA knows the two compiled functions by, registered at the first call."""
    names = {"float32": "polystein_sweep_f32", "float64": "polystein_sweep_f64"}
    for name, symbol in zip(names.values(), ("PolysteinSweepF32", "PolysteinSweepF64"), strict=True):
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(_library, symbol)), platform="cpu")
    return names


def sweep(
    y: jax.Array,
    row_scores: jax.Array,
    row_id: jax.Array,
    x: jax.Array,
    column_scores: jax.Array,
    s: jax.Array,
    column_id: jax.Array,
    live: jax.Array,
    h: jax.Array,
    value: jax.Array,
    first: jax.Array,
    *,
    octaves: bool,
    drift: bool,
    sums: bool,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """drift (n, d), others and squares (n, m) for the n rows y; what is not wanted is empty.

    All floating arrays have one dtype, float32 or float64; identities are int32. ``h`` ascends; ``octaves`` promises that
    each is twice the one before.
    """
    shape = lambda wanted, *dims: jax.ShapeDtypeStruct(dims if wanted else (0, 0), y.dtype)
    n, m = y.shape[0], h.shape[0]
    outs = (shape(drift, *y.shape), shape(sums, n, m), shape(sums, n, m))
    call = jax.ffi.ffi_call(_targets()[y.dtype.name], outs, vmap_method="sequential")
    args = (y, row_scores, row_id, x, column_scores, s, column_id, live, h, value, first)
    return call(*args, octaves=octaves, with_drift=drift, with_sums=sums)
