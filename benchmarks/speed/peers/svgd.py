"""The package ``svgd`` (PyTorch) with its RBF kernel and median rule; it has steps of its own, no optimiser and no batches."""

from __future__ import annotations

from benchmarks.speed.peers.limits import within_memory
from benchmarks.speed.timing import Program

NAME = "svgd (PyTorch)"


def given_scores(n: int, d: int) -> Program:
    """s = -x."""
    import torch
    from svgd import sampler
    from svgd.distributions import Gaussian, TargetDistribution
    from svgd.kernels import RBF
    from svgd.kernels.parameters import HeuristicKP
    from svgd.lrs import ParameterLR

    within_memory(3 * n * n * d, "3 n^2 d")

    class Normal(TargetDistribution):
        def score(self, state: object) -> torch.Tensor:
            return -state.x

    units = max(1, min(20, int(1e8 / (n * n * d))))
    start = Gaussian(torch.zeros(d), torch.ones(d))
    found = sampler.SVGD(Normal(), start, RBF(HeuristicKP("median")), ParameterLR(torch.tensor(0.01)), target_is_score=True)

    def run() -> object:
        with torch.no_grad():
            return found.sample(n, units)[0].shape

    return Program(run, units)
