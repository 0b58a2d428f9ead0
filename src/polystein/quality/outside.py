"""What others' samplers give, as arrays by name: ArviZ objects, xarray data sets, dicts and trees of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def arrays_of(draws: Any, variables: Sequence[str] | None, by_chain: bool | None) -> tuple[Any, bool | None]:
    """The draws as arrays, by name where they have names; and whether they begin with (chains, draws), where that is known."""
    group = getattr(draws, "posterior", None)
    if group is not None and hasattr(group, "data_vars"):
        draws = group
    if hasattr(draws, "data_vars"):
        draws, by_chain = of_dataset(draws), True
    if isinstance(draws, Mapping):
        draws = chosen(draws, variables)
        for name, a in draws.items():
            if not isinstance(a, Mapping | list | tuple):
                _refuse_discrete(name, np.asarray(a))
    elif variables is not None:
        raise ValueError(
            f"variables={list(variables)} of draws without names; expected a dict of arrays, or an ArviZ object; leave it out"
        )
    elif isinstance(draws, np.ndarray | list) or hasattr(draws, "__array__"):
        draws = np.asarray(draws)
        _refuse_discrete("draws", draws)
        if draws.ndim not in (1, 2, 3) or 0 in draws.shape:
            raise ValueError(
                f"draws of shape {draws.shape}; expected (draws, numbers) or (chains, draws, numbers), none empty; reshape them"
            )
        draws = draws[:, None] if draws.ndim == 1 else draws
    return draws, by_chain


def of_dataset(group: Any) -> dict[str, np.ndarray]:
    """The variables of an xarray Dataset with dimensions (chain, draw), these first."""
    found = {}
    for name, a in group.data_vars.items():
        if "draw" not in a.dims:
            raise ValueError(
                f"{name} has dimensions {a.dims}; expected ('chain', 'draw', ...), as ArviZ writes them; leave it out with "
                "variables=, on the command line --variables"
            )
        a = a if "chain" in a.dims else a.expand_dims("chain")
        found[str(name)] = np.asarray(a.transpose("chain", "draw", ...))
    return found


def chosen(draws: Mapping[str, Any], variables: Sequence[str] | None) -> dict[str, Any]:
    """The variables that were asked for, in that order; all where none were named."""
    if variables is not None:
        unknown = [name for name in variables if name not in draws]
        if unknown:
            raise ValueError(f"variables {unknown} are not among the draws; expected some of {list(draws)}; check the spelling")
        draws = {name: draws[name] for name in variables}
    if not draws:
        raise ValueError("the draws hold no variable; expected at least one array; check what was saved")
    return dict(draws)


def _refuse_discrete(name: str, a: np.ndarray) -> None:
    if a.dtype.kind != "f":
        raise TypeError(
            f"{name} has dtype {a.dtype}; expected floats, for scores are slopes along real numbers; leave out what is "
            "discrete with variables=, on the command line --variables, or convert with .astype(float)"
        )
