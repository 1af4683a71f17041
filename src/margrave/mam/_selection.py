"""Width and cut by exact leave-one-out, for all widths in one pass over the pairs of samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from margrave.mam._cut import cut_for, decided, sample_shares
from margrave.mam._kernels import Floats, Kernel
from margrave.mam._leave_out import ClassSums, Codes
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
    scores = fit.left_out(sums, diagonal, of.codes, of.weights)
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


def select_width(
    X: Any, kernel: Kernel, gammas: Floats, of: Labelled, n_jobs: int | None
) -> Selection:
    """Compare widths; of equals the middle one, which is the farthest from being worse."""
    columns = of.columns
    # Of two classes that need not count the same only the difference matters, and one sum is half
    # the work: it stands for the second class, and 0 for the first.
    only = of.n_classes == 2 and not of.balanced
    a = columns @ [[-1.0], [1.0]] if only else columns
    sums = self_sums(X, a, kernel, gammas.tolist(), n_jobs=n_jobs)
    found = []
    for gamma, each in zip(gammas, sums, strict=True):
        diagonal = replace(kernel, gamma=float(gamma)).diagonal(X)
        with np.errstate(over="ignore", invalid="ignore"):
            gram = a.T @ (each + diagonal[:, None] * a)
        if not np.isfinite(gram).all():
            raise ValueError(
                "MAMClassifier.fit needs kernel values whose sums are finite; got larger ones. "
                "Scale the features, or take a smaller gamma."
            )
        if only:
            gram, each = np.pad(gram, [(1, 0), (1, 0)]), np.pad(each, [(0, 0), (1, 0)])
        fit = ClassSums(gram, columns.sum(axis=0), of.balanced)
        found.append((judged(fit, each, diagonal, of), fit, each, diagonal))
    rates = np.array([one[0].right for one in found])
    best = np.flatnonzero(rates >= rates.max() - 1e-12)
    place = int(best[len(best) // 2])
    return Selection(place, rates, *found[place])
