"""Multiple-kernel SVGD: Algorithm 1 of the paper, and what its weights should be."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein import _checks
from polystein._types import Key, Scalar, Trace
from polystein.discrepancy import AbstractSweep, V
from polystein.kernels import AbstractPlacement, Bank, DyadicLadder, check_kernels
from polystein.methods.base import AbstractMethod, Swarm
from polystein.weights import AbstractLearned, AbstractWeights, Argmax, NullDeviation, Paper, Vertex, WeightState

_bank = _checks.instance(
    "a bank or a placement of one", Bank, AbstractPlacement, example="Bank(RBF(1.0), IMQ()) or DyadicLadder()"
)
_weights = _checks.instance("a rule for the weights", AbstractWeights, example="Paper(), or Fixed(w) for an array")


MOST = 0.9  # of a particle's own score is taken away at the most


class Memory(eqx.Module):
    """The weights, and the balance I."""

    weights: WeightState
    balance: Scalar


class MKSVGD(AbstractMethod):
    """x_i <- x_i + eps sum_k w_k phi_k(x_i), each weight read off its kernel's Stein discrepancy.

    **Arguments:**

    - ``bank``: kernels, or a placement that fits a bank to the particles at every step (the default: a dyadic ladder
      of four wide kernels, 8 to 64 times the median rule's bandwidth: narrow ones let the variance collapse).
    - ``weights``: the rule for w; by default the maximiser of MKSD over U-statistics, each in units of its null s.d. and
      averaged over some ten steps (errata 1, 4, 5 and 6).
    - ``balance``: the rate at which the balance I between a particle's own score and the repulsion follows Stein's identity,
      I <- I + balance (1 - R) in [0, 0.9], with R = 1 where the spread is right: without it a finite number of particles is too
      narrow. 0 leaves both as the paper has them.
    - ``lagged``: whether a step moves by the weights of the step before, so that one sweep over the pairs gives both
      phi and S (Algorithm 1 as printed moves first, too: erratum 10); otherwise weights come first, at a second sweep.

    >>> from polystein import MKSVGD
    >>> len(MKSVGD().bank), len(MKSVGD.paper().bank)
    (4, 10)
    """

    bank: Bank | AbstractPlacement = eqx.field(converter=_bank, default_factory=lambda: DyadicLadder(low=3, high=6))
    weights: AbstractWeights = eqx.field(
        converter=_weights, default_factory=lambda: Argmax(divisor=NullDeviation(), memory=0.9, fallback=Vertex())
    )
    balance: Scalar = eqx.field(converter=_checks.share("balance"), default=0.04)
    lagged: bool = eqx.field(static=True, converter=_checks.flag("lagged"), default=True)

    @staticmethod
    def paper(
        *,
        low: int = -4,
        high: int = 5,
        statistic: AbstractSweep | None = None,
        rule: type[AbstractLearned] = Paper,
        lagged: bool = False,
    ) -> MKSVGD:
        """Algorithm 1 as printed: bank 2^low..2^high for ever, weights sqrt(S_i / sum S) of the V-statistic.

        What the paper leaves open is an argument: the bank differs between its experiments (erratum 12), the
        ``statistic`` is never said (5), the printed ``rule`` is not the maximiser it claims to be (1), and Algorithm 1
        moves x_t by weights that are either those of x_t, at a second sweep, or ``lagged`` by a step (10).
        """
        if not (isinstance(rule, type) and issubclass(rule, AbstractLearned)):
            raise TypeError(
                f"rule={rule!r}; expected the class of a rule for the weights; write rule=Argmax, or MKSVGD(bank, rule)"
            )
        return MKSVGD(Bank.dyadic(1.0, low, high), rule(statistic=V() if statistic is None else statistic), 0.0, lagged)

    def init(self, x: Float[Array, "n d"]) -> Memory:
        """The first weights, and no balance yet."""
        return Memory(self.weights.init(len(self.bank)), jnp.zeros((), x.dtype))

    def check(self, x: Float[Array, "n d"]) -> None:
        """Refuse kernels without a Stein discrepancy."""
        if isinstance(self.bank, Bank):
            check_kernels(self.bank, x)

    def velocity(self, swarm: Swarm, memory: Memory, key: Key) -> tuple[Float[Array, "n d"], Memory, Trace]:
        """phi_w(x_i) and the next w."""
        bank, before = self.bank.at(swarm.x), memory.weights
        if not self.lagged:
            before = self.weights(swarm.sums(bank), before)
        phi, sums = swarm.drift_and_sums(bank, before.w, memory.balance)
        after = self.weights(sums, before) if self.lagged else before
        spread = jnp.where(swarm.points.count > 1, swarm.stein_ratio(), 1)  # one particle has none
        step = self.balance.astype(swarm.x.dtype) * (1 - spread)
        balance = jnp.clip(memory.balance + step, 0, MOST)
        return phi, Memory(after, balance), {"weights": before.w, "ksd": sums.u, "balance": memory.balance}
