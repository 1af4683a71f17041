"""Corollary 1 for support vector machines: the formula, and its truth on new samples."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC, LinearSVC

from margrave.compare import CertaintyDisplay
from margrave.mam import SVMCertainty
from margrave.mam._certainty import highest_rate

KERNELS = {
    "rbf": {"gamma": 0.02},
    "linear": {},
    "poly": {"gamma": 0.1, "degree": 2, "coef0": 1.0},
}
DELTA = 0.05


def draw(n, seed=0):
    return make_blobs(n, centers=[[-2, 0], [2, 0]], random_state=seed)


def power_fraction(power):
    """Fractions of all integers, which sum to 1."""
    every = np.arange(-100_000, 100_001)
    return 1 / (1 + abs(power)) ** 2 / (1 / (1.0 + np.abs(every)) ** 2).sum()


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_bound_is_equation_15(kernel):
    X, y = draw(1500)
    svm = SVC(kernel=kernel, C=0.1, **KERNELS[kernel]).fit(X, y)
    K = pairwise_kernels(X, metric=kernel, **KERNELS[kernel])
    alpha = np.zeros(len(X))
    alpha[svm.support_] = svm.dual_coef_[0]
    scores = K @ alpha + svm.intercept_
    length, intercept = np.sqrt(alpha @ K @ alpha), abs(svm.intercept_[0])
    powers = [int(np.ceil(np.log2(one))) for one in (length, intercept)]
    n = len(X)
    mean = np.clip(np.where(y == 1, 1, -1) * scores, -1, 1).mean()
    complexity = 2 / n * np.sqrt(np.trace(K)) * 2.0 ** powers[0] + 2 / np.sqrt(n) * 2.0 ** powers[1]
    delta = DELTA * power_fraction(powers[0]) * power_fraction(powers[1])
    last = 3 * np.sqrt(2 * np.log(2 / delta) / n)
    rho = np.minimum(np.abs(scores[:50]), 1)
    expected = np.minimum((1 - mean + complexity + last) / (1 + rho), 1)
    found = SVMCertainty(svm, X, y).certainty(X[:50], DELTA)
    np.testing.assert_allclose(found.margins, rho, atol=1e-9)
    np.testing.assert_allclose(found.bound, expected, rtol=1e-4)
    assert found.held_out is None


def test_the_bound_holds_and_is_not_vacuous_with_many_samples():
    X, y = draw(2000)
    svm = SVC(gamma=0.02, C=0.1).fit(X, y)
    new, labels = draw(20_000, seed=1)
    found = SVMCertainty(svm, X, y).certainty(new)
    wrong = svm.predict(new) != labels
    assert found.bound.max() < 1
    for rho in (0.0, 0.3, 0.6):
        least = found.bound[found.margins >= rho].max()
        assert (wrong & (found.margins >= rho)).mean() <= least


def test_errors_are_counted_on_held_out_samples():
    X, y = draw(300)
    svm = SVC().fit(X[:150], y[:150])
    found = SVMCertainty(svm, X[:150], y[:150]).certainty(
        X[150:], DELTA, held_out=(X[150:], y[150:])
    )
    scores = svm.decision_function(X[150:])
    wrong, margins = (scores > 0) != (y[150:] == 1), np.minimum(np.abs(scores), 1)
    own = np.abs(svm.decision_function(X[:150]))
    own = np.where(own < 1 - 2 * svm.tol, own, 1)
    quantiles = np.quantile(own, np.linspace(0, 1, 20, endpoint=False)[1:])
    n_levels = len(np.unique(quantiles)) + 1
    for level, rate in zip(found.levels, found.held_out_error, strict=True):
        sure = margins >= level
        expected = highest_rate((wrong & sure).sum(), sure.sum(), DELTA / 2 / n_levels)
        assert rate == pytest.approx(expected)
    assert (found.levels <= margins).all()
    assert found.levels.max() <= 1


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.3])
def test_gamma_is_that_of_the_machine(gamma):
    """The trace of the polynomial kernel depends on it."""
    X, y = draw(200)
    given = {"scale": 1 / (2 * X.var()), "auto": 0.5}.get(gamma, gamma)
    parameters = {"kernel": "poly", "degree": 2, "coef0": 1.0, "C": 0.01}
    by_name = SVC(gamma=gamma, **parameters).fit(X, y)
    by_number = SVC(gamma=given, **parameters).fit(X, y)
    bounds = [SVMCertainty(svm, X, y).certainty(X, 0.9).bound for svm in (by_name, by_number)]
    np.testing.assert_allclose(*bounds, rtol=1e-6)


def test_the_display_has_lines_inside_the_margin():
    X, y = draw(400)
    frame = pd.DataFrame(X, columns=["a", "b"])
    labels = np.array(["left", "right"])[y]
    svm = SVC(C=0.1).fit(frame[:200], labels[:200])
    display = CertaintyDisplay.from_estimator(
        SVMCertainty(svm, frame[:200], labels[:200]),
        frame[:200],
        labels[:200],
        held_out=(frame[200:], labels[200:]),
        resolution=30,
    )
    assert 0 < len(display.labels) <= 4
    assert all(0 < rho <= 1 for rho in display.labels)
    assert all("%" in text for text in display.labels.values())
    places = pd.DataFrame(
        np.column_stack([one.ravel() for one in display.grid]), columns=["a", "b"]
    )
    np.testing.assert_allclose(display.scores.ravel(), svm.decision_function(places))


@pytest.mark.parametrize(
    "svm",
    [LinearSVC(), SVC(kernel="sigmoid"), SVC(kernel="precomputed"), "svm"],
    ids=str,
)
def test_other_machines_are_refused(svm):
    with pytest.raises(ValueError, match="svm"):
        SVMCertainty(svm, *draw(20)).certainty([[0.0, 0.0]])


def test_other_samples_and_more_classes_are_refused():
    X, y = draw(40)
    svm = SVC().fit(X, y)
    for rows, labels in ((X[::-1], y), (X[:10], y[:10]), (X, y[:-1])):
        with pytest.raises(ValueError, match="X and y"):
            SVMCertainty(svm, rows, labels).certainty(X)
    with pytest.raises(ValueError, match="two classes"):
        SVMCertainty(SVC().fit(X, np.arange(40) % 3), X, y).certainty(X)
    with pytest.raises(ValueError, match="held_out"):
        SVMCertainty(svm, X, y).certainty(X, held_out=X)
    with pytest.raises(ValueError, match="delta"):
        SVMCertainty(svm, X, y).certainty(X, 1.5)
