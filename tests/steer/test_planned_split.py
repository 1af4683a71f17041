"""The planned split: what it sets aside, what it expects, and that it stays valid."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from margrave.steer import Dialog

DELTA = 0.05


def allowed_errors(n, limit):
    counts = np.arange(n + 1)
    return int(np.sum(binom.cdf(counts, n, limit) <= DELTA)) - 1


def normal_table(n_negative, n_positive, distance=2.0, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(["neg", "pos"], [n_negative, n_positive])
    X = rng.normal(size=(len(y), n_features))
    X[y == "pos", 0] += distance
    order = rng.permutation(len(y))
    return X[order], y[order]


def plan_of(X, y, guarantee, **settings):
    return Dialog.plan_split(X, y, guarantee=guarantee, random_state=0, **settings).plan


class TestTheSizes:
    @pytest.mark.parametrize("limit", [2, 5, 10, 30])
    def test_each_option_is_where_one_more_error_is_allowed(self, limit):
        X, y = normal_table(600, 300)
        plan = plan_of(X, y, f"fp <= {limit}%")
        for option in plan.options:
            n, allowed = option.certify_by_class["neg"], option.allowed_errors["neg"]
            assert allowed_errors(n, limit / 100) == allowed > allowed_errors(n - 1, limit / 100)

    def test_only_the_limited_class_gives_many_samples(self):
        X, y = normal_table(500, 500)
        sizes = Dialog.plan_split(X, y, guarantee="fp <= 5%", random_state=0)
        assert sizes.certify_by_class["neg"] >= 93
        assert 10 <= sizes.certify_by_class["pos"] <= 50
        assert sizes.train == 1000 - sizes.certify

    def test_other_rates_of_the_same_class_lead_to_the_same_plan(self):
        X, y = normal_table(300, 300)
        one, same = (
            plan_of(X, y, guarantee).chosen for guarantee in ("fn <= 10%", "recall >= 90%")
        )
        assert one == same

    def test_the_smallest_possible_set_is_used_where_there_are_few_samples(self):
        X, y = normal_table(59 + 30, 200)
        assert plan_of(X, y, "fp <= 5%").chosen.certify_by_class["neg"] == 59

    def test_a_plan_says_if_there_are_too_few_samples(self):
        X, y = normal_table(59 + 29, 200)
        plan = plan_of(X, y, "fp <= 5%")
        assert plan.chosen.recall == 0
        assert plan.chosen.allowed_errors == {"neg": -1}
        assert "too few" in str(plan)

    def test_two_limits_set_aside_both_classes(self):
        X, y = normal_table(600, 600, distance=4.0)
        plan = plan_of(X, y, "fp <= 5%, fn <= 10%")
        for label, limit in (("neg", 0.05), ("pos", 0.1)):
            n = plan.chosen.certify_by_class[label]
            # Each limit gets half of the error probability.
            assert binom.cdf(plan.chosen.allowed_errors[label], n, limit) <= DELTA / 2
        assert plan.chosen.recall > 0.5

    def test_without_a_guarantee_there_is_no_plan(self):
        X, y = normal_table(200, 200)
        assert Dialog.plan_split(X, y, random_state=0).plan is None


class TestTheExpectedRecall:
    def test_it_is_that_of_certified_thresholds_on_new_samples(self):
        recalls, expected = [], []
        X_new, y_new = normal_table(4000, 4000, seed=1)
        for seed in range(8):
            X, y = normal_table(250, 250, seed=seed + 2)
            dialog = Dialog.from_data(
                X, y, committee="logistic", guarantee="fp <= 5%", random_state=0
            )
            dialog.prefer("fp <= 5%")
            model = dialog.accept()
            recalls.append(np.mean(model.predict(X_new[y_new == "pos"]) == "pos"))
            expected.append(dialog.plan().chosen.recall)
        assert np.mean(recalls) == pytest.approx(np.mean(expected), abs=0.08)

    def test_more_rows_and_no_guarantee_would_be_better(self):
        X, y = normal_table(200, 200)
        plan = plan_of(X, y, "fp <= 5%")
        assert plan.gain_of_more_rows > 0
        assert plan.recall_without > plan.recall_with_more > plan.chosen.recall
        assert plan.cost == pytest.approx(plan.recall_without - plan.chosen.recall)

    def test_a_stricter_limit_costs_more(self):
        X, y = normal_table(1500, 300)
        costs = [plan_of(X, y, f"fp <= {limit}%").cost for limit in (10, 5, 2)]
        assert costs == sorted(costs)

    def test_where_more_training_does_not_help_the_set_is_large(self):
        X, y = normal_table(1000, 1000, n_features=1)
        plan = plan_of(X, y, "fp <= 5%")
        assert plan.chosen.certify_by_class["neg"] >= 300

    def test_a_plan_is_shown_with_its_options(self):
        X, y = normal_table(200, 200)
        plan = plan_of(X, y, "fp <= 5%")
        record, shown = plan.to_dict(), str(plan)
        assert len(record["options"]) == len(plan.options) == shown.count("%\n") + shown.count("<-")
        assert record["chosen"] in record["options"]


class TestTheRows:
    def test_the_certification_set_does_not_influence_the_plan(self):
        X, y = normal_table(300, 300)
        dialog = Dialog.from_data(X, y, committee="logistic", guarantee="fp <= 5%", random_state=0)
        used = np.isin(np.arange(len(y)), dialog.rows().at)
        changed = np.where(used[:, None], X, 100 * X)
        assert 59 < (~used).sum() < 300
        assert plan_of(changed, y, "fp <= 5%").options == dialog.plan().options

    def test_the_dialog_uses_the_planned_numbers(self):
        X, y = normal_table(300, 300)
        dialog = Dialog.from_data(X, y, committee="logistic", guarantee="fp <= 5%", random_state=0)
        assert dialog.sizes.certify_by_class == dialog.plan().chosen.certify_by_class
        dialog.prefer("fp <= 5%")
        matrix = dialog.accept().certificate_.confusion
        assert matrix.counts.sum(axis=1).tolist() == list(dialog.sizes.certify_by_class.values())

    def test_a_group_gives_one_sample_or_trains(self):
        X, y = normal_table(600, 600)
        groups = np.random.default_rng(0).integers(0, 400, len(y))
        dialog = Dialog.from_data(
            X, y, committee="logistic", guarantee="fp <= 10%", groups=groups, random_state=0
        )
        sizes, trained = dialog.sizes, set(groups[dialog.rows().at])
        assert sizes.certify == len(set(groups)) - len(trained)
        assert sizes.certify_by_class == dialog.plan().chosen.certify_by_class

    def test_with_a_time_the_latest_samples_are_set_aside(self):
        X, y = normal_table(400, 400)
        time = np.random.default_rng(0).permutation(len(y))
        dialog = Dialog.from_data(
            X, y, committee="logistic", guarantee="fp <= 10%", time=time, random_state=0
        )
        assert time[dialog.rows().at].max() < len(y) - dialog.sizes.certify
        # The step of the plan, and the other class in the same period.
        n = dialog.sizes.certify_by_class["neg"]
        assert allowed_errors(n, 0.1) > allowed_errors(n - 1, 0.1)

    def test_equal_rows_count_once(self):
        X, y = normal_table(300, 300)
        X, y = np.concatenate([X, X]), np.concatenate([y, y])
        sizes = Dialog.plan_split(X, y, guarantee="fp <= 5%", random_state=0)
        assert sizes.train + 2 * sizes.certify == len(y)
        n = sizes.certify_by_class["neg"]
        assert allowed_errors(n, 0.05) > allowed_errors(n - 1, 0.05)

    def test_samples_that_only_the_members_can_read_are_planned_too(self):
        X, y = normal_table(200, 200)
        texts = np.array([f"{'spam' if x > 1 else 'ham'} {i}" for i, x in enumerate(X[:, 0])])
        model = make_pipeline(CountVectorizer(), LogisticRegression())
        dialog = Dialog.from_data(texts, y, committee=model, guarantee="fp <= 10%", random_state=0)
        assert dialog.sizes.certify_by_class == dialog.plan().chosen.certify_by_class
