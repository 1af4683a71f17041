"""Preferences: several bounds on a confusion matrix that hold together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor, log10
from typing import Any

from margrave._json import SCHEMA_VERSION
from margrave._messages import name_class
from margrave.confusion._bounds import Bound, Matrix, PreferenceError, implied_bounds
from margrave.confusion._clash import UnknownMatrix, find_conflict, is_feasible
from margrave.confusion._goal import Goal, unlimited_errors
from margrave.confusion._grammar import (
    MAX_BOUNDS,
    make_examples,
    mark_error,
    parse,
    too_many_bounds,
)

_DIGITS = 4  # of a fraction that replaces a count

_Parsed = tuple[str, Bound, tuple[int, int]]
"""A text, a bound in it, and the span of the bound."""


@dataclass(frozen=True)
class Preference:
    """The errors that a user can tolerate, as bounds on a confusion matrix.

    A limit is an allowance: among the decisions that meet it, the one with the fewest errors that
    are *not* limited is the best. ``"fp <= 2%"`` means that, then, as few positives as possible
    should be missed. A text can state another goal: ``"fp <= 2%, then fewest errors"``.

    Parameters
    ----------
    *preferences : str or Preference
        Texts with one or several bounds (separated by a comma, a semicolon, "and" or a new line),
        or other preferences. :mod:`margrave.confusion` documents the words of a bound.
    classes : sequence of labels, optional
        The classes of the data, if they are known: the examples in an error then use them.
    positive : label, optional
        The positive class, for the same purpose. By default the second of two classes.

    Raises
    ------
    PreferenceError
        If a text cannot be parsed, or no confusion matrix can meet all bounds, whatever the sizes
        of the classes. This check uses six digits of a fraction and does not require integer
        counts.

    Examples
    --------
    >>> from margrave import Confusion, Preference
    >>> wish = Preference("fp <= 5", "recall(spam) >= 90%")
    >>> matrix = Confusion([[95, 5], [12, 88]], classes=["ham", "spam"])
    >>> wish.met(matrix), wish.shortfall(matrix)
    (False, 2.0)
    >>> print(wish.binding(matrix))
    recall(spam) >= 90%
    >>> Preference("fp <= 5, recal(spam) >= 0.9")
    Traceback (most recent call last):
    ...
    margrave.confusion.PreferenceError: unknown word 'recal'; did you mean recall?
        fp <= 5, recal(spam) >= 0.9
                 ^^^^^
    Examples: fp <= 5, recall >= 90%, rejected <= 10%.
    >>> try:
    ...     Preference("fp <= 5, fp >= 6")
    ... except ValueError as error:
    ...     print(error.code, error.fields["bounds"])
    conflict ['fp <= 5', 'fp >= 6']
    """

    bounds: tuple[Bound, ...] = field(init=False)
    then: Goal | None = field(init=False)

    def __init__(
        self,
        *preferences: str | Preference,
        classes: Sequence[Any] | None = None,
        positive: Any = None,
    ) -> None:
        if not preferences:
            raise PreferenceError(
                "Preference needs at least one bound, such as 'fp <= 5'.", code="no_preference"
            )
        for preference in preferences:
            if not isinstance(preference, str | Preference):
                raise TypeError(f"Preference needs its bounds as texts; got {preference!r}.")
        examples = make_examples(classes, positive)
        parsed: list[_Parsed] = []
        bounds: list[Bound] = []
        goals: list[Goal] = []
        for preference in preferences:
            if isinstance(preference, str):
                for found, span in parse(preference, examples):
                    if isinstance(found, Goal):
                        goals.append(found)
                    else:
                        parsed.append((preference, found, span))
                        bounds.append(found)
            else:
                bounds += preference.bounds
                goals += [] if preference.then is None else [preference.then]
        if not bounds:
            raise PreferenceError(
                f"'then {goals[0]}' needs a limit before it, such as 'fp <= 5'.",
                code="no_preference",
            )
        goals = [goal for goal in goals if goal.terms] or goals
        if len(set(goals)) > 1:
            stated = list(dict.fromkeys(map(str, goals)))
            raise PreferenceError(
                f"A preference has one goal; got {' and '.join(map(repr, stated))}.",
                code="two_goals",
                goals=stated,
            )
        self._set_bounds(bounds, parsed, goals[0] if goals else None)

    @classmethod
    def of(cls, bounds: Iterable[Bound], then: Goal | None = None) -> Preference:
        """Make a preference from bounds.

        Parameters
        ----------
        bounds : iterable of Bound
            At least one bound.
        then : Goal, default=None
            The goal; None is the fewest errors that no bound limits.

        Returns
        -------
        Preference
        """
        given = list(bounds)
        if not all(isinstance(bound, Bound) for bound in given):
            raise TypeError("Preference.of needs Bounds; Preference('fp <= 5') reads a text.")
        preference = object.__new__(cls)
        preference._set_bounds(given, (), then)
        return preference

    def _set_bounds(
        self, bounds: Sequence[Bound], parsed: Sequence[_Parsed], then: Goal | None
    ) -> None:
        """Set the bounds, each once, if they can hold together."""
        object.__setattr__(self, "bounds", tuple(dict.fromkeys(bounds)))
        object.__setattr__(self, "then", then)
        if len(self.bounds) > MAX_BOUNDS:
            raise too_many_bounds(f"{len(self.bounds):,}", len(self.bounds))
        matrices = UnknownMatrix.all_of(self.bounds)
        if not any(is_feasible(self.all_bounds, matrix) for matrix in matrices):
            raise _conflict_error(find_conflict(self.all_bounds, matrices[0]), parsed)

    @property
    def all_bounds(self) -> tuple[Bound, ...]:
        """The bounds, and those on rejected samples that they imply."""
        return (*self.bounds, *implied_bounds(self.bounds))

    @property
    def limits(self) -> Preference:
        """The bounds without the goal: what a guarantee is about."""
        return self if self.then is None else Preference.of(self.bounds)

    def goal(self, confusion: Matrix) -> Goal:
        """Give the goal: what to minimise among the decisions that meet the bounds.

        Parameters
        ----------
        confusion : Confusion
            A matrix with the classes.

        Returns
        -------
        Goal
            The goal that is stated; else the fewest errors that no bound limits or, if the
            bounds limit all errors, the fewest errors in total.
        """
        if self.then is not None and self.then.terms:
            return self.then
        return Goal.of_cells(unlimited_errors(self.bounds, confusion), confusion)

    def __str__(self) -> str:
        then = [] if self.then is None else [f"then {self.then}"]
        return ", ".join([*map(str, self.bounds), *then])

    def __repr__(self) -> str:
        return f"Preference({str(self)!r})"

    def to_dict(self) -> dict[str, Any]:
        """Describe the preference in values that JSON can hold.

        Returns
        -------
        dict
            With the keys ``schema_version``; ``text``, the preference as it is written; ``then``,
            the goal that it states, a text or None; and ``bounds``, a dictionary for each
            bound with the keys text, word, labels, at_most, limit (the count, or the fraction) and
            is_fraction.

        Examples
        --------
        >>> from margrave import Preference
        >>> Preference("fp <= 5, recall(spam) >= 90%").to_dict()["bounds"][1]["limit"]
        0.9
        """
        bounds = [
            {
                "text": str(bound),
                "word": bound.word,
                "labels": list(bound.labels),
                "at_most": bound.at_most,
                "limit": float(bound.limit),
                "is_fraction": bound.is_fraction,
            }
            for bound in self.bounds
        ]
        return {
            "schema_version": SCHEMA_VERSION,
            "text": str(self),
            "then": None if self.then is None else str(self.then),
            "bounds": bounds,
        }

    def __and__(self, other: Preference) -> Preference:
        """Join two preferences."""
        return Preference(self, other)

    def met(self, confusion: Matrix) -> bool:
        """Whether the matrix meets every bound.

        Parameters
        ----------
        confusion : Confusion
            The matrix.

        Returns
        -------
        bool
        """
        return all(bound.slack(confusion) >= 0 for bound in self.all_bounds)

    def shortfall(self, confusion: Matrix) -> float:
        """Sum over the bounds the samples by which the matrix misses them.

        Parameters
        ----------
        confusion : Confusion
            The matrix.

        Returns
        -------
        float
            0 when the preference is met. Bounds on fractions may add a part of a sample.
        """
        missing = (-bound.slack(confusion) for bound in self.all_bounds)
        return float(sum(amount for amount in missing if amount > 0))

    def binding(self, confusion: Matrix) -> Bound:
        """Find the limiting constraint: the bound with the smallest slack.

        An implied bound counts only if the matrix misses it.

        Parameters
        ----------
        confusion : Confusion
            The matrix.

        Returns
        -------
        Bound
        """
        slack = {bound: bound.slack(confusion) for bound in self.all_bounds}
        candidates = [bound for bound in slack if slack[bound] < 0 or not bound.implied]
        return min(candidates, key=slack.__getitem__)

    def in_rates(self, confusion: Matrix) -> Preference:
        """Replace counts by fractions of the samples in a matrix, so that they fit new samples.

        Parameters
        ----------
        confusion : Confusion
            A matrix with the classes and their sizes; its predictions do not matter.

        Returns
        -------
        Preference
            The fractions have four digits, rounded to the strict side.

        Examples
        --------
        >>> from margrave import Confusion, Preference
        >>> matrix = Confusion([[270, 9], [20, 160]], classes=["ham", "spam"])
        >>> Preference("fp <= 5, recall(spam) >= 90%").in_rates(matrix)
        Preference('fp <= 1.792%, recall(spam) >= 90%')
        """
        stated = [_replace_count(bound, confusion) for bound in self.bounds]
        return self.replace_bounds([*stated, *self._limits_of_others(confusion)], confusion)

    def _limits_of_others(self, confusion: Matrix) -> list[Bound]:
        """State implied limits on rejected samples, as rates of each class that they are about."""
        limits = []
        for bound in implied_bounds(self.bounds):
            amount, _ = bound.cells(confusion)
            others = [
                label for label, row in zip(confusion.classes, amount, strict=True) if row[-1]
            ]
            if bound.limit and others:
                rate = _replace_count(bound, confusion)
                limits += [replace(rate, labels=(str(one),), implied=False) for one in others]
        return limits

    @property
    def allows_rejecting(self) -> bool:
        """Whether a bound allows rejected samples."""
        return any(bound.word == "rejected" and bound.limit > 0 for bound in self.bounds)

    def keeping(self, before: Preference | None, confusion: Matrix) -> Preference:
        """Add the bounds of an earlier preference whose word and classes this one does not mention.

        A goal that this preference states replaces the earlier one. Otherwise the earlier one
        is kept, unless the earlier bounds limit no errors: so a further limit that is already met
        changes nothing. A goal that follows from the bounds is not stated.

        Parameters
        ----------
        before : Preference or None
            The earlier preference.
        confusion : Confusion
            A matrix with the classes.

        Returns
        -------
        Preference

        Examples
        --------
        >>> from margrave import Confusion, Preference
        >>> matrix = Confusion([[270, 9], [20, 160]], classes=["ham", "spam"])
        >>> Preference("fp <= 3").keeping(Preference("fp <= 5, fn <= 20"), matrix)
        Preference('fn <= 20, fp <= 3')
        >>> Preference("fn <= 20").keeping(Preference("fp <= 5"), matrix)
        Preference('fp <= 5, fn <= 20, then fewest fn')
        """
        if before is not None and not isinstance(before, Preference):
            raise TypeError(f"Preference.keeping needs a Preference or None; got {before!r}.")
        own = {bound.subject(confusion) for bound in self.bounds}
        earlier = () if before is None else before.bounds
        kept = [bound for bound in earlier if bound.subject(confusion) not in own]
        joined = Preference.of([*kept, *self.bounds])
        stated = self if self.then is not None or before is None else before
        limits_errors = any(bound.limited_errors(confusion).any() for bound in stated.bounds)
        if stated.then is None and not limits_errors:
            return joined
        return stated.replace_bounds(joined.bounds, confusion)

    def replace_bounds(self, bounds: Iterable[Bound], confusion: Matrix) -> Preference:
        """Make a preference of other bounds with the same goal, stated only if it has to be.

        Parameters
        ----------
        bounds : iterable of Bound
            At least one bound.
        confusion : Confusion
            A matrix with the classes.

        Returns
        -------
        Preference
        """
        goal, replaced = self.goal(confusion), Preference.of(bounds)
        same = goal == replaced.goal(confusion)
        return replaced if same else Preference.of(replaced.bounds, goal)

    def check_counts(self, confusion: Matrix) -> None:
        """Check as :meth:`check` does, and that no count exceeds the number of samples.

        Parameters
        ----------
        confusion : Confusion
            A matrix with the classes and their sizes; its predictions do not matter.

        Raises
        ------
        PreferenceError
            If :meth:`check` raises it, or a count exceeds the samples that its bound applies to.
        """
        self.check(confusion)
        for bound in self.bounds:
            size = int(confusion.counts[bound.cells(confusion)[1]].sum())
            if not bound.is_fraction and bound.limit > size:
                raise PreferenceError(
                    f"The limit of '{bound}' exceeds the {size:,} samples that it applies to.",
                    code="too_large",
                    bound=str(bound),
                    limit=int(bound.limit),
                    n=size,
                )

    def check(self, confusion: Matrix) -> None:
        """Check that some matrix with these class sizes meets the preference.

        Parameters
        ----------
        confusion : Confusion
            A matrix with the classes and their sizes; its predictions do not matter.

        Raises
        ------
        PreferenceError
            If a class is unknown, or no matrix with these class sizes meets all bounds; the
            message lists bounds that cannot hold together.
        """
        self.goal(confusion).costs(confusion)  # its classes are known
        sizes = confusion.counts.sum(axis=1)
        conflict = find_conflict(self.all_bounds, confusion, sizes)
        if conflict:
            known = dict(zip(map(str, confusion.classes), sizes.tolist(), strict=True))
            raise PreferenceError(
                f"No matrix with these class sizes can have {_join(conflict)}; there are "
                + ", ".join(f"{size:,} of {name_class(label)}" for label, size in known.items())
                + ".",
                code="conflict",
                bounds=list(map(str, conflict)),
                sizes=known,
            )


def _conflict_error(conflict: Sequence[Bound], parsed: Sequence[_Parsed]) -> PreferenceError:
    """Make an error that marks the last bound of the conflict that is in a text."""
    message, bounds = f"these cannot hold together: {_join(conflict)}", list(map(str, conflict))
    for text, bound, span in reversed(parsed):
        if bound in conflict:
            return mark_error(text, span, message, code="conflict", bounds=bounds)
    return PreferenceError(f"{message}.", code="conflict", bounds=bounds)


def _replace_count(bound: Bound, confusion: Matrix) -> Bound:
    """Replace the limit on a count by the limit on a fraction."""
    if bound.is_fraction:
        return bound
    base = int(confusion.counts[bound.cells(confusion)[1]].sum())
    if base == 0:
        raise PreferenceError(
            f"'{bound}' cannot become a fraction: it applies to no samples.",
            code="no_samples",
            bound=str(bound),
        )
    exact = min(bound.limit / base, Fraction(1))
    unit = Fraction(10) ** (floor(log10(exact)) - _DIGITS + 1) if exact else Fraction(1)
    steps = floor(exact / unit) if bound.at_most else ceil(exact / unit)
    return replace(bound, limit=steps * unit, is_fraction=True)


def _join(bounds: Sequence[Bound]) -> str:
    return " and ".join(f"'{bound}'" for bound in bounds)
