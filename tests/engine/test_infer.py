"""The one call: what it starts from, what it takes, what it refuses, and what it says of posteriors whose answer is known."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.linalg

from polystein import MKSVGD, Posterior, Target, infer, run
from polystein.gaussian_start import finite_start, fit_gaussian, normal_points
from polystein.geometry import LowRank
from polystein.modes import unknown_mode

# Where the search begins ----------------------------------------------------------------------------------------------

AROUND = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])


def by_hand(value: Callable[[np.ndarray], np.ndarray], score: Callable[[np.ndarray], np.ndarray]) -> Callable:
    return lambda u: (value(u).astype(float), score(u).astype(float))


BOWL = by_hand(lambda u: -0.5 * (u**2).sum(1), lambda u: -u)
SADDLE = by_hand(lambda u: 0.5 * (u[:, 0] ** 2 - u[:, 1] ** 2), lambda u: u * [1, -1])
OUTSIDE = lambda u: np.maximum(np.abs(u) - 5, 0) * np.sign(u)
PLATEAU = by_hand(lambda u: -(OUTSIDE(u) ** 2).sum(1), lambda u: -2 * OUTSIDE(u))
HALF_LINE = by_hand(lambda u: np.where(u[:, 0] > 3, -u[:, 0], -np.inf), lambda u: np.tile([-1.0, -1.0], (len(u), 1)))


def test_a_peak_is_a_start():
    """Where the first guess is the mode to the bit, every score is zero there, and nothing is wrong."""
    np.testing.assert_array_equal(finite_start(BOWL, np.zeros(2), AROUND), [0.0, 0.0])
    by_score = lambda u: (np.full(len(u), np.nan), -u)
    np.testing.assert_array_equal(finite_start(by_score, np.zeros(2), AROUND), [0.0, 0.0])
    np.testing.assert_array_equal(finite_start(BOWL, np.ones(2), AROUND), [1.0, 1.0])


def test_saddles_and_plateaus_are_left():
    np.testing.assert_allclose(finite_start(SADDLE, np.zeros(2), AROUND), [0.1, 0.0])
    assert np.abs(finite_start(PLATEAU, np.zeros(2), AROUND)).max() == 10.0


def test_a_start_outside_of_the_support_is_moved_into_it():
    np.testing.assert_allclose(finite_start(HALF_LINE, np.zeros(2), AROUND), [10.0, 0.0])


@pytest.mark.parametrize(
    ("evaluate", "words"),
    [
        (by_hand(lambda u: np.zeros(len(u)), np.zeros_like), r"score is zero .*expected.*; look for stop_gradient"),
        (by_hand(lambda u: np.full(len(u), -np.inf), np.ones_like), r"not finite at like .*expected.*; give like="),
        (by_hand(lambda u: np.zeros(len(u)), lambda u: np.full_like(u, np.nan)), r"gradient is not finite .*expected.*;"),
    ],
    ids=["flat", "nowhere finite", "no gradient"],
)
def test_no_start_is_said(evaluate: Callable, words: str):
    with pytest.raises(ValueError, match=words):
        finite_start(evaluate, np.zeros(2), AROUND)


IMPROPER = {
    "linear": lambda x: jnp.sum(x),
    "upside down": lambda x: 0.5 * jnp.sum(x**2),
    "one parameter free": lambda x: -0.5 * x[0] ** 2,
    "tail too heavy": lambda x: -0.3 * jnp.log1p(jnp.sum(x**2)),
}


@pytest.mark.parametrize("name", IMPROPER)
def test_a_density_without_an_integral_is_refused(name: str, key: jax.Array):
    """And no warning on the way."""
    with pytest.raises(ValueError, match=r"does not fall off.*coordinate \d of 2.*expected.*; give"):
        infer(IMPROPER[name], jnp.zeros(2), key=key)


def test_one_particle_is_at_the_mode(key: jax.Array):
    post = infer(lambda x: -0.5 * (x - 3.0) ** 2, 0.0, key=key, particles=1)
    np.testing.assert_allclose(post.particles, [[3.0]], atol=1e-3)
    assert post.status.kind == "converged"
    assert str(post.summary())


# What comes out --------------------------------------------------------------------------------------------------------


def spread(post: Posterior) -> np.ndarray:
    return np.asarray(post.particles).std(0, ddof=1)


def test_a_banana(key: jax.Array):
    """y = x^2 / 4 + noise, x of sd 2: means 0 and 1, variances 4 and 0.49 + 2 (4/4)^2."""
    post = infer(lambda u: -0.5 * (u[0] / 2) ** 2 - 0.5 * ((u[1] - u[0] ** 2 / 4) / 0.7) ** 2, jnp.zeros(2), key=key)
    exact = np.sqrt([4.0, 0.49 + 2.0])
    assert np.abs((np.asarray(post.particles).mean(0) - [0, 1]) / exact).max() < 0.1
    np.testing.assert_allclose(spread(post) / exact, 1, atol=0.15)


def test_a_funnel_does_not_drift(key: jax.Array):
    """Scale exp(v / 2), v of sd 1, three below it: sds 1 and exp(1/4), the same at twice the steps."""
    target = Target.of(lambda u: -0.5 * u[0] ** 2 - 0.5 * jnp.sum(u[1:] ** 2) * jnp.exp(-u[0]) - 1.5 * u[0], jnp.zeros(4))
    exact = np.array([1.0, *[np.exp(0.25)] * 3])
    ratios = [spread(infer(target, key=key, max_steps=steps)) / exact for steps in (1000, 2000)]
    for ratio in ratios:
        np.testing.assert_allclose(ratio, 1, atol=0.15)


def test_a_regression_with_badly_scaled_features(key: jax.Array, rng: np.random.Generator):
    """Normal regression of known noise, features of scales 1e-2 to 1e3: the posterior in closed form."""
    x = rng.normal(size=(40, 4)) * [1, 1e3, 1e-2, 5] + [0, 3e3, 0, 0]
    y, design = rng.normal(size=40), jnp.asarray(x, jnp.float32)
    covariance = np.linalg.inv(x.T @ x)
    post = infer(lambda b: -0.5 * jnp.sum((y.astype(np.float32) - design @ b) ** 2), jnp.zeros(4), key=key)
    exact = np.sqrt(np.diag(covariance))
    assert post.status.kind == "converged"
    assert np.sqrt(np.mean(((np.asarray(post.particles).mean(0) - covariance @ x.T @ y) / exact) ** 2)) < 0.03
    np.testing.assert_allclose(spread(post) / exact, 1, atol=0.05)
    gap = np.corrcoef(np.asarray(post.particles).T) - covariance / np.outer(exact, exact)
    assert np.abs(gap).max() < 0.1


def two_modes(u: jax.Array) -> jax.Array:
    return jnp.logaddexp(-0.5 * jnp.sum((u + 6) ** 2), -0.5 * jnp.sum((u - 6) ** 2))


def test_a_mode_that_no_particle_knows_of_is_reported(key: jax.Array):
    post = infer(two_modes, jnp.array([5.0, 5.0]), key=key)
    assert post.status.kind == "not converged"
    if (np.asarray(post.particles) > 0).all():
        assert "another mode, at (-6" in post.status.sentence


BUMPS = by_hand(
    lambda z: np.logaddexp(-0.5 * (z**2).sum(1), -0.5 * ((z - np.array([9, 0])) ** 2).sum(1)),
    lambda z: -z + np.array([9, 0]) * (1 / (1 + np.exp(-9 * z[:, :1] + 40.5))),
)


def test_unknown_modes(rng: np.random.Generator):
    around, left = rng.normal(size=(32, 2)), rng.normal(size=(40, 2))
    np.testing.assert_allclose(unknown_mode(BUMPS, left, around), [9, 0], atol=0.1)
    both = np.concatenate([left, left + np.array([9, 0])])
    assert unknown_mode(BUMPS, both, around) is None
    assert unknown_mode(BOWL, left, around) is None
    assert unknown_mode(by_hand(lambda z: np.full(len(z), np.nan), lambda z: -z), left, around) is None


def test_too_many_dimensions_for_a_matrix(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator):
    """Diagonal and low rank is exact where the covariance is: three directions that load on all coordinates alike."""
    d = 64
    monkeypatch.setattr("polystein.gaussian_start.FULL", d - 1)
    monkeypatch.setattr("polystein.gaussian_start.RANK", 12)
    size, along = np.exp(rng.normal(size=d)), scipy.linalg.hadamard(d)[:, 1:4] / np.sqrt(d)
    precision = (np.eye(d) + (along * (np.array([30.0, 10.0, 3.0]) ** -2 - 1)) @ along.T) / np.outer(size, size)
    evaluate = by_hand(lambda u: -0.5 * ((u - 1) @ precision * (u - 1)).sum(1), lambda u: -(u - 1) @ precision)
    fit = fit_gaussian(evaluate, np.zeros(d), normal_points(rng, 2 * d + 4, d))
    geometry = fit.geometry(np.dtype(np.float32))
    assert isinstance(geometry, LowRank)
    z = rng.normal(size=(5, d))
    np.testing.assert_allclose(geometry.out(jnp.asarray(z, jnp.float32)), fit.out(z), atol=1e-3)
    factor = fit.out(np.eye(d)) - fit.mean
    np.testing.assert_allclose(np.linalg.eigvalsh(factor @ precision @ factor.T), 1, atol=0.1)


def test_ranks_of_a_conjugate_model_are_uniform(key: jax.Array):
    """Simulation-based calibration (Talts et al. 2018): theta from N(0, 1), four y from N(theta, 1), 49 particles."""
    trials, bins = 100, 10
    truth_key, noise_key = jax.random.split(key)
    theta = jax.random.normal(truth_key, (trials,))
    y = theta[:, None] + jax.random.normal(noise_key, (trials, 4))
    like, optim = jnp.zeros(1), optax.adam(0.05)

    def rank(theta: jax.Array, y: jax.Array, key: jax.Array) -> jax.Array:
        target = Target.of(lambda u: -0.5 * u[0] ** 2 - 0.5 * jnp.sum((y - u[0]) ** 2), like)
        post = run(MKSVGD(), target, particles=49, steps=200, key=key, optim=optim)
        return jnp.sum(post.particles[:, 0] < theta)

    ranks = np.asarray(jax.jit(jax.vmap(rank))(theta, y, jax.random.split(key, trials)))
    counts = np.histogram(ranks, bins=bins, range=(0, 50))[0]
    expected = trials / bins
    assert ((counts - expected) ** 2 / expected).sum() < 27.9  # the 0.999 quantile of chi-squared with 9 degrees
