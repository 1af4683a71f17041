"""Rank-margin weights against all pairs in HiGHS, their own optimality, and bad input."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack
from sklearn.exceptions import ConvergenceWarning

from margrave import Scores
from margrave.fuse import _solvers, rank_margin_weights
from margrave.fuse._rank_weights import BINS_PER_TOL
from margrave.fuse._solvers import LEVEL
from margrave.fuse._tail import binned_tail
from margrave.pairs import CrucialPairs


def all_pairs_margin(F, y, nu):
    """The paper's program, a row for each pair; with slack for ν > 0."""
    P, N = F[y == 1], F[y == 0]
    rows = (P[:, None] - N[None]).reshape(-1, F.shape[1])
    m, K = rows.shape
    cost = np.concatenate([np.zeros(K), [-1.0]])
    A = csr_array(np.column_stack([-rows, np.ones(m)]))
    bounds = [(0, None)] * K + [(None, None)]
    if nu:
        cost = np.concatenate([cost, np.full(m, 1 / (nu * m))])
        A = hstack([A, -eye_array(m)])
        bounds += [(0, None)] * m
    simplex = np.zeros((1, len(cost)))
    simplex[0, :K] = 1
    solved = linprog(cost, A_ub=A, b_ub=np.zeros(m), A_eq=simplex, b_eq=[1], bounds=bounds)
    return -solved.fun


def made(n, K, seed=0):
    """Members of rising quality with a common error."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    signal = (2 * y - 1)[:, None] * np.linspace(0.3, 1.2, K)
    noise = 0.7 * rng.normal(size=(n, 1)) + rng.normal(size=(n, K))
    return np.tanh((signal + noise) / 2), y


problems = st.tuples(st.integers(2, 4), st.integers(2, 9)).flatmap(
    lambda shape: st.tuples(
        arrays(np.float64, (shape[1], shape[0]), elements=st.integers(-6, 6).map(lambda k: k / 6)),
        st.permutations([0, 1] + [k % 2 for k in range(shape[1] - 2)]).map(np.array),
    )
)


@pytest.mark.core
@given(problems, st.sampled_from([0.0, 0.05, 0.3, 0.7, 1.0]))
def test_the_gap_is_proven_and_the_optimum_is_that_of_all_pairs(problem, nu):
    F, y = problem
    if not (F.max(axis=0) > F.min(axis=0)).all():
        return  # constant members have tests of their own
    found = rank_margin_weights(F, y, nu, tol=1e-9)
    optimum = all_pairs_margin(F, y, nu)
    assert found.weights.min() >= 0
    assert found.weights.sum() == pytest.approx(1)
    assert found.margin <= optimum + 1e-7
    assert found.margin + found.gap >= optimum - 1e-7
    assert found.gap <= 1e-8


@pytest.mark.parametrize("nu", [0.0, 1e-4, 0.01, 0.05, 0.3, 0.9])
def test_the_optimum_of_all_pairs_on_sixty_samples(nu):
    F, y = made(60, 5)
    found = rank_margin_weights(F, y, nu, tol=1e-9)
    assert found.margin == pytest.approx(all_pairs_margin(F, y, nu), abs=1e-8)


@given(st.integers(0, 1000), st.sampled_from([0.0, 0.02, 0.2]), st.integers(2, 12))
def test_no_other_weights_do_better_than_the_gap_allows(seed, nu, K):
    F, y = made(80, K, seed)
    found = rank_margin_weights(F, y, nu)
    assert found.gap <= 1e-4
    for other in np.random.default_rng(seed).dirichlet(np.ones(K), size=20):
        margins = np.sort(((F @ other)[y == 1][:, None] - (F @ other)[y == 0]).ravel())
        worst = max(int(nu * len(margins)), 1)
        assert margins[:worst].mean() <= found.margin + found.gap + 1e-9


def test_worked_by_hand():
    """Two members, two samples each: the lines 0.6 - 0.8 w, 1.1 w - 0.7 and 0.1 - 0.9 w meet."""
    scores = [[0.9, 0.2], [-0.2, 0.6], [0.1, -0.7], [-0.8, 0.1]]
    found = rank_margin_weights(scores, [1, 1, 0, 0])
    # Negatives cross where 0.8 w - 0.7 = 0.1 - 0.9 w, at w = 8/17.
    assert found.weights == pytest.approx([8 / 17, 9 / 17])
    assert found.rho == pytest.approx(0.6 - 0.8 * 8 / 17 - (0.8 * 8 / 17 - 0.7))
    assert found.active.tolist() == [[1, 2], [1, 3]]
    assert found.n_active == 2


def test_hard_margin_is_the_smallest_margin_of_the_combination():
    F, y = made(500, 4)
    found = rank_margin_weights(F, y)
    pairs = CrucialPairs.of(F @ found.weights, y)
    assert found.rho == found.margin == pytest.approx(pairs.rank_margin, rel=1e-9)
    i, k = found.active[0]
    assert (y[i], y[k]) == (1, 0)
    assert F[i] @ found.weights - F[k] @ found.weights == pytest.approx(found.rho)


def test_nu_one_takes_the_member_with_the_largest_difference_of_class_means():
    F, y = made(300, 5)
    found = rank_margin_weights(F, y, nu=1)
    means = F[y == 1].mean(axis=0) - F[y == 0].mean(axis=0)
    assert found.weights.tolist() == (means == means.max()).astype(float).tolist()
    assert found.margin == pytest.approx(means.max())


def test_on_the_sphere_nu_one_is_the_difference_of_class_means():
    """Pelckmans et al.: the average-margin ranker on two classes is w ∝ μ⁺ - μ⁻.

    Its weights are ``Σ_i r_i x_i`` with ``r_i = Σ_j sign(y_i - y_j)``: n⁻ for a positive,
    -n⁺ for a negative; and no direction of length 1 has a larger mean pair margin.
    """
    F, y = made(200, 4)
    r = np.sign(y[:, None] - y[None, :]).sum(axis=1)
    ranker = r @ F
    means = F[y == 1].mean(axis=0) - F[y == 0].mean(axis=0)
    assert ranker / np.linalg.norm(ranker) == pytest.approx(means / np.linalg.norm(means))
    best = CrucialPairs.of(F @ (means / np.linalg.norm(means)), y).mean_margin
    for other in np.random.default_rng(0).normal(size=(50, 4)):
        assert CrucialPairs.of(F @ (other / np.linalg.norm(other)), y).mean_margin <= best + 1e-12


def test_bins_and_sorting_agree(monkeypatch):
    F, y = made(20_000, 5)
    calls = []

    def counted(*args, **named):
        calls.append(1)
        return binned_tail(*args, **named)

    monkeypatch.setattr("margrave.fuse._rank_weights.binned_tail", counted)
    quick = rank_margin_weights(F, y, 0.05, tol=5e-3)
    assert calls
    calls.clear()
    fine = rank_margin_weights(F, y, 0.05, tol=1e-6)
    assert not calls
    assert quick.margin <= fine.margin + fine.gap
    assert quick.margin + quick.gap >= fine.margin
    assert quick.gap <= 5e-3


def test_bins_are_finer_than_the_level_so_that_the_search_cannot_stay_where_it_is():
    assert 2 / BINS_PER_TOL < LEVEL
    rows = [
        [0.8, -0.2],
        [0.6, -0.8],
        [0, -0.4],
        [-1, 0.2],
        [0, -1],
        [-0.4, 0.8],
        [-1, 0.8],
        [0.8, -1],
    ]
    F, y = np.repeat(rows, 7000, axis=0), np.repeat(np.arange(8) % 2, 7000)
    found = rank_margin_weights(F, y, 0.1, tol=1e-3)
    assert found.n_iter < 30
    assert found.gap <= 1e-3


@pytest.mark.parametrize("size", [1e-9, 1e-3])
def test_small_scores_are_solved_like_large_ones(size):
    F, y = made(80, 4)
    for nu in (0.0, 0.1):
        large = rank_margin_weights(F, y, nu, tol=1e-6)
        small = rank_margin_weights(size * F, y, nu, tol=size * 1e-6)
        assert small.weights == pytest.approx(large.weights, abs=1e-6)
        assert small.margin == pytest.approx(size * large.margin, rel=1e-6)
        assert small.tie_nu is None


def test_huge_weights_are_as_good_as_small_ones():
    F, y = made(30, 3)
    small = rank_margin_weights(F, y, 0.2, sample_weight=np.ones(30))
    huge = rank_margin_weights(F, y, 0.2, sample_weight=np.full(30, 1e308))
    assert huge.margin == pytest.approx(small.margin)


@given(
    st.integers(0, 1000),
    st.sampled_from([0.0, 0.03, 0.3, 1.0]),
    st.sampled_from([None, "hardest 20%"]),
    st.sampled_from([1e-6, 0.05]),
)
def test_the_gap_holds_with_weights_hardest_negatives_and_bins(seed, nu, negatives, tol):
    rng = np.random.default_rng(seed)
    F, y = made(600, 3, seed)
    F = np.round(F * 4) / 4
    weight = rng.integers(0, 3, 600).astype(float)
    found = rank_margin_weights(F, y, nu, weight, tol, negatives=negatives)
    assert found.gap <= tol
    for other in (*np.eye(3), *rng.dirichlet(np.ones(3), size=10)):
        margin = tail_mean(F @ other, y, weight, nu, 0.2 if negatives else 1.0)
        assert margin <= found.margin + found.gap + 1e-9


def tail_mean(scores, y, weight, nu, hardest):
    """Brute force: fill the worst pairs up to ν, with the hardest negatives."""
    a, b = (weight[y == code] / weight[y == code].sum() for code in (1, 0))
    s, t = scores[y == 1], scores[y == 0]
    order = np.argsort(-t, kind="stable")
    t, b = t[order], b[order]
    b = np.clip(hardest - (np.cumsum(b) - b), 0, b) / hardest
    margins, mass = np.subtract.outer(s, t).ravel(), np.outer(a, b).ravel()
    if nu == 0:
        return margins[mass > 0].min()
    order = np.argsort(margins)
    mass = mass[order]
    part = np.clip(nu - (np.cumsum(mass) - mass), 0, mass)
    return (margins[order] @ part) / part.sum()


def test_weights_count_like_repeated_samples():
    F, y = made(40, 3)
    weight = np.arange(40) % 3
    weighted = rank_margin_weights(F, y, 0.2, sample_weight=weight, tol=1e-8)
    again = np.repeat(np.arange(40), weight)
    repeated = rank_margin_weights(F[again], y[again], 0.2, tol=1e-8)
    assert weighted.margin == pytest.approx(repeated.margin, abs=1e-7)
    assert set(weighted.active.ravel()) <= set(again)


def test_hardest_negatives_only():
    """With ν = 1 it is the mean over positives minus the mean of the highest tenth of negatives."""
    F, y = made(400, 4)
    found = rank_margin_weights(F, y, 1.0, negatives="hardest 10%", tol=1e-7)

    def margin(w):
        s = F @ w
        return s[y == 1].mean() - np.sort(s[y == 0])[-20:].mean()

    assert found.margin == pytest.approx(margin(found.weights))
    for other in np.random.default_rng(0).dirichlet(np.ones(4), size=200):
        assert margin(other) <= found.margin + found.gap + 1e-9


def test_the_hardest_negative_alone_decides_the_hard_margin():
    F, y = made(100, 3)
    whole = rank_margin_weights(F, y, tol=1e-9)
    hard = rank_margin_weights(F, y, negatives="hardest 5%", tol=1e-9)
    assert hard.rho == pytest.approx(whole.rho)


def test_where_every_weighting_has_the_same_worst_pair_more_pairs_decide():
    """The first member is right but for one saturated pair, the second is noise with it."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], 20)
    good, noise = np.where(y == 1, 0.8, -0.8), rng.uniform(-0.9, 0.9, 40)
    F = np.column_stack([good, noise])
    F[0], F[20] = -1, 1
    found = rank_margin_weights(F, y)
    assert found.rho == pytest.approx(-2)
    assert found.tie_nu == pytest.approx(2 / 400)
    assert found.weights[0] > 0.9
    assert found.gap == 0


@pytest.mark.parametrize("negatives", [None, "hardest 50%"])
def test_a_tie_is_settled_by_weight(negatives):
    """The saturated pair has a hundred times the weight: its fraction is that of its weight."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], 20)
    F = np.column_stack([np.where(y == 1, 0.8, -0.8), rng.uniform(-0.9, 0.9, 40)])
    F[0], F[20] = -1, 1
    weight = np.where(np.isin(np.arange(40), [0, 20]), 10.0, 1.0)
    found = rank_margin_weights(F, y, sample_weight=weight, negatives=negatives)
    fraction = (10 / 29) ** 2 / (0.5 if negatives else 1.0)
    assert found.tie_nu == pytest.approx(2 * fraction)
    assert found.weights[0] > 0.9


def test_active_pairs_are_with_the_hardest_negatives():
    scores = np.array([0.9, 0.8, -0.9, 0.7, 0.6, 0.59, 0.58, -0.5])[:, None]
    y = [1, 1, 1, 1, 0, 0, 0, 0]
    found = rank_margin_weights(scores, y, 0.5, negatives="hardest 25%")
    assert found.n_active == 2
    assert found.active.tolist() == [[2, 4], [3, 4]]
    assert found.rho == pytest.approx(0.1)


@pytest.mark.parametrize("nu", [0.1, 0.3, 0.6, 0.7, 0.8, 1.0])
def test_rho_is_the_last_margin_in_the_tail_where_pairs_fill_it_exactly(nu):
    scores = np.append(np.arange(10) / 10, 0)[:, None]
    found = rank_margin_weights(scores, [1] * 10 + [0], nu)
    assert found.n_active == round(10 * nu)
    assert found.rho == pytest.approx(nu - 0.1, abs=1e-12)


def test_a_member_that_is_constant_where_it_counts_is_reported():
    F, y = made(40, 3)
    F[1:, 2] = 0.5
    weight = np.ones(40)
    weight[0] = 0
    with pytest.warns(UserWarning, match=r"\bmembers?\b.*\b2\b"):
        found = rank_margin_weights(F, y, 0.1, weight)
    assert found.weights[2] == 0
    with pytest.raises(ValueError, match=r"rank_margin_weights.*\bmember"):
        rank_margin_weights(F[:, 2:], y, 0.1, weight)


def test_results_are_compared_by_identity_and_printed_without_their_pairs():
    found = rank_margin_weights(*made(40, 3))
    assert found != rank_margin_weights(*made(40, 3))
    assert ", active=" not in repr(found)


def test_scores_know_their_positive_class_and_members():
    F, y = made(60, 3)
    labels = np.where(y == 1, "a_spam", "ham")
    scores = Scores.from_arrays(scores=-F, classes=["a_spam", "ham"])
    by_label = rank_margin_weights(scores, labels, 0.1, positive="a_spam")
    by_array = rank_margin_weights(F, y, 0.1)
    assert by_label.weights == pytest.approx(by_array.weights)


def test_one_member_has_the_weight_one():
    found = rank_margin_weights([[0.1], [0.3]], [0, 1])
    assert found.weights.tolist() == [1.0]
    assert found.rho == pytest.approx(0.2)
    assert found.gap == 0


def test_duplicates_divide_the_weight_of_one():
    F, y = made(80, 3)
    alone = rank_margin_weights(F, y, 0.1, tol=1e-8)
    doubled = rank_margin_weights(F[:, [0, 1, 2, 2]], y, 0.1, tol=1e-8)
    assert doubled.margin == pytest.approx(alone.margin, abs=1e-7)


def test_a_constant_member_gets_no_weight_and_a_warning():
    F, y = made(80, 3)
    F[:, 1] = 0.3
    with pytest.warns(UserWarning, match=r"\bmembers?\b.*\b1\b"):
        found = rank_margin_weights(F, y)
    assert found.weights[1] == 0
    assert found.weights.sum() == pytest.approx(1)


def test_ties_everywhere():
    """Labels only: every margin is -2, 0 or 2."""
    F = np.array([[1, -1], [1, 1], [-1, 1], [-1, -1]], dtype=float)
    found = rank_margin_weights(F, [1, 1, 0, 0], 0.25, tol=1e-9)
    assert found.margin == pytest.approx(all_pairs_margin(F, np.array([1, 1, 0, 0]), 0.25))


def test_too_few_rounds_are_reported():
    F, y = made(400, 6)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        found = rank_margin_weights(F, y, 0.1, tol=1e-8, max_iter=1)
    assert found.gap > 1e-8


def test_a_program_that_is_not_solved_is_reported_with_its_status(monkeypatch):
    class Failed:
        status, message = 4, "numerical trouble"

    monkeypatch.setattr(_solvers, "linprog", lambda *args, **named: Failed)
    with pytest.raises(RuntimeError, match=r"\b4\b.*numerical trouble"):
        rank_margin_weights(*made(20, 2))


def test_nothing_is_printed_and_nothing_warned_on_good_input(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rank_margin_weights(*made(50, 3), 0.1)
    assert capsys.readouterr().out == ""
