"""Matrix-valued kernels: whitened coordinates, the mixture by a plain loop, curvatures by their formulas."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from polystein import RBF, SVGD, Dense, Fisher, Given, Hessian, Kronecker, MatrixSVGD, Points, Target, Tiled, run
from polystein.curvature import Blocks, Held, damped
from polystein.methods import Swarm
from polystein.methods.matrix import Preconditioned, log_weights, mixed
from tests.laws.registry import jit

pytestmark = pytest.mark.usefixtures("float64")
KEY = jax.random.key(0)


def swarm_of(x, s, pairs=None):
    return Swarm(Points.of(jnp.asarray(x), jnp.asarray(s)), pairs or Dense())


@jit
def velocity(method, swarm):
    return method.velocity(swarm, method.init(swarm.x), KEY)[0]


def spd(rng, *shape):
    a = rng.normal(size=(*shape, shape[-1] + 2))
    return a @ np.swapaxes(a, -1, -2)


@pytest.fixture
def swarm(rng):
    return swarm_of(rng.normal(size=(5, 3)), rng.normal(size=(5, 3)))


@pytest.mark.parametrize("kernel", [None, RBF(1.7)], ids=["median", "fixed"])
def test_a_constant_metric_is_svgd_in_whitened_coordinates(kernel, swarm, rng):
    q = spd(rng, 3)
    values, vectors = np.linalg.eigh(q)
    root = vectors @ np.diag(np.sqrt(values)) @ vectors.T
    white = swarm_of(swarm.x @ root, np.linalg.solve(root, swarm.s.T).T)
    plain = SVGD() if kernel is None else SVGD(kernel)
    expected = np.linalg.solve(root.T, velocity(plain, white).T).T
    method = MatrixSVGD(Given(q)) if kernel is None else MatrixSVGD(Given(q), kernel=kernel)
    np.testing.assert_allclose(velocity(method, swarm), expected, rtol=1e-10)


def test_the_identity_as_metric_is_svgd(swarm):
    np.testing.assert_allclose(velocity(MatrixSVGD(Given(np.eye(3))), swarm), velocity(SVGD(), swarm), rtol=1e-12)


@pytest.mark.parametrize("own", [False, True])
def test_the_control_moves_each_particle_alone_in_the_same_metric(own, swarm, rng):
    """As held roots and as the mean of matrices of the particles' own."""
    q = spd(rng, 5, 3)
    used = q if own else np.broadcast_to(q.mean(0), q.shape)
    expected = np.linalg.solve(used, np.asarray(swarm.s)[..., None])[..., 0]
    roots = Blocks.full(jnp.asarray(q if own else q.mean(0))).roots()
    np.testing.assert_allclose(velocity(Preconditioned(Held(roots), own=own), swarm), expected, rtol=1e-9)
    far = Swarm(Points.of(1e4 * jnp.eye(5, 3) * jnp.arange(1.0, 6.0)[:, None] + 1e3 * swarm.x, swarm.s), Dense())
    alone = MatrixSVGD(Held(roots), mixture=own, kernel=RBF(1e-3))
    np.testing.assert_allclose(velocity(alone, far), expected / 5, rtol=1e-8)


def test_a_mixture_with_one_anchor_is_the_constant_metric(swarm, rng):
    q = spd(rng, 3)
    roots = Blocks.full(jnp.asarray(q)[None]).roots()
    found = jit(mixed)(swarm, jnp.asarray(rng.normal(size=(1, 3))), roots, RBF(2.0))
    np.testing.assert_allclose(found, velocity(MatrixSVGD(Given(q), kernel=RBF(2.0)), swarm), rtol=1e-10)


def test_a_mixture_is_its_formula(swarm, rng):
    """phi by a loop over anchors and pairs, every gradient by autodiff."""
    anchors, q, h = rng.normal(size=(2, 3)), spd(rng, 2, 3), 2.5

    def share(x):
        log = [jnp.linalg.slogdet(q[m])[1] / 2 - (x - anchors[m]) @ q[m] @ (x - anchors[m]) / 2 for m in range(2)]
        return jax.nn.softmax(jnp.stack(log))

    k = jax.jit(lambda x, y, m: jnp.exp(-(x - y) @ jnp.asarray(q)[m] @ (x - y) / h))
    share, slopes = jax.jit(share), jax.jit(jax.jacobian(lambda x: jnp.log(share(x))))
    step = jax.jit(jax.grad(k))
    expected = np.zeros((5, 3))
    for i in range(5):
        for m in range(2):
            total = sum(
                share(x)[m] * (k(x, swarm.x[i], m) * (s + slopes(x)[m]) + step(x, swarm.x[i], m))
                for x, s in zip(swarm.x, swarm.s, strict=True)
            )
            expected[i] += share(swarm.x[i])[m] * np.linalg.solve(q[m], total) / 5
    roots = Blocks.full(jnp.asarray(q)).roots()
    np.testing.assert_allclose(jit(mixed)(swarm, jnp.asarray(anchors), roots, RBF(h)), expected, rtol=1e-9)
    tiled = Swarm(swarm.points, Tiled(2, 3))
    np.testing.assert_allclose(jit(mixed)(tiled, jnp.asarray(anchors), roots, RBF(h)), expected, rtol=1e-9)
    weights = jnp.exp(log_weights(swarm.x, jnp.asarray(anchors), roots))
    np.testing.assert_allclose(weights, jax.vmap(share)(swarm.x), rtol=1e-10)


def test_blocks_act_as_their_kronecker_products(rng):
    """Rows of a block by the left factor, columns by the right."""
    left, right, single = spd(rng, 2), spd(rng, 3), spd(rng, 2)
    blocks = Blocks([jnp.asarray(left), jnp.asarray(single)], [jnp.asarray(right), jnp.ones((1, 1))])
    q = np.zeros((8, 8))
    q[:6, :6], q[6:, 6:] = np.kron(left, right), single
    v, roots = jnp.asarray(rng.normal(size=8)), blocks.roots()
    np.testing.assert_allclose(roots.lift(roots.whiten(v)), q @ v, rtol=1e-10)
    np.testing.assert_allclose(roots.back(roots.scores(v)), np.linalg.solve(q, v), rtol=1e-8)
    np.testing.assert_allclose(roots.scores(roots.lift(v)), v, rtol=1e-8)
    np.testing.assert_allclose(roots.back(roots.whiten(v)), v, rtol=1e-8)
    assert float(roots.log_volume) == pytest.approx(np.linalg.slogdet(q)[1] / 2)


def test_curvatures_are_their_formulas(rng):
    x, s = rng.normal(size=(4, 6)), rng.normal(size=(4, 6))
    points, second = Points.of(jnp.asarray(x), jnp.asarray(s)), Points.of(jnp.asarray(x), jnp.asarray(2 * s))
    fisher = Fisher(memory=0.75)
    blocks, memory = fisher.estimate(points, fisher.init(points.x))
    np.testing.assert_allclose(blocks.left[0], np.einsum("na,nb->nab", s, s), rtol=1e-10)
    blocks, _ = fisher.estimate(second, memory)  # weights 0.75 * 0.25 and 0.25, which sum to 1 - 0.75^2
    expected = (0.75 * 0.25 + 4 * 0.25) / (1 - 0.75**2)
    np.testing.assert_allclose(blocks.left[0], expected * np.einsum("na,nb->nab", s, s), rtol=1e-10)
    one = Kronecker(((2, 3),)).now(jnp.asarray(s[0]))
    g = s[0].reshape(2, 3)
    np.testing.assert_allclose(one.left[0], g @ g.T / np.linalg.norm(g), rtol=1e-10)
    assert float(jnp.trace(one.left[0]) * jnp.trace(one.right[0])) == pytest.approx((g**2).sum())
    signs = jnp.array([1.0, -2.0, 3.0, 4.0, 5.0, 6.0])
    hessian, _ = Hessian(lambda x: -jnp.sum(signs * x**2) / 2).estimate(points, None)
    np.testing.assert_allclose(hessian.left[0][0], np.diag(np.abs(signs)), rtol=1e-10, atol=1e-12)


def test_damping_adds_of_the_diagonal_and_spares_numbers():
    blocks = Blocks([jnp.diag(jnp.array([2.0, 0.0])), jnp.zeros((2, 2))], [jnp.full((1, 1), 3.0), jnp.zeros((1, 1))])
    found = damped(blocks, jnp.asarray(0.5))
    np.testing.assert_allclose(found.left[0], np.diag([3.0, 0.5]))
    np.testing.assert_allclose(found.left[1], 0.5 * np.eye(2))
    assert [float(b[0, 0]) for b in found.right] == [3.0, 1.0]


def test_curvature_makes_scales_alike(rng):
    """Standard deviations of 1 and 100 are both found by the same steps."""
    precision = jnp.array([1.0, 1e-4])
    target = Target.of(lambda x: -jnp.sum(precision * x**2) / 2, jnp.zeros(2))
    method = MatrixSVGD(Hessian(target.log_density), kernel=RBF(1.0))
    x = jnp.asarray(rng.normal([3.0, 300.0], 1.0, (30, 2)))
    post = run(method, target, particles=x, steps=300, key=KEY, optim=optax.sgd(0.3))
    scaled = np.asarray(post.particles) * np.sqrt(precision)[None]
    assert np.abs(scaled.mean(0)).max() < 0.1
    np.testing.assert_allclose(scaled[:, 0].std(), scaled[:, 1].std(), rtol=0.1)


def test_what_is_given_wrongly_is_said(swarm):
    with pytest.raises(ValueError, match=r"matrix of shape \(2, 2\) for particles of 3 dimensions"):
        MatrixSVGD(Given(np.eye(2))).velocity(swarm, None, KEY)
    with pytest.raises(ValueError, match=r"make 4 parameters; expected 3"):
        MatrixSVGD(Kronecker(((2, 2),))).init(swarm.x)
