r"""Moments that go forward through a network whose weights are independent normals, and what one observation does to a belief.

z = W (a, 1) / sqrt(n + 1):    E z = M (E a, 1) / sqrt(n + 1),
                               V z = (V_W ((E a)^2 + V a, 1) + M^2 (V a, 0)) / (n + 1)
a = max(z, 0):                 E a = s Phi kappa,    V a = s^2 Phi (kappa^2 (1 - Phi) + 1 - (kappa - alpha) kappa)

with alpha = E z / s, s^2 = V z, Phi the normal distribution function at alpha, kappa = alpha + phi(alpha) / Phi.
(Hernandez-Lobato & Adams 2015, Probabilistic backpropagation for scalable learning of Bayesian neural networks.)
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein._types import Scalar

TAIL, DEPTH = -2.0, 20  # below alpha = TAIL kappa is a continued fraction, which neither cancels nor underflows


class Normals(NamedTuple):
    """Independent normals by their means and variances, for arrays of any one shape."""

    mean: Float[Array, "*shape"]
    var: Float[Array, "*shape"]


class Gamma(NamedTuple):
    """A Gamma distribution of a precision: mean shape / rate; the variance that it stands for has mean rate / (shape - 1)."""

    shape: Float[Array, ""]
    rate: Float[Array, ""]


def layer(weights: Normals, a: Normals) -> Normals:
    """Moments of W (a, 1) / sqrt(n + 1): the last column of W is the bias.

    >>> units = layer(Normals(jnp.ones((1, 4)), jnp.ones((1, 4))), Normals(jnp.ones(3), jnp.zeros(3)))
    >>> units.mean.tolist(), units.var.tolist()
    ([2.0], [1.0])
    """
    inputs = weights.mean.shape[1]
    mean, var = jnp.append(a.mean, 1), jnp.append(a.var, 0)
    both = weights.var @ (mean**2 + var) + weights.mean**2 @ var
    return Normals(weights.mean @ mean / jnp.sqrt(float(inputs)), both / inputs)


def rectified(z: Normals) -> Normals:
    """Moments of max(z, 0).

    >>> half = rectified(Normals(jnp.zeros(1), jnp.ones(1)))
    >>> half.mean.round(4).tolist(), half.var.round(4).tolist()
    ([0.3989], [0.3408])
    """
    s = jnp.sqrt(z.var)
    alpha = z.mean / s
    near, far = jnp.maximum(alpha, TAIL), jnp.minimum(alpha, TAIL)
    below = jax.scipy.stats.norm.cdf(near)
    rest = jnp.zeros_like(far)  # 2 / (x + 3 / (x + 4 / ...)) with x = -alpha, where 1 + alpha kappa = rest kappa
    for k in range(DEPTH, 1, -1):
        rest = k / (rest - far)
    kappa = jnp.where(alpha < TAIL, 1 / (rest - far), near + jax.scipy.stats.norm.pdf(near) / below)
    share = jnp.where(alpha < TAIL, jax.scipy.stats.norm.cdf(far), below)
    above = kappa**2 * jax.scipy.stats.norm.cdf(-near) + 1 - (kappa - near) * kappa
    spread = jnp.where(alpha < TAIL, kappa * (rest - kappa * share), above)
    return Normals(s * share * kappa, z.var * share * spread)


def network(weights: list[Normals], x: Float[Array, "p"]) -> Normals:
    """Moments of the output of a network of rectified units, taken layer by layer as normal and independent."""
    a = Normals(x, jnp.zeros_like(x))
    for each in weights[:-1]:
        a = rectified(layer(each, a))
    out = layer(weights[-1], a)
    return Normals(out.mean[0], out.var[0])


def tilted(belief: Normals, by_mean: Float[Array, "*shape"], by_var: Float[Array, "*shape"]) -> Normals:
    """Moments of N(w; m, v) t(w) / Z from the derivatives of log Z in m and in v.

    m + v dlogZ/dm,    v - v^2 ((dlogZ/dm)^2 - 2 dlogZ/dv)

    >>> tilted(Normals(jnp.zeros(1), jnp.ones(1)), jnp.array([0.5]), jnp.array([0.0])).var.tolist()
    [0.75]
    """
    return Normals(belief.mean + belief.var * by_mean, belief.var - belief.var**2 * (by_mean**2 - 2 * by_var))


def observed(precision: Gamma, residual: Scalar, var: Scalar) -> Gamma:
    """The Gamma whose first two moments are those of a Gamma (a, b) times the likelihood N(residual; 0, var + 1/precision).

    With Z_k = N(residual; 0, var + b / (a - 1 + k)), e_k = Z_(k+1) / Z_k - 1 and D = 1 + e_1 + a (e_1 - e_0):

    a' = a - a (a + 1) (e_1 - e_0) / D,    b' = b / D

    which is a' = 1 / (Z_0 Z_2 (a + 1) / (a Z_1^2) - 1) without its cancellation at large a. A belief that would not be a
    Gamma with a variance (a' > 1, b' > 0) stays as it was.

    >>> [round(float(part), 3) for part in observed(Gamma(jnp.array(6.0), jnp.array(6.0)), jnp.array(0.0), jnp.array(0.0))]
    [6.651, 6.072]
    """
    a, b = precision
    v0, v1, v2 = (var + b / (a - 1 + k) for k in range(3))
    e0, e1 = _ratio(residual, v0, v1, b / (a * (a - 1))), _ratio(residual, v1, v2, b / (a * (a + 1)))
    curve = e1 - e0
    denominator = 1 + e1 + a * curve
    shape, rate = a - a * (a + 1) * curve / denominator, b / denominator
    good = jnp.isfinite(shape) & jnp.isfinite(rate) & (shape > 1) & (rate > 0)
    return Gamma(jnp.where(good, shape, a), jnp.where(good, rate, b))


def _ratio(residual: Scalar, wide: Scalar, narrow: Scalar, gap: Scalar) -> Scalar:
    """N(residual; 0, narrow) / N(residual; 0, wide) - 1, where wide - narrow = gap."""
    gap = gap / narrow
    return jnp.expm1((jnp.log1p(gap) - residual**2 * gap / wide) / 2)
