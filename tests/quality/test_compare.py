"""Samplers compared and runs followed: the better one is found, equals are not told apart, settling is seen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import polystein as ps
from polystein.gof import Verified, ksd_test

pytestmark = pytest.mark.usefixtures("float64")
normal = lambda u: -0.5 * jnp.sum(u**2)


def test_the_better_sampler_is_found_and_equals_are_not_told_apart(rng):
    x = rng.normal(size=(2, 2, 100, 2))
    found = ps.compare({"off": x[0] + 1, "one": x[0], "two": x[1]}, normal)
    assert set(found.best) == {"one", "two"}
    assert list(found.lines)[-1] == "off"
    assert found.worse["off"] < 1e-3
    assert found.lines["off"].p_value < 0.01 < min(found.lines["one"].p_value, found.lines["two"].p_value)
    assert all(word in str(found) for word in ("off", "not to be told apart", "p (no worse)"))
    assert "<table>" in found._repr_html_()
    alone = ps.compare({"one": x[0], "off": x[0] + 1}, normal)
    assert "one is significantly better than all others" in str(alone)
    with pytest.raises(ValueError, match="expected samples by name"):
        ps.compare({}, normal)


def test_a_run_is_followed_until_it_settles(rng, tmp_path):
    target = ps.Target.of(normal, jnp.zeros(2))
    snapshots = ps.Snapshots()
    start = jnp.asarray(rng.normal(size=(60, 2)) + 3)
    ps.run(ps.SVGD(), target, particles=start, steps=200, chunk=20, key=jax.random.key(0), callbacks=[snapshots])
    found = ps.convergence(snapshots, target)
    assert list(found.lines) == list(range(20, 201, 20))
    values = [line.ksd.value for line in found.lines.values()]
    assert values[0] > 10 * abs(values[-1])
    assert found.settled is not None
    assert 20 < found.settled < 200
    assert f"Settled from step {found.settled} on, at what the test cannot tell" in str(found)
    assert "<table>" in found._repr_html_()
    found.plot().savefig(tmp_path / "run.png")
    moving = {k: np.asarray(start) * 0.5 + 3 - k for k in range(3)}
    assert "still changes" in str(ps.convergence(moving, target))
    with pytest.raises(ValueError, match="expected particles by step"):
        ps.convergence({}, target)


def test_scores_that_disagree_with_their_density_are_refused_everywhere(rng):
    x = jnp.asarray(rng.normal(size=(30, 2)))
    right = Verified(-x, normal)
    assert float(ps.ksd(x, right, ps.IMQ()).value) == float(ps.ksd(x, -x, ps.IMQ()).value)
    wrong = Verified(x, normal)
    for call in [
        lambda: ps.ksd(x, wrong, ps.IMQ()),
        lambda: ksd_test(x, wrong, key=jax.random.key(0)),
        lambda: ps.thin(x, wrong, 3),
        lambda: ps.stein_weights(x, wrong),
    ]:
        with pytest.raises(ValueError, match="the density's gradient there is"):
            call()
