"""What is not as before in a confusion matrix: cells of mistakes, and the rejected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from margrave.confusion import Confusion


@dataclass(frozen=True)
class Change:
    """A cell of mistakes before and after.

    Attributes
    ----------
    true, answer : label
        The cell; None as the answer is the rejected column.
    before, after : int
        Its counts.
    """

    true: Any
    answer: Any
    before: int
    after: int

    def __str__(self) -> str:
        what = "given no answer" if self.answer is None else f"called {self.answer}"
        difference = self.after - self.before
        return f"{self.true} {what}: {self.before} -> {self.after} ({difference:+d})"


def changes(before: Confusion, after: Confusion) -> tuple[Change, ...]:
    """Cells of mistakes (and the rejected) that are not as before."""
    found, answers = [], [*after.classes, None]
    for true in after.classes:
        for answer in answers:
            counts = before[true, answer], after[true, answer]
            if answer != true and counts[0] != counts[1]:
                found.append(Change(true, answer, *counts))
    return tuple(found)
