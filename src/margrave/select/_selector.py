"""What the estimators of selection share: members, their tuning samples, and the space of these.

Members are judged on samples they were not trained on: those given to ``fit`` if they are prefit,
a part kept from their training, or all of them, each by members trained without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples, check_is_fitted

from margrave import _labels
from margrave._indexing import select_rows
from margrave._typing import AnyFloats, AnyInts
from margrave.committee import Committee, check_tuning, group_folds_hint, is_fraction, make_folds
from margrave.scores import Ask, Scores
from margrave.select._ensemble import is_ensemble, opened


@dataclass(frozen=True)
class Told:
    """What L members say about n samples.

    Attributes
    ----------
    codes : ndarray of int, shape (n, L)
        Positions of the classes; -1 for no answer.
    proba : ndarray of shape (n, L, C) or None
        Probabilities, where they were asked for.
    """

    codes: AnyInts
    proba: AnyFloats | None

    def at(self, which: NDArray[Any]) -> Told:
        """The same about some of the samples."""
        return Told(self.codes[which], None if self.proba is None else self.proba[which])


@dataclass(frozen=True)
class Judged:
    """Tuning samples and what members say about them that were not trained on them.

    Attributes
    ----------
    X : array, sparse matrix or data frame
        The samples.
    truth : ndarray of int, shape (n,)
        Their classes.
    weight : ndarray of shape (n,) or None
        How much each counts, above 0.
    told : Told
        What the members say.
    rows : ndarray of int, shape (n,)
        Where they are in the data given to ``fit``.
    """

    X: Any
    truth: AnyInts
    weight: AnyFloats | None
    told: Told
    rows: AnyInts

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether each member is right at each sample, shape (n, L)."""
        right: NDArray[np.bool_] = self.told.codes == self.truth[:, None]
        return right

    def accuracy(self) -> AnyFloats:
        """Each member's share of right answers."""
        share: AnyFloats = np.average(self.right, axis=0, weights=self.weight)
        return share


class Selector(Committee):
    """Base of the estimators that select among members."""

    tuning: Any
    space: Any
    random_state: Any

    def _pairs(self) -> list[tuple[str, Any]]:
        if not is_ensemble(self.estimators):
            return super()._pairs()
        if not self.prefit:
            raise ValueError(
                f"{type(self).__name__} takes a trained ensemble with prefit=True only; to train "
                "members, give a list of them."
            )
        return opened(self.estimators, type(self).__name__)

    def _judge(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: Any,
        fit_params: dict[str, Any],
        ask: Ask,
    ) -> Judged:
        """Train the members, unless prefit, and hear them about samples not trained on."""
        owner = type(self).__name__
        check_tuning(self.tuning, owner)
        if "groups" in fit_params and not get_config()["enable_metadata_routing"]:
            raise ValueError(group_folds_hint(owner))
        labels = self._start(X, y)
        self.__dict__.pop("n_tuning_", None)  # what was learned before goes with the members
        weight = self._checked_weight(sample_weight, len(labels))
        if len(labels) < 2 and not self.prefit:
            raise ValueError(f"{owner} needs samples to train and to tune on; got one sample.")
        if self.prefit:
            rows, told = self._prefit_told(X, labels, fit_params, ask)
        else:
            params = self._routed(weight, fit_params)
            rows, told = self._trained_told(X, labels, params, ask)
        counting = np.ones(len(rows), dtype=bool) if weight is None else weight[rows] > 0
        if not counting.any():
            raise ValueError(f"{owner} needs tuning samples with a weight above 0; got none.")
        kept = rows[counting]
        return Judged(
            X=select_rows(X, kept),
            truth=_labels.encode(labels[kept], self.classes_, "y"),
            weight=None if weight is None else _relative(weight[kept]),
            told=told.at(counting),
            rows=kept,
        )

    def _prefit_told(
        self, X: Any, labels: NDArray[Any], fit_params: dict[str, Any], ask: Ask
    ) -> tuple[NDArray[np.int64], Told]:
        self._take_prefit(X, fit_params)
        _labels.encode(labels, self.classes_, "y")
        told = [self._hear(select_rows(X, at), ask) for at in blocks(_num_samples(X))]
        return np.arange(len(labels)), _joined(told)

    def _trained_told(
        self, X: Any, labels: NDArray[Any], params: dict[str, dict[str, Any]], ask: Ask
    ) -> tuple[NDArray[np.int64], Told]:
        if is_fraction(self.tuning):
            rows = self._train_on_a_part(X, labels, params, float(self.tuning), self.random_state)
            return rows, self._hear(select_rows(X, rows), ask)
        folds = make_folds(self.tuning, X, labels, type(self).__name__)
        _check_apart(folds, len(labels), type(self).__name__)
        parts = [
            (at, told_by(scores, ask))
            for at, scores in self._held_out(X, labels, folds, params, ask)
        ]
        self._keep(self._train(X, labels, params), labels)
        return np.concatenate([at for at, _ in parts]), _joined([told for _, told in parts])

    def _check_fitted(self) -> None:
        """Refuse what is not fitted, or whose last fit failed."""
        if not hasattr(self, "n_tuning_"):
            check_is_fitted(self, "n_tuning_")

    def _hear(self, X: Any, ask: Ask) -> Told:
        """What the trained members say about samples."""
        return told_by(self._ask(X, ask), ask)

    def _fit_space(self, X: Any) -> None:
        """Learn the space in which samples are near to each other."""
        self.space_ = None if self.space is None else clone(self.space).fit(X)

    def _placed(self, X: Any) -> Any:
        """Samples in that space: numbers, none missing."""
        placed = X if self.space_ is None else self.space_.transform(X)
        try:
            return check_array(placed, accept_sparse="csr", dtype=np.float64)
        except (TypeError, ValueError) as error:
            if self.space is not None or "could not convert" not in str(error):
                raise
            raise ValueError(
                f"{type(self).__name__} needs columns of numbers to know what is near ({error}); "
                "give a transformer that makes some as space=."
            ) from error

    def _fills_gaps(self) -> bool:
        """Whether missing values are no hindrance to know what is near."""
        return self.space is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = bool(tags.input_tags.allow_nan and self._fills_gaps())
        return tags


def _check_apart(folds: list[Any], n_samples: int, owner: str) -> None:
    """Refuse folds in which a sample is held out twice, or trained on and held out."""
    places, times = np.arange(n_samples), np.zeros(n_samples, dtype=np.int64)
    for training, held_out in folds:
        if np.isin(places[held_out], places[training]).any():
            raise ValueError(f"{owner} needs folds that hold out what they do not train on.")
        np.add.at(times, places[held_out], 1)
    if times.max(initial=0) > 1:
        raise ValueError(
            f"{owner} needs folds that hold each sample out at most once; sample "
            f"{int(times.argmax())} is held out {times.max()} times."
        )


def _relative(weight: AnyFloats) -> AnyFloats | None:
    """Weights with a mean of 1; None if all are equal."""
    return None if (weight == weight[0]).all() else weight / weight.mean()


def told_by(scores: Scores, ask: Ask) -> Told:
    """AnyInts, and probabilities where values were asked for.

    Labels are always asked for: a member's answer need not be its most probable class.
    """
    can = ask == "both" and set(scores.kinds) == {"probability"}
    return Told(scores.codes, scores.proba() if can else None)  # type: ignore[arg-type]


def blocks(n_samples: int, size: int = 4096) -> Iterator[NDArray[np.intp]]:
    """Positions of samples, so many at a time."""
    for start in range(0, n_samples, size):
        yield np.arange(start, min(start + size, n_samples))


def _joined(told: list[Told]) -> Told:
    proba = [one.proba for one in told if one.proba is not None]
    return Told(
        np.concatenate([one.codes for one in told]), np.concatenate(proba) if proba else None
    )
