"""The display of the members that a selection chooses."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from margrave.compare import RegionDisplay
from margrave.select import LocalSelectionClassifier, RegionSelectionClassifier

mpl.use("agg")


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).uniform(-1, 1, size=(300, 3))
    return X, np.where(X[:, 1] > 0, X[:, 0] > 0, X[:, 2] > 0)


def members(n):
    line = [("logistic", LogisticRegression())]
    return line + [(f"t{j}", DecisionTreeClassifier(max_depth=j + 1)) for j in range(n - 1)]


def test_points_show_the_selected_member(data):
    X, y = data
    model = RegionSelectionClassifier(members(3), lambda X: X[:, 1] > 0).fit(X, y)
    display = RegionDisplay.from_estimator(model, X, y, features=(0, 1), resolution=30)
    assert display.members.shape == (30, 30)
    upper = display.grid[1] > 0
    expected = dict(zip(model.regions_.tolist(), model.member_of_region_.tolist(), strict=True))
    assert set(display.members[upper]) == {expected[True]}
    assert set(display.members[~upper]) == {expected[False]}
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == [*display.shown_, "False", "True"]
    assert "0" in display.ax_.get_xlabel()
    mpl.pyplot.close(display.figure_)


def test_of_several_members_the_most_competent_is_shown(data):
    X, y = data
    model = LocalSelectionClassifier(members(3), "knora-u").fit(X, y)
    display = RegionDisplay.from_estimator(model, X, features=(2, 0), resolution=10)
    places = np.tile(np.median(X, axis=0), (100, 1))
    places[:, 2], places[:, 0] = (one.ravel() for one in display.grid)
    best = model.competence(places).argmax(axis=1)
    assert display.members.ravel().tolist() == [model.member_names_[j] for j in best]
    mpl.pyplot.close(display.figure_)


def test_more_members_than_colours_are_grey_together():
    names = [f"m{j}" for j in range(12)]
    grid = np.meshgrid(np.arange(12.0), np.arange(3.0))
    who = np.array(names)[grid[0].astype(int)]
    who[0, :2] = who[1, :2] = "m11"  # m0 and m1 have fewer places then
    display = RegionDisplay(tuple(grid), who, names).plot()
    assert display.shown_ == ["m2", "m3", "m4", "m5", "m6", "m10", "m11"]
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels[:-1] == display.shown_
    assert labels[-1] not in names
    mpl.pyplot.close(display.figure_)


def test_a_member_has_the_same_colour_in_every_picture():
    grid = np.meshgrid(np.arange(2.0), np.arange(2.0))
    colours = []
    for who in (["a", "b", "b", "b"], ["c", "c", "c", "b"]):
        display = RegionDisplay(tuple(grid), np.reshape(who, (2, 2)), ["a", "b", "c"]).plot()
        patches = display.ax_.get_legend().get_patches()
        colours.append(patches[display.shown_.index("b")].get_facecolor())
        mpl.pyplot.close(display.figure_)
    assert colours[0] == colours[1]


def test_data_frames_keep_their_names(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["left", "up", "far"])
    model = RegionSelectionClassifier(members(2), random_state=0).fit(frame, y)
    display = RegionDisplay.from_estimator(model, frame, features=["far", "up"], resolution=5)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("far", "up")
    mpl.pyplot.close(display.figure_)


@pytest.mark.parametrize("features", [(0, 0), (0, 3), (0, "up"), (0, 1, 2)])
def test_two_different_features_are_needed(data, features):
    X, y = data
    model = RegionSelectionClassifier(members(2), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"\bfeatures\b.*\b3\b"):
        RegionDisplay.from_estimator(model, X, features=features)


def test_other_estimators_are_refused(data):
    X, y = data
    with pytest.raises(ValueError, match=r"margrave\.select.*LogisticRegression"):
        RegionDisplay.from_estimator(LogisticRegression().fit(X, y), X)


def test_rejected_points_show_no_member(data):
    X, y = data
    wrong = [("w", DecisionTreeClassifier().fit(X, ~y)), ("v", LogisticRegression().fit(X, ~y))]
    model = LocalSelectionClassifier(wrong, "rank", prefit=True, reject=True).fit(X, y)
    display = RegionDisplay.from_estimator(model, X, resolution=5)
    assert set(display.shown_) - {"w", "v"}
    mpl.pyplot.close(display.figure_)
