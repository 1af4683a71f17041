"""The martingale study: its referee, its measures, its arithmetic, and the command."""

import re
from itertools import pairwise

import numpy as np
import pytest
from experiments.martingale import claims, data, measures, models, noise, study
from experiments.martingale.__main__ import main
from experiments.martingale.models import Evaluation
from experiments.martingale.paper import SOURCES, TABLE_1, TABLE_1_METHODS, TABLE_2, TABLE_4
from experiments.martingale.requests import Request, Tally, one_split, requests, run, threshold
from experiments.martingale.results import Frozen, Gap, Results, overall

from margrave.martingale import MartingaleBoostClassifier, TunableLogistic

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

    def test_tallies_add_up(self):
        assert Tally(1, 1, 0, 1, 5, 6, 7) + Tally(1, 0, 1, 0, 5, 6, 7) == Tally(
            2, 1, 1, 1, 10, 12, 14
        )


def check_targets(tally):
    assert tally.met >= 0.98 * tally.requested
    assert tally.more == 0
    assert tally.fewer >= 0.4 * tally.requested
    assert tally.test <= tally.test_threshold


@pytest.mark.full
class TestRequests:
    def test_single_learners_meet_them_on_small_sets(self):
        tally = run(SMALL, TunableLogistic, seeds=range(2))
        assert tally.requested > 20
        check_targets(tally)

    @pytest.mark.slow
    def test_programs_meet_them_on_small_sets(self):
        tally = run(SMALL, MartingaleBoostClassifier, seeds=[0])
        assert tally.requested > 10
        check_targets(tally)

    @pytest.mark.slow
    @pytest.mark.parametrize("make", [TunableLogistic, MartingaleBoostClassifier])
    def test_both_meet_them_on_spambase(self, make):
        check_targets(one_split(data.parts("Spambase", 0), make))


class TestMeasures:
    def test_accuracies_are_of_a_class_of_the_rest_and_of_all(self):
        evaluation = Evaluation(right=(8, 3), size=(10, 4))
        assert (evaluation.of_class(0), evaluation.of_rest(0)) == (80, 75)
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
        epsilon, free, left = measures.freezing_level("Liver", 0, 5)
        assert left < free <= 15
        assert np.log10(epsilon) == round(np.log10(epsilon))

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
        return Results.of(study.QUICK, 0, Frozen(1.0, 2, 1), runs)

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
    page = (tmp_path / "martingale.md").read_text()
    assert "experiments.martingale --quick" in page
    assert "| LR | 90.71 |" in page  # the document's figure, beside ours
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
