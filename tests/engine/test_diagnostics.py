"""Diagnostics and model checks: what they measure is what is planted, and what is right they leave alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from polystein import MKSVGD, RBF, Bank, Interval, Positive, Target, check_model, run
from polystein.diagnostics import findings, independent_ksd, neighbours, stein_identity
from tests.engine.common import COVARIANCE, MEAN, SGD, plain

# Stein's identity -----------------------------------------------------------------------------------------------------

N = 4000
FACTOR = np.linalg.cholesky(COVARIANCE)


def draws(rng: np.random.Generator, n: int = N) -> np.ndarray:
    """Exact draws of the Gaussian of common.py."""
    return (MEAN + rng.normal(size=(n, 2)) @ FACTOR.T).astype(np.float32)


def scores(x: np.ndarray) -> np.ndarray:
    return (-(x - MEAN) @ np.linalg.inv(COVARIANCE)).astype(np.float32)


def identity(x: np.ndarray, s: np.ndarray) -> Any:
    return jax.tree.map(np.asarray, stein_identity(jnp.asarray(x), jnp.asarray(s)))


@pytest.mark.parametrize("c", [0.3, 0.8, 1.0, 1.25, 2.0])
def test_scaled_sample_of_a_gaussian_gives_c_squared(c: float, rng: np.random.Generator):
    """(x - mean).s has mean -c^2 d; in standardised coordinates R is c^2 times a mean of N d squared normals."""
    x = (MEAN + c * (draws(rng) - MEAN)).astype(np.float32)
    found = identity(x, scores(x))
    correlation = COVARIANCE[0, 1] / np.sqrt(COVARIANCE[0, 0] * COVARIANCE[1, 1])
    error = np.sqrt(2 / (2 * N)) / (1 - correlation**2)  # of a quadratic form in N normal pairs, at most
    assert abs(found.ratio / c**2 - 1) < 4 * error
    assert abs(found.smallest / c**2 - 1) < 6 * np.sqrt(2 / N)
    assert abs(found.largest / c**2 - 1) < 6 * np.sqrt(2 / N)
    assert found.smallest <= found.largest


def test_identity_is_exact_where_the_sample_is(rng: np.random.Generator):
    """Mean and covariance of the sample made those of the density: R = 1 and M = I to rounding."""
    z = rng.normal(size=(50, 3))
    z -= z.mean(0)
    z = np.linalg.solve(np.linalg.cholesky(z.T @ z / 50), z.T).T
    x = (z @ np.diag([1e-3, 1.0, 1e3]) + 5).astype(np.float32)
    found = identity(x, (-(x - 5) / np.array([1e-6, 1.0, 1e6])).astype(np.float32))
    np.testing.assert_allclose([found.ratio, found.smallest, found.largest], 1, rtol=1e-3)


@pytest.mark.parametrize("c", [0.2, 5.0])
def test_direction_is_found(c: float, rng: np.random.Generator):
    """A sample whose variance is off along one direction alone, of a density that is no sphere."""
    direction = np.array([1.0, 2.0]) / np.sqrt(5)
    z = rng.normal(size=(N, 2))
    z = z + (np.sqrt(c) - 1) * np.outer(z @ direction, direction)
    x = (MEAN + z @ FACTOR.T).astype(np.float32)
    found = identity(x, scores(x))
    value, where = (found.smallest, found.narrow) if c < 1 else (found.largest, found.wide)
    other = found.largest if c < 1 else found.smallest
    assert abs(value / c - 1) < 6 * np.sqrt(2 / N)
    assert abs(other - 1) < 8 * np.sqrt(2 / N)
    expected = FACTOR @ direction / np.linalg.norm(FACTOR @ direction)
    assert abs(where @ expected) > 0.98
    np.testing.assert_allclose(np.linalg.norm(where), 1, rtol=1e-4)


def test_more_dimensions_than_particles(rng: np.random.Generator):
    x = rng.normal(size=(5, 20)).astype(np.float32)
    found = identity(x, -x)
    assert all(np.isfinite(a).all() for a in found)


def test_particles_all_at_one_place():
    x = np.ones((6, 2), np.float32)
    found = identity(x, np.ones((6, 2), np.float32))
    assert np.isfinite(found.ratio)
    assert abs(found.ratio) < 1e-3


def test_independent_ksd_is_that_of_exact_draws(rng: np.random.Generator):
    """On exact draws the V-statistic's mean is what exact draws score; on collapsed ones it is far above."""
    ratios = []
    for _ in range(20):
        x = draws(rng, 100)
        found, exact, most = independent_ksd(jnp.asarray(x), jnp.asarray(scores(x)))
        assert exact < most
        assert found < most
        ratios.append(float(found / exact) ** 2)
    ratios = np.array(ratios)
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(20) + 0.02
    shifted = x + np.float32(1.0)
    found, exact, most = independent_ksd(jnp.asarray(shifted), jnp.asarray(scores(shifted)))
    assert found > 2 * exact
    assert found > most


# Findings -------------------------------------------------------------------------------------------------------------


def advice(x: np.ndarray, s: np.ndarray, bank: Bank | None = None, weights: Any = None) -> dict[str, str]:
    """What is not fine, with its advice."""
    reach = None if bank is None else neighbours(bank, jnp.asarray(x))
    found = findings(jnp.asarray(x), jnp.asarray(s), ["a", "b"], reach, weights)
    return {f.name: f.advice for f in found if not f.fine}


def test_exact_draws_get_no_advice(rng: np.random.Generator):
    x = draws(rng, 1000)
    assert not advice(x, scores(x))


def test_narrow_and_wide_samples_get_advice(rng: np.random.Generator):
    for c, word in ((0.5, "narrow"), (2.0, "wide")):
        x = (MEAN + c * (draws(rng, 1000) - MEAN)).astype(np.float32)
        found = advice(x, scores(x))
        assert word in found["Stein ratio"]
        assert "a" in found["narrowest direction" if c < 1 else "widest direction"]


def test_narrow_kernels_on_spread_particles_are_an_ensemble(rng: np.random.Generator):
    x = draws(rng, 100)
    saturated, alive = Bank(RBF(1e-8), RBF(1e-9)), Bank(RBF(1e-8), RBF(4.0))
    assert "2 of 2 kernels are the identity" in advice(x, scores(x), saturated)["kernels that connect no particles"]
    assert "kernels that connect no particles" not in advice(x, scores(x), alive)


def test_neighbours_are_counted_right():
    """Pairs at distance 0 far from all others have one neighbour each of 19; a flat kernel has all."""
    x = jnp.asarray(np.repeat(np.arange(10.0)[:, None] * 100, 2, 0), jnp.float32)
    np.testing.assert_allclose(neighbours(Bank(RBF(1.0), RBF(1e12)), x), [1 / 19, 1.0], rtol=1e-3)


@pytest.mark.parametrize(("weights", "edge"), [([1, 0, 0], True), ([0, 0, 1], True), ([0, 1, 0], False), ([1, 1, 1], False)])
def test_weights_at_the_edge(weights: list[int], edge: bool, rng: np.random.Generator):
    x = draws(rng, 100)
    bank, w = Bank.dyadic(1.0, 0, 2), jnp.asarray(weights, jnp.float32)
    assert ("weight at the bank's edge" in advice(x, scores(x), bank, w / jnp.linalg.norm(w))) == edge


def test_every_piece_of_advice_reaches_the_summary(key: jax.Array):
    post = run(MKSVGD(Bank(RBF(1e-8), RBF(1e-9))), plain(), particles=20, steps=2, key=key, optim=SGD)
    assert any("ensemble" in sentence for sentence in post.summary().advice)


# Model checks ---------------------------------------------------------------------------------------------------------
# Each: the right density, one with an error planted, and exact draws in unconstrained coordinates.

Y = np.array([0.5, -1.0, 2.0, 1.5])
LABELS = np.array([0, 1, 1, 1, 0, 1])


def gamma(sign: float = 1.0, jacobian: float = 1.0) -> Target:
    """v ~ Gamma(3, 1) in u = log v."""
    return Target.of(lambda u: sign * (2 * u - jnp.exp(u) + jacobian * u), jnp.zeros(()))


def gamma_draws(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.log(rng.gamma(3.0, size=n))[:, None]


def beta(labels: np.ndarray) -> Target:
    """A coin of unknown chance under a flat prior; labels in {0, 1}."""
    y = jnp.asarray(labels, jnp.float32)
    log_p = lambda v: jnp.sum(y * jnp.log(v) + (1 - y) * jnp.log1p(-v))
    return Target.of(log_p, 0.5, constrain=Interval(0.0, 1.0))


def beta_draws(rng: np.random.Generator, n: int) -> np.ndarray:
    v = rng.beta(1 + LABELS.sum(), 1 + (1 - LABELS).sum(), size=n)
    return np.log(v / (1 - v))[:, None]


def normal(mean: float = Y.sum() / 5, precision: float = 5.0, stop: bool = False) -> Target:
    """m ~ N(0, 1), y ~ N(m, 1): N(sum y / 5, 1 / 5), in two coordinates."""

    def log_p(m: jax.Array) -> jax.Array:
        half = jax.lax.stop_gradient(m) if stop else m
        return -0.5 * precision * jnp.sum((m - mean) * (half - mean))

    return Target.of(log_p, jnp.zeros(2))


def normal_draws(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(Y.sum() / 5, 5**-0.5, size=(n, 2))


def scale_model(constrain: Any) -> Target:
    """v ~ Exponential(1)."""
    return Target.of(lambda v: -v, 1.0, constrain=constrain)


def exponential_draws(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.log(rng.exponential(size=n))[:, None]


RIGHT: dict[str, tuple[Callable[[], Target], Callable[[np.random.Generator, int], np.ndarray]]] = {
    "gamma": (gamma, gamma_draws),
    "beta": (lambda: beta(LABELS), beta_draws),
    "normal": (normal, normal_draws),
    "exponential": (lambda: scale_model(Positive()), exponential_draws),
}
WRONG: dict[str, tuple[Callable[[], Target], Callable[[np.random.Generator, int], np.ndarray], str]] = {
    "log-Jacobian missing": (lambda: gamma(jacobian=0.0), gamma_draws, "E s"),
    "log-Jacobian twice": (lambda: gamma(jacobian=2.0), gamma_draws, "E s"),
    "sign": (lambda: gamma(sign=-1.0), gamma_draws, "E "),
    "labels in {-1, 1}": (lambda: beta(2 * LABELS - 1), beta_draws, "E "),
    "labels the other way round": (lambda: beta(1 - LABELS), beta_draws, "E s"),
    "s.d. for variance": (lambda: normal(precision=5**0.5), normal_draws, "E (u"),
    "prior forgotten": (lambda: normal(mean=Y.mean(), precision=4.0), normal_draws, "E "),
    "stop_gradient": (lambda: normal(stop=True), normal_draws, "gradient"),
    "not constrained": (lambda: scale_model(None), exponential_draws, "E "),
}


@pytest.mark.parametrize("name", WRONG)
def test_planted_error_is_found(name: str, rng: np.random.Generator):
    make, exact, where = WRONG[name]
    report = check_model(make(), jnp.asarray(exact(rng, 2000), jnp.float32))
    assert not report.fine
    complaints = [f.name for f in report.findings if not f.fine]
    assert any(complaint.startswith(where) for complaint in complaints)
    assert all(f"- {f.advice}" in str(report) for f in report.findings if not f.fine)
    assert "NO" in str(report)


@pytest.mark.parametrize("name", RIGHT)
def test_right_models_are_left_alone(name: str, rng: np.random.Generator):
    """With exact draws, over 20 sets of them; and without any."""
    make, exact = RIGHT[name]
    target = make()
    loud = [str(r) for _ in range(20) if not (r := check_model(target, jnp.asarray(exact(rng, 1000), jnp.float32))).fine]
    assert not loud, loud[0]
    assert (report := check_model(target)).fine, str(report)


def test_stop_gradient_is_found_without_draws(key: jax.Array):
    assert not check_model(normal(stop=True), key=key).fine


def test_values_that_are_not_finite_are_found():
    report = check_model(Target.of(lambda x: jnp.sum(jnp.log(x)), jnp.zeros(2)))
    assert not report.fine
    assert "constrain=" in str(report)


def test_model_of_a_score_alone(rng: np.random.Generator):
    x = jnp.asarray(rng.normal(size=(2000, 2)), jnp.float32)
    assert (report := check_model(Target.of_score(lambda v: -v, jnp.zeros(2)), x)).fine, str(report)
    assert not check_model(Target.of_score(lambda v: -0.5 * v, jnp.zeros(2)), x).fine


def test_draws_of_another_dimension_are_refused(rng: np.random.Generator):
    with pytest.raises(ValueError, match=r"draws.*expected.*;"):
        check_model(plain(), jnp.zeros((10, 3)))
