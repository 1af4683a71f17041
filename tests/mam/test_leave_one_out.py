"""Directions against their definition, and leaving out against fitting again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from margrave.mam._leave_one_out import ClassSums, contrast, reciprocals


def class_sums(phi, codes, s, k, balanced):
    """A fit on samples with features phi."""
    P = np.stack([s[codes == c] @ phi[codes == c] for c in range(k)])
    return ClassSums(P @ P.T, np.bincount(codes, s, k), balanced), P


def direction(phi, codes, s, k, balanced):
    """Unit vectors of the largest average margin, from the definition."""
    P = np.zeros((k, phi.shape[1]))
    for c in range(k):
        here = codes == c
        if here.any():
            P[c] = s[here] @ phi[here] / (s[here].sum() if balanced else 1.0)
    W = P[[1]] - P[[0]] if k == 2 else P - P.mean(axis=0)
    length = np.linalg.norm(W)
    return W / length if length > 1e-12 else np.zeros_like(W)


def left_out(phi, codes, s, k, balanced):
    """Scores of all samples, each left out."""
    fit, _ = class_sums(phi, codes, s, k, balanced)
    K = phi @ phi.T
    columns = np.zeros((len(codes), k))
    columns[np.arange(len(codes)), codes] = s
    diagonal = np.diag(K).copy()
    return fit.leave_one_out(K @ columns - diagonal[:, None] * columns, diagonal, codes, s)


def again(phi, codes, s, k, balanced):
    """The same, by fitting n times."""
    scores = []
    for i in range(len(codes)):
        rest = np.arange(len(codes)) != i
        scores.append(phi[i] @ direction(phi[rest], codes[rest], s[rest], k, balanced).T)
    return np.array(scores)


def samples(n, k, d=3, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    codes = np.append(np.arange(k), rng.integers(0, k, n - k))
    phi = rng.normal(size=(n, d)) + rng.normal(size=(k, d))[codes]
    return phi, codes, rng.uniform(0.2, 3, n) if weighted else np.ones(n)


def average_margin(phi, codes, s, W, balanced):
    """What is maximised: of y f(x), or of ⟨w_y, φ(x)⟩."""
    scores = phi @ W.T
    k = codes.max() + 1
    margins = (2 * codes - 1) * scores[:, 0] if k == 2 else scores[np.arange(len(codes)), codes]
    fractions = s / np.bincount(codes, s)[codes] if balanced else s
    return float(fractions @ margins / fractions.sum())


BALANCED = pytest.mark.parametrize("balanced", [False, True])
CLASSES = pytest.mark.parametrize("k", [2, 3, 4])


@BALANCED
@CLASSES
def test_scores_without_a_sample_are_those_of_a_fit_without_it(k, balanced):
    for seed in range(5):
        for weighted in (False, True):
            drawn = samples(15, k, seed=seed, weighted=weighted)
            found = left_out(*drawn, k, balanced)
            assert found.shape == (15, 1 if k == 2 else k)
            assert found == pytest.approx(again(*drawn, k, balanced), rel=1e-8, abs=1e-10)


@given(
    st.sampled_from([2, 3, 4]),
    st.booleans(),
    st.integers(1, 3),
    st.integers(0, 10**6),
    st.integers(0, 8),
)
def test_leaving_out_any_samples(k, balanced, d, seed, more):
    """Few classes have more than one sample, and features are often the same or 0."""
    rng = np.random.default_rng(seed)
    codes = np.append(np.arange(k), rng.integers(0, k, more)).astype(np.intp)
    phi = rng.integers(-2, 3, (len(codes), d)).astype(float)
    s = rng.integers(1, 4, len(codes)) / 2
    found = left_out(phi, codes, s, k, balanced)
    # A direction that is 0 but for rounding has the score 0, here and there.
    assert found == pytest.approx(again(phi, codes, s, k, balanced), rel=1e-7, abs=1e-7)


@BALANCED
@CLASSES
def test_a_class_of_one_sample_has_no_influence_without_it(k, balanced):
    phi, codes, s = samples(12, k, seed=3)
    codes = np.where(np.arange(12) == 0, 0, np.maximum(codes, 1))
    found = left_out(phi, codes, s, k, balanced)
    assert found == pytest.approx(again(phi, codes, s, k, balanced), rel=1e-9, abs=1e-12)
    assert np.isfinite(found).all()


def test_leaving_out_with_a_kernel_of_many_dimensions():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(30, 2)), np.arange(30) % 3
    K = rbf_kernel(X, gamma=2.0)
    phi = np.linalg.cholesky(K + 1e-13 * np.eye(30))
    for balanced in (False, True):
        found = left_out(phi, codes, np.ones(30), 3, balanced)
        assert found == pytest.approx(again(phi, codes, np.ones(30), 3, balanced), rel=1e-6)


@BALANCED
@CLASSES
def test_directions_have_the_length_1_and_the_largest_average_margin(k, balanced):
    phi, codes, s = samples(20, k)
    fit, P = class_sums(phi, codes, s, k, balanced)
    W = fit.coefficients.T @ P
    assert pytest.approx(direction(phi, codes, s, k, balanced)) == W
    assert np.linalg.norm(W) == pytest.approx(1)
    best = average_margin(phi, codes, s, W, balanced)
    assert best == pytest.approx(fit.length)
    rng = np.random.default_rng(0)
    for scale in (1.0, 0.1, 1e-3):
        for _ in range(100):
            other = W + scale * rng.normal(size=W.shape)
            if k > 2:
                other -= other.mean(axis=0)
            other /= np.linalg.norm(other)
            assert average_margin(phi, codes, s, other, balanced) <= best + 1e-12


@CLASSES
def test_scores_of_more_than_two_classes_sum_to_0(k):
    turned = class_sums(*samples(20, k), k, True)[0].coefficients
    assert turned.shape == (k, 1 if k == 2 else k)
    if k > 2:
        phi, codes, s = samples(20, k)
        fit, P = class_sums(phi, codes, s, k, False)
        assert (phi @ P.T @ fit.coefficients).sum(axis=1) == pytest.approx(0, abs=1e-12)


def test_the_length_is_that_of_the_paper():
    phi, codes, s = samples(25, 2, weighted=False)
    y = 2.0 * codes - 1
    fit, _ = class_sums(phi, codes, s, 2, False)
    assert fit.length == pytest.approx(np.sqrt(y @ (phi @ phi.T) @ y) / 25)
    # (7): f(x) = (1/λn) Σ y_i K(x_i, x)
    sums = np.stack([phi[codes == c].sum(axis=0) for c in (0, 1)]) @ phi.T
    f = (y @ (phi @ phi.T)) / (fit.length * 25)
    assert sums.T @ fit.coefficients == pytest.approx(f[:, None])


def test_balanced_is_the_difference_of_the_class_means():
    phi, codes, s = samples(25, 2)
    fit, P = class_sums(phi, codes, s, 2, True)
    means = [np.average(phi[codes == c], axis=0, weights=s[codes == c]) for c in (0, 1)]
    w = means[1] - means[0]
    assert (fit.coefficients.T @ P)[0] == pytest.approx(w / np.linalg.norm(w))
    assert fit.length == pytest.approx(np.linalg.norm(w) / 2)


def test_the_formula_of_leaving_out_worked_by_hand():
    """f_−i(x_i) = ((Ωy)_i − y_i K_ii) / √(yᵀΩy − 2 y_i (Ωy)_i + K_ii)."""
    phi, codes, s = samples(9, 2, weighted=False)
    y = 2.0 * codes - 1
    K = phi @ phi.T
    scale = np.sqrt(y @ K @ y - 2 * y * (K @ y) + np.diag(K))
    exact = (K @ y - y * np.diag(K)) / scale
    assert left_out(phi, codes, s, 2, False)[:, 0] == pytest.approx(exact)


@BALANCED
@CLASSES
def test_the_unit_of_the_weights_and_of_the_features_does_not_count(k, balanced):
    phi, codes, s = samples(15, k)
    found = left_out(phi, codes, s, k, balanced)
    for factor in (1e-8, 1e8):
        assert left_out(phi, codes, s * factor, k, balanced) == pytest.approx(found)
        scaled = left_out(phi * factor, codes, s, k, balanced) / factor
        assert scaled == pytest.approx(found)
        fit, P = class_sums(phi, codes, s * factor, k, balanced)
        assert np.linalg.norm(fit.coefficients.T @ P) == pytest.approx(1)


@BALANCED
@CLASSES
def test_classes_with_the_same_mean_have_no_direction(k, balanced):
    rng = np.random.default_rng(0)
    one = rng.normal(size=(6, 3))
    phi, codes = np.vstack([one] * k), np.repeat(np.arange(k), 6)
    fit, _ = class_sums(phi, codes, np.full(6 * k, 0.1), k, balanced)
    assert fit.length == 0
    assert (fit.coefficients == 0).all()


def test_nothing_is_left_where_all_samples_are_the_same():
    phi, codes = np.ones((6, 2)), np.array([0, 0, 0, 1, 1, 1])
    assert left_out(phi, codes, np.ones(6), 2, True).tolist() == [[0.0]] * 6
    # Unbalanced, the class of the sample has one less, and the other one is larger.
    found = left_out(phi, codes, np.ones(6), 2, False)[:, 0]
    assert found == pytest.approx(np.sqrt(2) * np.array([1, 1, 1, -1, -1, -1]))


@pytest.mark.parametrize("k", [2, 3])
def test_rounding_is_no_direction(k):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        phi, codes = np.tile(rng.normal(size=3), (4 * k, 1)), np.arange(4 * k) % k
        found = left_out(phi, codes, rng.uniform(0.1, 3, 4 * k), k, True)
        assert (found == 0).all()


@pytest.mark.parametrize("towards", [0, np.inf])
def test_a_class_of_one_sample_is_empty_without_it_whatever_the_rounding(towards):
    codes = np.array([0, 1, 1, 1, 1, 1, 1])
    for seed in range(10):
        phi, _, s = samples(7, 2, seed=seed)
        K = phi @ phi.T
        columns = np.eye(2)[codes] * s[:, None]
        sums, diagonal = K @ columns - np.diag(K)[:, None] * columns, np.diag(K)
        exact = class_sums(phi, codes, s, 2, True)[0]
        off = ClassSums(exact.gram, np.nextafter(exact.weights, towards), balanced=True)
        found = off.leave_one_out(sums, diagonal, codes, s)
        assert found == pytest.approx(again(phi, codes, s, 2, True), rel=1e-9)


def test_samples_that_are_0_have_no_direction():
    found = left_out(np.zeros((6, 2)), np.arange(6) % 3, np.ones(6), 3, True)
    assert found.tolist() == [[0.0] * 3] * 6
    fit = ClassSums(np.zeros((3, 3)), np.full(3, 2.0), False)
    assert fit.length == 0
    assert (fit.coefficients == 0).all()


@BALANCED
def test_a_class_that_has_not_come_yet_is_no_trouble(balanced):
    fit = ClassSums(np.diag([4.0, 0.0, 1.0]), np.array([2.0, 0.0, 1.0]), balanced)
    P = np.array([[2.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    assert np.linalg.norm(fit.coefficients.T @ P) == pytest.approx(1)


def test_contrast_and_fractions():
    assert contrast(2).tolist() == [[-1, 1]]
    assert contrast(3) @ np.ones(3) == pytest.approx(np.zeros(3))
    assert contrast(3) @ contrast(3) == pytest.approx(contrast(3))
    assert reciprocals(np.array([2.0, 0.0, 4.0])).tolist() == [0.5, 0, 0.25]
    for balanced in (False, True):
        weights = np.array([2.0, 3.0, 5.0])
        fit = ClassSums(np.eye(3), weights, balanced)
        assert fit.factors @ weights == pytest.approx(1)


@pytest.mark.parametrize("weight", [1e3, 1e5, 1e7, 1e9])
def test_balanced_classes_of_very_different_weight_have_a_direction(weight):
    P = np.array([[1.0, 0.0], [weight, 0.01 * weight]])  # the means are (1, 0) and (1, 0.01)
    fit = ClassSums(P @ P.T, np.array([1.0, weight]), balanced=True)
    assert fit.length == pytest.approx(0.005, rel=1e-3)
