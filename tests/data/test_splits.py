"""Splits: the standard ones row for row, random ones by seed; units that look at the training rows alone."""

from __future__ import annotations

import numpy as np
import pytest

from polystein.data import Units, random_split, standard_splits


@pytest.mark.parametrize(("n", "train"), [(506, 455), (9568, 8611), (1030, 927), (1599, 1439), (308, 277), (5, 5)])
def test_standard_splits_have_the_published_sizes(n, train):
    splits = standard_splits(n, 2)
    assert [len(split.train) for split in splits] == [train] * 2
    for split in splits:
        assert sorted([*split.train, *split.test]) == list(range(n))


def test_standard_splits_are_one_stream():
    """Each split depends on those before it having been drawn."""
    rng = np.random.RandomState(1)
    orders = [rng.choice(range(308), 308, replace=False) for _ in range(20)]
    splits = standard_splits(308)
    assert len(splits) == 20
    for order, split in zip(orders, splits, strict=True):
        np.testing.assert_array_equal(np.concatenate(split), order)
    assert not np.array_equal(splits[0].test, splits[1].test)


def test_random_splits_are_those_of_their_seed():
    one, same, other = (random_split(100, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.test, same.test)
    assert not np.array_equal(one.test, other.test)
    assert sorted(np.concatenate(one)) == list(range(100))
    assert len(random_split(581012, 0, test=0.2).test) == 116202
    with pytest.raises(ValueError, match=r"test=1.5; expected a share.*try test=0.1"):
        random_split(10, 0, test=1.5)


def test_units_see_training_rows_only(rng):
    train, test = rng.normal(3, 2, (50, 4)), rng.normal(-5, 9, (20, 4))
    standard, interval = Units.standard(train), Units.interval(train)
    np.testing.assert_allclose(standard.into(train).mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(standard.into(train).std(0), 1)
    assert interval.into(train).min() == 0
    assert interval.into(train).max() == 1
    assert interval.into(test).min() < 0  # what training did not see may lie outside
    np.testing.assert_allclose(standard.out(standard.into(test)), test)
    np.testing.assert_allclose(Units.standard(train[:, 0]).into(train[:, 0]), standard.into(train)[:, 0])
