"""The guarantees of one split, and what each rule does on the test set at the same guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiments._parts import Ints
from experiments.steer import learn_then_test
from experiments.steer.chance import Sizes, largest_count_within
from experiments.steer.rivals import (
    CONFIDENCE,
    MEMBER,
    SELECTION,
    STACKING,
    STACKING_LOG_ODDS,
    Predicted,
    fit_rivals,
    order_statistic_threshold,
    threshold_leaving,
)
from margrave.steer import Dialog
from margrave.steer._acceptance import Acceptances
from margrave.steer._certify import make_certification_set
from margrave.steer._ledger import RowSample
from margrave.steer._order_statistic import largest_allowed_count, samples_needed
from margrave.steer._row_hashes import UsedRows

CLASSES = {"fp": 0, "fn": 1}
"""The class whose errors a quantity counts."""

MARGRAVE, ACCEPTED, TUNED = "Margrave", "accepted model", "tuning quantile"
START, RETUNE = "start committee", "with retune"
STRATEGIES = {MARGRAVE: None, RETUNE: ["move", "retune"]}
"""Rules of Margrave, and the strategies of their requests; None is the default."""
RIVALS = (
    START,
    MEMBER,
    STACKING,
    STACKING_LOG_ODDS,
    SELECTION,
    RETUNE,
    *(learn_then_test.METHODS if learn_then_test.HAS_MAPIE else ()),
)
"""The rules that are compared with Margrave."""
OWN = (START, RETUNE)
"""Those of them that are Margrave's own, which no target is about."""


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
    strategies : dict of str
        The strategy that the reply to each of Margrave's requests used.
    """

    side: str
    percent: int
    sizes: Sizes
    n_others: int
    outcomes: dict[str, Outcome | None]
    strategies: dict[str, str]

    @property
    def rate(self) -> float:
        """The guaranteed rate as a fraction."""
        return self.percent / 100

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


def certify_all(
    dialog: Dialog, certify: Predicted, test: Predicted, percents: tuple[int, ...]
) -> list[Case]:
    """Request, certify and test every limit that the certification set supports."""
    rivals = {name: (f(certify.raw), f(test.raw)) for name, f in fit_rivals(dialog).items()}
    start = dialog.history[0].candidate
    rivals[START] = certify.scores(start.scorer), test.scores(start.scorer)
    certification_set = make_certification_set(
        certify.X,
        certify.y,
        certify.committee,
        UsedRows.none_of(certify.X, together=False),
        "the study",
    )
    y_tune = dialog._data.codes
    cases = []
    for side, percent in supported_limits(certify.y, percents):
        limited, rate = CLASSES[side], percent / 100
        scored, strategies, predicted = dict(rivals), {}, {}
        for rule, names in STRATEGIES.items():
            # Each guarantee is evaluated as the only one, so each has its own ledger: a user who
            # certifies several on the same samples is refused, or uses a part of δ for each.
            dialog._acceptances = Acceptances(certification_set, RowSample.of(certify.X))
            dialog.goto(0)
            reply = dialog.prefer(f"{side} <= {percent}%", strategies=names)
            scorer, strategies[rule] = reply.candidate.scorer, reply.strategy
            scored[rule] = certify.scores(scorer), test.scores(scorer)
            if rule == MARGRAVE:
                model = dialog.accept(confidence=CONFIDENCE)
                predicted[ACCEPTED] = model.decision_.predict(scored[rule][1]) == 1
                allowed = largest_count_within(int((y_tune == limited).sum()), rate)
                tuned = threshold_leaving(reply.candidate.scores, y_tune, limited, allowed)
                predicted[TUNED] = scored[rule][1] > tuned
        for rule, (known, new) in scored.items():
            predicted[rule] = new > order_statistic_threshold(known, certify.y, limited, rate)
        if learn_then_test.HAS_MAPIE:
            known, new = rivals[START]
            predicted |= learn_then_test.predict_with_mapie(
                (start.scores, y_tune), (known, certify.y), new, limited, rate
            )
        outcomes = {
            rule: None if positive is None else count_errors(positive, test.y, limited)
            for rule, positive in predicted.items()
        }
        n, m = (int((y == limited).sum()) for y in (certify.y, test.y))
        sizes = Sizes(n, largest_allowed_count(n, rate, 1 - CONFIDENCE), m)
        cases.append(Case(side, percent, sizes, len(test.y) - m, outcomes, strategies))
    return cases
