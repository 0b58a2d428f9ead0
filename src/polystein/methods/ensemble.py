"""The control: particles that do not see each other."""

from __future__ import annotations

from jaxtyping import Array, Float

from polystein._types import Key, Trace
from polystein.methods.base import AbstractMethod, Swarm


class Ensemble(AbstractMethod):
    """x_i <- x_i + eps s(x_i): n independent ascents, each to a mode. What interaction buys is measured against it.

    >>> Ensemble()
    Ensemble()
    """

    def velocity(self, swarm: Swarm, memory: None, key: Key) -> tuple[Float[Array, "n d"], None, Trace]:
        """The score: the limit of SVGD's n phi as the bandwidth goes to 0 (erratum 27)."""
        return swarm.s, None, {}
