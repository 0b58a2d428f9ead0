"""Pictures of a verdict: parameters with error bars, the worst of them chain by chain, what each kernel saw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from polystein.quality.identities import FINE, Parameter
from polystein.quality.verdict import Check
from polystein.report.drawing import PALETTE, saved, style
from polystein.report.section import Figure

MOST = 30  # parameters in a picture
BLUE, RED, GREY = PALETTE[0], PALETTE[1], PALETTE[5]


def figures_of(check: Check, folder: Path) -> list[Figure]:
    """All pictures, written into a folder as SVG and PNG."""
    with style() as plt:
        return [_parameters(check, folder, plt), _worst(check, folder, plt), _kernels(check, folder, plt)]


def suspicion(one: Parameter) -> float:
    """How many standard errors a parameter is off."""
    return max(abs(one.ratio - 1) / max(one.ratio_error, 1e-12), abs(one.shift) / max(one.shift_error, 1e-12))


def _parameters(check: Check, folder: Path, plt: Any) -> Figure:
    """Ratios and shifts with two standard errors."""
    ranked = sorted(range(len(check.parameters)), key=lambda j: -suspicion(check.parameters[j]))
    shown = [check.parameters[j] for j in sorted(ranked[:MOST])]
    at = np.arange(len(shown))[::-1]
    figure, axes = plt.subplots(1, 2, figsize=(8, 1.1 + 0.26 * len(shown)), sharey=True)
    for axis, exact, title, value, error in [
        (axes[0], 1, "Stein ratio", [one.ratio for one in shown], [one.ratio_error for one in shown]),
        (axes[1], 0, "Shift in standard deviations", [one.shift for one in shown], [one.shift_error for one in shown]),
    ]:
        axis.axvline(exact, color=GREY, linewidth=1)
        for y, one, v, e in zip(at, shown, value, error, strict=True):
            colour = BLUE if one.word == FINE else RED
            axis.errorbar(v, y, xerr=2 * e, color=colour, marker="o", markersize=4, linewidth=1.4, capsize=0)
        axis.set_title(title)
        axis.margins(y=0.5 / len(shown) + 0.02)
    axes[0].set_yticks(at, [one.name for one in shown])
    left = f"; the {MOST} most suspicious of {len(check.parameters)}" if len(check.parameters) > MOST else ""
    caption = f"Every parameter with two standard errors; red: significantly too narrow, too wide or shifted{left}."
    return saved(figure, folder, "parameters", caption)


def _worst(check: Check, folder: Path, plt: Any) -> Figure:
    """The most suspicious parameter: its trace, and its scores against its draws with the slope they have and should have."""
    j = max(range(len(check.parameters)), key=lambda j: suspicion(check.parameters[j]))
    one, (x, s) = check.parameters[j], (a[:, :, j] for a in (check.sample.x, check.sample.s))
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), width_ratios=(1.4, 1))
    step = max(1, x.shape[1] // 1000)
    for c, chain in enumerate(x):
        draw = np.arange(0, len(chain), step)
        marks = {"linestyle": "none", "marker": ".", "markersize": 3} if check.sample.independent else {"linewidth": 0.7}
        left.plot(draw, chain[::step], color=PALETTE[c % len(PALETTE)], alpha=0.8, **marks)
    left.set(title=f"{one.name}: {one.word}", xlabel="draw")
    z, t = ((x - one.mean) / one.sd).ravel(), (s * one.sd).ravel()
    some = np.linspace(0, z.size - 1, min(z.size, 600)).astype(int)
    right.scatter(z[some], t[some], s=5, color=GREY, linewidths=0, alpha=0.6)
    ends = np.array([z.min(), z.max()])
    right.plot(ends, t.mean() - one.ratio * ends, color=BLUE if one.word == FINE else RED, label="as it is")
    right.plot(ends, -ends, color=PALETTE[3], linestyle="--", label="as it should be")
    right.set(title="Score against draw", xlabel="draw, standardised")
    low, high = np.quantile(t, [0.005, 0.995])
    right.set_ylim(min(low, -ends[1]) - 0.5, max(high, -ends[0]) + 0.5)
    right.legend()
    caption = (
        f"{one.name}, the most suspicious parameter. Right: for draws of the target the line through the scores has slope -1 "
        "and passes through the origin; a flatter one means too narrow, a steeper one too wide, one beside it shifted."
    )
    return saved(figure, folder, "worst", caption)


def _kernels(check: Check, folder: Path, plt: Any) -> Figure:
    """The discrepancy of each kernel in units of what chance makes of it."""
    part = check.test.contributions
    u, sd, p = (np.asarray(a, float) for a in part[1:])
    ratio = np.divide(u, sd, out=np.zeros_like(u), where=sd > 0)
    figure, axis = plt.subplots(figsize=(8, 2.6))
    at = np.arange(len(ratio))
    axis.bar(at, ratio, width=0.6, color=[RED if each <= check.test.level else BLUE for each in p])
    axis.axhline(0, color=GREY, linewidth=1)
    for k in at:
        axis.annotate(f"p {p[k]:.2g}", (k, max(ratio[k], 0)), ha="center", va="bottom", fontsize=8)
    low = len(ratio) // 2 - 1
    axis.set_xticks(at, [f"$4^{{{k - low}}}$" for k in at])
    axis.set(xlabel="h over the median squared distance", title="KSD² over its null standard deviation")
    axis.margins(y=0.15)
    caption = "What each kernel of the test saw by itself: wide kernels see the whole, narrow ones details."
    return saved(figure, folder, "kernels", caption)
