"""What the rankers of document 002, section 4, share: kernel parameters, rows, sums, Kendall's τ.

The document ("A Risk Minimization Principle for a Class of Parzen Estimators", Pelckmans, Suykens,
De Moor) measures rankings by Kendall's τ.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_array, validate_data

from margrave._dask.blocks import is_dask
from margrave._dask.sample import sample
from margrave._typing import Floats
from margrave.mam._kernels import Kernel
from margrave.mam._parameters import is_linear
from margrave.mam._ranks import kendall
from margrave.mam._sums import kernel_sum
from margrave.mam._widths import widths_to_try

_ROWS_FOR_SCORES = 100_000


def checked_rows(estimator: Any, X: Any, y: Any = "no_validation", **given: Any) -> Any:
    """Samples as float64, or float32 if they came so; in `fit` with the responses."""
    linear = is_linear(estimator.kernel)
    mapped = getattr(estimator, "n_components", None) is not None
    if issparse(X) and not (linear or mapped):
        also = " or with n_components" if hasattr(estimator, "n_components") else ""
        raise TypeError(
            f"{type(estimator).__name__} takes sparse X with kernel='linear'{also} only; "
            f"got kernel={estimator.kernel!r}."
        )
    given["dtype"] = [np.float64, np.float32]
    given["accept_sparse"] = ["csr", "csc"] if linear else "csr" if mapped else False
    if isinstance(y, str):
        return validate_data(estimator, X, reset=False, **given)
    return validate_data(estimator, X, y, ensure_min_samples=2, **given)


class KernelRanker(RegressorMixin, BaseEstimator):
    """Base of the rankers: a sum of kernel values, judged by the order it gives."""

    backend: Literal["auto", "numpy", "torch"] = "auto"  # of those without the parameter

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return Kendall's τ-b between predictions and responses.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The samples.
        y : array-like or Dask collection of shape (n_samples,)
            Their responses. Of Dask collections at most 100,000 samples are judged, drawn
            uniformly, always the same ones.

        Returns
        -------
        tau : float
            From −1, all pairs in the wrong order, to 1, all in the right one; 0 if all predictions
            or all responses are the same.
        """
        if is_dask(X, y):
            X, y = sample(X, y, n=_ROWS_FOR_SCORES)
        return kendall(check_array(y, ensure_2d=False, input_name="y"), self.predict(X))

    def _kernel(self, gamma: float | None = None) -> Kernel:
        return Kernel(self.kernel, 1.0 if gamma is None else gamma, self.degree, self.coef0)

    def _gammas(self, rows: Any, weights: Floats | None = None) -> Floats:
        """The values of γ to choose from, rising; 1 for a kernel that has none."""
        if not self._kernel().has_gamma:
            return np.ones(1)
        return widths_to_try(self.gamma, self.gammas, rows, self.kernel, weights)

    def _kernel_sums(self, rows: Any) -> NDArray[np.floating[Any]]:
        """Σ_i c_i K(x_i, x) with what `fit` has kept."""
        return kernel_sum(
            rows,
            self.X_fit_,
            self.dual_coef_,
            self.kernel,
            gamma=self.gamma_,
            degree=self.degree,
            coef0=self.coef0,
            backend=self.backend,
            n_jobs=self.n_jobs,
        )

    def _check_values(self, n_values: int, one: Any) -> None:
        """Refuse responses that are all the same: they have no order."""
        if n_values < 2:
            raise ValueError(
                f"{type(self).__name__}.fit needs y with at least two different values; "
                f"got only {one.item()!r}."
            )
