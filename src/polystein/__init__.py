"""Polystein: posteriors from particles, moved by many kernels whose weights are learned from their Stein discrepancies."""

from polystein._types import Points
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
from polystein.kernels import (
    IMQ,
    RBF,
    Bank,
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
from polystein.methods import MKSVGD, SVGD
from polystein.pairs import Dense, Tiled
from polystein.posterior import Posterior
from polystein.run import run
from polystein.target import Target

__all__ = [
    "IMQ",
    "MKSVGD",
    "RBF",
    "SVGD",
    "Bank",
    "Dense",
    "DyadicLadder",
    "Estimate",
    "Function",
    "Incomplete",
    "Laplace",
    "Linear",
    "LinearTime",
    "Matern32",
    "Matern52",
    "Mixture",
    "Points",
    "Polynomial",
    "Posterior",
    "Product",
    "QuantileLadder",
    "RationalQuadratic",
    "SmoothLaplace",
    "Target",
    "Tiled",
    "Transformed",
    "TwoBatch",
    "U",
    "V",
    "ksd",
    "max_mksd",
    "mksd",
    "run",
]
__version__ = "0.1.0"
