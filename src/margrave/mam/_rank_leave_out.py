"""Scores of the ranker's samples, each by the ranker without it, and the ranker's length.

Document 002 chooses widths by cross-validation. Here leave-one-out is exact and costs one pass:
without sample i the ranks (21) of the others are r_j − s_i sign(y_j − y_i), so that i scores

    S_i = Σ_{j ≠ i} s_j (r_j − s_i sign(y_j − y_i)) K(x_j, x_i)

by the ranker of the others: the kernel sum of (22), and one more with signs. S_i is not divided by
the length of the ranker without i: each of the n lengths is a sum over all pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from margrave._typing import Floats
from margrave.mam._features import feature_products, squared_lengths
from margrave.mam._kernels import Kernel
from margrave.mam._ranks import RankedSamples
from margrave.mam._self_sums import Ordered, self_sums

_EPSILON = float(np.finfo(np.float64).eps)


def rounding(n: int) -> float:
    """What may be left of a sum of n numbers that cancel, as a share of the sum of their sizes."""
    return 4 * _EPSILON * float(np.sqrt(n))


@dataclass(frozen=True)
class LeftOut:
    """Leave-one-out for several widths.

    Attributes
    ----------
    scores : ndarray of shape (n_gammas, n_samples)
        S_i for each width; 0 where the ranker has no length.
    lengths : ndarray of shape (n_gammas,)
        ‖Σ c_i φ(x_i)‖ = √(cᵀΩc) of the ranker with all samples; 0 if it is no more than rounding.
    """

    scores: Floats
    lengths: Floats


def kernel_left_out(
    X: Any,
    samples: RankedSamples,
    kernel: Kernel,
    gammas: Sequence[float],
    n_jobs: int | None,
    backend: str = "auto",
) -> LeftOut:
    """S_i and the lengths, by one pass over all pairs for all widths."""
    levels = samples.levels
    rows = X[levels.order]
    c = samples.coefficients[levels.order]
    s = samples.all_weights[levels.order]
    places = np.repeat(np.arange(len(levels.starts), dtype=np.float64), levels.sizes)
    sums = self_sums(rows, c[:, None], kernel, gammas, Ordered(places, s), n_jobs, backend)
    lengths = np.empty(len(gammas))
    for step, gamma in enumerate(gammas):
        diagonal = replace(kernel, gamma=gamma).diagonal(rows)
        squared = float(c @ (sums[step, :, 0] + c * diagonal))
        size = float(np.abs(c) @ np.sqrt(np.abs(diagonal)))
        lengths[step] = _length(squared, rounding(len(c)) * size**2)
    scores = np.empty(sums.shape[:2])
    scores[:, levels.order] = (sums[:, :, 0] - s * sums[:, :, 1]) * (lengths[:, None] > 0)
    return LeftOut(scores, lengths)


def _length(squared: float, smallest: float) -> float:
    """A length from its square, 0 if that is rounding."""
    if not np.isfinite(squared):
        raise ValueError(
            "MAMRanker.fit needs kernel values whose sums are finite; got larger ones. "
            "Scale the features."
        )
    if squared < -smallest:
        raise ValueError(
            "MAMRanker.fit needs a positive definite kernel; "
            f"got one in which the ranker's squared length is {squared}."
        )
    return float(np.sqrt(squared)) if squared > smallest else 0.0


def vector_length(vector: Floats, X: Any, samples: RankedSamples) -> float:
    """‖Σ c_i x_i‖, 0 if it is no more than rounding."""
    with np.errstate(over="ignore"):
        size = np.linalg.norm(X.data if issparse(X) else X) * np.linalg.norm(samples.coefficients)
    return length_beyond(vector, float(size), len(samples.ranks))


def length_beyond(vector: Floats, size: float, n: int) -> float:
    """The length of a sum of n vectors, 0 if it is no more than rounding makes of their size."""
    largest = float(np.abs(vector).max())
    if not np.isfinite(largest):
        raise ValueError(
            "MAMRanker.fit needs X whose sums are finite; got larger values. Scale the features."
        )
    if largest == 0:
        return 0.0
    length = largest * float(np.linalg.norm(vector / largest))  # squares might overflow
    return length if length > rounding(n) * size or size == np.inf else 0.0


def linear_left_out(X: Any, samples: RankedSamples, vector: Floats) -> Floats:
    """S_i for K(x, z) = x·z, from sums of x over each level: O(n · n_levels).

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        The samples.
    samples : RankedSamples
        Their ranks.
    vector : ndarray of shape (n_features,)
        Σ c_i x_i.
    """
    n, n_levels = len(samples.ranks), len(samples.levels.starts)
    s = samples.all_weights
    places = samples.levels.to_samples(np.arange(n_levels))
    members = csr_array((s, (places, np.arange(n))), shape=(n_levels, n))
    sums = members @ X
    sums = sums.toarray() if issparse(sums) else sums
    upto = np.cumsum(sums, axis=0)
    signed = upto[-1] - 2 * upto + sums  # Σ_j s_j sign(l_j − l) x_j: above l less below it
    own = feature_products(X, vector[None], None)[:, 0]
    others = feature_products(X, signed, None)[np.arange(n), places]
    return np.asarray(own - samples.coefficients * squared_lengths(X, None) - s * others)
