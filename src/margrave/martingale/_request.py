"""A request: a preference that is held against a tuning set, and the account of what was done."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave.confusion import Confusion
from margrave.martingale._judge import Judge
from margrave.preference import Bound, Preference


class NotMetWarning(UserWarning):
    """No model that was tried meets the preference; the nearest one is returned."""


@dataclass(frozen=True)
class Step:
    """What a callback is told after each model.

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
    preference : Preference
        What was wanted.
    met : bool
        Whether the returned model keeps to it on the tuning set.
    before, after : Confusion
        The tuning set by the model that was asked, and by the one that was returned.
    by_offset : Confusion
        What moving the offset of the decision alone would have given.
    n_models : int
        How many models were trained for it.
    cancelled : bool
        Whether a callback stopped the search.
    """

    preference: Preference
    met: bool
    before: Confusion
    after: Confusion
    by_offset: Confusion
    n_models: int
    cancelled: bool

    @property
    def binding(self) -> Bound:
        """The bound that is missed by most samples, or has fewest to spare."""
        return self.preference.binding(self.after)

    @property
    def shortfall(self) -> float:
        """How many samples are in the wrong place; 0 when the preference is met."""
        return self.preference.shortfall(self.after)

    def __str__(self) -> str:
        short = f"not met, {self.shortfall:g} short ('{self.binding}' binds)"
        said = "met" if self.met else short
        lines = [f"{self.preference}: {said} on the tuning set, {self.n_models} models trained"]
        named = ("before", self.before), ("after", self.after), ("by offset", self.by_offset)
        lines += [f"{name + ':':11}{_in_short(matrix)}" for name, matrix in named]
        return "\n".join(lines)


def _in_short(matrix: Confusion) -> str:
    """The errors of a matrix in one line."""
    errors = matrix.n - int(np.trace(matrix.counts)) - matrix.n_rejected
    if matrix.positive is None:
        return f"{errors} errors in {matrix.n}"
    return f"fp {matrix.fp}, fn {matrix.fn}, {errors} errors in {matrix.n}"


def judge_of(
    preference: Preference | str,
    y_tune: ArrayLike,
    classes: NDArray[Any],
    positive: Any,
    n_samples: int,
    owner: str,
) -> Judge:
    """The judge of a request; refuses what cannot be judged or cannot be done.

    Raises
    ------
    ValueError
        If a label is not a class, or a class is missing.
    PreferenceError
        If no answers to these samples could meet it.
    """
    codes = _labels.encode(y_tune, classes, f"{owner}: y_tune")
    if codes.shape != (n_samples,):
        raise ValueError(
            f"{owner} needs y_tune with a label for each of {n_samples} samples; "
            f"got shape {codes.shape}."
        )
    sizes = np.bincount(codes, minlength=len(classes))
    if not sizes.all():
        raise ValueError(
            f"{owner} needs y_tune with samples of every class; "
            f"got none of {_labels.plain(classes[np.argmin(sizes)])!r}."
        )
    wanted = Preference(preference)
    judge = Judge(wanted, codes, tuple(classes.tolist()), positive)
    wanted.check(judge.matrix(codes))
    return judge


def report(
    judge: Judge,
    answers: tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]],
    n_models: int,
    cancelled: bool,
    owner: str,
) -> Tuning:
    """The account of a request, with a warning if it is not met.

    Parameters
    ----------
    judge : Judge
        What was wanted.
    answers : tuple of arrays
        To the tuning set: before, after, and by the offset alone.
    n_models, cancelled
        As in :class:`Tuning`.
    owner : str
        Who speaks in the warning.
    """
    before, after, by_offset = map(judge.matrix, answers)
    met = judge.preference.met(after)
    told = Tuning(judge.preference, met, before, after, by_offset, n_models, cancelled)
    if not met:
        warnings.warn(
            f"{owner} did not meet '{judge.preference}': the nearest of {n_models + 1} models is "
            f"{told.shortfall:g} samples short, and '{told.binding}' binds.",
            NotMetWarning,
            stacklevel=3,
        )
    return told
