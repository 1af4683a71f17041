"""The base class of Margrave's errors: a message for people, a code and fields for programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from margrave._json import json_ready


class MargraveError(ValueError):
    """The base class of Margrave's errors, with a code and fields that a program can use.

    Parameters
    ----------
    message : str
        What is wrong, what was received and what to do, in a sentence.
    code : str
        The kind of error; the class of the error lists its codes.
    **fields
        The values that the message mentions.

    Attributes
    ----------
    code : str
        The kind of error. It stays the same when the message changes.
    fields : dict
        The values that the message mentions, ready for JSON. A value that JSON cannot hold is its
        ``repr``.
    summary : str
        The message without lines that quote the input.

    Examples
    --------
    >>> from margrave import MargraveError, Preference
    >>> try:
    ...     Preference("recall <= 5")
    ... except MargraveError as error:
    ...     print(error.code, error.fields)
    not_a_fraction {'text': 'recall <= 5', 'span': [10, 11], 'limit': '5'}
    """

    __module__ = "margrave"  # the public name, shown in tracebacks

    code: str
    fields: dict[str, Any]
    summary: str

    def __init__(self, message: str, *, code: str, **fields: Any) -> None:
        super().__init__(message)
        self.code, self.summary = code, message
        self.fields = {name: json_ready(value) for name, value in fields.items()}

    def to_dict(self) -> dict[str, Any]:
        """Describe the error in values that JSON can hold.

        Returns
        -------
        dict
            With the keys code, message and fields.
        """
        return {"code": self.code, "message": str(self), "fields": dict(self.fields)}

    def __reduce__(self) -> tuple[Callable[..., MargraveError], tuple[Any, ...]]:
        # An exception is rebuilt from its positional arguments, which do not include the code.
        return _restore, (type(self), self.args, dict(self.__dict__))


class ParameterError(MargraveError):
    """A parameter has a value that is not allowed.

    Parameters
    ----------
    message : str
        The message.
    parameter : str
        The name of the parameter.
    allowed : str or list
        The allowed values, in words or one by one.
    received : object
        The value.

    Attributes
    ----------
    code : str
        "parameter".
    fields : dict
        With the keys parameter, allowed and received.

    Examples
    --------
    >>> from margrave import ParameterError
    >>> from margrave.steer import SteeredClassifier
    >>> try:
    ...     SteeredClassifier(confidence=95).fit([[0.0], [1.0]], [0, 1])
    ... except ParameterError as error:
    ...     print(error)
    ...     print(error.fields["parameter"], error.fields["received"])
    SteeredClassifier needs a confidence in (0, 1); got 95.
    confidence 95
    """

    __module__ = "margrave"

    def __init__(self, message: str, *, parameter: str, allowed: Any, received: Any) -> None:
        super().__init__(
            message, code="parameter", parameter=parameter, allowed=allowed, received=received
        )

    @classmethod
    def of(cls, owner: str, parameter: str, allowed: str, received: Any) -> ParameterError:
        """Make the error of a parameter that is not what its owner allows."""
        message = f"{owner} needs {parameter} to be {allowed}; got {received!r}."
        return cls(message, parameter=parameter, allowed=allowed, received=received)


def _restore(cls: type[MargraveError], args: tuple[Any, ...], state: dict[str, Any]) -> Any:
    """Rebuild an error, whatever the parameters of its class."""
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    return error
