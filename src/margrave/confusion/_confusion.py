"""The confusion matrix: immutable counts with a *rejected* column, its rates, and its edits.

Rows are the true classes, columns the predicted classes; the last column counts the rejected
samples (the extra class ω_{c+1} of the thresholded vote in the lecture slides "Multi-classifiers").
Kulkarni et al. (2016), section 4.1, define Acc⁺ and Acc⁻. Rates keep rejected samples in the
denominator. Editing a cell states a limit on it: a :class:`margrave.Preference`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._json import SCHEMA_VERSION, json_ready
from margrave.confusion._bounds import quote_label
from margrave.confusion._preference import Preference

__all__ = ["Confusion"]

_LIMIT = 2**53
_PERCENTAGE = re.compile(r"\d+(\.\d*)?\s*%")


class Confusion:
    """Counts of true against predicted classes, with a column for rejected samples.

    Parameters
    ----------
    counts : array-like of int, shape (k, k) or (k, k + 1)
        A row per true class and a column per predicted class. The last of k + 1 columns counts
        rejected samples. Their sum is below 2^53, so that all sums and rates are exact.
    classes : sequence of labels, optional
        The k classes, in the order of the rows. By default 0, 1, ....
    positive : label, optional
        The class that ``fp``, ``fn``, Acc⁺ and alarms refer to. By default the second of two
        classes; with more there is none by default.

    Examples
    --------
    >>> from margrave import Confusion
    >>> matrix = Confusion.of(
    ...     ["ham", "ham", "ham", "spam", "spam"],
    ...     ["ham", "ham", "spam", "spam", "?"],
    ...     reject_label="?",
    ... )
    >>> print(matrix)
    spam is positive  predicted ham  predicted spam  rejected
    true ham                      2               1         0
    true spam                     0               1         1
    >>> matrix.fp, matrix.fn, matrix.acc_plus
    (1, 0, 0.5)
    >>> matrix.edit("ham", "spam", 0)
    Preference('fp <= 0')
    """

    def __init__(
        self, counts: ArrayLike, classes: Sequence[Any] | None = None, positive: Any = None
    ) -> None:
        self._counts = _check_counts(counts)
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
        repeats: ArrayLike | None = None,
    ) -> Confusion:
        """Count true against predicted labels.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_samples,)
            True and predicted labels.
        classes : sequence of labels, optional
            All classes, in the order of the rows. By default those in ``y_true``, sorted.
        positive : label, optional
            The positive class, as for :class:`Confusion`.
        reject_label : label, optional
            The predicted label that means "rejected" (``reject_label_`` of a fitted vote).
        repeats : array-like of int of shape (n_samples,), optional
            How many samples each pair of labels stands for. By default one.

        Returns
        -------
        Confusion
        """
        true, predicted = _labels.natural(y_true), _labels.natural(y_pred)
        if true.shape != predicted.shape or true.ndim != 1 or not len(true):
            raise ValueError(
                "Confusion.of needs y_true and y_pred with one label for each of at least one "
                f"sample; got shapes {true.shape} and {predicted.shape}."
            )
        if classes is None:
            labels = _labels.union([("y_true", true)])
        else:
            _labels.union([("classes", list(classes))])  # not empty, and all of one kind
            labels = _labels.natural(list(classes))
        if reject_label is not None and _labels.is_missing(reject_label):
            raise ValueError(
                f"Confusion.of needs a reject_label that is not None or NaN; got {reject_label!r}."
            )
        if reject_label is not None and reject_label in labels.tolist():
            raise ValueError(
                f"Confusion.of needs a reject_label that is not a class; {reject_label!r} is among "
                f"{_labels.shown(labels)}."
            )
        k = len(labels)
        rows = _labels.encode(true, labels, "y_true")
        try:
            columns = _labels.encode(predicted, labels, "y_pred", reject_label)
        except ValueError as error:
            raise ValueError(
                f"{error} If this label means rejected, pass it as reject_label=; if it is a class "
                "that y_true lacks, pass all classes as classes=."
            ) from None
        columns = np.where(columns == _labels.REJECTED, k, columns)
        cells = rows * (k + 1) + columns
        counts = np.bincount(cells, repeats, k * (k + 1))  # exact below the limit of the counts
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
        """Get the count of ``matrix[true, predicted]``; None is the rejected column."""
        if not isinstance(cell, tuple) or len(cell) != 2:
            raise TypeError(f"Confusion needs a cell as [true, predicted]; got {cell!r}.")
        true, predicted = cell
        return int(self._counts[self._index(true), self._column_index(predicted)])

    def __add__(self, other: Confusion) -> Confusion:
        """Add the counts of two matrices, as over the folds of a cross-validation."""
        if not isinstance(other, Confusion):
            return NotImplemented
        if (self.classes, self.positive) != (other.classes, other.positive):
            raise ValueError(
                "Confusion can only add matrices with the same classes and positive class; got "
                f"{self.classes!r} ({self.positive!r}) and {other.classes!r} ({other.positive!r})."
            )
        return Confusion(self._counts + other._counts, self.classes, self.positive)

    def __radd__(self, other: object) -> Confusion:
        """Support ``sum(matrices)``, which starts at 0."""
        if other != 0:
            return NotImplemented
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the counts read-only again: a pickle restores them writable."""
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
        heads = [corner, *(f"predicted {label}" for label in self._classes), "rejected"]
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

    def to_dict(self) -> dict[str, Any]:
        """Describe the matrix in values that JSON can hold.

        Returns
        -------
        dict
            With the keys ``schema_version``; ``classes``, the classes in the order of the rows;
            ``positive``, the positive class or None; and ``counts``, a list of k + 1 counts for
            each true class, the rejected samples last.

        Examples
        --------
        >>> from margrave import Confusion
        >>> Confusion([[90, 10], [7, 93]], classes=["ham", "spam"]).to_dict()["counts"]
        [[90, 10, 0], [7, 93, 0]]
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "classes": json_ready(self._classes),
            "positive": json_ready(self._positive),
            "counts": self._counts.tolist(),
        }

    # Counts

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self._counts.sum())

    @property
    def n_errors(self) -> int:
        """Number of misclassified samples; a rejected sample is not an error."""
        return int(self._counts[:, :-1].sum() - np.trace(self._counts))

    @property
    def n_rejected(self) -> int:
        """Number of rejected samples."""
        return int(self._counts[:, -1].sum())

    @property
    def tp(self) -> int:
        """Positives predicted as positive."""
        return int(self._counts[self._positive_index, self._positive_index])

    @property
    def fn(self) -> int:
        """Positives predicted as another class; rejected samples do not count."""
        return int(self._counts[self._positive_index, :-1].sum()) - self.tp

    @property
    def fp(self) -> int:
        """Samples of other classes predicted as positive."""
        return int(self._counts[:, self._positive_index].sum()) - self.tp

    @property
    def tn(self) -> int:
        """Samples of other classes not predicted as positive; rejected samples do not count."""
        return int(self._counts[:, :-1].sum()) - self.tp - self.fn - self.fp

    # Rates: NaN where the denominator is 0

    @property
    def accuracy(self) -> float:
        """Fraction of all samples predicted correctly."""
        return _divide(np.trace(self._counts), self.n)

    @property
    def acc_plus(self) -> float:
        """Acc⁺: fraction of the positives predicted as positive."""
        return self.recall()

    @property
    def acc_minus(self) -> float:
        """Acc⁻: fraction of the other classes' samples predicted as one of these classes."""
        others = self.n - int(self._counts[self._positive_index].sum())
        return _divide(self.tn, others)

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the classes that occur."""
        sizes = self._counts.sum(axis=1)
        recalls = [self.recall(c) for c, size in zip(self.classes, sizes, strict=True) if size]
        return float(np.mean(recalls)) if recalls else float("nan")

    @property
    def alarms(self) -> float:
        """Fraction of all samples predicted as positive."""
        return _divide(self.tp + self.fp, self.n)

    @property
    def rejected(self) -> float:
        """Fraction of all samples that are rejected."""
        return _divide(self.n_rejected, self.n)

    def recall(self, label: Any = None) -> float:
        """Compute the fraction of a class that is predicted as this class.

        Parameters
        ----------
        label : label, optional
            The class. By default the positive one.

        Returns
        -------
        float
            NaN if there is no sample of the class.
        """
        c = self._positive_index if label is None else self._index(label)
        return _divide(self._counts[c, c], self._counts[c].sum())

    def precision(self, label: Any = None) -> float:
        """Compute the fraction of the samples predicted as a class that belong to it.

        Parameters
        ----------
        label : label, optional
            The class. By default the positive one.

        Returns
        -------
        float
            NaN if no sample is predicted as this class.
        """
        c = self._positive_index if label is None else self._index(label)
        return _divide(self._counts[c, c], self._counts[:, c].sum())

    # Edits

    def edit(self, true: Any, predicted: Any, to: int | str) -> Preference:
        """Translate another number in a cell into a preference.

        A cell of errors or of rejected samples becomes "at most", a cell of correct predictions "at
        least". A user who allows more errors of a kind than there are wants fewer of the others.
        So this also states the goal: the fewest errors that the request does not limit.

        Parameters
        ----------
        true, predicted : label
            The true and the predicted class of the cell; ``predicted=None`` is the rejected column.
        to : int or str
            The new count, or a percentage of the row such as ``"2%"``.

        Returns
        -------
        Preference
            Several edits combine with ``&``.

        Examples
        --------
        >>> from margrave import Confusion
        >>> matrix = Confusion([[90, 10], [7, 93]], classes=["ham", "spam"])
        >>> matrix.edit("ham", "spam", 5) & matrix.edit("spam", "spam", "90%")
        Preference('fp <= 5, correct(spam) >= 90%, then fewest other errors')
        >>> matrix.edit("ham", "spam", 20)
        Preference('fp <= 20, then fewest other errors')
        """
        row, column = self._index(true), self._column_index(predicted)
        size = int(self._counts[row].sum())
        text = str(to).strip()
        if not (text.isdecimal() and int(text) <= size) and not _PERCENTAGE.fullmatch(text):
            raise ValueError(
                f"Confusion.edit needs a count from 0 to {size}, the samples of {true!r}, or a "
                f"percentage such as '2%'; got {to!r}."
            )
        if column == len(self._classes):
            return Preference(f"rejected({quote_label(true)}) <= {to}")
        limit = f"errors({quote_label(true)} -> {quote_label(predicted)}) <= {to}"
        if row == column:
            limit = f"correct({quote_label(true)}) >= {to}"
        elif len(self._classes) == 2:
            limit = f"{'fp' if predicted == self._positive else 'fn'} <= {to}"
        wanted = Preference(limit)
        allows_more = wanted.bounds[0].slack(self) > 0
        return Preference(wanted, "then fewest other errors") if allows_more else wanted

    # Positions

    def _index(self, label: Any) -> int:
        if label not in self._classes:
            raise ValueError(
                f"Confusion has no class {label!r}; its classes are "
                f"{', '.join(map(repr, self._classes))}, and None is the rejected column."
            )
        return self._classes.index(label)

    def _column_index(self, predicted: Any) -> int:
        """Find a column; None is the rejected one."""
        return len(self._classes) if predicted is None else self._index(predicted)

    @property
    def _positive_index(self) -> int:
        if self._positive is None:
            raise ValueError(
                f"Confusion has {len(self._classes)} classes and none is positive; pass positive= "
                "or name the class."
            )
        return self._index(self._positive)


def _check_counts(counts: ArrayLike) -> NDArray[np.int64]:
    """Check the counts and copy them into a read-only k × (k + 1) array."""
    array = np.asarray(counts)
    if array.ndim != 2 or array.shape[1] - array.shape[0] not in (0, 1) or not array.size:
        raise ValueError(
            "Confusion needs counts of shape (k, k), or (k, k + 1) with rejected samples last; "
            f"got shape {array.shape}."
        )
    if array.dtype.kind not in "iu" or (array < 0).any():
        raise ValueError(
            f"Confusion needs counts that are integers, none below 0; got {array.tolist()!r}."
        )
    # Below this limit all sums are exact, as integers and as floats, this one too.
    if array.sum(dtype=np.float64) >= _LIMIT:
        raise ValueError(
            f"Confusion needs counts with a sum below 2^53 ({_LIMIT:,}), so that sums and rates "
            f"are exact; got {array.tolist()!r}. Divide all counts by the same number."
        )
    k = len(array)
    padded = np.zeros((k, k + 1), dtype=np.int64)
    padded[:, : array.shape[1]] = array
    padded.flags.writeable = False
    return padded


def _divide(part: int, whole: int) -> float:
    return float(part) / float(whole) if whole else float("nan")
