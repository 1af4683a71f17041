"""The differences that the paper reports, compared with ours, and whether they are possible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from experiments.martingale.data import favoured, load
from experiments.martingale.paper import (
    SOURCES,
    TABLE_1,
    TABLE_1_METHODS,
    TABLE_2,
    TABLE_2_METHODS,
    TABLE_4,
)
from experiments.martingale.results import Gap, Results, on_class, overall
from experiments.martingale.study import GRANULARITY

MARKS = {1: "✓", 0: "○", -1: "✗"}
ROUNDING = 0.005  # of a printed accuracy, in %
NEAR = 0.1  # largest difference between fractions of a class

_TABLE_1 = (
    ("LR-Tune", "LR"),
    ("RBF-Tune", "RBF"),
    ("Ada-LR", "LR"),
    ("Ada-RBF", "RBF"),
    ("MB-LR", "LR"),
    ("MB-RBF", "RBF"),
    ("MB-LR", "Ada-LR"),
    ("MB-RBF", "Ada-RBF"),
)
_TABLE_2 = (
    ("MB-Tune", "MB"),
    ("MB-Tune-Freeze", "MB-Tune"),
    ("AMB", "MB"),
    ("AMB-Tune", "AMB"),
)
_TABLE_4 = (("I-ALL", "I-ROOT"), ("I-SELECT", "I-ALL"))
PLACES = ("tuned class", "all samples")


@dataclass(frozen=True)
class Claim:
    """A difference that the paper reports, in points of accuracy.

    Attributes
    ----------
    table : int
        The table.
    what : str
        The two methods and the samples.
    title : str
        The data set.
    printed : float
        The difference in the paper.
    here : Gap
        Our difference.
    """

    table: int
    what: str
    title: str
    printed: float
    here: Gap

    @property
    def found(self) -> int:
        """1 if it is found here, 0 if ours is not significant, −1 if ours has the other sign."""
        return self.here.sign * int(np.sign(self.printed))


def claims(results: Results) -> list[Claim]:
    """The differences between methods that the paper compares."""
    found = [*_of_table_1(results), *_of_table_2(results), *_of_table_4(results)]
    return [claim for claim in found if abs(claim.printed) > ROUNDING]


def _of_table_1(results: Results) -> Iterator[Claim]:
    for title, (one, other) in product(results.titles("table 1"), _TABLE_1):
        printed = dict(zip(TABLE_1_METHODS, TABLE_1[title], strict=True))
        here = results.gap("table 1", title, one, other, overall)
        yield Claim(1, f"{one} − {other}", title, printed[one] - printed[other], here)


def _of_table_2(results: Results) -> Iterator[Claim]:
    for title, (one, other) in product(results.titles("table 2"), _TABLE_2):
        measured = zip(
            PLACES,
            (TABLE_2[title][0], TABLE_2[title][2]),
            (on_class(favoured(title)), overall),
            strict=True,
        )
        for place, row, of in measured:
            printed = dict(zip(TABLE_2_METHODS, row, strict=True))
            above, below = printed[one], printed[other]
            if above is not None and below is not None:
                here = results.gap("table 2", title, one, other, of)
                yield Claim(2, f"{one} − {other}, {place}", title, above - below, here)


def _of_table_4(results: Results) -> Iterator[Claim]:
    for title, (one, other) in product(results.titles(GRANULARITY), _TABLE_4):
        for place, column, of in zip(PLACES, (1, 3), (on_class(0), overall), strict=True):
            above, below = (TABLE_4[title][name][column] for name in (one, other))
            if above is not None and below is not None:
                here = results.gap(GRANULARITY, title, one, other, of)
                yield Claim(4, f"{one} − {other}, {place}", title, above - below, here)


@dataclass(frozen=True)
class Implied:
    """The fraction of the tuned class that the printed accuracies imply.

    Attributes
    ----------
    title, method : str
        The data set and the method.
    printed : tuple of float
        The accuracies on the tuned class, on the rest and on all samples.
    low, high : float
        The range of the fraction, by the rounding.
    possible : bool
        Whether any class of the data set has nearly that fraction.
    """

    title: str
    method: str
    printed: tuple[float, ...]
    low: float
    high: float
    possible: bool


def implied_fractions(titles: list[str]) -> list[Implied]:
    """For every column of table 2: Acc = f · Acc(tuned) + (1 − f) · Acc(rest)."""
    found = []
    for title in titles:
        _, y = load(title)
        fractions = np.bincount(y) / len(y)
        for method, *row in zip(TABLE_2_METHODS, *TABLE_2[title], strict=True):
            if any(value is None for value in row):
                continue
            printed = tuple(float(value) for value in row if value is not None)
            low, high = _implied(*printed)
            away = np.maximum(np.maximum(low - fractions, fractions - high), 0)
            found.append(Implied(title, method, printed, low, high, bool(away.min() <= NEAR)))
    return found


def _implied(of_favoured: float, of_rest: float, of_all: float) -> tuple[float, float]:
    """The smallest and largest fraction, by the rounding of three accuracies."""
    fractions = [
        (of_all + c - of_rest - b) / (of_favoured + a - of_rest - b)
        for a, b, c in product((-ROUNDING, ROUNDING), repeat=3)
    ]
    return min(fractions), max(fractions)


def favoured_fractions(titles: list[str]) -> dict[str, float]:
    """The fraction of the favoured class in the data set."""
    found = {}
    for title in titles:
        if title in SOURCES:
            _, y = load(title)
            found[title] = float(np.mean(y == favoured(title)))
    return found
