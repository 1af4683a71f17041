"""The rank-margin study: its protocol, its tables, and the command."""

import re

import numpy as np
import pytest
from experiments.rank_margin import study
from experiments.rank_margin.__main__ import main
from experiments.rank_margin.paper import METHODS, SOURCES, TABLES
from experiments.rank_margin.results import Results
from sklearn.metrics import roc_auc_score


@pytest.fixture(scope="module")
def parts():
    return study.split(*study.load("Sonar"), seed=0)


@pytest.fixture(scope="module")
def outputs(parts):
    return study.modest_committee(parts, 5, seed=0)


def test_the_printed_tables_name_every_data_set_and_method():
    for table in TABLES.values():
        assert set(table) == set(SOURCES)
        assert all(len(row) == len(METHODS) for row in table.values())


@pytest.mark.parametrize(
    ("title", "shape", "fraction"),
    # Features and fractions of positives of table 1, where they are possible.
    [("Breast", (683, 9), 0.6501), ("Housing", (506, 13), 0.4921), ("Sonar", (208, 60), 0.5337)],
)
def test_data_sets_are_those_of_table_1(title, shape, fraction):
    X, y = study.load(title)
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
            (title, run, dict(zip(self.columns, row, strict=True)))
            for title, table in values.items()
            for run, row in reversed(list(enumerate(table)))
        ]
        return Results.of(list(values), iter(runs))

    def test_runs_come_in_any_order(self):
        results = self.results({"A": [[1, 2, 3], [4, 5, 6]], "B": [[7, 8, 9], [1, 1, 1]]})
        assert results.values[0].tolist() == [[1, 2, 3], [4, 5, 6]]
        assert results.means([("a", "y")])[:, 0].tolist() == [3.5, 4.5]
        assert results.mean_ranks(self.columns).tolist() == [3, 2, 1]

    def test_bold_is_the_best_and_what_does_not_differ_from_it(self):
        """Two columns take turns and do not differ; the third is always last."""
        turns = [[0.9, 0.8, 0.1], [0.8, 0.9, 0.1]] * 5
        results = self.results({"A": turns, "B": [[0.5, 0.5, 0.5]] * 10})
        assert results.best_of("A", self.columns) == {("a", "x"), ("a", "y")}
        assert results.best_of("B", self.columns) == set()


@pytest.mark.full
@pytest.mark.slow
def test_the_command_writes_the_page(tmp_path, capsys):
    assert main(["--quick", "--jobs", "1", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "rank_margin.md").read_text()
    assert "experiments.rank_margin --quick" in page
    assert "| Liver | 0.737 (0.033) |" in page  # the printed number, beside ours
    assert "$" not in page
    for figure in re.findall(r"\]\((.*?\.png)\)", page):
        assert (tmp_path / figure).stat().st_size > 10_000
    assert str(tmp_path) in capsys.readouterr().out


def test_a_quick_run_does_not_overwrite_the_page(capsys):
    assert main(["--quick"]) == 2
    assert "--out" in capsys.readouterr().err
