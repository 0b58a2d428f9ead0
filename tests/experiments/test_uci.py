"""The UCI experiment: what is planned, that splits are the standard ones, and that verdicts follow the numbers."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from polystein.data import load
from polystein.data.splits import standard_splits
from polystein.experiments import headline, uci
from polystein.experiments.base import Wishes
from polystein.experiments.printed import COLUMNS, LOG_LIKELIHOOD, RMSE, best_printed
from polystein.experiments.records import Record, Records, configuration
from polystein.experiments.regressors import AbstractRegressor, Predictive, recipes
from polystein.experiments.regressors.nuts import NUTS
from polystein.experiments.uci_section import KERNELS, LITERAL, uci_section
from polystein.report.section import Measured, Verdict


class Mean(AbstractRegressor):
    """Predicts the mean of the training targets, and notes it."""

    label: ClassVar[str] = "mean"
    trials: ClassVar[int] = 3

    def fit(self, x, y, test_x, keys, *, progress=None):
        mean = jnp.broadcast_to(jnp.mean(y, 1)[:, None, None], (len(y), 1, test_x.shape[1]))
        return Predictive(mean, jnp.ones_like(mean), {"level": jnp.mean(y, 1)})


def test_a_trial_is_a_standard_split_and_its_test_targets_are_only_scored(monkeypatch, shared):
    monkeypatch.setattr(uci, "recipes", lambda: {"mean": Mean})
    (batch,) = uci.UCI().batches(Wishes(datasets=("yacht",), data=shared / "data"))
    results = batch.compute(batch.configs, lambda share: None)
    whole = load("yacht", shared / "data")
    for split, result in zip(standard_splits(308, 3), results, strict=True):
        mean = whole.y[split.train].mean()
        gaps = whole.y[split.test] - mean
        assert result["level"] == pytest.approx(mean, rel=1e-5)
        assert result["RMSE"] == pytest.approx(np.sqrt(np.mean(gaps**2)), rel=1e-5)
        assert result["log-likelihood"] == pytest.approx(-0.5 * np.log(2 * np.pi) - np.mean(gaps**2) / 2, rel=1e-5)
    (alone,) = batch.compute(batch.configs[2:], lambda share: None)
    assert alone["RMSE"] == pytest.approx(results[2]["RMSE"], rel=1e-6)


def test_the_plan_has_every_recipe_on_every_set():
    usual = [label for label, recipe in recipes().items() if not recipe.on_request]
    found = [(batch.configs[0]["method"], batch.configs[0]["data"]) for batch in uci.UCI().batches(Wishes())]
    assert sorted(found) == sorted((label, data) for label in usual for data in uci.DATA)
    quick = uci.UCI().batches(Wishes(quick=True))
    assert {batch.configs[0]["data"] for batch in quick} == {"yacht"}
    assert uci.UCI().batches(Wishes(datasets=("covtype",))) == []
    rare = [label for label, recipe in recipes().items() if recipe.on_request]
    for label in rare:
        assert uci.UCI().batches(Wishes(methods=(label,), datasets=("yacht",), trials=1))


def test_every_recipe_names_a_control_and_a_column_that_exist():
    for label, recipe in recipes().items():
        assert recipe.printed in (None, *COLUMNS), label
        if recipe.interacting:
            assert recipe.control is not None, f"{label} interacts, and nothing shows what that buys; name its control"
            assert not recipes()[recipe.control].interacting


def test_printed_rows_are_complete_and_the_best_is_the_papers_bold_one():
    assert {len(row) for table in (RMSE, LOG_LIKELIHOOD) for row in table.values()} == {len(COLUMNS)}
    best = [best_printed(score, data)[1].mean for score in ("RMSE", "log-likelihood") for data in RMSE]
    assert best == [2.750, 4.029, 4.869, 0.601, 0.688, -2.474, -2.815, -3.080, -0.902, -1.199]


class Stand(AbstractRegressor):
    """A recipe that is only named."""

    def fit(self, x, y, test_x, keys, *, progress=None):
        raise NotImplementedError


def stand(label, **facts):
    return {label: type(label, (Stand,), {"label": label, **facts})}


RECIPES = {
    **stand("PBP", printed="PBP"),
    **stand(LITERAL, printed="MK-SVGD", interacting=True, control="ensemble"),
    **stand("SVGD, h = 2^4", interacting=True, control="ensemble"),
    **stand("ensemble"),
    **stand("best", ours=True),
}


def sections(literal, ensemble, best):
    """Five splits of Boston, where PBP comes out as printed and the rest at the given errors."""
    noise = np.random.default_rng(0).normal(0, 0.01, (5, 5))
    level = {"PBP": 2.977, LITERAL: literal, "SVGD, h = 2^4": 3.0, "ensemble": ensemble, "best": best}
    records = []
    for k, (label, error) in enumerate(level.items()):
        for trial in range(5):
            rmse = error + noise[k, trial]
            result = {"RMSE": rmse, "log-likelihood": -rmse, KERNELS: [0.0] * 9 + [0.5]}
            config = {"data": "boston", "method": label, "trial": trial, "settings": {"steps": 3}}
            records.append(Record(config, result, 1.0, {}))
    section = uci_section(records, RECIPES, None)
    return {claim.claim: claim.verdict for claim in section.claims}, {table.title: table for table in section.tables}


def test_verdicts_follow_the_numbers():
    claims, tables = sections(2.4, 3.0, 2.2)
    assert claims["Column MK-SVGD of Tables 1 and 2"] is Verdict.REPRODUCED
    assert next(v for claim, v in claims.items() if "most cases" in claim) is Verdict.HOLDS
    assert next(v for claim, v in claims.items() if "interaction" in claim) is Verdict.HOLDS
    assert next(v for claim, v in claims.items() if claim.startswith("best reaches")) is Verdict.HOLDS
    every = tables["Test RMSE of every method"]
    assert [every.rows[row][0] for row, _ in every.best] == ["best"]
    assert isinstance(every.rows[0][1], Measured)
    cells = {row[1]: row[-1] for row in tables["Table 1, RMSE: printed and rerun"].rows}
    assert cells == {"PBP": Verdict.REPRODUCED, "MK-SVGD": Verdict.REPRODUCED}
    assert tables[f"Kernel values between particles of {LITERAL}"].rows == [["boston", *[0.0] * 9, 0.5]]


def test_losses_are_said():
    claims, tables = sections(3.6, 3.0, 2.9)
    assert claims["Column MK-SVGD of Tables 1 and 2"] is Verdict.FAILS
    assert next(v for claim, v in claims.items() if "most cases" in claim) is Verdict.FAILS
    assert next(v for claim, v in claims.items() if "interaction" in claim) is Verdict.FAILS
    assert next(v for claim, v in claims.items() if claim.startswith("best reaches")) is Verdict.FAILS
    worse = [row for row in tables["What the interaction of particles buys"].rows if row[0] == LITERAL]
    assert worse[0][4] is Verdict.WORSE


def test_a_run_that_broke_down_leaves_its_split_out():
    at = lambda trial, error: Record(
        {"data": "boston", "method": "PBP", "trial": trial, "settings": {}}, {"RMSE": error, "log-likelihood": 1.0}, 1.0, {}
    )
    section = uci_section([at(0, float("nan")), at(1, 3.0)], RECIPES, None)
    assert section.tables[0].rows[0][1].trials == 1


def test_nuts_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "numpyro", None)
    with pytest.raises(ImportError, match=r"polystein\[numpyro\]"):
        NUTS().fit(jnp.ones((1, 3, 1)), jnp.ones((1, 3)), jnp.ones((1, 2, 1)), jax.random.split(jax.random.key(0), 1))


def test_the_headline_of_the_readme_is_made_from_records(tmp_path):
    records = Records(tmp_path)
    for trial, error in enumerate((2.0, 4.0)):
        for quick in (False, True):
            config = configuration("uci", "MK-SVGD", {}, trial=trial, seed=0, data="boston", quick=quick)
            records.keep(config, {"RMSE": error, "log-likelihood": -error}, 1.0)
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- headline -->\nold\n<!-- /headline -->\nafter\n", "utf-8")
    headline.put(tmp_path, readme)
    text = readme.read_text("utf-8")
    assert text.startswith("before\n<!-- headline -->\n|")
    assert text.endswith("|\n<!-- /headline -->\nafter\n")
    boston = next(line for line in text.splitlines() if "Boston" in line)
    assert "2.750 ± 0.316" in boston
    assert "3.000 ± 1.000 (2)" in boston
    with pytest.raises(ValueError, match="has no place for the table"):
        headline.put(tmp_path, tmp_path / "records.jsonl" if records.pack() else readme)
