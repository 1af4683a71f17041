"""Committees of trees: asked at once they say what each says when it is asked by itself."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from margrave import Scores
from margrave.scores._predictions import tree_input

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])


def grown(y, **params):
    return [
        (f"{kind.__name__}-{seed}", kind(random_state=seed, **params).fit(X[seed::3], y[seed::3]))
        for kind in (DecisionTreeClassifier, ExtraTreeClassifier)
        for seed in range(3)
    ]


@pytest.mark.parametrize("y", [Y, NAMES[Y], Y > 0], ids=["numbers", "strings", "two"])
@pytest.mark.parametrize("depth", [2, None])
def test_labels_and_probabilities_are_the_trees_own(y, depth):
    members = grown(y, max_depth=depth)
    assert tree_input(members, X) is not None
    scores = Scores.of(members, X)
    proba = scores.proba()
    for j, (_, tree) in enumerate(members):
        assert (scores.labels[:, j] == tree.predict(X)).all()
        assert proba[:, j] == pytest.approx(tree.predict_proba(X), abs=1e-15)


def test_subsets_of_the_labels_are_spread():
    some = Y > 0
    members = [*grown(NAMES[Y]), ("two", DecisionTreeClassifier().fit(X[some], NAMES[Y[some]]))]
    assert tree_input(members, X) is not None
    scores = Scores.of(members, X)
    assert (scores.proba()[:, -1, 0] == 0).all()
    assert (scores.labels[:, -1] == members[-1][1].predict(X)).all()


def test_others_are_asked_the_usual_way():
    members = grown(Y)
    assert tree_input([*members, ("bayes", GaussianNB().fit(X, Y))], X) is None
    assert tree_input(members, X.tolist()) is None
    assert tree_input(members, X.astype(object)) is None
    with_gap = X.copy()
    with_gap[0, 0] = np.nan
    assert tree_input(members, with_gap) is None
    assert tree_input(members, X * 1e300) is None
    assert tree_input(members, X[:, :3]) is None


def test_samples_that_a_tree_refuses_are_refused():
    members = grown(Y)
    with pytest.raises(ValueError, match=r"3 features.*DecisionTreeClassifier"):
        Scores.of(members, X[:, :3])
    with pytest.raises(ValueError, match=r"\bX\b.*infinity"):
        Scores.of(members, np.full_like(X, np.inf))
