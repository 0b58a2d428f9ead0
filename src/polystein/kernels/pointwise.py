"""Kernels built from others or from a plain function: products, kernels on transformed points, a user's own formula."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from polystein import _checks
from polystein._types import Scalar, Vector
from polystein.kernels.base import AbstractKernel, AbstractPairwise, AbstractPointwise, as_kernel
from polystein.kernels.inner import Linear
from polystein.kernels.radial import RBF
from polystein.stein import Jet


class Product(AbstractPairwise):
    """k_1(x, y) k_2(x, y): the nonlinear combination of kernels.

    >>> import jax.numpy as jnp
    >>> float(Product(RBF(), Linear())(jnp.ones(2), jnp.ones(2)))
    3.0
    """

    first: AbstractKernel = eqx.field(converter=as_kernel, default_factory=RBF)
    second: AbstractKernel = eqx.field(converter=as_kernel, default_factory=Linear)

    @property
    def smooth(self) -> bool:
        """Both factors must be."""
        return self.first.smooth and self.second.smooth

    def meets_smoothly(self, x: Vector, size: Vector) -> Bool[Array, ""]:
        """Where both factors do."""
        return self.first.meets_smoothly(x, size) & self.second.meets_smoothly(x, size)

    def __call__(self, x: Vector, y: Vector) -> Scalar:
        """k_1 k_2."""
        return self.first(x, y) * self.second(x, y)

    def jet(self, y: Vector, x: Vector) -> Jet:
        """The product rule, in each argument."""
        f, g = self.first.jet(y, x), self.second.jet(y, x)
        trace = f.k * g.trace + g.k * f.trace + f.dy @ g.dx + f.dx @ g.dy
        return Jet(f.k * g.k, f.k * g.dy + g.k * f.dy, f.k * g.dx + g.k * f.dx, trace)


class Transformed(AbstractPointwise):
    """k(T(x), T(y)): a kernel on transformed points; with a learned map T (an equinox module, say), a deep kernel.

    >>> import jax.numpy as jnp
    >>> stretched = Transformed(RBF(), map=lambda x: x / jnp.array([1.0, 10.0]))
    >>> float(stretched(jnp.zeros(2), jnp.array([0.0, 10.0])).round(4))
    0.3679
    """

    kernel: AbstractKernel = eqx.field(converter=as_kernel, default_factory=RBF)
    map: Callable[[Vector], Float[Array, "e"]] = eqx.field(
        converter=_checks.function("map, a function of a point", example="map=lambda x: matrix @ x"), default=jnp.arcsinh
    )

    @property
    def smooth(self) -> bool:
        """As the kernel underneath: the map is taken to be smooth."""
        return self.kernel.smooth

    def __call__(self, x: Vector, y: Vector) -> Scalar:
        """k(T(x), T(y))."""
        with _checks.tracing("map"):
            return self.kernel(self.map(x), self.map(y))


class Stretch(eqx.Module):
    """The map x -> x / scale, coordinate by coordinate: a bandwidth per dimension for any radial kernel.

    >>> import jax.numpy as jnp
    >>> Stretch(jnp.array([1.0, 2.0]))(jnp.array([3.0, 4.0])).tolist()
    [3.0, 2.0]
    """

    scale: Float[Array, "..."] = eqx.field(converter=_checks.positive("scale", several=None))

    def __call__(self, x: Vector) -> Vector:
        """x / scale."""
        return x / _checks.per_dimension("scale", self.scale, x.shape[0]).astype(x.dtype)


class Function(AbstractPointwise):
    """A kernel given as a plain function of two points, symmetric and positive semi-definite.

    Its derivatives are autodiff's, so write it without a bare square root at x = y.

    >>> import jax.numpy as jnp
    >>> kernel = Function(lambda x, y: jnp.exp(-jnp.sum((x - y) ** 2)))
    >>> float(kernel(jnp.zeros(2), jnp.zeros(2)))
    1.0
    """

    function: Callable[[Vector, Vector], Scalar] = eqx.field(
        converter=_checks.function(
            "a function of two points", example="Function(lambda x, y: jnp.exp(-jnp.sum((x - y) ** 2)))", arguments=2
        ),
        default=lambda x, y: 1 / (1 + jnp.sum((x - y) ** 2)),
    )

    def __call__(self, x: Vector, y: Vector) -> Scalar:
        """The function at (x, y), in the dtype of the points."""
        _checks.two_points(x, y)
        with _checks.tracing(name := "the kernel's function"):
            return _checks.scalar(name, self.function(x, y)).astype(x.dtype)
