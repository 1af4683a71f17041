"""What an unknown name may have meant."""

import re

import pytest

from margrave._messages import did_you_mean, near_names

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
