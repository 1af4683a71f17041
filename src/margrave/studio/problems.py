"""Errors as the page shows them: a message for people, a code and fields for programs."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

from margrave.app.messages import describe_error

WENT_WRONG = "An internal error occurred; the studio has written the details to its log."

# The page's words for parameters that have another name there.
_WORDS = {
    "committee": "members",
    "cost_ratio": "cost ratio",
    "data": "table",
    "drop": "list of columns to leave out",
    "duplicates": "option 'Equal rows'",
    "positive": "positive class",
    "predicted": "predicted class",
    "true": "true class",
}
_CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    409: "conflict",
    413: "too_large",
    415: "unsupported_type",
    421: "wrong_host",
    422: "invalid",
    429: "too_many",
    500: "internal",
    503: "unavailable",
}


def plain_message(error: Exception) -> str:
    """Describe an error in one line, with the page's words for the parameters."""
    return describe_error(error, lambda name: f"The {_WORDS.get(name, name)}")


def problem_record(error: Exception) -> dict[str, Any]:
    """The message of an error; its code and its fields if it is one of Margrave's."""
    own = type(error).__module__.partition(".")[0] == "margrave"
    return {
        "error": plain_message(error) or WENT_WRONG,
        "code": getattr(error, "code", "refused") if own else "refused",
        "fields": getattr(error, "fields", None) if own else None,
    }


def problem_response(
    status: int, message: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    """The response to a request that is refused, with a code that stands for its status."""
    record = {"error": message, "code": _CODES.get(status, "refused"), "fields": None}
    return JSONResponse(record, status, headers)
