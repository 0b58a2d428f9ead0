"""What every method does: ascend with one particle, ignore the order of particles, reduce to SVGD, repeat itself to the bit."""

import logging
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from polystein import IMQ, MKSVGD, RBF, SVGD, Bank, Dense, Incomplete, MatrixSVGD, Points, Target, Tiled, TwoBatch, ksd, run
from polystein.discrepancy import AbstractStatistic
from polystein.kernels import AbstractBandwidth, AbstractKernel, AbstractPlacement
from polystein.methods import AbstractMethod, Swarm
from polystein.weights import AbstractWeights, Argmax, Fixed, Uniform
from tests.laws.draws import CORRELATED, score
from tests.laws.registry import concrete, jit, make, over

VARIANTS = {cls.__name__: cls for cls in concrete(AbstractMethod) if not cls.noisy}
VARIANTS |= {f"SVGD-{c.__name__}": lambda c=c: SVGD(make(c)) for c in concrete(AbstractKernel) + concrete(AbstractBandwidth)}
VARIANTS |= {f"MKSVGD-{c.__name__}": lambda c=c: MKSVGD(make(c)) for c in concrete(AbstractPlacement)}
VARIANTS |= {f"MKSVGD-{c.__name__}": lambda c=c: MKSVGD(weights=make(c)) for c in concrete(AbstractWeights)}
VARIANTS |= {"MatrixSVGD-mixture": lambda: MatrixSVGD(mixture=True)}
VARIANTS |= {"MKSVGD-weights-first": lambda: MKSVGD(weights=Argmax(), lagged=False), "MKSVGD-paper": MKSVGD.paper}


@jit
def two_steps(method: AbstractMethod, swarm: Swarm):
    """The velocity, the one after it with what the method then remembers, and the weights in use, if any."""
    key = jax.random.key(0)
    first, memory, _ = method.velocity(swarm, method.init(swarm.x), key)
    second, _, trace = method.velocity(swarm, memory, key)
    return first, second, trace.get("weights")


def swarm_of(x) -> Swarm:
    x = jnp.asarray(x)
    return Swarm(Points.of(x, score(CORRELATED, x), halves=(score(CORRELATED, x), score(CORRELATED, x))), Dense())


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("method", VARIANTS.values(), ids=VARIANTS)
def test_permuted_particles_have_permuted_velocities(method, rng):
    """At the first step, and at the second with what the method then remembers."""
    x, order = rng.standard_normal((5, 2)), rng.permutation(5)
    velocities, permuted = two_steps(method(), swarm_of(x)), two_steps(method(), swarm_of(x[order]))
    for found, expected in zip(permuted[:2], velocities[:2], strict=True):
        np.testing.assert_allclose(found, expected[order], rtol=1e-9, atol=1e-9)
        assert np.linalg.norm(found) > 0


RADIAL = {
    name: make
    for name, make in VARIANTS.items()
    if name.split("-")[-1] not in ("Cosine", "Linear", "Polynomial", "Product", "Transformed")
    and not name.startswith(("Matrix", "Precond"))
}


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("method", RADIAL.values(), ids=RADIAL)
def test_one_particle_is_gradient_ascent(method, rng):
    """Its kernel does not push it anywhere: the velocity is k(x, x) s, with k(x, x) = sum w for a mixture."""
    swarm = swarm_of(rng.standard_normal((1, 2)))
    first, second, w = two_steps(method(), swarm)
    for velocity in (first, second):
        factor = jnp.sum(velocity * swarm.s) / jnp.sum(swarm.s**2)
        np.testing.assert_allclose(velocity, factor * swarm.s, rtol=1e-10)
        assert factor > 0
    if w is not None:
        np.testing.assert_allclose(second, jnp.sum(w) * swarm.s, rtol=1e-10)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("weights", [Uniform, Fixed, Argmax])
@pytest.mark.parametrize("lagged", [True, False])
def test_a_bank_of_one_is_svgd(weights, lagged, rng):
    swarm = swarm_of(rng.standard_normal((5, 2)))
    expected = two_steps(SVGD(IMQ(2.0)), swarm)[:2]
    found = two_steps(MKSVGD(Bank(IMQ(2.0)), weights(), balance=0.0, lagged=lagged), swarm)[:2]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.usefixtures("float64")
def test_order_of_weighing_and_moving(rng):
    """Equal where weights do not change; else weights-first moves now as lagged moves at its next step (erratum 10)."""
    swarm = swarm_of(rng.standard_normal((5, 2)))
    lagged, first = (two_steps(MKSVGD(weights=Uniform(), lagged=lagged), swarm) for lagged in (True, False))
    np.testing.assert_allclose(lagged[0], first[0], rtol=1e-12, atol=1e-14)
    lagged, first = (two_steps(MKSVGD.paper(lagged=lagged), swarm) for lagged in (True, False))
    np.testing.assert_allclose(lagged[1], first[0], rtol=1e-12, atol=1e-14)
    assert np.abs(lagged[0] - first[0]).max() > 1e-3


@pytest.mark.usefixtures("float64")
def test_lagged_moves_by_the_last_weights(rng):
    """phi = sum_i w_i phi_i with the weights it reports, which are even at the first step."""
    swarm, bank = swarm_of(rng.standard_normal((5, 2))), Bank.dyadic(1.0, -1, 1)
    each = jnp.stack([swarm.drift(kernel) for kernel in bank])
    first, second, w = two_steps(MKSVGD(bank, Argmax(), balance=0.0), swarm)
    np.testing.assert_allclose(first, each.sum(0) / np.sqrt(3), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(second, jnp.tensordot(w, each, 1), rtol=1e-12, atol=1e-14)


@pytest.mark.usefixtures("float64")
def test_svgd_is_the_mean_drift(rng):
    """phi(x_i) = 1/n sum_j [k(x_j, x_i) s_j + 2 (x_i - x_j) k / h], the plainest double loop (svgd_update)."""
    x, h = rng.standard_normal((4, 2)), 1.7
    s = np.asarray(score(CORRELATED, jnp.asarray(x)))
    expected = np.zeros((4, 2))
    for i in range(4):
        for j in range(4):
            k = np.exp(-((x[i] - x[j]) ** 2).sum() / h)
            expected[i] += (k * s[j] + 2 * (x[i] - x[j]) * k / h) / 4
    np.testing.assert_allclose(two_steps(SVGD(RBF(h)), swarm_of(x))[0], expected, rtol=1e-6)


@contextmanager
def compilations(caplog):
    """The programs compiled meanwhile."""
    found = []
    with jax.log_compiles(), caplog.at_level(logging.DEBUG):
        caplog.clear()
        yield found
        found += [record.getMessage() for record in caplog.records if "XLA compilation" in record.getMessage()]


GAUSSIAN = lambda x: -0.5 * jnp.sum(x**2)


@over(AbstractMethod)
def test_runs_repeat_to_the_bit_without_compiling_again(cls, caplog):
    """The same key gives the same particles, another key others, and neither compiles anything."""
    target = Target.of(GAUSSIAN, jnp.zeros(2))
    go = lambda seed: run(make(cls), target, particles=6, steps=12, key=jax.random.key(seed)).particles
    with compilations(caplog) as first:
        one = go(0)
    with compilations(caplog) as second:
        two, other = go(0), go(1)
    assert first
    assert not second
    np.testing.assert_array_equal(one, two)
    assert (np.asarray(one) != np.asarray(other)).any()


ADAM = optax.adam(0.05)


def test_default_optimiser_does_not_compile_again(caplog):
    target = Target.of(GAUSSIAN, jnp.zeros(2))
    go = lambda: run(SVGD(), target, particles=6, steps=3, key=jax.random.key(0))
    go()
    with compilations(caplog) as again:
        go()
    assert not again


@over(AbstractStatistic)
def test_discrepancies_do_not_compile_again(cls, caplog, rng):
    """Nor with other samples, bandwidths or keys of the same shapes."""

    def go(h):
        x = jnp.asarray(rng.standard_normal((10, 2)), jnp.float32)
        s = (-x, -x) if cls is TwoBatch else -x
        return ksd(x, s, RBF(h), statistic=Incomplete(jax.random.key(int(h))) if cls is Incomplete else make(cls))

    go(1.0)
    with compilations(caplog) as again:
        go(2.0)
    assert not again


def test_a_run_of_one_particle_is_gradient_ascent():
    """Under log p = -x^2/2 and steps of e x_t = (1 - e)^t x_0."""
    x = jnp.array([[2.0, -1.0]])
    post = run(
        SVGD(RBF()), Target.of(GAUSSIAN, jnp.zeros(2)), particles=x, steps=10, key=jax.random.key(0), optim=optax.sgd(0.1)
    )
    np.testing.assert_allclose(post.particles, 0.9**10 * x, rtol=1e-5)


def test_run_uses_the_pairs_it_is_given():
    """Tiles and all pairs at once give one posterior."""
    target = Target.of(GAUSSIAN, jnp.zeros(2))
    go = lambda pairs: run(SVGD(RBF()), target, particles=7, steps=5, key=jax.random.key(0), optim=ADAM, pairs=pairs)
    np.testing.assert_allclose(go(Tiled(2, 3)).particles, go(Dense()).particles, rtol=1e-4, atol=1e-5)
