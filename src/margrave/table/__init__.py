"""Tables: the kinds of columns, and their encoding as numbers."""

from margrave.table._encoder import TableEncoder

__all__ = ["TableEncoder"]
