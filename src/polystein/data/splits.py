"""Which rows are for training and which for testing, and units read off the training rows alone."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class Split(NamedTuple):
    """Row numbers for training and for testing."""

    train: Int[np.ndarray, "a"]
    test: Int[np.ndarray, "b"]


def standard_splits(n: int, count: int = 20) -> list[Split]:
    """The splits of n rows on which networks are compared on the UCI sets: 20, of 90 % and 10 %.

    One stream, ``numpy.random.RandomState(1)``; for each split ``choice(range(n), n, replace=False)``, of which the first
    floor(0.9 n + 0.5) are for training (Hernandez-Lobato & Adams 2015; Gal & Ghahramani 2016).

    >>> first = standard_splits(10)[0]
    >>> first.train.tolist(), first.test.tolist()
    ([2, 9, 6, 4, 0, 3, 1, 7, 8], [5])
    """
    rng = np.random.RandomState(1)
    return [_cut(rng.choice(range(n), n, replace=False), 0.1) for _ in range(count)]


def random_split(n: int, seed: int, *, test: float = 0.1) -> Split:
    """A random split of n rows by a seed, a share ``test`` of them for testing.

    >>> split = random_split(10, seed=0, test=0.2)
    >>> len(split.train), len(split.test)
    (8, 2)
    """
    if not 0 < test < 1:
        raise ValueError(f"test={test}; expected a share of the rows, between 0 and 1; try test=0.1")
    return _cut(np.random.default_rng(seed).permutation(n), test)


def _cut(order: np.ndarray, test: float) -> Split:
    train = math.floor((1 - test) * len(order) + 0.5)
    return Split(order[:train], order[train:])


class Units(NamedTuple):
    """z = (x - shift) / scale, column by column, as the training rows have it; a constant column keeps its scale.

    >>> train = np.array([[1.0, 5.0], [3.0, 5.0]])
    >>> Units.standard(train).into(train).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    >>> Units.interval(train).into(train + 2).tolist()
    [[1.0, 2.0], [2.0, 2.0]]
    """

    shift: Float[np.ndarray, "*p"]
    scale: Float[np.ndarray, "*p"]

    @staticmethod
    def standard(train: Float[np.ndarray, "N *p"]) -> Units:
        """Mean 0 and standard deviation 1 over the training rows."""
        return Units._of(np.mean(train, 0), np.std(train, 0))

    @staticmethod
    def interval(train: Float[np.ndarray, "N *p"]) -> Units:
        """From 0 to 1 over the training rows."""
        return Units._of(np.min(train, 0), np.ptp(train, 0))

    @staticmethod
    def _of(shift: np.ndarray | np.floating, scale: np.ndarray | np.floating) -> Units:
        return Units(np.asarray(shift), np.where(scale > 0, scale, 1.0))

    def into(self, x: Float[np.ndarray, "N *p"]) -> Float[np.ndarray, "N *p"]:
        """(x - shift) / scale."""
        return (x - self.shift) / self.scale

    def out(self, z: Float[np.ndarray, "N *p"]) -> Float[np.ndarray, "N *p"]:
        """shift + scale z, the way back."""
        return self.shift + self.scale * z
