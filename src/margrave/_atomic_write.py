"""Atomic writing of files: completely or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

_STREAMS = ("/dev/std", "/dev/fd/", "/proc/")  # names of what this process has open


def resolve_file(path: Path) -> Path:
    """Return the file that a path names once links are followed; it need not exist.

    Raises
    ------
    OSError
        If it is a folder, a pipe, a device, a stream or a link to itself, or if it may not be
        written.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder. Name a file instead.")
    if str(path.absolute()).startswith(_STREAMS) or (path.exists() and not path.is_file()):
        raise OSError(
            f"{path} is a device, a pipe or a stream, which the finished file cannot replace. Name "
            "a regular file instead."
        )
    target = Path(os.path.realpath(path))  # Path.resolve raises a RuntimeError for some loops
    if target.is_symlink():
        raise OSError(f"{path} is a link that leads back to itself. Name a regular file instead.")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"{path} is read-only. Name another file, or make this one writable.")
    return target


@contextmanager
def atomic_write(path: Path, ending: str = "") -> Iterator[Path]:
    """Yield a temporary path; its file replaces ``path`` on success and is deleted on an error.

    A link is followed, and the file behind it replaced. An existing file keeps its permissions,
    which the temporary file has from its beginning; a new file gets those of the umask.
    """
    target = resolve_file(path)
    temporary = target.with_name(f".{uuid4().hex}{ending}")
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    try:
        temporary.touch(0o666 if mode is None else 0o600, exist_ok=False)
        if mode is not None:
            temporary.chmod(mode)
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())  # the file is complete before it gets its name
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
