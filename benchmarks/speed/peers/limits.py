"""What is not even tried."""

from __future__ import annotations

from benchmarks.speed.timing import LeftOut

ROOM = 2.5e9  # bytes


def within_memory(floats: int, what: str) -> None:
    """Refuse programs whose temporaries would not fit.

    >>> within_memory(10**9, "n^2 d")
    Traceback (most recent call last):
        ...
    benchmarks.speed.timing.LeftOut: holds n^2 d floats, 4.0 GB
    """
    if 4 * floats > ROOM:
        raise LeftOut(f"holds {what} floats, {4e-9 * floats:.1f} GB")
