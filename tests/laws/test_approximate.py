"""Sums over pairs in less than n^2 work err as they say they do, and move particles to where exact sums would."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from polystein import MKSVGD, Dense, Nystrom, Points, RandomBatch, Target, run
from polystein.approximate.nystrom import _between
from tests.laws.draws import bound


def table(a: jax.Array):
    """A block whose pairs are the entries of a table, by the numbers of their points."""
    return lambda rows, cols: jnp.sum(a[rows.id[:, None], cols.id[None, :]], 1)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("n", "p"), [(23, 5), (20, 5), (6, 2), (9, 8)])
def test_random_batches_are_right_in_the_mean_with_the_variance_they_state(n, p, rng):
    """Over many sets of points, whose bits deal the groups; the diagonal, however large, is exact."""
    draws = 4000
    a = jnp.asarray(rng.standard_normal((n, n)) + 1000 * np.eye(n))
    x = jnp.asarray(rng.standard_normal((draws, n, 1)))

    @jax.jit
    @jax.vmap
    def found(x):
        points = Points.of(x, x)
        return RandomBatch(p).sum(table(a), points, points)

    sums, others = np.asarray(found(x)), np.asarray(a)[~np.eye(n, dtype=bool)].reshape(n, n - 1)
    variance = (n - 1) ** 2 * others.var(1, ddof=1) * (1 / (p - 1) - 1 / (n - 1))
    off = sums - np.asarray(a).sum(1)
    assert np.all(np.abs(off.mean(0)) < bound(2 * n) * np.sqrt(variance / draws))
    spread = np.std(off**2, 0) / np.sqrt(draws)
    assert np.all(np.abs(np.mean(off**2, 0) - variance) < bound(2 * n) * spread)


def test_groups_are_new_where_points_are_and_the_same_where_they_are(rng):
    a, x = jnp.asarray(rng.standard_normal((30, 30)), "float32"), jnp.asarray(rng.standard_normal((30, 2)), "float32")
    total = lambda pairs, x: (lambda points: pairs.sum(table(a), points, points))(Points.of(x, x))
    first = total(RandomBatch(4), x)
    assert jnp.array_equal(first, total(RandomBatch(4), x))
    assert not jnp.array_equal(first, total(RandomBatch(4), x.at[0, 0].add(1e-3)))
    assert not jnp.array_equal(first, total(RandomBatch(4, seed=1), x))
    assert jnp.array_equal(total(RandomBatch(30), x), total(Dense(), x))


@pytest.mark.usefixtures("unchecked")
def test_what_random_batches_cannot_sum_is_refused():
    one, other = (Points.of(jnp.ones((3, 1)), jnp.ones((3, 1))) for _ in range(2))
    with pytest.raises(ValueError, match=r"rows that are not the columns; .*Tiled"):
        RandomBatch(2).sum(table(jnp.eye(3)), one, other)
    with pytest.raises(ValueError, match="size"):
        RandomBatch(1)
    with pytest.raises(ValueError, match="landmarks"):
        Nystrom(0)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("r", "d"), [(10, 1), (40, 2), (60, 5)])
def test_nystrom_errs_by_at_most_the_norm_times_the_power(r, d, rng):
    """For a function F = sum_j c_j M(x_j, .) of the space of M, |F|_M^2 = c' M c."""
    n, pairs = 200, Nystrom(r)
    x, c = jnp.asarray(rng.standard_normal((n, d))), jnp.asarray(rng.standard_normal(n))
    kernel, _ = pairs._fitted(x, pairs._some(Points.of(x, x)).x)
    points = Points.of(x, c[:, None] * jnp.ones((1, d)))
    wide = lambda rows, cols: (_between(kernel, rows.x, cols.x) @ cols.s[:, :1])[:, 0]
    exact, found, power = (Dense().sum(wide, points, points), pairs.sum(wide, points, points), pairs.power(x))
    most = jnp.sqrt(c @ _between(kernel, x, x) @ c) * power
    assert jnp.all(jnp.abs(found - exact) <= most + 1e-6)
    assert jnp.max(jnp.abs(found - exact) / (most + 1e-6)) > 0.05  # no bound that anything would keep
    at = jnp.arange(r) * n // r
    np.testing.assert_allclose(found[at], exact[at], atol=1e-6)
    assert jnp.all(power[at] < 1e-4)
    assert jnp.all((power >= 0) & (power <= 1))


@pytest.mark.parametrize("pairs", [RandomBatch(50), Nystrom(50)], ids=lambda pairs: type(pairs).__name__)
def test_particles_come_as_near_as_so_many_draws_would(pairs, key):
    """Means and standard deviations of a correlated normal, within the error of independent draws."""
    n, root = 300, jnp.array([[1.0, 0.0], [0.6, 0.8]])
    target = Target.of(lambda x: -0.5 * jnp.sum(jnp.linalg.solve(root, x - 1) ** 2), jnp.zeros(2))
    post = run(MKSVGD(), target, particles=n, steps=400, key=key, pairs=pairs)
    z = jnp.linalg.solve(root, (post.particles - 1).T)
    assert jnp.all(jnp.abs(jnp.mean(z, 1)) < bound(4) / n**0.5)
    low, high = stats.chi2(n - 1).ppf([1e-3 / 8, 1 - 1e-3 / 8]) / (n - 1)
    assert jnp.all((jnp.var(z, 1, ddof=1) > low) & (jnp.var(z, 1, ddof=1) < high))
