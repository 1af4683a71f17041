"""What the classifier of document 002, (4) to (7), needs of each block, in sums of its labels.

The classes are known when all blocks have been seen: until then there is a sum for every label
that came, and sums are put together by label. Weights of a block are divided by a power of two of
its own. The rows that are kept have keys by the number of their block: which rows they are does
not depend on who was quick.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._labels import encode, union
from margrave._typing import Codes, Floats
from margrave.mam._block_moments import Moments
from margrave.mam._block_rows import (
    block_rows,
    block_weights,
    check_sums,
    coded,
    in_columns,
    sums_by_label,
)
from margrave.mam._features import Frequencies, feature_sums
from margrave.mam._kept import Kept
from margrave.mam._sums import slices
from margrave.mam._threads import alone

OWNER = "MAMClassifier"
_CELLS = 2**19  # of rows with a column for every class, at a time
_FEWEST_ROWS = 2048


@dataclass(frozen=True)
class Asked:
    """What is asked of every block.

    Attributes
    ----------
    n_features : int
        Columns there must be.
    factors : dict
        What rows of a label count, 1 for other labels.
    seed : int
        For the keys of rows.
    most : int
        Rows to keep.
    sums : bool
        Whether sums of the rows themselves are wanted, else their middle and spread.
    """

    n_features: int
    factors: dict[Any, float]
    seed: int
    most: int
    sums: bool


@dataclass(frozen=True, eq=False)
class LabelSums:
    """What blocks say, by label.

    Attributes
    ----------
    labels : ndarray of shape (n_labels,)
        The labels that came, sorted.
    counts : ndarray of shape (n_labels,)
        Rows of each with a weight above 0.
    weights : ndarray of shape (n_labels,)
        Their weights, divided by 2 to the power of `exponent`.
    sums : ndarray of shape (n_labels, n_features) or None
        Weighted sums of the rows.
    kept : Kept
        Some rows, the largest keys; their codes are places in `labels`.
    moments : Moments or None
        Middle and spread.
    exponent : int
        Of the largest weight.
    """

    labels: NDArray[Any]
    counts: NDArray[np.int64]
    weights: Floats
    sums: Floats | None
    kept: Kept
    moments: Moments | None
    exponent: int


def label_sums(number: int, X: Any, y: Any, sample_weight: Any, asked: Asked) -> LabelSums:
    """What one block says."""
    rows = block_rows(X, asked.n_features, OWNER)
    labels, codes = coded(y)
    weights = _weights(labels, codes, block_weights(sample_weight, len(codes), OWNER), asked)
    exponent = int(np.frexp(weights.max())[1])
    weights = np.ldexp(weights, -exponent)
    sums = moments = None
    with alone():
        if asked.sums:
            sums = sums_by_label(rows, codes, weights, len(labels))
            _check_rows(sums, rows, weights)
        else:
            moments = Moments.of(rows, weights, OWNER)
    return LabelSums(
        labels,
        np.bincount(codes[weights > 0], minlength=len(labels)),
        np.asarray(np.bincount(codes, weights, len(labels)), dtype=np.float64),
        sums,
        Kept.of_block(rows, codes, weights, (asked.seed, number), asked.most),
        moments,
        exponent,
    )


@dataclass(frozen=True)
class Merge:
    """Puts together what blocks say, and keeps so many rows."""

    most: int

    def __call__(self, parts: list[LabelSums]) -> LabelSums:
        labels = union(("MAMClassifier.fit, y", one.labels) for one in parts)
        exponent = max((one.exponent for one in parts if one.counts.any()), default=0)
        counts = np.zeros(len(labels), dtype=np.int64)
        weights = np.zeros(len(labels))
        sums = None if parts[0].sums is None else np.zeros((len(labels), parts[0].sums.shape[1]))
        kept, shifts = [], []
        for one in parts:
            places = encode(one.labels, labels, "MAMClassifier.fit")
            shift = one.exponent - exponent
            counts[places] += one.counts
            weights[places] += np.ldexp(one.weights, shift)
            if sums is not None and one.sums is not None:
                sums[places] += np.ldexp(one.sums, shift)
            moved = np.ldexp(one.kept.weights, shift)
            kept.append(replace(one.kept, codes=places[one.kept.codes], weights=moved))
            shifts.append(shift)
        moments = [one.moments for one in parts if one.moments is not None]
        return LabelSums(
            labels,
            counts,
            weights,
            sums,
            Kept.merged(kept, self.most),
            Moments.merged(moments, shifts) if moments else None,
            exponent,
        )


def class_sums(
    X: Any,
    y: Any,
    sample_weight: Any,
    asked: Asked,
    classes: NDArray[Any],
    exponent: int,
    frequencies: Frequencies,
) -> Floats:
    """Σ s_i φ(x_i) of every class in one block, with random features made a slice at a time."""
    rows = block_rows(X, asked.n_features, OWNER)
    labels, codes = coded(y)
    weights = _weights(labels, codes, block_weights(sample_weight, len(codes), OWNER), asked)
    places = encode(labels, classes, "MAMClassifier.fit")
    found, s = places[codes], np.ldexp(weights, -exponent)
    sums = np.zeros((len(classes), 2 * frequencies.directions.shape[1]))
    with alone(), np.errstate(invalid="ignore"):
        for part in slices(len(rows), max(_CELLS // len(classes), _FEWEST_ROWS)):
            columns = in_columns(found[part], s[part], len(classes))
            sums += feature_sums(rows[part], columns, frequencies, 1)
    check_sums(sums, rows, OWNER)
    return sums


def added(parts: list[Floats]) -> Floats:
    """All of them together."""
    return np.asarray(np.sum(parts, axis=0))


def _weights(labels: NDArray[Any], codes: Codes, given: Floats | None, asked: Asked) -> Floats:
    """Weights of the rows by themselves and by their class."""
    weights = np.ones(len(codes)) if given is None else given
    if not asked.factors:
        return weights
    factors = np.array([asked.factors.get(label, 1.0) for label in labels.tolist()], dtype=float)
    return np.asarray(weights * factors[codes])


def _check_rows(sums: Floats, rows: NDArray[Any], weights: Floats) -> None:
    """Refuse NaN and infinity, also in rows whose weight of 0 keeps them out of the sums."""
    check_sums(sums, rows, OWNER)
    if not weights.all():
        without = np.flatnonzero(weights == 0)
        check_sums(np.asarray(rows[without].sum(dtype=np.float64)), rows, OWNER)
