"""A target and bijections by their names on a command line: module:attribute, sigma=positive."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from polystein.bijections import (
    AbstractBijection,
    CorrelationCholesky,
    Interval,
    Ordered,
    Positive,
    Simplex,
    UnitInterval,
)
from polystein.target import Target

BIJECTIONS: dict[str, Callable[[], AbstractBijection]] = {
    "positive": Positive,
    "unit": UnitInterval,
    "simplex": Simplex,
    "ordered": Ordered,
    "correlation": CorrelationCholesky,
}


def target_of(name: str) -> Any:
    """The target or log density that ``module:attribute`` names; modules of the current folder are found.

    A function without arguments that returns a ``Target`` is called.
    """
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        raise ValueError(
            f"{name!r} names no target; expected module:attribute, such as model:log_density for log_density of model.py"
        )
    module_name = module_name.removesuffix(".py").replace("/", ".")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not (module_name == missing.name or module_name.startswith(f"{missing.name}.")):
            raise ImportError(
                f"{module_name} imports {missing.name}, which is not installed; expected a module that imports; install it"
            ) from missing
        beside = sorted(file.stem for file in Path.cwd().glob("*.py"))
        raise ImportError(
            f"no module {module_name} in {here} or among what is installed; expected a file {module_name}.py; "
            f"{'there are ' + ', '.join(beside[:8]) if beside else 'go to the folder of the model first'}"
        ) from missing
    except Exception as wrong:  # whatever a user's module raises
        raise ImportError(
            f"{module_name} fails when it is imported ({type(wrong).__name__}: {wrong}); expected a module that imports; "
            f"try python -c 'import {module_name}'"
        ) from wrong
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            public = [each for each in vars(module) if not each.startswith("_") and callable(getattr(module, each))]
            raise AttributeError(
                f"{module_name} has no {attribute}; expected the name of a log density or a Target; "
                f"it has {', '.join(public[:8]) or 'no function'}"
            )
        found = getattr(found, part)
    return _called(name, found)


def _called(name: str, found: Any) -> Any:
    if isinstance(found, Target):
        return found
    if not callable(found) or isinstance(found, type):
        raise TypeError(f"{name} is a {type(found).__name__}; expected a log density or a Target; name a function")
    try:
        alone = not inspect.signature(found).parameters
    except (TypeError, ValueError):
        alone = False
    if not alone:
        return found
    made = found()
    if not isinstance(made, Target) and not callable(made):
        raise TypeError(
            f"{name}() returned a {type(made).__name__}; expected a function of the parameters, or one that makes a Target; "
            "give it an argument"
        )
    return made


def bijections_of(words: Sequence[str]) -> dict[str, AbstractBijection] | None:
    """Bijections by parameter from words like sigma=positive; None for none.

    >>> bijections_of(["p=unit", "x=interval:0:2.5"])
    {'p': UnitInterval(), 'x': Interval(low=0.0, high=2.5)}
    """
    found = {}
    for word in words:
        name, equals, kind = word.partition("=")
        kind, *edges = kind.split(":")
        try:
            if not equals or not name:
                raise KeyError
            if kind == "interval":
                low, high = map(float, edges)
                found[name] = Interval(low, high)
            else:
                if edges:
                    raise KeyError
                found[name] = BIJECTIONS[kind]()
        except (KeyError, ValueError) as wrong:
            detail = f" ({wrong})" if isinstance(wrong, ValueError) else ""
            raise ValueError(
                f"{word!r} names no bijection{detail}; expected NAME=KIND, KIND one of {', '.join(BIJECTIONS)}, "
                "interval:LOW:HIGH; write sigma=positive, for example"
            ) from None
    return found or None
