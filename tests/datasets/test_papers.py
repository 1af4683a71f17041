"""The sets are those of the papers: the rules of two-class versions, and the printed fractions."""

import numpy as np
import pytest

from margrave.datasets import load


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("balance", lambda y: np.isin(y, ["L", "B"])),
        ("contraceptive", lambda y: y == 1),
        ("housing", lambda y: y <= 21.0),
        ("hayes_roth", lambda y: y == 1),
    ],
)
def test_two_class_version_follows_the_rule(name, rule):
    base = load(name)
    X, y = load(base.two_class, return_X_y=True)
    kept = base.target != 3 if name == "hayes_roth" else np.full(len(base.target), True)
    np.testing.assert_array_equal(X, base.data[kept])
    np.testing.assert_array_equal(y, np.where(rule(base.target[kept]), 1, -1))


def test_cleveland_two_class_version_is_grade_zero_against_the_rest(shared_file):
    shared_file("cleveland")
    base, version = load("cleveland"), load("cleveland_bin")
    assert base.two_class == version.name
    assert base.categories == version.categories
    np.testing.assert_array_equal(version.data, base.data)
    np.testing.assert_array_equal(version.target, np.where(base.target == 0, 1, -1))


def test_balance_is_the_comparison_of_two_products():
    X, y = load("balance", return_X_y=True)
    pull = X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
    np.testing.assert_array_equal(y, np.array(["R", "B", "L"])[np.sign(pull).astype(int) + 1])
    assert len(np.unique(X, axis=0)) == 5**4


@pytest.mark.parametrize(
    ("name", "percent"),
    [
        ("cleveland_bin", 54.13),
        ("contraceptive_bin", 42.70),
        ("hayes_roth_bin", 50.39),
        ("housing_bin", 49.21),
        ("ionosphere", 64.10),
        ("liver", 57.97),
        ("sonar", 53.37),
    ],
)
def test_the_fraction_of_positives_is_that_in_table_1(name, percent):
    data = load(name)
    assert 100 * np.mean(data.target == data.positive) == pytest.approx(percent, abs=0.005)


def test_the_positives_of_marrocco_et_al_are_the_benign_among_the_complete_rows():
    data = load("breast_wisconsin")
    complete = ~np.isnan(data.data).any(axis=1)
    assert complete.sum() == 683
    assert data.positive == "malignant"
    assert 100 * np.mean(data.target[complete] == "benign") == pytest.approx(65.01, abs=0.005)


def test_peculiarities_in_the_notes():
    assert not load("ionosphere").data[:, 1].any()
    assert len(np.unique(load("titanic").data, axis=0)) == 14
    liver = load("liver")
    rows = np.column_stack([liver.data, liver.target])
    assert len(rows) - len(np.unique(rows, axis=0)) == 4
    hayes = load("hayes_roth").target[:132]
    assert np.bincount(hayes).tolist() == [0, 51, 51, 30]
