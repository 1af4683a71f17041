"""The plot of errors against the rounds of boosting."""

import sys

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

from margrave import catalogue
from margrave.compare import BoostingDisplay

plt = pytest.importorskip("matplotlib.pyplot")

LABELS = np.array(["ham", "spam"])


@pytest.fixture(autouse=True)
def no_window():
    plt.switch_backend("agg")


@pytest.fixture
def moons():
    X, y = make_moons(200, noise=0.3, random_state=0)
    return X[:100], LABELS[y[:100]], X[100:], LABELS[y[100:]]


@pytest.mark.parametrize("name", ["adaboost", "real-adaboost", "modest-adaboost"])
def test_errors_are_those_of_fewer_rounds(moons, name):
    X, y, X_test, y_test = moons
    made = catalogue.make(name, n_estimators=8, random_state=0)
    display = BoostingDisplay.from_estimator(made.fit(X, y), X, y, X_test, y_test)
    assert len(display.training_errors) == len(display.test_errors) == 8
    for rounds in (1, 3, 8):
        fewer = catalogue.make(name, n_estimators=rounds, random_state=0).fit(X, y)
        assert display.training_errors[rounds - 1] == pytest.approx(1 - fewer.score(X, y))
        assert display.test_errors[rounds - 1] == pytest.approx(1 - fewer.score(X_test, y_test))


def test_the_first_round_of_adaboost_is_its_base_classifier(moons):
    X, y, X_test, y_test = moons
    model = AdaBoostClassifier(n_estimators=5, random_state=0).fit(X, y)
    display = BoostingDisplay.from_estimator(model, X, y, X_test, y_test)
    stump = DecisionTreeClassifier(max_depth=1).fit(X, y)
    level = 1 - stump.score(X_test, y_test)
    np.testing.assert_allclose(display.lines_["first round"].get_ydata(), level)


def test_lines_show_the_errors(moons):
    X, y, X_test, y_test = moons
    model = GradientBoostingClassifier(n_estimators=4, random_state=0).fit(X, y)
    display = BoostingDisplay.from_estimator(model, X, y, X_test, y_test)
    for name, errors in (("training", display.training_errors), ("test", display.test_errors)):
        assert display.lines_[name].get_xdata().tolist() == [1, 2, 3, 4]
        np.testing.assert_array_equal(display.lines_[name].get_ydata(), errors)
    assert len(display.ax_.get_legend().get_texts()) == 3
    assert display.figure_ is display.ax_.figure


def test_without_test_samples(moons):
    X, y, *_ = moons
    model = AdaBoostClassifier(n_estimators=3, random_state=0).fit(X, y)
    display = BoostingDisplay.from_estimator(model, X, y)
    assert display.test_errors is None
    assert set(display.lines_) == {"training", "first round"}
    assert display.lines_["first round"].get_ydata()[0] == display.training_errors[0]


def test_on_axes_of_the_caller(moons):
    X, y, *_ = moons
    figure, axes = plt.subplots(1, 2)
    for ax in axes:
        model = AdaBoostClassifier(n_estimators=3, random_state=0).fit(X, y)
        assert BoostingDisplay.from_estimator(model, X, y, ax=ax).ax_ is ax
    assert plt.get_fignums() == [figure.number]


def test_estimators_that_are_not_boosted(moons):
    X, y, *_ = moons
    with pytest.raises(ValueError, match=r"\bestimator\b.*staged_predict.*DecisionTreeClassifier"):
        BoostingDisplay.from_estimator(DecisionTreeClassifier().fit(X, y), X, y)
    with pytest.raises(NotFittedError):
        BoostingDisplay.from_estimator(AdaBoostClassifier(), X, y)


def test_regressors_and_labels_of_another_kind(moons):
    X, y, *_ = moons
    with pytest.raises(ValueError, match=r"\bestimator\b.*GradientBoostingRegressor"):
        BoostingDisplay.from_estimator(GradientBoostingRegressor().fit(X, y == "spam"), X, y)
    model = AdaBoostClassifier(n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match=r"\blabel\b.*\bham\b"):
        BoostingDisplay.from_estimator(model, X, y == "spam")


def test_test_samples_without_labels(moons):
    X, y, X_test, y_test = moons
    model = AdaBoostClassifier(n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match=r"\by_test\b"):
        BoostingDisplay.from_estimator(model, X, y, X_test)
    with pytest.raises(ValueError, match=r"\bX_test\b"):
        BoostingDisplay.from_estimator(model, X, y, y_test=y_test)
    with pytest.raises(ValueError, match="samples"):
        BoostingDisplay.from_estimator(model, X, y, X_test, y_test[:-1])


def test_errors_that_do_not_fit():
    for training, test in (([], None), ([0.1, 0.2], [0.1]), ([[0.1]], None)):
        with pytest.raises(ValueError, match="training_errors"):
            BoostingDisplay(training, test).plot()
    constant = catalogue.make("real-adaboost").fit(np.ones((4, 1)), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="round"):
        BoostingDisplay.from_estimator(constant, np.ones((4, 1)), [0, 1, 0, 1])


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"BoostingDisplay.*matplotlib.*\bplot\b"):
        BoostingDisplay([0.1]).plot()
