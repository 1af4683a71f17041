"""The study of maximal average margins: its data, its counts, its sentences, and the command."""

import re
from dataclasses import replace

import numpy as np
import pytest
from experiments._page import listed
from experiments.mam import (
    artificial,
    classifying,
    coverage,
    data,
    large,
    ordering,
    sentences,
    study,
    tables,
)
from experiments.mam.__main__ import main
from experiments.mam.classifying import BALANCED, FORMS, MAM, METHODS, OTHERS, PRINTED, SVM, Trial
from experiments.mam.coverage import Setting, Statement
from experiments.mam.holding import BOUND, COUNTED, MARGIN, Holding
from experiments.mam.ordering import Graded, Ranked
from experiments.mam.results import Results
from experiments.mam.sentences import CONFIRMED, NOT_CONFIRMED, UNDECIDED
from scipy.stats import binom

from margrave import datasets


def bold(text):
    return re.findall(r"\*\*(.*?)\*\*", text)


def verdict(text):
    """The first bold words, up to the colon or the comma."""
    return re.split("[:,]", bold(text)[0])[0]


class TestSyntheticData:
    def test_responses_have_the_order_of_the_hidden_variable(self):
        train, valid = artificial.section_5(seed=0)
        for part, n in ((train, 100), (valid, 250)):
            assert part.X.shape == (n, 5)
            assert np.array_equal(np.argsort(part.y), np.argsort(part.z))
            assert (np.diff(np.sort(part.y)) > 0).all()

    def test_both_parts_follow_one_direction(self):
        """Noise has a variance of 0.25; wᵀx orders nearly as Z does in both parts."""
        noise = []
        for seed in range(20):
            parts = artificial.section_5(seed)
            vectors = [np.linalg.lstsq(part.X, part.truth, rcond=None)[0] for part in parts]
            assert vectors[0] == pytest.approx(vectors[1])
            noise += [part.z - part.truth**3 for part in parts]
        assert np.concatenate(noise).var() == pytest.approx(0.25, rel=0.1)

    def test_intervals_are_chi_squared(self):
        steps = [np.diff(np.sort(artificial.section_5(seed)[1].y)) for seed in range(20)]
        assert np.mean(steps) == pytest.approx(5, rel=0.05)
        assert np.var(steps) == pytest.approx(10, rel=0.1)

    def test_seeds_draw_differently(self):
        first, again, other = (artificial.section_5(seed)[0].X for seed in (0, 0, 1))
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)

    def test_quantile_classes_are_in_order_and_of_equal_size(self):
        y = np.random.default_rng(0).normal(size=100)
        classes = artificial.in_quantiles(y, 5)
        assert np.bincount(classes).tolist() == [20] * 5
        assert (np.diff(classes[np.argsort(y)]) >= 0).all()

    def test_the_whole_distribution_has_its_known_error(self):
        X, y = artificial.whole_distribution()
        assert np.mean((X[:, 0] > 0) != (y > 0)) == pytest.approx(artificial.BAYES, abs=5e-4)
        assert X[y == 1].mean(axis=0) == pytest.approx([1, 0], abs=1e-3)
        assert np.cov(X[y == -1].T) == pytest.approx(np.eye(2), abs=0.01)

    def test_two_gaussians_are_around_their_centres(self):
        X, y = artificial.two_gaussians(20_000, np.random.default_rng(0))
        assert y.mean() == pytest.approx(0, abs=0.03)
        assert (y[:, None] * X).mean(axis=0) == pytest.approx([1, 0], abs=0.03)


class TestData:
    def test_parts_have_the_published_sizes(self):
        X, y = data.two_classes("diabetis")
        parts = data.parts(X, y, data.RAETSCH["diabetis"].train, seed=0)
        assert (len(parts.y_train), len(parts.y_test)) == (468, 300)
        assert parts.X_train.mean(axis=0) == pytest.approx(np.zeros(8), abs=1e-9)
        assert parts.X_train.std(axis=0) == pytest.approx(np.ones(8))
        assert parts.y_train.sum() + parts.y_test.sum() == 268

    def test_published_sizes_use_every_row(self):
        for title in data.here()[0]:
            source = data.RAETSCH[title]
            assert source.train + source.test == len(data.two_classes(title)[1])

    def test_splits_are_drawn_by_seed(self):
        X, y = data.two_classes("diabetis")
        first, again, other = (data.parts(X, y, 468, seed).X_test for seed in (0, 0, 1))
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)

    @pytest.mark.parametrize(
        ("title", "counts"),
        [
            ("housing", [77, 239, 123, 36, 31]),
            ("abalone", [448, 3036, 557, 129, 7]),
            ("machine_cpu", [185, 15, 6, 1, 2]),
        ],
    )
    def test_bins_have_equal_length_and_are_closed_on_the_right(self, title, counts):
        _, y = data.responses(title)
        assert np.bincount(data.in_bins(y, 5)).tolist() == counts
        assert data.in_bins(np.array([0.0, 1.0, 1.1, 5.0]), 5).tolist() == [0, 0, 1, 4]

    def test_columns_of_text_are_one_column_a_value(self):
        X, _ = data.responses("abalone")
        assert X.shape == (4177, 10)
        texts = [column for column in X.T if set(column) == {0.0, 1.0}]
        assert np.array_equal(np.sum(texts, axis=0), np.ones(4177))

    def test_rows_with_missing_values_are_left_out(self):
        if "auto_mpg" not in datasets.names(available=True):
            pytest.skip("auto_mpg needs MARGRAVE_DATA")
        X, y = data.responses("auto_mpg")
        assert len(X) == len(y) == 392

    def test_training_sizes(self):
        sizes = [data.n_training("stock", 950), data.n_training("housing", 506)]
        assert [*sizes, data.n_training("x", 4000), data.n_training("abalone", 4177)] == [
            475,
            253,
            500,
            1000,
        ]

    def test_sets_that_are_not_there_are_named(self, monkeypatch):
        monkeypatch.delenv("MARGRAVE_DATA", raising=False)
        plan = study.full()
        assert plan.raetsch == ("diabetis", "twonorm")
        assert plan.ordinal == ("abalone", "housing", "machine_cpu")
        every = {*data.RAETSCH, *data.ORDINAL}
        named = set(re.findall(r"\w+", sentences.not_there(Results.of(plan, 0, [])))) & every
        assert named == every - {*plan.raetsch, *plan.ordinal}
        whole = study.Plan(tuple(data.RAETSCH), data.ORDINAL)
        assert not set(re.findall(r"\w+", sentences.not_there(Results.of(whole, 0, [])))) & every


class TestMethods:
    def test_every_method_is_tried(self):
        X, y = data.two_classes("diabetis")
        parts = data.parts(X, y, 100, seed=0)
        effort = classifying.Effort(n_folds=2, costs=(1.0,), neighbours=(5,), n_trees=5)
        found = classifying.trials(parts, 0, effort)
        assert tuple(found) == METHODS
        for one in found.values():
            assert 0.15 < one.error < 0.5
            assert one.seconds > 0
            assert one.known > 0
        assert found[SVM].known < found[SVM].seconds

    def test_rankers_order_and_the_truth_is_best(self):
        found = ordering.on_section_5(seed=0)
        assert ordering.TRUTH in found
        assert all(0.4 < one.tau <= found[ordering.TRUTH].tau + 0.02 for one in found.values())

    def test_equal_scores_have_no_order(self):
        assert ordering.tau([1, 2, 3], [0.0, 0.0, 0.0]) == 0
        assert ordering.tau([1, 2, 3], [1.0, 2.0, 3.0]) == 1

    def test_errors_are_counted_in_classes(self):
        class Constant:
            def fit(self, X, y):
                return self

            def predict(self, X):
                return np.full(len(X), 2)

        parts = data.Parts(np.zeros((1, 1)), np.zeros(1), np.zeros((4, 1)), np.array([2, 2, 0, 3]))
        found = ordering.graded(Constant(), parts)
        assert (found.accuracy, found.off) == (0.5, 0.75)

    @pytest.mark.skipif(not ordering.HAS_MORD, reason="mord is not installed")
    def test_mord_takes_classes_with_gaps(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 2))
        y = np.array([0, 3, 7])[np.digitize(X[:, 0], [-0.5, 0.5])]
        model = ordering.LogisticAT().fit(X, y)
        assert set(model.predict(X)) <= {0, 3, 7}
        assert np.mean(model.predict(X) == y) > 0.9
        assert ordering.tau(X[:, 0], model.rank(X)) > 0.9

    def test_without_mord_the_page_says_so(self, monkeypatch):
        monkeypatch.setattr(ordering, "HAS_MORD", False)
        monkeypatch.setattr(sentences, "HAS_MORD", False)
        assert ordering.PEER not in ordering.rankers(5)
        assert ordering.PEER not in ordering.graders()
        without = sentences.peer()
        assert ordering.PEER in without
        monkeypatch.setattr(sentences, "HAS_MORD", True)
        assert sentences.peer() != without


def _statement(
    *, spare=0.1, bound=0.5, held_out=0.3, error=0.4, printed=0.1, delta=0.05, threshold=False
):
    """One that is true as it is: mistakes 0.2, errors 0.3."""
    return Statement(
        Setting(100, by_loo=False, threshold=threshold),
        delta,
        spare,
        np.array([0.2, 0.1]),
        np.array([0.2, 0.3]),
        np.array([bound, bound]),
        None if threshold else np.array([printed, printed]),
        np.array([held_out, held_out]),
        np.array([error, error]),
    )


class TestBounds:
    def test_statements_are_about_the_truth(self):
        found = coverage.make_statements(50, seed=0)
        assert len(found) == 8
        assert len({(one.setting, one.delta) for one in found}) == 8
        for one in found:
            assert one.mistakes[0] == one.errors[0]
            assert artificial.BAYES - 0.001 < one.mistakes[0] < 0.4
            assert (np.diff(one.mistakes) <= 0).all()
            assert (one.printed is None) == one.setting.threshold
            assert one.bound.shape == one.held_out.shape == coverage.SURER.shape

    def test_the_printed_bound_is_that_of_the_paper(self):
        """(14) as printed, from the parts that the classifier gives out."""
        one = coverage.make_statements(50, seed=0)[0]
        model = one.setting.make()
        X, y = artificial.two_gaussians(50, np.random.default_rng([0, 50]))
        model.fit(X, y)
        deviation = 3 * np.sqrt(2 * np.log(2 / one.delta) / 50)
        top = 1 - model.average_margin_ - model.rademacher_bound() - deviation
        assert one.printed[0] == pytest.approx(top, abs=1e-3)

    def test_each_kind_of_failure_is_counted(self):
        wrong = [
            {"spare": -0.1},
            {"bound": 0.15},
            {"held_out": 0.19},
            {"error": 0.25},
            {"held_out": 0.19, "error": 0.25},
        ]
        one = Holding.of([_statement(), *(_statement(**how) for how in wrong)])
        assert one.failures == {MARGIN: 1, BOUND: 1, COUNTED: 3}
        assert (one.runs, one.printed) == (6, 6)
        assert Holding.of([_statement(threshold=True)]).printed is None

    def test_failures_are_held_against_delta(self):
        statements = [_statement() for _ in range(95)]
        few = Holding.of([*statements, *[_statement(spare=-1.0)] * 5])
        many = Holding.of([*statements, *[_statement(spare=-1.0)] * 15])
        assert few.p(MARGIN) == pytest.approx(binom.sf(4, 100, 0.05))
        assert not few.broken(MARGIN)
        assert many.broken(MARGIN)
        assert few.p(BOUND) == 1

    def test_looseness(self):
        one = Holding.of([_statement(bound=1.0), _statement(bound=0.5)])
        assert one.vacuous == 0.5
        assert one.loose == pytest.approx(0.75 - 0.15)
        assert one.loose_counted == pytest.approx(0.3 - 0.15)


def _classified(mam, printed=0.2, seconds=10.0, known=2.0, n_titles=8):
    """Twelve runs in which other methods have an error of 0.2, 0.22 and 0.24."""
    runs, times = [], (seconds, known)
    for title in list(data.RAETSCH)[:n_titles]:
        for split in range(2):
            errors = dict.fromkeys(FORMS, mam) | {PRINTED: printed}
            errors |= dict(zip(OTHERS, (0.2, 0.22, 0.24), strict=True))
            by = {
                name: Trial(error + 0.02 * split, *((1.0, 1.0) if name in FORMS else times))
                for name, error in errors.items()
            }
            runs.append(study.Classified(title, split, by))
    return runs


def _results(mam=0.21, *, ridge=0.8, bound=0.5, off=0.5, **given):
    """Made-up results of every kind."""
    runs = _classified(mam, **given)
    titles = tuple(dict.fromkeys(run.title for run in runs))
    for run in range(3):
        taus = {ordering.LINEAR: 0.7, ordering.RANKER: 0.7 + 0.001 * run}
        taus |= {ordering.KERNEL_RIDGE: ridge, ordering.TRUTH: 0.9}
        runs.append(study.MonteCarlo(run, {name: Ranked(tau, 0.1) for name, tau in taus.items()}))
        statements = [_statement(bound=bound), _statement(bound=bound, delta=0.5)]
        runs.append(study.Covered(100, run, statements))
    for title in data.ORDINAL:
        rankers = {ordering.RANKER: 0.5, ordering.LINEAR: 0.55, ordering.KERNEL_RIDGE: ridge}
        grades = {ordering.ORDINAL: Graded(0.5, off, 0.1), ordering.LOGISTIC: Graded(0.6, 0.4, 0.1)}
        ranked = {name: Ranked(tau, 0.1) for name, tau in rankers.items()}
        runs.append(study.InBins(title, 5, 0, ranked, grades))
    return Results.of(study.Plan(titles, data.ORDINAL, n_splits=2), 0, reversed(runs))


class TestLargeData:
    @pytest.mark.parametrize("title", large.SETS)
    def test_sets_are_drawn_by_seed_and_scaled(self, title):
        sizes = large.Sizes(300, 200)
        first, again, other = (large.draw(title, sizes, seed) for seed in (0, 0, 1))
        assert (len(first.y_train), len(first.y_test)) == (300, 200)
        assert np.array_equal(first.X_test, again.X_test)
        assert not np.array_equal(first.X_test, other.X_test)
        assert first.X_train.std(axis=0) == pytest.approx(np.ones(first.X_train.shape[1]))

    def test_sets_of_breiman_have_their_known_properties(self):
        rng = np.random.default_rng(0)
        X, y = large.twonorm(50_000, rng)
        assert np.mean((X.sum(axis=1) > 0) != y) == pytest.approx(0.0228, abs=0.003)
        X, y = large.ringnorm(50_000, rng)
        assert X[y == 0].var() == pytest.approx(4, rel=0.02)
        assert X[y == 1].mean(axis=0) == pytest.approx(np.full(20, 2 / np.sqrt(20)), abs=0.03)
        X, y = large.waveform(50_000, rng)
        assert y.mean() == pytest.approx(1 / 3, abs=0.01)
        assert X.shape[1] == 21
        assert X[:, [0, 20]].var(axis=0) == pytest.approx([1, 1], rel=0.03)  # no wave is there

    @pytest.mark.parametrize("method", large.METHODS)
    def test_every_method_learns(self, method):
        drawn = large.draw("twonorm", large.Sizes(1200, 300), seed=0)
        effort = classifying.Effort(n_folds=2, costs=(1.0,), gammas=(1.0,))
        model = large.build(method, 20, 0, effort).fit(drawn.X_train, drawn.y_train)
        assert np.mean(model.predict(drawn.X_test) != drawn.y_test) < 0.1

    @pytest.mark.slow
    def test_a_method_ends_at_the_limit_and_a_failure_is_an_error(self):
        """The search of the SVM takes several seconds; one is allowed."""
        effort = classifying.Effort()
        fast = large.run("twonorm", large.LINEAR, large.Sizes(300, 300), 0, effort)
        assert fast.finished
        assert fast.error < 0.1
        assert not large.run("clusters", SVM, large.Sizes(4000, 10, limit=1), 0, effort).finished
        with pytest.raises(RuntimeError, match="unknown"):
            large.run("twonorm", "unknown", large.Sizes(300, 300), 0, effort)

    def test_the_winner_is_named_and_bold(self):
        errors = dict(zip(large.METHODS, (0.04, 0.05, 0.06, 0.03, 0.07, np.nan, 0.08), strict=True))
        runs = [large.Large("twonorm", name, error, 1.0, 0.5) for name, error in errors.items()]
        results = Results.of(study.Plan((), (), large=("twonorm",)), 0, reversed(runs))
        assert "| twonorm | 4.00 (1.5 s) | 5.00 (1.5 s) | 6.00 (1.5 s) | **3.00** (1.5 s) |" in (
            tables.large(results)
        )
        assert "| over 300 s |" in tables.large(results)
        assert re.findall(r"\d+", bold(sentences.large(results))[0]) == ["0", "1"]
        assert f"{SVM} (twonorm)" in sentences.large(results)
        assert "+1.00 ± 0.26 on twonorm" in sentences.large_gaps(results)
        runs = [replace(run, error=0.01) if run.method == MAM else run for run in runs]
        results = Results.of(results.plan, 0, runs)
        assert re.findall(r"\d+", bold(sentences.large(results))[0]) == ["1", "1"]


class TestSentences:
    def test_worse_but_not_significantly(self):
        results = _results(0.21, n_titles=3)
        found = sentences.classification(results)
        assert verdict(found) == CONFIRMED
        assert [other for other in OTHERS if other in bold(found)[0]] == [SVM]
        assert "22.0 %" in found
        for fact in ("+1.00 ± 0.00", "+1.0 points", "banana"):
            assert fact in sentences.gaps(results)

    def test_a_result_near_significance(self):
        """Mean ranks of 3.375, 1.75, 2.375 and 2.5: Holm's p is below α and Friedman's above."""
        rows = ["4123", "4132", "4123", "4132", "4213", "3142", "2314", "2431"]
        runs = []
        for title, ranks in zip(data.RAETSCH, rows, strict=False):
            each = dict(zip((MAM, *OTHERS), (int(rank) / 100 for rank in ranks), strict=True))
            errors = dict.fromkeys(FORMS, 0.5) | each
            by = {name: Trial(error, 1.0, 1.0) for name, error in errors.items()}
            runs.append(study.Classified(title, 0, by))
        plan = study.Plan(tuple(data.RAETSCH)[:8], (), n_splits=1)
        results = Results.of(plan, 0, runs)
        sentence = sentences.verdict(results, MAM)
        assert sentence.startswith(UNDECIDED)
        assert SVM in sentence
        assert sentences.disagree(results.tested(MAM))
        for fact in ("0.092", "0.035", SVM):
            assert fact in sentences.in_numbers(results.tested(MAM))

    def test_significantly_worse(self):
        found = sentences.classification(_results(0.3))
        assert verdict(found) == NOT_CONFIRMED
        assert SVM in bold(found)[0]

    def test_not_worse_at_all(self):
        found = sentences.classification(_results(0.1))
        assert verdict(found) == CONFIRMED
        assert not any(other in bold(found)[0] for other in OTHERS)

    @pytest.mark.parametrize(
        ("seconds", "known", "expected"),
        [(10.0, 2.0, CONFIRMED), (0.5, 0.5, NOT_CONFIRMED)],
        ids=["slow", "fast"],
    )
    def test_time(self, seconds, known, expected):
        found = sentences.time(_results(seconds=seconds, known=known))
        assert bold(found) == [expected]
        assert f"{seconds:.2g} times ({SVM})" in found

    def test_time_of_the_search_for_settings(self):
        """Others are slower only because they search longer."""
        found = bold(sentences.time(_results(seconds=10.0, known=0.5)))[0]
        assert found not in (CONFIRMED, NOT_CONFIRMED)
        assert not any(other in found for other in OTHERS)

    def test_forms_are_judged_each(self):
        results = _results(0.3, printed=0.1)
        found = sentences.classification(results)
        assert "11.0 %" in found
        first, second = bold(found)
        assert first == sentences.verdict(results, MAM)
        assert second == sentences.verdict(results, PRINTED)
        assert first.startswith(NOT_CONFIRMED)
        assert second.startswith(CONFIRMED)
        assert "-10.00 ± 0.00" in sentences.gaps(results)
        assert sentences.verdict(results, BALANCED).startswith(NOT_CONFIRMED)

    @pytest.mark.parametrize(
        ("ridge", "expected"), [(0.8, {CONFIRMED}), (0.701, {NOT_CONFIRMED}), (0.6, set())]
    )
    def test_ridge_regression_on_ranks(self, ridge, expected):
        """Neither of the two if the difference has the opposite sign."""
        results = _results(ridge=ridge)
        assert {CONFIRMED, NOT_CONFIRMED} & set(bold(sentences.order(results))) == expected
        assert "78 %" in sentences.section_5(results)

    def test_sets_in_bins(self):
        both = listed([ordering.LINEAR, ordering.KERNEL_RIDGE])
        assert "8 of 8" in sentences.order(_results())
        found = sentences.binned(_results())
        assert both in found
        assert found.count(ordering.LOGISTIC) == 2  # its numbers, and that it is nearest
        found = sentences.binned(_results(ridge=0.45, off=0.3))
        assert both not in found
        assert found.count(ordering.LOGISTIC) == 1

    def test_bounds_that_hold_and_that_do_not(self):
        good, bad = _results(), _results(bound=0.15)
        assert re.findall(r"\d+", bold(sentences.bounds(good))[0]) == ["6"]
        found = sentences.bounds(bad)
        assert re.findall(r"\d+", bold(found)[0]) == ["1", "6"]
        for fact in (BOUND, "n = 100", "δ = 0.05"):
            assert fact in found
        assert "0 times" in sentences.theorems(good)
        assert "3 times" not in sentences.theorems(good)
        assert "| 0.05 | 100 | 0 of 3 | 0 of 3 | 0 of 3 | 0 % | 0.35 | 0.15 |" in tables.bounds(
            good
        )
        assert "| 0.05 | 100 | 0 of 3 | **3 of 3** | 0 of 3 |" in tables.bounds(bad)
        assert " 100 % " in tables.bounds(_results(bound=1.0))

    def test_printed_signs(self):
        assert "6 of 6" in sentences.printed(_results())

    def test_tables_mark_the_best(self):
        results = _results(0.1)
        assert "| banana (400) | **11.0** |" in tables.errors(results)
        assert " | 1 | 1 | 1 | 10 | 10 | 10 |" in tables.errors(results)
        assert f"| {MAM} " in tables.errors(results)

    def test_rankers_are_compared_with_the_mam_ranker(self):
        rows = tables.rankers(_results())
        assert f"| {ordering.RANKER} | 0.701 | | 0.500 | | 100 |" in rows
        assert f"| {ordering.KERNEL_RIDGE} | 0.800 | +9.90 ± 0.06 | 0.800 | 8 of 8 |" in rows
        assert f"| {ordering.TRUTH} | 0.900 | +19.90 ± 0.06 | | | |" in rows


@pytest.mark.full
@pytest.mark.slow
def test_the_command_writes_the_page(tmp_path, capsys):
    assert main(["--quick", "--jobs", "1", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "pelckmans.md").read_text()
    assert "experiments.mam --quick" in page
    assert len(bold(page)) >= 4  # the verdicts, and the best of each table
    assert "$" not in page
    assert not re.search(r"\bnan\b", page)
    figures = re.findall(r"\]\((.*?\.png)\)", page)
    assert len(figures) == 2
    for figure in figures:
        assert (tmp_path / figure).stat().st_size > 10_000
    assert str(tmp_path) in capsys.readouterr().out


def test_a_quick_run_does_not_overwrite_the_page(capsys):
    assert main(["--quick"]) == 2
    assert "--out" in capsys.readouterr().err
