"""Local selection as an estimator: its predictions, its input, and its explanations."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GroupKFold,
    RepeatedStratifiedKFold,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KDTree, KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from margrave.fuse import VoteClassifier
from margrave.select import LocalSelectionClassifier, Oracle, _local
from margrave.select._competence import METHODS

MIXED = [
    ("bayes", GaussianNB()),
    ("logistic", LogisticRegression(max_iter=1000)),
    ("tree", DecisionTreeClassifier(max_depth=3, random_state=0)),
    ("knn", KNeighborsClassifier(3)),
    ("stump", DecisionTreeClassifier(max_depth=1, random_state=0)),
]
each_method = pytest.mark.parametrize("method", METHODS)


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(600, 6, n_informative=4, n_classes=3, flip_y=0.1, random_state=0)
    return X[:300], y[:300], X[300:], y[300:]


@pytest.fixture(scope="module")
def trained(data):
    X, y, _, _ = data
    return [(name, member.fit(X[:150], y[:150])) for name, member in MIXED]


def prefit(trained, data, method="knora-e", **params):
    X, y, _, _ = data
    return LocalSelectionClassifier(trained, method, prefit=True, **params).fit(X[150:], y[150:])


class TestTheSlide:
    @pytest.mark.parametrize("method", ["ola", "lca", "rank", "mla", "knora-e", "des-p"])
    def test_each_member_is_right_half_the_time_and_the_selection_always(self, slide, method):
        members, (X, y), (X_new, y_new) = slide
        alone = [np.mean(member.predict(X_new) == y_new) for _, member in members]
        assert alone == pytest.approx([0.5, 0.5, 0.5], abs=0.03)
        vote = VoteClassifier(members, prefit=True).fit(X, y)
        model = LocalSelectionClassifier(members, method, prefit=True).fit(X, y)
        assert model.score(X_new, y_new) > 0.97
        assert vote.score(X_new, y_new) == pytest.approx(0.5, abs=0.03)

    def test_the_member_in_charge_is_the_one_of_the_region(self, slide):
        members, (X, y), _ = slide
        model = LocalSelectionClassifier(members, "knora-e", prefit=True).fit(X, y)
        explanation = model.explain(np.array([[-2.5, 0.5], [2.5, -0.5], [0.0, 0.5], [0.0, -0.5]]))
        assert explanation.predictions.tolist() == ["ω1", "ω2", "ω2", "ω1"]
        assert explanation.selected[0].tolist() == [True, False, False]
        assert explanation.selected[1].tolist() == [False, True, False]
        assert explanation.selected[2:, 2].all()


class TestPredictions:
    @each_method
    def test_it_follows_from_the_selected_members(self, trained, data, method):
        """The votes of the selected members give the prediction, one sample at a time."""
        X_new = data[2][:80]
        model = prefit(trained, data, method)
        explanation = model.explain(X_new)
        assert (explanation.predictions == model.predict(X_new)).all()
        assert (explanation.selected == model.selected(X_new)).all()
        assert explanation.competence == pytest.approx(model.competence(X_new), rel=1e-9)
        for i in range(len(X_new)):
            votes = {}
            for j in np.flatnonzero(explanation.selected[i]):
                weight = explanation.competence[i, j] if METHODS[method].weighted else 1
                weight = 1 if explanation.none_competent[i] else weight
                votes[explanation.votes[i, j]] = votes.get(explanation.votes[i, j], 0) + weight
            assert votes[explanation.predictions[i]] == max(votes.values())

    @each_method
    def test_unanimous_members_need_no_neighbours(self, trained, data, method):
        X_new = data[2]
        model = prefit(trained, data, method)
        explanation = model.explain(X_new)
        agreed = (explanation.votes == explanation.votes[:, :1]).all(axis=1)
        assert agreed.any()
        assert (explanation.predictions[agreed] == explanation.votes[agreed, 0]).all()

    @each_method
    @pytest.mark.parametrize("voting", ["hard", "soft"])
    def test_probabilities_sum_to_one_and_lead_to_the_prediction(
        self, trained, data, method, voting
    ):
        X_new = data[2]
        model = prefit(trained, data, method, voting=voting)
        proba = model.predict_proba(X_new)
        assert proba.sum(axis=1) == pytest.approx(np.ones(len(X_new)))
        assert (model.classes_[proba.argmax(axis=1)] == model.predict(X_new)).all()

    def test_a_single_choice_has_the_members_own_probabilities(self, trained, data):
        X_new = data[2][:50]
        model = prefit(trained, data, "ola")
        explanation, proba = model.explain(X_new), model.predict_proba(X_new)
        own = np.stack([member.predict_proba(X_new) for _, member in trained], axis=1)
        one = explanation.selected.sum(axis=1) == 1
        assert one.sum() > 40
        assert proba[one] == pytest.approx(own[one, explanation.selected[one].argmax(axis=1)])

    @each_method
    def test_blocks_do_not_change_predictions(self, trained, data, method, monkeypatch):
        X_new = data[2][:80]  # more blocks than one, whatever the block
        whole = prefit(trained, data, method)
        expected = whole.predict(X_new), whole.predict_proba(X_new), whole.competence(X_new)
        monkeypatch.setattr(_local, "_LARGEST_BLOCK", 1000)
        small = prefit(trained, data, method)
        assert small._memory.block_size < 20
        assert (small.predict(X_new) == expected[0]).all()
        assert small.predict_proba(X_new) == pytest.approx(expected[1], rel=1e-9)
        assert small.competence(X_new) == pytest.approx(expected[2], abs=1e-12)

    @each_method
    def test_no_method_beats_the_oracle(self, trained, data, method):
        _, _, X_new, y_new = data
        oracle = Oracle(trained, prefit=True).fit(X_new, y_new)
        right = prefit(trained, data, method).predict(X_new) == y_new
        assert (oracle.correct(X_new, y_new).any(axis=1) >= right).all()

    def test_k_of_all_samples_is_the_best_member_over_all(self, trained, data):
        _, _, X_new, _ = data
        model = prefit(trained, data, "ola", k=150)
        best = trained[int(np.argmax(model.accuracy_))][1]
        assert (model.predict(X_new) == best.predict(X_new)).all()


class TestEqualCompetence:
    @pytest.fixture
    def equal(self):
        """Three members; the first two are right at all of it, and differ elsewhere."""
        X, y = np.arange(8.0)[:, None], np.array([0, 0, 0, 0, 1, 1, 1, 1])
        members = [
            ("a", DecisionTreeClassifier(max_depth=1).fit([[0.0], [3.6], [4.0]], [0, 0, 1])),
            ("b", DecisionTreeClassifier(max_depth=1).fit([[0.0], [3.2], [3.4]], [0, 0, 1])),
            ("c", DecisionTreeClassifier(max_depth=1).fit([[0.0], [3.1], [3.3]], [0, 0, 1])),
        ]
        return members, X, y

    def test_the_first_predicts(self, equal):
        members, X, y = equal
        model = LocalSelectionClassifier(members, "ola", k=3, prefit=True).fit(X, y)
        assert model.selected([[3.5]]).tolist() == [[True, False, False]]
        assert model.predict([[3.5]]) == [0]

    def test_or_all_of_them_vote(self, equal):
        members, X, y = equal
        model = LocalSelectionClassifier(members, "ola", k=3, prefit=True, ties="vote").fit(X, y)
        assert model.selected([[3.5]]).tolist() == [[True, True, True]]
        assert model.predict([[3.5]]) == [1]

    def test_equal_votes_go_to_the_first_class(self, equal):
        members, X, y = equal
        model = LocalSelectionClassifier(members[:2], "knora-e", k=3, prefit=True).fit(X, y)
        assert model.predict([[3.5]]) == [0]


class TestNoCompetentMember:
    @pytest.fixture
    def hopeless(self):
        """Members that are wrong everywhere, and new samples."""
        X = np.random.default_rng(0).normal(size=(60, 2))
        y = np.repeat(["a", "b", "c"], 20)
        wrong = [
            (f"m{j}", DecisionTreeClassifier(random_state=j).fit(X, np.roll(y, 20 * (1 + j % 2))))
            for j in range(3)
        ]
        return wrong, X, y

    @each_method
    def test_all_members_vote(self, hopeless, method):
        members, X, y = hopeless
        model = LocalSelectionClassifier(members, method, k=5, prefit=True).fit(X, y)
        assert model.accuracy_.tolist() == [0, 0, 0]
        assert model.selected(X).all()
        vote = VoteClassifier(members, prefit=True).fit(X, y)
        assert (model.predict(X) == vote.predict(X)).all()

    @each_method
    def test_or_the_sample_is_rejected(self, hopeless, method):
        members, X, y = hopeless
        model = LocalSelectionClassifier(members, method, k=5, prefit=True, reject=True).fit(X, y)
        assert (model.predict(X) == "rejected").all()
        assert not model.selected(X).any()
        assert model.predict_proba(X[:1]) == pytest.approx(np.full((1, 3), 1 / 3))
        assert model.score(X, y) == 0

    def test_the_explanation_reports_it(self, hopeless):
        members, X, y = hopeless
        model = LocalSelectionClassifier(members, k=5, prefit=True).fit(X, y)
        explanation = model.explain(X[:2])
        assert explanation.none_competent.all()
        assert explanation.selected.all()
        assert len(str(explanation).splitlines()) == 2
        explanation = model.set_params(reject=True).explain(X[:1])
        assert explanation.none_competent.all()
        assert not explanation.selected.any()
        assert str(explanation).startswith("rejected")

    def test_only_where_no_member_is_competent(self, slide):
        members, (X, y), _ = slide
        constants = members[:2]
        here = np.abs(X[:, 0]) > 1  # in the middle both are wrong half of the time
        model = LocalSelectionClassifier(
            constants, "rank", k=1, prefit=True, reject=True, reject_label="none"
        ).fit(X[here], y[here])
        assert set(model.predict(X[here])) == {"ω1", "ω2"}
        assert model.reject_label_ == "none"

    def test_the_reject_label_is_no_class(self, hopeless):
        members, X, y = hopeless
        model = LocalSelectionClassifier(members, prefit=True, reject=True, reject_label="a")
        with pytest.raises(ValueError, match=r"reject_label.*'a'"):
            model.fit(X, y)


class TestExplanations:
    def test_a_line_a_sample(self, trained, data):
        model = prefit(trained, data, "knora-u")
        explanation = model.explain(data[2][:3])
        assert len(explanation) == 3
        first = str(explanation).splitlines()[0]
        assert first.startswith(str(explanation.predictions[0]))
        chosen = [
            name
            for name, own in zip(explanation.members, explanation.selected[0], strict=True)
            if own
        ]
        named = [name for name in explanation.members if name in first]
        assert set(named) <= set(chosen)
        assert len(named) == min(len(chosen), 4)

    def test_neighbours_are_rows_of_the_data_passed_to_fit(self, trained, data):
        X, y, X_new, _ = data
        model = prefit(trained, data, "ola")
        explanation = model.explain(X_new[:5])
        distances = np.linalg.norm(X[150:][explanation.neighbours] - X_new[:5, None], axis=2)
        assert (np.diff(distances, axis=1) >= 0).all()
        right = (
            y[150:][explanation.neighbours][:, :, None]
            == np.stack([member.predict(X[150:]) for _, member in trained], axis=1)[
                explanation.neighbours
            ]
        )
        assert explanation.competence == pytest.approx(right.mean(axis=1))

    def test_neighbours_of_a_part_and_of_folds_too(self, data):
        X, y, _, _ = data
        for tuning in (0.3, 3):
            model = LocalSelectionClassifier(MIXED, "ola", 1, tuning=tuning, random_state=0)
            explanation = model.fit(X, y).explain(X)
            known = np.isin(np.arange(len(X)), explanation.neighbours)
            assert known.sum() == model.n_tuning_
            assert (explanation.neighbours[known, 0] == np.flatnonzero(known)).all()


class TestInput:
    @each_method
    def test_strings_pandas_and_subsets_of_labels_and_features(self, method):
        iris = load_iris(as_frame=True)
        X, y = iris.data, iris.target_names[iris.target]
        some = y != "setosa"
        members = [
            ("petals", LogisticRegression(max_iter=1000).fit(X[iris.feature_names[2:]], y)),
            ("sepals", GaussianNB().fit(X.iloc[:, :2], y)),
            ("two", GaussianNB().fit(X[some], y[some])),
        ]
        model = LocalSelectionClassifier(members, method, prefit=True).fit(X[1::2], y[1::2])
        assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
        assert model.score(X[::2], y[::2]) > 0.9
        assert model.feature_names_in_.tolist() == iris.feature_names

    def test_features_by_position(self, data):
        X, y, X_new, _ = data
        features = {"bayes": [0, 1, 2], "tree": slice(3, 6)}
        model = LocalSelectionClassifier(MIXED, "knora-u", features=features).fit(X, y)
        assert [member.n_features_in_ for member in model.estimators_] == [3, 6, 3, 6, 6]
        by_hand = [
            (name, make_pipeline(Columns(features.get(name)), member)) for name, member in MIXED
        ]
        other = LocalSelectionClassifier(by_hand, "knora-u").fit(X, y)
        assert (model.predict(X_new) == other.predict(X_new)).all()

    def test_columns_that_are_no_numbers_need_a_space(self):
        X = pd.DataFrame({"colour": ["red", "blue"] * 20, "size": np.arange(40.0)})
        y = np.repeat([0, 1], 20)
        numbers = make_column_transformer(
            (OrdinalEncoder(), ["colour"]), remainder=StandardScaler()
        )
        members = [
            make_pipeline(numbers, GaussianNB()),
            make_pipeline(numbers, DecisionTreeClassifier()),
        ]
        with pytest.raises(ValueError, match=r"\bspace\b"):
            LocalSelectionClassifier(members).fit(X, y)
        model = LocalSelectionClassifier(members, space=numbers).fit(X, y)
        assert model.score(X, y) > 0.9
        assert model.space_ is not numbers

    def test_distances_are_computed_in_the_space(self, data):
        X, y, X_new, _ = data
        stretched = X * [1, 1, 1, 1, 1, 1e6]
        model = LocalSelectionClassifier(MIXED, space=StandardScaler()).fit(stretched, y)
        explanation = model.explain(X_new[:20] * [1, 1, 1, 1, 1, 1e6])
        scaled = StandardScaler().fit(X)
        index = NearestNeighbors(n_neighbors=7).fit(scaled.transform(X))
        expected = index.kneighbors(scaled.transform(X_new[:20]), return_distance=False)
        assert (explanation.neighbours == expected).all()

    def test_sparse_samples(self, data):
        X, y, X_new, _ = data
        members = [LogisticRegression(max_iter=1000), DecisionTreeClassifier(random_state=0)]
        dense = LocalSelectionClassifier(members).fit(X, y)
        other = LocalSelectionClassifier(members).fit(sparse.csr_array(X), y)
        assert (other.predict(sparse.csr_array(X_new)) == dense.predict(X_new)).all()

    def test_samples_without_weight_are_left_out(self, data):
        X, y, X_new, _ = data
        counting = np.arange(300) % 3 > 0
        model = LocalSelectionClassifier(trees(X, y), "ola", prefit=True)
        with_zeros = model.fit(X, y, sample_weight=counting.astype(float)).predict(X_new)
        assert model.n_tuning_ == 200
        without = model.fit(X[counting], y[counting]).predict(X_new)
        assert (with_zeros == without).all()

    @each_method
    def test_equal_weights_change_nothing(self, trained, data, method):
        X, y, X_new, _ = data
        plain = prefit(trained, data, method)
        model = LocalSelectionClassifier(trained, method, prefit=True)
        model.fit(X[150:], y[150:], sample_weight=np.full(150, 1.0))
        assert (model.predict(X_new) == plain.predict(X_new)).all()
        assert model.competence(X_new) == pytest.approx(plain.competence(X_new))

    def test_any_index_with_the_same_calls(self, trained, data):
        X_new = data[2]
        plain = prefit(trained, data)
        other = prefit(trained, data, index=TreeIndex())
        assert (other.predict(X_new) == plain.predict(X_new)).all()
        far = prefit(trained, data, index=NearestNeighbors(metric="manhattan"))
        assert (far.explain(X_new).neighbours != plain.explain(X_new).neighbours).any()

    def test_a_trained_ensemble_is_opened(self, data):
        X, y, X_new, y_new = data
        names = np.array(["ga", "bu", "zo"])
        bag = BaggingClassifier(n_estimators=10, max_features=4, random_state=0)
        bag.fit(X[:150], names[y[:150]])
        model = LocalSelectionClassifier(bag, prefit=True).fit(X[150:], names[y[150:]])
        assert model.member_names_[0] == "decisiontreeclassifier-01"
        assert model.score(X_new, names[y_new]) > 0.5
        features = [(f"m{j}", member) for j, member in enumerate(bag.estimators_)]
        by_hand = LocalSelectionClassifier(
            features, prefit=True, features=bag.estimators_features_
        ).fit(X[150:], np.searchsorted(bag.classes_, names[y[150:]]))
        assert (bag.classes_[by_hand.predict(X_new)] == model.predict(X_new)).all()

    def test_groups_are_passed_as_folds(self, data):
        X, y, _, _ = data
        groups = np.arange(300) // 10
        with pytest.raises(ValueError, match=r"\btuning\b.*GroupKFold"):
            LocalSelectionClassifier(MIXED).fit(X, y, groups=groups)
        folds = list(GroupKFold(3).split(X, y, groups))
        assert LocalSelectionClassifier(MIXED, tuning=folds).fit(X, y).n_tuning_ == 300


class TestBadInput:
    @pytest.mark.parametrize(
        ("name", "value", "received"),
        [
            ("method", "best", "'best'"),
            ("k", 0, r"\b0\b"),
            ("k", 2.5, r"\b2\.5\b"),
            ("ties", "last", "'last'"),
            ("voting", "loud", "'loud'"),
            ("reject", "no", "'no'"),
            ("tuning", 1, r"\b1\b"),
            ("index", "faiss", "'faiss'"),
            ("features", [[0]], r"\b5\b.*\b1\b"),
            ("features", {"none": [0]}, "'none'"),
        ],
    )
    def test_settings(self, data, name, value, received):
        X, y, _, _ = data
        with pytest.raises(ValueError, match=rf"LocalSelectionClassifier.*\b{name}\b.*{received}"):
            LocalSelectionClassifier(MIXED, **{name: value}).fit(X, y)

    def test_more_neighbours_than_samples(self, trained, data):
        X, y, _, _ = data
        members = [("a", trained[0][1]), ("b", trained[1][1])]
        model = LocalSelectionClassifier(members, "ola", 7, prefit=True)
        with pytest.raises(ValueError, match=r"\bk\b.*\b6\b.*\b7\b"):
            model.fit(X[:6], y[:6])
        assert model.set_params(k=6).fit(X[:6], y[:6]).n_tuning_ == 6
        model.set_params(method="meta-des")
        with pytest.raises(ValueError, match=r"\bk\b.*\b5\b.*\b6\b"):
            model.fit(X[:6], y[:6])

    @pytest.mark.parametrize(
        ("params", "what"),
        [
            ({"method": "meta-des"}, "method='meta-des'"),
            ({"method": "knop"}, "method='knop'"),
            ({"voting": "soft"}, "voting='soft'"),
        ],
    )
    def test_members_without_probabilities(self, data, params, what):
        X, y, _, _ = data
        model = LocalSelectionClassifier([GaussianNB(), Perceptron()], **params)
        with pytest.raises(ValueError, match=f"{what}.*predict_proba.*'perceptron'"):
            model.fit(X, y)

    def test_members_without_probabilities_vote(self, data):
        X, y, _, _ = data
        model = LocalSelectionClassifier([GaussianNB(), Perceptron()], "ola").fit(X, y)
        assert set(np.unique(model.predict_proba(X))) <= {0, 0.5, 1}

    def test_an_ensemble_that_is_not_prefit(self, data):
        X, y, _, _ = data
        bag = BaggingClassifier(n_estimators=2).fit(X, y)
        with pytest.raises(ValueError, match="prefit=True"):
            LocalSelectionClassifier(bag).fit(X, y)

    def test_an_index_that_finds_too_few(self, trained, data):
        model = prefit(trained, data, index=ShortIndex())
        with pytest.raises(ValueError, match=r"\bindex\b.*\b7\b.*ShortIndex"):
            model.predict(data[2])

    @pytest.mark.parametrize("number", [-1, 150])
    def test_an_index_that_finds_none_of_the_samples(self, trained, data, number):
        model = prefit(trained, data, index=LostIndex(number))
        with pytest.raises(ValueError, match=rf"\bindex\b.*LostIndex.* {number}\b"):
            model.predict(data[2])

    def test_an_index_that_needs_labels(self, data):
        X, y, _, _ = data
        with pytest.raises(ValueError, match=r"\bindex\b.*KNeighborsClassifier"):
            LocalSelectionClassifier(MIXED, index=KNeighborsClassifier()).fit(X, y)
        with pytest.raises(ValueError, match=r"\bindex\b.*NearestNeighbors'>"):
            LocalSelectionClassifier(MIXED, index=NearestNeighbors).fit(X, y)

    def test_samples_held_out_twice(self, data):
        X, y, _, _ = data
        twice = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
        with pytest.raises(ValueError, match=r"\b0\b.*\b2\b"):
            LocalSelectionClassifier(MIXED, tuning=twice).fit(X, y)
        inside = [(np.arange(200), np.arange(100, 300))]
        with pytest.raises(ValueError, match=r"LocalSelectionClassifier.*\bfolds\b"):
            LocalSelectionClassifier(MIXED, tuning=inside).fit(X, y)

    def test_no_samples(self, trained, data):
        with pytest.raises(ValueError, match=r"LocalSelectionClassifier.*\bsample"):
            prefit(trained, data).predict(data[2][:0])

    def test_a_name_that_is_nearly_right(self, data):
        X, y, _, _ = data
        with pytest.raises(ValueError, match=r"\bmethod\b.*'knorae'.*'knora-e'"):
            LocalSelectionClassifier(MIXED, "knorae").fit(X, y)

    def test_a_fit_that_fails_leaves_nothing(self, trained, data):
        X, y, X_new, _ = data
        model = prefit(trained, data)
        with pytest.raises(ValueError, match=r"\bk\b.*\b100\b"):
            model.set_params(k=120).fit(X[:100], y[:100])
        with pytest.raises(NotFittedError):
            model.predict(X_new)

    def test_labels_that_no_member_knows(self, trained, data):
        X, y, _, _ = data
        model = LocalSelectionClassifier(trained, prefit=True)
        with pytest.raises(ValueError, match=r"\by\b.*\b3\b"):
            model.fit(X, y + 1)

    def test_other_columns_than_before(self, trained, data):
        with pytest.raises(ValueError, match="5 features"):
            prefit(trained, data).predict(data[2][:, :5])

    def test_a_tuning_set_without_weights_is_refused(self, data):
        X, y, _, _ = data
        folds = [(np.arange(100), np.arange(100, 300))]
        model = LocalSelectionClassifier(trees(X, y), tuning=folds)
        weight = (np.arange(300) < 100).astype(float)
        with pytest.raises(ValueError, match=r"\bweight\b"):
            model.fit(X, y, sample_weight=weight)

    def test_a_member_that_rejects_is_not_right(self, data):
        X, y, X_new, _ = data
        split = VoteClassifier([GaussianNB(), DecisionTreeClassifier(max_depth=1)], "unanimity")
        members = [("vote", split), ("bayes", GaussianNB())]
        model = LocalSelectionClassifier(members, "knora-e").fit(X, y)
        explanation = model.explain(X_new)
        silent = explanation.votes[:, 0] == -1
        assert silent.any()
        assert (explanation.predictions != -1)[silent & explanation.selected[:, 1]].all()


@pytest.mark.parametrize(("method", "voting"), [("knop", "hard"), ("ola", "soft")])
def test_a_vote_is_the_predicted_label_not_the_most_probable_class(data, method, voting):
    X, y, X_new, _ = data
    y = y > 0
    members = [
        ("rare", FixedThresholdClassifier(GaussianNB(), threshold=0.9).fit(X, y)),
        ("tree", DecisionTreeClassifier(max_depth=3).fit(X, y)),
    ]
    model = LocalSelectionClassifier(members, method, prefit=True, voting=voting).fit(X, y)
    assert (model.explain(X_new).votes[:, 0] == members[0][1].predict(X_new)).all()
    assert model.accuracy_[0] == pytest.approx(members[0][1].score(X, y))


def test_only_ratios_of_weights_count(trained, data):
    X, y, X_new, _ = data
    weight = np.random.default_rng(0).integers(1, 4, 150).astype(float)
    model = LocalSelectionClassifier(trained, "meta-des", prefit=True)
    one = model.fit(X[150:], y[150:], sample_weight=weight).competence(X_new)
    other = model.fit(X[150:], y[150:], sample_weight=weight / 1000).competence(X_new)
    assert one == pytest.approx(other)


def test_parameters_of_the_space_and_the_index_are_reached():
    model = LocalSelectionClassifier(MIXED, space=StandardScaler(), index=NearestNeighbors())
    params = model.get_params()
    assert params["space__with_mean"] is True
    assert params["tree__max_depth"] == 3
    model.set_params(index__metric="manhattan")
    assert clone(model).index.metric == "manhattan"


class TestChangedParameters:
    def test_another_method_needs_another_fit(self, trained, data):
        model = prefit(trained, data, "ola")
        before = model.predict(data[2])
        model.set_params(method="meta-des", k=3)
        assert (model.predict(data[2]) == before).all()

    def test_voting_ties_and_reject_do_not(self, trained, data):
        X_new = data[2]
        model = prefit(trained, data, "ola").set_params(voting="soft", ties="vote")
        again = prefit(trained, data, "ola", voting="soft", ties="vote")
        assert model.predict_proba(X_new) == pytest.approx(again.predict_proba(X_new), rel=1e-9)
        with pytest.raises(ValueError, match=r"\bties\b.*'all'"):
            model.set_params(ties="all").predict(X_new)


def test_one_class_only():
    X = np.arange(20.0)[:, None]
    model = LocalSelectionClassifier([GaussianNB(), DummyClassifier()], "knora-u").fit(
        X, np.ones(20)
    )
    assert (model.predict(X) == 1).all()


def trees(X, y):
    return [
        (f"t{j}", DecisionTreeClassifier(max_depth=2, random_state=j).fit(X[j::5], y[j::5]))
        for j in range(5)
    ]


class Columns(StandardScaler):
    """Some columns, as they are."""

    def __init__(self, chosen=None):
        super().__init__()
        self.chosen = chosen

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X if self.chosen is None else X[:, self.chosen]


class TreeIndex:
    """An index that is not of scikit-learn, but is called like its."""

    def fit(self, X):
        self.tree = KDTree(X)

    def kneighbors(self, X, n_neighbors, return_distance):
        return self.tree.query(X, n_neighbors)


class LostIndex(TreeIndex):
    def __init__(self, number):
        self.number = number

    def kneighbors(self, X, n_neighbors, return_distance):
        distance, at = self.tree.query(X, n_neighbors)
        at[0, -1] = self.number
        return distance, at


class ShortIndex(TreeIndex):
    def kneighbors(self, X, n_neighbors, return_distance):
        return self.tree.query(X, n_neighbors - 1)
