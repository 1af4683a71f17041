"""The base class of Margrave's errors: a message for people, a code and fields for programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any


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

    Examples
    --------
    >>> from margrave import MargraveError
    >>> error = MargraveError("The model has 3 classes; got 4 scores.", code="scores", received=4)
    >>> error.code, error.fields
    ('scores', {'received': 4})
    """

    __module__ = "margrave"  # the public name, shown in tracebacks

    code: str
    fields: dict[str, Any]

    def __init__(self, message: str, *, code: str, **fields: Any) -> None:
        super().__init__(message)
        self.code = code
        self.fields = {name: _json_ready(value) for name, value in fields.items()}

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
        The sentence.
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
    """

    def __init__(self, message: str, *, parameter: str, allowed: Any, received: Any) -> None:
        super().__init__(
            message, code="parameter", parameter=parameter, allowed=allowed, received=received
        )


def _restore(cls: type[MargraveError], args: tuple[Any, ...], state: dict[str, Any]) -> Any:
    """Rebuild an error, whatever the parameters of its class."""
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    return error


def _json_ready(value: Any) -> Any:
    """Convert a value to what JSON can hold: its own type, a list, a dict, or its ``repr``."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if isfinite(value) else repr(float(value))
    if isinstance(value, Mapping):
        return {str(key): _json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_ready(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays
        return _json_ready(value.tolist())
    return repr(value)
