"""What ``check`` answers: sentences, tables and a page, and the numbers behind them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polystein.gof import GoodnessOfFit
from polystein.quality.discrepancy import Discrepancy
from polystein.quality.identities import FINE, SHIFTED, Direction, Parameter
from polystein.quality.sample import Sample
from polystein.report.page import section_html
from polystein.tables import markdown

FEW, APART = 25.0, 1.05  # effective draws below which, and R-hat above which, chains have not been run for long enough
SHOWN = 30  # parameters in the printed table; the report has all


class Check(NamedTuple):
    """The verdict on a sample; prints as text, shows as tables in a notebook, ``save(folder)`` writes a page with figures."""

    sample: Sample
    parameters: list[Parameter]
    directions: list[Direction]
    chains: list[float]  # the least effective number of draws over parameters, chain by chain
    ksd: Discrepancy
    p_single: float
    test: GoodnessOfFit
    level: float
    thinned: str

    @property
    def problems(self) -> list[str]:
        """What is wrong, a sentence each; none for a sample that is fine."""
        out = []
        for one in self.parameters:
            if SHIFTED in one.word:
                out.append(f"{one.name} is shifted by {one.shift:+.2g} of its standard deviation (± {one.shift_error:.2g})")
            if one.word not in (FINE, SHIFTED):
                word = one.word.removeprefix(f"{SHIFTED}, ")
                out.append(f"{one.name} is {word}: {_variance(one.ratio, one.ratio_error)}")
            if one.word != FINE and one.name in self.sample.hints:
                out.append(self.sample.hints[one.name])
        for way in self.directions:
            if way.word != FINE:
                out.append(f"the draws are {way.word} along {way.name}: {_variance(way.ratio, way.ratio_error)}")
        if self.test.rejected:
            out.append(f"the maxMKSD test tells the draws from the target (p = {float(self.test.p_value):.3g})")
        few = [one for one in self.parameters if one.effective < FEW]
        if few:
            worst = min(few, key=lambda one: one.effective)
            out.append(f"{worst.name} has {worst.effective:.0f} effective draws, too few to tell; run longer")
        apart = [one for one in self.parameters if one.rhat > APART]
        if apart:
            worst = max(apart, key=lambda one: one.rhat)
            out.append(f"half chains disagree on {worst.name} (R-hat {worst.rhat:.2f}); run longer, or look for several modes")
        return out

    @property
    def fine(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def facts(self) -> list[str]:
        """What was measured on the whole sample, a sentence each."""
        ksd, p = self.ksd, float(self.test.p_value)
        kind = "independent draws" if self.sample.independent else "draws of chains"
        out = [
            f"KSD² {ksd.value:.3g} ± {ksd.error:.2g}, of exact draws 0 ± {ksd.chance:.2g} (U-statistic, IMQ kernel)",
            f"p = {p:.3g} by the maxMKSD test, {self.p_single:.3g} by the KSD of one kernel ({kind})",
            f"effective draws {_listed(self.chains)}" + ("" if len(self.chains) == 1 else ", by chain"),
        ]
        return out + ([self.thinned] if self.thinned else [])

    def __str__(self) -> str:
        order = sorted(range(len(self.parameters)), key=lambda j: self.parameters[j].word == FINE)
        shown = sorted(order[:SHOWN])
        header, rows = parameter_table([self.parameters[j] for j in shown])
        left = len(self.parameters) - len(shown)
        sentence = f"{self.sample.words}: " + ("nothing is wrong with them." if self.fine else "something is wrong.")
        parts = [sentence, markdown(header, rows)]
        if left:
            parts.append(f"and {left} more parameters, in the report that save(folder) writes")
        if self.directions:
            parts.append(markdown(WAYS, [way_of(way) for way in self.directions]))
        parts.append("\n".join(self.facts))
        if not self.fine:
            parts.append("\n".join(f"- {sentence}" for sentence in self.problems))
        return "\n\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from polystein.quality.page import section_of

        return section_html(section_of(self))

    def as_dict(self) -> dict[str, Any]:
        """Every number, ready for JSON; what is not finite as None."""
        test = self.test
        numbers = {
            "fine": self.fine,
            "problems": self.problems,
            "chains": self.sample.x.shape[0],
            "draws": self.sample.x.shape[1],
            "independent": self.sample.independent,
            "level": self.level,
            "p_value": float(test.p_value),
            "p_value_single_kernel": self.p_single,
            "ksd_squared": {"value": self.ksd.value, "standard_error": self.ksd.error, "null_deviation": self.ksd.chance},
            "effective_draws_by_chain": self.chains,
            "thinned": self.thinned,
            "parameters": [one._asdict() for one in self.parameters],
            "directions": [{**way._asdict(), "vector": np.asarray(way.vector).tolist()} for way in self.directions],
            "kernels": [
                {"kernel": name, "statistic": float(u), "null_deviation": float(sd), "p_value": float(p)}
                for name, u, sd, p in zip(
                    test.contributions.names, *(np.asarray(a) for a in test.contributions[1:]), strict=True
                )
            ],
        }
        return _finite(numbers)

    def save(self, folder: str | Path) -> Path:
        """Write report.html, report.md, results.json, tables and (with matplotlib) figures into a folder; the page's place."""
        from polystein.quality.page import write_report

        return write_report(self, Path(folder))


WAYS = ["direction", "Stein ratio", "±", "verdict"]


def parameter_table(shown: list[Parameter]) -> tuple[list[str], list[list[Any]]]:
    """Parameters as a header and rows, with R-hat where there are chains."""
    chains = not all(math.isnan(one.rhat) for one in shown)
    rhat = lambda value: [value] if chains else []
    header = ["parameter", "mean", "sd", "Stein ratio", "±", "shift/sd", "±", "eff. draws", *rhat("R-hat"), "verdict"]
    return header, [[*one[:7], round(one.effective), *rhat(one.rhat), one.word] for one in shown]


def way_of(way: Direction) -> list[Any]:
    """A direction as a row under ``WAYS``."""
    return [way.name, way.ratio, way.ratio_error, way.word]


def _variance(ratio: float, error: float) -> str:
    return f"its variance is about {max(ratio, 0):.2g} of what it should be (± {error:.2g})"


def _listed(numbers: list[float]) -> str:
    return ", ".join(f"{number:.0f}" for number in numbers)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
