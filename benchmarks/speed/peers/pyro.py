"""Pyro's SVGD with its RBF kernel over whole particles, in PyTorch."""

from __future__ import annotations

from benchmarks.speed.peers.limits import within_memory
from benchmarks.speed.problems import BATCH, STEP_SIZE, Problem
from benchmarks.speed.timing import LeftOut, Program

NAME = "Pyro SVGD"


def given_scores(n: int, d: int) -> Program:
    """A standard normal."""
    import pyro
    import pyro.distributions as dist
    import torch

    def model(step: int) -> None:
        pyro.sample("u", dist.Normal(torch.zeros(d), 1.0).to_event(1))

    return _program(model, lambda step: (step,), n, d, 0)


def whole_step(problem: Problem, n: int) -> Program:
    """The model in Pyro's words; rows on a plate."""
    if problem.name != "logistic":
        raise LeftOut("its model is written for the logistic regression only")
    import pyro
    import pyro.distributions as dist
    import torch

    x, y = (torch.tensor(a) for a in problem.rows)

    def model(at: int) -> None:
        alpha = pyro.sample("alpha", dist.Gamma(torch.tensor(1.0), torch.tensor(0.01)))
        scale = alpha[..., None].rsqrt().expand(*alpha.shape, x.shape[1])
        w = pyro.sample("w", dist.Normal(torch.zeros(()), scale).to_event(1))
        with pyro.plate("rows", len(y), subsample=torch.arange(at, at + BATCH)):
            pyro.sample("y", dist.Bernoulli(logits=(w @ x[at : at + BATCH].T).squeeze(-2)), obs=y[at : at + BATCH])

    return _program(model, lambda step: (step * BATCH % len(y),), n, problem.dim, 1)


def _program(model: object, batch: object, n: int, d: int, plates: int) -> Program:
    import pyro
    from pyro.infer import SVGD, RBFSteinKernel
    from pyro.optim import Adam

    within_memory(3 * n * n * d, "3 n^2 d")
    pyro.clear_param_store()
    pyro.enable_validation(False)
    units = max(1, min(20, int(1e8 / (n * n * d))))
    svgd = SVGD(model, RBFSteinKernel(), Adam({"lr": STEP_SIZE}), n, plates, mode="multivariate")

    def run() -> None:
        for step in range(units):
            svgd.step(*batch(step))

    return Program(run, units)
