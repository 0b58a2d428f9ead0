"""The library's own recipe for networks: its forces, slopes, noise and views against plain loops; what a fit may not see."""

from __future__ import annotations

import ast
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats

from polystein import Points
from polystein.experiments import regressors
from polystein.experiments.regressors import crowd, functional, noise
from polystein.experiments.regressors.crowd import Networks, Sample, Schedule, Setting
from polystein.experiments.regressors.forces import HIGH, LOW, force, weights
from polystein.experiments.regressors.functional import CANDIDATES, FunctionSpace, NoCrosstalk, choice, dealt
from polystein.experiments.regressors.noise import Noise
from polystein.experiments.regressors.views import both_views, normal_scores
from polystein.experiments.uci import DATA
from polystein.kernels import Bank
from polystein.methods.base import Swarm
from polystein.pairs import Dense

SMALL = FunctionSpace(steps=30, trial_steps=20, hidden=5, batch=10)
force_of = jax.jit(force, static_argnums=4)
scores_of = jax.jit(normal_scores)


def looped(f, g, share, crosstalk, of):
    """v by loops over kernels, pairs and rows, in float64."""
    n, b = f.shape
    r2 = np.array([[np.sum((x - y) ** 2) for y in f] for x in f])
    rungs = r2.sum() / (n * (n - 1)) / np.log(n + 1) * 2.0 ** np.arange(LOW, HIGH + 1)
    u = np.zeros(len(rungs))
    for number, h in enumerate(rungs):
        for i in range(n):
            for j in range(n):
                if i != j:
                    k, gap = np.exp(-r2[i, j] / h), f[i] - f[j]
                    u[number] += k * (g[i] @ g[j] + 2 / h * gap @ (g[i] - g[j]) + 2 * b / h - 4 * r2[i, j] / h**2)
    w = np.sqrt(np.maximum(u, 0))
    w = w / w.sum() if w.sum() > 0 else np.full(len(rungs), 1 / len(rungs))
    v = (1 - share) * g
    for i in range(n):
        for j in range(n):
            for h, part in zip(rungs, w, strict=True):
                k = part * np.exp(-r2[i, j] / h)
                said = k * g[j] + 2 / h * k * (f[i] - f[j]) if crosstalk else k * g[i]
                v[i] += share * of / n * said
    return v


@pytest.mark.parametrize("crosstalk", [True, False])
@pytest.mark.parametrize("pull", [1.0, 30.0])  # a strong pull: weights from U; a weak one: no U is positive
def test_the_force_is_that_of_loops_over_kernels_and_pairs(rng, crosstalk, pull):
    f, g = rng.normal(size=(4, 9)), pull * rng.normal(1, 0.2, size=(4, 9))
    found = force_of(jnp.asarray(f, "float32"), jnp.asarray(g, "float32"), jnp.float32(0.3), jnp.float32(crosstalk), 20)
    np.testing.assert_allclose(found, looped(f, g, 0.3, crosstalk, 20), rtol=2e-4, atol=1e-4 * pull)


def test_with_all_shared_it_is_the_drift_of_the_librarys_mixture(rng):
    f, g = (jnp.asarray(rng.normal(size=(6, 12)), "float32") for _ in range(2))
    r2 = jnp.sum((f[:, None] - f[None]) ** 2, 2)
    bank = Bank.dyadic(float(r2.sum() / 30 / np.log(7)), LOW, HIGH)

    @jax.jit
    def drift(f, g):
        swarm = Swarm(Points.of(f, g), Dense())
        w = jnp.sqrt(jnp.maximum(swarm.sums(bank).u, 0))
        return swarm.drift(bank.mix(w / w.sum()))

    expected = 6 * drift(f, g)
    np.testing.assert_allclose(force_of(f, g, jnp.float32(1), jnp.float32(1), 6), expected, rtol=1e-4, atol=1e-4)


def test_the_control_pulls_as_hard_and_says_nothing_of_others(rng):
    """Each v_i is g_i times a number between 1 - a and 1 - a + a M, the same for all rows."""
    f, g = (jnp.asarray(rng.normal(size=(6, 12)), "float32") for _ in range(2))
    ratio = np.asarray(force_of(f, g, jnp.float32(0.2), jnp.float32(0), 20) / g)
    np.testing.assert_allclose(ratio, ratio[:, :1] * np.ones((1, 12)), rtol=1e-5)
    assert np.all((ratio > 0.8 + 0.2 * 20 / 6) & (ratio < 0.8 + 0.2 * 20))


def test_functions_that_coincide_share_their_force(rng):
    """k = 1 for all pairs: everybody moves by the mean of all pulls."""
    f, g = jnp.ones((4, 5), "float32"), jnp.asarray(rng.normal(size=(4, 5)), "float32")
    found = force_of(f, g, jnp.float32(1), jnp.float32(1), 4)
    np.testing.assert_allclose(found, np.asarray(g).sum(0, keepdims=True) * np.ones((4, 1)), rtol=1e-4)


def test_no_positive_u_weighs_all_kernels_alike():
    np.testing.assert_allclose(weights(-jnp.ones((4, 3, 3))), 0.25)


def networks_of(rng, many, hidden, columns):
    first, second = rng.normal(size=(many, hidden, columns)), rng.normal(size=(many, hidden + 1))
    return Networks(jnp.asarray(first, "float32"), jnp.asarray(second, "float32"))


def test_slopes_are_those_of_autodiff(rng):
    networks, x = networks_of(rng, 3, 4, 5), jnp.asarray(rng.normal(size=(7, 5)), "float32")
    v = jnp.asarray(rng.normal(size=(3, 7)), "float32")
    on = jnp.einsum("mhq,bq->mhb", networks.first, x) > 0
    found = jax.jit(crowd.slopes)(networks, x, on, v)
    expected = jax.jit(jax.grad(lambda networks: jnp.sum(v * crowd.outputs(networks, x))))(networks)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, expected)


def setting_of(many, columns, share=0.0, prior=0.7):
    return Setting(jnp.ones((many, columns)), jnp.ones(many), jnp.full(many, prior), jnp.float32(share))


def test_without_interaction_a_step_is_adam_on_the_log_posterior(rng):
    """Of a batch that is all rows, while the noise's precision is still 1."""
    networks, setting = networks_of(rng, 2, 4, 3), setting_of(2, 3)
    x, y = jnp.asarray(rng.normal(size=(6, 3)), "float32"), jnp.asarray(rng.normal(size=6), "float32")
    schedule = Schedule(steps=50, batch=6, hidden=4)

    def log_posterior(networks):
        prior = -0.7 / 2 * (jnp.sum(networks.first**2) + crowd.OUTPUT_PRIOR * jnp.sum(networks.second**2))
        return prior - jnp.sum((y[None] - crowd.outputs(networks, x)) ** 2) / 2

    zero = jax.tree.map(jnp.zeros_like, networks)
    state = crowd.Training(networks, zero, zero, jnp.ones(1))
    rate = lambda count: 1e-2 * (count + 1) / crowd.RAMP * (1 + jnp.cos(jnp.pi * count / 50)) / 2
    adam = optax.adam(rate)
    other, memory = networks, adam.init(networks)
    for number in range(3):
        state = crowd.advance(state, setting, jnp.float32(1), Sample(x, y, jnp.ones((6, 1))), 6, jnp.asarray(number), schedule)
        updates, memory = adam.update(jax.tree.map(jnp.negative, jax.grad(log_posterior)(other)), memory)
        other = optax.apply_updates(other, updates)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), state.networks, other)


def test_a_view_that_is_not_seen_has_no_weights(rng):
    x, y = jnp.asarray(rng.normal(size=(2, 20, 5)), "float32"), jnp.asarray(rng.normal(size=(2, 20)), "float32")
    setting = CANDIDATES[1].setting(jax.random.split(jax.random.key(3), 2), 5, 2)
    found = crowd.train(
        setting, True, Sample(x, y, jnp.ones((2, 20, 1))), jax.random.split(jax.random.key(3), 2), Schedule(20, hidden=5)
    )
    hidden = np.asarray(setting.sees)[:, :, None] == 0
    assert np.all(np.where(hidden, found.first, 0) == 0)
    assert np.all(np.where(hidden, 1, found.first) != 0)


def test_a_group_never_hears_of_the_rows_it_does_not_see(rng):
    """Other targets in its part of the rows leave a group as it was, bit for bit, and change every other."""
    x, y = jnp.asarray(rng.normal(size=(1, 20, 5)), "float32"), jnp.asarray(rng.normal(size=(1, 20)), "float32")
    keys = jax.random.split(jax.random.key(0), 1)
    part = dealt(keys, 20)
    seen = jnp.asarray(part[..., None] != np.arange(5), "float32")
    setting = CANDIDATES[1].setting(keys, 10, 2)
    run = lambda y: crowd.train(setting, True, Sample(x, y, seen), keys, Schedule(230, hidden=5, batch=10)).first.reshape(5, -1)
    one, other = run(y), run(jnp.where(part == 2, y + 3, y))
    same = [bool(np.all(a == b)) for a, b in zip(one, other, strict=True)]
    assert same == [False, False, True, False, False]


def test_views_take_turns_and_features_are_left_out_by_chance():
    keys = jax.random.split(jax.random.key(4), 2)
    sees = np.asarray(CANDIDATES[0].setting(keys, 20, 8).sees)
    assert np.all(sees[..., -1] == 1)
    assert np.all(sees[:, ::2, 8:16] == 0)
    assert np.all(sees[:, 1::2, :8] == 0)
    assert np.all(sees[..., :-1].sum(2) == 6)
    assert np.all((sees[..., :8] + sees[..., 8:16]).sum((0, 1)) < 40)  # no feature is in all networks
    assert np.all(sees[0] == CANDIDATES[0].setting(keys[:1], 20, 8).sees[0])
    assert np.any(sees[0] != sees[1])
    assert np.all(np.asarray(CANDIDATES[0].setting(keys, 5, 1).sees)[..., :2].sum(2) == 1)  # of one feature none is left out


def test_rows_are_dealt_evenly_and_each_split_by_its_own_key():
    part = dealt(jax.random.split(jax.random.key(1), 3), 23)
    counts = [np.bincount(each, minlength=5) for each in part]
    assert all(sorted(each) == [4, 4, 5, 5, 5] for each in counts)
    assert not np.array_equal(part[0], part[1])


def test_noise_is_a_mixture_of_normals(rng):
    f, y = rng.normal(size=(3, 6)), rng.normal(size=6)
    made = Noise(jnp.float32(0.4), jnp.float32(0.6), jnp.float32(0.5))
    mean = f.mean(0) + 0.5 * (f - f.mean(0))
    levels = stats.norm.ppf((np.arange(5) + 0.5) / 5)
    density = np.mean([stats.norm.pdf(y, m, 0.4 * np.exp(0.6 * z)) for m in mean for z in levels], 0)
    found = jax.jit(noise.row_likelihoods)(made, jnp.asarray(f, "float32"), jnp.asarray(y, "float32"))
    np.testing.assert_allclose(found, np.log(density), rtol=1e-4, atol=1e-4)


def test_a_round_never_lowers_the_likelihood(rng):
    f, y = jnp.asarray(rng.normal(size=(3, 40)), "float32"), jnp.asarray(rng.standard_t(2, size=40), "float32")
    step, likelihood = jax.jit(noise.refined), jax.jit(lambda made: jnp.sum(noise.row_likelihoods(made, f, y)))
    for tail in (0.0, 0.9):
        made = Noise(jnp.float32(3.0), jnp.float32(tail), jnp.float32(1.0))
        scores = []
        for _ in range(8):
            scores.append(float(likelihood(made)))
            made = step(made, f, y)
        assert np.all(np.diff(scores) > -1e-3)
        assert scores[-1] > scores[0] + 1


def test_the_noise_that_made_the_rows_is_found(rng):
    """A normal's standard deviation within five standard errors, no tail; heavy tails where there are."""
    rows, fit = 4000, jax.jit(noise.fitted)
    f = jnp.asarray(np.zeros((2, rows)), "float32")
    normal = fit(f, jnp.asarray(rng.normal(0, 0.5, rows), "float32"))
    assert normal.tail == 0
    assert abs(float(normal.sigma) - 0.5) < 5 * 0.5 / np.sqrt(2 * rows)
    assert fit(f, jnp.asarray(0.5 * rng.standard_t(2, rows), "float32")).tail > 0


def test_no_noise_at_all_leaves_some():
    assert float(jax.jit(noise.fitted)(jnp.zeros((2, 5)), jnp.zeros(5)).sigma) == pytest.approx(noise.LEAST)


def test_views_are_standard_units_and_normal_scores(rng):
    x, test_x = rng.normal(size=(2, 30, 3)), rng.normal(size=(2, 8, 3))
    x[:, :, 1] = np.round(x[:, :, 1])  # ties
    x[:, :, 2], test_x[:, :, 2] = 4.0, 4.0  # a constant column
    train, test = jax.jit(both_views)(jnp.asarray(x, "float32"), jnp.asarray(test_x, "float32"))
    assert (train.shape, test.shape) == ((2, 30, 7), (2, 8, 7))
    scores = stats.norm.ppf((stats.rankdata(x[0, :, 1]) - 0.5) / 30)
    np.testing.assert_allclose(train[0, :, 4], (scores - scores.mean()) / scores.std(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(np.mean(train, 1)[:, :6], 0, atol=1e-5)
    np.testing.assert_allclose(np.std(train, 1), [[1, 1, 0, 1, 1, 0, 0]] * 2, atol=1e-5)
    assert np.all(np.asarray(train[..., 6]) == 1)
    assert np.all(np.asarray(test[..., 6]) == 1)


def test_ranks_of_test_rows_are_among_the_training_rows(rng):
    train = jnp.asarray(rng.normal(size=50), "float32")
    v = jnp.asarray(np.sort(rng.normal(0, 3, 20)), "float32")
    below = np.mean(np.asarray(train)[:, None] < np.asarray(v), 0)
    np.testing.assert_allclose(scores_of(train, v), stats.norm.ppf(np.clip(below, 0.01, 0.99)), rtol=1e-4, atol=1e-5)


def test_the_first_candidate_stands_unless_there_is_evidence(rng):
    rows = rng.normal(size=(5, 400))
    swing = np.resize([-1.0, 1.0], 400)
    scores = np.stack(
        [
            np.stack([rows[0], rows[0] + 0.14 + swing, rows[0] - 1]),  # 2.8 standard errors
            np.stack([rows[1], rows[1] + 0.16 + swing, rows[1] - 1]),  # 3.2
            np.stack([rows[2], rows[2] + 1, rows[2] + 2]),
            np.stack([rows[3], rows[3] + 2, rows[3] + 1]),
            np.stack([np.full(400, np.nan), rows[4], rows[4] - 1]),  # one that broke down
        ]
    )
    assert choice(jnp.asarray(scores, "float32")).tolist() == [0, 1, 2, 1, 1]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(3, 40, 2))
    return (
        jnp.asarray(x, "float32"),
        jnp.asarray(x[..., 0] + 0.1 * rng.normal(size=(3, 40)), "float32"),
        rng.normal(size=(3, 6, 2)),
    )


KEYS = jax.random.split(jax.random.key(2), 3)


def test_a_fit_repeats_itself_and_permuting_splits_permutes_it(rows):
    x, y, test_x = rows
    turn = np.array([2, 0, 1])
    one = SMALL.fit(x, y, jnp.asarray(test_x, "float32"), KEYS)
    other = SMALL.fit(x[turn], y[turn], jnp.asarray(test_x[turn], "float32"), KEYS[turn])
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(np.asarray(a)[turn], b)


def test_nothing_depends_on_other_test_rows(rows):
    """Choice, noise and the predictions of a row stay when the rows beside it change."""
    x, y, test_x = rows
    others = np.concatenate([test_x[:, :1], 7 * test_x[:, 1:]], 1)
    one, other = (SMALL.fit(x, y, jnp.asarray(rows, "float32"), KEYS) for rows in (test_x, others))
    np.testing.assert_array_equal(one.mean[..., 0], other.mean[..., 0])
    np.testing.assert_array_equal(one.sd[..., 0], other.sd[..., 0])
    jax.tree.map(np.testing.assert_array_equal, one.notes, other.notes)


def test_the_control_is_another_fit_with_the_same_rule(rows):
    x, y, test_x = rows
    control = NoCrosstalk(steps=30, trial_steps=20, hidden=5, batch=10)
    one, other = (recipe.fit(x, y, jnp.asarray(test_x, "float32"), KEYS) for recipe in (SMALL, control))
    assert one.notes.keys() == other.notes.keys()
    assert not np.allclose(one.mean, other.mean)


def test_rows_that_would_break_a_careless_recipe(rows):
    """Constant columns, constant targets, one target a million away: finite predictions in the units of the data."""
    x, y, test_x = rows
    x = x.at[..., 1].set(3.0)
    y = jnp.stack([jnp.full(40, 5.0), y[1].at[0].set(1e6), y[2] * 1e-6])
    found = SMALL.fit(x, y, jnp.asarray(test_x, "float32"), KEYS)
    assert all(np.all(np.isfinite(part)) for part in jax.tree.leaves(found))
    assert np.all(np.abs(found.mean[2]) < 1e-4)
    assert np.all(np.asarray(found.sd) > 0)


def test_progress_goes_from_nothing_to_all(rows):
    x, y, test_x = rows
    seen = []
    SMALL.fit(x, y, jnp.asarray(test_x, "float32"), KEYS, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1)


def test_parts_and_particles_have_to_agree(unchecked):
    with pytest.raises(ValueError, match="7 particles do not divide over 5 parts of the rows; try particles=20"):
        FunctionSpace(particles=7)


def test_no_recipe_knows_a_data_set():
    """No string that is not a docstring, and no name, has that of a data set in it."""
    named = {part for data in DATA for part in (data, data.split("-")[0])}
    for file in Path(regressors.__file__).parent.glob("*.py"):
        tree = ast.parse(file.read_text())
        told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in told]
        words = [str(value).lower() for value in strings] + [
            node.id.lower() for node in ast.walk(tree) if isinstance(node, ast.Name)
        ]
        assert not [(file.name, word) for word in words for name in named if name in word]


def test_candidates_are_those_of_the_rule():
    told = functional.__doc__ or ""
    for name, candidate in zip(("apart", "close", "smooth"), CANDIDATES, strict=True):
        line = next(line for line in told.splitlines() if line.split()[:1] == [name])
        out = {0.25: "1/4", 0.0: "0"}[candidate.left_out]
        assert line.split()[-4:] == [out, *(f"{value:g}" for value in (candidate.scale, candidate.prior, candidate.share))]
