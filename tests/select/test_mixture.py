"""The mixture of experts: its gate is the optimum, and learns where each member is right."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures
from sklearn.tree import DecisionTreeClassifier

from margrave.fuse import VoteClassifier
from margrave.select import MixtureOfExpertsClassifier, Oracle

MIXED = [
    ("bayes", GaussianNB()),
    ("logistic", LogisticRegression(max_iter=1000)),
    ("tree", DecisionTreeClassifier(max_depth=3, random_state=0)),
]


class Sure(ClassifierMixin, BaseEstimator):
    """Predicts class 1 with a given probability."""

    def __init__(self, p):
        self.p = p
        self.classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.tile([1 - self.p, self.p], (len(X), 1))

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(
        600, 5, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.1, random_state=3
    )
    return X[:200], y[:200], X[200:], y[200:]


@pytest.fixture(scope="module")
def trained(data):
    X, y, _, _ = data
    return [(name, member.fit(X, y)) for name, member in MIXED]


def objective(model, X, y, coef, intercept, weight=None):
    """The penalized log-likelihood of a gate, by its definition."""
    weight = np.ones(len(y)) if weight is None else weight / np.mean(weight)
    weights = softmax(X @ coef.T + intercept, axis=1)
    mixture = np.zeros(len(y))
    for i, member in enumerate(model.estimators_):
        proba = member.predict_proba(X)
        mixture += weights[:, i] * proba[np.arange(len(y)), np.searchsorted(member.classes_, y)]
    mean = np.average(X, axis=0, weights=weight)
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    return model.C * (weight @ np.log(mixture)) - 0.5 * np.sum((coef * scale) ** 2)


class TestTheGate:
    @pytest.mark.parametrize("weighted", [False, True])
    def test_no_change_of_the_gate_raises_the_penalized_likelihood(self, data, trained, weighted):
        _, _, X, y = data
        random = np.random.default_rng(0)
        weight = random.uniform(0.1, 3, len(y)) if weighted else None
        model = MixtureOfExpertsClassifier(trained, C=1, prefit=True).fit(X, y, weight)
        best = objective(model, X, y, model.coef_, model.intercept_, weight)
        assert np.abs(model.coef_).max() > 0.1
        for _ in range(100):
            size = 10.0 ** random.uniform(-3, 0)
            coef = model.coef_ + size * random.normal(size=model.coef_.shape)
            intercept = model.intercept_ + size * random.normal(size=3)
            assert objective(model, X, y, coef, intercept, weight) < best + 1e-6

    def test_two_members_and_one_feature_by_brute_force(self):
        X = np.array([-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5])[:, None]
        y = np.array([0, 0, 1, 0, 1, 1, 1])
        members = [Sure(0.2), Sure(0.9)]
        model = MixtureOfExpertsClassifier(members, C=2, prefit=True).fit(X, y)
        v, b = np.meshgrid(np.linspace(0, 6, 601), np.linspace(-3, 3, 601))
        second = 1 / (1 + np.exp(-(v * X[:, :, None] + b)))  # the weight of the second member
        p_one = 0.2 * (1 - second) + 0.9 * second
        likelihood = np.where(y[:, None, None] == 1, p_one, 1 - p_one)
        # Columns are standardized, and the two members have V = ± v / 2.
        value = 2 * np.log(likelihood).sum(axis=0) - 0.5 * 2 * (v * X.std() / 2) ** 2
        at = np.unravel_index(value.argmax(), value.shape)
        assert np.diff(model.coef_, axis=0).item() == pytest.approx(v[at], abs=0.01)
        assert np.diff(model.intercept_).item() == pytest.approx(b[at], abs=0.01)

    def test_a_strong_penalty_leaves_the_best_constant_weights(self, data, trained):
        _, _, X, y = data
        pair = trained[:2]
        model = MixtureOfExpertsClassifier(pair, C=1e-9, prefit=True).fit(X, y)
        weights = model.gate(X)
        assert np.ptp(weights, axis=0) == pytest.approx([0, 0], abs=1e-4)
        first, second = (m.predict_proba(X)[np.arange(len(y)), y] for _, m in pair)
        grid = np.linspace(0, 1, 1001)[:, None]
        likelihood = np.log(grid * first + (1 - grid) * second).sum(axis=1)
        assert 0 < likelihood.argmax() < 1000
        assert weights[0, 0] == pytest.approx(grid[likelihood.argmax(), 0], abs=2e-3)

    def test_equal_members_have_equal_weights(self, data):
        X, y, X_new, _ = data
        model = MixtureOfExpertsClassifier([GaussianNB(), GaussianNB()]).fit(X, y)
        assert model.gate(X_new) == pytest.approx(0.5)
        alone = GaussianNB().fit(X, y)
        assert model.predict_proba(X_new) == pytest.approx(alone.predict_proba(X_new))

    def test_the_order_of_the_members_does_not_matter(self, data, trained):
        _, _, X, y = data
        model = MixtureOfExpertsClassifier(trained, prefit=True).fit(X, y)
        turned = MixtureOfExpertsClassifier(trained[::-1], prefit=True).fit(X, y)
        assert turned.gate(X) == pytest.approx(model.gate(X)[:, ::-1], abs=1e-3)

    def test_the_units_of_the_features_do_not_matter(self, data):
        X, y, X_new, _ = data
        trees = [DecisionTreeClassifier(max_depth=depth, random_state=0) for depth in (1, 4)]
        units = 2.0 ** np.array([10, -10, 0, 3, -3])  # powers of 2 change no split of a tree
        model = MixtureOfExpertsClassifier(trees).fit(X, y)
        scaled = MixtureOfExpertsClassifier(trees).fit(X * units, y)
        assert np.ptp(model.gate(X_new), axis=0).min() > 0.1
        assert scaled.gate(X_new * units) == pytest.approx(model.gate(X_new), abs=1e-3)

    def test_integer_weights_repeat_samples(self, data, trained):
        _, _, X, y = data
        weight = np.random.default_rng(0).integers(0, 4, len(y))
        rows = np.repeat(np.arange(len(y)), weight)
        repeated = MixtureOfExpertsClassifier(trained, C=1, prefit=True).fit(X[rows], y[rows])
        # Only the ratios of weights matter, so repeated samples count more against the penalty.
        C = weight.sum() / (weight > 0).sum()
        weighted = MixtureOfExpertsClassifier(trained, C=C, prefit=True).fit(X, y, 5.0 * weight)
        assert weighted.n_tuning_ == (weight > 0).sum()
        assert weighted.gate(X) == pytest.approx(repeated.gate(X), abs=1e-3)

    def test_sparse_samples(self, data):
        X, y, X_new, _ = data
        pair = [("logistic", LogisticRegression(max_iter=1000)), ("tree", MIXED[2][1])]
        dense = MixtureOfExpertsClassifier(pair).fit(X, y)
        sparse = MixtureOfExpertsClassifier(pair).fit(csr_array(X), y)
        assert sparse.gate(csr_array(X_new)) == pytest.approx(dense.gate(X_new), abs=1e-3)

    def test_a_sample_that_no_member_explains_has_no_influence(self):
        X = np.arange(20.0)[:, None]
        y = np.where(X[:, 0] < 15, 0, 1)
        pair = [Sure(0.0), Sure(1e-14)]  # no member explains class 1
        model = MixtureOfExpertsClassifier(pair, prefit=True).fit(X, y)
        assert model.gate(X) == pytest.approx(0.5)


class TestPredictions:
    def test_probabilities_are_at_most_1(self):
        X, y = make_classification(1000, 5, random_state=0)
        trees = [DecisionTreeClassifier(max_depth=depth, random_state=0) for depth in (3, 4, 5)]
        model = MixtureOfExpertsClassifier(trees, C=1).fit(X, y)
        assert model.predict_proba(X).max() <= 1

    def test_probabilities_are_the_weighted_mean_of_the_members(self, data):
        X, y, X_new, _ = data
        model = MixtureOfExpertsClassifier(MIXED).fit(X, y)
        weights, proba = model.gate(X_new), model.predict_proba(X_new)
        assert weights.sum(axis=1) == pytest.approx(1)
        assert proba.sum(axis=1) == pytest.approx(1)
        by_hand = sum(
            weights[:, [i]] * model.named_estimators_[name].predict_proba(X_new)
            for i, name in enumerate(model.member_names_)
        )
        assert proba == pytest.approx(by_hand)
        assert (model.predict(X_new) == proba.argmax(axis=1)).all()
        assert softmax(X_new @ model.coef_.T + model.intercept_, axis=1) == pytest.approx(weights)
        assert model.n_iter_ > 0

    def test_members_with_different_classes(self, data):
        X, y, X_new, y_new = data
        low, high = y < 2, y > 0
        members = [GaussianNB().fit(X[low], y[low]), GaussianNB().fit(X[high], y[high])]
        model = MixtureOfExpertsClassifier(members, prefit=True).fit(X_new, y_new)
        assert model.classes_.tolist() == [0, 1, 2]
        assert model.predict_proba(X_new).sum(axis=1) == pytest.approx(1)

    def test_one_class(self):
        X = np.arange(10.0)[:, None]
        model = MixtureOfExpertsClassifier([DecisionTreeClassifier()]).fit(X, ["a"] * 10)
        assert set(model.predict(X)) == {"a"}

    @pytest.mark.parametrize("tuning", [3, 0.4])
    def test_strings_and_data_frames(self, tuning):
        X, y = load_iris(return_X_y=True, as_frame=True)
        labels = np.array(["setosa", "versicolor", "virginica"])[y]
        model = MixtureOfExpertsClassifier(MIXED, tuning=tuning, random_state=0).fit(X, labels)
        assert model.score(X, labels) > 0.9
        assert model.n_tuning_ == (150 if tuning == 3 else 60)

    def test_the_members_of_a_fitted_forest(self, data):
        X, y, X_new, y_new = data
        forest = RandomForestClassifier(10, max_depth=3, random_state=0).fit(X, y)
        model = MixtureOfExpertsClassifier(forest, prefit=True).fit(X_new, y_new)
        assert model.gate(X_new).shape == (400, 10)


class TestRegions:
    def test_the_slide(self, slide):
        """The gate learns who is right on the left, in the middle and on the right."""
        members, (X, y), (X_new, y_new) = slide
        model = MixtureOfExpertsClassifier(members, C=10, prefit=True).fit(X, y)
        left, middle, right = model.gate(np.array([[-2.0, 0.5], [0.0, 0.5], [2.0, 0.5]]))
        assert [left[0], middle[2], right[1]] == pytest.approx([1, 1, 1], abs=0.05)
        assert model.score(X_new, y_new) > 0.97
        vote = VoteClassifier(members, prefit=True).fit(X, y)
        alone = [np.mean(member.predict(X_new) == y_new) for _, member in members]
        assert max(*alone, vote.score(X_new, y_new)) < 0.55
        default = MixtureOfExpertsClassifier(members, prefit=True).fit(X, y)
        assert (
            0.9
            < default.score(X_new, y_new)
            <= Oracle(members, prefit=True).fit(X, y).score(X_new, y_new)
        )

    def test_the_space_makes_other_regions(self):
        """One member is right near 0, the other far from it: a gate linear in x² finds it."""
        X = np.random.default_rng(0).uniform(-3, 3, size=(600, 1))
        y = (np.abs(X[:, 0]) < 1.5).astype(int)
        members = [Sure(0.1), Sure(0.9)]
        linear = MixtureOfExpertsClassifier(members, prefit=True).fit(X[:300], y[:300])
        squares = MixtureOfExpertsClassifier(
            members, 10, prefit=True, space=PolynomialFeatures(2, include_bias=False)
        ).fit(X[:300], y[:300])
        assert squares.coef_.shape == (2, 2)
        assert linear.score(X[300:], y[300:]) < 0.6
        assert squares.score(X[300:], y[300:]) > 0.95

    def test_columns_of_text_need_a_space(self):
        X = pd.DataFrame({"site": ["north", "south"] * 50, "a": np.arange(100.0)})
        y = np.where(X["site"] == "north", X["a"] > 50, X["a"] < 50)
        model = MixtureOfExpertsClassifier([GaussianNB()] * 2, features=[["a"], ["a"]], tuning=2)
        with pytest.raises(ValueError, match=r"north|south") as error:
            model.fit(X, y)
        assert "space=" in error.value.__notes__[0]
        space = make_column_transformer((OneHotEncoder(), ["site"]))
        assert model.set_params(space=space).fit(X, y).coef_.shape == (2, 2)


class TestBadInput:
    @pytest.mark.parametrize("C", [0, -1.0, np.inf, np.nan, "1", True, None])
    def test_c(self, data, C):
        X, y, _, _ = data
        with pytest.raises(ValueError, match=r"MixtureOfExpertsClassifier.*\bC\b"):
            MixtureOfExpertsClassifier(MIXED, C).fit(X, y)

    def test_prefit(self, data):
        X, y, _, _ = data
        with pytest.raises(ValueError, match=r"\bprefit\b"):
            MixtureOfExpertsClassifier(MIXED, prefit="yes").fit(X, y)

    def test_members_without_probabilities(self, data):
        X, y, _, _ = data
        members = [("bayes", GaussianNB()), ("hard", Perceptron())]
        with pytest.raises(ValueError, match=r"MixtureOfExpertsClassifier.*predict_proba.*'hard'"):
            MixtureOfExpertsClassifier(members).fit(X, y)

    def test_missing_values(self, data):
        X, y, X_new, _ = data
        model = MixtureOfExpertsClassifier(MIXED[2:]).fit(X, y)
        with pytest.raises(ValueError, match="NaN"):
            model.predict(np.where(X_new > 2, np.nan, X_new))
