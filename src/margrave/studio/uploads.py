"""Reads an uploaded file in a separate process that can be killed.

The content and the name of the file are not trusted. The process that parses the content has
limited memory and time and no secrets, and its folder is deleted afterwards. Only the ending of the
name is used; the rest is displayed, but never opened.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from margrave import MargraveError
from margrave.studio._private_folders import private_folder
from margrave.studio.facts import facts_of
from margrave.studio.settings import Limits, cores

if TYPE_CHECKING:
    import pandas

__all__ = [
    "ENDINGS",
    "Parsed",
    "UploadError",
    "UploadStoppedError",
    "display_name",
    "facts_of",
    "frame_of",
    "parquet_of",
    "parse_upload",
]

ENDINGS = (".csv", ".csv.gz", ".tsv", ".txt", ".parquet", ".pq")
UNPACKED = 4  # times the largest upload: limit on the size of an unpacked text

TABLE, ANSWER, LOG = "table.parquet", "answer.json", "log.txt"  # files in the worker's folder

_WORKER = "margrave.studio._parse_worker"
_KEPT = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # needed to start a process
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_LONGEST_NAME = 100  # characters shown of a file's name
_LONGEST_MESSAGE = 500
_TEXTS = (".csv", ".tsv", ".txt")
_POLL = 0.05  # seconds between two checks of the worker

_turns = threading.BoundedSemaphore(cores())
_log = logging.getLogger(__name__)


class UploadError(MargraveError):
    """A file that is refused; the message is meant for the user.

    Attributes
    ----------
    status : int
        The HTTP status of the response.
    code : str
        "upload", or the code of the :class:`~margrave.app.tables.TableError`.
    fields : dict
        The fields of that error.
    """

    def __init__(
        self, message: str, status: int = 400, *, code: str = "upload", **fields: Any
    ) -> None:
        super().__init__(message, code=code, **fields)
        self.status = status


class UploadStoppedError(UploadError):
    """The caller stopped reading a file."""


@dataclass(frozen=True, eq=False)
class Parsed:
    """The table of an uploaded file.

    Attributes
    ----------
    name : str
        The name to display.
    parquet : bytes
        The table, for :func:`frame_of`.
    facts : dict
        The description by :func:`~margrave.studio.facts.facts_of`.
    """

    name: str
    parquet: bytes
    facts: dict[str, Any]


def parse_upload(
    data: bytes | Path | IO[bytes],
    name: str,
    limits: Limits,
    *,
    encoding: str | None = None,
    decimal: str | None = None,
    stopped: Callable[[], bool] = lambda: False,
    turns: threading.Semaphore | None = None,
    command: Sequence[str] | None = None,
) -> Parsed:
    """Read an uploaded file in a separate process.

    Parameters
    ----------
    data : bytes, Path or binary file
        The file; it is copied.
    name : str
        The file's name: its ending decides how to read it, the rest is shown in messages.
    limits : Limits
        The limits on the file, and on reading it.
    encoding, decimal : str, optional
        The encoding and the decimal mark, as in :func:`~margrave.app.tables.read_table`.
    stopped : callable, optional
        Called many times a second; when it returns True the process is killed.
    turns : Semaphore, optional
        Limits how many files are read at the same time; by default the number of cores.
    command : sequence of str, optional
        The command of the process; a request in JSON is appended to it.

    Returns
    -------
    Parsed

    Raises
    ------
    UploadError
        If the file is not a table, exceeds the limits, or crashes the process.
    UploadStoppedError
        If `stopped` returned True.
    """
    shown = display_name(name)
    ending = _ending(name, shown)
    with (
        _turn(turns or _turns, limits.parse_seconds, stopped),
        private_folder() as folder,
    ):
        _save(data, folder / f"upload{ending}", limits.upload_bytes, shown)
        _refuse_workbook(folder / f"upload{ending}", ending, shown)
        request = {
            "file": f"upload{ending}",
            "ending": ending,
            "encoding": encoding,
            "decimal": decimal,
            "rows": limits.rows,
            "columns": limits.columns,
            "table_bytes": limits.table_bytes,
            "unpacked": UNPACKED * limits.upload_bytes,
            "memory": limits.parse_memory,
            "seconds": limits.parse_seconds,
        }
        program = command or (sys.executable, "-P", "-m", _WORKER)
        code = _run([*program, json.dumps(request)], folder, limits, stopped, shown)
        return _result(folder, code, f"upload{ending}", shown, limits)


def display_name(name: str) -> str:
    """Make a file's name safe to display: one line, no folders, at most 100 characters."""
    last = re.split(r"[/\\]", name)[-1]
    clean = " ".join("".join(c for c in last if c.isprintable()).split()) or "table"
    if len(clean) <= _LONGEST_NAME:
        return clean
    ending = "".join(PurePosixPath(clean[-20:]).suffixes[-2:])[-12:]
    return clean[: _LONGEST_NAME - len(ending) - 1] + "…" + ending


def frame_of(parquet: bytes) -> pandas.DataFrame:
    """Read a table from the bytes of a Parquet file that the studio has written."""
    from pandas import read_parquet

    return read_parquet(io.BytesIO(parquet))


def parquet_of(frame: pandas.DataFrame) -> bytes:
    """Convert a table to the bytes of a Parquet file."""
    return frame.to_parquet(index=False)


def _refuse_workbook(path: Path, ending: str, shown: str) -> None:
    """Refuse a zip archive, such as a workbook, with the ending of a text file."""
    with path.open("rb") as file:
        if ending in _TEXTS and file.read(4) == b"PK\x03\x04":
            raise UploadError(f"{shown} is a zip archive or a workbook; save the table as CSV.")


def _ending(name: str, shown: str) -> str:
    matching = [ending for ending in ENDINGS if name.lower().endswith(ending)]
    if not matching:
        known = ", ".join(ENDINGS[:-1])
        raise UploadError(f"{shown}: needs a name that ends in {known} or {ENDINGS[-1]}.", 415)
    return matching[0]


@contextmanager
def _turn(
    turns: threading.Semaphore, seconds: float, stopped: Callable[[], bool]
) -> Iterator[None]:
    """Wait until the file may be read."""
    deadline = time.monotonic() + seconds
    while not turns.acquire(timeout=_POLL):
        if stopped():
            raise UploadStoppedError("Reading the file was stopped.")
        if time.monotonic() > deadline:
            raise UploadError("Too many files are being read; try again in a minute.", 429)
    try:
        yield
    finally:
        turns.release()


def _save(data: bytes | Path | IO[bytes], path: Path, most: int, shown: str) -> None:
    """Copy an upload; refuse it if it is larger than `most` bytes."""
    if isinstance(data, Path):
        with data.open("rb") as file:
            _save(file, path, most, shown)
        return
    source = io.BytesIO(data) if isinstance(data, bytes) else data
    left = most
    with path.open("xb") as copy:
        while chunk := source.read(min(left + 1, 1 << 20)):
            left -= len(chunk)
            if left < 0:
                raise UploadError(
                    f"{shown}: is larger than {_size(most)}; upload a smaller file.", 413
                )
            copy.write(chunk)


def _run(
    command: Sequence[str],
    folder: Path,
    limits: Limits,
    stopped: Callable[[], bool],
    shown: str,
) -> int:
    """Run the worker until it ends, or kill it; return its exit code.

    The worker gets only the part of the environment that it needs to find the modules. Its standard
    input stays open and empty: it closes when this process dies, and then the worker exits.
    """
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | {
        "PYTHONPATH": os.pathsep.join(folder for folder in sys.path if Path(folder).is_absolute()),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "ARROW_DEFAULT_MEMORY_POOL": "system",  # other pools reserve more addresses
        "MALLOC_ARENA_MAX": "2",
    }
    environment.update(dict.fromkeys(_THREADS, "1"))
    deadline = time.monotonic() + limits.parse_seconds
    with (
        (folder / LOG).open("wb") as log,
        subprocess.Popen(  # noqa: S603 - our own program, its argument made of our own words
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        ) as process,
    ):
        try:
            while True:
                try:
                    return process.wait(timeout=_POLL)
                except subprocess.TimeoutExpired:
                    if stopped():
                        raise UploadStoppedError(f"{shown}: reading it was stopped.") from None
                    if time.monotonic() > deadline:
                        raise _too_slow(shown, limits) from None
        finally:
            process.kill()


def _result(folder: Path, code: int, file: str, shown: str, limits: Limits) -> Parsed:
    """Read the result that the worker has written to its folder."""
    try:
        answer = json.loads((folder / ANSWER).read_bytes())
        parquet = b"" if "error" in answer else (folder / TABLE).read_bytes()
    except (OSError, ValueError):
        _log.warning("a parser ended with code %d: %s", code, _tail(folder / LOG))
        if code == -getattr(signal, "SIGXCPU", 0):
            raise _too_slow(shown, limits) from None
        raise UploadError(
            f"{shown}: could not be read; it is damaged, or takes more than "
            f"{_size(limits.parse_memory)} of memory to read.",
            413,
        ) from None
    if "error" in answer:
        if "log" in answer:
            _log.warning("a parser failed: %s", _tail(folder / LOG))
        message = str(answer["error"]).removeprefix(file).removeprefix(": ")
        separator = "" if message.startswith(", line ") else ": "
        text = f"{shown}{separator}{message}"
        if len(text) > _LONGEST_MESSAGE:
            text = text[: _LONGEST_MESSAGE - 1] + "…"
        problem = answer.get("code", "upload")
        fields = answer.get("fields", {})
        raise UploadError(text, int(answer.get("status", 400)), code=problem, **fields)
    return Parsed(shown, parquet, answer["facts"])


def _too_slow(shown: str, limits: Limits) -> UploadError:
    return UploadError(
        f"{shown}: takes more than {limits.parse_seconds} seconds to read; upload a smaller table.",
        413,
    )


def _tail(path: Path) -> str:
    return path.read_text("utf-8", errors="replace")[-2000:]


def _size(number: int) -> str:
    unit, shift = ("GiB", 30) if number >= 1 << 30 else ("MiB", 20)
    return f"{number / (1 << shift):.3g} {unit}"
