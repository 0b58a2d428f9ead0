r"""Two views of every feature: in units of its standard deviation, and by rank; and which particle sees which.

standardised    z = (x - mean) / sd
by rank         z = Phi^-1(F(x)),    F(v) = (#{x_i < v} + #{x_i <= v}) / 2N,  from 1/2N to 1 - 1/2N, standardised in its turn

F is that of the training rows. Ranks spread out what lies densely and draw in what lies far away; particles that see different
views err differently.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein.experiments.regressors.base import Standardised


def normal_scores(train: Float[Array, "N"], v: Float[Array, "T"]) -> Float[Array, "T"]:
    """Phi^-1(F(v)), F the distribution of the training rows, ties and jumps taken at their middle.

    >>> normal_scores(jnp.array([5.0, 1.0, 1.0]), jnp.array([1.0, 3.0, 9.0])).tolist() == jax.scipy.special.ndtri(
    ...     jnp.array([1 / 3, 2 / 3, 5 / 6])
    ... ).tolist()
    True
    """
    ordered, n = jnp.sort(train), train.shape[0]
    below, upto = (jnp.searchsorted(ordered, v, side=side) for side in ("left", "right"))
    share = (below + upto).astype(v.dtype) / (2.0 * n)
    return jax.scipy.special.ndtri(jnp.clip(share, 0.5 / n, 1 - 0.5 / n))


def both_views(x: Float[Array, "S N p"], test_x: Float[Array, "S T p"]) -> tuple[Float[Array, "S N q"], Float[Array, "S T q"]]:
    """Training and test rows with q = 2p + 1 columns: standardised, by rank, and one of ones for the bias."""
    columns = jax.vmap(jax.vmap(normal_scores, 1, 1))
    pairs = [(x, test_x), (columns(x, x), columns(x, test_x))]
    nothing = jnp.zeros_like(x[:, :, 0])
    seen = [[Standardised.of(train, nothing).features(rows) for rows in (train, test)] for train, test in pairs]
    ones = [jnp.ones_like(rows[:, :, :1]) for rows in (x, test_x)]
    train, test = (jnp.concatenate([seen[0][i], seen[1][i], ones[i]], 2) for i in range(2))
    return train, test
