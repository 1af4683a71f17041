import re

import pytest
from experiments.multi_classifiers import study
from experiments.multi_classifiers.__main__ import main


@pytest.fixture(scope="module")
def rows():
    parts = study.split("sonar", seed=0)
    members = list(study.train(parts, study.QUICK_MEMBERS, seed=0))
    combined = [study.combination_row(parts, name, members) for name in study.COMBINATIONS]
    return study.member_rows(parts, members) + combined


def test_every_row_has_the_same_test_samples(rows):
    assert [row.name for row in rows] == [*study.QUICK_MEMBERS, *study.COMBINATIONS]
    sizes = {tuple(row.confusion.counts.sum(axis=1)) for row in rows}
    assert len(sizes) == 1
    assert all(0 <= row.auc <= 1 for row in rows)


def test_stricter_votes_reject_more_and_err_less(rows):
    by_name = {row.name: row.confusion for row in rows}
    order = ["plurality", "majority", "unanimity"]
    rejected = [by_name[name].n_rejected for name in order]
    mistakes = [by_name[name].fp + by_name[name].fn for name in order]
    assert rejected == sorted(rejected)
    assert mistakes == sorted(mistakes, reverse=True)


def test_the_parts_do_not_overlap():
    parts = study.split("sonar", seed=0)
    rows = [tuple(row) for part in (parts.X_train, parts.X_tune, parts.X_test) for row in part]
    assert len(rows) == len(set(rows)) == 208


def test_the_command_prints_the_table(capsys, rows):
    assert main(["sonar", "--quick", "--prefer", "fp <= 50%"]) == 0
    printed = capsys.readouterr().out
    for name in (*study.QUICK_MEMBERS, *study.COMBINATIONS):
        assert name in printed
    assert re.search('"fp <= 50%".*knn', printed)
    notes = [f"{row.name}: {row.note}" for row in rows if row.note]
    assert notes
    assert all(note[:40] in printed for note in notes)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["iris"], "'iris'"),
        (["sonar", "--prefer", "fp = 3"], "\n    fp = 3\n       ^"),
        (["nowhere"], "'nowhere'"),
    ],
)
def test_bad_arguments_end_with_a_message_and_code_2(arguments, named, capsys):
    assert main(arguments) == 2
    assert named in capsys.readouterr().err
