"""``polystein reproduce``: nothing runs twice, an interrupted run goes on, a report says what the records say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from polystein import cli
from polystein.experiments import command
from polystein.experiments.base import AbstractExperiment, Batch, Wishes
from polystein.experiments.records import Record, configuration
from polystein.report.figures import pyplot
from polystein.report.section import Claim, Measured, Section, Table, Verdict


class Counting(AbstractExperiment):
    """Two methods of four trials on a data set; the program is killed before the trial ``fatal`` of method B."""

    name = "counting"
    ran: list[tuple[str, int]]
    fatal: int | None = None

    def methods(self) -> Sequence[str]:
        return ["A", "B", "slow"]

    def datasets(self) -> Sequence[str]:
        return ["yacht"]

    def batches(self, wishes: Wishes) -> Sequence[Batch]:
        def compute(configs, progress):
            for config in configs:
                if config["method"] == "B" and config["trial"] == Counting.fatal:
                    raise KeyboardInterrupt
                Counting.ran.append((config["method"], config["trial"]))
                progress(0.5)
            return [{"value": float(config["trial"] + wishes.seed)} for config in configs]

        named = wishes.methods or ("A", "B")
        make = lambda method, trial: configuration(
            self.name, method, {"h": 1.0}, trial=trial, seed=wishes.seed, data="yacht", quick=wishes.quick
        )
        return [Batch([make(name, trial) for trial in range(wishes.trials or 4)], compute, chunk=2) for name in named]

    def section(self, records: Sequence[Record], wishes: Wishes, figures: Path | None) -> Section:
        methods = dict.fromkeys(record.config["method"] for record in records)
        values = {name: [r.result["value"] for r in records if r.config["method"] == name] for name in methods}
        rows = [[name, Measured.of(found), Verdict.BETTER] for name, found in values.items()]
        return Section(
            "Counting", "Words.", [Claim("It counts", "so it does", Verdict.HOLDS)], [Table("T", ["", "v", "x"], rows)]
        )


@pytest.fixture
def counting(monkeypatch, shared):
    monkeypatch.setattr(command, "EXPERIMENTS", (Counting,))
    monkeypatch.setattr(Counting, "ran", [], raising=False)
    monkeypatch.setattr(Counting, "fatal", None)
    monkeypatch.setenv("POLYSTEIN_DATA", str(shared / "data"))
    return Counting


ALL = [(name, trial) for name in "AB" for trial in range(4)]


def test_an_interrupted_run_goes_on_and_nothing_runs_twice(counting, tmp_path, capsys):
    out = ["reproduce", "counting", "--out", str(tmp_path)]
    counting.fatal = 3
    assert cli.main(out) == cli.INTERRUPTED
    assert "interrupted with 6 records" in capsys.readouterr().err
    counting.fatal = None
    assert cli.main(out) == 0
    assert counting.ran == [*ALL[:7], *ALL[6:]]  # the chunk that was cut runs again: trial 2 of B, whose record was not kept
    before = (tmp_path / "report.html").read_bytes()
    assert cli.main(out) == 0
    assert len(counting.ran) == 9
    assert (tmp_path / "report.html").read_bytes() == before
    assert cli.main([*out, "--no-resume"]) == 0
    assert counting.ran[9:] == ALL


def test_more_trials_run_only_the_new_ones(counting, tmp_path):
    out = ["reproduce", "counting", "--out", str(tmp_path)]
    cli.main([*out, "--trials", "2", "--methods", "b"])
    cli.main([*out, "--trials", "3"])
    assert sorted(counting.ran) == [*ALL[:3], *ALL[4:7]]


def test_records_travel_without_their_folder(counting, tmp_path):
    """A report is made anew from records.jsonl alone, where neither data nor time are at hand."""
    out = ["reproduce", "counting", "--out", str(tmp_path)]
    cli.main(out)
    for file in (tmp_path / "records").iterdir():
        file.unlink()
    assert cli.main([*out, "--data", str(tmp_path / "nowhere")]) == 0
    assert counting.ran == ALL


def test_what_runs_on_request_is_shown_where_its_record_is(counting, tmp_path):
    out = ["reproduce", "counting", "--out", str(tmp_path)]
    cli.main([*out, "--methods", "slow"])
    cli.main(out)
    assert "slow" in (tmp_path / "report.md").read_text("utf-8")
    cli.main([*out, "--methods", "A"])
    assert "slow" not in (tmp_path / "report.md").read_text("utf-8")


def test_results_are_for_programs_too(counting, tmp_path):
    cli.main(["reproduce", "counting", "--out", str(tmp_path), "--quick"])
    found = json.loads((tmp_path / "results.json").read_text("utf-8"))
    rows = found[0]["tables"][0]["rows"]
    assert rows[0][0] == "A"
    assert rows[0][1] == {"mean": 1.5, "se": pytest.approx(0.6455, abs=1e-4), "sd": pytest.approx(1.291, abs=1e-3), "trials": 4}
    lines = (tmp_path / "tables" / "counting-t.csv").read_text("utf-8").splitlines()
    assert lines[0] == ",v,v se,v sd,v trials,x"
    assert lines[1].startswith("A,1.5,0.645")
    assert "quick run" in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.parametrize("harm", ["missing", "altered"])
def test_missing_and_altered_data_are_the_loaders_sentence(harm, counting, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "data"
    if harm == "altered":
        folder.mkdir()
        (folder / "yacht_hydrodynamics.data").write_text("1 2 3 4 5 6 7\n")
    status = cli.main(["reproduce", "counting", "--out", str(tmp_path / "out"), "--data", str(folder)])
    said = capsys.readouterr().err
    assert status == command.UNUSABLE
    assert said.startswith(f"polystein: {folder}")
    assert said.count("\n") == 1
    assert counting.ran == []


def test_without_matplotlib_there_are_tables_and_a_sentence(counting, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(ImportError):
        pyplot()
    assert cli.main(["reproduce", "counting", "--out", str(tmp_path)]) == 0
    assert "pip install 'polystein[plot]'" in capsys.readouterr().err
    assert "no figures" not in (tmp_path / "report.html").read_text("utf-8")
