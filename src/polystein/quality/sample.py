"""Draws of anybody's sampler as points in the free coordinates of a target, chain by chain, with their scores.

    x = b^-1(draw),   s = grad_x [ log p(b(x)) + log|det db/dx| ]

Scores belong to the coordinates the points are in: where parameters are constrained, both are of the free ones.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from polystein import _checks
from polystein.bijections import AbstractBijection, Interval, Positive, Real, UnitInterval
from polystein.posterior import Posterior, names_of
from polystein.quality.outside import arrays_of
from polystein.quality.refusals import refuse_unusable
from polystein.target import Target

BLOCK = 1024  # draws whose scores are computed at once
WORDS: dict[type[AbstractBijection], str] = {Real: "", Positive: "log ", UnitInterval: "logit ", Interval: "logit "}


class Sample(NamedTuple):
    """Draws x with scores s of a target, a name for each coordinate, and whether draws follow each other as in a chain."""

    x: Float[np.ndarray, "chains draws d"]
    s: Float[np.ndarray, "chains draws d"]
    names: list[str]
    independent: bool
    hints: dict[str, str]

    @property
    def words(self) -> str:
        """How many of what."""
        chains, n, d = self.x.shape
        numbers = f"{d} number{'s' * (d > 1)}"
        return (
            f"{n} draws of {numbers}" if self.independent or chains == 1 else f"{chains} chains of {n} draws of {numbers} each"
        )


def sample_of(
    draws: Any,
    target: Target | Callable[[Any], Any] | Float[Array | np.ndarray, "..."],
    *,
    constrain: Any = None,
    variables: Sequence[str] | None = None,
    by_chain: bool | None = None,
    independent: bool | None = None,
) -> Sample:
    """Draws of any form with their scores; arguments as of ``check``.

    >>> import jax, jax.numpy as jnp
    >>> draws = {"a": jnp.exp(jax.random.normal(jax.random.key(0), (50,)))}
    >>> log_normal = lambda p: -0.5 * jnp.log(p["a"]) ** 2 - jnp.log(p["a"])
    >>> found = sample_of(draws, log_normal, constrain={"a": Positive()})
    >>> found.words, found.names, bool(abs(found.s + found.x).max() < 1e-5)
    ('50 draws of 1 number', ['log a'], True)
    """
    if isinstance(draws, Posterior):
        independent = True if independent is None else independent
        if isinstance(target, Target) and constrain is None and variables is None:
            return _scored(draws.particles[None], target, bool(independent))
        by_chain = False if by_chain is None else by_chain
        draws = draws.values
    draws, by_chain = arrays_of(draws, variables, by_chain)
    if not isinstance(target, Target) and not callable(target):
        return _with_scores(draws, target, bool(independent))
    target, draws = _matched(draws, target, constrain, by_chain)
    shapes = jax.eval_shape(target.constrained, target.start)
    tree, chains = _by_chain(draws, shapes)
    free = np.asarray(_unconstrained(target, tree))
    named = _coordinate_names(target, shapes)
    if not np.isfinite(free).all():
        row, column = np.argwhere(~np.isfinite(free))[0]
        raise ValueError(
            f"draw {row % (len(free) // chains)} of chain {row // (len(free) // chains)} gives {named[column]} = "
            f"{free[row, column]}; expected finite draws inside what the bijections of constrain reach; drop the draw, or "
            "mend constrain"
        )
    return _scored(free.reshape(chains, -1, free.shape[1]), target, bool(independent))


def score_draws(target: Target, x: Float[np.ndarray, "n d"]) -> Float[Array, "n d"]:
    """The score at every draw, a block at a time."""
    return _score(target, jnp.asarray(x))


@eqx.filter_jit
def _score(target: Target, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
    return jax.lax.map(lambda row: target.score(row[None])[0], x, batch_size=BLOCK)


@eqx.filter_jit
def _unconstrained(target: Target, tree: Any) -> Float[Array, "n d"]:
    return jax.vmap(target.unconstrained)(tree)


def _scored(x: Any, target: Target, independent: bool) -> Sample:
    """The points with the target's scores, refused where these would tell nothing."""
    x = np.asarray(x)
    shapes = jax.eval_shape(target.constrained, target.start)
    names = _coordinate_names(target, shapes)
    if x.shape[-1] != target.dim:
        raise ValueError(
            f"draws of {x.shape[-1]} numbers for a density of {target.dim}; expected as many; give the draws of its parameters"
        )
    flat = x.reshape(-1, x.shape[-1])
    s = np.asarray(score_draws(target, flat))
    free = [isinstance(b, Real) for b, leaf in _leaves(target, shapes) for _ in range(_free_count(b, leaf))]
    hints = refuse_unusable(x, s.reshape(x.shape), names, target, free)
    return Sample(x, s.reshape(x.shape), names, independent, hints)


def _with_scores(draws: Any, scores: Any, independent: bool) -> Sample:
    """An array of draws with an array of scores."""
    x, s = (np.asarray(a) for a in (draws, scores))
    if isinstance(draws, Mapping) or x.ndim not in (2, 3) or s.shape != x.shape:
        given = "draws by name" if isinstance(draws, Mapping) else f"draws of shape {x.shape}"
        raise ValueError(
            f"{given} and, as target, an array of shape {s.shape}; expected scores of the draws' own shape, (n, d) or "
            "(chains, n, d); or pass the log density"
        )
    x, s = (a if a.ndim == 3 else a[None] for a in (x, s))
    names = [f"x[{i}]" for i in range(x.shape[2])]
    return Sample(x, s, names, independent, refuse_unusable(x, s, names))


def _matched(draws: Any, target: Any, constrain: Any, by_chain: bool | None) -> tuple[Target, Any]:
    """A target, and the draws as the tree that it takes."""
    if isinstance(target, Target):
        if constrain is not None:
            raise ValueError(
                "constrain= was given beside a Target, which has bijections of its own; expected one of the two; "
                "write Target.of(log_density, like, constrain=...)"
            )
        return target, _as_tree(draws, jax.eval_shape(target.constrained, target.start))
    if not isinstance(draws, Mapping):
        lead = 2 if by_chain or (by_chain is None and np.ndim(draws) == 3) else 1
        return Target.of(target, _first(draws, lead), constrain=constrain), draws
    lead = 2 if _leads_with_chains(draws, by_chain) else 1
    draws = OrderedDict(draws)
    like = OrderedDict((name, _first(a, lead)) for name, a in draws.items())
    try:
        jax.eval_shape(target, like)
        density = target
    except Exception as of_tree:  # whatever a user's function may raise when given something it does not expect
        density = lambda p: target(jnp.concatenate([jnp.ravel(p[name]) for name in like]))
        try:
            jax.eval_shape(density, like)
        except Exception as of_vector:
            size = sum(a.size for a in like.values())
            raise TypeError(
                f"the log density takes neither a dict of {list(like)} ({_line(of_tree)}) nor a vector of their {size} numbers "
                f"({_line(of_vector)}); expected a function of either; choose and order variables with "
                "variables=, on the command line --variables"
            ) from of_tree
    return Target.of(density, like, constrain=constrain), draws


def _as_tree(draws: Any, shapes: Any) -> Any:
    """The draws in the structure of the target's parameters; a single vector is made of all variables in their order."""
    leaves, structure = jax.tree.flatten(shapes)
    if isinstance(draws, Mapping) and isinstance(shapes, Mapping):
        missing = [name for name in shapes if name not in draws]
        if missing:
            raise ValueError(
                f"the target takes {list(shapes)} and the draws have {list(draws)}; expected {missing} too; check the names"
            )
        draws = {name: draws[name] for name in shapes}
    elif isinstance(draws, Mapping) and len(leaves) == 1 and len(leaves[0].shape) == 1:
        (d,) = leaves[0].shape
        for lead in (2, 1):
            if all(np.ndim(a) >= lead for a in draws.values()) and d == sum(
                int(np.prod(np.shape(a)[lead:])) for a in draws.values()
            ):
                parts = [np.reshape(a, (*np.shape(a)[:lead], -1)) for a in draws.values()]
                return jax.tree.unflatten(structure, [np.concatenate(parts, -1)])
    elif isinstance(draws, Mapping) and len(leaves) == 1 and len(draws) == 1:
        draws = next(iter(draws.values()))
        return jax.tree.unflatten(structure, [draws])
    found = jax.tree.leaves(draws)
    if len(found) != len(leaves):
        raise ValueError(
            f"draws of shapes {_shapes(draws)} for a target of parameters {_shapes(shapes)}; expected the same tree with a "
            "leading axis of draws, or two of chains and draws; check names and order"
        )
    return jax.tree.unflatten(structure, found)


def _by_chain(draws: Any, shapes: Any) -> tuple[Any, int]:
    """Every leaf with all draws along one axis, chain after chain, and the number of chains."""
    leaves, structure = jax.tree.flatten(draws)
    expected = [tuple(leaf.shape) for leaf in jax.tree.leaves(shapes)]
    lead = {np.ndim(a) - len(shape) for a, shape in zip(leaves, expected, strict=True)}
    right = all(np.shape(a)[np.ndim(a) - len(shape) :] == shape for a, shape in zip(leaves, expected, strict=True))
    firsts = {np.shape(a)[: np.ndim(a) - len(shape)] for a, shape in zip(leaves, expected, strict=True)}
    if not right or lead not in ({1}, {2}) or len(firsts) != 1:
        raise ValueError(
            f"draws of shapes {_shapes(draws)} for parameters of shapes {_shapes(shapes)}; expected a leading axis of draws, "
            "or two of chains and draws, and then the parameter's own shape; look at the target's like"
        )
    chains = np.shape(leaves[0])[0] if lead == {2} else 1
    flat = [jnp.asarray(np.reshape(a, (-1, *shape))) for a, shape in zip(leaves, expected, strict=True)]
    return jax.tree.unflatten(structure, flat), chains


def _leads_with_chains(draws: Mapping[str, Any], by_chain: bool | None) -> bool:
    """Whether arrays begin with (chains, draws): where not said, if all share two first axes, the first the shorter."""
    if by_chain is not None:
        return by_chain
    firsts = {np.shape(a)[:2] for a in draws.values()}
    first = next(iter(firsts))
    return len(firsts) == 1 and len(first) == 2 and first[0] < first[1]


def _first(a: Any, lead: int) -> Array:
    a = np.asarray(a)
    if a.ndim < lead or 0 in a.shape:
        raise ValueError(
            f"draws of shape {a.shape}; expected {'chains and draws' if lead == 2 else 'draws'} along the first "
            f"{'axes' if lead == 2 else 'axis'}, none empty; reshape them, or say by_chain="
        )
    return jnp.asarray(a[(0,) * lead])


def _leaves(target: Target, shapes: Any) -> list[tuple[AbstractBijection, Any]]:
    return list(zip(target.tree.bijections, jax.tree.leaves(shapes), strict=True))


def _free_count(bijection: AbstractBijection, leaf: Any) -> int:
    return int(np.prod(bijection.free_shape(tuple(leaf.shape))))


def _coordinate_names(target: Target, shapes: Any) -> list[str]:
    """What each coordinate is: a number of the user's tree, its log or logit, or a free number behind it."""
    out = []
    for (bijection, leaf), (path, _) in zip(
        _leaves(target, shapes), jax.tree_util.tree_flatten_with_path(shapes)[0], strict=True
    ):
        shape = bijection.free_shape(tuple(leaf.shape))
        out += [WORDS.get(type(bijection), "free ") + name for name in names_of(path, shape)]
    return out


def _shapes(tree: Any) -> str:
    """Shapes by name."""
    named = jax.tree_util.tree_flatten_with_path(tree)[0]
    return ", ".join(f"{''.join(names_of(path, ())) or 'x'} {np.shape(leaf)}" for path, leaf in named)


def _line(error: Exception) -> str:
    return _checks.brief(f"{type(error).__name__}: {error}".splitlines()[0]).strip("'\"")
