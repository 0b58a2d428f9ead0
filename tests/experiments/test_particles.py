"""What the particle recipes share: the start, what is withheld, the noise, and that splits stand alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from polystein.experiments.regressors.ensemble import Independent
from polystein.experiments.regressors.particles import FanIn, _kernel_values
from polystein.experiments.regressors.vanilla import Vanilla
from polystein.models import Network, Rows
from polystein.target import Target

N, TEST = 60, 5
SMALL = {"steps": 40, "batch": 20, "particles": 4, "hidden": 6, "rate": 0.05}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    x = rng.normal(3, 2, (2, N + TEST, 2))
    y = 7 + 5 * x[..., 0] - x[..., 1] + rng.normal(size=(2, N + TEST))
    x, y = jnp.asarray(x, "float32"), jnp.asarray(y, "float32")
    return x[:, :N], y[:, :N], x[:, N:], y[:, N:]


def fit(recipe, x, y, test_x):
    return recipe(**SMALL).fit(x, y, test_x, jax.vmap(jax.random.key)(jnp.arange(len(y))))


def test_withheld_rows_set_the_noise_and_nothing_else(rows):
    """The last tenth of the training rows: their targets move no mean, and their residuals are the noise."""
    x, y, test_x, _ = rows
    held = slice(N - N // 10, N)
    both = jnp.concatenate([test_x, x[:, held]], 1)
    found = fit(Independent, x, y, both)
    moved = fit(Independent, x, y.at[:, held].add(9.0), both)
    np.testing.assert_array_equal(found.mean, moved.mean)
    for each, targets in ((found, y), (moved, y.at[:, held].add(9.0))):
        residual = np.asarray(targets[:, None, held] - each.mean[..., TEST:])
        np.testing.assert_allclose(each.sd[..., 0], np.sqrt(np.mean(residual**2, 2)), rtol=1e-4)


def test_a_recipe_learns_and_a_split_stands_alone(rows):
    x, y, test_x, test_y = rows
    found = fit(Independent, x, y, test_x)
    error = np.sqrt(np.mean((found.mean.mean(1) - test_y) ** 2, 1))
    assert np.all(error < 0.7 * np.std(y, 1))
    other = fit(Independent, x.at[0].add(1), y.at[0].multiply(-2), test_x)
    np.testing.assert_array_equal(other.mean[1], found.mean[1])
    assert np.abs(other.mean[0] - found.mean[0]).max() > 0.1
    assert found.notes["kernel values"].shape == (2, 10)


def test_interaction_changes_what_comes_out(rows):
    x, y, test_x, _ = rows
    assert np.abs(fit(Vanilla, x, y, test_x).mean - fit(Independent, x, y, test_x).mean).max() > 1e-3


def test_a_run_that_breaks_down_predicts_nothing(rows):
    x, y, test_x, _ = rows
    found = fit(Independent, x, y.at[0, 3].set(jnp.inf), test_x)
    assert np.all(np.isnan(found.mean[0]))
    assert np.all(np.isfinite(found.mean[1]))


@pytest.mark.parametrize(("quirk", "level"), [(True, 0.1), (False, 10.0)])
def test_particles_start_as_published(quirk, level, rng):
    """W ~ N(0, 1/(inputs + 1)), no biases, lambda by scale or by rate, gamma from the residuals of each particle."""
    model, n = Network(3, hidden=50), 400
    some = Rows(jnp.asarray(rng.normal(size=(30, 3)), "float32"), jnp.asarray(rng.normal(size=30), "float32"))
    x = FanIn(scale_for_rate=quirk)(model, some, jax.random.key(0), n)
    tree = Target.of(model.log_prior, model.sample_prior(jax.random.key(0)), constrain=model.constrain)
    params = jax.vmap(tree.constrained)(x)
    for w, inputs in zip(params["weights"], (3, 50), strict=True):
        squares = np.asarray(w).ravel() ** 2 * (inputs + 1)
        assert abs(squares.mean() - 1) < 5 * np.sqrt(2 / squares.size)
    assert not np.any(params["biases"][0])
    assert abs(np.mean(params["lambda"]) - level) < 5 * level / np.sqrt(n)
    first = jax.tree.map(lambda a: a[0], params)
    np.testing.assert_allclose(1 / first["gamma"], np.mean((some.y - model.mean(first, some.x)) ** 2), rtol=1e-4)


def test_kernel_values_are_means_over_pairs(rng):
    x = rng.normal(size=(1, 4, 3))
    r2 = np.array([((x[0, i] - x[0, j]) ** 2).sum() for i in range(4) for j in range(4) if i != j])
    expected = [np.exp(-r2 / 2.0**k).mean() for k in range(-4, 6)]
    np.testing.assert_allclose(_kernel_values(jnp.asarray(x))[0], expected, rtol=1e-4, atol=1e-6)
