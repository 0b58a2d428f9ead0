"""Figures. matplotlib is imported at use: ``pip install polystein[plot]``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from polystein._types import Scalar, Vector


def pyplot() -> Any:
    """matplotlib.pyplot on a canvas without a screen."""
    try:
        import matplotlib
    except ImportError as missing:
        raise ImportError("figures need matplotlib, which is not installed; run: pip install 'polystein[plot]'") from missing
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    return plt


def particles_over_contours(
    path: Path,
    log_density: Callable[[Vector], Scalar],
    panels: Mapping[str, Float[Array, "n 2"]],
    weights: Float[Array, "m"],
    labels: list[str],
) -> None:
    """Particles of several methods over the contours of a density in the plane, and the weights of the kernels."""
    plt = pyplot()
    figure, axes = plt.subplots(1, len(panels) + 1, figsize=(3.6 * (len(panels) + 1), 3.4), layout="constrained")
    everything = np.concatenate([np.asarray(x) for x in panels.values()])
    low, high = everything.min(0) - 1, everything.max(0) + 1
    grid = np.stack(np.meshgrid(np.linspace(low[0], high[0], 80), np.linspace(low[1], high[1], 80)), -1)
    density = np.exp(np.asarray(jax.vmap(log_density)(jnp.asarray(grid.reshape(-1, 2))))).reshape(80, 80)
    for axis, (title, x) in zip(axes, panels.items(), strict=False):
        axis.contour(grid[..., 0], grid[..., 1], density, levels=6, cmap="Blues", linewidths=1)
        axis.scatter(*np.asarray(x).T, s=6, color="#d1495b", linewidths=0)
        axis.set_title(title, fontsize=10)
        axis.set_aspect("equal")
    axes[-1].bar(labels, np.asarray(weights), color="#30638e")
    axes[-1].set_title("learned weights", fontsize=10)
    axes[-1].tick_params(axis="x", rotation=60, labelsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)
