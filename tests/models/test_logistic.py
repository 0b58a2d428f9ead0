"""Bayesian logistic regression: the log posterior is that of numpy and scipy, and the library infers it by its public calls."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from polystein import MKSVGD, run
from polystein.models import Logistic, Rows


def setting(rng):
    """A regression with unusual hyper-parameters, parameters, and twelve rows of three features."""
    model = Logistic(3, shape=2.5, rate=0.4)
    rows = Rows(jnp.asarray(rng.normal(size=(12, 3)), jnp.float32), jnp.asarray(rng.integers(0, 2, 12), jnp.float32))
    return model, model.sample_prior(jax.random.key(3)), rows


def oracle(params, rows, shape, rate):
    """The log posterior up to the evidence, row by row in float64, by the probabilities themselves."""
    w, alpha = np.asarray(params["w"], np.float64), float(params["alpha"])
    total = stats.gamma.logpdf(alpha, shape, scale=1 / rate) + sum(stats.norm.logpdf(value, 0, alpha**-0.5) for value in w)
    for x, y in zip(np.asarray(rows.x, np.float64), np.asarray(rows.y), strict=True):
        total += stats.bernoulli.logpmf(int(y), special.expit(x @ w))
    return total


def test_the_log_posterior_is_that_of_an_independent_formula(rng):
    """Of the model itself, and of its target, which adds the Jacobian of log alpha."""
    model, draw, rows = setting(rng)
    exact = oracle(draw, rows, 2.5, 0.4)
    np.testing.assert_allclose(model.log_prior(draw) + jnp.sum(model.log_likelihood(draw, rows)), exact, rtol=1e-5)
    for target in (model.target(rows), model.target(rows, batch=4)):
        flat = jnp.concatenate([jnp.log(draw["alpha"])[None], draw["w"]])
        np.testing.assert_allclose(target.log_density(flat), exact + np.log(draw["alpha"]), rtol=1e-5)


def test_scores_of_minibatches_average_to_the_score_of_all_rows(rng):
    """Over one epoch, every row once: the prior is not scaled, the likelihood is."""
    model, _, rows = setting(rng)
    target, u = model.target(rows, batch=3), model.particles(jax.random.key(1), 2)
    parts = [target.points(u, jax.random.key(0), step).s for step in range(4)]
    np.testing.assert_allclose(np.mean(parts, 0), model.target(rows).score(u), rtol=1e-3, atol=1e-3)


def test_rows_of_great_margin_have_finite_likelihoods():
    """A probability that rounds to 1 has the logarithm of its complement all the same."""
    found = Logistic(1).log_likelihood({"w": jnp.array([1.0])}, Rows(jnp.array([[200.0], [200.0]]), jnp.array([0.0, 1.0])))
    np.testing.assert_allclose(found, [-200.0, 0.0], atol=1e-6)


def test_the_prior_is_sampled_by_its_rate_and_precision():
    """Mean of alpha, and weights of unit variance once multiplied by sqrt(alpha)."""
    model, n = Logistic(2), 4000
    draws = jax.vmap(model.sample_prior)(jax.random.split(jax.random.key(0), n))
    assert abs(float(jnp.mean(draws["alpha"])) - 100) < 5 * 100 / np.sqrt(n)
    z = np.asarray(draws["w"]) * np.sqrt(np.asarray(draws["alpha"]))[:, None]
    assert abs(np.mean(z**2) - 1) < 5 * np.sqrt(2 / z.size)
    np.testing.assert_allclose(model.particles(jax.random.key(0), n)[:, 0], np.log(draws["alpha"]), rtol=1e-5)


def test_predictions_are_those_of_the_mixture(rng):
    model, _, rows = setting(rng)
    draws = jax.vmap(model.sample_prior)(jax.random.split(jax.random.key(5), 4))
    p = np.mean([special.expit(np.asarray(rows.x, np.float64) @ np.asarray(w, np.float64)) for w in draws["w"]], 0)
    y = np.asarray(rows.y)
    np.testing.assert_allclose(model.predict(draws, rows.x), p, rtol=1e-5)
    np.testing.assert_allclose(model.log_predictive(draws, rows), np.log(np.where(y == 1, p, 1 - p)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.accuracy(draws, rows), np.mean((p > 0.5) == (y == 1)))


def test_particles_from_the_prior_learn_a_boundary(rng):
    """Through the public calls alone: prior draws, minibatches, multiple-kernel SVGD, predictions."""
    x = rng.normal(size=(200, 2))
    rows = Rows(jnp.asarray(x, jnp.float32), jnp.asarray(x[:, 0] > x[:, 1], jnp.float32))
    model, key = Logistic(2), jax.random.key(0)
    post = run(MKSVGD(), model.target(rows, batch=20), particles=model.particles(key, 8), steps=300, key=key)
    assert float(model.accuracy(post.draws(), rows)) > 0.95
    assert float(jnp.mean(model.log_predictive(post.draws(), rows))) > -0.3


@pytest.mark.parametrize("given", [{"features": 0}, {"shape": 0.0}, {"rate": -1.0}])
def test_what_is_no_regression_is_refused(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        Logistic(**{"features": 2} | given)
