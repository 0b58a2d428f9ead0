"""Sums over pairs in less than n^2 work: time against the exact sweep, and the error that it costs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import polystein as ps
from benchmarks.speed.ours import LADDERS, median_rule
from benchmarks.speed.record import Cell, cells, rounded
from benchmarks.speed.timing import Program, take_turns
from polystein.discrepancy import Sums
from polystein.methods import Swarm
from polystein.pairs import AbstractPairs, default_pairs

SIZES = (64, 256, 1024)
EXACT = "exact"


def measure(quick: bool) -> Iterator[Cell]:
    """The drift and the discrepancies of the default bank's four kernels, and of ten from narrow to wide."""
    for n, d in [(300, 2)] if quick else [(20_000, 2), (20_000, 64)]:
        for name, ladder in {"4 wide": (3, 6), "10": LADDERS[10]}.items():
            yield from _curve(n, d, name, ladder, quick)


def _curve(n: int, d: int, name: str, ladder: tuple[int, int], quick: bool) -> Iterator[Cell]:
    bank = ps.Bank.dyadic(median_rule(n, d), *ladder)
    x = 0.2 + 1.2 * jax.random.normal(jax.random.key(0), (n, d))  # of a standard normal: shifted, and too wide
    w = jnp.full(len(bank), len(bank) ** -0.5)
    ways: dict[str, AbstractPairs] = {EXACT: default_pairs(n)}
    ways |= {f"random batches of {p}": ps.RandomBatch(p) for p in SIZES[: 1 if quick else None]}
    ways |= {f"{r} landmarks": ps.Nystrom(r) for r in SIZES[: 1 if quick else None]}

    @eqx.filter_jit
    def sweep(pairs: AbstractPairs, x: Float[Array, "n d"]) -> tuple[Array, Sums]:
        return Swarm(ps.Points.of(x, -x), pairs).drift_and_sums(bank, w)

    programs = {way: lambda pairs=pairs: Program(lambda: sweep(pairs, x)) for way, pairs in ways.items()}
    times = take_turns(programs, seconds=0.2 if quick else 6.0)
    phi, sums = sweep(ways[EXACT], x)
    for cell in cells({"n": n, "d": d, "kernels": name}, times):
        found, some = sweep(ways[cell.program], x)
        off = {
            "phi": float(jnp.linalg.norm(found - phi) / jnp.linalg.norm(phi)),
            "KSD": float(np.linalg.norm(some.u - sums.u) / np.linalg.norm(sums.u)),
        }
        yield dataclasses.replace(cell, facts={key: rounded(value, 3) for key, value in off.items()})
