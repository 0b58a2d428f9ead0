"""The vocabulary in which methods are written: a swarm of particles at one step, and one abstract method."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from polystein._types import Key, Points, Scalar, Trace
from polystein.discrepancy import Sums, gather, sweep
from polystein.kernels import AbstractKernel, Bank, Summand
from polystein.pairs import AbstractPairs


class Swarm(eqx.Module):
    """Particles with their scores at one step, and how sums over their pairs are evaluated."""

    points: Points
    pairs: AbstractPairs

    @property
    def x(self) -> Float[Array, "n d"]:
        """The particles."""
        return self.points.x

    @property
    def s(self) -> Float[Array, "n d"]:
        """Their scores."""
        return self.points.s

    def drift(self, kernel: AbstractKernel) -> Float[Array, "n d"]:
        """phi*(x_i) = (1/n) sum_j [k(x_j, x_i) s_j + grad_{x_j} k(x_j, x_i)] (svgd_update)."""
        total, _ = self.pairs.sum(Summand(kernel), self.points, self.points)
        return total / self.points.count

    def sums(self, bank: Bank) -> Sums:
        """What the statistics of every kernel's discrepancy are read off."""
        return sweep(bank, self.points, self.pairs)

    def drift_and_sums(
        self, bank: Bank, w: Float[Array, "m"], balance: Scalar | None = None
    ) -> tuple[Float[Array, "n d"], Sums]:
        """phi_w(x_i) = sum_i w_i phi_i (mk-svgd_update) and the sums of all kernels, in one sweep over the pairs.

        ``balance`` I, where given, corrects for the finite number of particles: the own score k(x_i, x_i) s_i / n, a pull to
        the mode that no repulsion answers (Ba et al. 2021), enters with 1 - I and the repulsion with 1 + I.
        """
        mixture = bank.mix(w)
        total, rows = self.pairs.sum(Summand(mixture, balance, sums=True), self.points, self.points)
        if balance is not None:
            total = total - balance * jax.vmap(lambda x: mixture(x, x))(self.x)[:, None] * self.s
        return total / self.points.count, gather(bank, self.points, rows)

    def stein_ratio(self) -> Scalar:
        """R = -(1/(n d)) sum_i (x_i - mean).s_i: 1 where the spread is right, less where it is too narrow."""
        live = jnp.ones_like(self.s[:, 0]) if self.points.live is None else self.points.live.astype(self.s.dtype)
        mean = jnp.sum(self.x * live[:, None], 0, keepdims=True) / self.points.count
        return -jnp.sum((self.x - mean) * self.s * live[:, None]) / (self.points.count * self.x.shape[1])


class AbstractMethod(eqx.Module):
    """A vector field on particles. Holds hyper-parameters only; the run loop holds everything else.

    ``noisy``: whether its velocity is random.
    """

    noisy: ClassVar[bool] = False

    def init(self, x: Float[Array, "n d"]) -> Any:
        """What the method remembers between steps, at the start: nothing."""
        del x

    def check(self, x: Float[Array, "n d"]) -> None:
        """Refuse what cannot move particles that start at x, while they are still numbers; by default nothing."""
        del x

    def optimiser(self, chosen: optax.GradientTransformation | None) -> optax.GradientTransformation | None:
        """The optimiser to move by, given the one that was chosen; refuses one that spoils the method. Any does by default."""
        return chosen

    @abstractmethod
    def velocity(self, swarm: Swarm, memory: Any, key: Key) -> tuple[Float[Array, "n d"], Any, Trace]:
        """Where the particles go, an ascent direction; what to remember; what to record."""
