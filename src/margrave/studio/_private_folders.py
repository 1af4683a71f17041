"""Temporary folders that only their user can open: of an upload, of a notebook's store.

The process that made a folder holds a lock in it. A folder whose process was killed has a lock that
nobody holds, and the next studio removes it.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from margrave._file_lock import lock_file

LOCK = "lock"  # the file in each folder
_PREFIX = "margrave-studio-"


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder, and remove it at the end."""
    while True:
        with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name:
            folder = Path(name)
            with (folder / LOCK).open("x") as file:
                lock_file(file, wait=True)
                if (folder / LOCK).exists():  # else a studio that starts just now has removed it
                    yield folder
                    return


def remove_abandoned_folders() -> None:
    """Remove the folders that ended processes of this user have left."""
    # Processes that only read a table import this module, but not the store.
    from margrave.studio._engine import StoreError
    from margrave.studio._private_files import open_private

    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            status = folder.lstat()
            is_own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
            if stat.S_ISDIR(status.st_mode) and is_own:  # a link is none
                handle = open_private(folder / LOCK, os.O_RDWR, tighten=True)
                with os.fdopen(handle, "r+") as file:
                    lock_file(file, wait=False)
                    shutil.rmtree(folder, ignore_errors=True)
        except (OSError, StoreError):  # it has no lock yet, or its process runs
            continue
