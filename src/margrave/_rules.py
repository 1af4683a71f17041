"""Parameters of estimators: what each may be, as data, and one message for what it is not."""

from collections.abc import Mapping
from typing import Any

import numpy as np

Rules = Mapping[str, tuple[str, bool]]
"""Every parameter with what it may be, in words, and whether it is."""


def check_rules(estimator: Any, rules: Rules) -> None:
    """Refuse the first parameter that is not what it may be."""
    for name, (allowed, kept) in rules.items():
        if not kept:
            raise ValueError(
                f"{type(estimator).__name__} needs {name} to be {allowed}; "
                f"got {getattr(estimator, name)!r}."
            )


def is_count(value: Any) -> bool:
    """Whether a value is an integer of at least 1; True is not."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and bool(value >= 1)


def is_number(value: Any) -> bool:
    """Whether a value is a real number that is not NaN; True is not."""
    number = isinstance(value, int | float | np.integer | np.floating)
    return number and not isinstance(value, bool) and bool(value == value)
