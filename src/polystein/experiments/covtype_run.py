"""Logistic regression on Covertype, trials side by side: splits, scaled minibatches, and scores on test rows as particles move.

The table lies on the device once; a trial is the numbers of its training rows and their range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key

from polystein.data import Units, load, random_split
from polystein.flow import Flow, State, advance, begin
from polystein.methods import AbstractMethod
from polystein.models import Logistic, Rows
from polystein.pairs import default_pairs
from polystein.target import Target

TEST = 0.2  # of the rows
BATCH = 100
BLOCK = 2048  # test rows whose probabilities are in the cache at once
POSITIVE = 2  # the cover type that is class 1


class Table(NamedTuple):
    """All rows, as published, and whether their type is the positive one."""

    x: Float[Array, "N p"]
    y: Float[Array, "N"]


class Trial(NamedTuple):
    """A split of the rows, and the range of features over its training rows; a leading axis for trials side by side."""

    train: Int[Array, "*trials a"]
    test: Int[Array, "*trials b"]
    shift: Float[Array, "*trials p"]
    scale: Float[Array, "*trials p"]


@lru_cache(maxsize=1)
def table(folder: Path | None) -> Table:
    """Covertype, class 2 against the rest."""
    data = load("covtype", folder)
    return Table(jnp.asarray(data.x, jnp.float32), jnp.asarray(data.y == POSITIVE, jnp.float32))


@lru_cache(maxsize=64)
def split(folder: Path | None, seed: int, trial: int) -> Trial:
    """A trial's rows: 80 % for training by its seed and number, which alone set the range of features."""
    return trial_of(table(folder), int(np.random.SeedSequence([seed, trial]).generate_state(1)[0]))


def trial_of(rows: Table, seed: int) -> Trial:
    """A random split of a table and its units."""
    x = np.asarray(rows.x)
    train, test = random_split(len(x), seed, test=TEST)
    units = Units.interval(x[train])
    return Trial(*map(jnp.asarray, (train.astype(np.int32), test.astype(np.int32), units.shift, units.scale)))


def rows_at(rows: Table, trial: Trial, at: Int[Array, "B"]) -> Rows:
    """Some rows with features from 0 to 1 over the training rows, and a column of ones."""
    z = (rows.x[at] - trial.shift[None]) / trial.scale[None]
    return Rows(jnp.concatenate([z, jnp.ones_like(z[:, :1])], 1), rows.y[at])


def curves(
    method: AbstractMethod,
    optim: optax.GradientTransformation,
    rows: Table,
    trials: Trial,
    keys: Key[Array, "trials"],
    *,
    particles: int,
    marks: Sequence[int],
    seen: int,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Accuracy and log-likelihood of every trial on its first ``seen`` test rows after each of the ``marks`` steps.

    Followed by both on all test rows at the end, and by the last weights of a bank. All trials move in one program.
    """
    size = int(np.max(np.diff([0, *marks])))
    state = _begin(method, optim, rows, trials, _particles(keys, rows.x.shape[1] + 1, particles))
    weights, done = np.zeros((len(keys), 0)), 0
    for mark in marks:
        state, last = _advance(method, optim, rows, trials, keys, state, mark - done, size)
        weights, done = np.asarray(last), mark
        yield scored(rows, trials, state.x, seen)
    yield scored(rows, trials, state.x, trials.test.shape[1])
    yield weights, np.asarray(state.halted)


def scored(rows: Table, trials: Trial, x: Float[Array, "trials n d"], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Accuracy and log-likelihood of each trial's particles on its first ``count`` test rows."""
    each = [_scored(rows, jax.tree.map(lambda a, i=i: a[i], trials), x[i], count) for i in range(len(x))]
    accuracy, likelihood = np.asarray(jax.device_get(each)).T
    return accuracy, likelihood


def flow_of(method: AbstractMethod, optim: optax.GradientTransformation, rows: Table, trial: Trial, n: int) -> Flow:
    """The flow of one trial: minibatches of its training rows."""
    model = Logistic(rows.x.shape[1] + 1)
    target = Target.minibatched(
        model.log_prior,
        lambda params, at: model.log_likelihood(params, rows_at(rows, trial, at)),
        trial.train,
        {"alpha": jnp.ones(()), "w": jnp.zeros(model.features)},
        batch=BATCH,
        constrain=model.constrain,
    )
    return Flow(method, target, optim, default_pairs(n))


@eqx.filter_jit
def _particles(keys: Any, features: int, n: int) -> Float[Array, "trials n d"]:
    """Draws from the prior: a program of its own, as drawing Gamma numbers takes long to compile, and no method changes it."""
    return jax.vmap(lambda key: Logistic(features).particles(jax.random.fold_in(key, 0), n))(keys)


@eqx.filter_jit
def _begin(method: Any, optim: Any, rows: Table, trials: Trial, x: Float[Array, "trials n d"]) -> State:
    """The state of every trial before its first step."""
    return jax.vmap(lambda trial, x: begin(flow_of(method, optim, rows, trial, x.shape[0]), x))(trials, x)


@eqx.filter_jit
def _advance(
    method: Any, optim: Any, rows: Table, trials: Trial, keys: Any, state: State, count: Any, size: int
) -> tuple[State, Array]:
    """Some steps of all trials, and the weights before the last of them."""

    def one(trial: Trial, key: Any, state: State, count: Any) -> tuple[State, Array]:
        flow = flow_of(method, optim, rows, trial, state.x.shape[0])
        state, trace = advance(flow, state, jax.random.fold_in(key, 1), count, size)
        return state, trace["weights"][count - 1] if "weights" in trace else jnp.zeros(0)

    return jax.vmap(one, in_axes=(0, 0, 0, None))(trials, keys, state, jnp.asarray(count))


@eqx.filter_jit
def _scored(rows: Table, trial: Trial, x: Float[Array, "n d"], count: int) -> tuple[Array, Array]:
    """mean_i [p_i > 1/2 is right] and mean_i log p(y_i), p_i the mean over particles; block by block of rows."""
    w = x[:, 1:]  # after log alpha
    blocks = -(-count // BLOCK)
    places = jnp.arange(blocks * BLOCK).reshape(blocks, BLOCK)

    def block(place: Int[Array, "B"]) -> tuple[Array, Array]:
        some, real = rows_at(rows, trial, trial.test[jnp.minimum(place, count - 1)]), place < count
        right = jnp.mean(jax.nn.sigmoid((2 * some.y[:, None] - 1) * (some.x @ w.T)), 1)  # p(y_i)
        return jnp.sum(real & (right > 0.5)), jnp.sum(jnp.where(real, jnp.log(right), 0))

    correct, likelihood = jax.lax.map(block, places)
    return jnp.sum(correct) / count, jnp.sum(likelihood) / count
