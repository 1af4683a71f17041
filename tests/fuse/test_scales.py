"""Scales for members' values: range, order, units, ties, and constant members."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from margrave.fuse._scales import SCALES, learn_scale

each = pytest.mark.parametrize("name", SCALES)
BOTH = np.array([True, True, False])  # two members with probabilities, one with decision values
DECISIONS = np.zeros(3, dtype=bool)


@st.composite
def tables(draw):
    """Values of three members, which samples are positive, and sample weights."""
    n = draw(st.integers(2, 12))
    raw = draw(arrays(np.float64, (n, 3), elements=st.floats(-1, 1, width=16)))
    positive = draw(st.permutations([True, False] + [k % 2 == 0 for k in range(n - 2)]))
    weight = draw(arrays(np.float64, n, elements=st.sampled_from([0.5, 1.0, 3.0])))
    return raw, np.array(positive), weight


def made(n=300, seed=0, strengths=(2.0, 1.0, 0.5)):
    """Decision values of members that are better than chance, in about the same units."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.4
    raw = rng.normal(size=(n, len(strengths))) + np.outer(positive, strengths)
    return raw, positive, rng.choice([0.5, 1.0, 2.0], n)


def mean_margins(scores, positive, weight):
    of_positives = np.average(scores[positive], axis=0, weights=weight[positive])
    return of_positives - np.average(scores[~positive], axis=0, weights=weight[~positive])


def mid_distribution(values, weight=None):
    """Fraction below minus fraction above, sample by sample."""
    weight = np.ones(len(values)) if weight is None else weight
    sides = np.sign(values[:, None] - values[None, :])
    return sides @ weight / weight.sum()


@each
@given(table=tables())
def test_tuning_data_comes_into_range_in_its_order(name, table):
    raw, positive, weight = table
    raw[:, 2] *= 50
    scores = learn_scale(name, raw, BOTH, positive, weight)(raw)
    assert np.abs(scores).max() <= 1
    for values, scaled in zip(raw.T, scores.T, strict=True):
        assert (np.diff(scaled[np.argsort(values)]) >= 0).all()


@each
def test_new_data_beyond_the_tuning_data_is_clipped(name):
    raw, positive, weight = made()
    scale = learn_scale(name, raw, DECISIONS, positive, weight)
    beyond = scale(np.array([[-1e9] * 3, [1e9] * 3]))
    ends = [scale(raw.min(axis=0)[None]), scale(raw.max(axis=0)[None])]
    expected = np.concatenate(ends) if name == "rank" else [[-1] * 3, [1] * 3]
    np.testing.assert_allclose(beyond, expected)


@each
@given(table=tables(), often=arrays(int, 12, elements=st.integers(1, 3)))
def test_weights_count_like_repeated_samples(name, table, often):
    raw, positive, _ = table
    often = often[: len(raw)]
    weighted = learn_scale(name, raw, BOTH, positive, often.astype(float))
    again = np.repeat(np.arange(len(raw)), often)
    repeated = learn_scale(name, raw[again], BOTH, positive[again], np.ones(len(again)))
    np.testing.assert_allclose(weighted(raw), repeated(raw), atol=1e-6)


def test_means_that_differ_by_rounding_are_equal():
    """No member is better than chance, however the sums are added up: spreads are made equal."""
    raw = np.array([[0, 0], [-0.75, -0.75], [0, -0.75], *[[-0.75, -0.75]] * 6])
    positive = np.array([False, True, True, False, True, False, True, False, True])
    often = np.array([1, 3, 2, 2, 1, 1, 3, 1, 1])
    again = np.repeat(np.arange(9), often)
    weighted = learn_scale("logit", raw, np.array([True, False]), positive, often.astype(float))
    repeated = learn_scale(
        "logit", raw[again], np.array([True, False]), positive[again], np.ones(len(again))
    )
    np.testing.assert_allclose(weighted(raw), repeated(raw), atol=1e-12)


@given(st.integers(0, 500))
def test_log_odds_have_one_mean_margin_and_none_is_clipped(seed):
    raw, positive, weight = made(seed=seed)
    raw[:, :2] = np.tanh(raw[:, :2])
    scores = learn_scale("logit", raw, BOTH, positive, weight)(raw)
    margins = mean_margins(scores, positive, weight)
    np.testing.assert_allclose(margins, margins[0])
    assert margins[0] > 0
    assert np.abs(scores).max() == pytest.approx(1)
    assert (np.abs(scores) > 1 - 1e-9).sum() == 1


def test_a_member_below_a_tenth_of_the_best_stays_quiet():
    raw, positive, weight = made(4000, strengths=(3.0, 0.5, 0.0))
    margins = mean_margins(
        learn_scale("logit", raw, DECISIONS, positive, weight)(raw), positive, weight
    )
    assert margins[1] == pytest.approx(margins[0])
    assert abs(margins[2]) < 0.5 * margins[0]


@given(
    arrays(np.float64, 3, elements=st.floats(1e-3, 1e3)),
    arrays(np.float64, 3, elements=st.floats(-100, 100)),
)
def test_the_units_of_decision_values_do_not_matter(factor, shift):
    raw, positive, weight = made()
    plain = learn_scale("logit", raw, DECISIONS, positive, weight)(raw)
    changed = factor * raw + shift
    again = learn_scale("logit", changed, DECISIONS, positive, weight)(changed)
    np.testing.assert_allclose(again, plain, atol=1e-8)


def test_a_member_near_chance_keeps_small_scores():
    """Margins near 0 would win every comparison of the worst pairs."""
    raw, positive, weight = made(strengths=(2.0, 1.0, 0.0))
    raw[:, 2] *= 1e-6
    scores = learn_scale("logit", raw, DECISIONS, positive, weight)(raw)
    assert scores[:, 2].std() > 0.5 * scores[:, 1].std()


def test_probabilities_of_zero_and_one_are_finite_and_keep_their_order():
    raw = np.array([[-1.0], [-0.98], [0.0], [0.98], [1.0]])
    positive = np.array([False, False, True, True, True])
    scores = learn_scale("logit", raw, np.array([True]), positive, np.ones(5))(raw)[:, 0]
    assert np.isfinite(scores).all()
    steps = np.diff(scores)
    assert (steps > 0).all()
    assert steps == pytest.approx(steps[::-1])  # log-odds of p and 1 - p are opposite
    assert steps[1] > steps[0]


def test_probabilities_are_two_p_minus_one_as_in_the_paper():
    raw, positive, weight = made()
    raw[:, :2] = np.tanh(raw[:, :2])
    scores = learn_scale("probability", raw, BOTH, positive, weight)(raw)
    np.testing.assert_array_equal(scores[:, :2], raw[:, :2])
    np.testing.assert_allclose(scores[:, 2], raw[:, 2] / np.abs(raw[:, 2]).max())


def test_decisions_run_from_the_smallest_to_the_largest():
    raw, positive, weight = made()
    scores = learn_scale("decision", raw, DECISIONS, positive, weight)(raw)
    low, high = raw.min(axis=0), raw.max(axis=0)
    np.testing.assert_allclose(scores, 2 * (raw - low) / (high - low) - 1, atol=1e-12)


@given(tables())
def test_ranks_are_the_fraction_below_minus_the_fraction_above(table):
    raw, positive, weight = table
    scores = learn_scale("rank", raw, BOTH, positive, weight)(raw)
    for values, scaled in zip(raw.T, scores.T, strict=True):
        np.testing.assert_allclose(scaled, mid_distribution(values, weight), atol=1e-12)


@given(tables())
def test_ranks_do_not_change_with_the_values_if_their_order_stays(table):
    raw, positive, weight = table
    plain = learn_scale("rank", raw, BOTH, positive, weight)(raw)
    changed = np.exp(3 * raw) - 7
    again = learn_scale("rank", changed, BOTH, positive, weight)(changed)
    np.testing.assert_allclose(again, plain, atol=1e-12)


@pytest.mark.parametrize("skew", [1.0, 8.0])
def test_ranks_of_many_values_are_close_with_few_knots(skew):
    values = np.exp(skew * np.random.default_rng(0).normal(size=6000))
    weight = np.linspace(0.5, 2, 6000)
    scale = learn_scale("rank", values[:, None], DECISIONS[:1], values > 1, weight)
    assert len(scale.knots[0]) <= 2001
    exact = mid_distribution(values, weight)
    scaled = scale(values[:, None])[:, 0]
    # Knots are a thousandth of the range apart, and at most one sample more.
    assert np.abs(scaled - exact).max() < 2 / 2000 + 4 / 6000
    assert (scaled.min(), scaled.max()) == pytest.approx((exact.min(), exact.max()))


@each
def test_a_class_unknown_to_a_member_has_the_lowest_score(name):
    """NaN, for a class that a member has not seen; learned from as its lowest value."""
    raw, positive, weight = made()
    unseen = np.zeros(raw.shape, dtype=bool)
    unseen[:40, 1] = True
    raw[:, 0] *= 1000  # whose lowest value must not be used for another member's
    scale = learn_scale(name, np.where(unseen, np.nan, raw), DECISIONS, positive, weight)
    assert (scale(np.where(unseen, np.nan, raw))[unseen] == -1).all()
    lowest = raw[~unseen[:, 1], 1].min()
    filled = np.where(unseen, lowest, raw)
    expected = learn_scale(name, filled, DECISIONS, positive, weight)(filled)
    np.testing.assert_allclose(scale(filled), expected)
    assert scale(raw)[raw[:, 1].argmax(), 1] > 0.4


@each
def test_a_member_that_never_saw_the_class_disturbs_nobody(name):
    raw, positive, weight = made()
    alone = learn_scale(name, raw[:, :2], DECISIONS[:2], positive, weight)(raw[:, :2])
    raw[:, 2] = np.nan
    scores = learn_scale(name, raw, DECISIONS, positive, weight)(raw)
    assert (scores[:, 2] == -1).all()
    np.testing.assert_allclose(scores[:, :2], alone)


@pytest.mark.parametrize("name", ["logit", "rank", "decision"])
@pytest.mark.parametrize("n", [2, 7, 33, 101])
def test_constant_members_have_scores_of_0_also_if_means_round(name, n):
    constants = np.array([0.1, 1 / 3, -0.26])
    positive = np.arange(n) % 3 == 0
    scale = learn_scale(name, np.tile(constants, (n, 1)), BOTH, positive, np.ones(n))
    assert (scale(np.tile(constants, (n, 1))) == 0).all()
    assert (scale(constants[None] + 0.5) == 0).all()  # whatever their later values


@each
def test_a_constant_member_among_others(name):
    raw, positive, weight = made()
    raw[:, 1] = 0.3
    scores = learn_scale(name, raw, DECISIONS, positive, weight)(raw)
    assert np.ptp(scores[:, 1]) == 0
    assert np.ptp(scores[:, 0]) > 0.5
    zero = learn_scale(name, np.zeros((4, 3)), DECISIONS, np.arange(4) > 1, np.ones(4))
    assert (zero(np.zeros((4, 3))) == 0).all()


@each
def test_members_that_are_all_worse_than_chance_keep_their_order(name):
    raw, positive, weight = made(strengths=(-1.0, -2.0, -3.0))
    raw *= [1, 10, 100]
    scores = learn_scale(name, raw, DECISIONS, positive, weight)(raw)
    assert (mean_margins(scores, positive, weight) < 0).all()
    assert np.abs(scores).max() <= 1
    if name == "logit":
        centred = scores - (scores[positive].mean(axis=0) + scores[~positive].mean(axis=0)) / 2
        sizes = np.sqrt((centred**2).mean(axis=0))
        np.testing.assert_allclose(sizes, sizes[0], rtol=0.1)  # sample weights differ
