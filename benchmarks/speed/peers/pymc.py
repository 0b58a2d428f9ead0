"""PyMC's SVGD, compiled by PyTensor."""

from __future__ import annotations

import logging
from typing import Any

from benchmarks.speed.peers.limits import within_memory
from benchmarks.speed.problems import BATCH, STEP_SIZE, Problem
from benchmarks.speed.timing import LeftOut, Program

NAME = "PyMC SVGD"


def given_scores(n: int, d: int) -> Program:
    """A standard normal."""
    pm = _pymc()
    with pm.Model() as model:
        pm.Normal("u", shape=d)
    return _program(model, n)


def whole_step(problem: Problem, n: int) -> Program:
    """The model in PyMC's words, with its minibatches."""
    if problem.name != "logistic":
        raise LeftOut("its model is written for the logistic regression only")
    pm = _pymc()
    rows, targets = problem.rows
    with pm.Model() as model:
        x, y = pm.Minibatch(rows, targets, batch_size=BATCH)
        alpha = pm.Gamma("alpha", 1.0, 0.01)
        w = pm.Normal("w", 0.0, tau=alpha, shape=rows.shape[1])
        pm.Potential("y", -len(targets) / BATCH * pm.math.sum(pm.math.log1pexp((1 - 2 * y) * (x @ w))))
    return _program(model, n)


def _pymc() -> Any:
    import pymc
    import pytensor

    pytensor.config.floatX = "float32"
    return pymc


def _program(model: object, n: int) -> Program:
    pm = _pymc()
    within_memory(4 * n * n, "4 n^2")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    units = max(1, min(20, int(2e7 / (n * n))))
    with model:
        svgd = pm.SVGD(n_particles=n, jitter=0.1, random_seed=0)
        step = svgd.objective.step_function(obj_optimizer=pm.adam(learning_rate=STEP_SIZE), score=False)

    def run() -> None:
        for _ in range(units):
            step()

    return Program(run, units)
