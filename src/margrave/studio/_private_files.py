"""Files that only their user can open: the store, its lock, and the token of a studio."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from margrave._file_lock import open_regular
from margrave.studio._engine import StoreError


def open_private(path: Path, flags: int, *, tighten: bool = False) -> int:
    """Open a file of this user that no other user can open, and return its descriptor.

    Parameters
    ----------
    path : Path
        The file. A link is not followed.
    flags : int
        As in `os.open`. A new file has the mode 0600.
    tighten : bool, default=False
        Whether a file that others can open gets the mode 0600; by default it is refused, because
        they may have read it.

    Raises
    ------
    OSError
        If it is not a regular file, or cannot be opened.
    StoreError
        If it belongs to or can be opened by other users.
    """
    handle = open_regular(path, flags, 0o600)
    try:
        status = os.fstat(handle)
        if not hasattr(os, "geteuid"):  # on Windows, the permissions are those of the folder
            return handle
        is_loose = bool(stat.S_IMODE(status.st_mode) & 0o077)
        if status.st_uid != os.geteuid() or (is_loose and not tighten):
            raise StoreError(
                f"The file {path} belongs to or can be opened by other users; delete it, and the "
                "studio makes another."
            )
        if is_loose:
            os.fchmod(handle, 0o600)
    except BaseException:
        os.close(handle)
        raise
    return handle
