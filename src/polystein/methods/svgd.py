"""Stein variational gradient descent with one kernel (Liu & Wang 2016)."""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Float

from polystein import _checks
from polystein._types import Key, Trace
from polystein.kernels import AbstractBandwidth, AbstractKernel, LiuWang, kernel_of
from polystein.methods.base import AbstractMethod, Swarm

_kernel = _checks.instance(
    "a kernel or a bandwidth rule",
    AbstractKernel,
    AbstractBandwidth,
    example="SVGD(RBF(1.0)), Function(f), or MKSVGD for a bank",
)


class SVGD(AbstractMethod):
    """x_i <- x_i + eps phi*(x_i) with one kernel: fixed, or a Gaussian whose bandwidth a rule reads off the particles.

    >>> from polystein import IMQ, SVGD
    >>> isinstance(SVGD(IMQ()).kernel, IMQ)
    True
    """

    kernel: AbstractKernel | AbstractBandwidth = eqx.field(converter=_kernel, default_factory=LiuWang)

    def velocity(self, swarm: Swarm, memory: None, key: Key) -> tuple[Float[Array, "n d"], None, Trace]:
        """phi*(x_i) (svgd_update)."""
        if isinstance(self.kernel, AbstractKernel):
            return swarm.drift(self.kernel), None, {}
        h = self.kernel(swarm.x)
        return swarm.drift(kernel_of(h)), None, {"bandwidth": h}
