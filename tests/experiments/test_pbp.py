"""Probabilistic backpropagation: its moments against draws, its updates against quadrature, and real rows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from polystein.data import load
from polystein.data.splits import standard_splits
from polystein.experiments.regressors import log_likelihood, rmse
from polystein.experiments.regressors.moments import Gamma, Normals, layer, network, observed, rectified, tilted
from polystein.experiments.regressors.pbp import PBP, WIDE, Belief, Layer, filtered, refined, start

DRAWS = 200_000
MOMENTS = jax.jit(rectified)
REFINED = jax.jit(refined)


def belief(rng, *shape):
    return Normals(*(jnp.asarray(part, "float32") for part in (rng.normal(size=shape), rng.uniform(0.1, 1, shape))))


def agree(moments: Normals, draws: np.ndarray) -> None:
    """Both moments within five standard errors of those of the draws (of the variance: from the fourth moment)."""
    mean, var = draws.mean(0), draws.var(0)
    assert np.all(np.abs(moments.mean - mean) < 5 * np.sqrt(var / len(draws)))
    assert np.all(np.abs(moments.var - var) < 5 * np.sqrt((((draws - mean) ** 2).var(0)) / len(draws)))


def test_moments_of_a_layer_are_those_of_draws(rng):
    weights, a = belief(rng, 3, 5), belief(rng, 4)
    w = rng.normal(weights.mean, np.sqrt(weights.var), (DRAWS, 3, 5))
    inputs = np.append(rng.normal(a.mean, np.sqrt(a.var), (DRAWS, 4)), np.ones((DRAWS, 1)), 1)
    agree(layer(weights, a), np.einsum("dij,dj->di", w, inputs) / np.sqrt(5))


def test_moments_of_rectified_normals_are_those_of_draws(rng):
    z = Normals(jnp.array([-3.0, -1.0, 0.0, 0.5, 2.0, 9.0]), jnp.array([2.0, 1.0, 0.5, 3.0, 1.0, 4.0]))
    agree(rectified(z), np.maximum(rng.normal(z.mean, np.sqrt(z.var), (DRAWS, 6)), 0))


@pytest.mark.parametrize("alpha", [-12.0, -8.0, -4.0, -2.01, -1.99, 0.0, 4.0, 12.0, 100.0])
def test_moments_of_a_rectified_normal_hold_in_both_tails(alpha):
    """Against quadrature in float64."""
    first, second = (
        integrate.quad(
            lambda t, k=k: t**k * stats.norm.pdf(t, alpha), 0, max(alpha, 0) + 10, points=[max(alpha, 0.1)], epsabs=0
        )[0]
        for k in (1, 2)
    )
    found = MOMENTS(Normals(jnp.array([alpha], "float32"), jnp.ones(1, "float32")))
    np.testing.assert_allclose([found.mean[0], found.var[0]], [first, second - first**2], rtol=2e-5)


def test_a_unit_that_is_never_on_has_finite_slopes():
    z = Normals(jnp.array([-1e4, -40, 1e4], "float32"), jnp.ones(3, "float32"))
    slopes = jax.jit(jax.grad(lambda z: sum(map(jnp.sum, rectified(z)))))(z)
    assert np.all(np.isfinite(slopes))


def test_a_network_chains_its_layers(rng):
    weights, x = [belief(rng, 4, 3), belief(rng, 1, 5)], jnp.asarray(rng.normal(size=2), "float32")
    out = layer(weights[1], rectified(layer(weights[0], Normals(x, jnp.zeros(2, "float32")))))
    np.testing.assert_allclose(jnp.stack(jax.jit(network)(weights, x)), jnp.stack(out)[:, 0], rtol=1e-6)


def test_moments_of_a_tilted_normal_are_those_of_quadrature():
    """For a factor that is no normal: t(w) = exp(-|w - 1|)."""
    grid = jnp.linspace(-20.0, 20.0, 20_001)
    density = lambda m, v: jnp.exp(-((grid - m) ** 2) / (2 * v)) / jnp.sqrt(v) * jnp.exp(-jnp.abs(grid - 1))
    m, v = jnp.array(-0.5), jnp.array(2.0)
    found = tilted(Normals(m, v), *jax.grad(lambda m, v: jnp.log(jnp.sum(density(m, v))), (0, 1))(m, v))
    p = density(m, v) / jnp.sum(density(m, v))
    mean = jnp.sum(p * grid)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-3)
    np.testing.assert_allclose(found.var, jnp.sum(p * (grid - mean) ** 2), rtol=1e-3)


@pytest.mark.parametrize(("a", "b", "residual", "var"), [(6, 6, 0.3, 0.2), (6, 2, 3.0, 0.0), (50, 20, 0.1, 1.0)])
def test_the_gamma_has_the_two_moments_that_the_three_evidences_give(a, b, residual, var):
    """E[gamma] = a Z1 / (b Z) and E[gamma^2] = a (a + 1) Z2 / (b^2 Z)."""
    z = [stats.norm.pdf(residual, scale=np.sqrt(var + b / (a - 1 + k))) for k in range(3)]
    new = observed(Gamma(*map(jnp.float32, (a, b))), jnp.float32(residual), jnp.float32(var))
    shape, rate = map(float, new)
    np.testing.assert_allclose(shape / rate, a / b * z[1] / z[0], rtol=1e-5)
    np.testing.assert_allclose(shape * (shape + 1) / rate**2, a * (a + 1) / b**2 * z[2] / z[0], rtol=1e-5)


def test_many_rows_count_a_half_each_in_float32():
    """The textbook form of the update loses 1/a at a ~ 1e5; where rows bear the noise alone it must still grow by 1/2."""
    a = jnp.float32(1e5)
    residuals = jnp.asarray(stats.norm.ppf((np.arange(400) + 0.5) / 400), "float32")
    grown = jax.lax.scan(lambda gamma, r: (observed(gamma, r, jnp.float32(0)), None), Gamma(a, a), residuals)[0]
    np.testing.assert_allclose(grown.shape - a, 200, rtol=0.02)
    np.testing.assert_allclose(grown.rate / grown.shape, 1, rtol=1e-3)


def test_a_row_moves_a_linear_layer_as_conjugacy_says(rng):
    """With a noise that is known (a Gamma of a million rows) and a single layer: the marginals of Bayesian regression."""
    weights, noise, x, y = belief(rng, 1, 4), Gamma(jnp.float32(1e6), jnp.float32(2.5e5)), jnp.array([1.0, -2.0, 0.5]), 0.7
    (new,), _ = jax.jit(filtered)([weights], noise, x, jnp.float32(y))
    m, v, row = np.asarray(weights.mean[0], float), np.asarray(weights.var[0], float), np.array([1, -2, 0.5, 1]) / 2
    gain = v * row / (row @ (v * row) + 0.25)
    np.testing.assert_allclose(new.mean[0], m + gain * (y - m @ row), rtol=1e-4)
    np.testing.assert_allclose(new.var[0], v - gain * row * v, rtol=1e-4)


def test_an_update_that_is_not_finite_is_rejected(rng):
    weights, noise = [belief(rng, 2, 3), belief(rng, 1, 3)], Gamma(jnp.float32(6), jnp.float32(6))
    moved, gamma = jax.jit(filtered)(weights, noise, jnp.array([jnp.inf, 0.0]), jnp.float32(0))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves((moved, gamma)))


def test_refining_the_prior_replaces_its_own_factors_and_leaves_the_rows(key):
    """A weight keeps what the rows said of it; its factor is the one the counts without it ask for."""
    whole: Belief = start((2, 3, 1), jnp.float32(6), key)
    old = whole.layers[0]
    said = 3.0  # precision from the rows; one weight has heard nothing and stays
    var = (1 / (old.precision + said)).at[0, 0].set(old.weights.var[0, 0])
    told = old._replace(weights=Normals(old.weights.mean, var))
    new, scale = REFINED(told, whole.scale)
    heard = np.ones((3, 3), bool)
    heard[0, 0] = False
    np.testing.assert_allclose((1 / new.weights.var - new.precision)[heard], said, rtol=1e-4)
    pull = told.weights.mean / told.weights.var
    np.testing.assert_allclose((new.weights.mean / new.weights.var)[heard], pull[heard], rtol=1e-4)
    np.testing.assert_array_equal(jnp.stack(new.weights)[:, 0, 0], jnp.stack(told.weights)[:, 0, 0])
    np.testing.assert_allclose(scale.shape, 6 + np.sum(new.shape), rtol=1e-5)
    np.testing.assert_allclose(scale.rate, 6 + np.sum(new.rate), rtol=1e-5)
    again, _ = REFINED(new, scale)  # the second sweep takes its own factor out before it puts it in
    first = observed(Gamma(scale.shape - new.shape[0, 1], scale.rate - new.rate[0, 1]), *_cavity(new, (0, 1)))
    np.testing.assert_allclose(again.shape[0, 1], first.shape - (scale.shape - new.shape[0, 1]), rtol=1e-3, atol=1e-4)
    assert said > 1 / WIDE


def _cavity(layer: Layer, at: tuple[int, int]) -> tuple[jax.Array, jax.Array]:
    rows = 1 / layer.weights.var[at] - layer.precision[at]
    return layer.weights.mean[at] / layer.weights.var[at] / rows, 1 / rows


def test_yacht_is_learned_and_splits_do_not_see_each_other(shared):
    rows, splits = load("yacht", shared / "data"), standard_splits(308, 2)
    part = lambda a, which, of=splits: jnp.asarray(np.stack([a[getattr(split, which)] for split in of]), "float32")
    recipe, keys = PBP(passes=6), jax.random.split(jax.random.key(0), 2)
    shares = []
    found = recipe.fit(part(rows.x, "train"), part(rows.y, "train"), part(rows.x, "test"), keys, progress=shares.append)
    y = part(rows.y, "test")
    assert np.all(rmse(found, y) < 3)  # 15 is the standard deviation of y
    assert np.all(log_likelihood(found, y) > -2.7)
    assert shares == pytest.approx(np.arange(1, 7) / 6)
    swapped = recipe.fit(*(part(a, w)[::-1] for a, w in ((rows.x, "train"), (rows.y, "train"), (rows.x, "test"))), keys[::-1])
    np.testing.assert_allclose(swapped.mean[::-1], found.mean, rtol=1e-4, atol=1e-3)
