"""Bias and variance: the bootstrap, the alignment of classes, and the error messages."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_blobs, make_moons
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from margrave.compare import BiasVariance, bias_variance
from margrave.compare._bias_variance import fit_and_predict

LOSSES = ["squared", "zero-one"]


@pytest.fixture
def moons():
    X, y = make_moons(240, noise=0.3, random_state=0)
    return X[:120], y[:120], X[120:], y[120:]


def numbers(parts):
    return [parts.error, parts.bias, parts.variance, parts.net_variance, parts.net_noise]


def add_up(parts):
    assert parts.net_noise + parts.bias + parts.net_variance == pytest.approx(parts.error, abs=1e-9)
    for name in ("error", "bias", "variance", "net_variance", "net_noise"):
        assert getattr(parts, name) == pytest.approx(getattr(parts.points, name).mean())


@pytest.mark.parametrize("loss", LOSSES)
def test_parts_add_up(moons, loss):
    parts = bias_variance(DecisionTreeClassifier(), *moons, loss=loss, n_rounds=15, random_state=0)
    add_up(parts)
    assert parts.noise is None
    assert parts.net_noise == 0
    assert parts.variance > 0


def test_regression(moons):
    X, y, X_test, y_test = moons
    parts = bias_variance(
        DecisionTreeRegressor(), X, y, X_test, y_test, n_rounds=15, random_state=0
    )
    add_up(parts)
    assert parts.variance == parts.net_variance > 0


def test_an_estimator_that_never_changes_has_no_variance(moons):
    X, _, X_test, y_test = moons
    truth = LinearRegression().fit(X, X @ [1.0, -2.0])
    parts = bias_variance(truth, X, truth.predict(X), X_test, y_test, n_rounds=5, random_state=0)
    expected = np.mean((truth.predict(X_test) - y_test) ** 2)
    assert parts.variance == pytest.approx(0, abs=1e-12)
    assert parts.bias == pytest.approx(expected)


def test_squared_error_of_a_classifier_is_the_brier_score(moons):
    X, y, X_test, y_test = moons
    model = KNeighborsClassifier(5)
    parts = bias_variance(model, X, y, X_test, y_test, n_rounds=4, random_state=0)
    seeds = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=4)
    scores = []
    for seed in seeds:
        rows = np.random.RandomState(seed).randint(0, len(X), len(X))
        proba = model.fit(X[rows], y[rows]).predict_proba(X_test)
        scores.append(np.mean(np.square(proba - np.eye(2)[y_test]).sum(axis=1)))
    assert parts.error == pytest.approx(np.mean(scores))


@pytest.mark.parametrize("loss", LOSSES)
def test_noise_is_a_term_of_its_own_if_the_truth_is_known(moons, loss):
    X, y, X_test, y_test = moons
    proba = np.tile([0.3, 0.7], (len(y_test), 1))
    known = bias_variance(
        LogisticRegression(), X, y, X_test, y_test,
        loss=loss, n_rounds=10, true_proba=proba, random_state=0,
    )  # fmt: skip
    add_up(known)
    assert known.noise == pytest.approx(2 * 0.3 * 0.7 if loss == "squared" else 0.3)
    unknown = bias_variance(
        LogisticRegression(), X, y, X_test, y_test, loss=loss, n_rounds=10, random_state=0
    )
    assert known.variance == pytest.approx(unknown.variance)


def test_bagging_lowers_the_variance(moons):
    tree, bagged = (
        bias_variance(model, *moons, n_rounds=30, random_state=0)
        for model in (DecisionTreeClassifier(), BaggingClassifier(n_estimators=10))
    )
    assert bagged.variance < 0.6 * tree.variance
    assert bagged.error < tree.error


@pytest.mark.parametrize("loss", LOSSES)
def test_the_seed_determines_the_result_for_any_n_jobs(moons, loss):
    # The tree, its splitter and the bagging all draw: each needs a seed of its own.
    model = make_pipeline(
        StandardScaler(),
        BaggingClassifier(DecisionTreeClassifier(splitter="random"), n_estimators=3),
    )
    settings = {"loss": loss, "n_rounds": 4}
    first = bias_variance(model, *moons, random_state=3, **settings)
    again = bias_variance(model, *moons, random_state=3, n_jobs=2, **settings)
    other = bias_variance(model, *moons, random_state=4, **settings)
    assert numbers(first) == pytest.approx(numbers(again), rel=1e-9)
    assert numbers(first) != pytest.approx(numbers(other), rel=1e-9)
    np.testing.assert_allclose(first.points.error, again.points.error, rtol=1e-9)


def test_fixed_seed_of_the_estimator_is_kept():
    seen = []

    class Seeded(DecisionTreeClassifier):
        def fit(self, X, y):
            seen.append(self.random_state)
            return super().fit(X, y)

    X, y = make_blobs(30, centers=2, random_state=0)
    bias_variance(Seeded(random_state=5), X, y, X, y, n_rounds=3)
    assert seen == [5, 5, 5]
    seen.clear()
    bias_variance(Seeded(), X, y, X, y, n_rounds=3)
    assert len(set(seen)) == 3
    assert None not in seen


@pytest.mark.parametrize("loss", LOSSES)
def test_bootstrap_samples_that_lack_a_class(loss):
    # One sample of the class "b": about a third of the bootstrap samples miss it.
    X, y = make_blobs(30, centers=2, cluster_std=0.3, random_state=0)
    labels = np.where(y == 0, "a", "c")
    labels[0] = "b"
    parts = bias_variance(
        LogisticRegression(), X, labels, X, labels, loss=loss, n_rounds=20, random_state=0
    )
    add_up(parts)
    assert parts.points.error[0] > parts.points.error[1:].max()


@pytest.mark.parametrize("loss", LOSSES)
def test_bootstrap_samples_with_one_class_only(loss):
    # Half of the bootstrap samples of two samples have one class only, which logistic regression
    # does not accept.
    X, y = [[0.0], [1.0]], ["a", "b"]
    parts = bias_variance(LogisticRegression(), X, y, X, y, loss=loss, n_rounds=20, random_state=0)
    add_up(parts)
    assert 0 < parts.error < 1


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("strange", "got"),
    [
        ([7, 1, 5, 7], "7, 5"),
        (["1", "0", "1", "0"], "'1', '0'"),
        ([0, 1, np.nan, 1], "nan"),
        (np.arange(20) + 2, "2, 3, 4, 5, 6, 7, 8, 9, 10, 11.*20"),
    ],
)
def test_labels_that_only_the_test_set_has(loss, strange, got):
    X, y = make_blobs(40, centers=2, random_state=0)
    with pytest.raises(ValueError, match=rf"\by_test\b.*{got}"):
        bias_variance(DecisionTreeClassifier(), X, y, X[: len(strange)], strange, loss=loss)


def test_the_test_set_may_lack_labels():
    X, y = make_blobs(40, centers=3, random_state=0)
    proba = np.eye(3)[y[:1]]
    parts = bias_variance(
        DecisionTreeClassifier(), X, y, X[:1], y[:1], true_proba=proba, n_rounds=3, random_state=0
    )
    add_up(parts)
    assert parts.noise == 0


def test_targets_of_a_regression_need_not_be_known():
    X = np.arange(6.0).reshape(-1, 1)
    parts = bias_variance(LinearRegression(), X, X.ravel(), [[7.5]], [7.5], n_rounds=3)
    assert parts.error == pytest.approx(0, abs=1e-12)


class Rejects(ClassifierMixin, BaseEstimator):
    """Predicts a label that is not a class for every second sample."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.where(np.arange(len(X)) % 2 == 0, "rejected", "a")


def test_rejections_are_wrong_and_no_class():
    X, y = np.zeros((10, 1)), ["a", "b"] * 5
    # Seeded: one bootstrap sample in 500 has samples of one class only, which is another case.
    parts = bias_variance(
        Rejects(), X, y, X[:2], ["a", "a"], loss="zero-one", n_rounds=10, random_state=0
    )
    assert parts.points.error.tolist() == [1, 0]
    assert parts.variance == 0


def test_frames_and_column_names():
    X, y = make_blobs(60, centers=3, random_state=0)
    frame = pd.DataFrame(X, columns=["length", "width"])
    target = pd.Series(y).map({0: "a", 1: "b", 2: "c"})
    # A member that was trained on names warns when they are missing, and warnings are errors here.
    parts = bias_variance(
        LogisticRegression(), frame, target, frame, target, n_rounds=3, random_state=0
    )
    plain = bias_variance(LogisticRegression(), X, y, X, y, n_rounds=3, random_state=0)
    assert numbers(parts) == pytest.approx(numbers(plain), rel=1e-9)


def test_a_round_predicts_one_row_per_test_point():
    X, y = make_blobs(20, centers=2, random_state=0)
    classes = np.array([0, 1, 2])
    proba = fit_and_predict(DecisionTreeClassifier(), X, y, X[:3], classes, "squared", 0)
    assert proba.shape == (3, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert np.all(proba[:, 2] == 0)
    codes = fit_and_predict(DecisionTreeClassifier(), X, y, X[:3], classes, "zero-one", 0)
    assert codes.shape == (3,)
    values = fit_and_predict(DecisionTreeRegressor(), X, y, X[:3], None, "squared", 0)
    assert values.shape == (3, 1)


def test_printed_as_a_table():
    parts = BiasVariance("zero-one", 10, 0.35, 0.2, 0.1, 0.05, 0.2, 0.1, None)
    head, *rows = str(parts).splitlines()
    assert "zero-one" in head
    assert "10" in head.split()
    assert [float(row.split()[-1]) for row in rows] == [0.35, 0.2, 0.1, 0.05, 0.2, 0.1]
    assert len({row.rindex("0.") for row in rows}) == 1
    parts = BiasVariance("squared", 10, 0.3, 0.2, 0.1, 0.1, None, 0.0, None)
    head, *rows = str(parts).splitlines()
    assert "squared" in head
    assert [float(row.split()[-1]) for row in rows] == [0.3, 0.2, 0.1]


TREE = DecisionTreeClassifier()


@pytest.mark.parametrize(
    ("estimator", "settings", "named"),
    [
        (TREE, {"n_rounds": 0}, r"\bn_rounds\b.*\b0\b"),
        (TREE, {"n_rounds": 1.5}, r"\bn_rounds\b.*\b1\.5\b"),
        (TREE, {"loss": "hinge"}, r"\bloss\b.*'hinge'"),
        ("tree", {}, r"\bestimator\b.*'tree'"),
        (StandardScaler(), {}, r"\bestimator\b.*StandardScaler"),
        (LinearRegression(), {"loss": "zero-one"}, r"\bloss\b.*LinearRegression.*'zero-one'"),
        (LinearRegression(), {"true_proba": [[1.0]]}, r"\btrue_proba\b.*LinearRegression"),
        (SVC(), {"loss": "squared"}, r"\bloss\b.*SVC.*predict_proba.*'squared'"),
        (TREE, {"true_proba": np.ones((120, 3)) / 3}, r"\btrue_proba\b.*\(120, 2\).*\(120, 3\)"),
        (TREE, {"true_proba": np.ones((120, 2))}, r"\btrue_proba\b.*\b1\b"),
    ],
)
def test_bad_settings(moons, estimator, settings, named):
    with pytest.raises(ValueError, match="bias_variance.*" + named):
        bias_variance(estimator, *moons, **settings)


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ((np.empty((0, 2)), [], [[0, 0]], [0]), r"\bX\b"),
        (([[0, 0]], [0], [], []), r"\bX_test\b"),
        (([[0, 0]], [0, 1], [[0, 0]], [0]), r"\by\b.*\b1\b.*\bX\b.*\b2\b"),
        (([[0, 0]], [0], [[0, 0]], [0, 1]), r"\by_test\b.*\b1\b.*\bX_test\b.*\b2\b"),
        (([[0, 0]], [0], [[0, 0, 0]], [0]), r"\bX_test\b.*\(2,\).*\(3,\)"),
    ],
)
def test_bad_samples(data, named):
    with pytest.raises(ValueError, match="bias_variance.*" + named):
        bias_variance(TREE, *data)
