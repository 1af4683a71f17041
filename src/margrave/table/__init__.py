"""Tables: the kinds of columns, and their encoding as numbers."""

from margrave.table._columns import LARGEST_NUMBER as LARGEST_NUMBER
from margrave.table._columns import LARGEST_SCALED as LARGEST_SCALED
from margrave.table._columns import CategoryEncoder as CategoryEncoder
from margrave.table._columns import DateEncoder as DateEncoder
from margrave.table._columns import NumberEncoder as NumberEncoder
from margrave.table._encoder import TableEncoder
from margrave.table._kinds import Guess as Guess
from margrave.table._kinds import guess_kind as guess_kind
from margrave.table._kinds import read_dates as read_dates
from margrave.table._kinds import read_numbers as read_numbers
from margrave.table._kinds import read_texts as read_texts

# Names imported with "as" are for the other packages of Margrave.
__all__ = ["TableEncoder"]
