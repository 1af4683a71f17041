"""The surface with lines of certainty: what is drawn, and what the labels say."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.svm import SVC

from margrave.compare import CertaintyDisplay
from margrave.mam import MAMClassifier

mpl.use("agg")


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(400, centers=[[-1, 0], [1, 0]], random_state=0)


@pytest.fixture(scope="module")
def model(blobs):
    X, y = blobs
    return MAMClassifier(gamma=0.5).fit(X[:200], y[:200])


def test_lines_say_what_held_out_samples_prove(blobs, model):
    X, y = blobs
    held_out = X[200:], y[200:]
    display = CertaintyDisplay.from_estimator(
        model, X[:200], y[:200], held_out=held_out, levels=[0.3, 0.1], resolution=40
    )
    assert list(display.labels) == [0.1, 0.3]
    places = np.column_stack([one.ravel() for one in display.grid])
    certainty = model.certainty(places, held_out=held_out)
    for rho, text in display.labels.items():
        nearest = np.argmin(np.abs(certainty.margins - rho))
        assert text == f"≤ {certainty.held_out_error[nearest]:.1%}"
    np.testing.assert_allclose(display.scores.ravel(), model.decision_function(places))
    assert sorted(display.lines_.levels) == [-0.3, -0.1, 0.1, 0.3]
    assert display.border_.levels.tolist() == [0.0]
    assert len(display.ax_.get_legend().get_texts()) == 2


def test_without_held_out_samples_lines_say_the_bound(blobs, model):
    X, _ = blobs
    display = CertaintyDisplay.from_estimator(model, X[:200], resolution=30)
    assert set(display.labels.values()) == {"no guarantee"}
    assert display.ax_.get_legend() is None


def test_another_classifier_has_its_own_margins(blobs):
    X, y = blobs
    frame = pd.DataFrame(X, columns=["length", "width"])
    svm = SVC().fit(frame, y)
    display = CertaintyDisplay.from_estimator(svm, frame, y, resolution=30)
    assert display.labels == {0.25: "0.25", 0.5: "0.5", 0.75: "0.75", 1.0: "1"}
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("length", "width")


def test_it_draws_where_it_is_told(blobs, model):
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots()
    display = CertaintyDisplay.from_estimator(model, blobs[0], resolution=20, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is figure


def test_what_cannot_be_drawn_is_refused(blobs, model):
    X, y = blobs
    with pytest.raises(ValueError, match=r"X with two features; got shape \(400, 1\)"):
        CertaintyDisplay.from_estimator(model, X[:, :1])
    with pytest.raises(ValueError, match=r"levels above 0; got \[-1.0, 0.5\]"):
        CertaintyDisplay.from_estimator(model, X, levels=[0.5, -1])
    three = MAMClassifier(gamma=0.5).fit(X, np.where(X[:, 1] > 1, 2, y))
    with pytest.raises(ValueError, match="a classifier of two classes; got 3"):
        CertaintyDisplay.from_estimator(three, X)
