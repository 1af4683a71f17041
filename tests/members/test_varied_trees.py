"""Varied trees: the drawn parameters, their limits, and the trees of plain bagging."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_classification
from sklearn.ensemble import BaggingClassifier
from sklearn.tree import DecisionTreeClassifier

from margrave import catalogue
from margrave.members import VariedTreesClassifier

DEPTHS = {"max_depth": [1, 2, 3], "criterion": ("gini", "log_loss")}


@pytest.fixture(scope="module")
def data():
    return make_classification(300, 8, n_informative=5, n_classes=3, random_state=0)


def test_each_tree_has_the_parameters_that_were_drawn_for_it(data):
    model = VariedTreesClassifier(60, parameters=DEPTHS, random_state=0).fit(*data)
    assert len(model.estimators_) == len(model.parameters_) == 60
    for tree, drawn in zip(model.estimators_, model.parameters_, strict=True):
        assert type(tree) is DecisionTreeClassifier
        assert {name: tree.get_params()[name] for name in DEPTHS} == drawn
        assert tree.get_depth() == drawn["max_depth"]


def test_values_are_drawn_evenly_and_independently(data):
    model = VariedTreesClassifier(600, parameters=DEPTHS, random_state=0).fit(*data)
    drawn = [(one["max_depth"], one["criterion"]) for one in model.parameters_]
    counts = [drawn.count((depth, c)) for depth in (1, 2, 3) for c in ("gini", "log_loss")]
    assert sum(counts) == 600
    assert min(counts) > 60  # 100 expected, with a standard deviation of 9
    assert max(counts) < 140


def test_by_default_several_parameters_vary(data):
    model = VariedTreesClassifier(random_state=0).fit(*data)
    for name in ("criterion", "max_depth", "max_features"):
        assert len({drawn[name] for drawn in model.parameters_}) > 1
    assert len(model.estimators_) == 100


@pytest.mark.parametrize("weighted", [False, True])
def test_with_one_value_for_each_parameter_it_is_bagging(data, weighted):
    X, y = data
    weight = np.random.default_rng(0).uniform(size=len(y)) if weighted else None
    one = {"max_depth": [4], "max_features": ["sqrt"]}
    varied = VariedTreesClassifier(10, parameters=one, random_state=3).fit(X, y, weight)
    tree = DecisionTreeClassifier(max_depth=4, max_features="sqrt")
    plain = BaggingClassifier(tree, 10, max_samples=len(y), random_state=3).fit(X, y, weight)
    np.testing.assert_array_equal(varied.predict_proba(X), plain.predict_proba(X))


def test_without_parameters_nothing_varies(data):
    model = VariedTreesClassifier(3, parameters={}, random_state=0).fit(*data)
    assert model.parameters_ == [{}, {}, {}]


def test_the_seed_determines_the_parameters_and_the_predictions(data):
    X, y = data
    first, again, other = (
        VariedTreesClassifier(20, random_state=seed).fit(X, y) for seed in (1, 1, 2)
    )
    assert first.parameters_ == again.parameters_ != other.parameters_
    np.testing.assert_array_equal(first.predict_proba(X), again.predict_proba(X))
    assert (first.predict_proba(X) != other.predict_proba(X)).any()


def test_probabilities_are_the_mean_of_the_trees(data):
    X, y = data
    labels = np.array(["a", "b", "c"])[y]
    model = VariedTreesClassifier(20, random_state=0).fit(X, labels)
    mean = np.mean([tree.predict_proba(X) for tree in model.estimators_], axis=0)
    np.testing.assert_allclose(model.predict_proba(X), mean)
    assert (model.predict(X) == model.classes_[mean.argmax(axis=1)]).all()


def test_missing_values(data):
    X, y = data
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    assert VariedTreesClassifier(20, random_state=0).fit(holes, y).score(holes, y) > 0.9


def test_arrays_of_values():
    X, y = make_blobs(60, centers=2, random_state=0)
    model = catalogue.make("varied-trees", parameters={"max_depth": np.arange(1, 4)}).fit(X, y)
    assert {drawn["max_depth"] for drawn in model.parameters_} <= {1, 2, 3}


@pytest.mark.parametrize(
    "bad",
    [
        ["max_depth"],
        {"max_depth": []},
        {"max_depth": 3},
        {"criterion": "gini"},
        {"max_dept": [3]},
        {"random_state": [0, 1]},
    ],
)
def test_bad_parameters(data, bad):
    with pytest.raises(ValueError, match=r"VariedTreesClassifier.*\bparameters\b"):
        VariedTreesClassifier(parameters=bad).fit(*data)


def test_a_name_that_is_nearly_right(data):
    with pytest.raises(ValueError, match=r"'max_dept'.*'max_depth'"):
        VariedTreesClassifier(parameters={"max_dept": [3]}).fit(*data)


def test_a_value_that_a_tree_refuses(data):
    with pytest.raises(ValueError, match="max_depth"):
        VariedTreesClassifier(parameters={"max_depth": [-1]}).fit(*data)


@pytest.mark.parametrize("n_estimators", [0, 2.5, True])
def test_bad_number_of_trees(data, n_estimators):
    with pytest.raises(ValueError, match=r"\bn_estimators\b"):
        VariedTreesClassifier(n_estimators).fit(*data)


def test_weights_of_classes_by_label_are_refused():
    X, y = make_blobs(20, centers=2, random_state=0)
    model = VariedTreesClassifier(3, parameters={"class_weight": [{1: 50}]})
    with pytest.raises(ValueError, match="class_weight"):
        model.fit(X, y)
