"""The benchmark runs at tiny sizes, its programs take turns, and its tables and verdicts are functions of the record."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from benchmarks.speed import __main__ as speed
from benchmarks.speed import peers, report
from benchmarks.speed.cases import GROUPS, end_to_end, pair_step
from benchmarks.speed.peers import reference
from benchmarks.speed.problems import logistic
from benchmarks.speed.record import Cell, Record, cells, seconds
from benchmarks.speed.timing import LEAST, LeftOut, Program, Times, take_turns
from benchmarks.speed.verdicts import DRIFT, MANY, ONE, limit, verdicts


def cell(program: str, value: float | None, **case: object) -> Cell:
    return Cell(case, program, value, value, value, 5, left_out="" if value else "takes 30 s")


def pair_groups(one: float = 1.0) -> dict[str, list[Cell]]:
    """Steps of which some targets are met and some are missed."""
    case = {"n": 1000, "d": 64}
    times = {"3 products": 0.25, "pass, drift alone": 0.25, "5 products": 0.5, "pass, 1 kernels": 0.25, DRIFT: 0.5, ONE: one}
    return {"pair step many": [cell(name, value, **case) for name, value in (times | {MANY: 1.2, "BlackJAX": None}).items()]}


def test_the_quick_benchmark_runs(tmp_path, monkeypatch, capsys):
    """With one peer, as if the others were not installed; groups that are measured later join those in the folder."""
    monkeypatch.setattr(peers, "PEERS", [reference])
    monkeypatch.setattr(pair_step, "QUICK", [(6, 2)])
    monkeypatch.setattr(pair_step, "KERNELS", (10,))
    monkeypatch.setattr(end_to_end, "QUICK", [(logistic(), 4)])
    monkeypatch.setattr(end_to_end, "METHODS", dict(list(end_to_end.METHODS.items())[:1]))
    for name in ("pair step few", "end to end"):
        speed.main(["--quick", "--only", name, "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    record = Record(tmp_path)
    assert list(record.groups) == ["pair step few", "end to end"]
    for name, case in {"pair step few": {"n": 6, "d": 2}, "end to end": {"n": 4}}.items():
        assert seconds(record.cells(name), MANY, **case) > 0
        assert seconds(record.cells(name), reference.NAME, **case) > 0
    text = (tmp_path / "speed.md").read_text()
    assert text in printed
    assert "NumPy reference" in text
    assert (tmp_path / "speed.svg").is_file()
    speed.main(["--only", "none", "--out", str(tmp_path)])
    assert (tmp_path / "speed.md").read_text() == text


def test_an_unknown_group_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        speed.main(["--only", "nonsense", "--out", str(tmp_path)])
    said = capsys.readouterr().err
    assert all(name in said for name in ("nonsense", *GROUPS))


def test_every_group_has_a_table():
    assert set(report.TABLES) == {name.removesuffix(" few").removesuffix(" many") for name in GROUPS}


def test_programs_take_turns():
    order: list[str] = []
    program = lambda name, units: lambda: Program(lambda: order.append(name), units)
    found = take_turns({"a": program("a", 1)}, {"b": program("b", 10)}, seconds=0)
    assert [times.rounds for times in found.values()] == [LEAST, LEAST]
    turns = [name for k, name in enumerate(order) if k == 0 or order[k - 1] != name]
    assert turns == ["a", "b"] * (1 + LEAST)
    assert all(0 < times.low <= times.median <= times.high for times in found.values())


def test_guests_may_fail_and_hosts_may_not():
    def absent() -> Program:
        raise ModuleNotFoundError("No module named 'peer'", name="peer")

    def refused() -> Program:
        raise LeftOut("holds n^2 d floats, 26 GB")

    failing = lambda: Program(lambda: 1 / 0)
    guests = {"absent": absent, "refused": refused, "failing": failing, "slow": lambda: Program(int)}
    found = take_turns({}, guests, seconds=0, cap=-1)
    assert found["absent"] == "peer is not installed here"
    assert found["refused"] == "holds n^2 d floats, 26 GB"
    assert found["failing"] == "fails: ZeroDivisionError: division by zero"
    assert "steps take" in found["slow"]
    assert [c.left_out for c in cells({}, found)] == list(found.values())
    with pytest.raises(ZeroDivisionError):
        take_turns({"failing": failing}, seconds=0)


def test_a_limit_is_products_and_pass():
    found = pair_groups()["pair step many"]
    assert limit(found, DRIFT, n=1000, d=64) == 0.5
    assert limit(found, ONE, n=1000, d=64) == 0.75
    assert math.isnan(limit(found, ONE, n=100, d=64))


def test_verdicts_are_met_missed_or_not_measured():
    judged = {each.target: each for each in verdicts(pair_groups())}
    over = judged[f"{MANY}, over {ONE}, n = 1000, d = 64"]
    assert (over.needed, over.found, over.met) == ("<= 1.3x", "1.2x", True)
    assert not judged[f"{MANY}, over {DRIFT}, n = 1000, d = 64"].met
    assert judged[f"{MANY}, over {ONE}, n = 1000, d = 512"].met is None
    slower = {each.target: each for each in verdicts(pair_groups(one=0.5))}
    assert slower[over.target].found == "2.4x"
    assert slower[over.target].met is False


def test_a_report_is_a_function_of_its_record(tmp_path):
    record = Record(tmp_path)
    record.keep("pair step many", pair_groups()["pair step many"], "python -m benchmarks.speed")
    first = report.write(record, tmp_path)
    again = Record(tmp_path)
    assert json.loads(record.file.read_text()) == again.groups
    assert report.write(again, tmp_path) == first
    for part in ("`python -m benchmarks.speed`", "**missed**", "BlackJAX: takes 30 s (at n = 1000, d = 64)", "not measured"):
        assert part in first
    record.keep("pair step many", [cell(MANY, 2.0, n=9, d=9)], "another")
    assert [c.case["n"] for c in Record(tmp_path).cells("pair step many")] == [9]


def test_the_documents_say_what_the_record_says():
    docs = Path(__file__).parents[2] / "docs"
    assert report.told(Record(docs)) in (docs / "benchmarks.md").read_text("utf-8")


def test_times_become_cells():
    ((found,), case) = list(cells({"n": 3}, {"a": Times(2.0, 1.0, 3.0, 7, 9.0)}, peak=1)), {"n": 3}
    assert found == Cell(case, "a", 2.0, 1.0, 3.0, 7, 9.0, facts={"peak": 1})
