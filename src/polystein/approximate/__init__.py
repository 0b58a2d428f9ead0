"""Sums over pairs in less than n^2 work, each with its error: for a great many particles."""

from polystein.approximate.nystrom import Nystrom
from polystein.approximate.random_batch import RandomBatch

__all__ = ["Nystrom", "RandomBatch"]
