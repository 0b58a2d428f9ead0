"""A run followed: discrepancy, Stein ratio and test of its particles against steps, and from which step on it has settled."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from polystein._checks import brief, random_key
from polystein._types import Key
from polystein.gof.inputs import level_of
from polystein.loop import Progress
from polystein.quality.comparison import html_table
from polystein.quality.measure import HEADER, Measured, measured, yardstick
from polystein.quality.sample import sample_of
from polystein.report.drawing import PALETTE, style
from polystein.tables import markdown
from polystein.target import Target


class Snapshots(dict[int, np.ndarray]):
    """A callback that keeps the particles at the end of every chunk, by step: ``run(..., callbacks=[snapshots])``.

    >>> import jax, jax.numpy as jnp, polystein as ps
    >>> target = ps.Target.of(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
    >>> snapshots = ps.Snapshots()
    >>> post = ps.run(ps.SVGD(), target, particles=20, steps=30, chunk=10, key=jax.random.key(0), callbacks=[snapshots])
    >>> list(snapshots)
    [10, 20, 30]
    """

    def __call__(self, progress: Progress) -> None:
        """Keep them."""
        self[progress.step] = np.asarray(progress.particles)


class Convergence(NamedTuple):
    """A line a snapshot, under one kernel: that of the last; ``settled``: the step from which on nothing changes any more."""

    lines: dict[int, Measured]
    settled: int | None
    level: float

    @property
    def header(self) -> list[str]:
        """Of the table."""
        return ["step", *HEADER[:-1]]

    @property
    def rows(self) -> list[list[Any]]:
        """Of the table."""
        return [[step, *line.cells[:-1]] for step, line in self.lines.items()]

    @property
    def sentence(self) -> str:
        """Whether it has settled, and on the target."""
        last = list(self.lines.values())[-1]
        where = "what the test cannot tell from draws of the target" if last.p_value > self.level else "what is not the target"
        if self.settled is None:
            return "The discrepancy still changes; run longer."
        return f"Settled from step {self.settled} on, at {where} (p = {last.p_value:.3g})."

    def __str__(self) -> str:
        return f"{markdown(self.header, self.rows)}\n\n{self.sentence}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self.header, self.rows) + f"<p>{html.escape(self.sentence)}</p>"

    def plot(self) -> Any:
        """KSD^2 and the Stein ratio against steps, with two standard errors, as a matplotlib figure."""
        steps, lines = list(self.lines), list(self.lines.values())
        with style() as plt:
            figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.8))
            for axis, exact, title, value, error in [
                (left, 0, "KSD²", [a.ksd.value for a in lines], [a.ksd.error for a in lines]),
                (right, 1, "Stein ratio", [a.ratio for a in lines], [a.ratio_error for a in lines]),
            ]:
                axis.axhline(exact, color=PALETTE[5], linewidth=1)
                axis.errorbar(steps, value, yerr=2 * np.array(error), marker="o", markersize=3, linewidth=1)
                axis.set(title=title, xlabel="step")
            left.set_yscale("symlog", linthresh=max(lines[-1].ksd.chance, 1e-12))
        return figure


def convergence(
    snapshots: Mapping[int, Any],
    target: Target | Callable[[Any], Any],
    *,
    level: float = 0.05,
    key: Key | None = None,
) -> Convergence:
    """KSD, Stein ratio and test at every snapshot of a run.

    **Arguments:**

    - ``snapshots``: particles (n, d) by step, in the target's free coordinates, as ``Snapshots()`` keeps them.
    - ``target``: what they are to be draws of.
    - ``level``: of the tests.
    - ``key``: of the tests' random signs.

    >>> import jax, jax.numpy as jnp, polystein as ps
    >>> x = jax.random.normal(jax.random.key(0), (100, 2))
    >>> ps.convergence({0: x + 2, 10: x + 1, 20: x, 30: x}, lambda u: -0.5 * u @ u).settled
    20
    """
    if not isinstance(snapshots, Mapping) or not snapshots:
        raise ValueError(
            f"snapshots={brief(snapshots)} of type {type(snapshots).__name__}; expected particles by step, one at least; pass "
            "Snapshots() as a callback of run or infer, and then here"
        )
    level = level_of(level)
    signs: Key = random_key(jax.random.key(0) if key is None else key)
    steps = sorted(snapshots)
    if not isinstance(target, Target):
        target = Target.of(target, jax.numpy.asarray(snapshots[steps[0]][0]))
    samples = {step: sample_of(snapshots[step], target, independent=True) for step in steps}
    by = yardstick([samples[steps[-1]]])
    lines = {step: measured(sample, by, level, signs) for step, sample in samples.items()}
    last = lines[steps[-1]].ksd
    away = [step for step in steps if abs(lines[step].ksd.value - last.value) > 2 * max(lines[step].ksd.error, last.error)]
    after = [step for step in steps if not away or step > away[-1]]
    return Convergence(lines, after[0] if len(after) > 1 else None, level)
