"""From scaled scores to a decision: sigmoid, threshold, the choice of ν, and sample weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from margrave.fuse import _rank_margin, rank_margin_weights
from margrave.fuse._rank_margin import (
    NUS,
    CombinationSettings,
    TuningSet,
    fit_combination,
    fit_sigmoid,
)
from margrave.fuse._scales import learn_scale
from margrave.fuse._tail import WeightedScores, standard_error
from margrave.pairs import CrucialPairs


def settings_with(**settings):
    usual = {"scale": "logit", "nu": 0.1, "hardest": 1.0, "tol": 1e-6, "calibrate": True}
    return CombinationSettings(**{**usual, **settings})


def combined(data, **settings):
    return fit_combination(TuningSet(*data), settings_with(**settings))


def made(n=120, strengths=(2.0, 1.0, 0.5), seed=0, fraction=0.5):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < fraction
    raw = rng.normal(size=(n, len(strengths))) + np.outer(positive, strengths)
    return raw, np.zeros(len(strengths), dtype=bool), positive, np.ones(n)


# The sigmoid.


def sigmoid_of(scores, positive, weight):
    u, v = np.where(positive, weight, 0.0), np.where(positive, 0.0, weight)
    return fit_sigmoid(scores, u, v, len(scores), float(scores.mean()), float(scores.std()))


@pytest.mark.parametrize(
    ("slope", "threshold", "size"), [(3.0, 0.2, 1.0), (0.5, -1.0, 1.0), (5, 0, 0.1)]
)
def test_the_sigmoid_is_logistic_regression_where_data_is_plenty(slope, threshold, size):
    rng = np.random.default_rng(0)
    scores = size * rng.uniform(-1, 1, 30_000)
    positive = rng.random(30_000) < expit(slope / size * (scores - size * threshold))
    weight = rng.choice([1.0, 3.0], 30_000)
    found, where = sigmoid_of(scores, positive, weight)
    peer = LogisticRegression(C=1e9, tol=1e-8).fit(scores[:, None], positive, sample_weight=weight)
    assert found == pytest.approx(peer.coef_[0, 0], rel=0.01)
    assert where == pytest.approx(-peer.intercept_[0] / peer.coef_[0, 0], abs=0.01 * size)


@pytest.mark.parametrize("gap", [0.0, 1e-6, 1.0])
def test_the_sigmoid_is_finite_where_scores_separate_the_classes(gap):
    positive = np.arange(60) >= 20
    scores = np.linspace(-0.1, 0.1, 60) + np.where(positive, gap, 0)
    slope, threshold = sigmoid_of(scores, positive, np.ones(60))
    proba = expit(slope * (scores - threshold))
    assert np.isfinite(slope)
    assert scores[19] < threshold < scores[20] or gap == 0.0
    assert 0 < proba[0] < proba[-1] < 1
    assert ((proba > 0.5) == positive).mean() > 0.95


@pytest.mark.parametrize("fraction", [0.3, 0.7])
def test_the_sigmoid_of_a_score_that_ranks_backwards_is_flat(fraction):
    rng = np.random.default_rng(0)
    positive = np.arange(200) < 200 * fraction
    scores = rng.normal(size=200) - positive
    slope, threshold = sigmoid_of(scores, positive, np.ones(200))
    assert 0 <= slope <= 1e-6
    decision = slope * (scores - threshold)
    assert ((decision > 0) == (fraction > 0.5)).all()
    assert expit(decision) == pytest.approx(fraction, abs=0.01)


@given(st.floats(-1, 1), st.integers(2, 120))
def test_the_sigmoid_of_one_score_for_all_is_the_fraction_of_the_class(score, n):
    """Also where the mean of equal numbers rounds away from them."""
    positive = np.arange(n) % 3 == 0
    slope, threshold = sigmoid_of(np.full(n, score), positive, np.ones(n))
    expected = (positive.sum() + 1) / (n + 2)
    assert expit(slope * (score - threshold)) == pytest.approx(expected, abs=1e-6)
    assert expit(slope * (score + 0.1 - threshold)) == pytest.approx(expected, abs=1e-6)


# The threshold.


@pytest.mark.parametrize("calibrate", [True, False])
def test_the_decision_is_above_zero_beyond_the_threshold(calibrate):
    raw, positive = np.array([[-2], [-1], [1], [2.0]]), np.array([False, False, True, True])
    found = combined((raw, np.array([False]), positive, np.ones(4)), calibrate=calibrate)
    assert ((found.decision(raw) > 0) == positive).all()
    assert found.slope == 1 or calibrate
    assert found.threshold == pytest.approx(0, abs=1e-6)


# The fraction ν.


def test_each_nu_is_judged_on_parts_that_scale_and_weights_have_not_seen():
    raw, probabilities, positive, weight = made()
    found = combined((raw, probabilities, positive, weight), nu="cv", tol=1e-3)
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)
    for nu in NUS:
        areas = []
        for training, held_out in splitter.split(raw, positive):
            part = raw[training], probabilities, positive[training], weight[training]
            scale = learn_scale("logit", *part)
            weights = rank_margin_weights(
                scale(raw[training]), positive[training], nu, tol=1e-3
            ).weights
            areas.append(roc_auc_score(positive[held_out], scale(raw[held_out]) @ weights))
        assert found.auc_by_nu[nu] == pytest.approx(np.mean(areas), abs=1e-9)
    assert set(found.auc_by_nu) == set(NUS)
    assert found.auc_by_nu[found.result.nu] == max(found.auc_by_nu.values())


def test_of_equal_fractions_the_largest_is_selected():
    raw, probabilities, positive, weight = made(strengths=(1.0,))  # one member: all are equal
    found = combined((raw, probabilities, positive, weight), nu="cv")
    assert len(set(found.auc_by_nu.values())) == 1
    assert found.result.nu == max(NUS)


@pytest.mark.parametrize("n_positive", [1, 2])
def test_a_class_with_a_single_sample_leaves_no_choice(n_positive):
    raw, probabilities, _, weight = made()
    positive = np.arange(len(raw)) < n_positive
    found = combined((raw, probabilities, positive, weight), nu="cv", tol=1e-2)
    if n_positive == 1:
        assert found.auc_by_nu == {}
        assert found.result.nu == 0.1
    else:
        assert found.result.nu in NUS
        assert found.auc_by_nu


@pytest.mark.parametrize(
    ("positive", "kept"),
    [
        (np.arange(2000) % 2 == 0, (150, 150)),  # every second sample would be of one class
        (np.arange(2000) % 400 == 0, (5, 150)),  # a rare class stays as it is
    ],
    ids=["even", "rare"],
)
def test_of_many_samples_some_of_each_class_choose(monkeypatch, positive, kept):
    sizes = []

    def counted(tuning, nu, settings):
        sizes.append((tuning.positive.sum(), (~tuning.positive).sum()))
        return unchanged(tuning, nu, settings)

    unchanged = _rank_margin._fit_weights
    monkeypatch.setattr(_rank_margin, "_MAX_SAMPLES_FOR_CV", 300)
    monkeypatch.setattr(_rank_margin, "_fit_weights", counted)
    raw = np.random.default_rng(0).normal(size=(2000, 2)) + positive[:, None] * [2, 1]
    found = combined((raw, np.zeros(2, bool), positive, np.ones(2000)), nu="cv", tol="auto")
    assert set(found.auc_by_nu) == set(NUS)
    assert sizes[-1] == (positive.sum(), (~positive).sum())  # in the end all count
    chosen = np.array(sizes[:-1])
    folds = len(chosen) // len(NUS)
    assert chosen.sum(axis=0).tolist() == [(folds - 1) * len(NUS) * size for size in kept]


def test_more_than_twenty_thousand_samples():
    raw, probabilities, positive, weight = made(20_002, strengths=(2.0, 1.0))
    found = combined((raw, probabilities, positive, weight), nu="cv", tol="auto")
    assert set(found.auc_by_nu) == set(NUS)
    assert len(found.margins.positives) + len(found.margins.negatives) == 20_002
    assert found.margins.auc > roc_auc_score(positive, raw[:, 0]) - 0.001


@given(st.integers(0, 300), st.sampled_from([1.0, 0.5, 0.1, 0.001]))
def test_the_area_over_the_hardest_negatives(seed, hardest):
    rng = np.random.default_rng(seed)
    scores, positive = rng.integers(0, 9, 40), rng.permutation(np.arange(40) < 15)
    kept = np.sort(scores[~positive])[-max(round(25 * hardest), 1) :]
    expected = roc_auc_score(
        np.repeat([1, 0], [15, len(kept)]), np.concatenate([scores[positive], kept])
    )
    found = _rank_margin._auc(scores.astype(float), positive, hardest)
    assert found == pytest.approx(expected)


def test_the_hardest_negatives_choose_nu_too():
    raw, probabilities, positive, weight = made(200, strengths=(1.0, 1.0))
    whole = combined((raw, probabilities, positive, weight), nu="cv", tol=1e-2)
    hard = combined((raw, probabilities, positive, weight), nu="cv", tol=1e-2, hardest=0.1)
    assert max(hard.auc_by_nu.values()) < min(whole.auc_by_nu.values()) - 0.1


# Weights.


@pytest.mark.parametrize(
    ("scale", "nu"),
    [("logit", "cv"), ("logit", 0.0), ("probability", 0.2), ("rank", 0.2), ("decision", 0.2)],
)
def test_a_sample_of_weight_zero_is_not_there(scale, nu):
    raw, probabilities, positive, weight = made(80)
    weight[::4] = 0
    raw[::4] = 100 * raw[::4] + 50
    used = np.flatnonzero(weight)
    settings = settings_with(scale=scale, nu=nu, tol=1e-3)
    weighted = fit_combination(TuningSet(raw, probabilities, positive, weight), settings)
    part = TuningSet(raw[used], probabilities, positive[used], weight[used])
    less = fit_combination(part, settings)
    np.testing.assert_allclose(weighted.decision(raw), less.decision(raw), rtol=1e-9)
    assert weighted.margins.rank_margin == pytest.approx(less.margins.rank_margin, rel=1e-9)
    assert weighted.auc_by_nu == pytest.approx(less.auc_by_nu, rel=1e-9)
    # The pairs that decide are named by their places among all samples.
    np.testing.assert_array_equal(weighted.result.active, used[less.result.active])
    i, k = weighted.result.active[0]
    assert positive[i]
    assert not positive[k]


def test_heavier_samples_pull_the_threshold():
    raw, probabilities, positive, weight = made(400, strengths=(1.0,))
    for calibrate in (True, False):
        plain = combined((raw, probabilities, positive, weight), calibrate=calibrate)
        heavy = combined(
            (raw, probabilities, positive, np.where(positive, 5.0, 1.0)), calibrate=calibrate
        )
        if calibrate:
            assert (heavy.decision(raw) > 0).sum() > (plain.decision(raw) > 0).sum() + 50
        else:  # within its class a sample counts as before
            np.testing.assert_allclose(heavy.decision(raw), plain.decision(raw))


@pytest.mark.parametrize("scale", ["logit", "probability"])
def test_auto_is_half_a_standard_error_of_the_margin(scale):
    raw, probabilities, positive, weight = made(300, strengths=(1.2, 1.0, 1.0))
    fine = combined((raw, probabilities, positive, weight), scale=scale).result
    auto = combined((raw, probabilities, positive, weight), scale=scale, tol="auto")
    mean = auto.scale(raw).mean(axis=1)
    sides = [
        WeightedScores(mean[of], np.full(of.sum(), 1 / of.sum())) for of in (positive, ~positive)
    ]
    half = standard_error(*sides, 0.1) / 2
    assert 1e-3 < half < 0.1
    assert fine.margin - half <= auto.result.margin <= fine.margin + 1e-6
    assert auto.result.gap <= half
    assert auto.result.n_iter < fine.n_iter


def test_margins_are_those_of_the_combined_scores():
    raw, probabilities, positive, weight = made()
    found = combined((raw, probabilities, positive, weight), nu=0.0)
    scores = found.scale(raw) @ found.result.weights
    pairs = CrucialPairs.of(scores, positive)
    assert found.margins.rank_margin == pytest.approx(pairs.rank_margin, rel=1e-9)
    assert found.result.rho == pytest.approx(pairs.rank_margin, rel=1e-9)
    assert found.margins.auc == pytest.approx(roc_auc_score(positive, found.decision(raw)))
