"""Whether what was found is the set that is meant.

A file of the package is known to the byte. Copies from elsewhere differ in their spelling of
numbers and names, so they are held against what is known of the set: its size and its target.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave.datasets._facts import Facts, Label
from margrave.datasets._table import Arrays

Counts = Mapping[Label, int]
Range = tuple[float, float]
Target = Counts | Range | None  # None: text where numbers are wanted


def check_bytes(raw: bytes, sha256: str, where: str) -> None:
    """Refuse the text of a file of the package that is not the one it came with."""
    found = hashlib.sha256(raw).hexdigest()
    if found != sha256:
        raise ValueError(
            f"margrave.datasets.load needs {where} with the SHA-256 {sha256} of its text; "
            f"got {found}. Install Margrave again."
        )


def check_facts(arrays: Arrays, facts: Facts, where: str) -> None:
    """Refuse a copy whose size, missing values, class counts or range of targets are not known.

    `where` names the copy in the message: a file, or a number on OpenML.
    """
    wanted: Target
    got: Target
    if facts.classes is None:
        wanted, got = facts.target_range, _range(arrays.target)
    else:
        wanted, got = facts.classes, _counts(arrays.target)
    size = (facts.rows, facts.features, facts.missing)
    shape = (*arrays.data.shape, int(np.isnan(arrays.data).sum()))
    if shape != size or got != wanted:
        raise ValueError(
            f"margrave.datasets.load needs {where} to be {facts.name!r} with "
            f"{_words(size, wanted)}; got {_words(shape, got)}. Bring another copy."
        )


def _counts(target: NDArray[Any]) -> Counts:
    labels, counts = np.unique(target, return_counts=True)
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))


def _range(target: NDArray[Any]) -> Range | None:
    """Give the smallest and the largest value; None for text."""
    if target.dtype.kind == "U":
        return None
    return float(target.min()), float(target.max())


def _words(shape: tuple[int, ...], target: Target, limit: int = 8) -> str:
    """Say what a set looks like; of many classes, as of a real-valued target, only the first."""
    size = "{} rows, {} features, {} missing values".format(*shape)
    if target is None:
        return f"{size}, a target of text"
    if isinstance(target, tuple):
        return "{}, a target from {} to {}".format(size, *target)
    shown = [f"{label!r}: {count}" for label, count in list(target.items())[:limit]]
    more = [f"... ({len(target)} in all)"] if len(target) > limit else []
    return f"{size}, classes {{{', '.join(shown + more)}}}"
