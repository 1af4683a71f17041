"""Who sees which samples: what is trained and tuned on, and what is kept for the certificate.

Certify samples are shared with nothing. Training and tuning share the rest by cross-fitting: what
the members say about a sample comes from members trained without it; or a part of the rest is kept
apart to tune on. Samples that belong together (groups) stay together, and with a time the certify
samples are the latest and members are judged on what came after what they were trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, train_test_split
from sklearn.utils import check_random_state

from margrave import _labels
from margrave._typing import Codes
from margrave.confusion import Confusion, Preference
from margrave.steer._order_statistic import one_sided_bounds, samples_needed

FOLDS = 5
_USUAL, _MOST = 0.2, 0.4
_IN_ONE_GROUP = "Steering needs samples of each class in several groups; all of a class are in one."
# The bare number of samples supports a promise only if none of them is wrong.
_ROOM = 3


@dataclass(frozen=True, eq=False)
class Split:
    """Positions of samples by their role.

    Attributes
    ----------
    build : ndarray
        Trained and tuned on.
    certify : ndarray
        Kept for the certificate.
    folds : list of (training, held out)
        Positions within ``build``; none where a part is kept apart.
    apart : ndarray or None
        Positions within ``build`` that are tuned on and not trained on; None if the folds share.
    """

    build: Codes
    certify: Codes
    folds: list[tuple[Codes, Codes]]
    apart: Codes | None = None

    @property
    def training(self) -> Codes:
        """Positions within ``build`` that are trained on."""
        everyone = np.arange(len(self.build))
        return everyone if self.apart is None else np.setdiff1d(everyone, self.apart)

    @property
    def held(self) -> Codes:
        """Positions within ``build`` that are tuned on: kept apart, or held out by some fold."""
        if self.apart is not None:
            return self.apart
        return np.sort(np.concatenate([held for _, held in self.folds]))


def check_fraction(share: float, sizes: NDArray[np.intp], name: str = "certify") -> None:
    """Refuse a share that leaves a class without samples on one side."""
    smallest = int(sizes.min())
    if share > 0 and not 1 <= round(share * smallest) <= smallest - 2:
        raise ValueError(
            f"Dialog.from_data needs {name} to leave samples of every class on both sides; "
            f"got {share:g} of a class with {smallest}."
        )


def _certify_share(
    certify: Any,
    guarantee: Preference | None,
    codes: Codes,
    labels: Any,
    positive: Any,
    delta: float,
) -> float:
    """As `certification_fraction`, of samples with these codes."""
    counts = np.bincount(codes, minlength=len(labels))
    return certification_fraction(certify, guarantee, counts, labels, positive, delta)


def certification_fraction(
    certify: Any,
    guarantee: Preference | None,
    counts: NDArray[np.int64],
    labels: Any,
    positive: Any,
    delta: float,
) -> float:
    """The share of the samples (of which one in each group certifies) to keep for the certificate.

    "auto" is a fifth, or as much as the promise needs with some room, up to two fifths.
    """
    if certify is None:
        return 0.0
    if not isinstance(certify, str) or certify != "auto":
        if isinstance(certify, bool) or not isinstance(certify, float) or not 0 < certify < 1:
            raise ValueError(
                "Dialog.from_data needs certify to be 'auto', a share in (0, 1), None or (X, y); "
                f"got {certify!r}."
            )
        check_fraction(certify, counts)
        return certify
    share = _USUAL
    if guarantee is not None:
        matrix = Confusion(np.diag(counts), labels, positive)
        bounds = one_sided_bounds(guarantee.in_rates(matrix), matrix) if len(labels) == 2 else []
        for bound, rows, _ in bounds:
            limit = float(bound.limit if bound.at_most else 1 - bound.limit)
            least = samples_needed(limit, delta / len(bounds))
            share = max(share, _ROOM * (least or 0) / max(int(counts[rows].sum()), 1))
    return min(share, _MOST)


def rates_within_classes(
    guarantee: Preference | None, counts: NDArray[np.int64], labels: Any, positive: Any
) -> bool:
    """Whether all that is promised are shares within one of two classes, by order statistics.

    Such promises do not depend on how many samples of each class certify.
    """
    if guarantee is None or len(labels) != 2:
        return False
    matrix = Confusion(np.diag(counts), labels, positive)
    bounds = one_sided_bounds(guarantee.in_rates(matrix), matrix)
    return bool(bounds) and all(int(rows.sum()) == 1 for _, rows, _ in bounds)


def split_rows(
    y: NDArray[Any],
    share: float,
    groups: NDArray[Any] | None,
    time: NDArray[Any] | None,
    random_state: Any,
    tune: float | None = None,
) -> Split:
    """Build and certify part, and folds of the build part, or a share of it to tune on."""
    n = len(y)
    if time is not None:
        later = _latest_rows(time, share)
        build, certify = np.flatnonzero(~later), np.flatnonzero(later)
        if len(np.unique(y[build])) < len(np.unique(y)):
            raise ValueError(
                "Steering by time needs samples of each class before the latest, which certify; "
                "there are too few different times, or a class came late."
            )
        if tune is not None:
            return Split(build, certify, [], _tuning_part(y[build], tune, None, time[build], None))
        return Split(build, certify, _forward_folds(y[build], time[build]))
    build, certify = np.arange(n), np.arange(0)
    if share > 0 and groups is None:
        build, certify = train_test_split(
            build, test_size=share, stratify=y, random_state=random_state
        )
    elif share > 0 and groups is not None:
        build, certify = _split_groups(y, share, groups, check_random_state(random_state))
    build, certify = np.sort(build), np.sort(certify)
    of_build = None if groups is None else groups[build]
    if tune is not None:
        return Split(build, certify, [], _tuning_part(y[build], tune, of_build, None, random_state))
    return Split(build, certify, tuning_folds(y[build], of_build))


def _latest_rows(time: NDArray[Any], share: float) -> NDArray[np.bool_]:
    """The latest share of samples; those of one time stay together."""
    if share == 0:
        return np.zeros(len(time), dtype=bool)
    first = np.sort(time)[len(time) - max(round(len(time) * share), 1)]
    return np.asarray(time >= first)


def _tuning_part(
    y: NDArray[Any],
    share: float,
    groups: NDArray[Any] | None,
    time: NDArray[Any] | None,
    random_state: Any,
) -> Codes:
    """A share of the samples to tune on: the latest, or with the classes' shares, in whole groups.

    There have to be samples of every class to train on, and two to tune on.
    """
    classes, codes = np.unique(y, return_inverse=True)
    sizes = np.bincount(codes)
    if time is not None:
        apart = np.flatnonzero(_latest_rows(time, share))
    elif groups is not None:
        apart = _whole_groups(codes, share, groups, check_random_state(random_state))
    else:
        check_fraction(share, sizes, "tune")
        _, apart = train_test_split(
            np.arange(len(y)), test_size=share, stratify=y, random_state=random_state
        )
    tuned = np.bincount(codes[apart], minlength=len(classes))
    for label, n, n_apart in zip(classes, sizes.tolist(), tuned.tolist(), strict=True):
        if n_apart < 2 or n_apart == n:
            raise ValueError(
                "Dialog.from_data needs tune to leave samples of every class to train on, and two "
                f"to tune on; with {share:g} it is {n - n_apart} and {n_apart} of "
                f"{_labels.plain(label)!r}."
            )
    return np.sort(apart)


def _whole_groups(
    codes: Codes, share: float, groups: NDArray[Any], random: np.random.RandomState
) -> Codes:
    """Groups that together are about a share of each class.

    Large groups first, in a drawn order among equals: each is taken if that comes nearer.
    """
    names, which = np.unique(groups, return_inverse=True)
    counts = np.zeros((len(names), codes.max() + 1))
    np.add.at(counts, (which, codes), 1)
    total = counts.sum(axis=0)
    drawn = random.permutation(len(names))
    order = drawn[np.argsort(-counts[drawn].sum(axis=1), kind="stable")]
    missing, taken = share * total, np.zeros(len(names), dtype=bool)
    for group in order.tolist():
        left = missing - counts[group]
        if (left**2 / total).sum() < (missing**2 / total).sum():
            missing, taken[group] = left, True
    return np.flatnonzero(taken[which])


def tuning_folds(y: NDArray[Any], groups: NDArray[Any] | None = None) -> list[tuple[Codes, Codes]]:
    """Folds with the classes' shares, groups kept together; fewer if a class is small."""
    classes, sizes = np.unique(y, return_counts=True)
    n_folds = min(FOLDS, int(sizes.min()))
    if groups is not None:
        n_folds = min(n_folds, len(np.unique(groups)))
    if sizes.min() < 2:
        raise ValueError(
            "Steering needs at least two tuning samples of each class; "
            f"{_labels.plain(classes[sizes.argmin()])!r} has {sizes.min()}."
        )
    if n_folds < 2:
        raise ValueError("Steering needs samples in at least two groups; got one.")
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    splitter = kind(n_folds, shuffle=True, random_state=0)
    folds = list(splitter.split(y, y, groups))
    for training, held in folds:
        if len(np.unique(y[training])) < len(classes) or not len(held):
            raise ValueError(_IN_ONE_GROUP)
    return folds


def _forward_folds(y: NDArray[Any], time: NDArray[Any]) -> list[tuple[Codes, Codes]]:
    """Folds that hold out what came after what is trained on; the first part is never held out."""
    block = _blocks(time, FOLDS + 1)
    folds = []
    for i in range(1, block.max(initial=0) + 1):
        training, held_out = np.flatnonzero(block < i), np.flatnonzero(block == i)
        if len(np.unique(y[training])) == len(np.unique(y)):
            folds.append((training, held_out))
    held = [y[at] for _, at in folds]
    if not held or len(np.unique(np.concatenate(held))) < len(np.unique(y)):
        raise ValueError(
            "Steering by time needs samples of each class early and late; those of a class are "
            "at one end."
        )
    return folds


def _blocks(time: NDArray[Any], n_blocks: int) -> Codes:
    """The number of the block of time each sample is in, in order; one time is in one block."""
    ordered = np.sort(time)
    ends = np.unique(ordered[np.arange(1, n_blocks) * len(time) // n_blocks])
    block = np.searchsorted(ends, time, side="right")
    return np.unique(block, return_inverse=True)[1]


def time_folds(y: NDArray[Any], time: NDArray[Any]) -> list[tuple[Codes, Codes]]:
    """Folds that hold out one block of time each, as long as all classes are in the others."""
    block = _blocks(time, FOLDS)
    folds = [(np.flatnonzero(block != i), np.flatnonzero(block == i)) for i in np.unique(block)]
    if len(folds) < 2 or any(len(np.unique(y[a])) < len(np.unique(y)) for a, _ in folds):
        return tuning_folds(y)
    return folds


def _split_groups(
    y: NDArray[Any], share: float, groups: NDArray[Any], random: np.random.RandomState
) -> tuple[Codes, Codes]:
    """A share of the groups, drawn, with one sample of each to certify.

    Samples of a group are not independent, whatever their classes.
    """
    names = random.permutation(np.unique(groups))
    if len(names) < 2:
        raise ValueError("Steering needs samples in at least two groups; got one.")
    n_apart = min(max(round(share * len(names)), 1), len(names) - 1)
    apart = np.isin(groups, names[:n_apart])
    build, drawn = np.flatnonzero(~apart), random.permutation(np.flatnonzero(apart))
    _, first = np.unique(groups[drawn], return_index=True)
    if len(np.unique(y[build])) < len(np.unique(y)):
        raise ValueError(_IN_ONE_GROUP)
    return build, drawn[first]
