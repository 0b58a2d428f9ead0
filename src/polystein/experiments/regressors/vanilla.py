"""SVGD with one kernel: the bandwidth by the median rule of Liu & Wang, or fixed."""

from __future__ import annotations

from typing import ClassVar

from polystein.experiments.regressors.particles import AbstractParticles
from polystein.kernels import RBF
from polystein.methods import SVGD, AbstractMethod
from polystein.models import Network


class Vanilla(AbstractParticles):
    """SVGD as Liu & Wang run it."""

    label: ClassVar[str] = "Vanilla SVGD"
    interacting: ClassVar[bool] = True
    printed: ClassVar[str | None] = "Vanilla SVGD"
    control: ClassVar[str | None] = "ensemble"
    trials: ClassVar[int] = 10

    def method(self, model: Network) -> AbstractMethod:
        """h = med r^2 / log(n + 1)."""
        return SVGD()


class Fixed0(AbstractParticles):
    """SVGD with h = 2^0."""

    label: ClassVar[str] = "SVGD, h = 2^0"
    interacting: ClassVar[bool] = True
    control: ClassVar[str | None] = "ensemble"
    trials: ClassVar[int] = 10

    def method(self, model: Network) -> AbstractMethod:
        """exp(-r^2)."""
        return SVGD(RBF(1.0))


class Fixed4(AbstractParticles):
    """SVGD with h = 2^4."""

    label: ClassVar[str] = "SVGD, h = 2^4"
    interacting: ClassVar[bool] = True
    control: ClassVar[str | None] = "ensemble"
    trials: ClassVar[int] = 10

    def method(self, model: Network) -> AbstractMethod:
        """exp(-r^2 / 2^4)."""
        return SVGD(RBF(2.0**4))


class Fixed8(AbstractParticles):
    """SVGD with h = 2^8."""

    label: ClassVar[str] = "SVGD, h = 2^8"
    interacting: ClassVar[bool] = True
    control: ClassVar[str | None] = "ensemble"
    trials: ClassVar[int] = 10

    def method(self, model: Network) -> AbstractMethod:
        """exp(-r^2 / 2^8)."""
        return SVGD(RBF(2.0**8))


class Fixed12(AbstractParticles):
    """SVGD with h = 2^12."""

    label: ClassVar[str] = "SVGD, h = 2^12"
    interacting: ClassVar[bool] = True
    control: ClassVar[str | None] = "ensemble"
    trials: ClassVar[int] = 10

    def method(self, model: Network) -> AbstractMethod:
        """exp(-r^2 / 2^12)."""
        return SVGD(RBF(2.0**12))
