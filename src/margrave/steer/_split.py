"""Split samples into a training set, a tuning set and a certification set.

The certification set (the calibration set of conformal methods) is used for nothing else. The other
samples are used for training and tuning by cross-fitting: the prediction for a sample comes from
members trained without it. In a large table, only the samples of one fold are used for tuning.
Alternatively, a fraction of them is only used for tuning. A group of
samples is never split. With a time, the certification set contains the latest samples, and members
predict samples that are later than those they were trained on. With both, members predict later
samples of other groups, and a group with one of the latest samples is not trained or tuned on.

The certification set has one sample of each of its groups, or one of each group and class if all
limits are on rates within a class. The samples of a class are then of different groups, and each
group that has the class counts once.

Rows with equal features may be copies of one observation. The certification set has one of them,
and none of which a copy was trained on: that would make its prediction too good, and a copy in the
certification set would count one observation twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, train_test_split
from sklearn.utils import check_random_state

from margrave import _labels
from margrave._errors import MargraveError, ParameterError
from margrave._messages import name_class
from margrave._typing import Codes
from margrave.confusion import Confusion, Preference
from margrave.steer._order_statistic import one_sided_bounds, samples_needed, supported_rate
from margrave.steer._planned_split import SplitPlan, number_of_others
from margrave.steer._row_hashes import ONE_OF_CLASS, ONE_OF_GROUP, one_of_each

FOLDS = 5
# With so many samples, and so many of each class, one of the folds is enough to tune on. On tables
# with fewer rows this costs less than 0.0005 of the AUC (`benchmarks.training`).
LARGE, LARGE_CLASS = 20_000, 5_000
_DEFAULT_FRACTION, _LARGEST_FRACTION = 0.2, 0.4
_ONE_GROUP = "Steering needs at least two groups; got one."
_CLASS_IN_ONE_GROUP = (
    "Steering needs samples of each class in several groups; all samples of a class are in one."
)
_OTHER_GROUPS = " The earlier samples have to be of other groups."
# The minimum number of samples supports a guarantee only if there is no error among them.
_SIZE_FACTOR = 3


class SplitError(MargraveError):
    """Samples that cannot be split into a training, a tuning and a certification set.

    Attributes
    ----------
    code : str
        "one_class", "too_few_samples" (of a class), "copies" (of all rows), "many_copies" (that
        the user has to decide about), "groups" or "time".
    fields : dict
        The class ``label``, its number of samples ``n`` and the number ``needed``, as far as the
        message mentions them; ``n_copies`` is the number of its samples that do not count.

    Examples
    --------
    >>> from margrave.steer import Dialog, SplitError
    >>> try:
    ...     Dialog.from_data([[1.0], [2.0], [3.0]], ["ham", "ham", "spam"])
    ... except SplitError as error:
    ...     print(error.code, error.fields)
    too_few_samples {'label': 'spam', 'n': 1, 'needed': 10, 'n_copies': 0}
    """

    __module__ = "margrave.steer"


@dataclass(frozen=True)
class SplitSizes:
    """The number of samples in each set of a split.

    Attributes
    ----------
    train : int
        Samples that the members are trained on; 0 if they were trained before.
    tune : int
        Samples of the tuning set. With out-of-fold predictions they are training samples too.
    certify : int
        Samples of the certification set.
    unused : int
        Further samples of the groups in the certification set, and copies of its rows.
    certify_by_class : dict
        The number of samples of each class in the certification set.
    copies : int
        Rows that equal an earlier row, also if an identifier or the like differs.
    near_copies : int
        Other rows that nearly equal another row; 0 if they are few.
    notes : tuple of str
        What these are and how they are counted, as the certificate describes it.
    plan : SplitPlan or None
        How the certification set was planned, if a guarantee was stated.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> X, y = load("pima", return_X_y=True)
    >>> sizes = Dialog.plan_split(X, y, guarantee="fn <= 5%", random_state=0)
    >>> sizes.tune, sizes.certify, sizes.certify_by_class
    (565, 203, {'neg': 50, 'pos': 153})
    >>> sizes.smallest_limits()
    {'neg': 0.0582, 'pos': 0.0194}
    """

    train: int
    tune: int
    certify: int
    unused: int
    certify_by_class: dict[Any, int]
    copies: int = 0
    near_copies: int = 0
    notes: tuple[str, ...] = ()
    plan: SplitPlan | None = None

    def smallest_limits(self, confidence: float = 0.95) -> dict[Any, float]:
        """Compute the smallest limit on each class's error rate that can be guaranteed.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence of the guarantee.

        Returns
        -------
        dict
            A fraction for each class, rounded up to a hundredth of a percent.
        """
        return {
            label: round(supported_rate(n, 1 - confidence) / 100, 6)
            for label, n in self.certify_by_class.items()
        }


@dataclass(frozen=True, eq=False)
class Split:
    """Positions of the samples of each set.

    Attributes
    ----------
    build : ndarray
        Positions of the samples for training and tuning.
    certify : ndarray
        Positions of the certification set.
    folds : list of (training, held out)
        Positions within ``build``, for cross-fitting: one fold for a large table; empty with a
        separate tuning set.
    tuning : ndarray or None
        Positions within ``build`` of a separate tuning set; None with cross-fitting.
    """

    build: Codes
    certify: Codes
    folds: list[tuple[Codes, Codes]]
    tuning: Codes | None = None

    @property
    def training(self) -> Codes:
        """Positions within ``build`` of the training set."""
        positions = np.arange(len(self.build))
        return positions if self.tuning is None else np.setdiff1d(positions, self.tuning)

    @property
    def held(self) -> Codes:
        """Positions within ``build`` of the tuning set: separate, or held out by the folds."""
        if self.tuning is not None:
            return self.tuning
        return np.sort(np.concatenate([held_out for _, held_out in self.folds]))


def check_fraction(fraction: float, sizes: NDArray[np.intp], name: str = "certify") -> None:
    """Raise an error if the split leaves a class without samples on one side."""
    smallest = int(sizes.min())
    if fraction > 0 and not 1 <= round(fraction * smallest) <= smallest - 2:
        raise SplitError(
            f"Dialog.from_data needs {name} to leave samples of every class on both sides of the "
            f"split; got {name}={fraction:g}, and the smallest class has {smallest:,} samples.",
            code="too_few_samples",
            parameter=name,
            n=smallest,
        )


def certification_fraction(
    certify: Any,
    guarantee: Preference | None,
    counts: NDArray[np.int64],
    labels: Any,
    positive: Any,
    delta: float,
) -> float:
    """Return the fraction of the samples (or of the groups) for the certification set.

    "auto" is a fifth, or three times what the guarantee needs at least, up to two fifths.
    """
    if certify is None:
        return 0.0
    if not isinstance(certify, str) or certify != "auto":
        if isinstance(certify, bool) or not isinstance(certify, float) or not 0 < certify < 1:
            allowed = "'auto', a fraction in (0, 1), None or (X, y)"
            raise ParameterError.of("Dialog.from_data", "certify", allowed, certify)
        check_fraction(certify, counts)
        return certify
    fraction = _DEFAULT_FRACTION
    if guarantee is not None:
        matrix = Confusion(np.diag(counts), labels, positive)
        bounds = one_sided_bounds(guarantee.in_rates(matrix), matrix) if len(labels) == 2 else []
        for bound, rows, _ in bounds:
            limit = float(bound.limit if bound.at_most else 1 - bound.limit)
            least = samples_needed(limit, delta / len(bounds))
            needed = _SIZE_FACTOR * (least or 0) / max(int(counts[rows].sum()), 1)
            fraction = max(fraction, needed)
    return min(fraction, _LARGEST_FRACTION)


def rates_within_classes(
    guarantee: Preference | None, counts: NDArray[np.int64], labels: Any, positive: Any
) -> bool:
    """Whether every guaranteed rate is a rate within one of two classes, by order statistics.

    Such guarantees do not depend on the class proportions of the certification set.
    """
    if guarantee is None or len(labels) != 2:
        return False
    matrix = Confusion(np.diag(counts), labels, positive)
    bounds = one_sided_bounds(guarantee.in_rates(matrix), matrix)
    return bool(bounds) and all(int(rows.sum()) == 1 for _, rows, _ in bounds)


def what_to_count(preference: Preference, codes: Codes, labels: Any, positive: Any) -> str:
    """Return what a certificate counts one sample of if there are groups."""
    sizes = np.bincount(codes, minlength=len(labels))
    within = rates_within_classes(preference, sizes, labels, positive)
    return ONE_OF_CLASS if within else ONE_OF_GROUP


def split_rows(
    y: NDArray[Any],
    fraction: float,
    groups: NDArray[Any] | None,
    time: NDArray[Any] | None,
    random_state: Any,
    tune: float | None = None,
    equal: Codes | None = None,
) -> Split:
    """Split off a certification set; the rest gets folds, or a separate tuning set.

    Parameters
    ----------
    y : ndarray of shape (n,)
        True classes.
    fraction : float
        Size of the certification set, as a fraction of the samples (or of the groups).
    groups, time : ndarray of shape (n,) or None
        The group or the time of each sample.
    random_state : int, RandomState instance or None
        Draws the samples.
    tune : float or None
        Size of a separate tuning set, as a fraction of the other samples; None for folds.
    equal : ndarray of shape (n,) or None
        The number of the set of equal rows that each sample belongs to; None if all rows differ.
    """
    build, certify = np.arange(len(y)), np.arange(0)
    if fraction > 0 and time is not None:
        build, certify = _split_latest(time, groups, fraction)
    elif fraction > 0 and groups is None:
        build, certify = _draw_rows(y, fraction, random_state, equal)
    elif fraction > 0 and groups is not None:
        build, certify = _split_groups(fraction, groups, check_random_state(random_state))
    if groups is not None:
        certify = certify[one_of_each(groups[certify], random_state)]
    certify = without_copies(certify, build, equal, random_state)
    return make_split(y, build, certify, groups, time, random_state, tune, equal)


def make_split(
    y: NDArray[Any],
    build: Codes,
    certify: Codes,
    groups: NDArray[Any] | None,
    time: NDArray[Any] | None,
    random_state: Any,
    tune: float | None = None,
    equal: Codes | None = None,
) -> Split:
    """Split the samples that are not in the certification set; parameters as in `split_rows`."""
    build, certify = np.sort(build), np.sort(certify)
    groups, time, equal = (None if of is None else of[build] for of in (groups, time, equal))
    if len(np.unique(y[build])) < len(np.unique(y)):
        if time is None:
            raise SplitError(_CLASS_IN_ONE_GROUP, code="groups")
        raise SplitError(
            "Steering by time needs samples of each class that are earlier than the "
            "certification set; there are too few different times, or a class is only in the "
            "latest samples." + ("" if groups is None else _OTHER_GROUPS),
            code="time",
        )
    if tune is not None:
        training, tuning = _split_tuning(y[build], tune, groups, time, random_state, equal)
        kept = np.sort(np.concatenate([training, tuning]))
        return Split(build[kept], certify, [], np.searchsorted(kept, np.sort(tuning)))
    if time is not None:
        return Split(build, certify, _forward_folds(y[build], time, groups))
    folds = tuning_folds(y[build], groups, equal)
    # A single fold might hold out a few groups only, which differ from the others.
    return Split(build, certify, folds[:1] if groups is None and _is_large(y[build]) else folds)


@dataclass(frozen=True, eq=False)
class RandomDraw:
    """Samples in random order, from which a number of each class is set aside.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        True classes.
    units : ndarray of shape (n,)
        The group or the set of equal rows of each sample; none is divided.
    order : ndarray
        Positions of one sample of each unit, or of each unit and class, the units in random order:
        a smaller certification set is a part of a larger one, and the sets of two classes have as
        many units in common as possible.
    """

    codes: Codes
    units: Codes
    order: Codes
    by_class = True

    @classmethod
    def of(
        cls, codes: Codes, units: Codes, random_state: Any, each_class: bool = False
    ) -> RandomDraw:
        """Draw one sample of each unit, or of each unit and class."""
        random = check_random_state(random_state)
        shuffled = random.permutation(len(codes))
        parts = with_class(units, codes) if each_class else units
        drawn = shuffled[np.unique(parts[shuffled], return_index=True)[1]]
        place = np.argsort(random.permutation(units.max() + 1))
        return cls(codes, units, drawn[np.argsort(place[units[drawn]])])

    @property
    def available(self) -> list[int]:
        """The number of samples of each class that can be drawn."""
        sizes: list[int] = np.bincount(
            self.codes[self.order], minlength=self.codes.max() + 1
        ).tolist()
        return sizes

    def complete(self, needed: Mapping[int, int]) -> list[int]:
        """Return the number of samples of each class; a few of the classes that need none."""
        return [
            needed[code] if code in needed else number_of_others(n)
            for code, n in enumerate(self.available)
        ]

    def fraction(self, fraction: float) -> list[int]:
        """Return a fraction of the samples of each class."""
        return [min(max(round(fraction * n), 1), n) for n in self.available]

    def rows(self, sizes: Sequence[int]) -> tuple[Codes, Codes]:
        """Return the positions of the other samples and of the certification set."""
        of_class = self.codes[self.order]
        certify = np.concatenate(
            [self.order[of_class == code][:size] for code, size in enumerate(sizes)]
        )
        return np.flatnonzero(~np.isin(self.units, self.units[certify])), certify


@dataclass(frozen=True, eq=False)
class LatestDraw:
    """Samples in the order of time, of which the latest are set aside.

    With groups, these are one of the latest samples of each group, or of each group and class, and
    no group has samples in both parts.

    Attributes
    ----------
    codes, time : ndarray of shape (n,)
        True classes and times.
    alone : ndarray of bool, shape (n,)
        Whether no other row, or no row of another group, equals a sample; only these certainly
        count.
    groups : ndarray of shape (n,) or None
        The group of each sample.
    by_class : bool
        Whether one sample of each group and class is set aside.
    random_state : int, RandomState instance or None
        Draws this sample among the latest ones.
    """

    codes: Codes
    time: NDArray[Any]
    alone: NDArray[np.bool_]
    groups: Codes | None = None
    by_class: bool = False
    random_state: Any = None

    @property
    def available(self) -> list[int]:
        """The number of samples of each class."""
        return self._count(np.ones(len(self.time), dtype=bool))

    @cached_property
    def _units(self) -> Codes:
        """What one sample each is set aside of: the rows, the groups, or the groups and classes."""
        if self.groups is None:
            return np.arange(len(self.codes))
        return with_class(self.groups, self.codes) if self.by_class else self.groups

    @cached_property
    def _last(self) -> NDArray[np.bool_]:
        """Which sample is the last one of each unit, among those that count."""
        last = np.zeros(len(self.time), dtype=bool)
        at = np.flatnonzero(self.alone)
        at = at[np.argsort(self.time[at], kind="stable")][::-1]
        last[at[np.unique(self._units[at], return_index=True)[1]]] = True
        return last

    def _count(self, rows: NDArray[np.bool_]) -> list[int]:
        counted = self.codes[rows & self._last]
        sizes: list[int] = np.bincount(counted, minlength=self.codes.max() + 1).tolist()
        return sizes

    @cached_property
    def _times(self) -> list[NDArray[Any]]:
        """The last times of the units of each class, in order."""
        return [
            np.sort(self.time[self._last & (self.codes == code)])
            for code in range(self.codes.max() + 1)
        ]

    def _latest(self, needed: Mapping[int, int]) -> NDArray[np.bool_]:
        """Return a mask of the latest samples that contain those that are needed, if possible."""
        first = [
            times[-min(n, len(times))]
            for times, n in ((self._times[code], n) for code, n in needed.items())
            if n > 0 and len(times)
        ]
        return np.asarray(self.time >= min(first)) if first else np.zeros(len(self.time), bool)

    def complete(self, needed: Mapping[int, int]) -> list[int]:
        """Return the number of samples of each class among the latest ones."""
        return self._count(self._latest(needed))

    def fraction(self, fraction: float) -> list[int]:
        """Return the number of samples of each class in the latest fraction."""
        latest = np.zeros(len(self.time), dtype=bool)
        latest[_split_latest(self.time, self.groups, fraction)[1]] = True
        return self._count(latest)

    def rows(self, sizes: Sequence[int]) -> tuple[Codes, Codes]:
        """Return the positions of the other samples and of the certification set."""
        latest = self._latest(dict(enumerate(sizes)))
        if self.groups is None:
            return np.flatnonzero(~latest), np.flatnonzero(latest)
        counted = np.flatnonzero(latest & self.alone)
        certify = counted[one_of_each(self._units[counted], self.random_state)]
        return np.flatnonzero(~np.isin(self.groups, self.groups[latest])), certify


def with_class(units: Codes, codes: Codes) -> Codes:
    """Return the number of the unit and class of each sample."""
    return np.asarray(units * (codes.max() + 1) + codes)


def _is_large(y: NDArray[Any]) -> bool:
    """Return whether a fold has enough samples of each class to tune on."""
    return len(y) >= LARGE and bool(np.unique(y, return_counts=True)[1].min() >= LARGE_CLASS)


def without_copies(certify: Codes, build: Codes, equal: Codes | None, random_state: Any) -> Codes:
    """Return a certification set without copies of the other rows, and one of each of its own."""
    if equal is None or not len(certify):
        return certify
    different = certify[~np.isin(equal[certify], equal[build])]
    if not len(different):
        raise SplitError(
            f"Steering needs rows for the certification set that differ from all other rows; all "
            f"{len(certify):,} equal one of them in all features. If equal rows are independent "
            "observations, set duplicates='independent'.",
            code="copies",
            n=len(certify),
        )
    return different[one_of_each(equal[different], random_state)]


def _draw_rows(
    y: NDArray[Any], fraction: float, random_state: Any, equal: Codes | None
) -> tuple[Codes, Codes]:
    """Draw a fraction of the samples, stratified by class; equal rows stay together."""
    one = np.arange(len(y)) if equal is None else one_of_each(equal, random_state)
    rest, drawn = train_test_split(
        one, test_size=fraction, stratify=y[one], random_state=random_state
    )
    if equal is None:
        return rest, drawn
    is_drawn = np.isin(equal, equal[drawn])
    return np.flatnonzero(~is_drawn), np.flatnonzero(is_drawn)


def _split_latest(
    time: NDArray[Any], groups: NDArray[Any] | None, fraction: float
) -> tuple[Codes, Codes]:
    """Split off the latest fraction of the samples, or all samples since the time at which this
    fraction of the groups still has some. Equal times and groups are not split.
    """
    last = _last_of_group(time, groups)
    ends = np.sort(last if groups is None else last[one_of_each(groups, 0)])
    first = ends[len(ends) - max(round(len(ends) * fraction), 1)]
    return np.flatnonzero(last < first), np.flatnonzero(time >= first)


def _last_of_group(values: NDArray[Any], groups: NDArray[Any] | None) -> NDArray[Any]:
    """Return for each sample the largest value in its group; without groups, its own."""
    if groups is None:
        return values
    codes, order = np.unique(groups, return_inverse=True)[1], np.argsort(values, kind="stable")
    last = np.empty(codes.max(initial=-1) + 1, dtype=values.dtype)
    last[codes[order]] = values[order]  # the last assignment remains
    return last[codes]


def _split_tuning(
    y: NDArray[Any],
    fraction: float,
    groups: NDArray[Any] | None,
    time: NDArray[Any] | None,
    random_state: Any,
    equal: Codes | None = None,
) -> tuple[Codes, Codes]:
    """Return the positions of the training set and of a separate tuning set.

    The tuning set has the latest samples, or is stratified by class. Groups and equal rows are not
    split. Every class needs one sample for training and two for tuning.
    """
    classes, codes = np.unique(y, return_inverse=True)
    sizes = np.bincount(codes)
    if time is not None:
        training, tuning = _split_latest(time, groups, fraction)
    elif groups is not None:
        tuning = _draw_whole_groups(codes, fraction, groups, check_random_state(random_state))
        training = np.setdiff1d(np.arange(len(y)), tuning)
    else:
        check_fraction(fraction, sizes, "tune")
        training, tuning = _draw_rows(y, fraction, random_state, equal)
    n_sets = [np.bincount(codes[at], minlength=len(classes)).tolist() for at in (training, tuning)]
    for label, n, n_training, n_tuning in zip(classes, sizes.tolist(), *n_sets, strict=True):
        if n_tuning < 2 or n_training < 1:
            raise SplitError(
                "Dialog.from_data needs tune to leave at least one sample of every class for "
                f"training and two for tuning; tune={fraction:g} leaves {n_training:,} and "
                f"{n_tuning:,} of {name_class(label)}.",
                code="too_few_samples",
                parameter="tune",
                label=_labels.plain(label),
                n=int(n),
            )
    return training, tuning


def _draw_whole_groups(
    codes: Codes, fraction: float, groups: NDArray[Any], random: np.random.RandomState
) -> Codes:
    """Return the samples of groups that together have about this fraction of each class.

    The search goes from large to small groups, groups of equal size in random order, and selects a
    group if that reduces the distance to the target.
    """
    names, group_codes = np.unique(groups, return_inverse=True)
    counts = np.zeros((len(names), codes.max() + 1))
    np.add.at(counts, (group_codes, codes), 1)
    total = counts.sum(axis=0)
    drawn = random.permutation(len(names))
    order = drawn[np.argsort(-counts[drawn].sum(axis=1), kind="stable")]
    missing, selected = fraction * total, np.zeros(len(names), dtype=bool)
    for group in order.tolist():
        rest = missing - counts[group]
        if (rest**2 / total).sum() < (missing**2 / total).sum():
            missing, selected[group] = rest, True
    return np.flatnonzero(selected[group_codes])


def tuning_folds(
    y: NDArray[Any], groups: NDArray[Any] | None = None, equal: Codes | None = None
) -> list[tuple[Codes, Codes]]:
    """Return stratified folds that split no groups or equal rows; fewer if a class is small."""
    if equal is not None and groups is None:
        one = one_of_each(equal, 0)
        held_out = [np.isin(equal, equal[one[at]]) for _, at in tuning_folds(y[one])]
        return [(np.flatnonzero(~held), np.flatnonzero(held)) for held in held_out]
    classes, sizes = np.unique(y, return_counts=True)
    n_folds = min(FOLDS, int(sizes.min()))
    if groups is not None:
        n_folds = min(n_folds, len(np.unique(groups)))
    if sizes.min() < 2:
        smallest = _labels.plain(classes[sizes.argmin()])
        raise SplitError(
            "Steering needs at least two samples of each class in the tuning set; "
            f"{name_class(smallest)} has {sizes.min()}.",
            code="too_few_samples",
            label=smallest,
            n=int(sizes.min()),
            needed=2,
        )
    if n_folds < 2:
        raise SplitError(_ONE_GROUP, code="groups")
    splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
    folds = list(splitter(n_folds, shuffle=True, random_state=0).split(y, y, groups))
    for training, held_out in folds:
        if len(np.unique(y[training])) < len(classes) or not len(held_out):
            raise SplitError(_CLASS_IN_ONE_GROUP, code="groups")
    return folds


def _forward_folds(
    y: NDArray[Any], time: NDArray[Any], groups: NDArray[Any] | None
) -> list[tuple[Codes, Codes]]:
    """Return folds that hold out a block of time and train on the earlier blocks.

    A group is held out in the block of its last sample, and is not trained on there.
    """
    block = _time_blocks(time, FOLDS + 1)
    last = _last_of_group(block, groups)
    folds = []
    for i in range(1, block.max(initial=0) + 1):
        training = np.flatnonzero((block < i) & (last != i))
        held_out = np.flatnonzero((block == i) & (last == i))
        if len(held_out) and len(np.unique(y[training])) == len(np.unique(y)):
            folds.append((training, held_out))
    labels = [y[held_out] for _, held_out in folds]
    if not labels or len(np.unique(np.concatenate(labels))) < len(np.unique(y)):
        raise SplitError(
            "Steering by time needs early and late samples of each class; all samples of a class "
            "are early or all are late." + ("" if groups is None else _OTHER_GROUPS),
            code="time",
        )
    return folds


def _time_blocks(time: NDArray[Any], n_blocks: int) -> Codes:
    """Return the number of the block of time of each sample; equal times are not split."""
    ordered = np.sort(time)
    ends = np.unique(ordered[np.arange(1, n_blocks) * len(time) // n_blocks])
    block = np.searchsorted(ends, time, side="right")
    return np.unique(block, return_inverse=True)[1]


def time_folds(
    y: NDArray[Any],
    time: NDArray[Any],
    groups: NDArray[Any] | None = None,
    equal: Codes | None = None,
) -> list[tuple[Codes, Codes]]:
    """Return folds that hold out one block of time each; stratified folds if a class gets lost."""
    block = _last_of_group(_time_blocks(time, FOLDS), groups)
    folds = [(np.flatnonzero(block != i), np.flatnonzero(block == i)) for i in np.unique(block)]
    n_classes = len(np.unique(y))
    if len(folds) < 2 or any(len(np.unique(y[training])) < n_classes for training, _ in folds):
        return tuning_folds(y, groups, equal)
    return folds


def _split_groups(
    fraction: float, groups: NDArray[Any], random: np.random.RandomState
) -> tuple[Codes, Codes]:
    """Draw a fraction of the groups."""
    names = random.permutation(np.unique(groups))
    if len(names) < 2:
        raise SplitError(_ONE_GROUP, code="groups")
    n_drawn = min(max(round(fraction * len(names)), 1), len(names) - 1)
    in_drawn = np.isin(groups, names[:n_drawn])
    return np.flatnonzero(~in_drawn), np.flatnonzero(in_drawn)
