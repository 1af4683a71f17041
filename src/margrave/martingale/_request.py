"""A tuning request: a preference about the confusion matrix of a tuning set, and its result."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._messages import format_count, name_class
from margrave._typing import Codes
from margrave._validation import is_number
from margrave.confusion import Bound, Confusion, Objective, Preference, PreferenceError


class NotMetWarning(UserWarning):
    """No model of the search meets the preference; the nearest one is returned.

    Examples
    --------
    >>> import warnings
    >>> from margrave.datasets import load
    >>> from margrave.martingale import NotMetWarning, TunableLogistic
    >>> X, y = load("pima", return_X_y=True)
    >>> model = TunableLogistic().fit(X[::2], y[::2])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NotMetWarning)
    ...     tuned = model.tune("errors <= 5", X[1::2], y[1::2], max_models=2)
    >>> tuned.tuning_.met
    False
    """


@dataclass(frozen=True)
class Step:
    """The progress that a callback receives.

    Attributes
    ----------
    number, most : int
        Number of models (or nodes) tried so far, and the largest possible number.
    met : bool
        Whether the best model so far meets the preference.
    confusion : Confusion
        The confusion matrix of the best model so far, on the tuning set, however small its gain is.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.martingale import TunableLogistic
    >>> X, y = load("pima", return_X_y=True)
    >>> model, steps = TunableLogistic().fit(X[::2], y[::2]), []
    >>> tuned = model.tune("fn <= 30", X[1::2], y[1::2], max_models=2, callback=steps.append)
    >>> [(step.number, step.most, step.met) for step in steps]
    [(0, 2, True), (1, 2, True), (2, 2, True)]
    """

    number: int
    most: int
    met: bool
    confusion: Confusion


@dataclass(frozen=True)
class Tuning:
    """The result of a tuning request.

    Attributes
    ----------
    preference : Preference or None
        The requested preference; None if only nodes of a program were tuned.
    met : bool
        Whether the returned model meets the preference on the tuning set. Without a preference,
        whether every requested node meets its own.
    before, after : Confusion
        The tuning set as predicted by the original model and by the returned one.
    by_offset : Confusion or None
        The result of moving only the offset of the decision.
    n_models : int
        Number of models trained for the request. For a whole program it counts the programs that
        were grown again and, with granularity "root", the models trained for their nodes.
    cancelled : bool
        Whether a callback stopped the search.
    node_results : tuple of (votes, Tuning)
        The results at the requested nodes, in the order in which the program grew.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.martingale import TunableLogistic
    >>> X, y = load("pima", return_X_y=True)
    >>> model = TunableLogistic().fit(X[::2], y[::2])
    >>> tuning = model.tune("fn <= 30", X[1::2], y[1::2], max_models=4).tuning_
    >>> tuning.met, tuning.before.fn, tuning.after.fn
    (True, 56, 30)
    >>> print(tuning)
    fn <= 30 (pos is positive): met on the tuning set, 4 models trained
    before:    fp 27, fn 56, 83 errors in 384
    after:     fp 62, fn 30, 92 errors in 384
    by offset: fp 62, fn 30, 92 errors in 384
    """

    preference: Preference | None
    met: bool
    before: Confusion
    after: Confusion
    by_offset: Confusion | None
    n_models: int
    cancelled: bool
    node_results: tuple[tuple[tuple[int, ...], Tuning], ...] = ()

    @property
    def nodes(self) -> dict[tuple[int, ...], Tuning]:
        """The results at the requested nodes, by their votes."""
        return dict(self.node_results)

    @property
    def binding(self) -> Bound | None:
        """The limiting constraint: the bound with the largest shortfall or the least slack."""
        return None if self.preference is None else self.preference.binding(self.after)

    @property
    def shortfall(self) -> float:
        """Number of samples in the wrong cell; 0 if the preference is met."""
        if self.preference is None:
            return sum(node.shortfall for node in self.nodes.values())
        return self.preference.shortfall(self.after)

    def __str__(self) -> str:
        trained = f"{self.n_models} model{'' if self.n_models == 1 else 's'} trained"
        lines = [f"{self._describe_result()} on the tuning set, {trained}"]
        named = {"before": self.before, "after": self.after, "by offset": self.by_offset}
        for name, matrix in named.items():
            if matrix is not None:
                lines.append(f"{name + ':':11}{_describe_matrix(matrix, self.preference)}")
        return "\n".join(lines)

    def _describe_result(self) -> str:
        if self.preference is None:
            met = sum(node.met for node in self.nodes.values())
            return f"{len(self.nodes)} nodes requested: {met} met their preferences"
        positive = self.after.positive
        positive = "" if positive is None else f" ({name_class(positive)} is positive)"
        if self.preference.met(self.before):
            result = "already met, nothing changed"
        elif self.met:
            result = "met"
        else:
            result = (
                f"not met, {format_count(self.shortfall)} short ('{self.binding}' is the limiting "
                "constraint)"
            )
        return f"{self.preference}{positive}: {result}"


def _describe_matrix(matrix: Confusion, preference: Preference | None) -> str:
    """Describe the amounts that a preference bounds, and the errors, in one line."""
    parts = []
    for bound in () if preference is None else preference.bounds:
        if bound.word in ("fp", "fn", "errors") and not bound.labels:
            continue  # part of every description
        amount, base = (int(matrix.counts[mask].sum()) for mask in bound.cells(matrix))
        name = str(bound).split(" <= ")[0].split(" >= ")[0]
        rate = f"{amount / base:.1%}" if base else "of nothing"
        parts.append(f"{name} {rate if bound.is_fraction else format(amount, ',')}")
    if matrix.positive is not None:
        parts += [f"fp {matrix.fp:,}", f"fn {matrix.fn:,}"]
    errors = matrix.n - int(np.trace(matrix.counts)) - matrix.n_rejected
    return ", ".join([*parts, f"{errors:,} errors in {matrix.n:,}"])


@dataclass(frozen=True)
class SearchResult:
    """Predictions for the tuning set before and after a search."""

    # (n_tune,): predictions of the original model, of the returned one, and of the original model
    # with the best offset.
    before: Codes
    after: Codes
    by_offset: Codes
    n_models: int  # number of models trained
    cancelled: bool  # whether the callback stopped the search

    @classmethod
    def unchanged(cls, predictions: Codes) -> SearchResult:
        """The result of a request that the original model meets."""
        return cls(predictions, predictions, predictions, 0, cancelled=False)


def summarize(objective: Objective, result: SearchResult) -> Tuning:
    """Turn the predictions of a search into confusion matrices."""
    preference = cast(Preference, objective.preference)  # local bounds are never summarized
    after = objective.matrix(result.after)
    return Tuning(
        preference,
        preference.met(after),
        objective.matrix(result.before),
        after,
        objective.matrix(result.by_offset),
        result.n_models,
        result.cancelled,
    )


def report(objective: Objective, result: SearchResult, owner: str, stacklevel: int = 3) -> Tuning:
    """Summarize a search; warn in the owner's name if the preference is not met."""
    tuning = summarize(objective, result)
    if not tuning.met:
        warnings.warn(
            f"{owner} did not meet '{tuning.preference}': the nearest of {tuning.n_models + 1} "
            f"models is {format_count(tuning.shortfall)} samples short, and '{tuning.binding}' is "
            "the limiting constraint.",
            NotMetWarning,
            stacklevel=stacklevel,
        )
    return tuning


def make_objective(
    preference: Preference | str,
    y_tune: ArrayLike,
    classes: NDArray[Any],
    positive: Any,
    n_samples: int,
    owner: str,
) -> Objective:
    """Validate a request about a tuning set.

    Raises
    ------
    ValueError
        If a label is not a class, or a class has no sample.
    PreferenceError
        If no predictions for these samples could meet the preference.
    """
    codes = encode_tuning_labels(y_tune, classes, n_samples, owner)
    wanted = Preference(preference, classes=classes.tolist(), positive=positive)
    for bound in wanted.bounds:
        if bound.word == "rejected" and not bound.at_most and bound.limit > 0:
            raise PreferenceError(
                f"{owner} needs a preference that rejects nothing, since the model always predicts "
                f"a class; got '{bound}'.",
                code="cannot_reject",
                bound=str(bound),
            )
    check_positive(positive, classes, owner)
    objective = Objective(wanted, codes, tuple(classes.tolist()), positive)
    wanted.check(objective.matrix(codes))
    return objective


def encode_tuning_labels(
    y_tune: ArrayLike, classes: NDArray[Any], n_samples: int, owner: str
) -> Codes:
    """Encode the labels of a tuning set, which needs samples of every class."""
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


def check_preference(preference: Any, owner: str, hint: str = "") -> Preference | str:
    """Refuse anything but a preference or its text."""
    if not isinstance(preference, str | Preference):
        raise TypeError(
            f"{owner} needs a preference such as 'fp <= 5' first{hint}; "
            f"got {type(preference).__name__}."
        )
    return preference


def check_positive(positive: Any, classes: NDArray[Any], owner: str) -> None:
    """Refuse a positive class that is not one of the classes."""
    if positive is not None and positive not in classes.tolist():
        raise ValueError(
            f"{owner} needs positive to be one of {_labels.shown(classes)}; got {positive!r}."
        )


def check_limits(owner: str, **limits: Any) -> None:
    """Refuse limits of a search that are not counts."""
    for name, value in limits.items():
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or value < 0:
            raise ValueError(
                f"{owner} needs {name} to be a whole number of at least 0; got {value!r}."
            )


def check_min_gain(min_gain: Any, owner: str) -> None:
    """Refuse a number of standard errors below 0."""
    if not is_number(min_gain) or not min_gain >= 0:
        raise ValueError(f"{owner} needs min_gain to be a number of at least 0; got {min_gain!r}.")
