"""Methods: vector fields on particles, one file each."""

from polystein.methods.base import AbstractMethod, Swarm
from polystein.methods.ensemble import Ensemble
from polystein.methods.mksvgd import MKSVGD
from polystein.methods.svgd import SVGD

__all__ = ["MKSVGD", "SVGD", "AbstractMethod", "Ensemble", "Swarm"]
