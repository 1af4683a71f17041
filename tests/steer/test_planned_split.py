"""The planned split: what it sets aside, what it expects, and that it stays valid."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from margrave.confusion import PreferenceError
from margrave.steer import Dialog, SplitError
from margrave.steer._planned_split import LearningCurve, Trial

DELTA = 0.05


def allowed_errors(n, limit):
    counts = np.arange(n + 1)
    return int(np.sum(binom.cdf(counts, n, limit) <= DELTA)) - 1


def plan_limit(guarantee):
    return float(guarantee.split()[-1].strip("%")) / 100


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
        n = (y == "neg").sum()
        assert plan.chosen.certify_by_class["neg"] == pytest.approx(0.65 * n, abs=1)
        more = plan.further[0]
        assert more.allowed_errors == {"neg": 0}
        assert more.recall > 0
        enough = n + more.more_rows["neg"]
        assert plan_of(*normal_table(enough, 200), "fp <= 5%").chosen.allowed_errors["neg"] >= 0
        assert len(str(plan).splitlines()) == 3 + len(plan.further)

    def test_two_limits_set_aside_both_classes(self):
        X, y = normal_table(600, 600, distance=4.0)
        plan = plan_of(X, y, "fp <= 5%, fn <= 10%")
        for label, limit in (("neg", 0.05), ("pos", 0.1)):
            n = plan.chosen.certify_by_class[label]
            # Each limit gets half of the error probability.
            assert binom.cdf(plan.chosen.allowed_errors[label], n, limit) <= DELTA / 2
        assert 0.5 < plan.chosen.recall <= plan.recall_without
        assert plan.recall_without < 1
        assert plan.confidence == 1 - DELTA

    def test_with_two_limits_the_recall_without_a_guarantee_is_the_mean_of_both(self):
        X, y = normal_table(600, 600)
        plan = plan_of(X, y, "fp <= 5%, fn <= 40%")
        recall = ndtr(2.0 + ndtri(0.05))  # of positives, at the limit on negatives
        assert plan.recall_without == pytest.approx((0.95 + recall) / 2, abs=0.05)

    def test_without_a_guarantee_there_is_no_plan(self):
        X, y = normal_table(200, 200)
        assert Dialog.plan_split(X, y, random_state=0).plan is None


class TestOtherGuarantees:
    @pytest.mark.parametrize(
        "guarantee", ["precision >= 80%", "alarms <= 60%", "fp <= 10%, rejected <= 30%"]
    )
    def test_all_classes_keep_their_proportions(self, guarantee):
        X, y = normal_table(300, 200)
        sizes = Dialog.plan_split(X, y, guarantee=guarantee, random_state=0)
        negative, positive = sizes.certify_by_class.values()
        assert negative / positive == pytest.approx(1.5, abs=0.05)
        assert 0.2 <= sizes.certify / 500 <= 0.6
        assert 0 < sizes.plan.chosen.recall <= sizes.plan.recall_without < 0.9  # Φ(1) is 0.84

    def test_more_than_two_classes(self):
        X, y = normal_table(300, 300, distance=5.0)
        y = np.where((y == "pos") & (X[:, 1] > 0), "other", y)
        X[y == "other", 1] += 5
        plan = plan_of(X, y, "fn(other) <= 5%")
        # With a fifth of 150 samples the limit cannot be certified.
        assert plan.options[0].recall == 0
        assert plan.chosen.certify_by_class["other"] >= 59
        assert plan.chosen.recall > 0.8

    def test_the_latest_samples(self):
        X, y = normal_table(300, 300)
        time = np.random.default_rng(0).permutation(len(y))
        dialog = Dialog.from_data(
            X, y, committee="logistic", guarantee="precision >= 80%", time=time, random_state=0
        )
        assert time[dialog.rows().at].max() < len(y) - dialog.sizes.certify

    def test_a_split_by_class_refuses_what_depends_on_class_proportions(self):
        X, y = normal_table(300, 300)
        dialog = Dialog.from_data(X, y, committee="logistic", guarantee="fp <= 10%", random_state=0)
        for preference in ("precision >= 80%", "alarms <= 40%", "fp <= 10%, rejected <= 20%"):
            with pytest.raises(PreferenceError) as caught:
                dialog.prefer(preference)
            assert caught.value.code == "proportions"
        assert dialog.prefer("fp <= 10%, recall >= 20%").met


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
        assert np.mean(recalls) == pytest.approx(np.mean(expected), abs=0.05)

    def test_more_rows_and_no_guarantee_would_be_better(self):
        X, y = normal_table(200, 200)
        plan = plan_of(X, y, "fp <= 5%")
        recalls = [option.recall for option in (plan.chosen, *plan.further)]
        assert len(recalls) == 4
        assert recalls == sorted(set(recalls))
        assert plan.recall_without > plan.chosen.recall
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
        record = plan.to_dict()
        assert len(record["options"]) == len(plan.options)
        assert len(record["further"]) == len(plan.further) == 3
        assert len(str(plan).splitlines()) == 3 + len(plan.options) + 3
        assert record["chosen"] in record["options"]


class TestMoreRows:
    @pytest.mark.parametrize(
        ("sizes", "guarantee"),
        [((200, 200), "fp <= 5%"), ((1000, 60), "fp <= 10%"), ((80, 300), "fp <= 2%")],
    )
    def test_each_further_step_allows_more_errors_with_the_rows_that_it_names(
        self, sizes, guarantee
    ):
        plan = plan_of(*normal_table(*sizes), guarantee)
        assert plan.further
        trained = sizes[0] - plan.chosen.certify_by_class["neg"]
        last = plan.chosen
        for option in plan.further:
            (label, more), n = *option.more_rows.items(), option.certify_by_class["neg"]
            assert label == "neg"
            assert option.allowed_errors["neg"] == allowed_errors(n, plan_limit(guarantee))
            assert option.allowed_errors["neg"] > last.allowed_errors["neg"]
            assert sizes[0] + more - n >= trained  # at least as many train the members
            largest = plan_of(*normal_table(sizes[0] + more, sizes[1]), guarantee).options[-1]
            assert largest.certify_by_class["neg"] == pytest.approx(n, rel=0.2)
            last = option

    def test_only_classes_with_a_limit_need_more_rows(self):
        plan = plan_of(*normal_table(600, 30 + 20, distance=4.0), "fp <= 5%, fn <= 10%")
        assert plan.chosen.allowed_errors["pos"] == -1
        first, second = plan.further[:2]
        assert list(first.more_rows) == ["pos"]
        assert list(second.more_rows) == ["neg", "pos"]

    def test_other_guarantees_need_more_rows_of_all_classes(self):
        plan = plan_of(*normal_table(300, 200), "alarms <= 30%")
        for option in plan.further:
            assert option.more_rows["neg"] == 1.5 * option.more_rows["pos"]
            assert option.recall > plan.chosen.recall

    def test_what_does_not_help_is_left_out(self):
        plan = plan_of(*normal_table(2000, 2000, distance=12.0), "fp <= 10%")
        assert plan.chosen.recall > 0.999
        assert plan.further == ()


class TestTheRows:
    def test_the_largest_set_that_may_be_set_aside_does_not_influence_the_plan(self):
        X, y = normal_table(300, 300)
        plan = plan_of(X, y, "fp <= 5%")
        # Rows are set aside in the same order whatever the limit. This limit needs the largest set.
        dialog = Dialog.from_data(
            X, y, committee="logistic", guarantee="fp <= 1.65%", random_state=0
        )
        assert dialog.sizes.certify_by_class == plan.options[-1].certify_by_class
        used = np.isin(np.arange(len(y)), dialog.rows().at)
        changed = np.where(used[:, None], X, 100 * X)
        assert plan_of(changed, y, "fp <= 5%").options == plan.options
        assert plan_of(100 * X[:, ::-1] ** 2, y, "fp <= 5%").options != plan.options

    def test_the_certification_set_does_not_influence_a_plan_of_fractions(self):
        X, y = normal_table(300, 300)
        guarantee = "precision >= 80%"
        dialog = Dialog.from_data(X, y, committee="logistic", guarantee=guarantee, random_state=0)
        used = np.isin(np.arange(len(y)), dialog.rows().at)
        changed = np.where(used[:, None], X, 100 * X)
        assert plan_of(changed, y, guarantee).options == dialog.plan().options

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
        sizes, away = dialog.sizes, set(groups) - set(groups[dialog.rows().at])
        # One sample of each class: few groups serve only the class without a limit.
        assert sizes.certify_by_class["neg"] <= len(away) < sizes.certify
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

    def test_with_a_time_and_few_samples(self):
        X, y = normal_table(55, 60)
        sizes = Dialog.plan_split(
            X, y, guarantee="fp <= 5%", time=np.arange(len(y)), random_state=0
        )
        assert sizes.plan.chosen.recall == 0
        assert sizes.plan.further[0].recall > 0

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


class TestEdges:
    def test_a_limit_that_cannot_be_violated_is_ignored(self):
        X, y = normal_table(200, 200)
        guarantee = "fp <= 10%, rejected <= 100%"
        dialog = Dialog.from_data(X, y, committee="logistic", guarantee=guarantee, random_state=0)
        assert dialog.prefer(guarantee).met

    def test_counts_are_not_planned_because_the_split_changes_their_meaning(self):
        X, y = normal_table(300, 300)
        sizes = Dialog.plan_split(X, y, guarantee="fp <= 5", random_state=0)
        assert sizes.plan is None
        assert sizes.certify_by_class["neg"] == sizes.certify_by_class["pos"]

    def test_a_low_confidence(self):
        X, y = normal_table(300, 300)
        for confidence in (0.1, 0.3, 0.5):
            plan = plan_of(X, y, "fp <= 5%", confidence=confidence)
            for option in plan.options:
                n, allowed = option.certify_by_class["neg"], option.allowed_errors["neg"]
                assert binom.cdf(allowed, n, 0.05) <= 1 - confidence
                assert n == allowed + 1 or binom.cdf(allowed, n - 1, 0.05) > 1 - confidence

    @pytest.mark.parametrize("guarantee", ["fp <= 10%", "alarms <= 60%"])
    def test_few_groups(self, guarantee):
        X, y = normal_table(200, 200)
        groups = np.random.default_rng(0).integers(0, 4, len(y))
        sizes = Dialog.plan_split(X, y, guarantee=guarantee, groups=groups, random_state=0)
        assert 1 <= sizes.certify <= 3

    @pytest.mark.parametrize("guarantee", ["fp <= 10%", "alarms <= 60%"])
    @pytest.mark.parametrize("n_times", [4, 6])
    def test_few_times(self, guarantee, n_times):
        X, y = normal_table(200, 200)
        time = np.random.default_rng(0).integers(0, n_times, len(y))
        sizes = Dialog.plan_split(X, y, guarantee=guarantee, time=time, random_state=0)
        assert sizes.train >= 60
        assert sizes.certify == sum(sizes.certify_by_class.values())
        if sizes.plan is not None:
            assert sizes.certify_by_class == sizes.plan.chosen.certify_by_class

    def test_a_class_that_is_only_in_the_latest_samples_is_refused(self):
        X, y = normal_table(200, 60)
        order = np.argsort(y, kind="stable")
        with pytest.raises(SplitError):
            Dialog.plan_split(
                X[order], y[order], guarantee="fp <= 10%", time=np.arange(len(y)), random_state=0
            )

    def test_copies_of_all_rows_with_a_time_are_refused(self):
        X, y = normal_table(100, 100)
        with pytest.raises(SplitError):
            Dialog.plan_split(
                np.tile(X, (2, 1)),
                np.tile(y, 2),
                guarantee="fp <= 10%",
                time=np.arange(2 * len(y)),
                random_state=0,
            )


def quantile_trial(limited, sd, sizes=(3000, 400)):
    """Scores at the quantiles of two normal distributions, nearer with less training."""
    codes = np.repeat([0, 1], sizes)
    grid = np.concatenate([ndtri((np.arange(n) + 0.5) / n) for n in sizes])
    sign = 1 if limited == 0 else -1
    both = [sign * np.where(codes == limited, grid, far + sd * grid) for far in (1.0, 0.8)]
    return Trial(codes, *both)


@pytest.mark.parametrize("limited", [0, 1])
def test_the_curve_is_that_of_normal_scores(limited):
    sizes = (3000, 400)
    n_limited, n_other = sizes[limited], sizes[1 - limited]
    curve = LearningCurve.of(quantile_trial(limited, 1.0), limited)
    rates = np.array([0.02, 0.1, 0.3])
    exact = ndtr(1.0 + ndtri(rates))
    found = curve.recall(rates, 2 / 3 * n_limited, 2 / 3 * n_other)
    assert found == pytest.approx(exact, abs=0.02)
    large, small = (np.sqrt(3 / part * (1 / 3000 + 1 / 400)) for part in (2, 1))
    assert curve.effect == pytest.approx((0.2 / (small - large) + 2.0) / 2, rel=0.1)
    assert (curve.recall(rates, 3000, 3000) > curve.recall(rates, 3000, 400)).all()
    # Few points of a steep curve say little: its slope is nearer to the usual one.
    steep = LearningCurve.of(quantile_trial(limited, 0.5), limited)
    assert 1.3 < steep.slope < 1.7


@pytest.mark.core
def test_one_sample_of_a_small_class_without_a_limit_is_set_aside():
    X, y = normal_table(300, 12)
    sizes = Dialog.plan_split(X, y, guarantee="fp <= 10%", random_state=0)
    assert sizes.plan is not None
    assert sizes.certify_by_class["pos"] == 1
    assert sizes.certify_by_class["neg"] >= 29


@pytest.mark.core
def test_a_class_with_too_few_samples_to_try_is_planned_by_the_typical_curve():
    X, y = normal_table(10, 300)
    few = Dialog.plan_split(X, y, guarantee="fn <= 10%", random_state=0).plan
    assert few is not None
    X, y = normal_table(300, 10)
    other = Dialog.plan_split(X, y, guarantee="fp <= 10%", random_state=0).plan
    assert other.chosen.recall == pytest.approx(few.chosen.recall, abs=0.02)


@pytest.mark.core
def test_a_sample_with_a_copy_in_another_group_is_not_planned_to_certify():
    X, y = normal_table(300, 300)
    X, y = np.concatenate([X, X[:150]]), np.concatenate([y, y[:150]])
    groups = np.arange(750) // 2
    sizes = Dialog.plan_split(X, y, guarantee="fp <= 10%", groups=groups, random_state=0)
    assert sizes.certify_by_class == sizes.plan.chosen.certify_by_class


@pytest.mark.core
def test_what_can_never_be_certified_has_no_expected_recall():
    X, y = normal_table(60, 60, distance=0.2)
    plan = Dialog.plan_split(X, y, guarantee="precision >= 99%", random_state=0).plan
    assert {option.recall for option in plan.options} == {0.0}
    assert plan.chosen == plan.options[-1]
