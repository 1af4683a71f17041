"""Bounds on errors against their formulas, against enumeration and against chance."""

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.metrics.pairwise import rbf_kernel
from statsmodels.stats.proportion import proportion_confint

from margrave.mam._certainty import (
    N_LEVELS,
    Certainty,
    MarginBound,
    TrainingMargins,
    check_delta,
    count_errors,
    deviation,
    highest_rate,
    margin_bound,
    margin_levels,
    threshold_complexity,
    trace_bound,
)
from margrave.mam._parameters import power_fraction

OWNER = "certainty"


def gram(kernel, n=8, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return rbf_kernel(X, gamma=kernel) if isinstance(kernel, float) else X @ X.T


@pytest.mark.parametrize("kernel", [0.01, 0.5, 1e6, "linear"])
def test_the_trace_is_at_least_the_expectation_over_all_signs(kernel):
    for seed in range(3):
        K = gram(kernel, seed=seed)
        signs = np.array(list(product([-1, 1], repeat=8)))
        exact = 2 / 8 * np.sqrt(np.maximum(np.einsum("si,ij,sj->s", signs, K, signs), 0)).mean()
        found = trace_bound(np.trace(K), 8)
        assert found >= exact - 1e-12
        assert found <= 2 * exact  # and not far from it


def test_the_trace_is_exact_where_samples_have_nothing_in_common():
    assert trace_bound(8.0, 8) == pytest.approx(2 / 8 * np.sqrt(8))


def bound_for(n, mean=0.3, delta=0.05, B=1.0):
    """(12) to (14) for an RBF kernel."""
    return MarginBound(mean, trace_bound(n, n), deviation(B, n, delta), B)


@pytest.mark.parametrize(("n", "bound"), [(100, 1.715), (1000, 1.021), (10_000, 0.801)])
def test_the_bound_of_an_rbf_kernel_with_a_margin_of_three_tenths(n, bound):
    assert float(bound_for(n).error(0.0)) == pytest.approx(bound, abs=6e-4)


@given(
    st.floats(-1, 1),
    st.integers(2, 10**6),
    st.floats(0.001, 0.5),
    st.floats(0.1, 10),
    st.floats(0, 5),
    st.floats(0, 3),
)
def test_mistakes_are_the_formula_with_the_signs_corrected(m, n, delta, B, R, rho):
    found = MarginBound(m, R, deviation(B, n, delta), B)
    last = 3 * B * np.sqrt(2 * np.log(2 / delta) / n)
    assert found.expected == pytest.approx(m - R - last)
    assert float(found.error(rho)) == pytest.approx((B - m + R + last) / (B + rho))


def test_a_richer_class_a_smaller_margin_and_a_smaller_delta_have_a_larger_bound():
    at = np.array([0.0, 0.2, 0.9])
    base = MarginBound(0.3, 0.1, 0.05, 1.0)
    for worse in (
        MarginBound(0.3, 0.2, 0.05, 1.0),
        MarginBound(0.2, 0.1, 0.05, 1.0),
        MarginBound(0.3, 0.1, 0.06, 1.0),
    ):
        assert (worse.error(at) > base.error(at)).all()
        assert worse.expected < base.expected
    assert (np.diff(base.error(at)) < 0).all()
    assert deviation(1.0, 100, 0.01) > deviation(1.0, 100, 0.1) > deviation(1.0, 400, 0.1)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.1, np.nan, "0.05", None, True, [0.05]])
def test_delta_is_a_probability_of_failing(delta):
    with pytest.raises(ValueError, match=r"\bdelta\b"):
        check_delta(delta, OWNER)


def test_without_a_threshold_nothing_is_added():
    assert threshold_complexity(None, None, 100, 0.05) == (0.0, 0.05)
    assert threshold_complexity(None, 1.0, 100, 0.05) == (0.0, 0.05)


def test_a_selected_threshold_of_0_adds_as_much_as_others():
    assert threshold_complexity(0.0, None, 100, 0.05) == pytest.approx(
        (0.2, 0.05 * power_fraction(0))
    )
    assert threshold_complexity(0.0, None, 100, 0.05) == threshold_complexity(1.0, None, 100, 0.05)
    assert (
        threshold_complexity(0.0, 1.0, 100, 0.05)
        == threshold_complexity(-0.3, 1.0, 100, 0.05)
        == (0.2, 0.05)
    )


@pytest.mark.parametrize("limit", [1.0, 3.0])
def test_a_threshold_within_a_known_bound_adds_the_bound_and_uses_no_delta(limit):
    for threshold in (0.2, -0.7):
        added, left = threshold_complexity(threshold, limit, 100, 0.05)
        assert left == 0.05
        assert added >= 2 * abs(threshold) / np.sqrt(100)
        assert added == pytest.approx(2 * limit / np.sqrt(100))


@pytest.mark.parametrize(
    ("threshold", "power"),
    [(1.0, 0), (0.51, 0), (-0.5, -1), (0.3, -1), (1.01, 1), (-7, 3), (1e-9, -29)],
)
def test_a_threshold_without_a_known_bound_adds_the_next_power_of_two(threshold, power):
    added, left = threshold_complexity(threshold, None, 400, 0.05)
    assert added == pytest.approx(2 * 2.0**power / 20)
    assert left == pytest.approx(0.05 * power_fraction(power))


@given(st.floats(1e-6, 1e6), st.booleans(), st.integers(1, 10**6))
def test_a_threshold_adds_at_least_its_own_size_and_less_than_twice(size, negative, n):
    added, left = threshold_complexity(-size if negative else size, None, n, 0.05)
    assert 2 * size / np.sqrt(n) <= added * (1 + 1e-12)
    assert added < 4 * size / np.sqrt(n)
    assert 0 < left < 0.05


def test_constant_functions_have_at_most_the_complexity_that_thresholds_add():
    """sup over |c| ≤ b of 2/n Σ σ_i c, on average over all signs."""
    signs = np.array(list(product([-1, 1], repeat=10)))
    exact = 2 / 10 * 0.5 * np.abs(signs.sum(axis=1)).mean()
    assert exact <= threshold_complexity(0.5, None, 10, 0.05)[0]


def test_fractions_of_delta_over_all_powers_sum_to_at_most_1():
    powers = np.arange(-1000, 1001)
    fractions = [threshold_complexity(2.0 ** int(power), None, 10, 1.0)[1] for power in powers]
    total = sum(fractions)
    tail = 2 * (np.pi**2 / 6 - (1 / np.arange(1, 1002) ** 2).sum()) / (np.pi**2 / 3 - 1)
    assert total <= 1
    assert total + tail == pytest.approx(1)
    # Thresholds of one power of two have the same fraction.
    assert (
        threshold_complexity(0.51, None, 10, 1.0)
        == threshold_complexity(1.0, None, 10, 1.0)
        == threshold_complexity(-0.8, None, 10, 1.0)
    )


@pytest.mark.parametrize("delta", [0.001, 0.05, 0.3])
def test_the_highest_rate_is_that_of_statsmodels(delta):
    wrong = np.array([0, 1, 3, 10, 49, 50, 0, 7])
    of = np.array([50, 50, 50, 50, 50, 50, 1, 1000])
    exact = proportion_confint(wrong, of, alpha=2 * delta, method="beta")[1]
    assert highest_rate(wrong, of, delta) == pytest.approx(exact)


def test_of_none_the_highest_rate_is_1():
    assert highest_rate(np.array([0, 0]), np.array([0, 5]), 0.05).tolist() == [
        1.0,
        pytest.approx(1 - 0.05 ** (1 / 5)),
    ]


@pytest.mark.parametrize(("p", "n", "delta"), [(0.1, 40, 0.1), (0.02, 100, 0.2), (0.5, 30, 0.05)])
def test_the_highest_rate_fails_no_more_often_than_it_may(p, n, delta):
    rates = highest_rate(np.arange(n + 1), np.full(n + 1, n), delta)
    assert binom.pmf(np.arange(n + 1), n, p)[rates < p].sum() <= delta
    drawn = np.random.default_rng(0).binomial(n, p, 300)
    failed = (rates[drawn] < p).mean()
    assert failed <= delta + 3 * np.sqrt(delta * (1 - delta) / 300)


def unseen(n=60, seed=0):
    rng = np.random.default_rng(seed)
    margins = rng.uniform(0, 1, n)
    return rng.random(n) < 0.4 * (1 - margins), margins


def test_counted_mistakes_are_those_that_one_counts():
    wrong, margins = unseen()
    margins[:4], wrong[:4] = [0.2, 0.5, 0.5, 0.99], True  # as sure as a level is sure enough
    levels = np.array([0.0, 0.2, 0.5, 0.99, 2.0])
    at = count_errors(levels, wrong, margins, 0.1)
    for rho in (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.995, 1.5, 2.0, 7.0):
        level = levels[levels <= rho].max()
        sure = margins >= level
        each = 0.1 / 10  # two statements at each of five levels
        of_all = proportion_confint((sure & wrong).sum(), 60, alpha=2 * each, method="beta")[1]
        of_sure = 1.0
        if sure.any():
            n_wrong = (sure & wrong).sum()
            of_sure = proportion_confint(n_wrong, sure.sum(), alpha=2 * each, method="beta")[1]
        found = at(np.array([rho]))
        assert len(found) == 3
        assert found[0] == pytest.approx([of_all])
        assert found[1] == pytest.approx([of_sure])
        assert found[2].tolist() == [level]


def test_the_level_is_what_the_second_rate_is_about():
    wrong, margins = unseen()
    levels = margin_levels(margins)
    rho = np.random.default_rng(1).uniform(0, 1.2, 100)
    found = count_errors(levels, wrong, margins, 0.1)(rho)
    assert all(one.shape == (100,) for one in found)
    assert (found[2] <= rho).all()
    assert np.isin(found[2], levels).all()
    between = (levels > found[2][:, None]) & (levels <= rho[:, None])
    assert not between.any()
    # Both rates are those of the level itself.
    at_levels = count_errors(levels, wrong, margins, 0.1)(found[2])
    assert all((one == other).all() for one, other in zip(found, at_levels, strict=True))


@given(st.integers(0, 10**6), st.floats(0.001, 0.5))
def test_surer_mistakes_are_no_more_frequent(seed, delta):
    wrong, margins = unseen(40, seed)
    rho = np.linspace(0, 1.2, 50)
    of_all, of_sure, levels = count_errors(margin_levels(margins), wrong, margins, delta)(rho)
    assert (np.diff(of_all) <= 0).all()
    assert (np.diff(levels) >= 0).all()
    assert (levels <= rho).all()
    assert (of_all <= of_sure + 1e-12).all()
    assert of_all.min() > 0
    assert of_sure.max() <= 1


def test_counted_rates_cover_the_truth_at_all_levels_together():
    """Margins are uniform, and a mistake has the probability (1 − margin) / 2."""
    rng = np.random.default_rng(0)
    levels, delta, draws = np.linspace(0, 0.9, 7), 0.2, 300
    truth_of_all, truth_of_sure = (1 - levels) ** 2 / 4, (1 - levels) / 4
    failed = 0
    for _ in range(draws):
        margins = rng.uniform(0, 1, 80)
        wrong = rng.random(80) < (1 - margins) / 2
        of_all, of_sure, reached = count_errors(levels, wrong, margins, delta)(levels)
        assert (reached == levels).all()
        failed += bool((of_all < truth_of_all).any() or (of_sure < truth_of_sure).any())
    assert failed / draws <= delta + 3 * np.sqrt(delta * (1 - delta) / draws)


def test_levels_begin_at_0_and_follow_what_is_known():
    margins = np.random.default_rng(0).normal(size=1000)
    found = margin_levels(margins)
    assert len(found) == N_LEVELS
    assert found[0] == 0
    fractions = [(np.abs(margins) >= level).mean() for level in found]
    assert fractions == pytest.approx(1 - np.arange(N_LEVELS) / N_LEVELS, abs=2e-3)
    assert margin_levels(np.full(10, 0.5)).tolist() == [0.0, 0.5]
    assert margin_levels(np.zeros(3)).tolist() == [0.0]


def training_margins(threshold=None, bound=1.0, fraction=1.0, n=200, seed=0):
    margins = np.random.default_rng(seed).uniform(-0.4, 0.9, n)
    return TrainingMargins(margins, trace_bound(n, n), bound, threshold, fraction)


def found_for(training, transform=None, bound=None, lipschitz=None, delta=0.05):
    return margin_bound(training, delta, transform, bound, lipschitz, OWNER)


def test_without_a_threshold_it_is_the_bound_of_the_paper():
    training = training_margins()
    found, change = found_for(training)
    assert found.mean == pytest.approx(training.margins.mean())
    assert found.complexity == pytest.approx(2 / np.sqrt(200))
    assert found.deviation == pytest.approx(3 * np.sqrt(2 * np.log(2 / 0.05) / 200))
    assert found.bound == 1
    assert change(np.array([-3, 0.2, 3])).tolist() == [-1, 0.2, 1]


@pytest.mark.parametrize("fraction", [1 / 15, 0.4, power_fraction(-3)])
def test_a_selected_width_leaves_a_fraction_of_delta(fraction):
    found = found_for(training_margins(fraction=fraction))[0]
    assert found.deviation == pytest.approx(deviation(1.0, 200, 0.05 * fraction))
    assert found.complexity == found_for(training_margins())[0].complexity


@pytest.mark.parametrize("threshold", [0.0, 0.3, -0.9])
def test_a_threshold_makes_the_bound_larger(threshold):
    without, with_one = (found_for(training_margins(one))[0] for one in (None, threshold))
    assert with_one.error(0.1) > without.error(0.1)
    assert with_one.complexity == pytest.approx(without.complexity + 2 / np.sqrt(200))
    assert with_one.deviation == without.deviation


@pytest.mark.parametrize("threshold", [0.0, 0.3, -2.5, 70.0])
@pytest.mark.parametrize("bound", [0.5, 2, 3.0])
def test_a_bound_limits_the_thresholds_of_a_kernel_without_one(threshold, bound):
    """Margins are clipped at it, so that all thresholds beyond twice of it are the same."""
    found = found_for(training_margins(threshold, bound=None), bound=bound)[0]
    assert found.bound == bound
    assert found.complexity == pytest.approx(trace_bound(200, 200) + 2 * 2 * bound / np.sqrt(200))
    assert found.deviation == pytest.approx(deviation(bound, 200, 0.05))


def test_a_kernel_with_a_limit_has_thresholds_within_it_for_any_bound():
    found = found_for(training_margins(0.3), bound=2.0)[0]
    assert found.bound == 2
    assert found.complexity == pytest.approx((2 + 2) / np.sqrt(200))


@pytest.mark.parametrize(
    ("transform", "bound", "lipschitz"),
    [("clip", None, None), ("clip", 0.5, None), (np.tanh, 1, 3)],
)
def test_with_a_transform_a_threshold_without_a_limit_uses_delta(transform, bound, lipschitz):
    found = found_for(training_margins(0.3, None, 0.5), transform, bound, lipschitz)[0]
    added, left = threshold_complexity(0.3, None, 200, 0.05 * 0.5)
    assert left < 0.05 * 0.5
    slope = 1 if lipschitz is None else lipschitz
    assert found.complexity == pytest.approx(slope * (trace_bound(200, 200) + added))
    assert found.deviation == pytest.approx(deviation(bound or 1.0, 200, left))


def test_margins_beyond_the_bound_are_clipped():
    training = TrainingMargins(np.array([3.0, -2.0, 0.5]), 0.1, 1.0, 0.2, 1.0)
    assert found_for(training)[0].mean == pytest.approx((1 - 1 + 0.5) / 3)
    assert found_for(training, "clip", 0.25)[0].mean == pytest.approx(0.25 / 3)
    assert found_for(training, "clip")[0].bound == 1


def test_clipping_needs_no_bound_of_the_kernel():
    found, change = found_for(training_margins(bound=None), "clip", 0.5)
    assert found.bound == 0.5
    assert found.deviation == pytest.approx(deviation(0.5, 200, 0.05))
    assert change(np.array([-3.0, 3.0])).tolist() == [-0.5, 0.5]


def test_a_transform_of_your_own_has_its_slope_and_its_bound():
    training = training_margins(bound=None)
    found, change = found_for(training, np.tanh, 1.0, 1.0)
    np.testing.assert_array_equal(change(np.array([0.3, -2.0])), np.tanh([0.3, -2.0]))
    assert found.mean == pytest.approx(np.tanh(training.margins).mean())
    steep = found_for(training, lambda z: np.tanh(3 * z), 2.0, 3.0)[0]
    assert steep.complexity == pytest.approx(3 * training.complexity)
    assert steep.bound == 2
    assert steep.deviation == pytest.approx(deviation(2.0, 200, 0.05))


def test_a_kernel_without_a_limit_needs_a_bound():
    with pytest.raises(ValueError, match=r"\bbound\b"):
        found_for(training_margins(bound=None))
    assert found_for(training_margins(bound=None), bound=2.0)[0].bound == 2


@pytest.mark.parametrize("bound", [0, -1.0, np.nan, np.inf, True, [1.0]])
def test_a_bound_is_finite_and_above_0(bound):
    for training in (training_margins(), training_margins(0.3), training_margins(0.3, None)):
        for transform, lipschitz in ((None, None), ("clip", None), (np.tanh, 1.0)):
            with pytest.raises(ValueError, match=rf"\bbound\b.*{re.escape(repr(bound))}"):
                found_for(training, transform, bound, lipschitz)


@pytest.mark.parametrize("transform", ["tanh", "", 3, [np.tanh]])
def test_what_is_no_transform(transform):
    with pytest.raises(ValueError, match=r"\btransform\b"):
        found_for(training_margins(), transform, 1.0, 1.0)


@pytest.mark.parametrize(("bound", "lipschitz"), [(None, 1.0), (1.0, None), (1.0, 0.0)])
def test_a_transform_of_your_own_comes_with_its_numbers(bound, lipschitz):
    with pytest.raises(ValueError, match=r"\blipschitz\b"):
        found_for(training_margins(), np.tanh, bound, lipschitz)


@pytest.mark.parametrize(
    ("transform", "shown"),
    [
        (lambda z: np.maximum(1 - z, 0), r"\b0\b"),  # the paper's, with "g(0) = 0"
        (lambda z: np.tanh(z) + 0.01, r"\b0\b"),
        (lambda z: -np.tanh(z), ""),  # it falls
        (lambda z: np.abs(np.tanh(z)), ""),
        (lambda z: 3 * np.tanh(z), r"\b1\.5\b"),  # above its bound
        (lambda z: np.tanh(9 * z), r"\b2\.5\b"),  # steeper than its Lipschitz constant
    ],
)
def test_a_transform_that_is_not_what_the_bound_needs_is_refused(transform, shown):
    with pytest.raises(ValueError, match=rf"\btransform\b.*{shown}"):
        found_for(training_margins(n=2000), transform, bound=1.5, lipschitz=2.5)


def numbers_in(line):
    return re.findall(r"\d+(?:\.\d+)?%?", line)


def test_in_words():
    bound = np.array([1.0, 0.25])
    alone = Certainty(np.zeros(2), bound)
    assert (alone.held_out, alone.held_out_error, alone.levels, alone.delta) == (*3 * [None], 0.05)
    assert alone.vacuous.tolist() == [True, False]
    assert [numbers_in(line) for line in alone.in_words()] == [[], ["25.0%"]]
    levels = np.array([0.0, 0.31416])
    held = Certainty(np.array([0.2, 0.4]), bound, bound, np.array([0.5, 0.059]), levels, 0.1)
    assert [numbers_in(line) for line in held.in_words()] == [
        ["50.0%", "0"],
        ["25.0%", "5.9%", "0.314"],
    ]


def test_a_huge_threshold_raises_no_error():
    assert threshold_complexity(1.7e308, None, 10, 0.05)[0] > 1e307


@pytest.mark.parametrize(
    "transform",
    [
        lambda z: z * np.nan,
        lambda z: np.where(z < -0.8, np.nan, np.tanh(z)),  # no margin of its own is so low
        lambda z: np.where(z > 0.8, np.inf, np.tanh(z)),
        lambda z: 0.0,
        lambda z: np.tanh(z)[:-1],
        lambda z: np.tanh(z)[:, None],
    ],
)
def test_a_transform_returns_a_finite_number_for_each_margin(transform):
    with pytest.raises(ValueError, match=r"\btransform\b"):
        found_for(training_margins(), transform, 1.0, 1.0)
