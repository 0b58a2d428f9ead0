"""A progress bar where somebody is looking: in a terminal and in a notebook, silent elsewhere."""

from __future__ import annotations

import sys
from typing import Any

from polystein._types import Trace


def bar(steps: int, done: int, wanted: bool | None, unit: str = "step") -> Any:
    """A tqdm bar over steps: drawn if ``wanted``, not if not, and where a person looks on if None."""
    show = somebody_looks() if wanted is None else wanted
    from tqdm import tqdm

    return tqdm(total=steps, initial=done, disable=not show, unit=unit, dynamic_ncols=True)


def describe(trace: Trace) -> str:
    """RMS of phi relative to the scores, and the largest KSD of the bank, at the last step of a trace."""
    parts = []
    if "score" in trace and float(trace["score"][-1]) > 0:
        parts.append(f"phi/score {float(trace['phi'][-1]) / float(trace['score'][-1]):.1e}")
    if "ksd" in trace:
        parts.append(f"KSD {float(trace['ksd'][-1].max()):.2e}")
    return ", ".join(parts)


def somebody_looks() -> bool:
    """Whether standard error is a terminal, or this is a notebook."""
    shell = sys.modules.get("IPython") and getattr(sys.modules["IPython"], "get_ipython", lambda: None)()
    return bool(getattr(sys.stderr, "isatty", bool)()) or type(shell).__name__ == "ZMQInteractiveShell"
