"""What a recipe for regression is: training rows in, a mixture of normals for every test row out.

    p(y | x) = (1/M) sum_m N(y; mean_m(x), sd_m(x)^2)

All splits of a data set go through at once, along a leading axis S, so that a recipe is one compiled program a data set.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Progress = Callable[[float], None]


class Predictive(NamedTuple):
    """A mixture of M normals for each of T test rows of each of S splits, in the units of the data.

    ``notes``: what else a record of each split keeps, such as a choice that was made or how large kernel values are.
    """

    mean: Float[Array, "S M T"]
    sd: Float[Array, "S M T"]
    notes: dict[str, Float[Array, "S *_"]] | None = None


def rmse(predictive: Predictive, y: Float[Array, "S T"]) -> Float[Array, "S"]:
    """sqrt(mean_i (mean_m mean_mi - y_i)^2), the root mean squared error of the mixture's mean, for each split.

    >>> predictive = Predictive(jnp.array([[[1.0, 2.0], [3.0, 4.0]]]), jnp.ones((1, 2, 2)))
    >>> rmse(predictive, jnp.array([[2.0, 1.0]])).round(4).tolist()
    [1.4142]
    """
    return jnp.sqrt(jnp.mean((jnp.mean(predictive.mean, 1) - y) ** 2, 1))


def log_likelihood(predictive: Predictive, y: Float[Array, "S T"]) -> Float[Array, "S"]:
    """mean_i log (1/M) sum_m N(y_i; mean_mi, sd_mi^2), for each split.

    >>> predictive = Predictive(jnp.zeros((1, 2, 3)), jnp.ones((1, 2, 3)))
    >>> log_likelihood(predictive, jnp.zeros((1, 3))).round(4).tolist()
    [-0.9189]
    """
    each = jax.scipy.stats.norm.logpdf(y[:, None, :], predictive.mean, predictive.sd)
    return jnp.mean(jax.nn.logsumexp(each, 1) - jnp.log(float(each.shape[1])), 1)


class Standardised(eqx.Module):
    """The units in which a recipe computes: every split's own training rows have mean 0 and standard deviation 1.

    A column that is constant over the training rows keeps its scale.

    >>> x, y = jnp.array([[[1.0], [3.0]]]), jnp.array([[0.0, 4.0]])
    >>> units = Standardised.of(x, y)
    >>> units.features(x).ravel().tolist(), units.targets(y).ravel().tolist()
    ([-1.0, 1.0], [-1.0, 1.0])
    >>> units.raw(jnp.zeros((1, 1, 2)), jnp.ones((1, 1, 2))).sd.ravel().tolist()
    [2.0, 2.0]
    """

    x_mean: Float[Array, "S p"]
    x_sd: Float[Array, "S p"]
    y_mean: Float[Array, "S"]
    y_sd: Float[Array, "S"]

    @staticmethod
    def of(x: Float[Array, "S N p"], y: Float[Array, "S N"]) -> Standardised:
        """The units of the training rows of each split."""
        unit = lambda sd: jnp.where(sd > 0, sd, 1)
        return Standardised(jnp.mean(x, 1), unit(jnp.std(x, 1)), jnp.mean(y, 1), unit(jnp.std(y, 1)))

    def features(self, x: Float[Array, "S T p"]) -> Float[Array, "S T p"]:
        """(x - mean) / sd."""
        return (x - self.x_mean[:, None]) / self.x_sd[:, None]

    def targets(self, y: Float[Array, "S T"]) -> Float[Array, "S T"]:
        """(y - mean) / sd."""
        return (y - self.y_mean[:, None]) / self.y_sd[:, None]

    def raw(self, mean: Float[Array, "S M T"], sd: Float[Array, "S M T"]) -> Predictive:
        """A mixture in these units, in the units of the data."""
        scale = self.y_sd[:, None, None]
        return Predictive(self.y_mean[:, None, None] + scale * mean, scale * sd)


class AbstractRegressor(eqx.Module):
    """A recipe from training rows to predictions; hyper-parameters only, valid with no arguments.

    One file a recipe in this folder; the registry is its concrete subclasses (``recipes``). What tables and runs read off
    the class:

    - ``label``: its name in tables.
    - ``interacting``: whether its particles see each other.
    - ``printed``: the column of the paper's tables that it reruns.
    - ``control``: the label of the recipe that does the same without interaction.
    - ``ours``: whether it is a setting of the library's own, to be compared with the best printed number.
    - ``trials``: splits it runs on unless told otherwise, of the 20 standard ones.
    - ``on_request``: it takes long, and runs only where ``--methods`` names it.
    """

    label: ClassVar[str]
    interacting: ClassVar[bool] = False
    printed: ClassVar[str | None] = None
    control: ClassVar[str | None] = None
    ours: ClassVar[bool] = False
    trials: ClassVar[int] = 20
    on_request: ClassVar[bool] = False

    def quickly(self) -> AbstractRegressor:
        """The same recipe on a small budget, for ``--quick``: a second or two on a small set, whatever the result is worth."""
        return self

    @abstractmethod
    def fit(
        self,
        x: Float[Array, "S N p"],
        y: Float[Array, "S N"],
        test_x: Float[Array, "S T p"],
        keys: Any,
        *,
        progress: Progress | None = None,
    ) -> Predictive:
        """Learn from the training rows of every split, predict its test rows.

        **Arguments:**

        - ``x``, ``y``: training rows in the units of the data; all choosing, scaling and stopping uses these alone.
        - ``test_x``: features of the test rows; their targets never enter.
        - ``keys``: a ``jax.random`` key for each split.
        - ``progress``: called with the share of the work done, from 0 to 1.
        """
