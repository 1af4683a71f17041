"""Copies: rows of one observation, which may differ in an identifier, a time or a little noise.

A guarantee needs samples that no member was trained on, and a copy of a training row is none.
Copies are looked for in four ways:

1. Rows that are equal in all columns that the members use.
2. Rows that differ in one column only, or only in columns where no two rows are equal, such as an
   identifier, a time or the number of a batch. They are copies if there are more pairs of them than
   pairs that differ in one column more; by chance there are fewer.
3. Near copies: rows at a small distance from each other, compared with the tenth neighbour. How
   many there are by chance depends on the number of dimensions, which the distances reveal.
4. Synthetic rows, as oversampling makes them: they lie exactly between two rows of their class.

In a table whose columns have few values, such as a coarse score, equal rows are no copies: they are
equal by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, issparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from margrave import _labels
from margrave._errors import MargraveError
from margrave._messages import format_count, name_class
from margrave._parallel import limit_threads
from margrave._typing import Codes, Flags, Floats
from margrave.steer._row_hashes import (
    AUTO,
    GROUP,
    INDEPENDENT,
    MAX_BY_CHANCE,
    NEAR,
    Hashes,
    hash_column,
    hash_rows,
    read_columns,
)
from margrave.steer._split import SplitError
from margrave.table import guess_kind

# Rows that are equal but for a column are copies if there are so many different ones at least, and
# so many pairs for each row at most; otherwise the other columns do not identify rows.
_DISTINCT, _PAIRS = 20, 50
# Copies differ in different numbers with decimals only if they are equal in more columns, or units
# of columns that belong together, than so many for each of these.
_FACTS = 2
# Steps between the first and the last number of the rows, for each row at most; and for each number
# if some are equal, because the numbers start again.
_STEPS, _STEPS_OF_EQUAL = 10, 1.01
# Near copies are so near, compared with the tenth neighbour or with the next one. Fewer than `FEW`
# change the rates of a class by little; a user has to decide about `MANY`.
_NEAR, FEW, MANY = 0.1, 0.03, 0.25
_TENTH, _MOST_NEAR = 10, 30  # neighbours; a row has at most so many near copies
_SCALES = ((10, 20), (30, 60))  # neighbours whose distances reveal the number of dimensions
_NEIGHBOURS = 60
_RARE = 0.01  # of the rows have the same number
_HUGE = 1000  # times the distance between the quartiles of the different numbers
# Neighbours are searched for in sets of so many rows, for a sample of rows first. The rows are
# divided into such sets twice, because each time some copies are separated.
_LEAF, _SAMPLED, _TREES = 1000, 5000, 2
# Synthetic rows: the directions of two neighbours of the same class are opposite, up to a cosine,
# in at least `_COLUMNS` independent columns of mostly different numbers. A user has to decide if
# there are so many more of them than in the class with the fewest.
_OPPOSITE, _DIFFERENT, _MANY_SYNTHETIC = 1e-6, 1 / 3, 0.1
_NEIGHBOURS_OF_CLASS, _SAMPLED_OF_CLASS = 30, 200
_COLUMNS = 3  # with rare numbers, which identify a row
_SHOWN = 3  # columns in a message
# A table has few values if a row would equal so many others at least if the columns were
# independent, and no column has more values than so many.
_EQUAL_BY_CHANCE, _FEW_VALUES = 3, 25


@dataclass(frozen=True, eq=False)
class Copies:
    """The copies among the rows of a table.

    Attributes
    ----------
    sets : ndarray of shape (n_samples,)
        The number of the set of copies that each row belongs to.
    n_equal : int
        Number of rows that equal an earlier row, but for `columns`.
    n_near : int
        Number of other rows that nearly equal a row, or 0 if they may be few by chance.
    many : bool
        Whether a quarter of the rows equal others but for a column, or nearly equal others.
    columns : tuple of str
        The columns in which copies differ.
    left_out : tuple of int
        Their positions, and those of identifiers that the members do not see; none if a few rows
        are equal without them, which may be by chance.
    synthetic : (int, float) or None
        The class with the most synthetic rows, and their fraction; None if they are few.
    few_values : bool
        Whether the columns have so few values that rows are equal by chance.
    """

    sets: Codes
    n_equal: int
    n_near: int = 0
    many: bool = False
    columns: tuple[str, ...] = ()
    left_out: tuple[int, ...] = ()
    synthetic: tuple[int, float] | None = None
    few_values: bool = False

    @classmethod
    def equal(cls, hashed: Hashes) -> Copies:
        """Find rows with equal hashes only."""
        different, sets = np.unique(hashed, return_inverse=True)
        return cls(sets, len(hashed) - len(different))

    @property
    def sets_if_any(self) -> Codes | None:
        """The sets, or None if all rows differ."""
        return self.sets if self.n_equal or self.n_near else None

    def resolve(self, duplicates: str) -> str:
        """Return what equal rows are, if `duplicates` lets the table decide."""
        if duplicates != AUTO:
            return duplicates
        return INDEPENDENT if self.few_values else GROUP

    def check(
        self, duplicates: str, classes: NDArray[Any], error: Callable[..., MargraveError]
    ) -> None:
        """Raise an error if there are so many copies that the user has to decide about them."""
        set_groups = ""
        if self.synthetic is not None and duplicates != INDEPENDENT:
            found, choices = (
                f"{self._describe_synthetic(classes)} A certificate on them says little about real "
                "rows. Use rows from before the oversampling.",
                {INDEPENDENT: "count them as real rows"},
            )
        elif self.many and duplicates == GROUP:
            found, choices = (
                f"{' and '.join(self._counts())}, of {len(self.sets):,} rows. If these are copies "
                "of one observation, a certificate would be too optimistic.",
                {NEAR: "keep copies together and count them once", INDEPENDENT: "count each"},
            )
            set_groups = "pass groups or " if error is SplitError else ""
        else:
            return
        replies = " or ".join(f"{name!r} to {what}" for name, what in choices.items())
        raise error(
            f"{found} From the start, {set_groups}set duplicates={replies}, which the certificate "
            "says.",
            code="many_copies",
            found=found,
            choices=list(choices),
            n_equal=self.n_equal,
            n_near=self.n_near,
        )

    def notes(self, duplicates: str, classes: NDArray[Any]) -> tuple[str, ...]:
        """Describe the copies, for a certificate."""
        counted = (
            "these rows were kept together, and the certification set has one of each, so rates "
            "are over distinct rows."
        )
        if duplicates == INDEPENDENT:
            by_chance = "the columns have so few values that rows are equal by chance, and "
            counted = (
                f"{by_chance if self.few_values else ''}these rows count as independent "
                "observations. If they are copies of one observation, the guarantee is too "
                f"optimistic{_COUNT_ONCE if self.few_values else ''}."
            )
        counts = " and ".join(self._counts())
        notes = [f"{counts}; {counted}"] if counts else []
        if self.synthetic is not None:
            notes.append(
                f"{self._describe_synthetic(classes)} They count as real rows: on new samples the "
                "error rates may be far above the guaranteed ones."
            )
        return tuple(notes)

    def _counts(self) -> list[str]:
        """Describe how many copies there are."""
        counts = []
        if self.n_equal:
            rows = "1 row equals" if self.n_equal == 1 else f"{self.n_equal:,} rows equal"
            names = [repr(name) for name in self.columns[:_SHOWN]]
            names += [f"{len(self.columns) - _SHOWN} more"] if len(self.columns) > _SHOWN else []
            but = f" but {', '.join(names)}" if names else ""
            counts.append(f"{rows} an earlier row in all features{but}")
        if self.n_near:
            counts.append(f"{format_count(self.n_near, 'row')} nearly equal another one")
        return counts

    def _describe_synthetic(self, classes: NDArray[Any]) -> str:
        code, fraction = self.synthetic or (0, 0.0)
        return (
            f"{fraction:.0%} of the rows of {name_class(_labels.plain(classes[code]))} lie exactly "
            "between two others, as rows do that an oversampling such as SMOTE has made."
        )


@dataclass(frozen=True, eq=False)
class _Column:
    """A column of a table, and what the searches need to know about it."""

    values: NDArray[Any]
    hashed: Hashes

    @classmethod
    def of(cls, values: NDArray[Any], position: int) -> _Column:
        """Hash the values of the column at a position."""
        return cls(values, hash_column(values, position))

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def _different(self) -> tuple[NDArray[np.intp], ...]:
        """For each different value, its first row; for each row, its value; and their counts."""
        _, *different = np.unique(
            self.hashed, return_index=True, return_inverse=True, return_counts=True
        )
        return tuple(different)

    @property
    def n_different(self) -> int:
        """How many different values there are."""
        return len(self._different[0])

    @property
    def equal_by_chance(self) -> float:
        """The probability that two rows have an equal value."""
        return float(((self._different[2] / len(self)) ** 2).sum())

    @property
    def has_few_values(self) -> bool:
        """Whether there are few values; rows with many that are equal are probably copies."""
        return self.n_different <= _FEW_VALUES

    @property
    def first_equal(self) -> NDArray[np.intp]:
        """For each row, the first one with an equal value."""
        first, of, _ = self._different
        return first[of]

    @property
    def is_number(self) -> bool:
        """Whether the values are numbers; truth values and times are not."""
        return self.values.dtype.kind in "iuf"

    @property
    def has_order(self) -> bool:
        """Whether the values are numbers, truth values or times."""
        return self.values.dtype.kind in "biufmM"

    @cached_property
    def has_decimals(self) -> bool:
        """Whether there are numbers with decimals, which do not number the rows."""
        if self.values.dtype.kind != "f" or len(self._numbers) < 2:
            return False
        if (self._numbers == np.floor(self._numbers)).all():
            return False
        return not self.counts(_STEPS * len(self))  # which may be standardised

    @cached_property
    def _numbers(self) -> Floats:
        """The different numbers, sorted."""
        numbers = self.values[self._different[0]]
        return np.sort(numbers[np.isfinite(numbers)]).astype(np.float64)

    def counts(self, most: float) -> bool:
        """Return whether all numbers are multiples of a step, and `most` from first to last."""
        if len(self._numbers) < 2:
            return False
        numbers = self._numbers / np.abs(self._numbers).max()  # their differences are finite
        length, steps = numbers[-1] - numbers[0], np.diff(numbers)
        if length > most * steps.min():
            return False
        step = steps[steps < 1.5 * steps.min()].mean()  # the digits of one step are too few
        multiples = (numbers - numbers[0]) / length * np.round(length / step)
        return bool(np.allclose(multiples, np.round(multiples), rtol=0, atol=0.01))

    @cached_property
    def is_rare(self) -> Flags:
        """Which rows have a value that few others have."""
        _, of, counts = self._different
        return (counts <= max(_RARE * len(self), 1))[of]

    @cached_property
    def standardised(self) -> NDArray[np.float32]:
        """The numbers; huge ones are brought nearer, or all others would become equal."""
        values, (first, *_) = self.values, self._different
        if values.dtype.kind in "mM":
            values = np.where(np.isnat(values), np.nan, values.astype(np.int64).astype(np.float64))
        known = np.isfinite(values)
        if not known.any():
            return np.zeros(len(values), dtype=np.float32)
        numbers = np.where(known, values, 0).astype(np.float64)
        numbers /= max(np.abs(numbers).max(), np.finfo(float).tiny)
        low, middle, high = np.quantile(numbers[first][known[first]], [0.25, 0.5, 0.75])
        numbers -= middle
        if (limit := _HUGE * (high - low)) > np.finfo(float).tiny:
            numbers /= limit
            far = np.abs(numbers) > 1
            numbers[far] = np.sign(numbers[far]) * (1 + np.log(np.abs(numbers[far])))
        scale = numbers[known].std() or 1.0
        return np.where(known, numbers / scale, 0.0).astype(np.float32)


_COUNT_ONCE = ": set duplicates to 'group', which counts them once"


def has_few_values(X: Any, *, encoded: bool = False) -> bool:
    """Return whether rows are equal by chance; parameters as in `find_copies`."""
    columns = [] if issparse(X) else list(map(_Column.of, read_columns(X), count()))
    return _have_few_values(columns, _identifiers(X, columns) if encoded else [])


def _have_few_values(columns: list[_Column], unseen: list[int]) -> bool:
    """Return whether rows are equal by chance, by the squared frequencies of the values.

    Their sum is the probability that two rows have an equal value in a column. Texts that name the
    rows do not matter, nor does one whole number: more of them may be measurements.
    """
    names = [j for j, one in enumerate(columns) if one.n_different == len(one)]
    numbers = [j for j in names if columns[j].is_number]
    if len(numbers) > 1 or any(columns[j].has_decimals for j in numbers):
        return False
    used = [column for j, column in enumerate(columns) if j not in {*names, *unseen}]
    if not all(column.has_few_values for column in used):
        return False
    by_chance = np.prod([column.equal_by_chance for column in used])
    return bool(used and len(used[0]) * by_chance >= _EQUAL_BY_CHANCE)


def find_copies(
    X: Any,
    codes: Codes,
    groups: NDArray[Any] | None = None,
    *,
    encoded: bool = False,
    all_near: bool = False,
    new: Flags | None = None,
) -> Copies:
    """Find the copies among the rows of a table.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, ...)
        The rows. Those of a sparse matrix are copies only if they are equal.
    codes : ndarray of shape (n_samples,)
        The classes.
    groups : ndarray of shape (n_samples,), default=None
        Rows of a group belong together anyway; near copies are rows of different groups.
    encoded : bool, default=False
        Whether the members do not see identifiers, because a `TableEncoder` ignores them.
    all_near : bool, default=False
        Whether near copies are copies even if they are few, or may be so by chance.
    new : ndarray of bool, shape (n_samples,), default=None
        The rows to compare with the others, whose classes do not matter, instead of all rows with
        each other.
    """
    columns = [] if issparse(X) else list(map(_Column.of, read_columns(X), count()))
    if not columns or len(codes) < 2:
        return Copies.equal(hash_rows(X))
    unseen = _identifiers(X, columns) if encoded else []
    counted = np.ones(len(codes), dtype=bool) if new is None else new
    n = 0 if all_near else int(counted.sum())
    seen = [j for j in range(len(columns)) if j not in unseen]
    names, hidden, labels = _search_equal(columns, seen, n)
    sets = _merge(len(codes), [_links(one) for one in labels])
    n_equal = len(codes) - len(np.unique(sets))
    n_exact, n_all = (_count_copies(one, groups) for one in (labels[0], sets))
    many, synthetic = n_all - n_exact >= MANY * len(codes), None
    first = np.unique(sets, return_index=True)[1]
    near, links = np.zeros(len(codes), dtype=bool), [_links(sets)]
    apart = groups if new is None else new
    with limit_threads(1):
        for i, which in enumerate(_compared(columns, seen, names)):
            points, others = _points(columns, which)
            if points.shape[1] < 2 or len(first) <= _SCALES[0][1]:
                continue
            search = _NearCopies(
                points[first],
                others[first],
                _sum(columns, which)[first],
                None if apart is None else apart[first],
                codes[first],
                counted[first],
            )
            pairs = first[search.pairs(all_near)]
            near[pairs] = True
            links.append(pairs)
            if i == 0 and new is None:
                synthetic = _find_synthetic(points, codes, _merge(len(sets), links))
    sets, n_near = _merge(len(sets), links), int((near & counted).sum())
    many |= n_near >= max(MANY * counted.sum(), 1)
    titles = [str(name) for name in getattr(X, "columns", range(len(columns)))]
    left_out = [] if 0 < n_equal <= FEW * len(codes) else sorted({*unseen, *hidden})
    return Copies(
        sets,
        n_equal,
        n_near,
        many,
        tuple(titles[j] for j in hidden),
        tuple(left_out),
        synthetic,
        _have_few_values(columns, unseen),
    )


# Equal rows


def _identifiers(X: Any, columns: list[_Column]) -> list[int]:
    """Return the positions of the texts that an encoder ignores, as identifiers; never all."""
    found = [
        j
        for j, column in enumerate(columns)
        if hasattr(X, "iloc")
        and not column.has_order
        and guess_kind(X.iloc[:, j]).kind == "ignored"
    ]
    return found if len(found) < len(columns) else []


def _search_equal(
    columns: list[_Column], seen: list[int], n: int
) -> tuple[list[int], list[int], list[Hashes]]:
    """Search for rows that are equal but for some columns.

    Returns the columns that may name or number the rows, the columns in which copies differ, and
    hashes: rows are copies if one of their hashes is equal.
    """
    differ = [j for j in seen if columns[j].n_different == len(columns[j])]
    names = [j for j in differ if not columns[j].has_decimals]
    whole = _sum(columns, seen)
    hidden: set[int] = set()
    labels = [whole]
    for apart in [names] if names == differ else [names, differ]:
        kept = [j for j in seen if j not in apart]
        units = _units(columns, kept)
        if apart and len(units) <= _FACTS * sum(columns[j].has_decimals for j in apart):
            continue  # a number and functions of it, beside measurements
        parts = [_sum(columns, unit) for unit in units]
        base = _sum(columns, kept)
        if apart and _are_copies(whole, base, parts, n):
            hidden.update(apart)
            labels.append(base)
        suspects = _suspects(base, parts, list(range(len(units))), n)
        for i in suspects:
            others = [*suspects, *(k for k in range(len(units)) if k not in suspects)]
            if _are_copies(base, base - parts[i], [parts[k] for k in others if k != i], n):
                hidden.update(apart, units[i])
                labels.append(base - parts[i])
    return names, sorted(hidden), labels


def _sum(columns: list[_Column], which: Sequence[int]) -> Hashes:
    """Add the hashes of some columns; the sum overflows on purpose."""
    total = np.zeros(len(columns[0]), dtype=np.uint64)
    for j in which:
        total += columns[j].hashed
    return total


def _units(columns: list[_Column], which: list[int]) -> list[list[int]]:
    """Divide columns into units: neighbouring 0/1 columns of one category, or names of the same."""
    units: list[list[int]] = []
    taken = None  # the rows in which a column of the last unit is 1
    for j in which:
        values = columns[j].values
        is_flag = values.dtype.kind in "biuf" and bool(np.isin(values, (0, 1)).all())
        if is_flag and taken is not None and not (taken & (values == 1)).any():
            units[-1].append(j)
            taken |= values == 1
        else:
            units.append([j])
            taken = values == 1 if is_flag else None
    by_partition: dict[bytes, list[int]] = {}
    merged = []
    for unit in units:
        if len(unit) == 1 and not (column := columns[unit[0]]).has_decimals:
            same = by_partition.setdefault(blake2b(column.first_equal.tobytes()).digest(), unit)
            if same is not unit:
                same.extend(unit)
                continue
        merged.append(unit)
    return merged


def _count_pairs(hashed: Hashes) -> int:
    """Count the pairs of equal rows."""
    sizes = np.unique(hashed, return_counts=True)[1].astype(np.int64)
    return int((sizes * (sizes - 1) // 2).sum())


def _suspects(base: Hashes, parts: list[Hashes], which: list[int], n: int) -> list[int]:
    """Return the parts without which more rows are equal; halves of the parts are tried first.

    ``base`` is the sum of all parts.
    """
    without = base.copy()
    for j in which:
        without -= parts[j]
    found = _count_pairs(without) - _count_pairs(base) > MAX_BY_CHANCE * n
    if not found or len(which) == 1:
        return which if found else []
    middle = len(which) // 2
    return [j for half in (which[:middle], which[middle:]) for j in _suspects(base, parts, half, n)]


def _are_copies(whole: Hashes, part: Hashes, others: list[Hashes], n: int) -> bool:
    """Return whether rows that are equal in a part of the columns are copies, and not by chance.

    By chance more pairs differ in one of the ``others``, the columns of the part, as well.
    """
    in_whole, in_part = _count_pairs(whole), _count_pairs(part)
    left = in_part - in_whole
    if left <= MAX_BY_CHANCE * n or in_part > _PAIRS * len(part):
        return False
    if len(np.unique(part)) < _DISTINCT:
        return False
    for other in others:
        left -= _count_pairs(part - other) - in_part - _count_pairs(whole - other) + in_whole
        if left <= 0:
            return False
    return True


# Nearly equal rows


def _compared(columns: list[_Column], seen: list[int], names: list[int]) -> list[list[int]]:
    """Return the sets of columns in which near copies are searched for.

    First the columns that do not name or number the rows; then those of mostly different numbers,
    because near copies may differ in a category or the number of a batch, too. If there are few,
    they include numbers of the rows with irregular gaps, or all if they are ranks, not numbers of
    the rows.
    """
    size, numbers = len(columns[0]), [j for j in seen if columns[j].is_number]
    differ = [j for j in numbers if columns[j].n_different > _DIFFERENT * size]
    again = [j for j in differ if columns[j].counts(_STEPS_OF_EQUAL * columns[j].n_different)]
    numbering = [j for j in numbers if j in names or j in again]
    irregular = [j for j in numbering if not columns[j].counts(_STEPS * size)]
    ranks = numbering if len(numbering) >= _COLUMNS else irregular

    def fill_up(which: list[int], least: int) -> list[int]:
        filled = (which, which + irregular, which + ranks)
        return next((one for one in filled if len(one) >= least), filled[-1])

    others = [j for j in seen if j not in numbers and j not in names]
    n_times = sum(columns[j].values.dtype.kind in "mM" for j in others)
    compared = fill_up([j for j in numbers if j not in numbering], 2 - n_times) + others
    different = fill_up([j for j in differ if j not in numbering], _COLUMNS)
    searches = [compared, different]
    return searches if len(different) >= _COLUMNS and {*different} != {*compared} else [compared]


def _points(columns: list[_Column], which: list[int]) -> tuple[NDArray[np.float32], Hashes]:
    """Return the standardised numbers of the rows, and hashes of the other columns.

    Rows with few numbers that are rare in their column have hashes of their own: they can nearly
    equal others by chance.
    """
    size, numeric = len(columns[0]), [columns[j] for j in which if columns[j].has_order]
    points, n_rare = np.zeros((size, len(numeric)), dtype=np.float32), np.zeros(size, dtype=int)
    for i, column in enumerate(numeric):
        points[:, i] = column.standardised
        n_rare += column.is_rare
    others = _sum(columns, [j for j in which if not columns[j].has_order])
    identify = n_rare >= min(_COLUMNS, len(numeric))
    own = np.arange(1, size + 1, dtype=np.uint64)  # the sum is 0 if there are no other columns
    return points, np.where(identify, others, own)


@dataclass(frozen=True, eq=False)
class _NearCopies:
    """A search for near copies among rows that are not equal.

    Near copies are equal in the columns that are not numbers, differ in the numbers, and are of
    different groups. The rows that are counted decide whether there are more than by chance.
    """

    points: NDArray[np.float32]
    others: Hashes
    base: Hashes
    groups: NDArray[Any] | None
    codes: Codes
    counted: Flags

    def pairs(self, all_near: bool) -> NDArray[np.intp]:
        """Return the positions of near copies, in pairs; none if they are few."""
        random, found = np.random.default_rng(0), []
        rows = np.flatnonzero(self.counted)
        shuffled, n_classes = random.permutation(rows), self.codes.max() + 1
        each = max(_SAMPLED // n_classes, 100)
        sample = np.concatenate(
            [shuffled[self.codes[shuffled] == code][:each] for code in range(n_classes)]
        )
        for sampled in (sample, *([rows] * _TREES)) if len(rows) else ():
            pairs, by_chance = self._pairs_of(sampled, random)
            found.append(pairs)
            sizes = np.bincount(self.codes[sampled], minlength=self.codes.max() + 1)
            near = np.bincount(self.codes[np.unique(pairs[:, 0])], minlength=len(sizes))
            if not all_near and (near <= (2 * by_chance + FEW) * sizes + 2).all():
                return np.zeros((0, 2), dtype=np.intp)
        return np.concatenate([np.zeros((0, 2), dtype=np.intp), *found])

    def _pairs_of(
        self, sampled: Codes, random: np.random.Generator
    ) -> tuple[NDArray[np.intp], float]:
        """Return the near copies of some rows, and the fraction of rows that has one by chance."""
        is_sampled = np.zeros(len(self.points), dtype=bool)
        is_sampled[sampled] = True
        pairs, all_distances = [], []
        for leaf in _leaves(self.points, random):
            rows = leaf[is_sampled[leaf]]
            if not len(rows):
                continue
            n_neighbours = min(_NEIGHBOURS + 1, len(leaf))
            distances = cdist(self.points[rows], self.points[leaf])
            # The row itself is the first neighbour.
            neighbours = np.argpartition(distances, n_neighbours - 1)[:, :n_neighbours]
            distances = np.take_along_axis(distances, neighbours, axis=1)
            order = distances.argsort(axis=1)
            distances, neighbours = (
                np.take_along_axis(one, order, axis=1) for one in (distances, neighbours)
            )
            all_distances.append(distances)
            few = distances[:, 1 : _MOST_NEAR + 2]
            is_last = few[:, :-1] <= _NEAR * few[:, 1:]  # the next neighbour is much farther
            last = np.where(is_last, few[:, :-1], 0.0).max(axis=1)
            most = np.maximum(_NEAR * distances[:, min(_TENTH, n_neighbours - 1)], last)
            i, k = np.nonzero(distances <= most[:, None])
            pairs.append(np.column_stack([rows[i], leaf[neighbours[i, k]]]))
        dimensions = max(
            np.log(2) / np.log(max(_median_ratio(all_distances, *scale), 1 + 1e-9))
            for scale in _SCALES
        )
        a, b = np.concatenate(pairs).T
        # Equal numbers with other categories are a matter of the search for equal rows.
        near = (self.base[a] != self.base[b]) & (self.others[a] == self.others[b])
        if self.groups is not None:
            near &= self.groups[a] != self.groups[b]
        by_chance = 1 - (1 - _NEAR**dimensions) ** _TENTH
        return np.column_stack([a, b])[near], float(by_chance)


def _median_ratio(distances: list[Floats], near: int, far: int) -> float:
    """Return the median ratio of the distances of two neighbours; inf if there are too few."""
    ratios = [
        np.divide(one[:, far], one[:, near], out=np.full(len(one), np.inf), where=one[:, near] > 0)
        for one in distances
        if one.shape[1] > far
    ]
    return float(np.median(np.concatenate(ratios))) if ratios else np.inf


def _leaves(points: NDArray[np.float32], random: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    """Divide rows at medians of random projections, into sets that keep most neighbours."""
    waiting = [np.arange(len(points))]
    while waiting:
        rows = waiting.pop()
        if len(rows) <= _LEAF:
            yield rows
            continue
        order = rows[np.argsort(points[rows] @ random.normal(size=points.shape[1]))]
        waiting += [order[: len(rows) // 2], order[len(rows) // 2 :]]


def _find_synthetic(
    points: NDArray[np.float32], codes: Codes, sets: Codes
) -> tuple[int, float] | None:
    """Return the class with the most synthetic rows, if they are not few.

    In a table of interpolated numbers, rows of all classes lie between others.
    """
    first, random = np.unique(sets, return_index=True)[1], np.random.default_rng(0)
    fractions = {}
    for code in range(codes.max() + 1):
        rows = points[first[codes[first] == code]].astype(np.float64)
        if len(rows) <= _NEIGHBOURS_OF_CLASS:
            continue
        rows = rows[:, [len(np.unique(one)) > _DIFFERENT * len(rows) for one in rows.T]]
        if np.linalg.matrix_rank(rows - rows.mean(axis=0), rtol=1e-4) < _COLUMNS:
            continue
        sample = rows[random.permutation(len(rows))[:_SAMPLED_OF_CLASS]]
        search = NearestNeighbors(n_neighbors=_NEIGHBOURS_OF_CLASS + 1, algorithm="brute")
        neighbours = search.fit(rows).kneighbors(sample, return_distance=False)
        steps = rows[neighbours] - sample[:, None, :]
        lengths = np.linalg.norm(steps, axis=2, keepdims=True)
        directions = np.where((steps != 0).sum(axis=2, keepdims=True) >= _COLUMNS, steps, 0.0)
        directions /= np.maximum(lengths, np.finfo(float).tiny)
        cosines = directions @ directions.transpose(0, 2, 1)
        fractions[code] = float((cosines.min(axis=(1, 2)) < _OPPOSITE - 1).mean())
    if not fractions:
        return None
    code = max(fractions, key=fractions.__getitem__)
    least = min(fractions.values()) if len(fractions) > 1 else 0.0
    is_many = fractions[code] - least >= _MANY_SYNTHETIC
    return (code, fractions[code]) if is_many else None


# Sets of rows


def _count_copies(labels: NDArray[Any], groups: NDArray[Any] | None) -> int:
    """Count the rows that equal an earlier row; with groups, one of another group."""
    sets, kinds = np.unique(labels, return_inverse=True)
    if groups is None:
        return len(labels) - len(sets)
    pairs = np.column_stack([kinds, np.unique(groups, return_inverse=True)[1]])
    return len(np.unique(pairs, axis=0)) - len(sets)


def _links(labels: NDArray[Any]) -> NDArray[np.intp]:
    """Link each row with the first one that has the same label."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.column_stack([np.arange(len(labels)), first[inverse]])


def _merge(n: int, links: list[NDArray[np.intp]]) -> Codes:
    """Number the sets of rows that are linked, directly or through others."""
    a, b = np.concatenate(links).T
    return np.asarray(
        connected_components(
            coo_array((np.ones(len(a), bool), (a, b)), shape=(n, n)), directed=False
        )[1],
        dtype=np.intp,
    )
