"""Multiple-kernel SVGD: Algorithm 1 of the paper, and what its weights should be."""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Float

from polystein import _checks
from polystein._types import Key, Trace
from polystein.discrepancy import AbstractSweep, V
from polystein.kernels import AbstractPlacement, Bank, DyadicLadder, check_kernels
from polystein.methods.base import AbstractMethod, Swarm
from polystein.weights import AbstractLearned, AbstractWeights, Argmax, NullDeviation, Paper, Vertex, WeightState

_bank = _checks.instance(
    "a bank or a placement of one", Bank, AbstractPlacement, example="Bank(RBF(1.0), IMQ()) or DyadicLadder()"
)
_weights = _checks.instance("a rule for the weights", AbstractWeights, example="Paper(), or Fixed(w) for an array")


class MKSVGD(AbstractMethod):
    """x_i <- x_i + eps sum_k w_k phi_k(x_i), each weight read off its kernel's Stein discrepancy.

    **Arguments:**

    - ``bank``: kernels, or a placement that fits a bank to the particles at every step (the default: a dyadic ladder
      of four wide kernels, 8 to 64 times the median rule's bandwidth: narrow ones let the variance collapse).
    - ``weights``: the rule for w; by default the maximiser of MKSD over U-statistics, each in units of its null s.d. and
      averaged over some ten steps (errata 1, 4, 5 and 6).
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
    lagged: bool = eqx.field(static=True, default=True)

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
        return MKSVGD(Bank.dyadic(1.0, low, high), rule(statistic=V() if statistic is None else statistic), lagged)

    def init(self, x: Float[Array, "n d"]) -> WeightState:
        """The first weights."""
        return self.weights.init(len(self.bank))

    def check(self, x: Float[Array, "n d"]) -> None:
        """Refuse kernels without a Stein discrepancy."""
        if isinstance(self.bank, Bank):
            check_kernels(self.bank, x)

    def velocity(self, swarm: Swarm, memory: WeightState, key: Key) -> tuple[Float[Array, "n d"], WeightState, Trace]:
        """phi_w(x_i) and the next w."""
        bank = self.bank.at(swarm.x)
        if self.lagged:
            phi, sums = swarm.drift_and_sums(bank, memory.w)
            after = self.weights(sums, memory)
            used = memory.w
        else:
            sums = swarm.sums(bank)
            after = self.weights(sums, memory)
            phi, used = swarm.drift(bank.mix(after.w)), after.w
        return phi, after, {"weights": used, "ksd": sums.u}
