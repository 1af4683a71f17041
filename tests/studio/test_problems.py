"""Errors on their way to the page: a code, fields, and no names of options or of Python."""

import pytest
from sqlalchemy.exc import OperationalError

from margrave.app.messages import InputError
from margrave.confusion import Preference, PreferenceError
from margrave.steer import Frontier
from margrave.studio.problems import problem_record
from margrave.studio.store import Conflict


def caught(call, *given, **more):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - each case has a class of its own
        call(*given, **more)
    return error.value


def test_a_parameter_has_its_code_and_a_word_of_the_page():
    frontier = Frontier.of({"score": [1, 2, 3, 4]}, [0, 1, 0, 1])
    record = problem_record(caught(frontier.winners, cost_ratio=(2, 1)))
    assert record["code"] == "parameter"
    assert record["fields"]["parameter"] == "cost_ratio"
    assert record["fields"]["received"] == [2, 1]
    assert "Frontier" not in record["error"]
    assert "cost_ratio" not in record["error"]


def test_an_error_of_the_table_has_its_code():
    error = InputError("target", "must be -- not altered.", code="unknown_column", received="x")
    record = problem_record(error)
    assert record["error"].endswith("must be -- not altered.")
    assert (record["code"], record["fields"]) == (
        "unknown_column",
        {"parameter": "target", "received": "x"},
    )


def test_a_preference_is_described_in_one_line_without_marks():
    error = caught(Preference, "fpp <= 2")
    assert isinstance(error, PreferenceError)
    record = problem_record(error)
    assert "^" in str(error)
    assert "^" not in record["error"]
    assert "\n" not in record["error"]
    assert error.fields["examples"][0] in record["error"]


def test_every_error_has_a_code():
    assert problem_record(Conflict("Another job runs."))["code"] == Conflict.code
    assert problem_record(ValueError("no"))["code"]
    assert problem_record(ValueError("--target is kept as it is."))["error"].startswith("--target")


def test_codes_of_other_libraries_are_not_passed_on():
    error = OperationalError("SELECT 1", {}, Exception("no"))
    record = problem_record(error)
    assert error.code
    assert record["code"] == problem_record(ValueError("no"))["code"]
    assert record["fields"] is None
