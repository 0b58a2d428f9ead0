r"""Curvature of a log density at the particles, as positive definite matrices Q = blockdiag_b (A_b kron B_b), and their roots.

A parameter vector is a row of blocks; a block of shape (a, b), such as a layer's weights, has the Kronecker product of an a x a
and a b x b matrix, and one of shape (a,) an a x a matrix alone. A single block of all d parameters is a full matrix.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein import _checks
from polystein._types import Points, Scalar, Vector

Shapes = tuple[tuple[int, ...], ...]


class Blocks(eqx.Module):
    """A_b and B_b for each block; leading axes for several such matrices."""

    left: list[Float[Array, "*n _a _a"]]
    right: list[Float[Array, "*n _b _b"]]

    @staticmethod
    def full(matrix: Float[Array, "*n d d"]) -> Blocks:
        """One block of all parameters."""
        return Blocks([matrix], [jnp.ones((*matrix.shape[:-2], 1, 1), matrix.dtype)])

    def roots(self) -> Roots:
        """Symmetric roots of every matrix."""
        pairs = [[_root(a) for a in side] for side in (self.left, self.right)]
        return Roots(*([pair[k] for pair in side] for k in range(3) for side in pairs))


class Roots(eqx.Module):
    """L = blockdiag(A kron B) with L L' = Q: symmetric roots of the factors, their inverses, and half their log determinants.

    Products alone: triangular solves of many small systems side by side are slow on a CPU.
    """

    left: list[Float[Array, "*n _a _a"]]
    right: list[Float[Array, "*n _b _b"]]
    left_inverse: list[Float[Array, "*n _a _a"]]
    right_inverse: list[Float[Array, "*n _b _b"]]
    left_volume: list[Float[Array, "*n"]]
    right_volume: list[Float[Array, "*n"]]

    def whiten(self, x: Vector) -> Vector:
        """L'x: Euclidean distances of these are distances |x - y|_Q."""
        return _each(self.left, self.right, x)

    def scores(self, s: Vector) -> Vector:
        """L^-1 s: the scores in those coordinates."""
        return _each(self.left_inverse, self.right_inverse, s)

    def back(self, v: Vector) -> Vector:
        """L^-T v: a displacement in those coordinates, in the coordinates of x."""
        return _each(self.left_inverse, self.right_inverse, v)

    def lift(self, z: Vector) -> Vector:
        """L z: with ``whiten``, Q x."""
        return _each(self.left, self.right, z)

    @property
    def log_volume(self) -> Scalar:
        """log det L."""
        each = zip(self.left, self.right, self.left_volume, self.right_volume, strict=True)
        return sum((b.shape[0] * va + a.shape[0] * vb for a, b, va, vb in each), jnp.zeros(()))


def _each(left: list[Array], right: list[Array], v: Vector) -> Vector:
    """Every block of v as a matrix M: A M B, for symmetric A and B."""
    parts, start = [], 0
    for a, b in zip(left, right, strict=True):
        size = a.shape[0] * b.shape[0]
        parts.append((a @ v[start : start + size].reshape(a.shape[0], b.shape[0]) @ b).ravel())
        start += size
    return jnp.concatenate(parts)


def _root(m: Float[Array, "*n a a"]) -> tuple[Array, Array, Array]:
    """The symmetric root of a positive definite matrix, its inverse, and its log determinant."""
    values, vectors = jnp.linalg.eigh(m)
    root = jnp.sqrt(jnp.maximum(values, jnp.finfo(m.dtype).eps * values[..., -1:]))
    made = lambda diagonal: (vectors * diagonal[..., None, :]) @ jnp.swapaxes(vectors, -1, -2)
    return made(root), made(1 / root), jnp.sum(jnp.log(root), -1)


class AbstractCurvature(eqx.Module):
    """Positive definite matrices at the particles, by their roots."""

    def init(self, x: Float[Array, "n d"]) -> Any:
        """What is remembered between steps: nothing."""
        del x

    @abstractmethod
    def roots(self, points: Points, memory: Any, *, each: bool) -> tuple[Roots, Any]:
        """The root of their mean over the particles that take part, or of ``each``, and what to remember."""


class Held(AbstractCurvature):
    """Roots that were computed elsewhere: of one matrix, or of one for each particle."""

    given: Roots

    def roots(self, points: Points, memory: None, *, each: bool) -> tuple[Roots, None]:
        """As they were."""
        return self.given, None


class AbstractEstimated(AbstractCurvature):
    """Curvature estimated at every step, from the scores or from the density itself."""

    damping: eqx.AbstractVar[Scalar]

    @abstractmethod
    def estimate(self, points: Points, memory: Any) -> tuple[Blocks, Any]:
        """A positive semidefinite matrix for each particle, and what to remember."""

    def roots(self, points: Points, memory: Any, *, each: bool) -> tuple[Roots, Any]:
        """Of the damped matrices."""
        blocks, memory = self.estimate(points, memory)
        if not each:
            live = jnp.ones(points.x.shape[0]) if points.live is None else points.live
            blocks = jax.tree.map(lambda a: jnp.tensordot(live.astype(a.dtype), a, 1) / points.count, blocks)
        return damped(blocks, self.damping).roots(), memory


def damped(blocks: Blocks, damping: Scalar) -> Blocks:
    """Every factor plus ``damping`` times its diagonal (Marquardt), which respects the units of each parameter.

    Where the diagonal vanishes, the mean of it stands in.
    """

    def add(m: Float[Array, "a a"]) -> Float[Array, "a a"]:
        diagonal = jnp.diagonal(m)
        level = jnp.mean(diagonal)
        diagonal = jnp.where(diagonal > 0, diagonal, jnp.where(level > 0, level, 1))
        if m.shape[0] == 1:  # a number only scales its block
            return diagonal[None]
        return m + damping.astype(m.dtype) * jnp.diag(diagonal)

    return jax.tree.map(jnp.vectorize(add, signature="(a,a)->(a,a)"), blocks)


class Given(AbstractEstimated):
    """One matrix for all particles and steps.

    >>> Given(jnp.diag(jnp.array([1.0, 4.0]))).estimate(Points.of(jnp.ones((3, 2)), jnp.ones((3, 2))), None)[0].left[0].shape
    (3, 2, 2)
    """

    matrix: Float[Array, "d d"] = eqx.field(converter=_checks.finite("matrix"))
    damping: Scalar = eqx.field(converter=_checks.nonnegative("damping"), default=0.0, kw_only=True)

    def estimate(self, points: Points, memory: None) -> tuple[Blocks, None]:
        """The matrix."""
        n, d = points.x.shape
        if self.matrix.shape != (d, d):
            raise ValueError(
                f"matrix of shape {self.matrix.shape} for particles of {d} dimensions; expected ({d}, {d}); "
                "give one row and column per dimension"
            )
        return Blocks.full(jnp.broadcast_to(self.matrix.astype(points.x.dtype), (n, d, d))), None


class Hessian(AbstractEstimated):
    """-grad grad log p at each particle, negative eigenvalues turned positive.

    **Arguments:**

    - ``log_density``: of flat vectors, such as ``target.log_density``.
    - ``damping``: how much of the diagonal is added.
    """

    log_density: Callable[[Vector], Scalar] = eqx.field(
        converter=_checks.function("log_density", example="Hessian(target.log_density)")
    )
    damping: Scalar = eqx.field(converter=_checks.positive("damping"), default=1e-2, kw_only=True)

    def estimate(self, points: Points, memory: None) -> tuple[Blocks, None]:
        """By forward over reverse differentiation."""

        def positive(x: Vector) -> Float[Array, "d d"]:
            values, vectors = jnp.linalg.eigh(-jax.hessian(self.log_density)(x))
            return (vectors * jnp.abs(values)[None]) @ vectors.T

        return Blocks.full(jax.vmap(positive)(points.x)), None


class Average(eqx.Module):
    """A running average of matrices, and how much of it has come in."""

    blocks: Blocks
    filled: Scalar


class AbstractOfScores(AbstractEstimated):
    """From the scores alone: E s s' is the Fisher information, which is -E grad grad log p under p.

    ``memory`` in [0, 1) is the share of the running average that is kept at each step.
    """

    memory: eqx.AbstractVar[Scalar]

    @abstractmethod
    def now(self, s: Vector) -> Blocks:
        """The matrix of one score."""

    def init(self, x: Float[Array, "n d"]) -> Average:
        """No past."""
        shapes = jax.eval_shape(jax.vmap(self.now), x)
        return Average(jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), shapes), jnp.zeros((), x.dtype))

    def estimate(self, points: Points, memory: Average) -> tuple[Blocks, Average]:
        """The average with the scores of this step."""
        fresh = 1 - self.memory.astype(points.x.dtype)
        blocks = jax.tree.map(lambda old, new: old + fresh * (new - old), memory.blocks, jax.vmap(self.now)(points.s))
        after = Average(blocks, memory.filled + fresh * (1 - memory.filled))
        return jax.tree.map(lambda a: a / after.filled, blocks), after


class Fisher(AbstractOfScores):
    """A full matrix from the scores of each particle.

    >>> Fisher().now(jnp.array([1.0, 2.0])).left[0].tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """

    damping: Scalar = eqx.field(converter=_checks.positive("damping"), default=1e-1, kw_only=True)
    memory: Scalar = eqx.field(converter=_checks.share("memory"), default=0.9, kw_only=True)

    def now(self, s: Vector) -> Blocks:
        """s s'."""
        return Blocks.full(jnp.outer(s, s))


class Kronecker(AbstractOfScores):
    """A Kronecker product for each block: of G G' / |G| and G' G / |G|, G the block of the score, |G| its Frobenius norm.

    Both factors have the trace |G|, so that the product has that of vec(G) vec(G)'.

    **Arguments:** ``shapes``: of the blocks, in order of the flat vector; () and (a,) are blocks without a second factor.

    >>> blocks = Kronecker(shapes=((2, 3), (2,))).now(jnp.arange(8.0))
    >>> [a.shape for a in blocks.left], [b.shape for b in blocks.right]
    ([(2, 2), (2, 2)], [(3, 3), (1, 1)])
    """

    shapes: Shapes = eqx.field(static=True)
    damping: Scalar = eqx.field(converter=_checks.positive("damping"), default=1e-1, kw_only=True)
    memory: Scalar = eqx.field(converter=_checks.share("memory"), default=0.95, kw_only=True)

    def now(self, s: Vector) -> Blocks:
        """By block."""
        total = sum(map(math.prod, self.shapes))
        if total != s.shape[0]:
            raise ValueError(
                f"shapes={self.shapes} make {total} parameters; expected {s.shape[0]}; give the shape of every block"
            )
        left, right, start = [], [], 0
        for shape in self.shapes:
            size = math.prod(shape)
            g = s[start : start + size].reshape(shape if len(shape) == 2 else (size, 1))
            norm = jnp.sqrt(jnp.sum(g**2))
            norm = jnp.where(norm > 0, norm, 1)
            left.append(g @ g.T / norm)
            right.append(g.T @ g / norm)
            start += size
        return Blocks(left, right)
