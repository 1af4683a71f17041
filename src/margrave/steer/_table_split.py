"""Check a table, and split its rows into sets for training, tuning and certification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._errors import ParameterError
from margrave._indexing import select_rows
from margrave._messages import name_class
from margrave._typing import Codes
from margrave._validation import check_labels
from margrave.confusion import Confusion, Preference
from margrave.steer._copies import Copies, find_copies
from margrave.steer._planned_split import (
    FRACTIONS,
    MAX_PLANNED,
    TYPICAL,
    LearningCurve,
    SplitPlan,
    Trial,
    largest_sizes,
    limits_by_class,
    plan_fractions,
    plan_sizes,
)
from margrave.steer._row_hashes import (
    AUTO,
    GROUP,
    INDEPENDENT,
    NEAR,
    ONE_OF_CLASS,
    ONE_OF_GROUP,
    ROW,
    RowHashes,
    UsedRows,
    one_of_each,
)
from margrave.steer._split import (
    LatestDraw,
    RandomDraw,
    Split,
    SplitError,
    SplitSizes,
    certification_fraction,
    make_split,
    split_rows,
    time_folds,
    tuning_folds,
    with_class,
    without_copies,
)
from margrave.table import Finding, TableEncoder, find_roles

_MIN_PER_CLASS = 10
DUPLICATES = (AUTO, GROUP, NEAR, INDEPENDENT)


class GroupsWarning(UserWarning):
    """Rows of a table may belong together, and nothing keeps them so.

    A column looks like the name of a patient, customer or device with several rows. Unless these
    rows are independent all the same, pass the column as `groups`, without it in X.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import pandas as pd
    >>> from margrave.steer import Dialog, GroupsWarning
    >>> rng = np.random.default_rng(0)
    >>> patients = np.arange(300) // 3
    >>> X = pd.DataFrame({"patient_id": patients, "sugar": rng.normal(size=300)})
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", GroupsWarning)
    ...     try:
    ...         Dialog.from_data(X, patients % 2)
    ...     except GroupsWarning as warning:
    ...         print(str(warning).partition(":")[0])
    'patient_id' has 3.0 rows for each of 100 values
    """


def check_class_labels(X: Any, y: ArrayLike, owner: str) -> NDArray[Any]:
    """Return the labels if there is one for each sample, and at least two classes."""
    labels = check_labels(X, y, owner)
    classes = np.unique(labels)
    if len(classes) < 2:
        only = _labels.plain(classes[0])
        raise SplitError(
            f"{owner} needs y with at least two classes; got one class, {name_class(only)}.",
            code="one_class",
            label=only,
        )
    return labels


def check_duplicates(duplicates: Any, owner: str, allowed: Sequence[str] = DUPLICATES) -> str:
    """Check the parameter `duplicates`, and return it."""
    if not isinstance(duplicates, str) or duplicates not in allowed:
        wanted = f"one of {', '.join(map(repr, allowed))}"
        raise ParameterError.of(owner, "duplicates", wanted, duplicates)
    return duplicates


def check_sizes(classes: NDArray[Any], codes: Codes, distinct: Codes, owner: str) -> None:
    """Raise an error if a class has too few samples to train, tune and certify on."""
    sizes, rows = (np.bincount(one, minlength=len(classes)) for one in (codes[distinct], codes))
    if sizes.min() < _MIN_PER_CLASS:
        least = sizes.argmin()
        label = _labels.plain(classes[least])
        n_copies = int(rows[least] - sizes[least])
        raise SplitError(
            f"{owner} needs at least {_MIN_PER_CLASS} samples of each class to train, tune and "
            f"certify on; got {sizes.min()} of {name_class(label)}."
            + (_COPIES_HINT if rows[least] >= _MIN_PER_CLASS else ""),
            code="too_few_samples",
            label=label,
            n=int(sizes.min()),
            needed=_MIN_PER_CLASS,
            n_copies=n_copies,
        )


def check_one_per_sample(values: ArrayLike, n: int, name: str, owner: str) -> NDArray[Any]:
    """Return an array with an entry for each sample, none of them missing."""
    array = np.asarray(values)
    if array.dtype == object and not _labels.has_missing(array):
        array = array.astype(str)  # entries of mixed types
    if array.shape != (n,):
        raise ParameterError(
            f"{owner} needs {name} with one entry for each of the {n} samples; "
            f"got shape {array.shape}.",
            parameter=name,
            allowed=f"one entry for each of the {n} samples",
            received=array.shape,
        )
    missing = np.isnat(array) if array.dtype.kind in "mM" else np.array(_labels.has_missing(array))
    if missing.any():
        raise ParameterError(
            f"{owner} needs {name} without missing entries; got at least one.",
            parameter=name,
            allowed="entries that are not missing",
            received=None,
        )
    return array


def check_positive(positive: Any, classes: NDArray[Any], owner: str) -> Any:
    """Return the positive class; by default the second of two, None for more classes."""
    if positive is None:
        return _labels.plain(classes[1]) if len(classes) == 2 else None
    if positive not in classes.tolist():
        raise ParameterError.of(owner, "positive", f"one of {_labels.shown(classes)}", positive)
    return classes.tolist()[classes.tolist().index(positive)]


@dataclass(frozen=True, eq=False)
class TableSplit:
    """The labels of a table, and the split of its rows.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        The labels.
    codes : ndarray of shape (n_samples,)
        Positions of the labels in `classes`.
    classes : ndarray
        The classes.
    positive : label or None
        The positive class.
    groups, time : ndarray of shape (n_samples,) or None
        The group and the time of each sample.
    parts : Split
        Which rows are for training, tuning and certification.
    rows : RowHashes
        The hashes of all rows.
    used : UsedRows
        The rows for training and tuning.
    copies : Copies
        The copies among the rows.
    equal : ndarray of shape (n_samples,) or None
        The set of copies of each sample; None if there are none, or rows are independent.
    plan : SplitPlan or None
        How the certification set was planned.
    findings : tuple of Finding
        Columns that number the rows, or whose rows may belong together although no groups keep
        them so.
    """

    labels: NDArray[Any]
    codes: Codes
    classes: NDArray[Any]
    positive: Any
    groups: NDArray[Any] | None
    time: NDArray[Any] | None
    parts: Split
    rows: RowHashes
    used: UsedRows
    copies: Copies
    equal: Codes | None
    plan: SplitPlan | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def learned(self) -> Codes:
        """Positions of the training samples."""
        return self.parts.build[self.parts.training]

    @property
    def tuning(self) -> Codes:
        """Positions of the tuning set."""
        return self.parts.build[self.parts.held]

    @property
    def sizes(self) -> SplitSizes:
        """The number of samples in each set."""
        parts, k = self.parts, len(self.classes)
        by_class = np.bincount(self.codes[parts.certify], minlength=k).tolist()
        n_used = len(np.unique(parts.build)) + len(parts.certify)
        return SplitSizes(
            len(parts.training),
            len(parts.held),
            len(parts.certify),
            len(self.labels) - n_used,
            dict(zip(self.classes.tolist(), by_class, strict=True)),
            self.copies.n_equal,
            self.copies.n_near,
            self.notes,
            self.plan,
        )

    @property
    def one_of(self) -> str:
        """What the certification set has one sample of each of."""
        if self.groups is None:
            return ROW
        return ONE_OF_CLASS if self.plan is not None and self.plan.by_class else ONE_OF_GROUP

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about copies and other rows that belong together, for a certificate."""
        notes = self.copies.notes(self.used.duplicates, self.classes)
        return (*notes, *(finding.note for finding in self.findings))

    def tuning_folds(self) -> list[tuple[Codes, Codes]]:
        """Return folds of the tuning set, in time order if there is a time."""
        at = self.tuning
        groups, time, equal = (
            None if of is None else of[at] for of in (self.groups, self.time, self.equal)
        )
        if time is not None:
            return time_folds(self.labels[at], time, groups, equal)
        return tuning_folds(self.labels[at], groups, equal)


def split_table(
    X: Any,
    y: ArrayLike,
    *,
    certify: Any = "auto",
    guarantee: Preference | None = None,
    delta: float = 0.05,
    positive: Any = None,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    tune: Any = None,
    duplicates: str = AUTO,
    encoded: bool = True,
    random_state: Any = None,
) -> TableSplit:
    """Check a table and split its rows; members that are not `encoded` see identifiers too."""
    owner = "Dialog.from_data"
    labels = check_class_labels(X, y, owner)
    classes, codes = np.unique(labels, return_inverse=True)
    n, all_near = len(labels), check_duplicates(duplicates, owner) == NEAR
    groups = None if groups is None else check_one_per_sample(groups, n, "groups", owner)
    copies = find_copies(X, codes, groups, encoded=encoded, all_near=all_near)
    duplicates = copies.resolve(duplicates)
    together = duplicates != INDEPENDENT
    used = UsedRows.none_of(X, duplicates, copies.left_out if together else ())
    rows = used.hash(X)
    distinct = one_of_each(copies.sets, 0) if together else np.arange(n)
    check_sizes(classes, codes, distinct, owner)
    positive = check_positive(positive, classes, owner)
    time = None if time is None else check_one_per_sample(time, n, "time", owner)
    if certify is not None and not isinstance(certify, tuple):
        copies.check(duplicates, classes, SplitError)
    equal = copies.sets_if_any if together else None
    if tune is not None and (not isinstance(tune, float) or not 0 < tune < 1):
        raise ParameterError.of(owner, "tune", "None or a fraction in (0, 1)", tune)
    planned: tuple[SplitPlan, Split] | None = None
    if guarantee is not None and isinstance(certify, str) and certify == "auto":
        table = _Table(labels, codes, classes, positive, groups, time, equal)
        planned = _plan_split(X, table, guarantee, delta, tune, random_state)
    plan, parts = (None, None) if planned is None else planned
    if parts is None:
        fraction = certification_fraction(
            None if isinstance(certify, tuple) and len(certify) == 2 else certify,
            guarantee,
            np.bincount(_counted(codes, distinct, groups, certify), minlength=len(classes)),
            tuple(classes.tolist()),
            positive,
            delta,
        )
        parts = split_rows(labels, fraction, groups, time, random_state, tune, equal)
    used = used.with_rows(rows[parts.build])
    kinds = ("identifier",) if groups is not None else ("identifier", "entity")
    findings = tuple(finding for finding in find_roles(X, labels) if finding.kind in kinds)
    return TableSplit(
        labels,
        codes,
        classes,
        positive,
        groups,
        time,
        parts,
        rows,
        used,
        copies,
        equal,
        plan,
        findings,
    )


def _counted(codes: Codes, distinct: Codes, groups: NDArray[Any] | None, certify: Any) -> Codes:
    """Return the classes of the samples that a certification set can be drawn from."""
    if groups is not None and isinstance(certify, str):
        return codes[np.unique(groups, return_index=True)[1]]  # one sample of each group
    return codes[distinct]


def _make_draw(table: _Table, random_state: Any, each_class: bool) -> RandomDraw | LatestDraw:
    """Make what draws a certification set from a table: at random, or the latest rows.

    With groups it has one row of each, or one of `each_class`.
    """
    codes, time, equal = table.codes, table.time, table.equal
    rows = np.arange(len(codes))
    if table.groups is None and time is None:
        return RandomDraw.of(codes, rows if equal is None else equal, random_state)
    groups = None if table.groups is None else np.unique(table.groups, return_inverse=True)[1]
    alone = np.ones(len(codes), dtype=bool)
    if equal is not None:
        # A row cannot be in the certification set if a copy of it may be there or be trained on.
        units = rows if groups is None else with_class(groups, codes) if each_class else groups
        pairs = np.unique(np.column_stack([equal, units]), axis=0)
        alone = np.bincount(pairs[:, 0])[equal] == 1
    if time is not None:
        each_class = each_class and groups is not None
        return LatestDraw(codes, time, alone, groups, each_class, random_state)
    draw = RandomDraw.of(codes, rows if groups is None else groups, random_state, each_class)
    return replace(draw, order=draw.order[alone[draw.order]])


@dataclass(frozen=True, eq=False)
class _Table:
    """What is known about the rows of a table; attributes as in `TableSplit`."""

    labels: NDArray[Any]
    codes: Codes
    classes: NDArray[Any]
    positive: Any
    groups: NDArray[Any] | None
    time: NDArray[Any] | None
    equal: Codes | None


def _plan_split(
    X: Any,
    table: _Table,
    guarantee: Preference,
    delta: float,
    tune: float | None,
    random_state: Any,
) -> tuple[SplitPlan, Split] | None:
    """Plan the certification set for a guarantee, on samples outside the largest one.

    None if it cannot be planned: the guarantee limits counts, whose meaning depends on the split;
    there are too few groups or times; or X is no table and all classes have a part in the
    guarantee.
    """
    codes, groups, positive = table.codes, table.groups, table.positive
    began, names, sizes = perf_counter(), tuple(table.classes.tolist()), np.bincount(codes)
    if guarantee.in_rates(Confusion(np.diag(sizes), names, positive)) != guarantee:
        return None
    limits = limits_by_class(guarantee, sizes, names, positive, delta)
    draw = _make_draw(table, random_state, each_class=bool(limits))
    if min(draw.available) < 1:
        return None
    largest = largest_sizes(limits, draw) if limits else draw.fraction(FRACTIONS[-1])
    if min(largest) < 1:
        return None
    trial = _run_trial(X, draw.rows(largest)[0], codes, groups)
    if limits:
        curve = TYPICAL if trial is None else LearningCurve.of(trial, next(iter(limits)))
        plan = plan_sizes(guarantee, limits, draw, names, 1 - delta, curve)
    elif trial is not None:
        plan = plan_fractions(guarantee, trial, draw, names, positive, 1 - delta)
    else:
        return None
    build, certify = draw.rows(list(plan.chosen.certify_by_class.values()))
    try:
        certify = without_copies(certify, build, table.equal, random_state)
        parts = make_split(
            table.labels, build, certify, groups, table.time, random_state, tune, table.equal
        )
    except SplitError:  # too few groups or times are left
        return None
    return replace(plan, seconds=perf_counter() - began), parts


def _run_trial(X: Any, at: Codes, codes: Codes, groups: NDArray[Any] | None) -> Trial | None:
    """Train logistic regressions on some rows, at most a few thousand.

    None if X is no table, or if the rows have too few samples of a class, or too few groups.
    """
    at = np.random.RandomState(0).permutation(at)[:MAX_PLANNED]
    units = at if groups is None else np.unique(groups[at], return_inverse=True)[1]
    for code in range(codes.max() + 1):
        if len(np.unique(units[codes[at] == code])) < _MIN_PER_CLASS:
            return None
    rows, groups = select_rows(X, at), None if groups is None else groups[at]
    try:
        encoded = rows.tocsr() if hasattr(rows, "tocsr") else TableEncoder().fit_transform(rows)
    except (TypeError, ValueError):  # such as texts, which only the user's own members can read
        return None
    return Trial.run(encoded, codes[at], groups)


_COPIES_HINT = (
    " Copies count once; if equal rows are independent observations, set duplicates='independent'."
)
