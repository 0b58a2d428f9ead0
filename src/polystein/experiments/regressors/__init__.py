"""Recipes for regression, one file each: what the tables of the UCI experiment compare."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

from polystein.experiments.regressors.base import (
    AbstractRegressor,
    Predictive,
    Progress,
    Standardised,
    log_likelihood,
    rmse,
)

__all__ = ["AbstractRegressor", "Predictive", "Progress", "Standardised", "log_likelihood", "recipes", "rmse"]


def recipes() -> dict[str, type[AbstractRegressor]]:
    """Every recipe by its label, in order of label: the concrete subclasses with a label in the files of this folder.

    >>> all(issubclass(recipe, AbstractRegressor) for recipe in recipes().values())
    True
    """
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    found = [AbstractRegressor]
    for cls in found:
        found += [sub for sub in cls.__subclasses__() if sub not in found]
    mine = [cls for cls in found if cls.__module__.startswith(f"{__name__}.") and hasattr(cls, "label")]
    mine = [cls for cls in mine if not inspect.isabstract(cls)]
    return {cls.label: cls for cls in sorted(mine, key=lambda cls: cls.label)}
