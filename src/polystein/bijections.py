r"""Constrained parameters as images of real numbers: value = b(u), with log|det db/du| to add to a log density.

A density of constrained values p(v) becomes one of real numbers by log p(b(u)) + log|det db/du|. Each bijection acts on
one leaf of a parameter tree; how many real numbers stand behind a value may differ from its size (a simplex of K parts
has K - 1).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from polystein._types import Scalar


class AbstractBijection(eqx.Module):
    """From real numbers to constrained values and back."""

    @abstractmethod
    def forward(self, u: Float[Array, "..."]) -> tuple[Float[Array, "..."], Scalar]:
        """The value b(u) and log|det db/du|."""

    @abstractmethod
    def inverse(self, value: Float[Array, "..."]) -> Float[Array, "..."]:
        """u with b(u) = value; nan where the value is outside or on the edge."""

    def free_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of u behind a value of this shape."""
        return shape


class Real(AbstractBijection):
    """All real numbers: the identity.

    >>> import jax.numpy as jnp
    >>> Real().forward(jnp.array([1.0]))[0].tolist()
    [1.0]
    """

    def forward(self, u: Float[Array, "..."]) -> tuple[Float[Array, "..."], Scalar]:
        """u, 0."""
        return u, jnp.zeros((), u.dtype)

    def inverse(self, value: Float[Array, "..."]) -> Float[Array, "..."]:
        """The value."""
        return value


class Positive(AbstractBijection):
    """v > 0 as v = exp(u).

    >>> import jax.numpy as jnp
    >>> [float(a) for a in Positive().forward(jnp.array(0.0))]
    [1.0, 0.0]
    """

    def forward(self, u: Float[Array, "..."]) -> tuple[Float[Array, "..."], Scalar]:
        """exp(u), sum u."""
        return jnp.exp(u), jnp.sum(u)

    def inverse(self, value: Float[Array, "..."]) -> Float[Array, "..."]:
        """log v."""
        return jnp.log(value)


class Interval(AbstractBijection):
    """low < v < high as v = low + (high - low) / (1 + exp(-u)).

    >>> import jax.numpy as jnp
    >>> float(Interval(-1.0, 3.0).forward(jnp.array(0.0))[0])
    1.0
    """

    low: float = eqx.field(static=True, default=0.0)
    high: float = eqx.field(static=True, default=1.0)

    def __check_init__(self) -> None:
        if not all(isinstance(edge, int | float | np.number) for edge in (self.low, self.high)):
            raise TypeError(
                f"Interval({self.low!r}, {self.high!r}) has an edge that is no number; expected two numbers low < high; "
                "write Interval(0.0, 1.0), for example"
            )
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise ValueError(
                f"Interval({self.low!r}, {self.high!r}) is empty or unbounded; expected low < high, both finite; see Positive"
            )

    def forward(self, u: Float[Array, "..."]) -> tuple[Float[Array, "..."], Scalar]:
        """The logistic map; its log-Jacobian is that of both tails."""
        width = self.high - self.low
        jacobian = float(np.log(width)) + jax.nn.log_sigmoid(u) + jax.nn.log_sigmoid(-u)
        return self.low + width * jax.nn.sigmoid(u), jnp.sum(jacobian)

    def inverse(self, value: Float[Array, "..."]) -> Float[Array, "..."]:
        """The logit."""
        return jnp.log(value - self.low) - jnp.log(self.high - value)


class UnitInterval(AbstractBijection):
    """0 < v < 1 as v = 1 / (1 + exp(-u)).

    >>> import jax.numpy as jnp
    >>> float(UnitInterval().forward(jnp.array(0.0))[0])
    0.5
    """

    def forward(self, u: Float[Array, "..."]) -> tuple[Float[Array, "..."], Scalar]:
        """The logistic map."""
        return Interval().forward(u)

    def inverse(self, value: Float[Array, "..."]) -> Float[Array, "..."]:
        """The logit."""
        return Interval().inverse(value)


class Simplex(AbstractBijection):
    """K positive parts along the last axis that sum to one, by stick breaking: u has K - 1.

    v_k = z_k (1 - v_1 - ... - v_{k-1}) with z_k = logistic(u_k - log(K - k)), so that u = 0 is the even division.

    >>> import jax.numpy as jnp
    >>> Simplex().forward(jnp.zeros(3))[0].tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    def forward(self, u: Float[Array, "..."]) -> tuple[Float[Array, "..."], Scalar]:
        """Break the stick; log dv_k/du_k = log(left_k) + log z_k + log(1 - z_k)."""
        k = u.shape[-1]
        shifted = u - jnp.broadcast_to(jnp.log(jnp.arange(k, 0, -1, dtype=u.dtype)), u.shape)
        log_z, log_rest = jax.nn.log_sigmoid(shifted), jax.nn.log_sigmoid(-shifted)
        left = jnp.cumsum(log_rest, -1) - log_rest
        last = jnp.sum(log_rest, -1, keepdims=True)
        return jnp.exp(jnp.concatenate([left + log_z, last], -1)), jnp.sum(left + log_z + log_rest)

    def inverse(self, value: Float[Array, "..."]) -> Float[Array, "..."]:
        """The logits of the shares of what was left."""
        head = value[..., :-1]
        beyond = jnp.flip(jnp.cumsum(jnp.flip(value, -1), -1), -1)[..., 1:]
        shift = jnp.log(jnp.arange(head.shape[-1], 0, -1, dtype=value.dtype))
        return jnp.log(head) - jnp.log(beyond) + jnp.broadcast_to(shift, head.shape)

    def free_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """One less along the last axis."""
        if not shape or shape[-1] < 2:
            raise ValueError(
                f"a simplex of shape {shape}; expected at least two parts along the last axis; give like of shape (K,)"
            )
        return (*shape[:-1], shape[-1] - 1)


class Ordered(AbstractBijection):
    """v_1 < v_2 < ... along the last axis: v_1 = u_1, v_k = v_{k-1} + exp(u_k).

    >>> import jax.numpy as jnp
    >>> Ordered().forward(jnp.zeros(3))[0].tolist()
    [0.0, 1.0, 2.0]
    """

    def forward(self, u: Float[Array, "..."]) -> tuple[Float[Array, "..."], Scalar]:
        """Cumulated exponentials."""
        steps = jnp.concatenate([u[..., :1], jnp.exp(u[..., 1:])], -1)
        return jnp.cumsum(steps, -1), jnp.sum(u[..., 1:])

    def inverse(self, value: Float[Array, "..."]) -> Float[Array, "..."]:
        """Logs of the gaps."""
        return jnp.concatenate([value[..., :1], jnp.log(jnp.diff(value, axis=-1))], -1)

    def free_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """As it is; numbers on their own have no order."""
        if not shape:
            raise ValueError("an ordered parameter of shape () has no order; expected a vector; give like of shape (K,)")
        return shape


class CorrelationCholesky(AbstractBijection):
    """The Cholesky factor L of a K x K correlation matrix L L': rows of length one, positive diagonal; u has K (K - 1) / 2.

    Partial correlations z = tanh(u) fill the rows: L_ij = z_ij sqrt(1 - sum_{l<j} L_il^2). The log-Jacobian is with
    respect to the entries below the diagonal, so a density of L is one of these.

    >>> import jax.numpy as jnp
    >>> CorrelationCholesky().forward(jnp.zeros(1))[0].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def forward(self, u: Float[Array, "..."]) -> tuple[Float[Array, "..."], Scalar]:
        """Row by row: what is left of length one after each entry."""
        rows, columns = np.tril_indices(_side(u.shape[-1]), -1)
        size = rows[-1] + 1
        log_rest = 2 * (float(np.log(2.0)) - u - jax.nn.softplus(-2 * u))  # log(1 - tanh(u)^2)
        square = jnp.zeros((*u.shape[:-1], size, size), u.dtype).at[..., rows, columns].set(log_rest)
        left = jnp.cumsum(square, -1) - square  # log of 1 - sum of squares of the entries before
        z = jnp.zeros_like(square).at[..., rows, columns].set(jnp.tanh(u))
        factor = (z + jnp.broadcast_to(jnp.eye(size, dtype=u.dtype), z.shape)) * jnp.exp(left / 2)
        return factor, jnp.sum(log_rest) + jnp.sum(left[..., rows, columns]) / 2

    def inverse(self, value: Float[Array, "..."]) -> Float[Array, "..."]:
        """The partial correlations, through atanh."""
        rows, columns = np.tril_indices(value.shape[-1], -1)
        left = 1 - (jnp.cumsum(value**2, -1) - value**2)
        return jnp.arctanh((value / jnp.sqrt(left))[..., rows, columns])

    def free_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """K (K - 1) / 2 in place of K x K."""
        if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < 2:
            raise ValueError(f"a correlation factor of shape {shape}; expected (K, K) with K >= 2; give like=jnp.eye(K)")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


def _side(count: int) -> int:
    return round((1 + np.sqrt(1 + 8 * count)) / 2)


def refuse_unknown(constrain: Any, like: Any, where: str = "constrain") -> None:
    """Refuse what does not fit ``like``: a misspelt name, a class in place of a bijection would leave parameters free."""
    if constrain is None or isinstance(constrain, AbstractBijection):
        return
    if isinstance(constrain, dict):
        parts = like if isinstance(like, dict) else vars(like) if hasattr(like, "__dict__") else {}
        unknown = [name for name in constrain if name not in parts]
        if unknown:
            raise ValueError(
                f"{where} names {unknown}, which like does not have; expected some of {sorted(parts)}; check the spelling"
            )
        for name, part in constrain.items():
            refuse_unknown(part, parts[name], f"{where}[{name!r}]")
    elif isinstance(constrain, list | tuple):
        if not isinstance(like, list | tuple) or len(constrain) != len(like):
            raise ValueError(
                f"{where} has {len(constrain)} entries, unlike like; expected one for each; put None for free ones"
            )
        for i, part in enumerate(constrain):
            refuse_unknown(part, like[i], f"{where}[{i}]")
    elif type(constrain) is not type(like) or isinstance(constrain, type | str) or not hasattr(constrain, "__dict__"):
        raise TypeError(f"{where} has {constrain!r}; expected a bijection, or a tree of them like like; write ps.Positive()")


def of_path(constrain: Any, path: tuple[Any, ...]) -> AbstractBijection:
    """The bijection that a tree of them names for the leaf at ``path``; what is not named is real."""
    for entry in path:
        if constrain is None or isinstance(constrain, AbstractBijection):
            break
        name = getattr(entry, "key", getattr(entry, "idx", getattr(entry, "name", None)))
        if isinstance(constrain, dict):
            constrain = constrain.get(name)
        elif isinstance(constrain, list | tuple) and isinstance(name, int):
            constrain = constrain[name] if name < len(constrain) else None
        else:
            constrain = getattr(constrain, str(name), None)
    if constrain is None:
        return Real()
    if not isinstance(constrain, AbstractBijection):
        raise TypeError(
            f"constrain has {constrain!r} at like{jax.tree_util.keystr(path)}; expected a bijection; write ps.Positive()"
        )
    return constrain
