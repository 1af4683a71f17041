"""The tail against the pairs made one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrave.fuse._tail import WeightedScores, binned_tail, exact_tail, standard_error
from margrave.pairs import CrucialPairs

grid = st.integers(-8, 8).map(lambda k: k / 8)
sides = st.lists(st.tuples(grid, st.sampled_from([1.0, 2.0, 0.5])), min_size=1, max_size=7)
fractions = st.sampled_from([1e-6, 0.01, 0.1, 0.25, 0.5, 0.8, 1.0])


def side(rows):
    scores, weights = np.array(rows).T
    return WeightedScores(scores, weights / weights.sum())


def brute_mean(positives, negatives, nu, hardest):
    """Fill the worst pairs up to ν, the hardest negatives only."""
    left, kept = hardest, []
    for k in np.argsort(-negatives.scores, kind="stable"):
        part = min(negatives.weights[k], left)
        kept.append((negatives.scores[k], part / hardest))
        left -= part
    pairs = sorted(
        (s - t, a * b)
        for s, a in zip(positives.scores, positives.weights, strict=True)
        for t, b in kept
    )
    total, rest = 0.0, nu
    for margin, mass in pairs:
        total += margin * min(mass, rest)
        rest -= min(mass, rest)
    return total / nu


@given(sides, sides, fractions, st.sampled_from([1.0, 0.5, 0.2]))
def test_mean_is_that_of_the_worst_pairs(positives, negatives, nu, hardest):
    p, n = side(positives), side(negatives)
    tail = exact_tail(p, n, nu, hardest)
    assert tail.mean == pytest.approx(brute_mean(p, n, nu, hardest), abs=1e-9)


@given(sides, sides, fractions)
def test_masses_sum_to_one_and_stay_within_their_caps(positives, negatives, nu):
    p, n = side(positives), side(negatives)
    tail = exact_tail(p, n, nu)
    for mass, weights in ((tail.positive_mass, p.weights), (tail.negative_mass, n.weights)):
        assert mass.sum() == pytest.approx(1, abs=1e-9)
        assert (mass >= 0).all()
        assert (mass <= weights / nu + 1e-9).all()


@given(sides, sides, fractions)
def test_rho_is_the_quantile_of_the_margins(positives, negatives, nu):
    p, n = side([(s, 1.0) for s, _ in positives]), side([(s, 1.0) for s, _ in negatives])
    tail = exact_tail(p, n, nu)
    pairs = CrucialPairs(p.scores, n.scores)
    if not (pairs.n_pairs * nu) % 1 < 1e-9:  # else any margin up to the next will do
        assert tail.rho == pytest.approx(pairs.quantile(nu), abs=1e-9)
        assert tail.n_pairs == round(float(pairs.cdf(tail.rho + 1e-9)) * pairs.n_pairs)
    # rho - Σ (rho - m)₊ / (ν n) is the same mean, from the other side.
    hinge = pairs.hinge(tail.rho).total / (nu * pairs.n_pairs)
    assert tail.mean == pytest.approx(tail.rho - hinge, abs=1e-9 + 1e-13 / nu)


@given(sides, sides, fractions, st.sampled_from([1.0, 0.3]), st.sampled_from([0.01, 0.3]))
def test_bins_are_off_by_their_width_at_most_and_their_masses_are_allowed(
    positives, negatives, nu, hardest, width
):
    p, n = side(positives), side(negatives)
    exact, binned = exact_tail(p, n, nu, hardest), binned_tail(p, n, nu, hardest, width=width)
    assert abs(binned.mean - exact.mean) <= width + 1e-9
    reached = binned.positive_mass @ p.scores - binned.negative_mass @ n.scores
    assert reached >= exact.mean - 1e-9  # no allowed masses have less than the tail
    assert binned.positive_mass.sum() == pytest.approx(1, abs=1e-9)
    assert binned.negative_mass.sum() == pytest.approx(1, abs=1e-9)


def drawn(n_positive, n_negative, seed=0):
    """Scores of two classes that overlap, with weights."""
    rng = np.random.default_rng(seed)
    return tuple(
        side(np.column_stack([np.tanh(rng.normal(mean, 1, n)), rng.choice([1.0, 2.0], n)]))
        for mean, n in ((0.5, n_positive), (-0.5, n_negative))
    )


@given(sides, sides)
def test_the_standard_error_of_all_pairs_is_that_of_a_difference_of_means(positives, negatives):
    p, n = side(positives), side(negatives)
    variances = [one.weights**2 @ (one.scores - one.weights @ one.scores) ** 2 for one in (p, n)]
    assert standard_error(p, n, 1.0) == pytest.approx(np.sqrt(sum(variances)), abs=1e-9)
    if len({w for _, w in positives + negatives}) == 1:
        textbook = np.sqrt(p.scores.var() / len(positives) + n.scores.var() / len(negatives))
        assert standard_error(p, n, 1.0) == pytest.approx(textbook, abs=1e-9)


@pytest.mark.parametrize("nu", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("hardest", [1.0, 0.3])
def test_the_standard_error_is_the_spread_of_resampled_tails(nu, hardest):
    p, n = drawn(250, 150)
    rng = np.random.default_rng(0)

    def resampled(one):
        rows = rng.integers(len(one.scores), size=len(one.scores))
        return side(np.column_stack([one.scores[rows], one.weights[rows]]))

    means = [exact_tail(resampled(p), resampled(n), nu, hardest).mean for _ in range(400)]
    assert standard_error(p, n, nu, hardest) == pytest.approx(np.std(means), rel=0.25)


def test_the_standard_error_falls_with_the_root_of_the_samples():
    few, many = (standard_error(*drawn(m, m), 0.1) for m in (500, 8000))
    assert few / many == pytest.approx(4, rel=0.15)
