"""Bayesian networks: the log posterior is that of numpy and scipy, and the library infers it through its public calls."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import stats

from polystein import MKSVGD, run
from polystein.models import Network, Rows

SHAPES = [(3,), (4, 3)]


def setting(rng, hidden):
    """A network with unusual hyper-parameters, parameters, and eleven rows of three features."""
    model = Network(3, hidden, shape=2.5, rate=0.4)
    draw = model.sample_prior(jax.random.key(3))
    return model, draw, Rows(*(jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in ((11, 3), (11,))))


def oracle(params, rows, shape, rate, size=None):
    """The log posterior up to the evidence, row by row in float64; of minibatches where ``size`` is given."""
    params = jax.tree.map(lambda a: np.asarray(a, np.float64), params)
    total = sum(stats.gamma.logpdf(params[name], shape, scale=1 / rate) for name in ("gamma", "lambda"))
    for leaf in [*params["weights"], *params["biases"]]:
        total += sum(stats.norm.logpdf(value, 0, params["lambda"] ** -0.5) for value in leaf.ravel())
    means = []
    for x, y in zip(np.asarray(rows.x, np.float64), np.asarray(rows.y, np.float64), strict=True):
        for k, (w, b) in enumerate(zip(params["weights"], params["biases"], strict=True)):
            x = np.array([x @ column for column in w.T]) + b
            if k < len(params["weights"]) - 1:
                x = np.where(x > 0, x, 0)
        means.append(x[0])
        total += stats.norm.logpdf(y, x[0], params["gamma"] ** -0.5)
    return total, np.array(means)


@pytest.mark.parametrize("hidden", SHAPES)
def test_the_log_posterior_is_that_of_an_independent_formula(rng, hidden):
    """Of the model itself, and of its target, which adds the Jacobians of the logarithms of both precisions."""
    model, draw, rows = setting(rng, hidden)
    exact, means = oracle(draw, rows, 2.5, 0.4)
    np.testing.assert_allclose(model.mean(draw, rows.x), means, rtol=1e-4, atol=1e-4)
    value = model.log_prior(draw) + jnp.sum(model.log_likelihood(draw, rows))
    np.testing.assert_allclose(value, exact, rtol=1e-5)
    flat, _ = ravel_pytree(draw | {name: jnp.log(draw[name]) for name in ("gamma", "lambda")})
    jacobian = np.log(draw["gamma"]) + np.log(draw["lambda"])
    for target in (model.target(rows), model.target(rows, batch=4)):
        np.testing.assert_allclose(target.log_density(flat), exact + jacobian, rtol=1e-5)


def test_scores_of_minibatches_average_to_the_score_of_all_rows(rng):
    """Over one epoch, every row once: the prior is not scaled, the likelihood is."""
    model, _, rows = setting(rng, (3,))
    rows = Rows(rows.x[:10], rows.y[:10])
    target, u = model.target(rows, batch=2), model.particles(jax.random.key(1), 2)
    parts = [target.points(u, jax.random.key(0), step).s for step in range(5)]
    np.testing.assert_allclose(np.mean(parts, 0), model.target(rows).score(u), rtol=1e-3, atol=1e-3)


def test_the_prior_is_sampled_by_its_rate_and_precision():
    """Mean and variance of the precisions, and weights of unit variance once multiplied by sqrt(lambda)."""
    model, n = Network(2, 3, shape=2.0, rate=0.5), 4000
    draws = jax.vmap(model.sample_prior)(jax.random.split(jax.random.key(0), n))
    for name in ("gamma", "lambda"):
        assert abs(float(jnp.mean(draws[name])) - 4) < 5 * np.sqrt(8 / n)
    weights = np.concatenate([np.asarray(w).reshape(n, -1) for w in [*draws["weights"], *draws["biases"]]], 1)
    z = weights * np.sqrt(np.asarray(draws["lambda"]))[:, None]
    assert abs(np.mean(z**2) - 1) < 5 * np.sqrt(2 / z.size)
    u = model.particles(jax.random.key(0), n)
    np.testing.assert_array_equal(
        u[0],
        ravel_pytree({k: jnp.log(v[0]) if k in model.constrain else jax.tree.map(lambda a: a[0], v) for k, v in draws.items()})[
            0
        ],
    )


def test_predictions_are_those_of_the_mixture(rng):
    model, _, rows = setting(rng, (3,))
    draws = jax.vmap(model.sample_prior)(jax.random.split(jax.random.key(5), 4))
    means = np.array([oracle(jax.tree.map(lambda a, j=j: a[j], draws), rows, 2.5, 0.4)[1] for j in range(4)])
    density = np.mean([stats.norm.pdf(rows.y, m, g**-0.5) for m, g in zip(means, np.asarray(draws["gamma"]), strict=True)], 0)
    np.testing.assert_allclose(model.predict(draws, rows.x), means.mean(0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.log_predictive(draws, rows), np.log(density), rtol=1e-4, atol=1e-4)
    error = np.sqrt(np.mean((means.mean(0) - np.asarray(rows.y)) ** 2))
    np.testing.assert_allclose(model.rmse(draws, rows), error, rtol=1e-4)


def test_particles_from_the_prior_learn_a_line(rng):
    """Through the public calls alone: prior draws, minibatches, multiple-kernel SVGD, predictions."""
    x = rng.normal(size=(60, 1))
    rows = Rows(jnp.asarray(x, jnp.float32), jnp.asarray(0.8 * x[:, 0] + rng.normal(0, 0.1, 60), jnp.float32))
    model, key = Network(1, 5), jax.random.key(0)
    post = run(MKSVGD(), model.target(rows, batch=20), particles=model.particles(key, 8), steps=400, key=key)
    assert float(model.rmse(post.draws(), rows)) < 0.3
    assert float(jnp.mean(model.log_predictive(post.draws(), rows))) > -0.5


@pytest.mark.parametrize("given", [{"features": 0}, {"hidden": (5, 0)}, {"shape": 0.0}, {"rate": -1.0}])
def test_what_is_no_network_is_refused(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        Network(**{"features": 2} | given)
