"""The solver: scikit-learn's solution, F's own optimality, its derivatives, and hard data."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from tests.examples import few

from margrave.martingale import _newton
from margrave.martingale._newton import LogisticProblem

TIGHT = 1e-15


def made(k, n=150, d=5, seed=0, **more):
    """Overlapping classes on standardised columns of unequal use, and weights of the samples."""
    settings = {"n_informative": 4, "n_redundant": 0, "n_clusters_per_class": 1} | more
    X, y = make_classification(
        n, d, n_classes=k, flip_y=0.1, class_sep=0.6, random_state=seed, **settings
    )
    columns = np.column_stack([StandardScaler().fit_transform(X), np.ones(n)])
    return LogisticProblem(columns, y, k), np.random.default_rng(seed).uniform(0.2, 3, n)


def penalties(*logs):
    return np.append(np.exp(logs), 0.0)


def objective(problem, penalty, weights, w):
    """F by its definition, with a score for every class."""
    scores = problem.Z @ w.T
    if problem.k == 2:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    own = scores[np.arange(len(scores)), problem.codes]
    losses = np.log(np.exp(scores).sum(axis=1)) - own
    return 0.5 * (penalty * w**2).sum() + weights @ losses


def free(problem):
    """Which weights are free: all but the first intercept of more than two classes."""
    there = np.ones((problem.n_rows, problem.Z.shape[1]), dtype=bool)
    there[0, -1] = problem.k == 2
    return there


def differences(function, w, h=1e-5):
    """Central finite differences by each entry of w; the entries come first."""
    rows = []
    for place in np.ndindex(w.shape):
        step = np.zeros_like(w)
        step[place] = h
        rows.append((function(w + step) - function(w - step)) / (2 * h))
    return np.array(rows).reshape(*w.shape, *np.shape(rows[0]))


def gradient(problem, penalty, weights, w):
    """Of F, from the gradients by class that hypergradients use."""
    return problem.gradients_by_class(w, weights).sum(axis=0) + penalty * w


def hessian(problem, penalty, weights, w):
    return problem._hessian(problem.residuals(problem.Z @ w.T)[1], penalty, weights)


def decrement(problem, penalty, weights, w):
    """Newton's λ² at w."""
    g = gradient(problem, penalty, weights, w).ravel()
    return g @ np.linalg.solve(hessian(problem, penalty, weights, w), g)


@pytest.fixture
def lbfgs(monkeypatch):
    monkeypatch.setattr(_newton, "NEWTON_SIZE", 0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_the_solution_is_that_of_scikit_learn(k, weighted):
    problem, weights = made(k)
    weights = weights if weighted else np.ones(len(weights))
    w = problem.solve(penalties(*[0] * 5), weights, None, TIGHT, 100).w
    theirs = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-12)
    theirs.fit(problem.Z[:, :-1], problem.codes, weights)
    assert w.shape == (1 if k == 2 else k, 6)
    np.testing.assert_allclose(w[:, :-1], theirs.coef_, rtol=1e-6, atol=1e-8)
    shift = 0.0 if k == 2 else w[0, -1] - theirs.intercept_[0]  # theirs add up to 0
    np.testing.assert_allclose(w[:, -1] - shift, theirs.intercept_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_at_the_solution_f_does_not_change(k):
    problem, weights = made(k)
    penalty = penalties(-2, -1, 0, 1, 2)
    solution = problem.solve(penalty, weights, None, TIGHT, 100)
    assert solution.converged
    slopes = differences(partial(objective, problem, penalty, weights), solution.w, 1e-4)
    # Also by the pinned intercept: a shift of all intercepts changes nothing.
    np.testing.assert_allclose(slopes, 0, atol=1e-6)
    assert np.abs(solution.w[free(problem)]).min() > 1e-3


@few(15)
@given(st.integers(0, 1000), st.sampled_from([2, 3]), st.floats(-4, 4), st.floats(0.01, 1))
def test_no_weights_nearby_have_a_smaller_f(seed, k, log_penalty, size):
    problem, weights = made(k, n=40, seed=seed)
    penalty = penalties(*[log_penalty] * 5)
    w = problem.solve(penalty, weights, None, 1e-12, 100).w
    step = np.random.default_rng(seed).normal(size=w.shape) * size
    best = objective(problem, penalty, weights, w)
    assert best < objective(problem, penalty, weights, w + step)
    assert best <= objective(problem, penalty, weights, np.zeros_like(w))


@pytest.mark.parametrize("k", [2, 3])
def test_the_first_intercept_of_more_than_two_classes_is_pinned(k):
    problem, weights = made(k)
    w = problem.solve(penalties(*[0] * 5), weights, None, TIGHT, 100).w
    assert (w[0, -1] == 0) == (k == 3)


@pytest.mark.parametrize("k", [2, 3])
def test_losses_and_residuals_by_hand(k):
    if k == 2:
        problem = LogisticProblem(np.ones((2, 1)), np.array([0, 1]), 2)
        scores, p = np.log([[3.0], [4.0]]), np.array([[3 / 4], [4 / 5]])
        left, own = p - [[0], [1]], [1 / 4, 4 / 5]
    else:
        problem = LogisticProblem(np.ones((2, 1)), np.array([0, 2]), 3)
        scores = np.log([[1.0, 3, 4], [2, 2, 6]])
        p = np.array([[1, 3, 4], [1.6, 1.6, 4.8]]) / 8
        left, own = p - [[1, 0, 0], [0, 0, 1]], [1 / 8, 6 / 10]
    residuals, probabilities = problem.residuals(scores)
    np.testing.assert_allclose(probabilities, p)
    np.testing.assert_allclose(residuals, left)
    np.testing.assert_allclose(problem.losses(scores), -np.log(own))


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_gradients_by_class_add_up_to_that_of_the_loss(k):
    problem, weights = made(k)
    w = np.random.default_rng(1).normal(size=(problem.n_rows, 6)) * free(problem)
    by_class = problem.gradients_by_class(w, weights)
    assert by_class.shape == (k, *w.shape)
    for c in range(k):
        only = partial(objective, problem, np.zeros(6), weights * (problem.codes == c))
        np.testing.assert_allclose(by_class[c], differences(only, w) * free(problem), atol=1e-6)


@pytest.mark.parametrize("rows_at_once", [4096, 7])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_hessian_is_the_derivative_of_the_gradient(k, rows_at_once, monkeypatch):
    monkeypatch.setattr(_newton, "_ROWS_AT_ONCE", rows_at_once)
    problem, weights = made(k)
    penalty = penalties(-2, -1, 0, 1, 2)
    w = np.random.default_rng(1).normal(size=(problem.n_rows, 6)) * free(problem)
    H = hessian(problem, penalty, weights, w)
    expected = differences(partial(gradient, problem, penalty, weights), w).reshape(H.shape)
    moved = free(problem).ravel()
    np.testing.assert_allclose(H[moved][:, moved], expected[moved][:, moved], rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(H, H.T, atol=1e-13)
    np.testing.assert_array_equal(H[~moved], np.eye(len(H))[~moved])  # the pinned one is separate


@pytest.mark.parametrize("k", [2, 3])
def test_the_inverse_undoes_the_hessian(k):
    problem, weights = made(k)
    penalty = penalties(-2, -1, 0, 1, 2)
    solution = problem.solve(penalty, weights, None, TIGHT, 100)
    v = np.random.default_rng(1).normal(size=solution.w.shape)
    kept = v.copy()
    u = problem.solve_hessian(solution, penalty, weights, v)
    back = (hessian(problem, penalty, weights, solution.w) @ u.ravel()).reshape(v.shape)
    np.testing.assert_allclose(back, v * free(problem), atol=1e-8)
    np.testing.assert_array_equal(v, kept)  # the caller's array is left alone


@pytest.mark.parametrize("k", [2, 3])
def test_a_start_near_the_solution_needs_fewer_steps_and_is_left_alone(k):
    problem, weights = made(k)
    penalty = penalties(*[0] * 5)
    cold = problem.solve(penalty, weights, None, 1e-7, 100)
    start = cold.w.copy()
    warm = problem.solve(penalty * 1.02, weights, start, 1e-7, 100)
    assert warm.n_iter < cold.n_iter
    np.testing.assert_array_equal(start, cold.w)
    cold = problem.solve(penalty * 1.02, weights, None, 1e-7, 100)
    np.testing.assert_allclose(warm.w, cold.w, atol=1e-5)


@pytest.mark.parametrize("k", [2, 3])
def test_too_few_steps_do_not_converge(k):
    problem, weights = made(k)
    few = problem.solve(penalties(*[0] * 5), weights, None, TIGHT, 2)
    assert (few.n_iter, few.converged) == (2, False)
    enough = problem.solve(penalties(*[0] * 5), weights, None, TIGHT, 100)
    assert enough.converged
    assert 2 < enough.n_iter < 20


def test_a_tolerance_below_the_rounding_error_stops():
    for seed in range(20):
        problem, weights = made(2 + seed % 2, seed=seed)
        found = problem.solve(penalties(*[0] * 5), weights, None, 1e-20, 100)
        assert found.converged
        assert found.n_iter < 20


# L-BFGS


@pytest.mark.usefixtures("lbfgs")
@pytest.mark.parametrize("k", [2, 3, 4])
def test_lbfgs_finds_what_newton_finds(k):
    problem, weights = made(k)
    penalty = penalties(-2, -1, 0, 1, 2)
    found = problem.solve(penalty, weights, None, 1e-14, 100)
    assert found.factor is None
    assert found.converged
    expected = problem._solve_newton(np.zeros_like(found.w), penalty, weights, 1e-13, 100)
    assert expected.factor is not None
    np.testing.assert_allclose(found.w, expected.w, atol=1e-5)


def test_the_number_of_weights_decides_between_newton_and_lbfgs(monkeypatch):
    problem, weights = made(3)  # 3 rows of 6
    monkeypatch.setattr(_newton, "NEWTON_SIZE", 18)
    assert problem.solve(penalties(*[0] * 5), weights, None, 1e-7, 100).factor is not None
    monkeypatch.setattr(_newton, "NEWTON_SIZE", 17)
    assert problem.solve(penalties(*[0] * 5), weights, None, 1e-7, 100).factor is None


@pytest.mark.usefixtures("lbfgs")
@pytest.mark.parametrize("log_penalty", [0, -6])
@pytest.mark.parametrize("k", [2, 3])
def test_lbfgs_is_within_the_tolerance_if_it_converged(k, log_penalty):
    problem, _ = made(k, n=200, d=100, n_informative=6)  # more weights than the data can settle
    weights, penalty = np.ones(200), penalties(*[log_penalty] * 100)
    found = problem.solve(penalty, weights, None, 1e-7, 100)
    assert found.converged
    left = decrement(problem, penalty, weights, found.w)
    assert left <= 1e-7 * weights.sum()


@pytest.mark.usefixtures("lbfgs")
@pytest.mark.parametrize("k", [2, 3])
def test_lbfgs_reports_too_few_steps(k):
    problem, weights = made(k, n=200, d=100, n_informative=6)
    few = problem.solve(penalties(*[-3] * 100), weights, None, 1e-14, 1)  # 20 of its own
    assert not few.converged


@pytest.mark.usefixtures("lbfgs")
@pytest.mark.parametrize(("tol", "allowed"), [(1e-7, 1e-3), (1e-14, 1e-6)])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_hypergradient_by_conjugate_gradients_is_that_by_the_factor(k, tol, allowed):
    problem, weights = made(k)
    penalty = penalties(-2, -1, 0, 1, 2)
    found = problem.solve(penalty, weights, None, tol, 100)
    exact = problem._solve_newton(np.zeros_like(found.w), penalty, weights, 1e-13, 100)
    dg_dw = np.random.default_rng(1).normal(size=found.w.shape)
    ours = np.concatenate(problem.hypergradient(found, penalty, weights, dg_dw))
    theirs = np.concatenate(problem.hypergradient(exact, penalty, weights, dg_dw))
    assert np.linalg.norm(ours - theirs) < allowed * np.linalg.norm(theirs)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_hypergradient_is_how_the_solution_moves(k):
    """For any linear function of the weights; `test_logistic` has curved ones."""
    problem, weights = made(k)
    logs, costs = np.array([-2.0, -1, 0, 1, 2]), np.linspace(-0.5, 0.5, k)
    dg_dw = np.random.default_rng(1).normal(size=(problem.n_rows, 6))

    def solved(theta):
        penalty, cost = penalties(*theta[:5]), weights * np.exp(theta[5:])[problem.codes]
        return problem.solve(penalty, cost, None, TIGHT, 100), penalty, cost

    theta = np.concatenate([logs, costs])
    by_column, by_class = problem.hypergradient(*solved(theta), dg_dw)
    assert by_column[-1] == 0
    expected = differences(lambda at: (solved(at)[0].w * dg_dw).sum(), theta, 1e-3)
    np.testing.assert_allclose(np.append(by_column[:-1], by_class), expected, rtol=1e-4, atol=1e-5)


# Hard data


@pytest.mark.parametrize("log_penalty", [0, -10, -40, -300])
@pytest.mark.parametrize("k", [2, 3])
def test_separable_data_stay_finite(k, log_penalty):
    codes = np.repeat(np.arange(k), 10)
    Z = np.column_stack([codes + np.linspace(-0.1, 0.1, 10 * k), np.ones(10 * k)])
    problem = LogisticProblem(Z, codes, k)
    found = problem.solve(penalties(log_penalty), np.ones(10 * k), None, 1e-7, 100)
    assert np.isfinite(found.w).all()
    scores = Z @ found.w.T
    predictions = (scores[:, 0] > 0) if k == 2 else scores.argmax(axis=1)
    if log_penalty < 0:
        np.testing.assert_array_equal(predictions, codes)
    hypergradient = problem.hypergradient(
        found, penalties(log_penalty), np.ones(10 * k), np.ones_like(found.w)
    )
    assert all(np.isfinite(part).all() for part in hypergradient)


@pytest.mark.parametrize("log_penalty", [0, -40])
@pytest.mark.parametrize("k", [2, 3])
def test_collinear_columns_split_the_weight_of_one(k, log_penalty):
    problem, weights = made(k)
    Z = problem.Z[:, [0, 0, 1, 5]]
    found = LogisticProblem(Z, problem.codes, k).solve(
        penalties(log_penalty, log_penalty, 0), weights, None, 1e-14, 100
    )
    # ½ p (w/2)² · 2 = ½ (p/2) w²: two equal columns are one with half the penalty.
    alone = LogisticProblem(problem.Z[:, [0, 1, 5]], problem.codes, k).solve(
        penalties(log_penalty - np.log(2), 0), weights, None, 1e-14, 100
    )
    np.testing.assert_allclose(
        problem.residuals(Z @ found.w.T)[1],
        problem.residuals(problem.Z[:, [0, 1, 5]] @ alone.w.T)[1],
        atol=1e-6,
    )
    if log_penalty == 0:  # else rounding decides the split between them
        np.testing.assert_allclose(found.w[:, 0], found.w[:, 1], atol=1e-8)


@pytest.mark.parametrize("k", [2, 3])
def test_a_constant_column_carries_nothing(k):
    problem, weights = made(k)
    without = problem.solve(penalties(*[0] * 5), weights, None, TIGHT, 100)
    Z = np.column_stack([np.zeros(len(weights)), problem.Z])
    found = LogisticProblem(Z, problem.codes, k).solve(
        penalties(*[0] * 6), weights, None, TIGHT, 100
    )
    np.testing.assert_array_equal(found.w[:, 0], 0)
    np.testing.assert_allclose(found.w[:, 1:], without.w, atol=1e-8)


def test_no_columns_leave_the_proportions_of_the_classes():
    problem = LogisticProblem(np.ones((6, 1)), np.array([0, 0, 0, 1, 1, 2]), 3)
    weights = np.array([1.0, 1, 1, 1, 1, 5])
    w = problem.solve(np.zeros(1), weights, None, TIGHT, 100).w
    np.testing.assert_allclose(w[:, 0], np.log([1, 2 / 3, 5 / 3]))


def test_numbers_that_cannot_be_fitted_raise():
    H = np.array([[1.0, 2], [2, 1]])  # not positive definite, and no rounding makes it so
    with pytest.raises(FloatingPointError, match="TunableLogistic"):
        _newton._cholesky(H)
