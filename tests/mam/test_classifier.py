"""The classifier against the paper's formulas, written out, and fits without a sample."""

import warnings

import numpy as np
import pandas as pd
import pytest
import skops.io
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.svm import SVC

from margrave.datasets import load
from margrave.mam import MAMClassifier

KERNELS = {
    "rbf": {"gamma": 0.5},
    "laplacian": {"gamma": 0.3},
    "poly": {"gamma": 0.2, "degree": 2, "coef0": 1.0},
    "linear": {},
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS)


@pytest.fixture(scope="module")
def two_classes():
    return make_classification(
        60, 4, n_informative=3, n_redundant=0, weights=[0.6], flip_y=0.1, random_state=1
    )


@pytest.fixture(scope="module")
def three_classes():
    return make_blobs(50, centers=3, n_features=3, cluster_std=4.0, random_state=0)


def gram(kernel, Z, X):
    return pairwise_kernels(Z, X, metric=kernel, **KERNELS[kernel])


def paper_score(kernel, X, y, Z):
    """(7), as the paper writes it."""
    sign = np.where(y == np.unique(y)[1], 1.0, -1.0)
    lam = np.sqrt(sign @ gram(kernel, X, X) @ sign) / len(sign)
    return gram(kernel, Z, X) @ sign / (lam * len(sign)), lam


@each_kernel
def test_scores_are_equation_7(kernel, two_classes):
    X, y = two_classes
    Z = X[:7] + 0.3
    model = MAMClassifier(kernel, threshold=None, **KERNELS[kernel]).fit(X, y)
    expected, lam = paper_score(kernel, X, y, Z)
    np.testing.assert_allclose(model.decision_function(Z), expected, rtol=1e-9, atol=1e-12)
    assert model.lambda_ == pytest.approx(lam)
    assert model.average_margin_ == model.lambda_


def test_the_average_margin_is_that_of_the_training_samples(two_classes):
    X, y = two_classes
    model = MAMClassifier(gamma=0.5, threshold=None).fit(X, y)
    margins = np.where(y == 1, 1, -1) * model.decision_function(X)
    assert model.average_margin_ == pytest.approx(margins.mean())


def test_no_direction_has_a_larger_average_margin(two_classes):
    """(4) and (5): of all unit directions w, w_n has the largest mean of y w·x."""
    X, y = two_classes
    model = MAMClassifier("linear", threshold=None).fit(X, y)
    sign = np.where(y == 1, 1, -1)
    assert np.linalg.norm(model.coef_) == pytest.approx(1)
    others = np.random.default_rng(0).normal(size=(2000, X.shape[1]))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    best = (sign @ X @ model.coef_[0]) / len(X)
    assert best == pytest.approx(model.lambda_)
    assert (others @ (sign @ X) / len(X)).max() <= best


def test_dropping_the_slack_constraint_of_the_svm_gives_this_classifier(two_classes):
    """(16) to (18): with ξ free, min Σξ s.t. y w·x ≥ 1 − ξ and ‖w‖² ≤ C is solved by √C w_n."""
    X, y = two_classes
    sign = np.where(y == 1, 1, -1)
    C = 2.5
    n, d = X.shape
    # Solved in (w, ξ) by a method that knows nothing of the closed form.
    found = minimize(
        lambda v: v[d:].sum(),
        np.concatenate([np.full(d, 0.1), np.ones(n)]),
        jac=lambda v: np.concatenate([np.zeros(d), np.ones(n)]),
        constraints=[
            {
                "type": "ineq",
                "fun": lambda v: C - v[:d] @ v[:d],
                "jac": lambda v: np.concatenate([-2 * v[:d], np.zeros(n)]),
            },
            {
                "type": "ineq",
                "fun": lambda v: sign * (X @ v[:d]) - 1 + v[d:],
                "jac": lambda v: np.hstack([sign[:, None] * X, np.eye(n)]),
            },
        ],
        method="SLSQP",
        options={"maxiter": 200, "ftol": 1e-12},
    )
    assert found.success
    model = MAMClassifier("linear", threshold=None).fit(X, y)
    np.testing.assert_allclose(found.x[:d], np.sqrt(C) * model.coef_[0], atol=1e-4)


def test_an_svm_whose_slack_constraints_do_nothing_is_this_classifier(two_classes):
    """(17): for a small C every sample has ξ > 0; with classes of one size that leaves w_n."""
    X, y = two_classes
    half = min((y == 0).sum(), (y == 1).sum())
    rows = np.concatenate([np.flatnonzero(y == c)[:half] for c in (0, 1)])
    svm = SVC(kernel="linear", C=1e-6).fit(X[rows], y[rows])
    model = MAMClassifier("linear", threshold=None).fit(X[rows], y[rows])
    direction = svm.coef_[0] / np.linalg.norm(svm.coef_)
    np.testing.assert_allclose(direction, model.coef_[0], atol=1e-6)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 1: 0.5}])
@each_kernel
def test_leave_one_out_is_a_fit_without_the_sample(kernel, class_weight, two_classes):
    X, y = two_classes
    settings = {"class_weight": class_weight, "threshold": None, **KERNELS[kernel]}
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    model = MAMClassifier(kernel, **settings).fit(X, y, weights)
    rest = [np.delete(np.arange(len(y)), i) for i in range(len(y))]
    expected = [
        MAMClassifier(kernel, **settings)
        .fit(X[kept], y[kept], weights[kept])
        .decision_function(X[i : i + 1])[0]
        for i, kept in enumerate(rest)
    ]
    np.testing.assert_allclose(model.loo_decision_[:, 0], expected, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("threshold", ["accuracy", "balanced"])
def test_with_a_threshold_classes_keep_their_priors_without_a_sample(threshold, two_classes):
    """Written out: priors and λ of all samples, class means without the sample."""
    X, y = two_classes
    omega = gram("rbf", X, X)
    model = MAMClassifier(threshold=threshold, **KERNELS["rbf"]).fit(X, y)
    priors = np.bincount(y) / len(y)
    sign = np.where(y == 1, 1, -1)
    lam = np.sqrt(sign @ omega @ sign) / len(y)
    scores = []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        a = np.zeros(len(y))
        for c, side in ((0, -1), (1, 1)):
            own = others & (y == c)
            a[own] = side * priors[c] / own.sum()
        scores.append(omega[i] @ a / lam)
    np.testing.assert_allclose(model.loo_decision_[:, 0] + model.threshold_[0], scores, atol=1e-10)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("settings", [{}, {"kernel": "linear"}, {"n_components": 50}])
def test_labels_without_sense_are_not_learned_by_leave_one_out(settings, class_weight):
    """At any width: a score that knows its own label would be right too often."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 10))
    y = (rng.uniform(size=300) < 0.45).astype(int)
    settings = {"gammas": 4.0 ** np.arange(-24, 3), "random_state": 0, **settings}
    model = MAMClassifier(class_weight=class_weight, **settings).fit(X, y)
    assert model.loo_scores_.max() < 0.62  # 0.55 by the larger class, and the best of 27


def test_wide_kernels_are_not_evaluated_by_the_prior_of_the_class(two_classes):
    """Nearly linear: leave-one-out is about as good as the linear kernel's on centred features."""
    X, y = two_classes
    X = X - X.mean(axis=0)
    wide = MAMClassifier(gamma=1e-4).fit(X, y)
    linear = MAMClassifier("linear").fit(X, y)
    assert wide.loo_scores_[0] >= linear.loo_scores_[0] - 0.05


def test_random_features_choose_a_width_that_they_can_distinguish_from_noise():
    X, y = make_classification(1500, 20, n_informative=10, random_state=0)
    exact = MAMClassifier(random_state=0).fit(X[:1000], y[:1000])
    near = MAMClassifier(n_components=200, random_state=0).fit(X[:1000], y[:1000])
    assert near.gamma_ < exact.gamma_
    assert near.score(X[1000:], y[1000:]) > 0.7
    assert near.loo_scores_.max() == pytest.approx(near.score(X[1000:], y[1000:]), abs=0.1)
    fixed = MAMClassifier(n_components=200, gamma=near.gamma_, random_state=0).fit(
        X[:1000], y[:1000]
    )
    np.testing.assert_allclose(fixed.coef_, near.coef_)


def test_small_batches_select_the_threshold_when_samples_have_grown_by_a_tenth(two_classes):
    X, y = two_classes
    model = MAMClassifier("linear").partial_fit(X[:50], y[:50], classes=[0, 1])
    threshold = model.threshold_
    model.partial_fit(X[50:53], y[50:53])
    assert model.threshold_ is threshold
    np.testing.assert_allclose(model.coef_, MAMClassifier("linear").fit(X[:53], y[:53]).coef_)
    model.partial_fit(X[53:], y[53:])
    np.testing.assert_allclose(model.threshold_, MAMClassifier("linear").fit(X, y).threshold_)


def test_leave_one_out_with_three_classes(three_classes):
    X, y = three_classes
    model = MAMClassifier(gamma=0.1, threshold=None).fit(X, y)
    expected = [
        MAMClassifier(gamma=0.1, threshold=None)
        .fit(np.delete(X, i, 0), np.delete(y, i))
        .decision_function(X[i : i + 1])[0]
        for i in range(len(y))
    ]
    np.testing.assert_allclose(model.loo_decision_, expected, atol=1e-10)


def test_the_width_is_the_one_with_the_best_leave_one_out_accuracy(two_classes):
    X, y = two_classes
    model = MAMClassifier().fit(X, y)
    one_by_one = [MAMClassifier(gamma=gamma).fit(X, y).loo_scores_[0] for gamma in model.gammas_]
    np.testing.assert_allclose(model.loo_scores_, one_by_one, atol=1e-12)
    best = np.flatnonzero(model.loo_scores_ >= model.loo_scores_.max() - 1e-12)
    assert model.gamma_ == model.gammas_[best[len(best) // 2]]
    right = (model.loo_decision_[:, 0] > 0) == (y == 1)
    assert model.loo_scores_.max() == pytest.approx(right.mean())


def test_the_widths_of_the_paper_can_be_set():
    data = load("ripley_train")
    widths = 1 / np.logspace(-2, 15, 18)
    model = MAMClassifier(gammas=widths).fit(data.data, data.target)
    assert model.gammas_.tolist() == sorted(widths)
    assert np.isfinite(model.loo_scores_).all()
    test = load("ripley_test")
    assert model.score(test.data, test.target) > 0.9


def test_the_threshold_is_optimal_on_leave_one_out_scores(two_classes):
    X, y = two_classes
    for threshold in ("accuracy", "balanced"):
        model = MAMClassifier(gamma=0.5, threshold=threshold).fit(X, y)
        scores = model.loo_decision_[:, 0] + model.threshold_[0]
        counts = np.full(len(y), 1 / len(y))
        if threshold == "balanced":
            counts = 0.5 / np.bincount(y)[y]
        tried = np.concatenate([[-np.inf], np.sort(scores)])
        best = max(counts[(scores > one) == (y == 1)].sum() for one in tried)
        assert model.loo_scores_[0] == pytest.approx(best)


def test_balanced_is_the_difference_of_the_class_means(two_classes):
    X, y = two_classes
    model = MAMClassifier("linear", class_weight="balanced", threshold=None).fit(X, y)
    difference = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    np.testing.assert_allclose(model.coef_[0], difference / np.linalg.norm(difference))
    assert model.lambda_ == pytest.approx(np.linalg.norm(difference) / 2)


def test_more_classes_maximise_the_average_of_the_own_score(three_classes):
    X, y = three_classes
    model = MAMClassifier("linear", threshold=None).fit(X, y)
    one_hot = np.eye(3)[y]
    assert np.linalg.norm(model.coef_) == pytest.approx(1)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-12)
    own = (model.decision_function(X) * one_hot).sum(axis=1).mean()
    assert own == pytest.approx(model.average_margin_)
    others = np.random.default_rng(0).normal(size=(2000, 3, X.shape[1]))
    others -= others.mean(axis=1, keepdims=True)
    others /= np.linalg.norm(others, axis=(1, 2), keepdims=True)
    assert np.einsum("ocd,nd,nc->o", others, X, one_hot).max() / len(X) <= own


@pytest.mark.parametrize("settings", [{"kernel": "linear"}, {"n_components": 50, "gamma": 0.5}])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_partial_fit_in_any_batches_is_a_fit(settings, class_weight, two_classes):
    X, y = two_classes
    settings = {"class_weight": class_weight, "random_state": 0, **settings}
    whole = MAMClassifier(**settings).fit(X, y)
    parts = MAMClassifier(**settings)
    for rows in (slice(0, 3), slice(3, 40), slice(40, 60)):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1])
    # Random features turn with the middle of the first batch; their products do not.
    np.testing.assert_allclose(
        parts.decision_function(X), whole.decision_function(X), rtol=1e-4, atol=1e-5
    )
    assert parts.n_seen_ == whole.n_seen_ == 60


def test_partial_fit_may_start_with_one_class():
    X = np.array([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.5], [-2.0, 0.0]])
    model = MAMClassifier("linear").partial_fit(X[:2], [1, 1], classes=[0, 1])
    assert model.predict(X[:2]).tolist() == [1, 1]
    model.partial_fit(X[2:], [0, 0])
    assert model.predict(X).tolist() == [1, 1, 0, 0]


def test_sparse_rows_give_what_dense_rows_give(two_classes):
    X, y = two_classes
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    for settings in ({"kernel": "linear"}, {"n_components": 40, "random_state": 0}):
        dense = MAMClassifier(**settings).fit(X, y)
        sparse = MAMClassifier(**settings).fit(csr_matrix(X), y)
        np.testing.assert_allclose(
            sparse.decision_function(csr_matrix(X)), dense.decision_function(X), atol=1e-5
        )


def test_random_features_come_near_the_kernel(two_classes):
    X, y = two_classes
    exact = MAMClassifier(gamma=0.2).fit(X, y)
    near = MAMClassifier(gamma=0.2, n_components=4000, random_state=0).fit(X, y)
    gap = near.decision_function(X) - exact.decision_function(X)
    assert np.abs(gap).max() < 0.15


def test_threads_change_nothing():
    X, y = make_classification(1100, 5, random_state=0)
    one, two = (MAMClassifier(n_jobs=n).fit(X, y) for n in (1, 2))
    assert np.array_equal(one.loo_decision_, two.loo_decision_)
    assert np.array_equal(one.decision_function(X), two.decision_function(X))
    one, two = (MAMClassifier(n_components=20, random_state=0, n_jobs=n).fit(X, y) for n in (1, 2))
    assert np.array_equal(one.coef_, two.coef_)


def test_float32_is_kept_and_near(two_classes):
    X, y = two_classes
    narrow = X.astype(np.float32)
    wide = MAMClassifier(gamma=0.5).fit(X, y).decision_function(X)
    assert (
        np.abs(MAMClassifier(gamma=0.5).fit(narrow, y).decision_function(narrow) - wide).max()
        < 1e-4
    )


def test_wide_kernels_are_not_blurred_by_float32(two_classes):
    """Values that differ by a millionth: in float32 the order of the scores would be noise."""
    narrow = two_classes[0].astype(np.float32)
    y = two_classes[1]
    settings = {"gamma": 1e-6, "class_weight": "balanced"}
    model = MAMClassifier(**settings).fit(narrow, y)
    exact = MAMClassifier(**settings).fit(narrow.astype(float), y)
    np.testing.assert_allclose(
        model.decision_function(narrow), exact.decision_function(narrow.astype(float)), rtol=1e-6
    )


def test_another_kernel_leaves_nothing_of_the_one_before(two_classes):
    X, y = two_classes
    model = MAMClassifier("linear").fit(X, y)
    model.set_params(kernel="rbf").fit(X, y)
    assert not hasattr(model, "coef_")
    model.set_params(kernel="linear").partial_fit(X, y, classes=[0, 1])
    assert model.n_seen_ == len(y)
    expected = MAMClassifier("linear").fit(X, y).decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), expected)


def test_weights_of_0_leave_samples_out(two_classes):
    X, y = two_classes
    weights = (np.arange(len(y)) % 3 > 0).astype(float)
    kept = weights > 0
    some = MAMClassifier().fit(X[kept], y[kept])
    weighted = MAMClassifier().fit(X, y, weights)
    np.testing.assert_allclose(weighted.decision_function(X), some.decision_function(X))


def test_strings_and_data_frames(two_classes):
    X, y = two_classes
    names = np.array(["ham", "spam"])[y]
    table = pd.DataFrame(X, columns=list("abcd"))
    model = MAMClassifier().fit(table, names)
    assert set(model.predict(table)) <= {"ham", "spam"}
    assert model.feature_names_in_.tolist() == list("abcd")


def test_constant_features_are_of_no_use_and_do_no_harm(two_classes):
    X, y = two_classes
    wider = np.column_stack([X, np.full(len(X), 7.0)])
    a, b = MAMClassifier(gamma=0.5).fit(X, y), MAMClassifier(gamma=0.5).fit(wider, y)
    np.testing.assert_allclose(b.decision_function(wider), a.decision_function(X), atol=1e-10)
    constant = MAMClassifier().fit(np.ones((6, 2)), [0, 0, 0, 0, 1, 1])
    assert set(constant.predict(np.ones((3, 2)))) == {0}


def test_no_average_margin_is_a_warning_and_has_predictions():
    X = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    y = np.array([1, 1, 0, 0])
    with pytest.warns(UserWarning, match="MAMClassifier"):
        model = MAMClassifier("linear").fit(X, y)
    assert model.lambda_ == 0
    assert model.decision_function(X).tolist() == (-model.threshold_[0] * np.ones(4)).tolist()
    # The kernel that sees the product of the two features has no such trouble.
    assert MAMClassifier("poly", gamma=1.0, degree=2, threshold=None).fit(X, y).score(X, y) == 1


@pytest.mark.parametrize("gamma", [1e-300, 1e-15, 1e15, 1e300])
def test_huge_and_tiny_widths_are_finite(gamma, two_classes):
    X, y = two_classes
    for class_weight in (None, "balanced"):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*MAMClassifier", UserWarning)
            model = MAMClassifier(gamma=gamma, class_weight=class_weight).fit(X, y)
        far = np.vstack([X, np.full((1, 4), 1e6)])
        assert np.isfinite(model.decision_function(far)).all()
        assert set(model.predict(far)) <= {0, 1}


def test_kernel_values_beyond_all_numbers_are_refused(two_classes):
    X, y = two_classes
    with pytest.raises(ValueError, match=r"\bgamma\b"):
        MAMClassifier("poly", gamma=1e300).fit(X, y)


def test_what_was_learned_does_not_change_with_the_callers_array(two_classes):
    X, y = two_classes
    for settings in ({"gamma": 0.5}, {"kernel": "linear"}):
        buffer = X.copy()
        model = MAMClassifier(**settings).fit(buffer, y)
        before = model.decision_function(X)
        buffer[:] = 0
        assert np.array_equal(model.decision_function(X), before)
        if "kernel" in settings:
            again = MAMClassifier(**settings).fit(X, y).partial_fit(X, y)
            np.testing.assert_allclose(model.partial_fit(X, y).threshold_, again.threshold_)


def test_where_every_kernel_value_is_0_the_larger_class_is_predicted(two_classes):
    X, y = two_classes
    model = MAMClassifier(gamma=1e6).fit(X, y)
    assert model.predict(np.full((2, 4), 50.0)).tolist() == [0, 0]


def test_a_kernel_that_is_not_positive_definite_still_scores(two_classes):
    X, y = two_classes

    def indefinite(Z, X):
        return np.tanh(Z @ X.T - 1)

    assert np.linalg.eigvalsh(indefinite(X, X)).min() < -0.1
    model = MAMClassifier(indefinite, threshold=None).fit(X, y)
    assert model.gamma_ is None
    sums = indefinite(X, X) @ np.where(y == 1, 1.0, -1.0)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores / scores[0], sums / sums[0])
    with pytest.raises(ValueError, match=r"\bkernel\b"):
        MAMClassifier(lambda Z, X: -rbf_kernel(Z, X)).fit(X, y)


@pytest.mark.parametrize("unit", [1e-200, 1e-30, 1e30, 1e160])
@pytest.mark.parametrize("settings", [{}, {"kernel": "linear"}, {"n_components": 20}])
def test_only_ratios_of_weights_matter(settings, unit, two_classes):
    X, y = two_classes
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    one, other = (
        MAMClassifier(random_state=0, **settings).fit(X, y, weights * u).decision_function(X)
        for u in (1.0, unit)
    )
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("unit", [1e-21, 1e-8, 1e8, 1e18])
def test_the_unit_of_the_features_does_not_matter(unit, two_classes):
    X, y = two_classes
    for dtype in (np.float64, np.float32):
        plain, scaled = X.astype(dtype), (X * unit).astype(dtype)
        a = MAMClassifier(gamma=0.5).fit(plain, y)
        b = MAMClassifier(gamma=0.5 / unit**2).fit(scaled, y)
        np.testing.assert_allclose(
            b.decision_function(scaled), a.decision_function(plain), atol=1e-4
        )
        chosen = MAMClassifier().fit(scaled, y)
        right = (chosen.decision_function(scaled) > 0) == (y == 1)
        assert right.mean() > 0.8


def test_random_features_far_from_0_are_those_near_it(two_classes):
    X, y = two_classes
    near, far = (
        MAMClassifier(n_components=200, gamma=0.2, random_state=0).fit(X + shift, y).lambda_
        for shift in (0.0, 1e7)
    )
    assert far == pytest.approx(near, rel=1e-3)


def test_a_rare_class_is_among_the_samples_that_choose_the_width(monkeypatch):
    monkeypatch.setattr("margrave.mam._classifier.ROWS_FOR_WIDTHS", 100)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = np.zeros(3000, dtype=int)
    y[:12] = 1
    X[:12] += 6
    model = MAMClassifier(n_components=100, threshold="balanced", random_state=0).fit(X, y)
    assert len(np.unique(model.loo_scores_)) > 1
    assert model.score(X, y) > 0.99


def test_a_threshold_with_all_on_one_side_is_near_the_scores():
    X = np.random.default_rng(0).normal(size=(60, 2)) * 1e-6
    y = np.zeros(60, dtype=int)
    y[:3] = 1
    model = MAMClassifier("linear").fit(X, y)
    assert set(model.predict(X)) == {0}
    assert np.abs(model.threshold_[0]) < 1e-4


def test_predictions_are_by_what_was_fitted(two_classes):
    X, y = two_classes
    model = MAMClassifier(gamma=0.5).fit(X, y)
    before = model.decision_function(X)
    assert np.array_equal(model.set_params(n_components=10).decision_function(X), before)


@pytest.mark.parametrize("settings", [{"kernel": "linear"}, {"n_components": 20}])
def test_streams_can_be_saved_and_continued(settings, two_classes):
    X, y = two_classes
    model = MAMClassifier(random_state=0, **settings).fit(X[:40], y[:40])
    packed = skops.io.dumps(model)
    unknown = skops.io.get_untrusted_types(data=packed)
    assert all(name.startswith("margrave.mam.") for name in unknown)
    again = skops.io.loads(packed, trusted=unknown)
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    for one in (model, again):
        one.partial_fit(X[40:], y[40:])
    assert np.array_equal(again.decision_function(X), model.decision_function(X))


def test_a_clone_is_not_fitted_and_has_no_partial_fit_with_a_kernel():
    assert not hasattr(clone(MAMClassifier()), "partial_fit")
    assert hasattr(MAMClassifier("linear"), "partial_fit")
    assert hasattr(MAMClassifier(n_components=10), "partial_fit")


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"kernel": "cosine"}, r"\bkernel\b.*'cosine'"),
        ({"degree": 2.5}, r"\bdegree\b"),
        ({"gamma": -1.0}, r"\bgamma\b"),
        ({"gamma": "auto"}, r"\bgamma\b"),
        ({"gammas": [1.0, 0.0]}, r"\bgammas\b"),
        ({"threshold": 0.5}, r"\bthreshold\b"),
        ({"class_weight": "even"}, "class_weight"),
        ({"kernel": "poly", "n_components": 10}, "n_components"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(settings, match, two_classes):
    with pytest.raises(ValueError, match=match):
        MAMClassifier(**settings).fit(*two_classes)


def test_data_that_makes_no_sense_is_refused(two_classes):
    X, y = two_classes
    with pytest.raises(ValueError, match=r"\by\b.*\b3\b"):
        MAMClassifier().fit(X, np.full(len(y), 3))
    with pytest.raises(ValueError, match=r"\bfit\b.*sample_weight"):
        MAMClassifier().fit(X, y, y.astype(float))
    with pytest.raises(ValueError, match=r"\bX\b.*NaN"):
        MAMClassifier().fit(np.where(X > 1, np.nan, X), y)
    with pytest.raises(TypeError, match=r"\bkernel\b.*'rbf'"):
        MAMClassifier().fit(csr_matrix(X), y)
    with pytest.raises(ValueError, match=r"\bclasses\b"):
        MAMClassifier("linear").partial_fit(X, y)
    with pytest.raises(ValueError, match=r"\bclasses\b.*\[0, 1, 2\]"):
        MAMClassifier("linear").partial_fit(X, y, [0, 1]).partial_fit(X, y, [0, 1, 2])
    with pytest.raises(ValueError, match=r"\bclasses\b.*\[0\]"):
        MAMClassifier("linear").partial_fit(X, np.zeros(len(y)), classes=[0])
    nobody = MAMClassifier("linear", class_weight={0: 0.0, 1: 1.0})
    with pytest.raises(ValueError, match=r"partial_fit.*sample_weight.*class_weight"):
        nobody.partial_fit(X[y == 0], y[y == 0], classes=[0, 1])
    with pytest.raises(ValueError, match=r"class_weight.*\b5\b"):
        MAMClassifier(class_weight={0: 1, 5: 2}).fit(X, y)
