"""The solver of the nodes' logistic regression, and its hypergradient.

Kulkarni et al. (2016), equation (3), with a penalty per column and a weight per sample::

    F(w) = ½ Σ_a Σ_j e^{d_j} w_aj² + Σ_i c_i · (−log P(y_i | x_i; w))

Two classes have one row of weights, k > 2 classes have k rows. The last column of a row is the
intercept, which carries no penalty. With k > 2 rows a shift of all intercepts changes nothing, so
the first one is pinned at 0. Up to `NEWTON_SIZE` weights the solver is Newton's method with a
Cholesky factor, beyond that L-BFGS. Every derivative of the solution needs H⁻¹ v, by the last
factor or by conjugate gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from margrave._typing import Codes, Floats

NEWTON_SIZE = 1200
_ROWS_AT_ONCE = 4096  # rows of Z per block of the Hessian's sum, so that a block fits the cache
_HALVINGS = 40


@dataclass(frozen=True)
class Solution:
    """Weights that minimise F."""

    w: Floats  # (n_rows, d + 1): the weights, with the intercept last in each row
    # The Cholesky factor of the Hessian, at the weights or one small step before them; None from
    # L-BFGS.
    factor: Any
    n_iter: int  # number of steps
    converged: bool  # whether the last step was within the tolerance


@dataclass(frozen=True)
class _Iterate:
    """Weights on the path of Newton's method, with their scores and the value of F."""

    w: Floats
    scores: Floats
    value: float


@dataclass(frozen=True)
class LogisticProblem:
    """Samples of a logistic regression."""

    Z: Floats  # (n, d + 1): standardised columns, and a column of ones
    codes: Codes  # (n,): classes 0 … k − 1
    k: int  # number of classes

    @property
    def n_rows(self) -> int:
        """Number of rows of weights."""
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
        return self._pin(np.array(sums))

    def solve(
        self, penalty: Floats, weights: Floats, start: Floats | None, tol: float, max_iter: int
    ) -> Solution:
        """Minimise F from the weights ``start``, or 0.

        ``penalty`` has e^{d_j}, and 0 for the intercept; ``weights`` are the c_i. The last step is
        the one with Newton's decrement λ² below ``tol`` times the sum of the weights.
        """
        w = np.zeros((self.n_rows, self.Z.shape[1])) if start is None else start
        solver = self._solve_newton if w.size <= NEWTON_SIZE else self._solve_lbfgs
        return solver(w, penalty, weights, tol * weights.sum(), max_iter)

    def _solve_newton(
        self, w: Floats, penalty: Floats, weights: Floats, tol: float, max_iter: int
    ) -> Solution:
        at = self._iterate(w, self.Z @ w.T, penalty, weights)
        factor: Any = None
        for n_iter in range(1, max_iter + 1):
            r, p = self.residuals(at.scores)
            gradient = self._pin((r * weights[:, None]).T @ self.Z) + penalty * at.w
            factor = _cholesky(self._hessian(p, penalty, weights))
            step = -_solve_cholesky(factor, gradient)
            slope = float((gradient * step).sum())
            better = self._line_search(at, step, slope, penalty, weights)
            at = at if better is None else better
            # A decrement below the rounding error of F carries no information.
            if -slope <= max(tol, 1e-15 * abs(at.value)) or better is None:
                return Solution(at.w, factor, n_iter, converged=True)
        return Solution(at.w, factor, max_iter, converged=False)

    def _line_search(
        self, at: _Iterate, step: Floats, slope: float, penalty: Floats, weights: Floats
    ) -> _Iterate | None:
        """Try the step, half of it, …, until F decreases enough; None if rounding hides it."""
        change, t = self.Z @ step.T, 1.0
        for _ in range(_HALVINGS):
            new = self._iterate(at.w + t * step, at.scores + t * change, penalty, weights)
            if new.value <= at.value + 1e-4 * t * slope:
                return new
            t /= 2
        return None

    def _iterate(self, w: Floats, scores: Floats, penalty: Floats, weights: Floats) -> _Iterate:
        value = float(weights @ self.losses(scores)) + _penalty_term(w, penalty)
        return _Iterate(w, scores, value)

    def _hessian(self, p: Floats, penalty: Floats, weights: Floats) -> Floats:
        d = self.Z.shape[1]
        blocks = np.zeros((self.n_rows, d, self.n_rows, d))
        for first in range(0, len(p), _ROWS_AT_ONCE):
            at = slice(first, first + _ROWS_AT_ONCE)
            Z, c, q = self.Z[at], weights[at], p[at]
            for a in range(self.n_rows):
                root = Z * np.sqrt(c * q[:, a] * (1 - q[:, a]))[:, None]
                blocks[a, :, a] += root.T @ root
                for b in range(a):
                    blocks[a, :, b] -= (Z * (c * q[:, a] * q[:, b])[:, None]).T @ Z
        for a in range(self.n_rows):
            for b in range(a):
                blocks[b, :, a] = blocks[a, :, b]  # each block is symmetric itself
        H = blocks.reshape(self.n_rows * d, self.n_rows * d)
        H.ravel()[:: len(H) + 1] += np.tile(penalty, self.n_rows)  # the diagonal
        if self.k > 2:  # the pinned intercept
            H[d - 1, :] = H[:, d - 1] = 0
            H[d - 1, d - 1] = 1
        return H

    def _solve_lbfgs(
        self, w: Floats, penalty: Floats, weights: Floats, tol: float, max_iter: int
    ) -> Solution:
        shape = w.shape

        def value_and_gradient(flat: Floats) -> tuple[float, Floats]:
            v = flat.reshape(shape)
            scores = self.Z @ v.T
            r = self.residuals(scores)[0] * weights[:, None]
            gradient = self._pin(r.T @ self.Z) + penalty * v
            value = float(weights @ self.losses(scores)) + _penalty_term(v, penalty)
            return value, gradient.ravel()

        # λ² = gᵀ H⁻¹ g is at most |g|² over the smallest curvature, which is that of a penalty.
        least = min(1.0, float(penalty[:-1].min(initial=1.0)))
        gtol = float(np.sqrt(tol * least / w.size))
        options = {"maxiter": 20 * max_iter, "maxfun": 40 * max_iter, "gtol": gtol}
        options |= {"ftol": 0.0, "maxcor": 20}
        found = minimize(
            value_and_gradient, w.ravel(), jac=True, method="L-BFGS-B", options=options
        )
        solution = np.asarray(found.x).reshape(shape)
        return Solution(solution, None, int(found.nit), converged=found.status != 1)

    def solve_hessian(
        self, solution: Solution, penalty: Floats, weights: Floats, v: Floats
    ) -> Floats:
        """H⁻¹ v at a solution, for v of the shape of the weights; 0 at the pinned intercept."""
        v = self._pin(v)
        if solution.factor is not None:
            return _solve_cholesky(solution.factor, v)
        from scipy.sparse.linalg import LinearOperator, cg

        p, c = self.residuals(self.Z @ solution.w.T)[1], weights[:, None]

        def multiply(flat: Floats) -> Floats:
            u = self._pin(flat.reshape(v.shape))
            along = self.Z @ u.T
            mean = (p * along).sum(axis=1, keepdims=True)  # with two classes of p and 1 - p
            product = self._pin((c * p * (along - mean)).T @ self.Z) + penalty * u
            return np.asarray(product.ravel())

        diagonal = ((c * p * (1 - p)).T @ self.Z**2 + penalty).ravel()
        H = LinearOperator((v.size, v.size), matvec=multiply, dtype=np.float64)
        M = LinearOperator((v.size, v.size), matvec=lambda u: u / diagonal, dtype=np.float64)
        return np.asarray(cg(H, v.ravel(), rtol=1e-8, M=M)[0]).reshape(v.shape)

    def hypergradient(
        self, solution: Solution, penalty: Floats, weights: Floats, dg_dw: Floats
    ) -> tuple[Floats, Floats]:
        """∂g/∂d_j and ∂g/∂log c_k of a function g of the solution, by implicit differentiation.

        ``∂g/∂d_j = −e^{d_j} Σ_a w_aj u_aj`` and ``∂g/∂log c_k = −⟨u, Σ_{y_i = k} c_i ∇ℓ_i⟩`` with
        ``u = H⁻¹ ∇_w g``. (The authors' program has neither right; see the guide.)

        Returns
        -------
        by_column : ndarray of shape (d + 1,)
            The last entry, for the intercept, is 0.
        by_class : ndarray of shape (k,)
        """
        u = self.solve_hessian(solution, penalty, weights, dg_dw)
        by_column = -penalty * (solution.w * u).sum(axis=0)
        by_class = -(self.gradients_by_class(solution.w, weights) * u).sum(axis=(1, 2))
        return by_column, by_class

    def _pin(self, rows: Floats) -> Floats:
        """Return rows of weights with 0 at the pinned intercept."""
        if self.k == 2:
            return rows
        rows = rows.copy()
        rows[..., 0, -1] = 0
        return rows


def _penalty_term(w: Floats, penalty: Floats) -> float:
    return 0.5 * float((penalty * w**2).sum())


def _cholesky(H: Floats) -> Any:
    """Factor H, with a small ridge on its diagonal where rounding makes it indefinite."""
    for ridge in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        if ridge:
            H = H + ridge * max(float(np.diagonal(H).max()), 1e-300) * np.eye(len(H))
        factor, failed = dpotrf(H, lower=1)
        if not failed and np.isfinite(factor[-1, -1]):
            return factor
    raise FloatingPointError(
        "TunableLogistic cannot fit features or weights that are too large or too small."
    )


def _solve_cholesky(factor: Floats, v: Floats) -> Floats:
    return np.asarray(dpotrs(factor, v.ravel(), lower=1)[0]).reshape(v.shape)
