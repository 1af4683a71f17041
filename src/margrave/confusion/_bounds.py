"""One bound: a word that picks cells of the matrix, and a limit on their sum."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Flags

# A class as it is written in a text: in quotes, which stand twice inside of it, or bare if it holds
# nothing that ends it.
LABEL = r'"(?:[^"]|"")*"|\'(?:[^\']|\'\')*\'|[^\s()<>,;"\'-]*(?:-(?!>)[^\s()<>,;"\'-]+)*'


class Matrix(Protocol):
    """What a preference needs to know of a confusion matrix."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """Shape (k, k + 1): a row per true class, a column per answer, the last one rejected."""

    @property
    def classes(self) -> tuple[Any, ...]:
        """The k classes."""

    @property
    def positive(self) -> Any:
        """The positive class, or None."""


class PreferenceError(ValueError):
    """A preference that cannot be read, contradicts itself or does not fit the classes."""

    __module__ = "margrave.confusion"  # tracebacks name the public place


@dataclass(frozen=True)
class _Word:
    """How a word picks its cells from a k × (k + 1) matrix, given the positions of its labels."""

    cells: Callable[[int, tuple[int, ...]], tuple[Flags, Flags]]
    labels: tuple[int, ...]  # how many labels it may carry
    of_positive: bool = False  # without a label it speaks of the positive class
    only_share: bool = False


def _grid(k: int) -> tuple[Flags, Flags]:
    """The diagonal and the answered cells of an empty k × (k + 1) matrix."""
    return np.eye(k, k + 1, dtype=bool), np.arange(k + 1) < np.full((k, 1), k)


def row(k: int, c: int) -> Flags:
    return np.broadcast_to((np.arange(k) == c)[:, None], (k, k + 1))


def _column(k: int, c: int) -> Flags:
    return np.broadcast_to(np.arange(k + 1) == c, (k, k + 1))


def _rows(k: int, at: tuple[int, ...]) -> Flags:
    """The samples of one class, or of all."""
    return row(k, at[0]) if at else np.ones((k, k + 1), dtype=bool)


def _errors(k: int, at: tuple[int, ...]) -> tuple[Flags, Flags]:
    if at:
        return row(k, at[0]) & _column(k, at[1]), row(k, at[0])
    correct, answered = _grid(k)
    return answered & ~correct, _rows(k, at)


def _correct(k: int, at: tuple[int, ...]) -> tuple[Flags, Flags]:
    return _grid(k)[0] & _rows(k, at), _rows(k, at)


WORDS = {
    "accuracy": _Word(_correct, (0,), only_share=True),
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
        only_share=True,
    ),
    "recall": _Word(_correct, (0, 1), of_positive=True, only_share=True),
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
        The classes it names, as written.
    at_most : bool
        True for ``<=``, False for ``>=``.
    limit : Fraction
        The count, or the share (0.05 for 5%).
    share : bool
        Whether the limit is a share.
    implied : bool
        True for the ``rejected <= 0`` of a preference that does not speak of rejecting; it then
        covers all classes but ``labels``, of which it does speak.
    """

    word: str
    labels: tuple[str, ...]
    at_most: bool
    limit: Fraction
    share: bool
    implied: bool = False

    def __str__(self) -> str:
        if self.implied:
            of = f" outside {', '.join(map(quote_label, self.labels))}" if self.labels else ""
            return f"none rejected{of} (implied, as nothing else was said)"
        labels = f"({' -> '.join(map(quote_label, self.labels))})" if self.labels else ""
        limit = f"{format_decimal(self.limit * 100)}%" if self.share else format_decimal(self.limit)
        return f"{self.word}{labels} {'<=' if self.at_most else '>='} {limit}"

    @property
    def of_positive(self) -> bool:
        """Whether the word speaks of the positive class where it names none."""
        return not self.implied and WORDS[self.word].of_positive

    def subject(self, matrix: Matrix) -> tuple[str, tuple[str, ...]]:
        """What the bound is about: a word, and the classes that it names or means.

        Parameters
        ----------
        matrix : Confusion
            A matrix with the classes.

        Returns
        -------
        word : str
        labels : tuple of str
        """
        meant = (str(matrix.positive),) if self.of_positive else ()
        return self.word, self.labels or meant

    def cells(self, matrix: Matrix) -> tuple[Flags, Flags]:
        """Which cells of the matrix are the amount, and which it is a share of.

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
        k = len(matrix.classes)
        at = tuple(_place(label, matrix.classes, self) for label in self.labels)
        if self.implied:
            return _column(k, k) & ~np.isin(np.arange(k), at)[:, None], _rows(k, ())
        if not at and WORDS[self.word].of_positive:
            if matrix.positive is None:
                raise PreferenceError(
                    f"'{self}' needs a class, since there are {k} and none is the positive one: "
                    f"write {self.word}({quote_label(matrix.classes[0])})."
                )
            at = (matrix.classes.index(matrix.positive),)
        return WORDS[self.word].cells(k, at)

    def slack(self, matrix: Matrix) -> Fraction:
        """How many samples there are to spare; below 0, how many are missing.

        Parameters
        ----------
        matrix : Confusion
            The matrix.

        Returns
        -------
        Fraction
        """
        amount, base = (int(matrix.counts[mask].sum()) for mask in self.cells(matrix))
        if self.share and base == 0:
            return Fraction(-1)  # a share of nothing: one sample at least is missing
        limit = self.limit * base if self.share else self.limit
        return limit - amount if self.at_most else amount - limit


def implied_bound(bounds: Sequence[Bound]) -> Bound | None:
    """That nothing is rejected, except where the bounds speak of rejecting."""
    spoken = [bound.labels for bound in bounds if bound.word == "rejected"]
    if () in spoken:
        return None
    labels = tuple(label for (label,) in spoken)
    return Bound("rejected", labels, True, Fraction(0), share=False, implied=True)


def _place(label: str, classes: Sequence[Any], bound: Bound) -> int:
    """The position of the class that is written so."""
    texts = [str(known) for known in classes]
    if label in texts:
        return texts.index(label)
    for position, known in enumerate(classes):
        if isinstance(known, int | float) and not isinstance(known, bool) and _same(label, known):
            return position
    known_classes = ", ".join(map(quote_label, classes))
    raise PreferenceError(f"'{bound}' names the class {label!r}; the classes are {known_classes}.")


def _same(text: str, number: float) -> bool:
    try:
        return float(text) == number
    except ValueError:
        return False


def quote_label(label: Any) -> str:
    """A class as it is written in a preference: in quotes where it would not be read as one."""
    text = str(label)
    if re.fullmatch(LABEL, text) and text and text[0] not in "\"'":
        return text
    if '"' in text and "'" not in text:
        return f"'{text}'"
    return '"' + text.replace('"', '""') + '"'


def format_decimal(value: Fraction) -> str:
    """A decimal fraction in full; another one to 17 digits."""
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
