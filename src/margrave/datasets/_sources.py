"""The sources of a data set: the package, the folder MARGRAVE_DATA, and OpenML, in that order.

A file of the package is checked by its SHA-256. Other copies may write numbers and names
differently, so they are checked by the facts about the set: its size and its target.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Mapping
from http.client import HTTPException
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Floats
from margrave.datasets._facts import PACKAGE, Facts, Label
from margrave.datasets._table import TARGET, Arrays, Table, read_table, to_arrays

FOLDER = "MARGRAVE_DATA"

Counts = Mapping[Label, int]
Range = tuple[float, float]
Target = Counts | Range | None  # None: text instead of numbers


def read_set(facts: Facts) -> Arrays:
    """Read a set from the first source that has it."""
    file = find_file(facts)
    if file is not None:
        return read_file(file, facts)
    folder = os.environ.get(FOLDER)
    tried = ["the package", f"{FOLDER} ({folder or 'not set'})"]
    if facts.openml is None:
        raise _missing_file(facts, [*tried, "OpenML (no id known)"])
    try:
        return fetch_from_openml(facts)
    except (OSError, ValueError, HTTPException) as error:
        reason = f"OpenML {facts.openml} ({type(error).__name__}: {str(error).rstrip('.')})"
        raise _missing_file(facts, [*tried, reason]) from error


def find_file(facts: Facts) -> Traversable | None:
    """Find the file of a set, first in the package, then in the folder; None if there is none."""
    if facts.bundled:
        return PACKAGE / "data" / f"{facts.name}.csv.gz"
    folder = os.environ.get(FOLDER)
    if not folder:
        return None
    paths = (Path(folder).expanduser() / f"{facts.name}{end}" for end in (".csv", ".csv.gz"))
    return next((path for path in paths if path.is_file()), None)


def read_file(file: Traversable, facts: Facts) -> Arrays:
    """Read a CSV file, gzipped or not, and check that it contains the set.

    The table is parsed before its checksum is compared, because an error in a line is more helpful
    than another checksum.
    """
    where = str(file)
    raw = file.read_bytes()
    if file.name.endswith(".gz"):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{where}: needs a complete gzip file; got {error}.") from error
    table = read_table(raw, where)
    if facts.sha256 is not None:
        _check_sha256(raw, facts.sha256, where)
        return to_arrays(table)
    arrays = to_arrays(table)
    check_facts(arrays, facts, where)
    return arrays


def fetch_from_openml(facts: Facts) -> Arrays:
    """Download a set from OpenML with scikit-learn, and check that it is the same set.

    The values are converted to text first, so that a column that is nominal on OpenML but contains
    numbers is numeric here, as in the files of the package.
    """
    from sklearn.datasets import fetch_openml

    # This parser does not need pandas.
    fetched = fetch_openml(data_id=facts.openml, as_frame=False, parser="liac-arff")
    columns = [
        _column_as_text(column, fetched.categories.get(name))
        for name, column in zip(fetched.feature_names, fetched.data.T, strict=True)
    ]
    target = [t if isinstance(t, str) else f"{t:.17g}" for t in fetched.target.tolist()]
    rows = list(zip(*columns, target, strict=True))
    arrays = to_arrays(Table(tuple(fetched.feature_names), rows))
    check_facts(arrays, facts, f"OpenML {facts.openml}")
    return arrays


def _column_as_text(column: Floats, categories: list[str] | None) -> list[str]:
    """Write a column as in a CSV file: names of categories, numbers in full, nothing for NaN."""
    cells = column.tolist()
    if categories is None:
        return ["" if np.isnan(cell) else f"{cell:.17g}" for cell in cells]
    return ["" if np.isnan(cell) else categories[int(cell)] for cell in cells]


def _missing_file(facts: Facts, tried: list[str]) -> FileNotFoundError:
    name = facts.name
    return FileNotFoundError(
        f"margrave.datasets.load needs a file for {name!r}; got none. Tried: {', '.join(tried)}. "
        f"Set {FOLDER} to a folder with {name}.csv or {name}.csv.gz: a header row, the target last "
        f"and named {TARGET!r}. The data are from: {facts.origin}."
    )


def _check_sha256(raw: bytes, expected: str, where: str) -> None:
    found = hashlib.sha256(raw).hexdigest()
    if found != expected:
        raise ValueError(
            f"margrave.datasets.load needs {where} with the SHA-256 {expected} of its text; "
            f"got {found}. Install Margrave again."
        )


def check_facts(arrays: Arrays, facts: Facts, where: str) -> None:
    """Check the size, the missing values, and the class counts or the range of the target.

    `where` names the copy in the message: a file, or a number on OpenML.
    """
    expected_target: Target
    target: Target
    if facts.classes is None:
        expected_target, target = facts.target_range, _range(arrays.target)
    else:
        expected_target, target = facts.classes, _counts(arrays.target)
    expected_size = (facts.rows, facts.features, facts.missing)
    size = (*arrays.data.shape, int(np.isnan(arrays.data).sum()))
    if size != expected_size or target != expected_target:
        raise ValueError(
            f"margrave.datasets.load needs {where} to be {facts.name!r} with "
            f"{_describe(expected_size, expected_target)}; got {_describe(size, target)}. "
            "Use another copy."
        )


def _counts(target: NDArray[Any]) -> Counts:
    labels, counts = np.unique(target, return_counts=True)
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))


def _range(target: NDArray[Any]) -> Range | None:
    """Return the smallest and the largest value; None for text."""
    if target.dtype.kind == "U":
        return None
    return float(target.min()), float(target.max())


def _describe(size: tuple[int, ...], target: Target, limit: int = 8) -> str:
    """Describe a set; of many classes, as of a real-valued target, only the first."""
    text = "{} rows, {} features, {} missing values".format(*size)
    if target is None:
        return f"{text}, a target of text"
    if isinstance(target, tuple):
        return "{}, a target from {} to {}".format(text, *target)
    shown = [f"{label!r}: {count}" for label, count in list(target.items())[:limit]]
    more = [f"... ({len(target)} in total)"] if len(target) > limit else []
    return f"{text}, classes {{{', '.join(shown + more)}}}"
