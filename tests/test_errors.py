"""Errors keep their code and fields, whatever carries them."""

import copy
import json
import pickle

import numpy as np
import pytest

import margrave
from margrave._errors import MargraveError, ParameterError


def error_with_fields():
    return MargraveError(
        "Seven is too many.",
        code="too_many",
        n=np.int64(7),
        names=("a", "b"),
        limits={"most": np.array([1.5, np.inf])},
        other=object,
    )


def parameter_error():
    return ParameterError("k must be odd; got 4.", parameter="k", allowed=["odd"], received=4)


def through_pickle(error):
    return pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes


@pytest.mark.parametrize("make", [error_with_fields, parameter_error])
@pytest.mark.parametrize("carry", [through_pickle, copy.copy, copy.deepcopy])
def test_a_copy_keeps_everything(make, carry):
    error = make()
    error.add_note("on Tuesday")
    again = carry(error)
    assert type(again) is type(error)
    assert again.to_dict() == error.to_dict()
    assert again.args == error.args
    assert again.__notes__ == ["on Tuesday"]


def test_fields_are_ready_for_json():
    described = json.loads(json.dumps(error_with_fields().to_dict(), allow_nan=False))
    assert described["code"] == "too_many"
    assert described["message"] == "Seven is too many."
    fields = described["fields"]
    assert (fields["n"], fields["names"]) == (7, ["a", "b"])
    assert fields["limits"] == {"most": [1.5, "inf"]}
    assert isinstance(fields["other"], str)


def test_a_parameter_error_names_the_parameter():
    error = parameter_error()
    assert error.code == "parameter"
    assert error.fields == {"parameter": "k", "allowed": ["odd"], "received": 4}
    assert isinstance(error, MargraveError)


def test_the_base_class_is_a_value_error_and_public():
    assert issubclass(margrave.MargraveError, ValueError)
    assert margrave.MargraveError is MargraveError
