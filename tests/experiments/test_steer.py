"""The steering study: its splits, its statistics, its rivals, its findings, and the command."""

import re
from dataclasses import replace

import numpy as np
import pytest
from experiments.martingale.results import Gap
from experiments.steer import chance, data, findings, guarantees, learn_then_test, rivals, study
from experiments.steer import results as results_module
from experiments.steer.__main__ import main
from experiments.steer.chance import Sizes
from experiments.steer.guarantees import ORDER_STATISTIC, RIVALS, TUNED, Case, Outcome
from experiments.steer.results import Results, is_higher, is_lower
from experiments.steer.rivals import CONFIDENCE, MARGRAVE, MEMBER, SELECTION, STACKING
from experiments.steer.study import Training
from experiments.steer.tables import data_sets
from experiments.steer.tables import rivals as rivals_table
from scipy.stats import betabinom
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from margrave import datasets
from margrave.steer import Dialog

needs_mapie = pytest.mark.skipif(not learn_then_test.HAS_MAPIE, reason="mapie is an extra")


def bold(text):
    return re.findall(r"\*\*(.*?)\*\*", text)


@pytest.fixture(scope="module")
def parts():
    return data.load_split("pima", 0)


@pytest.fixture(scope="module")
def dialog(parts):
    committee = [
        ("logistic", LogisticRegression(max_iter=2000)),
        ("bayes", GaussianNB()),
        ("margin", LinearSVC(C=1e-4)),
    ]
    return Dialog.from_data(
        parts.X_train, parts.y_train, committee=committee, certify=None, random_state=0
    )


@pytest.fixture
def held_back(dialog, parts):
    """Accept a limit on the certification set, as the only one."""

    def accept(limit):
        dialog.goto(0)
        dialog.ledger.in_memory.clear()
        dialog._acceptances.accepted.clear()
        dialog.prefer(limit)
        return dialog.accept(parts.X_certify, parts.y_certify, confidence=CONFIDENCE)

    return accept


@pytest.fixture(scope="module")
def training(dialog, parts):
    left = {
        "certify": (parts.X_certify, parts.y_certify),
        "test": (parts.X_test, parts.y_test),
    }
    return Training({}, study.score_parts(dialog, left))


@pytest.fixture(scope="module")
def cases(training):
    return guarantees.measure_all(training, (10,))


class TestData:
    def test_parts_are_disjoint_and_stratified(self):
        _, y = data.load("pima")
        positions = data.split_positions(y, seed=3)
        assert np.array_equal(np.sort(np.concatenate(positions)), np.arange(len(y)))
        assert [round(5 * len(each) / len(y)) for each in positions] == [3, 1, 1]
        assert [y[each].mean() for each in positions] == pytest.approx([y.mean()] * 3, abs=0.01)

    def test_seeds_split_differently(self):
        _, y = data.load("pima")
        first, again, other = (data.split_positions(y, seed)[2] for seed in (0, 0, 1))
        assert np.array_equal(first, again)
        assert not np.array_equal(np.sort(first), np.sort(other))

    def test_data_sets_have_two_classes_and_enough_rows(self):
        titles = data.available_titles()
        assert {"breast_wisconsin", "pima"} <= set(titles)
        assert not {"iris", "sonar"} & set(titles)
        sizes = [len(datasets.load(title).target) for title in titles]
        assert sizes == sorted(sizes, reverse=True)
        assert min(len(data.load(title)[1]) for title in titles) >= data.MIN_ROWS

    def test_copies_are_left_out_where_rows_are_not_equal_by_chance(self):
        X, y = data.load("spambase")
        assert len(np.unique(X, axis=0)) == len(X) == len(y) < 4601
        assert {tuple(row) for row in X} == {tuple(row) for row in datasets.load("spambase").data}
        assert len(data.load("breast_wisconsin")[1]) == 699  # of which 465 are distinct


class TestChance:
    one = Sizes(n=60, allowed=2, m=40)

    def test_draws_of_one_count_are_beta_binomial(self):
        draws = chance.draw_sums([self.one], seed=0, n_draws=100_000)
        fractions = np.bincount(draws, minlength=41) / len(draws)
        assert fractions == pytest.approx(betabinom.pmf(np.arange(41), 40, 3, 58), abs=0.006)
        assert chance.p_value(5, draws) == pytest.approx(betabinom.sf(4, 40, 3, 58), abs=0.006)

    def test_counts_add_up(self):
        draws = chance.draw_sums([self.one] * 30, seed=0)
        assert draws.mean() == pytest.approx(30 * betabinom.mean(40, 3, 58), rel=0.02)
        assert draws.var() == pytest.approx(30 * betabinom.var(40, 3, 58), rel=0.05)

    def test_a_p_value_is_never_0(self):
        draws = chance.draw_sums([self.one], seed=0, n_draws=99)
        assert chance.p_value(41, draws) == 1 / 100
        assert chance.p_value(0, draws) == 1

    def test_a_rate_is_exceeded_above_it_not_at_it(self):
        """5 of 100 is not above 5 %; 29 % of 100 is 28.999... in floating point."""
        assert chance.largest_count_within(100, 0.05) == 5
        assert chance.largest_count_within(100, 0.29) == 29
        expected = betabinom.sf(2, 40, 3, 58)
        assert chance.probability_exceeded(self.one, 0.05) == pytest.approx(expected)

    @pytest.mark.full
    def test_order_statistics_make_beta_binomial_counts(self):
        """The study's threshold on scores of one distribution, again and again."""
        rng = np.random.default_rng(0)
        counts = np.empty(4000)
        y = np.zeros(100, dtype=int)
        for i in range(len(counts)):
            scores, new = rng.normal(size=100), rng.normal(size=50)
            counts[i] = (new > rivals.order_statistic_threshold(scores, y, 0, 0.05)).sum()
        assert counts.mean() == pytest.approx(betabinom.mean(50, 2, 99), rel=0.1)
        expected = chance.probability_exceeded(Sizes(100, 1, 50), 0.05)
        assert (counts > 2).mean() == pytest.approx(expected, abs=0.015)


class TestGuarantees:
    @pytest.mark.parametrize(
        ("n", "percents"),
        [(28, []), (29, [10]), (59, [5, 10]), (149, [2, 5, 10]), (299, [1, 2, 5, 10])],
    )
    def test_a_rate_needs_enough_samples(self, n, percents):
        """Ln δ / ln(1 − α): 29, 59, 149 and 299 at confidence 0.95."""
        found = guarantees.supported_limits(np.zeros(n, dtype=int), (1, 2, 5, 10))
        assert found == [("fp", percent) for percent in percents]

    @pytest.mark.parametrize("limited", [0, 1])
    def test_a_threshold_leaves_the_allowed_errors(self, limited):
        scores = np.random.default_rng(0).normal(size=200)
        y = np.repeat([0, 1], 100)
        for allowed in (0, 3):
            threshold = rivals.threshold_leaving(scores, y, limited, allowed)
            assert guarantees.count_errors(scores > threshold, y, limited).wrong == allowed

    @pytest.mark.parametrize("limited", [0, 1])
    def test_margrave_is_the_model_that_accept_returns(
        self, limited, cases, training, parts, held_back
    ):
        case = cases[limited]
        limit = f"{case.side} <= {case.percent}%"
        model = held_back(limit)
        predicted = model.predict(parts.X_test)
        arrays = training.arrays
        plan = guarantees.plan_certification(
            arrays[f"tune/{MARGRAVE}"], arrays["tune/y"], limit, np.bincount(parts.y_certify)
        )
        ours = guarantees.set_decision(
            plan, arrays[f"certify/{MARGRAVE}"], parts.y_certify, 1 - CONFIDENCE
        ).decision.predict(arrays[f"test/{MARGRAVE}"])
        assert np.array_equal(predicted, ours)
        found = guarantees.count_errors(predicted == 1, parts.y_test, limited)
        assert case.outcomes[MARGRAVE] == found
        (guarantee,) = model.certificate_.guarantees
        assert (guarantee.count, guarantee.n) == (case.sizes.allowed, case.sizes_of(MARGRAVE).n)
        assert case.sizes_of(ORDER_STATISTIC).n == (parts.y_certify == limited).sum()

    def test_the_order_statistic_is_never_less_strict(self, cases):
        for case in cases:
            accepted, whole = case.outcomes[MARGRAVE], case.outcomes[ORDER_STATISTIC]
            assert accepted.wrong >= whole.wrong
            assert accepted.missed <= whole.missed

    def test_the_tuning_quantile_uses_the_whole_rate_on_the_tuning_set(self, cases, training):
        scores, y = (training.arrays[f"tune/{name}"] for name in (MARGRAVE, "y"))
        threshold = rivals.threshold_leaving(scores, y, 0, int((y == 0).sum()) // 10)
        predicted = training.arrays[f"test/{MARGRAVE}"] > threshold
        wanted = guarantees.count_errors(predicted, training.arrays["test/y"], 0)
        assert cases[0].outcomes[TUNED] == wanted

    def test_all_rules_are_measured(self, cases, parts):
        assert [(case.side, case.percent) for case in cases] == [("fp", 10), ("fn", 10)]
        for case in cases:
            assert set(case.outcomes) == {MARGRAVE, ORDER_STATISTIC, TUNED, *RIVALS}
            assert case.sizes.m + case.n_others == len(parts.y_test)

    def test_a_limit_that_needs_more_samples_is_refused(self, training):
        assert guarantees.measure(training, "fn", 1) is None

    def test_too_few_samples_are_refused(self):
        with pytest.raises(ValueError, match=r"\b20\b.*\b0\.1\b"):
            rivals.order_statistic_threshold(np.arange(20.0), np.zeros(20, dtype=int), 0, 0.1)


class TestRivals:
    def test_the_best_member_ranks_best_out_of_fold(self, dialog):
        tuning = dialog._data
        best = rivals.find_best_member(dialog)
        aucs = [roc_auc_score(tuning.codes, column) for column in tuning.raw.T]
        assert aucs[best] == max(aucs)
        scores = rivals.fit_rivals(dialog)[MEMBER](tuning.raw)
        assert roc_auc_score(tuning.codes, scores) == pytest.approx(aucs[best])

    def test_stacking_uses_probabilities_and_decision_values(self, dialog):
        tuning = dialog._data
        has_proba = tuning.committee.gives_probabilities
        assert has_proba.tolist() == [True, True, False]
        columns = rivals._stacking_features(tuning.raw, has_proba)
        assert columns[:, :2].min() >= 0
        assert columns[:, :2].max() <= 1
        assert np.array_equal(columns[:, 2], tuning.raw[:, 2])

    def test_ensemble_selection_averages_on_the_unit_interval(self, dialog):
        tuning = dialog._data
        scores = rivals.fit_rivals(dialog)[SELECTION](tuning.raw)
        assert 0 <= scores.min() < scores.max() <= 1
        aucs = [roc_auc_score(tuning.codes, column) for column in tuning.raw.T]
        assert roc_auc_score(tuning.codes, scores) >= max(aucs) - 1e-9

    def test_ensemble_selection_by_hand(self):
        """Two members that err on different pairs rank perfectly together; noise is left out."""
        y = np.array([0, 0, 1, 1])
        first, second = [0.1, 0.6, 0.5, 0.9], [0.6, 0.1, 0.9, 0.5]
        noise = [0.9, 0.1, 0.1, 0.9]
        weights = rivals.select_ensemble(np.column_stack([noise, first, second]), y)
        assert weights.tolist() == [0, 0.5, 0.5]

    def test_ensemble_selection_takes_the_first_of_equals(self):
        y = np.array([0, 1, 0, 1])
        same = np.array([0.2, 0.8, 0.3, 0.7])
        weights = rivals.select_ensemble(np.column_stack([same, same]), y, n_rounds=3)
        assert weights.tolist() == [1, 0]


@needs_mapie
class TestMapie:
    @staticmethod
    def scored(seed, n):
        y = np.repeat([0, 1], n)
        return np.random.default_rng(seed).normal(2.0 * (2 * y - 1)), y

    def test_thresholds_go_from_the_safest_on(self):
        scores, y = self.scored(0, 500)
        thresholds = learn_then_test.candidate_thresholds(scores, y, 0.05)
        assert (np.diff(thresholds) < 0).all()
        assert thresholds[0] > 1
        p = 1 / (1 + np.exp(-scores[y == 0]))
        assert (p >= thresholds[-1]).mean() == pytest.approx(0.075, abs=0.005)
        assert len(thresholds) > learn_then_test.N_QUANTILES / 2

    @pytest.mark.parametrize("limited", [0, 1])
    def test_the_fixed_sequence_comes_near_the_order_statistic(self, limited):
        tune, certify, (test, y) = (self.scored(seed, n) for seed, n in enumerate((900, 300, 300)))
        found = learn_then_test.predict_with_mapie(tune, certify, test, limited, 0.05)
        assert set(found) == {learn_then_test.HOLM, learn_then_test.SEQUENCE}
        threshold = rivals.order_statistic_threshold(*certify, limited, 0.05)
        ours = guarantees.count_errors(test > threshold, y, limited)
        sequence = guarantees.count_errors(found[learn_then_test.SEQUENCE], y, limited)
        holm = guarantees.count_errors(found[learn_then_test.HOLM], y, limited)
        assert ours.missed <= sequence.missed <= ours.missed + 15
        assert sequence.missed <= holm.missed < len(y) / 4

    def test_holm_finds_no_threshold_on_few_samples(self):
        tune, certify, (test, y) = (self.scored(seed, n) for seed, n in enumerate((900, 60, 300)))
        found = learn_then_test.predict_with_mapie(tune, certify, test, 0, 0.05)
        assert found[learn_then_test.HOLM] is None
        assert found[learn_then_test.SEQUENCE][y == 0].mean() <= 0.05


class TestTrainings:
    plan = study.Plan(("pima",), n_splits=1, percents=(10,), committee=("logistic", "qda"))

    def test_a_stored_training_is_read_back(self, tmp_path):
        path = tmp_path / "a" / "b.npz"
        Training({"seconds": 1.5}, {"test/y": np.arange(3)}).save(path)
        again = Training.load(path)
        assert again.facts == {"seconds": 1.5}
        assert again.arrays["test/y"].tolist() == [0, 1, 2]
        assert list(path.parent.iterdir()) == [path]

    def test_results_are_those_of_the_stored_trainings(self, tmp_path):
        assert Results.of(self.plan, 0, tmp_path, n_jobs=1).n_missing == 1
        assert len(list(study.train_all(self.plan, 0, tmp_path, n_jobs=1))) == 1
        (path,) = tmp_path.rglob("*.npz")
        written = path.stat().st_mtime_ns
        list(study.train_all(self.plan, 0, tmp_path, n_jobs=1))
        assert path.stat().st_mtime_ns == written
        found = Results.of(self.plan, 0, tmp_path, n_jobs=1)
        assert found.n_missing == 0
        assert [case.side for case in found.cases] == ["fp", "fn"]
        assert found.runs[0].best_member in self.plan.committee


def _results(recalls, *, wrong=2, n_titles=3):
    """Runs in which rules have these recalls, Margrave a little less on every other split."""
    runs, titles = [], tuple(f"set {i}" for i in range(n_titles))
    for title in titles:
        for split in range(2):
            by = dict.fromkeys(RIVALS, 60) | recalls
            by[MARGRAVE] -= split
            outcomes = {
                rule: None if recall is None else Outcome(wrong, 100 - recall)
                for rule, recall in by.items()
            }
            outcomes |= dict.fromkeys((ORDER_STATISTIC, TUNED), outcomes[MARGRAVE])
            case = Case("fp", 5, Sizes(100, 1, 100), 100, outcomes)
            runs.append(results_module.Run(title, split, "logistic", [case]))
    return Results(study.Plan(titles, n_splits=2), 0, runs)


class TestFindings:
    good = _results({MARGRAVE: 80, MEMBER: 60})
    bad = _results({MARGRAVE: 60, MEMBER: 80}, wrong=9)

    @pytest.mark.parametrize("of", [findings.guarantees, findings.cost], ids=lambda f: f.__name__)
    def test_the_numbers_decide_whether_a_target_is_met(self, of):
        assert bold(of(self.good)) == ["met"]
        assert bold(of(self.bad)) == ["missed"]

    def test_the_cost_is_compared_with_the_strongest_rival(self):
        results = _results({MARGRAVE: 80, MEMBER: 70, STACKING: 85, SELECTION: 82})
        rule, gap = results.strongest
        assert (rule, gap.mean) == (STACKING, pytest.approx(5.5))
        found = findings.cost(results)
        assert bold(found) == ["missed"]
        for fact in (STACKING, "+5.50"):
            assert fact in found
        assert MEMBER not in found

    def test_a_single_data_set_has_no_standard_error(self):
        results = _results({MARGRAVE: 80}, n_titles=1)
        assert results.strongest is None
        assert bold(findings.cost(results)) == []

    def test_an_unclear_difference_has_a_bound(self):
        """Differences of −1, 0 and 1: a mean of 0, a standard error of 1 / √3."""
        runs = []
        for title, recall in (("a", 79), ("b", 80), ("c", 81)):
            one = _results({MARGRAVE: 80, STACKING: recall}, n_titles=1).runs[0]
            runs.append(replace(one, title=title))
        found = findings.cost(Results(study.Plan(("a", "b", "c"), n_splits=1), 0, runs))
        assert bold(found) == ["met"]
        for fact in (STACKING, "+0.00 ± 0.58", "1.15"):
            assert fact in found

    def test_a_result_for_margrave_needs_two_standard_errors(self):
        assert is_higher(Gap(1.5, 1.0))
        assert not is_lower(Gap(-1.5, 1.0))
        assert is_lower(Gap(-2.5, 1.0))

    def test_counts_are_pooled(self):
        one = self.bad.pooled(5, MARGRAVE)
        assert (one.n_cases, one.wrong, one.m, one.exceeded) == (6, 54, 600, 1.0)
        assert one.p < 0.01 < self.good.pooled(5, MARGRAVE).p

    def test_chance_is_that_of_the_samples_that_a_rule_uses(self):
        """At 5 %, 93 samples allow one error, as 100 do: their rate is Beta(2, 92)."""
        (case, *_) = self.good.cases
        assert case.sizes_of(MARGRAVE) == Sizes(93, 1, 100)
        assert case.sizes_of(ORDER_STATISTIC) == case.sizes
        for rule, n in ((MARGRAVE, 93), (ORDER_STATISTIC, 100)):
            expected = betabinom.sf(5, 100, 2, n - 1)
            assert self.good.pooled(5, rule).expected == pytest.approx(expected)

    def test_differences_are_those_of_the_rival_to_margrave(self):
        gap = self.bad.difference("set 0", MEMBER)
        assert (gap.mean, gap.error) == pytest.approx((20.5, 0.5))
        assert is_higher(gap)
        assert is_lower(self.good.difference("set 0", MEMBER))
        assert self.bad.mean_difference(MEMBER).mean == pytest.approx(20.5)
        assert self.bad.mean_recall(MARGRAVE) == pytest.approx(59.5)

    def test_a_rule_is_compared_where_it_finds_a_threshold(self):
        results = _results({MARGRAVE: 80, STACKING: None})
        assert results.differences("set 0", STACKING) == []
        assert results.mean_difference(STACKING) is None
        assert np.isnan(results.recall("set 0", STACKING))

    def test_rivals_that_win_are_listed(self):
        higher, lower, *_ = findings.others(self.bad).split(". ")
        assert MEMBER in higher
        assert MEMBER not in lower
        assert MEMBER in findings.others(self.good).split(". ")[1]
        assert "**80.0**" in data_sets(self.bad)
        assert f"**{MEMBER}**" in rivals_table(self.bad)
        assert f"**{MEMBER}**" not in rivals_table(self.good)

    def test_proportions_exceeded(self):
        """9 of 100 are above 5 %, 2 are not."""
        assert "100.0 %" in findings.guarantees(self.bad)
        assert "For 0.0 %" in findings.guarantees(self.good)
        assert "100 to 100 %" in findings.tuning_quantile(self.bad)

    def test_the_most_frequent_best_member_is_named(self):
        assert findings.best_member(self.good).endswith("logistic, in 6 of 6 splits")


@pytest.mark.full
@pytest.mark.slow
def test_the_command_writes_the_page(tmp_path, capsys):
    assert main(["--quick", "--jobs", "1", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "guarantees.md").read_text()
    assert "experiments.steer --quick" in page
    assert len([word for word in bold(page) if word in ("met", "missed")]) == 2
    assert "$" not in page
    assert "nan" not in page
    figures = re.findall(r"\]\((.*?\.png)\)", page)
    assert len(figures) == 2
    for figure in figures:
        assert (tmp_path / figure).stat().st_size > 10_000
    assert str(tmp_path) in capsys.readouterr().out


def test_a_quick_run_does_not_overwrite_the_page(capsys):
    assert main(["--quick"]) == 2
    assert "--out" in capsys.readouterr().err
