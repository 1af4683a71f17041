import numpy as np
import pytest
from benchmarks.paths import (
    DISTANCE,
    SETTINGS,
    Population,
    Setting,
    describe,
    draw_samples,
    main,
    run_sets,
)
from scipy.stats import norm

from margrave.steer._thresholds import Offsets, Threshold


def test_true_rates_of_two_classes_are_exact():
    population = Population.of(Setting("", "fp <= 5%", (300, 100)))
    matrix = population.matrix(Threshold(-1.0, 0.5))  # scores are less by half the distance
    assert matrix.sum() == pytest.approx(1)
    assert matrix[0, 1] == pytest.approx(0.75 * norm.sf(1.5))
    assert matrix[1, 0] == pytest.approx(0.25 * norm.cdf(-2.0))


def test_true_rates_of_three_classes_agree_with_other_samples():
    setting = Setting("", "errors <= 20%", (100, 200, 300))
    matrix = Population.of(setting).matrix(Offsets(np.zeros(3), 0.5))
    X, y = draw_samples((3000, 6000, 9000), np.random.default_rng(1))
    predictions = Offsets(np.zeros(3), 0.5).predict(X)
    for c in range(3):
        assert matrix[c, c] == pytest.approx(np.mean((y == c) & (predictions == c)), abs=0.02)
    assert matrix[:, -1].sum() == pytest.approx(np.mean(predictions < 0), abs=0.02)


def test_samples_are_as_far_apart_as_stated():
    X, y = draw_samples((2000, 2000), np.random.default_rng(0))
    assert X[y == 1].mean() - X[y == 0].mean() == pytest.approx(DISTANCE, abs=0.1)


def test_a_refused_run_has_no_matrix_and_a_broken_one_is_counted():
    rng = np.random.default_rng(0)
    impossible = Setting("", "fp <= 1%", (50, 50), (50, 50))
    for run in run_sets(impossible, Population.of(impossible), rng, 2):
        assert (run.matrix, run.used_up, run.broken) == (None, False, False)
    possible = Setting("", "fp <= 20%", (50, 50), (50, 50))
    runs = run_sets(possible, _Harder.of(possible), rng, 2)
    assert [run.broken for run in runs] == [True, True]


class _Harder(Population):
    """A population in which more than a fifth of the negatives are predicted positive."""

    def matrix(self, decision):
        return np.array([[0.2, 0.3, 0.0], [0.1, 0.4, 0.0]])


def test_the_table_has_a_row_for_each_setting(capsys, monkeypatch):
    monkeypatch.setattr("benchmarks.paths.SETTINGS", SETTINGS[:2])
    assert main(["--runs", "2"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert len(rows) == 3
    assert {row.count("|") for row in rows} == {9}
    assert describe(SETTINGS[0], 2, 0) == rows[1]
