r"""What particles and their scores say about themselves, each with a sentence of advice.

R = -(1/(n d)) sum_i (x_i - mean).s_i          1 for an exact sample (Stein's identity for phi(x) = x - mean)
M = -(1/n) sum_i L^-1 (x_i - mean) (L' s_i)'   the identity, in coordinates whitened by L; its symmetric part's eigenvalues
                                               below one mean too little variance along their direction, above one too much
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from polystein._types import Points, Scalar
from polystein.discrepancy import sweep
from polystein.kernels import IMQ, AbstractPlacement, Bank, MatrixSVGDMedian
from polystein.pairs import default_pairs

# Share of the others a kernel connects to, below and above which a narrower or wider one is no different.
ALONE, ALIKE = 1e-3, 0.7
SELDOM = 5.0  # null deviations of a discrepancy, whose right tail is heavier than a normal's


class Finding(NamedTuple):
    """One measured quantity, whether it is as it should be, and what to do if not."""

    name: str
    value: float
    fine: bool
    advice: str


class SteinIdentity(NamedTuple):
    """R, the extreme eigenvalues of the symmetric part of M, and the direction of the smallest and the largest."""

    ratio: Scalar
    smallest: Scalar
    largest: Scalar
    narrow: Float[Array, "d"]
    wide: Float[Array, "d"]


@eqx.filter_jit
def stein_identity(x: Float[Array, "n d"], s: Float[Array, "n d"]) -> SteinIdentity:
    """R and the spectrum of M, in coordinates whitened by the particles' own covariance.

    Where there are more dimensions than particles the covariance has no inverse; coordinates are then scaled one by one.

    >>> import jax
    >>> x = jax.random.normal(jax.random.key(0), (4000, 2))
    >>> bool(abs(stein_identity(x, -x).ratio - 1) < 0.1), bool(stein_identity(0.5 * x, -0.5 * x).ratio < 0.3)
    (True, True)
    """
    n, d = x.shape
    gap = x - jnp.mean(x, 0, keepdims=True)
    scale = jnp.maximum(jnp.std(gap, 0), jnp.finfo(x.dtype).tiny)
    gap, s = gap / scale[None], s * scale[None]
    ratio = -jnp.mean(gap * s)
    if d < n:
        values, vectors = jnp.linalg.eigh(gap.T @ gap / n)
        root = jnp.sqrt(jnp.maximum(values, 1e-6 * values[-1]))
        gap, s = gap @ vectors / root[None], s @ vectors * root[None]
        back = vectors * root[None]
    else:
        back = jnp.eye(d, dtype=x.dtype)
    m = -gap.T @ s / n
    eigenvalues, eigenvectors = jnp.linalg.eigh((m + m.T) / 2)
    directions = (back @ eigenvectors) * scale[:, None]
    directions = directions / jnp.linalg.norm(directions, axis=0, keepdims=True)
    return SteinIdentity(ratio, eigenvalues[0], eigenvalues[-1], directions[:, 0], directions[:, -1])


@eqx.filter_jit
def independent_ksd(x: Float[Array, "n d"], s: Float[Array, "n d"]) -> tuple[Scalar, Scalar, Scalar]:
    """KSD (V-statistic, IMQ on standardised coordinates: no kernel of the training bank), what an exact sample of n scores,
    and what it seldom exceeds.

    An exact sample's V-statistic has mean E u(x, x) / n, which the particles' own scores estimate, and s.d. sqrt(2 E u^2) / n.
    """
    scale = jnp.maximum(jnp.std(x, 0, keepdims=True), jnp.finfo(x.dtype).tiny)
    points = Points.of(x / scale, s * scale)
    sums = sweep(Bank(IMQ(MatrixSVGDMedian()(points.x))), points, default_pairs(x.shape[0]))
    exact = jnp.mean(sums.diagonal) / x.shape[0]
    return jnp.sqrt(sums.v[0]), jnp.sqrt(exact), jnp.sqrt(exact + SELDOM * sums.null_deviation[0])


@eqx.filter_jit
def neighbours(bank: Bank | AbstractPlacement, x: Float[Array, "n d"]) -> Float[Array, "m"]:
    """The share of the others that each kernel connects a particle to: mean over j != i of k(x_i, x_j) / k(x_i, x_i)."""
    bank = bank.at(x)
    x = x[:: max(1, x.shape[0] // 256)]
    share = lambda kernel: (jnp.mean(jnp.sum(kernel.gram(x, x), 1) / jax.vmap(kernel)(x, x)) - 1) / max(x.shape[0] - 1, 1)
    return jnp.concatenate([eqx.filter_vmap(share, axis_size=len(family))(family.stacked) for family in bank.families])


def findings(
    x: Float[Array, "n d"],
    s: Float[Array, "n d"],
    names: list[str],
    reach: Float[Array, "m"] | None = None,
    weights: Float[Array, "m"] | None = None,
) -> list[Finding]:
    """All that can be said of particles x with scores s, and of the reach and weights of the bank that moved them."""
    n = x.shape[0]
    out = []
    unknown = int((~np.isfinite(np.asarray(s)).all(1)).sum())
    if unknown:
        advice = (
            f"the scores of {unknown} of {n} particles are not finite, so nothing can be said of their quality; see check_model"
        )
        return [Finding("scores that are not finite", unknown, False, advice)]
    if n > 2:
        identity = jax.tree.map(np.asarray, stein_identity(x, s))
        ratio = float(identity.ratio)
        noise = 3 / np.sqrt(n * x.shape[1])
        word = "narrow" if ratio < 1 else "wide"
        out.append(
            Finding(
                "Stein ratio",
                ratio,
                abs(ratio - 1) < 0.05 + noise,
                f"the particles are too {word} by about {abs(1 - np.sqrt(max(ratio, 0))):.0%} in standard deviation; "
                "run longer, or with more particles",
            )
        )
        if x.shape[1] < n:  # else M has no full rank, whatever the particles
            low, high = float(identity.smallest), float(identity.largest)
            out.append(
                Finding(
                    "narrowest direction",
                    low,
                    low > 0.6,
                    f"variance along {direction_name(identity.narrow, names)} is about {low:.2f} of what it should be; "
                    "add particles",
                )
            )
            out.append(
                Finding(
                    "widest direction",
                    high,
                    high < 1.6,
                    f"variance along {direction_name(identity.wide, names)} is about {high:.2f} of what it should be; "
                    "run longer",
                )
            )
        found, exact, most = (float(a) for a in independent_ksd(x, s))
        out.append(
            Finding(
                "KSD / exact sample's",
                found / exact if exact else float("nan"),
                found <= most,
                f"the IMQ discrepancy {found:.3g} is above the {exact:.3g} of {n} exact draws; run longer",
            )
        )
    if reach is not None and n > 1:
        alone = int((np.asarray(reach) < ALONE).sum())
        out.append(
            Finding(
                "kernels that connect no particles",
                alone,
                alone < len(reach),
                f"{alone} of {len(reach)} kernels are the identity: this is an ensemble, not SVGD; use wider kernels",
            )
        )
    if weights is not None and weights.shape[0] > 2:
        w = np.asarray(weights) ** 2 / max(float((np.asarray(weights) ** 2).sum()), 1e-30)
        narrow, wide = (float(reach[0]) > ALONE, float(reach[-1]) < ALIKE) if reach is not None else (True, True)
        edge = max(float(w[0]) * narrow, float(w[-1]) * wide)
        out.append(
            Finding(
                "weight at the bank's edge",
                edge,
                edge < 0.9,
                "nearly all weight is on the bank's first or last kernel; widen the bank",
            )
        )
    return out


def direction_name(vector: np.ndarray, names: list[str]) -> str:
    """The two parameters that a direction is mostly made of."""
    order = np.argsort(-np.abs(vector))[:2]
    return " and ".join(names[i] for i in order if abs(vector[i]) > 0.3 * abs(vector[order[0]]))
