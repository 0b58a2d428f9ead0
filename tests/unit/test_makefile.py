"""The Makefile finds an interpreter or says which to install, and takes no half-installed environment for a whole one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")

# Stands for an interpreter and for the pip of the environments it makes: notes what is installed, fails where told to.
FAKE = """#!/bin/sh
case "$2" in
    venv) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    pip) echo "$@" >>installed && exit "${PIP_FAILS:-0}" ;;
esac
"""


@pytest.fixture
def make(tmp_path: Path):
    """``make`` in a folder whose name has a space, with an interpreter whose path has one."""
    folder = tmp_path / "a checkout"
    (folder / "bin").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    python = folder / "bin" / "my python"
    python.write_text(FAKE)
    python.chmod(0o755)

    def run(target: str, python: str = str(python), **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        command = ["make", "--silent", target, f"PYTHON={python}"]
        return subprocess.run(command, cwd=folder, env=clean | environment, capture_output=True, text=True)

    return folder, run


def test_a_half_install_is_redone_and_a_whole_one_is_kept(make):
    folder, run = make
    installed = lambda: (folder / "installed").read_text().count("install -e .[dev]")
    assert run(".venv/ready", PIP_FAILS="1").returncode
    assert not (folder / ".venv" / "ready").exists()
    for _ in range(2):
        done = run(".venv/ready")
        assert done.returncode == 0, done.stderr
        assert (folder / ".venv" / "ready").exists()
        assert installed() == 2
    os.utime(folder / ".venv" / "ready", (0, 0))  # older than the versions that it is to have
    (folder / ".venv" / "left over").touch()
    assert run(".venv/ready").returncode == 0
    assert installed() == 3
    assert not (folder / ".venv" / "left over").exists()


def test_an_interpreter_is_found(make):
    _, run = make
    assert run("python", sys.executable).stdout.strip() == sys.executable


@pytest.mark.parametrize("broken", ["version_info = (3, 10)", "modules = {'ensurepip': None}", "modules = {'venv': None}"])
def test_what_to_install_is_said(make, broken, tmp_path):
    """An interpreter that is too old, and one that Debian has stripped of what makes environments."""
    _, run = make
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nshift\nexec "{sys.executable}" -c "import sys; sys.{broken}; $1"\n')
    python.chmod(0o755)
    for name in (str(python), str(tmp_path / "nothing")):
        done = run("python", name)
        assert done.returncode
        for part in ("Python >= 3.11", f"having tried: {name}", "apt-get install python3 python3-venv", "make PYTHON="):
            assert part in done.stderr


def test_versions_that_are_not_here_are_skipped_by_name(make, tmp_path):
    folder, _ = make
    alone = {"PATH": str(tmp_path), "PYENV_ROOT": str(tmp_path)}
    for name in ("make", "sh", "echo"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    done = subprocess.run(["make", "test-newest"], cwd=folder, env=alone, capture_output=True, text=True)
    assert done.returncode == 0
    assert "no Python 3.13 was found" in done.stdout
