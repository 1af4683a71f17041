"""What a maximal-average-margin classifier says of its own certainty: document 002, section 3."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from margrave._labels import encode
from margrave._typing import Codes, Floats
from margrave._validation import is_count
from margrave.mam._bounds import check_delta, trace_bound
from margrave.mam._certainty import (
    Certainty,
    Counted,
    Evidence,
    Transform,
    counted,
    levels_of,
    margin_bound,
)
from margrave.mam._cut import decided
from margrave.mam._features import Frequencies, feature_sums, squared_lengths
from margrave.mam._kept import Kept
from margrave.mam._lazy import in_memory
from margrave.mam._sums import kernel_sum
from margrave.mam._widths import share_of_width

_LIMITED = ("rbf", "laplacian")


class Trusted(BaseEstimator, ABC):
    """Base of the classifier: bounds on its mistakes, from what its fit leaves behind."""

    classes_: NDArray[Any]
    cut: str | None
    cut_: Floats
    gamma: Any
    gammas: Any
    gammas_: Floats
    loo_decision_: Floats
    n_jobs: int | None
    backend: Literal["auto", "numpy", "torch"]
    kernel: Any
    degree: int
    coef0: float
    gamma_: float | None
    X_fit_: Any
    _codes: Codes
    _own_scores: Floats
    _diagonal: Floats
    _frequencies: Frequencies | None
    _kept: Kept | None

    @abstractmethod
    def decision_function(self, X: ArrayLike) -> Floats:
        """Scores, the cut taken off."""

    @abstractmethod
    def _scores(self, rows: Any) -> Floats:
        """Scores of shape (n, 1) or (n, n_classes), with the cut still in them."""

    def rademacher_bound(
        self,
        method: Literal["trace", "monte-carlo"] = "trace",
        *,
        n_draws: int = 100,
        random_state: int | np.random.RandomState | None = None,
    ) -> float:
        """Return the complexity of all unit directions on the training samples.

        Parameters
        ----------
        method : {"trace", "monte-carlo"}, default="trace"
            "trace" is Lemma 1: at most 2/n √tr Ω. "monte-carlo" is (9) itself, the mean of
            2/n √(σᵀΩσ) over random signs σ: smaller, but only as exact as the draws are many, so
            the bounds do not use it.
        n_draws : int, default=100
            Random signs to draw.
        random_state : int, RandomState instance or None, default=None
            Seed for them.

        Returns
        -------
        complexity : float
            The bound or the estimate.
        """
        check_is_fitted(self)
        _, _, diagonal = self._known_samples()
        n = len(diagonal)
        if method == "trace":
            return trace_bound(float(diagonal.sum()), n)
        if method != "monte-carlo":
            raise ValueError(
                f"rademacher_bound needs method to be 'trace' or 'monte-carlo'; got {method!r}."
            )
        if not is_count(n_draws):
            raise ValueError(
                f"rademacher_bound needs n_draws to be an integer of at least 1; got {n_draws!r}."
            )
        signs = check_random_state(random_state).choice([-1.0, 1.0], (n, n_draws))
        return float(2 / n * np.sqrt(np.maximum(self._quadratic(signs), 0)).mean())

    def margin_bound(self, delta: float = 0.05, *, bound: float | None = None) -> float:
        """Return (12): with probability 1 − delta, the expected margin is at least this.

        The margin is y (f(x) − cut), clipped at the bound where there is a cut.

        Parameters
        ----------
        delta : float in (0, 1), default=0.05
            How often it may fail.
        bound : float, optional
            The largest length of a sample in feature space. It is 1 for the RBF and Laplacian
            kernels; for others it must be known from elsewhere, not from the samples.

        Returns
        -------
        margin : float
            May be negative, and then says little.
        """
        check_is_fitted(self)
        found, _ = margin_bound(self._evidence(), delta, None, bound, None, "margin_bound")
        return found.expected

    def certainty(
        self,
        X: ArrayLike,
        delta: float = 0.05,
        transform: Literal["clip"] | Transform | None = None,
        *,
        bound: float | None = None,
        lipschitz: float | None = None,
        held_out: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Certainty:
        """Return how far predictions can be trusted, by (14) or (15) and by counting.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples to predict.
        delta : float in (0, 1), default=0.05
            How often the statements may fail. Where a width was chosen by leave-one-out, the bound
            shares it among all widths that might have been.
        transform : None, "clip" or callable, default=None
            None: (14). "clip": (15) with margins clipped at `bound`, by default at 1. A function g
            of your own must rise, be 0 at 0 and keep within `bound`, and `lipschitz` must be its
            steepest slope.
        bound : float, optional
            See `transform`; with None the largest length of a sample in feature space, as in
            `margin_bound`.
        lipschitz : float, optional
            See `transform`.
        held_out : tuple (X, y), optional
            Samples that no step has seen, for numbers that are usable where the bound is not.

        Returns
        -------
        certainty : Certainty
            The margins, the bound (1 where there is no guarantee), and the held-out numbers.

        Notes
        -----
        The document's bounds are for two classes; with more there is no guarantee, nor without
        `bound` or `transform` for a kernel that has no limit of its own. They treat the cut as part
        of what was learned. Where the classifier keeps only some samples they are computed from
        these, and hold all the same. ``gamma="scale"`` is taken as given, although it comes from
        the features.
        """
        check_is_fitted(self)
        in_memory("MAMClassifier.certainty", X=X)
        check_delta(delta, "certainty")
        sure = _sureness(self.decision_function(X))
        mistakes = np.ones(len(sure))
        unknown = transform is None and bound is None and self.kernel not in _LIMITED
        if len(self.classes_) == 2 and not unknown:
            found, change = margin_bound(
                self._evidence(), delta, transform, bound, lipschitz, "certainty"
            )
            mistakes = np.clip(found.mistakes(-change(-sure)), 0.0, 1.0)
        if held_out is None:
            return Certainty(sure, mistakes, delta=delta)
        return Certainty(sure, mistakes, *self._counted(held_out, delta)(sure), delta=delta)

    def _known_samples(self) -> tuple[Codes, Floats, Floats]:
        """Classes, scores with the cut still in them, and squared lengths of what was kept."""
        if self._kept is None:
            return self._codes, self._own_scores, self._diagonal
        rows = self._kept.X  # more may have come since the cut was placed
        return self._kept.codes, self._scores(rows), squared_lengths(rows, self._frequencies)

    def _evidence(self) -> Evidence:
        """What (12) to (15) need to know."""
        if len(self.classes_) != 2:
            raise ValueError(
                f"The bounds of the document are for two classes; got {len(self.classes_)}. "
                "certainty(X, held_out=(X, y)) works with any number."
            )
        cut = float(self.cut_[0])
        codes, scores, _ = self._known_samples()
        margins = np.where(codes == 1, 1.0, -1.0) * (scores[:, 0] - cut)
        return Evidence(
            margins,
            self.rademacher_bound(),
            1.0 if self.kernel in _LIMITED else None,
            None if self.cut is None else cut,
            share_of_width(self.gamma, self.gammas, self.gamma_),
        )

    def _counted(self, held_out: tuple[ArrayLike, ArrayLike], delta: float) -> Counted:
        """Mistakes on samples that nothing has seen."""
        if not isinstance(held_out, tuple | list) or len(held_out) != 2:
            raise ValueError("certainty needs held_out to be a pair (X, y).")
        for one in held_out:
            in_memory("MAMClassifier.certainty", held_out=one)
        scores = self.decision_function(held_out[0])
        labels = column_or_1d(held_out[1])
        if len(labels) != len(scores):
            raise ValueError(
                "certainty needs held_out with a label for each sample; "
                f"got {len(scores)} samples and {len(labels)} labels."
            )
        truth = encode(labels, self.classes_, "held_out")
        wrong = decided(scores.reshape(len(scores), -1)) != truth
        return counted(levels_of(_sureness(self.loo_decision_)), wrong, _sureness(scores), delta)

    def _quadratic(self, signs: Floats) -> Floats:
        """σᵀΩσ for every column of signs."""
        if self._kept is not None:
            sums = feature_sums(self._kept.X, signs, self._frequencies, self.n_jobs)
            return np.asarray(np.einsum("ij,ij->i", sums, sums))
        at_samples = kernel_sum(
            self.X_fit_,
            self.X_fit_,
            signs,
            self.kernel,
            gamma=self.gamma_ or 1.0,
            degree=self.degree,
            coef0=self.coef0,
            backend=self.backend,
            n_jobs=self.n_jobs,
        )
        return np.asarray(np.einsum("ij,ij->j", signs, at_samples))


def _sureness(scores: Floats) -> Floats:
    """How far a score is from deciding otherwise: from 0, or from the next one."""
    if scores.ndim == 1 or scores.shape[1] == 1:
        return np.asarray(np.abs(scores.ravel()))
    two = np.sort(scores, axis=1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0])
