"""The one call: what it starts from, what it takes, what it refuses, and what it says of posteriors whose answer is known."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from polystein import infer
from polystein.gaussian_start import finite_start

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
