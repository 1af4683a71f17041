"""Ordered classes: thresholds against all thresholds, and the classifier made of them."""

from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import cross_val_score

from margrave.mam._ordinal import (
    MAMOrdinalClassifier,
    add_missing_classes,
    best_thresholds,
    label_losses,
)
from margrave.mam._ranker import MAMRanker, leave_one_out_predictions

LOSSES = ["absolute", "accuracy", "balanced"]
each_loss = pytest.mark.parametrize("loss", LOSSES)


def loss_at(thresholds, scores, losses):
    labels = np.searchsorted(thresholds, scores)
    return losses[labels, np.arange(len(scores))].sum()


def least_loss(scores, losses):
    """The smallest loss over all non-decreasing thresholds."""
    values = np.unique(scores)
    thresholds = [-np.inf, *(values[1:] + values[:-1]) / 2, np.inf]
    tuples = combinations_with_replacement(thresholds, len(losses) - 1)
    return min(loss_at(one, scores, losses) for one in tuples)


def graded(n=60, k=3, d=2, seed=0, noise=0.7):
    """Samples whose class rises with one direction."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    latent = X[:, 0] + X[:, 1] ** 3 / 4 + noise * rng.normal(size=n)
    return X, np.searchsorted(np.quantile(latent, np.arange(1, k) / k), latent)


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 3), st.floats(0.1, 3)), min_size=1, max_size=9
    ),
    st.sampled_from(LOSSES),
    st.booleans(),
)
def test_no_thresholds_have_a_smaller_loss(samples, loss, weighted):
    scores, codes, weights = (np.array(column) for column in zip(*samples, strict=True))
    weights = weights if weighted else np.ones(len(codes))
    losses = label_losses(codes, np.arange(4), weights, loss)
    thresholds = best_thresholds(scores.astype(float), losses)
    assert (thresholds[1:] >= thresholds[:-1]).all()
    found = loss_at(thresholds, scores, losses)
    assert found == pytest.approx(least_loss(scores, losses), abs=1e-8)


@given(st.integers(0, 10**6), st.integers(2, 4))
def test_no_thresholds_have_a_smaller_loss_of_any_kind(seed, n_labels):
    rng = np.random.default_rng(seed)
    scores, losses = rng.normal(size=8), rng.random((n_labels, 8))
    thresholds = best_thresholds(scores, losses)
    assert loss_at(thresholds, scores, losses) == pytest.approx(least_loss(scores, losses))


def test_losses():
    codes, labels, ones = np.array([0, 2, 2]), np.array([0, 2]), np.ones(3)
    np.testing.assert_array_equal(
        label_losses(codes, labels, ones, "absolute"), [[0, 2, 2], [2, 0, 0]]
    )
    np.testing.assert_array_equal(
        label_losses(codes, labels, ones, "accuracy"), [[0, 1, 1], [1, 0, 0]]
    )
    np.testing.assert_array_equal(
        label_losses(codes, labels, ones, "balanced"), [[0, 0.5, 0.5], [1, 0, 0]]
    )


def test_equal_scores_are_never_separated_by_rounding():
    scores = np.array([0.1 + 0.2, 0.3, 1.0])
    losses = label_losses(np.array([1, 0, 1]), np.arange(2), np.array([1.0, 3.0, 1.0]), "accuracy")
    np.testing.assert_allclose(best_thresholds(scores, losses), [0.65])


def test_of_equal_losses_the_widest_gap_is_taken():
    # After 0 or after 2 one sample is wrong; the gap after 2 is wider.
    scores, codes = np.array([0.0, 1.0, 2.0, 9.0]), np.array([0, 1, 0, 1])
    losses = label_losses(codes, np.arange(2), np.ones(4), "accuracy")
    np.testing.assert_array_equal(best_thresholds(scores, losses), [5.5])


def test_classes_that_are_absent_get_empty_intervals():
    inf = np.inf
    np.testing.assert_array_equal(
        add_missing_classes(np.array([1.0, 2.0]), np.arange(3), 3), [1, 2]
    )
    np.testing.assert_array_equal(add_missing_classes(np.array([1.0]), np.array([0, 2]), 3), [1, 1])
    np.testing.assert_array_equal(
        add_missing_classes(np.array([1.0]), np.array([1, 2]), 4), [-inf, 1, inf]
    )


@each_loss
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_a_ranker_with_thresholds_on_its_leave_one_out_scores(kernel, loss, weighted):
    X, y = graded(n=12)
    weights = np.linspace(0.5, 2, len(y)) if weighted else None
    model = MAMOrdinalClassifier(kernel, thresholds=loss).fit(X, y, weights)
    ranker = MAMRanker(kernel).fit(X, y, weights)
    np.testing.assert_allclose(model.rank(X), ranker.predict(X), rtol=1e-9, atol=1e-12)
    scores = leave_one_out_predictions(ranker, X, y, weights)
    losses = label_losses(y, np.arange(3), np.ones(len(y)) if weights is None else weights, loss)
    found = loss_at(model.thresholds_, scores, losses)
    assert found == pytest.approx(least_loss(scores, losses))
    between = np.searchsorted(model.thresholds_, model.rank(X))
    np.testing.assert_array_equal(model.predict(X), model.classes_[between])


@each_loss
def test_it_learns_grades(loss):
    X, y = graded(n=400, k=4)
    X_new, y_new = graded(n=400, k=4, seed=1)
    model = MAMOrdinalClassifier(thresholds=loss).fit(X, y)
    assert np.abs(model.predict(X_new) - y_new).mean() < 0.55
    assert model.score(X_new, y_new) > 0.5
    assert (np.diff(model.thresholds_) > 0).all()


def test_each_loss_is_best_by_its_own_measure():
    X, y = graded(n=300, noise=2.0)
    keep = (y != 2) | (np.arange(300) % 8 == 0)  # the highest class is rare
    X, y = X[keep], y[keep]
    scores = {}
    for loss in LOSSES:
        model = MAMOrdinalClassifier(thresholds=loss, gamma=0.1).fit(X, y)
        predicted = np.searchsorted(model.thresholds_, model.ranker_.loo_predictions_)
        scores[loss] = (
            -np.abs(predicted - y).mean(),
            accuracy_score(y, predicted),
            balanced_accuracy_score(y, predicted),
        )
    for place, loss in enumerate(LOSSES):
        assert scores[loss][place] == pytest.approx(max(one[place] for one in scores.values()))
    assert scores["balanced"][2] > scores["accuracy"][2]


def test_labels_in_an_order_of_their_own():
    X, y = graded()
    names = np.array(["low", "medium", "high"])
    by_name = MAMOrdinalClassifier(order=["low", "medium", "high"]).fit(X, names[y])
    by_number = MAMOrdinalClassifier().fit(X, y)
    np.testing.assert_array_equal(by_name.classes_, names)
    np.testing.assert_allclose(by_name.thresholds_, by_number.thresholds_, rtol=1e-9)
    np.testing.assert_array_equal(by_name.predict(X), names[by_number.predict(X)])
    frame = pd.DataFrame(X, columns=["a", "b"])
    of_frame = MAMOrdinalClassifier(order=names).fit(frame, pd.Series(names[y], dtype=object))
    np.testing.assert_array_equal(of_frame.predict(frame), by_name.predict(X))
    assert list(of_frame.feature_names_in_) == ["a", "b"]


def test_a_reversed_order_is_the_mirror_image():
    X, y = graded()
    model = MAMOrdinalClassifier(order=[2, 1, 0]).fit(X, y)
    other = MAMOrdinalClassifier().fit(X, y)
    np.testing.assert_array_equal(model.classes_, [2, 1, 0])
    np.testing.assert_allclose(model.rank(X), -other.rank(X))
    losses = label_losses(y, np.arange(3), np.ones(len(y)), "absolute")
    least = loss_at(other.thresholds_, other.ranker_.loo_predictions_, losses)
    mirrored = loss_at(model.thresholds_, model.ranker_.loo_predictions_, losses[::-1])
    assert mirrored == pytest.approx(least)


def test_labels_that_are_absent_keep_their_place_and_are_not_predicted():
    X, y = graded()
    model = MAMOrdinalClassifier(order=[-1, 0, 1, 1.5, 2, 3]).fit(X, y)
    other = MAMOrdinalClassifier().fit(X, y)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    without = np.where(y == 1, 2, y)
    assert set(MAMOrdinalClassifier(order=[0, 1, 2]).fit(X, without).predict(X)) == {0, 2}


def test_samples_without_a_weight_do_not_count():
    X, y = graded()
    weights = np.where(np.arange(len(y)) % 3, 1.0, 0.0)
    kept = weights > 0
    model = MAMOrdinalClassifier().fit(X, y, weights)
    other = MAMOrdinalClassifier().fit(X[kept], y[kept])
    np.testing.assert_allclose(model.thresholds_, other.thresholds_)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))


@pytest.mark.parametrize(("loss", "label"), [("accuracy", 2), ("absolute", 1)])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_constant_features_leave_the_most_frequent_or_the_middle_class(kernel, loss, label):
    y = [0, 0, 0, 1, 1, 2, 2, 2, 2]
    model = MAMOrdinalClassifier(kernel, thresholds=loss).fit(np.full((9, 1), 0.1), y)
    np.testing.assert_array_equal(model.predict([[0.0], [5.0]]), [label, label])


def test_two_samples():
    model = MAMOrdinalClassifier().fit([[0.0], [1.0]], [0, 1])
    assert set(model.predict([[0.0], [1.0]])) <= {0, 1}


def test_sparse_rows_are_as_good_as_dense_ones():
    X, y = graded()
    dense = MAMOrdinalClassifier("linear").fit(X, y)
    sparse = MAMOrdinalClassifier("linear").fit(csr_array(X), y)
    np.testing.assert_allclose(sparse.thresholds_, dense.thresholds_)
    np.testing.assert_array_equal(sparse.predict(csr_array(X)), dense.predict(X))
    with pytest.raises(TypeError, match=r"MAMOrdinalClassifier.*\bkernel\b.*'rbf'"):
        MAMOrdinalClassifier().fit(csr_array(X), y)


def test_float32():
    X, y = graded()
    model = MAMOrdinalClassifier(gamma=0.5).fit(X.astype(np.float32), y)
    assert model.rank(X.astype(np.float32)).dtype == np.float32
    other = MAMOrdinalClassifier(gamma=0.5).fit(X, y)
    assert (model.predict(X.astype(np.float32)) == other.predict(X)).mean() > 0.95


def test_cross_validation():
    X, y = graded(n=90)
    assert cross_val_score(MAMOrdinalClassifier(), X, y, cv=3).mean() > 0.5


@pytest.mark.parametrize(
    ("name", "value"), [("thresholds", "f1"), ("order", [1, 1]), ("order", "low"), ("gamma", -1)]
)
def test_parameters_that_are_refused(name, value):
    with pytest.raises(ValueError, match=rf"MAMOrdinalClassifier.*\b{name}\b"):
        MAMOrdinalClassifier(**{name: value}).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("order", "y", "sample_weight", "match"),
    [
        (None, [1, 1], None, r"\by\b.*\b1\b"),
        (None, [1, 2], [0, 1], r"\by\b.*\b2\b"),
        ([1, 2], [1, 3], None, r"MAMOrdinalClassifier\.fit.*\b3\b"),
    ],
)
def test_labels_that_are_refused(order, y, sample_weight, match):
    with pytest.raises(ValueError, match=match):
        MAMOrdinalClassifier(order=order).fit([[0.0], [1.0]], y, sample_weight)
