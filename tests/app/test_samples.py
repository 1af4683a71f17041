"""Reading a table as samples: what is refused, by its code, and what the samples are."""

import pickle

import pandas as pd
import pytest

from margrave import app
from margrave.app import InputError, TableError, read_samples, read_table
from margrave.app.samples import Table, find_table, read_labels, samples_of

FRAME = pd.DataFrame(
    {
        "x": [1.5, 2.5, 3.5] * 8,
        "when": [1, 2, 3] * 8,
        "who": ["a", "b", "c"] * 8,
        "constant": 1,
        "gap": ["a", None, "b"] * 8,
        "value": [i / 7 for i in range(24)],
        "spam": ["yes", "no"] * 12,
    }
)


@pytest.mark.parametrize(
    ("given", "code", "fields"),
    [
        ({"target": "Spamm"}, "unknown_column", {"parameter": "target", "near": ["spam"]}),
        ({"drop": ["X"]}, "unknown_column", {"parameter": "drop", "near": ["x"]}),
        ({"target": "gap"}, "missing_values", {"parameter": "target", "column": "gap", "n": 8}),
        ({"target": "value"}, "wrong_column", {"parameter": "target", "column": "value"}),
        ({"time": "who"}, "wrong_column", {"parameter": "time", "column": "who"}),
        ({"time": "constant"}, "wrong_column", {"parameter": "time", "column": "constant"}),
        ({"group": "gap"}, "missing_values", {"parameter": "group", "column": "gap"}),
        ({"group": "spam"}, "same_column", {"parameter": "group", "received": "spam"}),
        ({"positive": "Yes"}, "unknown_class", {"parameter": "positive", "near": ["yes"]}),
        ({"drop": FRAME.columns.drop("spam")}, "no_features", {"parameter": "data"}),
    ],
)
def test_what_does_not_fit_has_a_code_and_the_name_of_the_parameter(given, code, fields):
    with pytest.raises(InputError) as caught:
        samples_of(Table(FRAME, "mail.csv"), **{"target": "spam", **given})
    error = caught.value
    assert error.code == code
    assert error.fields | fields == error.fields
    assert str(error).startswith(error.fields["parameter"])
    assert "--" not in str(error)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (again.to_dict(), again.problem) == (error.to_dict(), error.problem)


def test_data_that_are_not_there_have_names_like_them():
    with pytest.raises(InputError) as caught:
        find_table("spambas")
    assert (caught.value.code, caught.value.fields["near"]) == ("unknown_data", ["spambase"])


def test_a_new_table_with_another_class_is_refused():
    with pytest.raises(InputError) as caught:
        read_labels(Table(FRAME, "mail.csv"), "spam", FRAME["who"].unique())
    assert (caught.value.code, caught.value.fields["column"]) == ("wrong_column", "spam")


def test_the_positive_class_of_a_data_set_is_one_of_its_target():
    assert read_samples("pima", target="target").positive == "pos"
    assert read_samples("pima", target="pregnant").positive is None


def test_the_errors_of_a_table_are_public(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n")
    with pytest.raises(TableError):
        read_table(path)
    assert {"InputError", "TableError", "read_table"} <= set(app.__all__)
    assert all(getattr(app, name).__name__ == name for name in app.__all__)
