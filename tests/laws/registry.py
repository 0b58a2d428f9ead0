"""The registries: every concrete class of the library under an abstract base, so that a new class meets all laws unasked."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from functools import partial
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

import polystein
from polystein.discrepancy import Incomplete

# Laws compile many small programs and run each a few times: half the time goes if the compiler does not optimise.
jit = partial(eqx.filter_jit, compiler_options={"xla_backend_optimization_level": "0"})

NOT_CORE = ("polystein.interop", "polystein.__main__", "polystein.cli")
for module in pkgutil.walk_packages(polystein.__path__, "polystein."):
    if not module.name.startswith(NOT_CORE):
        importlib.import_module(module.name)


def concrete(base: type) -> list[type]:
    """The classes under ``base`` that can be made and that their module calls by their name, in order of name."""
    found = {base}
    for cls in (frontier := [base]):
        fresh = set(cls.__subclasses__()) - found
        found |= fresh
        frontier += fresh
    return sorted(filter(_is_one, found), key=lambda cls: cls.__name__)


def _is_one(cls: type) -> bool:
    named = getattr(sys.modules.get(cls.__module__), cls.__qualname__, None) is cls
    return cls.__module__.startswith("polystein") and named and not inspect.isabstract(cls)


def over(base: type, *others: type, argument: str = "cls", only: Any = lambda cls: True) -> pytest.MarkDecorator:
    """Run a test once per concrete class of the bases."""
    classes = [cls for each in (base, *others) for cls in concrete(each) if only(cls)]
    return pytest.mark.parametrize(argument, classes, ids=lambda cls: cls.__name__)


def make(cls: type) -> Any:
    """An instance: every concrete class is valid with no arguments, but for the one that draws."""
    return cls(jax.random.key(0)) if cls is Incomplete else cls()


def varied(module: Any, seed: int) -> Any:
    """The same module with every floating hyper-parameter moved off its default, where an error in its power shows."""
    rng = np.random.default_rng(seed)

    def move(leaf: Any) -> Any:
        if not eqx.is_inexact_array(leaf):
            return leaf
        factor = rng.uniform(0.7, 1.6, leaf.shape).astype(leaf.dtype)
        return leaf * factor + (leaf == 0) * 0.3

    return jax.tree.map(move, module)
