"""Where the store is: its URL, the connections to it, and its errors in one sentence each.

A commit must outlast a power cut. So SQLite keeps a write-ahead log that is flushed at each commit
(``synchronous=FULL``; ``fullfsync`` is what that takes on macOS), and a PostgreSQL server that is
set to answer before it has written is asked not to.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoneFree

from margrave import MargraveError
from margrave._messages import missing_extra

_WAIT = 30.0  # seconds that a writer waits for another, of this process or not
_CONNECT = 10.0  # seconds for a PostgreSQL server to answer
_LOG_SIZE = 1 << 26  # bytes to which SQLite's log shrinks again after something large
_WRITES, _MIGRATES = "margrave_writes", "margrave_migrates"

_SHAPE = (
    "The store must be a URL such as sqlite:///studio.sqlite3 or postgresql://user@host/name, with "
    "characters such as @, : and / in a password as %40, %3A and %2F."
)
_SQLITE_ERRORS = {
    "SQLITE_NOTADB": "{} is not a database, or damaged; restore it from a backup, or name another.",
    "SQLITE_CORRUPT": "{} is damaged; restore it from a backup, or name another.",
    "SQLITE_READONLY": "{} cannot be written; see to the permissions of the file and its folder.",
    "SQLITE_CANTOPEN": "{} cannot be opened; see to the permissions of the file and its folder.",
    "SQLITE_FULL": "{} cannot grow: its disk is full.",
    "SQLITE_BUSY": "{} is held by another program; try again when that is done.",
    "SQLITE_TOOBIG": "{} cannot hold what is this large.",
}


class StoreError(Exception):
    """What the store cannot do; the message says why, in one sentence.

    Parameters
    ----------
    message : str
        The sentence.
    code : str, optional
        For programs: SQLite's name of the error, such as "SQLITE_FULL", or "UNREACHABLE".
    """

    code = "store"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code or self.code


class NotFound(StoreError):  # noqa: N818 - what is the case, not that it is an error
    """There is no such user, table, dialog or step, or it is another user's."""

    code = "not_found"


class Conflict(StoreError):  # noqa: N818
    """Another change came first."""

    code = "conflict"


def default_url() -> str:
    """Give the URL of the store in the user's data folder.

    Returns
    -------
    str
        A SQLite file. Nothing is made until a store is opened there.
    """
    home = Path.home()
    if sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        folder = home / "Library" / "Application Support"
    else:
        folder = Path(os.environ.get("XDG_DATA_HOME") or "")
        if not folder.is_absolute():  # as the specification of that variable has it
            folder = home / ".local" / "share"
    path = folder / "margrave" / "studio.sqlite3"
    return URL.create("sqlite", database=str(path)).render_as_string()


def read_url(text: str) -> URL:
    """Read the URL of a store.

    Raises
    ------
    StoreError
        If it is none, or not of a database that can be a store. A URL that cannot be read is not
        shown: it may hold a password.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise StoreError(_SHAPE) from None
    name, _, driver = url.drivername.partition("+")
    if name in ("postgresql", "postgres") and driver in ("", "psycopg"):
        if "@" in (url.host or ""):
            raise StoreError(_SHAPE)
        return url.set(drivername="postgresql+psycopg")
    if name != "sqlite" or driver not in ("", "pysqlite"):
        raise StoreError(f"The store must be sqlite or postgresql; got {url.drivername!r}.")
    file = url.database or ""
    if url.host or file.startswith((":memory:", "file:")) or not file:
        raise StoreError("The store must be a file, such as sqlite:///studio.sqlite3.")
    try:  # one file has one path, and so one lock, whatever links lead to it
        path = Path(file).expanduser().resolve()
    except (OSError, RuntimeError):  # links that lead to each other
        raise StoreError(f"The file {file} cannot be found; name another.") from None
    return url.set(drivername="sqlite", database=str(path))


def place_of(url: URL) -> str:
    """Say where a store is, without its user and password."""
    if url.get_backend_name() == "sqlite":
        return f"The file {url.database}"
    host = url.host or url.query.get("host") or "this computer"
    host = host if isinstance(host, str) else ", ".join(host)
    port = f":{url.port}" if url.port else ""
    return f"The database {url.database or ''!r} of the PostgreSQL server at {host}{port}"


def make_engine(url: URL) -> Engine:
    """Make the engine of a store; nothing is opened yet.

    Raises
    ------
    StoreError
        If the driver of PostgreSQL is not installed.
    """
    options: dict[str, Any] = {
        "json_serializer": _to_json,
        "hide_parameters": True,  # errors may be logged, and rows are the users'
        "pool_size": 10,
        "max_overflow": 20,
    }
    if url.get_backend_name() == "sqlite":
        wait = {} if "timeout" in url.query else {"timeout": _WAIT}
        engine = create_engine(url, connect_args=wait, **options)
        event.listen(engine, "connect", _sqlite_connected)
        event.listen(engine, "begin", _sqlite_begins)
        return engine
    wait = {} if "connect_timeout" in url.query else {"connect_timeout": _CONNECT}
    try:
        engine = create_engine(url, connect_args=wait, pool_pre_ping=True, **options)
    except ImportError:
        message = missing_extra("A store on PostgreSQL", "psycopg", "postgres")
        raise StoreError(message) from None
    event.listen(engine, "connect", _postgresql_connected)
    return engine


def reading(engine: Engine) -> Engine:
    """Give the engine whose transactions each see one moment, and hold nobody up."""
    if engine.dialect.name == "sqlite":
        return engine
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def writing(engine: Engine) -> Engine:
    """Give the engine whose transactions write: SQLite's take their turn at once.

    PostgreSQL's see what another has committed as soon as they have its lock.
    """
    if engine.dialect.name == "sqlite":
        return engine.execution_options(**{_WRITES: True})
    return engine.execution_options(isolation_level="READ COMMITTED")


def migrating(engine: Engine) -> Engine:
    """Give the engine whose transactions write, and may recreate tables.

    SQLite drops a table to recreate it, which would delete the rows that refer to it. So it does
    not enforce foreign keys in these transactions.
    """
    return writing(engine).execution_options(**{_MIGRATES: True})


def make_file(path: Path) -> None:
    """Make a file, and its folder, that nobody else can read, if it is not there yet.

    SQLite gives the files that it puts beside it the same permissions; those of existing files are
    taken away from other users. An existing file is not opened: to close it again would take away
    the locks that this process has on it.

    Raises
    ------
    StoreError
        If that cannot be.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        for name in ("", "-wal", "-shm"):
            _tighten(path.with_name(path.name + name))
    except FileExistsError:
        if not path.exists():
            raise StoreError(f"The folder {path.parent} is not a folder; name another.") from None
    except OSError as error:
        raise StoreError(f"The file {path} cannot be made: {error.strerror}.") from error
    if not path.is_file():
        raise StoreError(f"The file {path} is not a file; name another.")
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        raise _sqlite_error("SQLITE_READONLY", f"The file {path}")


def _tighten(path: Path) -> None:
    """Let no other user open a file, if it is a regular one of this user."""
    if not path.exists() or not hasattr(os, "geteuid"):
        return
    status = path.lstat()
    is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
    if is_own and stat.S_IMODE(status.st_mode) & 0o077:
        path.chmod(0o600)


@contextmanager
def translate_errors(place: str = "The store", url: URL | None = None) -> Iterator[None]:
    """Turn an error of the database into one sentence about a place.

    Parameters
    ----------
    place : str
        How the sentence begins. Once the store is open this is no path or address, since the
        sentence may be shown to any user.
    url : URL, optional
        While a store is being opened: then the message includes the server's own reason.
    """
    try:
        yield
    except IntegrityError as error:
        raise Conflict("Another change came first; look again.") from error
    except NoneFree as error:
        raise StoreError(f"{place} has too much to do; try again.") from error
    except DBAPIError as error:
        _tell(error, place, url)
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None)
        raise cause if isinstance(cause, StoreError) else error from None
    except OverflowError as error:
        raise StoreError("What is to be stored has a number that is too large.") from error
    except MargraveError:
        raise
    except ValueError as error:  # a text, date or JSON that cannot be read
        raise damaged(place) from error


def _tell(error: DBAPIError, place: str, url: URL | None) -> NoReturn:
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        name = getattr(cause, "sqlite_errorname", "")
        for code in _SQLITE_ERRORS:
            if name.startswith(code):
                raise _sqlite_error(code, place) from error
        # Without a name it comes from Python, for a text that is not UTF-8; SQLITE_ERROR is a table
        # or column that is not there.
        if isinstance(cause, sqlite3.OperationalError) and name in ("", "SQLITE_ERROR"):
            raise damaged(place) from error
        raise StoreError(f"{place} failed: {cause}.") from error
    if url is None:
        if error.connection_invalidated or getattr(cause, "sqlstate", None) is None:
            message = f"{place} cannot be reached now; try again."
            raise StoreError(message, code="UNREACHABLE") from error
        raise StoreError(f"{place} failed ({type(cause).__name__}).") from error
    # libpq begins with which address it tried, and may end with a question on further lines.
    reason = str(cause).partition("\n")[0].rpartition(" failed: ")[2]
    reason = reason.removeprefix("FATAL:").strip().rstrip(".")
    if url.password and url.password in reason:
        reason = type(cause).__name__
    raise StoreError(f"{place} cannot be used: {reason}.") from None


def damaged(place: str = "The store") -> StoreError:
    """The error for content that nothing can read."""
    return _sqlite_error("SQLITE_CORRUPT", place)


def _sqlite_error(code: str, place: str) -> StoreError:
    return StoreError(_SQLITE_ERRORS[code].format(place), code=code)


def _to_json(value: object) -> str:
    # What PostgreSQL cannot hold as a character it keeps as an escape; NaN it refuses.
    try:
        return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise StoreError(f"What is to be stored is not JSON: {error}.") from error


def _sqlite_connected(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # transactions begin as `_sqlite_begins` says
    cursor = connection.cursor()
    _use_log(cursor)
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA fullfsync=ON")
    cursor.execute(f"PRAGMA journal_size_limit={_LOG_SIZE}")
    cursor.close()


def _use_log(cursor: sqlite3.Cursor) -> None:
    # Here alone SQLite does not wait for a process that does the same with the same new file.
    until = time.monotonic() + _WAIT
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > until:
                raise
        time.sleep(0.01)


def _sqlite_begins(connection: Connection) -> None:
    options = connection.get_execution_options()
    # SQLite ignores this inside a transaction.
    connection.exec_driver_sql(f"PRAGMA foreign_keys={'OFF' if options.get(_MIGRATES) else 'ON'}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get(_WRITES) else "BEGIN")


def _postgresql_connected(connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'on', false) "
            "WHERE current_setting('synchronous_commit') = 'off'"
        )
    connection.commit()
