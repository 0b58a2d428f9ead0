"""The mutants stay plantable as the code changes: `make mutants` takes too long to find that out by itself."""

from __future__ import annotations

import pytest

from tests.mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=(name.replace(" ", "-") for name in MUTANTS))
def test_mutant_is_found_once_and_its_law_exists(mutant: Mutant):
    files = [file for file in (ROOT / "src").rglob("*.py") if file.as_posix().endswith(mutant.file)]
    assert sum(file.read_text("utf-8").count(mutant.old) for file in files) == 1
    file, test = mutant.law.split("[")[0].split("::")
    assert f"def {test}(" in (ROOT / "tests" / "laws" / file).read_text("utf-8")
