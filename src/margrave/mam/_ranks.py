"""Ranks: what the pairs of document 002, section 4, come down to.

The ranker of "A Risk Minimization Principle for a Class of Parzen Estimators" (Pelckmans, Suykens,
De Moor) has the largest average margin over pairs of samples (19), (20). Its direction is a sum of
φ(x_i) − φ(x_j) over all pairs with y_i > y_j, in which φ(x_i) comes as often as the rank r_i says
(21): the pairs are never made. With weights s a pair counts s_i s_j times, and φ(x_i) comes s_i r_i
times with r_i = Σ_j s_j sign(y_i − y_j).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import kendalltau
from sklearn.utils.validation import check_array, check_consistent_length

from margrave._typing import Floats
from margrave._validation import check_sample_weight

_TIE = 1e-12


def rank_transform(y: ArrayLike, sample_weight: ArrayLike | None = None) -> Floats:
    """Ranks around 0: r_i = Σ_j s_j sign(y_i − y_j), how many are below less how many are above.

    Without weights that is twice the midrank (equal values share the mean of their ranks) less
    n + 1, so it takes one sort and no pairs.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Numbers, of which only the order counts.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights s; all 1 if None.

    Returns
    -------
    ranks : ndarray of shape (n_samples,)
        Between −Σs and Σs. They sum to 0, each one multiplied with its own weight.

    Notes
    -----
    This is (21) of document 002 [1]_ with its sign corrected. As printed, Σ_j sign(y_j − y_i), the
    largest response has the lowest rank, and the ranker made of it (22) orders samples backwards.

    References
    ----------
    .. [1] K. Pelckmans, J. A. K. Suykens and B. De Moor, "A Risk Minimization Principle for a Class
       of Parzen Estimators", section 4.

    Examples
    --------
    >>> from margrave.mam import rank_transform
    >>> rank_transform([10, 30, 20, 30])
    array([-3.,  2., -1.,  2.])
    >>> rank_transform([10, 30, 20, 30], sample_weight=[5, 1, 1, 1])
    array([-3.,  6.,  3.,  6.])
    """
    values = check_array(y, ensure_2d=False, dtype="numeric", input_name="y")
    if values.ndim != 1:
        raise ValueError(
            f"rank_transform needs y with one number a sample; got shape {values.shape}."
        )
    weights = None
    if sample_weight is not None:
        weights = check_sample_weight(sample_weight, len(values), "rank_transform")
    return Levels.of(values).ranks(weights)


@dataclass(frozen=True)
class Levels:
    """Samples in rising order, and where in it each new value begins.

    Attributes
    ----------
    order : ndarray of shape (n_samples,)
        The samples, lowest first.
    starts : ndarray of shape (n_levels,)
        The first place in `order` of each value.
    """

    order: NDArray[np.intp]
    starts: NDArray[np.intp]

    @classmethod
    def of(cls, y: NDArray[Any]) -> Levels:
        """Sort once; no other step takes more than O(n)."""
        order = np.argsort(y)
        ordered = y[order]
        rises = np.empty(len(y), dtype=bool)
        rises[0] = True
        np.not_equal(ordered[1:], ordered[:-1], out=rises[1:])
        return cls(order, np.flatnonzero(rises))

    @property
    def sizes(self) -> NDArray[np.intp]:
        """How many samples each value has."""
        return np.diff(self.starts, append=len(self.order))

    def to_samples(self, values: NDArray[Any]) -> NDArray[Any]:
        """One number for each value, as one for each sample."""
        each = np.empty(len(self.order), dtype=values.dtype)
        alone = len(values) == len(each)
        each[self.order] = values if alone else np.repeat(values, self.sizes)
        return each

    def ranks(self, weights: Floats | None) -> Floats:
        """r_i = Σ_j s_j sign(y_i − y_j): what is before i less what is after."""
        if weights is None:
            below = self.starts.astype(np.float64)
            upto = below + self.sizes
            total = float(len(self.order))
        else:
            sums = np.append(0.0, np.cumsum(weights[self.order]))
            below = sums[self.starts]
            upto = np.append(below[1:], sums[-1])
            total = sums[-1]
        ranks: Floats = self.to_samples(below + upto - total)
        return ranks


@dataclass(frozen=True)
class RankedSamples:
    """What a ranker learns from besides the features.

    Weights are divided by a power of two, so that their products neither overflow nor vanish.

    Attributes
    ----------
    levels : Levels
        The order of the responses.
    weights : ndarray of shape (n_samples,) or None
        The divided weights s; None if all are 1.
    coefficients : ndarray of shape (n_samples,)
        How often φ(x_i) is in the direction: s_i r_i.
    ranks : ndarray of shape (n_samples,)
        r of (21), by the weights as they came.
    exponent : int
        The power of two.
    """

    levels: Levels
    weights: Floats | None
    coefficients: Floats
    ranks: Floats
    exponent: int

    @classmethod
    def of(cls, y: NDArray[Any], weights: Floats | None) -> RankedSamples:
        """Sort the samples and rank them."""
        levels = Levels.of(y)
        if weights is None:
            ranks = levels.ranks(None)
            return cls(levels, None, ranks, ranks, 0)
        exponent = int(np.frexp(weights.max())[1])
        scaled = np.ldexp(weights, -exponent)
        ranks = levels.ranks(scaled)
        return cls(levels, scaled, scaled * ranks, np.ldexp(ranks, exponent), exponent)

    @property
    def all_weights(self) -> Floats:
        """The divided weights, ones if there are none."""
        return np.ones(len(self.ranks)) if self.weights is None else self.weights

    @property
    def kept(self) -> NDArray[np.bool_] | slice:
        """Which samples have a weight above 0."""
        return slice(None) if self.weights is None else self.weights > 0

    @property
    def n_levels(self) -> int:
        """How many different responses have a weight above 0."""
        if self.weights is None:
            return len(self.levels.starts)
        sums = np.add.reduceat(self.weights[self.levels.order], self.levels.starts)
        return int(np.count_nonzero(sums))

    def average(self, length: float) -> float:
        """λ of (22), from a length of Σ c_i φ(x_i): divided by n, or by Σs."""
        n = len(self.ranks) if self.weights is None else float(self.weights.sum())
        return float(np.ldexp(length / n, self.exponent))


def kendall(y: NDArray[Any], scores: NDArray[Any]) -> float:
    """Kendall's τ-b; 0 where it is not defined, as for scores that are all the same."""
    check_consistent_length(y, scores)
    if len(y) < 2:
        return 0.0
    found = float(kendalltau(y, scores).statistic)
    return found if np.isfinite(found) else 0.0


def first_best(taus: Floats) -> int:
    """The place of the largest, the first of equals, whatever rounding says."""
    return int(np.argmax(taus >= taus.max() - _TIE))
