"""Thresholds of scores against all possible thresholds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrave.mam._leave_one_out import best_threshold, predict_codes, sample_fractions

BALANCED = pytest.mark.parametrize("balanced", [False, True])


def right(scores, codes, counts, threshold):
    """What of the samples is predict_codes right."""
    return counts[predict_codes(scores - threshold) == codes].sum()


def table(n_classes, size=12):
    """Scores with ties, classes and weights of some samples; each class has one at least."""
    row = st.tuples(
        st.lists(st.integers(-4, 4), min_size=n_classes, max_size=n_classes),
        st.integers(0, n_classes - 1),
        st.sampled_from([1.0, 2.0, 0.5]),
    )
    return st.lists(row, max_size=size).map(
        lambda rows: [([k - 1] * n_classes, k, 1.0) for k in range(n_classes)] + rows
    )


def columns(rows):
    scores, codes, weights = zip(*rows, strict=True)
    return np.array(scores) / 4, np.array(codes), np.array(weights)


@given(table(2), st.booleans())
def test_no_threshold_between_two_classes_decides_more_right(rows, balanced):
    scores, codes, weights = columns(rows)
    scores = scores[:, :1]
    counts = sample_fractions(codes, weights, 2, balanced)
    threshold = best_threshold(scores, codes, counts)
    assert threshold.shape == (1,)
    values = np.unique(scores)
    thresholds = [values[0] - 1, *(values[1:] + values[:-1]) / 2, values[-1] + 1]
    best = max(right(scores, codes, counts, one) for one in thresholds)
    assert right(scores, codes, counts, threshold) == pytest.approx(best, abs=1e-12)


@given(st.sampled_from([3, 4]).flatmap(table), st.booleans())
def test_with_more_classes_thresholds_are_never_worse_than_none(rows, balanced):
    scores, codes, weights = columns(rows)
    counts = sample_fractions(codes, weights, scores.shape[1], balanced)
    threshold = best_threshold(scores, codes, counts)
    assert threshold.shape == (scores.shape[1],)
    found = right(scores, codes, counts, threshold)
    assert found >= right(scores, codes, counts, 0) - 1e-12
    # And no class can gain by an offset of its own, the others being fixed.
    for one in range(scores.shape[1]):
        for step in np.arange(-3, 3.01, 0.125) + 1 / 16:
            moved = threshold.copy()
            moved[one] += step
            assert right(scores, codes, counts, moved) <= found + 1e-9


@BALANCED
def test_three_classes_whose_scores_are_moved_are_separated_again(balanced):
    rng = np.random.default_rng(0)
    codes = np.arange(90) % 3
    scores = rng.uniform(0, 0.4, (90, 3))
    scores[np.arange(90), codes] += 0.5
    moved = scores + np.array([3.0, 0.0, -2.0])
    counts = sample_fractions(codes, np.ones(90), 3, balanced)
    assert right(moved, codes, counts, 0) < 0.5
    threshold = best_threshold(moved, codes, counts)
    assert right(moved, codes, counts, threshold) == pytest.approx(1)


def test_offsets_are_selected_again_after_the_others_were():
    """One round over the classes gets three of five right, the second four."""
    scores = np.array([[-2, 2, -1], [3, 1, -3], [0, -1, 1], [1, 1, 1], [3, -1, -4]], dtype=float)
    codes = np.array([2, 2, 1, 2, 0])
    counts = np.full(5, 0.2)
    assert right(scores, codes, counts, best_threshold(scores, codes, counts)) == pytest.approx(0.8)


def test_accuracy_and_balanced_accuracy_have_thresholds_of_their_own():
    """Nine of the first class, one of the second, in the middle of them."""
    scores = np.arange(10.0)[:, None]
    codes = (np.arange(10) == 6).astype(np.intp)
    accuracy, balanced = (
        best_threshold(scores, codes, sample_fractions(codes, np.ones(10), 2, kind))
        for kind in (False, True)
    )
    assert accuracy > 9
    assert 5 < balanced < 6


def test_weights_count_like_repeated_samples():
    rng = np.random.default_rng(0)
    scores, codes = rng.normal(size=(30, 1)), rng.integers(0, 2, 30)
    weights = rng.integers(1, 4, 30)
    for balanced in (False, True):
        weighted = best_threshold(
            scores, codes, sample_fractions(codes, weights.astype(float), 2, balanced)
        )
        again = np.repeat(np.arange(30), weights)
        counts = sample_fractions(codes[again], np.ones(len(again)), 2, balanced)
        assert best_threshold(scores[again], codes[again], counts) == pytest.approx(weighted)


def test_above_0_it_is_the_second_of_two_and_else_the_largest():
    assert predict_codes(np.array([[-1.0], [0.0], [1e-300]])).tolist() == [0, 0, 1]
    assert predict_codes(
        np.array([[1.0, 2.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 3.0]])
    ).tolist() == [
        1,
        0,
        2,
    ]


@BALANCED
@given(st.lists(st.tuples(st.integers(0, 3), st.floats(1e-6, 1e6)), min_size=1, max_size=20))
def test_fractions_of_all_samples_sum_to_1(balanced, rows):
    codes, weights = (np.array(column) for column in zip(*rows, strict=True))
    fractions = sample_fractions(codes, weights, 4, balanced)
    assert fractions.sum() == pytest.approx(1)
    assert fractions.min() > 0
    sums = np.bincount(codes, fractions, 4)
    there = np.unique(codes)
    if balanced:
        assert sums[there] == pytest.approx(1 / len(there))
    else:
        assert sums == pytest.approx(np.bincount(codes, weights, 4) / weights.sum())
