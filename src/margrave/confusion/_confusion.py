"""The confusion matrix: immutable counts with a *rejected* column, its rates, and its edits.

Rows are the true classes, columns the answers; the last column counts the samples that were given
no answer (the extra class ω_{c+1} of the thresholded vote in "Multi-classifiers"). Acc⁺ and Acc⁻
are those of "Interactive Martingale Boosting", section 4.1. Rates keep rejected samples in the
denominator. Editing a cell says what its user can afford: a :class:`margrave.Preference`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._dask.blocks import is_dask
from margrave._dask.counts import count_labels
from margrave.confusion._bounds import quote_label
from margrave.confusion._preference import Preference

__all__ = ["Confusion"]

_MOST = 10_000  # different labels in blocks of Dask: more are numbers, not classes
_PERCENTAGE = re.compile(r"\d+(\.\d*)?\s*%")


class Confusion:
    """Counts of true classes against answers, with a column for the rejected.

    Parameters
    ----------
    counts : array-like of int, shape (k, k) or (k, k + 1)
        A row per true class, a column per answer, and the rejected last (none if left out).
    classes : sequence of labels, optional
        The k classes, in the order of the rows; 0, 1, ... if left out.
    positive : label, optional
        The class that ``fp``, ``fn``, Acc⁺ and alarms speak of. By default the second of two
        classes; with more there is none unless it is given.

    Examples
    --------
    >>> from margrave import Confusion
    >>> matrix = Confusion.of(
    ...     ["ham", "ham", "ham", "spam", "spam"],
    ...     ["ham", "ham", "spam", "spam", "?"],
    ...     reject_label="?",
    ... )
    >>> print(matrix)
    spam is positive  called ham  called spam  rejected
    true ham                   2            1         0
    true spam                  0            1         1
    >>> matrix.fp, matrix.fn, matrix.acc_plus
    (1, 0, 0.5)
    >>> matrix.edit("ham", "spam", 0)
    Preference('fp <= 0')
    """

    def __init__(
        self, counts: ArrayLike, classes: Sequence[Any] | None = None, positive: Any = None
    ) -> None:
        self._counts = _checked_counts(counts)
        k = len(self._counts)
        labels = range(k) if classes is None else classes
        self._classes = tuple(_labels.plain(label) for label in labels)
        if len(set(self._classes)) != k or len(self._classes) != k:
            raise ValueError(
                f"Confusion needs {k} different classes for its {k} rows; got {self._classes!r}."
            )
        self._positive = (
            self._classes[1] if positive is None and k == 2 else _labels.plain(positive)
        )
        if self._positive is not None:
            self._index(self._positive)

    @classmethod
    def of(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        classes: Sequence[Any] | None = None,
        positive: Any = None,
        reject_label: Any = None,
    ) -> Confusion:
        """Count true labels against answers.

        Parameters
        ----------
        y_true, y_pred : array-like or Dask collection of shape (n_samples,)
            True labels and answers. Those of Dask are counted in one pass, block by block.
        classes : sequence of labels, optional
            All classes, in the order wanted; by default those in ``y_true``, sorted.
        positive : label, optional
            As for the class.
        reject_label : label, optional
            The answer that means "rejected" (``reject_label_`` of a fitted vote).
        """
        times, both = None, cast(tuple[Any, Any], (y_true, y_pred))
        if is_dask(*both):
            _check_shapes(*(one.shape if is_dask(one) else np.shape(one) for one in both))
            (y_true, y_pred), times = count_labels(
                "Confusion.of", _MOST, y_true=y_true, y_pred=y_pred
            )
        true, answers = _labels.natural(y_true), _labels.natural(y_pred)
        _check_shapes(true.shape, answers.shape)
        if classes is None:
            labels = _labels.union([("y_true", true)])
        else:
            _labels.union([("classes", list(classes))])  # of one kind, and some
            labels = _labels.natural(list(classes))
        if reject_label is not None and _labels.is_missing(reject_label):
            raise ValueError("Confusion.of needs a reject_label that is not NaN or missing.")
        if reject_label is not None and reject_label in labels.tolist():
            raise ValueError(
                f"Confusion.of needs a reject_label that is not a class; {reject_label!r} is among "
                f"{_labels.shown(labels)}."
            )
        k = len(labels)
        rows = _labels.encode(true, labels, "y_true")
        try:
            columns = _labels.encode(answers, labels, "y_pred", reject_label)
        except ValueError as error:
            raise ValueError(
                f"{error} If it means rejected, give it as reject_label=; if it is a class that "
                "y_true happens to lack, give classes=."
            ) from None
        columns = np.where(columns == _labels.REJECTED, k, columns)
        cells = rows * (k + 1) + columns
        counts = np.bincount(cells, times, k * (k + 1))  # exact: floats hold whole numbers
        return cls(counts.astype(np.int64).reshape(k, k + 1), labels.tolist(), positive)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The counts, read-only, of shape (k, k + 1)."""
        return self._counts

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes, in the order of the rows."""
        return self._classes

    @property
    def positive(self) -> Any:
        """The positive class, or None."""
        return self._positive

    def __getitem__(self, cell: tuple[Any, Any]) -> int:
        """The count of ``matrix[true, answer]``; None as the answer is the rejected column."""
        if not isinstance(cell, tuple) or len(cell) != 2:
            raise TypeError(f"Confusion needs a cell as [true, answer]; got {cell!r}.")
        true, answer = cell
        return int(self._counts[self._index(true), self._answer(answer)])

    def __add__(self, other: Confusion) -> Confusion:
        """The counts of both, as over the folds of a cross-validation."""
        if not isinstance(other, Confusion):
            return NotImplemented
        if (self.classes, self.positive) != (other.classes, other.positive):
            raise ValueError(
                "Confusion matrices add only with the same classes and positive class; got "
                f"{self.classes!r} ({self.positive!r}) and {other.classes!r} ({other.positive!r})."
            )
        return Confusion(self._counts + other._counts, self.classes, self.positive)

    def __radd__(self, other: object) -> Confusion:
        """For ``sum(matrices)``, which starts at 0."""
        if other != 0:
            return NotImplemented
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The counts come back from a pickle writable; ours are not."""
        self.__dict__.update(state)
        self._counts.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Confusion) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self._classes, self._positive, self._counts.tobytes()

    def __repr__(self) -> str:
        positive = "" if self._positive is None else f", positive={self._positive!r}"
        return f"Confusion({self._counts.tolist()}, classes={list(self._classes)}{positive})"

    def __str__(self) -> str:
        corner = "" if self._positive is None else f"{self._positive} is positive"
        heads = [corner, *(f"called {label}" for label in self._classes), "rejected"]
        rows = [
            [f"true {label}", *map(str, row)]
            for label, row in zip(self._classes, self._counts.tolist(), strict=True)
        ]
        widths = [max(len(row[j]) for row in [heads, *rows]) for j in range(len(heads))]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in [heads, *rows]
        ]
        return "\n".join(lines)

    # Counts

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self._counts.sum())

    @property
    def n_rejected(self) -> int:
        """Number of samples given no answer."""
        return int(self._counts[:, -1].sum())

    @property
    def tp(self) -> int:
        """Positives called positive."""
        return int(self._counts[self._positive_index, self._positive_index])

    @property
    def fn(self) -> int:
        """Positives called something else; rejected ones are not among them."""
        return int(self._counts[self._positive_index, :-1].sum()) - self.tp

    @property
    def fp(self) -> int:
        """Other classes' samples called positive."""
        return int(self._counts[:, self._positive_index].sum()) - self.tp

    @property
    def tn(self) -> int:
        """Other classes' samples not called positive; rejected ones are not among them."""
        return int(self._counts[:, :-1].sum()) - self.tp - self.fn - self.fp

    # Rates: not a number where there is nothing to take a share of

    @property
    def accuracy(self) -> float:
        """Share of all samples answered right."""
        return _share(np.trace(self._counts), self.n)

    @property
    def acc_plus(self) -> float:
        """Acc⁺: share of the positives called positive."""
        return self.recall()

    @property
    def acc_minus(self) -> float:
        """Acc⁻: share of the others not called positive (rejected ones count against it)."""
        others = self.n - int(self._counts[self._positive_index].sum())
        return _share(self.tn, others)

    @property
    def balanced_accuracy(self) -> float:
        """Mean of the classes' recalls, over the classes that occur."""
        occurring = self._counts.sum(axis=1) > 0
        recalls = [
            self.recall(c) for c, there in zip(self.classes, occurring, strict=True) if there
        ]
        return float(np.mean(recalls)) if recalls else float("nan")

    @property
    def alarms(self) -> float:
        """Share of all samples called positive."""
        return _share(self.tp + self.fp, self.n)

    @property
    def rejected(self) -> float:
        """Share of all samples given no answer."""
        return _share(self.n_rejected, self.n)

    def recall(self, label: Any = None) -> float:
        """Share of a class that is called so.

        Parameters
        ----------
        label : label, optional
            The class; the positive one if left out.

        Returns
        -------
        float
            Not a number if there is no sample of the class.
        """
        c = self._positive_index if label is None else self._index(label)
        return _share(self._counts[c, c], self._counts[c].sum())

    def precision(self, label: Any = None) -> float:
        """Share of what is called a class that is of it.

        Parameters
        ----------
        label : label, optional
            The class; the positive one if left out.

        Returns
        -------
        float
            Not a number if nothing is called so.
        """
        c = self._positive_index if label is None else self._index(label)
        return _share(self._counts[c, c], self._counts[:, c].sum())

    # Edits

    def edit(self, true: Any, answer: Any, to: int | str) -> Preference:
        """What it means to write another number into a cell.

        A wrong or rejected cell becomes "at most", a right one "at least": a user who raises a
        cell of mistakes says that more of them can be afforded, not that they are wanted.

        Parameters
        ----------
        true, answer : label
            The cell; None as the answer is the rejected column.
        to : int or str
            The number to write, or a share of the row such as ``"2%"``.

        Returns
        -------
        Preference
            Several edits combine with ``&``.

        Examples
        --------
        >>> matrix = Confusion([[90, 10], [7, 93]], classes=["ham", "spam"])
        >>> matrix.edit("ham", "spam", 5) & matrix.edit("spam", "spam", "90%")
        Preference('fp <= 5, correct(spam) >= 90%')
        """
        row, column = self._index(true), self._answer(answer)
        size = int(self._counts[row].sum())
        text = str(to).strip()
        if not (text.isdecimal() and int(text) <= size) and not _PERCENTAGE.fullmatch(text):
            raise ValueError(
                f"Confusion.edit needs a count of at most the {size} samples of {true!r}, or a "
                f"share such as '2%'; got {to!r}."
            )
        if column == len(self._classes):
            return Preference(f"rejected({quote_label(true)}) <= {to}")
        if row == column:
            return Preference(f"correct({quote_label(true)}) >= {to}")
        if len(self._classes) == 2:
            return Preference(f"{'fp' if answer == self._positive else 'fn'} <= {to}")
        return Preference(f"errors({quote_label(true)} -> {quote_label(answer)}) <= {to}")

    # Places

    def _index(self, label: Any) -> int:
        if label not in self._classes:
            raise ValueError(
                f"Confusion has no class {label!r}; its classes are "
                f"{', '.join(map(repr, self._classes))}, and None is the rejected column."
            )
        return self._classes.index(label)

    def _answer(self, answer: Any) -> int:
        """The column; None is the rejected one."""
        return len(self._classes) if answer is None else self._index(answer)

    @property
    def _positive_index(self) -> int:
        if self._positive is None:
            raise ValueError(
                f"Confusion has {len(self._classes)} classes and none is the positive one; "
                "give positive= or name the class."
            )
        return self._index(self._positive)


def _checked_counts(counts: ArrayLike) -> NDArray[np.int64]:
    """The counts as a read-only k × (k + 1) array of our own."""
    given = np.asarray(counts)
    if given.ndim != 2 or given.shape[1] - given.shape[0] not in (0, 1) or not given.size:
        raise ValueError(
            "Confusion needs counts of shape (k, k), or (k, k + 1) with the rejected last; "
            f"got {given.shape}."
        )
    if given.dtype.kind not in "iu" or (given < 0).any():
        raise ValueError("Confusion needs counts that are whole numbers, none below 0.")
    k = len(given)
    whole = np.zeros((k, k + 1), dtype=np.int64)
    whole[:, : given.shape[1]] = given
    whole.flags.writeable = False
    return whole


def _check_shapes(true: tuple[Any, ...], answers: tuple[Any, ...]) -> None:
    """One label and one answer for each sample, as far as the shapes are known."""
    sizes = [shape[0] for shape in (true, answers) if shape]
    known = [size for size in sizes if isinstance(size, int)]
    if len(true) != 1 or len(answers) != 1 or len(set(known)) > 1 or 0 in known:
        raise ValueError(
            "Confusion.of needs one true label and one answer for each of at least one sample; "
            f"got shapes {true} and {answers}."
        )


def _share(part: int, whole: int) -> float:
    return float(part) / float(whole) if whole else float("nan")
