"""Read and write tables as CSV or Parquet files; the ending of the file name selects the format.

pandas parses the file. It accepts faults without a warning (rows that are too short or one field
too long, repeated column names), so the csv module checks the file first and an error names the
line. A text in another encoding than UTF-8, or with decimal commas, is read only if the caller says
so; the error that refuses it carries what to say.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

from margrave import MargraveError
from margrave._atomic_write import atomic_write
from margrave._messages import missing_extra

if TYPE_CHECKING:
    import pandas

_CSV = (".csv", ".csv.gz", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq")
_SEPARATORS = (",", ";", "\t", "|")
_SAMPLE = 1 << 16  # characters from which the separator is inferred
_LONGEST_CELL = 1 << 24  # characters; the default of csv, 128 Ki, is too small for a long mail
# What a spreadsheet may run as a formula, also after white space and with full-width signs.
_FORMULA = re.compile(r"[\t\r\n]|[\s\0\ufeff]*[=+@＝＋－＠-]")
_TEXT_TYPES = ("object", "str", "large_string", "category")  # their names in pandas
_BROKEN_GZIP = (gzip.BadGzipFile, EOFError, zlib.error)
_ENCODINGS = {"utf-8": "UTF-8", "cp1252": "Windows-1252", "utf-16": "UTF-16"}  # with their names
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CONTROL = re.compile("[\0-\x08\x0e-\x1f]")  # in no text
_EXAMPLE = 60  # characters


def _number(decimal: str, thousands: str) -> re.Pattern[str]:
    """Match a number, with or without separators of thousands."""
    part, group = rf"[{decimal}][0-9]", rf"(?P<group>[{thousands}])"
    grouped = rf"[1-9][0-9]{{0,2}}{group}[0-9]{{3}}(?:(?P=group)[0-9]{{3}})*(?:{part}*)?"
    plain = rf"(?:[0-9]+(?:{part}*)?|{part}+)(?:[eE][+-]?[0-9]+)?"
    return re.compile(rf"[+-]?(?:{grouped}|{plain})")


_GROUPING = "' \u2019\u00a0\u202f"  # separate thousands with either decimal mark
_NUMBERS = {",": _number(",", "." + _GROUPING), ".": _number(".", _GROUPING)}
_THOUSANDS = re.compile("[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}")  # or a number with three decimals


class TableError(MargraveError):
    """A table cannot be read or written; the message names the place and the reason.

    Attributes
    ----------
    code : str
        "text_format" if the text seems to have another encoding or decimal commas, "parameter" if
        a parameter is not allowed, else "table".
    fields : dict
        Of a "text_format": the ``encoding`` and the ``decimal`` with which :func:`read_table` reads
        the file, and an ``example`` of the text that it then reads.

    Examples
    --------
    >>> from margrave.app import TableError, read_table
    >>> try:
    ...     read_table("letter.doc")
    ... except TableError as error:
    ...     print(error.code)
    table
    """

    def __init__(self, message: str, *, code: str = "table", **fields: Any) -> None:
        super().__init__(message, code=code, **fields)


def read_table(
    path: str | Path, *, encoding: str | None = None, decimal: str | None = None
) -> pandas.DataFrame:
    r"""Read a table from a CSV or Parquet file.

    Parameters
    ----------
    path : str or Path
        A file that ends in .csv, .csv.gz, .tsv or .txt (text with a header; the separator, a
        comma, semicolon, tab or vertical bar, is inferred from the first lines), or in .parquet
        or .pq.
    encoding : str, optional
        The encoding of the text, such as "cp1252" (Windows-1252, as spreadsheets write it in
        Western Europe) or "utf-16"; by default UTF-8.
    decimal : {".", ","}, optional
        The decimal mark. By default a point, and a file that seems to have decimal commas is
        refused; with an explicit point, such numbers stay text.

    Returns
    -------
    pandas.DataFrame
        The columns in the order of the file. A named index that pandas wrote to a Parquet file
        becomes the first columns.

    Raises
    ------
    TableError
        If the file does not exist, has an unknown ending, has no rows, is damaged, has another
        encoding or decimal commas, has rows of different lengths, or has columns without a name or
        with the same name.
    ImportError
        If pandas is not installed.

    Notes
    -----
    Missing values are empty fields, and in CSV also the texts that pandas reads as missing: NA,
    N/A, n/a, NaN, nan, NULL, null, None, <NA>, #N/A, #NA and a few others. Empty lines are
    skipped. Dates stay text, and so do whole numbers of more than 64 bits. Times of day in Parquet
    become seconds.

    A column seems to have decimal commas if all its cells are numbers and one of them cannot be a
    number of thousands: "0,5" or "1.234,5", but not "1,234", which stays text. With a comma as
    `decimal`, "1,234" is a number between 1 and 2, and points, apostrophes or spaces may separate
    thousands; columns with decimal points and no commas are read as well, unless all points may
    separate thousands, as in "1.234": these stay text.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from margrave.app.tables import read_table
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "mail.csv")
    ...     _ = file.write_text("words;spam\n120;no\n;yes\n")
    ...     read_table(file)
       words spam
    0  120.0   no
    1    NaN  yes
    """
    _import_optional("pandas", "read_table")
    path = Path(path)
    if not path.exists():
        raise TableError(f"{path} must be a file; there is none.")
    if path.is_dir():
        raise TableError(f"{path} must be a file; it is a folder.")
    ending = _ending(path)
    if not path.stat().st_size:
        raise TableError(f"{path}: must have a header and rows; got an empty file.")
    if ending not in _PARQUET:
        frame = _read_csv(path, ending, _check_encoding(encoding), decimal)
    elif encoding is None and decimal is None:
        frame = _read_parquet(path)
    else:
        parameter = "decimal" if encoding is None else "encoding"
        raise _wrong_parameter(parameter, "left out for Parquet", encoding or decimal)
    if not len(frame):
        raise TableError(f"{path}: must have rows below the header; got none.")
    return frame


def read_cells(path: Path, encoding: str | None) -> pandas.DataFrame:
    """Read the cells of a text file as they are written; `read_table` has checked the file."""
    from pandas import read_csv

    ending = _ending(path)
    with _open_text(path, ending, _check_encoding(encoding)) as file:
        separator = _infer_separator(file.read(_SAMPLE), ending)
        file.seek(0)
        return read_csv(file, sep=separator, index_col=False, dtype=str, keep_default_na=False)


def is_text(path: Path) -> bool:
    """Whether the ending of a file is that of a text file."""
    return _ending(path) in _CSV


def write_table(frame: pandas.DataFrame, path: str | Path) -> None:
    """Write a table to a CSV or Parquet file, completely or not at all.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table; its index is not written.
    path : str or Path
        The file; its ending selects the format, as in :func:`read_table`. The table is written to
        a temporary file, which then replaces `path`, so that no reader sees an incomplete table.

    Raises
    ------
    TableError
        If the ending is unknown, the folder does not exist, two columns have the same name, or
        Parquet has no type for a column.
    ImportError
        If pandas is not installed.

    Notes
    -----
    A spreadsheet may run a cell as a formula if it begins with ``=``, ``+``, ``-`` or ``@``, also
    full-width ones and after white space, or with a tab or line break. In a CSV file, such cells
    and column names get a leading apostrophe unless they are numbers. The separator is a tab in
    .tsv files and a comma in all others.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from margrave.app.tables import write_table
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "cells.csv")
    ...     write_table(pd.DataFrame({"cell": ["=A1+A2", "-7", "plain"]}), file)
    ...     file.read_text().splitlines()
    ['cell', "'=A1+A2", '-7', 'plain']
    """
    _import_optional("pandas", "write_table")
    path = Path(path)
    ending = _ending(path)
    if path.is_dir():
        raise TableError(f"write_table: path must be a file; {path} is a folder.")
    if not path.parent.is_dir():
        raise TableError(
            f"write_table: path must be in a folder that exists; there is no {path.parent}."
        )
    names = [str(name) for name in frame.columns]
    _check_names(names, "write_table")
    named = frame.set_axis(names, axis=1)
    with atomic_write(path, ending) as temporary:
        if ending in _PARQUET:
            _write_parquet(named, temporary, path)
        else:
            _write_csv(named, temporary, "\t" if ending == ".tsv" else ",")


def csv_text(frame: pandas.DataFrame) -> str:
    """Return a table as CSV text, with formulas escaped as by :func:`write_table`."""
    text = io.StringIO(newline="")
    _write_csv(frame, text)
    return text.getvalue()


def place_of(path: Path, row: int, encoding: str | None = None) -> str:
    """Locate a row, counted from 0, in its file: "line 7" in a text file, "row 6" in Parquet."""
    ending = _ending(path)
    if ending in _PARQUET:
        return f"row {row + 1}"
    with _open_text(path, ending, _check_encoding(encoding)) as file, _allow_long_cells():
        separator = _infer_separator(file.read(_SAMPLE), ending)
        file.seek(0)
        reader, ends, current = csv.reader(file, delimiter=separator), 0, -1  # the header is -1
        for fields in reader:
            begins, ends = ends + 1, reader.line_num
            if _is_blank(fields):
                continue
            if current == row:
                return f"line {begins}"
            current += 1
    return f"row {row + 1}"


def _import_optional(package: str, owner: str) -> Any:
    """Import an optional package; the error explains how to install it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(missing_extra(owner, package, "app")) from error


def _ending(path: Path) -> str:
    known = (*_CSV, *_PARQUET)
    endings = [ending for ending in known if path.name.lower().endswith(ending)]
    if not endings:
        raise TableError(f"{path.name} must end in {', '.join(known)}.")
    return endings[0]


def _check_names(names: Sequence[str], where: str) -> None:
    """Raise an error unless every column has a name of its own."""
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise TableError(f"{where}: every column needs a name; column {position} has none.")
    repeated = [repr(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise TableError(
            f"{where}: column names must be unique; these are repeated: {', '.join(repeated)}."
        )


def _read_parquet(path: Path) -> pandas.DataFrame:
    pyarrow = _import_optional("pyarrow", "read_table")
    parquet = _import_optional("pyarrow.parquet", "read_table")
    try:
        with path.open("rb") as file:
            stored = parquet.ParquetFile(file)
            _check_names(stored.schema_arrow.names, str(path))
            for field in stored.schema_arrow:
                kind = getattr(field.type, "value_type", field.type)  # that of a category
                if pyarrow.types.is_nested(field.type) or "binary" in str(kind):
                    raise _wrong_column(path, field)
            table = stored.read()
    except (pyarrow.ArrowException, OSError) as error:
        raise TableError(f"{path}: the Parquet file is damaged or incomplete.") from error
    frame: pandas.DataFrame
    try:
        for place, field in enumerate(table.schema):
            if pyarrow.types.is_time(field.type):  # from nanoseconds to seconds
                time = table.column(place).cast(pyarrow.time64("ns")).cast(pyarrow.int64())
                seconds = pyarrow.chunked_array([time.to_pandas() / 1e9], pyarrow.float64())
                table = table.set_column(place, field.name, seconds)
        frame = table.to_pandas()
    except (pyarrow.ArrowException, ValueError) as error:
        for field, column in zip(table.schema, table.columns, strict=True):
            try:
                column.to_pandas()
            except (pyarrow.ArrowException, ValueError):
                raise _wrong_column(path, field) from error
        raise
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    frame.columns = [str(name) for name in frame.columns]
    return frame.reset_index(drop=True)


def _wrong_column(path: Path, field: Any) -> TableError:
    return TableError(
        f"{path}: column {field.name[:_EXAMPLE]!r} of type {str(field.type)[:_EXAMPLE]} cannot be "
        "read as numbers, texts, dates or times. Write it as numbers or text, or leave it out."
    )


def _read_csv(path: Path, ending: str, encoding: str, decimal: str | None) -> pandas.DataFrame:
    from pandas import read_csv
    from pandas.api.types import infer_dtype
    from pandas.errors import ParserError

    if decimal not in (None, ".", ","):
        raise _wrong_parameter("decimal", "'.' or ','", decimal)
    with _open_text(path, ending, encoding) as file:
        sample = file.read(_SAMPLE)
        if "\0" in sample:
            known = _ENCODINGS.get(encoding, encoding)
            raise TableError(f"{path}: must be {known} text; got a binary file.")
        separator = _infer_separator(sample, ending)
        file.seek(0)
        with _allow_long_cells():
            last = _check_rows(csv.reader(file, delimiter=separator), path)
        file.seek(0)
        try:
            # Without index_col=False, a row longer than the header turns its start into an index.
            # With low_memory, a column may mix numbers and text from different parts of the file.
            frame = read_csv(
                file, sep=separator, decimal=decimal or ".", index_col=False, low_memory=False
            )
        except ParserError as error:
            raise TableError(
                f'{path}, line {last}: a quoted field has no closing quote (").'
            ) from error
    for name in frame:  # whole numbers of more than 64 bits stay text, as those with decimals do
        if frame[name].dtype == object and infer_dtype(frame[name]) == "integer":
            frame[name] = frame[name].map(str, na_action="ignore")
    texts = [name for name in frame if str(frame[name].dtype).startswith(_TEXT_TYPES)]
    if decimal is None:
        _refuse_decimal_commas(frame[texts], path, encoding)
    elif decimal == ",":
        for name in texts:
            for mark in _NUMBERS:
                if _clear_number(frame[name], mark, known=mark == decimal):
                    frame[name] = _parse_numbers(frame[name], mark)
                    break
    return frame


def _refuse_decimal_commas(texts: pandas.DataFrame, path: Path, encoding: str) -> None:
    for name in texts:
        if example := _clear_number(texts[name], ","):
            problem = (
                f"{path}: numbers must have a decimal point; got {example!r} in column {name!r}."
            )
            raise _text_format_error(problem, encoding, ",", example[:_EXAMPLE])


def _clear_number(column: pandas.Series[Any], decimal: str, known: bool = False) -> str:
    """Return the first cell that must have this decimal mark; "" unless all are numbers with it.

    If the mark is known, any cell with it is clear.
    """
    clear = ""
    for cell in column.dropna():
        text = str(cell).strip()
        if not _NUMBERS[decimal].fullmatch(text):
            return ""
        if decimal in text and (known or not _THOUSANDS.fullmatch(text)):
            clear = clear or text
    return clear


def _parse_numbers(column: pandas.Series[Any], decimal: str) -> pandas.Series[Any]:
    plain = column.str.replace(f"[^0-9eE+{decimal}-]", "", regex=True)
    return plain.str.replace(decimal, ".").astype(float)


@contextmanager
def _open_text(path: Path, ending: str, encoding: str) -> Iterator[IO[str]]:
    """Open a text file; an error while reading it becomes a TableError."""
    open_file: Callable[..., IO[Any]] = gzip.open if ending.endswith(".gz") else open
    codec = "utf-8-sig" if encoding == "utf-8" else encoding
    try:
        try:
            with open_file(path, "rt", encoding=codec, newline="") as file:
                yield file
        except UnicodeError:
            with open_file(path, "rb") as raw:
                _raise_undecodable(raw.read(), path, encoding)
    except _BROKEN_GZIP as error:
        raise TableError(f"{path}: the gzip file is damaged or incomplete.") from error


def _check_encoding(encoding: str | None) -> str:
    """Return the name of an encoding in Python; by default UTF-8."""
    try:
        "".encode(encoding or "utf-8")  # codecs.lookup also finds codecs of bytes, such as base64
        return codecs.lookup(encoding or "utf-8").name
    except (LookupError, ValueError) as error:
        allowed = "an encoding of text, such as cp1252 or utf-16"
        raise _wrong_parameter("encoding", allowed, encoding) from error


def _wrong_parameter(parameter: str, allowed: str, received: str | None) -> TableError:
    return TableError(
        f"read_table: {parameter} must be {allowed}; got {received!r}.",
        code="parameter",
        parameter=parameter,
        allowed=allowed,
        received=received,
    )


def _text_format_error(problem: str, encoding: str, decimal: str, example: str) -> TableError:
    """Make an error that says how to read the file; its summary leaves that to a front end."""
    error = TableError(
        f"{problem} Set encoding to {encoding} and decimal to {decimal!r}; with decimal '.', "
        "numbers with commas stay text.",
        code="text_format",
        encoding=encoding,
        decimal=decimal,
        example=example,
    )
    error.summary = problem
    return error


def _raise_undecodable(raw: bytes, path: Path, encoding: str) -> NoReturn:
    """Raise an error that names the first byte in another encoding, and that encoding if clear."""
    name = _ENCODINGS.get(encoding, encoding)
    try:
        raw.decode(encoding)
    except UnicodeDecodeError as error:
        before = raw[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        byte = raw[error.start : error.start + 1].hex()
        problem = (
            f"{path}, line {line}: must be {name} text; "
            f"got the byte 0x{byte} at position {column} of the line."
        )
        guess, text = _guess_encoding(raw, error.start) if encoding == "utf-8" else ("", "")
        if not guess:
            raise TableError(f"{problem} Save the file as UTF-8.") from error
        example = _excerpt(text, error.start)
        decimal = "."
        try:
            read_table(path, encoding=guess)
        except TableError as other:
            decimal = other.fields.get("decimal", ".")
        problem += (
            f" It looks like {_ENCODINGS[guess]}, in which it reads {example!r}; if that is wrong, "
            "save the file as UTF-8."
        )
        raise _text_format_error(problem, guess, decimal, example) from error
    except UnicodeError:  # some codecs, such as punycode, do not name the place
        pass
    raise TableError(f"{path}: must be {name} text, but is not, or changed while it was read.")


def _guess_encoding(raw: bytes, start: int) -> tuple[str, str]:
    """Guess an encoding other than UTF-8, and decode; `start` is the first byte that is not UTF-8.

    Both are empty for a binary file, and if UTF-8 characters precede `start`. Other encodings with
    one byte per character, and damaged UTF-8, may be taken for Windows-1252; the example in the
    error lets the user judge.
    """
    guess = "utf-16" if raw.startswith(_UTF16_MARKS) else "cp1252"
    try:
        text = raw.decode(guess)
    except UnicodeDecodeError:
        return "", ""
    is_text = text and raw[:start].isascii() and not _CONTROL.search(text)
    return (guess, text) if is_text else ("", "")


def _excerpt(text: str, position: int) -> str:
    """Return the part of a line around a position."""
    before = re.split("[\r\n]", text[max(0, position - _EXAMPLE // 2) : position])[-1]
    after = re.split("[\r\n]", text[position : position + _EXAMPLE // 2])[0]
    return before + after


def _infer_separator(sample: str, ending: str) -> str:
    """Return the separator that gives most of the first lines as many fields as the header."""
    # The last line may be incomplete; a single line is used anyway.
    lines = list(io.StringIO(sample, newline=""))
    lines = lines[:-1] if len(sample) == _SAMPLE and len(lines) > 1 else lines
    best, best_fit = "\t" if ending == ".tsv" else ",", (False, -1.0, 1)
    for separator in _SEPARATORS:
        rows = [row for row in csv.reader(lines, delimiter=separator) if row]
        if not rows or len(rows[0]) == 1:
            continue
        others = rows[1:] or rows
        agreement = sum(len(row) == len(rows[0]) for row in others) / len(others)
        # A wrong separator before a quote may make a single row of the whole table.
        fit = len(rows) > 1, agreement, len(rows[0])
        if fit > best_fit:
            best, best_fit = separator, fit
    return best


@contextmanager
def _allow_long_cells() -> Iterator[None]:
    """Raise the field size limit of csv, which is global, inside a block."""
    before = csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _check_rows(reader: Any, path: Path) -> int:
    """Check that all rows are as long as the header; return the line where the last one begins."""
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
                    f"{path}, line {begins}: must have {len(names)} fields like the header; "
                    f"got {len(row)}."
                )
    except csv.Error as error:
        raise TableError(
            f"{path}, line {ends + 1}: a field has more than {_LONGEST_CELL} characters. "
            'Is a closing quote (") missing?'
        ) from error
    if not names:
        raise TableError(f"{path}: must have a header and rows; got empty lines only.")
    return begins


def _is_blank(row: list[str]) -> bool:
    """Whether pandas skips a line: it is empty or has only spaces (`""` is a field)."""
    return not row or (len(row) == 1 and row[0] != "" and not row[0].strip(" \t"))


def _write_parquet(frame: Any, temporary: Path, path: Path) -> None:
    pyarrow = _import_optional("pyarrow", "write_table")
    try:
        frame.to_parquet(temporary, index=False)
    except pyarrow.ArrowException as error:
        raise TableError(
            f"write_table: each column must have one type for Parquet ({path.name}); got {error}."
        ) from error


def _write_csv(frame: Any, file: Path | IO[str], separator: str = ",") -> None:
    # With the line terminator "\n", csv does not quote a lone "\r", which also ends a line.
    _escape_formulas(frame).to_csv(
        file, index=False, sep=separator, lineterminator="\r\n", encoding="utf-8"
    )


def _escape_formulas(frame: Any) -> Any:
    """Return a table whose formulas are escaped."""
    escaped = frame.copy(deep=False)
    for name in escaped.columns:
        if str(escaped[name].dtype).startswith(_TEXT_TYPES):
            escaped[name] = escaped[name].astype(object).map(_harmless, na_action="ignore")
    escaped.columns = [_harmless(name) for name in escaped.columns]
    return escaped


def _harmless(cell: Any) -> Any:
    """Prefix a text that a spreadsheet would run with an apostrophe."""
    if not isinstance(cell, str) or not _FORMULA.match(cell):
        return cell
    try:
        float(cell)
    except ValueError:
        return cell if _NUMBERS[","].fullmatch(cell) else "'" + cell
    return cell
