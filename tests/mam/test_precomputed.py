"""Precomputed kernels: the same predictions as the kernels themselves, and what `fit` refuses."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.utils import get_tags

from margrave.mam import MAMClassifier, MAMOrdinalClassifier, MAMRanker

KERNELS = {
    "rbf": {"gamma": 0.05},
    "laplacian": {"gamma": 0.1},
    "poly": {"gamma": 0.1, "degree": 2, "coef0": 1.0},
    "linear": {},
}
ESTIMATORS = [
    MAMClassifier(),
    MAMClassifier(threshold=None),
    MAMClassifier(class_weight="balanced", threshold="balanced"),
    MAMRanker(),
    MAMOrdinalClassifier(),
]
each_kernel = pytest.mark.parametrize("kernel", KERNELS)
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)


def build(estimator, kernel, **parameters):
    return type(estimator)(**estimator.get_params() | {"kernel": kernel, **parameters})


def values(kernel, Z, X):
    return pairwise_kernels(Z, X, metric=kernel, **KERNELS[kernel])


def scores(model, X):
    for name in ("decision_function", "rank", "predict"):
        if hasattr(model, name):
            return getattr(model, name)(X)
    raise AssertionError


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def samples(request):
    X, y = make_blobs(
        70, centers=request.param, n_features=3, cluster_std=4.0, random_state=request.param
    )
    return X[:50], y[:50], X[50:]


@pytest.fixture(scope="module", params=[False, True], ids=["equal", "weighted"])
def weights(request):
    """Half of the weights in the weighted case are 0."""
    if not request.param:
        return None
    rng = np.random.default_rng(0)
    return rng.uniform(0.5, 2, 50) * (rng.random(50) < 0.5)


@each_kernel
@each_estimator
def test_predictions_are_those_of_the_kernel(estimator, kernel, samples, weights):
    X, y, Z = samples
    by_kernel = build(estimator, kernel, **KERNELS[kernel]).fit(X, y, weights)
    model = build(estimator, "precomputed").fit(values(kernel, X, X), y, weights)
    found, expected = scores(model, values(kernel, Z, X)), scores(by_kernel, Z)
    unit = np.abs(expected).max()
    np.testing.assert_allclose(found / unit, expected / unit, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.predict(values(kernel, Z, X)), by_kernel.predict(Z), atol=1e-9)
    assert model.n_features_in_ == len(X)


@each_kernel
def test_leave_one_out_and_margins_are_those_of_the_kernel(kernel, samples, weights):
    X, y, _ = samples
    by_kernel = MAMClassifier(kernel, **KERNELS[kernel]).fit(X, y, weights)
    model = MAMClassifier("precomputed").fit(values(kernel, X, X), y, weights)
    unit = np.abs(by_kernel.loo_decision_).max()
    np.testing.assert_allclose(
        model.loo_decision_ / unit, by_kernel.loo_decision_ / unit, rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(model.loo_scores_, by_kernel.loo_scores_)
    assert model.average_margin_ == pytest.approx(by_kernel.average_margin_, rel=1e-12)
    ranker = MAMRanker("precomputed").fit(values(kernel, X, X), y, weights)
    assert ranker.lambda_ == pytest.approx(
        MAMRanker(kernel, **KERNELS[kernel]).fit(X, y, weights).lambda_, rel=1e-12
    )


def test_the_complexity_is_that_of_the_kernel(weights):
    X, y = make_blobs(50, centers=2, n_features=3, cluster_std=4.0, random_state=0)
    by_kernel = MAMClassifier(gamma=0.05).fit(X, y, weights)
    model = MAMClassifier("precomputed").fit(values("rbf", X, X), y, weights)
    assert model.rademacher_bound() == pytest.approx(by_kernel.rademacher_bound())
    with pytest.raises(ValueError, match="method"):
        model.rademacher_bound("monte-carlo")


def test_certainty_is_that_of_the_kernel():
    X, y = make_blobs(1000, centers=[[-9, 0], [9, 0]], random_state=0)
    by_kernel = MAMClassifier(gamma=0.05, threshold=None).fit(X, y)
    model = MAMClassifier("precomputed", threshold=None).fit(values("rbf", X, X), y)
    expected = by_kernel.certainty(X[:5])
    found = model.certainty(values("rbf", X[:5], X), bound=1.0)
    assert (expected.bound < 1).all()
    np.testing.assert_allclose(found.margins, expected.margins)
    np.testing.assert_allclose(found.bound, expected.bound)
    assert model.margin_bound(bound=1.0) == pytest.approx(by_kernel.margin_bound())
    assert model.certainty(values("rbf", X[:5], X)).vacuous.all()


@each_estimator
def test_the_matrix_is_not_kept(estimator):
    X, y = make_blobs(300, centers=2, random_state=0)
    K = values("rbf", X, X)
    model = build(estimator, "precomputed").fit(K, y)
    assert len(pickle.dumps(model)) < K.nbytes / 10


@each_estimator
def test_cross_validation_splits_rows_and_columns(estimator, samples):
    X, y, _ = samples
    by_kernel = cross_val_predict(build(estimator, "rbf", gamma=0.05), X, y, cv=3)
    model = build(estimator, "precomputed")
    assert get_tags(model).input_tags.pairwise
    assert not get_tags(build(estimator, "rbf")).input_tags.pairwise
    found = cross_val_predict(model, values("rbf", X, X), y, cv=3)
    np.testing.assert_allclose(found, by_kernel, atol=1e-12)


def test_grid_search_works(samples):
    X, y, Z = samples
    search = GridSearchCV(MAMClassifier("precomputed"), {"threshold": ["accuracy", None]}, cv=3)
    search.fit(values("rbf", X, X), y)
    assert search.predict(values("rbf", Z, X)).shape == (len(Z),)


def test_the_matrix_may_be_asymmetric_by_rounding_and_in_float32(samples):
    X, y, Z = samples
    single = values("rbf", X, X).astype(np.float32)
    single[0, 1] *= 1 + 3e-7
    model = MAMClassifier("precomputed").fit(single, y)
    expected = MAMClassifier("rbf", gamma=0.05).fit(X, y).decision_function(Z)
    np.testing.assert_allclose(model.decision_function(values("rbf", Z, X)), expected, atol=1e-4)


@each_estimator
def test_bad_matrices_are_refused(estimator, samples):
    X, y, Z = samples
    K = values("rbf", X, X)
    model = build(estimator, "precomputed")
    with pytest.raises(ValueError, match="X"):
        model.fit(K[:, :-1], y)
    crooked = K.copy()
    crooked[0, 1] += 0.1
    with pytest.raises(ValueError, match="symmetric X"):
        model.fit(crooked, y)
    missing = K.copy()
    missing[3, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(missing, y)
    model.fit(K, y)
    with pytest.raises(ValueError, match="49 features"):
        model.predict(values("rbf", Z, X[1:]))
    with pytest.raises(ValueError, match="2D"):
        model.predict(K[0])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((2, len(X)), np.nan))


def test_a_matrix_that_is_not_positive_definite_is_refused():
    with pytest.raises(ValueError, match="positive definite"):
        MAMClassifier("precomputed", threshold=None).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])


@pytest.mark.parametrize("estimator", [MAMClassifier, MAMRanker])
def test_there_are_no_random_features(estimator):
    with pytest.raises(ValueError, match="n_components"):
        estimator("precomputed", n_components=10).fit(np.eye(4), [0, 1, 0, 1])
