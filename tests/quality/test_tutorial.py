"""The tutorial on sample quality runs, in an empty folder, and says what its text says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_tutorial_does_what_it_says(tmp_path):
    for package in ("numpyro", "matplotlib"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'polystein[numpyro,plot]'")
    script = ROOT / "docs" / "tutorials" / "sample_quality.py"
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    right, wrong = done.stdout.split("something is wrong.")
    assert "nothing is wrong with them" in right
    assert "a is too narrow" in wrong
    assert "R-hat" not in wrong.split("- a is too narrow")[1].split("| sampler")[0]
    assert "right is significantly better than all others" in wrong
    thinned, spaced = map(float, re.findall(r"thinned (\S+), evenly spaced (\S+)", wrong)[0])
    assert thinned < spaced / 2
    assert (tmp_path / "sample_quality.png").stat().st_size > 1000
