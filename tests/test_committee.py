"""Training a committee: out-of-fold predictions, and the progress that is reported."""

import os
from threading import Event, Thread, Timer
from time import sleep

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_info, threadpool_limits

from margrave.committee import fit_members, train_members, wait_for_closed_trainings
from margrave.scores import Scores
from margrave.steer._default_committee import default_committee
from margrave.steer._split import tuning_folds

RANDOM = np.random.default_rng(1)
MEMBERS = [("logistic", LogisticRegression()), ("bayes", GaussianNB()), ("svc", SVC())]


def samples(k, n=120):
    y = RANDOM.integers(0, k, n)
    return RANDOM.normal(size=(n, 3)) + np.eye(3)[y] * 1.5, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("k", [2, 3])
def test_answers_come_from_members_trained_without_the_sample(k):
    X, y = samples(k)
    folds = tuning_folds(y)
    trained, scores = fit_members(MEMBERS, X, y, folds)
    assert len(scores) == len(folds)
    for (training, held), out_of_fold in zip(folds, scores, strict=True):
        others = [(name, clone(one).fit(X[training], y[training])) for name, one in MEMBERS]
        expected = Scores.of(others, X[held], classes=np.unique(y), ask="values")
        np.testing.assert_allclose(out_of_fold.raw(), expected.raw())
        assert out_of_fold.members == expected.members
    for (_, member), own in zip(MEMBERS, trained, strict=True):
        np.testing.assert_array_equal(own.predict(X), clone(member).fit(X, y).predict(X))
        assert not hasattr(member, "classes_"), "clones are trained, not what the user gave"


def test_a_member_that_learns_by_heart_has_honest_scores():
    y = RANDOM.integers(0, 2, 400)
    X = np.arange(400.0)[:, None]
    X = RANDOM.permutation(X)
    folds = tuning_folds(y)
    (parrot,), scores = fit_members([("parrot", KNeighborsClassifier(1))], X, y, folds)
    assert (parrot.predict(X) == y).all()
    right = [(one.raw()[:, 0] > 0) == y[held] for (_, held), one in zip(folds, scores, strict=True)]
    assert abs(np.concatenate(right).mean() - 0.5) < 0.1


def test_several_models_at_a_time_give_the_same_as_one_after_the_other():
    X, y = samples(3)
    members = default_committee(len(y) // 2, ["logistic-quantile", "extra-trees"], random_state=0)
    made = []
    for n_jobs in (None, 2):
        fitted, scores = fit_members(members, X, y, tuning_folds(y), n_jobs=n_jobs)
        made.append([one.raw() for one in scores] + [one.predict_proba(X) for one in fitted])
    for alone, together in zip(*made, strict=True):
        np.testing.assert_allclose(alone, together, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_progress_counts_every_model_and_names_each_member_once(n_jobs):
    X, y = samples(3)
    names = [name for name, _ in MEMBERS]
    reported, trained = [], []
    for progress, member in train_members(MEMBERS, X, y, tuning_folds(y), n_jobs=n_jobs):
        reported.append(progress)
        trained += [] if member is None else [names[member.position]]
        assert sorted(progress.finished) == sorted(trained)
        states = (*progress.finished, *progress.running, *progress.waiting)
        assert sorted(states) == sorted(names)
    assert [one.done for one in reported] == list(range(19))
    assert {one.total for one in reported} == {3 * (5 + 1)}
    assert sorted(one.member for one in reported[1:]) == sorted(names * 6)
    assert reported[-1].finished == tuple(names)


def test_members_are_trained_one_after_the_other():
    X, y = samples(2)
    news = train_members(MEMBERS, X, y, tuning_folds(y))
    start, *reported = [one for one, _ in news]
    assert start.running == (MEMBERS[0][0],)
    assert [one.member for one in reported] == [name for name, _ in MEMBERS for _ in range(6)]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_training_that_is_closed_fits_no_more_models(n_jobs):
    X, y = samples(2)
    fitted = []

    class Counted(GaussianNB):
        def fit(self, X, y):
            sleep(0.01)
            fitted.append(1)
            return super().fit(X, y)

    members = [(f"m{j}", Counted()) for j in range(40)]
    news = train_members(members, X, y, n_jobs=n_jobs)
    next(news)
    next(news)
    news.close()
    wait_for_closed_trainings()
    finished = len(fitted)
    assert finished < 10
    sleep(0.05)
    assert len(fitted) == finished


def test_a_closed_training_returns_at_once_and_its_models_can_be_waited_for():
    X, y = samples(2)
    go_on, ended = Event(), []

    class Waits(GaussianNB):
        def fit(self, X, y):
            go_on.wait(10)
            ended.append(1)
            return super().fit(X, y)

    news = train_members([("quick", GaussianNB()), ("slow", Waits())], X, y, n_jobs=2)
    next(news)
    next(news)
    news.close()
    assert not ended
    Timer(0.05, go_on.set).start()
    wait_for_closed_trainings()
    assert ended


@pytest.mark.parametrize("first_ends", [0, 1])
def test_trainings_that_overlap_restore_the_threads_of_the_process(first_ends):
    X, y = samples(2)
    with threadpool_limits(2):
        before = threadpool_info()
        trainings = [train_members(MEMBERS, X, y) for _ in range(2)]
        for training in trainings:
            next(training)
        trainings.pop(first_ends).close()
        trainings.pop().close()
        wait_for_closed_trainings()
        assert threadpool_info() == before


def test_other_threads_may_limit_blas_after_a_training_in_a_thread_that_lives_on():
    X, y = samples(2)
    begun, close, closed, end = (Event() for _ in range(4))

    def blas_threads():
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    def train():
        training = train_members(MEMBERS, X, y)
        next(training)
        begun.set()
        close.wait()
        training.close()
        closed.set()
        end.wait()

    before = blas_threads()
    thread = Thread(target=train, daemon=True)
    thread.start()
    begun.wait()
    other = train_members(MEMBERS, X, y)
    next(other)
    close.set()
    closed.wait()
    other.close()
    wait_for_closed_trainings()
    assert blas_threads() == before
    for n in (1, 2):
        with threadpool_limits(n, "blas"):
            assert blas_threads() == {n}
    end.set()
    thread.join()


def test_without_refit_only_folds_are_trained():
    X, y = samples(2)
    fold = tuning_folds(y)[0]
    trained, (scores,) = fit_members(MEMBERS[:1], X, y, [fold], refit=False)
    assert trained == [None]
    assert len(scores) == len(fold[1])


def test_columns_and_parameters_by_sample_are_split():
    X, y = samples(2)
    fold, weight = tuning_folds(y)[0], RANDOM.uniform(size=len(y))
    _, (scores,) = fit_members(
        MEMBERS[:1],
        X,
        y,
        [fold],
        columns={"logistic": [0, 2]},
        params={"logistic": {"sample_weight": weight}},
    )
    training, held = fold
    other = LogisticRegression().fit(X[training][:, [0, 2]], y[training], weight[training])
    np.testing.assert_allclose(
        scores.proba()[:, 0, 1], other.predict_proba(X[held][:, [0, 2]])[:, 1]
    )


def test_a_member_that_fails_says_why():
    class Broken(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            raise RuntimeError("no such luck")

        def predict(self, X):
            return X

    X, y = samples(2)
    with pytest.raises(RuntimeError, match="no such luck"):
        fit_members([("broken", Broken())], X, y, tuning_folds(y))


def test_the_default_committee_has_six_different_members_five_for_many_samples():
    members = default_committee(500, random_state=0)
    names = [name for name, _ in members]
    assert len(set(names)) == len(names) == 6
    assert all(is_classifier(member) for _, member in members)
    assert len({type(member) for _, member in members}) == 6
    many = default_committee(10_001, random_state=0)
    assert [name for name, _ in many] == [name for name in names if name != "svm"]
    assert len(default_committee(10_000, random_state=0)) == 6


@pytest.mark.parametrize("n", [16, 40])
def test_the_default_committee_trains_on_few_samples_without_a_warning(n):
    y = np.arange(n) % 2
    X = RANDOM.normal(size=(n, 3)) + y[:, None]
    for _, member in default_committee(n, random_state=0):
        assert member.fit(X, y).predict(X).shape == (n,)


class CountsThreads(LogisticRegression):
    """A classifier that records its process, and how many threads it may use."""

    def fit(self, X, y):
        self.process_ = os.getpid()
        self.n_threads_ = max(pool["num_threads"] for pool in threadpool_info())
        return super().fit(X, y)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_small_models_are_fitted_with_one_thread_each_in_this_process(n_jobs):
    X, y = make_classification(100, random_state=0)
    members = [("a", CountsThreads()), ("b", CountsThreads())]
    with threadpool_limits(2):
        fitted, _ = fit_members(members, X, y, n_jobs=n_jobs)
    assert [member.n_threads_ for member in fitted] == [1, 1]
    assert {member.process_ for member in fitted} == {os.getpid()}


def test_models_are_fitted_in_processes_if_joblib_is_configured_so():
    X, y = make_classification(100, random_state=0)
    members = [("a", CountsThreads()), ("b", CountsThreads())]
    with parallel_config("loky", inner_max_num_threads=2):
        fitted, _ = fit_members(members, X, y, n_jobs=2)
    assert [member.n_threads_ for member in fitted] == [1, 1]
    assert os.getpid() not in {member.process_ for member in fitted}


def test_threads_of_the_process_are_as_before_when_jobs_overlap():
    X, y = make_classification(100, random_state=0)
    members = [(name, CountsThreads()) for name in "abcdef"]
    with threadpool_limits(2), parallel_config("threading"):
        before = threadpool_info()
        fit_members(members, X, y, n_jobs=2)
        assert threadpool_info() == before
