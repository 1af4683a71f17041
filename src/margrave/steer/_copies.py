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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, issparse
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from margrave import _labels
from margrave._errors import MargraveError
from margrave._indexing import count_rows
from margrave._messages import name_class
from margrave._typing import Codes, Flags
from margrave.steer._row_hashes import (
    GROUP,
    INDEPENDENT,
    MAX_BY_CHANCE,
    NEAR,
    Hashes,
    hash_column,
    hash_rows,
    read_columns,
)
from margrave.table import IDENTIFIER, guess_kind

# Rows that are equal but for a column are copies if there are so many different ones at least, and
# so many pairs for each row at most; otherwise the other columns do not identify rows.
_DISTINCT, _PAIRS = 20, 25
# Near copies are so near, compared with the tenth neighbour. Fewer than `FEW` change a rate by
# little, and a user has to decide about `_MANY`.
_NEAR, FEW, _MANY = 0.1, 0.03, 0.25
_TENTH, _TWENTIETH = 10, 20
# Neighbours are searched for in sets of so many rows, for a sample of rows first. The rows are
# divided into such sets twice, because each time some copies are separated.
_LEAF, _ASKED, _TREES = 1000, 5000, 2
# Synthetic rows: the directions of two neighbours of the same class are opposite, up to a cosine,
# in at least so many columns of mostly different numbers. A user has to decide about this fraction.
_OPPOSITE, _COLUMNS, _DIFFERENT, _MANY_SYNTHETIC = 1e-6, 3, 1 / 3, 0.1
_NEIGHBOURS, _SAMPLE = 30, 200


@dataclass(frozen=True, eq=False)
class Copies:
    """The copies among the rows of a table.

    Attributes
    ----------
    sets : ndarray of shape (n_samples,)
        The number of the set of copies that each row belongs to.
    n_equal : int
        Number of rows that equal an earlier row, but for the columns in `left_out`.
    n_near : int
        Number of other rows that nearly equal a row, or 0 if they may be few by chance.
    n : int
        Number of rows that fractions refer to.
    columns : tuple of str
        The columns in which copies differ.
    left_out : tuple of int
        Their positions, and those of identifiers that the members do not see.
    synthetic : (int, float) or None
        The class with the most synthetic rows, and their fraction; None if they are few.
    """

    sets: Codes
    n_equal: int
    n_near: int
    n: int
    columns: tuple[str, ...] = ()
    left_out: tuple[int, ...] = ()
    synthetic: tuple[int, float] | None = None

    @classmethod
    def equal(cls, hashed: Hashes) -> Copies:
        """Find rows with equal hashes only."""
        different, sets = np.unique(hashed, return_inverse=True)
        return cls(sets, len(hashed) - len(different), 0, len(hashed))

    @property
    def any(self) -> bool:
        """Whether there are copies."""
        return bool(self.n_equal or self.n_near)

    def check(
        self, duplicates: str, classes: NDArray[Any], error: Callable[..., MargraveError]
    ) -> None:
        """Raise an error if there are so many copies that the user has to decide about them."""
        if self.synthetic is not None and duplicates != INDEPENDENT:
            found, choices = (
                f"{self._describe_synthetic(classes)} A certificate on them says little about real "
                "rows. Use rows from before the oversampling.",
                {INDEPENDENT: "count them as real rows"},
            )
        elif self.n_near >= _MANY * self.n and duplicates == GROUP:
            found, choices = (
                f"{self.n_near:,} of {self.n:,} rows nearly equal another row. If these are copies "
                "of one observation, a certificate would be too optimistic. Say which rows belong "
                "together, or how nearly equal rows count.",
                {NEAR: "keep them together and count them once", INDEPENDENT: "count each"},
            )
        else:
            return
        replies = "; ".join(f"duplicates={name!r} to {what}" for name, what in choices.items())
        raise error(
            f"{found} Pass groups, or {replies}, which the certificate says.",
            code="many_copies",
            found=found,
            choices=list(choices),
            n=self.n_near,
            rows=self.n,
        )

    def notes(self, duplicates: str, classes: NDArray[Any]) -> tuple[str, ...]:
        """Describe the copies, for a certificate."""
        notes, independent = [], duplicates == INDEPENDENT
        if self.n_equal:
            rows = "1 row equals" if self.n_equal == 1 else f"{self.n_equal:,} rows equal"
            but = f" but {', '.join(map(repr, self.columns))}" if self.columns else ""
            counted = (
                "equal rows count as independent observations."
                if independent
                else "equal rows were kept together, and the certification set has one of each, so "
                "rates are over distinct rows."
            )
            notes.append(f"{rows} an earlier row in all features{but}; {counted}")
        if self.n_near:
            rows = (
                "1 row nearly equals" if self.n_near == 1 else f"{self.n_near:,} rows nearly equal"
            )
            counted = (
                "they count as independent observations. If they are copies, the guarantee is too "
                "optimistic."
                if independent
                else "nearly equal rows were kept together and count once."
            )
            notes.append(f"{rows} another one; {counted}")
        if self.synthetic is not None:
            notes.append(
                f"{self._describe_synthetic(classes)} They count as real rows: on new samples the "
                "error rates may be far above the guaranteed ones."
            )
        return tuple(notes)

    def _describe_synthetic(self, classes: NDArray[Any]) -> str:
        code, fraction = self.synthetic or (0, 0.0)
        return (
            f"{fraction:.0%} of the rows of {name_class(_labels.plain(classes[code]))} lie exactly "
            "between two others, as rows do that an oversampling such as SMOTE has made."
        )


def find_copies(
    X: Any,
    codes: Codes | None = None,
    groups: NDArray[Any] | None = None,
    *,
    encoded: bool = False,
    new: Flags | None = None,
) -> Copies:
    """Find the copies among the rows of a table.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, ...)
        The rows. Those of a sparse matrix are copies only if they are equal.
    codes : ndarray of shape (n_samples,), default=None
        The classes. Without them, synthetic rows are not looked for.
    groups : ndarray of shape (n_samples,), default=None
        Rows of a group belong together anyway; near copies are rows of different groups.
    encoded : bool, default=False
        Whether the members do not see identifiers, because a `TableEncoder` ignores them.
    new : ndarray of bool, shape (n_samples,), default=None
        The rows to compare with the others, instead of all rows with each other.
    """
    if issparse(X):
        return Copies.equal(hash_rows(X))
    groups = groups if new is None else new
    counted = np.ones(count_rows(X), dtype=bool) if new is None else new
    n = int(counted.sum())
    columns = list(read_columns(X))
    hashes = [hash_column(values, j) for j, values in enumerate(columns)]
    unseen = _identifiers(X, columns) if encoded else []
    compared, hidden, labels = _search(columns, hashes, unseen, n)
    sets = _merge(len(labels[0]), [_links(one) for one in labels])
    n_equal, n_near, synthetic = len(sets) - int(sets.max(initial=-1)) - 1, 0, None
    points, others = _points(columns, hashes, compared)
    first = np.unique(sets, return_index=True)[1]
    if points.shape[1] and len(first) > 2 * _TWENTIETH:
        apart = None if groups is None else groups[first]
        pairs = _near_pairs(points[first], others[first], apart, counted[first])
        n_near = int(counted[first[np.unique(pairs)]].sum())
        sets = _merge(len(sets), [_links(sets), first[pairs]])
        if codes is not None:
            synthetic = _find_synthetic(points, codes, sets)
    names = [str(name) for name in getattr(X, "columns", range(len(columns)))]
    return Copies(
        sets,
        n_equal,
        n_near,
        n,
        tuple(names[j] for j in sorted(hidden)),
        tuple(sorted({*unseen, *hidden})),
        synthetic,
    )


# Equal rows


def _identifiers(X: Any, columns: list[NDArray[Any]]) -> list[int]:
    """Return the positions of the columns that an encoder ignores as identifiers; never all."""
    found = [
        j
        for j, values in enumerate(columns)
        if hasattr(X, "iloc")
        and values.dtype.kind not in "biufmM"
        and guess_kind(X.iloc[:, j]).why == IDENTIFIER
    ]
    return found if len(found) < len(columns) else []


def _search(
    columns: list[NDArray[Any]], hashes: list[Hashes], unseen: list[int], n: int
) -> tuple[list[int], list[int], list[Hashes]]:
    """Search for rows that are equal but for some columns.

    Returns the columns with values that repeat, the columns in which copies differ, and hashes:
    rows are copies if one of their hashes is equal.
    """
    seen = [j for j in range(len(columns)) if j not in unseen]
    apart = [j for j in seen if _tells_all_apart(columns[j], hashes[j])]
    compared = [j for j in seen if j not in apart]
    whole, base = _sum(hashes, seen), _sum(hashes, compared)
    hidden, labels = [], [whole]
    if apart and _are_copies(whole, base, [hashes[j] for j in compared], n):
        hidden, labels = apart, [whole, base]
    suspects = _suspects(base, hashes, compared, n)
    for j in suspects:
        others = [*suspects, *(k for k in compared if k not in suspects)]
        if _are_copies(base, base - hashes[j], [hashes[k] for k in others if k != j], n):
            hidden = sorted({*apart, *hidden, j})
            labels.append(base - hashes[j])
    return compared or seen, hidden, labels


def _sum(hashes: list[Hashes], which: Sequence[int]) -> Hashes:
    """Add the hashes of some columns; the sum overflows on purpose."""
    total = np.zeros(len(hashes[0]), dtype=np.uint64)
    for j in which:
        total += hashes[j]
    return total


def _tells_all_apart(values: NDArray[Any], hashed: Hashes) -> bool:
    """Return whether all rows differ in a column, whose numbers have no decimals."""
    if values.dtype.kind == "f" and np.any(np.isfinite(values) & (values != np.floor(values))):
        return False
    return _count_pairs(hashed) == 0


def _count_pairs(hashed: Hashes) -> int:
    """Count the pairs of equal rows."""
    sizes = np.unique(hashed, return_counts=True)[1].astype(np.int64)
    return int((sizes * (sizes - 1) // 2).sum())


def _suspects(base: Hashes, hashes: list[Hashes], which: list[int], n: int) -> list[int]:
    """Return the columns without which more rows are equal; halves of the columns are tried first.

    ``base`` is the sum of the hashes of all columns that are compared.
    """
    found = _count_pairs(base - _sum(hashes, which)) - _count_pairs(base) > MAX_BY_CHANCE * n
    if not found or len(which) == 1:
        return which if found else []
    middle = len(which) // 2
    halves = (which[:middle], which[middle:])
    return [j for half in halves for j in _suspects(base, hashes, half, n)]


def _are_copies(whole: Hashes, part: Hashes, others: list[Hashes], n: int) -> bool:
    """Return whether rows that are equal in a part of the columns are copies, and not by chance.

    By chance more pairs differ in one of the ``others``, the columns of the part, as well.
    """
    in_whole, in_part = _count_pairs(whole), _count_pairs(part)
    left = in_part - in_whole
    if not MAX_BY_CHANCE * n < left < _PAIRS * len(part) or len(np.unique(part)) < _DISTINCT:
        return False
    for other in others:
        left -= _count_pairs(part - other) - in_part - _count_pairs(whole - other) + in_whole
        if left <= 0:
            return False
    return True


# Nearly equal rows


def _points(
    columns: list[NDArray[Any]], hashes: list[Hashes], which: list[int]
) -> tuple[NDArray[np.float32], Hashes]:
    """Return the standardised numbers of the rows, and hashes of the other columns."""
    numeric = [j for j in which if columns[j].dtype.kind in "biufmM"]
    points = np.zeros((len(hashes[0]), len(numeric)), dtype=np.float32)
    for i, j in enumerate(numeric):
        values = columns[j]
        if values.dtype.kind in "mM":
            values = np.where(np.isnat(values), np.nan, values.astype(np.int64).astype(np.float64))
        values = values.astype(np.float64)
        known = np.isfinite(values)
        if known.any() and (scale := values[known].std()) > 0:
            points[known, i] = (values[known] - values[known].mean()) / scale
    return points, _sum(hashes, [j for j in which if j not in numeric])


def _near_pairs(
    points: NDArray[np.float32], others: Hashes, groups: NDArray[Any] | None, counted: Flags
) -> NDArray[np.intp]:
    """Return the positions of near copies, in pairs; none if there are hardly more than by chance.

    Near copies are equal in the other columns, and of different groups; those rows decide that are
    counted.
    """
    random, found = np.random.default_rng(0), []
    for most in (_ASKED, *([len(points)] * _TREES)):  # on a sample, then on all rows
        ratios, asked, pairs = [], [], []
        for leaf in _leaves(points, random):
            some = random.permutation(leaf)[: -(-most * len(leaf) // len(points))]
            asked.append(some)
            search = NearestNeighbors(n_neighbors=min(_TWENTIETH + 1, len(leaf))).fit(points[leaf])
            distances, neighbours = search.kneighbors(points[some])  # the first is the row itself
            tenth = distances[:, min(_TENTH, distances.shape[1] - 1)]
            ratios.append(distances[:, -1] / np.maximum(tenth, np.finfo(float).tiny))
            i, k = np.nonzero(distances < _NEAR * tenth[:, None])
            pairs.append(np.column_stack([some[i], leaf[neighbours[i, k]]]))
        a, b = np.concatenate(pairs).T
        near = (a != b) & (others[a] == others[b])
        if groups is not None:
            near &= groups[a] != groups[b]
        found.append(np.column_stack([a, b])[near])
        dimensions = np.log(2) / np.log(max(float(np.median(np.concatenate(ratios))), 1 + 1e-9))
        by_chance = 1 - (1 - _NEAR**dimensions) ** (_TENTH - 1)
        n_near = counted[np.unique(a[near])].sum()
        if n_near <= (2 * by_chance + FEW) * counted[np.concatenate(asked)].sum():
            return np.zeros((0, 2), dtype=np.intp)
    return np.concatenate(found)


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
    """Return the class with the largest fraction of synthetic rows, if it is not small."""
    first, random = np.unique(sets, return_index=True)[1], np.random.default_rng(0)
    largest = (0, 0.0)
    for code in range(codes.max() + 1):
        rows = points[first[codes[first] == code]]
        if len(rows) <= _NEIGHBOURS:
            continue
        rows = rows[:, [len(np.unique(one)) > _DIFFERENT * len(rows) for one in rows.T]]
        if rows.shape[1] < _COLUMNS:
            continue
        sample = rows[random.permutation(len(rows))[:_SAMPLE]].astype(np.float64)
        search = NearestNeighbors(n_neighbors=_NEIGHBOURS + 1).fit(rows)
        steps = rows[search.kneighbors(sample, return_distance=False)] - sample[:, None, :]
        length = np.linalg.norm(steps, axis=2, keepdims=True)
        ways = np.where((steps != 0).sum(axis=2, keepdims=True) >= _COLUMNS, steps, 0.0)
        ways = ways / np.maximum(length, np.finfo(float).tiny)
        between = (ways @ ways.transpose(0, 2, 1)).min(axis=(1, 2)) < _OPPOSITE - 1
        largest = max(largest, (code, float(between.mean())), key=lambda one: one[1])
    return largest if largest[1] >= _MANY_SYNTHETIC else None


# Sets of rows


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
