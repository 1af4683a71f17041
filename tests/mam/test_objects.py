"""Callable kernels of strings, lists of tokens and other objects."""

from collections import Counter
from datetime import date
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import cross_val_predict

from margrave.mam import MAMClassifier, MAMOrdinalClassifier, MAMRanker

ESTIMATORS = (MAMClassifier, MAMRanker, MAMOrdinalClassifier)
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)
WORDS = ["banana", "bandana", "ban", "cabana", "tree", "trees", "street", "reed", "anna", "eel"]
LABELS = np.array([0, 0, 0, 0, 1, 1, 1, 1, 0, 1])


def counts(sequence):
    return Counter(pairwise(sequence))


def shared_pairs(A, B):
    """Spectrum kernel: products of how often each pair of neighbours occurs."""
    return np.array(
        [
            [sum(n * counts(b)[pair] for pair, n in counts(a).items()) + (len(a) > 0) for b in B]
            for a in A
        ],
        dtype=float,
    )


def scores(model, X):
    name = "decision_function" if hasattr(model, "decision_function") else "predict"
    return getattr(model, name)(X)


FORMS = {
    "list": list,
    "tuple": tuple,
    "array of objects": lambda words: np.array(words, dtype=object),
    "array of strings": np.array,
    "series": pd.Series,
    "tokens": lambda words: [list(word) for word in words],
}


@each_estimator
@pytest.mark.parametrize("form", FORMS)
def test_predictions_for_strings_and_tokens_are_those_of_their_kernel_matrix(estimator, form):
    new = ["bananas", "tress", "a"]
    model = estimator(shared_pairs).fit(FORMS[form](WORDS), LABELS)
    by_matrix = estimator("precomputed").fit(shared_pairs(WORDS, WORDS), LABELS)
    expected = scores(by_matrix, shared_pairs(new, WORDS))
    np.testing.assert_allclose(scores(model, FORMS[form](new)), expected, rtol=0, atol=1e-12)
    assert not hasattr(model, "n_features_in_")


def test_lists_of_tokens_of_one_length_are_objects():
    tokens = [["a", "b"], ["b", "c"], ["d", "e"], ["e", "d"]]
    model = MAMClassifier(shared_pairs).fit(tokens, [0, 0, 1, 1])
    assert model.X_fit_.shape == (4,)
    assert model.predict([["d", "e", "d"]]) == [1]
    assert model.predict([["d", "e"]]) == [1]


def test_equal_tokens_in_an_array_are_objects():
    tokens = np.array([["a", "b"], ["b", "c"], ["d", "e"], ["e", "d"]])
    assert MAMClassifier(shared_pairs).fit(tokens, [0, 0, 1, 1]).predict([["d", "e"]]) == [1]


def test_lists_of_other_objects_are_objects_whatever_their_length():
    days = [[date(2000, 1, day), date(2000, 2, day)] for day in (1, 2, 3, 4)]
    for samples in (days, [days[0] * 2, *days[1:]]):
        model = MAMClassifier(lambda A, B: np.ones((len(A), len(B))), threshold=None)
        with pytest.warns(UserWarning, match="same mean"):
            assert model.fit(samples, [0, 0, 1, 1]).X_fit_.shape == (4,)


def similar_means(A, B):
    first, second = (np.array([np.mean(one) for one in side]) for side in (A, B))
    return np.exp(-np.abs(first[:, None] - second))


def objects(sequences):
    array = np.empty(len(sequences), dtype=object)
    array[:] = sequences
    return array


SEQUENCES = [[1, 2], [1, 1, 2], [8, 9, 9, 9], [9, 8], [1, 0], [8, 9]]


def test_sequences_of_numbers_of_any_length():
    X, y = objects(SEQUENCES), list("aabbab")
    model = MAMClassifier(similar_means).fit(X, y)
    assert model.predict([[1, 2, 1, 2], [7, 9, 8, 8]]).tolist() == ["a", "b"]
    equal = [0, 3, 4, 5]  # a fold may have sequences of one length only
    same = MAMClassifier(similar_means).fit(X[equal], np.array(y)[equal])
    assert same.predict(X).tolist() == y
    assert same.X_fit_.shape == (4,)


def test_series_of_matrices_are_objects_of_any_length():
    rng = np.random.default_rng(0)
    for lengths in ([3, 3, 3, 3], [3, 4, 3, 2]):
        series = [rng.normal(size=(n, 2)) + 9 * (i > 1) for i, n in enumerate(lengths)]
        model = MAMClassifier(similar_means).fit(series, [0, 0, 1, 1])
        assert model.predict(series).tolist() == [0, 0, 1, 1]


@each_estimator
def test_lists_of_numbers_are_rows(estimator):
    with pytest.raises(ValueError, match="X with rows"):
        estimator(similar_means).fit(SEQUENCES, [0, 0, 1, 1, 0, 1])
    model = estimator(lambda A, B: A @ B.T).fit([[0, 1], [1, 0]], [0, 1])
    assert model.n_features_in_ == 2


@each_estimator
@pytest.mark.parametrize(
    "X", ["tree", b"tree", {"a": 1, "b": 2}, pd.DataFrame({"a": WORDS}), [], np.array([])], ids=type
)
def test_what_is_not_a_list_of_objects_is_refused(estimator, X):
    model = estimator(shared_pairs).fit(WORDS, LABELS)
    with pytest.raises(ValueError, match="X"):
        model.predict(X)
    with pytest.raises(ValueError, match=r"X|sample"):
        estimator(shared_pairs).fit(X, LABELS)


def test_weights_and_cross_validation():
    weights = np.array([1.0, 0, 2, 1, 1, 2, 0, 1, 1, 1])
    model = MAMClassifier(shared_pairs).fit(WORDS, LABELS, weights)
    kept = weights > 0
    words = [word for word, some in zip(WORDS, kept, strict=True) if some]
    same = MAMClassifier(shared_pairs).fit(words, LABELS[kept], weights[kept])
    np.testing.assert_allclose(model.decision_function(WORDS), same.decision_function(WORDS))
    found = cross_val_predict(MAMClassifier(shared_pairs), WORDS, LABELS, cv=2)
    K = shared_pairs(WORDS, WORDS)
    assert (found == cross_val_predict(MAMClassifier("precomputed"), K, LABELS, cv=2)).all()


def test_certainty_of_strings():
    model = MAMClassifier(shared_pairs).fit(WORDS, LABELS)
    by_matrix = MAMClassifier("precomputed").fit(shared_pairs(WORDS, WORDS), LABELS)
    new, labels = ["bananas", "tress", "cab"], [0, 1, 0]
    found = model.certainty(new, 0.9, bound=30.0, held_out=(new, labels))
    values = shared_pairs(new, WORDS)
    expected = by_matrix.certainty(values, 0.9, bound=30.0, held_out=(values, labels))
    for name in ("margins", "bound", "held_out", "held_out_error", "levels"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name))
    assert (found.held_out < 1).any()


def test_a_later_fit_may_use_numbers():
    model = MAMClassifier(lambda A, B: A @ B.T).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    assert model.n_features_in_ == 2
    model.set_params(kernel=shared_pairs).fit(WORDS, LABELS)
    assert not hasattr(model, "n_features_in_")
    model.set_params(kernel="rbf").fit([[0.0], [1.0]], [0, 1])
    assert model.n_features_in_ == 1


@each_estimator
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian", "precomputed"])
@pytest.mark.parametrize("form", [*FORMS, "table", "frame", "mixed frame"])
def test_objects_need_a_callable_or_precomputed_values(estimator, kernel, form):
    tables = {
        "table": lambda words: np.array([words, words]).T,
        "frame": lambda words: pd.DataFrame({"a": words, "b": words}),
        "mixed frame": lambda words: pd.DataFrame({"a": words, "b": 1.0}),
    }
    with pytest.raises(ValueError, match=r"\bkernel\b"):
        estimator(kernel).fit((FORMS | tables)[form](WORDS), LABELS)


@each_estimator
def test_bad_labels_of_objects_are_refused(estimator):
    with pytest.raises(ValueError, match="samples"):
        estimator(shared_pairs).fit(WORDS, LABELS[:-1])
    with pytest.raises(ValueError, match="NaN"):
        estimator(shared_pairs).fit(WORDS, np.where(LABELS, np.nan, 0.0))
    with pytest.raises(ValueError, match=r"\by\b"):
        estimator(shared_pairs).fit(WORDS, None)


def test_a_kernel_of_two_objects_is_refused():
    with pytest.raises(ValueError, match="callable kernel"):
        MAMClassifier(lambda a, b: 1.0).fit(WORDS, LABELS)
    with pytest.raises(TypeError) as error:
        MAMClassifier(lambda a, b: float(a == b)).fit(WORDS, LABELS)
    assert "two sets" in error.value.__notes__[0]


@each_estimator
def test_a_kernel_that_is_not_symmetric_is_refused(estimator):
    def ratio(A, B):
        return np.array([[len(a) / len(b) for b in B] for a in A])

    with pytest.raises(ValueError, match="symmetric"):
        estimator(ratio).fit(["a", "abc", "ab", "abcd"], [0, 1, 0, 1])


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_rounding_and_small_integers_are_symmetric(dtype):
    X = np.random.default_rng(0).integers(0, 4, (200, 3)).astype(np.float64)
    noise = np.random.default_rng(1).uniform(0, 1e-5, (200, 200))

    def products(A, B):
        values = A @ B.T
        if dtype == np.float32:
            values = values * (1 + noise[: len(A), : len(B)])
        return values.astype(dtype)

    MAMClassifier(products).fit(X, np.arange(200) % 2)


def test_a_kernel_may_return_a_sparse_matrix():
    def sparse(A, B):
        return csr_array(shared_pairs(A, B))

    model = MAMClassifier(sparse).fit(WORDS, LABELS)
    dense = MAMClassifier(shared_pairs).fit(WORDS, LABELS)
    np.testing.assert_array_equal(model.decision_function(WORDS), dense.decision_function(WORDS))
