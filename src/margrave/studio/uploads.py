"""A file that a user uploads: read in a process of its own that can be killed.

Whoever sends the file chooses its bytes and its name. The bytes are parsed where they can do little
harm: in a process with little memory, little time and no secrets, whose folder is deleted with all
that is in it. Of the name only the ending is used; the rest is shown, never opened.
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
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any

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
UNPACKED = 4  # times the largest upload: what a packed text may become

TABLE, ANSWER, LOG = "table.parquet", "answer.json", "log.txt"  # files in the worker's folder

_WORKER = "margrave.studio._parse_worker"
_KEPT = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # what a process needs to start
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_LONGEST_NAME = 100  # characters of a file's name that are shown
_LONGEST_MESSAGE = 500
_TEXTS = (".csv", ".tsv", ".txt")
_POLL = 0.05  # seconds between two looks at the worker

_turns = threading.BoundedSemaphore(cores())
_log = logging.getLogger(__name__)


class UploadError(ValueError):
    """A file that cannot be taken; the message is one sentence for its user.

    Attributes
    ----------
    status : int
        The HTTP status that says the same.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class UploadStoppedError(UploadError):
    """Reading a file was stopped from outside."""


@dataclass(frozen=True, eq=False)
class Parsed:
    """What became of an uploaded file.

    Attributes
    ----------
    name : str
        What to call it.
    parquet : bytes
        The table, for :func:`frame_of`.
    facts : dict
        What :func:`~margrave.studio.facts.facts_of` says of it.
    """

    name: str
    parquet: bytes
    facts: dict[str, Any]


def parse_upload(
    data: bytes | Path | IO[bytes],
    name: str,
    limits: Limits,
    *,
    stopped: Callable[[], bool] = lambda: False,
    turns: threading.Semaphore | None = None,
    command: Sequence[str] | None = None,
) -> Parsed:
    """Read an uploaded file in a process of its own.

    Parameters
    ----------
    data : bytes, Path or binary file
        The file; it is copied.
    name : str
        What its user calls it: its ending says how to read it, the rest is shown in messages.
    limits : Limits
        How much is taken.
    stopped : callable, optional
        Asked many times a second; once it says True the process is killed.
    turns : Semaphore, optional
        How many files are read at once; as many as there are cores if left out.
    command : sequence of str, optional
        The program of the process; a request in JSON is added to it.

    Returns
    -------
    Parsed

    Raises
    ------
    UploadError
        If the file is no table, larger than the limits, or the process does not survive it.
    UploadStoppedError
        If it was stopped.
    """
    shown = display_name(name)
    ending = _ending(name, shown)
    with (
        _turn(turns or _turns, limits.parse_seconds, stopped),
        TemporaryDirectory(prefix="margrave-", ignore_cleanup_errors=True) as own,
    ):
        folder = Path(own)
        _save(data, folder / f"upload{ending}", limits.upload_bytes, shown)
        _refuse_workbook(folder / f"upload{ending}", ending, shown)
        request = {
            "file": f"upload{ending}",
            "ending": ending,
            "rows": limits.rows,
            "columns": limits.columns,
            "unpacked": UNPACKED * limits.upload_bytes,
            "memory": limits.parse_memory,
            "seconds": limits.parse_seconds,
        }
        program = command or (sys.executable, "-P", "-m", _WORKER)
        code = _run([*program, json.dumps(request)], folder, limits, stopped, shown)
        return _result(folder, code, f"upload{ending}", shown, limits)


def display_name(name: str) -> str:
    """A file's name as it may be shown: one line, no folders, at most 100 characters."""
    last = re.split(r"[/\\]", name)[-1]
    clean = " ".join("".join(c for c in last if c.isprintable()).split()) or "table"
    if len(clean) <= _LONGEST_NAME:
        return clean
    ending = "".join(PurePosixPath(clean[-20:]).suffixes[-2:])[-12:]
    return clean[: _LONGEST_NAME - len(ending) - 1] + "…" + ending


def frame_of(parquet: bytes) -> pandas.DataFrame:
    """A table from the bytes of a Parquet file that we have written."""
    from pandas import read_parquet

    return read_parquet(io.BytesIO(parquet))


def parquet_of(frame: pandas.DataFrame) -> bytes:
    """A table as the bytes of a Parquet file."""
    return frame.to_parquet(index=False)


def _refuse_workbook(path: Path, ending: str, shown: str) -> None:
    """Refuse what is a zip archive, as workbooks are, under the name of a text."""
    with path.open("rb") as file:
        if ending in _TEXTS and file.read(4) == b"PK\x03\x04":
            raise UploadError(f"{shown} is a zip archive or a workbook; save the table as CSV.")


def _ending(name: str, shown: str) -> str:
    fitting = [ending for ending in ENDINGS if name.lower().endswith(ending)]
    if not fitting:
        known = ", ".join(ENDINGS[:-1])
        raise UploadError(
            f"{shown}: needs a name that ends in {known} or {ENDINGS[-1]}, as tables do.", 415
        )
    return fitting[0]


@contextmanager
def _turn(
    turns: threading.Semaphore, seconds: float, stopped: Callable[[], bool]
) -> Iterator[None]:
    """Wait until a file may be read."""
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
    """Copy an upload, no more of it than is allowed."""
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
                raise UploadError(f"{shown}: needs to be at most {_size(most)} large.", 413)
            copy.write(chunk)


def _run(
    command: Sequence[str],
    folder: Path,
    limits: Limits,
    stopped: Callable[[], bool],
    shown: str,
) -> int:
    """Run the worker to its end, or kill it; its exit code.

    It sees nothing of our environment but where the modules are. Its standard input stays open
    and empty: when we die, however suddenly, it ends, and the worker with it.
    """
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | {
        "PYTHONPATH": os.pathsep.join(one for one in sys.path if Path(one).is_absolute()),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "ARROW_DEFAULT_MEMORY_POOL": "system",  # others reserve more addresses than they use
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
    """What the worker left in its folder."""
    try:
        answer = json.loads((folder / ANSWER).read_bytes())
        parquet = b"" if "error" in answer else (folder / TABLE).read_bytes()
    except (OSError, ValueError):
        _log.warning("a parser ended with code %d: %s", code, _tail(folder / LOG))
        if code == -getattr(signal, "SIGXCPU", 0):
            raise _too_slow(shown, limits) from None
        raise UploadError(
            f"{shown}: could not be read; it is damaged, or takes more than "
            f"{_size(limits.parse_memory)} of memory.",
            413,
        ) from None
    if "error" in answer:
        if "log" in answer:
            _log.warning("a parser failed: %s", _tail(folder / LOG))
        message = str(answer["error"]).removeprefix(file).removeprefix(": ")
        between = "" if message.startswith(", line ") else ": "
        whole = f"{shown}{between}{message}"
        threshold = whole if len(whole) <= _LONGEST_MESSAGE else whole[: _LONGEST_MESSAGE - 1] + "…"
        raise UploadError(threshold, int(answer.get("status", 400)))
    return Parsed(shown, parquet, answer["facts"])


def _too_slow(shown: str, limits: Limits) -> UploadError:
    return UploadError(
        f"{shown}: takes more than {limits.parse_seconds} seconds to read; needs to be smaller.",
        413,
    )


def _tail(path: Path) -> str:
    return path.read_text("utf-8", errors="replace")[-2000:]


def _size(number: int) -> str:
    unit, shift = ("GiB", 30) if number >= 1 << 30 else ("MiB", 20)
    return f"{number / (1 << shift):.3g} {unit}"
