"""Atomic writing of files: completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


@contextmanager
def atomic_write(path: Path, ending: str = "") -> Iterator[Path]:
    """Yield a temporary path; its file replaces ``path`` on success and is deleted on an error."""
    temporary = path.with_name(f".{uuid4().hex}{ending}")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())  # the file is complete before it gets its name
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
