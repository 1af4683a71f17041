"""A user's table, from a file and to a file: CSV or Parquet, told by the ending of its name.

pandas parses; what it would pass over in silence (short rows, rows one field too long, columns
of one name) is found first, in one pass of the csv module, and told with its line in the file.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

from margrave._atomic_write import atomic_write
from margrave._messages import missing_extra

if TYPE_CHECKING:
    import pandas

_CSV = (".csv", ".csv.gz", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq")
_SEPARATORS = (",", ";", "\t", "|")
_SAMPLE = 1 << 16  # characters from which the separator is guessed
_LONGEST_CELL = 1 << 24  # characters; csv's own limit, 128 Ki, is less than a long mail
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a formula begins in a spreadsheet
_TEXT_TYPES = ("object", "str", "large_string", "category")  # how pandas spells them
_BROKEN_GZIP = (gzip.BadGzipFile, EOFError, zlib.error)


class TableError(ValueError):
    """A table's file that cannot be read or written; the message says where and why."""


def read_table(path: str | Path) -> pandas.DataFrame:
    r"""Read a table from a CSV or Parquet file.

    Parameters
    ----------
    path : str or Path
        A file that ends in .csv, .csv.gz, .tsv or .txt (text in UTF-8, names of the columns
        first, fields separated by comma, semicolon, tab or bar: the one that fits the first
        lines best), or in .parquet or .pq.

    Returns
    -------
    pandas.DataFrame
        The columns in the file's order. A named index that pandas had put into a Parquet file
        comes first, as columns.

    Raises
    ------
    TableError
        If there is no such file, its ending is not known, it holds no rows, or it is no table:
        rows of different lengths, columns without a name or with the same name, text that is not
        UTF-8, a damaged file.
    ImportError
        If pandas is not installed.

    Notes
    -----
    Missing values are empty fields, and in CSV also those that pandas takes for missing: NA, N/A,
    n/a, NaN, nan, NULL, null, None, <NA>, #N/A, #NA and a few like them. Empty lines are left
    out. Dates stay as they are, and so do numbers with a decimal comma: as text.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "mail.csv")
    ...     _ = file.write_text("words;spam\n120;no\n;yes\n")
    ...     read_table(file)
       words spam
    0  120.0   no
    1    NaN  yes
    """
    _needed("pandas", "read_table")
    path = Path(path)
    if not path.exists():
        raise TableError(f"read_table needs path to be a file; there is no {path}.")
    if path.is_dir():
        raise TableError(f"read_table needs path to be a file; {path} is a folder.")
    ending = _ending(path, "read_table")
    if not path.stat().st_size:
        raise TableError(f"{path}: needs a header and rows; got an empty file.")
    frame = _read_parquet(path) if ending in _PARQUET else _read_csv(path, ending)
    if not len(frame):
        raise TableError(f"{path}: needs rows under the header; got none.")
    return frame


def write_table(frame: pandas.DataFrame, path: str | Path) -> None:
    """Write a table to a CSV or Parquet file, whole or not at all.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table; its index is not written.
    path : str or Path
        Where to; the ending chooses the format, as in :func:`read_table`. The table is written
        beside it and then takes its place, so that nobody sees half a table.

    Raises
    ------
    TableError
        If the ending is not known, there is no such folder, two columns have the same name, or
        Parquet has no type for a column.
    ImportError
        If pandas is not installed.

    Notes
    -----
    A spreadsheet runs a cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage
    return as a formula. Such a text gets an apostrophe before it in a CSV file, column names
    too, unless it is a number. A .tsv file has tabs between its fields, all others commas.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "cells.csv")
    ...     write_table(pd.DataFrame({"cell": ["=A1+A2", "-7", "plain"]}), file)
    ...     file.read_text().splitlines()
    ['cell', "'=A1+A2", '-7', 'plain']
    """
    _needed("pandas", "write_table")
    path = Path(path)
    ending = _ending(path, "write_table")
    if path.is_dir():
        raise TableError(f"write_table needs path to be a file; {path} is a folder.")
    if not path.parent.is_dir():
        raise TableError(f"write_table needs a folder that exists; there is no {path.parent}.")
    names = [str(name) for name in frame.columns]
    _check_names(names, "write_table")
    named = frame.set_axis(names, axis=1)
    with atomic_write(path, ending) as beside:
        if ending in _PARQUET:
            _write_parquet(named, beside, path)
        else:
            _write_csv(named, beside, ending)


def csv_text(frame: pandas.DataFrame) -> str:
    """A table as the text of a CSV file, formulas made harmless as by :func:`write_table`."""
    text: str = _safe(frame).to_csv(index=False)
    return text


def place_of(path: Path, row: int) -> str:
    """Where a row of a table, counted from 0, is in its file: "line 7" in a text, else "row 6"."""
    ending = _ending(path, "read_table")
    if ending in _PARQUET:
        return f"row {row + 1}"
    with _text_of(path, ending) as file, _long_cells():
        separator = _separator(file.read(_SAMPLE), ending)
        file.seek(0)
        reader, ends, seen = csv.reader(file, delimiter=separator), 0, -1  # the header is -1
        for fields in reader:
            begins, ends = ends + 1, reader.line_num
            if _is_blank(fields):
                continue
            if seen == row:
                return f"line {begins}"
            seen += 1
    return f"row {row + 1}"


def _needed(package: str, owner: str) -> Any:
    """An optional package, or an error that says how to get it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(missing_extra(owner, package, "app")) from error


def _ending(path: Path, owner: str) -> str:
    known = (*_CSV, *_PARQUET)
    fitting = [ending for ending in known if path.name.lower().endswith(ending)]
    if not fitting:
        raise TableError(f"{owner} needs path to end in {', '.join(known)}; got {path.name!r}.")
    return fitting[0]


def _check_names(names: Sequence[str], where: str) -> None:
    """Every column has a name, and no two the same."""
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise TableError(f"{where}: needs a name for every column; column {position} has none.")
    twice = [repr(name) for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(
            f"{where}: needs a different name for each column; these repeat: {', '.join(twice)}."
        )


def _read_parquet(path: Path) -> pandas.DataFrame:
    pyarrow = _needed("pyarrow", "read_table")
    parquet = _needed("pyarrow.parquet", "read_table")
    try:
        with path.open("rb") as file:
            stored = parquet.ParquetFile(file)
            _check_names(stored.schema_arrow.names, str(path))
            table = stored.read()
    except (pyarrow.ArrowException, OSError) as error:
        raise TableError(f"{path}: needs a whole Parquet file; this one is damaged.") from error
    frame: pandas.DataFrame = table.to_pandas()
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    frame.columns = [str(name) for name in frame.columns]
    return frame.reset_index(drop=True)


def _read_csv(path: Path, ending: str) -> pandas.DataFrame:
    from pandas import read_csv
    from pandas.errors import ParserError

    with _text_of(path, ending) as file:
        sample = file.read(_SAMPLE)
        if "\0" in sample:
            raise TableError(f"{path}: needs text in UTF-8; got a file that is no text.")
        separator = _separator(sample, ending)
        file.seek(0)
        with _long_cells():
            last = _check_rows(csv.reader(file, delimiter=separator), path)
        file.seek(0)
        try:
            # index_col: else a row that is longer than the header makes an index of its start.
            # low_memory: else a column may be numbers in one part of the file, text in another.
            return read_csv(file, sep=separator, index_col=False, low_memory=False)
        except ParserError as error:
            raise TableError(
                f'{path}, line {last}: needs a quote (") at the end of a quoted field; got none.'
            ) from error


@contextmanager
def _text_of(path: Path, ending: str) -> Iterator[IO[str]]:
    """The open text of a file; what fails while reading it becomes a TableError."""
    opened: Callable[..., IO[Any]] = gzip.open if ending.endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError:
        with opened(path, "rb") as raw:
            _raise_undecodable(raw.read(), path)
    except _BROKEN_GZIP as error:
        raise TableError(f"{path}: needs a whole gzip file; this one is damaged.") from error


def _raise_undecodable(raw: bytes, path: Path) -> NoReturn:
    """Find the first byte that is not UTF-8; its place is counted from 1 in its line."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        line, place = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        other = " (it looks like UTF-16)" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        raise TableError(
            f"{path}, line {line}: needs text in UTF-8; "
            f"got the byte 0x{raw[error.start]:02x} at place {place} of the line{other}. "
            "Save the file as UTF-8."
        ) from error
    raise TableError(f"{path}: changed while it was read.")


def _separator(sample: str, ending: str) -> str:
    """The separator with which most of the first lines have as many fields as the header."""
    # The last line may be cut; a line that is alone has no other to be judged by.
    lines = list(io.StringIO(sample, newline=""))
    lines = lines[:-1] if len(sample) == _SAMPLE and len(lines) > 1 else lines
    best, best_fit = "\t" if ending == ".tsv" else ",", (-1.0, 1)
    for separator in _SEPARATORS:
        rows = [row for row in csv.reader(lines, delimiter=separator) if row]
        if not rows or len(rows[0]) == 1:
            continue
        others = rows[1:] or rows
        agreeing = sum(len(row) == len(rows[0]) for row in others) / len(others)
        if (agreeing, len(rows[0])) > best_fit:
            best, best_fit = separator, (agreeing, len(rows[0]))
    return best


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let csv read longer fields for a while; its limit belongs to the whole process."""
    before = csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _check_rows(reader: Any, path: Path) -> int:
    """Check that all rows are as long as the header; the line where the last one begins."""
    names: list[str] = []
    begins = ends = 0
    try:
        for row in reader:
            begins, ends = ends + 1, reader.line_num
            if len(row) == len(names) or _is_blank(row):
                continue
            if not names:
                names = row
                _check_names(names, f"{path}, line {begins}")
            else:
                raise TableError(
                    f"{path}, line {begins}: needs {len(names)} fields, as the header has; "
                    f"got {len(row)}."
                )
    except csv.Error as error:
        raise TableError(
            f"{path}, line {ends + 1}: needs fields of at most {_LONGEST_CELL} characters; "
            'got a longer one. Is a quote (") never closed?'
        ) from error
    if not names:
        raise TableError(f"{path}: needs a header and rows; got empty lines only.")
    return begins


def _is_blank(row: list[str]) -> bool:
    """Whether pandas leaves a line out: nothing in it, or only spaces (`""` is a field)."""
    return not row or (len(row) == 1 and row[0] != "" and not row[0].strip(" \t"))


def _write_parquet(frame: Any, beside: Path, path: Path) -> None:
    pyarrow = _needed("pyarrow", "write_table")
    try:
        frame.to_parquet(beside, index=False)
    except pyarrow.ArrowException as error:
        raise TableError(
            f"write_table needs columns of one type each for Parquet ({path.name}); got {error}."
        ) from error


def _write_csv(frame: Any, beside: Path, ending: str) -> None:
    separator = "\t" if ending == ".tsv" else ","
    # With "\n" alone as the end of a line, csv leaves a lone "\r" unquoted, which ends a line too.
    _safe(frame).to_csv(beside, index=False, sep=separator, lineterminator="\r\n", encoding="utf-8")


def _safe(frame: Any) -> Any:
    """A table with formulas made harmless."""
    safe = frame.copy(deep=False)
    for name in safe.columns:
        if str(safe[name].dtype).startswith(_TEXT_TYPES):
            safe[name] = safe[name].astype(object).map(_harmless, na_action="ignore")
    safe.columns = [_harmless(name) for name in safe.columns]
    return safe


def _harmless(cell: Any) -> Any:
    """A text that a spreadsheet would run gets an apostrophe; anything else stays."""
    if not isinstance(cell, str) or not cell.startswith(_FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return "'" + cell
    return cell
