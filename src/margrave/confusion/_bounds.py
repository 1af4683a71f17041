"""One bound: a word that stands for cells of the matrix, and a limit on their sum."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from margrave import _labels
from margrave._errors import MargraveError
from margrave._messages import did_you_mean, near_names
from margrave._typing import Flags

# A class as written in a text: in quotes (doubled inside the label), or bare if it contains no
# character that would end it. The quantifiers are possessive, so that a search takes linear time.
QUOTED = r'"(?:[^"]++|"")*+"|\'(?:[^\']++|\'\')*+\''
LABEL = rf'(?>{QUOTED}|[^\s()<>,;"\'-]*+(?:-(?!>)[^\s()<>,;"\'-]++)*+)'


class Matrix(Protocol):
    """The part of a confusion matrix that a preference uses."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """Shape (k, k + 1): a row per true class, a column per predicted class, then rejected."""

    @property
    def classes(self) -> tuple[Any, ...]:
        """The k classes."""

    @property
    def positive(self) -> Any:
        """The positive class, or None."""


class PreferenceError(MargraveError):
    """A preference that cannot be parsed, contradicts itself or does not fit the data.

    Attributes
    ----------
    code : str
        The kind of error, one of those below.
    fields : dict
        The values that the message mentions. Bounds are texts.

    Notes
    -----
    The codes, and the fields of each:

    ==================  ==========================================================================
    ``syntax``          The text is not a bound: text, span (the first and the last position that
                        the message marks), examples.
    ``unknown_word``    A bound has a word that is not in the grammar: text, span, word, near (words
                        with a similar spelling), examples.
    ``too_many``        There are more than 200 bounds: n, allowed.
    ``not_a_count``     The limit of a count is not a whole number: text, span, limit.
    ``not_a_fraction``  The limit of a fraction is more than 1: text, span, limit.
    ``conflict``        No matrix meets all bounds: bounds, and either text and span, or sizes (of
                        each class).
    ``unknown_class``   A bound names a class that the data do not have: bound, label, classes,
                        near.
    ``needs_class``     A bound refers to the positive class, and there is none: bound, classes.
    ``too_large``       A count is more than the samples that it applies to: bound, limit, n.
    ``no_samples``      A count cannot become a fraction of no samples: bound.
    ``no_preference``   There is no bound.
    ``two_goals``       More than one goal is stated: goals.
    ``cannot_reject``   A bound requires rejected samples of a method that rejects none: bound.
    ``no_candidate``    No strategy applies to the preference: preference, strategies.
    ==================  ==========================================================================

    Examples
    --------
    >>> from margrave import Preference
    >>> from margrave.confusion import PreferenceError
    >>> try:
    ...     Preference("fpp <= 10%")
    ... except PreferenceError as error:
    ...     print(error.summary)
    ...     print(error.code, error.fields["near"])
    unknown word 'fpp'; did you mean fp? Examples: fp <= 5, recall >= 90%, rejected <= 10%.
    unknown_word ['fp']
    """

    __module__ = "margrave.confusion"  # the public name, shown in tracebacks


@dataclass(frozen=True)
class _Word:
    """The cells of a k × (k + 1) matrix that a word stands for."""

    cells: Callable[[int, tuple[int, ...]], tuple[Flags, Flags]]  # of k and the labels' positions
    labels: tuple[int, ...]  # allowed numbers of labels
    of_positive: bool = False  # without a label, the word refers to the positive class
    always_fraction: bool = False


def _grid(k: int) -> tuple[Flags, Flags]:
    """Masks of the diagonal and of the cells that are not rejected in a k × (k + 1) matrix."""
    return np.eye(k, k + 1, dtype=bool), np.arange(k + 1) < np.full((k, 1), k)


def row(k: int, c: int) -> Flags:
    """Mask of the row of class c."""
    return np.broadcast_to((np.arange(k) == c)[:, None], (k, k + 1))


def _column(k: int, c: int) -> Flags:
    return np.broadcast_to(np.arange(k + 1) == c, (k, k + 1))


def _rows(k: int, at: tuple[int, ...]) -> Flags:
    """Mask of the row of one class, or of all rows."""
    return row(k, at[0]) if at else np.ones((k, k + 1), dtype=bool)


def _errors(k: int, at: tuple[int, ...]) -> tuple[Flags, Flags]:
    if at:
        return row(k, at[0]) & _column(k, at[1]), row(k, at[0])
    correct, predicted = _grid(k)
    return predicted & ~correct, _rows(k, at)


def _correct(k: int, at: tuple[int, ...]) -> tuple[Flags, Flags]:
    return _grid(k)[0] & _rows(k, at), _rows(k, at)


WORDS = {
    "accuracy": _Word(_correct, (0,), always_fraction=True),
    "alarms": _Word(lambda k, at: (_column(k, at[0]), _rows(k, ())), (0, 1), of_positive=True),
    "correct": _Word(_correct, (0, 1)),
    "errors": _Word(_errors, (0, 2)),
    "fn": _Word(
        lambda k, at: (row(k, at[0]) & _errors(k, ())[0], row(k, at[0])),
        (0, 1),
        of_positive=True,
    ),
    "fp": _Word(
        lambda k, at: (_column(k, at[0]) & ~row(k, at[0]), ~row(k, at[0])),
        (0, 1),
        of_positive=True,
    ),
    "precision": _Word(
        lambda k, at: (row(k, at[0]) & _column(k, at[0]), _column(k, at[0])),
        (0, 1),
        of_positive=True,
        always_fraction=True,
    ),
    "recall": _Word(_correct, (0, 1), of_positive=True, always_fraction=True),
    "rejected": _Word(lambda k, at: (_column(k, k) & _rows(k, at), _rows(k, at)), (0, 1)),
}


@dataclass(frozen=True)
class Bound:
    """One inequality of a preference.

    Attributes
    ----------
    word : str
        One of accuracy, alarms, correct, errors, fn, fp, precision, recall, rejected.
    labels : tuple of str
        The classes that the bound names, as written.
    at_most : bool
        True for ``<=``, False for ``>=``.
    limit : Fraction
        The count, or the fraction (0.05 for 5%).
    is_fraction : bool
        Whether the limit is a fraction.
    implied : bool
        True for a limit that a preference implies for the rejected samples of the classes that it
        does not mention: all classes but ``labels``.

    Examples
    --------
    >>> from margrave import Confusion, Preference
    >>> bound = Preference("fp <= 2").bounds[0]
    >>> bound.word, bound.at_most, int(bound.limit), bound.is_fraction
    ('fp', True, 2, False)
    >>> matrix = Confusion.of(["ham", "ham", "spam", "spam"], ["ham", "spam", "ham", "spam"])
    >>> print(bound.slack(matrix))  # one more false positive is allowed
    1
    """

    word: str
    labels: tuple[str, ...]
    at_most: bool
    limit: Fraction
    is_fraction: bool
    implied: bool = False

    def __str__(self) -> str:
        scale, unit = (100, "%") if self.is_fraction else (1, "")
        limit = f"{format_decimal(self.limit * scale)}{unit}"
        if self.implied:
            others = f" outside {', '.join(map(quote_label, self.labels))}" if self.labels else ""
            amount = f"at most {limit}" if self.limit else "none"
            return f"{amount} rejected{others} (implied)"
        sign = "<=" if self.at_most else ">="
        return f"{write_quantity(self.word, self.labels)} {sign} {limit}"

    @property
    def of_positive(self) -> bool:
        """Whether the word refers to the positive class unless it names another."""
        return not self.implied and WORDS[self.word].of_positive

    def subject(self, matrix: Matrix) -> tuple[str, tuple[str, ...]]:
        """Give the word, and the classes that it names or refers to.

        Parameters
        ----------
        matrix : Confusion
            A matrix with the classes.

        Returns
        -------
        word : str
        labels : tuple of str
        """
        positive = (str(matrix.positive),) if self.of_positive else ()
        at = (_find_class(label, matrix.classes, self) for label in self.labels)
        return self.word, tuple(str(matrix.classes[place]) for place in at) or positive

    def cells(self, matrix: Matrix) -> tuple[Flags, Flags]:
        """Give the cells that the bound limits, and the cells that they are a fraction of.

        Parameters
        ----------
        matrix : Confusion
            The matrix.

        Returns
        -------
        amount, base : ndarrays of bool, shape (k, k + 1)
        """
        if not hasattr(matrix, "counts") or not hasattr(matrix, "classes"):
            raise TypeError(f"'{self}' needs a margrave.Confusion; got {type(matrix).__name__}.")
        if self.implied:
            k = len(matrix.classes)
            at = [_find_class(label, matrix.classes, self) for label in self.labels]
            others = ~np.isin(np.arange(k), at)[:, None]
            base = _rows(k, ()) & (others if others.any() else True)  # a base must not be empty
            return _column(k, k) & others, base
        return word_cells(self.word, self.labels, matrix, self)

    def limited_errors(self, matrix: Matrix) -> Flags:
        """Mask the cells of errors that can break the bound; none if every matrix meets it."""
        amount, base = self.cells(matrix)
        if self.limit <= 0 if not self.at_most else self.is_fraction and self.limit >= 1:
            return np.zeros_like(amount)
        counted = amount if self.at_most else base & ~amount
        return counted & _errors(len(matrix.classes), ())[0]

    def slack(self, matrix: Matrix) -> Fraction:
        """Count the samples to spare; below 0, the samples by which the bound is missed.

        Parameters
        ----------
        matrix : Confusion
            The matrix.

        Returns
        -------
        Fraction
        """
        amount, base = (int(matrix.counts[mask].sum()) for mask in self.cells(matrix))
        if self.is_fraction and base == 0:
            return Fraction(-1)  # a fraction of nothing: at least one sample is missing
        limit = self.limit * base if self.is_fraction else self.limit
        return limit - amount if self.at_most else amount - limit


def word_cells(
    word: str, labels: tuple[str, ...], matrix: Matrix, owner: object
) -> tuple[Flags, Flags]:
    """Give the cells that a word with labels stands for, and those that they are a fraction of."""
    at = tuple(_find_class(label, matrix.classes, owner) for label in labels)
    if not at and WORDS[word].of_positive:
        if matrix.positive is None:
            raise PreferenceError(
                f"'{owner}' needs a class: there are {len(matrix.classes)} classes and none is "
                f"positive; write {word}({quote_label(matrix.classes[0])}).",
                code="needs_class",
                bound=str(owner),
                classes=matrix.classes,
            )
        at = (matrix.classes.index(matrix.positive),)
    return WORDS[word].cells(len(matrix.classes), at)


def write_quantity(word: str, labels: Sequence[str]) -> str:
    """Write a word with its labels, as in a preference."""
    return f"{word}({' -> '.join(map(quote_label, labels))})" if labels else word


def implied_bounds(bounds: Sequence[Bound]) -> tuple[Bound, ...]:
    """Make the limits on the rejected samples of classes for which the user states none.

    Without any limit on rejected samples, none may be rejected. Limits for some classes hold for
    all other classes together as well: a close call may belong to either class, so a decision that
    rejects samples of one class only would have to know the true class.
    """
    stated = [bound for bound in bounds if bound.word == "rejected"]
    if any(not bound.labels for bound in stated):
        return ()
    labels = tuple(dict.fromkeys(label for bound in stated for label in bound.labels))
    none = Bound("rejected", labels, True, Fraction(0), is_fraction=False, implied=True)
    copies = [replace(bound, labels=labels, implied=True) for bound in stated if bound.at_most]
    return tuple(dict.fromkeys(copies)) or (none,)


def _find_class(label: str, classes: Sequence[Any], owner: object) -> int:
    """Find the position of the class that is written as this label."""
    position = _labels.find(label, classes)
    if position is not None:
        return position
    known_classes = ", ".join(map(quote_label, classes))
    near = near_names(label, map(str, classes))
    raise PreferenceError(
        f"'{owner}' names the class {label!r}; the classes are {known_classes}."
        f"{did_you_mean(near)}",
        code="unknown_class",
        bound=str(owner),
        label=label,
        classes=classes,
        near=near,
    )


def quote_label(label: Any) -> str:
    """Write a class as in a preference: in quotes if it would not be parsed as one label."""
    text = str(label)
    if re.fullmatch(LABEL, text) and text and text[0] not in "\"'":
        return text
    if '"' in text and "'" not in text:
        return f"'{text}'"
    return '"' + text.replace('"', '""') + '"'


def format_decimal(value: Fraction) -> str:
    """Write a decimal fraction in full, any other fraction to 17 digits."""
    rest, digits = value.denominator, 0
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        return f"{float(value):.17g}"
    while (value * 10**digits).denominator != 1:
        digits += 1
    text = str(int(value * 10**digits)).rjust(digits + 1, "0")
    return f"{text[:-digits]}.{text[-digits:]}" if digits else text
