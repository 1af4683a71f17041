"""Several bounds at once, held against a confusion matrix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor, log10

from margrave.confusion._bounds import Bound, Matrix, PreferenceError, implied_bound, quote_label
from margrave.confusion._clash import UnknownMatrix, find_conflict
from margrave.confusion._grammar import mark_error, parse

_DIGITS = 4  # of a share that stands for a count


@dataclass(frozen=True)
class Preference:
    """What a user can afford, as bounds on a confusion matrix.

    Parameters
    ----------
    *wants : str or Preference
        Bounds in words, one or several in a text (separated by a comma, a semicolon, "and" or a
        new line); the words are in the documentation of :mod:`margrave.confusion`.

    Raises
    ------
    PreferenceError
        If a text cannot be read, or no confusion matrix could meet it, whatever the sizes of the
        classes (judged to six digits of a share, and as if samples could be divided).

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
    """

    bounds: tuple[Bound, ...] = field(init=False)

    def __init__(self, *wants: str | Preference) -> None:
        if not wants:
            raise PreferenceError("Preference needs at least one bound, such as 'fp <= 5'.")
        for want in wants:
            if not isinstance(want, str | Preference):
                raise TypeError(f"Preference needs its bounds as texts; got {want!r}.")
        self._set([one for want in wants for one in _bounds_of(want)], wants)

    @classmethod
    def of(cls, bounds: Iterable[Bound]) -> Preference:
        """Make a preference of bounds.

        Parameters
        ----------
        bounds : iterable of Bound
            At least one.

        Returns
        -------
        Preference
        """
        made = object.__new__(cls)
        made._set(list(bounds), ())
        return made

    def _set(self, bounds: Sequence[Bound], wants: Sequence[str | Preference]) -> None:
        """Keep the bounds, each once, if they can hold together."""
        object.__setattr__(self, "bounds", tuple(dict.fromkeys(bounds)))
        clashes = [find_conflict(self.all_bounds, one) for one in UnknownMatrix.all_of(self.bounds)]
        if all(clashes):
            together = clashes[0]
            raise _marked_clash(f"these cannot hold together: {_listed(together)}", together, wants)

    @property
    def all_bounds(self) -> tuple[Bound, ...]:
        """The bounds, and that nothing is rejected where they do not speak of it."""
        implied = implied_bound(self.bounds)
        return (*self.bounds, implied) if implied else self.bounds

    def __str__(self) -> str:
        return ", ".join(map(str, self.bounds))

    def __repr__(self) -> str:
        return f"Preference({str(self)!r})"

    def __and__(self, other: Preference) -> Preference:
        """Both at once."""
        return Preference(self, other)

    def met(self, confusion: Matrix) -> bool:
        """Whether the matrix keeps every bound.

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
        """How many samples are in the wrong place, summed over the bounds.

        Parameters
        ----------
        confusion : Confusion
            The matrix.

        Returns
        -------
        float
            0 when the preference is met; not a whole number where a share is not.
        """
        missing = (-bound.slack(confusion) for bound in self.all_bounds)
        return float(sum(amount for amount in missing if amount > 0))

    def binding(self, confusion: Matrix) -> Bound:
        """The bound that is missed by most samples or, if all are met, has fewest to spare.

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
        """The same with counts as shares of the samples at hand, for samples yet to come.

        Parameters
        ----------
        confusion : Confusion
            A matrix with the classes and their sizes; how it answers does not matter.

        Returns
        -------
        Preference
            Shares have four digits, rounded to the strict side.

        Examples
        --------
        >>> from margrave import Confusion, Preference
        >>> matrix = Confusion([[270, 9], [20, 160]], classes=["ham", "spam"])
        >>> Preference("fp <= 5, recall(spam) >= 90%").in_rates(matrix)
        Preference('fp <= 1.792%, recall(spam) >= 90%')
        """
        return Preference.of(_in_rate(bound, confusion) for bound in self.bounds)

    @property
    def allows_rejecting(self) -> bool:
        """Whether some samples may be rejected."""
        return any(bound.word == "rejected" and bound.limit > 0 for bound in self.bounds)

    def keeping(self, before: Preference | None, confusion: Matrix) -> Preference:
        """Add the bounds of an earlier preference on subjects that this one does not mention.

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
        """
        if before is None:
            return self
        own = {bound.subject(confusion) for bound in self.bounds}
        kept = [bound for bound in before.bounds if bound.subject(confusion) not in own]
        return Preference.of([*kept, *self.bounds])

    def check_counts(self, confusion: Matrix) -> None:
        """Refuse what :meth:`check` refuses, and counts that exceed the number of samples.

        Parameters
        ----------
        confusion : Confusion
            As in :meth:`check`.

        Raises
        ------
        PreferenceError
            Likewise.
        """
        self.check(confusion)
        for bound in self.bounds:
            size = int(confusion.counts[bound.cells(confusion)[1]].sum())
            if not bound.share and bound.limit > size:
                raise PreferenceError(
                    f"'{bound}' counts more than the {size} samples that it speaks of."
                )

    def check(self, confusion: Matrix) -> None:
        """Refuse what no classifier could do on these samples.

        Parameters
        ----------
        confusion : Confusion
            A matrix with the classes and their sizes; how it answers does not matter.

        Raises
        ------
        PreferenceError
            If a class is not there, or no matrix with these class sizes meets all bounds; the
            message lists bounds that cannot hold together.
        """
        sizes = confusion.counts.sum(axis=1)
        together = find_conflict(self.all_bounds, confusion, sizes)
        if together:
            known = zip(map(quote_label, confusion.classes), sizes.tolist(), strict=True)
            raise PreferenceError(
                f"No matrix with these class sizes can have {_listed(together)}; there are "
                + ", ".join(f"{size} of {label}" for label, size in known)
                + "."
            )


def _bounds_of(want: str | Preference) -> list[Bound]:
    return [bound for bound, _ in parse(want)] if isinstance(want, str) else list(want.bounds)


def _marked_clash(
    message: str, together: Sequence[Bound], wants: Sequence[str | Preference]
) -> PreferenceError:
    """The message with marks under the last text that clashes, if bounds came as texts."""
    for text in [want for want in reversed(wants) if isinstance(want, str)]:
        for bound, span in reversed(parse(text)):
            if bound in together:
                return mark_error(text, span, message)
    return PreferenceError(message)


def _in_rate(bound: Bound, confusion: Matrix) -> Bound:
    """A bound on a count as one on a share."""
    if bound.share:
        return bound
    base = int(confusion.counts[bound.cells(confusion)[1]].sum())
    if base == 0:
        raise PreferenceError(f"'{bound}' is a share of no samples at all.")
    exact = min(bound.limit / base, Fraction(1))
    unit = Fraction(10) ** (floor(log10(exact)) - _DIGITS + 1) if exact else Fraction(1)
    steps = floor(exact / unit) if bound.at_most else ceil(exact / unit)
    return replace(bound, limit=steps * unit, share=True)


def _listed(bounds: Sequence[Bound]) -> str:
    return " and ".join(f"'{bound}'" for bound in bounds)
