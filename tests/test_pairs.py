"""Margins of samples and pairs; those of pairs against a table of all differences."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from margrave import pairs as pairs_module
from margrave.pairs import CrucialPairs, minimum_margin, sample_margins

# Few distinct values make ties; free floats make the roundings of a difference matter.
tied = st.lists(st.sampled_from([-1.0, -0.3, 0.1, 0.2, 0.3, 0.7, 1.0]), min_size=1, max_size=30)
free = st.lists(st.floats(-1, 1), min_size=1, max_size=30)
sides = st.tuples(tied, tied) | st.tuples(free, free)


def brute(positives, negatives):
    return np.subtract.outer(np.array(positives), np.array(negatives))


@given(sides)
def test_auc_counts_pairs_with_ties_half(both):
    positives, negatives = map(np.array, both)
    wins = (positives[:, None] > negatives).sum() + 0.5 * (positives[:, None] == negatives).sum()
    assert CrucialPairs(*both).auc == pytest.approx(wins / (len(positives) * len(negatives)))


def test_auc_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3_000)
    scores = np.round(y + rng.normal(size=3_000), 1)
    assert CrucialPairs.of(scores, y).auc == pytest.approx(roc_auc_score(y, scores), abs=1e-12)


@given(sides)
def test_rank_margin_largest_and_mean(both):
    table = brute(*both)
    pairs = CrucialPairs(*both)
    assert pairs.rank_margin == table.min()
    assert pairs.largest_margin == table.max()
    assert pairs.mean_margin == pytest.approx(table.mean(), abs=1e-12)
    assert pairs.n_pairs == table.size


@given(sides, st.data())
def test_cdf_is_exact_also_at_the_margins_themselves(both, data):
    table = brute(*both)
    points = [data.draw(st.sampled_from(table.ravel().tolist())), data.draw(st.floats(-2, 2))]
    expected = [(table <= t).mean() for t in points]
    np.testing.assert_allclose(CrucialPairs(*both).cdf(points), expected, rtol=1e-9)


@given(sides, st.floats(0, 1))
def test_quantile_is_the_smallest_margin_that_covers_the_fraction(both, fraction):
    margins = np.sort(brute(*both), axis=None)
    covered = np.arange(1, margins.size + 1) / margins.size >= fraction
    assert CrucialPairs(*both).quantile(fraction) == margins[covered][0]


@given(sides, st.floats(0, 1))
def test_quantile_by_narrowing_is_the_same(both, fraction):
    expected = CrucialPairs(*both).quantile(fraction)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs_module, "_SORT_BELOW", 0)
        patch.setattr(pairs_module, "_N_DRAWS", 4)
        assert CrucialPairs(*both).quantile(fraction) == expected


@pytest.mark.parametrize("decimals", [1, 16])
def test_quantile_at_a_size_that_narrows(decimals):
    rng = np.random.default_rng(1)
    positives = rng.normal(1, 1, 1_500).round(decimals)
    negatives = rng.normal(0, 1, 1_300).round(decimals)
    fractions = [0, 1e-6, 0.05, 0.5, 0.999, 1]
    expected = np.quantile(brute(positives, negatives), fractions, method="inverted_cdf")
    assert CrucialPairs(positives, negatives).quantile(fractions).tolist() == expected.tolist()


@given(sides, st.floats(-2, 2))
def test_hinge_sum_and_counts(both, rho):
    table = brute(*both)
    hinge = CrucialPairs(*both).hinge(rho)
    assert hinge.total == pytest.approx(np.maximum(rho - table, 0).sum(), abs=1e-9)
    assert hinge.positive_counts.tolist() == (table < rho).sum(axis=1).tolist()
    assert hinge.negative_counts.tolist() == (table < rho).sum(axis=0).tolist()
    assert hinge.n_active == (table < rho).sum()


def test_the_arrays_of_the_caller_are_copied():
    positives, negatives = np.array([0.3, 0.1]), np.array([0.2, -0.5])
    pairs = CrucialPairs(positives, negatives)
    pairs.hinge(0.1), pairs.quantile(0.5), pairs.auc
    assert positives.tolist() == [0.3, 0.1]
    assert negatives.tolist() == [0.2, -0.5]
    positives[1] = -5
    assert pairs.rank_margin == 0.1 - 0.2
    with pytest.raises(ValueError, match="read-only"):
        pairs.positives[0] = 1


@pytest.mark.parametrize("rho", [1.0, np.nextafter(1, 2)])
def test_margins_that_round_to_one_value_are_bisected_not_walked(rho):
    """Every negative is too small to change 1 - s, and each is a run of its own."""
    calls = []

    def close(margins, margin):
        calls.append(len(margins))
        return np.less(margins, margin)

    rng = np.random.default_rng(0)
    positives, negatives = np.ones(300), 10 ** rng.uniform(-300, -17, 300)
    pairs = CrucialPairs(positives, negatives)
    first = pairs._first(rho, close)
    assert first.tolist() == (~(brute(positives, negatives) < rho)).sum(axis=1).tolist()
    assert len(calls) <= 2 + 10


def test_hinge_sums_of_large_scores_do_not_cancel():
    rng = np.random.default_rng(0)
    positives, negatives = 1e9 + rng.normal(1, 1, 50), 1e9 + rng.normal(0, 1, 50)
    expected = np.maximum(0.5 - brute(positives, negatives), 0).sum()
    assert CrucialPairs(positives, negatives).hinge(0.5).total == pytest.approx(expected, rel=1e-9)


def test_hinge_sums_are_exact_with_an_outlier():
    assert CrucialPairs([0.5, 0.6, 1e17], [0.4, 0.7]).hinge(0.2).total == pytest.approx(0.8)


def test_printing_does_not_print_the_scores():
    text = repr(CrucialPairs([1.25, 2.25], [0.25]))
    assert text.startswith("CrucialPairs(")
    assert re.findall(r"[\d.]+", text) == ["2", "1"]  # how many there are of each class


def test_of_splits_by_label_of_any_type():
    scores = [0.2, 0.9, 0.1, 0.5]
    assert CrucialPairs.of(scores, [1, 2, 1, 2]).auc == 1.0
    assert CrucialPairs.of(scores, [False, True, False, True]).auc == 1.0
    assert CrucialPairs.of(scores, ["a", "b", "a", "c"], positive="a").auc == 0.0


def test_sample_margins_of_a_worked_example():
    """Scores 0.5, -0.25 of positives and 0.75, -1 of negatives: the second and third are wrong."""
    scores, y = [0.5, -0.25, 0.75, -1.0], [1, 1, -1, -1]
    assert sample_margins(scores, y).tolist() == [0.5, -0.25, -0.75, 1.0]
    assert minimum_margin(scores, y) == -0.75
    assert CrucialPairs.of(scores, y).rank_margin == -1.0  # -0.25 - 0.75


def test_negative_sample_margins_with_a_positive_rank_margin():
    scores, y = [0.75, 0.5, 0.25, -0.5], ["spam", "spam", "ham", "ham"]
    assert sample_margins(scores, y).tolist() == [0.75, 0.5, -0.25, 0.5]
    assert minimum_margin(scores, y) == -0.25
    assert CrucialPairs.of(scores, y).rank_margin == 0.25


@given(sides)
def test_sample_margins_multiply_scores_by_the_sign_of_the_class(both):
    positives, negatives = both
    scores, y = positives + negatives, [1] * len(positives) + [-1] * len(negatives)
    expected = [label * score for score, label in zip(scores, y, strict=True)]
    assert sample_margins(scores, y).tolist() == expected
    assert minimum_margin(scores, y) == min(expected)
    swapped = sample_margins([-score for score in scores], y, positive=-1)
    assert swapped.tolist() == expected


@given(sides)
def test_rank_margin_is_twice_the_minimum_margin_of_the_best_threshold(both):
    positives, negatives = map(np.array, both)
    y = np.repeat([1, 0], [len(positives), len(negatives)])
    rank_margin = CrucialPairs(*both).rank_margin
    halves = np.concatenate([positives, negatives]) / 2  # moved scores stay in [-1, 1]
    best = (positives.min() + negatives.max()) / 4
    assert 2 * minimum_margin(halves, y) <= rank_margin / 2 + 1e-12
    assert 2 * minimum_margin(halves - best, y) == pytest.approx(rank_margin / 2, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: sample_margins([0.1, 1.5], [0, 1]), r"sample_margins.*\bscores\b.*1\.5"),
        (lambda: minimum_margin([0.1, np.nan], [0, 1]), r"\bscores\b.*nan"),
        (lambda: sample_margins([0.1, 0.2], [1, 1]), r"sample_margins.*\by\b.*\bpositive="),
        (lambda: sample_margins([0.1], [0, 1]), r"sample_margins.*\bscores\b.*\(1,\)"),
        (lambda: CrucialPairs([], [1.0]), r"\bpositives\b.*\(0,\)"),
        (lambda: CrucialPairs([0.1], [np.nan]), r"\bnegatives\b"),
        (lambda: CrucialPairs.of([0.1, 0.2], [1, 1]), r"\by\b.*\bpositive=.*\b1: 1\b"),
        (
            lambda: CrucialPairs.of([0.1, 0.2, 0.3], [1, 0, np.nan], positive=1),
            r"CrucialPairs\.of.*\by\b",
        ),
        (
            lambda: CrucialPairs.of([[0.1, 0.2]], [1, 0]),
            r"\bscores\b.*\(1, 2\).*\by\b.*\(2,\)",
        ),
        (lambda: CrucialPairs.of([0.1, 0.2], [0, 1], positive=7), r"\b7\b.*\by\b"),
        (lambda: CrucialPairs([1.0], [0.0]).quantile(1.5), r"CrucialPairs\.quantile.*1\.5"),
        (lambda: CrucialPairs([1.0], [0.0]).cdf([np.nan]), r"CrucialPairs\.cdf.*NaN"),
        (lambda: CrucialPairs([1.0], [0.0]).hinge(np.inf), r"CrucialPairs\.hinge.*\brho\b.*inf"),
    ],
)
def test_bad_input_names_what_is_wrong(call, named):
    with pytest.raises(ValueError, match=named):
        call()
