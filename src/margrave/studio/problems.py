"""Errors as the page shows them: a message for people, a code and fields for programs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from margrave import MargraveError
from margrave.app.words import one_line
from margrave.steer import SplitError

WENT_WRONG = "An internal error occurred; the studio has written the details to its log."

# For errors whose own message names a call in Python.
_MESSAGES = {
    "nothing_to_undo": "There is nothing to undo: the dialog is at its start.",
    "nothing_to_redo": "There is nothing to redo: no step was undone.",
    "no_positive": "This needs a positive class; the dialog has more than two classes and none is "
    "positive.",
    "no_certification_set": "There is no certification set, so no model can be certified.",
    "used_up": "The certification set is used up: another guarantee needs new labelled rows.",
}
_PARAMETERS = {"committee": "members"}  # their names on the page
_OPTION = re.compile(r"(?<!\S)--(\w+)")
_OWNER = re.compile(r"^[A-Z]\w*(\.\w+)* needs ")


def plain_message(error: Exception) -> str:
    """Describe an error in one line, without names from the command line or from Python."""
    if not isinstance(error, MargraveError):
        return _OPTION.sub(r"\1", _OWNER.sub("This needs ", one_line(str(error))))
    if error.code == "parameter":
        return _parameter_message(error.fields)
    if isinstance(error, SplitError) and error.code == "too_few_samples":
        return _size_message(error.fields)
    return _MESSAGES.get(error.code) or _OPTION.sub(r"\1", one_line(str(error)))


def problem_record(error: Exception) -> dict[str, Any]:
    """The message of an error, with its code and fields if it has them."""
    record: dict[str, Any] = {"error": plain_message(error) or WENT_WRONG}
    if isinstance(error, MargraveError):
        record |= {"code": error.code, "fields": error.fields}
    return record


def _parameter_message(fields: Mapping[str, Any]) -> str:
    name, allowed = fields["parameter"], fields["allowed"]
    if isinstance(allowed, list):
        allowed = f"one of {', '.join(map(str, allowed))}"
    return (
        f"{_PARAMETERS.get(name, name).capitalize()} must be {allowed}; got {fields['received']!r}."
    )


def _size_message(fields: Mapping[str, Any]) -> str:
    which = f"Class {fields['label']!r}" if "label" in fields else "The smallest class"
    needed = f"; at least {fields['needed']} are needed" if "needed" in fields else ""
    return f"{which} has {fields['n']} rows, too few for this split{needed}."
