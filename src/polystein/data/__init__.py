"""Data: the paper's data sets, verified; splits; units of the training rows."""

from polystein.data.load import Damaged, Dataset, load, names
from polystein.data.splits import Split, Units, random_split, standard_splits

__all__ = ["Damaged", "Dataset", "Split", "Units", "load", "names", "random_split", "standard_splits"]
