"""The paper's Gaussian, read both ways, and what is true of the paper's weights on it (errata 4, 5, 6, 7, 30, 31)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from polystein import MKSVGD, SVGD, Bank, Posterior, Target, U, V, ksd, max_mksd, run
from polystein.weights import Argmax

MEAN = np.array([-0.6871, 0.8010])
MATRIX = np.array([[0.2260, 0.1652], [0.1652, 0.6779]])
COVARIANCES = {"covariance": MATRIX, "precision": np.linalg.inv(MATRIX)}
BANDWIDTHS = 2.0 ** np.arange(-4, 6)
READING = pytest.mark.parametrize("reading", COVARIANCES)


def gaussian(reading: str) -> Target:
    """N(mean, matrix) or N(mean, matrix^-1)."""
    precision = jnp.asarray(np.linalg.inv(COVARIANCES[reading]), jnp.float32)
    mean = jnp.asarray(MEAN, jnp.float32)
    return Target.of(lambda x: -0.5 * (x - mean) @ precision @ (x - mean), jnp.zeros(2))


def self_term(scores: np.ndarray) -> np.ndarray:
    """(E |s|^2 + 2 d / h) / n: the bias of V."""
    n, d = scores.shape
    return (np.mean(np.sum(scores**2, 1)) + 2 * d / BANDWIDTHS) / n


def test_the_two_readings_differ():
    np.testing.assert_allclose(COVARIANCES["precision"], [[5.38, -1.31], [-1.31, 1.79]], atol=0.006)


@pytest.mark.parametrize(("n", "d"), [(20, 753), (500, 2)])
def test_v_of_exact_draws_is_u_plus_a_self_term_that_h_orders(n: int, d: int, rng: np.random.Generator):
    x = jnp.asarray(rng.normal(size=(n, d)), jnp.float32)
    v, u = (ksd(x, -x, Bank.dyadic(), statistic=s) for s in (V(), U()))
    bias = self_term(-np.asarray(x, float))
    assert np.all(np.diff(bias) < 0)
    np.testing.assert_allclose(v.value, bias + (n - 1) / n * u.value, rtol=2e-5, atol=1e-5 * bias[0])
    assert np.all(np.abs(u.value) < 5 * u.standard_error + 1e-5)  # nothing but noise: q is p


def test_with_many_dimensions_the_self_term_alone_decides(rng: np.random.Generator):
    """n = 20, d = 753, the sizes of a small Bayesian neural net: w is the same whatever the posterior is."""
    n, d = 20, 753
    x = jnp.asarray(rng.normal(size=(n, d)), jnp.float32)
    v = ksd(x, -x, Bank.dyadic(), statistic=V()).value
    # with E|s|^2 = d: 1242.45, 640.05, ..., 40.0
    np.testing.assert_allclose(v, (d + 2 * d / BANDWIDTHS) / n, rtol=0.04)
    w = np.sqrt(np.asarray(v) / np.sum(v))
    np.testing.assert_allclose(w[[0, 1, 2, 9]], [0.668, 0.480, 0.349, 0.120], atol=0.002)
    # the same particles and scores as far from p as can be: the signs of the scores turned
    away = ksd(x, x, Bank.dyadic(), statistic=V()).value
    np.testing.assert_allclose(np.sqrt(np.asarray(away) / np.sum(away))[:5], w[:5], atol=0.002)


@READING
def test_v_prefers_the_smallest_bandwidth_near_the_target(reading: str, rng: np.random.Generator):
    x = jnp.asarray(rng.multivariate_normal(MEAN, COVARIANCES[reading], size=500), jnp.float32)
    scores = gaussian(reading).score(x)
    v = np.asarray(ksd(x, scores, Bank.dyadic(), statistic=V()).value)
    assert np.argmax(v) == 0
    assert np.argmax(max_mksd(x, scores, Bank.dyadic(), statistic=V()).w) == 0


@READING
def test_far_from_the_target_u_grows_with_the_bandwidth(reading: str, rng: np.random.Generator):
    x = jnp.asarray(rng.normal(MEAN + 20.0, 1.0, (200, 2)), jnp.float32)
    u = np.asarray(ksd(x, gaussian(reading).score(x), Bank.dyadic()).value)
    assert np.all(np.diff(u) > 0)


def test_near_the_target_but_not_at_it_weights_rise_with_the_bandwidth(rng: np.random.Generator):
    """Read as a covariance, N(0, I) is far enough from the target for the largest h to win at the start (erratum 7)."""
    x = jnp.asarray(rng.normal(size=(500, 2)), jnp.float32)
    v = ksd(x, gaussian("covariance").score(x), Bank.dyadic(), statistic=V()).value
    assert np.argmax(v) == 9


@pytest.fixture(scope="module", params=COVARIANCES)
def settled(request: pytest.FixtureRequest) -> tuple[str, Posterior]:
    """Algorithm 1 on one reading of the matrix, run until nothing changes."""
    optim = optax.rmsprop(optax.cosine_decay_schedule(0.1, 500))
    post = run(MKSVGD.paper(), gaussian(request.param), particles=100, steps=500, key=jax.random.key(0), optim=optim)
    return request.param, post


def test_the_mean_comes_out(settled: tuple[str, Posterior]):
    """The paper reports this and nothing else; it is the easy part (erratum 31)."""
    reading, post = settled
    deviation = np.sqrt(np.diag(COVARIANCES[reading]) / 100)
    assert np.all(np.abs(np.mean(post.particles, 0) - MEAN) < 3 * deviation)


def test_the_mean_comes_out_of_svgd(key: jax.Array):
    optim = optax.rmsprop(optax.cosine_decay_schedule(0.1, 500))
    post = run(SVGD(), gaussian("covariance"), particles=100, steps=500, key=key, optim=optim)
    assert np.all(np.abs(np.mean(post.particles, 0) - MEAN) < 3 * np.sqrt(np.diag(MATRIX) / 100))


def test_at_the_end_v_weighs_the_smallest_bandwidth_most(settled: tuple[str, Posterior]):
    """Figure 1(b) has h = 1 and h = 2 there (erratum 7); only what V does by its self-term is robust."""
    w = np.asarray(settled[1].trace["weights"][-1])
    assert np.argmax(w) == 0
    np.testing.assert_allclose(np.linalg.norm(w), 1, rtol=1e-5)


def test_after_a_run_every_u_is_negative_and_the_weights_survive(settled: tuple[str, Posterior]):
    """Particles that repel each other are more regular than draws: no S_i > 0 is left to be a weight (erratum 4)."""
    reading, post = settled
    x, target = post.particles, gaussian(reading)
    u = np.asarray(ksd(x, target.score(x), Bank.dyadic()).value)
    assert np.all(u < 0)
    best = max_mksd(x, target.score(x), Bank.dyadic())
    assert float(best.value) == pytest.approx(np.max(u))
    np.testing.assert_array_equal(best.w, np.arange(10) == np.argmax(u))
    two = MKSVGD.paper(low=-4, high=-3, statistic=U())
    again = run(two, target, particles=x, steps=3, key=jax.random.key(0), optim=optax.sgd(0.01))
    np.testing.assert_allclose(again.trace["weights"], 2**-0.5, rtol=1e-6)  # the last weights: those of the start
    assert np.all(np.any(again.particles != x, 1))  # nothing is frozen


def test_what_the_paper_leaves_open_is_an_argument():
    method = MKSVGD.paper(low=2, high=11, statistic=U(), rule=Argmax, lagged=False)
    np.testing.assert_allclose([kernel.h for kernel in method.bank], 2.0 ** np.arange(2, 12))
    assert isinstance(method.weights, Argmax)
    assert isinstance(method.weights.statistic, U)
    assert not method.lagged
