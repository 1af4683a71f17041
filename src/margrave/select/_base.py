"""Base of the selectors: members, and their predictions for the tuning set.

A selector compares members on samples that they were not fitted on, the tuning set: the samples
passed to ``fit`` if the members are prefit, a part held out from their training, or all samples,
each predicted out of fold. The last part makes members of a fitted scikit-learn ensemble.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_array, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from margrave import _labels
from margrave._errors import ParameterError
from margrave._indexing import select_columns, select_rows
from margrave._typing import AnyFloats, AnyInts, Flags, Ints
from margrave.committee import Committee, check_tuning, group_folds_hint, is_fraction, make_folds
from margrave.scores import Ask, Scores


class BaseSelector(Committee):
    """Base class of the estimators that select among members.

    The ``fit`` of a subclass calls :meth:`_predict_tuning_set`, which fits the members, and sets
    ``n_tuning_`` last: it marks a selector as fitted. Subclasses that compare samples with each
    other do so in the space that :meth:`_fit_space` fits.
    """

    tuning: Any
    space: Any
    random_state: Any

    def _pairs(self) -> list[tuple[str, Any]]:
        """Return (name, member) pairs, also of a fitted ensemble of scikit-learn."""
        if not isinstance(self.estimators, BaseEstimator):
            return super()._pairs()
        if not self.prefit:
            raise ValueError(
                f"{type(self).__name__} needs prefit=True if estimators is a fitted ensemble; to "
                "fit members, pass a list of classifiers."
            )
        return ensemble_members(self.estimators, type(self).__name__)

    def _predict_tuning_set(
        self,
        X: Any,
        labels: NDArray[Any],
        sample_weight: Any,
        fit_params: dict[str, Any],
        ask: Ask,
    ) -> TuningSet:
        """Fit the members, unless prefit, and predict samples that they were not fitted on."""
        owner = type(self).__name__
        check_tuning(self.tuning, owner)
        if "groups" in fit_params and not get_config()["enable_metadata_routing"]:
            raise ValueError(group_folds_hint(owner))
        self.__dict__.pop("n_tuning_", None)  # if this fit fails, the last one no longer counts
        weight = self._checked_weight(sample_weight, len(labels))
        if len(labels) < 2 and not self.prefit:
            raise ValueError(f"{owner} needs samples to fit and to tune on; got one sample.")
        if self.prefit:
            rows, predictions = self._predict_with_prefit(X, labels, fit_params, ask)
        else:
            params = self._routed(weight, fit_params)
            rows, predictions = self._predict_out_of_fold(X, labels, params, ask)
        weighted = np.ones(len(rows), dtype=bool) if weight is None else weight[rows] > 0
        if not weighted.any():
            raise ValueError(
                f"{owner} needs samples with a weight above 0 in the tuning set; got none."
            )
        kept = rows[weighted]
        return TuningSet(
            X=select_rows(X, kept),
            labels=_labels.encode(labels[kept], self.classes_, "y"),
            weight=None if weight is None else _relative_weights(weight[kept]),
            predictions=predictions.at(weighted),
            rows=kept,
        )

    def _predict_with_prefit(
        self, X: Any, labels: NDArray[Any], fit_params: dict[str, Any], ask: Ask
    ) -> tuple[Ints, Predictions]:
        """Return all rows, and the predictions of fitted members for them."""
        self._take_prefit(X, fit_params)
        _labels.encode(labels, self.classes_, "y")  # an unknown label is reported first
        blocks = [self._predictions(select_rows(X, at), ask) for at in row_blocks(len(labels))]
        return np.arange(len(labels)), Predictions.concatenate(blocks)

    def _predict_out_of_fold(
        self, X: Any, labels: NDArray[Any], params: dict[str, dict[str, Any]], ask: Ask
    ) -> tuple[Ints, Predictions]:
        """Return the rows of the held-out part or of all folds, and the predictions for them."""
        if is_fraction(self.tuning):
            rows = self._train_on_a_part(X, labels, params, float(self.tuning), self.random_state)
            return rows, self._predictions(select_rows(X, rows), ask)
        folds = make_folds(self.tuning, X, labels, type(self).__name__)
        _check_disjoint(folds, len(labels), type(self).__name__)
        held_out = self._held_out(X, labels, folds, params, ask)
        self._keep(self._train(X, labels, params), labels)
        predictions = [Predictions.of(scores, ask) for _, scores in held_out]
        return np.concatenate([at for at, _ in held_out]), Predictions.concatenate(predictions)

    def _check_fitted(self) -> None:
        """Raise NotFittedError before ``fit``, and after a ``fit`` that failed."""
        if not hasattr(self, "n_tuning_"):
            check_is_fitted(self, "n_tuning_")

    def _predictions(self, X: Any, ask: Ask) -> Predictions:
        """Return the fitted members' predictions for new samples."""
        return Predictions.of(self._ask(X, ask), ask)

    def _fit_space(self, X: Any) -> None:
        """Fit the transformer to the space in which samples are compared."""
        if self.space is not None and not hasattr(self.space, "transform"):
            owner = type(self).__name__
            raise ParameterError.of(owner, "space", "a transformer or None", self.space)
        self.space_ = None if self.space is None else clone(self.space).fit(X)

    def _to_space(self, X: Any) -> Any:
        """Return samples in that space: numbers, none missing."""
        transformed = X if self.space_ is None else self.space_.transform(X)
        try:
            return check_array(transformed, accept_sparse="csr", dtype=np.float64)
        except (TypeError, ValueError) as error:
            if self.space is None:
                error.add_note(
                    f"{type(self).__name__} needs numbers in all columns, none missing. Pass a "
                    "transformer that encodes or imputes them as space=."
                )
            raise

    def _accepts_missing(self) -> bool:
        """Return whether samples with missing values have a place in the space."""
        return self.space is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = bool(tags.input_tags.allow_nan and self._accepts_missing())
        return tags


@dataclass(frozen=True)
class Predictions:
    """The predictions of L members for n samples."""

    # (n, L): positions of the predicted classes, -1 where a member rejects; (n, 0) if not requested
    codes: AnyInts
    proba: AnyFloats  # (n, L, C); (n, L, 0) if not requested or a member has none

    @classmethod
    def of(cls, scores: Scores, ask: Ask) -> Predictions:
        """Read the labels and the probabilities of scores, as far as they were requested.

        The labels do not follow from the probabilities: a member may use any threshold.
        """
        codes = np.empty((len(scores), 0), int) if ask == "values" else np.asarray(scores.codes)
        if ask != "labels" and set(scores.kinds) == {"probability"}:
            return cls(codes, scores.proba())
        return cls(codes, np.empty((*codes.shape, 0)))

    @classmethod
    def concatenate(cls, parts: list[Predictions]) -> Predictions:
        """Join the predictions for several sets of samples."""
        codes, proba = ([part.codes for part in parts], [part.proba for part in parts])
        return cls(np.concatenate(codes), np.concatenate(proba))

    @property
    def has_proba(self) -> bool:
        """Whether there are probabilities."""
        return bool(self.proba.shape[2])

    def at(self, rows: NDArray[Any]) -> Predictions:
        """Return the predictions for some of the samples."""
        return Predictions(self.codes[rows], self.proba[rows])


@dataclass(frozen=True)
class TuningSet:
    """Samples with the predictions of members that were not fitted on them."""

    X: Any
    labels: AnyInts  # (n,): positions of the classes
    weight: AnyFloats | None  # (n,): above 0, with a mean of 1; None if all are equal
    predictions: Predictions
    rows: AnyInts  # (n,): the rows of the samples in the data passed to ``fit``

    @property
    def correct(self) -> Flags:
        """Whether each member is correct on each sample, shape (n, L)."""
        correct: Flags = self.predictions.codes == self.labels[:, None]
        return correct

    def accuracy(self) -> AnyFloats:
        """Return the accuracy of each member."""
        accuracy: AnyFloats = np.average(self.correct, axis=0, weights=self.weight)
        return accuracy


def row_blocks(n_samples: int, size: int = 4096) -> Iterator[NDArray[np.intp]]:
    """Yield the positions of samples in blocks, so that memory does not grow with n_samples."""
    for start in range(0, n_samples, size):
        yield np.arange(start, min(start + size, n_samples))


def _check_disjoint(folds: list[Any], n_samples: int, owner: str) -> None:
    """Refuse folds that hold out a sample twice, or one that they are fitted on."""
    rows, times = np.arange(n_samples), np.zeros(n_samples, dtype=np.int64)
    for training, held_out in folds:
        if np.isin(rows[held_out], rows[training]).any():
            raise ValueError(
                f"{owner} needs folds whose held-out samples are not among their training samples."
            )
        np.add.at(times, rows[held_out], 1)
    if times.max(initial=0) > 1:
        raise ValueError(
            f"{owner} needs folds that hold out each sample at most once; sample "
            f"{int(times.argmax())} is held out {times.max()} times."
        )


def _relative_weights(weight: AnyFloats) -> AnyFloats | None:
    """Return weights with a mean of 1; None if all are equal."""
    return None if (weight == weight[0]).all() else weight / weight.mean()


# Members of a fitted ensemble of scikit-learn

# These fit their members on the positions of the classes; AdaBoost fits them on the labels.
_FITTED_ON_POSITIONS = (
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
_ENSEMBLES = (*_FITTED_ON_POSITIONS, AdaBoostClassifier)


def ensemble_members(ensemble: Any, owner: str) -> list[tuple[str, Any]]:
    """Return the members of a fitted ensemble, each a classifier of its own, with their names."""
    if isinstance(ensemble, FrozenEstimator):
        ensemble = ensemble.estimator
    kind = type(ensemble).__name__
    if not isinstance(ensemble, _ENSEMBLES):
        known = ", ".join(sorted(one.__name__ for one in _ENSEMBLES))
        raise ValueError(
            f"{owner} needs estimators to be a list of classifiers, or a fitted ensemble among "
            f"{known}; got {kind}."
        )
    if not hasattr(ensemble, "estimators_"):
        raise ValueError(
            f"{owner} needs a fitted ensemble; this {kind} is not fitted. (A clone is not fitted, "
            "unless it is in a sklearn.frozen.FrozenEstimator.)"
        )
    prefit_stack = isinstance(ensemble, StackingClassifier) and ensemble.cv == "prefit"
    on_positions = isinstance(ensemble, _FITTED_ON_POSITIONS) and not prefit_stack
    classes, members = np.asarray(ensemble.classes_), list(ensemble.estimators_)
    if isinstance(ensemble, StackingClassifier | VotingClassifier):
        names = [name for name, member in ensemble.estimators if member != "drop"]
    else:
        digits = len(str(len(members)))
        types = [type(member).__name__.lower() for member in members]
        names = [f"{name}-{j:0{digits}d}" for j, name in enumerate(types, start=1)]
    columns = [None] * len(members)
    if isinstance(ensemble, BaggingClassifier):
        columns = ensemble.estimators_features_
    pairs = []
    for name, member, at in zip(names, members, columns, strict=True):
        own = np.asarray(member.classes_)
        labels = classes[own.astype(int)] if on_positions else own
        pairs.append((name, EnsembleMember(member, labels, at)))
    return pairs


class EnsembleMember(ClassifierMixin, BaseEstimator):
    """One fitted member of an ensemble, with the labels of its classes and its columns."""

    def __init__(self, estimator: Any, labels: NDArray[Any], columns: Any = None) -> None:
        self.estimator = estimator
        self.labels = labels
        self.columns = columns

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of its classes."""
        return self.labels

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the ensemble's labels."""
        own = np.asarray(self.estimator.predict(self._select_columns(X)))
        return self.labels[np.searchsorted(self.estimator.classes_, own)]

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict probabilities of `classes_`."""
        proba: NDArray[np.float64] = self.estimator.predict_proba(self._select_columns(X))
        return proba

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the decision values."""
        values: NDArray[np.float64] = self.estimator.decision_function(self._select_columns(X))
        return values

    def _select_columns(self, X: Any) -> Any:
        """Return its columns; without names if it was fitted without names."""
        has_names = hasattr(self.estimator, "feature_names_in_")
        plain = X if has_names or hasattr(X, "tocsr") else np.asarray(X)
        return select_columns(plain, self.columns, "member", self.estimator)
