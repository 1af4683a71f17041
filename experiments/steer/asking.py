"""The request suite of the martingale study, asked of the default committee."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from experiments.martingale.requests import requests, threshold
from experiments.steer.data import Parts
from experiments.steer.rivals import MEMBER, Voices, scorers
from margrave.steer import Dialog


@dataclass(frozen=True)
class Tally:
    """What became of some requests.

    Attributes
    ----------
    asked, met : int
        How many there were, and how many are kept to on the tuning samples.
    cell, other : int
        Errors of Margrave's models on the test part, in the cells that were spoken of and in the
        others.
    member_cell, member_other : int
        Of the best member with its threshold moved to keep to the same counts.
    start_cell, start_other : int
        Of the committee as it is at the start, its threshold moved likewise.
    """

    asked: int = 0
    met: int = 0
    cell: int = 0
    other: int = 0
    member_cell: int = 0
    member_other: int = 0
    start_cell: int = 0
    start_other: int = 0

    def __add__(self, more: Tally) -> Tally:
        return Tally(*(a + b for a, b in zip(astuple(self), astuple(more), strict=True)))

    @property
    def errors(self) -> tuple[int, int, int]:
        """All errors of Margrave, the best member and the start committee."""
        return (
            self.cell + self.other,
            self.member_cell + self.member_other,
            self.start_cell + self.start_other,
        )


def tally(dialog: Dialog, parts: Parts, test: Voices) -> Tally:
    """Every request, from the start of a dialog."""
    data, start = dialog._data, dialog.history[0].candidate
    y = data.codes
    member = scorers(dialog)[MEMBER]
    known = {"member": member.score_raw(data.raw), "start": start.scores}
    new = {"member": test.scores(member), "start": test.scores(start.scorer)}
    total = Tally()
    for request in requests(y, start.predictions == 1):
        dialog.goto(0)
        candidate = dialog.prefer(str(request)).candidate
        spoken, _ = request.counts(y, candidate.predictions == 1)
        answers = candidate.decision.predict(test.scores(candidate.scorer))
        moved = {name: new[name] > threshold(known[name], y, request) for name in known}
        total += Tally(
            1,
            int(spoken <= request.most),
            *request.counts(parts.y_test, answers == 1),
            *request.counts(parts.y_test, moved["member"]),
            *request.counts(parts.y_test, moved["start"]),
        )
    return total
