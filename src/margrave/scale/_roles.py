"""Who sees which rows of a Dask collection: drawn once, block by block, from the labels alone.

Every row has a key, drawn with the seed and the number of its block. Of each class those with the
largest keys are trained on, those with the smallest certify, all others are tuned on. So a row has
one role, whoever works on its block, and however often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from margrave import _labels
from margrave._dask.blocks import Blocks
from margrave._typing import Codes, Floats, Ints
from margrave.steer._start import check_positive

OWNER = "SteeredClassifier"
MOST_TRAINED = 100_000
"""Rows of a Dask collection that members are trained on, in memory."""
MOST_CERTIFYING = 1_000_000
"""Rows of a Dask collection that certify: a score of each is kept in memory."""
_TRAINED = 0.4  # of fewer rows
_RARE = 50  # of a rare class are trained on, if that is not more than this part of it
_LEAST = 25  # of a class
_MANY = 1000  # different labels are no classes

TRAIN, TUNE, CERTIFY = 0, 1, 2


@dataclass(frozen=True, eq=False)
class _Keys:
    """How many rows a label has, and its smallest and largest keys so far."""

    n: int
    smallest: Floats
    largest: Floats

    @classmethod
    def of(cls, keys: Floats) -> _Keys:
        return cls(len(keys), _ends(keys, MOST_CERTIFYING), -_ends(-keys, MOST_TRAINED))

    @classmethod
    def merged(cls, parts: list[_Keys]) -> _Keys:
        smallest = np.concatenate([one.smallest for one in parts])
        largest = np.concatenate([one.largest for one in parts])
        n = sum(one.n for one in parts)
        return cls(n, _ends(smallest, MOST_CERTIFYING), -_ends(-largest, MOST_TRAINED))


def _ends(keys: Floats, most: int) -> Floats:
    """The smallest of some keys."""
    return keys if len(keys) <= most else np.partition(keys, most)[:most]


_Label = tuple[bool, Any]  # whether it is a Boolean: True is not 1 here


def _draw_block(number: int, y: Any, seed: int) -> dict[_Label, _Keys]:
    """The labels of a block, with their rows' keys."""
    labels, keys = _labels.natural(y), _keys(seed, number, len(y))
    if labels.ndim != 1:
        raise ValueError(f"{OWNER} needs one label for each row; got shape {labels.shape}.")
    known: list[Any] = _labels.union([("y", labels)]).tolist()
    _check_many(len(known))
    return {(isinstance(one, bool), one): _Keys.of(keys[labels == one]) for one in known}


def _drawn_together(parts: list[dict[_Label, _Keys]]) -> dict[_Label, _Keys]:
    found: dict[_Label, list[_Keys]] = {}
    for part in parts:
        for label, keys in part.items():
            found.setdefault(label, []).append(keys)
    _check_many(len(found))
    return {label: _Keys.merged(keys) for label, keys in found.items()}


def _check_many(n: int) -> None:
    if n > _MANY:
        raise ValueError(f"{OWNER} needs labels of classes; got more than {_MANY} different ones.")


def _keys(seed: int, number: int, n: int) -> Floats:
    return np.random.default_rng([seed, number]).random(n)


@dataclass(frozen=True, eq=False)
class Draw:
    """The rows of a collection, with the keys that roles are given by.

    Attributes
    ----------
    blocks : Blocks
        The rows and their labels.
    classes : ndarray
        The labels.
    seed : int
        Of the keys.
    keys : tuple
        Of each class.
    """

    blocks: Blocks
    classes: NDArray[Any]
    seed: int
    keys: tuple[_Keys, ...]

    @classmethod
    def of(cls, X: Any, y: Any, random_state: Any) -> Draw:
        """Look at the labels, in one pass over them."""
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        blocks = Blocks.of(OWNER, X, y=y)
        alone = Blocks(tuple((part[1],) for part in blocks.parts), 1, OWNER)
        found = alone.reduce(_draw_block, _drawn_together, seed, numbered=True)
        classes = _labels.union([("y", _labels.natural([label for _, label in found]))])
        by_label = {label: keys for (_, label), keys in found.items()}
        return cls(blocks, classes, seed, tuple(by_label[one] for one in classes.tolist()))

    @property
    def sizes(self) -> Ints:
        """How many rows each class has."""
        return np.array([one.n for one in self.keys])

    def positive(self, given: Any) -> Any:
        """The positive class; there have to be two classes."""
        if len(self.classes) < 2:
            raise ValueError(
                f"{OWNER} needs samples of at least two classes; got one class, "
                f"{_labels.plain(self.classes[0])!r}."
            )
        if len(self.classes) > 2:
            raise ValueError(
                f"{OWNER} needs two classes in a Dask collection; got {len(self.classes)}: "
                f"{_labels.shown(self.classes)}. margrave.scale.sample draws rows into memory, "
                "where more classes are steered."
            )
        return check_positive(given, self.classes, OWNER)

    def trained(self) -> Roles:
        """Roles where nothing is steered: as many rows as may be are trained on."""
        share = min(1.0, MOST_TRAINED / int(self.sizes.sum()))
        counts = np.maximum((share * self.sizes).astype(np.int64), np.minimum(self.sizes, 2))
        return self._roles(counts, np.zeros_like(counts))

    def shared(self, certify: float, by_class: bool = False) -> Roles:
        """Roles where a share of the rows certifies.

        Parameters
        ----------
        certify : float
            The share.
        by_class : bool, default=False
            Where that is too many rows: whether a rare class may certify with its whole share, so
            that only the other gives rows up. By default both do, and keep their proportion.
        """
        sizes, n = self.sizes, int(self.sizes.sum())
        wanted = np.round(certify * sizes).astype(np.int64)
        most = np.maximum(MOST_CERTIFYING // 2, MOST_CERTIFYING - (wanted.sum() - wanted))
        certifying = np.minimum(wanted, most)
        apart = by_class and bool((certifying < wanted).any())
        if not apart:
            certifying = np.round(min(certify, MOST_CERTIFYING / n) * sizes).astype(np.int64)
        share = min(_TRAINED, (1 - certify) / 2)
        rare = np.minimum((share * sizes).astype(np.int64), _RARE)
        training = np.maximum((min(share, MOST_TRAINED / n) * sizes).astype(np.int64), rare)
        training[sizes.argmax()] -= max(int(training.sum()) - MOST_TRAINED, 0)
        small = int(sizes.argmin())
        left = int(sizes[small] - training[small] - certifying[small])
        if sizes[small] < _LEAST or training[small] < 10 or left < 2:
            raise ValueError(
                f"{OWNER} needs at least {_LEAST} rows of each class in a Dask collection to "
                "train, tune and certify on, and more if certify is more than a fifth; got "
                f"{sizes[small]} of {_labels.plain(self.classes[small])!r}."
            )
        return self._roles(training, certifying, apart)

    def _roles(self, training: Ints, certifying: Ints, apart: bool = False) -> Roles:
        low = [_edge(one.smallest, n) for one, n in zip(self.keys, certifying, strict=True)]
        high = [-_edge(-one.largest, n) for one, n in zip(self.keys, training, strict=True)]
        counts = np.stack([training, self.sizes - training - certifying, certifying])
        return Roles(self.classes, self.seed, np.array(low), np.array(high), counts, apart)


def _edge(keys: Floats, n: int) -> float:
    """The n-th smallest key."""
    return float(np.partition(keys, n - 1)[n - 1]) if n else -np.inf


@dataclass(frozen=True, eq=False)
class Roles:
    """The role of every row.

    Attributes
    ----------
    classes : ndarray
        The labels.
    seed : int
        Of the keys.
    low, high : ndarray of shape (k,)
        Keys up to the one certify, from the other on they are trained on.
    counts : ndarray of shape (3, k)
        How many rows of each class are trained on, tuned on, and certify.
    apart : bool
        Whether the classes certify in another proportion than they have.
    """

    classes: NDArray[Any]
    seed: int
    low: Floats
    high: Floats
    counts: Ints
    apart: bool = False

    def of(self, number: int, y: Any) -> tuple[Ints, Codes]:
        """The roles of a block's rows, and their classes."""
        codes = _labels.encode(y, self.classes, "y")
        keys = _keys(self.seed, number, len(codes))
        roles = np.where(keys >= self.high[codes], TRAIN, TUNE)
        return np.where(keys <= self.low[codes], CERTIFY, roles), codes

    @property
    def parts(self) -> dict[str, int]:
        """How many rows have which role."""
        train, tune, certify = self.counts.sum(axis=1).tolist()
        return {"train": train, "tune": tune, "certify": certify}


@dataclass(frozen=True, eq=False)
class Drawn:
    """Scored rows that are to certify, with the keys that they are drawn by."""

    keys: Floats
    scores: Floats
    codes: Codes

    @classmethod
    def merged(cls, parts: list[Drawn]) -> Drawn:
        """Those with the smallest keys, in the order of the rows."""
        keys = np.concatenate([one.keys for one in parts])
        scores = np.concatenate([one.scores for one in parts])
        codes = np.concatenate([one.codes for one in parts])
        if len(keys) > MOST_CERTIFYING:
            at = np.sort(np.argpartition(keys, MOST_CERTIFYING)[:MOST_CERTIFYING])
            keys, scores, codes = keys[at], scores[at], codes[at]
        return cls(keys, scores, codes)


def draw_rows(scores: Any, y: Any, classes: NDArray[Any], owner: str) -> tuple[Floats, Codes]:
    """Scores of Dask and their classes in memory: all rows, or as many as may certify.

    Those are drawn by keys of seed 0, whatever their classes: the same rows every time.
    """
    blocks = Blocks.of(owner, scores, y=y)
    found = blocks.reduce(_with_keys, Drawn.merged, classes, f"{owner}: y", numbered=True)
    return found.scores, found.codes


def _with_keys(number: int, scores: Floats, y: Any, classes: NDArray[Any], name: str) -> Drawn:
    keys = _keys(0, number, len(scores))
    return Drawn.merged([Drawn(keys, np.asarray(scores), _labels.encode(y, classes, name))])
