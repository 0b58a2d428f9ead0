"""A run with a checkpoint, for tests that kill it: ``python killed.py CHECKPOINT RESULT KIND STEPS``."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

import polystein as ps


def target(kind: str) -> ps.Target:
    """Exact, or from minibatches, where the place in the epoch has to survive too."""
    if kind == "exact":
        return ps.Target.of(lambda x: -0.25 * jnp.sum(x**4) - x[0] * x[1], jnp.zeros(2))
    rows = jnp.linspace(-2.0, 3.0, 30)
    return ps.Target.minibatched(
        lambda m: -0.5 * jnp.sum(m**2), lambda m, y: -0.5 * (y - m[0]) ** 2 - 0.1 * m[1] ** 4, rows, jnp.zeros(2), batch=4
    )


def main(checkpoint: str, result: str, kind: str, steps: str) -> None:
    """Run to the end and write what came out."""
    post = ps.run(
        ps.MKSVGD(ps.Bank.dyadic(1.0, 0, 1)),
        target(kind),
        particles=12,
        steps=int(steps),
        key=jax.random.key(7),
        optim=optax.adam(optax.cosine_decay_schedule(0.1, 600)),
        chunk=7,
        callbacks=[lambda p: print(p.step, flush=True)],
        checkpoint=checkpoint,
    )
    trace = {f"trace.{name}": np.asarray(a) for name, a in post.trace.items() if name != "seconds"}
    np.savez(result, particles=post.particles, scores=post.scores, rows=len(post.trace["seconds"]), **trace)


if __name__ == "__main__":
    main(*sys.argv[1:])
