"""Scores in blocks, for the rank margin: how a block is read, and the first look at all rows.

The first pass over the data checks what arrays are checked for in memory, finds classes, counts and
sums, and the samples with which the cutting planes of `_bundle` begin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave import _labels
from margrave._typing import Flags, Floats, Ints


@dataclass(frozen=True)
class Reading:
    """How a block becomes scores of positives and negatives.

    Attributes
    ----------
    owner : str
        Who asks, for messages.
    read : callable
        Takes the owner and the rows of a block, and gives an array of shape (n, K).
    positive : label, optional
        The positive class; None if it is to be found.
    """

    owner: str
    read: Callable[[str, Any], Any]
    positive: Any = None

    def sides(self, y: Any, weight: Any) -> tuple[Flags, Flags]:
        """Which rows are positives, and which negatives, with a weight above 0."""
        positive = np.asarray(_labels.natural(y) == self.positive, dtype=bool)
        if weight is None:
            return positive, ~positive
        used = np.asarray(weight) > 0
        return positive & used, ~positive & used


def numbers(owner: str, X: Any) -> Any:
    """The scores of a block as they are; float32 stays what it is."""
    array = np.asarray(X)
    if array.dtype.kind == "f":
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{owner} needs scores that are numbers; got {error}.") from error


@dataclass(frozen=True, eq=False)
class Group:
    """The samples of one class that have weight.

    Attributes
    ----------
    n : int
        How many.
    peak, lightest : float
        The largest and the smallest weight.
    total : float
        The sum of their weights, in units of the largest, so that it does not overflow.
    sums : ndarray of shape (K,)
        The weighted sums of their scores, in the same units.
    low, high : ndarray of shape (K, K)
        In row j a sample with the smallest (largest) score of member j.
    """

    n: int
    peak: float
    lightest: float
    total: float
    sums: Floats
    low: Floats
    high: Floats

    @property
    def smallest(self) -> Floats:
        """The smallest score of each member."""
        return np.diagonal(self.low)

    @property
    def largest(self) -> Floats:
        """The largest score of each member."""
        return np.diagonal(self.high)

    @property
    def means(self) -> Floats:
        """The mean score of each member."""
        return np.asarray(self.sums / self.total)

    @classmethod
    def of(cls, values: Any, rows: Ints, weight: Floats | None) -> Group:
        """Some rows of a block, at least one."""
        own = None if weight is None else weight[rows]
        peak = 1.0 if own is None else float(own.max())
        if own is not None:
            own = own / peak
        low, high, sums = [], [], []
        for column in range(values.shape[1]):
            one = values[:, column][rows].astype(np.float64, copy=False)
            low.append(rows[one.argmin()])
            high.append(rows[one.argmax()])
            sums.append(one.sum() if own is None else own @ one)
        return cls(
            n=len(rows),
            peak=peak,
            lightest=1.0 if own is None else float(own.min()) * peak,
            total=float(len(rows)) if own is None else float(own.sum()),
            sums=np.array(sums),
            low=np.asarray(values[low], dtype=np.float64),
            high=np.asarray(values[high], dtype=np.float64),
        )

    @classmethod
    def merged(cls, groups: list[Group]) -> Group:
        """All of them together."""
        peak = max(one.peak for one in groups)
        places = np.arange(len(groups[0].sums))
        lowest = np.argmin([one.smallest for one in groups], axis=0)
        highest = np.argmax([one.largest for one in groups], axis=0)
        return cls(
            n=sum(one.n for one in groups),
            peak=peak,
            lightest=min(one.lightest for one in groups),
            total=sum(one.total * (one.peak / peak) for one in groups),
            sums=np.sum([one.sums * (one.peak / peak) for one in groups], axis=0),
            low=np.array([groups[at].low[j] for j, at in zip(places, lowest, strict=True)]),
            high=np.array([groups[at].high[j] for j, at in zip(places, highest, strict=True)]),
        )


@dataclass(frozen=True, eq=False)
class Looked:
    """What the first pass found.

    Attributes
    ----------
    blocks, sizes : ndarray of int
        The numbers of the blocks that have rows, and how many.
    classes : ndarray
        All labels.
    groups : dict
        By label, of at most two; by True and False where the positive class is known.
    low, high : float
        The range of all scores; NaN if one is.
    weights : tuple of float
        The range of the sample weights; NaN if one is.
    """

    blocks: Ints
    sizes: Ints
    classes: NDArray[Any]
    groups: dict[Any, Group]
    low: float
    high: float
    weights: tuple[float, float]

    def offsets(self, n_blocks: int) -> Ints:
        """How many rows there are before each block."""
        sizes = np.zeros(n_blocks, dtype=np.int64)
        sizes[self.blocks] = self.sizes
        return np.cumsum(sizes) - sizes

    @classmethod
    def merged(cls, looks: list[Looked]) -> Looked:
        """All of them together."""
        classes = _labels.union([("y", one.classes) for one in looks])
        by_label: dict[Any, list[Group]] = {}
        for one in looks:
            for label, group in one.groups.items():
                by_label.setdefault(label, []).append(group)
        return cls(
            blocks=np.concatenate([one.blocks for one in looks]),
            sizes=np.concatenate([one.sizes for one in looks]),
            classes=classes,
            groups={label: Group.merged(groups) for label, groups in by_label.items()},
            low=float(np.min([one.low for one in looks])),  # NaN stays
            high=float(np.max([one.high for one in looks])),
            weights=(
                float(np.min([one.weights[0] for one in looks])),
                float(np.max([one.weights[1] for one in looks])),
            ),
        )


def look(number: int, X: Any, y: Any, weight: Any, reading: Reading) -> Looked:
    """The first look at a block."""
    values = reading.read(reading.owner, X)
    labels = _labels.natural(y)
    classes = _labels.union([("y", _different(labels))])
    own = None if weight is None else np.asarray(weight, dtype=np.float64)
    used = None if own is None else own > 0
    sides: dict[Any, Flags] = {}
    if reading.positive is not None:
        positive = np.asarray(labels == reading.positive, dtype=bool)
        sides = {True: positive, False: ~positive}
    elif len(classes) <= 2:
        sides = {label: np.asarray(labels == label, dtype=bool) for label in classes.tolist()}
    rows = {
        label: np.flatnonzero(chosen if used is None else chosen & used)
        for label, chosen in sides.items()
    }
    return Looked(
        blocks=np.array([number]),
        sizes=np.array([len(values)]),
        classes=classes,
        groups={label: Group.of(values, at, own) for label, at in rows.items() if len(at)},
        low=float(values.min()),
        high=float(values.max()),
        weights=(1.0, 1.0) if own is None else (float(own.min()), float(own.max())),
    )


def _different(labels: NDArray[Any]) -> NDArray[Any]:
    """The labels that occur; objects are not sorted, which takes long."""
    if labels.dtype != object:
        return labels
    found = list(dict.fromkeys(labels.ravel().tolist()))
    told = np.empty(len(found), dtype=object)
    told[:] = found
    return told
