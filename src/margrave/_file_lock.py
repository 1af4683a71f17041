"""Locks between processes: the operating system releases one when its process ends."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path
from typing import IO, Any

# Windows has neither. A pipe is opened without waiting for another process, and then refused.
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def open_regular(path: Path, flags: int, mode: int = 0o666) -> int:
    """Open a file as `os.open` does, but no link and no pipe, and return its descriptor.

    Raises
    ------
    OSError
        If it is not a regular file, or cannot be opened.
    """
    refused = OSError(errno.EINVAL, "It is not a regular file", str(path))
    if path.is_symlink():
        raise refused
    handle = os.open(path, flags | _PLAIN, mode)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise refused
    return handle


if sys.platform == "win32":
    import msvcrt

    def lock_file(file: IO[Any], *, wait: bool) -> None:
        """Lock an open file for this process until it is closed.

        Raises
        ------
        OSError
            If another process has the lock; with `wait`, only after some time or never.
        """
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def lock_file(file: IO[Any], *, wait: bool) -> None:
        """Lock an open file for this process until it is closed.

        Raises
        ------
        OSError
            If another process has the lock; with `wait`, only after some time or never.
        """
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
