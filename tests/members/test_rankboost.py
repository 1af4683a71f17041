"""RankBoost: hand-worked rounds, brute force over all pairs, limits and degenerate data."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs, make_classification
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from margrave.members import RankBoostClassifier, Ranker
from margrave.members._one_vs_rest import normalise
from margrave.members._rankboost import (
    MAX_ALPHA,
    SortedFeatures,
    largest_agreements,
    sum_rankers,
)

TIE = 1e-9


@dataclass
class Pairs:
    """The result of RankBoost by its definition, with a weight for every pair."""

    rankers: list
    weights: np.ndarray  # after the last round, of shape (positives, negatives)
    losses: list  # Z of each round
    agreements: list  # r of each round


def by_pairs(X, y, n_rounds, alpha, sample_weight=None):
    """All pairs, all thresholds: N⁺ · N⁻ weights and a loop."""
    own = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    P, N = X[y == 1], X[y == 0]
    D = np.outer(own[y == 1], own[y == 0])
    D /= D.sum()
    stumps = []
    for j in range(X.shape[1]):
        values = np.unique(X[:, j])
        stumps += [(j, float(low + high) / 2) for low, high in pairwise(values)]
    found = Pairs([], D, [], [])
    for _ in range(n_rounds):
        # +1 for a pair in the right order, 0 for a tie, -1 for the wrong order.
        orders = [(P[:, None, j] > t) * 1 - (N[None, :, j] > t) * 1 for j, t in stumps]
        r = np.array([(found.weights * order).sum() for order in orders])
        if not len(r) or np.abs(r).max() <= TIE:
            break
        best = int(np.argmax(np.abs(r) >= np.abs(r).max() - TIE))
        order = orders[best]
        right, wrong = (found.weights[order == sign].sum() for sign in (1, -1))
        if alpha == "bound":
            right, wrong = np.clip([1 + r[best], 1 - r[best]], 0, 2)  # sums of 1 are not exact
        with np.errstate(divide="ignore"):
            weight = float(np.clip(0.5 * np.log(right / wrong), -MAX_ALPHA, MAX_ALPHA))
        found.rankers.append(Ranker(*stumps[best], weight))
        moved = found.weights * np.exp(-weight * order)
        found.losses.append(moved.sum())
        found.agreements.append(r[best])
        found.weights = moved / moved.sum()
        if (order == np.sign(r[best])).all():
            break
    return found


def assert_same_rankers(ours, theirs):
    assert [one[:2] for one in map(plain, ours)] == [one[:2] for one in map(plain, theirs)]
    np.testing.assert_allclose(
        [one.weight for one in ours], [one.weight for one in theirs], rtol=1e-6, atol=1e-9
    )


def plain(ranker):
    return ranker.feature, ranker.threshold, ranker.weight


@st.composite
def tied_data(draw):
    """Few samples on a grid of few values, so that ties and separable data are common."""
    n, d = draw(st.integers(2, 12)), draw(st.integers(1, 3))
    X = draw(st.lists(st.lists(st.integers(0, 4), min_size=d, max_size=d), min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n).filter(lambda y: 0 < sum(y) < n))
    weights = draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    return np.array(X, dtype=float), np.array(y), np.array(weights, dtype=float)


alphas = st.sampled_from(["bound", "exact"])


@given(tied_data(), alphas)
def test_round_for_round_as_with_a_weight_for_every_pair(data, alpha):
    X, y, weights = data
    model = RankBoostClassifier(8, alpha=alpha).fit(X, y, weights)
    pairs = by_pairs(X, y, 8, alpha, weights)
    assert_same_rankers(model.rankers_[0], pairs.rankers)
    assert model.n_iter_.tolist() == [len(pairs.rankers)]
    one_by_one = sum(
        (one.weight * (X[:, one.feature] > one.threshold) for one in pairs.rankers),
        np.zeros(len(X)),
    )
    np.testing.assert_allclose(
        model.decision_function(X), one_by_one - model.threshold_, rtol=1e-6, atol=1e-8
    )


@given(tied_data(), alphas)
def test_the_weights_of_the_pairs_factorise(data, alpha):
    X, y, weights = data
    model = RankBoostClassifier(6, alpha=alpha).fit(X, y, weights)
    scores = sum_rankers(X, model.rankers_[0])
    u = normalise((weights * np.exp(-scores))[y == 1])
    v = normalise((weights * np.exp(scores))[y == 0])
    expected = by_pairs(X, y, 6, alpha, weights).weights
    np.testing.assert_allclose(np.outer(u, v), expected, rtol=1e-5, atol=1e-12)


@given(tied_data(), alphas)
def test_the_losses_bound_the_fraction_of_misordered_pairs(data, alpha):
    X, y, _ = data
    model = RankBoostClassifier(8, alpha=alpha).fit(X, y)
    pairs = by_pairs(X, y, 8, alpha)
    scores = sum_rankers(X, model.rankers_[0])
    margins = scores[y == 1][:, None] - scores[y == 0]
    # The product of all Z is the mean of exp(-margin), and that is at least 1 for a wrong pair.
    np.testing.assert_allclose(np.exp(-margins).mean(), np.prod(pairs.losses), rtol=1e-6)
    assert (margins < -TIE).mean() <= np.prod(pairs.losses) + TIE
    # A round with agreement r lowers the loss by about r², of which floats may show nothing.
    shown = np.square(pairs.agreements) > np.finfo(float).eps
    losses = np.array(pairs.losses)
    assert (losses[shown] < 1).all()
    assert (losses <= 1 + 1e-12).all()  # they are sums, rounded
    if alpha == "bound":
        uncapped = [
            loss <= np.sqrt(1 - r**2) + TIE
            for loss, r, one in zip(pairs.losses, pairs.agreements, pairs.rankers, strict=True)
            if abs(one.weight) < MAX_ALPHA
        ]
        assert all(uncapped)


def test_the_exact_weight_minimises_the_loss_of_a_round():
    X, y = make_classification(60, 4, flip_y=0.2, random_state=0)
    ranker = RankBoostClassifier(1, alpha="exact").fit(X, y).rankers_[0][0]
    above = X[:, ranker.feature] > ranker.threshold
    order = above[y == 1][:, None] * 1 - above[y == 0] * 1

    def loss(alpha):
        return np.exp(-alpha * order).mean()

    bound = RankBoostClassifier(1).fit(X, y).rankers_[0][0]
    assert (bound.feature, bound.threshold) == (ranker.feature, ranker.threshold)
    near = [ranker.weight - 0.01, ranker.weight + 0.01, bound.weight]
    assert all(loss(ranker.weight) < loss(other) for other in near)


@pytest.mark.parametrize("alpha", ["bound", "exact"])
def test_many_rounds_and_features_as_with_all_pairs(alpha):
    """Features that cannot win a round are skipped; here most of them in most rounds."""
    X, y = make_classification(80, 12, n_informative=4, flip_y=0.1, random_state=1)
    X = X.round(1)
    model = RankBoostClassifier(60, alpha=alpha).fit(X, y)
    pairs = by_pairs(X, y, 60, alpha)
    assert len({one.feature for one in pairs.rankers}) > 5
    assert_same_rankers(model.rankers_[0], pairs.rankers)


def test_features_that_cannot_win_are_skipped():
    X = np.array([[0.0, 0], [1, 1], [2, 0], [3, 1]])
    data, signed = SortedFeatures.of(X), np.array([-0.5, -0.5, 0.5, 0.5])
    # The first ranks every pair correctly, so a second with a bound of 0.3 is skipped.
    np.testing.assert_array_equal(largest_agreements(data, signed, np.array([1.0, 0.3])), [1, 0.3])
    np.testing.assert_array_equal(largest_agreements(data, signed, np.array([1.0, 1.0])), [1, 0])


def test_by_hand():
    X, y = np.array([[1.0], [2], [3], [4]]), [0, 1, 0, 1]
    model = RankBoostClassifier(2).fit(X, y)
    # Round 1: r is 1 - 1/2 above 1.5, 0 above 2.5 and 1/2 - 0 above 3.5; the lower one of the
    # tie wins, with α = ½ ln(1.5/0.5). The negatives then have weights 1 : √3, and r is 0.366,
    # -0.134 and 1/2.
    half = np.log(3) / 2
    expected = [(0, 1.5, half), (0, 3.5, half)]
    np.testing.assert_allclose([plain(one) for one in model.rankers_[0]], expected)
    # Scores 0, half, half, 2 half: a threshold on either side of half has balanced accuracy 3/4.
    np.testing.assert_allclose(model.threshold_, [half / 2])
    np.testing.assert_allclose(model.decision_function(X), half * np.array([-0.5, 0.5, 0.5, 1.5]))
    assert model.predict(X).tolist() == [0, 1, 1, 1]


def test_by_hand_exact():
    X, y = np.array([[1.0], [1], [2], [1], [2], [2]]), [0, 0, 0, 1, 1, 1]
    model = RankBoostClassifier(1, alpha="exact").fit(X, y)
    # Above 1.5 are 2 of 3 positives and 1 of 3 negatives: W⁺ = 2/3 · 2/3, W⁻ = 1/3 · 1/3.
    assert model.rankers_[0][0].weight == pytest.approx(np.log(4) / 2)


def test_falling_features_get_negative_weights():
    X, y = np.array([[1.0], [2], [3], [4]]), [1, 0, 1, 0]
    model = RankBoostClassifier(2).fit(X, y)
    assert all(one.weight < 0 for one in model.rankers_[0])
    assert roc_auc_score(y, model.decision_function(X)) == pytest.approx(7 / 8)


@pytest.mark.parametrize("alpha", ["bound", "exact"])
@pytest.mark.parametrize("sign", [1, -1])
def test_one_ranker_that_ranks_every_pair_stops_boosting_with_the_largest_weight(alpha, sign):
    X = np.array([[5, 0.0], [5, 1], [5, 2], [5, 3]]) * sign
    y = [0, 0, 1, 1]
    model = RankBoostClassifier(alpha=alpha).fit(X, y)
    assert model.rankers_ == [[Ranker(1, 1.5 * sign, MAX_ALPHA * sign)]]
    assert roc_auc_score(y, model.decision_function(X)) == 1
    assert model.score(X, y) == 1


def test_in_a_tie_the_first_feature_wins():
    column = np.random.default_rng(0).normal(size=(50, 1))
    y = (column[:, 0] + np.random.default_rng(1).normal(size=50) > 0).astype(int)
    model = RankBoostClassifier(20).fit(np.hstack([column, 2 * column, column]), y)
    assert {one.feature for one in model.rankers_[0]} == {0}


@pytest.mark.parametrize("X", [np.ones((4, 2)), np.array([[0.0], [0], [1], [1]])])
def test_nothing_to_learn(X):
    """Constant features, or one with the same distribution in both classes."""
    model = RankBoostClassifier().fit(X, ["b", "a", "b", "a"])
    assert model.rankers_ == [[]]
    assert model.n_iter_.tolist() == [0]
    assert model.decision_function(X).tolist() == [0] * 4
    assert model.predict(X).tolist() == ["a"] * 4


def test_weights_are_repeated_rows():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 6, (60, 3)).astype(float), rng.integers(0, 2, 60)
    counts = rng.integers(0, 4, 60)
    weighted = RankBoostClassifier(30).fit(X, y, sample_weight=counts / 7)
    repeated = RankBoostClassifier(30).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert_same_rankers(weighted.rankers_[0], repeated.rankers_[0])
    np.testing.assert_allclose(weighted.threshold_, repeated.threshold_)


def test_only_the_weights_within_a_class_matter():
    X, y = make_classification(80, 4, flip_y=0.2, random_state=0)
    plainly = RankBoostClassifier(20).fit(X, y)
    leaning = RankBoostClassifier(20).fit(X, y, np.where(y == 1, 50, 1e-3))
    assert_same_rankers(leaning.rankers_[0], plainly.rankers_[0])


def test_the_offset_has_the_largest_balanced_accuracy():
    X, y = make_classification(200, 5, weights=[0.8], flip_y=0.2, random_state=0)
    model = RankBoostClassifier(15).fit(X, y)
    scores = model.decision_function(X)
    best = max(balanced_accuracy_score(y, scores > threshold) for threshold in scores)
    assert balanced_accuracy_score(y, model.predict(X)) == pytest.approx(best)
    assert best > 0.5
    # The offset is halfway between two scores.
    assert -scores[scores <= 0].max() == pytest.approx(scores[scores > 0].min())


def test_every_class_against_the_rest():
    X, codes = make_blobs(150, centers=4, cluster_std=1.0, random_state=3)
    y = np.array(["d", "a", "c", "b"])[codes]
    model = RankBoostClassifier(30).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (150, 4)
    assert model.score(X, y) > 0.9
    np.testing.assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    for column, label in enumerate(model.classes_):
        alone = RankBoostClassifier(30).fit(X, y == label)
        expected = alone.decision_function(X)
        np.testing.assert_allclose(scores[:, column], expected, rtol=1e-9, atol=1e-9)
        assert_same_rankers(model.rankers_[column], alone.rankers_[0])


def test_it_ranks_well_and_can_be_calibrated():
    X, y = make_classification(600, 8, n_informative=4, random_state=0)
    model = RankBoostClassifier().fit(X[:300], y[:300])
    assert not hasattr(model, "predict_proba")
    assert roc_auc_score(y[300:], model.decision_function(X[300:])) > 0.9
    calibrated = CalibratedClassifierCV(RankBoostClassifier(), cv=3).fit(X[:300], y[:300])
    assert calibrated.predict_proba(X[300:]).shape == (300, 2)


def test_caller_data_are_not_changed():
    X, y = make_classification(50, 4, random_state=0)
    weights = np.ones(50)
    before = X.copy()
    RankBoostClassifier(5).fit(X, y, weights)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(weights, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_estimators", 0),
        ("n_estimators", 2.5),
        ("alpha", "best"),
        ("alpha", None),
        ("alpha", ["bound"]),
    ],
)
def test_bad_parameters_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        RankBoostClassifier(**{name: value}).fit([[0], [1]], [0, 1])


@pytest.mark.parametrize(
    ("weights", "shown"),
    [
        ([1, 1], r"\(2,\)"),
        ([1, -1, 1], "-1"),
        ([1, np.nan, 1], "nan"),
        ([1, np.inf, 1], "inf"),
        ([0, 0, 1], "'a'"),
        ([0, 0, 0], "0"),
    ],
)
def test_bad_weights(weights, shown):
    with pytest.raises(ValueError, match=rf"\bsample_weight\b.*{shown}"):
        RankBoostClassifier().fit([[0], [1], [2]], ["a", "a", "b"], sample_weight=weights)


def test_huge_weights_do_not_overflow():
    model = RankBoostClassifier().fit([[0], [1], [2]], [0, 0, 1], sample_weight=[1e308] * 3)
    assert model.predict([[0], [1], [2]]).tolist() == [0, 0, 1]


def test_one_class_and_missing_values():
    with pytest.raises(ValueError, match=r"\by\b.*'a'"):
        RankBoostClassifier().fit([[0], [1]], ["a", "a"])
    with pytest.raises(ValueError, match=r"\bX\b.*NaN"):
        RankBoostClassifier().fit([[0], [np.nan]], [0, 1])
