"""Copies of a set are checked by the facts about it, whatever their source."""

import re
from dataclasses import replace

import numpy as np
import pytest

from margrave.datasets._facts import all_facts
from margrave.datasets._sources import check_facts
from margrave.datasets._table import Arrays

LABELLED = replace(all_facts()["raetsch_banana"], rows=3, features=1, classes={-1: 1, 1: 2})
VALUED = replace(all_facts()["stock"], rows=3, features=1, target_range=(1.5, 9.0))


def numbers(text):
    """The numbers of a text, in order."""
    return re.findall(r"\d+(?:\.\d+)?|\bnan\b", text)


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
        ([1, 1, 1], "{1: 3}"),
        ([0, 1, 1], "{0: 1, 1: 2}"),
        (["no", "yes", "yes"], "{'no': 1, 'yes': 2}"),
        ([-1, -1, 1, 1, 1, 1], "{-1: 2, 1: 4}"),
        (np.arange(10.0), "{0.0: 1, 1.0: 1, 2.0: 1, 3.0: 1, 4.0: 1, 5.0: 1, 6.0: 1, 7.0: 1, "),
    ],
)
def test_other_classes_are_refused(target, got):
    with pytest.raises(ValueError, match=r"\bhere\b.*'raetsch_banana'") as error:
        check_facts(copy(target), LABELLED, "here")
    wanted, _, received = str(error.value).rpartition("{-1: 1, 1: 2}")
    assert numbers(wanted) == ["3", "1", "0"]
    assert numbers(received)[:3] == [str(len(target)), "1", "0"]
    assert got in received


@pytest.mark.parametrize(
    ("target", "n_features", "got"),
    [
        ([1.5, 2, 9], 2, ["3", "2", "0", "1.5", "9.0"]),
        ([1.5, 9], 1, ["2", "1", "0", "1.5", "9.0"]),
        ([1.5, 2, 10], 1, ["3", "1", "0", "1.5", "10.0"]),
        ([1.5, np.nan, 9], 1, ["3", "1", "0", "nan", "nan"]),
        (["1.5", "?", "9"], 1, ["3", "1", "0"]),
    ],
)
def test_other_sizes_and_ranges_are_refused(target, n_features, got):
    with pytest.raises(ValueError, match=r"\bhere\b.*'stock'") as error:
        check_facts(copy(target, n_features), VALUED, "here")
    assert numbers(str(error.value)) == ["3", "1", "0", "1.5", "9.0", *got]
