"""What makes a verdict on draws worthless, said in a sentence before anything is computed of them."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from polystein.modelcheck import slopes
from polystein.target import ScoreOnly, Target

LEAST = 10  # draws
TRIED = 16  # draws at which a density is looked at more closely
NEGLIGIBLE = np.log(100.0)  # a density below a hundredth of what it is at the draws has as good as vanished


def refuse_unusable(
    x: Float[np.ndarray, "chains draws d"],
    s: Float[np.ndarray, "chains draws d"],
    names: list[str],
    target: Target | None = None,
    free: list[bool] | None = None,
) -> dict[str, str]:
    """Refuses draws and scores of which nothing can be said; hints for coordinates that may have an edge nobody declared."""
    chains, n, d = x.shape
    if chains * n < LEAST:
        remedy = "draw more; if the first axis is that of chains, say by_chain=True, on the command line --by-chain"
        raise ValueError(f"{chains * n} draw{'s' * (chains * n > 1)} of {d} numbers given; expected at least {LEAST}; {remedy}")
    flat, scores = x.reshape(-1, d), s.reshape(-1, d)
    for a, what, remedy in [
        (flat, "is", "drop the draw, or find what made it so"),
        (scores, "has a score that is", "declare edges with constrain=, on the command line --constrain, or mend the density"),
    ]:
        if not np.isfinite(a).all():
            row, column = np.argwhere(~np.isfinite(a))[0]
            where = f"at draw {row % n} of chain {row // n}"
            raise ValueError(f"{names[column]} {what} {a[row, column]} {where}; expected finite numbers; {remedy}")
    _refuse_still(flat, scores, names)
    for i in range(chains):
        for j in range(i):
            if np.array_equal(x[i], x[j]):
                raise ValueError(f"chains {j} and {i} are identical; expected chains of their own; give each another seed")
    if target is None:
        return {}
    some = jnp.asarray(flat[np.linspace(0, len(flat) - 1, TRIED).astype(int)])
    if not isinstance(target.density, ScoreOnly):
        slope = slopes(target, some, jax.random.key(0), scale=jnp.asarray(flat.std(0)))
        if not slope.fine:
            raise ValueError(
                f"the scores disagree with the density at draws that were tried: {slope.advice}; expected its gradient"
            )
        return _edges(flat, names, target, free or [True] * d, some)
    return {}


def _refuse_still(flat: Float[np.ndarray, "n d"], scores: Float[np.ndarray, "n d"], names: list[str]) -> None:
    """Coordinates that never move, that the density does not know, or whose spread is lost to rounding."""
    for a, words in [
        (flat, "is constant ({:.4g}); expected draws in which every parameter moves; leave it out of draws and density"),
        (scores, "has score {:g} at every draw; expected a density that depends on it; leave out what is computed from others"),
    ]:
        still = np.flatnonzero((a == a[:1]).all(0))
        if still.size:
            advice = "; name what to keep with variables=, on the command line --variables"
            raise ValueError(f"{names[still[0]]} {words.format(a[0, still[0]])}{advice}")
    digits = 1e3 * np.finfo(flat.dtype).eps * np.abs(flat).max(0)
    lost = np.flatnonzero(flat.astype(np.float64).std(0) < digits)
    if lost.size:
        raise ValueError(
            f"{names[lost[0]]} is about {flat[0, lost[0]]:.6g} with a spread that {flat.dtype} cannot resolve; expected a few "
            "digits more; jax.config.update('jax_enable_x64', True)"
        )


def _edges(
    flat: Float[np.ndarray, "n d"], names: list[str], target: Target, free: list[bool], some: Float[Array, "k d"]
) -> dict[str, str]:
    """Stein's identity needs a density that vanishes at its edges: refuses one that is cut off, hints where it may be."""
    hints = {}
    for j in np.flatnonzero(free):
        low, high = flat[:, j].min(), flat[:, j].max()
        if low < 0 or low > flat[:, j].std():
            continue
        bijection, word = ("UnitInterval()", "unit") if high <= 1 else ("Positive()", "positive")
        name = names[j].partition("[")[0]
        remedy = f"give constrain={{{name!r}: ps.{bijection}}}, on the command line --constrain {name}={word}"
        hints[names[j]] = f"all draws of {names[j]} are {'in [0, 1]' if high <= 1 else 'positive'}; if it has an edge, {remedy}"
        near, across = (some.at[:, j].set(value) for value in (1e-3 * low, -0.1 * max(low, 1e-3 * high)))
        here, close, beyond = (np.asarray(_values(target, a)) for a in (some, near, across))
        cut = ~np.isfinite(beyond) & np.isfinite(close) & (close > here - NEGLIGIBLE)
        if low > 0 and cut.mean() > 0.5:
            raise ValueError(
                f"the density is cut off where {names[j]} is zero, and has not vanished there, so that Stein's identity does "
                f"not hold in this coordinate; expected free coordinates; {remedy}"
            )
    return hints


@eqx.filter_jit
def _values(target: Target, x: Any) -> Float[Array, "k"]:
    return jax.vmap(target.log_density)(x)
