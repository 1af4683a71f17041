"""Locks between processes: the operating system releases one when its process ends."""

from __future__ import annotations

import sys
from typing import IO

if sys.platform == "win32":
    import msvcrt

    def lock_file(file: IO[str], *, wait: bool) -> None:
        """Lock an open file for this process until it is closed.

        Raises
        ------
        OSError
            If another process has the lock; with `wait`, only after some time or never.
        """
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def lock_file(file: IO[str], *, wait: bool) -> None:
        """Lock an open file for this process until it is closed.

        Raises
        ------
        OSError
            If another process has the lock; with `wait`, only after some time or never.
        """
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
