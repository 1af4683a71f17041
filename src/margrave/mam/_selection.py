"""Width and cut by exact leave-one-out, for all widths in one pass over the pairs of samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Codes, Floats
from margrave.mam._cut import cut_for, decided, sample_shares
from margrave.mam._features import (
    Frequencies,
    are_alike,
    feature_products,
    feature_sums,
    precision,
    squared_lengths,
)
from margrave.mam._kernels import Kernel
from margrave.mam._leave_out import ClassSums
from margrave.mam._self_sums import self_sums


@dataclass(frozen=True)
class Labelled:
    """Classes and weights of some samples, and how they count.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        The classes.
    weights : ndarray of shape (n,)
        Weights, above 0.
    n_classes : int
        How many classes there are.
    balanced : bool
        Whether classes count the same in the direction.
    cut : "accuracy", "balanced" or None
        By what cuts and widths are judged; None for no cut, and accuracy.
    """

    codes: Codes
    weights: Floats
    n_classes: int
    balanced: bool
    cut: str | None

    @property
    def columns(self) -> Floats:
        """Weights of the samples, in the column of their class."""
        columns = np.zeros((len(self.codes), self.n_classes))
        columns[np.arange(len(self.codes)), self.codes] = self.weights
        return columns


@dataclass(frozen=True)
class Judged:
    """What leave-one-out says of one fit.

    Attributes
    ----------
    cut : ndarray of shape (1,) or (n_classes,)
        The cut.
    decision : ndarray of shape (n, 1) or (n, n_classes)
        Scores of the samples by fits without them, less the cut.
    right : float
        The share that they decide right.
    """

    cut: Floats
    decision: Floats
    right: float


def judged(fit: ClassSums, sums: Floats, diagonal: Floats, of: Labelled) -> Judged:
    """Place the cut on scores of samples that were left out; see `ClassSums.left_out`."""
    keep = of.cut is not None
    scores = fit.left_out(sums, diagonal, of.codes, of.weights, keep_shares=keep)
    counts = sample_shares(of.codes, of.weights, of.n_classes, of.cut == "balanced")
    cut = np.zeros(scores.shape[1]) if of.cut is None else cut_for(scores, of.codes, counts)
    decision = scores - cut
    return Judged(cut, decision, float(counts[decided(decision) == of.codes].sum()))


@dataclass(frozen=True)
class Selection:
    """The width that was chosen, and what is known of its fit.

    Attributes
    ----------
    place : int
        Which width.
    rates : ndarray of shape (n_widths,)
        What each decides right.
    judged : Judged
        Of the chosen one.
    fit : ClassSums
        Likewise.
    sums : ndarray of shape (n, n_classes)
        Kernel sums of the classes at the samples, each without itself.
    diagonal : ndarray of shape (n,)
        K(x, x).
    """

    place: int
    rates: Floats
    judged: Judged
    fit: ClassSums
    sums: Floats
    diagonal: Floats


def judged_features(
    fit: ClassSums,
    class_sums: Floats,
    X: Any,
    frequencies: Frequencies | None,
    of: Labelled,
    n_jobs: int | None,
) -> Judged:
    """Place the cut on scores of samples that are taken out of the sums of their class."""
    products = feature_products(X, class_sums, frequencies, n_jobs)
    diagonal = squared_lengths(X, frequencies)
    return judged(fit, products - of.columns * diagonal[:, None], diagonal, of)


def select_features(
    X: Any, tried: list[Frequencies], of: Labelled, n_jobs: int | None
) -> tuple[int, Floats]:
    """Which of several random features decides most right, of equals the middle; and how much."""
    rates = []
    for frequencies in tried:
        sums = feature_sums(X, of.columns, frequencies, n_jobs)
        mean = sums.sum(axis=0) / of.weights.sum()
        if are_alike(mean @ mean, precision(X)):
            rates.append(0.0)
            continue
        fit = ClassSums(sums @ sums.T, of.columns.sum(axis=0), of.balanced)
        rates.append(judged_features(fit, sums, X, frequencies, of, n_jobs).right)
    return middle_best(np.array(rates)), np.array(rates)


def middle_best(rates: Floats) -> int:
    """The place of the largest, of equals the middle one: the farthest from being worse."""
    best = np.flatnonzero(rates >= rates.max() - 1e-12)
    return int(best[len(best) // 2])


def some_of_each(codes: Codes, most: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    """At most so many samples, in order; of every class its share, and some of a rare one."""
    if len(codes) <= most:
        return np.arange(len(codes))
    sizes = np.bincount(codes)
    few = min(most // int(np.count_nonzero(sizes)), 50)
    wanted = np.minimum(sizes, np.maximum(most * sizes // len(codes), few))
    drawn = rng.permutation(len(codes))
    places = [drawn[codes[drawn] == c][:n] for c, n in enumerate(wanted)]
    return np.sort(np.concatenate(places))


def check_finite(gram: Floats) -> None:
    """Refuse sums that are too large for numbers."""
    if not np.isfinite(gram).all():
        raise ValueError(
            "MAMClassifier needs kernel values whose sums are finite; got larger ones. "
            "Scale the features, or take a smaller gamma."
        )


def select_width(
    X: Any,
    kernel: Kernel,
    gammas: Floats,
    of: Labelled,
    n_jobs: int | None,
    backend: str = "auto",
) -> Selection:
    """Compare widths; see `middle_best`."""
    columns = of.columns
    # Of two classes that keep nothing only the difference matters, and one sum is half the work: it
    # stands for the second class, and 0 for the first.
    only = of.n_classes == 2 and not of.balanced and of.cut is None
    a = columns @ [[-1.0], [1.0]] if only else columns
    sums = self_sums(X, a, kernel, gammas.tolist(), n_jobs=n_jobs, backend=backend)
    found = []
    for gamma, each in zip(gammas, sums, strict=True):
        diagonal = replace(kernel, gamma=float(gamma)).diagonal(X)
        with np.errstate(over="ignore", invalid="ignore"):
            gram = a.T @ (each + diagonal[:, None] * a)
        check_finite(gram)
        if only:
            gram, each = np.pad(gram, [(1, 0), (1, 0)]), np.pad(each, [(0, 0), (1, 0)])
        fit = ClassSums(gram, columns.sum(axis=0), of.balanced)
        found.append((judged(fit, each, diagonal, of), fit, each, diagonal))
    rates = np.array([one[0].right for one in found])
    place = middle_best(rates)
    return Selection(place, rates, *found[place])
