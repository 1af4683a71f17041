"""Errors as the page shows them: a message for people, a code and fields for programs."""

from __future__ import annotations

from typing import Any

from margrave.app.messages import describe_error

WENT_WRONG = "An internal error occurred; the studio has written the details to its log."

# The page's words for parameters that have another name there.
_WORDS = {
    "committee": "members",
    "cost_ratio": "cost ratio",
    "data": "table",
    "drop": "list of columns to leave out",
    "positive": "positive class",
    "predicted": "predicted class",
    "true": "true class",
}


def plain_message(error: Exception) -> str:
    """Describe an error in one line, with the page's words for the parameters."""
    return describe_error(error, lambda name: f"The {_WORDS.get(name, name)}")


def problem_record(error: Exception) -> dict[str, Any]:
    """The message of an error, its code, and its fields if it has them."""
    record = {
        "error": plain_message(error) or WENT_WRONG,
        "code": getattr(error, "code", None) or "refused",
    }
    fields = getattr(error, "fields", None)
    return record if fields is None else {**record, "fields": fields}
