"""A request: a preference that is held against a tuning set, and the account of what was done."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._messages import format_count, name_class
from margrave.confusion import Bound, Confusion, Objective, Preference, PreferenceError


class NotMetWarning(UserWarning):
    """No model that was tried meets the preference; the nearest one is returned."""


@dataclass(frozen=True)
class Step:
    """What a callback is told on the way.

    Attributes
    ----------
    number, most : int
        How many models have been tried, and how many there may be.
    met : bool
        Whether the best so far meets the preference.
    confusion : Confusion
        The best so far, on the tuning set.
    """

    number: int
    most: int
    met: bool
    confusion: Confusion


@dataclass(frozen=True)
class Tuning:
    """What a request did.

    Attributes
    ----------
    preference : Preference or None
        What was wanted; None where only nodes of a program were asked.
    met : bool
        Whether the returned model keeps to it on the tuning set; without a preference, whether
        every node that was asked keeps to its own.
    before, after : Confusion
        The tuning set by the model that was asked, and by the one that was returned.
    by_offset : Confusion or None
        What moving the offset of the decision alone would have given.
    n_models : int
        How many models (programs, for a whole program) were trained for it.
    cancelled : bool
        Whether a callback stopped the search.
    asked : tuple of (votes, Tuning)
        What was done at the nodes that were asked; ``nodes`` has it by their votes.
    """

    preference: Preference | None
    met: bool
    before: Confusion
    after: Confusion
    by_offset: Confusion | None
    n_models: int
    cancelled: bool
    asked: tuple[tuple[tuple[int, ...], Tuning], ...] = ()

    @property
    def nodes(self) -> dict[tuple[int, ...], Tuning]:
        """What was done at the nodes that were asked, by their votes."""
        return dict(self.asked)

    @property
    def binding(self) -> Bound | None:
        """The bound that is missed by most samples, or has fewest to spare."""
        return None if self.preference is None else self.preference.binding(self.after)

    @property
    def shortfall(self) -> float:
        """How many samples are in the wrong place; 0 when the preference is met."""
        if self.preference is None:
            return sum(node.shortfall for node in self.nodes.values())
        return self.preference.shortfall(self.after)

    def __str__(self) -> str:
        trained = f"{self.n_models} model{'' if self.n_models == 1 else 's'} trained"
        lines = [f"{self._said()} on the tuning set, {trained}"]
        named = {"before": self.before, "after": self.after, "by offset": self.by_offset}
        for name, matrix in named.items():
            if matrix is not None:
                lines.append(f"{name + ':':11}{_in_short(matrix, self.preference)}")
        return "\n".join(lines)

    def _said(self) -> str:
        """What was wanted, and whether it is met."""
        if self.preference is None:
            met = sum(node.met for node in self.nodes.values())
            return f"{len(self.nodes)} nodes asked: {met} met what was wanted of them"
        positive = self.after.positive
        positive = "" if positive is None else f" ({name_class(positive)} is positive)"
        if self.preference.met(self.before):
            said = "already met, nothing changed"
        elif self.met:
            said = "met"
        else:
            said = (
                f"not met, {format_count(self.shortfall)} short ('{self.binding}' is the limiting "
                "constraint)"
            )
        return f"{self.preference}{positive}: {said}"


class Outcome(NamedTuple):
    """What a search found: answers to the tuning set, and what they took.

    Attributes
    ----------
    before, after, by_offset : ndarray of shape (m,)
        The answers of the model that was asked, of the best one, and by the offset alone.
    n_models : int
        How many were trained.
    cancelled : bool
        Whether the callback stopped it.
    """

    before: NDArray[np.intp]
    after: NDArray[np.intp]
    by_offset: NDArray[np.intp]
    n_models: int
    cancelled: bool


def _in_short(matrix: Confusion, preference: Preference | None) -> str:
    """What a preference speaks of and the errors of a matrix, in one line."""
    parts = []
    for bound in () if preference is None else preference.bounds:
        if bound.word in ("fp", "fn", "errors") and not bound.labels:
            continue  # they come anyway
        amount, base = (int(matrix.counts[mask].sum()) for mask in bound.cells(matrix))
        name = str(bound).split(" <= ")[0].split(" >= ")[0]
        share = f"{amount / base:.1%}" if base else "of nothing"
        parts.append(f"{name} {share if bound.is_fraction else format(amount, ',')}")
    if matrix.positive is not None:
        parts += [f"fp {matrix.fp:,}", f"fn {matrix.fn:,}"]
    errors = matrix.n - int(np.trace(matrix.counts)) - matrix.n_rejected
    return ", ".join([*parts, f"{errors:,} errors in {matrix.n:,}"])


def check_limits(owner: str, **limits: Any) -> None:
    """Refuse limits of a search that are not counts."""
    for name, value in limits.items():
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or value < 0:
            raise ValueError(
                f"{owner} needs {name} to be a whole number of at least 0; got {value!r}."
            )


def tuning_codes(
    y_tune: ArrayLike, classes: NDArray[Any], n_samples: int, owner: str
) -> NDArray[np.intp]:
    """The classes of the tuning samples, of which there are some of each."""
    codes = _labels.encode(y_tune, classes, f"{owner}: y_tune")
    if codes.shape != (n_samples,):
        raise ValueError(
            f"{owner} needs y_tune with a label for each of {n_samples:,} samples; "
            f"got shape {codes.shape}."
        )
    sizes = np.bincount(codes, minlength=len(classes))
    if not sizes.all():
        raise ValueError(
            f"{owner} needs y_tune with samples of every class; "
            f"got none of {name_class(classes[np.argmin(sizes)])}."
        )
    return codes


def make_objective(
    preference: Preference | str,
    y_tune: ArrayLike,
    classes: NDArray[Any],
    positive: Any,
    n_samples: int,
    owner: str,
) -> Objective:
    """The objective of a request.

    Raises
    ------
    ValueError
        If a label is not a class, or a class is missing.
    PreferenceError
        If no answers to these samples could meet it.
    """
    codes = tuning_codes(y_tune, classes, n_samples, owner)
    wanted = Preference(preference, classes=classes.tolist(), positive=positive)
    for bound in wanted.bounds:
        if bound.word == "rejected" and not bound.at_most and bound.limit > 0:
            raise PreferenceError(
                f"{owner} needs a preference that rejects nothing, since it always answers; "
                f"got '{bound}'.",
                code="cannot_reject",
                bound=str(bound),
            )
    check_positive(positive, classes, owner)
    objective = Objective(wanted, codes, tuple(classes.tolist()), positive)
    wanted.check(objective.matrix(codes))
    return objective


def check_wanted(preference: Any, owner: str, hint: str = "") -> Preference | str:
    """Refuse what is no preference, before anything else is looked at."""
    if not isinstance(preference, str | Preference):
        raise TypeError(
            f"{owner} needs a preference such as 'fp <= 5' first{hint}; "
            f"got {type(preference).__name__}."
        )
    return preference


def check_positive(positive: Any, classes: NDArray[Any], owner: str) -> None:
    """Refuse a positive class that is none."""
    if positive is not None and positive not in classes.tolist():
        raise ValueError(
            f"{owner} needs positive to be one of {_labels.shown(classes)}; got {positive!r}."
        )


def account(objective: Objective, outcome: Outcome) -> Tuning:
    """What a search did, told."""
    wanted = cast(Preference, objective.preference)  # a user's; local bounds have no account
    before, after, by_offset = map(objective.matrix, outcome[:3])
    told = before, after, by_offset, outcome.n_models, outcome.cancelled
    return Tuning(wanted, wanted.met(after), *told)


def report(objective: Objective, outcome: Outcome, owner: str) -> Tuning:
    """What a search did, with a warning in the owner's name if the preference is not met."""
    tuning = account(objective, outcome)
    if not tuning.met:
        warnings.warn(
            f"{owner} did not meet '{tuning.preference}': the nearest of {tuning.n_models + 1} "
            f"models is {format_count(tuning.shortfall)} samples short, and '{tuning.binding}' is "
            "the limiting constraint.",
            NotMetWarning,
            stacklevel=3,
        )
    return tuning
