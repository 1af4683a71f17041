"""The process that reads an uploaded file: ``python -m margrave.studio._parse_worker``.

The file is in its working folder. The process sets its own limits before it opens the file, and
writes the table as a Parquet file, and a JSON file with a description of the table or an error.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import sys
import threading
import traceback
import zlib
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from margrave.app.tables import TableError, place_of, read_table
from margrave.studio._private_folders import LOCK
from margrave.studio.facts import facts_of
from margrave.studio.uploads import ANSWER, LOG, TABLE, UploadError

if TYPE_CHECKING:
    import pandas

pyarrow: Any = import_module("pyarrow")  # it has no types
parquet: Any = import_module("pyarrow.parquet")

_LONGEST_COLUMN = 1000  # characters of a column's name
_LOG_BYTES = 1 << 20
_DAMAGED = (csv.Error, OSError, EOFError, UnicodeError, zlib.error, pyarrow.ArrowException)


def main() -> None:
    """Read the file that the only argument, a request in JSON, names."""
    request = json.loads(sys.argv[1])
    threading.Thread(target=_end_with_parent, args=(request["file"],), daemon=True).start()
    import_module("pandas")  # before the limits, which are meant for the file
    restrict(request["memory"], request["seconds"])
    answer = work(Path(), request)
    Path(ANSWER).write_text(json.dumps(answer), encoding="ascii")


def restrict(memory: int, seconds: int) -> None:
    """Limit the memory (in bytes, besides what the process already uses) and the CPU time."""
    try:
        import resource
    except ImportError:  # a system without limits; the parent still limits the time
        return
    statm = Path("/proc/self/statm")
    used = int(statm.read_text().split()[0]) * resource.getpagesize() if statm.exists() else 0
    limits = {
        resource.RLIMIT_AS: used + memory,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: max(memory, _LOG_BYTES),
        resource.RLIMIT_CORE: 0,  # it would hold the user's data
    }
    for limit, value in limits.items():
        hard = resource.getrlimit(limit)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # One second more, or the process would be killed before it gets the signal with the reason.
        spare = least + (limit == resource.RLIMIT_CPU and least != hard)
        try:
            resource.setrlimit(limit, (least, spare))
        except (ValueError, OSError):  # macOS has RLIMIT_AS, but refuses to set it
            continue


def work(folder: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Read the table and write it as Parquet; return its description, or an error."""
    try:
        check_size(folder / request["file"], request)
        frame = read_table(
            folder / request["file"], encoding=request["encoding"], decimal=request["decimal"]
        )
        check_frame(frame, request)
        facts = facts_of(frame)
        frame.to_parquet(folder / TABLE, index=False)
    except UploadError as error:
        return {"error": str(error), "status": error.status}
    except Exception as error:
        if isinstance(error, MemoryError) or isinstance(error.__cause__, MemoryError):
            memory = request["memory"] >> 20
            return {
                "error": f"takes more than {memory} MiB of memory to read; upload a smaller table.",
                "status": 413,
            }
        if isinstance(error, TableError):
            return {"error": str(error), "code": error.code, "fields": error.fields}
        traceback.print_exc()
        return {"error": "could not be read as a table.", "log": True}
    return {"facts": facts}


def check_size(path: Path, request: dict[str, Any]) -> None:
    """Refuse a table that is too large before it is built; damaged files are reported later."""
    try:
        if request["ending"] in (".parquet", ".pq"):
            with parquet.ParquetFile(path) as file:
                _check_shape(file.metadata.num_rows, len(file.schema_arrow.names), request)
            return
        ends = _count_line_ends(path, request["unpacked"])
        _check_shape(0, _header_width(path, request["encoding"]), request)
        # A row may have several lines, so rows are only counted if there are many lines.
        if ends >= request["rows"]:
            place = place_of(path, request["rows"], encoding=request["encoding"])
            _check_shape(request["rows"] + place.startswith("line"), 0, request)
    except _DAMAGED:
        return


def check_frame(frame: pandas.DataFrame, request: dict[str, Any]) -> None:
    """Refuse a table that is larger than its file declares or allowed, or has long names."""
    _check_shape(*frame.shape, request)
    if not len(frame.columns):
        raise UploadError("has no columns; a table needs at least one.")
    longest = max(len(str(name)) for name in frame.columns)
    if longest > _LONGEST_COLUMN:
        raise UploadError(
            f"needs column names of at most {_LONGEST_COLUMN} characters; got {longest}."
        )
    size = sum(_column_bytes(column) for _, column in frame.items())
    if size > request["table_bytes"]:
        raise UploadError(
            f"needs at most {request['table_bytes'] >> 20} MiB as a table in memory; got "
            f"{size >> 20:,} MiB. Upload fewer rows or columns, or shorter texts.",
            413,
        )


def _column_bytes(column: pandas.Series) -> int:
    """The size of a column in memory without tricks: each text in full, each number as a double.

    A file may hold a text once for all rows, and a column of categories does, but training does
    not.
    """
    from pandas import CategoricalDtype

    size = int(column.memory_usage(index=False, deep=True))
    if isinstance(column.dtype, CategoricalDtype):
        sizes = [*map(sys.getsizeof, column.cat.categories), 0]  # 0: a missing value has code -1
        size = int(np.array(sizes)[column.cat.codes.to_numpy()].sum())
    return max(size, 8 * len(column))


def _check_shape(rows: int, columns: int, request: dict[str, Any]) -> None:
    if rows > request["rows"]:
        raise UploadError(f"needs at most {request['rows']:,} rows; got more.", 413)
    if columns > request["columns"]:
        raise UploadError(f"needs at most {request['columns']:,} columns; got {columns:,}.", 413)


def _open(path: Path, mode: str, **text: Any) -> Any:
    open_file: Any = gzip.open if path.suffix == ".gz" else open
    return open_file(path, mode, **text)


def _count_line_ends(path: Path, most: int) -> int:
    """Count the line ends of a text; stop when it is larger than `most` bytes unpacked."""
    size = ends = 0
    with _open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            size += len(chunk)
            ends += chunk.count(b"\n") + chunk.count(b"\r")
            if size > most:
                raise UploadError(
                    f"needs at most {most / (1 << 20):.3g} MiB of text when unpacked; got more.",
                    413,
                )
    return ends


def _header_width(path: Path, encoding: str | None) -> int:
    """The number of fields in the header, with the separator that gives the most."""
    widths = [0]
    with _open(path, "rt", encoding=encoding or "utf-8-sig", errors="replace", newline="") as file:
        for separator in (",", ";", "\t", "|"):
            file.seek(0)
            with suppress(csv.Error):  # with a wrong separator the whole text may be one field
                header = next((row for row in csv.reader(file, delimiter=separator) if row), [])
                widths.append(len(header))
    return max(widths)


def _end_with_parent(file: str) -> None:
    """Wait until the parent closes the standard input; then delete all files and exit."""
    while os.read(0, 1):
        continue
    with suppress(OSError):  # the next studio may remove them too
        for name in (file, TABLE, ANSWER, LOG, LOCK):
            Path(name).unlink(missing_ok=True)
        Path.cwd().rmdir()
    os._exit(1)


if __name__ == "__main__":
    main()
