"""The semi-parametric classifier against brute force, and against fits without a sample."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)

from margrave.mam import MAMClassifier

GAMMA = 0.5
LINE = PolynomialFeatures(1, include_bias=False)


@pytest.fixture(scope="module")
def samples():
    """A line in the first feature, and a disc with the other class in it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) * 1.5
    y = (X[:, 0] + rng.normal(size=40) > 0.3).astype(int)
    disc = np.linalg.norm(X - [1.5, 0], axis=1) < 0.8
    return X, np.where(disc, 0, y)


@pytest.fixture(scope="module", params=[False, True], ids=["equal", "weighted"])
def weights(request):
    return np.random.default_rng(1).uniform(0.2, 3, 40) if request.param else np.ones(40)


def signs(y):
    return np.where(y == 1, 1.0, -1.0)


def columns(X):
    return np.column_stack([np.ones(len(X)), X])


def residuals(P, y, s):
    """Residuals of weighted least squares, by the normal equations."""
    return y - P @ np.linalg.solve(P.T @ (s[:, None] * P), P.T @ (s * y))


def kernel_scores(X, y, s, Z):
    """The unit direction Σ s_i r_i φ(x_i) at Z, and its length divided by Σ s."""
    c = s * residuals(columns(X), y, s)
    length = np.sqrt(c @ rbf_kernel(X, gamma=GAMMA) @ c)
    return rbf_kernel(Z, X, gamma=GAMMA) @ c / length, length / s.sum()


def test_no_unit_direction_has_a_larger_average_margin_with_the_residuals(samples):
    """The maximum over w and a free β of (1/n) Σ r_i (w·φ(x_i) + β·p(x_i)), by a solver."""
    X, y = samples
    values, vectors = np.linalg.eigh(rbf_kernel(X, gamma=GAMMA))
    phi = vectors * np.sqrt(np.maximum(values, 0))  # rows with these products
    P, one = columns(X), np.ones(len(X))
    r = residuals(P, signs(y), one)
    n_features = phi.shape[1]

    def margin(theta):
        return -(r @ (phi @ theta[:n_features] + P @ theta[n_features:])) / len(X)

    found = minimize(
        margin,
        np.full(n_features + P.shape[1], 0.01),
        constraints={
            "type": "ineq",
            "fun": lambda theta: 1 - theta[:n_features] @ theta[:n_features],
        },
        method="SLSQP",
    )
    model = MAMClassifier(gamma=GAMMA, parametric=LINE).fit(X, y)
    assert model.average_margin_ == pytest.approx(-found.fun, rel=1e-4)
    direction = phi.T @ model.dual_coef_[:, 0]
    w = found.x[:n_features]
    cosine = direction @ w / np.linalg.norm(direction) / np.linalg.norm(w)
    assert cosine == pytest.approx(1, abs=1e-4)


def test_it_is_the_limit_of_the_semi_parametric_ls_svm(samples, weights):
    """min Σ s (y − w·φ − β·p)² + μ‖w‖²: the dual is (Ω + μ/s) α + P β = y with Pᵀα = 0."""
    X, y = samples
    model = MAMClassifier(gamma=GAMMA, parametric=LINE).fit(X, y, weights)
    K, P, mu = rbf_kernel(X, gamma=GAMMA), columns(X), 1e7
    system = np.block([[K + np.diag(mu / weights), P], [P.T, np.zeros((3, 3))]])
    alpha = np.linalg.solve(system, np.append(signs(y), np.zeros(3)))[: len(X)]
    dual = model.dual_coef_[:, 0]
    np.testing.assert_allclose(
        dual / np.abs(dual).max(), alpha / np.abs(alpha).max(), rtol=0, atol=1e-5
    )


def test_scores_and_coefficients_are_those_of_their_definition(samples, weights):
    X, y = samples
    model = MAMClassifier(gamma=GAMMA, parametric=LINE).fit(X, y, weights)
    others = [np.delete(np.arange(40), i) for i in range(40)]
    left_out = np.array(
        [
            kernel_scores(X[rest], signs(y)[rest], weights[rest], X[[i]])[0][0]
            for i, rest in enumerate(others)
        ]
    )
    design = np.column_stack([left_out, columns(X)])

    def solve(rows):
        A, s = design[rows], weights[rows]
        return np.linalg.solve(A.T @ (s[:, None] * A), A.T @ (s * signs(y)[rows]))

    whole = solve(np.arange(40))
    assert whole[0] > 0
    np.testing.assert_allclose(model.parametric_coef_, whole[1:], rtol=1e-9, atol=1e-12)
    Z = X + 0.3
    g, length = kernel_scores(X, signs(y), weights, Z)
    expected = whole[0] * g + columns(Z) @ whole[1:] - model.threshold_
    np.testing.assert_allclose(model.decision_function(Z), expected, rtol=1e-9, atol=1e-12)
    assert model.average_margin_ == pytest.approx(length)
    loo = np.array([design[i] @ solve(rest) for i, rest in enumerate(others)])
    np.testing.assert_allclose(
        model.loo_decision_[:, 0], loo - model.threshold_, rtol=1e-8, atol=1e-10
    )
    right = (model.loo_decision_[:, 0] > 0) == (y == 1)
    assert model.loo_scores_.max() == pytest.approx(weights[right].sum() / weights.sum())


def test_an_intercept_alone_gives_the_difference_of_the_class_means(samples):
    X, y = samples
    nothing = FunctionTransformer(lambda X: np.empty((len(X), 0)))
    model = MAMClassifier(gamma=GAMMA, parametric=nothing).fit(X, y)
    means = MAMClassifier(gamma=GAMMA, class_weight="balanced").fit(X, y)
    ratios = model.dual_coef_ / means.dual_coef_
    np.testing.assert_allclose(ratios, np.full((40, 1), ratios[0, 0]), rtol=1e-9)


def test_far_from_the_samples_the_parametric_part_decides(samples):
    X, y = samples
    far = [[-100.0, 0.0], [100.0, 0.0]]
    model = MAMClassifier(gamma=GAMMA, parametric=LINE).fit(X, y)
    expected = columns(np.array(far)) @ model.parametric_coef_ - model.threshold_
    np.testing.assert_allclose(model.decision_function(far), expected)
    assert model.predict(far).tolist() == [0, 1]


@pytest.mark.parametrize("seed", range(5))
def test_a_kernel_part_with_a_negative_coefficient_is_left_out(seed):
    """Labels at random: some leave-one-out scores have the wrong sign on average."""
    rng = np.random.default_rng(seed)
    X, y, one = rng.normal(size=(20, 2)), rng.permutation(np.arange(20) % 2), np.ones(20)
    left_out = [
        kernel_scores(np.delete(X, i, 0), np.delete(signs(y), i), one[1:], X[[i]])[0][0]
        for i in range(20)
    ]
    both = np.linalg.lstsq(np.column_stack([left_out, columns(X)]), signs(y), rcond=None)[0]
    alone = np.linalg.lstsq(columns(X), signs(y), rcond=None)[0]
    model = MAMClassifier(gamma=GAMMA, parametric=LINE).fit(X, y)
    assert model.dual_coef_.any() == (both[0] > 0)
    np.testing.assert_allclose(model.parametric_coef_, both[1:] if both[0] > 0 else alone)


def test_labels_that_least_squares_explains_leave_nothing_to_the_kernel():
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    model = MAMClassifier(gamma=1.0, parametric=LINE).fit(X, [0, 0, 1, 1])
    np.testing.assert_allclose(model.dual_coef_, 0, atol=1e-12)
    np.testing.assert_allclose(model.parametric_coef_, [-1, 2], atol=1e-12)
    assert model.average_margin_ == 0
    assert model.predict([[0.0], [1.0]]).tolist() == [0, 1]


def test_columns_that_depend_on_each_other_change_nothing(samples):
    X, y = samples
    once = MAMClassifier(gamma=GAMMA, parametric=LINE).fit(X, y)
    twice = FunctionTransformer(lambda X: np.hstack([np.ones((len(X), 1)), X, 2 * X]))
    model = MAMClassifier(gamma=GAMMA, parametric=twice).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), once.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("label", [0, 1])
def test_a_feature_that_only_one_sample_has_does_not_reveal_its_label(samples, weights, label):
    """Without the sample its column is 0, and so is the coefficient."""
    X, y = samples
    X, y = np.column_stack([X, np.arange(40) == 7]), np.where(np.arange(40) == 7, label, y)
    model = MAMClassifier(gamma=GAMMA, parametric=LINE).fit(X, y, weights)
    rest = np.arange(40) != 7
    without = MAMClassifier(gamma=GAMMA, parametric=LINE).fit(X[rest], y[rest], weights[rest])
    assert without.dual_coef_.any()
    expected = without.decision_function(X[[7]]) + without.threshold_
    np.testing.assert_allclose(model.loo_decision_[7] + model.threshold_, expected)


def test_as_many_independent_features_as_samples_are_refused():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 5)), rng.integers(2, size=30)
    with pytest.raises(ValueError, match="parametric"):
        MAMClassifier(parametric=PolynomialFeatures(3)).fit(X, y)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_units_do_not_matter(samples, unit):
    X, y = samples
    model = MAMClassifier(gamma=GAMMA, parametric=LINE).fit(X, y)
    same = MAMClassifier(gamma=GAMMA / unit**2, parametric=LINE).fit(X * unit, y)
    assert model.dual_coef_.any()
    np.testing.assert_allclose(same.dual_coef_, model.dual_coef_, rtol=1e-6)
    np.testing.assert_allclose(same.decision_function(X * unit), model.decision_function(X))


def test_a_kernel_that_is_0_between_all_samples_is_left_out(samples):
    X, y = samples
    model = MAMClassifier(gamma=1e9, parametric=LINE).fit(X, y)
    assert not model.dual_coef_.any()


@pytest.mark.parametrize("class_weight", ["balanced", {0: 2.0, 1: 0.5}])
def test_class_weights_are_sample_weights(samples, class_weight):
    X, y = samples
    factors = 1 / np.bincount(y) if class_weight == "balanced" else np.array([2.0, 0.5])
    parameters = {"gamma": GAMMA, "parametric": LINE, "threshold": "balanced"}
    model = MAMClassifier(class_weight=class_weight, **parameters).fit(X, y)
    same = MAMClassifier(**parameters).fit(X, y, factors[y])
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(X), atol=1e-9)


def test_samples_of_weight_0_are_left_out(samples):
    X, y = samples
    s = np.where(np.arange(40) % 5, 1.0, 0.0)
    model = MAMClassifier(parametric=LINE).fit(X, y, s)
    same = MAMClassifier(parametric=LINE).fit(X[s > 0], y[s > 0])
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(X))


def test_widths_thresholds_and_labels_are_those_of_other_fits(samples):
    X, y = samples
    labels = np.array(["no", "yes"])[y]
    model = MAMClassifier(parametric=LINE, threshold=None).fit(X, labels)
    assert len(model.loo_scores_) == len(model.gammas_) == 15
    assert model.gamma_ in model.gammas_[model.loo_scores_ == model.loo_scores_.max()]
    assert model.threshold_ == [0]
    assert set(model.predict(X)) <= {"no", "yes"}
    again = clone(model).set_params(parametric=None).fit(X, labels)
    assert not hasattr(again, "parametric_")
    assert not hasattr(model.set_params(parametric=None).fit(X, labels), "parametric_coef_")


def test_transformers_to_sparse_features():
    grades = np.array([[1.0], [1.0], [2.0], [3.0], [3.0], [2.0]])

    def is_equal(A, B):
        return (A == B.T).astype(float)

    model = MAMClassifier(is_equal, parametric=OneHotEncoder()).fit(grades, [0, 0, 0, 1, 1, 1])
    assert model.predict([[1.0], [3.0]]).tolist() == [0, 1]


@pytest.mark.parametrize(
    "transformer", [LinearDiscriminantAnalysis(), SelectKBest(k=1), TargetEncoder()], ids=repr
)
def test_transformers_do_not_get_the_labels(samples, transformer):
    with pytest.raises((TypeError, ValueError), match=r"\by\b"):
        MAMClassifier(parametric=transformer).fit(*samples)


def test_in_a_pipeline_its_parameters_have_names(samples):
    X, y = samples
    model = make_pipeline(StandardScaler(), MAMClassifier(parametric=PolynomialFeatures(1)))
    model.set_params(mamclassifier__parametric__degree=2).fit(X, y)
    assert len(model[-1].parametric_coef_) == 1 + 6


def test_there_is_no_guarantee_but_held_out_counts(samples):
    X, y = samples
    model = MAMClassifier(gamma=GAMMA, parametric=LINE).fit(X, y)
    for transform in (None, "clip"):
        found = model.certainty(X, transform=transform, held_out=(X, y))
        assert found.vacuous.all()
    assert (found.held_out < 1).any()
    assert model.rademacher_bound() == pytest.approx(2 / np.sqrt(40))
    with pytest.raises(ValueError, match="parametric"):
        model.margin_bound()


@pytest.mark.parametrize(
    "parameters",
    [
        {"parametric": "line"},
        {"parametric": LINE, "kernel": "linear"},
        {"parametric": LINE, "n_components": 10},
        {"parametric": LINE, "kernel": "precomputed"},
    ],
    ids=str,
)
def test_what_it_cannot_be_combined_with(samples, parameters):
    with pytest.raises(ValueError, match="parametric"):
        MAMClassifier(**parameters).fit(*samples)


def test_bad_features_and_more_classes_are_refused(samples):
    X, y = samples
    with pytest.raises(ValueError, match=r"parametric.*finite"):
        MAMClassifier(parametric=FunctionTransformer(lambda X: X * np.nan)).fit(X, y)
    with pytest.raises(ValueError, match=r"parametric.*two classes"):
        MAMClassifier(parametric=LINE).fit(X, np.arange(40) % 3)
