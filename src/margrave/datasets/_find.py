"""Where a data set is: in the package, in the folder MARGRAVE_DATA, or on OpenML, in that order."""

from __future__ import annotations

import gzip
import os
import zlib
from http.client import HTTPException
from importlib.resources.abc import Traversable
from pathlib import Path

from margrave.datasets import _openml
from margrave.datasets._check import check_bytes, check_facts
from margrave.datasets._facts import PACKAGE, Facts
from margrave.datasets._table import TARGET, Arrays, read_table, to_arrays

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
        return read_file(file, facts)
    folder = os.environ.get(FOLDER)
    tried = ["the package", f"{FOLDER} ({folder or 'not set'})"]
    if facts.openml is None:
        raise _missing(facts, [*tried, "OpenML (no id known)"])
    try:
        return _openml.fetch(facts)
    except (OSError, ValueError, HTTPException) as error:
        reason = f"OpenML {facts.openml} ({type(error).__name__}: {str(error).rstrip('.')})"
        raise _missing(facts, [*tried, reason]) from error


def read_file(file: Traversable, facts: Facts) -> Arrays:
    """Read a CSV file, gzipped or not, and check that it is the set that is meant.

    What is wrong with a damaged file is said first, as far as its form can show it.
    """
    where = str(file)
    raw = file.read_bytes()
    if file.name.endswith(".gz"):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{where}: needs a whole gzip file; got {error}.") from error
    table = read_table(raw, where)
    if facts.sha256 is not None:
        check_bytes(raw, facts.sha256, where)
        return to_arrays(table)
    arrays = to_arrays(table)
    check_facts(arrays, facts, where)
    return arrays


def _missing(facts: Facts, tried: list[str]) -> FileNotFoundError:
    name = facts.name
    return FileNotFoundError(
        f"margrave.datasets.load needs a file for {name!r}; got none. Tried: {', '.join(tried)}. "
        f"Set {FOLDER} to a folder with {name}.csv or {name}.csv.gz: a header row, the target last "
        f"and named {TARGET!r}. The data are from: {facts.origin}."
    )
