"""Corollary 1 for support vector machines: the formula, and its truth on new samples."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from margrave.compare import CertaintyDisplay
from margrave.mam import SVMCertainty

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
    """f(x) = x, with both samples on the edge: errors are counted at the margins 0 and 1."""
    X, y = [[-1.0], [1.0]], [0, 1]
    svm = SVC(kernel="linear", C=100.0, tol=1e-9).fit(X, y)
    held = [-3.0, -2.0, -1.5, 1.5, 2.0, 3.0, -0.5, 0.2, 0.3, 0.6]
    labels = [0, 0, 0, 1, 1, 1, 0, 0, 0, 1]  # two of ten are wrong, none of the six beyond 1
    found = SVMCertainty(svm, X, y).certainty(
        [[0.5], [-4.0]], DELTA, held_out=(np.array(held)[:, None], labels)
    )
    np.testing.assert_allclose(found.margins, [0.5, 1.0])
    np.testing.assert_allclose(found.levels, [0.0, 1.0])
    each = DELTA / 4  # two levels, two numbers each
    inside, beyond = found.held_out_error
    assert binom.cdf(2, 10, inside) == pytest.approx(each)
    assert (1 - beyond) ** 6 == pytest.approx(each)
    assert found.held_out[0] == inside
    assert (1 - found.held_out[1]) ** 10 == pytest.approx(each)


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.3])
def test_gamma_is_that_of_the_svm(gamma):
    """The trace of the polynomial kernel depends on it."""
    X, y = draw(200)
    number = {"scale": 1 / (2 * X.var()), "auto": 0.5}.get(gamma, gamma)
    parameters = {"kernel": "poly", "degree": 2, "coef0": 1.0, "C": 0.01}
    by_name = SVC(gamma=gamma, **parameters).fit(X, y)
    by_number = SVC(gamma=number, **parameters).fit(X, y)
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
def test_other_estimators_are_refused(svm):
    with pytest.raises(ValueError, match="svm"):
        SVMCertainty(svm, *draw(20)).certainty([[0.0, 0.0]])


def test_labels_may_be_a_column():
    X, y = draw(1500)
    svm = SVC(gamma=0.02, C=0.1).fit(X, y)
    expected = SVMCertainty(svm, X, y).certainty(X).bound
    assert (expected < 1).any()
    np.testing.assert_array_equal(SVMCertainty(svm, X, y[:, None]).certainty(X).bound, expected)


def test_labels_that_the_svm_predicts_are_refused():
    X, y = draw(200)
    y[:10] = 1 - y[:10]
    svm = SVC(C=0.1).fit(X, y)
    with pytest.raises(ValueError, match=r"\by\b"):
        SVMCertainty(svm, X, svm.predict(X)).certainty(X)


def test_the_error_for_a_pipeline_names_its_parts():
    X, y = draw(40)
    pipe = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    with pytest.raises(ValueError, match=r"pipe\[-1\]"):
        SVMCertainty(pipe, X, y).certainty(X)


def test_other_samples_and_more_classes_are_refused():
    X, y = draw(40)
    svm = SVC().fit(X, y)
    shuffled = np.random.default_rng(0).permutation(y)
    longer = np.vstack([X, X[:1]]), np.append(y, y[0])
    for rows, labels in (
        (X[::-1], y),
        (X[:10], y[:10]),
        (X, y[:-1]),
        (X, 1 - y),
        (X, shuffled),
        longer,
    ):
        with pytest.raises(ValueError, match="X and y"):
            SVMCertainty(svm, rows, labels).certainty(X)
    with pytest.raises(ValueError, match="two classes"):
        SVMCertainty(SVC().fit(X, np.arange(40) % 3), X, y).certainty(X)
    with pytest.raises(ValueError, match="held_out"):
        SVMCertainty(svm, X, y).certainty(X, held_out=X)
    with pytest.raises(ValueError, match="delta"):
        SVMCertainty(svm, X, y).certainty(X, 1.5)
