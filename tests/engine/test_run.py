"""Runs: bits, chunks, callbacks, interruptions, optimisers, and one bad particle among good ones."""

from __future__ import annotations

import io
import logging
import re
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from polystein import MKSVGD, RBF, SVGD, Bank, Ensemble, Linear, RunFailed, Target, run
from polystein.loop import Progress
from tests.engine.common import ADAM, COVARIANCE, MEAN, SGD, SVGD_RBF, gaussian, normalised, same_bits, steps_of

METHODS = {"SVGD": SVGD_RBF, "MKSVGD": MKSVGD(), "Ensemble": Ensemble()}


@pytest.fixture(scope="module")
def target() -> Target:
    """One for the module: its runs share their programs."""
    return gaussian()


# The same bits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_same_key_same_bits_and_the_chunk_does_not_matter(method: Any, target: Target, key: jax.Array):
    first, again, *others = (
        run(method, target, particles=8, steps=14, key=key, optim=ADAM, chunk=chunk) for chunk in (14, 14, 1, 5)
    )
    for other in (again, *others):
        same_bits(
            (first.particles, first.scores, steps_of(first.trace)), (other.particles, other.scores, steps_of(other.trace))
        )
    another = run(method, target, particles=8, steps=14, key=jax.random.fold_in(key, 1), optim=ADAM, chunk=14)
    assert not np.any(first.particles == another.particles)


def test_chunks_do_not_matter_to_minibatches(key: jax.Array):
    target = Target.minibatched(
        lambda m: -0.5 * m**2, lambda m, y: -0.5 * (y - m) ** 2, jnp.linspace(-1, 3, 12), 0.0, batch=4, halves=True
    )
    runs = [run(SVGD_RBF, target, particles=6, steps=11, key=key, optim=SGD, chunk=chunk) for chunk in (11, 4)]
    same_bits(runs[0].particles, runs[1].particles)
    same_bits(steps_of(runs[0].trace), steps_of(runs[1].trace))


def test_watching_changes_no_bit(target: Target, key: jax.Array, tmp_path: Any, capsys: Any):
    plain = run(SVGD_RBF, target, particles=8, steps=14, key=key, optim=ADAM, chunk=5)
    watched = run(
        SVGD_RBF,
        target,
        particles=8,
        steps=14,
        key=key,
        optim=ADAM,
        chunk=5,
        callbacks=[lambda p: None],
        progress=True,
        checkpoint=tmp_path / "c.npz",
    )
    same_bits((plain.particles, steps_of(plain.trace)), (watched.particles, steps_of(watched.trace)))


def test_typed_and_raw_keys(target: Target):
    typed, raw = (
        run(SVGD_RBF, target, particles=4, steps=1, key=k, optim=SGD) for k in (jax.random.key(3), jax.random.PRNGKey(3))
    )
    same_bits(typed.particles, raw.particles)


# Compilation, vmap, jit -----------------------------------------------------------------------------------------------


def compilations(caplog: Any, call: Any) -> list[str]:
    """What is compiled while ``call`` runs, by name."""
    caplog.clear()
    with caplog.at_level(logging.WARNING), jax.log_compiles(True):
        call()
    return [r.getMessage() for r in caplog.records if r.getMessage().startswith("Compiling")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_second_run_compiles_nothing(method: Any, key: jax.Array, caplog: Any):
    traced = []

    def density(x: jax.Array) -> jax.Array:
        traced.append(None)
        return -0.5 * jnp.sum(x**2)

    target = Target.of(density, jnp.zeros(3))
    once = lambda steps, key: run(method, target, particles=7, steps=steps, key=key, optim=SGD, chunk=10)
    assert compilations(caplog, lambda: once(20, key))  # the log is read right
    before = len(traced)
    assert not compilations(caplog, lambda: once(20, jax.random.fold_in(key, 1)))
    once(33, key)
    assert len(traced) == before


def test_vmap_over_keys_is_one_by_one(target: Target, key: jax.Array):
    keys = jax.random.split(key, 3)
    one = lambda k: run(MKSVGD(), target, particles=6, steps=8, key=k, optim=SGD)
    together = jax.vmap(lambda k: one(k).particles)(keys)
    for k, particles in zip(keys, together, strict=True):
        np.testing.assert_allclose(particles, one(k).particles, rtol=2e-4, atol=2e-5)


def test_vmap_and_jit_give_whole_posteriors(target: Target, key: jax.Array):
    one = lambda k: run(SVGD_RBF, target, particles=6, steps=8, key=k, optim=SGD)
    post = jax.vmap(one)(jax.random.split(key, 3))
    assert post.particles.shape == (3, 6, 2)
    assert post.trace["phi"].shape == (3, 8)
    single = jax.jit(one)(key)
    np.testing.assert_allclose(single.particles, one(key).particles, rtol=1e-4, atol=1e-5)
    assert single.status.kind == "completed"


def test_data_may_be_traced(key: jax.Array):
    """A run is a program like any other."""
    x = jnp.zeros((4, 1)) + jnp.arange(4.0)[:, None]

    def mean(mu: jax.Array, x: jax.Array) -> jax.Array:
        target = Target.of(lambda v: -0.5 * jnp.sum((v - mu) ** 2), jnp.zeros(1))
        return jnp.mean(run(Ensemble(), target, particles=x, steps=5, key=key, optim=SGD).particles)

    np.testing.assert_allclose(jax.jit(mean)(2.0, x), 2.0 + (1.5 - 2.0) * 0.9**5, rtol=1e-5)


# Callbacks, trace, bar ------------------------------------------------------------------------------------------------


def test_callbacks_see_every_chunk(target: Target, key: jax.Array):
    seen: list[Progress] = []
    post = run(SVGD_RBF, target, particles=5, steps=13, key=key, optim=SGD, chunk=5, callbacks=[seen.append, lambda p: None])
    assert [p.step for p in seen] == [5, 10, 13]
    assert [len(p.trace["phi"]) for p in seen] == [5, 10, 13]
    assert {p.steps for p in seen} == {13}
    same_bits(seen[-1].particles, post.particles)
    assert post.status.kind == "completed"


@pytest.mark.parametrize("true", [True, np.bool_(True), jnp.asarray(True)], ids=["bool", "numpy", "jax"])
def test_callback_ends_the_run(true: Any, target: Target, key: jax.Array):
    calls: list[int] = []
    post = run(
        SVGD_RBF,
        target,
        particles=5,
        steps=30,
        key=key,
        optim=SGD,
        chunk=5,
        callbacks=[lambda p: true if p.step == 10 else False, lambda p: calls.append(p.step)],
    )
    assert post.status.kind == "stopped"
    assert "10 of 30" in post.status.sentence
    assert calls == [5, 10]  # the other callback is called all the same
    assert len(post.trace["phi"]) == 10
    same_bits(post.particles, run(SVGD_RBF, target, particles=5, steps=10, key=key, optim=SGD, chunk=5).particles)


def test_ctrl_c_returns_the_particles_so_far(target: Target, key: jax.Array):
    def interrupt(p: Progress) -> None:
        if p.step == 10:
            raise KeyboardInterrupt

    post = run(SVGD_RBF, target, particles=5, steps=30, key=key, optim=SGD, chunk=5, callbacks=[interrupt])
    assert post.status.kind == "interrupted"
    assert "10 of 30" in post.status.sentence
    assert len(post.trace["phi"]) == len(post.trace["seconds"]) == 10
    same_bits(post.particles, run(SVGD_RBF, target, particles=5, steps=10, key=key, optim=SGD, chunk=5).particles)


def test_error_in_a_callback_is_the_callers(target: Target, key: jax.Array):
    def fail(p: Progress) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        run(SVGD_RBF, target, particles=5, steps=30, key=key, optim=SGD, chunk=5, callbacks=[fail])


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_trace_has_a_row_per_step(method: Any, target: Target, key: jax.Array):
    post = run(method, target, particles=8, steps=14, key=key, optim=ADAM, chunk=5)
    assert {"phi", "score", "seconds"} <= set(post.trace)
    assert {len(a) for a in post.trace.values()} == {14}
    assert np.all(np.asarray(post.trace["seconds"]) > 0)
    assert all(np.isfinite(a).all() for a in post.trace.values())


def test_trace_phi_and_score_are_root_mean_squares(target: Target, key: jax.Array):
    post = run(Ensemble(), target, particles=8, steps=1, key=key, optim=optax.sgd(0.0))
    expected = np.sqrt(np.mean(np.asarray(post.scores) ** 2))
    np.testing.assert_allclose([post.trace["phi"][0], post.trace["score"][0]], expected, rtol=1e-5)


def bar_of(target: Target, key: jax.Array, stream: Any, monkeypatch: Any, **how: Any) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    run(MKSVGD(), target, particles=8, steps=14, key=key, optim=ADAM, chunk=5, **how)
    return stream.getvalue()


class Terminal(io.StringIO):
    """Somebody looks on."""

    def isatty(self) -> bool:
        return True


def test_bar_is_silent_unless_watched_or_asked_for(target: Target, key: jax.Array, monkeypatch: Any, capfd: Any):
    assert bar_of(target, key, io.StringIO(), monkeypatch) == ""
    assert bar_of(target, key, Terminal(), monkeypatch, progress=False) == ""
    for drawn in (bar_of(target, key, io.StringIO(), monkeypatch, progress=True), bar_of(target, key, Terminal(), monkeypatch)):
        assert "14/14" in drawn
        assert "phi/score" in drawn
        assert "KSD" in drawn
    assert capfd.readouterr().out == ""  # standard output stays the user's


# Any optax transformation ---------------------------------------------------------------------------------------------

OPTIMISERS = {
    "sgd": lambda: optax.sgd(0.1),
    "momentum": lambda: optax.sgd(0.1, momentum=0.9, nesterov=True),
    "adagrad": lambda: optax.adagrad(0.1),
    "clip": lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.adam(0.1)),
    "schedule": lambda: optax.adam(optax.cosine_decay_schedule(0.1, 100)),
    "adamw": lambda: optax.adamw(0.1, weight_decay=1e-4),
    "injected": lambda: optax.inject_hyperparams(optax.rmsprop)(learning_rate=0.05),
    "own": lambda: normalised(0.05),
}


@pytest.mark.parametrize("make", OPTIMISERS.values(), ids=OPTIMISERS)
def test_any_optimiser_is_a_plain_loop_of_it(make: Any, key: jax.Array, rng: np.random.Generator):
    """Gradient ascent of every particle, in a loop outside of the engine."""
    optim, precision = make(), jnp.asarray(np.linalg.inv(COVARIANCE), jnp.float32)
    x = jnp.asarray(rng.normal(size=(5, 2)), jnp.float32)
    post = run(Ensemble(), gaussian(), particles=x, steps=6, key=key, optim=optim)
    state = optim.init(x)
    for _ in range(6):
        update, state = optim.update((x - jnp.asarray(MEAN, jnp.float32)[None]) @ precision, state, x)
        x = optax.apply_updates(x, update)
    np.testing.assert_allclose(post.particles, x, rtol=1e-4, atol=1e-5)


# Not finite -----------------------------------------------------------------------------------------------------------

HOLE = 30.0  # beyond it the density of these tests is no number; constants have a gradient, which is 0
BEYOND = {
    "root": lambda x: jnp.sqrt(HOLE - x[0]),  # value and gradient nan
    "nan": lambda x: jnp.where(x[0] > HOLE, jnp.nan, 0.0),
    "-inf": lambda x: jnp.where(x[0] > HOLE, -jnp.inf, 0.0),
}


def holed(name: str) -> Target:
    return Target.of(lambda x: -0.5 * jnp.sum(x**2) + 1e-12 * BEYOND[name](x), jnp.zeros(2))


def spoilt(rng: np.random.Generator, n: int, bad: int) -> jax.Array:
    """Normal particles, the first few of them in the hole."""
    x = rng.normal(size=(n, 2)).astype(np.float32)
    x[:bad, 0] = HOLE + 1
    return jnp.asarray(x)


@pytest.mark.parametrize("method", [SVGD_RBF, MKSVGD(Bank(RBF(1.0), RBF(4.0)))], ids=["SVGD", "MKSVGD"])
@pytest.mark.parametrize("name", BEYOND)
def test_bad_particle_takes_no_part_in_the_sums(name: str, method: Any, key: jax.Array, rng: np.random.Generator):
    """The others move as if it were not there, to rounding; it comes back near them, and is counted."""
    x, target = spoilt(rng, 10, 1), holed(name)
    post = run(method, target, particles=x, steps=1, key=key, optim=SGD)
    without = run(method, target, particles=x[1:], steps=1, key=key, optim=SGD)
    np.testing.assert_allclose(post.particles[1:], without.particles, rtol=1e-5, atol=1e-6)
    assert np.abs(post.particles[0]).max() < 5
    assert post.status.kind == "completed"
    assert re.search(r"\b1 times? a particle", post.status.sentence)


@pytest.mark.parametrize("name", BEYOND)
def test_bad_particle_is_forgotten(name: str, key: jax.Array, rng: np.random.Generator):
    """After a run with everything adaptive on, all rows are finite and of the posterior."""
    post = run(MKSVGD(), holed(name), particles=spoilt(rng, 20, 3), steps=60, key=key, optim=ADAM)
    assert all(np.isfinite(a).all() for a in [post.particles, post.scores, *post.trace.values()])
    assert np.abs(post.particles).max() < 6
    assert "3 times" in post.status.sentence
    assert len(np.unique(np.asarray(post.particles), axis=0)) == 20  # not put on top of others


def test_log_density_that_is_nan_with_a_finite_gradient(key: jax.Array):
    """d log x / dx = 1/x is finite at x < 0, where log x is not."""
    with pytest.raises(RunFailed):
        run(SVGD_RBF, Target.of(lambda x: jnp.sum(jnp.log(x)), jnp.zeros(2)), particles=20, steps=5, key=key, optim=SGD)


@pytest.mark.parametrize(("bad", "fails"), [(4, False), (5, True)])
def test_a_fifth_is_the_limit(bad: int, fails: bool, key: jax.Array, rng: np.random.Generator):
    x, target = spoilt(rng, 20, bad), holed("root")
    if not fails:
        assert f"{bad} times" in run(SVGD_RBF, target, particles=x, steps=3, key=key, optim=SGD).status.sentence
        return
    with pytest.raises(RunFailed, match=r"step 0 .*particle 0 .*expected .*; .*check_model") as found:
        run(SVGD_RBF, target, particles=x, steps=3, key=key, optim=SGD)
    post = found.value.posterior
    assert np.isfinite(post.particles).all()
    assert post.particles.shape == x.shape
    assert post.status.kind == "not converged"
    str(post.summary())


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_failure_before_the_first_step_still_summarises(method: Any, key: jax.Array):
    with pytest.raises(RunFailed, match="step 0") as found:
        run(method, Target.of(lambda x: jnp.sum(jnp.sqrt(x)), jnp.zeros(2)), particles=10, steps=5, key=key, optim=SGD)
    assert np.isfinite(found.value.posterior.particles).all()
    text = str(found.value.posterior.summary())
    assert "nan%" not in text


def test_failure_midway_names_step_and_particle(key: jax.Array):
    """Particles walk right by 1 a step into the hole: the third first, then the rest, at steps that are known."""
    target = Target.of_score(lambda x: jnp.where(x > 10, jnp.nan, 1.0), jnp.zeros(1))
    x = jnp.array([[0.5], [0.5], [6.5], [6.5], [6.5], [0.5], [0.5], [0.5], [0.5], [0.5]])
    seen: list[int] = []
    with pytest.raises(RunFailed, match=r"step 4 .*10 particles.*particle 2 ") as found:
        run(
            Ensemble(),
            target,
            particles=x,
            steps=50,
            key=key,
            optim=optax.sgd(1.0),
            chunk=3,
            callbacks=[lambda p: seen.append(p.step)],
        )
    assert seen == [3]
    assert len(found.value.posterior.trace["phi"]) == 4
    np.testing.assert_allclose(found.value.posterior.particles, x + 4)


def test_explosion_leaves_finite_particles(key: jax.Array):
    """An update that overflows is as bad as a score that does."""
    target = Target.of(lambda x: -0.5e36 * jnp.sum(x**2), jnp.zeros(2))
    with pytest.raises(RunFailed) as found:
        run(Ensemble(), target, particles=10, steps=5, key=key, optim=optax.sgd(1e3))
    assert np.isfinite(found.value.posterior.particles).all()


def test_overflow_at_the_last_step_does_not_come_out(key: jax.Array, rng: np.random.Generator):
    """One of ten particles is thrown to infinity by the very last update."""
    x = rng.normal(size=(10, 2)).astype(np.float32)
    x[3] = 1e18
    thrown = optax.stateless(lambda updates, params: jnp.where(jnp.abs(updates) > 1e10, jnp.inf, -0.1 * updates))
    target = Target.of(lambda v: -0.5 * jnp.sum(v**2), jnp.zeros(2))
    post = run(Ensemble(), target, particles=jnp.asarray(x), steps=1, key=key, optim=thrown)
    assert np.isfinite(post.particles).all()
    assert "1 times" in post.status.sentence


def test_score_only_target_runs(key: jax.Array):
    """Where no log density is known, nothing is refused for its being nan."""
    precision = jnp.asarray(np.linalg.inv(COVARIANCE), jnp.float32)
    by_score = Target.of_score(lambda x: -precision @ (x - jnp.asarray(MEAN, jnp.float32)), jnp.zeros(2))
    found, expected = (run(SVGD_RBF, t, particles=8, steps=10, key=key, optim=SGD) for t in (by_score, gaussian()))
    np.testing.assert_allclose(found.particles, expected.particles, rtol=1e-4, atol=1e-5)
    assert found.status.sentence == "10 steps"


# What is refused ------------------------------------------------------------------------------------------------------

WRONG = {
    "callback, no list": ({"callbacks": lambda p: None}, "callbacks"),
    "callback, no function": ({"callbacks": [3]}, "callback"),
    "geometry": ({"geometry": 3}, "geometry"),
    "steps": ({"steps": -1}, "steps"),
    "chunk": ({"chunk": 0}, "chunk"),
    "key": ({"key": 0}, "key"),
    "keys": ({"key": np.zeros((3, 2), np.uint32)}, "key"),
    "optimiser": ({"optim": optax.adam}, "optim"),
    "particles of another dimension": ({"particles": np.zeros((4, 3), np.float32)}, "particles"),
    "particles nan": ({"particles": np.full((4, 2), np.nan, np.float32)}, "particles"),
    "particles int": ({"particles": np.zeros((4, 2), int)}, "particles"),
    "pairs": ({"pairs": "dense"}, "pairs"),
    "no folder": ({"checkpoint": "no/such/folder/c.npz"}, "folder"),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", WRONG)
def test_refused_before_anything_runs(name: str, target: Target, key: jax.Array):
    wrong, word = WRONG[name]
    calls: list[None] = []
    given = {"particles": 5, "steps": 2, "key": key, "optim": SGD, "callbacks": [lambda p: calls.append(None)]} | wrong
    with pytest.raises((TypeError, ValueError, OSError), match=rf"(?s)(?=.*{word}).*expected.*;"):
        run(SVGD_RBF, target, **given)
    assert not calls


@pytest.mark.usefixtures("unchecked")
def test_geometry_of_another_dimension_is_refused(target: Target, key: jax.Array):
    from polystein.geometry import Diagonal

    with pytest.raises(ValueError, match=r"geometry.*expected.*;"):
        run(SVGD_RBF, target, particles=5, steps=2, key=key, geometry=Diagonal(jnp.zeros(3), jnp.ones(3)))


def test_linear_kernel_still_exact_after_a_redraw(key: jax.Array, rng: np.random.Generator):
    """A redrawn particle takes part like any other: at the fixed point the moments are exact again."""
    post = run(SVGD(Linear()), holed("root"), particles=spoilt(rng, 8, 1), steps=1500, key=key, optim=SGD)
    np.testing.assert_allclose(np.mean(post.particles, 0), 0, atol=1e-4)
    np.testing.assert_allclose(np.cov(post.particles.T, bias=True), np.eye(2), atol=1e-3)
