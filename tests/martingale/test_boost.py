"""MartingaleBoostClassifier: theorem 1, probabilities, paths of samples, labels and bad input."""

import pickle
import re
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from tests.examples import few

from margrave import Confusion
from margrave.martingale import (
    AdaptiveMartingaleBoostClassifier,
    MartingaleBoostClassifier,
    TunableLogistic,
)

BOTH = [MartingaleBoostClassifier, AdaptiveMartingaleBoostClassifier]
STUMP = DecisionTreeClassifier(max_depth=1, random_state=0)
SEEDS = st.integers(0, 2**32 - 1)
classifiers = pytest.mark.parametrize("kind", BOTH)
ks = pytest.mark.parametrize("k", [2, 3])


@cache
def made(k=2, n=80, seed=0):
    """Overlapping classes; half to train on, half not."""
    X, y = make_classification(
        2 * n, 6, n_informative=4, n_redundant=0, n_classes=k, n_clusters_per_class=1,
        flip_y=0.2, class_sep=0.6, random_state=seed,
    )  # fmt: skip
    return X[::2], y[::2], X[1::2], y[1::2]


def counted(model, X, y):
    """The error rate of each class, as a fraction."""
    predictions = model.predict(X)
    return tuple(
        Fraction(int((predictions[y == c] != c).sum()), int((y == c).sum()))
        for c in model.classes_.tolist()
    )


def ends(model, X):
    """The node at which each sample's path ends."""
    paths = model.decision_path(X)
    return [model.program_.nodes[paths[[i]].indices.max()] for i in range(len(X))]


# Theorem 1


@classifiers
@ks
@pytest.mark.parametrize("n_levels", range(1, 9))
def test_the_rate_of_theorem_1_is_the_counted_rate(kind, k, n_levels):
    X, y, X_new, y_new = made(k, 60)
    for learner in (None, STUMP)[: 2 if n_levels < 3 else 1]:
        model = kind(learner, n_levels).fit(X, y)
        rates = counted(model, X, y)
        assert model.program_.exact_error_rates == rates
        assert model.error_rates() == dict(zip(range(k), map(float, rates), strict=True))
        rates = counted(model, X_new, y_new)
        assert any(rates)
        assert model.measured(X_new, y_new).exact_error_rates == rates
        result = model.error_rates(X_new, y_new)
        assert result == dict(zip(range(k), map(float, rates), strict=True))


@pytest.mark.parametrize("n_levels", [1, 3])
@pytest.mark.parametrize(("k", "learner"), [(2, None), (2, STUMP), (2, Perceptron()), (3, None)])
def test_the_rate_of_theorem_1_after_tuning(k, learner, n_levels):
    X, y, X_tune, y_tune = made(k)
    model = MartingaleBoostClassifier(learner, n_levels, random_state=0).fit(X, y)
    fewer = np.sum((model.predict(X_tune) == 0) & (y_tune != 0)) - 1
    tuned = model.tune(f"fp(0) <= {fewer}", X_tune, y_tune, max_models=n_levels - 1)
    assert counted(tuned, X_tune, y_tune) != counted(model, X_tune, y_tune)
    assert tuned.program_.exact_error_rates == counted(tuned, X, y)
    there = tuned.measured(X_tune, y_tune)
    assert there.exact_error_rates == counted(tuned, X_tune, y_tune)


@ks
def test_the_rate_of_theorem_1_after_tuning_the_nodes(k):
    X, y, X_tune, y_tune = made(k)
    model = MartingaleBoostClassifier(n_levels=3).fit(X, y)
    wants = {(0,) * k: "fp(0) <= 1"}
    tuned = model.tune(wants, X_tune, y_tune, granularity="all", max_models=1)
    assert counted(tuned, X_tune, y_tune) != counted(model, X_tune, y_tune)
    assert tuned.program_.exact_error_rates == counted(tuned, X, y)
    assert tuned.measured(X_tune, y_tune).exact_error_rates == counted(tuned, X_tune, y_tune)


@ks
def test_the_rate_of_theorem_1_with_frozen_nodes(k):
    X, y, X_new, y_new = made(k)
    model = MartingaleBoostClassifier(n_levels=5, freeze=3.0).fit(X, y)
    assert "frozen" in {node.kind for node in model.program_.nodes}
    assert model.program_.exact_error_rates == counted(model, X, y)
    assert model.measured(X_new, y_new).exact_error_rates == counted(model, X_new, y_new)


@classifiers
def test_counts_ignore_sample_weights(kind):
    X, y, *_ = made()
    model = kind(n_levels=3).fit(X, y, np.linspace(0.1, 5, len(y)))
    assert model.program_.exact_error_rates == counted(model, X, y)
    assert model.program_.sizes[0].tolist() == np.bincount(y).tolist()


@classifiers
def test_a_class_without_samples_has_no_rate(kind):
    X, y, X_new, y_new = made(3)
    model = kind(n_levels=3).fit(X, y)
    rates = model.error_rates(X_new[y_new > 0], y_new[y_new > 0])
    assert np.isnan(rates[0])
    assert rates[1] == pytest.approx((model.predict(X_new[y_new == 1]) != 1).mean())


@classifiers
@pytest.mark.parametrize("left_out", ["X", "y"])
def test_rates_of_other_samples_need_the_samples_and_their_labels(kind, left_out):
    """The rates of the training samples would be taken for those of the others."""
    X, y, X_new, y_new = made()
    model = kind(n_levels=2).fit(X, y)
    samples = {"X": X_new, "y": y_new}
    del samples[left_out]
    with pytest.raises((TypeError, ValueError), match=rf"error_rates.*\b{left_out}\b"):
        model.error_rates(**samples)


# Counts of other samples


@classifiers
@ks
def test_measured_counts_samples_by_class_and_prediction(kind, k):
    X, y, X_new, y_new = made(k)
    model = kind(n_levels=4).fit(X, y)
    program = model.measured(X_new, y_new)
    assert program.classes == model.program_.classes
    assert program.nodes == model.program_.nodes
    paths = model.decision_path(X_new).toarray()
    for at, node in enumerate(program.nodes):
        came = paths[:, at] == 1
        assert program.sizes[at].tolist() == np.bincount(y_new[came], minlength=k).tolist()
        if node.is_end:
            np.testing.assert_array_equal(program.counts[at][:, node.prediction], program.sizes[at])
        elif at in model.learners_ and came.any() and kind is MartingaleBoostClassifier:
            predictions = model.learners_[at].predict(X_new[came])
            expected = Confusion.of(y_new[came], predictions, classes=range(k))
            assert program.confusion(at) == expected
    again = model.measured(X, y)
    np.testing.assert_array_equal(again.counts, model.program_.counts)
    np.testing.assert_array_equal(again.flow, model.program_.flow)
    assert again.edges == model.program_.edges


@classifiers
@few(5)
@given(seed=SEEDS)
def test_flow_is_conserved_at_every_node(kind, seed):
    X, y, X_new, y_new = made(3, 40, seed % 100)
    program = kind(GaussianNB(), 4).fit(X, y).measured(X_new, y_new)
    came, left = np.zeros((2, len(program), 3), dtype=int)
    for edge, flow in zip(program.edges, program.flow, strict=True):
        came[edge.end] += flow
        left[edge.start] += flow
    ended = np.array([node.is_end for node in program.nodes])
    np.testing.assert_array_equal(program.sizes[1:], came[1:])
    np.testing.assert_array_equal(left, np.where(ended[:, None], 0, program.sizes))


# Probabilities


@classifiers
@ks
def test_labels_are_the_most_probable_and_probabilities_sum_to_1(kind, k):
    X, y, X_new, _ = made(k)
    for n_levels in (1, 4, 5):
        model = kind(n_levels=n_levels).fit(X, y)
        proba = model.predict_proba(X_new)
        assert proba.shape == (len(X_new), k)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        np.testing.assert_array_equal(model.predict(X_new), proba.argmax(axis=1))
        scores = model.decision_function(X_new)
        if k == 2:
            np.testing.assert_allclose(scores, np.log(proba[:, 1] / proba[:, 0]), atol=1e-9)
            np.testing.assert_array_equal(model.predict(X_new), scores > 0)
        else:
            np.testing.assert_allclose(softmax(scores, axis=1), proba)


@ks
@pytest.mark.parametrize("n_levels", [3, 6])
def test_probabilities_are_a_softmax_of_the_final_votes(k, n_levels):
    X, y, X_new, _ = made(k, 150)
    X_new = X_new[:80]
    model = MartingaleBoostClassifier(GaussianNB(), n_levels).fit(X, y)
    last = ends(model, X_new)
    # A tie is settled by half a vote; a path that ends early casts its votes for its prediction.
    plain = [
        at
        for at, node in enumerate(last)
        if node.kind == "leaf" and np.sort(node.position)[-1] > np.sort(node.position)[-2]
    ]
    assert len({last[at].position for at in plain}) > 2
    votes = np.array([last[at].position for at in plain])
    expected = softmax(model.sharpness_ * votes, axis=1)
    np.testing.assert_allclose(model.predict_proba(X_new)[plain], expected)
    assert model.sharpness_ > 0


@pytest.mark.parametrize("n_levels", [3, 4, 8])
def test_more_votes_for_a_class_are_a_larger_probability_of_it(n_levels):
    X, y, X_new, _ = made(n=150)
    model = MartingaleBoostClassifier(n_levels=n_levels).fit(X, y)
    by_votes = {}
    for node, proba in zip(ends(model, X_new), model.predict_proba(X_new)[:, 1], strict=True):
        if node.kind == "leaf":
            by_votes.setdefault(node.position[1], set()).add(round(proba, 9))
    assert len(by_votes) > 2
    assert all(len(values) == 1 for values in by_votes.values())
    ordered = [by_votes[votes].pop() for votes in sorted(by_votes)]
    assert all(low < high for low, high in pairwise(ordered))


def test_for_three_classes_the_order_of_the_votes_is_that_of_the_probabilities():
    X, y, X_new, _ = made(3, 150)
    model = MartingaleBoostClassifier(n_levels=5).fit(X, y)
    for node, proba in zip(ends(model, X_new), model.predict_proba(X_new), strict=True):
        for a in range(3):
            for b in range(3):
                if node.kind == "leaf" and node.position[a] > node.position[b]:
                    assert proba[a] > proba[b]


@classifiers
@ks
def test_the_sharpness_has_the_largest_likelihood_within_its_bound(kind, k):
    X, y, *_ = made(k)
    weights = np.linspace(0.5, 2, len(y))
    model = kind(n_levels=5).fit(X, y, weights)
    log_p = np.log(model.predict_proba(X))
    standings = (log_p - log_p.mean(axis=1, keepdims=True)) / model.sharpness_

    def likelihood(beta):
        return weights @ log_softmax(beta * standings, axis=1)[np.arange(len(y)), y]

    most = np.log(weights.sum() + 1) / np.ptp(standings, axis=1).max()
    assert model.sharpness_ <= most * (1 + 1e-9)
    best = max(likelihood(beta) for beta in np.linspace(0, most, 200))
    assert likelihood(model.sharpness_) >= best - 1e-4


@classifiers
def test_probabilities_are_bounded_by_the_number_of_samples(kind):
    X, y = np.repeat([[0.0], [1.0]], 20, axis=0), np.repeat([0, 1], 20)
    proba = kind(n_levels=5).fit(X, y).predict_proba(X)
    assert 0.9 < proba.max() <= 41 / 42 + 1e-9


# Ways of samples


@classifiers
@ks
def test_a_path_begins_at_the_root_ends_at_an_end_and_goes_along_edges(kind, k):
    X, y, X_new, _ = made(k)
    model = kind(n_levels=5).fit(X, y)
    nodes = model.program_.nodes
    edges = {(edge.start, edge.end) for edge in model.program_.edges}
    votes = kind is MartingaleBoostClassifier
    paths = model.decision_path(X_new if votes else X)
    assert paths.shape == (len(X_new), len(nodes))
    assert set(paths.data) == {1}
    for i in range(len(X_new)):
        path = np.sort(paths[[i]].indices)
        assert path[0] == 0
        assert [nodes[at].layer for at in path] == list(range(len(path)))
        assert [nodes[at].is_end for at in path] == [False] * (len(path) - 1) + [True]
        assert set(pairwise(path.tolist())) <= edges
        assert len(path) == nodes[path[-1]].layer + 1
    np.testing.assert_array_equal(
        paths.sum(axis=0).A1[[at for at, node in enumerate(nodes) if node.layer == 0]], len(X_new)
    )


@ks
def test_a_path_is_the_votes_of_the_learners_on_it(k):
    X, y, X_new, _ = made(k)
    X_new = X_new[:25]
    model = MartingaleBoostClassifier(STUMP, 4).fit(X, y)
    nodes = model.program_.nodes
    paths = model.decision_path(X_new)
    for i in range(len(X_new)):
        votes = np.zeros(k)
        for at in np.sort(paths[[i]].indices):
            assert nodes[at].position == tuple(votes)
            if nodes[at].is_end:
                assert model.predict(X_new[[i]]) == nodes[at].prediction
            elif nodes[at].kind == "constant":
                votes[nodes[at].prediction] += 1
            else:
                votes[model.learners_[at].predict(X_new[[i]])] += 1


def test_edges_carry_the_prediction_of_their_start():
    X, y, *_ = made(3)
    program = MartingaleBoostClassifier(n_levels=3).fit(X, y).program_
    for edge in program.edges:
        step = np.subtract(program.nodes[edge.end].position, program.nodes[edge.start].position)
        assert step.tolist() == np.eye(3)[edge.prediction].tolist()
    assert [edge.start for edge in program.edges] == sorted(edge.start for edge in program.edges)


# Labels and tables


@pytest.mark.parametrize("kind", [BOTH[0], pytest.param(BOTH[1], marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "names",
    [
        np.array(["spam", "ham"]),
        np.array([False, True]),
        np.array([-1.0, 1.0]),
        np.array(["no", "yes", "?"], dtype=object),
        np.array([6, 4, 2]),
    ],
    ids=str,
)
def test_labels_of_every_kind(kind, names):
    X, y, X_new, y_new = made(len(names))
    classes, order = np.unique(names, return_inverse=True)
    model = kind(n_levels=3).fit(X, names[y])
    np.testing.assert_array_equal(model.classes_, classes)
    plain = kind(n_levels=3).fit(X, order[y])
    np.testing.assert_array_equal(model.predict(X_new), classes[plain.predict(X_new)])
    assert model.predict(X_new).dtype == names.dtype
    assert model.program_.classes == tuple(classes.tolist())
    assert set(model.error_rates()) == set(classes.tolist())
    wrong = model.predict(X_new) != names[y_new]
    expected = {c: wrong[names[y_new] == c].mean() for c in classes.tolist()}
    assert model.error_rates(X_new, names[y_new]) == pytest.approx(expected)


def test_data_frames_do_not_warn():
    X, y, X_new, y_new = made()
    table, new = (pd.DataFrame(rows, columns=list("abcdef")) for rows in (X, X_new))
    model = MartingaleBoostClassifier(n_levels=3).fit(table, pd.Series(y))
    plain = MartingaleBoostClassifier(n_levels=3).fit(X, y)
    assert model.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_allclose(model.predict_proba(new), plain.predict_proba(X_new), rtol=1e-9)
    assert model.error_rates(new, pd.Series(y_new)) == plain.error_rates(X_new, y_new)
    assert model.decision_path(new).sum() == plain.decision_path(X_new).sum()
    tuned = model.tune("fp <= 3", new, pd.Series(y_new))
    assert tuned.tuning_ == plain.tune("fp <= 3", X_new, y_new).tuning_


@pytest.mark.parametrize("granularity", ["all", "select"])
def test_tuning_nodes_on_data_frames_does_not_warn(granularity):
    X, y, X_new, y_new = made()
    table, new = (pd.DataFrame(rows, columns=list("abcdef")) for rows in (X, X_new))
    model = MartingaleBoostClassifier(n_levels=3).fit(table, y)
    wants = {(0, 0): "fp <= 3"}
    tuned = model.tune(wants, new, y_new, granularity=granularity, max_models=2)
    plain = MartingaleBoostClassifier(n_levels=3).fit(X, y)
    other = plain.tune(wants, X_new, y_new, granularity=granularity, max_models=2)
    assert tuned.tuning_ == other.tuning_


@classifiers
def test_a_pickled_model_predicts_the_same(kind):
    X, y, X_new, y_new = made(3)
    model = kind(n_levels=3).fit(X, y)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(X_new), model.predict_proba(X_new))
    assert again.error_rates(X_new, y_new) == model.error_rates(X_new, y_new)


def test_fitting_a_tuned_model_discards_the_tuning():
    X, y, X_tune, y_tune = made()
    model = MartingaleBoostClassifier(n_levels=3).fit(X, y)
    tuned = model.tune("fp <= 2", X_tune, y_tune)
    assert (tuned.predict(X_tune) != model.predict(X_tune)).any()
    for again in (clone(tuned).fit(X, y), tuned.fit(X, y)):
        assert again.tuning_ is None
        np.testing.assert_array_equal(again.predict_proba(X_tune), model.predict_proba(X_tune))


# Bad input


@classifiers
def test_one_class_is_refused(kind):
    named = rf"{kind.__name__}.*\by\b.*'a'"
    with pytest.raises(ValueError, match=named):
        kind().fit([[0.0], [1.0]], ["a", "a"])
    with pytest.raises(ValueError, match=named):
        kind().fit([[0.0], [1.0], [2.0]], ["a", "a", "b"], [1, 1, 0])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_levels", 0),
        ("n_levels", 2.0),
        ("n_levels", True),
        ("n_levels", "3"),
        ("n_levels", None),
        ("estimator", LinearRegression()),
        ("estimator", "tree"),
        ("estimator", 5),
        ("freeze", -0.1),
        ("freeze", "no"),
        ("freeze", True),
        ("freeze", np.nan),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(name, value):
    X, y, *_ = made()
    with pytest.raises(ValueError, match=rf"\b{name}\b.*{re.escape(repr(value))}"):
        MartingaleBoostClassifier(**{name: value}).fit(X, y)


@pytest.mark.parametrize("number", [np.float64(1.5), np.float32(1.5), np.int64(2)], ids=repr)
def test_numbers_may_be_numpys(number):
    X, y, *_ = made()
    model = MartingaleBoostClassifier(n_levels=np.int64(3), freeze=number).fit(X, y)
    plain = MartingaleBoostClassifier(n_levels=3, freeze=float(number)).fit(X, y)
    assert model.program_.nodes == plain.program_.nodes


@classifiers
@pytest.mark.parametrize(("y", "received"), [([0, 1, 5], r"\b5\b"), ([0, 1], r"\b3\b.*\(2,\)")])
def test_labels_that_cannot_be_counted_are_refused(kind, y, received):
    X, y_train, X_new, _ = made()
    model = kind(n_levels=2).fit(X, y_train)
    for count in (model.measured, model.error_rates):
        with pytest.raises(ValueError, match=rf"{kind.__name__}\.measured.*\by\b.*{received}"):
            count(X_new[:3], y)


@classifiers
@pytest.mark.parametrize(
    "method",
    [
        lambda model, X, y: model.predict(X),
        lambda model, X, y: model.predict_proba(X),
        lambda model, X, y: model.decision_function(X),
        lambda model, X, y: model.decision_path(X),
        lambda model, X, y: model.measured(X, y),
        lambda model, X, y: model.error_rates(),
    ],
)
def test_a_model_that_is_not_fitted_is_refused(kind, method):
    X, y, *_ = made()
    with pytest.raises(NotFittedError, match=kind.__name__):
        method(kind(), X, y)


def test_a_model_that_is_not_fitted_is_not_tuned():
    X, y, *_ = made()
    with pytest.raises(NotFittedError, match="MartingaleBoostClassifier"):
        MartingaleBoostClassifier().tune("fp <= 1", X, y)


@classifiers
def test_other_features_are_refused(kind):
    X, y, X_new, y_new = made()
    model = kind(n_levels=2).fit(X, y)
    for method in (model.predict, model.decision_path, lambda rows: model.error_rates(rows, y_new)):
        with pytest.raises(ValueError, match=rf"5 features.*{kind.__name__}.*6 features"):
            method(X_new[:, :5])


@pytest.mark.parametrize("learner", [None, TunableLogistic(1.0), STUMP, GaussianNB()])
def test_learners_know_the_classes_by_their_position(learner):
    X, y, *_ = made(3)
    model = MartingaleBoostClassifier(learner, 3).fit(X, np.array(["a", "b", "c"])[y])
    for at, own in model.learners_.items():
        came = np.flatnonzero(model.program_.sizes[at])
        assert own.classes_.tolist() == came.tolist()
