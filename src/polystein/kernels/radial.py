r"""Radial kernels k(x, y) = phi(|x - y|^2), all with k(x, x) = 1.

Each class gives phi, phi' and r^2 phi'' where phi' is the derivative in r^2. In closed form they cost one exponential
or power; where phi is a function of r, not of r^2 (Matern), the limits at r = 0 are written out.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein._checks import kernel_scale, within
from polystein._types import Scalar
from polystein.kernels.base import AbstractRadial, derivatives
from polystein.stein import RadialJet


class RBF(AbstractRadial):
    """exp(-r^2 / h): the Gaussian kernel; h is 2 sigma^2 (erratum 29).

    >>> import jax.numpy as jnp
    >>> float(RBF(h=2.0)(jnp.zeros(2), jnp.ones(2)).round(4))
    0.3679
    """

    h: Scalar = eqx.field(converter=kernel_scale("h"), default=1.0)

    def profile(self, r2: Float[Array, "*tile"]) -> RadialJet:
        """phi' = -phi / h, phi'' = phi / h^2."""
        phi = jnp.exp(-r2 / self.h)
        return RadialJet(phi, -phi / self.h, r2 / self.h * phi / self.h)


class IMQ(AbstractRadial):
    """(c^2 + r^2 / h)^beta / c^(2 beta), beta in (-1, 0): its KSD controls convergence (erratum 25; Gorham & Mackey 2017).

    >>> import jax.numpy as jnp
    >>> float(IMQ()(jnp.zeros(3), jnp.ones(3)))
    0.5
    """

    h: Scalar = eqx.field(converter=kernel_scale("h"), default=1.0)
    c: Scalar = eqx.field(converter=kernel_scale("c"), default=1.0)
    beta: Scalar = eqx.field(converter=within("beta", -1.0, 0.0), default=-0.5)

    def profile(self, r2: Float[Array, "*tile"]) -> RadialJet:
        """With b = 1 + r^2 / (c^2 h): b^beta, its derivative beta / (c^2 h) b^(beta-1), and so on."""
        scale = self.c**2 * self.h
        base = 1 + r2 / scale
        phi = base**self.beta
        first = self.beta / scale * phi / base
        return RadialJet(phi, first, (self.beta - 1) * first * (r2 / scale) / base)


class RationalQuadratic(AbstractRadial):
    """(1 + r^2 / (alpha h))^-alpha: a mixture of Gaussian kernels over scales; RBF as alpha grows.

    >>> import jax.numpy as jnp
    >>> float(RationalQuadratic(h=3.0)(jnp.zeros(3), jnp.ones(3)))
    0.5
    """

    h: Scalar = eqx.field(converter=kernel_scale("h"), default=1.0)
    alpha: Scalar = eqx.field(converter=kernel_scale("alpha"), default=1.0)

    def profile(self, r2: Float[Array, "*tile"]) -> RadialJet:
        """Smooth in r^2: derivatives by autodiff."""
        return derivatives(lambda t: (1 + t / (self.alpha * self.h)) ** -self.alpha, r2)


class Matern52(AbstractRadial):
    """(1 + a r + (a r)^2 / 3) exp(-a r), a = sqrt(5) / l.

    >>> import jax.numpy as jnp
    >>> float(Matern52()(jnp.zeros(1), jnp.zeros(1)))
    1.0
    """

    length: Scalar = eqx.field(converter=kernel_scale("length"), default=1.0)

    def profile(self, r2: Float[Array, "*tile"]) -> RadialJet:
        """phi' = -(a^2 / 6)(1 + a r) exp(-a r), at r = 0: -5 / (6 l^2); phi'' = (a^4 / 12) exp(-a r)."""
        a2 = 5 / self.length**2
        ar = root(a2 * r2)
        decay = jnp.exp(-ar)
        return RadialJet((1 + ar + ar**2 / 3) * decay, -a2 / 6 * (1 + ar) * decay, a2 / 12 * ar**2 * decay)


class Matern32(AbstractRadial):
    """(1 + a r) exp(-a r), a = sqrt(3) / l: the roughest Matern kernel that a Stein discrepancy admits.

    >>> import jax.numpy as jnp
    >>> float(Matern32()(jnp.zeros(1), jnp.zeros(1)))
    1.0
    """

    length: Scalar = eqx.field(converter=kernel_scale("length"), default=1.0)

    def profile(self, r2: Float[Array, "*tile"]) -> RadialJet:
        """phi' = -(a^2 / 2) exp(-a r), at r = 0: -3 / (2 l^2); r^2 phi'' = (a^3 r / 4) exp(-a r), at r = 0: 0."""
        a2 = 3 / self.length**2
        ar = root(a2 * r2)
        decay = jnp.exp(-ar)
        return RadialJet((1 + ar) * decay, -a2 / 2 * decay, a2 / 4 * ar * decay)


class SmoothLaplace(AbstractRadial):
    """exp((c - sqrt(c^2 + r^2)) / l): exponential tails as Laplace's kernel, but smooth where points meet.

    >>> import jax.numpy as jnp
    >>> float(SmoothLaplace(c=3.0)(jnp.zeros(1), jnp.array([4.0])).round(4))
    0.1353
    """

    length: Scalar = eqx.field(converter=kernel_scale("length"), default=1.0)
    c: Scalar = eqx.field(converter=kernel_scale("c"), default=1.0)

    def profile(self, r2: Float[Array, "*tile"]) -> RadialJet:
        """Smooth in r^2: derivatives by autodiff; c - sqrt(c^2 + t) = -t / (c + sqrt(c^2 + t)) does not cancel."""
        return derivatives(lambda t: jnp.exp(-t / (self.c + jnp.sqrt(self.c**2 + t)) / self.length), r2)


class Laplace(AbstractRadial):
    """exp(-r / l): not differentiable where points meet, so it has no Stein discrepancy; for Gram matrices and drifts.

    >>> import jax.numpy as jnp
    >>> float(Laplace()(jnp.zeros(1), jnp.ones(1)).round(4)), Laplace().smooth
    (0.3679, False)
    """

    length: Scalar = eqx.field(converter=kernel_scale("length"), default=1.0)

    @property
    def smooth(self) -> bool:
        """grad_x grad_y k is infinite on the diagonal."""
        return False

    def profile(self, r2: Float[Array, "*tile"]) -> RadialJet:
        """phi' = -phi / (2 l r), infinite at r = 0, where it is given as 0: two coincident points exert no force."""
        r = root(r2)
        away = r > 0
        safe = jnp.where(away, r, 1)
        phi = jnp.exp(-r / self.length)
        first = jnp.where(away, -phi / (2 * self.length * safe), 0)
        return RadialJet(phi, first, jnp.where(away, phi * (r / self.length + 1) / (4 * self.length * safe), 0))


def root(t: Float[Array, "*tile"]) -> Float[Array, "*tile"]:
    """sqrt(t) whose derivative at 0 is 0, not infinite: hyper-parameter gradients stay finite at coincident points."""
    positive_t = jnp.where(t > 0, t, 1)
    return jnp.where(t > 0, jnp.sqrt(positive_t), 0)
