"""Tables: the kinds of columns, and their encoding as numbers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from margrave.table._findings import Finding as Finding
from margrave.table._findings import find_roles as find_roles
from margrave.table._kinds import Guess as Guess
from margrave.table._kinds import guess_kind as guess_kind
from margrave.table._kinds import read_dates as read_dates
from margrave.table._kinds import read_numbers as read_numbers
from margrave.table._kinds import read_texts as read_texts

if TYPE_CHECKING:
    from margrave.table._columns import LARGEST_NUMBER as LARGEST_NUMBER
    from margrave.table._columns import LARGEST_SCALED as LARGEST_SCALED
    from margrave.table._columns import CategoryEncoder as CategoryEncoder
    from margrave.table._columns import DateEncoder as DateEncoder
    from margrave.table._columns import NumberEncoder as NumberEncoder
    from margrave.table._encoder import TableEncoder

# Names imported with "as" are for the other packages of Margrave.
__all__ = ["TableEncoder"]

# The encoders load scikit-learn when they are first used: the process that reads an uploaded file
# needs only the kinds of columns, and its user waits for it.
_ENCODERS = ("margrave.table._encoder", "margrave.table._columns")


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        for module in map(import_module, _ENCODERS):
            if name in vars(module):
                return vars(module)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
