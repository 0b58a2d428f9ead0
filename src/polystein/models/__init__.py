"""Models: log densities with what one wants of them, small."""

from polystein.models.gaussian import Gaussian

__all__ = ["Gaussian"]
