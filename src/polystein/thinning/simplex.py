r"""The least of a quadratic form over the simplex, by an interior point method.

    min 1/2 w'Uw,  sum w = 1, w >= 0;      at the optimum  Uw - y 1 = z >= 0  and  w z = 0

Newton's method on w z = mu with mu -> 0 (Mehrotra 1992). Every iterate is feasible, and w'z is its duality gap.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy import linalg

ITERATIONS = 100
NEAR = 0.995  # share of the way to the boundary that a step may go
NOTHING = 1e-11  # weights below this share of the largest are zero


def least_on_simplex(u: Float[np.ndarray, "n n"], *, relative: float = 1e-9) -> Float[np.ndarray, "n"]:
    """The weights that minimise w'Uw for a positive semi-definite U, in float64 on the host: O(n^3) a step, some 20 steps.

    **Arguments:** ``u``: U; ``relative``: stops where the duality gap is below this share of w'Uw.

    >>> import numpy as np
    >>> least_on_simplex(np.diag([1.0, 3.0])).round(6).tolist()
    [0.75, 0.25]
    """
    n = u.shape[0]
    u = np.asarray(u, np.float64)
    u = (u + u.T) / (2 * u.diagonal().mean())
    w = np.full(n, 1 / n)
    g = u @ w
    y = g.min() - max(g.std(), 1e-3 * abs(g).max(), 1e-12)
    for _ in range(ITERATIONS):
        z = g - y
        if w @ z <= relative * (w @ g):
            break
        solve = _factor(u, z / w)
        ones, toward = solve(np.ones(n)), solve(-z)
        dy = -toward.sum() / ones.sum()
        dw = toward + dy * ones
        dz = -z - z / w * dw
        mu = w @ z / n
        reach = lambda a, da: min(1.0, NEAR * float(np.min(np.where(da < 0, a / np.where(da < 0, -da, 1), np.inf))))
        sigma = ((w + reach(w, dw) * dw) @ (z + reach(z, dz) * dz) / n / mu) ** 3
        toward = solve(-z + (sigma * mu - dw * dz) / w)
        dy = -toward.sum() / ones.sum()
        dw = toward + dy * ones
        dg = u @ dw
        step = min(reach(w, dw), reach(z, dg - dy))
        w, y = w + step * dw, y + step * dy
        w /= w.sum()
        g = u @ w
        y = min(y, g.min() - 1e-300)
    w = np.where(w > NOTHING * w.max(), w, 0)
    return w / w.sum()


def _factor(u: np.ndarray, diagonal: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Solves (U + D) x = b by Cholesky; where rounding has made U indefinite, with the least ridge that works."""
    ridge = 0.0
    while True:
        try:
            factor = linalg.cho_factor(u + np.diag(diagonal + ridge), lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            ridge = max(10 * ridge, 1e-14)
        else:
            return lambda b: linalg.cho_solve(factor, b, check_finite=False)
