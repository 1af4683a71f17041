"""The wrapper that encodes labels, by itself and around the boosters that need it."""

import pickle

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV

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
    assert list(getattr(model, "feature_names_in_", frame.columns)) == ["length", "width"]


def test_skops(blobs, tmp_path):
    X, y = blobs
    model = EncodedLabelsClassifier(LogisticRegression()).fit(X, LABELS[y])
    skops.io.dump(model, tmp_path / "model.skops")
    untrusted = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    assert untrusted == ["margrave.members._encoded_labels.EncodedLabelsClassifier"]
    loaded = skops.io.load(tmp_path / "model.skops", trusted=untrusted)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
