"""The wrapper that encodes labels, by itself and around the boosters that need it."""

import pickle

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV

from margrave import catalogue
from margrave.fuse import VoteClassifier
from margrave.members import EncodedLabelsClassifier

LABELS = np.array(["ham", "spam", "eggs"])


@pytest.fixture
def blobs():
    return make_blobs(90, centers=3, random_state=0)


@pytest.fixture(params=["xgboost", "catboost"])
def booster(request):
    if request.param == "xgboost":
        return pytest.importorskip("xgboost").XGBClassifier(n_estimators=5, random_state=0)
    return pytest.importorskip("catboost").CatBoostClassifier(
        n_estimators=5, verbose=0, allow_writing_files=False, random_state=0
    )


def test_predictions_are_those_of_the_wrapped_classifier(blobs):
    X, y = blobs
    plain = LogisticRegression().fit(X, LABELS[y])
    model = EncodedLabelsClassifier(LogisticRegression()).fit(X, LABELS[y])
    np.testing.assert_array_equal(model.classes_, plain.classes_)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X))
    assert not hasattr(EncodedLabelsClassifier(Perceptron()), "predict_proba")


def test_boosters_accept_text_labels(blobs, booster):
    X, y = blobs
    model = EncodedLabelsClassifier(booster).fit(X, LABELS[y])
    assert model.predict(X).shape == y.shape
    assert model.score(X, LABELS[y]) > 0.8
    assert model.predict_proba(X).shape == (len(y), 3)


def test_boosters_clone_pickle_and_search(blobs, booster):
    X, y = blobs
    model = clone(EncodedLabelsClassifier(booster)).set_params(estimator__n_estimators=3)
    assert model.get_params()["estimator__n_estimators"] == 3
    model.fit(X, LABELS[y])
    loaded = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    search = GridSearchCV(model, {"estimator__max_depth": [1, 2]}, cv=2).fit(X, LABELS[y])
    assert set(search.predict(X)) <= set(LABELS)


def test_boosters_use_weights(blobs, booster):
    X, y = blobs
    # A class without weight is never predicted.
    weights = np.where(y == 2, 0.0, 1.0)
    model = EncodedLabelsClassifier(booster).fit(X, LABELS[y], sample_weight=weights)
    assert "eggs" not in model.predict(X)
    assert "eggs" in EncodedLabelsClassifier(booster).fit(X, LABELS[y]).predict(X)


def test_column_names_pass_through(blobs, booster):
    X, y = blobs
    frame = pd.DataFrame(X, columns=["length", "width"])
    model = EncodedLabelsClassifier(booster).fit(frame, LABELS[y])
    assert model.n_features_in_ == 2
    assert model.feature_names_in_.tolist() == ["length", "width"]
    mixed = frame.set_axis(["length", 1], axis=1)
    assert not hasattr(clone(model).fit(mixed, LABELS[y]), "feature_names_in_")


def test_skops(blobs, tmp_path):
    X, y = blobs
    model = EncodedLabelsClassifier(LogisticRegression()).fit(X, LABELS[y])
    skops.io.dump(model, tmp_path / "model.skops")
    untrusted = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    assert untrusted == ["margrave.members._encoded_labels.EncodedLabelsClassifier"]
    loaded = skops.io.load(tmp_path / "model.skops", trusted=untrusted)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.fixture
def noisy():
    """Training set and validation set, with labels that boosting overfits."""
    X, y = make_classification(
        300, 6, n_informative=3, n_classes=3, n_clusters_per_class=1, flip_y=0.2, random_state=0
    )
    return X[:150], y[:150], X[150:], y[150:]


STOPPING = {"n_estimators": 200, "early_stopping_rounds": 5}


def test_early_stopping_is_that_of_the_wrapped_classifier(noisy):
    xgboost = pytest.importorskip("xgboost")
    X, y, X_val, y_val = noisy
    model = catalogue.make("xgboost", random_state=0, **STOPPING)
    model.fit(X, LABELS[y], eval_set=[(X_val, LABELS[y_val])], verbose=False)
    codes = np.array([1, 2, 0])  # the positions of the labels in their order
    plain = xgboost.XGBClassifier(random_state=0, **STOPPING)
    plain.fit(X, codes[y], eval_set=[(X_val, codes[y_val])], verbose=False)
    assert model.estimator_.best_iteration == plain.best_iteration < 190
    np.testing.assert_array_equal(model.predict_proba(X_val), plain.predict_proba(X_val))


def test_early_stopping_of_catboost(noisy):
    pytest.importorskip("catboost")
    X, y, X_val, y_val = noisy
    model = catalogue.make("catboost", random_state=0, learning_rate=0.5, **STOPPING)
    model.fit(X, LABELS[y], eval_set=[(X_val, LABELS[y_val])])
    assert model.estimator_.tree_count_ < 190


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_early_stopping_of_lightgbm_needs_no_wrapper(noisy):
    lightgbm = pytest.importorskip("lightgbm")
    X, y, X_val, y_val = noisy
    stop = lightgbm.early_stopping(5, verbose=False)
    model = catalogue.make("lightgbm", n_estimators=200, random_state=0)
    model.fit(X, LABELS[y], eval_set=[(X_val, LABELS[y_val])], callbacks=[stop])
    assert model.best_iteration_ < 190
    assert set(model.predict(X_val)) <= set(LABELS)


class Recorder(LogisticRegression):
    """Keeps the parameters of its fit."""

    def fit(self, X, y, sample_weight=None, **params):
        self.received_ = params
        return super().fit(X, y, sample_weight)


def test_fit_parameters_pass_through(blobs):
    X, y = blobs
    model = EncodedLabelsClassifier(Recorder())
    model.fit(X, LABELS[y], eval_set=[(X, LABELS[y]), (X[:2], ["spam", "eggs"])], verbose=False)
    received = model.estimator_.received_
    assert received["verbose"] is False
    assert [codes.tolist() for _, codes in received["eval_set"]][1] == [2, 0]
    assert model.fit(X, LABELS[y]).estimator_.received_ == {}


def test_committees_pass_the_validation_set(blobs):
    X, y = blobs
    held_out = [(X[:3], LABELS[[0, 1, 2]])]
    vote = VoteClassifier([EncodedLabelsClassifier(Recorder())]).fit(
        X, LABELS[y], eval_set=held_out
    )
    assert vote.estimators_[0].estimator_.received_["eval_set"][0][1].tolist() == [1, 2, 0]
    with config_context(enable_metadata_routing=True):
        members = [
            ("requests", EncodedLabelsClassifier(Recorder()).set_fit_request(eval_set=True)),
            ("does not", EncodedLabelsClassifier(Recorder()).set_fit_request(eval_set=False)),
        ]
        vote = VoteClassifier(members).fit(X, LABELS[y], eval_set=held_out)
    requests, does_not = (member.estimator_.received_ for member in vote.estimators_)
    assert requests["eval_set"][0][1].tolist() == [1, 2, 0]
    assert does_not == {}


@pytest.mark.parametrize(
    "labels", [["ham", "tofu"], ["ham", None], [0, 1]], ids=["unknown", "missing", "numbers"]
)
def test_validation_labels_that_are_not_in_y(blobs, labels):
    X, y = blobs
    with pytest.raises(ValueError, match=r"\beval_set\b"):
        EncodedLabelsClassifier(Recorder()).fit(X, LABELS[y], eval_set=[(X[:2], labels)])


@pytest.mark.parametrize("malformed", ["a pair without its list", "three parts", "text", "rows"])
def test_malformed_validation_sets(blobs, malformed):
    X, y = blobs
    eval_set = {
        "a pair without its list": (X, LABELS[y]),
        "three parts": [(X, LABELS[y], y)],
        "text": "validation",
        "rows": [X],
    }[malformed]
    with pytest.raises(ValueError, match=r"\beval_set\b"):
        EncodedLabelsClassifier(Recorder()).fit(X, LABELS[y], eval_set=eval_set)


@pytest.mark.parametrize("columns", [[0], (0,), ["color"], ("color",)], ids=str)
def test_catboost_with_categorical_features(columns):
    pytest.importorskip("catboost")
    color = np.random.default_rng(0).choice(["red", "green", "blue"], 120)
    frame = pd.DataFrame({"color": color, "size": np.arange(120.0)})
    labels = np.where(color == "red", "stop", "go")
    model = catalogue.make("catboost", n_estimators=20, cat_features=columns, random_state=0)
    model = clone(clone(model)).fit(frame, labels)
    assert model.score(frame, labels) == 1
    assert clone(model).get_params()["estimator__cat_features"] == columns
    loaded = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    search = GridSearchCV(model, {"estimator__max_depth": [1, 2]}, cv=2).fit(frame, labels)
    assert search.score(frame, labels) == 1
    by_columns = {"estimator__cat_features": [columns]}
    assert GridSearchCV(model, by_columns, cv=2).fit(frame, labels).score(frame, labels) == 1


def test_trained_catboost_finds_its_columns_in_a_larger_frame():
    pytest.importorskip("catboost")
    color = np.random.default_rng(0).choice(["red", "green", "blue"], 120)
    frame = pd.DataFrame({"color": color, "size": np.arange(120.0)})
    labels = np.where(color == "red", "stop", "go")
    member = catalogue.make("catboost", n_estimators=20, cat_features=["color"], random_state=0)
    member.fit(frame, labels)
    assert member.feature_names_in_.tolist() == ["color", "size"]
    larger = pd.DataFrame({"other": np.ones(120), "size": frame["size"], "color": color})
    vote = VoteClassifier([member], prefit=True).fit(larger, labels)
    np.testing.assert_array_equal(vote.predict(larger), member.predict(frame))


def test_a_frozen_classifier_stays_fitted(blobs):
    X, y = blobs
    frozen = FrozenEstimator(LogisticRegression().fit(X, y))
    model = clone(EncodedLabelsClassifier(frozen)).fit(X, LABELS[y])
    np.testing.assert_array_equal(model.predict(X), model.classes_[frozen.predict(X)])


def test_a_committee_passes_validation_sets_and_silence_on(blobs, capfd):
    pytest.importorskip("xgboost")
    X, y = blobs
    member = catalogue.make("xgboost", n_estimators=5, early_stopping_rounds=2)
    sets = [(X, LABELS[y])]
    VoteClassifier([member]).fit(X, LABELS[y], eval_set=sets, verbose=False)
    with config_context(enable_metadata_routing=True):
        member = clone(member).set_fit_request(eval_set=True, verbose=True)
        VoteClassifier([member]).fit(X, LABELS[y], eval_set=sets, verbose=False)
    assert capfd.readouterr() == ("", "")


def test_clones_are_not_fitted_and_keep_their_requests(blobs):
    X, y = blobs
    with config_context(enable_metadata_routing=True):
        model = EncodedLabelsClassifier(LogisticRegression(C=3.0)).set_fit_request(eval_set=True)
        copy = clone(model.fit(X, LABELS[y]))
        assert copy.get_metadata_routing().fit.requests["eval_set"] is True
    assert not hasattr(copy, "classes_")
    assert copy.estimator is not model.estimator
    assert copy.estimator.C == 3.0
