"""Requests to learners: the requested cell on the test set, and the other cell at equal counts.

A request limits the false positives, or the false negatives, on the tuning set: one fewer than the
learner makes, half of them, or none. What counts is the test set. There a tuned model should make
as many errors in the requested cell as requested, and its errors in the other cell are compared
with those of other models at the same count in the requested one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from experiments._parts import Floats, Ints, Parts
from experiments.martingale.models import GOAL
from margrave.martingale import NotMetWarning, TunableLogistic

Cell = Literal["fp", "fn"]
CELLS: tuple[Cell, ...] = ("fp", "fn")
RIVALS = ("start", "LR", "forest")
Tune = Callable[[Any, "Request", Parts], Any]
"""From a fitted model, a request and the data to a model with ``predict``."""


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

    def is_at_risk(self, y: Ints) -> Any:
        """Which samples could be errors in its cell."""
        return y == (0 if self.cell == "fp" else 1)


@dataclass(frozen=True)
class Outcome:
    """The result of one request.

    Attributes
    ----------
    cell : str
        The requested cell.
    wanted, error : float
        The number of errors in it on the test set at the requested rate, and the standard error of
        that number, for a model that meets the request on the tuning set exactly. Its rate is not
        known to be 0 if none are requested: for the error it is (k + 1) / (n + 2).
    met : bool
        Whether the tuned model meets the request on the tuning set.
    tuned, logistic : tuple of int
        Errors on the test set in the requested and in the other cell: of the tuned model, and of a
        logistic regression with its threshold moved.
    at_equal_count : dict of str to float
        Errors of rivals in the other cell, at the tuned model's count in the requested one.
    control : float
        The same of the logistic regression at its own count: if the comparison is fair, it is on
        average what its moved threshold makes.
    """

    cell: Cell
    wanted: float
    error: float
    met: bool
    tuned: tuple[int, int]
    logistic: tuple[int, int]
    at_equal_count: dict[str, float]
    control: float


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


def other_errors(scores: Floats, y: Ints, request: Request, count: int) -> float:
    """Errors in the other cell of a score whose threshold makes ``count`` errors in the requested.

    Several thresholds do, and a threshold that was set on other samples can be any of them: this
    is the mean of the best and the worst. At no errors the worst would be to predict one class for
    all samples; instead the curve is extrapolated by its next step. Between counts that ties make
    impossible it is linear.
    """
    candidates = np.concatenate([[-np.inf], np.unique(scores)])
    pairs = np.array([request.counts(y, scores > candidate) for candidate in candidates])
    counts = np.unique(pairs[:, 0])
    fewest = np.array([pairs[pairs[:, 0] == one, 1].min() for one in counts], dtype=float)
    worst = np.append(2 * fewest[0] - fewest[min(1, len(fewest) - 1)], fewest[:-1])
    size = int((~request.is_at_risk(y)).sum())
    return float(np.interp(count, counts, np.minimum((fewest + worst) / 2, size)))


def score(model: Any, X: Floats) -> Floats:
    """Decision values, or else probabilities of the positive class."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X))
    return np.asarray(model.predict_proba(X)[:, 1])


def with_gain(min_gain: float) -> Tune:
    """Tuning with some ``min_gain``."""
    return lambda model, request, data: model.tune(
        f"{request}, {GOAL}", data.X_tune, data.y_tune, min_gain=min_gain
    )


def by_default(model: Any, request: Request, data: Parts) -> Any:
    """Tuning with the defaults."""
    return model.tune(f"{request}, {GOAL}", data.X_tune, data.y_tune)


def outcomes(
    data: Parts, model: Any, forest: Any, tunings: dict[str, Tune]
) -> dict[str, list[Outcome]]:
    """Every request to a trained model, by each of several tunings."""
    plain = TunableLogistic().fit(data.X_train, data.y_train)
    rivals = dict(zip(RIVALS, (model, plain, forest), strict=True))
    test_scores = {name: score(rival, data.X_test) for name, rival in rivals.items()}
    found: dict[str, list[Outcome]] = {name: [] for name in tunings}
    for request in requests(data.y_tune, model.predict(data.X_tune) == 1):
        n, n_test = (int(request.is_at_risk(y).sum()) for y in (data.y_tune, data.y_test))
        # The rate of a model with so many errors on the tuning set is uncertain, too.
        rate = (request.most + 1) / (n + 2)
        error = np.sqrt(n_test * rate * (1 - rate) * (1 + n_test / n))
        moved = threshold(score(plain, data.X_tune), data.y_tune, request)
        logistic = request.counts(data.y_test, test_scores["LR"] > moved)
        control = other_errors(test_scores["LR"], data.y_test, request, logistic[0])
        for name, tune in tunings.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotMetWarning)  # it is counted
                tuned = tune(model, request, data)
            own, _ = request.counts(data.y_tune, tuned.predict(data.X_tune) == 1)
            counts = request.counts(data.y_test, tuned.predict(data.X_test) == 1)
            at_equal_count = {
                rival: other_errors(scores, data.y_test, request, counts[0])
                for rival, scores in test_scores.items()
            }
            found[name].append(
                Outcome(
                    request.cell,
                    request.most * n_test / n,
                    float(error),
                    own <= request.most,
                    counts,
                    logistic,
                    at_equal_count,
                    control,
                )
            )
    return found


@dataclass(frozen=True)
class Total:
    """Outcomes added up.

    Attributes
    ----------
    n, n_met : int
        Number of requests, and of those that the tuned model meets on the tuning set.
    wanted, error : float
        Errors in the requested cell on the test sets at the requested rates, and their standard
        error.
    tuned : int
        Errors of the tuned models in the requested cell on the test sets.
    other : int
        Errors of the tuned models in the other cell.
    at_equal_count : dict of str to float
        Errors of rivals in the other cell, at the tuned models' counts in the requested one.
    control : tuple of float
        Errors of the logistic regression's moved threshold in the other cell, and what the
        comparison at its own counts has for it.
    """

    n: int
    n_met: int
    wanted: float
    error: float
    tuned: int
    other: int
    at_equal_count: dict[str, float]
    control: tuple[float, float]

    @classmethod
    def of(cls, splits: Sequence[Sequence[Outcome]]) -> Total:
        """Add up the outcomes of several splits.

        The requests about one cell of one split share their samples, so their standard errors are
        added; those of different cells and splits count as independent, although the splits
        overlap.
        """
        every = [outcome for split in splits for outcome in split]
        errors = [
            sum(one.error for one in split if one.cell == cell)
            for split in splits
            for cell in CELLS
        ]
        return cls(
            len(every),
            sum(one.met for one in every),
            sum(one.wanted for one in every),
            float(np.linalg.norm(errors)),
            sum(one.tuned[0] for one in every),
            sum(one.tuned[1] for one in every),
            {rival: sum(one.at_equal_count[rival] for one in every) for rival in RIVALS},
            (sum(one.logistic[1] for one in every), sum(one.control for one in every)),
        )

    @property
    def holds(self) -> bool:
        """Whether the requested cell has at most two standard errors too many on the test sets."""
        return self.tuned - self.wanted <= 2 * self.error

    def ratio(self, rival: str) -> float:
        """Errors in the other cell as a multiple of those of a rival."""
        return self.other / max(self.at_equal_count[rival], 1)
