"""A committee's score: what its weights and scores must not depend on, and what they must."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from tests.examples import few

from margrave.committee import FittedMembers
from margrave.fuse._log_odds import fit_log_odds
from margrave.steer._scorer import Scorer, SingleMember, decimals_for

FLAGS = np.array([True, False, False, True])
seeds = st.integers(0, 1000)


def member_values(seed, n=120, k=2):
    """Values of four members of different quality: probabilities as 2p - 1, or decision values."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % k)
    quality = np.array([1.5, 1.0, 0.6, 0.3])
    if k == 2:
        values = rng.normal(size=(n, 4)) + quality * (2 * codes[:, None] - 1)
    else:
        right = np.arange(k) == codes[:, None]
        values = rng.normal(size=(n, 4, k)) + quality[:, None] * (2 * right[:, None, :] - 1)
    raw = values.copy()
    raw[:, FLAGS] = 2 * expit(values[:, FLAGS]) - 1
    return raw, codes


class TestCombined:
    @few(6)
    @given(seeds)
    def test_it_is_a_logistic_regression_on_standardised_log_odds(self, seed):
        raw, codes = member_values(seed)
        values = np.where(FLAGS, logit(0.02 + 0.96 * (raw + 1) / 2), raw)
        expected = make_pipeline(StandardScaler(), LogisticRegression()).fit(values, codes)
        scores = fit_log_odds(raw, FLAGS, codes)(raw)
        np.testing.assert_allclose(scores, expected.decision_function(values), atol=0.02)

    @few(6)
    @given(seeds)
    def test_a_weight_is_the_part_in_the_difference_of_the_classes(self, seed):
        raw, codes = member_values(seed, 600)  # all members are clearly better than chance
        found = fit_log_odds(raw, FLAGS, codes)
        parts = []
        for j in range(4):  # how much the mean score differs less if the member is silent
            silent = raw.copy()
            silent[:, j] = 0.0
            change = found(raw) - found(silent)
            parts.append(change[codes == 1].mean() - change[codes == 0].mean())
        np.testing.assert_allclose(found.weights, parts / np.abs(parts).sum(), atol=1e-9)

    def test_a_member_that_corrects_another_has_a_negative_weight(self):
        rng = np.random.default_rng(0)
        codes, shared = np.arange(400) % 2, rng.normal(size=400)
        good = 2 * codes - 1 + 2 * shared + 0.5 * rng.normal(size=400)
        other = 0.1 * (2 * codes - 1) + shared
        weights = fit_log_odds(np.column_stack([good, other]), FLAGS[1:3], codes).weights
        assert weights[0] > 0 > weights[1]
        assert np.abs(weights).sum() == pytest.approx(1)

    @few(6)
    @given(seeds)
    def test_the_score_ranks(self, seed):
        raw, codes = member_values(seed)
        found = fit_log_odds(raw, FLAGS, codes)
        assert found.weights.shape == (4,)
        scores = found(raw)
        assert scores.shape == codes.shape
        worst = min(roc_auc_score(codes, raw[:, j]) for j in range(4))
        assert roc_auc_score(codes, scores) > max(worst, 0.75)

    @few(6)
    @given(seeds, st.permutations(range(4)))
    def test_permuting_the_members_permutes_the_weights(self, seed, order):
        raw, codes = member_values(seed)
        found = fit_log_odds(raw, FLAGS, codes)
        other = fit_log_odds(raw[:, order], FLAGS[order], codes)
        np.testing.assert_allclose(other.weights, found.weights[order], atol=1e-2)
        np.testing.assert_allclose(other(raw[:, order]), found(raw), atol=0.1)

    @few(6)
    @given(seeds, st.sampled_from([1e-6, 0.01, 100, 1e6]), st.floats(-3, 3))
    def test_the_units_of_decision_values_do_not_matter(self, seed, factor, shift):
        raw, codes = member_values(seed)
        moved = raw.copy()
        moved[:, 1] = factor * (raw[:, 1] + shift)
        found, other = fit_log_odds(raw, FLAGS, codes), fit_log_odds(moved, FLAGS, codes)
        np.testing.assert_allclose(other.weights, found.weights, atol=1e-6)
        np.testing.assert_allclose(other(moved), found(raw), atol=1e-5)

    @few(6)
    @given(seeds)
    def test_exchanging_the_classes_turns_the_score_around(self, seed):
        raw, codes = member_values(seed)
        found, other = fit_log_odds(raw, FLAGS, codes), fit_log_odds(-raw, FLAGS, 1 - codes)
        np.testing.assert_allclose(other.weights, found.weights, atol=1e-2)
        np.testing.assert_allclose(other(-raw), -found(raw), atol=0.1)

    @few(6)
    @given(seeds)
    def test_the_order_of_the_samples_does_not_matter(self, seed):
        raw, codes = member_values(seed)
        order = np.random.default_rng(seed).permutation(len(codes))
        found, other = (fit_log_odds(raw[at], FLAGS, codes[at]) for at in (np.arange(120), order))
        np.testing.assert_allclose(other(raw), found(raw), atol=0.1)

    def test_scores_are_log_odds(self):
        """Of samples scored about s, a fraction expit(s) is of the second class."""
        raw, codes = member_values(0, n=4000)
        p = expit(fit_log_odds(raw[:2000], FLAGS, codes[:2000])(raw[2000:]))
        assert p.mean() == pytest.approx(codes[2000:].mean(), abs=0.03)
        for there in (p < 0.5, p >= 0.5):
            assert codes[2000:][there].mean() == pytest.approx(p[there].mean(), abs=0.03)

    def test_a_constant_member_changes_nothing(self):
        raw, codes = member_values(1)
        found = fit_log_odds(raw, FLAGS, codes)
        for flag, value in [(False, 0.0), (False, 7.0), (True, -1.0), (True, 0.4)]:
            constant = np.column_stack([raw, np.full(len(raw), value)])
            other = fit_log_odds(constant, np.append(FLAGS, flag), codes)
            np.testing.assert_allclose(other(constant), found(raw), atol=0.1)
            # Its later values do not count.
            loud = constant.copy()
            loud[:, -1] = 1.0
            np.testing.assert_allclose(other(loud), other(constant), atol=1e-9)

    def test_with_constant_members_only_all_scores_are_the_prior(self):
        codes = np.repeat([0, 1], [90, 30])
        raw = np.zeros((120, 2))
        found = fit_log_odds(raw, FLAGS[:2], codes)
        scores = found(raw)
        assert np.ptp(scores) == pytest.approx(0, abs=1e-9)
        assert scores[0] == pytest.approx(np.log(30 / 90), abs=1e-3)
        assert found.weights.tolist() == [0.5, 0.5]

    def test_a_single_new_sample_is_scored_as_among_others(self):
        raw, codes = member_values(2)
        found = fit_log_odds(raw, FLAGS, codes)
        alone = np.array([found(row[None])[0] for row in raw])
        np.testing.assert_allclose(alone, found(raw), atol=1e-12)

    @pytest.mark.parametrize("k", [3, 4])
    def test_more_classes_have_a_score_and_weights_each(self, k):
        raw, codes = member_values(3, k=k)
        found = fit_log_odds(raw, FLAGS, codes)
        assert len(found.sides) == k
        assert found.weights.shape == (k, 4)
        np.testing.assert_allclose(np.abs(found.weights).sum(axis=1), 1)
        scores = found(raw)
        assert scores.shape == (120, k)
        assert (scores.argmax(axis=1) == codes).mean() > 0.8

    def test_renaming_three_classes_renames_their_scores(self):
        raw, codes = member_values(4, k=3)
        order = [2, 0, 1]
        found = fit_log_odds(raw, FLAGS, codes)
        other = fit_log_odds(raw[:, :, order], FLAGS, np.argsort(order)[codes])
        np.testing.assert_allclose(other(raw[:, :, order]), found(raw)[:, order], atol=1e-9)


class TestAlone:
    def test_log_odds_of_probabilities_also_of_0_and_1(self):
        p = np.array([0.0, 1e-9, 0.25, 0.5, 0.75, 1 - 1e-9, 1.0])
        scores = SingleMember(True)((2 * p - 1)[:, None])
        assert np.isfinite(scores).all()
        assert (np.diff(scores) > 0).all()
        np.testing.assert_allclose(scores[1:-1], logit(p[1:-1]), atol=1e-5)
        np.testing.assert_allclose(scores, -scores[::-1], atol=1e-3)
        assert scores[3] == 0

    def test_logs_of_the_probabilities_of_more_classes(self):
        p = np.array([[0.0, 0.0, 1.0], [0.2, 0.3, 0.5], [1 / 3, 1 / 3, 1 / 3]])
        scores = SingleMember(True)((2 * p - 1)[:, None, :])
        assert np.isfinite(scores).all()
        assert scores.argmax(axis=1).tolist()[:2] == [2, 2]
        np.testing.assert_allclose(scores[1], np.log(p[1]))
        assert np.ptp(scores[2]) == pytest.approx(0, abs=1e-12)

    def test_decision_values_are_left_alone(self):
        values = np.array([-3.0, 0, 1e9])
        assert SingleMember(False)(values[:, None]).tolist() == values.tolist()


class TestRounding:
    @pytest.mark.parametrize(
        ("size", "decimals"), [(1.0, 9), (9.99, 9), (10.0, 8), (0.05, 11), (12345.0, 5), (0.0, 9)]
    )
    def test_nine_digits_of_the_largest(self, size, decimals):
        assert decimals_for(np.array([size, -size / 3])) == decimals
        assert decimals_for(np.array([-size, 0.0])) == decimals

    def test_one_outlier_does_not_make_all_others_equal(self):
        scores = np.append(np.linspace(-2, 2, 101), 1e12)
        kept = np.round(scores, decimals_for(scores))
        assert len(np.unique(kept)) == len(scores)

    @pytest.mark.parametrize(
        "member",
        [
            LogisticRegression(),
            SVC(),
            SVC(kernel="linear"),
            LinearSVC(),
            GaussianNB(),
            DecisionTreeClassifier(max_depth=3),
            RandomForestClassifier(15, random_state=0),
        ],
        ids=lambda member: type(member).__name__,
    )
    @pytest.mark.parametrize("k", [2, 3])
    def test_the_same_sample_gets_the_same_score_alone_and_among_others(self, member, k):
        """Bit by bit: the columns take few values, so that samples and scores tie."""
        rng = np.random.default_rng(0)
        X = rng.integers(0, 3, (150, 4)) / 3
        y = np.minimum((X[:, 0] + X[:, 1] + rng.random(150) / 2).astype(int), k - 1)
        y[:k] = np.arange(k)
        trained = member.fit(X, y)
        committee = FittedMembers(["one"], [trained], trained.classes_)
        combine = SingleMember(bool(committee.gives_probabilities[0]))
        scorer = Scorer(committee, combine, decimals_for(combine(committee.raw(X))))
        among = scorer(X)
        alone = np.concatenate([scorer(row[None]) for row in X])
        reversed_ = scorer(X[::-1])[::-1]
        np.testing.assert_array_equal(alone, among)
        np.testing.assert_array_equal(reversed_, among)
        _, first, place = np.unique(X, axis=0, return_index=True, return_inverse=True)
        np.testing.assert_array_equal(among, among[first][place])

    def test_so_does_a_committee(self):
        rng = np.random.default_rng(1)
        X = rng.integers(0, 3, (150, 4)) / 3
        y = (X[:, 0] + X[:, 1] + rng.random(150) > 1.2).astype(int)
        members = [LogisticRegression(), SVC(), RandomForestClassifier(15, random_state=0)]
        trained = [member.fit(X, y) for member in members]
        committee = FittedMembers(["a", "b", "c"], trained, np.array([0, 1]))
        combine = fit_log_odds(committee.raw(X), committee.gives_probabilities, y)
        scorer = Scorer(committee, combine, decimals_for(combine(committee.raw(X))))
        among = scorer(X)
        assert len(np.unique(among)) < 100
        np.testing.assert_array_equal(np.concatenate([scorer(row[None]) for row in X]), among)
