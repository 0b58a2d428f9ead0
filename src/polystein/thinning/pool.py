"""Several runs put together: the draws to keep of all of them, or a weight for each, whatever each run got wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from polystein._checks import whole
from polystein._types import Points
from polystein.discrepancy import Scored
from polystein.kernels import AbstractKernel
from polystein.tables import markdown
from polystein.thinning.greedy import chosen, distinct, points_of
from polystein.thinning.importance import optimal
from polystein.thinning.preconditioners import AbstractPreconditioner, placed


class Recombined(NamedTuple):
    """Draws of several runs with weights that sum to one; prints as a table of what each run contributes.

    ``run`` and ``row`` tell where each draw of ``samples`` comes from.
    """

    names: list[str]
    drawn: list[int]
    samples: Float[Array, "k d"]
    weights: Float[Array, "k"]
    run: Int[np.ndarray, "k"]
    row: Int[np.ndarray, "k"]
    ksd: float

    def __str__(self) -> str:
        w = np.asarray(self.weights)
        kept = [int((self.run == i).sum()) for i in range(len(self.names))]
        share = [float(w[self.run == i].sum()) for i in range(len(self.names))]
        rows = [list(row) for row in zip(self.names, self.drawn, kept, share, strict=True)]
        return f"{markdown(['run', 'draws', 'kept', 'weight'], rows)}\n\nKSD {self.ksd:.3g}"

    __repr__ = __str__


def recombine(
    runs: Mapping[str, Any] | Sequence[Any],
    target: Scored,
    *,
    size: int | None = None,
    kernel: AbstractKernel | AbstractPreconditioner | None = None,
) -> Recombined:
    """The draws of several runs or samplers as one weighted sample: a mode that a run left out, or a bias, is made up for.

    **Arguments:**

    - ``runs``: arrays of draws, one row each, or posteriors of ``infer`` and ``run``; by name, or in order.
    - ``target``: what they are draws of.
    - ``size``: how many to keep, by Stein thinning, of equal weight but for repeats; all that the optimal weights do not
      set to zero where it is None.
    - ``kernel``: as for ``thin``.

    >>> import jax, jax.numpy as jnp, polystein as ps
    >>> target = ps.Target.of(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(1))
    >>> x = jax.random.normal(jax.random.key(0), (300, 1))
    >>> both = ps.recombine({"left": x[:100] - 2, "right": x[100:] + 1}, target)
    >>> bool(abs(both.weights @ both.samples[:, 0]) < 0.1)
    True
    """
    named = dict(runs) if isinstance(runs, Mapping) else {str(i): run for i, run in enumerate(runs)}
    if not named:
        raise ValueError("no runs were given; expected at least one sample; pass {'name': samples}")
    parts = {name: points_of(getattr(run, "particles", run), target) for name, run in named.items()}
    drawn = [part.x.shape[0] for part in parts.values()]
    dtype = jnp.result_type(*(part.x for part in parts.values()))
    merged = Points.of(*(jnp.concatenate([getattr(p, a).astype(dtype) for p in parts.values()]) for a in ("x", "s")))
    points, seen = placed(merged, kernel)
    if size is None:
        found = optimal(points, seen)
        w, ksd = np.asarray(found.weights), float(found.ksd)
        rows = np.flatnonzero(w)
        w = w[rows]
    else:
        picked = chosen(points, seen, whole("size", least=1)(size))
        rows, ksd = distinct(picked.indices), float(picked.ksd[-1])
        w = np.bincount(np.searchsorted(rows, np.asarray(picked.indices))) / size
    run = np.repeat(np.arange(len(drawn)), drawn)[rows]
    row = np.concatenate([np.arange(count) for count in drawn])[rows]
    return Recombined(list(named), drawn, merged.x[rows], jnp.asarray(w, dtype), run, row, ksd)
