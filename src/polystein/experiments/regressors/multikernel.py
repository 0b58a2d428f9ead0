"""MK-SVGD: Algorithm 1 as printed, its weights learned as the experiments say, and with the defaults of the library."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import optax

from polystein.discrepancy import V
from polystein.experiments.regressors.particles import AbstractParticles
from polystein.kernels import Bank
from polystein.methods import MKSVGD, AbstractMethod
from polystein.models import Network
from polystein.weights import Ascent

RATE = 0.05


@lru_cache
def _adagrad() -> optax.GradientTransformation:
    return optax.adagrad(RATE)


@lru_cache
def _ascent() -> optax.GradientTransformation:
    return optax.sgd(RATE)


class Literal(AbstractParticles):
    """Algorithm 1: bank 2^-4..2^5, V-statistics, weights sqrt(S / sum S)."""

    label: ClassVar[str] = "MK-SVGD"
    interacting: ClassVar[bool] = True
    printed: ClassVar[str | None] = "MK-SVGD"
    control: ClassVar[str | None] = "ensemble"
    trials: ClassVar[int] = 10

    def method(self, model: Network) -> AbstractMethod:
        """The closed form."""
        return MKSVGD.paper()


class LearnedByAdaGrad(AbstractParticles):
    """Algorithm 1 with w moved by AdaGrad, rate 0.05 (erratum 11)."""

    label: ClassVar[str] = "MK-SVGD, AdaGrad on w"
    interacting: ClassVar[bool] = True
    control: ClassVar[str | None] = "ensemble"
    trials: ClassVar[int] = 10

    def method(self, model: Network) -> AbstractMethod:
        """dw = S, projected back to the sphere."""
        return MKSVGD(Bank.dyadic(1.0, -4, 5), Ascent(_adagrad(), statistic=V()), 0.0, False)


class LearnedByGradients(AbstractParticles):
    """Algorithm 1 with w moved by plain gradient ascent, rate 0.05: no step size is printed (erratum 11)."""

    label: ClassVar[str] = "MK-SVGD, gradient ascent on w"
    interacting: ClassVar[bool] = True
    control: ClassVar[str | None] = "ensemble"
    trials: ClassVar[int] = 10

    def method(self, model: Network) -> AbstractMethod:
        """dw = S, projected back to the sphere."""
        return MKSVGD(Bank.dyadic(1.0, -4, 5), Ascent(_ascent(), statistic=V()), 0.0, False)


class Defaults(AbstractParticles):
    """``MKSVGD()`` in the place of Algorithm 1, all else as there: a ladder of kernels placed on the particles."""

    label: ClassVar[str] = "MKSVGD() of the library"
    interacting: ClassVar[bool] = True
    control: ClassVar[str | None] = "ensemble"
    trials: ClassVar[int] = 10

    def method(self, model: Network) -> AbstractMethod:
        """No argument given."""
        return MKSVGD()
