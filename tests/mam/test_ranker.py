"""The ranker: all pairs, all refits, its limits, and degenerate data."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array, csr_matrix
from scipy.stats import kendalltau
from sklearn.metrics.pairwise import (
    laplacian_kernel,
    linear_kernel,
    polynomial_kernel,
    rbf_kernel,
)

from margrave.mam._ranker import MAMRanker, leave_one_out_predictions

GAMMA = 0.3


def cosine(A, B):
    """A kernel of one's own: x·z of unit vectors, plus 1."""
    A, B = (side / np.linalg.norm(side, axis=1)[:, None] for side in (A, B))
    return A @ B.T + 1


KERNELS = {
    "rbf": lambda A, B: rbf_kernel(A, B, gamma=GAMMA),
    "laplacian": lambda A, B: laplacian_kernel(A, B, gamma=GAMMA),
    "poly": lambda A, B: polynomial_kernel(A, B, gamma=GAMMA, degree=3, coef0=1),
    "linear": linear_kernel,
    cosine: cosine,
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS)
named_kernel = pytest.mark.parametrize("kernel", [k for k in KERNELS if isinstance(k, str)])


def some_samples(n=15, d=3, seed=0, levels=5):
    """Samples with ties among their responses."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.round(X @ rng.normal(size=d) + rng.normal(size=n) / 2)
    return X, np.clip(y, -levels // 2, levels // 2)


def pairs_of(y, s):
    """All couples (i, j) with y_i > y_j, and what they count."""
    i, j = np.nonzero(y[:, None] > y)
    return i, j, s[i] * s[j]


def explicit_sums(K, y, s):
    """Σ over couples of s_i s_j (K(x_i, ·) − K(x_j, ·)): (22) without ranks, times λn."""
    i, j, count = pairs_of(y, s)
    return count @ (K[i] - K[j])


def explicit_length(K, y, s):
    """‖Σ s_i s_j (φ(x_i) − φ(x_j))‖ over couples."""
    i, j, count = pairs_of(y, s)
    squared = count @ (K[np.ix_(i, i)] - K[np.ix_(i, j)] - K[np.ix_(j, i)] + K[np.ix_(j, j)])
    return np.sqrt(squared @ count)


def test_the_larger_response_is_ranked_higher():
    """With (21) as printed m would fall from x = 0 to x = 1, though y rises."""
    model = MAMRanker("linear").fit([[0.0], [1.0]], [1, 2])
    np.testing.assert_array_equal(model.predict([[0.0], [1.0]]), [0, 1])
    printed = np.array([1.0, -1.0])
    assert printed @ np.array([[0.0], [1.0]]) < 0


@pytest.mark.parametrize("weighted", [False, True])
@each_kernel
def test_predictions_are_sums_over_all_couples(kernel, weighted):
    X, y = some_samples()
    Z = np.random.default_rng(1).normal(size=(4, 3))
    s = np.linspace(0, 3, len(y)) if weighted else np.ones(len(y))
    model = MAMRanker(kernel, gamma=GAMMA).fit(X, y, s if weighted else None)
    length = explicit_length(KERNELS[kernel](X, X), y, s)
    expected = explicit_sums(KERNELS[kernel](X, Z), y, s) / length
    np.testing.assert_allclose(model.predict(Z), expected, rtol=1e-9)
    assert model.lambda_ == pytest.approx(length / s.sum())


def test_no_direction_has_a_larger_average_margin():
    X, y = some_samples()
    rng = np.random.default_rng(0)
    i, j, _ = pairs_of(y, np.ones(len(y)))
    model = MAMRanker("linear").fit(X, y)
    assert np.linalg.norm(model.coef_) == pytest.approx(1)
    directions = rng.normal(size=(300, 3))
    directions = np.vstack([directions, model.coef_ + 0.01 * directions])
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    margins = (X[i] - X[j]) @ np.column_stack([model.coef_, directions.T])
    assert margins[:, 0].mean() > margins[:, 1:].mean(axis=0).max()
    assert model.lambda_ == pytest.approx(margins[:, 0].sum() / len(y))


def test_with_two_responses_it_is_the_difference_of_the_class_means():
    X, y = some_samples(n=30)
    y = y > 0
    direction = X[y].mean(axis=0) - X[~y].mean(axis=0)
    model = MAMRanker("linear").fit(X, y.astype(int))
    np.testing.assert_allclose(model.coef_, direction / np.linalg.norm(direction))


@given(st.integers(0, 10**6), st.sampled_from([np.exp, np.cbrt, lambda y: y * 1e-300]))
def test_only_the_order_of_the_responses_counts(seed, rising):
    X, y = some_samples(seed=seed)
    model, other = MAMRanker("linear").fit(X, y), MAMRanker("linear").fit(X, rising(y))
    np.testing.assert_array_equal(model.ranks_, other.ranks_)
    np.testing.assert_array_equal(model.coef_, other.coef_)


@pytest.mark.parametrize("sample_weight", [None, np.r_[0.0, 0.0, 2.0, np.linspace(0.1, 4, 12)]])
@each_kernel
def test_leaving_out_is_fitting_again(kernel, sample_weight):
    X, y = some_samples()
    s = np.ones(len(y)) if sample_weight is None else sample_weight
    model = MAMRanker(kernel, gamma=GAMMA).fit(X, y, sample_weight)
    expected = []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        again = MAMRanker(kernel, gamma=GAMMA).fit(X[others], y[others], s[others])
        length = again.lambda_ * s[others].sum()
        expected.append(again.predict(X[[i]])[0] * length / (model.lambda_ * s.sum()))
    found = leave_one_out_predictions(model, X, y, sample_weight)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
def test_the_width_has_the_largest_tau_of_leave_one_out(kernel):
    X, y = some_samples(n=40, levels=20)
    model = MAMRanker(kernel).fit(X, y)
    spread = X.std() if kernel == "laplacian" else X.var()
    nearest = round(np.log(1 / (3 * spread)) / np.log(4))
    np.testing.assert_array_equal(model.gammas_, 4.0 ** (nearest + np.arange(-7, 8)))
    fits = [MAMRanker(kernel, gamma=gamma).fit(X, y) for gamma in model.gammas_]
    seen = slice(0, 12)  # narrower ones have values that underflow
    taus = [kendalltau(y, fit.loo_predictions_).statistic for fit in fits[seen]]
    np.testing.assert_allclose(model.loo_scores_[seen], taus)
    np.testing.assert_allclose([fit.loo_scores_[0] for fit in fits[seen]], taus)
    best = int(np.argmax(model.loo_scores_))
    assert model.gamma_ == model.gammas_[best]
    np.testing.assert_allclose(model.loo_predictions_, fits[best].loo_predictions_, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), fits[best].predict(X), rtol=1e-6)


def test_of_equal_widths_the_widest_is_taken():
    X = np.arange(6.0).reshape(-1, 1)
    model = MAMRanker(gammas=[9.0, 0.01, 0.001]).fit(X, X[:, 0])
    np.testing.assert_allclose(model.loo_scores_[:2], [1, 1])
    assert model.loo_scores_[2] < 1
    np.testing.assert_array_equal(model.gammas_, [0.001, 0.01, 9])
    assert model.gamma_ == 0.001


def test_it_learns_the_synthetic_data_of_the_paper():
    """Section 5: Z = (w·x)³ + e, and only the order of Z is known."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=5)
    X, X_new = rng.normal(size=(100, 5)), rng.normal(size=(250, 5))
    y, y_new = ((rows @ w) ** 3 + rng.normal(scale=0.5, size=len(rows)) for rows in (X, X_new))
    model = MAMRanker().fit(X, y)
    expected = kendalltau(y_new, model.predict(X_new)).statistic
    assert model.score(X_new, y_new) == pytest.approx(expected)
    possible = kendalltau(y_new, X_new @ w).statistic
    assert possible - 0.1 < model.score(X_new, y_new) < possible + 0.02
    assert abs(model.score(X_new, y_new) - model.loo_scores_.max()) < 0.1


@pytest.mark.parametrize("factor", [1e-200, 1e-3, 2, 1e200])
@each_kernel
def test_weights_count_up_to_a_factor(kernel, factor):
    X, y = some_samples()
    s = np.linspace(0, 2, len(y))
    model, other = (MAMRanker(kernel, gamma=GAMMA).fit(X, y, w) for w in (s, s * factor))
    np.testing.assert_allclose(model.predict(X), other.predict(X), rtol=1e-9)
    np.testing.assert_allclose(other.ranks_, model.ranks_ * factor)
    assert other.lambda_ == pytest.approx(model.lambda_ * factor)


@named_kernel
def test_weights_are_repetitions_when_nothing_is_left_out(kernel):
    X, y = some_samples()
    s = np.random.default_rng(0).integers(0, 4, len(y))
    model = MAMRanker(kernel, gamma="scale").fit(X, y, s)
    repeated = MAMRanker(kernel, gamma="scale").fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    np.testing.assert_allclose(model.predict(X), repeated.predict(X))
    np.testing.assert_allclose(np.repeat(model.ranks_, s), repeated.ranks_)
    assert model.lambda_ == pytest.approx(repeated.lambda_)
    if kernel != "linear":
        assert len(model.X_fit_) == np.count_nonzero(s)


@pytest.mark.parametrize("gamma", ["loo", "scale"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 / 3])
@each_kernel
def test_constant_features_leave_nothing_to_rank_by(kernel, value, gamma):
    if callable(kernel) and value == 0:
        pytest.skip("no direction to take the cosine of")
    y = np.random.default_rng(0).normal(size=50)
    X = np.full((50, 2), value)
    model = MAMRanker(kernel, gamma=gamma).fit(X, y)
    assert model.lambda_ == 0
    np.testing.assert_array_equal(model.predict([[1.0, 2.0], [3.0, 4.0]]), [0, 0])
    assert model.score(X, y) == 0
    if kernel != "linear":
        np.testing.assert_array_equal(model.loo_predictions_, np.zeros(50))


def test_ranks_that_cancel_leave_no_direction():
    model = MAMRanker("linear").fit([[0.1], [0.3], [0.7], [0.7], [0.3], [0.1]], np.arange(6))
    assert model.lambda_ == 0
    np.testing.assert_array_equal(model.coef_, [0])


@pytest.mark.parametrize("gamma", [1e-15, 1e-8, 1e15])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extreme_widths_are_finite(kernel, gamma, dtype):
    X, y = some_samples()
    model = MAMRanker(kernel, gamma=gamma).fit(X.astype(dtype), y)
    predicted = model.predict(X.astype(dtype))
    assert np.isfinite([*predicted, *model.loo_predictions_, model.lambda_]).all()
    if gamma == 1e15:  # every sample knows of itself only
        np.testing.assert_array_equal(model.loo_predictions_, np.zeros(len(y)))
        assert model.loo_scores_[0] == 0


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
def test_float32_stays_float32_where_that_is_enough(kernel):
    X, y = some_samples(n=300, levels=50)
    narrow = X.astype(np.float32)
    for gamma, dtype in ((GAMMA, np.float32), (1e-6, np.float64)):
        model = MAMRanker(kernel, gamma=gamma).fit(X, y)
        other = MAMRanker(kernel, gamma=gamma).fit(narrow, y)
        assert other.X_fit_.dtype == dtype
        predicted = other.predict(narrow)
        assert predicted.dtype == dtype
        np.testing.assert_allclose(predicted, model.predict(X), atol=1e-4 * np.ptp(predicted))


def test_linear_in_float32():
    X, y = some_samples(n=300)
    model, other = MAMRanker("linear").fit(X, y), MAMRanker("linear").fit(X.astype(np.float32), y)
    np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-6)
    np.testing.assert_allclose(other.predict(X.astype(np.float32)), model.predict(X), atol=1e-5)


@pytest.mark.parametrize("container", [csr_array, csc_array, csr_matrix])
@pytest.mark.parametrize("sample_weight", [None, np.arange(15.0)])
def test_sparse_rows_are_as_good_as_dense_ones(container, sample_weight):
    X, y = some_samples()
    X[X < 0] = 0
    model = MAMRanker("linear").fit(X, y, sample_weight)
    sparse = MAMRanker("linear").fit(container(X), y, sample_weight)
    np.testing.assert_allclose(sparse.coef_, model.coef_)
    np.testing.assert_allclose(sparse.predict(container(X)), model.predict(X))
    np.testing.assert_allclose(
        leave_one_out_predictions(sparse, container(X), y, sample_weight),
        leave_one_out_predictions(model, X, y, sample_weight),
        atol=1e-12,
    )


def test_data_frames_keep_their_names():
    X, y = some_samples()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = MAMRanker().fit(frame, pd.Series(y))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_allclose(model.predict(frame), MAMRanker().fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c"]])


def test_threads_do_not_change_the_result():
    X, y = some_samples(n=1100)
    one, two = (MAMRanker(gammas=[0.1, 0.4], n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.loo_predictions_, two.loo_predictions_)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_the_samples_are_copied_and_not_changed():
    X, y = some_samples()
    before = X.copy()
    model = MAMRanker().fit(X, y)
    np.testing.assert_array_equal(X, before)
    X[:] = 0
    np.testing.assert_array_equal(model.X_fit_, before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernel", "sigmoid"),
        ("gamma", 0),
        ("gamma", "auto"),
        ("gammas", []),
        ("gammas", [1, -1]),
        ("degree", 2.5),
        ("coef0", -1),
        ("n_jobs", 0),
    ],
)
def test_parameters_that_are_refused(name, value):
    with pytest.raises(ValueError, match=rf"MAMRanker.*\b{name}\b"):
        MAMRanker(**{name: value}).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("y", "sample_weight", "only"),
    [([3.0, 3.0, 3.0], None, "3"), ([3, 4, 4], [0, 1, 2], "4")],
)
def test_responses_without_an_order_are_refused(y, sample_weight, only):
    with pytest.raises(ValueError, match=rf"\by\b.*\b{only}\b"):
        MAMRanker().fit([[0.0], [1.0], [2.0]], y, sample_weight)


def test_sparse_rows_are_refused_by_other_kernels():
    with pytest.raises(TypeError, match=r"\bkernel\b.*'rbf'"):
        MAMRanker().fit(csr_array(np.eye(3)), [1, 2, 3])


def test_kernels_that_make_no_sense_are_refused():
    X, y = some_samples()
    with pytest.raises(ValueError, match=r"MAMRanker.*\bkernel\b"):
        MAMRanker(lambda A, B: -(A @ B.T)).fit(X, y)
    with pytest.raises(ValueError, match=r"\bkernel\b"):
        MAMRanker(lambda A, B: np.full((len(A), len(B)), np.nan)).fit(X, y)


def test_features_that_are_too_large_are_refused():
    X, y = some_samples()
    with pytest.raises(ValueError, match=r"MAMRanker.*\bX\b"):
        MAMRanker("linear").fit(X * 2e307, y)
    np.testing.assert_allclose(
        MAMRanker("linear").fit(X * 1e200, y).coef_, MAMRanker("linear").fit(X, y).coef_
    )


def test_scores_of_responses_that_are_missing_are_refused():
    X, y = some_samples()
    model = MAMRanker().fit(X, y)
    with pytest.raises(ValueError, match=r"\by\b.*NaN"):
        model.score(X, np.full(len(y), np.nan))
    with pytest.raises(ValueError, match="samples"):
        model.score(X, y[1:])
