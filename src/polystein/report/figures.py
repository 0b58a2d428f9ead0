"""matplotlib, imported at use: ``pip install polystein[plot]``."""

from __future__ import annotations

from typing import Any


def pyplot() -> Any:
    """matplotlib.pyplot on a canvas without a screen."""
    try:
        import matplotlib
    except ImportError as missing:
        raise ImportError("figures need matplotlib, which is not installed; run: pip install 'polystein[plot]'") from missing
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    return plt
