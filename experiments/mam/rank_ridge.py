"""Kernel ridge regression on ranks, with which Pelckmans et al. (2008) compare their ranker.

Section 4 ends with least-squares support vector machines on rank-transformed responses: kernel
ridge regression on the ranks r of (21) with a bias that is not penalised,

    [Ω + αI  1] [c]   [r]
    [1ᵀ      0] [b] = [0].

c sums to 0, so Ω may be replaced by PΩP, where P subtracts the mean. With its eigenvectors u and
eigenvalues s, without those along 1, the upper left part of the inverse is G = Σ u uᵀ / (s + α):
c = G r, and b makes the mean residual 0. One decomposition serves all α.

Leave-one-out: for responses t, the fit to the other samples predicts t_i − (Gt)_i / G_ii for sample
i. Here t are the ranks among the others, r − sign(y − y_i), and t_i cancels. With r itself, a large
α would predict the mean of the other ranks, which is −r_i/(n − 1): the order reversed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from scipy.linalg import eigh
from scipy.stats import kendalltau
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from experiments._parts import Floats
from margrave.mam import rank_transform

_TIE = 1e-12


@dataclass(frozen=True)
class CentredRidge:
    """Ridge regression with a free bias, for one kernel and any α.

    Attributes
    ----------
    omega : ndarray of shape (n, n)
        Ω.
    vectors, values : ndarrays of shapes (n, n − 1) and (n − 1,)
        Eigenvectors and eigenvalues of PΩP, without those along 1.
    """

    omega: Floats
    vectors: Floats
    values: Floats

    @classmethod
    def of(cls, omega: Floats) -> CentredRidge:
        """Decompose once."""
        means = omega.mean(axis=0)
        centred = omega - means - means[:, None] + means.mean()
        # Along 1 an eigenvalue above all others, so that it is the last.
        centred += (float(np.abs(centred).sum(axis=0).max()) * 2 + 1) / len(omega)
        # On a busy machine, several threads take seconds instead of a tenth.
        with threadpool_limits(1, "blas"):
            values, vectors = eigh(centred, overwrite_a=True, driver="evd")
        return cls(omega, vectors[:, :-1], np.maximum(values[:-1], 0.0))

    def solve(self, ranks: Floats, alpha: float) -> tuple[Floats, float]:
        """Compute c and b of one α."""
        c = self.vectors @ ((self.vectors.T @ ranks) / (self.values + alpha))
        bias = float(np.mean(ranks - self.omega @ c))  # Σ c = 0, so the mean of α c is 0
        return c, bias

    def leave_one_out(self, y: Floats, alphas: Floats) -> Floats:
        """Predict each sample by the fit to the others and their ranks, of shape (n_alphas, n)."""
        ranks = rank_transform(y)
        _, codes = np.unique(y, return_inverse=True)
        # Row i: Σ_j sign(y_j − y_i) u_j for every u, the sums above minus the sums below.
        sums = np.zeros((codes.max() + 1, self.vectors.shape[1]))
        np.add.at(sums, codes, self.vectors)
        upto = np.cumsum(sums, axis=0)
        signed = (upto[-1] - 2 * upto + sums)[codes]
        rest = self.vectors * (self.vectors.T @ ranks - signed)  # u_i (uᵀt) with t_i still r_i
        factors = 1 / (self.values[:, None] + alphas)
        residuals = rest @ factors / (np.square(self.vectors) @ factors)
        predicted: Floats = ranks - residuals.T
        return predicted


class RankRidgeRanker(RegressorMixin, BaseEstimator):
    """Kernel ridge regression on ranks: slower and more accurate than ``MAMRanker``, its limit.

    It needs all kernel values and O(n³) operations for each width: for comparison, up to a few
    thousand samples. ``MAMRanker`` is its limit for large `alpha`.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A kernel of scikit-learn's ``pairwise_kernels``, or a function of two sets of rows.
    gamma : {"scale", "loo"} or float, default="scale"
        The width; "loo" selects it by leave-one-out.
    gammas : array of float, optional
        The candidates of "loo"; by default fifteen powers of 4 around "scale".
    alpha : "loo" or float, default="loo"
        The ridge; "loo" selects it by leave-one-out.
    alphas : array of float, optional
        The candidates of "loo"; by default 10⁻³, 10⁻², …, 10⁴.
    degree, coef0 : int and float
        Parameters of the polynomial kernel.

    Notes
    -----
    The selected width and ridge have the largest τ; of equal ones the widest kernel, then the
    largest ridge.
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: Literal["loo", "scale"] | float = "scale",
        gammas: Any = None,
        alpha: Literal["loo"] | float = "loo",
        alphas: Any = None,
        degree: int = 3,
        coef0: float = 1.0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.gammas = gammas
        self.alpha = alpha
        self.alphas = alphas
        self.degree = degree
        self.coef0 = coef0

    def fit(self, X: Any, y: Any) -> Self:
        """Learn to predict the ranks of the responses."""
        rows, responses = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2
        )
        self.X_fit_, self.ranks_ = rows, rank_transform(responses)
        self.gammas_, self.alphas_ = self._candidate_gammas(rows), self._candidate_alphas()
        found = []
        for gamma in self.gammas_.tolist():
            ridge = CentredRidge.of(self._gram(rows, gamma))
            predicted = ridge.leave_one_out(responses, self.alphas_)
            taus = np.array([_tau(responses, each) for each in predicted])
            place = len(taus) - 1 - _first_of_best(taus[::-1])
            solution = ridge.solve(self.ranks_, self.alphas_[place])
            found.append((taus, place, predicted[place], solution))
        self.loo_scores_ = np.array([taus for taus, _, _, _ in found])
        best = _first_of_best(self.loo_scores_.max(axis=1))
        _, place, self.loo_predictions_, (self.dual_coef_, self.intercept_) = found[best]
        self.gamma_, self.alpha_ = float(self.gammas_[best]), float(self.alphas_[place])
        return self

    def predict(self, X: Any) -> Floats:
        """Predict ranks."""
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(self._gram(rows, self.gamma_) @ self.dual_coef_ + self.intercept_)

    def score(self, X: Any, y: Any) -> float:
        """Compute Kendall's τ-b between predictions and responses."""
        return _tau(y, self.predict(X))

    def _gram(self, rows: Floats, gamma: float) -> Floats:
        if callable(self.kernel):
            return np.asarray(self.kernel(rows, self.X_fit_))
        options = {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        values = pairwise_kernels(
            rows, self.X_fit_, metric=self.kernel, filter_params=True, **options
        )
        return np.asarray(values)

    def _candidate_gammas(self, rows: Floats) -> Floats:
        if self.kernel not in ("rbf", "laplacian", "poly"):
            return np.ones(1)
        if not isinstance(self.gamma, str):
            return np.array([float(self.gamma)])
        if self.gamma == "loo" and self.gammas is not None:
            return np.unique(np.asarray(self.gammas, dtype=np.float64))
        spread = float(rows.std() if self.kernel == "laplacian" else rows.var())
        scale = 1 / (rows.shape[1] * spread) if spread > 1e-28 else 1.0
        if self.gamma == "scale":
            return np.array([scale])
        return np.asarray(4.0 ** (round(float(np.log2(scale)) / 2) + np.arange(-7, 8)))

    def _candidate_alphas(self) -> Floats:
        if not isinstance(self.alpha, str):
            return np.array([float(self.alpha)])
        if self.alphas is not None:
            return np.unique(np.asarray(self.alphas, dtype=np.float64))
        return np.logspace(-3, 4, 8)


def _tau(y: Any, scores: Floats) -> float:
    """Compute Kendall's τ-b; 0 if it is not defined."""
    found = float(kendalltau(y, scores).statistic)
    return found if np.isfinite(found) else 0.0


def _first_of_best(taus: Floats) -> int:
    """Find the largest, of those that differ by rounding the first."""
    return int(np.argmax(taus >= taus.max() - _TIE))
