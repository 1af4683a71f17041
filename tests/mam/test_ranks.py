"""Ranks: against all pairs, against midranks, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from margrave.mam._ranker import Levels, RankedSamples, kendall, rank_transform

values = st.lists(st.integers(-3, 3), min_size=1, max_size=12)
numbers = st.floats(-1e300, 1e300)
weights = st.integers(0, 3).map(float) | st.floats(0.01, 100)


def by_pairs(y, s=None):
    """(21), its sign corrected, with a sign for every pair."""
    y = np.asarray(y)
    signs = (y[:, None] > y).astype(float) - (y[:, None] < y)
    return signs @ (np.ones(len(y)) if s is None else np.asarray(s, dtype=float))


@given(values | st.lists(numbers, min_size=1, max_size=12))
def test_ranks_are_sums_over_pairs_and_twice_the_midranks(y):
    ranks = rank_transform(y)
    np.testing.assert_array_equal(ranks, by_pairs(y))
    np.testing.assert_array_equal(ranks, 2 * rankdata(y) - len(y) - 1)


@given(st.lists(st.tuples(st.integers(-3, 3), weights), min_size=1, max_size=12))
def test_weighted_ranks_are_weighted_sums_over_pairs(pairs):
    y, s = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    if not s.any():
        s[0] = 1.0
    ranks = rank_transform(y, s)
    np.testing.assert_allclose(ranks, by_pairs(y, s), atol=1e-12 * s.sum())
    assert abs(s @ ranks) <= 1e-12 * s.sum() ** 2


def test_weights_are_repetitions():
    y, s = np.array([3, 1, 2, 1, 5]), np.array([2, 1, 3, 1, 0])
    repeated = rank_transform(np.repeat(y, s))
    np.testing.assert_array_equal(np.repeat(rank_transform(y, s), s), repeated)


def test_the_larger_of_two_ranks_higher():
    # (21) as printed, Σ_j sign(y_j − y_i), would be (1, −1).
    np.testing.assert_array_equal(rank_transform([1, 2]), [-1, 1])


@pytest.mark.parametrize(
    "y",
    [
        [2**60 + 1, 2**60, 2**60 + 2],  # the same as floats
        np.array([1.0, -1e308, 1e308]),  # the difference overflows
        pd.Series([5, 3, 9]),
        np.array([1, 0, 3], dtype=object),
    ],
)
def test_only_the_order_counts(y):
    np.testing.assert_array_equal(rank_transform(y), [0, -2, 2])


def test_booleans_have_an_order():
    np.testing.assert_array_equal(rank_transform([True, False, True]), [1, -2, 1])


def test_levels_of_sorted_values():
    levels = Levels.of(np.array([2.0, 1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(levels.order[[0, 3]], [1, 3])
    np.testing.assert_array_equal(levels.starts, [0, 1, 3])
    np.testing.assert_array_equal(levels.sizes, [1, 2, 1])
    np.testing.assert_array_equal(levels.to_samples(np.array([7, 8, 9])), [8, 7, 8, 9])


def test_only_values_with_a_weight_are_levels():
    y = np.array([1, 2, 2, 3])
    assert RankedSamples.of(y, None).n_levels == 3
    assert RankedSamples.of(y, np.array([1.0, 0.0, 2.0, 0.0])).n_levels == 2


def test_kendall_is_0_where_it_is_not_defined():
    assert kendall(np.array([1, 2, 3]), np.zeros(3)) == 0
    assert kendall(np.array([1]), np.array([1.0])) == 0
    assert kendall(np.array([1, 2, 3]), np.array([3.0, 2, 1])) == -1


@pytest.mark.parametrize(
    ("y", "sample_weight", "match"),
    [
        ([[1, 2]], None, r"\by\b.*\(1, 2\)"),
        ([1, 2], [1], r"sample_weight.*\(1,\)"),
        ([1, 2], [1, -1], "sample_weight.*-1"),
        ([1, np.nan], None, r"\by\b.*NaN"),
        (["low", "high"], None, "numeric"),  # scikit-learn's words
    ],
)
def test_what_is_refused(y, sample_weight, match):
    with pytest.raises(ValueError, match=match):
        rank_transform(y, sample_weight)
