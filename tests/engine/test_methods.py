"""Methods through the engine: the control, exact moments, and long runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from polystein import MKSVGD, RBF, SVGD, Ensemble, run
from tests.engine.common import COVARIANCE, MEAN, SGD, plain


def test_ensemble_is_gradient_ascent_of_each(rng: np.random.Generator, key: jax.Array):
    """In closed form on a Gaussian: the gap to the mean is multiplied by I - eps P at each step."""
    x = rng.normal(size=(6, 2))
    post = run(Ensemble(), plain(), particles=jnp.asarray(x, jnp.float32), steps=7, key=key, optim=SGD)
    shrink = np.linalg.matrix_power(np.eye(2) - 0.1 * np.linalg.inv(COVARIANCE), 7)
    np.testing.assert_allclose(post.particles, MEAN + (x - MEAN) @ shrink.T, rtol=1e-4, atol=1e-5)


def test_ensemble_is_svgd_of_a_vanishing_bandwidth(rng: np.random.Generator, key: jax.Array):
    """n phi -> s (erratum 27)."""
    x = jnp.asarray(rng.normal(size=(6, 2)), jnp.float32)
    lone = run(Ensemble(), plain(), particles=x, steps=7, key=key, optim=SGD)
    narrow = run(SVGD(RBF(1e-8)), plain(), particles=x, steps=7, key=key, optim=optax.sgd(0.6))
    np.testing.assert_allclose(narrow.particles, lone.particles, rtol=1e-4, atol=1e-5)


def test_ensemble_collapses_to_the_mode(key: jax.Array):
    post = run(Ensemble(), plain(), particles=10, steps=500, key=key, optim=SGD)
    np.testing.assert_allclose(post.particles, np.broadcast_to(MEAN, (10, 2)), atol=1e-4)


@pytest.mark.parametrize("name", ["default", "weights first"])
def test_gaussian_moments_are_better_than_those_of_draws(name: str, key: jax.Array):
    """d = 2, n = 100: mean within 1.5 s.d. of a mean of 100 independent draws, variances within 3 of theirs."""
    method, n = {"default": MKSVGD(), "weights first": MKSVGD(lagged=False)}[name], 100
    post = run(method, plain(), particles=n, steps=800, key=key, optim=optax.adam(optax.cosine_decay_schedule(0.05, 800)))
    sd = np.sqrt(np.diag(COVARIANCE))
    assert np.all(np.abs(post.particles.mean(0) - MEAN) < 1.5 * sd / np.sqrt(n))
    found = np.cov(post.particles.T, bias=True)
    assert np.all(np.abs(found - COVARIANCE) < 3 * np.sqrt((np.outer(sd**2, sd**2) + COVARIANCE**2) / n))


def test_weights_of_a_run_stay_on_the_sphere(key: jax.Array):
    trace = run(MKSVGD(), plain(), particles=10, steps=40, key=key, optim=SGD).trace
    assert trace["weights"].shape == trace["ksd"].shape == (40, len(MKSVGD().bank))
    np.testing.assert_allclose(np.linalg.norm(trace["weights"], axis=1), 1, rtol=1e-4)
    assert (np.asarray(trace["weights"]) >= 0).all()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc")
def test_a_long_run_leaks_no_memory():
    """1e5 steps of 100 particles: what the second half adds is what it records (12 bytes a step), and little besides.

    The trace so far is joined at every edge for callbacks, which may hold a few copies of it for a while.
    """
    steps = 100_000
    script = Path(__file__).with_name("leak.py")
    done = subprocess.run([sys.executable, script, str(steps)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    resident = np.array(done.stdout.split(), float)
    assert len(resident) == steps // 1000
    recorded = 16 * steps
    assert resident[-10:].mean() - resident[40:50].mean() < 4 * recorded + 4e6
