r"""Nystrom's method: what the pairs do to r landmark rows is computed, what they do to all others is interpolated.

A sum over pairs F(y) = sum_j f(y, x_j), the drift say, is a function of the row y alone, and as smooth as its kernels. With
the landmarks Z among the rows and a kernel M to interpolate by,

    F^(y) = M(y, Z) M(Z, Z)^-1 F(Z),      |F(y) - F^(y)| <= |F|_M P(y),      P(y)^2 = M(y, y) - M(y, Z) M(Z, Z)^-1 M(Z, y)

where |F|_M is the norm of F in the space of M: F^ is the projection of F on the span of M(., z_l), so that under a single
kernel M = k it is an ascent direction with F, <F, F^> = |F^|^2. P, the power function, is 0 at the landmarks and is known
without F. The work is O(n r) pairs, O(n r) of interpolation, and r^3 once.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float

from polystein import _checks
from polystein._types import Points, Scalar
from polystein.kernels import LiuWang, Matern52
from polystein.numerics import cast, centred
from polystein.pairs import AbstractPairs, Block, Out, Tiled, default_pairs

TILE = 1024  # rows interpolated at a time


class Nystrom(AbstractPairs):
    """Exact sums at ``landmarks`` of the rows, interpolated at all others: O(n landmarks) work, no noise.

    **Arguments:**

    - ``landmarks``: r, taken at an even stride.
    - ``width``: the length of the Matern 5/2 kernel that interpolates, in units of sqrt(h), h the median rule's bandwidth; as
      wide as the kernels of the default bank. A bank with much narrower kernels wants more landmarks.

    ``Nystrom(r).power(x)`` is P: how far a row is from what the landmarks know, between 0 and 1.

    >>> import jax, jax.numpy as jnp
    >>> from polystein import Nystrom, Points, Tiled
    >>> x = jax.random.normal(jax.random.key(0), (2000, 2))
    >>> wide = lambda rows, cols: jnp.exp(-jnp.sum((rows.x[:, None] - cols.x[None]) ** 2, 2) / 20).sum(1)
    >>> points = Points.of(x, -x)
    >>> exact, found = (pairs.sum(wide, points, points) for pairs in (Tiled(), Nystrom(200)))
    >>> bool(jnp.linalg.norm(found - exact) < 2e-2 * jnp.linalg.norm(exact))
    True
    """

    landmarks: int = eqx.field(static=True, converter=_checks.whole("landmarks", least=1, example=512), default=512)
    width: Scalar = eqx.field(converter=_checks.positive("width"), default=2.0)

    def sum(self, block: Block[Out], rows: Points, cols: Points) -> Out:
        """Interpolate; exactly, where every row is a landmark."""
        n = rows.x.shape[0]
        exact = default_pairs(cols.x.shape[0])
        if n <= self.landmarks:
            return exact.sum(block, rows, cols)
        some = self._some(rows)
        kernel, factor = self._fitted(rows.x, some.x)
        known, shapes = jax.tree.flatten(exact.sum(block, some, cols))
        widths = [leaf[0].size for leaf in known]
        weights = cho_solve(factor, jnp.concatenate([leaf.reshape(len(leaf), -1) for leaf in known], 1))
        tiles = Tiled(rows=TILE, cols=self.landmarks)
        found = tiles.sum(lambda some_rows, _: _between(kernel, some_rows.x, some.x) @ weights, rows, some)
        parts = jnp.split(found, [sum(widths[: k + 1]) for k in range(len(widths) - 1)], 1)
        return jax.tree.unflatten(shapes, [a.reshape(n, *leaf.shape[1:]) for a, leaf in zip(parts, known, strict=True)])

    def power(self, x: Float[Array, "n d"]) -> Float[Array, "n"]:
        """P(x_i): the error of the interpolation at every row, per unit of the norm of what is interpolated."""
        some = self._some(Points.of(x, jnp.zeros_like(x))).x
        kernel, factor = self._fitted(x, some)
        between = _between(kernel, x, some)
        return jnp.sqrt(jnp.maximum(1 - jnp.sum(between * cho_solve(factor, between.T).T, 1), 0))

    def _some(self, rows: Points) -> Points:
        n = rows.x.shape[0]
        r = min(self.landmarks, n)
        return jax.tree.map(lambda a: a[jnp.arange(r) * n // r], rows)

    def _fitted(self, x: Float[Array, "n d"], some: Float[Array, "r d"]) -> tuple[Matern52, tuple[Array, bool]]:
        """The kernel at the scale of the points, and the factor of its matrix between landmarks."""
        kernel = cast(Matern52(self.width * jnp.sqrt(LiuWang()(x))), x.dtype)
        r = some.shape[0]
        jitter = 10 * r * jnp.finfo(x.dtype).eps
        return kernel, cho_factor(_between(kernel, some, some) + jitter * jnp.eye(r, dtype=x.dtype), lower=True)


def _between(kernel: Matern52, y: Float[Array, "a d"], x: Float[Array, "b d"]) -> Float[Array, "a b"]:
    y, x = centred(y, x)
    r2 = jnp.sum(y**2, 1)[:, None] + jnp.sum(x**2, 1)[None, :] - 2 * y @ x.T
    return kernel.profile(jnp.maximum(r2, 0)).value
