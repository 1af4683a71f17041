"""How far the predictions of a support vector machine can be trusted: corollary 1.

Pelckmans et al. (2008), section 3.2 and figure 1b: g(z) = min(1, max(−1, z)) clips the margins,
where |z| < 1 is inside the margin of the SVM, so that B′ = 1 and L_g = 1 in (15). The
corollary is for directions w of length 1. For those of length at most 2^j the complexity is 2^j
times as large; the length of w is known only after the fit, so each power uses a fraction
of δ, and so does each power that limits its intercept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.svm import SVC
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from margrave._labels import encode
from margrave._typing import Floats
from margrave.mam._certainty import (
    Certainty,
    TrainingMargins,
    check_delta,
    count_errors,
    held_out_scores,
    margin_bound,
    margin_levels,
    trace_bound,
)
from margrave.mam._kernels import Kernel
from margrave.mam._parameters import power_fraction

_KERNELS = ("rbf", "linear", "poly")


@dataclass(frozen=True, eq=False)
class SVMCertainty:
    """How far the predictions of a support vector machine can be trusted.

    The bound is corollary 1 of Pelckmans et al. (2008) [1]_ with margins that are clipped at 1, the
    edge of the SVM's margin. It holds for all C at once, but for one kernel: if gamma was selected
    on the same samples, the bound does not include that. ``gamma="scale"`` counts as fixed,
    although it depends on the features.
    :class:`margrave.compare.CertaintyDisplay` plots it, which is figure 1b of the paper.

    Parameters
    ----------
    svm : SVC
        A fitted binary classifier with kernel "rbf", "linear" or "poly".
    X : array-like of shape (n_samples, n_features)
        The samples that it was fitted to.
    y : array-like of shape (n_samples,)
        Their labels.

    References
    ----------
    .. [1] K. Pelckmans, J. A. K. Suykens and B. De Moor, "A Risk Minimization Principle for a Class
       of Parzen Estimators", Advances in Neural Information Processing Systems 20, 2008, section
       3.2.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from margrave.datasets import load
    >>> from margrave.mam import SVMCertainty
    >>> train, test = load("ripley_train"), load("ripley_test")
    >>> svm = SVC().fit(train.data, train.target)
    >>> certainty = SVMCertainty(svm, train.data, train.target).certainty(
    ...     test.data[:1], held_out=(test.data[500:], test.target[500:])
    ... )
    >>> print(*certainty.in_words())
    no guarantee; held out: at most 5.8% of those with a margin of at least 1 are wrong
    """

    svm: SVC
    X: ArrayLike = field(repr=False)
    y: ArrayLike = field(repr=False)

    def decision_function(self, X: ArrayLike) -> Floats:
        """Compute the scores of the SVM, between −1 and 1 inside its margin.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Above 0 for the second of its classes.
        """
        return np.asarray(self.svm.decision_function(X), dtype=np.float64)

    def certainty(
        self,
        X: ArrayLike,
        delta: float = 0.05,
        *,
        held_out: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Certainty:
        """Compute how far predictions can be trusted, from the bound and from held-out samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples to predict.
        delta : float in (0, 1), default=0.05
            The probability that the statements fail.
        held_out : tuple (X, y), optional
            Samples that no step has used.

        Returns
        -------
        certainty : Certainty
            The margins, clipped at 1, the bound (1 where there is no guarantee), and the held-out
            numbers.
        """
        check_delta(delta, "SVMCertainty")
        training = self._training_margins()
        found, clip = margin_bound(training, delta, "clip", None, None, "SVMCertainty")
        margins = clip(np.abs(self.decision_function(X)))
        errors = np.clip(found.error(margins), 0.0, 1.0)
        if held_out is None:
            return Certainty(margins, errors, delta=delta)
        scores, codes = held_out_scores(self.svm, held_out)
        # Support vectors on the edge of the margin are there up to the tolerance of the solver.
        inside = np.abs(training.margins) < 1 - 2 * self.svm.tol
        levels = margin_levels(np.where(inside, training.margins, 1.0))
        rates = count_errors(levels, (scores > 0) != (codes == 1), clip(np.abs(scores)), delta)
        return Certainty(margins, errors, *rates(margins), delta=delta)

    def _training_margins(self) -> TrainingMargins:
        """Collect what (15) needs."""
        rows, codes = self._check_samples()
        svm, n = self.svm, len(rows)
        scores, intercept = self.decision_function(self.X), float(svm.intercept_[0])
        # w = Σ α_i φ(x_i) over the support vectors, so ‖w‖² = Σ α_i w·φ(x_i).
        squared = float(svm.dual_coef_[0] @ (scores[svm.support_] - intercept))
        length = float(np.sqrt(max(squared, 0.0)))
        power = int(np.ceil(np.log2(length))) if length > 0 else 0
        kernel = Kernel(svm.kernel, _gamma(svm, rows), svm.degree, svm.coef0)
        complexity = float(np.ldexp(trace_bound(float(kernel.diagonal(rows).sum()), n), power))
        margins = np.where(codes == 1, 1.0, -1.0) * scores
        return TrainingMargins(margins, complexity, None, intercept, power_fraction(power))

    def _check_samples(self) -> tuple[Floats, Any]:
        """Return the samples and the codes of their labels; raise an error for other samples."""
        svm = self.svm
        if not isinstance(svm, SVC) or svm.kernel not in _KERNELS:
            raise ValueError(
                "SVMCertainty needs svm to be an SVC with kernel 'rbf', 'linear' or 'poly'; "
                f"got {svm!r}. For a pipeline pass pipe[-1] and pipe[:-1].transform(X)."
            )
        check_is_fitted(svm)
        if len(svm.classes_) != 2:
            raise ValueError(
                f"SVMCertainty needs svm to have two classes; got {len(svm.classes_)}."
            )
        rows = check_array(self.X, dtype=np.float64, input_name="X")
        codes = encode(column_or_1d(self.y), svm.classes_, "SVMCertainty, y")
        support = svm.support_
        if not (
            rows.shape == svm.shape_fit_
            and len(codes) == len(rows)
            and np.array_equal(rows[support], svm.support_vectors_)
            and np.array_equal(codes[support] == 1, svm.dual_coef_[0] > 0)
        ):
            raise ValueError(
                "SVMCertainty needs X and y to be the samples that svm was fitted to, in their "
                "order; its support vectors, or their labels, are not among them."
            )
        return rows, codes


def _gamma(svm: SVC, rows: Floats) -> float:
    """Return γ of an SVC on its samples, as scikit-learn computes it."""
    if svm.gamma == "scale":
        variance = float(rows.var())
        return 1 / (rows.shape[1] * variance) if variance else 1.0
    return 1 / rows.shape[1] if svm.gamma == "auto" else float(svm.gamma)
