"""KeOps (PyTorch): the drift of one kernel of a fixed bandwidth as two symbolic sums over pairs, in compiled C++."""

from __future__ import annotations

import math

from benchmarks.speed.timing import LeftOut, Program

NAME = "KeOps, drift alone"


def given_scores(n: int, d: int) -> Program:
    """s = -x."""
    if d > 512:
        raise LeftOut("its generated code keeps whole rows in registers, which is not meant for d > 512")
    import pykeops
    import torch
    from pykeops.torch import Vi, Vj

    pykeops.set_verbose(False)
    start = torch.randn(n, d)
    h = 2 * d / math.log(n + 1)
    units = max(1, min(20, int(2e8 / (n * n * d))))
    row, col, score, one = Vi(0, d), Vj(1, d), Vj(2, d), 1 / h
    k = (-((row - col) ** 2).sum() * one).exp()
    drift = (k * (score + 2 * one * (row - col))).sum_reduction(axis=1)

    def run() -> torch.Tensor:
        x = start
        for _ in range(units):
            x = x + 1e-3 * drift(x, x, -x) / n
        return x.numpy()

    return Program(run, units)
