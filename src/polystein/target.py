"""What is sampled: a log density over flat vectors u of real numbers, its score, and the way back to the user's tree.

    s(u) = grad_u [ log p(b(u)) + log|det db/du| ],   b the bijections of constrained parameters

A target knows how to give the score of many particles at a step of a run: exactly, from a minibatch (unbiased), from two
independent half-batches (so that products of scores are unbiased too), tempered, or from a score function alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from polystein import _checks, _functions
from polystein._types import Key, Points, Scalar, Vector, float_rows
from polystein.batches import batch_rows
from polystein.bijections import AbstractBijection, of_path, refuse_unknown


class AbstractDensity(eqx.Module):
    """A density over flat vectors, by what can be computed of it."""

    @abstractmethod
    def log_density(self, u: Vector) -> Scalar:
        """log p(u) up to a constant; nan where only a score is known."""

    @abstractmethod
    def points(self, u: Float[Array, "n d"], key: Key | None, step: Int[Array, ""] | int) -> Points:
        """The particles with their scores at a step of a run."""


class Exact(AbstractDensity):
    """A log density that is evaluated in full; ``forward``: differentiated forwards, at the price of d evaluations."""

    log_p: Callable[[Vector], Scalar]
    forward: bool = eqx.field(static=True, default=False)

    def log_density(self, u: Vector) -> Scalar:
        """log p(u), in the dtype of u."""
        return jnp.asarray(self.log_p(u)).astype(u.dtype)

    def points(self, u: Float[Array, "n d"], key: Key | None, step: Int[Array, ""] | int) -> Points:
        """One gradient a particle."""
        return Points.of(u, jax.vmap(lambda v: gradient(self.log_density, v, forward=self.forward))(u))


class ScoreOnly(AbstractDensity):
    """A density known by its score function alone."""

    score: Callable[[Vector], Vector]

    def log_density(self, u: Vector) -> Scalar:
        """Unknown."""
        return jnp.full((), jnp.nan, u.dtype)

    def points(self, u: Float[Array, "n d"], key: Key | None, step: Int[Array, ""] | int) -> Points:
        """The given scores."""
        return Points.of(u, jax.vmap(lambda v: jnp.asarray(self.score(v)).astype(v.dtype))(u))


class Minibatched(AbstractDensity):
    """log p(u) = prior(u) + sum over N rows of likelihood(u, row), of which a step sees ``batch`` rows, scaled by N / batch.

    Every epoch goes once through the rows in an order of its own; with ``halves`` the batch is two halves from two
    independent orders (erratum 14).
    """

    log_prior: Callable[[Vector], Scalar]
    log_likelihood: Callable[[Vector, Any], Array]
    data: Any
    batch: int = eqx.field(static=True)
    halves: bool = eqx.field(static=True)
    forward: bool = eqx.field(static=True, default=False)

    @property
    def rows(self) -> int:
        """N."""
        return jax.tree.leaves(self.data)[0].shape[0]

    def log_density(self, u: Vector) -> Scalar:
        """With all rows."""
        return self._prior(u) + self._likelihood(u, self.data)

    def points(self, u: Float[Array, "n d"], key: Key | None, step: Int[Array, ""] | int) -> Points:
        """Scores from this step's rows, the same rows for all particles."""
        slope = lambda log_p: jax.vmap(lambda v: gradient(log_p, v, forward=self.forward))(u)
        if key is None:
            return Points.of(u, slope(self.log_density))
        prior = slope(self._prior)
        size = self.batch // 2 if self.halves else self.batch
        orders = jax.random.split(key, 2) if self.halves else [key]
        found = []
        for order in orders:
            rows = batch_rows(order, step, size, self.rows)
            some = jax.tree.map(lambda a, rows=rows: a[rows], self.data)
            pull = slope(lambda v, some=some: self._likelihood(v, some))
            found.append(prior + self.rows / size * pull)
        if not self.halves:
            return Points.of(u, found[0])
        return Points.of(u, (found[0] + found[1]) / 2, halves=(found[0], found[1]))

    def _prior(self, u: Vector) -> Scalar:
        return jnp.asarray(self.log_prior(u)).astype(u.dtype)

    def _likelihood(self, u: Vector, rows: Any) -> Scalar:
        return jnp.sum(jnp.asarray(self.log_likelihood(u, rows))).astype(u.dtype)


class Tempered(AbstractDensity):
    """p^beta: flatter than p for beta < 1, sharper for beta > 1."""

    density: AbstractDensity
    beta: Scalar

    def log_density(self, u: Vector) -> Scalar:
        """beta log p(u)."""
        return self.beta.astype(u.dtype) * self.density.log_density(u)

    def points(self, u: Float[Array, "n d"], key: Key | None, step: Int[Array, ""] | int) -> Points:
        """beta s, in every estimate of s."""
        return scaled_scores(self.density.points(u, key, step), lambda s: self.beta.astype(s.dtype) * s)


class Tree(eqx.Module):
    """Flat vectors u as the user's constrained tree: unravel, then each leaf through its bijection."""

    unravel: Callable[[Vector], list[Array]]
    bijections: tuple[AbstractBijection, ...]
    structure: Any = eqx.field(static=True)

    def __call__(self, u: Vector) -> tuple[Any, Scalar]:
        """The tree and the log-Jacobian."""
        pairs = [b.forward(leaf) for b, leaf in zip(self.bijections, self.unravel(u), strict=True)]
        total = sum((jacobian.astype(u.dtype) for _, jacobian in pairs), jnp.zeros((), u.dtype))
        return jax.tree.unflatten(self.structure, [value for value, _ in pairs]), total

    def inverse(self, value: Any) -> Vector:
        """The flat vector behind a tree; not finite where it is outside."""
        leaves = zip(self.bijections, jax.tree.leaves(value), strict=True)
        return ravel_pytree([bijection.inverse(leaf) for bijection, leaf in leaves])[0]


class Target(eqx.Module):
    """A density over flat vectors of length ``dim``, a first guess, and the way back to the user's tree.

    ``Target.of(log_density, like)``, ``Target.minibatched(...)`` and ``Target.of_score(score, like)`` make one;
    ``target.tempered(beta)`` changes its temperature.
    """

    density: AbstractDensity
    tree: Tree
    start: Float[Array, "d"]

    @staticmethod
    def of(log_density: Callable[[Any], Scalar], like: Any, *, constrain: Any = None) -> Target:
        """The target of a log density that takes trees like ``like``.

        **Arguments:**

        - ``log_density``: log p up to a constant; takes a tree of arrays, returns a scalar; written in JAX.
        - ``like``: an example of that tree (arrays of floats, or ``jax.ShapeDtypeStruct``): its structure and a first guess.
        - ``constrain``: bijections for parameters that are not free, such as ``{"sigma": ps.Positive()}``; the density gets
          constrained values, and the log-Jacobian is added here.

        >>> import jax.numpy as jnp
        >>> target = Target.of(lambda p: -p["a"] ** 2 - jnp.sum(p["b"] ** 2), {"a": 0.0, "b": jnp.zeros(2)})
        >>> target.dim, target.score(jnp.ones((1, 3))).tolist()
        (3, [[-2.0, -2.0, -2.0]])
        """
        _functions.is_function("log_density", log_density)
        tree, start = _tree(like, constrain)
        _functions.scalar_function("log_density", log_density, tree(start)[0])

        def log_p(u: Vector) -> Scalar:
            value, log_jacobian = tree(u)
            return log_density(value) + log_jacobian

        return Target(Exact(log_p, _functions.forward_only(Exact(log_p).log_density, start)), tree, start)

    @staticmethod
    def minibatched(
        log_prior: Callable[[Any], Scalar],
        log_likelihood: Callable[[Any, Any], Array],
        data: Any,
        like: Any,
        *,
        batch: int,
        halves: bool = False,
        constrain: Any = None,
    ) -> Target:
        """log p = log_prior(p) + sum over the rows of ``data`` of log_likelihood(p, rows), from ``batch`` rows at a step.

        **Arguments:**

        - ``log_prior``: takes a tree like ``like``, returns a scalar.
        - ``log_likelihood``: takes the tree and some rows of the data, returns one number per row, or their sum.
        - ``data``: a tree of arrays with the rows along their leading axes; it is moved to the device once.
        - ``batch``: rows a step; only the likelihood is scaled, by N / batch.
        - ``halves``: two independent half-batches a step, for discrepancies without bias (``TwoBatch``).

        >>> import jax, jax.numpy as jnp
        >>> rows = jnp.arange(6.0)
        >>> target = Target.minibatched(lambda m: 0.0, lambda m, y: -0.5 * (y - m) ** 2, rows, 0.0, batch=6)
        >>> float(target.score(jnp.zeros((1, 1)), jax.random.key(0))[0, 0])
        15.0
        """
        tree, start = _tree(like, constrain)
        data = jax.tree.map(jnp.asarray, data)
        batch = _functions.batch_size(batch, data, halves)
        value = tree(start)[0]
        _functions.scalar_function("log_prior", log_prior, value)
        _functions.likelihood_function(log_likelihood, value, jax.tree.map(lambda a: a[:batch], data), batch)

        def prior(u: Vector) -> Scalar:
            value, log_jacobian = tree(u)
            return log_prior(value) + log_jacobian

        make = partial(Minibatched, prior, lambda u, rows: log_likelihood(tree(u)[0], rows), data, batch, halves)
        return Target(make(_functions.forward_only(make().log_density, start)), tree, start)

    @staticmethod
    def of_score(score: Callable[[Any], Any], like: Any) -> Target:
        """The target of a score function: takes a tree like ``like``, returns grad log p as a tree of the same shapes.

        >>> import jax.numpy as jnp
        >>> Target.of_score(lambda x: -x, jnp.zeros(2)).score(jnp.ones((1, 2))).tolist()
        [[-1.0, -1.0]]
        """
        tree, start = _tree(like, None)
        _functions.score_function(score, tree(start)[0])
        return Target(ScoreOnly(lambda u: ravel_pytree(score(tree(u)[0]))[0]), tree, start)

    def tempered(self, beta: float | Scalar) -> Target:
        """The target of p^beta.

        >>> import jax.numpy as jnp
        >>> target = Target.of(lambda x: -0.5 * x**2, 0.0)
        >>> float(target.tempered(0.5).score(jnp.ones((1, 1)))[0, 0])
        -0.5
        """
        return Target(Tempered(self.density, _checks.positive("beta")(beta)), self.tree, self.start)

    @property
    def dim(self) -> int:
        """d, the length of the flat vector."""
        return self.start.shape[0]

    def log_density(self, u: Vector) -> Scalar:
        """log p(u) up to a constant, log-Jacobians included."""
        return self.density.log_density(u)

    def score(self, x: Float[Array, "n d"], key: Key | None = None) -> Float[Array, "n d"]:
        """s(x_i) = grad log p(x_i) for every row; minibatched: of all rows, or of a first batch where a key is given."""
        return self.points(x, key, 0).s

    def points(self, x: Float[Array, "n d"], key: Key | None, step: Int[Array, ""] | int) -> Points:
        """Particles with their scores at a step of a run."""
        x = float_rows(x, "x")
        if x.shape[1] != self.dim:
            raise ValueError(
                f"x of shape {x.shape} for a density of {self.dim} numbers; expected (n, {self.dim}); "
                "give one row per particle, flat in the order of like"
            )
        return self.density.points(x, key, step)

    def constrained(self, u: Vector) -> Any:
        """The user's tree at a flat vector."""
        return self.tree(u)[0]

    def unconstrained(self, value: Any) -> Vector:
        """The flat vector at a tree of the user's values; not finite where these are outside of what ``constrain`` allows."""
        return self.tree.inverse(value)


def gradient(log_p: Callable[[Vector], Scalar], u: Vector, *, forward: bool = False) -> Vector:
    """grad log p(u); nan where log p itself is not finite: a slope of a density that is not there drives nobody.

    ``forward`` takes one derivative a coordinate, for functions that cannot be differentiated backwards.

    >>> import jax.numpy as jnp
    >>> gradient(lambda u: jnp.sum(jnp.log(u)), jnp.array([-1.0])).tolist()
    [nan]
    """
    if forward:
        along = lambda e: jax.jvp(log_p, (u,), (e,))
        value, slope = jax.vmap(along, out_axes=(None, 0))(jnp.eye(u.shape[0], dtype=u.dtype))
    else:
        value, slope = jax.value_and_grad(log_p)(u)
    return jnp.where(jnp.isfinite(value), slope, jnp.nan)


def scaled_scores(points: Points, change: Callable[[Float[Array, "n d"]], Float[Array, "n d"]]) -> Points:
    """The same points with every estimate of their scores changed by a linear map."""
    halves = (None, None) if points.left is None or points.right is None else (change(points.left), change(points.right))
    return Points(points.x, change(points.s), points.id, *halves, points.live)


def _tree(like: Any, constrain: Any) -> tuple[Tree, Float[Array, "d"]]:
    like = _checks.density_tree(like)
    refuse_unknown(constrain, like)
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    bijections = tuple(of_path(constrain, path) for path, _ in leaves)
    free = []
    for bijection, (_, leaf) in zip(bijections, leaves, strict=True):
        zero = jnp.zeros(bijection.free_shape(leaf.shape), leaf.dtype)
        guess = bijection.inverse(leaf)
        free.append(jnp.where(jnp.all(jnp.isfinite(guess)), guess, zero))
    start, unravel = ravel_pytree(free)
    return Tree(unravel, bijections, structure), start
