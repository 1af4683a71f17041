"""Parts of messages: near names, classes and numbers."""

import re

import numpy as np
import pytest

from margrave._messages import did_you_mean, format_count, name_class, near_names

KNOWN = ("heart_statlog", "iris", "stock", "two-words")


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("heart", ["heart_statlog"]),
        ("the HEART set", ["heart_statlog"]),
        ("stok", ["stock"]),
        ("irish stock", ["stock"]),
        ("stock_iris", ["stock", "iris"]),
        ("st", []),
        ("", []),
    ],
)
def test_spelling_first_then_the_names_that_hold_a_word(text, near):
    assert near_names(text, KNOWN) == near


def test_the_question():
    assert did_you_mean([]) == ""
    question = did_you_mean(["a", "b"])
    assert re.findall("'(.)'", question) == ["a", "b"]
    assert question.startswith(" ")
    assert question.endswith("?")


@pytest.mark.parametrize("label", ["spam", "spam-like", "n/a", "Éclair", "snake_case", True])
def test_a_class_that_reads_as_a_name_is_bare(label):
    assert name_class(label) == str(label)


@pytest.mark.parametrize(
    "label",
    [0, -1, 1.5, np.int64(7), "1", "", "not spam", "a,b", "<=50K", "rejected", "no", "Yes", "it's"],
)
def test_a_class_that_would_be_misread_is_quoted(label):
    text = name_class(label)
    assert text[0] == text[-1]
    assert text[0] in "'\""
    assert text[1:-1] == str(label)


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0"),
        (999, "999"),
        (3054, "3,054"),
        (12_345_678, "12,345,678"),
        (14.4, "14.4"),
        (2.0, "2"),
    ],
)
def test_counts_have_thousands_separators(n, text):
    assert format_count(n) == text
