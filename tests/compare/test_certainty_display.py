"""The display of certainty: the surface, the lines and their labels."""

import re

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from margrave.compare import CertaintyDisplay
from margrave.mam import MAMClassifier
from margrave.mam._certainty import highest_rate

mpl.use("agg")


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(400, centers=[[-1, 0], [1, 0]], random_state=0)


@pytest.fixture(scope="module")
def model(blobs):
    X, y = blobs
    return MAMClassifier(gamma=0.5).fit(X[:200], y[:200])


def rates(text):
    """The rates that a label shows: one, or none where there is no guarantee."""
    return re.findall(r"\d+\.\d%", text)


def test_labels_are_bounds_from_held_out_samples(blobs, model):
    X, y = blobs
    held_out = X[200:], y[200:]
    display = CertaintyDisplay.from_estimator(
        model, X[:200], y[:200], held_out=held_out, n_lines=3, resolution=40
    )
    assert len(display.labels) == 3
    scores = model.decision_function(held_out[0])
    wrong = (scores > 0) != (held_out[1] == 1)
    for rho, text in display.labels.items():
        # Counted again at the line itself, with a fortieth of δ: 20 levels, two numbers each.
        sure = np.abs(scores) >= rho
        highest = highest_rate((wrong & sure).sum(), sure.sum(), 0.05 / 40)
        assert rates(text) == ([] if highest >= 1 else [f"{highest:.1%}"])
    places = np.column_stack([one.ravel() for one in display.grid])
    np.testing.assert_allclose(display.scores.ravel(), model.decision_function(places))
    lines = sorted(display.labels)
    assert set(display.lines_.levels) <= {sign * rho for rho in lines for sign in (-1, 1)}
    assert display.border_.levels.tolist() == [0.0]
    assert len(display.ax_.get_legend().get_texts()) == 2


def test_the_bound_on_a_line_holds_for_its_margin():
    X, y = make_blobs(4000, centers=[[-2, 0], [2, 0]], random_state=0)
    model = MAMClassifier(gamma=0.05, threshold=None).fit(X, y)
    display = CertaintyDisplay.from_estimator(model, X, resolution=40)
    assert len(display.labels) == 4
    n, mean = len(y), model.average_margin_
    last = 2 / np.sqrt(n) + 3 * np.sqrt(2 * np.log(2 / 0.05) / n)
    for rho, text in display.labels.items():
        assert rates(text) == [f"{(1 - mean + last) / (1 + rho):.1%}"]


def test_without_held_out_samples_labels_are_the_bound(blobs, model):
    X, _ = blobs
    display = CertaintyDisplay.from_estimator(model, X[:200], resolution=30)
    assert not any(rates(text) for text in display.labels.values())
    assert display.ax_.get_legend() is None


def test_another_classifier_has_its_own_margins(blobs):
    X, y = blobs
    frame = pd.DataFrame(X, columns=["length", "width"])
    svm = SVC().fit(frame, y)
    display = CertaintyDisplay.from_estimator(svm, frame, y, resolution=30)
    assert display.labels == {0.25: "0.25", 0.5: "0.5", 0.75: "0.75", 1.0: "1"}
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("length", "width")


def test_a_kernel_without_a_limit_can_be_drawn(blobs):
    X, y = blobs
    linear = MAMClassifier("linear").fit(X[:200], y[:200])
    display = CertaintyDisplay.from_estimator(linear, X, held_out=(X[200:], y[200:]), resolution=30)
    assert display.lines_ is not None
    without = CertaintyDisplay.from_estimator(linear, X, resolution=30)
    assert without.labels
    assert not any(rates(text) for text in without.labels.values())


def test_the_certainty_of_a_pipeline_is_that_of_its_last_step(blobs):
    X, y = blobs
    pipe = make_pipeline(StandardScaler(), MAMClassifier(gamma=0.5)).fit(X[:200], y[:200])
    held_out = X[200:], y[200:]
    display = CertaintyDisplay.from_estimator(pipe, X, held_out=held_out, resolution=30)
    scaled = pipe[0].transform(X[200:]), y[200:]
    known = pipe[-1].certainty(scaled[0], held_out=scaled)
    bounds = {f"{one:.1%}" for one in known.held_out_error}
    assert {rate for text in display.labels.values() for rate in rates(text)} <= bounds
    with pytest.raises(ValueError, match=r"`certainty`.*held_out.*SVC"):
        CertaintyDisplay.from_estimator(SVC().fit(X, y), X, held_out=held_out)


def test_existing_axes_are_used(blobs, model):
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots()
    display = CertaintyDisplay.from_estimator(model, blobs[0], resolution=20, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is figure


def test_bad_arguments_are_refused(blobs, model):
    X, y = blobs
    with pytest.raises(ValueError, match=r"\bX\b.*\(400, 1\)"):
        CertaintyDisplay.from_estimator(model, X[:, :1])
    with pytest.raises(ValueError, match=r"\bn_lines\b.*\b0\b"):
        CertaintyDisplay.from_estimator(model, X, n_lines=0)
    three = MAMClassifier(gamma=0.5).fit(X, np.where(X[:, 1] > 1, 2, y))
    with pytest.raises(ValueError, match=r"CertaintyDisplay.*\b3\b"):
        CertaintyDisplay.from_estimator(three, X)
