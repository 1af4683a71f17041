"""The study of planned splits: its problems, requests, measures and verdicts, and the command."""

import re
from dataclasses import replace

import numpy as np
import pytest
from experiments.split import data, page, results, trainings
from experiments.split.__main__ import main
from experiments.split.data import Problem
from experiments.split.results import (
    PLANNED,
    PLANNED_ORDER_STATISTIC,
    RIVALS,
    Case,
    Results,
)
from experiments.split.trainings import FIXED, Fixed, Plan, Request, path_of
from experiments.steer import findings
from experiments.steer.guarantees import ORDER_STATISTIC, Outcome, count_errors, measure
from experiments.steer.rivals import CONFIDENCE, MARGRAVE
from experiments.steer.study import Training

from margrave.steer import Dialog

BEST = FIXED[2]
"""The fixed split at which every method is best in the results that are made up."""
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

    def test_a_fixed_split_draws_its_fraction_of_each_class(self):
        y = np.repeat([0, 1], [200, 100])
        at = trainings.draw_fixed(y, Fixed(0.5, 0.1), 1, seed=0)
        assert np.bincount(y[at]).tolist() == [20, 50]
        assert np.array_equal(at, trainings.draw_fixed(y, Fixed(0.5, 0.1), 1, seed=0))

    def test_a_training_for_both_classes_is_stored_once(self, tmp_path):
        fp, fn = Request("fp", 5), Request("fn", 10)
        same, by_class = Fixed(0.5, 0.5), Fixed(0.55, 0.13)
        assert path_of(tmp_path, "a", 0, fp, same) == path_of(tmp_path, "a", 0, fn, same)
        each = {path_of(tmp_path, "a", 0, one, at) for one in (fp, fn) for at in (by_class, None)}
        assert len(each) == 4


class TestTrainings:
    def test_a_training_is_not_repeated(self, store):
        before = {path: path.stat().st_mtime_ns for path in store.rglob("*.npz")}
        assert len(before) == len(FIXED) + 3
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
            for at in FIXED:
                assert case.set_aside(at) == pytest.approx((at.limited, at.other), abs=0.01)

    def test_all_methods_are_measured(self, cases):
        assert [str(case.request) for case in cases] == ["fp <= 10%", "fn <= 10%"]
        rules = (MARGRAVE, ORDER_STATISTIC, *RIVALS)
        for case in cases:
            assert set(case.outcomes) == {(rule, at) for rule in rules for at in (*FIXED, None)}
            assert case.is_certified(PLANNED)
            assert case.m + case.n_others == 50

    @pytest.mark.parametrize("i", [0, 1])
    def test_margrave_is_the_model_that_accept_returns(self, i, cases):
        case = cases[i]
        given = data.load(case.title).split(case.seed)
        dialog = Dialog.from_data(
            given.X,
            given.y,
            committee=list(PLAN.committee),
            certify="auto",
            guarantee=str(case.request),
            confidence=CONFIDENCE,
            positive=1,
            duplicates="independent",
            random_state=case.seed,
        )
        dialog.prefer(str(case.request))
        model = dialog.accept(confidence=CONFIDENCE)
        found = count_errors(model.predict(given.X_test) == 1, given.y_test, case.request.limited)
        assert case.outcomes[PLANNED] == found


class TestMeasure:
    y = np.repeat([0, 1], 100)
    scores = np.concatenate([np.arange(100.0), np.arange(100.0) + 90])

    def training(self, n):
        """A training with n certification samples of each class, and the same scores on test."""
        some = np.concatenate([np.arange(n), 100 + np.arange(n)])
        arrays = {}
        for part, at in {"tune": some, "certify": some, "test": slice(None)}.items():
            arrays |= {f"{part}/y": self.y[at], f"{part}/{MARGRAVE}": self.scores[at]}
        return Training({}, arrays)

    def test_the_order_statistic_uses_the_whole_allowance(self):
        """4 of 100 may be wrong at 10 %: the threshold is 95, above it are 94 positives."""
        found = measure(self.training(100), "fp", 10)
        assert found[ORDER_STATISTIC] == Outcome(wrong=4, missed=6)

    def test_accept_leaves_out_samples_that_allow_no_more_errors(self):
        """89 samples allow 4 errors too; of all 100, more than 4 are then above the threshold."""
        accepted, whole = (
            measure(self.training(100), "fp", 10)[rule] for rule in (MARGRAVE, ORDER_STATISTIC)
        )
        assert accepted.wrong >= whole.wrong
        assert accepted.missed <= whole.missed

    def test_too_few_samples_are_a_refusal(self):
        assert measure(self.training(28), "fp", 10) is None
        assert measure(self.training(29), "fp", 10) is not None


def _case(recalls, *, title="a", source="a", n_rows=500, seed=0, wrong=2, facts=None):
    rules = (MARGRAVE, ORDER_STATISTIC, *RIVALS)
    outcomes = {(rule, at): 50 + (at == BEST) for rule in rules for at in (*FIXED, None)}
    outcomes |= {PLANNED: 60, PLANNED_ORDER_STATISTIC: 60} | recalls
    made = {
        key: None if recall is None else Outcome(wrong, 100 - recall)
        for key, recall in outcomes.items()
    }
    sizes = dict.fromkeys((*FIXED, None), (93, 20))
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
        gap = results.difference(cases, PLANNED, PLANNED_ORDER_STATISTIC)
        assert (gap.mean, gap.error) == pytest.approx((0, 20))

    def test_one_source_has_no_standard_error(self):
        assert results.difference([_case({})], PLANNED, (MARGRAVE, BEST)) is None

    def test_a_refusal_counts_as_zero(self):
        assert _case({PLANNED: None}).recall(PLANNED) == 0

    def test_both_certify(self):
        refused = _case({(MARGRAVE, BEST): None})
        found = results.both_certify([refused, _case({})], PLANNED, (MARGRAVE, BEST))
        assert [case.is_certified((MARGRAVE, BEST)) for case in found] == [True]

    def test_the_best_fixed_split_is_that_with_the_highest_recall(self):
        rule = RIVALS[0]
        assert _results().best_fixed(rule) == BEST
        assert _results({(rule, FIXED[1]): 52}).best_fixed(rule) == FIXED[1]

    def test_the_best_split_where_both_certify_may_refuse_most(self):
        rule, cases = RIVALS[0], _results({(RIVALS[0], FIXED[4]): 70}).cases
        refused = [replace(one, outcomes=one.outcomes | {(rule, FIXED[4]): None}) for one in cases]
        found = Results(Plan(tuple({case.title for case in cases})), 0, [*cases[:1], *refused[1:]])
        assert found.best_fixed(rule) == BEST
        assert found.best_where_both(rule) == FIXED[4]

    def test_guarantees_are_pooled(self):
        """1 of 93 may be wrong, so the rate is Beta(2, 92); 9 of 100 exceed 5 %."""
        good = _results(wrong=2).guarantees.pooled(5, MARGRAVE)
        bad = _results(wrong=9).guarantees.pooled(5, ORDER_STATISTIC)
        assert (bad.n_cases, bad.wrong, bad.m, bad.exceeded) == (6, 54, 600, 1.0)
        assert bad.p < 0.01 < good.p


class TestVerdicts:
    rival = (RIVALS[0], None)
    fixed = (RIVALS[0], BEST)

    @pytest.mark.parametrize(
        ("of", "bad"),
        [
            (lambda found: findings.guarantees(found.guarantees), {"wrong": 9}),
            (lambda found: page.allowance(found.cases), {"recalls": {PLANNED: 56}}),
            (page.rivals, {"recalls": {rival: 70}}),
            (page.fixed_splits, {"recalls": {fixed: 65}}),
        ],
    )
    def test_the_numbers_decide_whether_a_target_is_met(self, of, bad):
        good = _results()
        assert bold(of(good)) == ["met"]
        one = _results(**bad).cases[1:]
        assert bold(of(Results(good.plan, 0, [*good.cases[:1], *one]))) == ["missed"]

    def test_planning_must_take_less_time_than_training(self):
        quick = _case({}, facts={"planning": 1.0, "seconds": 3.0})
        slow = _case({}, facts={"planning": 3.0, "seconds": 4.0})
        assert bold(page.planning([quick])) == ["met"]
        assert bold(page.planning([quick, slow])) == ["missed"]

    def test_rivals_that_win_are_bold(self):
        rule = RIVALS[0]
        assert "**" not in page.tabulate_rivals(_results())
        found = page.tabulate_rivals(_results({(rule, None): 62, (rule, FIXED[0]): 63}))
        assert bold(found) == ["+2.00 ± 0.00", "+3.00 ± 0.00", "+3.00 ± 0.00"]
        assert rule in page.rivals(_results({(rule, None): 62}))

    def test_both_numbers_are_reported(self):
        """Half of the requests are refused; where the rival certifies, it is ahead."""
        key = (RIVALS[0], BEST)
        made = _results({key: 64})
        refused = [replace(one, outcomes=one.outcomes | {key: None}) for one in made.cases[::2]]
        found = page.fixed_splits(replace(made, cases=[*made.cases[1::2], *refused]))
        assert bold(found) == ["met"]
        assert "-9.00 ± 0.00" in found  # of a rival that refuses none
        assert "+4.00 ± 0.00 points over 3 of 6" in found

    def test_certified_requests_are_counted(self):
        made = _results()
        refused = replace(made.cases[0], outcomes=made.cases[0].outcomes | {PLANNED: None})
        found = replace(made, cases=[refused, *made.cases[1:]])
        assert page.certified(found) == "5 of 6"


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
