r"""Random batches: at every step each particle meets p - 1 others, drawn anew (Jin, Li & Liu 2020; Li et al. 2020 for SVGD).

The n points are dealt into groups of p, and row i sums over its own group alone:

    F_i = f(i, i) + (n - 1)/(p - 1) sum_{j in group of i, j != i} f(i, j),      E F_i = sum_j f(i, j)

The p - 1 others are a simple random sample without replacement, so that with sigma_i^2 the variance of f(i, j) over j != i

    Var F_i / n^2 = ((n - 1)/n)^2 sigma_i^2 (1/(p - 1) - 1/(n - 1))

exactly: the drift, V, U and the null deviation of every kernel are right in the mean, at O(n p) work.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from polystein import _checks
from polystein._types import Points
from polystein.pairs import AbstractPairs, Block, Dense, Out, default_pairs


class RandomBatch(AbstractPairs):
    """Each point meets only those of a random group of ``size``, and stands for all: O(n size) work, unbiased.

    **Arguments:**

    - ``size``: p, points in a group; the error of a mean over pairs falls as 1/sqrt(p).
    - ``seed``: of the groups. They are drawn from it and from the bits of the points themselves, so that they are new at every
      step of a run, and the same when the step is repeated.

    The noise of the groups is noise of the step: an optimiser that averages, such as Adam, and a falling step size take it out.
    Deviations that compare rows with each other (``power_deviation``, ``standard_error``) include it.

    >>> import jax, jax.numpy as jnp
    >>> from polystein import Points, RandomBatch
    >>> points = Points.of(jnp.arange(1000.0)[:, None], jnp.zeros((1000, 1)))
    >>> total = RandomBatch(100).sum(lambda rows, cols: jnp.ones((rows.x.shape[0], cols.x.shape[0])).sum(1), points, points)
    >>> bool(jnp.allclose(total, 1000))
    True
    """

    size: int = eqx.field(static=True, converter=_checks.whole("size", least=2, example=256), default=256)
    seed: int = eqx.field(static=True, converter=_checks.whole("seed", least=0), default=0)

    def sum(self, block: Block[Out], rows: Points, cols: Points) -> Out:
        """Sum over the groups; exactly, where one group holds all."""
        n, p = rows.x.shape[0], self.size
        if rows is not cols:
            raise ValueError(
                "RandomBatch() was given rows that are not the columns; expected one set of points, which it groups among "
                "themselves; use Tiled()"
            )
        if n <= p:
            return default_pairs(n).sum(block, rows, rows)
        order = self._order(rows.x)
        starts = jnp.append(jnp.arange(n // p) * p, n - p)  # the last group takes in the remainder, and others again
        inner, share = default_pairs(p), (n - 1) / (p - 1)

        def over_group(start: Int[Array, ""]) -> Out:
            group = jax.tree.map(lambda a: a[lax.dynamic_slice_in_dim(order, start, p)], rows)
            own = jax.vmap(lambda point: Dense().sum(block, point, point))(jax.tree.map(lambda a: a[:, None], group))
            with_others = inner.sum(block, group, group)
            return jax.tree.map(lambda total, self_term: share * total + (1 - share) * self_term[:, 0], with_others, own)

        groups = lax.map(over_group, starts)
        left = n - n // p * p

        def in_place(a: Array) -> Array:
            rows_in_order = jnp.concatenate([a[:-1].reshape(-1, *a.shape[2:]), a[-1, p - left :]])
            return jnp.zeros_like(rows_in_order).at[order].set(rows_in_order)

        return jax.tree.map(in_place, groups)

    def _order(self, x: Float[Array, "n d"]) -> Int[Array, "n"]:
        """A random order of the points, by the seed and by their own bits."""
        bits = jnp.sum(lax.bitcast_convert_type(lax.stop_gradient(x), jnp.uint32), dtype=jnp.uint32)
        return jnp.argsort(jax.random.bits(jax.random.fold_in(jax.random.key(self.seed), bits), (x.shape[0],), jnp.uint32))
