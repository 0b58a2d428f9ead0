"""Particles that do not see each other: the control of every method whose steps forget the size of its force."""

from __future__ import annotations

from typing import ClassVar

from polystein.experiments.regressors.particles import AbstractParticles
from polystein.methods import AbstractMethod, Ensemble
from polystein.models import Network


class Independent(AbstractParticles):
    """The ensemble of independent runs.

    RMSProp divides each coordinate by its running size, so that a factor common to all coordinates of a particle, such as a row
    sum of kernel values, cancels: this is every kernel method with the same force and no cross-talk.
    """

    label: ClassVar[str] = "ensemble"
    trials: ClassVar[int] = 10

    def method(self, model: Network) -> AbstractMethod:
        """The score alone."""
        return Ensemble()
