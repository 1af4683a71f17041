"""Split the rows of a Dask collection into a training, a tuning and a certification set.

Every row has a random key, drawn from the seed and the features of the row. Of each class, the rows
with the largest keys are the training set, those with the smallest keys the certification set, and
all others the tuning set. So a row has one role, whichever worker reads its block, at every pass.
Copies of a row with the same label have the same role; copies with another label are never in the
training set and in the certification set. Where equal rows are independent observations, the key is
drawn from the seed and the place of the row instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from margrave import _labels
from margrave._messages import name_class
from margrave._typing import Codes, Floats, Ints
from margrave.scale._blocks import Blocks
from margrave.scale._predict import plain_rows
from margrave.scale._sample import KeepLargest, KeyedRows
from margrave.steer import (
    SplitError,
    check_duplicates,
    check_positive,
    hash_rows,
    random_keys,
)

OWNER = "scale.fit(SteeredClassifier)"
MOST_TRAINED = 100_000
"""Most rows of a Dask collection in the training set, which is in memory."""
MOST_CERTIFYING = 1_000_000
"""Most rows of a Dask collection in the certification set; the score of each is in memory."""
_TRAINING_FRACTION = 0.4  # of fewer rows
# Without a search for tables of few values, "auto" is "group".
_DUPLICATES = ("auto", "group", "independent")
_LEAST_TRAINING = 50  # rows of a rare class, if the training fraction of it has so many
_LEAST_ROWS = 25  # of a class
_MOST_LABELS = 1000  # different ones; more are no classes

TRAIN, TUNE, CERTIFY = 0, 1, 2


@dataclass(frozen=True, eq=False)
class _Keys:
    """The number of rows of a label, and its smallest and largest keys so far."""

    n: int
    smallest: Floats
    largest: Floats

    @classmethod
    def of(cls, keys: Floats) -> _Keys:
        largest = -_smallest(-keys, 3 * MOST_TRAINED)
        return cls(len(keys), _smallest(keys, MOST_CERTIFYING), largest)

    @classmethod
    def merged(cls, parts: list[_Keys]) -> _Keys:
        smallest = np.concatenate([part.smallest for part in parts])
        largest = np.concatenate([part.largest for part in parts])
        n = sum(part.n for part in parts)
        kept = -_smallest(-largest, 3 * MOST_TRAINED)
        return cls(n, _smallest(smallest, MOST_CERTIFYING), kept)


def _smallest(keys: Floats, most: int) -> Floats:
    """Select the smallest keys, at most so many."""
    return keys if len(keys) <= most else np.partition(keys, most)[:most]


_Label = tuple[bool, Any]  # whether it is a Boolean, since True == 1, and the label


def _draw_block(X: Any, y: Any, seed: int) -> dict[_Label, _Keys]:
    """Draw a key for each row of a block, and collect them by label."""
    return _keys_by_label(_labels.natural(y), _equal_keys(seed, X))


def _draw_labels(number: int, y: Any, seed: int) -> dict[_Label, _Keys]:
    """Draw a key for each row of a block by its place, and collect them by label."""
    return _keys_by_label(_labels.natural(y), _draw_keys(seed, number, len(y)))


def _keys_by_label(labels: NDArray[Any], keys: Floats) -> dict[_Label, _Keys]:
    known: list[Any] = _labels.union([(f"{OWNER}, y", labels)]).tolist()
    _check_number_of_labels(len(known))
    return {(isinstance(label, bool), label): _Keys.of(keys[labels == label]) for label in known}


def _merge_blocks(parts: list[dict[_Label, _Keys]]) -> dict[_Label, _Keys]:
    by_label: dict[_Label, list[_Keys]] = {}
    for part in parts:
        for label, keys in part.items():
            by_label.setdefault(label, []).append(keys)
    _check_number_of_labels(len(by_label))
    return {label: _Keys.merged(keys) for label, keys in by_label.items()}


def _check_number_of_labels(n: int) -> None:
    if n > _MOST_LABELS:
        raise ValueError(
            f"{OWNER} needs y with labels of classes; got more than {_MOST_LABELS} different ones."
        )


def _draw_keys(seed: int, number: int, n: int) -> Floats:
    return np.random.default_rng([seed, number]).random(n)


def _equal_keys(seed: int, X: Any) -> Floats:
    return random_keys(hash_rows(plain_rows(X)), seed)


@dataclass(frozen=True, eq=False)
class Draw:
    """The rows of a collection, with the random keys that decide their roles.

    Attributes
    ----------
    blocks : Blocks
        The rows and their labels.
    classes : ndarray
        The classes.
    seed : int
        The seed of the keys.
    together : bool
        Whether equal rows have the same key.
    keys : tuple
        The keys of each class.
    """

    blocks: Blocks
    classes: NDArray[Any]
    seed: int
    together: bool
    keys: tuple[_Keys, ...]

    @classmethod
    def of(cls, X: Any, y: Any, random_state: Any, duplicates: str = "auto") -> Draw:
        """Count the labels and draw the keys, in one pass."""
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        together = check_duplicates(duplicates, OWNER, _DUPLICATES) != "independent"
        blocks = Blocks.of_samples(OWNER, X, y=y)
        if together:
            keys = blocks.reduce(_draw_block, _merge_blocks, seed)
        else:
            only_labels = Blocks(tuple((part[1],) for part in blocks.parts), 1, OWNER)
            keys = only_labels.reduce(_draw_labels, _merge_blocks, seed, numbered=True)
        classes = _labels.union([(f"{OWNER}, y", _labels.natural([label for _, label in keys]))])
        by_label = {label: own for (_, label), own in keys.items()}
        in_order = tuple(by_label[label] for label in classes.tolist())
        return cls(blocks, classes, seed, together, in_order)

    @property
    def sizes(self) -> Ints:
        """The number of rows of each class."""
        return np.array([keys.n for keys in self.keys])

    def positive(self, label: Any) -> Any:
        """Check that there are two classes, and return the positive one."""
        if len(self.classes) < 2:
            raise ValueError(
                f"{OWNER} needs y with two classes; got one class, "
                f"{_labels.plain(self.classes[0])!r}."
            )
        if len(self.classes) > 2:
            raise ValueError(
                f"{OWNER} needs y with two classes in a Dask collection; got {len(self.classes)}: "
                f"{_labels.shown(self.classes)}. Draw rows into memory with margrave.scale.sample "
                "to steer more classes."
            )
        return check_positive(label, self.classes, OWNER)

    def training_roles(self) -> Roles:
        """Assign as many rows as possible to the training set, where nothing is steered."""
        fraction = min(1.0, MOST_TRAINED / int(self.sizes.sum()))
        counts = np.maximum((fraction * self.sizes).astype(np.int64), np.minimum(self.sizes, 2))
        return self._roles(counts, np.zeros_like(counts))

    def steering_roles(self, certify: float, by_class: bool = False) -> Roles:
        """Assign the rows to training, tuning and certification set.

        Parameters
        ----------
        certify : float
            The fraction of the certification set.
        by_class : bool, default=False
            Where that is too many rows: whether a rare class keeps its whole fraction, so that
            only the other class has fewer rows. By default both have fewer, in proportion.
        """
        sizes, n = self.sizes, int(self.sizes.sum())
        wanted = np.round(certify * sizes).astype(np.int64)
        most = np.maximum(MOST_CERTIFYING // 2, MOST_CERTIFYING - (wanted.sum() - wanted))
        certifying = np.minimum(wanted, most)
        apart = by_class and bool((certifying < wanted).any())
        if not apart:
            certifying = np.round(min(certify, MOST_CERTIFYING / n) * sizes).astype(np.int64)
        fraction = min(_TRAINING_FRACTION, (1 - certify) / 2)
        least = np.minimum((fraction * sizes).astype(np.int64), _LEAST_TRAINING)
        training = np.maximum((min(fraction, MOST_TRAINED / n) * sizes).astype(np.int64), least)
        training[sizes.argmax()] -= max(int(training.sum()) - MOST_TRAINED, 0)
        small = int(sizes.argmin())
        tuning = int(sizes[small] - training[small] - certifying[small])
        if sizes[small] < _LEAST_ROWS or training[small] < 10 or tuning < 2:
            raise ValueError(
                f"{OWNER} needs at least {_LEAST_ROWS} rows of each class in a Dask collection to "
                "train, tune and certify on, and more if certify is more than a fifth; got "
                f"{sizes[small]} of {name_class(self.classes[small])}."
            )
        return self._roles(training, certifying, apart)

    def _roles(self, training: Ints, certifying: Ints, apart: bool = False) -> Roles:
        both = list(zip(self.keys, training, certifying, strict=True))
        low = np.array([_nth_key(keys.smallest, n) for keys, _, n in both])
        high = np.array([-_nth_key(-keys.largest, n) for keys, n, _ in both])
        counts = np.stack([training, self.sizes - training - certifying, certifying])
        self._check_copies(counts, low, high)
        return Roles(self.classes, self.seed, self.together, low, high, counts, apart)

    def _check_copies(self, counts: Ints, low: Floats, high: Floats) -> None:
        """Refuse rows with so many copies, which have one role, that the sets differ much."""
        for keys, planned, least, most in zip(self.keys, counts.T, low, high, strict=True):
            n_train, n_certify = (keys.largest >= most).sum(), (keys.smallest <= least).sum()
            n_tune = keys.n - n_train - n_certify
            if n_train > 2 * planned[TRAIN] or 2 * n_tune < planned[TUNE]:
                raise SplitError(
                    f"{OWNER} keeps rows that are equal in all features together, and some rows "
                    "occur so often that the sets cannot have their sizes. If equal rows are "
                    "independent observations, set duplicates='independent'.",
                    code="copies",
                )


def _nth_key(keys: Floats, n: int) -> float:
    """Return the n-th smallest key; below all keys if n is 0."""
    return float(np.partition(keys, n - 1)[n - 1]) if n else -np.inf


@dataclass(frozen=True, eq=False)
class Roles:
    """The role of every row: training, tuning or certification set.

    Attributes
    ----------
    classes : ndarray
        The classes.
    seed : int
        The seed of the keys.
    together : bool
        Whether equal rows have the same key.
    low, high : ndarray of shape (k,)
        Rows with keys up to `low` are in the certification set, from `high` on in the training set.
    counts : ndarray of shape (3, k)
        Rows of each class in the training, the tuning and the certification set.
    proportions_differ : bool
        Whether the classes have other proportions in the certification set than in the data.
    """

    classes: NDArray[Any]
    seed: int
    together: bool
    low: Floats
    high: Floats
    counts: Ints
    proportions_differ: bool = False

    def of(self, number: int, X: Any, y: Any) -> tuple[Ints, Codes]:
        """Return the roles of a block's rows, and their classes."""
        codes = _labels.encode(y, self.classes, f"{OWNER}, y")
        together, seed = self.together, self.seed
        keys = _equal_keys(seed, X) if together else _draw_keys(seed, number, len(codes))
        roles = np.where(keys >= self.high[codes], TRAIN, TUNE)
        return np.where(keys <= self.low[codes], CERTIFY, roles), codes

    @property
    def parts(self) -> dict[str, int]:
        """The number of rows of each role."""
        train, tune, certify = self.counts.sum(axis=1).tolist()
        return {"train": train, "tune": tune, "certify": certify}


def draw_certifying(number: int, *parts: Any) -> KeyedRows:
    """Select rows of a block; the seed is 0, so that the same rows are selected every time."""
    keys = _draw_keys(0, number, len(parts[0]))
    return KeyedRows(-keys, parts).largest(MOST_CERTIFYING)


def merge_certifying(blocks: list[KeyedRows]) -> KeyedRows:
    """Keep at most so many rows as a certification set may have."""
    return KeepLargest(MOST_CERTIFYING)(blocks)
