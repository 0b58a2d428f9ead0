"""Covertype on a small stand-in: trials learn, stand alone, and see nothing of their test rows; verdicts follow the numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import special

from polystein.experiments import covtype_section
from polystein.experiments.base import Wishes, keys
from polystein.experiments.covtype import COST, Covtype, contestants, marks_of
from polystein.experiments.covtype_run import Table, curves, rows_at, scored, trial_of
from polystein.experiments.records import Record
from polystein.methods import SVGD
from polystein.report.section import Verdict

ROWS, FEATURES = 3000, 4


@pytest.fixture(scope="module")
def table():
    """Integers of different range; the class depends on two of them."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, [3000, 2, 10, 50], (ROWS, FEATURES))
    return Table(jnp.asarray(x, jnp.float32), jnp.asarray(x[:, 0] / 3000 + x[:, 1] * 0.5 > 0.7, jnp.float32))


def stacked(table, seeds):
    return jax.tree.map(lambda *parts: jnp.stack(parts), *[trial_of(table, seed) for seed in seeds])


def run(method, table, trials, seeds, steps=60):
    configs = [{"seed": seed, "trial": 0} for seed in seeds]
    found = curves(method, optax.rmsprop(0.05), table, trials, keys(configs), particles=6, marks=marks_of(steps), seen=100)
    return list(found)


def test_a_trial_is_scaled_by_its_training_rows_alone(table):
    trial = trial_of(table, 0)
    assert sorted(np.concatenate([trial.train, trial.test]).tolist()) == list(range(ROWS))
    assert trial.test.shape == (ROWS // 5,)
    z = np.asarray(rows_at(table, trial, trial.train).x)
    np.testing.assert_array_equal(z.min(0), [0, 0, 0, 0, 1])
    np.testing.assert_array_equal(z.max(0), np.ones(5))
    spoilt = Table(table.x.at[trial.test].multiply(100), 1 - table.y)
    for one, other in zip(trial, trial_of(spoilt, 0), strict=True):
        np.testing.assert_array_equal(one, other)


def test_scores_are_those_of_the_mixture(table, rng):
    """Over more rows than a block holds, and fewer than two."""
    trial = trial_of(table, 1)
    trials = jax.tree.map(lambda a: a[None], trial._replace(test=jnp.arange(2100)))
    x = jnp.asarray(rng.normal(size=(1, 5, FEATURES + 2)), jnp.float32)
    rows = rows_at(table, trial, jnp.arange(2100))
    p = np.mean(special.expit(np.asarray(rows.x, float) @ np.asarray(x[0, :, 1:], float).T), 1)
    right = np.where(np.asarray(rows.y) == 1, p, 1 - p)
    accuracy, likelihood = scored(table, trials, x, 2100)
    np.testing.assert_allclose([accuracy[0], likelihood[0]], [np.mean(right > 0.5), np.mean(np.log(right))], rtol=1e-4)


def test_trials_learn_and_stand_alone(table):
    """Nothing of a trial depends on the one beside it, nor on its test rows."""
    both = run(SVGD(), table, stacked(table, [0, 1]), [0, 1])
    alone = run(SVGD(), table, stacked(table, [1]), [1])
    for pair, single in zip(both[:-1], alone[:-1], strict=True):
        np.testing.assert_allclose([values[1] for values in pair], [values[0] for values in single], atol=1e-4)
    (first, _), (last, likelihood) = both[0], both[-2]
    assert np.all(last > first)
    assert np.all(last > 0.8)
    assert np.all(likelihood > np.log(0.5))
    np.testing.assert_array_equal(both[-1][1], [-1, -1])


def test_the_plan_names_every_method_and_the_quick_one_fewer():
    experiment = Covtype()
    assert [batch.configs[0]["method"] for batch in experiment.batches(Wishes())] == [*contestants(), COST]
    assert [len(batch.configs) for batch in experiment.batches(Wishes())] == [10] * len(contestants()) + [1]
    assert len(experiment.batches(Wishes(quick=True))) < len(contestants())
    (one,) = experiment.batches(Wishes(methods=("ours, falling rate",), quick=True, trials=2))
    assert [config["trial"] for config in one.configs] == [0, 1]
    assert experiment.batches(Wishes(datasets=("yacht",))) == []
    names = {str(batch.configs[0]) for batch in experiment.batches(Wishes())}
    assert len(names) == len(contestants()) + 1


def record(method, trial, accuracy):
    curve = [0.5, 0.6, accuracy - 0.001 * (trial % 2), accuracy]
    settings = {"particles": 1, "steps": 4, "batch": 1, "optimiser": "none"}
    result = {
        "at": [1, 2, 3, 4],
        "accuracy": accuracy,
        "log-likelihood": accuracy - 1,
        "curves": {"accuracy": curve, "log-likelihood": [value - 1 for value in curve]},
        "weights": [],
        "halted": -1,
    }
    return Record({"method": method, "trial": trial, "settings": settings}, result, 1.0, {})


def verdicts(gain, bank):
    """Of five trials in which MK-SVGD beats single kernels by ``gain``, and another bank beats it by ``bank``."""
    noise = np.random.default_rng(1).normal(0, 1e-3, (3, 5))
    records = [record("MK-SVGD", i, 0.7 + noise[0, i] + gain) for i in range(5)]
    records += [record("SVGD, median", i, 0.7 + noise[1, i]) for i in range(5)]
    records += [record("MK-SVGD, bank 2^8..2^17", i, 0.7 + noise[2, i] + gain + bank) for i in range(5)]
    cost = {"particles": [[1, 2], [3.0, 12.1]], "kernels": [[5, 10], [2.0, 3.0]], "SVGD": 1.0, "ensemble": 0.5}
    records.append(Record({"method": COST, "trial": 0, "settings": {}}, cost, 1.0, {}))
    section = covtype_section.covtype_section(records, None)
    return {claim.claim: claim.verdict for claim in section.claims}


@pytest.mark.parametrize(
    ("gain", "bank", "better", "same"),
    [(0.05, 0.0, Verdict.HOLDS, Verdict.HOLDS), (0.0, 0.1, Verdict.NOISE, Verdict.FAILS), (-0.05, 0.0, Verdict.FAILS, None)],
)
def test_verdicts_follow_the_numbers(gain, bank, better, same):
    found = verdicts(gain, bank)
    assert [verdict for claim, verdict in found.items() if "is better than" in claim] == [better, better]
    if same is not None:
        assert next(verdict for claim, verdict in found.items() if "other banks" in claim) is same
    assert next(verdict for claim, verdict in found.items() if "O(m n^2)" in claim) is Verdict.HOLDS
    assert next(verdict for claim, verdict in found.items() if "bottleneck" in claim) is Verdict.FAILS
