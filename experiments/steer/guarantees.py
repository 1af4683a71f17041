"""The guarantees of one split, and what each rule does on the test set at the same guarantee."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from experiments._parts import Floats, Ints
from experiments.steer import learn_then_test
from experiments.steer.chance import Sizes, largest_count_within
from experiments.steer.rivals import (
    CONFIDENCE,
    MARGRAVE,
    MEMBER,
    SELECTION,
    STACKING,
    STACKING_LOG_ODDS,
    order_statistic_threshold,
    threshold_leaving,
)
from experiments.steer.study import Training
from margrave.confusion import Objective, Preference
from margrave.steer._certify import Plan, set_decision
from margrave.steer._order_statistic import (
    fewest_sufficient,
    largest_allowed_count,
    samples_needed,
)
from margrave.steer._plan import make_plan
from margrave.steer._thresholds import best_decision

CLASSES = {"fp": 0, "fn": 1}
"""The class whose errors a quantity counts."""

ORDER_STATISTIC, TUNED = "order statistic", "tuning quantile"
THRESHOLDS = (MARGRAVE, ORDER_STATISTIC, TUNED)
"""Thresholds of Margrave's score: that of the model that `accept` returns, and two others."""
RIVALS = (
    *(MEMBER, STACKING, STACKING_LOG_ODDS, SELECTION),
    *(learn_then_test.METHODS if learn_then_test.HAS_MAPIE else ()),
)
"""The rules that are compared with Margrave."""


@dataclass(frozen=True)
class Outcome:
    """Test errors: `wrong` in the limited class, `missed` in the other one."""

    wrong: int
    missed: int

    @property
    def total(self) -> int:
        """All errors."""
        return self.wrong + self.missed


@dataclass(frozen=True)
class Case:
    """A guarantee on one split.

    Attributes
    ----------
    side : str
        "fp" or "fn".
    percent : int
        The guaranteed rate.
    sizes : Sizes
        Numbers of samples of the limited class.
    n_others : int
        Test samples of the class that is not limited.
    outcomes : dict of Outcome
        What each rule does on the test set; None where it finds no threshold.
    """

    side: str
    percent: int
    sizes: Sizes
    n_others: int
    outcomes: dict[str, Outcome | None]

    @property
    def rate(self) -> float:
        """The guaranteed rate as a fraction."""
        return self.percent / 100

    def sizes_of(self, rule: str) -> Sizes:
        """Return the numbers of samples that a rule uses; `accept` leaves out those of no use."""
        if rule != MARGRAVE:
            return self.sizes
        return replace(self.sizes, n=fewest_sufficient(self.sizes.n, self.rate, 1 - CONFIDENCE))

    def recall(self, rule: str) -> float:
        """Recall of the class that is not limited, in percent; nan without a threshold."""
        outcome = self.outcomes[rule]
        return float("nan") if outcome is None else 100 * (1 - outcome.missed / self.n_others)

    def is_exceeded(self, rule: str) -> bool:
        """Whether the test set shows more than the guaranteed rate."""
        outcome = self.outcomes[rule]
        most = largest_count_within(self.sizes.m, self.rate)
        return outcome is not None and outcome.wrong > most


def supported_limits(y_certify: Ints, percents: tuple[int, ...]) -> list[tuple[str, int]]:
    """List the limits that a certification set is large enough to guarantee."""
    return [
        (side, percent)
        for side, limited in CLASSES.items()
        for percent in percents
        if int((y_certify == limited).sum()) >= (samples_needed(percent / 100, 1 - CONFIDENCE) or 0)
    ]


def count_errors(positive: Any, y: Ints, limited: int) -> Outcome:
    """Count the errors of predictions by class."""
    wrong = positive != (y == 1)
    return Outcome(int(wrong[y == limited].sum()), int(wrong[y != limited].sum()))


def plan_certification(scores: Floats, y: Ints, wanted: str, sizes: Ints) -> Plan:
    """Plan a certification as `Dialog.prefer` and `accept` do, from the scores of a tuning set.

    Parameters
    ----------
    scores, y : ndarray
        Scores and labels of the tuning set.
    wanted : str
        The limit.
    sizes : ndarray of int
        The class sizes of the certification set.
    """
    preference = Preference(wanted)
    objective = Objective(preference, y, (0, 1), 1)
    decision = best_decision(objective, scores)
    return make_plan(preference, decision, scores, objective, sizes, 1 - CONFIDENCE)


def measure(training: Training, side: str, percent: int) -> dict[str, Outcome | None] | None:
    """Certify a limit with each rule, and count test errors; None if it is refused.

    All scores are certified as `accept` certifies Margrave's. The order statistic and MAPIE use
    Margrave's score.
    """
    arrays, limited, rate = training.arrays, CLASSES[side], percent / 100
    y_tune, y, y_test = (arrays[f"{part}/y"] for part in ("tune", "certify", "test"))
    if (side, percent) not in supported_limits(y, (percent,)):
        return None
    tune, certify, test = (arrays[f"{part}/{MARGRAVE}"] for part in ("tune", "certify", "test"))
    plan = plan_certification(tune, y_tune, f"{side} <= {percent}%", np.bincount(y))
    predicted: dict[str, Any] = {}
    for name in arrays:
        part, rule = name.split("/")
        if part == "certify" and rule != "y":
            decision = set_decision(plan, arrays[name], y, 1 - CONFIDENCE).decision
            predicted[rule] = decision.predict(arrays[f"test/{rule}"]) == 1
    predicted[ORDER_STATISTIC] = test > order_statistic_threshold(certify, y, limited, rate)
    allowed = largest_count_within(int((y_tune == limited).sum()), rate)
    predicted[TUNED] = test > threshold_leaving(tune, y_tune, limited, allowed)
    if learn_then_test.HAS_MAPIE:
        predicted |= learn_then_test.predict_with_mapie(
            (tune, y_tune), (certify, y), test, limited, rate
        )
    return {
        rule: None if positive is None else count_errors(positive, y_test, limited)
        for rule, positive in predicted.items()
    }


def measure_all(training: Training, percents: tuple[int, ...]) -> list[Case]:
    """Measure every limit that the certification set supports.

    Each guarantee is evaluated as the only one on its certification set.
    """
    y, y_test = training.arrays["certify/y"], training.arrays["test/y"]
    cases = []
    for side, percent in supported_limits(y, percents):
        outcomes = measure(training, side, percent) or {}
        n, m = (int((labels == CLASSES[side]).sum()) for labels in (y, y_test))
        sizes = Sizes(n, largest_allowed_count(n, percent / 100, 1 - CONFIDENCE), m)
        cases.append(Case(side, percent, sizes, len(y_test) - m, outcomes))
    return cases
