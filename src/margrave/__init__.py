"""Margrave: committees of classifiers, steered by the errors that their user can tolerate.

This package contains ``Confusion``, ``Preference``, ``Scores``, and its errors ``MargraveError``
and ``ParameterError``. It loads its subpackages when they are first used: ``margrave.steer``,
``fuse``, ``select``, ``members``, ``mam``, ``martingale``, ``catalogue``, ``compare``,
``confusion``, ``datasets``, ``export``, ``pairs``, ``scale``, ``studio`` and ``table``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from margrave._errors import MargraveError as MargraveError
    from margrave._errors import ParameterError as ParameterError
    from margrave.confusion import Confusion as Confusion
    from margrave.confusion import Preference as Preference
    from margrave.scores import Scores as Scores

__version__ = "0.1.0"

_MODULES = {
    "Confusion": "confusion",
    "MargraveError": "_errors",
    "ParameterError": "_errors",
    "Preference": "confusion",
    "Scores": "scores",
}

__all__ = ["Confusion", "MargraveError", "ParameterError", "Preference", "Scores"]

_PACKAGES = (
    "catalogue",
    "compare",
    "confusion",
    "datasets",
    "export",
    "fuse",
    "mam",
    "martingale",
    "members",
    "pairs",
    "scale",
    "select",
    "steer",
    "studio",
    "table",
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"margrave.{_MODULES[name]}"), name)
    if name in _PACKAGES:
        return import_module(f"margrave.{name}")
    raise AttributeError(f"module 'margrave' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
