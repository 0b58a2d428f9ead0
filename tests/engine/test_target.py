"""Targets: gradients, minibatches that go through all rows, temperatures, scores alone, and densities with mistakes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from polystein import SVGD, Positive, Target, run
from polystein.batches import batch_rows
from tests.engine.common import SGD, SVGD_RBF, Pair

# Orders of rows -------------------------------------------------------------------------------------------------------

epochs = jax.jit(
    lambda key, steps, size, rows: jax.vmap(lambda step: batch_rows(key, step, size, rows))(steps), static_argnums=(2, 3)
)
SIZES = [(1, 1), (2, 1), (3, 1), (3, 3), (4, 2), (7, 2), (9, 3), (10, 10), (16, 5), (17, 17), (30, 4), (97, 10), (1000, 250)]


@pytest.mark.parametrize(("rows", "size"), SIZES)
def test_an_epoch_sees_no_row_twice(rows: int, size: int, key: jax.Array):
    """And, where the batch divides the rows, every row once."""
    per_epoch = rows // size
    found = np.asarray(epochs(key, jnp.arange(3 * per_epoch), size, rows)).reshape(3, -1)
    assert found.shape == (3, per_epoch * size)
    assert found.min() >= 0
    assert found.max() < rows
    for order in found:
        assert len(np.unique(order)) == per_epoch * size
    if rows > 20:
        assert (found[0] != found[1]).any()
        assert (found[1] != found[2]).any()


def test_orders_depend_on_the_key_alone(key: jax.Array):
    one, again, other = (np.asarray(epochs(k, jnp.arange(5), 10, 50)) for k in (key, key, jax.random.fold_in(key, 1)))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    np.testing.assert_array_equal(batch_rows(key, 3, 10, 50), one[3])  # as numbers and as arrays
    np.testing.assert_array_equal(batch_rows(key, jnp.asarray(3), 10, 50), one[3])


def chi_square_limit(freedom: int, deviations: float = 4.0) -> float:
    """The quantile of chi^2 that a normal deviate of 4 has (Wilson and Hilferty)."""
    return freedom * (1 - 2 / (9 * freedom) + deviations * np.sqrt(2 / (9 * freedom))) ** 3


@pytest.mark.parametrize("rows", [2, 3, 7, 12, 25])
def test_the_place_of_a_row_is_uniform(rows: int, key: jax.Array):
    """Over many epochs each row is at each place about equally often."""
    trials = 4000
    orders = np.asarray(epochs(key, jnp.arange(trials), rows, rows))
    counts = np.stack([np.bincount(orders[:, place], minlength=rows) for place in range(rows)])
    expected = trials / rows
    # Rows and columns of the table sum to the same number: (rows - 1)^2 degrees of freedom, statistic times (rows - 1) / rows.
    statistic = ((counts - expected) ** 2 / expected).sum() * (rows - 1) / rows
    assert statistic < chi_square_limit((rows - 1) ** 2)


def test_which_rows_meet_in_a_batch_is_uniform(key: jax.Array):
    """How often each pair of 12 rows is in one batch of 4, against its expectation."""
    trials = 6000
    batches = np.sort(np.asarray(epochs(key, 3 * jnp.arange(trials), 4, 12)), 1)
    together = np.zeros((12, 12))
    for i in range(4):
        for j in range(i + 1, 4):
            np.add.at(together, (batches[:, i], batches[:, j]), 1)
    found = together[np.triu_indices(12, 1)]
    expected = trials * 6 / 66
    assert np.abs(found - expected).max() < 5 * np.sqrt(expected)


# Minibatches ----------------------------------------------------------------------------------------------------------

ROWS = {"x": np.linspace(-1, 2, 12).astype(np.float32), "y": np.sin(np.arange(12.0)).astype(np.float32)}


def log_prior(p: Any) -> jax.Array:
    return -0.5 * p["a"] ** 2 - jnp.sum(jnp.cosh(p["b"]))


def log_likelihood(p: Any, rows: Any) -> jax.Array:
    return -0.5 * (rows["y"] - p["a"] * rows["x"] - jnp.sum(p["b"])) ** 2


PARAMETERS = {"a": 0.5, "b": jnp.zeros(2)}


def minibatched(batch: int, **more: Any) -> Target:
    return Target.minibatched(log_prior, log_likelihood, ROWS, PARAMETERS, batch=batch, **more)


@pytest.fixture(scope="module")
def full() -> Target:
    """The same density as one function."""
    return Target.of(lambda p: log_prior(p) + jnp.sum(log_likelihood(p, ROWS)), PARAMETERS)


@pytest.fixture
def x(rng: np.random.Generator) -> jax.Array:
    """Five particles."""
    return jnp.asarray(rng.normal(size=(5, 3)), jnp.float32)


def test_all_rows_are_the_density(full: Target, x: jax.Array, key: jax.Array):
    target = minibatched(4)
    np.testing.assert_allclose(target.log_density(x[0]), full.log_density(x[0]), rtol=1e-5)
    np.testing.assert_allclose(target.score(x), full.score(x), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(minibatched(12).score(x, key), full.score(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 6])
def test_mean_over_an_epoch_is_the_full_score(batch: int, full: Target, x: jax.Array, key: jax.Array):
    """Exactly, not on average; so only the likelihood can have been scaled, and every row was seen once."""
    target = minibatched(batch)
    scores = jax.jit(jax.vmap(lambda step: target.points(x, key, step).s))(jnp.arange(12 // batch))
    np.testing.assert_allclose(scores.mean(0), full.score(x), rtol=1e-4, atol=1e-4)
    assert batch == 12 or np.std(np.asarray(scores), 0).max() > 0.01


def test_only_the_likelihood_is_scaled(x: jax.Array, key: jax.Array):
    """A batch's score is the prior's gradient plus N / batch times that of its rows."""
    target, step = minibatched(3), 2
    rows = np.asarray(batch_rows(key, step, 3, 12))
    some = {name: a[rows] for name, a in ROWS.items()}
    by_hand = Target.of(lambda p: log_prior(p) + 12 / 3 * jnp.sum(log_likelihood(p, some)), PARAMETERS)
    np.testing.assert_allclose(target.points(x, key, step).s, by_hand.score(x), rtol=1e-4, atol=1e-5)


def test_likelihood_may_return_the_sum_of_its_rows(x: jax.Array, key: jax.Array):
    summed = Target.minibatched(log_prior, lambda p, rows: jnp.sum(log_likelihood(p, rows)), ROWS, PARAMETERS, batch=4)
    np.testing.assert_allclose(summed.score(x, key), minibatched(4).score(x, key), rtol=1e-5, atol=1e-6)


def test_halves_are_independent_and_unbiased(full: Target, key: jax.Array):
    """Over 3000 first batches: the mean of each half is the full score, and their noises do not covary."""
    target, trials = minibatched(4, halves=True), 3000
    x = jnp.array([[0.3, -0.2, 0.5]])
    keys = jax.random.split(key, trials)
    points = jax.jit(jax.vmap(lambda k: target.points(x, k, 0)))(keys)
    np.testing.assert_allclose(points.s, (points.left + points.right) / 2, rtol=1e-5, atol=1e-5)
    left, right = (np.asarray(a)[:, 0] - np.asarray(full.score(x))[0] for a in (points.left, points.right))
    error = left.std(0) / np.sqrt(trials)
    assert (np.abs(left.mean(0)) < 4 * error + 1e-4).all()
    assert (np.abs(right.mean(0)) < 4 * error + 1e-4).all()
    covariance = left.T @ right / trials
    bound = 4.5 * np.outer(left.std(0), right.std(0)) / np.sqrt(trials)
    assert (np.abs(covariance) < bound).all()
    assert (np.abs(left.T @ left / trials) > bound)[0, 0]  # noise there is


def test_halves_within_a_run_of_epochs_are_independent(full: Target, key: jax.Array):
    """Along the steps of one run, too, under one key."""
    target, trials = minibatched(4, halves=True), 3000
    x = jnp.array([[0.3, -0.2, 0.5]])
    points = jax.jit(jax.vmap(lambda step: target.points(x, key, step)))(jnp.arange(trials))
    left, right = (np.asarray(a)[:, 0, 0] - float(full.score(x)[0, 0]) for a in (points.left, points.right))
    assert abs(np.mean(left * right)) < 4.5 * left.std() * right.std() / np.sqrt(trials)


def test_halves_see_every_row_once_an_epoch(full: Target, x: jax.Array, key: jax.Array):
    target = minibatched(4, halves=True)
    points = jax.jit(jax.vmap(lambda step: target.points(x, key, step)))(jnp.arange(6))
    for half in (points.left, points.right):
        np.testing.assert_allclose(half.mean(0), full.score(x), rtol=1e-4, atol=1e-4)


def test_minibatches_of_constrained_parameters(x: jax.Array, key: jax.Array):
    """The log-Jacobian belongs to the prior: it is not scaled with the rows."""
    like = {"a": 1.0, "b": jnp.ones(2)}
    constrain = {"b": Positive()}
    target = Target.minibatched(log_prior, log_likelihood, ROWS, like, batch=4, constrain=constrain)
    whole = Target.of(lambda p: log_prior(p) + jnp.sum(log_likelihood(p, ROWS)), like, constrain=constrain)
    scores = jnp.stack([target.points(x, key, step).s for step in range(3)])
    np.testing.assert_allclose(scores.mean(0), whole.score(x), rtol=1e-4, atol=1e-4)


def test_minibatched_run_reaches_the_posterior(key: jax.Array):
    """y_i ~ N(m, 1) of 100 rows under a flat prior: the particles' mean within 4 s.d. of the posterior's."""
    rows = jnp.asarray(np.random.default_rng(3).normal(2.0, 1.0, 100), jnp.float32)
    target = Target.minibatched(lambda m: 0.0, lambda m, y: -0.5 * (y - m) ** 2, rows, 0.0, batch=20)
    post = run(SVGD(), target, particles=20, steps=600, key=key)
    assert abs(float(post.particles.mean()) - float(rows.mean())) < 4 * 0.1


# Temperature and scores alone -----------------------------------------------------------------------------------------


def test_tempered_scales_everything(full: Target, x: jax.Array, key: jax.Array):
    cold = full.tempered(2.5)
    np.testing.assert_allclose(cold.log_density(x[0]), 2.5 * full.log_density(x[0]), rtol=1e-6)
    np.testing.assert_allclose(cold.score(x), 2.5 * full.score(x), rtol=1e-6)
    points, plain = (t.points(x, key, 1) for t in (minibatched(4, halves=True).tempered(0.5), minibatched(4, halves=True)))
    for name in ("s", "left", "right"):
        np.testing.assert_allclose(getattr(points, name), 0.5 * getattr(plain, name), rtol=1e-6)
    np.testing.assert_allclose(full.tempered(0.5).tempered(2.0).score(x), full.score(x), rtol=1e-6)


def test_temperature_may_be_traced(full: Target, x: jax.Array):
    scores = jax.vmap(lambda beta: full.tempered(beta).score(x))(jnp.array([0.5, 2.0]))
    np.testing.assert_allclose(scores[1], 4 * scores[0], rtol=1e-5)


@pytest.mark.parametrize("beta", [0.0, -1.0, np.nan, np.inf])
def test_impossible_temperatures_are_refused(beta: float, full: Target):
    with pytest.raises(ValueError, match=r"beta.*expected.*;"):
        full.tempered(beta)


def test_scores_alone(x: jax.Array, full: Target):
    tree_score = jax.grad(lambda p: log_prior(p) + jnp.sum(log_likelihood(p, ROWS)))
    target = Target.of_score(tree_score, PARAMETERS)
    np.testing.assert_allclose(target.score(x), full.score(x), rtol=1e-5, atol=1e-6)
    assert np.isnan(target.log_density(x[0]))
    np.testing.assert_allclose(target.tempered(2.0).score(x), 2 * full.score(x), rtol=1e-5, atol=1e-6)


# Structures and dtypes ------------------------------------------------------------------------------------------------


def test_trees_of_ones_own_and_shapes_without_values():
    like = Pair(jax.ShapeDtypeStruct((2,), jnp.float32), [jax.ShapeDtypeStruct((), jnp.float32), None])
    target = Target.of(lambda p: -jnp.sum(p.first**2) - p.second[0] ** 2, like)
    assert target.dim == 3
    post = run(SVGD_RBF, target, particles=4, steps=2, key=jax.random.key(0), optim=SGD)
    draws = post.draws()
    assert isinstance(draws, Pair)
    assert draws.first.shape == (4, 2)
    assert draws.second[0].shape == (4,)
    assert draws.second[1] is None


@pytest.mark.parametrize("method", ["of", "minibatched", "of_score"])
def test_wider_density_than_particles(method: str, key: jax.Array):
    """float64 inside, float32 particles: under x64 every answer is in the particles' dtype."""
    with jax.enable_x64(True):
        like, wide = jnp.zeros(2, jnp.float32), np.array([1.0, 2.0])
        target = {
            "of": lambda: Target.of(lambda v: -0.5 * jnp.sum((v - wide) ** 2), like),
            "minibatched": lambda: Target.minibatched(
                lambda v: -0.5 * jnp.sum((v - wide) ** 2), lambda v, y: y * 0.0 * v[0], np.arange(4.0), like, batch=2
            ),
            "of_score": lambda: Target.of_score(lambda v: wide - v, like),
        }[method]()
        post = run(SVGD_RBF, target.tempered(np.float64(1.0)), particles=4, steps=3, key=key, optim=SGD)
        assert post.particles.dtype == post.scores.dtype == target.log_density(like).dtype == jnp.float32
        np.testing.assert_allclose(target.score(jnp.zeros((1, 2), jnp.float32)), wide[None], rtol=1e-6)


def test_leaves_of_two_dtypes():
    with jax.enable_x64(True):
        target = Target.of(lambda p: -(p["a"] ** 2) - p["b"] ** 2, {"a": jnp.float32(1.0), "b": jnp.float64(2.0)})
        back = target.constrained(target.start)
        assert (back["a"].dtype, back["b"].dtype) == (jnp.float32, jnp.float64)
        np.testing.assert_array_equal(target.start, [1.0, 2.0])


LATE = """
import jax, numpy as np, polystein as ps
early = ps.Target.of(lambda x: -x @ x, np.zeros(2, np.float32))
assert ps.run(ps.SVGD(), early, particles=3, steps=2, key=jax.random.key(0)).particles.dtype == np.float32
jax.config.update("jax_enable_x64", True)
late = ps.Target.of(lambda x: -x @ x, np.zeros(2))
for method in (ps.SVGD(), ps.MKSVGD()):
    post = ps.run(method, late, particles=3, steps=2, key=jax.random.key(0))
    assert post.particles.dtype == post.scores.dtype == np.float64, post.particles.dtype
assert ps.run(ps.MKSVGD(), early, particles=3, steps=2, key=jax.random.key(0)).particles.dtype == np.float32
"""


def test_x64_switched_on_after_the_import():
    """As users do it: without the tests' hooks, with warnings as errors."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", LATE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@jax.custom_vjp
def halved(x: jax.Array) -> jax.Array:
    """x / 2, with a rule for one derivative and none for two."""
    return x / 2


halved.defvjp(lambda x: (x / 2, None), lambda _, g: (g / 2,))


def root(a: jax.Array) -> jax.Array:
    """sqrt(a) by Newton's iteration until it rests: a loop that has no derivative backwards."""
    return jax.lax.while_loop(lambda r: jnp.abs(r * r - a) > 1e-5 * a, lambda r: (r + a / r) / 2, a)


def test_densities_without_second_or_backward_derivatives(rng: np.random.Generator, key: jax.Array):
    x = jnp.asarray(rng.normal(size=(4, 2)), jnp.float32)
    ruled = Target.of(lambda v: -jnp.sum(halved(v) ** 2), jnp.zeros(2))
    np.testing.assert_allclose(ruled.score(x), -x / 2, rtol=1e-6)
    assert not ruled.density.forward
    looped = Target.of(lambda v: -root(1 + v @ v), jnp.zeros(2))
    np.testing.assert_allclose(looped.score(x), -x / np.sqrt(1 + np.sum(x**2, 1))[:, None], rtol=1e-4, atol=1e-5)
    assert looped.density.forward
    likelihood = lambda v, y: -jax.vmap(lambda yi: root(1 + (yi - v) ** 2))(y)
    batch = Target.minibatched(lambda v: -(v**2), likelihood, jnp.arange(4.0), 0.0, batch=2)
    by_hand = lambda v: -2 * v + np.sum((np.arange(4.0) - v) / np.sqrt(1 + (np.arange(4.0) - v) ** 2))
    v = jnp.array([[2.5]])
    np.testing.assert_allclose(batch.score(v), [[by_hand(2.5)]], rtol=1e-3)
    np.testing.assert_allclose(np.mean([batch.points(v, key, step).s for step in range(2)], 0), [[by_hand(2.5)]], rtol=1e-3)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("like", [np.zeros(2), {"a": jax.ShapeDtypeStruct((2,), np.float64)}], ids=["array", "shape"])
def test_float64_without_x64_is_refused(like: Any):
    with pytest.raises(TypeError, match=r"float64.*32 bit.*expected.*;.*jax_enable_x64"):
        Target.of(lambda p: 0.0, like)
    Target.of(lambda p: -(p["a"] ** 2), {"a": np.float64(0.0)})  # a number is a number


# Mistakes -------------------------------------------------------------------------------------------------------------


def with_if(x: jax.Array) -> jax.Array:
    if x[0] > 0:
        return -jnp.sum(x)
    return jnp.sum(x)


LIKE = np.zeros(2, np.float32)
FLAT = lambda x: -jnp.sum(x**2)
DENSITIES = {
    "not scalar": lambda: Target.of(lambda x: -(x**2), LIKE),
    "one in an array": lambda: Target.of(lambda x: -jnp.sum(x**2)[None], LIKE),
    "an int": lambda: Target.of(lambda x: 1, LIKE),
    "a bool": lambda: Target.of(lambda x: x[0] > 0, LIKE),
    "a complex": lambda: Target.of(lambda x: x[0] + 1j, LIKE),
    "None": lambda: Target.of(lambda x: None, LIKE),
    "a word": lambda: Target.of(lambda x: "-x", LIKE),
    "a pair": lambda: Target.of(lambda x: (FLAT(x), FLAT(x)), LIKE),
    "numpy": lambda: Target.of(lambda x: -float(np.sum(np.asarray(x) ** 2)), LIKE),
    "math": lambda: Target.of(lambda x: -float(x[0]), LIKE),
    "if": lambda: Target.of(with_if, LIKE),
    "no argument": lambda: Target.of(lambda: 0.0, LIKE),
    "two arguments": lambda: Target.of(lambda x, y: 0.0, LIKE),
    "no function": lambda: Target.of(3.0, LIKE),
    "order of arguments": lambda: Target.of(LIKE, FLAT),
    "like of ints": lambda: Target.of(FLAT, [0, 0]),
    "like empty": lambda: Target.of(FLAT, {}),
    "like nan": lambda: Target.of(FLAT, np.array([np.nan, 0], np.float32)),
    "like of words": lambda: Target.of(FLAT, {"a": "x"}),
    "prior not scalar": lambda: Target.minibatched(lambda x: x, lambda x, y: y, np.zeros(4), LIKE, batch=2),
    "likelihood of another length": lambda: Target.minibatched(FLAT, lambda x, y: y[:1], np.zeros(4), LIKE, batch=2),
    "likelihood in a column": lambda: Target.minibatched(FLAT, lambda x, y: y[:, None], np.zeros(4), LIKE, batch=2),
    "likelihood of one argument": lambda: Target.minibatched(FLAT, FLAT, np.zeros(4), LIKE, batch=2),
    "likelihood of ints": lambda: Target.minibatched(FLAT, lambda x, y: y, np.zeros(4, int), LIKE, batch=2),
    "batch too large": lambda: Target.minibatched(FLAT, lambda x, y: y, np.zeros(4), LIKE, batch=5),
    "batch zero": lambda: Target.minibatched(FLAT, lambda x, y: y, np.zeros(4), LIKE, batch=0),
    "batch odd": lambda: Target.minibatched(FLAT, lambda x, y: y, np.zeros(4), LIKE, batch=3, halves=True),
    "batch a share": lambda: Target.minibatched(FLAT, lambda x, y: y, np.zeros(4), LIKE, batch=0.5),
    "rows of two lengths": lambda: Target.minibatched(FLAT, lambda x, y: y[0], (np.zeros(4), np.zeros(5)), LIKE, batch=2),
    "no rows": lambda: Target.minibatched(FLAT, lambda x, y: y, np.zeros(0), LIKE, batch=2),
    "data a number": lambda: Target.minibatched(FLAT, lambda x, y: y, 3.0, LIKE, batch=2),
    "data none": lambda: Target.minibatched(FLAT, lambda x, y: y, None, LIKE, batch=2),
    "score of another shape": lambda: Target.of_score(lambda x: jnp.sum(x), LIKE),
    "score of another tree": lambda: Target.of_score(lambda x: {"a": x}, LIKE),
    "score of ints": lambda: Target.of_score(lambda x: jnp.zeros(2, int), LIKE),
    "score two arguments": lambda: Target.of_score(lambda x, y: x, LIKE),
    "x of another dimension": lambda: Target.of(FLAT, LIKE).score(jnp.zeros((4, 3))),
    "x one point": lambda: Target.of(FLAT, LIKE).score(jnp.zeros(2)),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", DENSITIES)
def test_mistakes_are_refused_in_three_parts(name: str):
    """What was given, what was expected, what to do."""
    with pytest.raises((TypeError, ValueError)) as refused:
        DENSITIES[name]()
    given, expected, remedy = (*str(refused.value).partition("expected"),)
    assert given
    assert expected
    assert ";" in remedy
    assert "\n" not in str(refused.value)


@pytest.mark.usefixtures("unchecked")
def test_a_users_own_error_comes_through():
    """What a density raises by itself is not dressed up."""

    def broken(x: jax.Array) -> jax.Array:
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        Target.of(broken, LIKE)
