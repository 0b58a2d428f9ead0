r"""The library's own recipe: networks that push each other as functions, through a bank of kernels with learned weights.

p(W | data) on 20 networks of 50 rectified units:  the force (1 - a) g_i + a n phi_w(f_i) on their outputs, phi_w the drift of
multiple-kernel SVGD between functions (``forces``), pulled back to the weights, the prior added (``crowd``); every network has
one of several views of the features, some of them left out (``views``); noise with heavy tails, fitted to rows that were held
out (``noise``).

The rule, frozen; it sees one split's training rows and nothing else. (Its candidates and its margin were settled with scores of
the UCI sets in view: docs/log.md.) Three candidates, in this order:

             views of four networks             left out   first layer   lambda   a
    apart    standardised, ranks, each twice    1/4        4             1        0.1
    close    standardised, ranks, both, both    0          1             0.1      0.2
    smooth   standardised, ranks, both, both    0          1             10       0.2

1. The rows are dealt into five parts. For each candidate five groups of four networks are trained side by side, each without
   one part, for ``trial_steps`` steps. So every row is predicted by four networks that have not seen it.
2. Noise (sigma, tail, spread) is fitted to these predictions by maximum likelihood, for each candidate.
3. A candidate takes the place of the best before it where its mean held-out log-likelihood is higher by more than three
   standard errors of the mean paired difference over rows: the first stands unless there is evidence.
4. Twenty networks are trained with the candidate's setting on all training rows for ``steps`` steps, and given its noise.

The control is the same, rule and all, with forces of the same size and no cross-talk.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from polystein.experiments.regressors.base import AbstractRegressor, Predictive, Progress, Standardised
from polystein.experiments.regressors.crowd import Networks, Sample, Schedule, Setting, generators, outputs, train
from polystein.experiments.regressors.noise import Noise, components, fitted, row_likelihoods
from polystein.experiments.regressors.views import both_views

STANDARD, RANKS, BOTH = (1, 0), (0, 1), (1, 1)
FOLDS = 5
MOST_ROWS = 2000  # held-out rows that are looked at
DEALING, LEAVING_OUT = 1, 2  # purposes of generators
ERRORS = 3.0  # standard errors by which a candidate has to be better


@dataclasses.dataclass(frozen=True)
class Candidate:
    """Views of four networks, the scale of their first layer, the precision of their prior, the share of interaction.

    ``left_out``: the share of the features that a network does not see, drawn for each network.
    """

    views: tuple[tuple[int, int], ...]
    scale: float
    prior: float
    share: float
    left_out: float = 0.0

    def setting(self, keys: Any, networks: int, features: int) -> Setting:
        """For so many networks of each split, whose views take turns."""
        views = np.array([self.views[i % len(self.views)] for i in range(networks)], np.float32)
        out = round(self.left_out * features)
        kept = np.stack(
            [[rng.permutation(features) >= out for _ in range(networks)] for rng in generators(keys, LEAVING_OUT)]
        ).astype(np.float32)
        sees = np.concatenate([kept * views[:, :1], kept * views[:, 1:], np.ones_like(kept[..., :1])], 2)
        each = lambda value: jnp.full(sees.shape[:2], value, jnp.float32)
        return Setting(jnp.asarray(sees), each(self.scale), each(self.prior), jnp.full(len(sees), self.share, jnp.float32))


CANDIDATES = (
    Candidate((STANDARD, RANKS, STANDARD, RANKS), 4.0, 1.0, 0.1, left_out=0.25),
    Candidate((STANDARD, RANKS, BOTH, BOTH), 1.0, 0.1, 0.2),
    Candidate((STANDARD, RANKS, BOTH, BOTH), 1.0, 10.0, 0.2),
)


class AbstractFunctional(AbstractRegressor):
    """Both recipes: what differs is whether networks see each other.

    **Arguments:**

    - ``steps``, ``trial_steps``: of the last training, and of each candidate's.
    - ``rate``, ``batch``, ``hidden``, ``particles``: the largest rate of Adam, rows a step, units, networks.
    """

    steps: int = eqx.field(static=True, default=4000)
    trial_steps: int = eqx.field(static=True, default=3000)
    rate: float = eqx.field(static=True, default=1e-2)
    batch: int = eqx.field(static=True, default=100)
    hidden: int = eqx.field(static=True, default=50)
    particles: int = eqx.field(static=True, default=20)

    crosstalk: ClassVar[bool]

    def __check_init__(self) -> None:
        if self.particles % FOLDS:
            raise ValueError(f"{self.particles} particles do not divide over {FOLDS} parts of the rows; try particles=20")

    def quickly(self) -> AbstractFunctional:
        """Hardly trained."""
        return dataclasses.replace(self, steps=50, trial_steps=50)

    def fit(
        self,
        x: Float[Array, "S N p"],
        y: Float[Array, "S N"],
        test_x: Float[Array, "S T p"],
        keys: Any,
        *,
        progress: Progress | None = None,
    ) -> Predictive:
        """Every split at once; each chooses for itself."""
        units, rows, targets, test_rows = _prepared(*(part.astype(jnp.float32) for part in (x, y, test_x)))
        settings = [candidate.setting(keys, self.particles, x.shape[2]) for candidate in CANDIDATES]
        stages = _Stages(progress, [self.trial_steps] * len(settings) + [self.steps])
        trials = [self._trial(setting, rows, targets, keys, stages) for setting in settings]
        noises, scores = jax.tree.map(lambda *parts: jnp.stack(parts, 1), *trials)
        chosen = choice(scores)
        settled = _of_each(settings, chosen)
        everything = Sample(rows, targets, jnp.ones((*y.shape, 1), rows.dtype))
        networks = self._trained(settled, everything, keys, self.steps, stages)
        return _finished(networks, test_rows, units, noises, scores, chosen)

    def _trial(
        self, setting: Setting, rows: Float[Array, "S N q"], y: Float[Array, "S N"], keys: Any, stages: _Stages
    ) -> tuple[Noise, Float[Array, "S R"]]:
        """The noise of a candidate, and its log-likelihood of every row looked at, none seen by those who predict it."""
        part = dealt(keys, y.shape[1])
        seen = jnp.asarray(part[..., None] != np.arange(FOLDS), rows.dtype)
        networks = self._trained(setting, Sample(rows, y, seen), keys, self.trial_steps, stages)
        count = min(y.shape[1], MOST_ROWS)
        look = np.arange(count) * y.shape[1] // count
        return _calibrated(_held(networks, rows[:, look], part[:, look]), y[:, look])

    def _trained(self, setting: Setting, sample: Sample, keys: Any, steps: int, stages: _Stages) -> Networks:
        schedule = Schedule(steps, self.rate, self.batch, self.hidden, self.particles)
        return train(setting, self.crosstalk, sample, keys, schedule, stages.next())


class FunctionSpace(AbstractFunctional):
    """MK-SVGD between functions, by the rule above.

    >>> x = jnp.linspace(-1, 1, 40)[None, :, None]
    >>> recipe = FunctionSpace(steps=300, trial_steps=300, hidden=10)
    >>> found = recipe.fit(x, 2 * x[..., 0], jnp.array([[[0.5]]]), jax.random.split(jax.random.key(0), 1))
    >>> bool(jnp.abs(found.mean.mean() - 1) < 0.2), found.sd.shape
    (True, (1, 100, 1))
    """

    label: ClassVar[str] = "function-space MK-SVGD"
    interacting: ClassVar[bool] = True
    control: ClassVar[str | None] = "function-space MK-SVGD, no cross-talk"
    ours: ClassVar[bool] = True
    crosstalk: ClassVar[bool] = True


class NoCrosstalk(AbstractFunctional):
    """The control: forces as large, each network on its own."""

    label: ClassVar[str] = "function-space MK-SVGD, no cross-talk"
    crosstalk: ClassVar[bool] = False


def dealt(keys: Any, rows: int) -> Int[np.ndarray, "S N"]:
    """Which part of the rows each belongs to: parts of equal size, to within one row."""
    return np.stack([rng.permutation(rows) % FOLDS for rng in generators(keys, DEALING)])


@jax.jit
def _of_each(settings: list[Setting], chosen: Int[Array, "S"]) -> Setting:
    """The chosen setting of every split."""
    return jax.tree.map(lambda *parts: jnp.stack(parts)[chosen, jnp.arange(chosen.shape[0])], *settings)


@jax.jit
def choice(scores: Float[Array, "S C R"]) -> Int[Array, "S"]:
    """The first candidate, or the last one that is better than the best before it by three standard errors.

    >>> choice(jnp.array([[[0.0, 0.0, 0.0], [1.0, 1.1, 0.9], [1.0, 1.2, 0.9]]])).tolist()
    [1]
    """
    scores = jnp.where(jnp.isfinite(scores), scores, -(jnp.finfo(scores.dtype).max ** 0.25))
    best, chosen = scores[:, 0], jnp.zeros(len(scores), int)
    for number in range(1, scores.shape[1]):
        gap = scores[:, number] - best
        better = jnp.mean(gap, 1) > ERRORS * jnp.std(gap, 1) / jnp.sqrt(float(gap.shape[1]))
        best, chosen = jnp.where(better[:, None], scores[:, number], best), jnp.where(better, number, chosen)
    return chosen


@jax.jit
def _prepared(
    x: Float[Array, "S N p"], y: Float[Array, "S N"], test_x: Float[Array, "S T p"]
) -> tuple[Standardised, Float[Array, "S N q"], Float[Array, "S N"], Float[Array, "S T q"]]:
    units = Standardised.of(x, y)
    rows, test_rows = both_views(x, test_x)
    return units, rows, units.targets(y), test_rows


@jax.jit
def _finished(
    networks: Networks,
    rows: Float[Array, "S T q"],
    units: Standardised,
    noises: Noise,
    scores: Float[Array, "S C R"],
    chosen: Int[Array, "S"],
) -> Predictive:
    """Predictions of every network with the noise of its candidate, in the units of the data."""
    noise = jax.tree.map(lambda part: jnp.take_along_axis(part, chosen[:, None], 1)[:, 0], noises)
    mean, sd = jax.vmap(components)(noise, _predicted(networks, rows))
    notes = {"candidate": chosen, "held-out log-likelihood": jnp.mean(scores, 2) - jnp.log(units.y_sd)[:, None]}
    return units.raw(mean, sd)._replace(notes=notes)


@jax.jit
def _predicted(networks: Networks, x: Float[Array, "S T q"]) -> Float[Array, "S M T"]:
    return lax.map(lambda split: outputs(*split), (networks, x))


@jax.jit
def _held(networks: Networks, x: Float[Array, "S R q"], part: Int[Array, "S R"]) -> Float[Array, "S n R"]:
    """Predictions of every row by the networks that have not seen its part."""
    found = _predicted(networks, x)
    grouped = found.reshape(found.shape[0], FOLDS, -1, found.shape[2])
    return jnp.take_along_axis(grouped, part[:, None, None], 1)[:, 0]


@jax.jit
def _calibrated(f: Float[Array, "S n R"], y: Float[Array, "S R"]) -> tuple[Noise, Float[Array, "S R"]]:
    def one(split: tuple[Float[Array, "n R"], Float[Array, "R"]]) -> tuple[Noise, Float[Array, "R"]]:
        noise = fitted(*split)
        return noise, row_likelihoods(noise, *split)

    return lax.map(one, (f, y))


class _Stages:
    """Progress over stages of so many steps."""

    def __init__(self, progress: Progress | None, steps: list[int]):
        self.progress, self.steps, self.stage = progress, steps, -1

    def next(self) -> Progress | None:
        """What reports the share done of the next stage."""
        self.stage += 1
        before, whole, mine = sum(self.steps[: self.stage]), sum(self.steps), self.steps[self.stage]
        report = self.progress
        return None if report is None else lambda share: report((before + share * mine) / whole)
