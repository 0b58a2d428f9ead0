"""The command line: a wrong command is one sentence and status 2, a world that does not play along a sentence and status 1."""

from __future__ import annotations

import subprocess
import sys

import pytest

import polystein
from polystein import cli
from polystein.experiments import command


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "COMMAND"),
        (["conjure"], "conjure"),
        (["reproduce"], "experiment"),
        (["reproduce", "iris"], "iris"),
        (["reproduce", "gaussian", "--trials", "0"], "--trials"),
        (["reproduce", "gaussian", "--trials", "many"], "many"),
        (["reproduce", "gaussian", "--seed", "-1"], "-1"),
        (["reproduce", "gaussian", "--colour"], "--colour"),
        (["reproduce", "gaussian", "--methods", "HMC", "ours"], "'HMC': not known here; expected some of 'MK-SVGD'"),
        (["reproduce", "paper", "--datasets", "iris"], "'iris': not known here; expected some of 'sigma-covariance'"),
    ],
)
def test_a_wrong_command_is_one_sentence(arguments, word, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    said = capsys.readouterr().err
    assert stop.value.code == cli.MISUSED
    assert word in said
    assert said.startswith("polystein")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("trouble", "status", "said"),
    [
        (PermissionError("/nowhere cannot be written"), cli.FAILED, "polystein: /nowhere cannot be written\n"),
        (ImportError("run: pip install 'polystein[plot]'"), cli.FAILED, "polystein: run: pip install 'polystein[plot]'\n"),
        (KeyboardInterrupt(), cli.INTERRUPTED, "polystein: interrupted\n"),
        (KeyboardInterrupt("go on with --resume"), cli.INTERRUPTED, "polystein: go on with --resume\n"),
    ],
)
def test_trouble_is_one_sentence(trouble, status, said, monkeypatch, capsys):
    def fail(given):
        raise trouble

    monkeypatch.setattr(command, "run", fail)
    assert cli.main(["reproduce", "gaussian"]) == status
    assert capsys.readouterr().err == said


def test_the_module_is_the_command():
    """``python -m polystein`` where no script was installed, and the version that it is."""
    done = subprocess.run([sys.executable, "-m", "polystein", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"polystein {polystein.__version__}\n"


def test_help_needs_nothing_heavy():
    """The parser is there before jax is: --help answers at once, and a bare install suffices."""
    program = (
        "import sys; from polystein import cli; cli.parser(); print([m for m in ('matplotlib', 'tqdm') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
