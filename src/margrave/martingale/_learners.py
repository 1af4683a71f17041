"""The learners at the nodes of a program.

Any scikit-learn classifier can be the learner of a node. A :class:`TunableLearner` offers more: it
is trained on validated arrays, and a program can tune it to a preference about its node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from margrave._indexing import select_rows
from margrave._typing import Codes, Floats
from margrave.confusion import Objective
from margrave.martingale._request import SearchResult


class TunableLearner(ABC):
    """What a classifier offers so that a program can tune it at a node.

    The program passes arrays that it has validated, and codes in place of labels. Attributes
    ``classes_`` and ``offset_`` have one entry for each class that the learner was trained on.
    """

    classes_: NDArray[Any]
    offset_: Floats

    @property
    @abstractmethod
    def _fits_arrays(self) -> bool:
        """Whether `_fit_node` may replace ``fit``: not if a subclass overrides ``fit``."""

    @abstractmethod
    def _class_parameters(self, labels: Sequence[Any]) -> dict[str, Floats]:
        """Validate the parameters; return those with one number per class, in order of labels.

        One of them is ``offset``.
        """

    @abstractmethod
    def _fit_node(self, X: Floats, codes: Codes, weights: Floats, feature_names: Any) -> Self:
        """Fit on arrays that need no validation, with weights above 0."""

    @abstractmethod
    def _class_scores(self, X: Floats) -> Floats:
        """Log-probabilities of ``classes_`` up to a constant for each sample, with the offset."""

    @abstractmethod
    def _tune_node(
        self,
        objective: Objective,
        X: Floats,
        *,
        patience: int = 4,
        max_models: int,
        tol: float | None = None,
    ) -> tuple[Self, SearchResult]:
        """A copy that is tuned to an objective about X, and the result of the search."""

    @abstractmethod
    def _with_offset(self, offset: Floats) -> Self:
        """A fitted copy with another offset."""

    @abstractmethod
    def without_training_data(self) -> Self:
        """Return a fitted copy that predicts but can no longer be tuned."""


def fits_arrays(learner: Any) -> TypeGuard[TunableLearner]:
    """Whether a program trains a learner by `TunableLearner._fit_node`, not by ``fit``."""
    return isinstance(learner, TunableLearner) and learner._fits_arrays


class NodePredictions(NamedTuple):
    """The class that a node predicts for each sample, and the probabilities where needed."""

    classes: Codes
    proba: Floats | None


def predict_constant(code: int | None, n: int, k: int) -> NodePredictions:
    """Predict one class for all samples."""
    proba = np.zeros((n, k))
    proba[:, code] = 1
    return NodePredictions(np.full(n, code), proba)


def predict_node(
    learner: Any, X: Any, k: int, offset: Floats, needs_proba: bool
) -> NodePredictions:
    """Predict by a learner: from its probabilities if they are needed or have an offset."""
    if needs_proba or isinstance(learner, TunableLearner) or offset.any():
        scores = class_scores(learner, X, k) + offset
        proba = softmax(scores, axis=1) if needs_proba else None
        return NodePredictions(np.argmax(scores, axis=1), proba)
    return NodePredictions(np.asarray(learner.predict(X), dtype=np.intp), None)


def class_scores(learner: Any, X: Any, k: int) -> Floats:
    """Log-probabilities up to a constant for each sample; -inf for classes it never saw."""
    scores = np.full((X.shape[0], k), -np.inf)
    if isinstance(learner, TunableLearner):
        scores[:, learner.classes_] = learner._class_scores(X)
        return scores
    with np.errstate(divide="ignore"):
        scores[:, learner.classes_] = np.log(learner.predict_proba(X))
    return scores


class TuningSamples(NamedTuple):
    """The tuning samples at a node: their rows in the tuning set, and classes of its learner."""

    rows: Codes
    codes: Codes

    @classmethod
    def at_node(
        cls, rows: Codes, n_training: int, codes: Codes, learner: Any
    ) -> TuningSamples | None:
        """Find them among the rows that reach a node; None if a class of its learner has none.

        The tuning set, with these codes, follows ``n_training`` training samples. Samples of
        classes that the learner never saw are left out.
        """
        at = rows[rows >= n_training] - n_training
        at = at[np.isin(codes[at], learner.classes_)]
        own = np.searchsorted(learner.classes_, codes[at])
        has_all = np.bincount(own, minlength=len(learner.classes_)).all()
        return cls(at, own) if has_all else None


@dataclass(frozen=True)
class LearnerTemplate:
    """The learner that a program clones at each node."""

    learner: Any
    takes_weights: bool  # whether ``fit`` has ``sample_weight``
    # Its random states that are None: each node sets them from its seed
    random_states: tuple[str, ...]
    # (k,): parameters with one number per class; empty unless the learner fits arrays
    class_parameters: dict[str, Floats]

    @classmethod
    def of(cls, learner: Any, labels: Sequence[Any], offset: Floats) -> LearnerTemplate:
        """Inspect a learner, and add an offset to its own if it fits arrays."""
        states = [
            name
            for name, value in learner.get_params().items()
            if (name == "random_state" or name.endswith("__random_state")) and value is None
        ]
        parameters: dict[str, Floats] = {}
        if fits_arrays(learner):
            parameters = learner._class_parameters(labels)
            parameters["offset"] = parameters["offset"] + offset
        takes_weights = has_fit_parameter(learner, "sample_weight")
        return cls(learner, takes_weights, tuple(states), parameters)

    @property
    def fits_arrays(self) -> bool:
        """Whether nodes are trained by `TunableLearner._fit_node`."""
        return bool(self.class_parameters)

    def train(
        self,
        X: Any,
        codes: Codes,
        weights: Floats,
        seed: np.random.SeedSequence,
        feature_names: Any,
        like: Any = None,
    ) -> Any:
        """Train a clone of the learner, or of ``like``, at a node."""
        own = clone(self.learner if like is None else like)
        parameters: dict[str, Any] = {}
        if self.random_states:
            number = int(seed.generate_state(1)[0] >> 1)
            parameters = dict.fromkeys(self.random_states, number)
        if self.fits_arrays and like is None:
            present = np.unique(codes).tolist()
            for name, values in self.class_parameters.items():
                parameters[name] = {code: values[code] for code in present}
        own.set_params(**parameters)
        if self.fits_arrays:
            return own._fit_node(X, codes, weights, feature_names)
        if (weights == (1 if self.takes_weights else weights[0])).all():
            return own.fit(X, codes)
        if self.takes_weights:
            return own.fit(X, codes, sample_weight=weights)
        return own.fit(*draw_by_weight(X, codes, weights, seed))


def draw_by_weight(
    X: Any, codes: Codes, weights: Floats, seed: np.random.SeedSequence
) -> tuple[Any, Codes]:
    """Draw as many samples by their weights, for learners without ``sample_weight``."""
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(codes), len(codes), p=weights / weights.sum())
    # At least one sample of each class: a learner never predicts a class that it has not seen.
    first = np.unique(codes, return_index=True)[1]
    drawn[: len(first)] = first
    return select_rows(X, drawn), codes[drawn]
