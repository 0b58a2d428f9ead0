"""Tables and figures of a record: what they say is a function of it alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.speed.record import Cell, Record, seconds
from benchmarks.speed.verdicts import DRIFT, MANY, ONE, WITHOUT, Groups, limit, verdicts
from polystein.tables import markdown

THIRTY = "30 kernels, learned weights"


def write(record: Record, folder: Path) -> str:
    """``speed.md`` in the folder, and figures beside it where matplotlib is there; gives back the text."""
    text = told(record)
    (folder / "speed.md").write_text(text, "utf-8")
    try:
        from benchmarks.speed.figures import draw
    except ImportError as absent:
        return f"{text}\nno figures: {absent}"
    draw({name: record.cells(name) for name in record.groups}, folder)
    return text


def told(record: Record) -> str:
    """Everything that a record says, in Markdown."""
    groups = {name: record.cells(name) for name in record.groups}
    return "\n".join([*judgement(groups), *tables(groups), *origin(record)])


def judgement(groups: Groups) -> Iterator[str]:
    """A line for every target."""
    words = {True: "met", False: "**missed**", None: "-"}
    rows = [[each.target, each.needed, each.found, words[each.met]] for each in verdicts(groups)]
    yield "## Targets\n"
    yield markdown(["target", "needed", "found", ""], rows) + "\n"


def tables(groups: Groups) -> Iterator[str]:
    """One section for what was measured together."""
    for name, table in TABLES.items():
        found = [cell for group, cells in groups.items() if group.startswith(name) for cell in cells]
        if found:
            yield f"## {name.capitalize()}\n"
            yield from table(found)


def origin(record: Record) -> Iterator[str]:
    """Which group was measured where, when, by which command."""
    rows = []
    for name, group in record.groups.items():
        made = group["made"]
        rows.append([name, f"`{made['command']}`", f"{made['processor']}, {made['cores']} cores", made["load"], made["at"]])
    yield "## Where the numbers come from\n"
    yield markdown(["group", "command", "machine", "load before", "at"], rows) + "\n"
    versions = {name: version for group in record.groups.values() for name, version in group["made"]["versions"].items()}
    yield ", ".join(f"{name} {version}" for name, version in versions.items()) + "\n"


def ratio(value: float, digits: int = 2) -> str:
    """A multiple, or a dash.

    >>> ratio(12.345), ratio(float("nan"))
    ('12', '-')
    """
    return f"{value:.{digits}g}" if math.isfinite(value) and value < 100 else f"{value:.0f}" if math.isfinite(value) else "-"


def milliseconds(value: float) -> str:
    """Of seconds."""
    return f"{1e3 * value:.3g}" if math.isfinite(value) else "-"


def _limits(found: Sequence[Cell]) -> Iterator[str]:
    units = {"matrix product, float32": "Gflop/s", "exponentials in a fused pass": "G/s", "memory": "GB/s"}
    yield (
        markdown(["limit", "rate"], [[c.program, f"{1e-9 / c.seconds:.3g} {units[c.program]}"] for c in found if c.seconds])
        + "\n"
    )


def _cases(found: Sequence[Cell]) -> list[dict]:
    return [dict(case) for case in dict.fromkeys(tuple(cell.case.items()) for cell in found)]


def _pair_step(found: Sequence[Cell]) -> Iterator[str]:
    rows = []
    for case in _cases(found):
        at = lambda program, case=case: seconds(found, program, **case)
        over = lambda program, other, at=at: ratio(at(program) / at(other))
        limits = [ratio(at(program) / limit(found, program, **case)) for program in (DRIFT, ONE, MANY)]
        others = [over(MANY, ONE), over(MANY, DRIFT), over(THIRTY, MANY), over(MANY + WITHOUT, MANY)]
        rows.append([*case.values(), milliseconds(at(MANY)), *limits, *others])
    header = ["n", "d", "10 kernels, ms", "drift / limit", "1, KSD / limit", "10 / limit", "10 / 1, KSD", "10 / drift"]
    yield "Given scores. Multiples of a program's own limit, then ratios between our own programs.\n"
    yield markdown([*header, "30 / 10", "without native / with"], rows) + "\n"
    yield "How many times our step with ten kernels and learned weights a peer's step with one kernel takes.\n"
    own = ("1 kernel", "10 kernels", "30 kernels", "pass", "3 products", "5 products")
    yield _against(found, ["n", "d"], own)


def _end_to_end(found: Sequence[Cell]) -> Iterator[str]:
    yield "How many times our step with ten kernels and learned weights any other step takes.\n"
    yield _against(found, ["model", "n", "d"], (MANY,))


def _against(found: Sequence[Cell], axes: list[str], hidden: tuple[str, ...]) -> str:
    programs = list(dict.fromkeys(cell.program for cell in found if not cell.program.startswith(hidden)))
    rows = []
    for case in _cases(found):
        at = lambda program, case=case: seconds(found, program, **case)
        rows.append([*(case[a] for a in axes), milliseconds(at(MANY)), *(ratio(at(name) / at(MANY)) for name in programs)])
    return markdown([*axes, "ours, ms", *programs], rows) + "\n" + _left_out(found)


def _left_out(found: Sequence[Cell]) -> str:
    reasons: dict[str, list[str]] = {}
    for cell in found:
        if cell.left_out:
            place = ", ".join(f"{axis} = {value}" for axis, value in cell.case.items())
            reasons.setdefault(f"{cell.program}: {cell.left_out}", []).append(place)
    lines = [f"- {reason} (at {'; '.join(places)})" for reason, places in reasons.items()]
    return "\nLeft out:\n\n" + "\n".join(lines) + "\n" if lines else ""


def _large(found: Sequence[Cell]) -> Iterator[str]:
    rows = [[c.case["n"], c.case["d"], c.case["m"], c.seconds, c.facts["peak bytes"] / 1e9] for c in found]
    yield markdown(["n", "d", "kernels", "seconds a step", "peak, GB"], rows) + "\n"


def _approximate(found: Sequence[Cell]) -> Iterator[str]:
    rows = []
    for cell in found:
        exact = seconds(found, "exact", **cell.case)
        rows.append([*cell.case.values(), cell.program, ratio(exact / (cell.seconds or math.nan)), *cell.facts.values()])
    yield "A sweep for the drift and all discrepancies: how many times as fast as the exact one, and its relative errors.\n"
    yield markdown(["n", "d", "kernels", "sums", "times as fast", "error of phi", "error of the KSDs"], rows) + "\n"


def _first_result(found: Sequence[Cell]) -> Iterator[str]:
    facts = ["import", "first", "second", "programs compiled", "compiled by the second"]
    rows = [[c.case["call"], c.program, c.seconds, *(c.facts[name] for name in facts)] for c in found]
    yield markdown(["call", "process", "import + first, s", *facts], rows) + "\n"


TABLES: dict[str, Callable[[Sequence[Cell]], Iterator[str]]] = {
    "limits": _limits,
    "pair step": _pair_step,
    "end to end": _end_to_end,
    "large": _large,
    "approximate": _approximate,
    "first result": _first_result,
}
