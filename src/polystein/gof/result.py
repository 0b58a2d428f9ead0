"""What a test of goodness of fit answers: a sentence, a table of kernels, and the numbers behind them."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float

from polystein._types import Scalar
from polystein.kernels import AbstractKernel
from polystein.tables import markdown


class Contributions(NamedTuple):
    """What each part of a test saw by itself: a kernel, or a location.

    ``statistic`` is its discrepancy, ``deviation`` what chance makes of that (its s.d. were the sample right), ``p_value`` its
    own, not corrected for the company it is in.
    """

    names: list[str]
    statistic: Float[Array, "m"]
    deviation: Float[Array, "m"]
    p_value: Float[Array, "m"]


class GoodnessOfFit(NamedTuple):
    """The outcome of a test that a sample is from a target; prints as a sentence and a table."""

    test: str
    tested: int  # how many draws
    statistic: Scalar
    p_value: Scalar
    level: float
    contributions: Contributions
    locations: Float[Array, "m d"] | None = None  # where a finite-set test looked, in the samples' units

    @property
    def rejected(self) -> Bool[Array, ""]:
        """Whether the p-value is at most the level."""
        return self.p_value <= self.level

    def __str__(self) -> str:
        p, verdict = float(self.p_value), "differ from" if self.rejected else "may well be draws of"
        sentence = f"{self.test}: the {self.tested} samples {verdict} the target (p = {p:.3g}, level {self.level:g})."
        part = self.contributions
        rows = [
            [name, float(s), float(sd), float(s / sd) if sd > 0 else float("nan"), float(p)]
            for name, s, sd, p in zip(
                part.names, *(np.asarray(a) for a in (part.statistic, part.deviation, part.p_value)), strict=True
            )
        ]
        return f"{sentence}\n\n{markdown(['part', 'statistic', 'null s.d.', 'ratio', 'p alone'], rows)}"

    __repr__ = __str__


def kernel_name(kernel: AbstractKernel) -> str:
    """The class of a kernel and its scalar hyper-parameters.

    >>> from polystein import IMQ
    >>> kernel_name(IMQ(2.0))
    'IMQ(h=2, c=1, beta=-0.5)'
    """
    parts = {field.name: getattr(kernel, field.name) for field in dataclasses.fields(kernel)}
    shown = [f"{name}={float(a):.3g}" for name, a in parts.items() if isinstance(a, float) or getattr(a, "shape", None) == ()]
    return f"{type(kernel).__name__}({', '.join(shown)})"
