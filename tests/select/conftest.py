"""Data and members that several tests of selection use."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression


def always(label, classes):
    """A member that predicts one label for all samples."""
    return DummyClassifier(strategy="constant", constant=label).fit(
        np.zeros((len(classes), 2)), classes
    )


@pytest.fixture(scope="session")
def slide():
    """The example of the slide: 2,000 points, two classes, two constants and a line.

    On the left only ω1, three in four of them above the line; on the right only ω2, three in four
    below; in the middle the line separates them. So each member has an accuracy of one half.
    Returns members, a tuning set and a test set.
    """
    random = np.random.default_rng(0)
    classes = np.array(["ω1", "ω2"])

    def drawn():
        X = random.uniform([-3, 0], [3, 1], size=(2000, 2))
        third = np.digitize(X[:, 0], [-1, 1])
        above = random.random(2000) < np.array([0.75, 0.5, 0.25])[third]
        X[~above, 1] *= -1
        return X, classes[np.select([third == 0, third == 2], [0, 1], above.astype(int))]

    corners = np.array([[0.0, -1.0], [0.0, 1.0]])
    line = LogisticRegression(C=1e6).fit(corners, classes)
    members = [("D1", always("ω1", classes)), ("D2", always("ω2", classes)), ("D3", line)]
    return members, drawn(), drawn()
