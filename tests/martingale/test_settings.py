"""Hyperparameters from every form that a user may give them in, and what is refused."""

import re

import numpy as np
import pytest

from margrave.martingale._logistic import as_vector, read_groups

KEYS = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, [7, 7, 7]),
        (2, [2, 2, 2]),
        (-0.5, [-0.5, -0.5, -0.5]),
        (np.float64(2), [2, 2, 2]),
        (np.array(2), [2, 2, 2]),
        ([1, 2, 3], [1, 2, 3]),
        ((1, 2, 3), [1, 2, 3]),
        (np.array([1, 2, 3]), [1, 2, 3]),
        ({"a": 1, "b": 2, "c": 3}, [1, 2, 3]),
        ({"c": 3, "a": 1}, [1, 7, 3]),
        ({}, [7, 7, 7]),
    ],
)
def test_a_number_for_each_key(value, expected):
    numbers = as_vector(value, KEYS, 7.0, "size", "Thing")
    assert numbers.dtype == np.float64
    assert numbers.tolist() == expected


def test_the_numbers_are_a_copy_that_can_be_changed():
    values = np.array([1.0, 2, 3])
    numbers = as_vector(values, KEYS, 0.0, "size", "Thing")
    numbers[0] = 9
    assert values.tolist() == [1, 2, 3]
    single = as_vector(2.0, KEYS, 0.0, "size", "Thing")
    single[0] = 9  # not a view of one number
    assert single.tolist() == [9, 2, 2]


def test_one_key_takes_one_number_or_a_list_of_one():
    assert as_vector([5], ["a"], 0.0, "size", "Thing").tolist() == [5]
    assert as_vector(5, ["a"], 0.0, "size", "Thing").tolist() == [5]


@pytest.mark.parametrize(
    "value",
    [[1, 2], [1, 2, 3, 4], [[1, 2, 3]], [], np.nan, np.inf, [1, np.nan, 3], [1, 2, None]],
)
def test_other_shapes_and_numbers_that_are_not_finite_are_refused(value):
    with pytest.raises(ValueError, match=rf"\bsize\b.*{re.escape(repr(value))}"):
        as_vector(value, KEYS, 0.0, "size", "Thing")


@pytest.mark.parametrize("value", ["much", ["x", 1, 2], [1, [2], 3], 1j, {"a": "x"}])
def test_values_other_than_numbers_are_refused_by_name(value):
    with pytest.raises(ValueError, match=r"Thing.*\bsize\b"):
        as_vector(value, KEYS, 0.0, "size", "Thing")


def test_an_error_shows_the_mapping_of_the_user():
    with pytest.raises(ValueError, match=r"\bsize\b.*\{'b': inf\}"):
        as_vector({"b": np.inf}, KEYS, 0.0, "size", "Thing")


def test_an_unknown_key_is_refused():
    with pytest.raises(ValueError, match=r"\bsize\b.*'d'") as error:
        as_vector({"a": 1, "d": 2, "e": 3}, KEYS, 0.0, "size", "Thing")
    assert "'e'" not in str(error.value)


@pytest.mark.parametrize(("n_keys", "shown"), [(6, "012345"), (7, "0123457")])
def test_of_many_keys_six_are_shown_and_the_number_of_all(n_keys, shown):
    with pytest.raises(ValueError, match=r"\bsize\b.*'a'") as error:
        as_vector({"a": 1}, list(range(n_keys)), 0.0, "size", "Thing")
    assert re.findall(r"\d", str(error.value)) == list(shown)


@pytest.mark.parametrize(
    ("groups", "names", "expected"),
    [
        (None, None, (["0", "1", "2"], [0, 1, 2])),
        (None, ["x", "y", "z"], (["x", "y", "z"], [0, 1, 2])),
        (None, np.array(["x", "y", "z"], dtype=object), (["x", "y", "z"], [0, 1, 2])),
        ({"p": [0, 2], "q": [1]}, None, (["p", "q"], [0, 1, 0])),
        ({"p": (2, 0), "q": (1,)}, None, (["p", "q"], [0, 1, 0])),
        ({"p": range(1, 3), "q": np.array([0])}, None, (["p", "q"], [1, 0, 0])),
        ({"p": ["x", "z"], "q": ["y"]}, ["x", "y", "z"], (["p", "q"], [0, 1, 0])),
        ({"p": "y", "q": ["x", 2]}, ["x", "y", "z"], (["p", "q"], [1, 0, 1])),
        ({"p": {"x", "z"}, "q": "y"}, ["x", "y", "z"], (["p", "q"], [0, 1, 0])),
        ({"p": ["0", "2"], "q": "1"}, None, (["p", "q"], [0, 1, 0])),
        ({1: [0, 1], 2: [2]}, None, (["1", "2"], [0, 0, 1])),
        ({"all": [2, 1, 0]}, None, (["all"], [0, 0, 0])),
    ],
)
def test_the_group_of_each_feature(groups, names, expected):
    found, group = read_groups(groups, 3, names, "Thing")
    assert (found, group.tolist()) == expected


@pytest.mark.parametrize(
    ("groups", "names", "feature"),
    [
        ({"p": [0, 1], "q": [1, 2]}, None, r"\b1\b"),
        ({"p": ["x", 1], "q": ["y", 2]}, ["x", "y", "z"], "'y'"),
        ({"p": [0, 2]}, None, "'1'"),
        ({"p": ["x"]}, ["x", "y", "z"], "'y'"),
        ({}, None, "'0'"),
    ],
)
def test_a_feature_is_in_one_group(groups, names, feature):
    with pytest.raises(ValueError, match=rf"Thing.*\bgroups\b.*{feature}"):
        read_groups(groups, 3, names, "Thing")


@pytest.mark.parametrize("feature", [3, -1, 0.0, True, None, "w", (0,)])
def test_an_unknown_feature_is_refused(feature):
    with pytest.raises(ValueError, match=rf"\bgroups\b.* {re.escape(repr(feature))}"):
        read_groups({"p": [feature]}, 3, ["x", "y", "z"], "Thing")


@pytest.mark.parametrize("groups", [[[0, 1], [2]], "p", 3, {"p": 0, "q": [1, 2]}, {"p": None}])
def test_groups_of_another_kind_are_refused_by_name(groups):
    with pytest.raises(ValueError, match=r"Thing.*\bgroups\b"):
        read_groups(groups, 3, None, "Thing")


def test_groups_whose_names_are_written_alike_are_refused():
    """A mapping of log-penalties by the names of the groups would be ambiguous."""
    with pytest.raises(ValueError, match=r"Thing.*\bgroups\b"):
        read_groups({1: [0, 1], "1": [2]}, 3, None, "Thing")
