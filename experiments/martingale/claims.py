"""What the document's numbers say, held against ours; and whether they can be right at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from experiments.martingale.data import favoured, load
from experiments.martingale.document import (
    SOURCES,
    TABLE_1,
    TABLE_1_METHODS,
    TABLE_2,
    TABLE_2_METHODS,
    TABLE_4,
)
from experiments.martingale.results import Gap, Results, on_class, overall
from experiments.martingale.study import GRANULAR_LEVELS

MARKS = {1: "✓", 0: "○", -1: "✗"}
ROUNDING = 0.005  # of a printed accuracy, in %
NEAR = 0.1  # of a share of a class

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
PLACES = ("the favoured class", "all samples")


@dataclass(frozen=True)
class Claim:
    """A difference that the document prints, in points of accuracy.

    Attributes
    ----------
    table : int
        Where.
    what : str
        Of which two methods, on which samples.
    title : str
        On which data set.
    printed : float
        The document's.
    here : Gap
        Ours.
    """

    table: int
    what: str
    title: str
    printed: float
    here: Gap

    @property
    def found(self) -> int:
        """1 if it is found here, 0 if ours is not told from 0, −1 if it is the other way round."""
        return self.here.sign * int(np.sign(self.printed))

    def __str__(self) -> str:
        return f"{self.printed:+.2f} / {self.here} {MARKS[self.found]}"


def claims(results: Results) -> list[Claim]:
    """The differences that the document prints, between methods that it compares."""
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
    part = f"granularity {GRANULAR_LEVELS[0]}"
    for title, (one, other) in product(results.titles(part), _TABLE_4):
        for place, column, of in zip(PLACES, (1, 3), (on_class(0), overall), strict=True):
            above, below = (TABLE_4[title][name][column] for name in (one, other))
            if above is not None and below is not None:
                here = results.gap(part, title, one, other, of)
                yield Claim(4, f"{one} − {other}, {place}", title, above - below, here)


@dataclass(frozen=True)
class Implied:
    """The share of the favoured class by which the printed accuracies add up.

    Attributes
    ----------
    title, method : str
        Whose.
    low, high : float
        The share, whatever the rounding.
    possible : bool
        Whether any class of the data set has nearly such a share.
    """

    title: str
    method: str
    low: float
    high: float
    possible: bool


def implied_shares(titles: list[str]) -> list[Implied]:
    """For every column of table 2: Acc = share · Acc(favoured) + (1 − share) · Acc(rest)."""
    found = []
    for title in titles:
        _, y = load(title)
        shares = np.bincount(y) / len(y)
        for method, *row in zip(TABLE_2_METHODS, *TABLE_2[title], strict=True):
            if any(value is None for value in row):
                continue
            low, high = _implied(*(float(value) for value in row if value is not None))
            away = np.maximum(np.maximum(low - shares, shares - high), 0)
            found.append(Implied(title, method, low, high, bool(away.min() <= NEAR)))
    return found


def _implied(of_favoured: float, of_rest: float, of_all: float) -> tuple[float, float]:
    """Smallest and largest share, the three accuracies rounded."""
    shares = [
        (of_all + c - of_rest - b) / (of_favoured + a - of_rest - b)
        for a, b, c in product((-ROUNDING, ROUNDING), repeat=3)
    ]
    return min(shares), max(shares)


def favoured_shares(titles: list[str]) -> dict[str, float]:
    """The share that the favoured class has in the data set."""
    found = {}
    for title in titles:
        if title in SOURCES:
            _, y = load(title)
            found[title] = float(np.mean(y == favoured(title)))
    return found
