"""Where a data set is: in the package, in the folder MARGRAVE_DATA, or on OpenML, in that order."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from http.client import HTTPException
from importlib.resources.abc import Traversable
from pathlib import Path

from margrave.datasets import _openml
from margrave.datasets._facts import PACKAGE, Facts
from margrave.datasets._table import Arrays, read_table, to_arrays

FOLDER = "MARGRAVE_DATA"


def local_file(facts: Facts) -> Traversable | None:
    """Give the file to read, the package's own first; None if there is none here."""
    if facts.bundled:
        return PACKAGE / "data" / f"{facts.name}.csv.gz"
    folder = os.environ.get(FOLDER)
    if not folder:
        return None
    paths = (Path(folder).expanduser() / f"{facts.name}{end}" for end in (".csv", ".csv.gz"))
    return next((path for path in paths if path.is_file()), None)


def find(facts: Facts) -> Arrays:
    """Read a set from the first place that has it."""
    file = local_file(facts)
    if file is not None:
        return read_file(file, facts.sha256)
    folder = os.environ.get(FOLDER)
    tried = ["the package", f"{FOLDER} ({folder or 'not set'})"]
    if facts.openml is None:
        raise _missing(facts, [*tried, "OpenML (no id known)"])
    try:
        return _openml.fetch(facts)
    except (OSError, ValueError, HTTPException) as error:
        reason = f"OpenML {facts.openml} ({type(error).__name__}: {error})"
        raise _missing(facts, [*tried, reason]) from error


def read_file(file: Traversable, sha256: str) -> Arrays:
    """Read a CSV file, gzipped or not, and check that it is the one that is known.

    What is wrong with a damaged file is said first, as far as its form can show it.
    """
    raw = file.read_bytes()
    if file.name.endswith(".gz"):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{file}: this is not a whole gzip file ({error})") from error
    table = read_table(raw, str(file))
    found = hashlib.sha256(raw).hexdigest()
    if found != sha256:
        raise ValueError(
            f"{file}: this is not the file that Margrave knows by that name: "
            f"SHA-256 of its text expected {sha256}, found {found}. Replace it or take it away."
        )
    return to_arrays(table)


def _missing(facts: Facts, tried: list[str]) -> FileNotFoundError:
    name = facts.name
    return FileNotFoundError(
        f"margrave.datasets.load: {name!r} was not found. Tried: {', '.join(tried)}. "
        f"Set {FOLDER} to a folder with {name}.csv or {name}.csv.gz."
    )
