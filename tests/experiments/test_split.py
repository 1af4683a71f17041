"""The study of planned splits: its problems, requests, measures and verdicts, and the command."""

import re
from dataclasses import replace

import numpy as np
import pytest
from experiments.split import data, page, results, trainings
from experiments.split.__main__ import main
from experiments.split.data import Problem
from experiments.split.results import BEFORE, NEW_SCORE, PLANNED, RIVALS, Case, Results
from experiments.split.trainings import FRACTIONS, Plan, Request, Training
from experiments.steer import findings
from experiments.steer.guarantees import ACCEPTED, MARGRAVE, Outcome

PLAN = Plan(("ripley_train",), n_steering=1, percents=(10,), committee=("logistic", "qda"))


def bold(text):
    return re.findall(r"\*\*(.*?)\*\*", text)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The trainings of one small split."""
    folder = tmp_path_factory.mktemp("store")
    for kind in ("fixed", "planned"):
        assert list(trainings.train_all(PLAN, 0, kind, folder, n_jobs=1))
    return folder


@pytest.fixture(scope="module")
def cases(store):
    return results.measure_split("ripley_train", 0, PLAN, store)


class TestProblems:
    problem = Problem("two", "two", np.arange(4000.0)[:, None], np.arange(4000) % 4 // 3)

    def test_a_split_is_stratified_and_not_too_large(self):
        given = self.problem.split(0)
        assert len(given.y) + len(given.y_test) == data.MAX_ROWS == self.problem.n_rows
        assert len(given.y_test) == data.MAX_ROWS // 5
        assert (given.y.mean(), given.y_test.mean()) == pytest.approx((0.25, 0.25), abs=0.001)
        assert not np.isin(given.X_test, given.X).any()

    def test_seeds_draw_different_rows(self):
        first, again, other = (self.problem.split(seed).X for seed in (0, 0, 1))
        assert np.array_equal(first, again)
        assert not np.isin(other, first).all()

    def test_the_parts_share_no_source(self):
        problems = {
            f"{source}{i}": Problem(f"{source}{i}", source, None, None)
            for source in "abcdef"
            for i in range(2)
        }
        chosen = data.choose_sources(problems)
        assert len(chosen) == 2
        assert chosen < set("abcdef")

    def test_copies_of_a_data_set_have_one_source(self):
        assert data.load("pima").source == "pima"
        assert data.load("pima").n_rows == 768


class TestRequests:
    def test_a_request_counts_if_a_split_leaves_enough_training_samples(self):
        """59 samples certify 5 %, and 29 certify 10 %."""
        y = np.repeat([0, 1], [89, 58])
        assert [str(one) for one in Plan(()).certifiable(y)] == ["fp <= 5%", "fp <= 10%"]
        assert Plan(()).certifiable(y[1:-1]) == [Request("fp", 10)]

    @pytest.mark.parametrize(("n", "fraction"), [(1000, 0.2), (600, 0.295), (300, 0.4)])
    def test_the_rule_before(self, n, fraction):
        """Three times 59 samples, within a fifth and two fifths."""
        y = np.repeat([0, 1], [n, 50])
        assert trainings.old_fraction(Request("fp", 5), y) == pytest.approx(fraction)

    def test_a_split_before_that_can_only_refuse_is_not_trained(self):
        y = np.repeat([0, 1], [100, 500])
        assert trainings.fixed_fractions([Request("fp", 5)], y) == list(FRACTIONS)
        assert trainings.fixed_fractions([Request("fn", 5)], y) == sorted({*FRACTIONS, 177 / 500})
        assert trainings.fixed_fractions([], y) == []


class TestTrainings:
    def test_a_stored_training_is_read_back(self, tmp_path):
        path = tmp_path / "a" / "b.npz"
        Training({"seconds": 1.5, "accepted": None}, {"test/y": np.arange(3)}).save(path)
        again = Training.load(path)
        assert again.facts == {"seconds": 1.5, "accepted": None}
        assert again.arrays["test/y"].tolist() == [0, 1, 2]
        assert list(path.parent.iterdir()) == [path]

    def test_a_training_is_not_repeated(self, store):
        before = {path: path.stat().st_mtime_ns for path in store.rglob("*.npz")}
        assert len(before) >= len(FRACTIONS) + 2
        list(trainings.train_all(PLAN, 0, "fixed", store, n_jobs=1))
        assert {path: path.stat().st_mtime_ns for path in store.rglob("*.npz")} == before

    def test_a_problem_counts_if_all_of_its_trainings_are_stored(self, store):
        complete = Results.of(PLAN, 0, store, n_jobs=1)
        assert len(complete.cases) == 2
        assert complete.incomplete == []
        more = replace(PLAN, titles=("ripley_train", "sonar"))
        assert Results.of(more, 0, store, n_jobs=1).incomplete == ["sonar"]
        assert not Results.of(replace(PLAN, n_steering=2), 0, store, n_jobs=1).cases

    def test_a_fixed_split_sets_aside_its_fraction_of_each_class(self, cases):
        for case in cases:
            for at in FRACTIONS:
                assert case.set_aside(at) == pytest.approx((at, at), abs=0.01)

    def test_all_methods_are_measured(self, cases):
        assert [str(case.request) for case in cases] == ["fp <= 10%", "fn <= 10%"]
        wanted = {(rule, at) for rule in (MARGRAVE, *RIVALS) for at in ("planned", *FRACTIONS)}
        for case in cases:
            assert set(case.outcomes) == wanted | {BEFORE, NEW_SCORE, (ACCEPTED, "planned")}
            assert case.is_certified(PLANNED)
            assert case.m + case.n_others == 50


class TestMeasure:
    y = np.repeat([0, 1], 100)
    scores = np.concatenate([np.arange(100.0), np.arange(100.0) + 90])

    def training(self, n):
        """A training with n certification samples of each class, and the same scores on test."""
        some = np.concatenate([np.arange(n), 100 + np.arange(n)])
        arrays = {"certify/y": self.y[some], f"certify/{MARGRAVE}": self.scores[some]}
        return Training({}, arrays | {"test/y": self.y, f"test/{MARGRAVE}": self.scores})

    def test_the_threshold_is_an_order_statistic(self):
        """4 of 100 may be wrong at 10 %: the threshold is 95, above it are 94 positives."""
        found = results.measure(self.training(100), Request("fp", 10), (MARGRAVE,))
        assert found == {MARGRAVE: Outcome(wrong=4, missed=6)}

    def test_too_few_samples_are_a_refusal(self):
        assert results.measure(self.training(28), Request("fp", 10), (MARGRAVE,)) == {
            MARGRAVE: None
        }


def _case(recalls, *, title="a", source="a", n_rows=500, seed=0, wrong=2, facts=None):
    outcomes = dict.fromkeys([(rule, at) for rule in RIVALS for at in ("planned", *FRACTIONS)], 50)
    outcomes |= {(MARGRAVE, at): 50 for at in FRACTIONS}
    outcomes |= {PLANNED: 60, BEFORE: 55} | recalls
    made = {
        key: None if recall is None else Outcome(wrong, 100 - recall)
        for key, recall in outcomes.items()
    }
    made[ACCEPTED, "planned"] = made[PLANNED]
    sizes = dict.fromkeys(("planned", "before", *FRACTIONS), (100, 20))
    where = title, source, n_rows, seed, Request("fp", 5)
    return Case(*where, (400, 400), sizes, 100, 100, made, facts or {})


def _results(recalls=None, **others):
    """Small and large problems of three sources."""
    cases = [
        _case(recalls or {}, title=f"{source}{n_rows}", source=source, n_rows=n_rows, **others)
        for source in "abc"
        for n_rows in (500, 2000)
    ]
    return Results(Plan(tuple(case.title for case in cases)), 0, cases)


class TestResults:
    def test_requests_splits_problems_and_sources_are_averaged_in_turn(self):
        cases = [
            _case({PLANNED: 10}, seed=0),
            _case({PLANNED: 20}, seed=0),
            _case({PLANNED: 45}, seed=1),  # the problem a: 30
            _case({PLANNED: 50}, title="a2"),  # the source a: 40
            _case({PLANNED: 80}, title="b", source="b"),
        ]
        assert results.by_problem(cases, lambda case: case.recall(PLANNED)) == pytest.approx(
            {"a": 30, "a2": 50, "b": 80}
        )
        assert results.mean_recall(cases, PLANNED) == pytest.approx(60)
        gap = results.difference(cases, PLANNED, BEFORE)
        assert (gap.mean, gap.error) == pytest.approx((5, 20))

    def test_one_source_has_no_standard_error(self):
        assert results.difference([_case({})], PLANNED, BEFORE) is None

    def test_a_refusal_counts_as_zero(self):
        assert _case({BEFORE: None}).recall(BEFORE) == 0

    def test_the_best_fixed_split_is_that_with_the_highest_recall(self):
        rule = RIVALS[0]
        assert _results({(rule, FRACTIONS[1]): 51}).best_fixed(rule) == FRACTIONS[1]

    def test_guarantees_are_pooled(self):
        """1 of 100 may be wrong, so the rate is Beta(2, 99); 9 of 100 exceed 5 %."""
        good = _results(wrong=2).guarantees.pooled(5, MARGRAVE)
        bad = _results(wrong=9).guarantees.pooled(5, ACCEPTED)
        assert (bad.n_cases, bad.wrong, bad.m, bad.exceeded) == (6, 54, 600, 1.0)
        assert bad.p < 0.01 < good.p


class TestVerdicts:
    rival = (RIVALS[0], "planned")
    fixed = (RIVALS[0], FRACTIONS[2])

    @pytest.mark.parametrize(
        ("of", "bad"),
        [
            (lambda found: findings.guarantees(found.guarantees), {"wrong": 9}),
            (page.certified, {"recalls": {PLANNED: None}}),
            (page.rivals, {"recalls": {rival: 70}}),
            (page.fixed_splits, {"recalls": {fixed: 65}}),
        ],
    )
    def test_the_numbers_decide_whether_a_target_is_met(self, of, bad):
        good = _results()
        assert bold(of(good)) == ["met"]
        one = _results(**bad).cases[1:]
        assert bold(of(Results(good.plan, 0, [*good.cases[:1], *one]))) == ["missed"]

    @pytest.mark.parametrize(
        ("planned", "found"), [(58, ["met", "met"]), (57, ["missed", "met"]), (54, ["missed"] * 2)]
    )
    def test_small_problems_must_gain_and_large_ones_must_not_lose(self, planned, found):
        results_ = _results({PLANNED: planned})
        gaps = [results.difference(c, PLANNED, BEFORE) for c in (results_.small, results_.large)]
        assert bold(page.small(gaps[0])) + bold(page.large(gaps[1])) == found

    def test_planning_must_take_less_time_than_training(self):
        quick = _case({}, facts={"planning": 1.0, "seconds": 3.0})
        slow = _case({}, facts={"planning": 3.0, "seconds": 4.0})
        assert bold(page.planning([quick])) == ["met"]
        assert bold(page.planning([quick, slow])) == ["missed"]

    def test_rivals_that_win_are_bold(self):
        rule = RIVALS[0]
        assert "**" not in page.tabulate_rivals(_results())
        found = page.tabulate_rivals(_results({(rule, "planned"): 62, (rule, FRACTIONS[0]): 63}))
        assert bold(found) == ["+2.00 ± 0.00", "+3.00 ± 0.00", "+3.00 ± 0.00"]
        assert rule in page.rivals(_results({(rule, "planned"): 62}))


@pytest.mark.full
@pytest.mark.slow
def test_the_command_writes_the_page(tmp_path, capsys):
    assert main(["--quick", "--jobs", "1", "--out", str(tmp_path)]) == 0
    written = (tmp_path / "split.md").read_text()
    assert "experiments.split --quick" in written
    assert "$" not in written
    assert "nan" not in written
    figures = re.findall(r"\]\((.*?\.png)\)", written)
    assert len(figures) == 2
    for figure in figures:
        assert (tmp_path / figure).stat().st_size > 10_000
    assert str(tmp_path) in capsys.readouterr().out


def test_a_quick_run_does_not_overwrite_the_page(capsys):
    assert main(["--quick"]) == 2
    assert "--out" in capsys.readouterr().err
