"""Scores of classes from sums of kernels, and of each sample as if it had not been there.

Document 002, (4) to (7): the direction of the largest average margin is w ∝ Σ y_i φ(x_i), and
f(x) = (1/λn) Σ y_i K(x_i, x) with λ = √(yᵀΩy)/n, so that ‖w‖ = 1. Here a fit is known by the sums
of its classes, P_c = Σ s_i φ(x_i) over class c with weights s, and their products G_ab = P_a · P_b.
Divided by n they make w = (P₁ − P₀)/n, the document's; divided by their own weights, w = μ₁ − μ₀,
its form for classes that count the same. With k > 2 classes the same principle, the largest average
of ⟨w_y, φ(x)⟩ over unit vectors (w_1 … w_k) that sum to 0, gives w_c ∝ P_c − mean of all P.

Leaving sample i out takes s_i φ(x_i) from one of the sums: the score of i changes by its own kernel
value, and the length of w by products that are known (`left_out`). Nothing is fitted again. Where a
cut is chosen it belongs to the shares of the classes, which then stay as they are: only the class
means are without i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrave._typing import Codes, Floats

# A squared length below this share of what it is the difference of is rounding.
_ROUNDING = 1e-13


def contrast(n_classes: int) -> Floats:
    """What turns sums of classes into scores: second less first, or each less their mean."""
    if n_classes == 2:
        return np.array([[-1.0, 1.0]])
    return np.eye(n_classes) - 1 / n_classes


def shares_of(weights: Floats) -> Floats:
    """1 / weights, 0 where there is none."""
    return np.divide(1.0, weights, out=np.zeros_like(weights), where=weights > 0)


@dataclass(frozen=True)
class ClassSums:
    """A fit, known by the sums of its classes.

    Attributes
    ----------
    gram : ndarray of shape (n_classes, n_classes)
        Products P_a · P_b of the sums.
    weights : ndarray of shape (n_classes,)
        The summed weights of each class.
    balanced : bool
        Whether classes count the same.
    """

    gram: Floats
    weights: Floats
    balanced: bool

    @property
    def shares(self) -> Floats:
        """What each class's sum is multiplied with, so that the weights of all samples sum to 1."""
        n_classes = len(self.weights)
        if self.balanced:
            return shares_of(self.weights) / n_classes
        return np.full(n_classes, 1 / self.weights.sum())

    @property
    def length(self) -> float:
        """λ: the length of the direction before it is made 1, which is the average margin."""
        tilted = contrast(len(self.weights)) * self.shares
        squared = float((tilted @ self.gram * tilted).sum())
        size = float((np.abs(tilted) @ np.abs(self.gram) * np.abs(tilted)).sum())
        if squared < -_ROUNDING * size:
            raise ValueError(
                "MAMClassifier needs a positive definite kernel; "
                f"got one in which the direction's squared length is {squared}."
            )
        return float(np.sqrt(squared)) if squared > _ROUNDING * size else 0.0

    @property
    def turned(self) -> Floats:
        """The matrix that turns kernel sums of the classes into scores of unit directions."""
        length = self.length
        tilted = contrast(len(self.weights)) * self.shares
        scores: Floats = (tilted / length if length else np.zeros_like(tilted)).T
        return scores

    def left_out(
        self,
        sums: Floats,
        diagonal: Floats,
        codes: Codes,
        weights: Floats,
        *,
        keep_shares: bool = False,
    ) -> Floats:
        """The score of each sample by the fit without it, exactly.

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
        keep_shares : bool, default=False
            Whether the classes keep their shares of the weight when a sample is left out, and
            scores the unit λ of the whole fit. In a fit that is not balanced a wide kernel makes a
            score nearly the difference of the shares. Leaving i out then changes that, and the
            length it is divided by, more than x_i does: by its own class, which a cut would learn.

        Returns
        -------
        scores : ndarray of shape (n, 1) or (n, n_classes)
            One column for two classes.
        """
        n_classes = len(self.weights)
        each = np.arange(len(codes))
        turn = contrast(n_classes)
        between = turn.T @ turn
        others = shares_of(self.weights) if self.balanced else np.ones(n_classes)
        # A class that is left out as a whole has nothing left to say.
        rest = self.weights[codes] - weights
        own = shares_of(np.where(rest > _ROUNDING * self.weights[codes], rest, 0.0))
        if not self.balanced:
            own = own * self.weights[codes] if keep_shares else np.ones(len(codes))
        # |w|² is a sum over pairs of classes: those without i's class, those with it, and itself.
        whole = between * np.outer(others, others) * self.gram
        without = whole.sum() - 2 * whole.sum(axis=1) + np.diag(whole)
        products = (between * others)[codes] * (self.gram[codes] - weights[:, None] * sums)
        crossed = own * (products.sum(axis=1) - products[each, codes])
        itself = self.gram[codes, codes] - 2 * weights * sums[each, codes] - weights**2 * diagonal
        squared = without[codes] + 2 * crossed + between[0, 0] * own**2 * itself
        size = np.abs(without[codes]) + 2 * np.abs(crossed) + own**2 * np.abs(itself)
        lengths = np.sqrt(np.where(squared > _ROUNDING * size, squared, np.inf))
        if keep_shares and not self.balanced:
            lengths = np.full(len(codes), self.length * self.weights.sum() or np.inf)
        scaled = sums * others
        scaled[each, codes] = sums[each, codes] * own
        return (scaled @ turn.T) / lengths[:, None]
