r"""Many small networks trained side by side: groups of particles, for every split at once.

f(x) = w2' relu(W1 x) + b,    x with a column of ones,    prior W1 ~ N(0, I/lambda), (w2, b) ~ N(0, I/(50 lambda))

One step of every network: a batch of rows that all networks of a split share, the force v on their outputs (``forces``), its
pull on the weights, J'v N/|B| less the prior's precision times the weights, and a step of Adam along that. Of the batch only
sum 1[W1 x > 0] v x' is needed: relu(W1 x) = 1[W1 x > 0] W1 x, so that the slope in w2 is its product with W1.

The precision of the noise is shared by a group: a running average of 1 / mean squared residual on the rows it sees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from polystein._types import Scalar
from polystein.experiments.regressors.forces import force

OUTPUT_PRIOR = 50.0  # precision of the output layer, in units of that of the first
DECAY = (0.9, 0.999)
RAMP = 100  # steps over which the rate rises
SETTLED, MEMORY = 200, 0.05  # steps before the noise is learned, and how fast it is then
LEAST_ERROR = 1e-8
TRAINING = 0  # the purpose of a generator
CHUNKS = 10  # of a run: how often progress is shown


class Setting(NamedTuple):
    """What is chosen for the M networks of a split.

    ``sees``: which columns each has; ``scale``: of its first layer at the start; ``prior``: lambda; ``share``: of interaction.
    """

    sees: Float[Array, "*S M q"]
    scale: Float[Array, "*S M"]
    prior: Float[Array, "*S M"]
    share: Float[Array, "*S"]


class Networks(NamedTuple):
    """Weights of M networks with H units; the last column of the second layer is the bias b."""

    first: Float[Array, "*S M H q"]
    second: Float[Array, "*S M H1"]


class Schedule(NamedTuple):
    """Steps, their largest rate, rows a step, units of a network, and how many networks the force stands for."""

    steps: int = 4000
    rate: float = 1e-2
    batch: int = 100
    hidden: int = 50
    of: int = 20


class Sample(NamedTuple):
    """Rows of a split, and for each of G groups of networks a 1 where it sees a row, a 0 where the row is held out."""

    x: Float[Array, "*S N q"]
    y: Float[Array, "*S N"]
    seen: Float[Array, "*S N G"]


class Training(NamedTuple):
    """Networks, Adam's two averages, and the precision of each group's noise."""

    networks: Networks
    mean: Networks
    square: Networks
    precision: Float[Array, "*S G"]


def outputs(networks: Networks, x: Float[Array, "B q"]) -> Float[Array, "M B"]:
    """f of every network on rows that all share.

    >>> one = Networks(jnp.array([[[1.0, 0.0], [-1.0, 0.0]]]), jnp.array([[2.0, 3.0, 1.0]]))
    >>> outputs(one, jnp.array([[1.0, 1.0], [-2.0, 1.0]])).tolist()
    [[3.0, 7.0]]
    """
    return _layers(networks, x)[1]


def generators(keys: Any, purpose: int) -> list[np.random.Generator]:
    """A generator of the host for each split: what is drawn once, or in bulk, takes the compiler long."""
    return [np.random.default_rng([*np.asarray(jax.random.key_data(key)).ravel(), purpose]) for key in keys]


def begin(setting: Setting, draws: list[np.random.Generator], schedule: Schedule, groups: int) -> Training:
    """W1 ~ scale N(0, 1/columns seen), its bias too where the scale is above 1 and else 0; w2 ~ N(0, 1/(H + 1)), b = 0."""
    splits, many, columns = setting.sees.shape
    sees, scale = np.asarray(setting.sees), np.asarray(setting.scale)[..., None]
    size = sees * scale / np.sqrt(sees.sum(2, keepdims=True))
    size[..., -1:] *= scale > 1
    normal = lambda *shape: np.stack([rng.standard_normal(shape, np.float32) for rng in draws])
    first = normal(many, schedule.hidden, columns) * size[:, :, None]
    second = (
        normal(many, schedule.hidden + 1) * (np.arange(schedule.hidden + 1) < schedule.hidden) / np.sqrt(schedule.hidden + 1)
    )
    made = lambda: Networks(*(jnp.asarray(part, setting.sees.dtype) for part in (first, second)))
    zeros = lambda: jax.tree.map(jnp.zeros_like, made())
    return Training(made(), zeros(), zeros(), jnp.ones((splits, groups), setting.sees.dtype))


def slopes(networks: Networks, x: Float[Array, "B q"], on: Bool[Array, "M H B"], v: Float[Array, "M B"]) -> Networks:
    """J'v, the pull on the weights of a force v on the outputs; ``on``: where the units of the first layer are positive."""
    many, hidden, columns = networks.first.shape
    passed = jnp.where(on, v[:, None], 0).reshape(many * hidden, -1)
    pull = (passed @ x).reshape(many, hidden, columns)
    second = jnp.concatenate([jnp.sum(pull * networks.first, 2), jnp.sum(v, 1, keepdims=True)], 1)
    return Networks(networks.second[:, :-1, None] * pull, second)


def advance(
    state: Training, setting: Setting, crosstalk: Scalar, batch: Sample, rows: int, step: Int[Array, ""], schedule: Schedule
) -> Training:
    """One step of the networks of a split on a batch of its rows."""
    on, f = _layers(state.networks, batch.x)
    seen = batch.seen.T[:, None]
    grouped = f.reshape(seen.shape[0], -1, f.shape[1])
    residual = (batch.y[None, None] - grouped) * seen
    pulled = lambda f, g: force(f, g, setting.share, crosstalk, schedule.of)
    v = jax.vmap(pulled)(grouped, state.precision[:, None, None] * residual) * seen
    slope = slopes(state.networks, batch.x, on, v.reshape(f.shape) * (rows / batch.y.shape[0]))
    slope = Networks(
        (slope.first - setting.prior[:, None, None] * state.networks.first) * setting.sees[:, None],
        slope.second - OUTPUT_PRIOR * setting.prior[:, None] * state.networks.second,
    )
    return _adam(state, slope, _precision(state.precision, residual, seen, step), step, schedule)


def train(
    setting: Setting,
    crosstalk: bool,
    sample: Sample,
    keys: Any,
    schedule: Schedule,
    report: Callable[[float], None] | None = None,
) -> Networks:
    """Train the networks of every split; ``report`` is called with the share of the steps done."""
    draws = generators(keys, TRAINING)
    state = begin(setting, draws, schedule, sample.seen.shape[2])
    size = -(-schedule.steps // CHUNKS)
    for done in range(0, schedule.steps, size):
        rows = np.stack([rng.integers(0, sample.y.shape[1], (size, schedule.batch), np.int32) for rng in draws])
        count = min(size, schedule.steps - done)
        state = _chunk(
            state,
            setting,
            jnp.asarray(crosstalk, sample.x.dtype),
            sample,
            jnp.asarray(rows),
            *map(jnp.asarray, (done, count)),
            schedule,
        )
        if report:
            jax.block_until_ready(state.precision)
            report((done + count) / schedule.steps)
    return state.networks


@partial(jax.jit, static_argnums=7, donate_argnums=0)
def _chunk(
    state: Training,
    setting: Setting,
    crosstalk: Scalar,
    sample: Sample,
    rows: Int[Array, "S size B"],
    done: Int[Array, ""],
    count: Int[Array, ""],
    schedule: Schedule,
) -> Training:
    """Some steps of every split, on the rows drawn for each."""

    def step(k: Int[Array, ""], state: Training) -> Training:
        def one(state: Training, setting: Setting, sample: Sample, drawn: Int[Array, "size B"]) -> Training:
            batch = jax.tree.map(lambda a: a[drawn[k]], sample)
            return advance(state, setting, crosstalk, batch, sample.y.shape[0], done + k, schedule)

        return jax.vmap(one)(state, setting, sample, rows)

    return lax.fori_loop(0, count, step, state)


def _layers(networks: Networks, x: Float[Array, "B q"]) -> tuple[Bool[Array, "M H B"], Float[Array, "M B"]]:
    """Where units are positive, and f; rows come last, so that what is summed over units are long vectors."""
    many, hidden, columns = networks.first.shape
    z = (networks.first.reshape(-1, columns) @ x.T).reshape(many, hidden, -1)
    return z > 0, jnp.einsum("mhb,mh->mb", jnp.maximum(z, 0), networks.second[:, :-1]) + networks.second[:, -1:]


def _precision(
    precision: Float[Array, "G"], residual: Float[Array, "G n B"], seen: Float[Array, "G 1 B"], step: Int[Array, ""]
) -> Float[Array, "G"]:
    """A running geometric mean of 1 / mean squared residual."""
    count = jnp.maximum(jnp.sum(seen, (1, 2)) * residual.shape[1], 1)
    now = 1 / jnp.maximum(jnp.sum(residual**2, (1, 2)) / count, LEAST_ERROR)
    return jnp.where(step < SETTLED, precision, precision * (now / precision) ** MEMORY)


def _adam(state: Training, slope: Networks, precision: Float[Array, "G"], step: Int[Array, ""], schedule: Schedule) -> Training:
    """A step of Adam uphill; its rate rises over ``RAMP`` steps and falls to zero along a cosine."""
    one, two = DECAY
    mean = jax.tree.map(lambda old, new: one * old + (1 - one) * new, state.mean, slope)
    square = jax.tree.map(lambda old, new: two * old + (1 - two) * new**2, state.square, slope)
    count = step.astype(precision.dtype) + 1
    rate = schedule.rate * jnp.minimum(1, count / RAMP) * (1 + jnp.cos(jnp.pi * (count - 1) / schedule.steps)) / 2
    first, second = rate / (1 - one**count), 1 / (1 - two**count)
    move = lambda w, m, s: w + first * m / (jnp.sqrt(second * s) + 1e-8)
    return Training(jax.tree.map(move, state.networks, mean, square), mean, square, precision)
