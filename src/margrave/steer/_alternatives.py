"""Alternatives to limits that cannot be met together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any

from margrave._json import SCHEMA_VERSION
from margrave._messages import format_count
from margrave.confusion import Bound, Confusion, Objective, Preference
from margrave.steer._thresholds import best_decision, best_rejecting_decision, evaluate
from margrave.steer._tuning_data import Candidate

_MOST_MISSED = 3  # so many of the limits that the reply misses have an alternative each


@dataclass(frozen=True)
class Alternative:
    r"""A confusion matrix that can be reached if not all limits can be met together.

    Attributes
    ----------
    kept : Bound or None
        The limit that has priority, or the first that the reply meets if this is the reply's own
        matrix; None for the middle, where no limit is missed by more samples than necessary.
    preference : Preference or None
        The limits, loosened to what this matrix reaches: ``dialog.prefer(alternative.preference)``
        takes the alternative. None if no limit is left.
    confusion : Confusion
        The matrix on the tuning set.
    misses : tuple of (Bound, float)
        The limits that it misses, and by how many samples.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load("pima", return_X_y=True)
    >>> dialog = Dialog(GaussianNB().fit(X[::2], y[::2]), X[1::2], y[1::2])
    >>> reply = dialog.prefer("fp <= 10, fn <= 40")
    >>> print(*reply.alternatives, sep="\n")
    keep 'fp <= 10': misses 'fn <= 40' by 46 samples, 95 errors in total
    keep 'fn <= 40': misses 'fp <= 10' by 33 samples, 83 errors in total
    the middle: misses 'fp <= 10' by 17 and 'fn <= 40' by 17 samples, 84 errors in total
    >>> dialog.prefer(reply.alternatives[0].preference).met
    True
    """

    kept: Bound | None
    preference: Preference | None
    confusion: Confusion
    misses: tuple[tuple[Bound, float], ...]

    def __str__(self) -> str:
        if self.kept is None:
            name = "the middle"
        elif any(bound == self.kept for bound, _ in self.misses):
            name = f"nearest to '{self.kept}'"
        else:
            name = f"keep '{self.kept}'"
        misses = " and ".join(
            f"'{bound}' by {format_count(amount)}" for bound, amount in self.misses
        )
        return f"{name}: misses {misses} samples, {self.confusion.n_errors:,} errors in total"

    def to_dict(self) -> dict[str, Any]:
        """Describe the alternative in values that JSON can hold.

        Returns
        -------
        dict
            With the keys ``schema_version``; ``kept``, a text or None; ``preference`` and
            ``confusion`` as their own ``to_dict`` returns them; ``misses``, a dictionary for each
            missed limit with the keys bound and samples; and ``text``, all in words.
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "kept": None if self.kept is None else str(self.kept),
            "preference": None if self.preference is None else self.preference.to_dict(),
            "confusion": self.confusion.to_dict(),
            "misses": [{"bound": str(bound), "samples": amount} for bound, amount in self.misses],
            "text": str(self),
        }


def find_alternatives(
    objective: Objective, preference: Preference, candidate: Candidate, may_reject: bool
) -> tuple[Alternative, ...]:
    """Find what keeps each of the limits that are missed by most, and the middle.

    The candidate is that of the reply, the nearest to all limits that was found, so it stands for
    all limits that it meets. No alternative misses the limit that it keeps by more than the reply
    does, and the middle misses none by more than the reply's largest miss. Equal matrices are
    listed once, in the order of the limits. A single limit has no alternatives.
    """
    if len(preference.bounds) < 2:
        return ()
    scores = candidate.scores
    after = objective.matrix(candidate.predictions)
    slacks = {bound: bound.slack(after) for bound in preference.bounds}
    met = [bound for bound, slack in slacks.items() if slack >= 0]
    missed = sorted((bound for bound in slacks if slacks[bound] < 0), key=slacks.__getitem__)
    alternatives: dict[Confusion, Alternative] = {}
    for kept in (*met[:1], *missed[:_MOST_MISSED], None):
        decision = candidate.decision
        if kept not in met:
            prioritized = replace(objective, first=kept, balanced=kept is None)
            decision = best_decision(prioritized, scores, decision)
            if may_reject:
                decision = best_rejecting_decision(prioritized, scores, decision)
            both = decision, candidate.decision
            decision = min(both, key=lambda each: evaluate(prioritized, each, scores))
        matrix = objective.matrix(decision.predict(scores))
        misses = list_misses(preference, matrix)
        if misses and matrix not in alternatives:  # without misses, the reply is not the nearest
            loosened = loosen(preference, matrix)
            alternatives[matrix] = Alternative(kept, loosened, matrix, misses)
    order = [*preference.bounds, None]
    return tuple(sorted(alternatives.values(), key=lambda one: order.index(one.kept)))


def list_misses(preference: Preference, matrix: Confusion) -> tuple[tuple[Bound, float], ...]:
    """List the bounds that a matrix misses, and by how many samples."""
    slacks = [(bound, bound.slack(matrix)) for bound in preference.all_bounds]
    return tuple((bound, float(-slack)) for bound, slack in slacks if slack < 0)


def loosen(preference: Preference, matrix: Confusion) -> Preference | None:
    """Loosen the bounds that a matrix misses to what it reaches; None if no bound is left."""
    loosened = [_loosen_bound(bound, matrix) for bound in preference.bounds]
    kept = [bound for bound in loosened if bound is not None]
    return preference.replace_bounds(kept, matrix) if kept else None


def _loosen_bound(bound: Bound, matrix: Confusion) -> Bound | None:
    """Loosen a bound as far as a confusion matrix needs; None for a fraction of no samples.

    Fractions are rounded to a hundredth of a percent.
    """
    if bound.slack(matrix) >= 0:
        return bound
    amount, base = (int(matrix.counts[mask].sum()) for mask in bound.cells(matrix))
    if not bound.is_fraction:
        return replace(bound, limit=Fraction(amount))
    if not base:
        return None
    rounded = (ceil if bound.at_most else floor)(Fraction(amount, base) * 10_000)
    return replace(bound, limit=Fraction(rounded, 10_000))
