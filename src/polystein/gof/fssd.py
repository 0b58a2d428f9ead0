r"""A finite-set test: the drift that the whole sample exerts at a few locations, which is zero everywhere for a right sample.

    xi(x, v)  = k(x, v) s(x) + grad_x k(x, v)
    FSSD^2    = (1/dJ) sum_j |E_q xi(x, v_j)|^2                  (Jitkrittum, Xu, Szabo, Fukumizu & Gretton 2017)

Locations are moved to where the test is most powerful, on one part of the sample; the other part is tested. They say where
sample and target differ. Cost: O(n d J).
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Float

from polystein._checks import random_key, whole, within
from polystein._types import Key, Points, Scalar
from polystein.discrepancy import Scored
from polystein.gof.bootstrap import WildBootstrap
from polystein.gof.inputs import draws_of, level_of, prepared, standardised
from polystein.gof.result import Contributions, GoodnessOfFit
from polystein.kernels import RBF, AbstractKernel, MatrixSVGDMedian, as_kernel
from polystein.stein import drift_of_pair

STEPS, RATE = 200, 0.05  # of Adam, in standardised coordinates
WIDE = 3.0  # how far log h may go from that of the median


class Probe(eqx.Module):
    """Locations, and the kernel through which they see the sample."""

    v: Float[Array, "J d"]
    log_h: Scalar
    kernel: AbstractKernel | None

    def drifts(self, points: Points) -> Float[Array, "n J d"]:
        """xi(x_i, v_j)."""
        kernel = RBF(jnp.exp(self.log_h)) if self.kernel is None else self.kernel
        one = lambda x, s, v: drift_of_pair(kernel.jet(v, x), s)
        return jax.vmap(lambda x, s: jax.vmap(lambda v: one(x, s, v))(self.v))(points.x, points.s)

    def power(self, points: Points) -> Scalar:
        """FSSD^2 in units of its standard deviation: that where it differs from 0, and that where it does not."""
        xi = self.drifts(points)
        n = xi.shape[0]
        xi = xi.reshape(n, -1)
        mean = jnp.mean(xi, 0)
        off = xi - mean[None]
        fssd = (jnp.sum(jnp.sum(xi, 0) ** 2) - jnp.sum(xi**2)) / (n * (n - 1))
        along = jnp.mean((off @ mean) ** 2)
        covariance = off.T @ off / n
        # both under one root: the root of `along` alone has no slope where the mean vanishes
        return fssd / jnp.sqrt(4 * along / n + 2 * jnp.sum(covariance**2) / n**2)


def fssd_test(
    samples: Float[Array, "n d"],
    target: Scored | Float[Array, "n d"],
    kernel: AbstractKernel | None = None,
    *,
    key: Key,
    locations: int = 5,
    train: float = 0.3,
    level: float = 0.05,
    bootstraps: int = 999,
) -> GoodnessOfFit:
    """Whether independent draws are from a target, from a few locations that show where they are not: O(n).

    **Arguments:**

    - ``samples``, ``target``, ``key``, ``level``, ``bootstraps``: as for ``ksd_test``.
    - ``kernel``: a kernel in standardised coordinates; by default RBF, its bandwidth found together with the locations.
    - ``locations``: J.
    - ``train``: the share of the samples on which the locations are found.

    >>> import jax
    >>> from polystein.gof import fssd_test
    >>> x = jax.random.normal(jax.random.key(0), (300, 1))
    >>> found = fssd_test(x + 1, -x - 1, key=jax.random.key(1), locations=2)
    >>> bool(found.rejected), found.locations.shape
    (True, (2, 1))
    """
    key, level = random_key(key), level_of(level)
    bootstraps = draws_of(bootstraps, level)
    locations = whole("locations", least=1, example=5)(locations)
    share = float(within("train", 0.0, 1.0)(train))
    points = prepared(samples, target, least=max(20, 2 * locations))
    scale, points = jnp.std(points.x, 0, keepdims=True), standardised(points)
    n = points.x.shape[0]
    learn = min(max(round(share * n), locations + 2), n - 3)
    order = np.random.default_rng(np.asarray(jax.random.key_data(key))).permutation(n)
    part = lambda rows: jax.tree.map(lambda a: a[np.sort(rows)], points)
    found, statistic, p, each, deviation, alone = _fssd(
        part(order[:learn]), part(order[learn:]), None if kernel is None else as_kernel(kernel), key, locations, bootstraps
    )
    where = found.v * scale
    name = lambda v: f"({', '.join(f'{a:.3g}' for a in np.asarray(v)[:4])}{', ...' if v.shape[0] > 4 else ''})"
    parts = Contributions([name(v) for v in where], each, deviation, alone)
    return GoodnessOfFit("finite-set test", n - learn, statistic, p, level, parts, where)


@eqx.filter_jit
def _fssd(
    learn: Points, test: Points, kernel: AbstractKernel | None, key: Key, locations: int, bootstraps: int
) -> tuple[Probe, Scalar, Scalar, Array, Array, Array]:
    first = learn.x[:: learn.x.shape[0] // locations][:locations]
    start = Probe(first, jnp.log(MatrixSVGDMedian()(learn.x)), kernel)
    free = lambda probe: (probe.v, probe.log_h)
    low, high = jnp.min(learn.x, 0, keepdims=True), jnp.max(learn.x, 0, keepdims=True)  # beyond, a ratio of two nothings
    loss = lambda part: -eqx.tree_at(free, start, part).power(learn)
    adam = optax.adam(RATE)

    def step(carry: tuple, _: None) -> tuple[tuple, None]:
        part, memory = carry
        change, memory = adam.update(jax.grad(loss)(part), memory)
        v, log_h = eqx.apply_updates(part, change)
        return ((jnp.clip(v, low, high), jnp.clip(log_h, start.log_h - WIDE, start.log_h + WIDE)), memory), None

    probe = eqx.tree_at(free, start, lax.scan(step, (free(start), adam.init(free(start))), None, STEPS)[0][0])
    xi = probe.drifts(test)
    n, _, d = xi.shape
    signs = jnp.concatenate([jnp.ones((n, 1), xi.dtype), WildBootstrap().signs(key, test, bootstraps)], 1)
    sums = jnp.einsum("nb,njd->jbd", signs, xi)
    u = (jnp.sum(sums**2, 2) - jnp.sum(xi**2, (0, 2))[:, None]) / (n * (n - 1) * d)
    off = xi - jnp.mean(xi, 0, keepdims=True)
    covariance = jnp.einsum("nja,njb->jab", off, off) / n
    deviation = jnp.sqrt(2 * jnp.sum(covariance**2, (1, 2))) / (n * d)
    total = jnp.mean(u, 0)
    return probe, total[0], jnp.mean(total >= total[0]), u[:, 0], deviation, jnp.mean(u >= u[:, :1], 1)
