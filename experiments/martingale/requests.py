"""Tuning requests to a trained learner, and an independent reference.

The requests are one false positive fewer than on the tuning set, half of them and none, and the
same for false negatives. The reference tries all thresholds of the untuned learner.
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
        """Errors in its cell, and in the other one."""
        fp, fn = int((positive & (y == 0)).sum()), int((~positive & (y == 1)).sum())
        return (fp, fn) if self.cell == "fp" else (fn, fp)


@dataclass(frozen=True)
class Tally:
    """The results of some requests.

    Attributes
    ----------
    requested, met : int
        Number of requests, and of those that the tuned model meets on the tuning set.
    more, fewer : int
        Number of requests with more errors in total than the moved threshold has, and of met
        requests with fewer.
    test, test_threshold : int
        All errors on the test set, of the tuned models and of the moved thresholds.
    test_logistic : int
        Of a single logistic regression whose threshold is moved to meet the same request.
    """

    requested: int = 0
    met: int = 0
    more: int = 0
    fewer: int = 0
    test: int = 0
    test_threshold: int = 0
    test_logistic: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def requests(y: Ints, positive: Any) -> list[Request]:
    """One fewer, half and none of each error; only those that need a change, each once."""
    found = []
    for cell in CELLS:
        count, _ = Request(cell, 0).counts(y, positive)
        targets = sorted({count - 1, count // 2, 0})
        found += [Request(cell, most) for most in targets if 0 <= most < count]
    return found


def threshold(scores: Floats, y: Ints, request: Request) -> float:
    """The threshold above which a sample is predicted positive, by trying all.

    Of those that meet the request, the one with the fewest errors in total; of equals the nearest
    to 0.
    """
    known = np.unique(scores)
    between = (known[1:] + known[:-1]) / 2
    best: tuple[tuple[float, ...], float] | None = None
    for candidate in (known[0] - 1, *between, known[-1] + 1):
        own, other = request.counts(y, scores > candidate)
        rank = (own + other, abs(candidate))
        if own <= request.most and (best is None or rank < best[0]):
            best = rank, float(candidate)
    if best is None:  # predicting all samples negative, or all positive, meets any request
        raise ValueError(f"No threshold meets {request}.")
    return best[1]


def one_split(data: Parts, make: Callable[[], Any]) -> Tally:
    """Every request to a learner that is trained on one split."""
    model = make().fit(data.X_train, data.y_train)
    plain = TunableLogistic().fit(data.X_train, data.y_train)
    total = Tally()
    for request in requests(data.y_tune, model.predict(data.X_tune) == 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotMetWarning)  # it is counted
            tuned = model.tune(str(request), data.X_tune, data.y_tune)
        own, other = request.counts(data.y_tune, tuned.predict(data.X_tune) == 1)
        scores = model.decision_function(data.X_tune)
        chosen = threshold(scores, data.y_tune, request)
        by_threshold = sum(request.counts(data.y_tune, scores > chosen))
        plain_chosen = threshold(plain.decision_function(data.X_tune), data.y_tune, request)
        total += Tally(
            requested=1,
            met=int(own <= request.most),
            more=int(own + other > by_threshold),
            fewer=int(own <= request.most and own + other < by_threshold),
            test=_errors(tuned.predict(data.X_test) == 1, data),
            test_threshold=_errors(model.decision_function(data.X_test) > chosen, data),
            test_logistic=_errors(plain.decision_function(data.X_test) > plain_chosen, data),
        )
    return total


def _errors(positive: Any, data: Parts) -> int:
    return int((positive != (data.y_test == 1)).sum())


def run(titles: Sequence[str], make: Callable[[], Any], seeds: Iterable[int]) -> Tally:
    """Every request of some splits of some data sets."""
    each = (one_split(parts(title, seed), make) for seed in seeds for title in titles)
    return sum(each, Tally())
