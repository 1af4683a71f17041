"""Locks on an SQLite store: only one studio may run on it, because two would mix up their steps.

The operating system releases them when the process ends, however it ends. The first is on a file
beside the database, which has the address of the studio. Because that file can be deleted, the
second is on the database itself, where the operating system has locks that SQLite's do not affect.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from contextlib import ExitStack
from pathlib import Path

from margrave._file_lock import lock_file
from margrave.studio._engine import StoreError
from margrave.studio._private_files import open_private

_BYTE = 1 << 62  # that is locked; SQLite locks some after the first GiB


def claim_file(database: Path, who: str) -> ExitStack:
    """Lock a database file until the returned stack is closed.

    The caller has no connections when it calls this and when it closes the stack: to close a file
    releases the locks that SQLite has on it in this process.

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
    with ExitStack() as locks:
        file = locks.enter_context(os.fdopen(handle, "a+", encoding="utf-8"))
        if os.fstat(handle).st_nlink > 1:  # it would overwrite a file that has another name too
            raise StoreError(f"The lock {path} has several names (hard links); delete it.")
        try:
            lock_file(file, wait=False)
            _lock_database(database, locks)
        except OSError as error:
            file.seek(0)
            holder = file.read().strip()
            where = f" at {holder}" if holder else ""
            raise StoreError(
                f"Another studio already runs on this store{where}. Open that one, stop it, or "
                "name another store with --store. Several studios can share a PostgreSQL database."
            ) from error
        file.seek(0)
        file.truncate()
        file.write(who)
        file.flush()
        return locks.pop_all()


def _lock_database(database: Path, locks: ExitStack) -> None:
    """Lock a byte of the database, where the system has locks of open files; see fcntl(2)."""
    if sys.platform == "win32":  # there nobody can delete the first lock while it is open
        return
    import fcntl

    command = getattr(fcntl, "F_OFD_SETLK", None)
    if command is None:
        return
    if sys.platform == "darwin":  # the order in `struct flock`
        lock = struct.pack("qqihh", _BYTE, 1, 0, fcntl.F_WRLCK, os.SEEK_SET)
    else:
        lock = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, _BYTE, 1, 0)
    handle = os.open(database, os.O_RDWR)
    locks.callback(os.close, handle)
    try:
        fcntl.fcntl(handle, command, lock)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):  # else the file system has no such locks
            raise
