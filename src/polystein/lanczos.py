r"""Where a matrix too large to write down is far from the identity: Lanczos's basis, from products A v alone.

    A Q = Q T + remainder,   Q orthonormal, T tridiagonal;   T = Y diag(theta) Y',   A is nearly diag(theta) along Q Y

The extreme eigenvalues at both ends are found first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def lanczos(product: Callable[[np.ndarray], np.ndarray], start: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """``rank`` orthonormal directions (d, rank) and the curvature v'Av along each, A symmetric up to rounding.

    Fewer where the directions that ``start`` has a part in are exhausted before; their curvature is then exact.

    >>> directions, curvature = lanczos(lambda v: v * np.array([4.0, 1.0, 0.25]), np.ones(3), 3)
    >>> curvature.round(6).tolist()
    [0.25, 1.0, 4.0]
    """
    basis: list[np.ndarray] = []
    images: list[np.ndarray] = []
    v = start / np.linalg.norm(start)
    for _ in range(min(rank, len(start))):
        basis.append(v)
        images.append(product(v))
        q = np.array(basis)
        rest = images[-1]
        for _ in range(2):  # once is not enough for orthogonality to rounding
            rest = rest - q.T @ (q @ rest)
        size = np.linalg.norm(rest)
        if not size > 1e-6 * np.linalg.norm(images[-1]):
            break
        v = rest / size
    q = np.array(basis)
    inner = q @ np.array(images).T
    curvature, vectors = np.linalg.eigh((inner + inner.T) / 2)
    return q.T @ vectors, curvature
