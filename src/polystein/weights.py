r"""How the weights of a bank follow from its kernels' Stein discrepancies S_1, ..., S_m.

Weights live on the nonnegative unit sphere {w >= 0, |w|_2 = 1} and start at 1/sqrt(m) (errata 8 and 9); only ``Softmax``
lives on the simplex instead, which it says. Every rule reads S by a statistic, may divide each S_i by a standard
deviation, may average S over steps, and has a fallback for when no S_i is positive (U-statistics of a good sample are
all negative half of the time): without one the particles would freeze (erratum 4).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from polystein._checks import instance, nonnegative, positive, share
from polystein._types import Scalar
from polystein.discrepancy import AbstractSweep, Sums, U, maximise


class WeightState(eqx.Module):
    """The weights now, the running average of S (with how much of it has come in), and a rule's own memory."""

    w: Float[Array, "m"]
    average: Float[Array, "m"]
    filled: Scalar
    memory: Any = None


class AbstractDivisor(eqx.Module):
    """What each S_i is measured in: RBF kernels of different bandwidth are not commensurate (erratum 6)."""

    @abstractmethod
    def __call__(self, sums: Sums) -> Float[Array, "m"]:
        """A positive number per kernel."""


class NoDivisor(AbstractDivisor):
    """S_i as they are, as the paper has them."""

    def __call__(self, sums: Sums) -> Float[Array, "m"]:
        """1."""
        return jnp.ones_like(sums.u)


class NullDeviation(AbstractDivisor):
    """S_i in units of its s.d. under the null hypothesis q = p: sqrt(2 E u_i^2) / n."""

    def __call__(self, sums: Sums) -> Float[Array, "m"]:
        """sqrt(2 E u^2) / n."""
        return sums.null_deviation


class PowerDeviation(AbstractDivisor):
    """S_i in units of its s.d. under q: the kernel of largest ratio has the most powerful test."""

    def __call__(self, sums: Sums) -> Float[Array, "m"]:
        """2 sqrt(Var_x E_x' u_i) / sqrt(n)."""
        return sums.power_deviation


class AbstractFallback(eqx.Module):
    """The weights where no S_i > 0."""

    @abstractmethod
    def __call__(self, s: Float[Array, "m"], last: Float[Array, "m"], start: Float[Array, "m"]) -> Float[Array, "m"]:
        """Weights from S, the last weights and those at the start."""


class Last(AbstractFallback):
    """Keep the last weights."""

    def __call__(self, s: Float[Array, "m"], last: Float[Array, "m"], start: Float[Array, "m"]) -> Float[Array, "m"]:
        """The last weights."""
        return last


class Even(AbstractFallback):
    """All kernels alike."""

    def __call__(self, s: Float[Array, "m"], last: Float[Array, "m"], start: Float[Array, "m"]) -> Float[Array, "m"]:
        """The weights at the start: the same for all, on the sphere or the simplex as the rule has it."""
        return start.astype(last.dtype)


class Vertex(AbstractFallback):
    """The kernel of largest S_i alone: the maximiser of <w, S> where all S_i <= 0."""

    def __call__(self, s: Float[Array, "m"], last: Float[Array, "m"], start: Float[Array, "m"]) -> Float[Array, "m"]:
        """A unit vector."""
        return maximise(jnp.minimum(s, 0)).w.astype(last.dtype)


class AbstractWeights(eqx.Module):
    """A rule from the sums of a sweep to the weights of the bank."""

    @abstractmethod
    def init(self, m: int) -> WeightState:
        """The first weights of m kernels."""

    @abstractmethod
    def __call__(self, sums: Sums, state: WeightState) -> WeightState:
        """The weights after a sweep."""


class AbstractLearned(AbstractWeights):
    """Weights learned from S.

    ``statistic`` reads S off the sums, ``divisor`` sets its units, ``memory`` in [0, 1) is the share of the average of
    past S that is kept at each step (0: none), ``fallback`` says what to do where no S_i > 0.
    """

    statistic: AbstractSweep = eqx.field(
        converter=instance("a statistic of all pairs", AbstractSweep, example="U() or V()"), default_factory=U, kw_only=True
    )
    divisor: AbstractDivisor = eqx.field(
        converter=instance("a divisor", AbstractDivisor, example="NullDeviation() or NoDivisor()"),
        default_factory=NoDivisor,
        kw_only=True,
    )
    memory: Scalar = eqx.field(converter=share("memory"), default=0.0, kw_only=True)
    fallback: AbstractFallback = eqx.field(
        converter=instance("a fallback", AbstractFallback, example="Last() or Even()"), default_factory=Last, kw_only=True
    )

    @abstractmethod
    def rule(self, s: Float[Array, "m"], state: WeightState) -> tuple[Float[Array, "m"], Any]:
        """Weights from S, of which some is positive, and the rule's next memory."""

    def start(self, m: int) -> Float[Array, "m"]:
        """The first weights: even, on the sphere."""
        return jnp.full(m, m**-0.5)

    def remember(self, w: Float[Array, "m"]) -> Any:
        """The rule's own memory at the start: none."""
        del w

    def init(self, m: int) -> WeightState:
        """The first weights, no past."""
        w = self.start(m)
        return WeightState(w, jnp.zeros_like(w), jnp.zeros_like(w[0]), self.remember(w))

    def __call__(self, sums: Sums, state: WeightState) -> WeightState:
        """The weights for these sums; the last ones where S is not known (one particle has no U-statistic)."""
        s = (self.statistic.read(sums) / self.divisor(sums)).astype(state.w.dtype)
        known = jnp.all(jnp.isfinite(s))
        fresh = 1 - self.memory.astype(s.dtype)
        average = state.average + fresh * (jnp.where(known, s, 0) - state.average)
        filled = state.filled + fresh * (1 - state.filled)
        s = average / filled
        w, memory = self.rule(s, state)
        w = jnp.where(jnp.any(s > 0), w, self.fallback(s, state.w, self.start(s.shape[0])))
        return jax.tree.map(lambda new, old: jnp.where(known, new, old), WeightState(w, average, filled, memory), state)


class Paper(AbstractLearned):
    """w_i = sqrt(S_i / sum S) over the positive S_i: the printed formula (opt_w_i).

    It is on the sphere and maximises sum_i w_i |phi_i|, not sum_i w_i S_i (errata 1 and 2).

    >>> import jax.numpy as jnp
    >>> rule = Paper()
    >>> rule.rule(jnp.array([4.0, 5.0, -1.0]), rule.init(3))[0].round(3).tolist()
    [0.667, 0.745, 0.0]
    """

    def rule(self, s: Float[Array, "m"], state: WeightState) -> tuple[Float[Array, "m"], None]:
        """The maximiser of sum_i w_i sqrt(S_i)."""
        return maximise(jnp.sqrt(jnp.maximum(s, 0))).w, None


class Argmax(AbstractLearned):
    """w = S_+ / |S_+|_2: the true maximiser of MKSD on the nonnegative unit sphere (opt_w, errata 1 and 3).

    >>> import jax.numpy as jnp
    >>> rule = Argmax()
    >>> rule.rule(jnp.array([3.0, 4.0, -1.0]), rule.init(3))[0].round(3).tolist()
    [0.6, 0.8, 0.0]
    """

    def rule(self, s: Float[Array, "m"], state: WeightState) -> tuple[Float[Array, "m"], None]:
        """The weights that attain maxMKSD."""
        return maximise(s).w, None


class Softmax(AbstractLearned):
    """w = softmax(S / (temperature max |S|)) on the simplex sum w = 1: no kernel is ever dropped.

    >>> import jax.numpy as jnp
    >>> rule = Softmax()
    >>> rule.rule(jnp.array([1.0, 0.0]), rule.init(2))[0].round(3).tolist()
    [0.731, 0.269]
    """

    temperature: Scalar = eqx.field(converter=positive("temperature"), default=1.0)

    def start(self, m: int) -> Float[Array, "m"]:
        """Even, on the simplex."""
        return jnp.full(m, 1 / m)

    def rule(self, s: Float[Array, "m"], state: WeightState) -> tuple[Float[Array, "m"], None]:
        """Scale-free: S enters relative to its largest."""
        return jax.nn.softmax(s / jnp.max(jnp.abs(s)) / self.temperature.astype(s.dtype)), None


class Ascent(AbstractLearned):
    """Gradient ascent of MKSD in w by an optax optimiser, projected back to the nonnegative unit sphere.

    The gradient of <w, S> is S. ``Ascent(optax.adagrad(0.05))`` is what the paper's experiments say they use, though
    its closed form needs no step size (erratum 11).

    >>> import jax.numpy as jnp, optax
    >>> rule = Ascent(optax.sgd(1.0))
    >>> rule.rule(jnp.array([0.3, 0.4]), rule.init(2))[0].round(3).tolist()
    [0.673, 0.74]
    """

    optim: optax.GradientTransformation = eqx.field(
        converter=instance("an optax optimiser", optax.GradientTransformation, example="optax.adagrad(0.05)"),
        static=True,
        default_factory=lambda: optax.adagrad(0.05),
    )

    def remember(self, w: Float[Array, "m"]) -> Any:
        """The optimiser's state."""
        return self.optim.init(w)

    def rule(self, s: Float[Array, "m"], state: WeightState) -> tuple[Float[Array, "m"], Any]:
        """A step up <w, S>, negative parts cut, back to length one."""
        step, memory = self.optim.update(-s, state.memory, state.w)
        return maximise(jnp.asarray(optax.apply_updates(state.w, step))).w, memory


class Uniform(AbstractWeights):
    """w_i = 1/sqrt(m), whatever the discrepancies: the control.

    >>> Uniform().init(4).w.tolist()
    [0.5, 0.5, 0.5, 0.5]
    """

    def init(self, m: int) -> WeightState:
        """On the sphere."""
        return _constant(jnp.full(m, m**-0.5))

    def __call__(self, sums: Sums, state: WeightState) -> WeightState:
        """As they were."""
        return state


class Fixed(AbstractWeights):
    """Weights given once and for all, in the scale they are given in; one number stands for all kernels.

    >>> Fixed([1.0, 2.0]).init(2).w.tolist()
    [1.0, 2.0]
    """

    w: Float[Array, "..."] = eqx.field(converter=nonnegative("w"), default=1.0)

    def init(self, m: int) -> WeightState:
        """The given weights."""
        if self.w.shape not in ((), (m,)):
            raise ValueError(
                f"Fixed weights of shape {self.w.shape} for {m} kernels; expected shape ({m},) or one number; give {m} weights"
            )
        return _constant(jnp.broadcast_to(self.w, (m,)))

    def __call__(self, sums: Sums, state: WeightState) -> WeightState:
        """As they were."""
        return state


def _constant(w: Float[Array, "m"]) -> WeightState:
    return WeightState(w, jnp.zeros_like(w), jnp.zeros_like(w[0]))
