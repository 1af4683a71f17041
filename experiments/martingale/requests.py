"""Requests to a trained learner, and a referee that knows nothing of how they are met.

A learner is trained; its errors on the tuning part are counted; then it is asked for one false
positive fewer, for half of them, for none, and the same of false negatives. The referee moves the
threshold of the untuned learner instead, by trying every one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Literal

import numpy as np

from experiments._parts import Floats, Ints, Parts
from experiments.martingale.data import parts
from margrave.martingale import NotMetWarning, TunableLogistic

Cell = Literal["fp", "fn"]
CELLS: tuple[Cell, ...] = ("fp", "fn")


@dataclass(frozen=True)
class Request:
    """At most so many false positives, or false negatives."""

    cell: Cell
    most: int

    def __str__(self) -> str:
        return f"{self.cell} <= {self.most}"

    def counts(self, y: Ints, positive: Any) -> tuple[int, int]:
        """Errors in the cell it speaks of, and in the other one."""
        fp, fn = int((positive & (y == 0)).sum()), int((~positive & (y == 1)).sum())
        return (fp, fn) if self.cell == "fp" else (fn, fp)


@dataclass(frozen=True)
class Tally:
    """What became of some requests.

    Attributes
    ----------
    asked, met : int
        How many there were, and how many the tuned model keeps to on the tuning part.
    dearer, cheaper : int
        How many have more errors in the other cell than the moved threshold; and how many were
        met with fewer.
    test, test_threshold : int
        All errors on the test part, of the tuned models and of the moved thresholds.
    test_logistic : int
        Of a single logistic regression whose threshold is moved to keep to the same count.
    """

    asked: int = 0
    met: int = 0
    dearer: int = 0
    cheaper: int = 0
    test: int = 0
    test_threshold: int = 0
    test_logistic: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def requests(y: Ints, positive: Any) -> list[Request]:
    """One fewer, half and none of each error; those that ask for a change, each once."""
    found = []
    for cell in CELLS:
        count, _ = Request(cell, 0).counts(y, positive)
        targets = sorted({count - 1, count // 2, 0})
        found += [Request(cell, most) for most in targets if 0 <= most < count]
    return found


def threshold(scores: Floats, y: Ints, request: Request) -> float:
    """The cut above which a sample is called positive, by trying all.

    Of those that keep to the request the one with fewest errors in the other cell; of equals with
    fewest in the cell; then the nearest to 0.
    """
    known = np.unique(scores)
    between = (known[1:] + known[:-1]) / 2
    best: tuple[tuple[float, ...], float] | None = None
    for cut in (known[0] - 1, *between, known[-1] + 1):
        spoken, other = request.counts(y, scores > cut)
        rank = (other, spoken, abs(cut))
        if spoken <= request.most and (best is None or rank < best[0]):
            best = rank, float(cut)
    if best is None:  # calling all samples negative, or all positive, keeps to any request
        raise ValueError(f"No threshold keeps to {request}.")
    return best[1]


def one_split(given: Parts, make: Callable[[], Any]) -> Tally:
    """Every request to a learner that is trained on one split."""
    model = make().fit(given.X_train, given.y_train)
    plain = TunableLogistic().fit(given.X_train, given.y_train)
    total = Tally()
    for request in requests(given.y_tune, model.predict(given.X_tune) == 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotMetWarning)  # it is counted
            tuned = model.tune(str(request), given.X_tune, given.y_tune)
        spoken, other = request.counts(given.y_tune, tuned.predict(given.X_tune) == 1)
        scores = model.decision_function(given.X_tune)
        cut = threshold(scores, given.y_tune, request)
        _, by_threshold = request.counts(given.y_tune, scores > cut)
        plain_cut = threshold(plain.decision_function(given.X_tune), given.y_tune, request)
        total += Tally(
            asked=1,
            met=int(spoken <= request.most),
            dearer=int(other > by_threshold),
            cheaper=int(spoken <= request.most and other < by_threshold),
            test=_errors(tuned.predict(given.X_test) == 1, given),
            test_threshold=_errors(model.decision_function(given.X_test) > cut, given),
            test_logistic=_errors(plain.decision_function(given.X_test) > plain_cut, given),
        )
    return total


def _errors(positive: Any, given: Parts) -> int:
    return int((positive != (given.y_test == 1)).sum())


def run(titles: Sequence[str], make: Callable[[], Any], seeds: Iterable[int]) -> Tally:
    """Every request of some splits of some data sets."""
    each = (one_split(parts(title, seed), make) for seed in seeds for title in titles)
    return sum(each, Tally())
