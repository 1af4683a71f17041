"""Training a committee: out-of-fold answers, and what is told on the way."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from margrave.scores import Scores
from margrave.steer import Progress
from margrave.steer._members import cross_fitted, default_members
from margrave.steer._parts import folds_of

RANDOM = np.random.default_rng(1)
MEMBERS = [("line", LogisticRegression()), ("bayes", GaussianNB()), ("svc", SVC())]


def samples(k, n=120):
    y = RANDOM.integers(0, k, n)
    return RANDOM.normal(size=(n, 3)) + np.eye(3)[y] * 1.5, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("k", [2, 3])
def test_answers_come_from_members_trained_without_the_sample(k):
    X, y = samples(k)
    folds = folds_of(y)
    trained, raw = cross_fitted(MEMBERS, X, y, folds)
    assert raw.shape == ((len(y), 3) if k == 2 else (len(y), 3, k))
    for training, held in folds:
        for j, (name, member) in enumerate(MEMBERS):
            other = clone(member).fit(X[training], y[training])
            told = Scores.of([(name, other)], X[held], classes=np.unique(y), ask="values").raw()
            np.testing.assert_allclose(raw[held, j], told[:, 0])
    for (_, member), own in zip(MEMBERS, trained, strict=True):
        np.testing.assert_array_equal(own.predict(X), clone(member).fit(X, y).predict(X))
        assert not hasattr(member, "classes_"), "clones are trained, not what the user gave"


def test_a_member_that_learns_by_heart_has_honest_scores():
    y = RANDOM.integers(0, 2, 400)
    X = np.arange(400.0)[:, None]
    X = RANDOM.permutation(X)
    (parrot,), raw = cross_fitted([("parrot", KNeighborsClassifier(1))], X, y, folds_of(y))
    assert (parrot.predict(X) == y).all()
    assert abs(((raw[:, 0] > 0) == y).mean() - 0.5) < 0.1


def test_progress_counts_every_model_and_several_at_a_time_give_the_same():
    X, y = samples(3)
    made = []
    for n_jobs in (None, 2):
        told = []
        with parallel_config(backend="threading"):
            _, raw = cross_fitted(MEMBERS[:2], X, y, folds_of(y), n_jobs, told.append)
        made.append(raw)
        assert [one.done for one in told] == list(range(1, 13))
        assert {one.total for one in told} == {2 * (5 + 1)}
        assert sorted(one.member for one in told) == ["bayes"] * 6 + ["line"] * 6
        assert told[0] == Progress(1, 12, told[0].member)
    np.testing.assert_allclose(*made, rtol=1e-9, atol=1e-9)


def test_samples_that_no_fold_holds_out_have_no_answer():
    X, y = samples(2)
    fold = folds_of(y)[0]
    _, raw = cross_fitted(MEMBERS[:1], X, y, [fold])
    assert (raw[fold[0]] == 0).all()
    assert (raw[fold[1]] != 0).all()


def test_a_member_that_fails_says_why():
    class Broken(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            raise RuntimeError("no such luck")

        def predict(self, X):
            return X

    X, y = samples(2)
    with pytest.raises(RuntimeError, match="no such luck"):
        cross_fitted([("broken", Broken())], X, y, folds_of(y))


def test_the_default_committee_has_six_different_members_five_for_many_samples():
    members = default_members(500, 0)
    names = [name for name, _ in members]
    assert len(set(names)) == len(names) == 6
    assert all(is_classifier(member) for _, member in members)
    assert len({type(member) for _, member in members}) == 6
    many = default_members(10_001, 0)
    assert [name for name, _ in many] == [name for name in names if name != "kernel"]
    assert len(default_members(10_000, 0)) == 6


@pytest.mark.parametrize("n", [16, 40])
def test_the_default_committee_trains_on_few_samples_without_a_warning(n):
    y = np.arange(n) % 2
    X = RANDOM.normal(size=(n, 3)) + y[:, None]
    for _, member in default_members(n, 0):
        assert member.fit(X, y).predict(X).shape == (n,)
