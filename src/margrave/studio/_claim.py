"""A lock on an SQLite store: only one studio may run on it, because two would mix up their steps.

The operating system releases the lock when the process ends, however it ends.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from margrave._file_lock import lock_file
from margrave.studio._engine import StoreError
from margrave.studio._private_files import open_private


def claim_file(database: Path, who: str) -> IO[str]:
    """Lock a database file; the caller keeps the returned lock file open, and closes it at the end.

    Raises
    ------
    StoreError
        If another process holds the lock; the message names it. Also if the file has several
        names (hard links): each would have a lock of its own, and SQLite a log. Also if the lock
        file is a link, or belongs to another user.
    """
    names = database.stat().st_nlink
    if names > 1:
        raise StoreError(
            f"The store has {names} names (hard links), and may have only one. Copy it to another "
            "file, and name that one with --store."
        )
    path = database.with_name(f"{database.name}.lock")
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    try:  # not for other users: who can open a file can lock it too
        handle = open_private(path, flags, tighten=True)
    except OSError as error:
        raise StoreError(
            f"The lock {path} cannot be opened: {error.strerror}. If it is a link, delete it."
        ) from error
    file = os.fdopen(handle, "a+", encoding="utf-8")
    if os.fstat(handle).st_nlink > 1:  # it would overwrite a file that has another name too
        file.close()
        raise StoreError(f"The lock {path} has several names (hard links); delete it.")
    try:
        lock_file(file, wait=False)
    except OSError as error:
        file.seek(0)
        holder = file.read().strip()
        file.close()
        where = f" at {holder}" if holder else ""
        raise StoreError(
            f"Another studio already runs on this store{where}. Open that one, stop it, or name "
            "another store with --store. Several studios can share a PostgreSQL database."
        ) from error
    file.seek(0)
    file.truncate()
    file.write(who)
    file.flush()
    return file
