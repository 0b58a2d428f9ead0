"""Sums over pairs: how they are evaluated, never what is summed.

sum(f, rows, cols)_i = sum_j f(i, j),  f given on blocks: f(rows_block, cols_block) -> one value per row, summed over columns

Blocks are XLA's business, but for Gaussian kernels on a CPU: these are summed by polystein-native where it is installed.
"""

from __future__ import annotations

import functools
import importlib
from abc import abstractmethod
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.extend.backend
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from polystein import _checks
from polystein._types import Points
from polystein.kernels import RBF, AbstractKernel, Alike, Mixture, Octaves, Summand

Out = TypeVar("Out")
T = TypeVar("T")
Block = Callable[[Points, Points], Out]

INTERFACE = 1  # of polystein-native: how ``sweep`` is called


class AbstractPairs(eqx.Module):
    """How a sum over pairs is evaluated."""

    @abstractmethod
    def sum(self, block: Block[Out], rows: Points, cols: Points) -> Out:
        """Sum ``block`` over all columns, for every row.

        ``block`` takes some rows and some columns and returns a tree of arrays whose leading axis is its rows, each
        summed over its columns.
        """


class Dense(AbstractPairs):
    """All pairs at once: O(n^2) memory, the plainest program; for small n.

    >>> import jax.numpy as jnp
    >>> from polystein import Points
    >>> points = Points.of(jnp.arange(3.0)[:, None], jnp.zeros((3, 1)))
    >>> Dense().sum(lambda rows, cols: (rows.x * cols.x.T).sum(1), points, points).tolist()
    [0.0, 3.0, 6.0]
    """

    def sum(self, block: Block[Out], rows: Points, cols: Points) -> Out:
        """Evaluate the one block there is."""
        return block(rows, cols)


class Tiled(AbstractPairs):
    """Blocks of ``rows`` x ``cols`` pairs, one after another: O(n d + tile) memory, any n.

    Columns are summed in a scan, rows are mapped over; a ragged remainder of either is one more call.

    >>> import jax.numpy as jnp
    >>> from polystein import Points
    >>> points = Points.of(jnp.arange(7.0)[:, None], jnp.zeros((7, 1)))
    >>> Tiled(rows=2, cols=3).sum(lambda rows, cols: (rows.x * cols.x.T).sum(1), points, points).tolist()
    [0.0, 21.0, 42.0, 63.0, 84.0, 105.0, 126.0]
    """

    rows: int = eqx.field(static=True, converter=_checks.whole("rows", least=1, example=32), default=32)
    cols: int = eqx.field(static=True, converter=_checks.whole("cols", least=1, example=4096), default=4096)

    def sum(self, block: Block[Out], rows: Points, cols: Points) -> Out:
        """Sum block by block."""
        whole, rest = _split(cols, self.cols)

        def over_columns(some_rows: Points) -> Out:
            parts = [block(some_rows, rest)] if rest.x.shape[0] else []
            if whole.x.shape[0]:
                first, others = jax.tree.map(lambda a: a[0], whole), jax.tree.map(lambda a: a[1:], whole)
                start = block(some_rows, first)
                add = lambda total, part: (jax.tree.map(jnp.add, total, block(some_rows, part)), None)
                parts.append(lax.scan(add, start, others)[0] if others.x.shape[0] else start)
            return parts[0] if len(parts) == 1 else jax.tree.map(jnp.add, *parts)

        whole_rows, rest_rows = _split(rows, self.rows)
        outs = []
        if whole_rows.x.shape[0]:
            mapped = lax.map(over_columns, whole_rows)
            outs.append(jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), mapped))
        if rest_rows.x.shape[0]:
            outs.append(over_columns(rest_rows))
        return outs[0] if len(outs) == 1 else jax.tree.map(lambda *a: jnp.concatenate(a), *outs)


class Compiled(AbstractPairs):
    """One compiled pass for Gaussian kernels on a CPU, where polystein-native is installed; all else as ``otherwise`` has it.

    Numbers are those of ``otherwise`` to rounding, and derivatives are its derivatives.

    >>> from polystein import RBF, Bank
    >>> from polystein.methods import Swarm
    >>> points = Points.of(jnp.arange(3.0)[:, None], -jnp.arange(3.0)[:, None])
    >>> print(Swarm(points, Compiled()).drift(RBF(2.0)).round(4))
    [[-0.5848]
     [-0.7377]
     [-0.5764]]
    """

    otherwise: AbstractPairs = eqx.field(default_factory=Tiled)

    def sum(self, block: Block[Out], rows: Points, cols: Points) -> Out:
        """Sum in one pass what can be."""
        if not (_gaussians(block) and _one_dtype(rows, cols) and native_package()):
            return self.otherwise.sum(block, rows, cols)
        arguments: Any = (block, self.otherwise, rows, cols)
        if all(backend.platform == "cpu" for backend in jax.extend.backend.backends().values()):
            return _in_one_pass(*arguments)
        return lax.platform_dependent(*arguments, cpu=_in_one_pass, default=_by_blocks)


as_pairs = _checks.instance("a way to sum over pairs", AbstractPairs, example="Dense() or Tiled()")


def default_pairs(n: int) -> AbstractPairs:
    """Compiled where that can be; else dense while the temporaries of all pairs fit in a processor's cache, tiles beyond."""
    return Compiled(Dense() if n <= 256 else Tiled())


@functools.cache
def native_package() -> ModuleType | None:
    """polystein-native, if it is installed."""
    try:
        native = importlib.import_module("polystein_native")
    except ModuleNotFoundError:
        return None
    if native.INTERFACE != INTERFACE:
        raise ImportError(
            f"polystein-native with interface {native.INTERFACE}; expected {INTERFACE}; pip install ./native again, or "
            "pip uninstall polystein-native"
        )
    return native


class _Gaussians(NamedTuple):
    """exp(-r^2 / h_i), h ascending by octaves or as it comes, and their weights in the mixture that drives."""

    h: Float[Array, "m"]
    w: Float[Array, "m"]
    octaves: bool


def _gaussians(block: Any) -> _Gaussians | None:
    """The kernels of a sum as Gaussian ones, if that is what they are."""
    if not isinstance(block, Summand):
        return None
    kernel: AbstractKernel = block.kernel
    if isinstance(kernel, RBF) and not block.sums:
        return _Gaussians(kernel.h[None], jnp.ones(1), True)
    if isinstance(kernel, Mixture) and len(kernel.bank.families) == 1:
        (family,) = kernel.bank.families
        if isinstance(family, Octaves):
            return _Gaussians(family.bandwidths, kernel.w, True)
        if isinstance(family, Alike) and isinstance(family.kernels, RBF):
            return _Gaussians(family.kernels.h, kernel.w, False)
    return None


def _one_dtype(rows: Points, cols: Points) -> bool:
    return len({a.dtype for a in (rows.x, rows.meeting, cols.x, cols.met, cols.s)}) == 1


def _by_blocks(block: Summand, otherwise: AbstractPairs, rows: Points, cols: Points) -> Any:
    return otherwise.sum(block, rows, cols)


@jax.custom_jvp
def _in_one_pass(block: Summand, otherwise: AbstractPairs, rows: Points, cols: Points) -> Any:
    """What ``block`` sums to, by polystein-native."""
    native, gaussians = native_package(), _gaussians(block)
    if native is None or gaussians is None:
        return otherwise.sum(block, rows, cols)
    dtype = rows.x.dtype
    h, w = gaussians.h.astype(dtype), gaussians.w.astype(dtype)
    strength = 2 if block.balance is None else 2 * (1 + block.balance.astype(dtype))
    drift, *sums = native.sweep(
        rows.x,
        rows.meeting,
        rows.id.astype(jnp.int32),
        cols.x,
        cols.met,
        cols.s,
        cols.id.astype(jnp.int32),
        jnp.ones(cols.x.shape[0], bool) if cols.live is None else cols.live,
        h,
        w,
        -strength * w / h,
        octaves=gaussians.octaves,
        drift=block.drift,
        sums=block.sums,
    )
    return drift if block.drift else None, tuple(sums) if block.sums else None


@_in_one_pass.defjvp
def _derivatives(primals: tuple, tangents: tuple) -> tuple:
    return jax.jvp(_by_blocks, primals, tangents)


def _split(points: Points, size: int) -> tuple[Points, Points]:
    """Whole blocks stacked along a new axis, and what is left."""
    blocks = points.x.shape[0] // size
    whole = jax.tree.map(lambda a: a[: blocks * size].reshape(blocks, size, *a.shape[1:]), points)
    return whole, jax.tree.map(lambda a: a[blocks * size :], points)


def over_unordered(block: Callable[[T, T], Out], items: T, pads: T, *, size: int = 256) -> Out:
    """Sum a symmetric block over all pairs of items, each unordered pair of blocks once: half the work, no n x n matrix.

    With an odd number b of blocks, block r meets blocks r, r + 1, ..., r + (b - 1) / 2 round the circle; together these are
    each unordered pair of blocks once. ``items`` is a tree of arrays with the items along their leading axes; ``block`` takes
    two blocks and returns a tree of sums over their pairs. ``pads``, of which at most b - 1 are needed, fill up the last
    block; ``block`` must count them for nothing.

    >>> import jax.numpy as jnp
    >>> x = jnp.arange(7.0)
    >>> over_unordered(lambda a, b: jnp.sum(a[:, None] * b[None, :]), x, jnp.zeros(4), size=2).item()  # (0 + 1 + ... + 6)^2
    441.0
    """
    n = jax.tree.leaves(items)[0].shape[0]
    blocks = 1
    while -(-n // blocks) > size:
        blocks += 2
    length = -(-n // blocks)
    filled = jax.tree.map(lambda a, pad: jnp.concatenate([a, pad[: blocks * length - n]]), items, pads)
    stacked = jax.tree.map(lambda a: a.reshape(blocks, length, *a.shape[1:]), filled)
    at = lambda r: jax.tree.map(lambda a: a[r], stacked)
    with_itself = lambda r: block(at(r), at(r))
    if blocks == 1:
        return with_itself(0)
    half = (blocks - 1) // 2

    def add(total: Out, k: Int[Array, ""]) -> tuple[Out, None]:
        r, step = k // half, 1 + k % half
        part = block(at(r), at((r + step) % blocks))
        return jax.tree.map(lambda a, b: a + 2 * b, total, part), None

    own = lax.scan(lambda total, r: (jax.tree.map(jnp.add, total, with_itself(r)), None), with_itself(0), jnp.arange(1, blocks))
    return lax.scan(add, own[0], jnp.arange(blocks * half))[0]
