"""Several samplers side by side: one kernel, one table, and whether the differences are more than chance."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping
from statistics import NormalDist
from typing import Any, NamedTuple

import jax

from polystein._checks import brief, random_key, whole
from polystein._types import Key
from polystein.gof.inputs import level_of
from polystein.quality.judge import thin_chains
from polystein.quality.measure import HEADER, Measured, measured, yardstick
from polystein.quality.sample import sample_of
from polystein.tables import markdown
from polystein.target import Target


class Comparison(NamedTuple):
    """A line a sampler, the best KSD^2 first; ``worse``: the p-value of the hypothesis that it is no worse than the best."""

    lines: dict[str, Measured]
    worse: dict[str, float]
    level: float
    thinned: dict[str, str]

    @property
    def best(self) -> list[str]:
        """The samplers that are not significantly worse than the best, by Holm's rule."""
        others = sorted((p, name) for name, p in self.worse.items() if not math.isnan(p))
        out: list[str] = []
        for k, (p, name) in enumerate(others):
            if out or p > self.level / (len(others) - k):
                out.append(name)
        return [name for name in self.lines if name in out or math.isnan(self.worse[name])]

    @property
    def header(self) -> list[str]:
        """Of the table."""
        return ["sampler", *HEADER, "p (no worse)"]

    @property
    def rows(self) -> list[list[Any]]:
        """Of the table."""
        return [[name, *line.cells, self.worse[name]] for name, line in self.lines.items()]

    @property
    def sentence(self) -> str:
        """Who is best."""
        best = self.best
        if len(best) == 1:
            return f"{best[0]} is significantly better than all others (level {self.level:g})."
        return f"{', '.join(best)}: not to be told apart (level {self.level:g})."

    def __str__(self) -> str:
        thinned = [f"{name}: {words}" for name, words in self.thinned.items() if words]
        return "\n\n".join([markdown(self.header, self.rows), "\n".join([self.sentence, *thinned])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self.header, self.rows) + f"<p>{html.escape(self.sentence)}</p>"


def compare(
    samples: Mapping[str, Any],
    target: Target | Callable[[Any], Any],
    *,
    constrain: Any = None,
    by_chain: bool | None = None,
    level: float = 0.05,
    max_draws: int = 2000,
    key: Key | None = None,
) -> Comparison:
    """Samples of several samplers under one kernel: KSD, Stein ratio, test, effective draws, with errors.

    The kernel is IMQ in units of all draws together, so that discrepancies are comparable; as U-statistics they are so
    whatever the numbers of draws. Each is set against the least by the errors of both.

    **Arguments:** ``samples``: by name, each as for ``check``; the others are those of ``check``.

    >>> import jax, jax.numpy as jnp, polystein as ps
    >>> x = jax.random.normal(jax.random.key(0), (300, 2))
    >>> ps.compare({"narrow": 0.6 * x, "right": x}, lambda u: -0.5 * u @ u).best
    ['right']
    """
    if not isinstance(samples, Mapping) or not samples:
        raise ValueError(
            f"samples={brief(samples)} of type {type(samples).__name__}; expected samples by name, one at least; "
            "write {'nuts': draws, 'svgd': post}"
        )
    level, most = level_of(level), whole("max_draws", least=20, example=2000)(max_draws)
    signs: Key = random_key(jax.random.key(0) if key is None else key)
    read = {name: sample_of(one, target, constrain=constrain, by_chain=by_chain) for name, one in samples.items()}
    thinned = {name: thin_chains(sample, most) for name, sample in read.items()}
    by = yardstick([sample for sample, _ in thinned.values()])
    lines = {name: measured(sample, by, level, signs) for name, (sample, _) in thinned.items()}
    order = sorted(lines, key=lambda name: lines[name].ksd.value)
    least = lines[order[0]].ksd
    worse = {order[0]: math.nan}
    for name in order[1:]:
        gap, error = lines[name].ksd.value - least.value, math.hypot(lines[name].ksd.error, least.error)
        worse[name] = 1 - NormalDist().cdf(gap / error) if error > 0 else 0.5
    return Comparison(
        {name: lines[name] for name in order}, worse, level, {name: words for name, (_, words) in thinned.items()}
    )


def html_table(header: list[str], rows: list[list[Any]]) -> str:
    """A table for a notebook.

    >>> html_table(["a"], [[0.5]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>0.5</td></tr></tbody></table>'
    """
    cell = lambda tag, value: f"<{tag}>{html.escape(f'{value:.4g}' if isinstance(value, float) else str(value))}</{tag}>"
    head = "".join(cell("th", name) for name in header)
    body = "".join("<tr>" + "".join(cell("td", value) for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
