"""Methods: vector fields on particles, one file each."""

from polystein.methods.base import AbstractMethod, Swarm
from polystein.methods.ensemble import Ensemble
from polystein.methods.functionspace import FunctionSpace
from polystein.methods.langevin import Langevin
from polystein.methods.matrix import MatrixSVGD, Preconditioned
from polystein.methods.mksvgd import MKSVGD
from polystein.methods.svgd import SVGD

__all__ = ["MKSVGD", "SVGD", "AbstractMethod", "Ensemble", "FunctionSpace", "Langevin", "MatrixSVGD", "Preconditioned", "Swarm"]
