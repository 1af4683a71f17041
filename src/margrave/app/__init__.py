"""What the command line and the studio are made of: tables, requests, reports.

:func:`read_samples` is for scripts: a table as both of them read it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from margrave.app._samples import Samples as Samples
    from margrave.app._samples import read_samples as read_samples

__all__ = ["Samples", "read_samples"]


def __getattr__(name: str) -> Any:
    """Load what is asked for: who only reads a table needs no models."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("margrave.app._samples"), name)
