"""Files that are written all or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


@contextmanager
def atomic_write(path: Path, ending: str = "") -> Iterator[Path]:
    """A file to write beside a path; it takes its place if all goes well, else it is gone."""
    beside = path.with_name(f".{uuid4().hex}{ending}")
    try:
        yield beside
        with beside.open("rb+") as file:
            os.fsync(file.fileno())  # before its name says that it is all there
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
