"""Kernels, banks of kernels, and rules that place them on particles."""

from polystein.kernels.bandwidth import (
    AbstractBandwidth,
    AbstractPlacement,
    BlackJAX,
    DyadicLadder,
    LiuWang,
    MatrixSVGDMedian,
    NumPyro,
    PyroPerDimension,
    QuantileLadder,
    kernel_of,
)
from polystein.kernels.bank import AbstractFamily, Alike, Bank, Mixture, Octaves, as_bank
from polystein.kernels.base import (
    AbstractInner,
    AbstractKernel,
    AbstractPairwise,
    AbstractPointwise,
    AbstractRadial,
    as_kernel,
    derivatives,
)
from polystein.kernels.inner import Cosine, Linear, Polynomial
from polystein.kernels.metric import Metric
from polystein.kernels.pointwise import Function, Product, Stretch, Transformed
from polystein.kernels.radial import IMQ, RBF, Laplace, Matern32, Matern52, RationalQuadratic, SmoothLaplace
from polystein.kernels.smoothness import check_kernels
from polystein.kernels.summand import Summand

__all__ = [
    "IMQ",
    "RBF",
    "AbstractBandwidth",
    "AbstractFamily",
    "AbstractInner",
    "AbstractKernel",
    "AbstractPairwise",
    "AbstractPlacement",
    "AbstractPointwise",
    "AbstractRadial",
    "Alike",
    "Bank",
    "BlackJAX",
    "Cosine",
    "DyadicLadder",
    "Function",
    "Laplace",
    "Linear",
    "LiuWang",
    "Matern32",
    "Matern52",
    "MatrixSVGDMedian",
    "Metric",
    "Mixture",
    "NumPyro",
    "Octaves",
    "Polynomial",
    "Product",
    "PyroPerDimension",
    "QuantileLadder",
    "RationalQuadratic",
    "SmoothLaplace",
    "Stretch",
    "Summand",
    "Transformed",
    "as_bank",
    "as_kernel",
    "check_kernels",
    "derivatives",
    "kernel_of",
]
