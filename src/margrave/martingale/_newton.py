"""Penalised multinomial logistic regression on standardised columns: the solver, on arrays.

"Interactive Martingale Boosting" (document 004), equation (3), with a penalty per column and a
weight per sample::

    F(w) = ½ Σ_a Σ_j e^{d_j} w_aj² + Σ_i c_i · (−log P(y_i | x_i; w))

Two classes have one row of weights, k > 2 have k rows; the last column of a row is its intercept,
which carries no penalty. With k > 2 rows a shift of all intercepts changes nothing, so the first
one is pinned at 0. Newton's method with a Cholesky factor for up to `NEWTON_SIZE` weights, L-BFGS
beyond; H⁻¹ v, which every derivative of the solution needs, by the last factor or by conjugate
gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from margrave._typing import Floats

NEWTON_SIZE = 1200
_ROWS_AT_ONCE = 4096  # of the columns, while the Hessian is summed: they stay in the cache
_HALVINGS = 40


@dataclass(frozen=True)
class Solution:
    """Weights that minimise F.

    Attributes
    ----------
    w : ndarray of shape (n_rows, d + 1)
        The weights, an intercept last in each row.
    factor : ndarray or None
        The Cholesky factor of the Hessian, at the weights or one small step before them; None
        from L-BFGS.
    n_iter : int
        Steps taken.
    converged : bool
        Whether the last step was as small as asked.
    """

    w: Floats
    factor: Any
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class Problem:
    """Samples of a logistic regression.

    Attributes
    ----------
    Z : ndarray of shape (n, d + 1)
        The columns, and ones.
    codes : ndarray of shape (n,)
        Classes 0 … k − 1.
    k : int
        Number of classes.
    """

    Z: Floats
    codes: NDArray[np.intp]
    k: int

    @property
    def n_rows(self) -> int:
        """How many rows of weights there are."""
        return 1 if self.k == 2 else self.k

    def losses(self, scores: Floats) -> Floats:
        """−log P(y_i | x_i) for scores of shape (n, n_rows)."""
        if self.k == 2:
            toward = np.where(self.codes == 1, -scores[:, 0], scores[:, 0])
            return np.logaddexp(0, toward)
        own: Floats = log_softmax(scores, axis=1)[np.arange(len(scores)), self.codes]
        return -own

    def residuals(self, scores: Floats) -> tuple[Floats, Floats]:
        """P − Y, whose products with the columns are gradients, and P; both (n, n_rows)."""
        if self.k == 2:
            p = expit(scores)
            return p - self.codes[:, None], p
        p = np.exp(log_softmax(scores, axis=1))
        r = p.copy()
        r[np.arange(len(p)), self.codes] -= 1
        return r, p

    def gradients_by_class(self, w: Floats, weights: Floats) -> Floats:
        """Σ_{y_i = c} c_i ∇ℓ_i for each class c; shape (k, n_rows, d + 1)."""
        r = self.residuals(self.Z @ w.T)[0] * weights[:, None]
        sums = [r[self.codes == c].T @ self.Z[self.codes == c] for c in range(self.k)]
        return self._pinned(np.array(sums))

    def solved(
        self, penalty: Floats, weights: Floats, start: Floats | None, tol: float, max_iter: int
    ) -> Solution:
        """Minimise F from ``start``.

        Parameters
        ----------
        penalty : ndarray of shape (d + 1,)
            e^{d_j}, and 0 for the intercept.
        weights : ndarray of shape (n,)
            c_i.
        start : ndarray of shape (n_rows, d + 1) or None
            Where to begin; 0 if None.
        tol : float
            Newton's decrement λ² at which the step that follows is the last, as a share of the
            sum of the weights.
        max_iter : int
            Most steps.
        """
        w = np.zeros((self.n_rows, self.Z.shape[1])) if start is None else start.copy()
        by = self._by_newton if w.size <= NEWTON_SIZE else self._by_lbfgs
        return by(w, penalty, weights, tol * weights.sum(), max_iter)

    def _by_newton(
        self, w: Floats, penalty: Floats, weights: Floats, tol: float, max_iter: int
    ) -> Solution:
        scores = self.Z @ w.T
        value = float(weights @ self.losses(scores)) + _penalised(w, penalty)
        factor: Any = None
        for n_iter in range(1, max_iter + 1):
            r, p = self.residuals(scores)
            gradient = self._pinned((r * weights[:, None]).T @ self.Z) + penalty * w
            factor = _factor(self._hessian(p, penalty, weights))
            step = -_solved(factor, gradient)
            slope = float((gradient * step).sum())
            w, scores, value, moved = self._line(w, scores, value, step, slope, penalty, weights)
            # A decrement below the last digits of F tells nothing any more.
            if -slope <= max(tol, 1e-15 * abs(value)) or not moved:
                return Solution(w, factor, n_iter, converged=True)
        return Solution(w, factor, max_iter, converged=False)

    def _line(
        self,
        w: Floats,
        scores: Floats,
        value: float,
        step: Floats,
        slope: float,
        penalty: Floats,
        weights: Floats,
    ) -> tuple[Floats, Floats, float, bool]:
        """As much of the step as lowers F enough: 1, ½, ¼, …; nothing if rounding hides it."""
        change, t = self.Z @ step.T, 1.0
        for _ in range(_HALVINGS):
            new_w, new_scores = w + t * step, scores + t * change
            new = float(weights @ self.losses(new_scores)) + _penalised(new_w, penalty)
            if new <= value + 1e-4 * t * slope:
                return new_w, new_scores, new, True
            t /= 2
        return w, scores, value, False

    def _hessian(self, p: Floats, penalty: Floats, weights: Floats) -> Floats:
        d = self.Z.shape[1]
        whole = np.zeros((self.n_rows, d, self.n_rows, d))
        for first in range(0, len(p), _ROWS_AT_ONCE):
            at = slice(first, first + _ROWS_AT_ONCE)
            Z, c, q = self.Z[at], weights[at], p[at]
            for a in range(self.n_rows):
                spread = c * q[:, a] * (1 - q[:, a])
                rooted = Z * np.sqrt(spread)[:, None]
                whole[a, :, a] += rooted.T @ rooted
                for b in range(a):
                    whole[a, :, b] -= (Z * (c * q[:, a] * q[:, b])[:, None]).T @ Z
        for a in range(self.n_rows):
            for b in range(a):
                whole[b, :, a] = whole[a, :, b]  # symmetric itself
        H = whole.reshape(self.n_rows * d, self.n_rows * d)
        H.ravel()[:: len(H) + 1] += np.tile(penalty, self.n_rows)  # the diagonal
        if self.k > 2:  # the pinned intercept
            H[d - 1, :] = H[:, d - 1] = 0
            H[d - 1, d - 1] = 1
        return H

    def _by_lbfgs(
        self, w: Floats, penalty: Floats, weights: Floats, tol: float, max_iter: int
    ) -> Solution:
        shape = w.shape

        def value_and_gradient(flat: Floats) -> tuple[float, Floats]:
            v = flat.reshape(shape)
            scores = self.Z @ v.T
            r = self.residuals(scores)[0] * weights[:, None]
            gradient = self._pinned(r.T @ self.Z) + penalty * v
            return float(weights @ self.losses(scores)) + _penalised(v, penalty), gradient.ravel()

        # λ² = gᵀ H⁻¹ g is at most |g|² over the smallest curvature, which is a penalty's.
        least = min(1.0, float(penalty[:-1].min(initial=1.0)))
        gtol = float(np.sqrt(tol * least / w.size))
        options = {"maxiter": 20 * max_iter, "maxfun": 40 * max_iter, "gtol": gtol}
        options |= {"ftol": 0.0, "maxcor": 20}
        found = minimize(
            value_and_gradient, w.ravel(), jac=True, method="L-BFGS-B", options=options
        )
        solution = np.asarray(found.x).reshape(shape)
        return Solution(solution, None, int(found.nit), converged=found.status != 1)

    def inverse(self, solution: Solution, penalty: Floats, weights: Floats, v: Floats) -> Floats:
        """H⁻¹ v at a solution, for v of the shape of the weights; 0 where an entry is pinned."""
        v = self._pinned(np.array(v, dtype=np.float64))
        if solution.factor is not None:
            return _solved(solution.factor, v)
        from scipy.sparse.linalg import LinearOperator, cg

        p, c = self.residuals(self.Z @ solution.w.T)[1], weights[:, None]

        def times(flat: Floats) -> Floats:
            u = self._pinned(flat.reshape(v.shape).copy())
            along = self.Z @ u.T
            mean = (p * along).sum(axis=1, keepdims=True)  # with two classes of p and 1 - p
            moved = (self._pinned((c * p * (along - mean)).T @ self.Z) + penalty * u).ravel()
            return np.asarray(moved)

        spread = ((c * p * (1 - p)).T @ self.Z**2 + penalty).ravel()
        H = LinearOperator((v.size, v.size), matvec=times, dtype=np.float64)
        scale = LinearOperator((v.size, v.size), matvec=lambda u: u / spread, dtype=np.float64)
        return np.asarray(cg(H, v.ravel(), rtol=1e-8, M=scale)[0]).reshape(v.shape)

    def hypergradient(
        self, solution: Solution, penalty: Floats, weights: Floats, dg_dw: Floats
    ) -> tuple[Floats, Floats]:
        """∂g/∂d_j and ∂g/∂log c_k of a function g of the solution, by implicit differentiation.

        ``∂g/∂d_j = −e^{d_j} Σ_a w_aj u_aj`` and ``∂g/∂log c_k = −⟨u, Σ_{y_i = k} c_i ∇ℓ_i⟩`` with
        ``u = H⁻¹ ∇_w g``. (The authors' program has neither right; see the guide.)

        Returns
        -------
        by_column : ndarray of shape (d + 1,)
            The last, of the intercept, is 0.
        by_class : ndarray of shape (k,)
        """
        u = self.inverse(solution, penalty, weights, dg_dw)
        by_column = -penalty * (solution.w * u).sum(axis=0)
        by_class = -(self.gradients_by_class(solution.w, weights) * u).sum(axis=(1, 2))
        return by_column, by_class

    def _pinned(self, rows: Floats) -> Floats:
        """Rows of weights with the pinned intercept's entry set to 0, in place."""
        if self.k > 2:
            rows[..., 0, -1] = 0
        return rows


def _penalised(w: Floats, penalty: Floats) -> float:
    return 0.5 * float((penalty * w**2).sum())


def _factor(H: Floats) -> Any:
    """The Cholesky factor; a little is added to the diagonal where rounding asks for it."""
    for ridge in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        if ridge:
            H = H + ridge * max(float(np.diagonal(H).max()), 1e-300) * np.eye(len(H))
        factor, failed = dpotrf(H, lower=1)
        if not failed and np.isfinite(factor[-1, -1]):
            return factor
    raise FloatingPointError("TunableLogistic met numbers that are too large or too small to fit.")


def _solved(factor: Floats, v: Floats) -> Floats:
    return np.asarray(dpotrs(factor, v.ravel(), lower=1)[0]).reshape(v.shape)
