"""What recipes for regression share: the mixture's scores, units of the training rows, the registry."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from scipy import stats

from polystein.experiments.regressors import Predictive, Standardised, log_likelihood, recipes, rmse


def test_scores_of_a_mixture_are_those_of_numpy(rng):
    mean, sd, y = rng.normal(size=(3, 4, 5)), rng.uniform(0.5, 2, (3, 4, 5)), rng.normal(size=(3, 5))
    predictive = Predictive(jnp.asarray(mean), jnp.asarray(sd))
    density = np.mean([[stats.norm.pdf(y[s], mean[s, m], sd[s, m]) for m in range(4)] for s in range(3)], 1)
    error = np.sqrt(np.mean((mean.mean(1) - y) ** 2, 1))
    np.testing.assert_allclose(log_likelihood(predictive, jnp.asarray(y)), np.log(density).mean(1), rtol=1e-5)
    np.testing.assert_allclose(rmse(predictive, jnp.asarray(y)), error, rtol=1e-5)


def test_units_are_those_of_each_splits_training_rows(rng):
    x, y = rng.normal(3, 2, (2, 50, 3)), rng.normal(-1, 5, (2, 50))
    x[:, :, 1] = 7.0  # a constant column
    units = Standardised.of(jnp.asarray(x), jnp.asarray(y))
    z = np.asarray(units.features(jnp.asarray(x)))
    np.testing.assert_allclose(z.mean(1), 0, atol=1e-5)
    np.testing.assert_allclose(z.std(1), [[1, 0, 1]] * 2, atol=1e-5)
    back = units.raw(units.targets(jnp.asarray(y))[:, None], jnp.ones((2, 1, 50)))
    np.testing.assert_allclose(back.mean[:, 0], y, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(back.sd[:, 0, 0], y.std(1), rtol=1e-5)


def test_every_recipe_has_a_name_of_its_own_and_needs_no_arguments():
    for label, recipe in recipes().items():
        assert recipe().label == label
