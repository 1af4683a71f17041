"""Kernels that are functions of two arrays of rows."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from margrave.mam import MAMClassifier, MAMOrdinalClassifier, MAMRanker

each_estimator = pytest.mark.parametrize(
    "estimator", [MAMClassifier, MAMRanker, MAMOrdinalClassifier]
)
X = np.random.default_rng(0).normal(size=(20, 3))
LABELS = np.arange(20) % 2


def cosines(A, B):
    norms = np.linalg.norm(A, axis=1)[:, None] * np.linalg.norm(B, axis=1)
    return A @ B.T / norms


def scores(model, rows):
    name = "decision_function" if hasattr(model, "decision_function") else "predict"
    return getattr(model, name)(rows)


@each_estimator
def test_predictions_are_those_of_the_kernel_matrix(estimator):
    model = estimator(cosines).fit(X, LABELS)
    by_matrix = estimator("precomputed").fit(cosines(X, X), LABELS)
    expected = scores(by_matrix, cosines(X[:5] + 1, X))
    np.testing.assert_allclose(scores(model, X[:5] + 1), expected, rtol=0, atol=1e-12)
    assert model.n_features_in_ == 3


@each_estimator
@pytest.mark.parametrize("kernel", [cosines, "rbf", "precomputed"])
@pytest.mark.parametrize(
    "rows",
    [
        ["tree", "reed", "ban", "cab"],
        np.array(["tree", "reed", "ban", "cab"], dtype=object),
        [list("tree"), list("reed"), list("bans"), list("cabs")],
        pd.DataFrame({"a": ["tree", "reed", "ban", "cab"], "b": 1.0}),
        [[1, 2], [1, 1, 2], [8, 9, 9, 9], [9, 8]],
        np.ones((4, 2, 2)),
    ],
    ids=["strings", "objects", "tokens", "table", "different lengths", "matrices"],
)
def test_samples_that_are_no_rows_of_numbers_are_refused(estimator, kernel, rows):
    with pytest.raises(ValueError, match=r"numeric|Expected 2D|convert|inhomogeneous|dim 3"):
        estimator(kernel).fit(rows, [0, 0, 1, 1])


@pytest.mark.parametrize("one_pair", [lambda a, b: 1.0, lambda a, b: a @ b])
def test_a_kernel_of_two_rows_is_refused(one_pair):
    with pytest.raises(ValueError, match=r"callable kernel|matmul") as error:
        MAMClassifier(one_pair).fit(X, LABELS)
    assert "two sets" in str(error.value) + "".join(getattr(error.value, "__notes__", []))


@each_estimator
def test_a_kernel_that_is_not_symmetric_is_refused(estimator):
    with pytest.raises(ValueError, match="symmetric"):
        estimator(lambda A, B: A @ (2 * B).T + A[:, :1]).fit(X, LABELS)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_rounding_and_small_integers_are_symmetric(dtype):
    rows = np.random.default_rng(0).integers(0, 4, (200, 3)).astype(np.float64)
    noise = np.random.default_rng(1).uniform(0, 1e-5, (200, 200))

    def products(A, B):
        values = A @ B.T
        if dtype == np.float32:
            values = values * (1 + noise[: len(A), : len(B)])
        return values.astype(dtype)

    MAMClassifier(products).fit(rows, np.arange(200) % 2)


def test_a_kernel_may_return_a_sparse_matrix():
    model = MAMClassifier(lambda A, B: csr_array(cosines(A, B))).fit(X, LABELS)
    dense = MAMClassifier(cosines).fit(X, LABELS)
    np.testing.assert_array_equal(model.decision_function(X), dense.decision_function(X))
