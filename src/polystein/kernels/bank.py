r"""A bank of m kernels, and its mixtures k_w = sum_i w_i k_i with w >= 0 (eq11).

Kernels of one class are stacked leaf by leaf and evaluated together; a ladder of Gaussian kernels whose bandwidths
differ by powers of two costs one exponential for all of them, for k_{h/2} = k_h^2.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import accumulate, groupby
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from polystein._checks import concrete, instance, kernel_scale, nonnegative, two_points, whole
from polystein._types import Points, Scalar, Vector
from polystein.kernels.base import AbstractKernel, AbstractRadial
from polystein.kernels.radial import RBF
from polystein.numerics import Tree, cast, every_digit
from polystein.stein import Jet, RadialJet, Tile, radial_drift, radial_stein, stein_of_pair

Out = TypeVar("Out")


class AbstractFamily(eqx.Module):
    """Several kernels of one kind, evaluated together."""

    @abstractmethod
    def __len__(self) -> int:
        """How many kernels."""

    @property
    @abstractmethod
    def stacked(self) -> AbstractKernel:
        """The kernels as one, with a leading axis on each hyper-parameter."""

    def each(self, f: Callable[[Any], Out]) -> Out:
        """f of every kernel, stacked along a leading axis, also where a kernel has no hyper-parameter to map over."""
        return eqx.filter_vmap(f, axis_size=len(self))(self.stacked)

    @property
    def radial(self) -> bool:
        """Whether a mixture of them is again a function of r^2."""
        return isinstance(self.stacked, AbstractRadial)

    @abstractmethod
    def profiles(self, r2: Float[Array, "*tile"]) -> RadialJet:
        """The profiles of radial kernels, with a leading axis of kernels."""

    @abstractmethod
    def stein(self, tile: Tile) -> Float[Array, "m a b"]:
        """u_p^i for every kernel and every pair."""

    def drifts(self, tile: Tile) -> Float[Array, "m a d"]:
        """The drift of every row under every kernel."""
        return self.each(lambda kernel: kernel.drift(tile))

    def meets_smoothly(self, x: Vector, size: Vector) -> Bool[Array, ""]:
        """Whether every kernel does, where tried at x."""
        return jnp.all(self.each(lambda kernel: kernel.meets_smoothly(x, size)))


class Alike(AbstractFamily):
    """Kernels of one class and one shape of hyper-parameters, stacked and vmapped."""

    kernels: AbstractKernel
    size: int = eqx.field(static=True)

    @staticmethod
    def of(*kernels: AbstractKernel) -> Alike:
        """Stack the kernels leaf by leaf."""
        arrays, rest = zip(*(eqx.partition(k, eqx.is_array) for k in kernels), strict=True)
        return Alike(eqx.combine(jax.tree.map(lambda *leaves: jnp.stack(leaves), *arrays), rest[0]), len(kernels))

    def __len__(self) -> int:
        return self.size

    @property
    def stacked(self) -> AbstractKernel:
        """As they are kept."""
        return self.kernels

    def profiles(self, r2: Float[Array, "*tile"]) -> RadialJet:
        """One profile per kernel."""
        return cast(self, r2.dtype).each(lambda kernel: kernel.profile(r2))

    def stein(self, tile: Tile) -> Float[Array, "m a b"]:
        """One Stein matrix per kernel."""
        return self.each(lambda kernel: kernel.stein(tile))


class Octaves(AbstractFamily):
    """RBF kernels with h_i = h_max / 2^(m-1-i), ascending: one exponential and m - 1 squarings.

    Near 1 the squaring goes through e = k - 1 = expm1(-r^2/h), e <- e (2 + e), where squaring k itself would double its
    relative error at each step; below 1/2 it is k that is squared, for e would never get past the float next to -1. Together
    they keep k, k r^2/h and their kin within 1e-6 in float32.
    """

    h_max: Scalar = eqx.field(converter=kernel_scale("h_max"))
    size: int = eqx.field(static=True, converter=whole("size", least=1))

    def __check_init__(self) -> None:
        least = concrete(self.bandwidths[0])
        if least is not None and not least > 0:
            raise ValueError(
                f"{self.size} octaves below h={self.h_max} end at h=0; expected positive bandwidths in {self.h_max.dtype}; "
                "try fewer octaves"
            )

    def __len__(self) -> int:
        return self.size

    @property
    def bandwidths(self) -> Float[Array, "m"]:
        """h_i, ascending."""
        return self.h_max * 2.0 ** jnp.arange(1 - self.size, 1)

    @property
    def stacked(self) -> AbstractKernel:
        """The same kernels, each by its own exponential."""
        return eqx.filter_vmap(RBF)(self.bandwidths)

    def profiles(self, r2: Float[Array, "*tile"]) -> RadialJet:
        """k, -k/h and r^2 k / h^2 for each h."""
        e = jnp.expm1(-r2 / self.h_max.astype(r2.dtype))
        ladder = [1 + e]
        for _ in range(self.size - 1):
            e = e * (2 + e)
            ladder.append(jnp.where(ladder[-1] < 0.5, ladder[-1] ** 2, 1 + e))
        k = jnp.stack(ladder[::-1])
        h = self.bandwidths.astype(r2.dtype).reshape(-1, *(1 for _ in r2.shape))
        return RadialJet(k, -k / h, (r2[None] / h) * k / h)

    def stein(self, tile: Tile) -> Float[Array, "m a b"]:
        """One Stein matrix per bandwidth."""
        return jax.vmap(lambda jet: radial_stein(jet, tile))(self.profiles(tile.r2))


class Bank(eqx.Module):
    """m kernels in a fixed order, of one or several families.

    **Arguments:** the kernels. ``Bank.dyadic(h, low, high)`` is the ladder of RBF kernels h 2^low .. h 2^high that the
    paper uses (erratum 28), at the price of little more than one of them.

    >>> from polystein.kernels import IMQ, RBF, Bank
    >>> bank = Bank(RBF(1.0), RBF(4.0), IMQ())
    >>> len(bank), bank[1].h.item(), len(Bank.dyadic(1.0, -4, 5))
    (3, 4.0, 10)
    """

    families: tuple[AbstractFamily, ...]

    def __init__(self, *kernels: AbstractKernel | AbstractFamily):
        if not kernels:
            raise ValueError(
                "an empty bank has nothing to mix; expected at least one kernel; try Bank.dyadic(1.0) or Bank(RBF(1.0))"
            )
        families = []
        for signature, group in groupby(map(_member, kernels), _signature):
            members = list(group)
            families += members if signature is None else [Alike.of(*members)]
        self.families = tuple(families)

    @staticmethod
    def dyadic(h: Scalar | float = 1.0, low: int = -4, high: int = 5) -> Bank:
        """RBF kernels of bandwidths h 2^low, ..., h 2^high."""
        low, high = whole("low", example=-4)(low), whole("high", example=5)(high)
        if high < low:
            raise ValueError(f"a ladder from 2^{low} to 2^{high} has no rung; expected low <= high; try low={high}, high={low}")
        return Bank(octaves(kernel_scale("h")(h), low, high))

    def __len__(self) -> int:
        return sum(len(family) for family in self.families)

    def __getitem__(self, i: int) -> AbstractKernel:
        """The i-th kernel."""
        i = whole("kernel", example=0)(i)
        if not -len(self) <= i < len(self):
            raise IndexError(f"kernel {i} of a bank of {len(self)}; expected 0..{len(self) - 1}")
        place, ends = i % len(self), list(accumulate(map(len, self.families)))
        member = bisect_right(ends, place)
        family = self.families[member]
        at = place - ends[member] + len(family)
        return jax.tree.map(lambda leaf: leaf[at] if eqx.is_array(leaf) else leaf, family.stacked)

    def __iter__(self) -> Iterator[AbstractKernel]:
        return (self[i] for i in range(len(self)))

    @property
    def smooth(self) -> bool:
        """Whether every kernel admits the Stein operator in both arguments."""
        return all(family.stacked.smooth for family in self.families)

    def at(self, x: Float[Array, "n d"]) -> Bank:
        """The bank for particles x: itself. A placement (``bandwidth.py``) answers with a bank that fits them."""
        del x
        return self

    def mix(self, w: Float[Array, "m"]) -> Mixture:
        """k_w = sum_i w_i k_i, itself a kernel."""
        return Mixture(self, w)

    def stein(self, tile: Tile) -> Float[Array, "m a b"]:
        """u_p^i(y, x) for every kernel i and every pair of the tile."""
        return jnp.concatenate([family.stein(tile) for family in self.families])

    def diagonal(self, points: Points) -> Float[Array, "m n"]:
        """u_p^i(x, x) = k |s|^2 + 2 s.grad k + tr grad grad k at every point: the self-terms of a V-statistic.

        Where k is a function of r^2, its profile at 0 says all: k |s|^2 - 2 d phi'.
        """
        sy, sx = points.meeting, points.met

        def of(family: AbstractFamily) -> Float[Array, "f n"]:
            if not family.radial:
                return _pairwise(family, points, points)
            at_zero = jax.tree.map(lambda a: a[:, None], family.profiles(jnp.zeros((), sy.dtype)))
            return at_zero.value * jnp.sum(sy * sx, 1)[None] - 2 * at_zero.first * sy.shape[1] - 4 * at_zero.second

        return jnp.concatenate([of(family) for family in self.families])

    def stein_pairs(self, rows: Points, cols: Points) -> Float[Array, "m n"]:
        """u_p^i(y_j, x_j) for rows and columns taken one to one."""
        return jnp.concatenate([_pairwise(family, rows, cols) for family in self.families])

    def parts(self, w: Float[Array, "m"]) -> list[tuple[AbstractFamily, Float[Array, "f"]]]:
        """Each family with its share of the weights."""
        ends = accumulate(map(len, self.families))
        return [(family, w[end - len(family) : end]) for family, end in zip(self.families, ends, strict=True)]


as_bank = instance("a bank", Bank, example="Bank(RBF(1.0), IMQ()), or DyadicLadder().at(x) for a ladder")


class Mixture(AbstractKernel):
    """k_w(x, y) = sum_i w_i k_i(x, y), w >= 0: sums and scalings of kernels, and the paper's multiple kernel (eq11).

    Radial members are mixed first, so its drift costs two matrix products whatever m is.

    >>> import jax.numpy as jnp
    >>> float(Mixture(Bank.dyadic(1.0, 0, 1), jnp.array([1.0, 2.0]))(jnp.zeros(2), jnp.zeros(2)))
    3.0
    """

    bank: Bank = eqx.field(converter=as_bank, default_factory=Bank.dyadic)
    w: Float[Array, "m"] = eqx.field(converter=nonnegative("w"), default=(1.0,) * 10)

    def __check_init__(self) -> None:
        if self.w.shape != (len(self.bank),):
            m = len(self.bank)
            raise ValueError(
                f"weights of shape {self.w.shape} for {m} kernels; expected shape ({m},); try jnp.full({m}, {m}**-0.5)"
            )

    @property
    def smooth(self) -> bool:
        """As smooth as the bank."""
        return self.bank.smooth

    def meets_smoothly(self, x: Vector, size: Vector) -> Bool[Array, ""]:
        """Where every member does."""
        return jnp.all(jnp.stack([family.meets_smoothly(x, size) for family in self.bank.families]))

    def __call__(self, x: Vector, y: Vector) -> Scalar:
        """sum_i w_i k_i(x, y)."""
        two_points(x, y)
        return _total(_mixed(w, family.each(lambda k: k(x, y))) for family, w in self._parts(x))

    def jet(self, y: Vector, x: Vector) -> Jet:
        """The sum of the members' jets."""
        return _total(_mixed(w, family.each(lambda k: k.jet(y, x))) for family, w in self._parts(x))

    def stein(self, tile: Tile) -> Float[Array, "a b"]:
        """u_p^w = sum_i w_i u_p^i (MKSD)."""
        return _mixed(self.w.astype(tile.r2.dtype), self.bank.stein(tile))

    def drift(self, tile: Tile) -> Float[Array, "a d"]:
        """phi_w = sum_i w_i phi_i (Opt_phi_w_star), on a tile."""
        parts = self._parts(tile.r2)
        drifts = [_mixed(w, family.drifts(tile)) for family, w in parts if not family.radial]
        profiles = [_mixed(w, family.profiles(tile.r2)) for family, w in parts if family.radial]
        return _total([*drifts, radial_drift(_total(profiles), tile)] if profiles else drifts)

    def _parts(self, like: Array) -> list[tuple[AbstractFamily, Float[Array, "f"]]]:
        return cast(self.bank, like.dtype).parts(self.w.astype(like.dtype))


@every_digit
def _pairwise(family: AbstractFamily, rows: Points, cols: Points) -> Float[Array, "f n"]:
    """u_p^i(y_j, x_j) for the kernels of one family."""
    sy, sx = rows.meeting, cols.met

    def of(kernel: AbstractKernel) -> Float[Array, "n"]:
        one = lambda y, sy, x, sx: stein_of_pair(kernel.jet(y, x), sy, sx)
        return jax.vmap(one)(rows.x, sy, cols.x, sx)

    return cast(family, sy.dtype).each(of)


def octaves(h: Scalar, low: int, high: int) -> Octaves:
    """RBF kernels of bandwidths h 2^low, ..., h 2^high.

    >>> octaves(jnp.array(3.0), -1, 1).bandwidths.tolist()
    [1.5, 3.0, 6.0]
    """
    with np.errstate(over="ignore"):
        return Octaves(h * np.ldexp(np.ones((), h.dtype), high), high - low + 1)


_member = instance(
    "kernels, one by one",
    AbstractKernel,
    AbstractFamily,
    example="Bank(RBF(1.0), IMQ()), Function(f) for a plain function f, or DyadicLadder().at(x) for a ladder",
)


@every_digit
def _mixed(w: Float[Array, "f"], members: Tree) -> Tree:
    """sum_i w_i of every leaf, over its leading axis."""
    return jax.tree.map(lambda leaf: jnp.tensordot(w, leaf, 1), members)


def _total(trees: Iterable[Tree]) -> Tree:
    """The sum of trees, leaf by leaf."""
    return reduce(lambda a, b: jax.tree.map(jnp.add, a, b), trees)


def _signature(kernel: AbstractKernel | AbstractFamily) -> object:
    """Kernels with equal signatures can be stacked; a family stands for itself."""
    if isinstance(kernel, AbstractFamily):
        return None
    arrays, rest = eqx.partition(kernel, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    return structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves), tuple(map(id, jax.tree.leaves(rest)))
