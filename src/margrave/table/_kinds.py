"""Kinds of columns: guesses what a column holds, and reads its cells as text, numbers or dates.

The rules of the guess are in :func:`guess_kind`, in the order in which they apply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Floats

if TYPE_CHECKING:
    import pandas


Kind = Literal["number", "category", "date", "text", "ignored"]

ISO = "ISO8601"
_DAYS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y")  # ambiguous dates are day first
_FORMATS = (ISO, *(day + time for day in _DAYS for time in ("", " %H:%M", " %H:%M:%S")))
_LIKE_A_DATE = re.compile(r"\d{1,4}[-/.]\d")  # ISO 8601 reads 1001 as a year
_SAMPLE = 2000  # cells that are examined one by one
_NEARLY_ALL = 0.95
_FEW = 20  # distinct values that a category may have in a table of any length
_LONG = 30  # mean number of characters in the cells of a text
_LONGEST_IDENTIFIER = 40  # a UUID has 36 characters, a SHA-1 sum 40


@dataclass(frozen=True)
class Guess:
    """The kind of a column, with the format of a date or the reason why it is ignored."""

    kind: Kind
    format: str = ISO
    why: str = ""


def guess_kind(column: pandas.Series[Any]) -> Guess:
    """Guess what a column holds; the first rule that fits decides.

    1. Only missing values, or one value and none missing: ignored.
    2. The type is numeric, Boolean or a time difference: number. Dates and periods: date.
       pandas' categories: category.
    3. Every text is a number (or an object True or False): number.
    4. 95 % of the texts are dates in one format: date. At most 2000 cells are examined.
    5. At most max(20, √n) distinct values, with at most 30 characters on average or five cells
       each on average: category.
    6. 95 % are distinct and single words, with at most 40 characters on average: ignored, as an
       identifier.
    7. Half of the cells hold several words, or more than 30 characters on average: text.
    8. Otherwise: category.
    """
    from pandas.api import types

    dtype = column.dtype
    if types.is_complex_dtype(dtype):
        raise ValueError(f"TableEncoder needs column {column.name!r} to be real; got {dtype}.")
    if types.is_numeric_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        return _unless_constant(read_numbers(column), Guess("number"))
    if types.is_datetime64_any_dtype(dtype) or _is_period(column):
        return _unless_constant(_days(_parsed_dates(column, ISO)), Guess("date"))
    cells = read_texts(column)
    present = cells[cells != ""]
    distinct = len(set(present))
    if not distinct:
        return Guess("ignored", why="all missing")
    if distinct == 1 and len(present) == len(cells):
        return Guess("ignored", why="constant")
    if str(dtype) == "category":
        return Guess("category")
    if not np.isnan(_parsed_numbers(column)[cells != ""]).any():
        return Guess("number")
    date_format = _find_date_format(_spread_sample(present))
    if date_format:
        return Guess("date", format=date_format)
    return _guess_words(present, distinct, len(cells))


def _unless_constant(values: Floats, guess: Guess) -> Guess:
    known = values[np.isfinite(values)]
    if not len(known):
        return Guess("ignored", why="all missing")
    constant = len(known) == len(values) and known.min() == known.max()
    return Guess("ignored", why="constant") if constant else guess


def _guess_words(present: NDArray[Any], distinct: int, n_rows: int) -> Guess:
    """Rules 5 to 8, for text that is neither numbers nor dates."""
    sample = _spread_sample(present)
    mean_length = float(np.mean([len(cell) for cell in sample]))
    several_words = float(np.mean([len(cell.split()) > 1 for cell in sample]))
    repeated = len(present) >= 5 * distinct
    if distinct <= max(_FEW, n_rows**0.5) and (mean_length <= _LONG or repeated):
        return Guess("category")
    differ = distinct >= _NEARLY_ALL * len(present)
    if differ and several_words <= 1 - _NEARLY_ALL and mean_length <= _LONGEST_IDENTIFIER:
        return Guess("ignored", why="an identifier")
    if several_words >= 0.5 or mean_length > _LONG:
        return Guess("text")
    return Guess("category")


def _spread_sample(cells: NDArray[Any]) -> NDArray[Any]:
    """Return at most 2000 evenly spaced cells."""
    return cells[np.linspace(0, len(cells) - 1, min(len(cells), _SAMPLE)).astype(np.int64)]


def _find_date_format(sample: NDArray[Any]) -> str:
    """Return the format that most cells have as dates; "" if no format has enough."""
    likely = np.array([_LIKE_A_DATE.match(cell) is not None for cell in sample])
    best, best_fraction = "", 0.0
    for date_format in _FORMATS if likely.mean() >= _NEARLY_ALL else ():
        fraction = float(np.mean(likely & ~np.isnat(_to_dates(sample, date_format))))
        if fraction >= _NEARLY_ALL and fraction > best_fraction:
            best, best_fraction = date_format, fraction
    return best


def read_texts(column: pandas.Series[Any]) -> NDArray[Any]:
    """Return the cells as stripped text; "" for a missing one.

    Whole numbers lose their decimals, which pandas adds to a column with missing values.
    """
    if str(column.dtype) == "category":
        levels = [_text(level) for level in column.cat.categories]
        return np.array([*levels, ""], dtype=object)[column.cat.codes.to_numpy()]
    missing = column.isna().to_numpy()
    return _objects(
        "" if is_missing else _text(cell)
        for cell, is_missing in zip(column.astype(object).tolist(), missing, strict=True)
    )


def _objects(texts: Iterable[str]) -> NDArray[Any]:
    return np.array(list(texts), dtype=object)


def _text(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()


def read_numbers(column: pandas.Series[Any]) -> Floats:
    """Return the cells as numbers, time differences in days; NaN unless a finite number.

    Raises
    ------
    ValueError
        If there are cells and none is a number.
    """
    values = _parsed_numbers(column)
    if len(values) and np.isnan(values).all():
        _raise_if_not_empty(column, "numbers")
    values[~np.isfinite(values)] = np.nan
    return values


def _parsed_numbers(column: pandas.Series[Any]) -> Floats:
    import pandas
    from pandas.api import types

    if types.is_timedelta64_dtype(column.dtype):
        return column.to_numpy(dtype="timedelta64[us]") / np.timedelta64(1, "D")
    if types.is_numeric_dtype(column.dtype):
        return np.array(column.to_numpy(dtype=np.float64, na_value=np.nan))
    # pandas reads True and False as objects if some are missing, else as Booleans.
    cells = _objects(
        str(int(cell)) if isinstance(cell, bool | np.bool_) else text
        for cell, text in zip(column.tolist(), read_texts(column), strict=True)
    )
    parsed = pandas.to_numeric(pandas.Series(cells, dtype=object), errors="coerce")
    return np.array(parsed.to_numpy(dtype=np.float64))


def read_dates(column: pandas.Series[Any], date_format: str) -> NDArray[np.datetime64]:
    """Return the cells as dates in UTC; NaT unless a date.

    Raises
    ------
    ValueError
        If there are cells and none is a date.
    """
    dates = _parsed_dates(column, date_format)
    if len(dates) and np.isnat(dates).all():
        _raise_if_not_empty(column, "dates")
    return dates


def _parsed_dates(column: pandas.Series[Any], date_format: str) -> NDArray[np.datetime64]:
    from pandas.api.types import is_datetime64_any_dtype

    if _is_period(column):
        column = column.dt.to_timestamp()
    if is_datetime64_any_dtype(column.dtype):
        return _to_dates(column, None)
    cells = read_texts(column)
    dates = _to_dates(cells, date_format)
    # New data may hold dates as objects, whose text is ISO 8601.
    return dates if date_format == ISO else np.where(np.isnat(dates), _to_dates(cells, ISO), dates)


def _to_dates(cells: Any, date_format: str | None) -> NDArray[np.datetime64]:
    import pandas

    cells = cells if date_format is None else pandas.Series(cells, dtype=object)
    parsed = pandas.to_datetime(cells, errors="coerce", format=date_format, utc=True)
    return np.array(parsed.dt.tz_localize(None).to_numpy(dtype="datetime64[us]"))


def _days(dates: NDArray[np.datetime64]) -> Floats:
    """Return days since 1970, NaN for a missing date."""
    return (dates - np.datetime64(0, "us")) / np.timedelta64(1, "D")


def date_parts(dates: NDArray[np.datetime64]) -> Floats:
    """Return days since 1970, month (1 to 12), weekday (0 is Monday), hour; NaN if missing."""
    days = _days(dates)
    months, whole_days, hours = (dates.astype(f"datetime64[{unit}]").astype(int) for unit in "MDh")
    parts = np.stack([days, months % 12 + 1, (whole_days + 3) % 7, hours % 24], axis=1)
    parts[np.isnan(days)] = np.nan
    return parts


def _is_period(column: pandas.Series[Any]) -> bool:
    return str(column.dtype).startswith("period")


def _raise_if_not_empty(column: pandas.Series[Any], expected: str) -> None:
    """Raise if a column in which no cell could be read has any cell that is not missing."""
    cells = [cell for cell in read_texts(column) if cell]
    if cells:
        raise ValueError(
            f"TableEncoder needs column {str(column.name)!r} to hold {expected}; got {cells[0]!r}."
        )
