"""Thresholds of a score: between any two numbers, and the fairest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrave.confusion import balanced_threshold, midpoint
from margrave.members import RankBoostClassifier

rows = st.lists(
    st.tuples(st.integers(-4, 4), st.booleans(), st.sampled_from([1.0, 2.0, 0.5])), max_size=12
).map(lambda some: [(0, True, 1.0), (1, False, 1.0), *some])


def shares(positive, weight):
    """Weights of either class, of sum 1."""
    return [np.where(of, weight / weight[of].sum(), 0.0) for of in (positive, ~positive)]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1.0, np.nextafter(1, 2)),
        (-1.7e308, 1.7e308),
        (-5e-324, 0.0),
        (0.0, 5e-324),
        (5e-324, 1e-323),
    ],
)
def test_thresholds_tell_neighbouring_numbers_apart(low, high):
    assert low <= midpoint(low, high) < high
    model = RankBoostClassifier().fit([[low], [high]], [0, 1])
    assert model.predict([[low], [high]]).tolist() == [0, 1]


@given(rows)
def test_no_threshold_has_a_larger_balanced_accuracy(table):
    scores, positive, weight = (np.array(column) for column in zip(*table, strict=True))
    scores = scores / 4

    def accuracy(threshold):
        right = (scores > threshold) == positive
        return np.mean(
            [weight[of & right].sum() / weight[of].sum() for of in (positive, ~positive)]
        )

    threshold = balanced_threshold(scores, *shares(positive, weight))
    ordered = np.unique(scores)
    thresholds = [ordered[0] - 1, *(ordered[1:] + ordered[:-1]) / 2, ordered[-1] + 1]
    best = max(map(accuracy, thresholds))
    assert accuracy(threshold) == pytest.approx(best)
    # It is in the middle of a gap, the widest of those that are as good.
    widths = dict(zip(thresholds, [0, *np.diff(ordered), 0], strict=True))
    assert threshold in widths
    assert widths[threshold] == max(
        widths[one] for one in thresholds if accuracy(one) > best - 1e-9
    )


@pytest.mark.parametrize(
    ("scores", "threshold"), [([-0.9, -0.8, 0.0, 0.2], 0.1), ([-0.9, -0.3, 0.0, 0.2], -0.6)]
)
def test_the_threshold_is_in_the_widest_gap_worked_by_hand(scores, threshold):
    positive = np.array([False, True, False, True])  # the first and the third gap have 3/4
    found = balanced_threshold(np.array(scores), *shares(positive, np.ones(4)))
    assert found == pytest.approx(threshold)
