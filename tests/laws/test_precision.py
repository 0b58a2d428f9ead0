"""Matrix products ask for every digit: an accelerator multiplies float32 with three digits unless a program says otherwise.

No accelerator is needed to see it: what a program asks for stands in its jaxpr.
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from polystein import Bank, Points
from polystein.discrepancy import sweep
from polystein.geometry import AbstractGeometry, Diagonal, LowRank, Triangular
from polystein.kernels import AbstractKernel
from polystein.numerics import every_digit
from polystein.pairs import Tiled
from polystein.stein import Tile
from tests.laws.registry import make, over

N, D = 12, 9  # more dimensions than are unrolled
points = lambda: Points.of(jnp.linspace(-1.0, 1.0, N * D).reshape(N, D), jnp.ones((N, D)))


def equations(jaxpr: Any) -> Iterator[Any]:
    """All of a jaxpr and of those inside it."""
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from equations(inner)


def rounded(function: Any, *args: Any) -> list[Any]:
    """The matrix products that leave their digits to the device; products of two vectors are sums, and exact."""
    found = []
    for equation in equations(jax.make_jaxpr(function)(*args).jaxpr):
        if equation.primitive is lax.dot_general_p:
            (_, (batch, _)), precision = equation.params["dimension_numbers"], equation.params["precision"]
            exact = precision is not None and set(jax.tree.leaves(precision)) == {lax.Precision.HIGHEST}
            if equation.outvars[0].aval.ndim > len(batch) and not exact:
                found.append(equation)
    return found


def test_the_law_sees_a_rounded_product():
    a = jnp.ones((3, 3))
    assert len(rounded(jax.jit(lambda a: lax.map(lambda row: row[None] @ a, a)), a)) == 1
    assert not rounded(jax.vmap(lambda row: row @ row), a)
    assert not rounded(every_digit(lambda a: a @ a), a)


@over(AbstractKernel, only=lambda cls: cls().smooth)
def test_sweeps_of_a_kernel(cls: type):
    kernel = make(cls)
    assert not rounded(lambda p: (kernel.drift(Tile.of(p, p)), kernel.stein(Tile.of(p, p))), points())
    assert not rounded(lambda p: sweep(Bank(kernel), p, Tiled(4, 4)).u, points())


GEOMETRIES = {
    Diagonal: lambda: Diagonal(jnp.zeros(D), jnp.ones(D)),
    Triangular: lambda: Triangular(jnp.zeros(D), jnp.eye(D)),
    LowRank: lambda: LowRank(jnp.zeros(D), jnp.ones(D), jnp.eye(D)[:, :2], jnp.ones(2)),
}


@over(AbstractGeometry)
def test_changes_of_variables(cls: type):
    geometry = GEOMETRIES[cls]()
    assert not rounded(lambda z: (geometry.stretch(z), geometry.pull(z)), points().x)
