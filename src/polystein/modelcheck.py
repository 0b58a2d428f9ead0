"""Is a log density what its author thinks it is? Finite values, gradients that are its slopes, Stein's identities, scales."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from polystein import _checks
from polystein._types import Key, Scalar
from polystein.diagnostics import Finding
from polystein.flow import evaluate
from polystein.tables import markdown
from polystein.target import ScoreOnly, Target

STEPS = (1e-1, 1e-2, 1e-3)  # of differences


class ModelReport(NamedTuple):
    """The findings of ``check_model``; prints as a table with advice."""

    findings: list[Finding]

    @property
    def fine(self) -> bool:
        """Whether nothing was found."""
        return all(finding.fine for finding in self.findings)

    def __str__(self) -> str:
        rows = [[f.name, float(f.value), "yes" if f.fine else "NO"] for f in self.findings]
        return "\n".join([markdown(["check", "value", "fine"], rows), *(f"- {f.advice}" for f in self.findings if not f.fine)])

    __repr__ = __str__


def check_model(target: Target, draws: Float[Array, "n d"] | None = None, *, key: Key | None = None) -> ModelReport:
    """Look for errors in a density before a posterior is built on it.

    **Arguments:**

    - ``target``: ``Target.of(log_density, like)``.
    - ``draws``: exact draws in flat unconstrained coordinates, if there are any (of a trusted sampler, or of a model whose
      posterior is known): then Stein's identities E s = 0 and E (u - m) s' = -I are tested, which finds nearly every missing
      log-Jacobian.
    - ``key``: for the points at which it looks around ``like``.

    >>> import jax, jax.numpy as jnp, polystein as ps
    >>> target = ps.Target.of(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
    >>> ps.check_model(target, jax.random.normal(jax.random.key(0), (1000, 2))).fine
    True
    >>> ps.check_model(target, 2 * jax.random.normal(jax.random.key(0), (1000, 2))).fine
    False
    """
    seed: Key = _checks.random_key(jax.random.key(0) if key is None else key)
    around = target.start[None] + jax.random.normal(seed, (32, target.dim), target.start.dtype)
    u = around if draws is None else _of_target(draws, target)
    values, scores = (np.asarray(a) for a in evaluate(target, u))
    known = not isinstance(target.density, ScoreOnly)
    share_values, share_scores = float(np.isfinite(values).mean()), float(np.isfinite(scores).all(1).mean())
    where = "draws" if draws is not None else "points around like"
    out = [
        Finding("finite log densities", share_values, share_values == 1 or not known, f"log p is not finite at some {where}; "
                "declare constraints with constrain=, or guard logs and divisions"),
        Finding("finite scores", share_scores, share_scores == 1, f"the gradient of log p is not finite at some {where}; "
                "look for a root or a division at 0, and for jnp.where around a nan"),
    ]  # fmt: skip
    good = np.isfinite(scores).all(1) & (np.isfinite(values) | (not known))
    if known and good.any():
        out.append(slopes(target, u[good][:16], jax.random.fold_in(seed, 1)))
    if good.any():
        out.append(_scales(scores[good], draws is not None))
    if draws is not None and good.sum() > 10:
        out += _identities(np.asarray(u, np.float64)[good], np.asarray(scores, np.float64)[good])
    return ModelReport(out)


def slopes(target: Target, u: Float[Array, "n d"], key: Key, *, scale: Float[Array, "d"] | None = None) -> Finding:
    """The gradient along random directions against central differences of log p, in units of the differences' own noise.

    Steps are taken in units of ``scale``, or of the size of u where it is not known.
    """
    along = jax.random.normal(key, u.shape, u.dtype)
    along = along / jnp.linalg.norm(along, axis=1, keepdims=True)
    along = along if scale is None else along * scale[None]
    each = [np.asarray(_disagreement(target, u, along, jnp.asarray(h, u.dtype), scale)) for h in STEPS]
    error = float(np.nanmedian(np.min(each, 0)))
    return Finding(
        "gradient against differences", error, error < 1, "the gradient of log p is not its slope; look for stop_gradient, "
        "custom derivatives, rounding and comparisons of parameters"
    )  # fmt: skip


@eqx.filter_jit
def _disagreement(
    target: Target, u: Float[Array, "n d"], along: Float[Array, "n d"], h: Scalar, scale: Float[Array, "d"] | None
) -> Float[Array, "n"]:
    """How far slopes are from differences at step h, in units of what is allowed."""
    size = h * (1 + jnp.abs(u).max(1, keepdims=True) if scale is None else jnp.ones_like(u[:, :1]))
    density = jax.vmap(target.log_density)
    ahead, behind = density(u + size * along), density(u - size * along)
    slope = (ahead - behind) / (2 * size[:, 0])
    noise = jnp.finfo(u.dtype).eps * (jnp.abs(ahead) + jnp.abs(behind)) / size[:, 0]
    exact = jnp.sum(target.score(u) * along, 1)
    return jnp.abs(slope - exact) / (1e-2 * jnp.abs(exact) + 4 * noise + 1e-3)


def _scales(scores: np.ndarray, exact: bool) -> Finding:
    """The ratio of the largest to the smallest root mean square of the scores' coordinates."""
    size = np.sqrt((scores**2).mean(0))
    ratio = float(size.max() / size.min()) if size.min() > 0 else float("inf")
    return Finding(
        "ratio of scales", ratio, ratio < 1e4 or not exact, "scales of the parameters differ widely; infer finds them itself, "
        "for run rescale the parameters or give geometry="
    )  # fmt: skip


def _identities(u: np.ndarray, s: np.ndarray) -> list[Finding]:
    """E s = 0 and E (u - m) s' = -I, as the largest deviation in standard errors."""
    n, d = u.shape
    gap = (u - u.mean(0)) / np.maximum(u.std(0), 1e-300)
    s = s * u.std(0)
    first = np.abs(s.mean(0)) / (s.std(0) / np.sqrt(n) + 1e-300)
    product = gap[:, :, None] * s[:, None, :]
    second = np.abs(product.mean(0) + np.eye(d)) / (product.std(0) / np.sqrt(n) + 1e-300)
    limit = 4.5 + np.log10(d)
    return [
        Finding("E s = 0, standard errors", float(first.max()), float(first.max()) < limit,
                f"the mean score of coordinate {int(first.argmax())} is not 0 under the draws; they are of another density"),
        Finding("E (u - m) s' = -I, standard errors", float(second.max()), float(second.max()) < limit,
                f"coordinates {np.unravel_index(second.argmax(), second.shape)} do not fit; a log-Jacobian may be missing"),
    ]  # fmt: skip


def _of_target(draws: Float[Array, "n d"], target: Target) -> Float[Array, "n d"]:
    draws = _checks.particles(draws, "draws")
    if draws.shape[1] != target.dim:
        raise ValueError(
            f"draws of shape {draws.shape} for a density of {target.dim} numbers; expected (n, {target.dim}), flat and "
            "unconstrained; ravel each draw in the order of like"
        )
    return draws
