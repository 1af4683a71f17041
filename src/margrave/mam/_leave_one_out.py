"""Exact leave-one-out for the classifier: scores, threshold and width.

Pelckmans et al. (2008), equations (4) to (7): the direction of the largest average margin is
w ∝ Σ y_i φ(x_i), and f(x) = (1/λn) Σ y_i K(x_i, x) with λ = √(yᵀΩy)/n, so that ‖w‖ = 1. A fit is
represented by the sums of its classes, P_c = Σ s_i φ(x_i) over class c with weights s, and their
products G_ab = P_a · P_b. Divided by n they give w = (P₁ − P₀)/n, the form of the paper; divided by
their own weights, w = μ₁ − μ₀, the form for classes of equal weight. With k > 2 classes the same
principle, the largest average of ⟨w_y, φ(x)⟩ over unit vectors (w_1 … w_k) that sum to 0, gives
w_c ∝ P_c − mean of all P.

Leaving sample i out subtracts s_i φ(x_i) from one of the sums: the score of i changes by its own
kernel value, and the length of w by known products. Nothing is fitted again.

The principle defines no intercept: with unequal classes a large intercept always has a larger
average margin. So the threshold is selected on the leave-one-out scores, by accuracy or balanced
accuracy. It depends on the class priors, so leave-one-out then keeps the priors and changes only
the class means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Codes, Floats
from margrave.confusion import balanced_threshold
from margrave.mam._features import (
    RandomFeatures,
    are_equal,
    feature_products,
    feature_sums,
    precision,
    squared_lengths,
)
from margrave.mam._kernels import Kernel
from margrave.mam._sums import leave_one_out_sums

# A squared length below this fraction of the terms that it is the difference of is rounding.
_ROUNDING = 1e-13
_ROUNDS = 10


@dataclass(frozen=True)
class LabelledSamples:
    """Classes and weights of samples, and how they count."""

    codes: Codes  # (n,): the classes
    weights: Floats  # (n,): weights, above 0
    n_classes: int  # number of classes
    balanced: bool  # whether all classes have the same weight in the direction
    # The criterion for thresholds and widths; None for a threshold of 0, and accuracy.
    threshold: str | None

    @property
    def columns(self) -> Floats:
        """The weights of the samples, in the column of their class."""
        columns = np.zeros((len(self.codes), self.n_classes))
        columns[np.arange(len(self.codes)), self.codes] = self.weights
        return columns


def contrast(n_classes: int) -> Floats:
    """Return the matrix from class sums to scores: second minus first, or each minus their mean."""
    if n_classes == 2:
        return np.array([[-1.0, 1.0]])
    return np.eye(n_classes) - 1 / n_classes


def reciprocals(weights: Floats) -> Floats:
    """Compute 1 / weights, and 0 where a weight is 0."""
    return np.divide(1.0, weights, out=np.zeros_like(weights), where=weights > 0)


@dataclass(frozen=True)
class ClassSums:
    """A fit, represented by the sums of its classes."""

    gram: Floats  # (n_classes, n_classes): products P_a · P_b of the sums
    weights: Floats  # (n_classes,): the total weight of each class
    balanced: bool  # whether all classes have the same weight

    @property
    def factors(self) -> Floats:
        """The factor of each class's sum; with them the weights of all samples sum to 1."""
        n_classes = len(self.weights)
        if self.balanced:
            return reciprocals(self.weights) / n_classes
        return np.full(n_classes, 1 / self.weights.sum())

    @property
    def length(self) -> float:
        """λ of equation (5): the length before normalisation, which is the average margin."""
        scaled = contrast(len(self.weights)) * self.factors
        squared = float((scaled @ self.gram * scaled).sum())
        size = float((np.abs(scaled) @ np.abs(self.gram) * np.abs(scaled)).sum())
        if squared < -_ROUNDING * size:
            raise ValueError(
                "MAMClassifier needs a positive definite kernel; "
                f"got one in which the direction's squared length is {squared}."
            )
        return float(np.sqrt(squared)) if squared > _ROUNDING * size else 0.0

    @property
    def coefficients(self) -> Floats:
        """The matrix from kernel sums of the classes to scores of unit directions."""
        length = self.length
        scaled = contrast(len(self.weights)) * self.factors
        matrix: Floats = (scaled / length if length else np.zeros_like(scaled)).T
        return matrix

    def leave_one_out(
        self,
        sums: Floats,
        diagonal: Floats,
        codes: Codes,
        weights: Floats,
        *,
        keep_priors: bool = False,
    ) -> Floats:
        """Compute the score of each sample by the fit without it, exactly.

        Parameters
        ----------
        sums : ndarray of shape (n, n_classes)
            Σ_{j ≠ i, j of class c} s_j K(x_j, x_i).
        diagonal : ndarray of shape (n,)
            K(x_i, x_i).
        codes : ndarray of shape (n,)
            The classes.
        weights : ndarray of shape (n,)
            The weights s.
        keep_priors : bool, default=False
            Whether the classes keep their fractions of the weight when a sample is left out, and
            scores the unit λ of the whole fit. In a fit that is not balanced, a wide kernel makes
            a score nearly the difference of the class priors. Leaving i out then changes the
            priors, and the length, more than x_i does: by its class, which a threshold would
            learn.

        Returns
        -------
        scores : ndarray of shape (n, 1) or (n, n_classes)
            One column for two classes.
        """
        n_classes = len(self.weights)
        each = np.arange(len(codes))
        matrix = contrast(n_classes)
        between = matrix.T @ matrix
        others = reciprocals(self.weights) if self.balanced else np.ones(n_classes)
        # The factor of a class whose only sample is left out is 0.
        rest = self.weights[codes] - weights
        own = reciprocals(np.where(rest > _ROUNDING * self.weights[codes], rest, 0.0))
        if not self.balanced:
            own = own * self.weights[codes] if keep_priors else np.ones(len(codes))
        # |w|² is a sum over pairs of classes: those without i's class, those with it, and itself.
        whole = between * np.outer(others, others) * self.gram
        without = whole.sum() - 2 * whole.sum(axis=1) + np.diag(whole)
        products = (between * others)[codes] * (self.gram[codes] - weights[:, None] * sums)
        crossed = own * (products.sum(axis=1) - products[each, codes])
        itself = self.gram[codes, codes] - 2 * weights * sums[each, codes] - weights**2 * diagonal
        squared = without[codes] + 2 * crossed + between[0, 0] * own**2 * itself
        size = np.abs(without[codes]) + 2 * np.abs(crossed) + own**2 * np.abs(itself)
        lengths = np.sqrt(np.where(squared > _ROUNDING * size, squared, np.inf))
        if keep_priors and not self.balanced:
            lengths = np.full(len(codes), self.length * self.weights.sum() or np.inf)
        scaled = sums * others
        scaled[each, codes] = sums[each, codes] * own
        return (scaled @ matrix.T) / lengths[:, None]


def sample_fractions(codes: Codes, weights: Floats, n_classes: int, balanced: bool) -> Floats:
    """Compute the fraction of each sample in an accuracy; they sum to 1."""
    if not balanced:
        return np.asarray(weights / weights.sum())
    sums = np.bincount(codes, weights, n_classes)
    return np.asarray(weights / sums[codes] / np.count_nonzero(sums))


def predict_codes(scores: Floats) -> Codes:
    """Predict classes from scores: above 0 the second of two, else the largest score."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.intp)
    return np.asarray(np.argmax(scores, axis=1))


def best_threshold(scores: Floats, codes: Codes, fractions: Floats) -> Floats:
    """Find what to subtract from the scores for the largest accuracy.

    For two classes, the threshold is optimal. For more, the offset of one class at a time is
    optimised while the others are fixed, until none improves the accuracy.

    Parameters
    ----------
    scores : ndarray of shape (n, 1) or (n, n_classes)
        Scores.
    codes : ndarray of shape (n,)
        The true classes.
    fractions : ndarray of shape (n,)
        The fraction of each sample in the accuracy.
    """
    if scores.shape[1] == 1:
        positives, negatives = fractions * (codes == 1), fractions * (codes == 0)
        return np.array([_threshold(scores[:, 0], positives, negatives)])
    offsets = np.zeros(scores.shape[1])
    accuracy = fractions[predict_codes(scores) == codes].sum()
    for _ in range(_ROUNDS):
        before = accuracy
        for one in range(len(offsets)):
            changed = offsets.copy()
            changed[one] = _offset(scores - offsets, one, codes, fractions) + offsets[one]
            after = fractions[predict_codes(scores - changed) == codes].sum()
            if after > accuracy + 1e-12:
                offsets, accuracy = changed, after
        if accuracy == before:
            break
    return offsets


def _offset(scores: Floats, one: int, codes: Codes, fractions: Floats) -> float:
    """Find the best threshold between a class and the best of the others."""
    rest = scores.copy()
    rest[:, one] = -np.inf
    rival = np.argmax(rest, axis=1)
    lead = scores[:, one] - rest[np.arange(len(rest)), rival]
    return _threshold(lead, fractions * (codes == one), fractions * (codes == rival))


def _threshold(scores: Floats, positives: Floats, negatives: Floats) -> float:
    """Find the best threshold; beyond all scores, at a distance of half their range."""
    unit = float(np.abs(scores).max()) or 1.0
    scaled = scores / unit
    low, high = float(scaled.min()), float(scaled.max())
    beyond = (high - low) / 2 or 1.0
    threshold = balanced_threshold(scaled, positives, negatives)
    if threshold < low:
        threshold = min(low - beyond, float(np.nextafter(low, -np.inf)))
    elif threshold > high:
        threshold = max(high + beyond, float(np.nextafter(high, np.inf)))
    return threshold * unit


@dataclass(frozen=True)
class LeaveOneOut:
    """The leave-one-out evaluation of one fit."""

    threshold: Floats  # (1,) or (n_classes,): the threshold, or the offsets
    # (n, 1) or (n, n_classes): scores of the samples by fits without them, minus the threshold.
    decision: Floats
    accuracy: float  # their accuracy, or balanced accuracy


def evaluate_fit(
    fit: ClassSums, sums: Floats, diagonal: Floats, samples: LabelledSamples
) -> LeaveOneOut:
    """Evaluate a fit on its leave-one-out scores; see `ClassSums.leave_one_out`."""
    keep_priors = samples.threshold is not None
    codes, weights = samples.codes, samples.weights
    scores = fit.leave_one_out(sums, diagonal, codes, weights, keep_priors=keep_priors)
    return select_threshold(scores, samples)


def select_threshold(scores: Floats, samples: LabelledSamples) -> LeaveOneOut:
    """Select the threshold on leave-one-out scores, of shape (n, 1) or (n, n_classes)."""
    codes, weights, criterion = samples.codes, samples.weights, samples.threshold
    fractions = sample_fractions(codes, weights, samples.n_classes, criterion == "balanced")
    threshold = np.zeros(scores.shape[1])
    if criterion is not None:
        threshold = best_threshold(scores, codes, fractions)
    decision = scores - threshold
    accuracy = float(fractions[predict_codes(decision) == codes].sum())
    return LeaveOneOut(threshold, decision, accuracy)


def evaluate_features(
    fit: ClassSums,
    class_sums: Floats,
    X: Any,
    features: RandomFeatures | None,
    samples: LabelledSamples,
    n_jobs: int | None,
) -> LeaveOneOut:
    """Select the threshold on samples that are subtracted from the sums of their class."""
    products = feature_products(X, class_sums, features, n_jobs)
    diagonal = squared_lengths(X, features)
    return evaluate_fit(fit, products - samples.columns * diagonal[:, None], diagonal, samples)


def compare_features(
    X: Any, candidates: list[RandomFeatures], samples: LabelledSamples, n_jobs: int | None
) -> Floats:
    """Compute the leave-one-out accuracy of several random features."""
    accuracies = []
    for features in candidates:
        sums = feature_sums(X, samples.columns, features, n_jobs)
        mean = sums.sum(axis=0) / samples.weights.sum()
        if are_equal(mean @ mean, precision(X)):
            accuracies.append(0.0)
            continue
        fit = ClassSums(sums @ sums.T, samples.columns.sum(axis=0), samples.balanced)
        found = evaluate_features(fit, sums, X, features, samples, n_jobs)
        accuracies.append(found.accuracy)
    return np.array(accuracies)


def middle_of_best(accuracies: Floats) -> int:
    """Find the largest, of equal ones the middle: the most robust choice."""
    best = np.flatnonzero(accuracies >= accuracies.max() - 1e-12)
    return int(best[len(best) // 2])


def stratified_rows(codes: Codes, most: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Draw at most so many samples, in order, in proportion to the classes; more of rare ones."""
    if len(codes) <= most:
        return np.arange(len(codes))
    sizes = np.bincount(codes)
    few = min(most // int(np.count_nonzero(sizes)), 50)
    wanted = np.minimum(sizes, np.maximum(most * sizes // len(codes), few))
    drawn = rng.permutation(len(codes))
    places = [drawn[codes[drawn] == c][:n] for c, n in enumerate(wanted)]
    return np.sort(np.concatenate(places))


def check_finite_sums(gram: Floats) -> None:
    """Raise an error for sums that overflow."""
    if not np.isfinite(gram).all():
        raise ValueError(
            "MAMClassifier needs kernel values whose sums are finite; got larger ones. "
            "Scale the features, or use a smaller gamma."
        )


@dataclass(frozen=True)
class WidthSelection:
    """The selected width and its fit."""

    index: int  # the selected candidate
    accuracies: Floats  # (n_widths,): the leave-one-out accuracy of each candidate
    evaluation: LeaveOneOut  # the leave-one-out evaluation of the selected one
    fit: ClassSums  # its fit
    # (n, n_classes): kernel sums of the classes at the samples, each without its own term.
    sums: Floats
    diagonal: Floats  # (n,): K(x, x)


def select_width(
    X: Any,
    kernel: Kernel,
    gammas: Floats,
    samples: LabelledSamples,
    n_jobs: int | None,
    backend: str,
) -> WidthSelection:
    """Select a width by leave-one-out, with one pass over the pairs of samples for all widths."""
    columns = samples.columns
    # Of two classes without priors only the difference matters, and one sum is half the work: it
    # represents the second class, and 0 the first.
    one_sum = samples.n_classes == 2 and not samples.balanced and samples.threshold is None
    a = columns @ [[-1.0], [1.0]] if one_sum else columns
    sums = leave_one_out_sums(X, a, kernel, gammas.tolist(), n_jobs=n_jobs, backend=backend)
    found = []
    for gamma, each in zip(gammas, sums, strict=True):
        diagonal = replace(kernel, gamma=float(gamma)).diagonal(X)
        with np.errstate(over="ignore", invalid="ignore"):
            gram = a.T @ (each + diagonal[:, None] * a)
        check_finite_sums(gram)
        if one_sum:
            gram, each = np.pad(gram, [(1, 0), (1, 0)]), np.pad(each, [(0, 0), (1, 0)])
        fit = ClassSums(gram, columns.sum(axis=0), samples.balanced)
        found.append((evaluate_fit(fit, each, diagonal, samples), fit, each, diagonal))
    accuracies = np.array([evaluation.accuracy for evaluation, *_ in found])
    index = middle_of_best(accuracies)
    return WidthSelection(index, accuracies, *found[index])
