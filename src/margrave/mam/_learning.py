"""How the classifier learns: document 002, (4) to (7), on arrays that have been checked.

Kernels keep the samples, with one pass over their pairs for all widths. The linear kernel and
random features keep sums, to which samples are added as they come.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from margrave._typing import Codes, Floats
from margrave.mam._features import (
    LARGEST_SEED,
    ROWS_FOR_WIDTHS,
    Frequencies,
    feature_products,
    feature_sums,
)
from margrave.mam._kept import Kept
from margrave.mam._kernels import Kernel
from margrave.mam._leave_out import ClassSums
from margrave.mam._parameters import is_linear
from margrave.mam._selection import (
    Judged,
    Labelled,
    Selection,
    check_finite,
    judged_features,
    select_features,
    select_width,
    some_of_each,
)
from margrave.mam._sums import is_flat, kernel_sum
from margrave.mam._trust import Trusted
from margrave.mam._widths import widths_to_try

_BEYOND_1 = float(np.nextafter(1.0, 2.0))
_GROWTH = 1.1


class Learner(Trusted):
    """Base of the classifier: direction, width and cut from rows, codes and weights."""

    n_components: int | None
    class_weight: Any
    random_state: Any

    def _learn(self, rows: Any, codes: Codes, weights: Floats) -> Self:
        """Forget what was learned before, and learn."""
        self._forget()
        if self._in_features:
            return self._learn_more(rows, codes, weights, first=True)
        return self._fit_kernel(rows, codes, weights)

    def _forget(self) -> None:
        for name in ("_sums", "coef_", "X_fit_", "dual_coef_"):  # of a fit with another kernel
            if hasattr(self, name):
                delattr(self, name)

    def _learn_more(self, rows: Any, codes: Codes, weights: Floats, *, first: bool) -> Self:
        """Add samples to sums."""
        if first:
            self._begin(rows, codes, weights)
        return self._add(rows, codes, weights)

    @property
    def _in_features(self) -> bool:
        """Whether the direction is held as a vector, not as a sum over samples."""
        return is_linear(self.kernel) or self.n_components is not None

    @property
    def _balanced(self) -> bool:
        return isinstance(self.class_weight, str)

    def _samples(self, codes: Codes, weights: Floats) -> Labelled:
        return Labelled(codes, weights, len(self.classes_), self._balanced, self.cut)

    @property
    def _kernel(self) -> Kernel:
        """The kernel, without its width."""
        return Kernel(self.kernel, 1.0, self.degree, self.coef0)

    def _select(self, rows: Any, codes: Codes, weights: Floats) -> Selection:
        """Choose the width."""
        kernel = self._kernel
        gammas = widths_to_try(self.gamma, self.gammas, rows, self.kernel, weights)
        self.gammas_ = gammas if kernel.has_gamma else gammas[:1]
        of = self._samples(codes, weights)
        found = select_width(rows, kernel, self.gammas_, of, self.n_jobs, self.backend)
        self.loo_scores_ = found.rates
        self.gamma_ = float(self.gammas_[found.place]) if kernel.has_gamma else None
        return found

    def _fit_kernel(self, rows: Any, codes: Codes, weights: Floats) -> Self:
        found = self._select(rows, codes, weights)
        columns = self._samples(codes, weights).columns
        own = found.sums + found.diagonal[:, None] * columns
        self._kept = self._frequencies = None
        kernel = replace(self._kernel, gamma=self.gamma_ or 1.0)
        blurred = rows.dtype == np.float32 and is_flat(rows, kernel)
        self.X_fit_ = np.array(rows, dtype=np.float64 if blurred else rows.dtype)
        self.dual_coef_ = columns @ found.fit.turned
        self.n_seen_ = len(rows)
        self._codes, self._diagonal = codes, found.diagonal
        self._own_scores = own @ found.fit.turned
        return self._settle(found.fit, found.judged)

    def _begin(self, rows: Any, codes: Codes, weights: Floats) -> None:
        """Start empty sums, with a width and random features."""
        self._rng = check_random_state(self.random_state)
        self._frequencies = None
        self.gamma_, self.gammas_ = None, np.array([1.0])
        width = rows.shape[1]
        if not is_linear(self.kernel) and self.n_components is not None:
            self._frequencies = self._drawn(rows, codes, weights, self.n_components)
            width = 2 * self._frequencies.directions.shape[1]
        self._sums = np.zeros((len(self.classes_), width))
        self._class_weights = np.zeros(len(self.classes_))
        self._kept: Kept | None = None
        self.n_seen_ = self._n_judged = 0

    def _drawn(self, rows: Any, codes: Codes, weights: Floats, n_components: int) -> Frequencies:
        """Random features, of a width by leave-one-out with them, on some of the samples.

        Not with the kernel itself: it would choose widths that the features cannot tell from noise.
        """
        seed = self._rng.randint(LARGEST_SEED)
        self.gammas_ = widths_to_try(self.gamma, self.gammas, rows, self.kernel, weights)
        tried = [
            Frequencies.drawn(str(self.kernel), gamma, rows, n_components, seed)
            for gamma in self.gammas_.tolist()
        ]
        place = 0
        if len(tried) > 1:
            some = some_of_each(codes, ROWS_FOR_WIDTHS, self._rng)
            of = self._samples(codes[some], weights[some])
            place, self.loo_scores_ = select_features(rows[some], tried, of, self.n_jobs)
        self.gamma_ = float(self.gammas_[place])
        return tried[place]

    def _add(self, rows: Any, codes: Codes, weights: Floats) -> Self:
        """Add samples to the sums, and place direction and cut anew."""
        columns = self._samples(codes, weights).columns
        self._sums += feature_sums(rows, columns, self._frequencies, self.n_jobs)
        self._class_weights += columns.sum(axis=0)
        self.n_seen_ += len(codes)
        self._kept = Kept.of(rows, codes, weights, self._rng, self._kept)
        return self._place()

    def _place(self) -> Self:
        """Direction and cut, from the sums and the rows that were kept."""
        with np.errstate(over="ignore", invalid="ignore"):
            gram = self._sums @ self._sums.T
        check_finite(gram)
        fit = ClassSums(gram, self._class_weights, self._balanced)
        self.coef_ = fit.turned.T @ self._sums
        if self.n_seen_ < _GROWTH * self._n_judged:
            self.lambda_ = self.average_margin_ = fit.length
            return self
        self._n_judged = self.n_seen_
        kept: Any = self._kept
        samples = self._samples(kept.codes, kept.weights)
        found = judged_features(fit, self._sums, kept.X, self._frequencies, samples, self.n_jobs)
        if len(self.gammas_) == 1:
            self.loo_scores_ = np.array([found.right])
        return self._settle(fit, found)

    def _settle(self, fit: ClassSums, found: Judged) -> Self:
        """Keep what was found."""
        self.cut_, self.loo_decision_ = found.cut, found.decision
        if len(self.classes_) == 2 and self._kernel.is_exponential:
            # No score is beyond 1: a cut there decides no other way, and the bounds need |cut| ≤ 1.
            self.cut_ = np.clip(found.cut, -_BEYOND_1, _BEYOND_1)
            self.loo_decision_ = found.decision + (found.cut - self.cut_)
        self.lambda_ = self.average_margin_ = fit.length
        if self.lambda_ == 0 and np.count_nonzero(fit.weights) > 1:
            warnings.warn(
                "MAMClassifier: the classes have the same mean in feature space. No direction has "
                "an average margin above 0, and every sample gets the same score.",
                UserWarning,
                stacklevel=4,
            )
        return self

    def _scores(self, rows: Any) -> Floats:
        """Scores of shape (n, 1) or (n, n_classes), with the cut still in them."""
        if hasattr(self, "coef_"):  # by what was fitted: parameters may have been set since
            return feature_products(rows, self.coef_, self._frequencies, self.n_jobs)
        sums = kernel_sum(
            rows,
            self.X_fit_,
            self.dual_coef_,
            self.kernel,
            gamma=self.gamma_ or 1.0,
            degree=self.degree,
            coef0=self.coef0,
            backend=self.backend,
            n_jobs=self.n_jobs,
        )
        return np.asarray(sums, dtype=np.float64)
