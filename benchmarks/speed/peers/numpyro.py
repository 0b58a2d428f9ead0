"""NumPyro's SteinVI with point masses and its RBF kernel, in one compiled scan."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from benchmarks.speed.peers.limits import within_memory
from benchmarks.speed.problems import STEP_SIZE, Problem
from benchmarks.speed.timing import Program

NAME = "NumPyro SteinVI"


def given_scores(n: int, d: int) -> Program:
    """A standard normal as a factor."""
    return _program(lambda u, step: -0.5 * jnp.sum(u**2), lambda step: step, n, d)


def whole_step(problem: Problem, n: int) -> Program:
    """The log density of a batch as a factor on a flat latent."""
    return _program(problem.density(), problem.batch, n, problem.dim)


def _program(log_p: object, batch: object, n: int, d: int) -> Program:
    import numpyro
    from numpyro.contrib.einstein import RBFKernel, SteinVI
    from numpyro.distributions import Normal
    from numpyro.infer.autoguide import AutoDelta
    from numpyro.infer.initialization import init_to_uniform
    from numpyro.optim import Adam

    within_memory(n * n * d, "n^2 d")
    units = max(1, min(20, int(2e7 / (n * n * d))))

    def model(rows: object) -> None:
        u = numpyro.sample("u", Normal().expand([d]).to_event(1).mask(False))
        numpyro.factor("log_p", log_p(u, rows))

    stein = SteinVI(
        model, AutoDelta(model, init_loc_fn=init_to_uniform(radius=0.1)), Adam(STEP_SIZE), RBFKernel(),
        num_stein_particles=n, num_elbo_particles=1,
    )  # fmt: skip
    state = stein.init(jax.random.key(0), batch(0))

    @jax.jit
    def run(state: object) -> object:
        step = lambda state, k: (stein.update(state, batch(k))[0], None)
        return jax.lax.scan(step, state, jnp.arange(units))[0].optim_state

    return Program(lambda: run(state), units)
