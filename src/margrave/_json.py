"""Values that JSON can hold, and the version of the dictionaries that ``to_dict`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

# It grows by one when a key of a dictionary is removed or changes its meaning; a new key is no
# such change.
SCHEMA_VERSION = 1


def json_ready(value: Any) -> Any:
    """Convert a value to what JSON can hold: its own type, a list, a dict, or its ``repr``."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if isfinite(value) else repr(float(value))
    if isinstance(value, Mapping):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays
        return json_ready(value.tolist())
    return repr(value)
