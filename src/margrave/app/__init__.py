"""What the command line and the studio share: tables, requests and reports.

In scripts, :func:`read_samples` and :func:`read_table` read a table as both front ends do. They
raise :class:`InputError` and :class:`TableError`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from margrave.app.messages import InputError as InputError
    from margrave.app.samples import Samples as Samples
    from margrave.app.samples import read_samples as read_samples
    from margrave.app.tables import TableError as TableError
    from margrave.app.tables import read_table as read_table

__all__ = ["InputError", "Samples", "TableError", "read_samples", "read_table"]

_MODULES = {
    "InputError": "messages",
    "Samples": "samples",
    "TableError": "tables",
    "read_samples": "samples",
    "read_table": "tables",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that reading a table does not import the models."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"margrave.app.{_MODULES[name]}"), name)
