import pickle
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import coo_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from margrave import Scores


class LabelsOnly(ClassifierMixin, BaseEstimator):
    """A member that can only predict."""

    def __init__(self, member):
        self.member = member
        self.classes_ = member.classes_

    def predict(self, X):
        return self.member.predict(X)


def blobs(n=60, labels=(0, 1), seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, len(labels), n)
    X = rng.normal(size=(n, 3)) + 2 * y[:, None]
    return X, np.array(labels)[y]


LABEL_SETS = [("ham", "spam"), (-1, 1), (1, 2), (False, True), (1.0, 2.0)]


@pytest.mark.parametrize("labels", LABEL_SETS, ids=str)
def test_two_classes_of_any_type(labels):
    X, y = blobs(labels=labels)
    encoded = (y == labels[1]).astype(int)
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    scores = Scores.of([tree, LabelsOnly(tree)], X)
    assert scores.classes.tolist() == list(labels)
    assert scores.labels[:, 0].tolist() == tree.predict(X).tolist()
    np.testing.assert_allclose(scores.values[:, 0], 2 * tree.predict_proba(X)[:, 1] - 1)
    assert set(scores.values[:, 1]) <= {-1.0, 1.0}
    assert (scores.codes[:, 1] == (scores.values[:, 1] > 0)).all()
    assert ((scores.codes[:, 0] == encoded).mean()) > 0.8


def test_every_kind_of_member_comes_into_range():
    X, y = blobs(labels=("ham", "spam"))
    members = [
        ("nb", GaussianNB().fit(X, y)),
        ("ridge", RidgeClassifier().fit(X, y)),
        ("labels", LabelsOnly(Perceptron().fit(X, y))),
    ]
    scores = Scores.of(members, X)
    assert scores.kinds == ("probability", "decision", "label")
    assert np.abs(scores.values).max() <= 1
    decision = members[1][1].decision_function(X)
    np.testing.assert_allclose(scores.values[:, 1], decision / np.abs(decision).max())
    np.testing.assert_allclose(scores.toward("ham"), -scores.toward("spam"))
    assert scores.toward("spam") is scores.values


def test_a_member_of_labels_only_that_rejects_leans_to_no_class():
    X, y = blobs(labels=("ham", "spam"))

    class Shy(LabelsOnly):
        reject_label_ = "?"

        def predict(self, X):
            return np.where(X[:, 0] > 1, super().predict(X), "?")

    scores = Scores.of([Shy(GaussianNB().fit(X, y))], X)
    silent = X[:, 0] <= 1
    assert silent.any()
    assert (scores.values[silent] == 0).all()
    assert (np.abs(scores.values[~silent]) == 1).all()
    assert (scores.codes[silent] == -1).all()


def test_new_data_is_scaled_as_the_reference_was():
    X, y = blobs()
    member = LinearSVC().fit(X, y)
    reference = Scores.of([member], X)
    new = 100 * X
    again = Scores.of([member], new, like=reference)
    expected = np.clip(member.decision_function(new) / reference.scales[0], -1, 1)
    np.testing.assert_allclose(again.values[:, 0], expected)
    assert np.abs(again.values).max() == 1
    arrays_again = Scores.from_arrays(
        decision=member.decision_function(new)[:, None], like=reference
    )
    np.testing.assert_allclose(arrays_again.values, again.values)
    assert arrays_again.members == reference.members


def test_members_that_saw_different_classes():
    X, y = blobs(n=90, labels=("a", "b", "c"))
    all_three = GaussianNB().fit(X, y)
    without_c = GaussianNB().fit(X[y != "c"], y[y != "c"])
    line = LinearSVC().fit(X[y != "a"], y[y != "a"])
    only_b = DecisionTreeClassifier().fit(X[y == "b"], y[y == "b"])
    scores = Scores.of([all_three, without_c, line, only_b], X)
    assert scores.classes.tolist() == ["a", "b", "c"]
    assert scores.values.shape == (90, 4, 3)
    np.testing.assert_allclose(scores.values[:, 0], 2 * all_three.predict_proba(X) - 1, atol=1e-12)
    np.testing.assert_allclose(scores.values[:, 1, :2], 2 * without_c.predict_proba(X) - 1)
    assert (scores.toward("c")[:, 1] == -1).all()
    assert (scores.values[:, 2, 0] == -1).all()
    np.testing.assert_allclose(scores.values[:, 2, 1], -scores.values[:, 2, 2])
    assert (scores.values[:, 3] == [-1, 1, -1]).all()
    assert (scores.labels[:, 3] == "b").all()


def test_members_with_disjoint_classes_meet_in_the_union():
    X, y = blobs(n=80, labels=("a", "b", "c", "d"))
    low, high = np.isin(y, ["a", "b"]), np.isin(y, ["c", "d"])
    scores = Scores.of([GaussianNB().fit(X[low], y[low]), GaussianNB().fit(X[high], y[high])], X)
    assert scores.classes.tolist() == ["a", "b", "c", "d"]
    assert (scores.proba()[:, 0, 2:] == 0).all()
    np.testing.assert_allclose(scores.proba().sum(axis=2), 1)


def test_proba_gives_back_what_the_members_said():
    X, y = blobs(labels=("ham", "spam"))
    member = GaussianNB().fit(X, y)
    np.testing.assert_allclose(Scores.of([member], X).proba()[:, 0], member.predict_proba(X))
    with pytest.raises(ValueError, match=r"predict_proba.*\blogistic\b"):
        Scores.of([("nb", member), ("logistic", LinearSVC().fit(X, y))], X).proba()


@pytest.mark.parametrize("labels", [("ham", "spam"), ("a", "b", "c")], ids=["two", "three"])
def test_raw_values_are_in_the_members_own_units(labels):
    X, y = blobs(labels=labels)
    nb, ridge = GaussianNB().fit(X, y), RidgeClassifier().fit(X, y)
    members = [nb, ridge, LabelsOnly(nb)]
    raw = Scores.of(members, X, ask="values").raw()
    own = ridge.decision_function(X)
    np.testing.assert_allclose(raw[:, 1], own)
    proba = nb.predict_proba(X)
    np.testing.assert_allclose(raw[:, 0], 2 * (proba if len(labels) > 2 else proba[:, 1]) - 1)
    assert set(np.unique(raw[:, 2])) == {-1.0, 1.0}
    alone = Scores.of(members, X[:1], ask="values").raw()
    np.testing.assert_allclose(alone, raw[:1])  # whatever else is asked about
    assert raw.shape == Scores.of(members, X).values.shape


def test_raw_values_of_a_reference_set_are_clipped_where_it_ends():
    X, y = blobs()
    ridge = RidgeClassifier().fit(X, y)
    reference = Scores.of([ridge], X)
    beyond = Scores.of([ridge], 100 * X, like=reference).raw()[:, 0]
    size = reference.scales[0]
    np.testing.assert_allclose(beyond, np.clip(ridge.decision_function(100 * X), -size, size))
    with pytest.raises(ValueError, match="ask='labels'"):
        Scores.of([ridge], X, ask="labels").raw()


def test_members_on_different_columns_by_position_name_and_by_themselves():
    X, y = blobs()
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    by_position = GaussianNB().fit(X[:, [2, 0]], y)
    by_slice = GaussianNB().fit(X[:, 1:], y)
    by_name = GaussianNB().fit(frame[["w", "u"]], y)
    expected = by_position.predict_proba(X[:, [2, 0]])[:, 1] * 2 - 1
    scores = Scores.of([by_position, by_slice], X, features=[[2, 0], slice(1, 3)])
    np.testing.assert_allclose(scores.values[:, 0], expected)
    again = Scores.of([by_position, by_slice], X, like=scores)
    np.testing.assert_allclose(again.values, scores.values)
    by_itself = Scores.of({"named": by_name}, frame)
    np.testing.assert_allclose(by_itself.values[:, 0], expected)
    by_features = Scores.of({"named": by_name}, frame, features={"named": ["w", "u"]})
    np.testing.assert_allclose(by_features.values, by_itself.values)
    frame_by_position = Scores.of([by_name], frame, features=[[2, 0]])
    np.testing.assert_allclose(frame_by_position.values, by_itself.values)


def test_labels_are_the_members_own_not_the_largest_probability():
    X, y = blobs()
    member = SVC().fit(X, y)

    class Cautious(LabelsOnly):
        def predict_proba(self, X):
            return np.full((len(X), 2), 0.5)

    scores = Scores.of([Cautious(member)], X)
    assert scores.labels[:, 0].tolist() == member.predict(X).tolist()
    assert (scores.values == 0).all()


def test_asking_for_one_thing_calls_nothing_else():
    X, y = blobs()

    class Counting(GaussianNB):
        calls = ()

        def predict(self, X):
            self.calls += ("predict",)
            return super().predict(X)

        def predict_proba(self, X):
            self.calls += ("predict_proba",)
            return super().predict_proba(X)

    member = Counting().fit(X, y)
    values = Scores.of([member], X, ask="values")
    assert member.calls == ("predict_proba",)
    with pytest.raises(ValueError, match="ask='values'"):
        _ = values.labels
    member.calls = ()
    labels = Scores.of([member], X, ask="labels")
    assert member.calls[0] == "predict"
    with pytest.raises(ValueError, match="ask='labels'"):
        labels.toward()
    with pytest.raises(ValueError, match=r"\blike="):
        Scores.of([member], X, like=labels)


def test_jobs_do_not_change_the_answer():
    X, y = blobs(labels=("a", "b", "c"))
    members = [GaussianNB().fit(X, y), LogisticRegression().fit(X, y), LinearSVC().fit(X, y)]
    one, two = Scores.of(members, X), Scores.of(members, X, n_jobs=2)
    np.testing.assert_allclose(one.values, two.values, rtol=1e-9)
    assert (one.codes == two.codes).all()


@given(arrays(float, (4, 3), elements=st.floats(-1, 1)))
def test_labels_follow_from_the_values(values):
    scores = Scores.from_arrays(scores=values, classes=["no", "yes"])
    assert (scores.labels == np.where(values > 0, "yes", "no")).all()
    assert (scores.values == values).all()


@given(arrays(float, (4, 2, 3), elements=st.floats(-50, 50, width=32)))
def test_decision_values_keep_their_order_and_sign(values):
    scores = Scores.from_arrays(decision=values)
    assert np.abs(scores.values).max() <= 1
    assert (np.sign(scores.values) == np.sign(values)).all()
    for j in range(2):
        largest = np.abs(values[:, j]).max()
        assert np.abs(scores.values[:, j]).max() == (1 if largest > 0 else 0)
    assert (scores.codes == values.argmax(axis=2)).all()


def test_two_columns_of_values_lean_by_their_difference():
    for given_values in ({"scores": [[[0.9, 0.5]]]}, {"decision": [[[3.0, 1.0]]]}):
        scores = Scores.from_arrays(**given_values)
        assert scores.codes.tolist() == [[0]]
        assert scores.values[0, 0] < 0
    proba = np.array([[[0.3, 0.7], [0.6, 0.4]]])
    np.testing.assert_allclose(Scores.from_arrays(proba=proba).proba(), proba)


def test_one_class_makes_the_round_trip():
    scores = Scores.from_arrays(proba=np.ones((2, 1, 1)), classes=["only"])
    assert scores.labels.tolist() == [["only"], ["only"]]
    assert scores.proba().tolist() == [[[1.0]], [[1.0]]]


def test_labels_of_members_that_reject():
    scores = Scores.from_arrays(labels=[["a", "?"], ["b", "a"]], reject_label="?")
    assert scores.classes.tolist() == ["a", "b"]
    assert scores.codes.tolist() == [[0, -1], [1, 0]]
    assert scores.reject_label == "rejected"
    assert scores.labels.tolist() == [["a", "rejected"], ["b", "a"]]


def test_numbers_beside_a_text_that_means_rejected():
    scores = Scores.from_arrays(labels=[[0, "?"], [1, 1]], reject_label="?")
    assert scores.classes.tolist() == [0, 1]
    assert scores.codes.tolist() == [[0, -1], [1, 1]]


def test_probabilities_may_be_past_the_end_by_a_float32():
    proba = np.array([[1.0000001, 0.2], [0.3, 0.5]], dtype=np.float32)
    assert Scores.from_arrays(proba=proba).values.max() == 1
    assert (Scores.from_arrays(proba=[[0.5, 0.5], [0.5, 0.5]]).values == 0).all()


def test_columns_of_a_data_frame_name_the_members():
    frame = pd.DataFrame({"forest": [0.1, 0.9], "logistic": [0.3, 0.2]})
    assert Scores.from_arrays(proba=frame).members == ("forest", "logistic")
    again = Scores.from_arrays(proba=frame.to_numpy(), members=frame.columns)
    assert again.members == ("forest", "logistic")


def test_sparse_columns_in_any_format():
    X, y = blobs()
    line = LogisticRegression().fit(X[:, [0, 2]], y)
    dense = Scores.of([line], X, features=[[0, 2]])
    thin = Scores.of([line], coo_array(X), features=[[0, 2]])
    np.testing.assert_allclose(dense.values, thin.values)


def test_rows_and_members_can_be_picked():
    values = np.linspace(-1, 1, 12).reshape(4, 3)
    scores = Scores.from_arrays(scores=values, members=["a", "b", "c"])
    assert scores.rows([3, 1]).values.tolist() == values[[3, 1]].tolist()
    picked = scores.pick(["c", "a"])
    assert picked.members == ("c", "a")
    assert picked.values.tolist() == values[:, [2, 0]].tolist()
    assert len(picked.rows(values[:, 0] > 0)) == (values[:, 0] > 0).sum()
    assert scores.rows(2).values.tolist() == [values[2].tolist()]
    for wrong in (["z"], ["a", "a"], "a", []):
        with pytest.raises(ValueError, match=r"a, b, c.*" + re.escape(repr(wrong))):
            scores.pick(wrong)


def test_nothing_of_the_callers_is_changed_or_shared():
    values = np.zeros((3, 2))
    scores = Scores.from_arrays(scores=values)
    values[0, 0] = 1
    assert scores.values[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        scores.values[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        scores.codes[0, 0] = 1
    again = pickle.loads(pickle.dumps(scores))  # noqa: S301
    with pytest.raises(ValueError, match="read-only"):
        again.values[0, 0] = 1


def test_a_large_committee_prints_in_a_line():
    many = Scores.from_arrays(scores=np.zeros((1, 100)))
    assert repr(many).startswith("Scores(")
    assert len(repr(many)) < 120
    assert "100" in repr(many)
    assert "member5" in repr(many)
    assert "member6" not in repr(many)


def test_a_column_of_codes_takes_one_byte():
    assert Scores.from_arrays(labels=[["a", "b"], ["b", "b"]]).codes.dtype == np.int8


def test_one_class_and_one_member_are_fine():
    X, _ = blobs()
    member = DecisionTreeClassifier().fit(X, np.ones(len(X)))
    scores = Scores.of([member], X[:1])
    assert scores.labels.tolist() == [[1.0]]
    assert scores.proba().tolist() == [[[1.0]]]


class Broken(LabelsOnly):
    """Predicts what it was given."""

    def __init__(self, member, proba):
        super().__init__(member)
        self.proba = proba

    def predict_proba(self, X):
        return np.broadcast_to(self.proba, (len(X), np.shape(self.proba)[-1]))


def _pairwise():
    X, y = blobs(labels=("a", "b", "c"))
    return SVC(decision_function_shape="ovo").fit(X, y)


def _members():
    X, y = blobs()
    return X, y, GaussianNB().fit(X, y)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda X, y, nb: Scores.of([], X), r"Scores\.of\b.*\bmembers?\b"),
        (lambda X, y, nb: Scores.of(nb, X), r"Scores\.of\b.*GaussianNB"),
        (lambda X, y, nb: Scores.of([("a", nb), ("a", nb)], X), r"Scores\.of\b.*'a'"),
        (lambda X, y, nb: Scores.of([("a", nb), nb], X), r"Scores\.of\b.*\bmembers\b"),
        (lambda X, y, nb: Scores.of([nb], X, ask="all"), r"\bask=.*'all'"),
        (
            lambda X, y, nb: Scores.of([nb, GaussianNB().fit(X, y.astype(str))], X),
            r"'gaussiannb-1'.*'gaussiannb-2'",
        ),
        (lambda X, y, nb: Scores.of([("a", Broken(nb, [np.nan, 1.0]))], X), r"'a'.*NaN"),
        (
            lambda X, y, nb: Scores.of([("a", Broken(nb, [2.0, -1.0]))], X),
            r"'a'.*\[0, 1\].*-1\b.*\b2\b",
        ),
        (
            lambda X, y, nb: Scores.of([("a", Broken(nb, [0.2, 0.3, 0.5]))], X),
            r"'a'.*\b2\b.*\(60, 3\)",
        ),
        (
            lambda X, y, nb: Scores.of([("a", nb)], X, features=[["u"]]),
            r"'a'.*\bX\b.*\bndarray\b",
        ),
        (
            lambda X, y, nb: Scores.of([("a", nb)], X, features=[[0, 7]]),
            r"'a'.*\[0, 7\].*\bX\b.*\b3\b",
        ),
        (
            lambda X, y, nb: Scores.of(
                [("a", nb)], pd.DataFrame(X, columns=list("uvw")), features=[["u", "z"]]
            ),
            r"'a'.*\bX\b.*\bz\b",
        ),
        (
            lambda X, y, nb: Scores.of([("a", nb)], X, features=[None, None]),
            r"\bfeatures\b.*\b1\b.*\b2\b",
        ),
        (
            lambda X, y, nb: Scores.of([("a", nb)], X, features={"b": [1]}),
            r"\bfeatures\b.*'b'",
        ),
        (
            lambda X, y, nb: Scores.of([("b", nb)], X, like=Scores.of([("a", nb)], X)),
            r"\blike=.*\bb\b",
        ),
        (lambda X, y, nb: Scores.from_arrays(scores=[[1.5]]), r"\[-1, 1\].*\b1\.5\b"),
        (lambda X, y, nb: Scores.from_arrays(scores=[[np.inf]]), r"Scores\.from_arrays.*NaN"),
        (
            lambda X, y, nb: Scores.from_arrays(scores=[[1]], proba=[[1]]),
            r"\bproba\b.*\bdecision\b.*\bscores\b",
        ),
        (
            lambda X, y, nb: Scores.from_arrays(scores=[[0.1]], labels=[[1], [2]]),
            r"\blabels\b.*\(1, 1\).*\(2, 1\)",
        ),
        (lambda X, y, nb: Scores.from_arrays(), r"\blabels\b.*\(n, K\)"),
        (
            lambda X, y, nb: Scores.from_arrays(scores=[[0.1]], classes=["b", "a"]),
            r"\bclasses\b.*\['b', 'a'\]",
        ),
        (
            lambda X, y, nb: Scores.from_arrays(scores=[[0.1]], classes=["a", "b", "c"]),
            r"\b2\b.*'a', 'b', 'c'.*\bclasses=",
        ),
        (
            lambda X, y, nb: Scores.from_arrays(scores=[[0.1, 0.2]], members=["a"]),
            r"\b2\b.*\bmembers\b.*\['a'\]",
        ),
        (
            lambda X, y, nb: Scores.from_arrays(scores=np.zeros((1, 1, 3))).toward(),
            r"Scores\.toward.*0, 1, 2",
        ),
        (lambda X, y, nb: Scores.of([nb], X).toward("spam"), r"Scores\.toward.*'spam'"),
        (
            lambda X, y, nb: Scores.from_arrays(proba=nb.predict_proba(X), classes=[0, 1]),
            r"\bproba\b.*predict_proba.*proba\[:, None, :\]",
        ),
        (
            lambda X, y, nb: Scores.from_arrays(proba=[[[0.5, 0.1]]]),
            r"Scores\.from_arrays.*\bproba\b.*\b1\b",
        ),
        (lambda X, y, nb: Scores.of([nb], X, features=["age"]), r"\bfeatures\b.*'age'"),
        (
            lambda X, y, nb: Scores.of([nb], X, like=Scores.of([nb], X), features=[[0]]),
            r"\bfeatures\b.*\blike=",
        ),
        (
            lambda X, y, nb: Scores.from_arrays(
                scores=[[0.1]], like=Scores.from_arrays(scores=np.zeros((1, 1, 3)))
            ),
            r"\b2\b.*0, 1, 2.*\bclasses=",
        ),
        (
            lambda X, y, nb: Scores.from_arrays(
                scores=[[0.1, 0.2]], like=Scores.from_arrays(scores=[[0.1]])
            ),
            r"\b2\b.*\bmembers\b.*\['member1'\]",
        ),
        (
            lambda X, y, nb: Scores.from_arrays(
                decision=[[5.0]], like=Scores.from_arrays(proba=[[0.2]])
            ),
            r"\bdecision\b.*\blike=",
        ),
        (
            lambda X, y, nb: Scores.from_arrays(
                scores=[[0.5]], like=Scores.from_arrays(scores=[[0.2]]), members=["a"]
            ),
            r"\bmembers\b.*\blike=",
        ),
        (
            lambda X, y, nb: Scores.from_arrays(labels=[[0, -1]], classes=[-1, 0], reject_label=-1),
            r"\breject_label\b.* -1\b",
        ),
        (
            lambda X, y, nb: Scores.from_arrays(scores=np.zeros((1, 1, 1, 1))),
            r"\(n, K\).*\(1, 1, 1, 1\)",
        ),
        (lambda X, y, nb: Scores.of([X], X), r"Scores\.of\b.*'ndarray'"),
        (
            lambda X, y, nb: Scores.of([("svc", _pairwise())], X),
            r"'svc'.*decision_function_shape='ovr'",
        ),
    ],
)
def test_bad_input_names_what_is_wrong(call, named):
    with pytest.raises(ValueError, match=named):
        call(*_members())


def test_a_member_that_is_not_fitted():
    X, _ = blobs()
    with pytest.raises(NotFittedError, match=r"'nb'.*GaussianNB.*classes_"):
        Scores.of([("nb", GaussianNB())], X)


def test_wrong_column_count_is_the_members_own_error():
    X, _, nb = _members()
    with pytest.raises(ValueError, match=r"2 features.*GaussianNB.*3 features"):
        Scores.of([nb], X[:, :2])
