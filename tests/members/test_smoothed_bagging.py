"""Smoothed bagging: the noise by itself, its limits, and the conventions of scikit-learn."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
import skops.io
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.ensemble import BaggingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import Perceptron
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from margrave.members import SmoothedBaggingClassifier
from margrave.members._smoothed_bagging import add_noise


@pytest.fixture
def blobs():
    return make_blobs(90, centers=3, cluster_std=1.0, random_state=0)


class Recorder(GaussianNB):
    """Keeps the rows it was trained on."""

    def fit(self, X, y, sample_weight=None):
        assert sample_weight is None
        self.rows_, self.labels_ = X.copy(), y.copy()
        return super().fit(X, y)


def test_noise_is_proportional_to_the_deviation_of_each_feature():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((20_000, 2)) * [1.0, 1000.0]
    moved = add_noise(X, 0.25, rng) - X
    np.testing.assert_allclose(moved.std(axis=0) / X.std(axis=0), 0.25, rtol=0.03)
    assert abs(np.corrcoef(moved.T)[0, 1]) < 0.03
    assert abs(np.corrcoef(moved[:, 0], X[:, 0])[0, 1]) < 0.03


def test_constant_and_missing_values_stay():
    # 0.1 three times has a standard deviation of 1e-17 in floating point, not 0.
    X = np.array([[0.1, 1, np.nan, np.nan], [0.1, 2, 3, np.nan], [0.1, 5, 7, np.nan]])
    before = X.copy()
    smoothed = add_noise(X, 0.5, np.random.RandomState(0))
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(smoothed[:, 0], X[:, 0])
    np.testing.assert_array_equal(np.isnan(smoothed), np.isnan(X))
    assert np.all(smoothed[:, 1] != X[:, 1])
    assert np.all(smoothed[1:, 2] != X[1:, 2])


def test_dtype_is_kept():
    X = np.eye(3, dtype=np.float32)
    assert add_noise(X, 0.1, np.random.RandomState(0)).dtype == np.float32


def test_every_copy_of_a_row_gets_its_own_noise(blobs):
    X, y = blobs
    model = SmoothedBaggingClassifier(Recorder(), n_estimators=4, random_state=0).fit(X, y)
    for member in model.estimators_:
        assert member.rows_.shape == X.shape
        assert len(np.unique(member.rows_[:, 0])) == len(X)


def test_members_differ_in_their_noise():
    # With one row a class and equal draws, only the noise can tell members apart.
    X, y = np.array([[0.0], [1.0]]), [0, 1]
    model = SmoothedBaggingClassifier(Recorder(), n_estimators=20, random_state=0).fit(X, y)
    both = [member.rows_ for member in model.estimators_ if len(set(member.labels_)) == 2]
    assert len(both) > 1
    assert len({rows.tobytes() for rows in both}) == len(both)


@pytest.mark.parametrize("weighted", [False, True])
def test_without_noise_it_is_bagging(blobs, weighted):
    X, y = blobs
    weights = np.arange(len(y)) + 1.0 if weighted else None
    settings = {"estimator": KNeighborsClassifier(3), "n_estimators": 7, "random_state": 0}
    ours = SmoothedBaggingClassifier(noise=0, **settings).fit(X, y, weights)
    # None: as many rows as there are, whatever the weights.
    theirs = BaggingClassifier(max_samples=None, **settings).fit(X, y, weights)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-9)


def test_noise_matters_if_members_depend_on_single_rows(blobs):
    X, y = blobs
    fitted = [
        SmoothedBaggingClassifier(KNeighborsClassifier(1), noise=noise, random_state=0).fit(X, y)
        for noise in (0, 1.0)
    ]
    assert np.any(fitted[0].predict_proba(X) != fitted[1].predict_proba(X))


def test_average_of_members(blobs):
    X, y = blobs
    model = SmoothedBaggingClassifier(n_estimators=5, random_state=0).fit(X, y)
    mean = np.mean([member.predict_proba(X) for member in model.estimators_], axis=0)
    np.testing.assert_allclose(model.predict_proba(X), mean)
    np.testing.assert_array_equal(model.predict(X), model.classes_[mean.argmax(axis=1)])


def test_members_without_probabilities_vote(blobs):
    X, y = blobs
    model = SmoothedBaggingClassifier(Perceptron(), n_estimators=4, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X) * 4 % 1, 0)


def test_weights_are_probabilities_and_their_scale_does_not_matter(blobs):
    X, y = blobs
    kept = y != 2
    model = SmoothedBaggingClassifier(Recorder(), n_estimators=5, random_state=0)
    members = model.fit(X, y, sample_weight=kept).estimators_
    assert all(set(member.labels_) <= {0, 1} for member in members)
    proba = model.predict_proba(X)
    small = clone(model).fit(X, y, sample_weight=kept / kept.sum())
    np.testing.assert_allclose(proba, small.predict_proba(X), rtol=1e-9)
    assert model.classes_.tolist() == [0, 1, 2]
    assert np.all(proba[:, 2] == 0)


@pytest.mark.parametrize(("max_samples", "drawn"), [(0.5, 45), (7, 7), (1e-9, 1), (200, 200)])
def test_max_samples(blobs, max_samples, drawn):
    X, y = blobs
    model = SmoothedBaggingClassifier(
        Recorder(), n_estimators=1, max_samples=max_samples, random_state=0
    )
    assert len(model.fit(X, y).estimators_[0].rows_) == drawn


def test_caller_data_are_not_changed(blobs):
    X, y = blobs
    before = X.copy()
    SmoothedBaggingClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(X, before)


def test_missing_values_if_the_member_allows_them(blobs):
    X, y = blobs
    X[::5, 0] = np.nan
    for base in (None, HistGradientBoostingClassifier(max_iter=3)):
        model = SmoothedBaggingClassifier(base, n_estimators=2, random_state=0).fit(X, y)
        assert model.score(X, y) > 0.5
    with pytest.raises(ValueError, match=r"\bX\b.*NaN"):
        SmoothedBaggingClassifier(KNeighborsClassifier()).fit(X, y)


def test_names_labels_and_jobs(blobs):
    X, y = blobs
    frame = pd.DataFrame(X, columns=["length", "width"])
    labels = np.array(["ham", "spam", "eggs"])[y]
    model = SmoothedBaggingClassifier(random_state=0).fit(frame, labels)
    assert model.feature_names_in_.tolist() == ["length", "width"]
    assert model.n_features_in_ == 2
    assert model.classes_.tolist() == ["eggs", "ham", "spam"]
    assert set(model.predict(frame)) <= set(labels)
    parallel = clone(model).set_params(n_jobs=2).fit(frame, labels)
    expected = model.predict_proba(frame)
    np.testing.assert_allclose(parallel.predict_proba(frame), expected, rtol=1e-9)


def test_grid_search_pipeline_and_routing(blobs):
    X, y = blobs
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SmoothedBaggingClassifier(n_estimators=3, random_state=0)),
        {"smoothedbaggingclassifier__noise": [0.0, 0.2]},
        cv=2,
    ).fit(X, y)
    assert search.best_score_ > 0.5
    with sklearn.config_context(enable_metadata_routing=True):
        model = SmoothedBaggingClassifier(random_state=0)
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        weights = (y != 2).astype(float)
        scores = cross_validate(
            model, X, y, params={"sample_weight": weights}, return_estimator=True, cv=2
        )
    assert all(np.all(fold.predict(X) != 2) for fold in scores["estimator"])


def test_saved_and_loaded(blobs, tmp_path):
    X, y = blobs
    model = SmoothedBaggingClassifier(n_estimators=3, random_state=0).fit(X, y)
    expected = model.predict_proba(X)
    loaded = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(loaded.predict_proba(X), expected)
    skops.io.dump(model, tmp_path / "model.skops")
    untrusted = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    assert all(name.startswith(("margrave.members.", "sklearn.tree.")) for name in untrusted)
    loaded = skops.io.load(tmp_path / "model.skops", trusted=untrusted)
    np.testing.assert_array_equal(loaded.predict_proba(X), expected)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("noise", -0.1),
        ("noise", np.nan),
        ("noise", np.inf),
        ("noise", "a"),
        ("n_estimators", 0),
        ("n_estimators", 2.5),
        ("max_samples", 0),
        ("max_samples", 1.5),
        ("estimator", SVR()),
        ("estimator", "tree"),
        ("estimator", GaussianNB),
    ],
)
def test_bad_parameters_are_refused_by_name(blobs, name, value):
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        SmoothedBaggingClassifier(**{name: value}).fit(*blobs)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
def test_bad_weights(blobs, value):
    X, y = blobs
    with pytest.raises(ValueError, match=rf"\bsample_weight\b.*{value}"):
        SmoothedBaggingClassifier().fit(X, y, sample_weight=np.full(len(y), value))


def test_huge_weights_do_not_overflow(blobs):
    X, y = blobs
    huge, small = (
        SmoothedBaggingClassifier(n_estimators=3, random_state=0)
        .fit(X, y, sample_weight=np.full(len(y), size))
        .predict_proba(X)
        for size in (1e308, 1.0)
    )
    np.testing.assert_allclose(huge, small, rtol=1e-9)
