"""The process in which an uploaded file is read: ``python -m margrave.studio._parse_worker``.

It takes its limits before it opens the file, which is in its working folder, and leaves there a
Parquet file with the table and a JSON file with what it holds, or with why there is none.
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

from margrave.app._table_file import TableError, place_of, read_table
from margrave.studio.facts import facts_of
from margrave.studio.uploads import ANSWER, LOG, TABLE, UploadError

if TYPE_CHECKING:
    import pandas

pyarrow: Any = import_module("pyarrow")  # it has no types
parquet: Any = import_module("pyarrow.parquet")

_LONGEST_COLUMN = 1000  # characters of a column's name
_LOG_BYTES = 1 << 20
_DAMAGED = (csv.Error, OSError, EOFError, zlib.error, pyarrow.ArrowException)


def main() -> None:
    """Read the file that the one argument, JSON, asks for."""
    request = json.loads(sys.argv[1])
    threading.Thread(target=_end_with_parent, args=(request["file"],), daemon=True).start()
    import_module("pandas")  # now: the limits are for the file
    restrict(request["memory"], request["seconds"])
    answer = work(Path(), request)
    Path(ANSWER).write_text(json.dumps(answer), encoding="ascii")


def restrict(memory: int, seconds: int) -> None:
    """Take no more memory (bytes, besides what is taken already) and time than this."""
    try:
        import resource
    except ImportError:  # a system without limits; the parent's clock remains
        return
    statm = Path("/proc/self/statm")
    taken = int(statm.read_text().split()[0]) * resource.getpagesize() if statm.exists() else 0
    wanted = {
        resource.RLIMIT_AS: taken + memory,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: max(memory, _LOG_BYTES),
        resource.RLIMIT_CORE: 0,  # it would hold the user's data
    }
    for limit, value in wanted.items():
        hard = resource.getrlimit(limit)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # A second more, or the process would be killed before the signal that says why.
        spare = least + (limit == resource.RLIMIT_CPU and least != hard)
        try:
            resource.setrlimit(limit, (least, spare))
        except (ValueError, OSError):  # macOS knows RLIMIT_AS, but does not take it
            continue


def work(folder: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Read the table, write it as Parquet, and say what it holds, or what is wrong with it."""
    try:
        check_size(folder / request["file"], request)
        frame = read_table(folder / request["file"])
        check_frame(frame, request)
        facts = facts_of(frame)
        frame.to_parquet(folder / TABLE, index=False)
    except UploadError as error:
        return {"error": str(error), "status": error.status}
    except Exception as error:
        if isinstance(error, MemoryError) or isinstance(error.__cause__, MemoryError):
            memory = request["memory"] >> 20
            return {
                "error": f"takes more than {memory} MiB of memory to read; needs to be smaller.",
                "status": 413,
            }
        if isinstance(error, TableError):
            return {"error": str(error)}
        traceback.print_exc()
        return {"error": "could not be read as a table.", "log": True}
    return {"facts": facts}


def check_size(path: Path, request: dict[str, Any]) -> None:
    """Refuse a table that is too large before it is built; what is damaged is told later."""
    try:
        if request["ending"] in (".parquet", ".pq"):
            with parquet.ParquetFile(path) as file:
                _check_shape(file.metadata.num_rows, len(file.schema_arrow.names), request)
                _refuse_nested(file.schema_arrow)
            return
        ends = _line_ends(path, request["unpacked"])
        _check_shape(0, _header_width(path), request)
        # A row may have several lines, so that only many lines are a reason to count rows.
        if ends >= request["rows"] and place_of(path, request["rows"]).startswith("line"):
            _check_shape(request["rows"] + 1, 0, request)
    except _DAMAGED:
        return


def check_frame(frame: pandas.DataFrame, request: dict[str, Any]) -> None:
    """Refuse a table that is not what its file declared, or has names that nobody could read."""
    _check_shape(*frame.shape, request)
    if not len(frame.columns):
        raise UploadError("needs columns; got none.")
    longest = max(len(str(name)) for name in frame.columns)
    if longest > _LONGEST_COLUMN:
        raise UploadError(
            f"needs names of columns of at most {_LONGEST_COLUMN} characters; got {longest}."
        )


def _check_shape(rows: int, columns: int, request: dict[str, Any]) -> None:
    if rows > request["rows"]:
        raise UploadError(f"needs at most {request['rows']:,} rows; got more.", 413)
    if columns > request["columns"]:
        raise UploadError(f"needs at most {request['columns']:,} columns; got {columns:,}.", 413)


def _refuse_nested(schema: Any) -> None:
    for one in schema:
        if pyarrow.types.is_nested(one.type):
            raise UploadError(
                f"needs numbers, texts or dates in every column; {one.name[:50]!r} holds lists or "
                "records."
            )


def _opened(path: Path, mode: str, **text: Any) -> Any:
    opened: Any = gzip.open if path.suffix == ".gz" else open
    return opened(path, mode, **text)


def _line_ends(path: Path, most: int) -> int:
    """How many lines end in a text, unpacked no further than is allowed."""
    size = ends = 0
    with _opened(path, "rb") as file:
        while chunk := file.read(1 << 20):
            size += len(chunk)
            ends += chunk.count(b"\n") + chunk.count(b"\r")
            if size > most:
                raise UploadError(
                    f"needs at most {most / (1 << 20):.3g} MiB of text when unpacked; got more.",
                    413,
                )
    return ends


def _header_width(path: Path) -> int:
    """Fields of the header, with the separator that makes the most of them."""
    widths = [0]
    with _opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
        for separator in (",", ";", "\t", "|"):
            file.seek(0)
            with suppress(csv.Error):  # with another separator all of it may be one long field
                header = next((row for row in csv.reader(file, delimiter=separator) if row), [])
                widths.append(len(header))
    return max(widths)


def _end_with_parent(file: str) -> None:
    """Wait for the end of the standard input, which is the parent's; leave nothing behind."""
    while os.read(0, 1):
        continue
    for name in (file, TABLE, ANSWER, LOG):
        Path(name).unlink(missing_ok=True)
    Path.cwd().rmdir()
    os._exit(1)


if __name__ == "__main__":
    main()
