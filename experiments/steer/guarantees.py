"""Promises on one split: what each rule does on the test part at the same certified rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiments._parts import Ints
from experiments.steer import rivals
from experiments.steer.chance import Drawn, most_within
from experiments.steer.data import Parts
from experiments.steer.rivals import CONFIDENCE, OURS, START, TUNED, Voices
from margrave.steer import Dialog
from margrave.steer._certify import make_certification_set
from margrave.steer._ledger import Ledger
from margrave.steer._order_statistic import largest_allowed_count, samples_needed

SIDES = {"fp": 0, "fn": 1}
"""Which class's errors a word limits."""


@dataclass(frozen=True)
class Outcome:
    """Errors on the test part: in the class that is limited, and in the other one."""

    wrong: int
    missed: int


@dataclass(frozen=True)
class Case:
    """A promise on one split.

    Attributes
    ----------
    side : str
        "fp" or "fn".
    percent : int
        The promised rate.
    drawn : Drawn
        Sizes.
    others : int
        Test samples of the class that is not limited.
    by : dict of Outcome
        What each rule does; None where it refuses.
    way : str
        How Margrave's model was found.
    """

    side: str
    percent: int
    drawn: Drawn
    others: int
    by: dict[str, Outcome | None]
    strategy: str

    @property
    def rate(self) -> float:
        """The promised rate as a share."""
        return self.percent / 100

    def recall(self, rule: str) -> float:
        """The share of the other class that is found, in %."""
        outcome = self.by[rule]
        return float("nan") if outcome is None else 100 * (1 - outcome.missed / self.others)

    def broken(self, rule: str) -> bool:
        """Whether the test part shows more than the promised rate."""
        outcome = self.by[rule]
        return outcome is not None and outcome.wrong > most_within(self.drawn.m, self.rate)


def supported(y_certify: Ints, percents: tuple[int, ...]) -> list[tuple[str, int]]:
    """Sides and rates that the certify part can support."""
    return [
        (side, percent)
        for side, limited in SIDES.items()
        for percent in percents
        if int((y_certify == limited).sum()) >= (samples_needed(percent / 100, 1 - CONFIDENCE) or 0)
    ]


def outcome(positive: Any, y: Ints, limited: int) -> Outcome:
    """Errors of answers, by class."""
    wrong = positive != (y == 1)
    return Outcome(int(wrong[y == limited].sum()), int(wrong[y != limited].sum()))


def cases(dialog: Dialog, parts: Parts, test: Voices, percents: tuple[int, ...]) -> list[Case]:
    """Every promise that the split supports."""
    certify = Voices.of(dialog, parts.X_certify)
    scored = {
        name: (certify.scores(scorer), test.scores(scorer))
        for name, scorer in rivals.scorers(dialog).items()
    }
    part = make_certification_set(parts.X_certify, parts.y_certify, test.committee, "the study")
    y_certify, y = parts.y_certify, parts.y_test
    found = []
    for side, percent in supported(y_certify, percents):
        limited, rate = SIDES[side], percent / 100
        # Each promise is judged as a first and only one, so each has its own ledger: a user who
        # makes several on the same samples is refused, or spends a part of δ on each.
        dialog._ledger = Ledger(part, ())
        dialog.goto(0)
        reply = dialog.prefer(f"{side} <= {percent}%")
        accepted = dialog.accept(confidence=CONFIDENCE)
        scores = test.scores(reply.candidate.scorer)
        answers = {
            OURS: accepted.decision_.predict(scores) == 1,
            TUNED: reply.candidate.decision.predict(scores) == 1,
        }
        for name, (known, new) in scored.items():
            answers[name] = new > rivals.certified_cut(known, y_certify, limited, rate)
        answers |= rivals.mapie_answers(
            scored[START][0], y_certify, scored[START][1], limited, rate
        )
        n, m = int((y_certify == limited).sum()), int((y == limited).sum())
        by = {
            name: None if positive is None else outcome(positive, y, limited)
            for name, positive in answers.items()
        }
        drawn = Drawn(n, largest_allowed_count(n, rate, 1 - CONFIDENCE), m)
        found.append(Case(side, percent, drawn, len(y) - m, by, reply.strategy))
    return found
