"""The martingale study: its referee, its measures, its arithmetic, and the command."""

import re
from inspect import signature
from itertools import pairwise

import numpy as np
import pytest
from experiments.martingale import (
    choice,
    claims,
    data,
    measures,
    models,
    noise,
    sentences,
    study,
)
from experiments.martingale.__main__ import main
from experiments.martingale.models import Evaluation
from experiments.martingale.paper import SOURCES, TABLE_1, TABLE_1_METHODS, TABLE_2, TABLE_4
from experiments.martingale.requests import (
    Outcome,
    Request,
    Total,
    other_errors,
    outcomes,
    requests,
    threshold,
    with_gain,
)
from experiments.martingale.results import Gap, Results, overall

from margrave.martingale import TunableLogistic

SMALL = ("Ionosphere", "Sonar", "Liver")


class TestData:
    def test_the_tables_of_the_paper_name_its_data_sets(self):
        assert set(TABLE_2) == set(SOURCES)
        assert set(TABLE_1) | set(TABLE_4) <= set(SOURCES)
        assert all(len(row) == len(TABLE_1_METHODS) for row in TABLE_1.values())

    @pytest.mark.parametrize(
        ("title", "shape", "favoured"),
        [
            ("Ionosphere", (351, 34), 225),
            ("Liver", (345, 6), 200),
            ("Splice", (3190, 287), 767),
            ("Iris", (150, 4), 50),
        ],
    )
    def test_classes_are_numbers_and_the_favoured_one_is_found(self, title, shape, favoured):
        X, y = data.load(title)
        assert X.shape == shape
        assert (y == data.favoured(title)).sum() == favoured
        assert np.isfinite(X).all()

    def test_parts_are_40_20_40_and_do_not_overlap(self):
        parts = data.parts("Sonar", 0)
        assert [len(y) for y in (parts.y_train, parts.y_tune, parts.y_test)] == [82, 42, 84]
        rows = np.concatenate([parts.X_train, parts.X_tune, parts.X_test])
        assert len(np.unique(rows, axis=0)) == 208


class TestReferee:
    scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 1.0, 3.0])
    y = np.array([0, 1, 0, 0, 1, 0, 1])

    def test_one_fewer_half_and_none_of_each_error(self):
        found = requests(self.y, self.scores > 0)  # two false positives, one false negative
        assert list(map(str, found)) == ["fp <= 0", "fp <= 1", "fn <= 0"]

    def test_a_cell_without_errors_has_no_requests(self):
        assert requests(self.y, self.y == 1) == []

    @pytest.mark.parametrize(
        ("request_", "expected"),
        # fp <= 1 is met above 0.5 with two errors in total, and so it is above 1, further from 0.
        [(Request("fp", 1), 0.75), (Request("fp", 0), 2.0), (Request("fn", 0), -1.5)],
    )
    def test_the_best_threshold_lies_between_two_scores(self, request_, expected):
        assert threshold(self.scores, self.y, request_) == expected

    def test_no_other_threshold_has_fewer_errors(self):
        rng = np.random.default_rng(0)
        scores, y = rng.normal(size=60).round(1), rng.integers(0, 2, 60)
        for request_ in requests(y, scores > 0):
            errors = sum(request_.counts(y, scores > threshold(scores, y, request_)))
            for other in np.linspace(-4, 4, 801):
                counts = request_.counts(y, scores > other)
                assert counts[0] > request_.most or sum(counts) >= errors

    @pytest.mark.parametrize(
        ("cell", "count", "expected"),
        [
            # As the threshold rises, three false positives go with 0 or 1 false negatives. No false
            # negatives go with at least 3 false positives, one with at least 1: half of a step of 2
            # above 3 is 4.
            ("fp", 3, 0.5),
            ("fp", 4, 0.0),
            ("fn", 0, 4.0),
            ("fn", 1, 2.0),
        ],
    )
    def test_errors_at_equal_counts_are_midway_between_the_thresholds(self, cell, count, expected):
        scores = np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0])
        y = np.array([0, 1, 0, 0, 1, 0, 1])
        by_hand = []
        for middle in np.concatenate([[-9], (scores[1:] + scores[:-1]) / 2, [9]]):
            own, other = Request(cell, 0).counts(y, scores > middle)
            if own == count:
                by_hand.append(other)
        if count:
            assert (min(by_hand) + max(by_hand)) / 2 == expected
        assert other_errors(scores, y, Request(cell, 0), count) == expected

    def test_a_better_score_has_fewer_errors_at_every_count(self):
        rng = np.random.default_rng(0)
        y = np.arange(400) % 2
        noise = rng.normal(size=400)
        good, bad = 3 * y + noise, y + noise
        for cell in ("fp", "fn"):
            for count in (1, 5, 20):
                errors = [other_errors(s, y, Request(cell, 0), count) for s in (good, bad)]
                assert errors[0] < errors[1]

    def test_a_threshold_set_on_other_samples_agrees_on_average(self):
        """The comparison favours neither side: a score against itself is equal on average."""
        rng, made, compared = np.random.default_rng(1), 0, 0.0
        for _ in range(200):
            y = np.arange(120) % 2
            scores = 1.5 * y + rng.normal(size=120)
            request_ = Request("fp", 0)
            own, other = request_.counts(y, scores > rng.normal(1, 0.3))
            made += other
            compared += other_errors(scores, y, request_, own)
        assert compared == pytest.approx(made, rel=0.03)


def outcome(cell="fp", wanted=10.0, error=3.0, tuned=(12, 40), at=(50.0, 45.0, 44.0)):
    rivals = dict(zip(("start", "LR", "forest"), at, strict=True))
    return Outcome(cell, wanted, error, True, tuned, (8, 55), rivals, 54.0)


class TestTotals:
    def test_outcomes_add_up(self):
        total = Total.of([[outcome(), outcome("fn")], [outcome()]])
        assert (total.n, total.n_met, total.wanted) == (3, 3, 30)
        assert (total.tuned, total.other) == (36, 120)
        assert total.at_equal_count == {"start": 150, "LR": 135, "forest": 132}
        assert total.ratio("LR") == pytest.approx(120 / 135)

    def test_no_outcomes_have_no_errors(self):
        total = Total.of([[], []])
        assert (total.n, total.tuned, total.other) == (0, 0, 0)
        assert total.at_equal_count == {"start": 0, "LR": 0, "forest": 0}

    def test_errors_of_one_cell_and_split_are_added_and_others_are_independent(self):
        assert Total.of([[outcome(), outcome()]]).error == pytest.approx(6)
        assert Total.of([[outcome(), outcome("fn")]]).error == pytest.approx(np.sqrt(18))
        assert Total.of([[outcome()], [outcome()]]).error == pytest.approx(np.sqrt(18))

    @pytest.mark.parametrize(("count", "holds"), [(5, True), (16, True), (17, False)])
    def test_a_request_holds_within_two_standard_errors(self, count, holds):
        assert Total.of([[outcome(tuned=(count, 40))]]).holds == holds

    @pytest.mark.parametrize(
        ("tuned", "kept", "errors"),
        [
            ((12, 40), "2 of 2 data sets.", "160 errors, 11 % fewer"),
            ((30, 40), "0 of 2 data sets, not on Liver and Iris.", "160 errors, 11 % fewer"),
            ((12, 60), "2 of 2 data sets.", "240 errors, 33 % more"),
        ],
    )
    def test_the_verdict_on_the_requests(self, tuned, kept, errors):
        runs = [
            ("requests", title, split, {"LR-Tune": [outcome(tuned=tuned)]})
            for title in ("Liver", "Iris")
            for split in range(2)
        ]
        results = Results.of(study.QUICK, 0, 1.0, runs)
        text = sentences.default_request(results)
        assert kept in text
        assert errors in text


class TestOutcomes:
    def small(self, title, seed=0):
        parts = data.two_class_parts(title, seed)
        forest = models.forest(10, 0).fit(parts.X_train, parts.y_train)
        return parts, TunableLogistic().fit(parts.X_train, parts.y_train), forest

    def test_a_tuning_that_only_moves_the_threshold_is_the_moved_threshold(self):
        parts, model, forest = self.small("Liver")
        found = outcomes(parts, model, forest, {"moved": with_gain(np.inf)})["moved"]
        assert found
        assert all(one.met for one in found)
        # The learner is the logistic regression here.
        assert all(one.at_equal_count["start"] == one.at_equal_count["LR"] for one in found)
        close = [abs(one.tuned[0] - one.logistic[0]) <= 1 for one in found]
        assert all(close)

    def test_requests_to_two_classes_of_three(self):
        parts = data.two_class_parts("Iris", 0)
        assert set(parts.y_train) == {0, 1}
        assert (parts.y_train == 1).sum() == 20

    @pytest.mark.full
    def test_requests_are_met_on_the_tuning_set(self):
        for title in SMALL:
            parts, model, forest = self.small(title)
            found = outcomes(parts, model, forest, choice.RULES)
            for rule in list(choice.RULES)[:4]:
                assert all(one.met for one in found[rule])

    def test_the_chosen_rule_is_compared_with_the_default(self):
        default = signature(TunableLogistic.tune).parameters["min_gain"].default
        assert f"min_gain={default:g}" == choice.DEFAULT

    @pytest.mark.parametrize("title", ["german", "digits 3, 8", "wine", "breast_ljubljana"])
    def test_the_other_data_sets_have_two_classes(self, title):
        X, y = choice.load(title)
        assert len(X) == len(y)
        assert set(y) == {0, 1}

    def test_a_cross_fitted_offset_is_set_without_the_samples_it_scores(self):
        parts, model, _ = self.small("Liver")
        (request_, *_) = requests(parts.y_tune, model.predict(parts.X_tune) == 1)
        fitted = choice.CrossFitted(model, request_, parts)
        found = fitted.predict(parts.X_test)
        assert set(found) <= {0, 1}
        moved = fitted.model.predict(parts.X_test)
        assert (found != moved).any()


class TestMeasures:
    def test_accuracies_are_of_a_class_and_of_all(self):
        evaluation = Evaluation(right=(8, 3), size=(10, 4))
        assert evaluation.of_class(0) == 80
        assert evaluation.overall == pytest.approx(100 * 11 / 14)
        assert evaluation.errors(1) == 1

    def test_adaboost_penalises_as_much_as_its_learner_alone(self):
        parts = data.parts("Liver", 0)
        X, y = parts.X_train, parts.y_train
        plain = TunableLogistic().fit(X, y)
        first = models.adaboost(plain, 1, 0, len(y)).fit(X, y).estimators_[0]
        np.testing.assert_allclose(first.coef_, plain.coef_, rtol=1e-3)

    def test_tuned_hyperparameters_are_boosted(self):
        tuned = TunableLogistic({"0": 1.0, "1": 2.0})
        weak = models.adaboost(tuned, 1, 0, 10).estimator
        assert weak.log_penalty == {"0": 1 - np.log(10), "1": 2 - np.log(10)}

    def test_weak_nodes_are_some_of_all_nodes(self):
        found = measures.granularity("Liver", 0, 3)
        assert found["I-ROOT"].n_requested == 0
        assert 0 < found["I-SELECT"].n_requested <= found["I-ALL"].n_requested <= 6

    def test_the_level_of_freezing_freezes(self):
        epsilon = measures.freezing_level("Liver", 0, 5)
        assert np.log10(epsilon) == round(np.log10(epsilon))
        parts = data.parts("Liver", 0)
        free, frozen = (
            models.martingale(None, 5, 0, level).fit(parts.X_train, parts.y_train)
            for level in (None, epsilon)
        )
        assert len(frozen.learners_) < len(free.learners_) <= 15

    def test_noise_turns_the_labels_it_says_and_more_at_a_higher_rate(self):
        y = np.arange(100) % 2
        turned = [set(np.flatnonzero(noise.flipped(y, rate, 3) != y)) for rate in (0, 0.1, 0.3)]
        assert [len(some) for some in turned] == [0, 10, 30]
        assert all(fewer <= more for fewer, more in pairwise(turned))


class TestArithmetic:
    def results(self, first, second):
        runs = [
            (
                "table 1",
                "Sonar",
                split,
                {"a": Evaluation((one,), (100,)), "b": Evaluation((two,), (100,))},
            )
            for split, (one, two) in reversed(list(enumerate(zip(first, second, strict=True))))
        ]
        return Results.of(study.QUICK, 0, 1.0, runs)

    def test_runs_come_in_any_order(self):
        results = self.results([10, 20, 30], [1, 2, 3])
        assert results.values("table 1", "Sonar", "a", overall).tolist() == [10, 20, 30]

    def test_differences_count_beyond_two_standard_errors(self):
        always = self.results([11, 22, 33], [10, 20, 30]).gap("table 1", "Sonar", "a", "b", overall)
        assert (always.mean, always.sign) == (2, 1)
        assert str(always) == "+2.00 ± 0.58"
        turns = self.results([11, 19, 31], [10, 20, 30]).gap("table 1", "Sonar", "a", "b", overall)
        assert turns.sign == 0

    @pytest.mark.parametrize(
        ("printed", "mean", "found"), [(2.0, 1.0, 1), (-2.0, 1.0, -1), (2.0, 0.1, 0)]
    )
    def test_a_claim_is_found_open_or_the_other_way_round(self, printed, mean, found):
        assert claims.Claim(1, "a − b", "Sonar", printed, Gap(mean, 0.2)).found == found

    def test_printed_figures_that_cannot_be_right(self):
        """91.04 and 97.72 do not average to 96.42 where 64 % are of the second class."""
        wrong = {
            (one.title, one.method)
            for one in claims.implied_fractions(list(TABLE_2))
            if not one.possible
        }
        assert ("Ionosphere", "MB") in wrong
        assert ("Spambase", "MB") not in wrong


@pytest.mark.full
@pytest.mark.slow
def test_the_command_writes_the_page(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(measures, "REPEATS", 1)
    assert main(["--quick", "--jobs", "1", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "kulkarni.md").read_text()
    assert "experiments.martingale --quick" in page
    assert "| LR | 90.71 / " in page  # the number of the paper, beside ours
    assert "$" not in page
    assert not re.search(r"\bnan\b", page)
    figures = re.findall(r"\]\((.*?\.png)\)", page)
    assert len(figures) == 3
    for figure in figures:
        assert (tmp_path / figure).stat().st_size > 10_000
    assert str(tmp_path) in capsys.readouterr().out


def test_a_quick_run_does_not_overwrite_the_page(capsys):
    assert main(["--quick"]) == 2
    assert "--out" in capsys.readouterr().err
