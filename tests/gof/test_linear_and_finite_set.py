"""The two tests in O(n): pairs of draws, and drifts at a few locations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from polystein import IMQ, RBF, Points
from polystein.gof import fssd_test, linear_time_test
from polystein.gof.fssd import Probe, _fssd
from polystein.gof.linear import _estimate
from polystein.kernels import Bank
from tests import oracles
from tests.laws.draws import bound
from tests.laws.registry import jit

REPEATS = 200


@jit
def linear_p(x):
    return jax.vmap(lambda x: norm_sf(_estimate(Bank(IMQ(2.0)), Points.of(x, -x))))(x)


def norm_sf(found):
    return jax.scipy.stats.norm.sf(found.value / found.standard_error)[0]


def test_linear_time_is_the_mean_over_neighbours_in_standard_errors(rng):
    """u of draws (1, 2), (3, 4), ... by the textbook; the odd last draw is left out."""
    with jax.enable_x64(True):
        x = jnp.asarray(rng.standard_normal((41, 2)))
        s = jnp.sin(x) - x
        jet = oracles.jet_of(RBF(2.0))
        u = np.array([oracles.stein(jet(x[i], x[i + 1]), s[i], s[i + 1]) for i in range(0, 40, 2)])
        t = u.mean() / (u.std(ddof=1) / np.sqrt(20))
        found = linear_time_test(x, s, RBF(2.0))
        assert float(found.statistic) == pytest.approx(t, rel=1e-6)
        assert float(found.p_value) == pytest.approx(norm.sf(t), rel=1e-6)


def test_linear_time_holds_its_level_and_sees_a_shift(rng):
    x = jnp.asarray(rng.standard_normal((2000, 200, 2)), jnp.float32)
    assert abs(np.mean(linear_p(x) <= 0.05) - 0.05) < bound(1) * np.sqrt(0.05 * 0.95 / 2000)
    assert np.mean(linear_p(x + 1) <= 0.05) > 0.9


def test_drifts_and_statistic_are_those_of_the_textbook(rng):
    """xi(x, v) = k(x, v) s(x) + grad_x k(x, v), by autodiff; the power criterion is FSSD^2 over its standard deviation."""
    with jax.enable_x64(True):
        x, v = jnp.asarray(rng.standard_normal((30, 2))), jnp.asarray(rng.standard_normal((3, 2)))
        s = jnp.cos(x) - x
        k = lambda x, v: jnp.exp(-jnp.sum((x - v) ** 2) / 2.0)
        probe = Probe(v, jnp.log(2.0), None)
        xi = np.array([[k(a, b) * t + jax.grad(k)(a, b) for b in v] for a, t in zip(x, s, strict=True)])
        np.testing.assert_allclose(probe.drifts(Points.of(x, s)), xi, rtol=1e-9, atol=1e-12)
        flat = xi.reshape(30, -1)
        gram = flat @ flat.T
        fssd = (gram.sum() - np.trace(gram)) / (30 * 29)
        along, covariance = flat @ flat.mean(0), np.cov(flat.T, ddof=0)
        scale = np.sqrt(4 * along.var() / 30 + 2 * (covariance**2).sum() / 30**2)
        assert float(probe.power(Points.of(x, s))) == pytest.approx(fssd / scale, rel=1e-9)


@jit
def finite_set_p(learn, test, keys):
    return jax.vmap(
        lambda a, b, key: _fssd(Points.of(a, -a), Points.of(b, -b), None, key, 2, 59)[2],
    )(learn, test, keys)


def test_finite_set_holds_its_level_though_its_locations_were_sought(rng, key):
    """For they were sought on other draws."""
    x = jnp.asarray(rng.standard_normal((REPEATS, 90, 2)), jnp.float32)
    p = finite_set_p(x[:, :30], x[:, 30:], jax.random.split(key, REPEATS))
    assert abs(np.mean(p <= 0.05) - 0.05) < bound(1) * np.sqrt(0.05 * 0.95 / REPEATS)


def test_locations_are_where_sample_and_target_differ(rng, key):
    """A target of two humps of which the sample has one too many draws at 4: the drift there is seen, in the samples' units."""
    left = rng.standard_normal(200) - 4
    right = 0.3 * rng.standard_normal(200) + 4
    x = jnp.asarray(rng.permutation(np.concatenate([left, right]))[:, None] * 10, jnp.float32)
    scores = -(x - jnp.where(x < 0, -40.0, 40.0)) / 100
    found = fssd_test(x, scores, key=key, locations=1, bootstraps=99)
    assert found.rejected
    assert float(found.p_value) == pytest.approx(0.01)
    assert found.tested == 280
    assert 20 < float(found.locations[0, 0]) < 60, "the draws of the right hump are too close together"
