"""Callable kernels of strings, lists of tokens and other objects."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
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


def answers(model, X):
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
def test_strings_and_tokens_have_the_answers_of_their_kernel_matrix(estimator, form):
    new = ["bananas", "tress", "a"]
    model = estimator(shared_pairs).fit(FORMS[form](WORDS), LABELS)
    by_matrix = estimator("precomputed").fit(shared_pairs(WORDS, WORDS), LABELS)
    expected = answers(by_matrix, shared_pairs(new, WORDS))
    np.testing.assert_allclose(answers(model, FORMS[form](new)), expected, rtol=0, atol=1e-12)
    assert not hasattr(model, "n_features_in_")


def test_lists_of_tokens_of_one_length_are_objects():
    tokens = [["a", "b"], ["b", "c"], ["d", "e"], ["e", "d"]]
    model = MAMClassifier(shared_pairs).fit(tokens, [0, 0, 1, 1])
    assert model.X_fit_.shape == (4,)
    assert model.predict([["d", "e", "d"]]) == [1]
    assert model.predict([["d", "e"]]) == [1]


def test_sequences_of_numbers_of_any_length():
    def similar_means(A, B):
        first, second = (np.array([np.mean(one) for one in side]) for side in (A, B))
        return np.exp(-np.abs(first[:, None] - second))

    model = MAMClassifier(similar_means).fit([[1, 2], [1, 1, 2], [8, 9, 9, 9], [9]], list("aabb"))
    assert model.predict([[1, 2, 1, 2], [7, 9, 8, 8]]).tolist() == ["a", "b"]


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
    found = model.certainty(["banana"], transform="clip", held_out=(WORDS, LABELS))
    np.testing.assert_allclose(found.margins, np.abs(model.decision_function(["banana"])))


def test_a_later_fit_may_use_numbers():
    model = MAMClassifier(lambda A, B: A @ B.T).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    assert model.n_features_in_ == 2
    model.set_params(kernel=shared_pairs).fit(WORDS, LABELS)
    assert not hasattr(model, "n_features_in_")
    model.set_params(kernel="rbf").fit([[0.0], [1.0]], [0, 1])
    assert model.n_features_in_ == 1


@each_estimator
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian", "precomputed"])
@pytest.mark.parametrize("form", FORMS)
def test_objects_need_a_callable_or_precomputed_values(estimator, kernel, form):
    with pytest.raises(ValueError, match=r"callable kernel.*precomputed"):
        estimator(kernel).fit(FORMS[form](WORDS), LABELS)


@each_estimator
def test_bad_labels_of_objects_are_refused(estimator):
    with pytest.raises(ValueError, match="inconsistent"):
        estimator(shared_pairs).fit(WORDS, LABELS[:-1])
    with pytest.raises(ValueError, match="NaN"):
        estimator(shared_pairs).fit(WORDS, np.where(LABELS, np.nan, 0.0))
    with pytest.raises(ValueError, match="y"):
        estimator(shared_pairs).fit(WORDS, None)


def test_a_kernel_of_two_objects_is_refused():
    with pytest.raises(ValueError, match="callable kernel"):
        MAMClassifier(lambda a, b: 1.0).fit(WORDS, LABELS)
