import pytest
from benchmarks.certificates import (
    Choice,
    Groups,
    alarm_in_a_year,
    alarm_on_all_so_far,
    alarm_probability,
    allowed_errors,
    certified_failure,
    main,
    tuning_failure,
)

# In two samples with a limit of one half, 0, 1 and 2 errors have probabilities 1/4, 1/2 and 1/4.


@pytest.mark.parametrize(("n", "errors"), [(58, -1), (59, 0), (92, 0), (93, 1), (124, 2), (181, 4)])
def test_allowed_errors_at_five_percent(n, errors):
    assert allowed_errors(n, 0.05) == errors


def test_failures_of_thresholds_by_hand():
    assert tuning_failure(2, 0.5) == pytest.approx(0.75)  # one error is allowed
    assert certified_failure(59, 0.05) == pytest.approx(0.95**59)
    assert certified_failure(2, 0.5) == 0  # no guarantee is possible


def test_alarms_by_hand():
    assert alarm_probability(2, 0.5, 0.5, level=0.3) == pytest.approx(0.25)  # two errors of two
    assert alarm_probability(2, 0.5, 1.0, level=0.3) == 1
    assert alarm_probability(2, 0.5, 1.0, level=0.2) == 0
    assert alarm_in_a_year(2, 2, 0.5, 0.5, level=0.3) == pytest.approx(1 - 0.75**2)
    assert alarm_on_all_so_far(2, 0.5, 1.0, level=0.3, n_runs=3, seed=0) == 1


def test_simulations_agree_with_exact_failures():
    exact = certified_failure(93, 0.05)
    assert Choice(1, 93, 0.05, 0.0).failure(2000, seed=0) == pytest.approx(exact, abs=0.02)
    assert Groups(93, 1, 0.05, spread=0.7).failure(2000, seed=0) == pytest.approx(exact, abs=0.02)


def test_a_choice_and_groups_break_guarantees():
    assert Choice(10, 100, 0.05, 0.5).failure(300, seed=0) > 0.08
    assert Groups(30, 20, 0.05, spread=0.9).failure(300, seed=0) > 0.15


def test_the_tables_have_a_row_for_each_setting(capsys):
    assert main(["--runs", "2", "--samples", "50"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert len(rows) == 5 + 6 + 7 + 5
    assert "| 52 | 0.05 |" in "\n".join(rows)
