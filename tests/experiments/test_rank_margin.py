"""The rank-margin study: its protocol, its tables, and the command."""

import re

import numpy as np
import pytest
from experiments.rank_margin import findings, margins, study, unbalanced
from experiments.rank_margin.__main__ import main
from experiments.rank_margin.paper import BOLD, METHODS, SOURCES, TABLES
from experiments.rank_margin.results import Results, by_split
from sklearn.metrics import average_precision_score, roc_auc_score

from margrave.pairs import CrucialPairs


@pytest.fixture(scope="module")
def parts():
    return study.split("Sonar", 0, "thirds")


@pytest.fixture(scope="module")
def outputs(parts):
    return study.modest_committees(parts, seed=0)[5]


def test_the_printed_tables_name_every_data_set_and_method():
    for table in TABLES.values():
        assert set(table) == set(SOURCES)
        assert all(len(row) == len(METHODS) for row in table.values())


def test_bold_numbers_are_those_that_section_4_counts():
    """With 5 members the SVM is better on three and ties on Housing; with 7, RankMargin on 8."""
    assert sum(row == {"SVM"} for row in BOLD[5].values()) == 3
    assert [title for title, row in BOLD[5].items() if len(row) == 2] == ["Housing"]
    assert sum(row == {"RankMargin"} for row in BOLD[7].values()) == 8
    for size, table in BOLD.items():
        for title, row in table.items():
            means = dict(zip(METHODS, (mean for mean, _ in TABLES[size][title]), strict=True))
            assert max(means, key=means.get) in row


@pytest.mark.parametrize(
    ("title", "shape", "fraction"),
    # Features and fractions of positives of table 1, where they are possible.
    [("Breast", (683, 9), 0.6501), ("Housing", (506, 13), 0.4921), ("Sonar", (208, 60), 0.5337)],
)
def test_data_sets_are_those_of_table_1(title, shape, fraction):
    X, y = study.load(SOURCES[title])
    assert X.shape == shape
    assert y.mean() == pytest.approx(fraction, abs=5e-5)


def test_parts_are_thirds_that_do_not_overlap(parts):
    sizes = [len(y) for y in (parts.y_train, parts.y_tune, parts.y_test)]
    assert max(sizes) - min(sizes) <= 1
    rows = np.concatenate([parts.X_train, parts.X_tune, parts.X_test])
    assert len(np.unique(rows, axis=0)) == 208
    assert parts.X_train.mean(axis=0) == pytest.approx(0, abs=1e-9)


def test_the_members_of_a_committee_differ(outputs):
    assert outputs.tune.shape == (69, 5)
    assert len(np.unique(outputs.tune, axis=1).T) == 5


def test_other_splits_have_their_fractions():
    parts = study.split("Sonar", 0, "60/20/20")
    sizes = [len(y) for y in (parts.y_train, parts.y_tune, parts.y_test)]
    assert np.array(sizes) / 208 == pytest.approx([0.6, 0.2, 0.2], abs=0.01)


def test_the_svm_has_the_default_of_svm_light():
    """Samples of norm 2: C = 1 / 2²."""
    X = np.array([[2.0, 0.0], [0.0, 2.0], [-2.0, 0.0], [0.0, -2.0]])
    assert pytest.approx(0.25) == study.fit_svm(X, np.array([1, 1, 0, 0])).C


def test_out_of_fold_predictions_are_not_those_of_the_fitted_member(parts):
    committee_outputs = study.strong_committee(parts, ("knn", "rankboost"), seed=0)
    X, y = parts.both
    assert committee_outputs.probabilities == (True, False)
    assert len(committee_outputs.tune) == len(y)
    trained = study.RankBoostClassifier().fit(X, y).decision_function(X)
    assert study.auc(trained, y) > study.auc(committee_outputs.tune[:, 1], y)


@pytest.mark.full
def test_every_combiner_ranks_the_test_part(parts, outputs):
    for name, combiner in study.COMBINERS.items():
        scores = combiner(outputs)
        assert scores.shape == parts.y_test.shape, name
        assert study.auc(scores, parts.y_test) == pytest.approx(roc_auc_score(parts.y_test, scores))


def test_the_column_of_the_paper_is_the_hard_margin(outputs):
    committee = study.rank_margin(outputs, nu=0.0, scale="probability", tol=1e-6)
    for weights in np.random.default_rng(0).dirichlet(np.ones(5), size=200):
        scaled = study.on_one_scale(outputs)[0] @ weights
        worst = scaled[outputs.y_tune == 1].min() - scaled[outputs.y_tune == 0].max()
        assert worst <= committee.rank_margin_ + 1e-6


class TestResults:
    columns = (("a", "x"), ("a", "y"), ("a", "z"))

    def results(self, values):
        runs = [
            study.Run("thirds", title, run, dict(zip(self.columns, row, strict=True)))
            for title, table in values.items()
            for run, row in reversed(list(enumerate(table)))
        ]
        return Results.of(list(values), iter(runs))

    def test_runs_come_in_any_order(self):
        results = self.results({"A": [[1, 2, 3], [4, 5, 6]], "B": [[7, 8, 9], [1, 1, 1]]})
        assert results.values[0].tolist() == [[1, 2, 3], [4, 5, 6]]
        assert results.means([("a", "y")])[:, 0].tolist() == [3.5, 4.5]
        assert results.wins(("a", "z"), ("a", "y")) == 2

    def test_bold_is_the_best_and_what_does_not_differ_from_it(self):
        """Two columns take turns and do not differ; the third is always last."""
        turns = [[0.9, 0.8, 0.1], [0.8, 0.9, 0.1]] * 5
        results = self.results({"A": turns, "B": [[0.5, 0.5, 0.5]] * 10})
        assert results.best_of("A", self.columns) == {("a", "x"), ("a", "y")}
        assert results.best_of("B", self.columns) == set()

    def test_splits_are_collected_separately(self):
        runs = [study.Run(split, "A", 0, {("a", "x"): auc}) for split, auc in (("p", 1), ("q", 2))]
        means = {split: own.means([("a", "x")]) for split, own in by_split(["A"], runs).items()}
        assert means == {"p": [[1]], "q": [[2]]}


class TestFindings:
    """Ten data sets; RankMargin is as printed plus a shift, which differs between the splits."""

    def results(self, shift, rankboost=-0.2, svm=0.1):
        runs = []
        for title in SOURCES:
            for run in range(10):
                aucs = {("features", name): 0.99 for name in study.FEATURES}
                for size in study.SIZES:
                    auc = TABLES[size][title][0][0] + shift
                    for method, change in zip(METHODS, (0, rankboost, svm), strict=True):
                        aucs[f"{size} Modest", method] = auc + change
                    aucs[f"{size} Modest", study.OTHER_SVM] = auc + rankboost - 0.1
                runs.append(study.Run("", title, run, aucs))
        return Results.of(list(SOURCES), runs)

    @pytest.mark.parametrize("shift", [0.01, -0.03])
    def test_the_page_leads_with_the_split_that_matches_the_paper(self, shift):
        of_splits = {"thirds": self.results(0.02), "60/20/20": self.results(shift)}
        nearer = "60/20/20" if abs(shift) < 0.02 else "thirds"
        assert findings.mean_distance(of_splits["60/20/20"]) == pytest.approx(abs(shift))
        assert findings.leading_split(of_splits) == nearer
        assert f"this page shows {nearer}" in findings.describe_choice(of_splits)

    def test_rankmargin_is_compared_over_and_on_the_data_sets(self):
        results = self.results(0)
        rankboost = findings.compare(results, 5, "RankBoost")
        # RankMargin is always second of three: one rank from each rival, z = √5, not significant.
        assert (rankboost.n_wins, rankboost.outcome, rankboost.n_better) == (10, "not different", 0)
        assert rankboost.p == pytest.approx(0.0507, abs=1e-4)
        assert rankboost.p_pair == pytest.approx(2 / 2**10)  # all ten differences have one sign
        other = findings.compare(results, 5, "RankBoost", study.OTHER_SVM)
        assert (other.outcome, other.p_pair) == ("not different", rankboost.p_pair)
        first = findings.compare(self.results(0, rankboost=-0.2, svm=-0.1), 5, "RankBoost")
        assert (first.n_wins, first.outcome, first.n_better) == (10, "better", 10)
        last = findings.compare(self.results(0, rankboost=0.1, svm=0.2), 5, "SVM")
        assert (last.n_wins, last.outcome, last.n_worse) == (0, "worse", 10)
        assert (first.outcome_of_pair, last.outcome_of_pair) == ("better", "worse")

    def test_the_printed_comparison_counts_bold_numbers(self):
        svm = findings.compare_printed(list(SOURCES), 5, "SVM")
        assert (svm.n_wins, svm.n_better, svm.n_worse) == (7, 6, 3)
        assert findings.compare_printed(list(SOURCES), 7, "RankBoost").outcome == "better"

    def test_the_verdict_compares_our_means_with_the_printed_ones(self):
        ahead = findings.describe_rival(self.results(0, svm=-0.1), "SVM")
        assert "RankMargin is ahead of SVM, as printed" in ahead
        assert "on 10 and 10 of 10 data sets; the paper prints 7 and 8" in ahead
        behind = findings.describe_rival(self.results(0, svm=0.1), "SVM")
        assert "RankMargin is not ahead of SVM, unlike the printed means" in behind

    def test_the_other_splits_are_named_where_rankmargin_differs(self):
        behind = self.results(0.02, rankboost=0.2)
        sentence = findings.describe_other_splits({"thirds": behind, "60/20/20": self.results(0)})
        assert "than RankBoost on 0 to 0 and than SVM on 0 to 0 of 10 data sets" in sentence
        # Both rivals are ahead, RankBoost by two ranks of three and the SVM by one.
        assert "worse than RankBoost in 2 (thirds, 5 members; thirds, 7 members)" in sentence
        assert "Wilcoxon's test finds RankMargin worse than RankBoost in 2" in sentence

    def test_both_readings_of_the_rivals_are_compared_with_the_printed_means(self):
        sentence = findings.describe_readings(self.results(0))
        printed = [mean for size in study.SIZES for _, (mean, _), _ in TABLES[size].values()]
        assert f"{np.mean(np.abs(np.subtract(0.99, printed))):.3f} (RankBoost)" in sentence
        assert "on 9 and 9 of 10" in findings.describe_features(self.results(0))


class TestMargins:
    def test_a_sentence_holds_if_most_runs_of_both_committees_agree(self):
        assert margins.decide([8, 10], 10) == "holds"
        assert margins.decide([0, 2], 10) == "does not hold"
        assert margins.decide([10, 7], 10) == "undecided"
        assert margins.decide([0, 10], 10) == "undecided"

    def check(self, part, **values):
        (sentence,) = (one for one in margins.SENTENCES if part in one.text)
        return sentence.is_true(values)

    @pytest.mark.parametrize(
        ("rankboost", "close", "first"),
        [(-1.05, True, False), (-0.5, False, True), (-2, False, False)],
    )
    def test_smallest_margins_are_comparable_or_clearly_larger(self, rankboost, close, first):
        values = {"RankBoost": rankboost, "SVM": -1.1, "RankMargin": -1.0}
        assert self.check("comparable", **values) == close
        assert self.check("clearly larger", **values) == first

    def test_similar_distributions_are_the_closest_ones(self):
        """RankBoost orders all pairs with the same margin; the others have a pair in disorder."""
        positives, negatives = [1.0, 0.9], [-1.0, -0.9]
        alike = {"RankMargin": CrucialPairs([1.0, -1.0], [0.0, -0.9])}
        alike["SVM"] = CrucialPairs([1.0, -1.0], [0.0, -0.95])
        alike["RankBoost"] = CrucialPairs(positives, negatives)
        measured = margins.measure(alike, {})
        assert measured["tuning AUC"] == {"RankMargin": 0.5, "SVM": 0.5, "RankBoost": 1.0}
        assert measured["smallest margin"]["RankMargin"] == -1
        assert self.check("similar", **measured["distance"])
        swapped = alike | {"SVM": alike["RankBoost"], "RankBoost": alike["SVM"]}
        assert not self.check("similar", **margins.measure(swapped, {})["distance"])

    def test_scores_are_scaled_to_a_range_of_two(self, outputs):
        pairs = margins.tuning_pairs(outputs)
        assert set(pairs) == set(METHODS)
        for own in pairs.values():
            scores = np.concatenate([own.positives, own.negatives])
            assert np.ptp(scores) == pytest.approx(2)


class TestUnbalanced:
    @pytest.mark.parametrize("fraction", unbalanced.FRACTIONS)
    def test_training_and_tuning_part_have_the_fraction_of_positives(self, fraction):
        parts = unbalanced.split("Segment", fraction, 0)
        for y in (parts.y_train, parts.y_tune):
            assert y.mean() == pytest.approx(fraction, abs=1 / len(y))
        assert parts.y_test.mean() == pytest.approx(1 / 7, abs=0.01)
        assert len(parts.y_test) == pytest.approx(2310 / 3, abs=1)

    def test_rarer_positives_are_among_the_others(self):
        y = np.repeat([0, 1], [400, 100])
        few, more = (unbalanced.thin(y, fraction, 3) for fraction in (0.01, 0.05))
        assert set(few) < set(more)
        assert (y[few] == 0).sum() == (y[more] == 0).sum() == 400
        assert (y[few] == 1).sum() == 4  # 4 / 404 is nearest to 1 %
        assert (y[more] == 1).sum() == 21
        assert set(unbalanced.thin(y, 0.01, 4)) != set(few)

    def test_measures_of_a_worked_example(self):
        """Of 100 negatives one is above the second positive and five above the third."""
        scores = np.concatenate([[9.0, 7.0, 3.0, 0.0], [8.0], [5.0] * 4, np.linspace(1, 2, 95)])
        y = np.repeat([1, 0], [4, 100])
        measured = unbalanced.measure(scores, y, 4 / 104)
        assert list(measured) == list(unbalanced.MEASURES)
        assert measured["AUC"] == pytest.approx((100 + 99 + 95) / 400)
        assert measured["recall at 1% FPR"] == 0.5
        assert measured["recall at 5% FPR"] == 0.75
        precision = average_precision_score(y, scores)
        assert measured["average precision"] == pytest.approx(precision)

    def test_average_precision_has_the_fraction_of_the_training_samples(self):
        """All positives above all but one negative of 10, which is above them all."""
        scores, y = np.array([9.0, 8.0, 7.0, *range(9, 0, -1)]), np.repeat([0, 1, 0], [1, 2, 9])
        scores[3:] -= 8
        measured = unbalanced.measure(scores, y, 0.01)
        per_positive, per_negative = 0.01 / 2, 0.99 / 10
        precisions = [k * per_positive / (k * per_positive + per_negative) for k in (1, 2)]
        assert measured["average precision"] == pytest.approx(np.mean(precisions))

    def results(self, best):
        """Return one case, in which a combiner of the strong committee is best everywhere."""
        rng, titles = np.random.default_rng(0), [f"set {i}" for i in range(12)]
        runs = []
        for title in titles:
            for run in range(2):
                values = {
                    (committee, name): rng.normal(1.0 if name == best else 0.0, 0.01)
                    for committee in unbalanced.COMMITTEES
                    for name in unbalanced.COMBINERS
                }
                runs.append(study.Run("1%, AUC", title, run, values))
        return by_split(titles, runs)

    def test_a_rival_that_wins_is_named(self):
        text = unbalanced.describe(self.results("stacking"), "strong")
        assert "rank belongs to stacking in 1 of 1 cases" in text
        assert re.search(r"significantly better than none, and worse than stacking in 1\.", text)

    def test_the_rivals_of_a_winning_default_are_named(self):
        text = unbalanced.describe(self.results(findings.OURS), "strong")
        assert f"rank belongs to {findings.OURS} in 1 of 1 cases" in text
        assert re.search(r"better than .*stacking in 1.*, and worse than none\.", text)


@pytest.mark.full
@pytest.mark.slow
def test_the_command_writes_the_page(tmp_path, capsys):
    assert main(["--quick", "--jobs", "1", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "marrocco.md").read_text()
    assert "experiments.rank_margin --quick" in page
    assert "| Liver | **0.737** / " in page  # the printed number, beside ours
    assert "$" not in page
    assert (tmp_path / "rank_margin_figure_2.png").stat().st_size > 10_000
    assert str(tmp_path) in capsys.readouterr().out


def test_a_quick_run_does_not_overwrite_the_page(capsys):
    assert main(["--quick"]) == 2
    assert "--out" in capsys.readouterr().err
