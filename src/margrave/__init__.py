"""Margrave: committees of classifiers, steered by the mistakes their user can afford.

The three shared ideas are here; everything else is in a room of its own. All is loaded when it is
first used: ``margrave.steer``, ``fuse``, ``select``, ``members``, ``mam``, ``martingale``,
``catalogue``, ``compare``, ``datasets``, ``pairs``, ``preference``, ``scale`` and ``studio``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from margrave.confusion import Confusion as Confusion
    from margrave.preference import Preference as Preference
    from margrave.scores import Scores as Scores

__version__ = "0.1.0"

__all__ = ["Confusion", "Preference", "Scores"]

_ROOMS = (
    "catalogue",
    "compare",
    "datasets",
    "fuse",
    "mam",
    "martingale",
    "members",
    "pairs",
    "preference",
    "scale",
    "select",
    "steer",
    "studio",
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"margrave.{name.lower()}"), name)
    if name in _ROOMS:
        return import_module(f"margrave.{name}")
    raise AttributeError(f"module 'margrave' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
