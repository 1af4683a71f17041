"""A program as a classifier: training, answers and what it counts.

What martingale boosting and its adaptive form share as estimators; the walk is in `_layers`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from margrave import _labels
from margrave._typing import Codes, Floats
from margrave._validation import Rules, check_parameters, is_count
from margrave.martingale._again import There
from margrave.martingale._growth import Grown, Refine, grow
from margrave.martingale._layers import Layered, Moves, Samples
from margrave.martingale._logistic import TunableLogistic
from margrave.martingale._program import Program
from margrave.martingale._scored import ScoredClassifier


class ProgramClassifier(ScoredClassifier):
    """Base of the classifiers that walk samples through a program."""

    estimator: Any
    n_levels: int
    balance: bool
    n_jobs: int | None
    random_state: Any

    @abstractmethod
    def _moves(self, k: int) -> Moves:
        """How samples move."""

    @abstractmethod
    def _standings(self, ends: Codes, positions: Floats) -> Floats:
        """A number for each sample and class, the answer's the largest; shape (n, k)."""

    def _rules(self) -> Rules:
        """Every parameter with what it may be, in words, and whether it is."""
        return {
            "estimator": ("a classifier or None", _classifies(self.estimator)),
            "n_levels": ("a whole number of at least 1", is_count(self.n_levels)),
        }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        of_learner = get_tags(self._learner()).input_tags
        tags.input_tags.sparse = of_learner.sparse
        tags.input_tags.allow_nan = of_learner.allow_nan
        return tags

    def _learner(self) -> Any:
        return TunableLogistic() if self.estimator is None else self.estimator

    def _validated(self, X: Any, y: Any = None, *, reset: bool) -> Any:
        tags = get_tags(self).input_tags
        checks: dict[str, Any] = {
            "accept_sparse": "csr" if tags.sparse else False,
            "ensure_all_finite": not tags.allow_nan,
            "dtype": "numeric",
            "reset": reset,
        }
        return validate_data(self, X, y, **checks) if reset else validate_data(self, X, **checks)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the program.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their labels, of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; equal if None. Samples of weight 0 are left out. The counts of ``program_``
            are of samples, whatever they weigh.

        Returns
        -------
        self : object
            The trained classifier.
        """
        return self._fit(X, y, sample_weight)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        told: Callable[[int], Any] | None = None,
    ) -> Self:
        """Grow the program, and tell the number of layers after each."""
        check_parameters(self, self._rules())
        rows, labels = self._validated(X, y, reset=True)
        rows, labels, weights = self._weighed(rows, labels, sample_weight)
        codes = self._coded(labels)
        # Drawn once, so that tuning grows with the seeds of fit.
        self._entropy = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._samples = Samples(
            rows,
            codes,
            weights,
            len(self.classes_),
            tuple(self.classes_.tolist()),
            getattr(self, "feature_names_in_", None),
        )
        self._settle(self._grown(self._samples, told=told))
        return self

    def _grown(
        self,
        samples: Samples,
        costs: Floats | None = None,
        refine: Refine | None = None,
        there: There | None = None,
        offset: Floats | None = None,
        told: Callable[[int], Any] | None = None,
    ) -> Grown:
        return grow(
            samples,
            self._moves(samples.k),
            self._learner(),
            self.n_levels,
            owner=type(self).__name__,
            balance=self.balance,
            # Nodes that are asked are asked one by one, in order.
            n_jobs=self.n_jobs if there is None or refine is None else 1,
            seeds=np.random.SeedSequence(self._entropy),
            costs=costs,
            refine=refine,
            there=there,
            offset=offset,
            told=told,
        )

    def _settle(self, grown: Grown) -> None:
        """Keep a grown program, and set the sharpness by its training samples."""
        samples, self._layered = self._samples, grown.layered
        self.learners_ = grown.layered.learners
        self.program_ = grown.tally.program(grown.layered, tuple(self.classes_.tolist()))
        self.offset_ = np.zeros(samples.k)
        self.sharpness_ = self._sharpness(grown)

    def _sharpness(self, grown: Grown) -> float:
        """How much the final positions count, by the training samples."""
        samples = self._samples
        mass = np.eye(samples.k)[samples.codes] * samples.weights[:, None]
        return sharpness(self._standings(grown.ends, grown.positions), mass)

    def _scores(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        return self._scores_of(self._validated(X, reset=False))

    def _scores_of(self, rows: Any) -> Floats:
        """A score for each class, of samples that need no checks."""
        return self.sharpness_ * self._standings(*self._layered.walk(rows)) + self.offset_

    def decision_path(self, X: ArrayLike) -> sparse.csr_matrix:
        """Return the nodes that samples come to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        indicator : sparse matrix of shape (n_samples, n_nodes)
            1 where a sample (row) comes to a node of ``program_`` (column).
        """
        check_is_fitted(self)
        rows = self._validated(X, reset=False)
        visits: list[tuple[int, Codes]] = []
        self._layered.walk(rows, lambda node, came, _: visits.append((node, came)))
        came = np.concatenate([at for _, at in visits])
        nodes = np.repeat([node for node, _ in visits], [len(at) for _, at in visits])
        ones = np.ones(len(came), dtype=np.int64)
        return sparse.csr_matrix((ones, (came, nodes)), shape=(rows.shape[0], len(self.program_)))

    def measured(self, X: ArrayLike, y: ArrayLike) -> Program:
        """Return the program with the counts of other samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        Program
        """
        check_is_fitted(self)
        return self._counted(self._layered, X, y)

    def _counted(self, layered: Layered, X: Any, y: Any) -> Program:
        """A program with the counts of some samples, checked."""
        rows = self._validated(X, reset=False)
        codes = _labels.encode(y, self.classes_, f"{type(self).__name__}.measured: y")
        if codes.shape != (rows.shape[0],):
            raise ValueError(
                f"{type(self).__name__}.measured needs y with a label for each of "
                f"{rows.shape[0]} samples; got shape {codes.shape}."
            )
        return layered.program(rows, codes, tuple(self.classes_.tolist()))

    def error_rates(
        self, X: ArrayLike | None = None, y: ArrayLike | None = None
    ) -> dict[Any, float]:
        """Return the share of each class that is answered wrongly, by theorem 1.

        Parameters
        ----------
        X, y : array-like, optional
            Samples to count; the training samples if left out.

        Returns
        -------
        dict
            By class; with two classes the rates of false positives and false negatives are those
            of the negative and the positive class.
        """
        check_is_fitted(self)
        if X is None and y is None:
            return self.program_.error_rates()
        if X is None or y is None:
            raise ValueError(
                f"{type(self).__name__}.error_rates needs both X and y, or neither for the "
                "training samples."
            )
        return self.measured(X, y).error_rates()


def _classifies(estimator: Any) -> bool:
    """Whether something is a classifier, not its class, or None."""
    if estimator is None:
        return True
    return isinstance(estimator, BaseEstimator) and is_classifier(estimator)


def sharpness(standings: Floats, mass: Floats) -> float:
    """β ≥ 0 with the largest likelihood, and no surer than so many samples allow.

    Parameters
    ----------
    standings : ndarray of shape (m, k)
        Final positions.
    mass : ndarray of shape (m, k)
        The weight of each class at each of them.
    """
    lead = float(np.ptp(standings, axis=1).max())
    most = float(np.log(mass.sum() + 1)) / max(lead, 1e-12)
    behind = standings - standings.max(axis=1, keepdims=True)
    came, own = mass.sum(axis=1), float((mass * behind).sum())

    def loss(beta: float) -> float:
        return float(came @ np.log(np.exp(beta * behind).sum(axis=1))) - beta * own

    found = minimize_scalar(loss, bounds=(0.0, most), method="bounded")
    return max(float(found.x), 1e-6 * most)
