"""The semi-parametric classifier: a parametric part with free coefficients beside the kernel part.

Pelckmans et al. (2008) have one sentence on it, at the end of section 2.2: it is "straightforward
to extend the Parzen window classifier easily with an additional intercept term or other parametric
parts". The form here is Margrave's. The score is

    f(x) = w · φ(x) + β · p(x),    ‖w‖ ≤ 1,

where p(x) is 1 and the features of a transformer, and β is free. As it stands, the principle has no
solution: the average margin (1/n) Σ y_i f(x_i) grows with β without limit, unless Σ y_i p(x_i) is
0. The labels are therefore replaced by what no parametric function explains, the residuals of
least squares,

    r = y − P b,    b = argmin ‖y − P b‖²,

with the rows p(x_i) in P. Then Pᵀr = 0: all β have the same average margin (1/n) Σ r_i f(x_i), and
(4) and (5) with r for y give the kernel part in closed form,

    w = (1/λn) Σ r_i φ(x_i),    λ = √(rᵀΩr) / n.

It is the limit of the semi-parametric LS-SVM, min Σ (y_i − w · φ(x_i) − β · p(x_i))² + μ‖w‖², in
which β is free too, for a large μ: there w tends to (1/μ) Σ r_i φ(x_i). If p is 1 alone, r is the
same number within each class and w the difference of the class means.

The principle leaves β open, as it leaves the threshold open, and the size c of the kernel part:
least squares of y on the leave-one-out scores of the kernel part and on p selects them,
f(x) = c g(x) + β · p(x) with g(x) = w · φ(x). If c would be negative, it is 0.

Leave-one-out is exact for g. With H = P(PᵀP)⁻¹Pᵀ, h_i = H_ii and e_i = r_i / (1 − h_i), the
residuals without sample i are r_j + H_ji e_i, so that the direction without it is, but for its
length,

    w_i = Σ_j r_j φ(x_j) + e_i (Σ_j H_ji φ(x_j) − φ(x_i)),

and its score at x_i and its length consist of Ωr, diag(HΩ) and diag(HΩH): kernel sums with the
columns of P as weights. For f = c g + β · p the scores without i are those of least squares, with
the scores g of all other samples unchanged; one Gram–Schmidt step adds g to the basis of P. If h_i
is 1, only sample i determines β along a direction v with P v = 0 in all other rows. Without i the
shortest β has no part along v. With weights s, all of this holds for the rows √s_i y_i, √s_i p(x_i)
and √s_i φ(x_i).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from margrave._typing import Floats
from margrave.mam._kernels import Kernel
from margrave.mam._leave_one_out import (
    LabelledSamples,
    LeaveOneOut,
    check_finite_sums,
    middle_of_best,
    select_threshold,
)
from margrave.mam._sums import leave_one_out_sums

# A smaller residual or squared length, relative to the largest, is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class LeastSquares:
    """Weighted least squares of labels on some columns, by an orthonormal basis of these."""

    basis: Floats  # (n, rank): an orthonormal basis Q of the columns √s P
    inverse: Floats  # (n_columns, rank): the matrix from places in this basis to coefficients
    residuals: Floats  # (n,): √s (y − P b)
    coefficients: Floats  # (n_columns,): b, the shortest of equal ones

    @classmethod
    def of(cls, P: Floats, y: Floats, weights: Floats) -> LeastSquares:
        """Solve by a singular value decomposition: columns may depend on each other."""
        roots = np.sqrt(weights)
        left, values, right = np.linalg.svd(P * roots[:, None], full_matrices=False)
        kept = values > np.finfo(float).eps * max(P.shape) * values[0]
        basis, inverse = left[:, kept], right[kept].T / values[kept]
        places = basis.T @ (roots * y)
        residuals = roots * y - basis @ places
        residuals[np.abs(residuals) <= _ROUNDING * np.abs(roots * y).max()] = 0.0
        return cls(basis, inverse, residuals, inverse @ places)

    def left_out(
        self, residuals: Floats, coefficients: Floats, added: Floats | float = 0.0
    ) -> Floats:
        """Compute the residual of each sample if it is left out, r_i / (1 − h_i).

        A column that is added to the basis adds its squares to h.
        """
        h = np.einsum("ij,ij->i", self.basis, self.basis)
        left_out: Floats = residuals / np.maximum(1 - h - added, _ROUNDING)
        alone = h >= 1 - _ROUNDING
        directions = self.basis[alone] @ self.inverse.T
        left_out[alone] = directions @ coefficients / np.square(directions).sum(axis=1)
        return left_out


@dataclass(frozen=True)
class ParametricFit:
    """A fit with a parametric part."""

    length: float  # λ, the average margin of the residuals
    dual: Floats  # (n,): coefficients of K(x_i, x), with the size c of the kernel part
    coefficients: Floats  # (1 + n_features,): β, the intercept first
    scores: Floats  # (n,): scores of the samples, without the threshold
    diagonal: Floats  # (n,): K(x, x)
    evaluation: LeaveOneOut  # the leave-one-out evaluation


@dataclass(frozen=True)
class ParametricSelection:
    """The selected width and its fit."""

    index: int  # the selected candidate
    accuracies: Floats  # (n_widths,): the leave-one-out accuracy of each candidate
    fit: ParametricFit


def parametric_rows(transformer: Any, X: Any) -> Floats:
    """Compute the rows p(x): 1, and the features of a fitted transformer."""
    features = transformer.transform(X)
    values = np.asarray(features.toarray() if issparse(features) else features, dtype=np.float64)
    if values.ndim != 2 or len(values) != len(X) or not np.isfinite(values).all():
        raise ValueError(
            "MAMClassifier needs parametric to return a finite number for each of its features "
            f"and each of {len(X)} samples; got NaN, infinity or shape {values.shape}."
        )
    return np.hstack([np.ones((len(values), 1)), values])


def select_parametric_width(
    X: Any,
    P: Floats,
    kernel: Kernel,
    gammas: Floats,
    samples: LabelledSamples,
    n_jobs: int | None,
    backend: str,
) -> ParametricSelection:
    """Select a width by leave-one-out, with one pass over the pairs of samples for all widths."""
    y = np.where(samples.codes == 1, 1.0, -1.0)
    weights = samples.weights
    if samples.balanced:
        weights = weights / np.bincount(samples.codes, weights)[samples.codes]
    roots = np.sqrt(weights)[:, None]
    # The units of the features must not decide which columns are rounding.
    units = np.abs(roots * P).max(axis=0)
    units[units == 0] = 1.0
    P = P / units
    explained = LeastSquares.of(P, y, weights)
    if explained.basis.shape[1] == len(y):
        raise ValueError(
            "MAMClassifier needs parametric to have fewer independent features, with the "
            f"intercept, than there are samples; got {len(y)} of them and {len(y)} samples."
        )
    a = roots * np.column_stack([explained.residuals, explained.basis])
    sums = leave_one_out_sums(X, a, kernel, gammas.tolist(), n_jobs=n_jobs, backend=backend)
    fits = []
    for gamma, each in zip(gammas, sums, strict=True):
        diagonal = replace(kernel, gamma=float(gamma)).diagonal(X)
        with np.errstate(over="ignore", invalid="ignore"):
            products = roots * (each + diagonal[:, None] * a)
        check_finite_sums(products)
        fits.append(_fit_width(P, y, weights, samples, explained, products, diagonal))
    accuracies = np.array([fit.evaluation.accuracy for fit in fits])
    index = middle_of_best(accuracies)
    fit = replace(fits[index], coefficients=fits[index].coefficients / units)
    return ParametricSelection(index, accuracies, fit)


def _fit_width(
    P: Floats,
    y: Floats,
    weights: Floats,
    samples: LabelledSamples,
    explained: LeastSquares,
    products: Floats,
    diagonal: Floats,
) -> ParametricFit:
    """Compute both parts for one width from the products Ωr and ΩQ."""
    roots, total = np.sqrt(weights), weights.sum()
    residuals, coefficients = explained.residuals, explained.coefficients
    e = explained.left_out(residuals, coefficients)
    squared, g = _kernel_leave_one_out(explained, products, weights * diagonal, e)
    length, size = float(np.sqrt(squared)), 0.0
    scores = products[:, 0] / roots / (length or np.inf)
    places = explained.basis.T @ g
    rest = g - explained.basis @ places
    if rest @ residuals > 0 and rest @ rest > _ROUNDING * (weights @ diagonal):
        size = float(rest @ residuals / (rest @ rest))
        coefficients = coefficients - size * (explained.inverse @ places)
        e = explained.left_out(residuals - size * rest, coefficients, rest**2 / (rest @ rest))
    return ParametricFit(
        length / total,
        size * roots * residuals / (length or np.inf),
        coefficients,
        size * scores + P @ coefficients,
        diagonal,
        select_threshold((y - e / roots)[:, None], samples),
    )


def _kernel_leave_one_out(
    explained: LeastSquares, products: Floats, diagonal: Floats, e: Floats
) -> tuple[float, Floats]:
    """Compute ‖Σ r_i φ(x_i)‖², 0 if it is rounding, and the scores g of fits without each sample.

    Rows are those with the roots of the weights; e has the residuals of samples that are left out.
    """
    Q, r = explained.basis, explained.residuals
    at_r, at_Q = products[:, 0], products[:, 1:]
    whole = float(r @ at_r)
    size = float((np.abs(r) @ np.sqrt(np.abs(diagonal))) ** 2)
    if whole < -_ROUNDING * size:
        raise ValueError(
            "MAMClassifier needs a positive definite kernel; "
            f"got one in which the direction's squared length is {whole}."
        )
    if whole <= _ROUNDING * size:
        return 0.0, np.zeros_like(r)
    crossed = np.einsum("ij,ij->i", Q, at_Q)  # diag(HΩ)
    twice = np.einsum("ij,ij->i", Q @ (Q.T @ at_Q), Q)  # diag(HΩH)
    squared = whole + 2 * e * (Q @ (Q.T @ at_r) - at_r) + e**2 * (twice - 2 * crossed + diagonal)
    scores = at_r + e * (crossed - diagonal)
    lengths = np.sqrt(np.where(squared > _ROUNDING * size, squared, np.inf))
    return whole, scores / lengths
