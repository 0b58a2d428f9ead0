"""What the documents say of the code is so: names and tests that they cite exist, and the defaults are those they state."""

from __future__ import annotations

import importlib
import re
from functools import reduce
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import pytest

from polystein import MKSVGD, _checks, kernels, ksd
from polystein._types import Scalar

ROOT = Path(__file__).parents[2]
DOCUMENTS = ["README.md", "CONTRIBUTING.md", *(f"docs/{file.name}" for file in sorted((ROOT / "docs").glob("*.md")))]
ERRATA = (ROOT / "docs" / "errata.md").read_text("utf-8")
NUMBERS = {int(n) for n in re.findall(r"^\*\*(\d+)\. ", ERRATA, re.M)}
TESTS = {
    file: set(re.findall(r"^ *def (test_\w+)", file.read_text("utf-8"), re.M)) for file in (ROOT / "tests").rglob("test_*.py")
}


def code_in(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))


def missing_tests(text: str) -> list[str]:
    """Test files and functions that a text names and that are not there."""
    found = []
    for cited in code_in(text):
        match = re.fullmatch(r"(?:tests/)?((?:\w+/)*test_\w+\.py)?(?:::)?(test_\w+)?", cited)
        if match is None:
            continue
        file, name = match.groups()
        places = [path for path in TESTS if file is None or path.as_posix().endswith(f"tests/{file}")]
        if not places or (name and not any(name in TESTS[path] for path in places)):
            found.append(cited)
    return found


def resolves(name: str) -> bool:
    """Whether a dotted name is a module of the package, or something in one, or public."""
    parts = name.split(".")
    for k in range(len(parts), -1, -1):
        try:
            place = importlib.import_module(".".join(["polystein", *parts[:k]]))
        except ModuleNotFoundError:
            continue
        found = reduce(lambda thing, part: getattr(thing, part, None), parts[k:], place)
        return found is not None
    return False


@pytest.mark.parametrize("document", DOCUMENTS)
def test_cited_tests_exist(document):
    assert not missing_tests((ROOT / document).read_text("utf-8"))


def test_names_in_the_errata_exist():
    """Every dotted name, with or without the arguments of a call, is something in the package."""
    dotted = {re.sub(r"\(.*", "", code) for code in code_in(ERRATA)} - {"log.md"}
    dotted = {name for name in dotted if re.fullmatch(r"[A-Za-z_]\w*(\.\w+)+", name) and not name.endswith(".py")}
    assert len(dotted) > 30
    assert not {name for name in dotted if not resolves(name)}


def test_missing_names_and_tests_are_noticed():
    assert not resolves("weights.Nonsense")
    assert not resolves("nonsense.Paper")
    assert missing_tests("`unit/test_docs.py::test_nothing`, `test_nothing`, `laws/test_docs.py`")
    assert not missing_tests("`unit/test_docs.py::test_cited_tests_exist`, `test_cited_tests_exist`, `tests/unit/test_docs.py`")


def test_errata_are_numbered_without_a_gap_and_each_states_what_is_done():
    entries = re.split(r"^\*\*\d+\. ", ERRATA, flags=re.M)[1:]
    assert sorted(NUMBERS) == list(range(1, 47))
    assert [i for i, entry in enumerate(entries, 1) if "\n→ " not in entry] == []


def test_errata_that_the_code_cites_exist():
    files = [*(ROOT / "src").rglob("*.py"), *TESTS, *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    cited = {
        int(number)
        for file in files
        for run in re.findall(r"[Ee]rrat(?:um|a) ((?:\d+(?:, | and )?)+)", file.read_text("utf-8"))
        for number in re.findall(r"\d+", run)
    }
    assert cited
    assert cited <= NUMBERS


def test_errata_state_the_default():
    """What ``MKSVGD()`` chooses where the paper leaves it open."""
    method = MKSVGD()
    rule, bank = method.weights, method.bank
    stated = next(part for part in ERRATA.split("\n\n") if "`MKSVGD()` is what the" in part)
    for word, thing in {"rule": rule, "statistic": rule.statistic, "divisor": rule.divisor, "fallback": rule.fallback}.items():
        assert f"{word} `{type(thing).__name__}`" in stated.replace("\n", " ")
    assert f"`memory={float(rule.memory):.2g}`" in stated
    assert f"$2^{{{bank.low}}}\\dots2^{{{bank.high}}}$ times the median rule's" in stated
    assert ("with lagging weights" in stated) == method.lagged


def blocks(document: str) -> list[str]:
    """The Python code of a document, block by block."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / document).read_text("utf-8"), re.M | re.S)


def test_the_code_of_the_readme_runs(capsys):
    """Line for line, as somebody would paste it."""
    names: dict[str, object] = {}
    assert blocks("README.md")
    for block in blocks("README.md"):
        exec(block, names)
    assert "b[0]" in capsys.readouterr().out


def test_the_kernel_of_contributing_is_one():
    """What the manual says an author writes is all that it takes."""
    names: dict[str, Any] = {name: getattr(kernels, name) for name in kernels.__all__}
    exec(blocks("CONTRIBUTING.md")[0], names | vars(_checks) | {"eqx": eqx, "Scalar": Scalar}, names)
    x = jnp.array([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5]])
    cauchy, same = names["Cauchy"](3.0), kernels.RationalQuadratic(3.0)
    for one, other in zip(ksd(x, -x, cauchy), ksd(x, -x, same), strict=True):
        assert float(one) == pytest.approx(float(other), rel=1e-5)
