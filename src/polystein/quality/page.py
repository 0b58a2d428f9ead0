"""The report on a sample: claims with verdicts, tables, figures where matplotlib is there, settings; one page and its files."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from polystein.quality.drawing import figures_of
from polystein.quality.identities import FINE
from polystein.quality.verdict import WAYS, Check, parameter_table, way_of
from polystein.report.figures import pyplot
from polystein.report.files import write
from polystein.report.page import Facts
from polystein.report.section import Claim, Figure, Section, Table, Verdict

LEAD = (
    "Draws of a sampler, judged by the score of the density they should be draws of: Stein's identity parameter by parameter "
    "and direction by direction, kernel Stein discrepancies, and a test."
)
HOW = (
    "The Stein ratio is the variance of a parameter in units of what it should be (exactly so for a Gaussian): below one the "
    "draws are too narrow, above one too wide. Shifts are in standard deviations. Errors are standard errors over the "
    "effective draws; words other than fine are significant for all parameters together."
)
WHERE = "Found on the first half of the draws, measured on the second: combinations that single parameters may not show."


def section_of(check: Check, figures: Path | None = None) -> Section:
    """The whole verdict; figures are saved into a folder, and left out where it is None."""
    header, rows = parameter_table(check.parameters)
    tables = [Table("Parameters", header, rows, HOW)]
    if check.directions:
        tables.append(Table("Extreme directions", WAYS, [way_of(way) for way in check.directions], WHERE))
    names = ["kernel", "KSD²", "null s.d.", "ratio", "p alone"]
    part = check.test.contributions
    each = zip(part.names, *([float(a) for a in numbers] for numbers in part[1:]), strict=True)
    tables.append(
        Table(
            "Kernels of the test",
            names,
            [[name, u, sd, u / sd if sd > 0 else 0.0, p] for name, u, sd, p in each],
            "In standardised coordinates; h is the median squared distance times a power of 4. The test allows for them all.",
        )
    )
    drawn: list[Figure] = [] if figures is None else figures_of(check, figures)
    null = "wild bootstrap" if check.sample.independent else "Markov bootstrap, its signs as correlated as the draws"
    settings = [
        ("level", f"{check.level:g}, half for the test, half for all statements on parameters and directions"),
        ("null of the test", null),
        ("draws", check.sample.words),
        *([("thinning", check.thinned)] if check.thinned else []),
    ]
    lead = "Nothing is wrong with the draws." if check.fine else "\n\n".join(f"{part}." for part in check.problems)
    return Section(check.sample.words, lead, claims_of(check), tables, drawn, settings)


def claims_of(check: Check) -> list[Claim]:
    """What a good sample would satisfy."""
    verdict = lambda good: Verdict.HOLDS if good else Verdict.FAILS
    wrong = [f"{one.name} {one.word}" for one in check.parameters if one.word != FINE]
    ways = [f"{way.word} along {way.name}" for way in check.directions if way.word != FINE]
    ksd, p, _, *_ = check.facts
    few = [sentence for sentence in check.problems if "run longer" in sentence]
    out = [Claim("The draws are of the target", f"{p}; {ksd}", verdict(not check.test.rejected))]
    found = "; ".join(wrong[:8]) + ("; ..." if len(wrong) > 8 else "") or f"all {len(check.parameters)} are fine"
    out.append(Claim("Parameters are where they should be, and as wide", found, verdict(not wrong)))
    if check.directions:
        sentence = "No combination of parameters is too narrow or too wide"
        out.append(Claim(sentence, "; ".join(ways) or "none", verdict(not ways)))
    out.append(Claim("There are draws enough", "; ".join([*few, check.facts[2]]), verdict(not few)))
    return out


def write_report(check: Check, folder: Path) -> Path:
    """Everything into a folder; without matplotlib, all but the figures."""
    figures: Path | None = folder / "figures"
    try:
        pyplot()
    except ImportError:
        figures = None
    packages = ", ".join(f"{name} {version(name)}" for name in ("polystein", "jax", "numpy"))
    rows = (
        ("packages", packages),
        ("python", sys.version.split()[0]),
        ("run on", datetime.now(UTC).date().isoformat()),
    )
    title = "These draws are fine" if check.fine else "Something is wrong with these draws"
    facts = Facts(rows, title=title, lead=LEAD)
    return write(folder, [section_of(check, figures)], facts, results=check.as_dict())
