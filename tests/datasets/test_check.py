"""A copy is held against what is known of its set, wherever it is from."""

from dataclasses import replace

import numpy as np
import pytest

from margrave.datasets._check import check_facts
from margrave.datasets._facts import all_facts
from margrave.datasets._table import Arrays

LABELLED = replace(all_facts()["raetsch_banana"], rows=3, features=1, classes={-1: 1, 1: 2})
VALUED = replace(all_facts()["stock"], rows=3, features=1, target_range=(1.5, 9.0))


def copy(target, n_features=1):
    """Arrays with that target and features of zeros."""
    names = tuple(f"f{j}" for j in range(n_features))
    return Arrays(names, np.zeros((len(target), n_features)), np.array(target), {})


@pytest.mark.parametrize(
    ("facts", "target"),
    [(LABELLED, [1, -1, 1]), (LABELLED, [-1.0, 1.0, 1.0]), (VALUED, [9.0, 2.0, 1.5])],
)
def test_the_same_set_passes(facts, target):
    check_facts(copy(target), facts, "here")


@pytest.mark.parametrize(
    ("target", "got"),
    [
        ([1, 1, 1], "3 rows, 1 features, 0 missing values, classes {1: 3}"),
        ([0, 1, 1], "3 rows, 1 features, 0 missing values, classes {0: 1, 1: 2}"),
        (["no", "yes", "yes"], "3 rows, 1 features, 0 missing values, classes {'no': 1, 'yes': 2}"),
        ([-1, -1, 1, 1, 1, 1], "6 rows, 1 features, 0 missing values, classes {-1: 2, 1: 4}"),
        (
            np.arange(10.0),
            "10 rows, 1 features, 0 missing values, classes {0.0: 1, 1.0: 1, 2.0: 1, 3.0: 1, "
            "4.0: 1, 5.0: 1, 6.0: 1, 7.0: 1, ... (10 in all)}",
        ),
    ],
)
def test_other_classes_are_refused(target, got):
    with pytest.raises(ValueError, match="Bring another copy") as error:
        check_facts(copy(target), LABELLED, "here")
    assert str(error.value) == (
        "margrave.datasets.load needs here to be 'raetsch_banana' with 3 rows, 1 features, "
        f"0 missing values, classes {{-1: 1, 1: 2}}; got {got}. Bring another copy."
    )


@pytest.mark.parametrize(
    ("target", "n_features", "got"),
    [
        ([1.5, 2, 9], 2, "3 rows, 2 features, 0 missing values, a target from 1.5 to 9.0"),
        ([1.5, 9], 1, "2 rows, 1 features, 0 missing values, a target from 1.5 to 9.0"),
        ([1.5, 2, 10], 1, "3 rows, 1 features, 0 missing values, a target from 1.5 to 10.0"),
        ([1.5, np.nan, 9], 1, "3 rows, 1 features, 0 missing values, a target from nan to nan"),
        (["1.5", "?", "9"], 1, "3 rows, 1 features, 0 missing values, a target of text"),
    ],
)
def test_other_sizes_and_ranges_are_refused(target, n_features, got):
    with pytest.raises(ValueError, match="Bring another copy") as error:
        check_facts(copy(target, n_features), VALUED, "here")
    assert str(error.value) == (
        "margrave.datasets.load needs here to be 'stock' with 3 rows, 1 features, "
        f"0 missing values, a target from 1.5 to 9.0; got {got}. Bring another copy."
    )
