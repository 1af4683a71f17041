"""What the command line and the studio share: tables, requests and reports.

In scripts, :func:`read_samples` reads a table as both front ends do.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from margrave.app.samples import Samples as Samples
    from margrave.app.samples import read_samples as read_samples

__all__ = ["Samples", "read_samples"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that reading a table does not import the models."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("margrave.app.samples"), name)
