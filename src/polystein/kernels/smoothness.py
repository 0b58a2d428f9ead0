"""Whether the Stein operator can act twice on kernels: grad_x grad_y k(x, y) must be finite and continuous at x = y."""

from __future__ import annotations

import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

from polystein._checks import concrete
from polystein.kernels.bank import AbstractFamily, Bank


def check_kernels(bank: Bank, x: Float[Array, "n d"] | None = None) -> None:
    """Refuses a bank of which some kernel has no Stein discrepancy.

    Kernels say themselves whether they are smooth; a user's function is tried where two points meet, at the first row of x
    (if x is given, and not being traced).

    >>> from polystein import Laplace
    >>> check_kernels(Bank(Laplace()))
    Traceback (most recent call last):
        ...
    ValueError: Laplace is not differentiable where two points meet, so it has no Stein discrepancy; ...
    """
    for family in bank.families:
        if not family.stacked.smooth or (x is not None and not _tried(family, x)):
            raise ValueError(
                f"{type(family.stacked).__name__} is not differentiable where two points meet, so it has no Stein "
                "discrepancy; expected a kernel with a finite, continuous grad_x grad_y k(x, y) at x = y; "
                "use SmoothLaplace or Matern32 instead"
            )


def _tried(family: AbstractFamily, x: Float[Array, "n d"]) -> bool:
    if isinstance(x, Tracer):
        return True
    size = jnp.max(jnp.abs(x), 0)
    found = concrete(family.meets_smoothly(x[0], jnp.where(size > 0, size, 1)))
    return found is None or bool(found)
