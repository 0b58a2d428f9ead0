"""SVGD in NumPy, written from its equations: RBF kernel, median rule over all pairs, matrix products, Adam."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.speed.peers.limits import within_memory
from benchmarks.speed.problems import BATCH, STEP_SIZE, Problem
from benchmarks.speed.timing import LeftOut, Program

NAME = "NumPy reference"


def given_scores(n: int, d: int) -> Program:
    """s = -x."""
    x = np.random.default_rng(0).standard_normal((n, d)).astype(np.float32)
    return _program(lambda x, step: -x, x)


def whole_step(problem: Problem, n: int) -> Program:
    """Scores of a batch, for all particles at once."""
    if problem.name != "logistic":
        raise LeftOut("its scores are written out for the logistic regression only")
    rows, targets = (np.asarray(a) for a in problem.rows)
    scale = len(targets) / BATCH

    def score(u: np.ndarray, step: int) -> np.ndarray:
        at = step * BATCH % len(targets)
        x, y = rows[at : at + BATCH], targets[at : at + BATCH]
        w, alpha = u[:, :-1], np.exp(u[:, -1:])
        slope = scale * (y - 1 / (1 + np.exp(-w @ x.T))) @ x - alpha * w
        last = 0.5 * w.shape[1] - 0.5 * alpha * np.sum(w * w, 1, keepdims=True) + 1 - 0.01 * alpha
        return np.concatenate([slope, last], 1)

    return _program(score, problem.start(n))


def phi(x: np.ndarray, s: np.ndarray) -> np.ndarray:
    """(1/n) sum_j [k(x_j, x_i) s_j + (2/h) (x_i - x_j) k(x_j, x_i)], h = med r^2 / log(n + 1)."""
    n = len(x)
    norms = np.sum(x * x, 1)
    r2 = np.maximum(norms[:, None] + norms[None] - 2 * x @ x.T, 0)
    h = np.median(r2) / np.log(n + 1)
    k = np.exp(-r2 / h)
    return (k @ s + 2 / h * (x * k.sum(1, keepdims=True) - k @ x)) / n


def _program(score: Callable[[np.ndarray, int], np.ndarray], start: np.ndarray) -> Program:
    n = len(start)
    within_memory(4 * n * n, "4 n^2")
    units = max(1, min(20, int(1e7 / (n * n))))

    def run() -> np.ndarray:
        x, mean, square = start, np.zeros_like(start), np.zeros_like(start)
        for step in range(units):
            velocity = phi(x, score(x, step))
            mean = 0.9 * mean + 0.1 * velocity
            square = 0.999 * square + 0.001 * velocity**2
            unbiased = mean / (1 - 0.9 ** (step + 1)), square / (1 - 0.999 ** (step + 1))
            x = (x + STEP_SIZE * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)).astype(start.dtype)
        return x

    return Program(run, units)
