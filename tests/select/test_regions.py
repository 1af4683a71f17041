"""Selection by region, the single best member and the oracle."""

import pickle

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import DBSCAN, KMeans
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.metrics import make_scorer, recall_score
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from margrave.compare import RegionDisplay
from margrave.fuse import VoteClassifier
from margrave.select import Oracle, RegionSelectionClassifier, SingleBestClassifier
from margrave.select._regions import best_member

mpl.use("agg")

MIXED = [
    ("bayes", GaussianNB()),
    ("logistic", LogisticRegression(max_iter=1000)),
    ("tree", DecisionTreeClassifier(max_depth=3, random_state=0)),
]


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(400, 5, n_informative=4, n_redundant=0, flip_y=0.1, random_state=3)
    return X[:200], y[:200], X[200:], y[200:]


def thirds(X):
    """The regions of the slide."""
    return np.digitize(np.asarray(X)[:, 0], [-1, 1])


class TestTheSlide:
    @pytest.mark.parametrize(
        ("regions", "n_regions", "close"),
        [(thirds, None, 1.0), ("members", None, 0.97), ("kmeans", 12, 0.9)],
    )
    def test_selection_is_right_where_each_member_and_the_vote_are_not(
        self, slide, regions, n_regions, close
    ):
        members, (X, y), (X_new, y_new) = slide
        vote = VoteClassifier(members, prefit=True).fit(X, y).score(X_new, y_new)
        best = SingleBestClassifier(members, prefit=True).fit(X, y).score(X_new, y_new)
        model = RegionSelectionClassifier(
            members, regions, n_regions, prefit=True, random_state=0
        ).fit(X, y)
        assert model.score(X_new, y_new) >= close
        assert [vote, best] == pytest.approx([0.5, 0.5], abs=0.03)

    def test_each_region_has_its_member(self, slide):
        members, (X, y), _ = slide
        model = RegionSelectionClassifier(members, thirds, prefit=True).fit(X, y)
        assert model.regions_.tolist() == [0, 1, 2]
        assert model.member_of_region_.tolist() == ["D1", "D3", "D2"]
        assert model.competence_.max(axis=1).tolist() == [1, 1, 1]
        assert model.n_tuning_.sum() == 2000
        explanation = model.explain(np.array([[-2.0, 0.5]]))
        assert explanation.predictions.tolist() == ["ω1"]
        assert (explanation.regions.tolist(), explanation.members.tolist()) == ([0], ["D1"])
        assert (explanation.competence.tolist(), explanation.n_tuning.tolist()) == (
            [1],
            [model.n_tuning_[0]],
        )
        for fact in ("ω1", "D1", f"{model.n_tuning_[0]}"):
            assert fact in str(explanation)


class TestRegions:
    @pytest.mark.parametrize("regions", ["kmeans", "members"])
    def test_as_many_as_members(self, data, regions):
        X, y, X_new, _ = data
        model = RegionSelectionClassifier(MIXED, regions, random_state=0).fit(X, y)
        assert len(model.regions_) == 3 if regions == "kmeans" else 1 < len(model.regions_) <= 3
        assert set(model.region_of(X_new)) <= set(model.regions_)
        assert set(model.member_of_region_) <= {"bayes", "logistic", "tree"}

    def test_the_member_of_the_region_predicts(self, data):
        X, y, X_new, _ = data
        model = RegionSelectionClassifier(MIXED, n_regions=6, random_state=0).fit(X, y)
        explanation = model.explain(X_new)
        proba = model.predict_proba(X_new)
        assert (explanation.regions == model.region_of(X_new)).all()
        for i, name in enumerate(explanation.members):
            member = model.named_estimators_[name]
            assert explanation.predictions[i] == member.predict(X_new[[i]])[0]
            assert proba[i] == pytest.approx(member.predict_proba(X_new[[i]])[0])

    def test_competence_is_the_accuracy_in_the_region(self, data):
        X, y, _, _ = data
        trained = [(name, member.fit(X[:100], y[:100])) for name, member in MIXED]
        model = RegionSelectionClassifier(trained, prefit=True, random_state=0)
        model.fit(X[100:], y[100:])
        found = model.region_of(X[100:])
        for r, region in enumerate(model.regions_):
            here = found == region
            for j, (_, member) in enumerate(trained):
                accuracy = np.mean(member.predict(X[100:][here]) == y[100:][here])
                assert model.competence_[r, j] == pytest.approx(accuracy)

    def test_members_have_the_places_where_they_are_best(self, slide):
        """The borders of the slide are found; D2 is as good as the line above it, D1 below."""
        members, (X, y), _ = slide
        model = RegionSelectionClassifier(members, "members", prefit=True).fit(X, y)
        assert len(model.regions_) <= 3
        assert (model.competence_.max(axis=1) > 0.99).all()
        for height, border in ((0.5, -1), (-0.5, 1)):
            along = np.column_stack([np.linspace(-3, 3, 601), np.full(601, height)])
            borders = along[1:, 0][np.diff(model.region_of(along)) != 0]
            assert borders == pytest.approx([border], abs=0.05)

    @pytest.mark.parametrize("clusterer", [KMeans(4, n_init=1, random_state=0), GaussianMixture(3)])
    def test_a_clusterer_of_ones_own_is_cloned(self, data, clusterer):
        X, y, X_new, _ = data
        model = RegionSelectionClassifier(MIXED, clusterer).fit(X, y)
        assert type(model.finder_) is type(clusterer)
        assert model.finder_ is not clusterer
        assert (model.region_of(X_new) == model.finder_.predict(X_new)).all()

    def test_a_function_sees_data_frames_and_may_name_regions(self):
        X, y = load_iris(return_X_y=True, as_frame=True)
        model = RegionSelectionClassifier(
            MIXED, lambda X: np.where(X["petal width (cm)"] < 1, "small", "large")
        ).fit(X, y)
        assert model.regions_.tolist() == ["large", "small"]
        assert model.finder_ is None
        assert model.explain(X.iloc[:1]).regions.tolist() == ["small"]

    def test_a_column_with_the_regions_and_missing_values_in_others(self):
        random = np.random.default_rng(0)
        X = pd.DataFrame({"site": ["north", "south"] * 50, "a": random.normal(size=100)})
        X["b"] = X["a"] ** 2
        y = np.where(X["site"] == "north", X["a"] > 0, X["a"] < 0)
        X.loc[::7, "a"] = np.nan
        members = [
            (site, make_pipeline(SimpleImputer(), LogisticRegression()).fit(rows[["a"]], y[at]))
            for site, rows in X.groupby("site")
            for at in [rows.index]
        ]
        model = RegionSelectionClassifier(members, "site", prefit=True).fit(X, y)
        assert model.regions_.tolist() == model.member_of_region_.tolist() == ["north", "south"]
        assert pickle.loads(pickle.dumps(model)).score(X, y) == model.score(X, y) > 0.9  # noqa: S301
        display = RegionDisplay.from_estimator(model, X, features=("a", "b"))
        assert set(display.members.ravel()) <= {"north", "south"}
        plt.close(display.figure_)

    def test_settings_of_a_fitted_one_are_kept(self, data):
        X, y, X_new, _ = data
        model = RegionSelectionClassifier(MIXED, thirds, features={"tree": [0, 1]}).fit(X, y)
        before = model.predict(X_new)
        model.set_params(regions="kmeans", features=None, estimators=MIXED[:1])
        assert (model.predict(X_new) == before).all()

    def test_where_no_tuning_sample_was_the_best_over_all_is_best_member(self, data):
        X, y, X_new, _ = data
        model = RegionSelectionClassifier(MIXED, lambda X: (X[:, 0] > 50).astype(int)).fit(X, y)
        assert model.regions_.tolist() == [0]
        far = X_new[:2] + np.array([100, 0, 0, 0, 0])
        explanation = model.explain(far)
        assert explanation.regions.tolist() == [1, 1]
        assert explanation.n_tuning.tolist() == [0, 0]
        assert set(explanation.members) == {model.member_elsewhere_}
        best = model.competence_overall_.max()
        assert explanation.competence == pytest.approx([best, best])
        assert f"{best:.3g}" in str(explanation)

    def test_regions_are_found_in_the_space(self, data):
        X, y, X_new, _ = data
        scale = [1, 1, 1, 1, 1e6]
        plain = RegionSelectionClassifier(MIXED, space=StandardScaler(), random_state=0)
        stretched = plain.fit(X * scale, y).region_of(X_new * scale)
        assert (stretched == plain.fit(X, y).region_of(X_new)).all()

    def test_many_samples_at_one_place(self):
        X, y = np.repeat([[0.0], [1.0]], 20, axis=0), np.repeat([0, 1], 20)
        model = RegionSelectionClassifier(MIXED, n_regions=4, random_state=0).fit(X, y)
        assert len(model.regions_) == 2
        assert model.score(X, y) == 1


class TestCriterion:
    def test_a_scorer_by_name_or_made(self, data):
        X, y, _, _ = data
        trained = [(name, member.fit(X[:100], y[:100])) for name, member in MIXED]
        recall = RegionSelectionClassifier(trained, thirds, criterion="recall", prefit=True)
        recall.fit(X[100:], y[100:])
        other = RegionSelectionClassifier(
            trained, thirds, criterion=make_scorer(recall_score), prefit=True
        ).fit(X[100:], y[100:])
        np.testing.assert_allclose(recall.competence_, other.competence_, rtol=1e-9)
        here = thirds(X[100:]) == 1
        expected = recall_score(y[100:][here], trained[0][1].predict(X[100:][here]))
        assert recall.competence_[1, 0] == pytest.approx(expected)

    @pytest.mark.parametrize("tuning", [3, 0.5])
    def test_scorers_of_probabilities(self, data, tuning):
        X, y, _, _ = data
        model = SingleBestClassifier(MIXED, "roc_auc", tuning=tuning, random_state=0).fit(X, y)
        assert (model.competence_overall_ > 0.5).all()
        assert model.best_ == model.member_names_[model.competence_overall_.argmax()]

    @pytest.mark.parametrize(
        ("criterion", "values"),
        [
            ("accuracy", False),
            ("balanced_accuracy", False),
            (make_scorer(recall_score, pos_label=0), False),
            ("roc_auc", True),
            ("neg_log_loss", True),
            (lambda member, at, labels: np.mean(member.predict(at) == labels), True),
        ],
    )
    def test_probabilities_are_predicted_only_for_criteria_that_use_them(
        self, data, criterion, values
    ):
        X, y, _, _ = data
        member = CountingBayes().fit(X, y)
        SingleBestClassifier([("counts", member)], criterion, prefit=True).fit(X, y)
        assert (member.n_calls > 0) == values

    def test_weights_reach_it(self, data):
        X, y, _, _ = data
        trained = [(name, member.fit(X[:100], y[:100])) for name, member in MIXED]
        wrong = trained[0][1].predict(X) != y
        for criterion in ("accuracy", "balanced_accuracy"):
            model = SingleBestClassifier(trained, criterion, prefit=True)
            plain = model.fit(X, y).competence_overall_[0]
            weighted = model.fit(X, y, sample_weight=1.0 + wrong).competence_overall_[0]
            assert weighted < plain

    def test_where_it_is_not_defined_the_best_over_all_is_best_member(self, slide):
        members, (X, y), _ = slide
        line = LogisticRegression().fit(X, y)
        model = RegionSelectionClassifier(
            [*members, ("fourth", line)], thirds, criterion="roc_auc", prefit=True
        ).fit(X, y)
        assert np.isnan(model.competence_[[0, 2]]).all()
        assert model.member_of_region_[[0, 2]].tolist() == [model.member_elsewhere_] * 2

    @pytest.mark.parametrize("criterion", ["neg_log_loss", "roc_auc_ovr", "neg_brier_score"])
    def test_criteria_that_need_every_class(self, criterion):
        X, y = load_iris(return_X_y=True)
        model = RegionSelectionClassifier(MIXED, criterion=criterion, random_state=0).fit(X, y)
        assert np.isnan(model.competence_).any()
        assert model.score(X, y) > 0.9

    def test_a_function_as_criterion_with_or_without_weights(self, data):
        X, y, _, _ = data

        def own(member, at, labels):
            return float(np.mean(member.predict(at) == labels))

        model = SingleBestClassifier(MIXED, own).fit(X, y, sample_weight=np.arange(1.0, 201))
        assert model.competence_overall_ == pytest.approx(
            SingleBestClassifier(MIXED, own).fit(X, y).competence_overall_, abs=0.1
        )

    def test_of_equals_the_best_over_all_then_the_first(self):
        assert best_member(np.array([0.5, 0.9, 0.9]), np.array([0.9, 0.1, 0.2])) == 2
        assert best_member(np.array([0.9, 0.9, 0.1]), np.array([0.5, 0.5, 0.9])) == 0
        assert best_member(np.array([np.nan, 0.2]), np.array([0.9, 0.1])) == 1
        assert best_member(np.array([np.nan, np.nan]), np.array([0.1, 0.9])) == 1


class TestBadInput:
    @pytest.mark.parametrize(
        ("params", "named"),
        [
            ({"regions": "cells"}, r"\bregions\b.*'cells'"),
            ({"regions": 3}, r"\bregions\b.*\b3\b"),
            ({"regions": DBSCAN()}, r"\bregions\b.*DBSCAN"),
            ({"n_regions": 0}, r"\bn_regions\b.*\b0\b"),
            ({"n_regions": 999}, r"\bn_regions\b.*\b200\b.*\b999\b"),
            ({"criterion": 1}, r"\bcriterion\b.*\b1\b"),
            ({"criterion": "speed"}, r"\bcriterion\b.*'speed'"),
            ({"prefit": "yes"}, r"\bprefit\b.*'yes'"),
            ({"regions": lambda X: 0}, r"\bregion.*\b200\b.*\(\)"),
        ],
    )
    def test_settings(self, data, params, named):
        X, y, _, _ = data
        with pytest.raises(ValueError, match="RegionSelectionClassifier.*" + named):
            RegionSelectionClassifier(MIXED, **params).fit(X, y)

    def test_a_scorer_needs_probabilities(self, data):
        X, y, _, _ = data
        model = RegionSelectionClassifier([GaussianNB(), Perceptron()], criterion="roc_auc")
        with pytest.raises(ValueError, match=r"predict_proba.*\bcriterion\b"):
            model.fit(X, y)

    def test_probabilities_only_if_all_members_have_them(self, data):
        X, y, _, _ = data
        model = RegionSelectionClassifier([GaussianNB(), Perceptron()]).fit(X, y)
        assert not hasattr(model, "predict_proba")
        assert hasattr(RegionSelectionClassifier(MIXED), "predict_proba")

    def test_text_needs_a_space(self):
        X = pd.DataFrame({"a": ["u", "v"] * 10})
        members = [make_pipeline(_Length(), GaussianNB()), make_pipeline(_Length(), GaussianNB())]
        with pytest.raises(ValueError, match=r"\bspace\b"):
            RegionSelectionClassifier(members).fit(X, [0, 1] * 10)


class TestReferences:
    def test_the_oracle_is_correct_wherever_any_member_is(self, slide):
        members, (X, y), (X_new, y_new) = slide
        oracle = Oracle(members, prefit=True).fit(X, y)
        right = np.stack([member.predict(X_new) == y_new for _, member in members], axis=1)
        assert (oracle.correct(X_new, y_new) == right).all()
        assert oracle.score(X_new, y_new) == 1
        assert (oracle.predict(X_new, y_new) == y_new).all()

    def test_where_no_member_is_correct_it_predicts_as_the_first(self, slide):
        members, (X, y), _ = slide
        oracle = Oracle(members[:1], prefit=True).fit(X, y)
        assert (oracle.predict(X, y) == "ω1").all()
        weight = (y == "ω2").astype(float) + 1
        assert oracle.score(X, y, weight) == pytest.approx((y == "ω1").sum() / weight.sum())

    def test_labels_in_a_column_are_labels(self, data):
        X, y, X_new, y_new = data
        oracle = Oracle(MIXED).fit(X, y)
        assert (oracle.correct(X_new, y_new[:, None]) == oracle.correct(X_new, y_new)).all()

    def test_labels_that_no_member_knows_are_never_correct(self, slide):
        members, (X, y), _ = slide
        oracle = Oracle(members, prefit=True).fit(X, y)
        assert oracle.score(X[:4], ["ω1", "ω3", "ω3", "ω2"]) == 0.5

    def test_the_single_best_is_best_on_samples_it_was_not_trained_on(self):
        """A tree that knows its training samples by heart is not best for that."""
        random = np.random.default_rng(0)
        X = random.normal(size=(300, 5))
        y = (X[:, 0] + random.normal(size=300) > 0).astype(int)
        members = [
            ("tree", DecisionTreeClassifier(random_state=0)),
            ("logistic", LogisticRegression()),
        ]
        model = SingleBestClassifier(members).fit(X, y)
        assert model.best_ == "logistic"
        assert (model.predict(X) == model.named_estimators_.logistic.predict(X)).all()


class TestEnsembles:
    def test_a_forest_with_labels_of_any_kind(self, data):
        X, y, X_new, y_new = data
        names = np.array(["no", "yes"])
        forest = RandomForestClassifier(7, random_state=0).fit(X[:100], names[y[:100]])
        model = RegionSelectionClassifier(forest, prefit=True, random_state=0)
        model.fit(X[100:], names[y[100:]])
        assert set(model.predict(X_new)) == {"no", "yes"}
        assert model.score(X_new, names[y_new]) > 0.6
        assert model.member_names_[-1] == "decisiontreeclassifier-7"
        own = forest.estimators_[0].predict(X_new)
        assert (model.estimators_[0].predict(X_new) == names[own.astype(int)]).all()

    def test_a_forest_of_a_data_frame_gets_its_columns_without_names(self, data):
        X, y, _, _ = data
        frame = pd.DataFrame(X, columns=list("abcde"))
        forest = RandomForestClassifier(5, random_state=0).fit(frame, y)
        model = RegionSelectionClassifier(forest, prefit=True, random_state=0).fit(frame, y)
        assert model.score(frame, y) > 0.8

    def test_a_bag_of_pipelines_and_one_without_probabilities(self, data):
        X, y, X_new, _ = data
        for member in (make_pipeline(StandardScaler(), LogisticRegression()), Perceptron()):
            bag = BaggingClassifier(member, n_estimators=4, random_state=0).fit(X[:100], y[:100])
            model = RegionSelectionClassifier(bag, prefit=True, random_state=0)
            model.fit(X[100:], y[100:])
            assert len(model.estimators_) == 4
            assert hasattr(model, "predict_proba") == hasattr(member, "predict_proba")
            assert set(model.predict(X_new)) == {0, 1}

    def test_a_vote_of_forests_has_its_own_names(self, data):
        X, y, _, _ = data
        names = np.array(["no", "yes"])
        frame = pd.DataFrame(X, columns=list("abcde"))
        forests = [(name, RandomForestClassifier(3, random_state=0)) for name in ("oak", "elm")]
        vote = VotingClassifier([*forests, ("gone", "drop")]).fit(frame, names[y])
        model = RegionSelectionClassifier(vote, prefit=True, random_state=0).fit(frame, names[y])
        assert model.member_names_ == ["oak", "elm"]
        assert model.score(frame, names[y]) > 0.9

    def test_members_that_have_not_seen_the_last_class(self):
        """Numbers of classes are not taken for classes, though they look like some."""
        X, y = np.arange(30.0)[:, None], np.repeat([-1, 0, 1], 10)
        bag = BaggingClassifier(KNeighborsClassifier(1), n_estimators=3, random_state=0).fit(X, y)
        bag.estimators_ = [KNeighborsClassifier(1).fit(X[:20], [0] * 10 + [1] * 10)] * 2
        bag.estimators_features_ = [np.array([0])] * 2
        model = RegionSelectionClassifier(bag, prefit=True, random_state=0).fit(X[:20], y[:20])
        assert model.classes_.tolist() == [-1, 0]
        assert model.score(X[:20], y[:20]) == 1

    def test_one_that_is_not_trained_is_refused(self, data):
        X, y, _, _ = data
        with pytest.raises(ValueError, match=r"RegionSelectionClassifier.*BaggingClassifier"):
            RegionSelectionClassifier(BaggingClassifier(), prefit=True).fit(X, y)

    def test_others_are_refused(self, data):
        X, y, _, _ = data
        boosted = GradientBoostingClassifier(n_estimators=2).fit(X, y)
        with pytest.raises(ValueError, match=r"AdaBoostClassifier.*GradientBoostingClassifier"):
            RegionSelectionClassifier(boosted, prefit=True).fit(X, y)


class CountingBayes(GaussianNB):
    """Counts the calls of predict_proba."""

    n_calls = 0

    def predict_proba(self, X):
        self.n_calls += 1
        return super().predict_proba(X)


class _Length(StandardScaler):
    """A number of a text."""

    def fit(self, X, y=None):
        self.n_features_in_ = 1
        return self

    def transform(self, X):
        return X.to_numpy() == "u"
