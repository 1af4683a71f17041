"""Tuning a whole program: the result, which has at most the errors of a threshold."""

import pickle
import warnings
from copy import copy
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.linear_model import Perceptron, RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from tests.confusion.values import value_of
from tests.examples import few

from margrave import Confusion, Preference, datasets
from margrave.confusion import Objective, PreferenceError
from margrave.martingale import (
    MartingaleBoostClassifier,
    NotMetWarning,
    Step,
    TunableLogistic,
)
from margrave.martingale._root import LocalTargets, PathTable, add_node_offset

TREE, LINE = DecisionTreeClassifier(max_depth=2, random_state=0), Perceptron()
OFFSETS = st.lists(st.floats(-4, 4), min_size=3, max_size=3)


class Contrary(ClassifierMixin, BaseEstimator):
    """Predicts the less probable class where both probabilities are near a half."""

    def fit(self, X, y, sample_weight=None):
        self.own_ = GaussianNB().fit(X, y, sample_weight)
        self.classes_ = self.own_.classes_
        return self

    def predict_proba(self, X):
        return self.own_.predict_proba(X)

    def predict(self, X):
        return self.classes_[(self.predict_proba(X)[:, -1] > 0.7).astype(int)]


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@cache
def made(k=2, n=120, seed=0):
    """Overlapping classes; half to train on, half to tune on."""
    X, y = make_classification(
        2 * n, 6, n_informative=4, n_redundant=0, n_classes=k, n_clusters_per_class=1,
        flip_y=0.15, class_sep=0.6, random_state=seed,
    )  # fmt: skip
    return X[::2], y[::2], X[1::2], y[1::2]


def bundled(name, seed=0, noise=0.0):
    """A data set: two thirds to train on, a third to tune on."""
    data, rng = datasets.load(name), np.random.default_rng(seed)
    X, y = np.asarray(data.data, dtype=float), np.asarray(data.target)
    X = X + noise * rng.normal(size=X.shape)
    order = rng.permutation(len(y))
    n_train = 2 * len(y) // 3
    return X[order[:n_train]], y[order[:n_train]], X[order[n_train:]], y[order[n_train:]]


@cache
def grown(k=2, learner=None, n_levels=3, **more):
    """A fitted program and its tuning set; not to be changed."""
    X, y, X_tune, y_tune = made(k, **more)
    model = MartingaleBoostClassifier(learner, n_levels, random_state=0).fit(X, y)
    return model, X_tune, y_tune


def matrix_of(model, X, y, positive=None):
    return Confusion.of(y, model.predict(X), classes=model.classes_.tolist(), positive=positive)


def by_threshold(model, preference, X, y):
    """The best that a threshold on the decision function can do."""
    scores = model.decision_function(X)
    there = np.unique(scores)
    thresholds = [there[0] - 1, *((low + high) / 2 for low, high in pairwise(there)), there[-1] + 1]
    classes = model.classes_
    matrices = [
        Confusion.of(y, classes[(scores > one).astype(int)], classes=classes.tolist())
        for one in thresholds
    ]
    return min(value_of(preference, matrix) for matrix in matrices)


# The table of paths


LEARNERS = [None, TREE, GaussianNB(), KNeighborsClassifier(2)]


@pytest.fixture(scope="module")
def programs():
    """By classes and learner: a program with frozen or pure nodes, and samples to walk."""
    found, kinds = {}, set()
    for k in (2, 3):
        X, y, X_new, _ = made(k)
        for at, learner in enumerate(LEARNERS):
            freeze = 1.0 if at % 2 else None
            model = MartingaleBoostClassifier(learner, 4, freeze=freeze, random_state=0).fit(X, y)
            found[k, at] = model._fitted_program, X_new[:50]
            kinds |= {node.kind for node in model.program_.nodes}
    assert kinds >= {"constant", "frozen"}
    return found


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("learner", range(len(LEARNERS)))
@few(5)
@given(offset=OFFSETS)
def test_paths_are_those_of_a_walk_with_that_offset(programs, k, learner, offset):
    layered, X = programs[k, learner]
    offset = np.array(offset[:k])
    walked, _ = replace(layered, offset=offset).walk(X)
    np.testing.assert_array_equal(PathTable(layered, X).ends(offset[None])[0], walked)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("learner", range(len(LEARNERS)))
def test_new_offsets_are_added_to_earlier_ones(programs, k, learner):
    layered, X = programs[k, learner]
    before, offset = np.array([0.5, -0.25, -0.75])[:k], np.array([-2.0, 0.5, 0.25])[:k]
    walked, _ = replace(layered, offset=before + offset).walk(X)
    paths = PathTable(replace(layered, offset=before), X)
    ends = paths.ends(np.array([offset, np.zeros(k)]))
    np.testing.assert_array_equal(ends[0], walked)
    np.testing.assert_array_equal(ends[1], replace(layered, offset=before).walk(X)[0])
    assert (ends[0] != ends[1]).any()


def test_an_offset_that_is_reversed_is_zero():
    """Then learners use `predict`, which need not be by their probabilities."""
    X, y, X_new, _ = made()
    layered = MartingaleBoostClassifier(Contrary(), 2, balance=False).fit(X, y)._fitted_program
    before = np.array([0.1, -0.1]) * 3
    taken_back = add_node_offset(replace(layered, offset=before), np.array([-0.3, 0.3]))
    assert not taken_back.any()
    walked = replace(layered, offset=taken_back).walk(X_new)[0]
    np.testing.assert_array_equal(walked, layered.walk(X_new)[0])


# Two classes


REQUESTS = [
    "fp <= 5",
    "fp <= 0",
    "fn <= 9",
    "fn <= 0",
    "fp <= 5%",
    "recall(1) >= 95%",
    "correct(0) >= 52",
    "correct(1) >= 57",
    "precision(1) >= 92%",
    "alarms <= 30%",
    "fp <= 30, fn <= 9",
]


@pytest.mark.parametrize("text", [*REQUESTS[::2], *(slow(text) for text in REQUESTS[1::2])])
def test_the_result_is_that_of_the_model_with_at_most_the_errors_of_a_threshold(text):
    model, X, y = grown()
    preference = Preference(text)
    assert not preference.met(matrix_of(model, X, y))
    tuned = model.tune(text, X, y)
    result = tuned.tuning_
    assert result.preference == preference
    assert result.before == matrix_of(model, X, y)
    assert result.after == matrix_of(tuned, X, y)
    assert result.met
    assert preference.met(matrix_of(tuned, X, y))
    assert not result.cancelled
    assert result.nodes == {}
    assert result.n_models <= 2
    threshold = by_threshold(model, preference, X, y)
    assert value_of(preference, result.by_offset) == threshold
    assert value_of(preference, result.after) <= threshold


@pytest.mark.slow
@pytest.mark.parametrize("learner", [TREE, LINE], ids=["tree", "line"])
@pytest.mark.parametrize("text", REQUESTS[:-1])
def test_other_learners_have_at_most_the_errors_of_a_threshold(text, learner):
    model, X, y = grown(learner=learner, n_levels=4)
    preference = Preference(text)
    threshold = by_threshold(model, preference, X, y)
    met = preference.met(matrix_of(model, X, y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMetWarning)  # few votes have few thresholds
        for max_models in (0, None):
            result = model.tune(text, X, y, max_models=max_models).tuning_
            if met:
                assert result.after == result.before == result.by_offset
            else:
                assert value_of(preference, result.by_offset) == threshold
                assert value_of(preference, result.after) <= threshold


@pytest.mark.parametrize(
    "learner",
    [
        TREE,
        slow(GaussianNB()),
        KNeighborsClassifier(2),
        Perceptron(),
        Contrary(),
        slow(RidgeClassifier()),
        slow(FixedThresholdClassifier(GaussianNB(), threshold=0.7)),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize(
    ("seed", "fractions"),
    [(0, [0.75]), slow(1, [0.9, 0.5, 0])],
)
def test_any_learner_can_be_tuned(learner, seed, fractions):
    """With and without probabilities, and where labels are not the most probable ones."""
    model, X, y = grown(learner=learner, n_levels=2, seed=seed)
    before = matrix_of(model, X, y)
    for word in ("fp", "fn"):
        count = getattr(before, word)
        for fraction in fractions:
            once = model.tune(f"{word} <= {int(fraction * count)}", X, y)
            other = "fn" if word == "fp" else "fp"
            now = getattr(matrix_of(once, X, y), other)
            twice = once.tune(f"{other} <= {now // 2}", X, y, max_models=0)
            for tuned in (once, twice):
                assert tuned.tuning_.after == matrix_of(tuned, X, y)
                assert tuned.tuning_.met


def test_the_search_may_have_fewer_errors_than_a_threshold():
    gains = []
    for seed in range(2):
        model, X, y = grown(seed=seed)
        for text in REQUESTS[2:4]:
            result = model.tune(text, X, y).tuning_
            values = [value_of(result.preference, one) for one in (result.by_offset, result.after)]
            assert values[1] <= values[0]
            gains.append(values[1] < values[0])
    assert any(gains)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["liver", "ionosphere"])
@pytest.mark.parametrize("seed", range(3))
def test_requests_on_real_data(name, seed):
    X, y, X_tune, y_tune = bundled(name, seed)
    model = MartingaleBoostClassifier(n_levels=5).fit(X, y)
    before = matrix_of(model, X_tune, y_tune)
    for word in ("fp", "fn"):
        count = getattr(before, word)
        for limit in sorted({max(count - 1, 0), count // 2, 0}):
            tuned = model.tune(f"{word} <= {limit}", X_tune, y_tune)
            result = tuned.tuning_
            assert result.met
            assert result.after == matrix_of(tuned, X_tune, y_tune)
            threshold = by_threshold(model, result.preference, X_tune, y_tune)
            assert value_of(result.preference, result.after) <= threshold


def test_the_positive_class_may_be_the_other_one():
    model, X, y = grown()
    by_name = model.tune("fp(0) <= 4", X, y)
    by_positive = model.tune("fp <= 4", X, y, positive=0)
    np.testing.assert_array_equal(by_positive.predict(X), by_name.predict(X))
    assert by_positive.tuning_.after == matrix_of(by_positive, X, y, positive=0)
    assert by_positive.tuning_.after.fp <= 4


def test_edits_of_the_matrix_are_preferences():
    model, X, y = grown()
    shown = matrix_of(model, X, y)
    more, fewer = shown.tp + 2, shown.fp - 2
    tuned = model.tune(shown.edit(1, 1, more), X, y)
    assert matrix_of(tuned, X, y).tp >= more
    tuned = model.tune(shown.edit(0, 1, fewer), X, y)
    assert matrix_of(tuned, X, y).fp <= fewer
    both = shown.edit(0, 1, fewer) & shown.edit(1, 1, shown.tp - 6)
    tuned = model.tune(both, X, y)
    assert both.met(matrix_of(tuned, X, y))


# Three classes


THREE = [
    "errors(versicolor -> virginica) <= 1",
    "errors(versicolor -> virginica) <= 3, errors(virginica -> versicolor) <= 4",
    "recall(versicolor) >= 95%",
    "correct(setosa) >= 14",
    "fp(virginica) <= 1",
]


@pytest.mark.parametrize(
    ("text", "learner"),
    [
        *((text, None) for text in THREE[1:4]),
        *(slow(text, None) for text in (THREE[0], THREE[4])),
        *(slow(text, TREE) for text in THREE),
        *(slow(text, LINE) for text in THREE),
    ],
)
def test_requests_on_three_classes(text, learner):
    X, y, X_tune, y_tune = bundled("iris", 4, noise=1.0)
    model = MartingaleBoostClassifier(learner, 3, random_state=0).fit(X, y)
    preference = Preference(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMetWarning)
        tuned = model.tune(text, X_tune, y_tune)
    result = tuned.tuning_
    assert result.before == matrix_of(model, X_tune, y_tune)
    assert result.after == matrix_of(tuned, X_tune, y_tune)
    assert result.met == preference.met(result.after)
    if learner is None:
        assert result.met
    best = value_of(preference, result.after)
    assert best <= value_of(preference, result.by_offset)
    assert value_of(preference, result.by_offset) <= value_of(preference, result.before)


def test_a_second_request_on_three_classes_never_gets_worse():
    X, y, X_tune, y_tune = made(3, 60, seed=335)
    model = MartingaleBoostClassifier(Perceptron(), 3, random_state=0).fit(X, y)
    texts = ["errors(0 -> 2) <= 0", "precision(1) >= 95%", "recall(0) >= 90%, recall(2) >= 90%"]
    for text in texts:
        preference, before = Preference(text), matrix_of(model, X_tune, y_tune)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotMetWarning)
            model = model.tune(text, X_tune, y_tune, max_models=0)
        after = matrix_of(model, X_tune, y_tune)
        assert preference.shortfall(after) <= preference.shortfall(before)


# A preference that is met, and one that cannot be


@pytest.mark.parametrize(("k", "learner"), [(2, None), (2, LINE), (3, TREE)])
def test_a_preference_that_is_met_changes_nothing(k, learner):
    model, X, y = grown(k, learner)
    steps = []
    tuned = model.tune("accuracy >= 10%", X, y, callback=steps.append)
    assert (tuned.tuning_.met, tuned.tuning_.n_models, steps) == (True, 0, [])
    assert tuned.tuning_.before == tuned.tuning_.after == tuned.tuning_.by_offset
    np.testing.assert_array_equal(tuned.predict_proba(X), model.predict_proba(X))
    assert tuned.program_.nodes == model.program_.nodes
    np.testing.assert_array_equal(tuned.program_.counts, model.program_.counts)
    tuned = model.tune("fp(0) <= 3", X, y)
    again = tuned.tune("fp(0) <= 3", X, y)
    assert again.tuning_.n_models == 0
    np.testing.assert_array_equal(again.predict_proba(X), tuned.predict_proba(X))


@pytest.mark.parametrize("max_models", [0, 1, 2])
def test_an_infeasible_preference_warns_with_the_limiting_constraint(max_models):
    model, X, y = grown()
    with pytest.warns(NotMetWarning) as caught:
        tuned = model.tune("fp <= 1, fn <= 1", X, y, max_models=max_models)
    result = tuned.tuning_
    assert not result.met
    assert result.after == matrix_of(tuned, X, y)
    assert result.shortfall == max(result.after.fp - 1, 0) + max(result.after.fn - 1, 0)
    assert str(result.binding) in ("fp <= 1", "fn <= 1")
    (warning,) = caught
    for named in ("'fp <= 1, fn <= 1'", f" {result.shortfall:g} ", f"'{result.binding}'"):
        assert named in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.parametrize(
    ("text", "change", "error", "named"),
    [
        ("correct(0) >= 61", lambda y: y, PreferenceError, r"'correct\(0\) >= 61'.*\b60\b"),
        ("fp <= 1", lambda y: np.zeros_like(y), ValueError, r"y_tune.*\b1\b"),
        ("fp <= 1", lambda y: y[:7], ValueError, r"y_tune.*\b120\b.*\(7,\)"),
        ("fp <= 1", lambda y: np.where(y == 0, 0, 5), ValueError, r"y_tune.*\b5\b"),
    ],
)
def test_bad_requests_are_refused(text, change, error, named):
    model, X, _ = grown()
    y = np.arange(120) % 2
    with pytest.raises(error, match=named):
        model.tune(text, X, change(y))


@pytest.mark.parametrize("wants", [{(0, 0): "fp <= 1"}, len, 5, None], ids=repr)
def test_the_whole_program_needs_one_preference(wants):
    model, X, y = grown()
    with pytest.raises(TypeError, match=rf"granularity.*'all'.*\b{type(wants).__name__}\b"):
        model.tune(wants, X, y)


@pytest.mark.parametrize("granularity", ["node", "Root", None, 1])
def test_an_unknown_granularity_is_refused(granularity):
    model, X, y = grown()
    with pytest.raises(ValueError, match=rf"granularity.*{granularity!r}"):
        model.tune("fp <= 1", X, y, granularity=granularity)


@pytest.mark.parametrize("max_models", [-1, 1.5, "2", True])
@pytest.mark.parametrize("granularity", ["root", "all", "select"])
def test_a_limit_that_is_no_count_is_refused(max_models, granularity):
    model, X, y = grown()
    with pytest.raises(ValueError, match=rf"max_models.*{max_models!r}"):
        model.tune("fp <= 1", X, y, granularity=granularity, max_models=max_models)


def test_other_features_are_refused():
    model, X, y = grown()
    with pytest.raises(ValueError, match=r"5 features.*MartingaleBoostClassifier.*6 features"):
        model.tune("fp <= 1", X[:, :5], y)


# What moves


@pytest.mark.parametrize("learner", [None, TREE, LINE], ids=["logistic", "tree", "line"])
def test_without_models_only_offsets_move_and_the_learners_stay(learner):
    model, X, y = grown(learner=learner)
    tuned = model.tune("fp <= 5", X, y, max_models=0)
    assert tuned.tuning_.n_models == 0
    assert list(tuned.learners_) == list(model.learners_)
    assert all(tuned.learners_[at] is model.learners_[at] for at in model.learners_)
    assert [node.position for node in tuned.program_.nodes] == [
        node.position for node in model.program_.nodes
    ]
    assert (tuned.predict(X) != model.predict(X)).any()


def test_an_offset_at_the_nodes_changes_paths():
    model, X, y = grown()
    moved = [model.tune(text, X, y, max_models=0) for text in REQUESTS[::3]]
    paths = [(one.decision_path(X) != model.decision_path(X)).nnz > 0 for one in moved]
    assert any(paths)


@pytest.mark.parametrize("max_models", [1, 2])
def test_no_more_programs_are_grown_than_allowed(max_models):
    model, X, y = grown()
    result = model.tune("fp <= 0", X, y, max_models=max_models).tuning_
    assert result.n_models == max_models
    assert result.after.n_errors > 0


def test_more_programs_are_never_worse():
    model, X, y = grown()
    for text in REQUESTS[::5]:
        each = [model.tune(text, X, y, max_models=m).tuning_ for m in (0, 1, 2)]
        ranks = [value_of(result.preference, result.after) for result in each]
        assert ranks == sorted(ranks, reverse=True)


def test_a_result_without_errors_ends_the_search():
    """The classes are separable, and only the threshold of the model is wrong."""
    X = np.concatenate([np.linspace(0, 1, 40), np.linspace(3, 4, 40)])[:, None]
    y = np.repeat([0, 1], 40)
    model = MartingaleBoostClassifier(TunableLogistic(offset=[2.0, -2.0]), 1).fit(X, y)
    X_tune = np.array([0.2, 0.4, 2.5, 3.9])[:, None]
    y_tune = np.array([0, 0, 1, 1])
    before = matrix_of(model, X_tune, y_tune)
    assert before.fn == 1
    steps = []
    result = model.tune("fn <= 0", X_tune, y_tune, callback=steps.append).tuning_
    assert (result.met, result.n_models, result.after.fp) == (True, 0, 0)
    assert {step.number for step in steps} == {0}


def test_the_trained_program_is_not_changed():
    for learner in (None, TREE):
        model, X, y = grown(learner=learner)
        proba, before = model.predict_proba(X), pickle.dumps(model)
        for text in ("fp <= 3", "fn <= 3"):
            tuned = model.tune(text, X, y)
            assert (tuned.predict(X) != model.predict(X)).any()
            assert repr(tuned) == repr(model)
        assert pickle.dumps(model) == before
        assert model.tuning_ is None
        np.testing.assert_array_equal(model.predict_proba(X), proba)


def test_a_tuned_program_can_be_tuned_again():
    model, X, y = grown()
    once = model.tune("fp <= 3", X, y)
    twice = once.tune("fn <= 9", X, y)
    thrice = twice.tune("fp <= 12", X, y)
    assert twice.tuning_.before == once.tuning_.after
    assert thrice.tuning_.before == twice.tuning_.after
    for tuned in (once, twice, thrice):
        assert tuned.tuning_.met
        assert tuned.tuning_.after == matrix_of(tuned, X, y)
        threshold = by_threshold(tuned, tuned.tuning_.preference, X, y)
        assert threshold[0] == 0
    assert model.tuning_ is None


def test_a_pickled_program_is_tuned_the_same():
    model, X, y = grown()
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    one, other = model.tune("fp <= 3", X, y), again.tune("fp <= 3", X, y)
    assert one.tuning_ == other.tuning_
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    tuned = pickle.loads(pickle.dumps(one))  # noqa: S301
    assert tuned.tuning_ == one.tuning_
    np.testing.assert_array_equal(tuned.predict_proba(X), one.predict_proba(X))


def test_tuning_is_the_same_for_any_number_of_jobs():
    learner = DecisionTreeClassifier(splitter="random", max_features=1, max_depth=2)
    for estimator in (None, learner):
        model, X, y = grown(learner=estimator)
        tuned = model.tune("fp <= 3", X, y)
        other = copy(model).set_params(n_jobs=2).tune("fp <= 3", X, y)
        np.testing.assert_allclose(tuned.predict_proba(X), other.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("train", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("tune", [np.asarray, sparse.csr_matrix])
def test_sparse_samples_where_the_learner_supports_them(train, tune):
    X, y, X_tune, y_tune = made()
    model = MartingaleBoostClassifier(TREE, 3).fit(train(X), y)
    tuned = model.tune("fp <= 5", tune(X_tune), y_tune)
    assert tuned.tuning_.met
    assert tuned.tuning_.after == matrix_of(tuned, X_tune, y_tune)


def test_weights_and_frozen_nodes_stay():
    X, y, X_tune, y_tune = made()
    model = MartingaleBoostClassifier(n_levels=4, freeze=2.0)
    model.fit(X, y, np.linspace(0.5, 2, len(y)))
    tuned = model.tune("fp <= 5", X_tune, y_tune)
    assert tuned.tuning_.met
    assert tuned.tuning_.after == matrix_of(tuned, X_tune, y_tune)
    assert "frozen" in {node.kind for node in tuned.program_.nodes}


def test_labels_are_text():
    X, y, X_tune, y_tune = made()
    names = np.array(["ham", "spam"])
    model = MartingaleBoostClassifier(n_levels=3).fit(X, names[y])
    plain = MartingaleBoostClassifier(n_levels=3).fit(X, y)
    tuned = model.tune("errors(ham -> spam) <= 5", X_tune, names[y_tune])
    assert tuned.tuning_.after == matrix_of(tuned, X_tune, names[y_tune])
    other = plain.tune("fp <= 5", X_tune, y_tune)
    np.testing.assert_array_equal(tuned.predict(X_tune), names[other.predict(X_tune)])


# The callback


def test_the_callback_receives_every_program():
    model, X, y = grown()
    steps = []
    tuned = model.tune("fp <= 2", X, y, callback=steps.append)
    assert all(isinstance(step, Step) for step in steps)
    assert [step.number for step in steps] == [0, 1, 2]
    assert {step.most for step in steps} == {2}
    assert steps[-1].confusion == tuned.tuning_.after
    assert steps[-1].met
    ranks = [value_of(tuned.tuning_.preference, step.confusion) for step in steps]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] <= value_of(tuned.tuning_.preference, tuned.tuning_.by_offset)


@pytest.mark.parametrize("at", [0, 1])
def test_a_true_result_cancels_and_the_best_so_far_is_returned(at):
    model, X, y = grown()
    steps = []

    def callback(step):
        steps.append(step)
        return step.number == at

    tuned = model.tune("fp <= 2", X, y, callback=callback)
    assert tuned.tuning_.cancelled
    assert tuned.tuning_.n_models == at
    assert len(steps) == at + 1
    assert tuned.tuning_.after == steps[-1].confusion == matrix_of(tuned, X, y)
    limited = model.tune("fp <= 2", X, y, max_models=at)
    np.testing.assert_allclose(tuned.predict_proba(X), limited.predict_proba(X), rtol=1e-9)


def test_an_error_in_the_callback_is_the_callers():
    model, X, y = grown()
    with pytest.raises(ZeroDivisionError):
        model.tune("fp <= 2", X, y, callback=lambda step: 1 / 0)


# What a request means at a node


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("errors(0 -> 1) <= 2", {(0, 1): 0.5}),
        ("errors(0 -> 1) <= 4", {}),
        ("errors(0 -> 1) <= 0, errors(1 -> 0) <= 1", {(0, 1): 0.0, (1, 0): 0.5}),
        ("errors(0 -> 1) <= 2, correct(0) >= 9", {(0, 1): 0.25}),
        ("recall(1) >= 90%", {(1, 0): 0.5}),
        ("precision(1) >= 80%", {(0, 1): 0.6}),
    ],
)
def test_fractions_of_the_errors_that_may_stay(text, expected):
    """Six of ten and eight of ten are right; 4 of 0 are called 1, and 2 of 1 are called 0."""
    codes = np.repeat([0, 1], 10)
    before = np.repeat([0, 1, 0, 1], [6, 4, 2, 8])
    objective = Objective(Preference(text), codes, (0, 1))
    targets = LocalTargets(objective, before, np.zeros((20, 1)), 0, None)
    assert targets.fractions == pytest.approx(expected)


def tune_fully(learner, objective, X):
    return learner._tune_node(objective, X, max_models=20)[0]


def test_a_node_keeps_its_fraction_of_the_errors():
    X, y, X_tune, y_tune = made()
    learner = TunableLogistic().fit(X, y)
    predictions = learner.predict(X_tune)
    count = int(np.sum((y_tune == 0) & (predictions == 1)))
    objective = Objective(Preference(f"fp <= {count // 2}"), y_tune, (0, 1))
    targets = LocalTargets(objective, predictions, X_tune, len(X), tune_fully)
    rows = np.arange(len(X), len(X) + len(X_tune))[::2]
    here = rows - len(X)
    wrong = np.sum((y_tune[here] == 0) & (predictions[here] == 1))
    refined = targets.refine((0, 0), learner, np.concatenate([np.arange(len(X)), rows]))
    now = np.sum((y_tune[here] == 0) & (refined.predict(X_tune[here]) == 1))
    assert now <= (count // 2) / count * wrong
    np.testing.assert_array_equal(learner.predict(X_tune), predictions)


def test_a_node_without_tuning_samples_of_a_class_is_left_as_it_is():
    X, y, X_tune, y_tune = made()
    learner = TunableLogistic().fit(X, y)
    objective = Objective(Preference("fp <= 0"), y_tune, (0, 1))
    targets = LocalTargets(objective, learner.predict(X_tune), X_tune, len(X), tune_fully)
    assert targets.fractions
    only = np.flatnonzero(y_tune == 0) + len(X)
    for rows in (only, np.arange(len(X)), np.zeros(0, dtype=int)):
        assert targets.refine((0, 0), learner, rows) is learner
