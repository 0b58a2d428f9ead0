"""Polystein: posteriors from particles, moved by many kernels whose weights are learned from their Stein discrepancies."""

from polystein import gof, thinning
from polystein._types import Points
from polystein.approximate import Nystrom, RandomBatch
from polystein.bijections import CorrelationCholesky, Interval, Ordered, Positive, Simplex, UnitInterval
from polystein.curvature import Fisher, Given, Hessian, Kronecker
from polystein.discrepancy import (
    Estimate,
    Incomplete,
    LinearTime,
    TwoBatch,
    U,
    V,
    ksd,
    max_mksd,
    mksd,
)
from polystein.infer import infer
from polystein.kernels import (
    IMQ,
    RBF,
    Bank,
    Cosine,
    DyadicLadder,
    Function,
    Laplace,
    Linear,
    Matern32,
    Matern52,
    Mixture,
    Polynomial,
    Product,
    QuantileLadder,
    RationalQuadratic,
    SmoothLaplace,
    Transformed,
)
from polystein.loop import Progress, RunFailed
from polystein.methods import MKSVGD, SVGD, Ensemble, FunctionSpace, Langevin, MatrixSVGD
from polystein.modelcheck import check_model
from polystein.pairs import Dense, Tiled
from polystein.posterior import Posterior, load
from polystein.quality import Snapshots, check, compare, convergence
from polystein.run import run
from polystein.target import Target
from polystein.thinning import recombine, stein_weights, thin

__all__ = [
    "IMQ",
    "MKSVGD",
    "RBF",
    "SVGD",
    "Bank",
    "CorrelationCholesky",
    "Cosine",
    "Dense",
    "DyadicLadder",
    "Ensemble",
    "Estimate",
    "Fisher",
    "Function",
    "FunctionSpace",
    "Given",
    "Hessian",
    "Incomplete",
    "Interval",
    "Kronecker",
    "Langevin",
    "Laplace",
    "Linear",
    "LinearTime",
    "Matern32",
    "Matern52",
    "MatrixSVGD",
    "Mixture",
    "Nystrom",
    "Ordered",
    "Points",
    "Polynomial",
    "Positive",
    "Posterior",
    "Product",
    "Progress",
    "QuantileLadder",
    "RandomBatch",
    "RationalQuadratic",
    "RunFailed",
    "Simplex",
    "SmoothLaplace",
    "Snapshots",
    "Target",
    "Tiled",
    "Transformed",
    "TwoBatch",
    "U",
    "UnitInterval",
    "V",
    "check",
    "check_model",
    "compare",
    "convergence",
    "gof",
    "infer",
    "ksd",
    "load",
    "max_mksd",
    "mksd",
    "recombine",
    "run",
    "stein_weights",
    "thin",
    "thinning",
]
__version__ = "0.1.0"
