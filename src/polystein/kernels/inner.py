"""Kernels of the inner product t = (x - c).(y - c) / l^2 of two points."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein._checks import finite, kernel_scale, whole
from polystein._types import Scalar
from polystein.kernels.base import AbstractInner
from polystein.stein import InnerJet


class Linear(AbstractInner):
    """1 + t: under it SVGD drives E s = 0 and E s x^T = -I, so a Gaussian's mean and covariance come out exact.

    >>> import jax.numpy as jnp
    >>> float(Linear()(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])))
    12.0
    """

    centre: Float[Array, "..."] = eqx.field(converter=finite("centre"), default=0.0, kw_only=True)
    length: Scalar = eqx.field(converter=kernel_scale("length"), default=1.0, kw_only=True)

    def profile(self, t: Float[Array, "*tile"]) -> InnerJet:
        """1 + t, 1, 0."""
        return InnerJet(1 + t, jnp.ones_like(t), jnp.zeros_like(t))


class Polynomial(AbstractInner):
    """(1 + t)^degree.

    >>> import jax.numpy as jnp
    >>> float(Polynomial(2)(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])))
    144.0
    """

    degree: int = eqx.field(static=True, converter=whole("degree", least=1), default=2)
    centre: Float[Array, "..."] = eqx.field(converter=finite("centre"), default=0.0, kw_only=True)
    length: Scalar = eqx.field(converter=kernel_scale("length"), default=1.0, kw_only=True)

    def profile(self, t: Float[Array, "*tile"]) -> InnerJet:
        """q (1 + t)^(q-1) and q (q-1) (1 + t)^(q-2); the last term has no negative power where q = 1."""
        q, base = self.degree, 1 + t
        return InnerJet(base**q, q * base ** (q - 1), q * (q - 1) * base ** max(q - 2, 0))
