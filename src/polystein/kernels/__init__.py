"""Kernels, banks of kernels, and rules that place them on particles."""

from polystein.kernels.bandwidth import (
    AbstractBandwidth,
    AbstractPlacement,
    BlackJAX,
    DyadicLadder,
    LiuWang,
    MatrixSVGD,
    NumPyro,
    PyroPerDimension,
    QuantileLadder,
)
from polystein.kernels.bank import AbstractFamily, Alike, Bank, Mixture, Octaves
from polystein.kernels.base import (
    AbstractInner,
    AbstractKernel,
    AbstractPairwise,
    AbstractPointwise,
    AbstractRadial,
    derivatives,
)
from polystein.kernels.inner import Linear, Polynomial
from polystein.kernels.pointwise import Function, Product, Stretch, Transformed
from polystein.kernels.radial import IMQ, RBF, Laplace, Matern32, Matern52, RationalQuadratic, SmoothLaplace

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
    "DyadicLadder",
    "Function",
    "Laplace",
    "Linear",
    "LiuWang",
    "Matern32",
    "Matern52",
    "MatrixSVGD",
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
    "Transformed",
    "derivatives",
]
