"""Models: log densities with what one wants of them, small."""

from polystein.models.base import AbstractModel, Rows
from polystein.models.gaussian import Gaussian
from polystein.models.logistic import Logistic
from polystein.models.network import Network

__all__ = ["AbstractModel", "Gaussian", "Logistic", "Network", "Rows"]
