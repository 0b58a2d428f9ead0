"""What a run gives back: particles, the user's draws, a summary with advice, how the run went; saved without pickle."""

from __future__ import annotations

import html
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from polystein import storage
from polystein._types import Trace
from polystein.diagnostics import Finding, findings
from polystein.tables import markdown

QUANTILES = (0.05, 0.5, 0.95)


class Status(NamedTuple):
    """How a run ended: ``kind`` is one of completed, converged, not converged, stopped, interrupted; and a sentence."""

    kind: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.sentence}"


class Summary(NamedTuple):
    """A table of every number in the user's tree, and what the diagnostics say. Prints as text, shows as HTML in a notebook."""

    header: list[str]
    rows: list[list[Any]]
    findings: list[Finding]
    status: Status

    @property
    def advice(self) -> list[str]:
        """What is not as it should be, and what to do about it."""
        return [finding.advice for finding in self.findings if not finding.fine]

    def __str__(self) -> str:
        measured = ", ".join(f"{finding.name} {finding.value:.3g}" for finding in self.findings)
        lines = [markdown(self.header, self.rows), "", str(self.status)]
        return "\n".join(lines + ([measured] if measured else []) + [f"- {sentence}" for sentence in self.advice])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cell = lambda tag, value: f"<{tag}>{html.escape(f'{value:.4g}' if isinstance(value, float) else str(value))}</{tag}>"
        head = "".join(cell("th", name) for name in self.header)
        body = "".join("<tr>" + "".join(cell("td", value) for value in row) + "</tr>" for row in self.rows)
        advice = "".join(cell("li", sentence) for sentence in self.advice)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{cell('p', self.status)}<ul>{advice}</ul>"


class Posterior(eqx.Module):
    """n particles of equal weight, and how they came about.

    ``particles`` is the (n, d) array in flat, unconstrained coordinates; ``scores`` are grad log p there; ``trace`` holds one
    row per step of what the method and the loop recorded, ``seconds`` among it; ``status`` says how it ended; ``reach`` is the
    share of the other particles that each kernel of the bank connects a particle to.
    """

    particles: Float[Array, "n d"]
    scores: Float[Array, "n d"]
    values: Any
    trace: Trace
    status: Status = eqx.field(static=True)
    reach: Float[Array, "m"] | None = None

    def draws(self) -> Any:
        """The particles as the user's tree, constrained, with a leading axis of n.

        >>> import jax, jax.numpy as jnp, polystein as ps
        >>> target = ps.Target.of(lambda p: -0.5 * jnp.sum(p["a"] ** 2), {"a": jnp.zeros(2)})
        >>> ps.run(ps.SVGD(), target, particles=5, steps=2, key=jax.random.key(0)).draws()["a"].shape
        (5, 2)
        """
        return self.values

    def predict(self, function: Callable[[Any], Any]) -> Any:
        """``function`` of every draw, vmapped: a tree of arrays with a leading axis of n.

        >>> import jax, jax.numpy as jnp, polystein as ps
        >>> target = ps.Target.of(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> post = ps.run(ps.SVGD(), target, particles=5, steps=2, key=jax.random.key(0))
        >>> post.predict(lambda x: x @ x).shape
        (5,)
        """
        return jax.vmap(function)(self.values)

    @property
    def names(self) -> list[str]:
        """A name for every number in a draw, such as ``b[0]``."""
        return _names(jax.tree.map(lambda a: a[0], self.values))

    def summary(self) -> Summary:
        """Mean, standard deviation and quantiles of every number in a draw, with diagnostics and advice.

        >>> import jax, jax.numpy as jnp, polystein as ps
        >>> target = ps.Target.of(lambda p: -0.5 * jnp.sum(p["a"] ** 2), {"a": jnp.zeros(2)})
        >>> ps.run(ps.SVGD(), target, particles=5, steps=2, key=jax.random.key(0)).summary().header
        ['', 'mean', 'sd', '5%', '50%', '95%']
        """
        n = self.particles.shape[0]
        flat = np.concatenate([np.asarray(leaf, np.float64).reshape(n, -1) for leaf in jax.tree.leaves(self.values)], 1)
        sd = flat.std(0, ddof=1) if n > 1 else np.full(flat.shape[1], np.nan)
        columns = [flat.mean(0), sd, *np.quantile(flat, QUANTILES, axis=0)]
        rows = [[name, *(float(column[i]) for column in columns)] for i, name in enumerate(self.names)]
        free = self.names if len(self.names) == self.particles.shape[1] else [f"u[{i}]" for i in range(self.particles.shape[1])]
        weights = self.trace.get("weights")
        last = jnp.asarray(weights[-1]) if weights is not None and len(weights) else None
        found = findings(self.particles, self.scores, free, self.reach, last)
        return Summary(["", "mean", "sd", *(f"{q:.0%}" for q in QUANTILES)], rows, found, self.status)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one npz file, atomically; ``polystein.load`` reads it back.

        >>> import jax, jax.numpy as jnp, polystein as ps, tempfile, pathlib
        >>> target = ps.Target.of(lambda p: -0.5 * jnp.sum(p["a"] ** 2), {"a": jnp.zeros(2)})
        >>> post = ps.run(ps.SVGD(), target, particles=5, steps=2, key=jax.random.key(0))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     post.save(pathlib.Path(folder) / "post.npz")
        ...     again = ps.load(pathlib.Path(folder) / "post.npz")
        >>> bool((again.draws()["a"] == post.draws()["a"]).all())
        True
        """
        arrays = {"particles": self.particles, "scores": self.scores, **storage.pack(self.values, "values")}
        arrays |= {} if self.reach is None else {"reach": self.reach}
        arrays |= {f"trace.{name}": value for name, value in self.trace.items()}
        manifest = {"kind": "posterior", "tree": storage.describe(self.values), "status": list(self.status)}
        storage.write(path, arrays, manifest)


def load(path: str | os.PathLike[str], *, like: Any = None) -> Posterior:
    """A posterior that ``Posterior.save`` wrote. Nothing in the file is executed.

    **Arguments:**

    - ``path``: the file.
    - ``like``: an example of the user's tree, needed only where it is not made of dicts, lists and tuples.
    """
    arrays, manifest = storage.read(path, "posterior")
    wide = [name for name, a in arrays.items() if a.dtype == np.float64 and not name.startswith("trace.")]
    if wide and jax.dtypes.canonicalize_dtype(np.float64) != np.float64:
        raise ValueError(
            f"{path} holds float64 ({wide[0]}) and JAX is at 32 bit; expected 64; jax.config.update('jax_enable_x64', True)"
        )
    leaves = [jnp.asarray(arrays[name]) for name in sorted((n for n in arrays if n.startswith("values")), key=_number)]
    if like is None and manifest.get("tree") is None:
        raise ValueError(f"{path} holds a tree of the user's own classes; expected like=, an example of it; pass its own tree")
    try:
        values = storage.rebuild(manifest["tree"], leaves) if like is None else _as(like, leaves, path)
        trace = {name.removeprefix("trace."): a for name, a in arrays.items() if name.startswith("trace.")}
        particles, scores = jnp.asarray(arrays["particles"]), jnp.asarray(arrays["scores"])
        kind, sentence = manifest["status"]
    except storage.DAMAGE as damage:
        if like is not None and isinstance(damage, ValueError):
            raise
        raise ValueError(
            f"{path} is damaged or was not written by polystein ({damage}); expected a whole posterior; restore it from a copy"
        ) from damage
    reach = jnp.asarray(arrays["reach"]) if "reach" in arrays else None
    return Posterior(particles, scores, values, trace, Status(str(kind), str(sentence)), reach)


def _as(like: Any, leaves: list[Array], path: Any) -> Any:
    """The leaves as a tree like ``like``, each with a leading axis of draws."""
    expected, structure = jax.tree.flatten(like)
    shapes = [tuple(np.shape(leaf)) for leaf in expected]
    if shapes != [leaf.shape[1:] for leaf in leaves]:
        raise ValueError(
            f"{path} holds draws of shapes {[leaf.shape[1:] for leaf in leaves]}; expected {shapes}, as in like; pass its tree"
        )
    return jax.tree.unflatten(structure, leaves)


def _number(name: str) -> int:
    return int(name.removeprefix("values"))


def _names(tree: Any) -> list[str]:
    out = []
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        out += names_of(path, leaf.shape)
    return out


def names_of(path: tuple[Any, ...], shape: tuple[int, ...]) -> list[str]:
    """A name for every number of an array of this shape at a place in a tree."""
    parts = [str(getattr(entry, "key", getattr(entry, "idx", getattr(entry, "name", entry)))) for entry in path]
    name = ".".join(parts) or "x"
    return [name + (f"[{','.join(map(str, index))}]" if index else "") for index in np.ndindex(shape)]
