"""The messages of both front ends: an error in one line, without names of calls in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from margrave import MargraveError
from margrave._messages import format_count

if TYPE_CHECKING:
    from margrave.committee import Progress

# For errors whose own message names a call in Python; the fields of the error are filled in.
_MESSAGES = {
    "nothing_to_undo": "There is nothing to undo: the dialog is at its start.",
    "nothing_to_redo": "There is nothing to redo: no step was undone.",
    "no_positive": "This needs a positive class; the dialog has more than two classes and none is "
    "positive.",
    "no_certification_set": "There is no certification set, so no model can be certified.",
    "used_up": "The certification set is used up by {earlier}: another guarantee needs new "
    "labelled rows. The same request still gives the same model.",
    "used_samples": "The rows are not new: the model was built from rows that equal them, or "
    "nearly do. A guarantee is checked on rows that were labelled afterwards.",
    "copies": "Copies of a row stay together and count once; too few other rows are left for "
    "this split.",
    "many_copies": "{found}",
    "one_class": "The rows have one class, {label!r}; at least two classes are needed.",
}


class InputError(MargraveError):
    """A parameter of a request that does not fit the table or the other parameters.

    Each front end shows the parameter by its own name, with :func:`describe_error`.

    Parameters
    ----------
    parameter : str
        The name of the parameter.
    problem : str
        The rest of the sentence, and what to do.
    code : str
        The kind of error, one of those below.
    **fields
        The values that the message mentions.

    Notes
    -----
    The codes, and the fields of each besides parameter:

    ==================  ==========================================================================
    ``missing``         The parameter is needed.
    ``unknown_data``    There is no such file or data set: received, near.
    ``unknown_column``  The table has no such column: table, received, near.
    ``unknown_class``   There is no such class: received, classes, near.
    ``missing_values``  The column has missing values: table, column, n.
    ``wrong_column``    The column is not of classes or of times: table, column.
    ``same_column``     The column is that of another parameter: received.
    ``no_features``     The table has no columns besides the named ones: table.
    ``dependent_rows``  Rows seem to belong together, and group is not set: column.
    ``needs_memory``    The parameter cannot be used for a folder.
    ``fraction``        The text is not a fraction: received.
    ``too_many``        The request has too many limits: n.
    ``text_file``       The parameter is for text files only.
    ``folder``          The folder for the results cannot be used: received.
    ==================  ==========================================================================

    A limit that cannot be parsed has the code and the fields of its `PreferenceError`.

    Examples
    --------
    >>> from margrave.app import InputError, read_samples
    >>> try:
    ...     read_samples("iris", target="color")
    ... except InputError as error:
    ...     print(error.code, error.fields["parameter"])
    unknown_column target
    """

    def __init__(self, parameter: str, problem: str, *, code: str, **fields: Any) -> None:
        super().__init__(f"{parameter} {problem}", code=code, parameter=parameter, **fields)
        self.problem = problem


def describe_error(error: Exception, shown: Callable[[str], str | None]) -> str:
    """Describe an error in one line.

    Parameters
    ----------
    error : Exception
        The error.
    shown : callable
        Returns the name that a front end shows for a parameter, or None if it does not have it.
    """
    if not isinstance(error, MargraveError):
        return _join_lines(str(error))
    fields, message = error.fields, error.summary
    name = shown(fields["parameter"]) if "parameter" in fields else None
    if isinstance(error, InputError):
        message = f"{name or fields['parameter']} {error.problem}"
    elif error.code == "parameter" and name is not None:
        allowed = fields["allowed"]
        if isinstance(allowed, list):
            allowed = f"one of {', '.join(map(str, allowed))}"
        message = f"{name} must be {allowed}; got {fields['received']!r}."
    elif error.code in _MESSAGES:
        uses = fields.get("uses", ())
        earlier = (f"'{one['preference']}' ({one['outcome']} {one['date']})" for one in uses)
        message = _MESSAGES[error.code].format(**fields, earlier=" and ".join(earlier))
    elif error.code == "too_few_samples":
        from margrave.steer import SplitError  # loaded by now: the error is from there

        if isinstance(error, SplitError):
            which = f"Class {fields['label']!r}" if "label" in fields else "The smallest class"
            needed = f"; at least {fields['needed']} are needed" if "needed" in fields else ""
            row = "different row" if fields.get("n_copies") else "row"
            message = (
                f"{which} has {format_count(fields['n'], row)}, too few for this split{needed}."
            )
    n_copies = fields.get("n_copies")
    if error.code == "copies" or (n_copies and fields["n"] + n_copies >= fields["needed"]):
        message += f" {shown('duplicates')} can count equal rows as independent observations."
    return _join_lines(message)


def describe_training(progress: Progress) -> str:
    """Describe in a few words what is trained now, and what comes next."""
    if progress.running:
        after = f"; next: {', '.join(progress.waiting)}" if progress.waiting else ""
        return f"Training {' and '.join(progress.running)}{after}"
    if progress.finished:
        return "All members are trained"
    return f"{progress.done} of {progress.total} levels"


def replace_control(text: str) -> str:
    """Replace control characters, which a terminal would obey, except line ends."""
    return "".join(c if c == "\n" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _join_lines(text: str) -> str:
    return " ".join(text.split())
