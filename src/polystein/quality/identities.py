r"""Stein's identity parameter by parameter and direction by direction, with uncertainty and a word for each.

    ratio_j = -mean (x_j - m_j) s_j       1 for an exact sample; below: too narrow, above: too wide
    shift_j = -(S mean s)_j / sd_j        0 for an exact sample; S its covariance: by how many sd the sample is off
    ratio_v = -mean (v'S^-1 (x - m)) (v's) / (v'S^-1 v)      along the directions v that one half of the draws finds
                                                             narrowest and widest, measured on the other half

Each is an expectation that is known exactly under the target, so its error is that of a mean over (correlated) draws.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from polystein.diagnostics import direction_name, stein_identity
from polystein.quality.effective import mean_and_error, potential_scale_reduction
from polystein.quality.sample import Sample

FINE, NARROW, WIDE, SHIFTED = "fine", "too narrow", "too wide", "shifted"
MATERIAL = 0.02  # what is closer than this to the truth is fine, however sure the difference is


class Parameter(NamedTuple):
    """One coordinate: its moments, Stein ratio and shift (in sd) with standard errors, effective draws, R-hat, a word."""

    name: str
    mean: float
    sd: float
    ratio: float
    ratio_error: float
    shift: float
    shift_error: float
    effective: float
    rhat: float
    word: str


class Direction(NamedTuple):
    """The Stein ratio along a direction of the free coordinates, and a word."""

    name: str
    ratio: float
    ratio_error: float
    word: str
    vector: Float[np.ndarray, "d"]


def parameters(sample: Sample, critical: float) -> list[Parameter]:
    """Every coordinate; what is more than ``critical`` standard errors off gets a word other than fine."""
    x, s = (a.astype(np.float64) for a in (sample.x, sample.s))
    d = x.shape[2]
    gap = x - x.mean((0, 1), keepdims=True)
    toward = s @ covariance(gap.reshape(-1, d))
    out = []
    for j, name in enumerate(sample.names):
        mean, _, effective = mean_and_error(x[:, :, j], independent=sample.independent)
        sd = float(np.sqrt((gap[:, :, j] ** 2).sum() / (gap[:, :, j].size - 1)))
        ratio, ratio_error = ratio_of(-gap[:, :, j] * s[:, :, j], effective, sample.independent)
        shift, shift_error, _ = mean_and_error(-toward[:, :, j] / sd, independent=sample.independent)
        rhat = math.nan if sample.independent else potential_scale_reduction(x[:, :, j])
        words = [SHIFTED] if abs(shift) > max(MATERIAL, critical * shift_error) else []
        words += [word for word in [_word(ratio, ratio_error, critical)] if word != FINE]
        word = ", ".join(words) or FINE
        out.append(Parameter(name, mean, sd, ratio, ratio_error, shift, shift_error, effective, rhat, word))
    return out


def directions(sample: Sample, critical: float) -> list[Direction]:
    """The narrowest and the widest direction: found on one half of the draws, judged on the other; none for one coordinate."""
    d = sample.x.shape[2]
    half = sample.x.shape[1] // 2
    if d == 1 or half < 3:
        return []
    first = lambda a: a[:, :half].reshape(-1, d)
    found = stein_identity(jnp.asarray(first(sample.x)), jnp.asarray(first(sample.s)))
    x, s = (a[:, half:].astype(np.float64) for a in (sample.x, sample.s))
    gap = x - x.mean((0, 1), keepdims=True)
    known = first(sample.x).astype(np.float64)
    dual = np.linalg.pinv(covariance(known - known.mean(0)), hermitian=True)
    out = []
    for v in (found.narrow, found.wide):
        v = np.asarray(v, np.float64)
        along = gap @ (dual @ v)
        _, _, effective = mean_and_error(along, independent=sample.independent)
        ratio, error = ratio_of(-along * (s @ v) / (v @ dual @ v), effective, sample.independent)
        scaled = v / np.maximum(x.std((0, 1)), 1e-300)
        out.append(Direction(direction_name(scaled, sample.names), ratio, error, _word(ratio, error, critical), v))
    return out


def covariance(gap: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "d d"]:
    """The covariance of centred draws; its diagonal alone where they are too few for their dimension."""
    n, d = gap.shape
    whole = gap.T @ gap / n
    return whole if d < n / 4 else np.diag(np.diagonal(whole))


def critical_deviations(level: float, statements: int) -> float:
    """How many standard errors off one of ``statements`` two-sided statements has to be, to be wrong as a family at ``level``.

    >>> round(critical_deviations(0.05, 1), 2), round(critical_deviations(0.05, 10), 2)
    (1.96, 2.81)
    """
    return -NormalDist().inv_cdf(level / 2 / statements)


def ratio_of(product: Float[np.ndarray, "chains draws"], effective: float, independent: bool) -> tuple[float, float]:
    """The mean product with its standard error; a mean taken off the same draws costs one of them."""
    ratio, error, _ = mean_and_error(product, independent=independent)
    unbiased = 1 / (1 - 1 / max(effective, 2.0))
    return ratio * unbiased, error * unbiased


def _word(ratio: float, error: float, critical: float) -> str:
    """On the scale of logarithms, on which a variance has an error that does not depend on it."""
    if abs(ratio - 1) <= MATERIAL:
        return FINE
    if ratio <= 0:
        return NARROW if 1 - ratio > critical * error else FINE
    return FINE if abs(math.log(ratio)) <= critical * error / ratio else NARROW if ratio < 1 else WIDE
