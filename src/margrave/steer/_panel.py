"""Trained members behind one call, and scores of new samples from what they say.

A committee that was cross-fitted has said about each tuning sample what members said that were
trained without it; for new samples the members trained on all of them speak.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Floats
from margrave.scale._nested import not_further
from margrave.scores import Scores

# Scores are rounded to so many digits of their size: the same sample must get the same score
# in any company, or samples that tie at a cut would fall to either side of it.
_DIGITS = 9
_USUAL = 0.9


@dataclass(frozen=True)
class Panel:
    """Trained classifiers that answer together.

    Attributes
    ----------
    names : list of str
        Their names.
    members : list of classifiers
        Trained.
    classes : ndarray
        All classes.
    encoder : transformer or None
        What samples pass before the members see them.
    columns : list of str, int or None
        The columns of samples, by name, or how many there are; None if only the first member, or
        the encoder, knows.
    """

    names: list[str]
    members: list[Any]
    classes: NDArray[Any]
    encoder: Any = None
    columns: list[str] | int | None = None

    @property
    def probabilities(self) -> NDArray[np.bool_]:
        """Which members give probabilities."""
        return np.array([hasattr(member, "predict_proba") for member in self.members])

    def raw(self, X: Any, n_jobs: int | None = None) -> Floats:
        """What the members say about encoded samples, in their own units."""
        pairs = list(zip(self.names, self.members, strict=True))
        with not_further():  # members are asked here; a cluster trains them
            scores = Scores.of(pairs, X, classes=self.classes, ask="values", n_jobs=n_jobs)
        return scores.raw()

    def forgetting(self) -> Panel:
        """The same without the training data that members keep to be tuned; for new samples."""
        return replace(self, members=[_forgetting(member) for member in self.members])

    def encoded(self, X: Any) -> Any:
        """Samples as the members see them."""
        return X if self.encoder is None else self.encoder.transform(X)


class Combine(Protocol):
    """What makes scores of the members' answers."""

    @property
    def weights(self) -> Floats:
        """The members' weights, shape (K,) or (k, K)."""

    def __call__(self, raw: Floats) -> Floats:
        """Scores for raw values of shape (n, K) or (n, K, k).

        One with a true attribute ``looks`` is also given the encoded samples.
        """


def columns_of(X: Any) -> list[str] | int | None:
    """The columns of samples, by name, or how many there are."""
    names = list(getattr(X, "columns", []))
    if names:
        return names if all(isinstance(name, str) for name in names) else len(names)
    shape: tuple[int, ...] = getattr(X, "shape", ())
    return int(shape[1]) if len(shape) == 2 else None


def looks(combine: Combine) -> bool:
    """Whether it looks at the samples, and not only at what members say."""
    return bool(getattr(combine, "looks", False))


def heard(combine: Combine, raw: Floats, X: Any) -> Floats:
    """Scores from what the members say, and from encoded samples if they are looked at."""
    return combine(raw, X) if looks(combine) else combine(raw)  # type: ignore[call-arg]


@dataclass(frozen=True)
class Scorer:
    """Scores of samples: one for two classes, larger for the second; else one for each class.

    Attributes
    ----------
    panel : Panel
        Who is asked.
    combine : Combine
        What makes scores of their answers.
    decimals : int
        To how many decimals scores are rounded.
    """

    panel: Panel
    combine: Combine
    decimals: int

    @property
    def weights(self) -> Floats:
        """The members' weights, over the classes if each has its own."""
        return np.asarray(np.atleast_2d(self.combine.weights).mean(axis=0))

    def __call__(self, X: Any) -> Floats:
        """Scores of samples as a user has them."""
        return self.of_encoded(self.panel.encoded(X))

    def of_encoded(self, X: Any) -> Floats:
        """Scores of samples that have passed the encoder."""
        return self.of_raw(self.panel.raw(X), X)

    def of_raw(self, raw: Floats, X: Any = None) -> Floats:
        """Scores from what the members say; of regions, also from the encoded samples."""
        return np.round(heard(self.combine, raw, X), self.decimals)


def decimals_for(scores: Floats) -> int:
    """Enough to tell scores of this size apart, few enough not to tell rounding errors."""
    sizes = np.abs(scores)
    size = float(np.quantile(sizes, _USUAL, method="higher")) or float(
        sizes.max()
    )  # whatever an outlier is
    return _DIGITS - int(np.floor(np.log10(size))) if size > 0 else _DIGITS


def _forgetting(model: Any) -> Any:
    """A model without the training data that it, or what it is made of, keeps to be tuned."""
    if hasattr(model, "_forget_training"):
        return copy(model)._forget_training()
    parts: dict[str, Any] = {}
    if isinstance(getattr(model, "steps", None), list):
        parts["steps"] = [(name, _forgetting(step)) for name, step in model.steps]
    if isinstance(getattr(model, "estimators_", None), list):
        parts["estimators_"] = [_forgetting(member) for member in model.estimators_]
    if hasattr(model, "best_estimator_"):
        parts["best_estimator_"] = _forgetting(model.best_estimator_)
    if not parts:
        return model
    other = copy(model)
    for name, value in parts.items():
        setattr(other, name, value)
    return other
