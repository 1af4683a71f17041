"""Kernel ridge regression on ranks: what document 002 compares its ranker with.

"A Risk Minimization Principle for a Class of Parzen Estimators" (Pelckmans, Suykens, De Moor),
section 4, ends with least-squares support vector machines on rank-transformed responses: kernel
ridge regression on r of (21) with a bias that is not penalised,

    [Ω + αI  1] [c]   [r]
    [1ᵀ      0] [b] = [0].

c sums to 0, so Ω may be replaced by PΩP, P taking off the mean, and with its eigenvectors u and
eigenvalues s, those along 1 left out, the upper left part of the inverse is
G = Σ u uᵀ / (s + α): c = G r, and b makes the mean residual 0. One decomposition serves all α.

Leaving sample i out: for responses t it is predicted t_i − (Gt)_i / G_ii by the fit to the others.
Here t are the ranks among the others, r − sign(y − y_i), and t_i cancels. With r itself, large α
would predict the mean of the other ranks, which is −r_i/(n − 1): the order reversed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from sklearn.utils.validation import check_is_fitted, validate_data

from margrave._typing import Floats
from margrave._validation import Rules, check_parameters
from margrave.mam._kernel_ranker import KernelRanker
from margrave.mam._kernels import Kernel, KernelFunction, Pairs
from margrave.mam._parameters import kernel_rules
from margrave.mam._ranks import Levels, first_best, kendall
from margrave.mam._threads import one_blas_thread
from margrave.mam._widths import are_gammas, is_gamma


def gram(X: Floats, kernel: Kernel) -> Floats:
    """Ω: the kernel's values for all pairs of rows."""
    n = len(X)
    pairs = Pairs(kernel, X, X)
    values = pairs.tile(slice(0, n), slice(0, n), np.empty((3, n, n)))
    return np.asarray(values, dtype=np.float64)


@dataclass(frozen=True)
class CentredRidge:
    """Ridge regression with a free bias, for one kernel and any α.

    Attributes
    ----------
    omega : ndarray of shape (n, n)
        Ω.
    vectors, values : ndarrays of shapes (n, n − 1) and (n − 1,)
        Eigenvectors and eigenvalues of PΩP, those along 1 left out.
    """

    omega: Floats
    vectors: Floats
    values: Floats

    @classmethod
    def of(cls, omega: Floats) -> CentredRidge:
        """Decompose once."""
        means = omega.mean(axis=0)
        centred = omega - means - means[:, None] + means.mean()
        # Along 1 an eigenvalue above all the others, so that it comes last and alone.
        centred += (float(np.abs(centred).sum(axis=0).max()) * 2 + 1) / len(omega)
        # More threads wait for each other: seconds instead of a tenth, on a busy machine.
        with one_blas_thread():
            values, vectors = eigh(centred, overwrite_a=True, driver="evd")
        return cls(omega, vectors[:, :-1], np.maximum(values[:-1], 0.0))

    def solution(self, ranks: Floats, alpha: float) -> tuple[Floats, float]:
        """The c and b of one α."""
        c = self.vectors @ ((self.vectors.T @ ranks) / (self.values + alpha))
        bias = float(np.mean(ranks - self.omega @ c))  # Σ c = 0: the α c are of mean 0
        return c, bias

    def left_out(self, levels: Levels, alphas: Floats) -> Floats:
        """What each sample is predicted by the fit to the others and their ranks.

        Of shape (n_alphas, n): O(n²) for all samples together.
        """
        ranks = levels.ranks(None)
        # Row i: Σ_j sign(y_j − y_i) u_j for every u, the sums above less the sums below.
        sums = np.add.reduceat(self.vectors[levels.order], levels.starts, axis=0)
        upto = np.cumsum(sums, axis=0)
        places = levels.to_samples(np.arange(len(sums)))
        signed = (upto[-1] - 2 * upto + sums)[places]
        rest = self.vectors * (self.vectors.T @ ranks - signed)  # u_i (uᵀt) with t_i still r_i
        shares = 1 / (self.values[:, None] + alphas)
        residuals = rest @ shares / (np.square(self.vectors) @ shares)
        predicted: Floats = ranks - residuals.T
        return predicted


class RankRidgeRanker(KernelRanker):
    """Kernel ridge regression on ranks: the slow, more exact sibling of :class:`MAMRanker`.

    Least-squares support vector machines on rank-transformed responses, with which the document
    compares its ranker [1]_. It needs all kernel values and O(n³) operations for each width: for
    comparison, up to a few thousand samples. :class:`MAMRanker` is its limit for large `alpha`.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "laplacian"} or callable, default="rbf"
        The kernel, as in :func:`kernel_sum`. One of your own must be positive definite.
    gamma : {"scale", "loo"} or float, default="scale"
        The width, as in :class:`MAMRanker`; "loo" chooses it by leave-one-out.
    gammas : array-like of float, optional
        What "loo" chooses from; by default fifteen powers of 4 around "scale".
    alpha : "loo" or float, default="loo"
        The ridge; "loo" chooses it by leave-one-out.
    alphas : array-like of float, optional
        What "loo" chooses from; by default 10⁻³, 10⁻², …, 10⁴.
    degree : int, default=3
        Of the polynomial kernel (γ x·z + coef0)^degree.
    coef0 : float, default=1.0
        Of the polynomial kernel.
    n_jobs : int, optional
        Threads of `predict`; all cores that the process may use if None or -1.

    Attributes
    ----------
    ranks_ : ndarray of shape (n_samples,)
        The ranks that are fitted, :func:`rank_transform`.
    dual_coef_ : ndarray of shape (n_samples,)
        c: what K(x_i, x) is multiplied with.
    intercept_ : float
        The bias b.
    X_fit_ : ndarray of shape (n_samples, n_features)
        The training samples.
    gamma_, alpha_ : float
        Width and ridge in use; no width (None) for kernels without one.
    gammas_, alphas_ : ndarrays
        What was compared.
    loo_scores_ : ndarray of shape (n_gammas, n_alphas)
        Kendall's τ of the leave-one-out predictions.
    loo_predictions_ : ndarray of shape (n_samples,)
        Predictions for the training samples by fits without them, at `gamma_` and `alpha_`.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, where `X` has names that are all strings.

    Notes
    -----
    Leave-one-out is exact, the others being ranked anew without the sample. Taken is the pair of
    width and ridge with the largest τ; of equals the widest, then the largest ridge.

    References
    ----------
    .. [1] K. Pelckmans, J. A. K. Suykens and B. De Moor, "A Risk Minimization Principle for a Class
       of Parzen Estimators", sections 4 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> from margrave.mam import RankRidgeRanker
    >>> X = np.linspace(0, 3, 20).reshape(-1, 1)
    >>> model = RankRidgeRanker().fit(X, np.exp(X[:, 0]))
    >>> model.score(X, X[:, 0])
    1.0
    """

    def __init__(
        self,
        kernel: Literal["rbf", "linear", "poly", "laplacian"] | KernelFunction = "rbf",
        *,
        gamma: Literal["loo", "scale"] | float = "scale",
        gammas: ArrayLike | None = None,
        alpha: Literal["loo"] | float = "loo",
        alphas: ArrayLike | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.gammas = gammas
        self.alpha = alpha
        self.alphas = alphas
        self.degree = degree
        self.coef0 = coef0
        self.n_jobs = n_jobs

    def _rules(self) -> Rules:
        named = isinstance(self.alpha, str)
        ridge = self.alpha == "loo" if named else is_gamma(self.alpha)
        return {
            **kernel_rules(self),
            "alpha": ("'loo' or a finite number above 0", ridge),
            "alphas": ("None or finite numbers above 0", are_gammas(self.alphas)),
        }

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn to predict the ranks of the responses.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples, without missing values.
        y : array-like of shape (n_samples,)
            Their responses, of which only the order counts, with at least two different values.

        Returns
        -------
        self : object
            The trained ranker.
        """
        check_parameters(self, self._rules())
        rows, responses = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2
        )
        levels = Levels.of(responses)
        self._check_values(len(levels.starts), responses[0])
        self.X_fit_, self.ranks_ = rows, levels.ranks(None)
        self.gammas_ = self._gammas(rows)
        self.alphas_ = self._ridges()
        found = []
        for gamma in self.gammas_.tolist():
            ridge = CentredRidge.of(gram(rows, self._kernel(gamma)))
            predicted = ridge.left_out(levels, self.alphas_)
            taus = np.array([kendall(responses, each) for each in predicted])
            place = len(taus) - 1 - first_best(taus[::-1])
            solution = ridge.solution(self.ranks_, self.alphas_[place])
            found.append((taus, place, predicted[place], solution))
        self.loo_scores_ = np.array([taus for taus, _, _, _ in found])
        best = first_best(self.loo_scores_.max(axis=1))
        _, place, self.loo_predictions_, (self.dual_coef_, self.intercept_) = found[best]
        self.alpha_ = float(self.alphas_[place])
        self.gamma_ = float(self.gammas_[best]) if self._kernel().has_gamma else None
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.floating[Any]]:
        """Return the predicted ranks.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The larger, the higher a sample ranks: on the scale of `ranks_`.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(self._kernel_sums(rows) + self.intercept_)

    def _ridges(self) -> Floats:
        """The values of α to choose from, rising."""
        if not isinstance(self.alpha, str):
            return np.array([float(self.alpha)])
        if self.alphas is not None:
            return np.unique(np.asarray(self.alphas, dtype=np.float64))
        return np.logspace(-3, 4, 8)
