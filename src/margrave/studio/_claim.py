"""One studio for a store: two on the same dialogs would take each other's steps for theirs.

What holds the store is let go by the system when a process ends, however it ends.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO

from sqlalchemy import Connection, Engine, text

from margrave.studio._engine import StoreError

if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[str]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: IO[str]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


_KEY = 0x4D617267  # of the lock in PostgreSQL: "Marg"


def claim_file(database: Path, who: str) -> IO[str]:
    """Hold a database file: the open file beside it is to be kept, and closed at the end.

    Raises
    ------
    StoreError
        If another process holds it, with who that is.
    """
    file = database.with_name(f"{database.name}.lock").open("a+", encoding="utf-8")
    try:
        _lock(file)
    except OSError as error:
        file.seek(0)
        holder = file.read().strip()
        file.close()
        raise _taken(holder) from error
    file.seek(0)
    file.truncate()
    file.write(who)
    file.flush()
    return file


def claim_server(engine: Engine) -> Connection:
    """Hold a database on a server: the connection is to be kept, and closed at the end."""
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    if connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _KEY}):
        return connection
    connection.close()
    raise _taken("")


def _taken(holder: str) -> StoreError:
    where = f" at {holder}" if holder else ""
    return StoreError(
        f"A studio runs on this store already{where}: open that, end it, or name another store "
        "with --store."
    )
