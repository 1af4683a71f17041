"""Random features for the ranker of document 002, section 4: the width by leave-one-out, exactly.

S_i of `_rank_leave_out` is a product of φ(x_i) with sums over the samples above and below i. With
short φ the sums of all levels are running ones, and leave-one-out takes O(n · n_components). Being
sums over components, scores are added up a few components at a time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from margrave._typing import Floats
from margrave.mam._features import (
    LARGEST_SEED,
    ROWS_FOR_WIDTHS,
    Frequencies,
    are_alike,
    feature_sums,
    precision,
)
from margrave.mam._kernel_ranker import KernelRanker
from margrave.mam._ranks import Levels, RankedSamples, first_best, kendall
from margrave.mam._selection import some_of_each
from margrave.mam._sums import slices

_FITTED = (
    "coef_",
    "X_fit_",
    "dual_coef_",
    "gammas_",
    "loo_scores_",
    "loo_predictions_",
    "_frequencies",
)
_DIRECTIONS = 32  # at a time: a few megabytes for the samples that choose a width
_FEW_LEVELS = 100


def rows_for_widths(responses: NDArray[Any], rng: np.random.RandomState) -> NDArray[np.intp]:
    """Some samples to choose a width on, in order; of few levels, some of each."""
    n = len(responses)
    levels = Levels.of(responses)
    if len(levels.starts) <= _FEW_LEVELS:
        places = levels.to_samples(np.arange(len(levels.starts)))
        return some_of_each(places, ROWS_FOR_WIDTHS, rng)
    if n <= ROWS_FOR_WIDTHS:
        return np.arange(n)
    return np.sort(rng.permutation(n)[:ROWS_FOR_WIDTHS])


def rank_by_features(
    X: Any, responses: NDArray[Any], weights: Floats | None, tried: list[Frequencies]
) -> Floats:
    """Kendall's τ of leave-one-out predictions, for each of several random features."""
    samples = RankedSamples.of(responses, weights)
    rows = X[samples.levels.order]
    scores = [feature_left_out(rows, samples, frequencies) for frequencies in tried]
    return np.array([kendall(responses[samples.levels.order], one) for one in scores])


def feature_left_out(rows: Any, samples: RankedSamples, frequencies: Frequencies) -> Floats:
    """S_i for samples in rising order of their responses, given as rows in that order.

    All 0 where samples differ by no more than rounding.
    """
    levels = samples.levels
    c = samples.coefficients[levels.order]
    s = samples.all_weights[levels.order]
    places = np.repeat(np.arange(len(levels.starts)), levels.sizes)
    scores = -c  # its own part, with ‖φ(x)‖ = 1
    alike = 0.0
    half = frequencies.directions.shape[1]
    for some in slices(half, _DIRECTIONS):
        part = replace(frequencies, directions=frequencies.directions[:, some])
        phi = part.of(rows).astype(np.float64) * np.sqrt((some.stop - some.start) / half)
        weighed = phi if samples.weights is None else phi * s[:, None]
        sums = np.add.reduceat(weighed, levels.starts, axis=0)
        upto = np.cumsum(sums, axis=0)
        signed = upto[-1] - 2 * upto + sums  # Σ_j s_j sign(l_j − l) φ_j: above l less below it
        scores += phi @ (c @ phi) - s * np.einsum("ij,ij->i", phi, signed[places])
        alike += float(np.square(upto[-1] / s.sum()).sum())
    return np.zeros_like(scores) if are_alike(alike, precision(rows)) else scores


def feature_length(vector: Floats, size: float, dtype: np.dtype[Any]) -> float:
    """‖Σ c_i φ(x_i)‖, 0 if it is no more than rounding; the size is that of c."""
    length = float(np.linalg.norm(vector))
    return length if length > 32 * float(np.finfo(dtype).eps) * size else 0.0


class FeatureRanker(KernelRanker):
    """Base of the ranker: a vector in the space of random features."""

    n_components: int | None
    random_state: Any
    gamma_: float | None
    _frequencies: Frequencies | None

    def _forget(self) -> None:
        """Nothing of a fit with another kernel stays."""
        for name in _FITTED:
            if hasattr(self, name):
                delattr(self, name)

    def _fit_features(self, rows: Any, responses: NDArray[Any], samples: RankedSamples) -> float:
        """Keep w = Σ c_i φ(x_i), at the best width; its length before it is made 1."""
        rng = check_random_state(self.random_state)
        seed = rng.randint(LARGEST_SEED)
        gammas = self._gammas(rows, samples.weights)
        there = samples.kept
        known = rows if isinstance(there, slice) or there.all() else rows[there]
        centre = np.zeros(rows.shape[1])
        if not issparse(rows):  # as in `Frequencies.drawn`
            centre = known.mean(axis=0, dtype=np.float64)
        weights = None if samples.weights is None else samples.weights[there]
        self._frequencies = self._choose_features(
            known, responses[there], weights, gammas, centre, seed, rng
        )
        c = samples.coefficients
        vector = feature_sums(rows, c[:, None], self._frequencies, self.n_jobs)[0]
        length = feature_length(vector, float(np.linalg.norm(c)), precision(rows))
        self.coef_ = vector / length if length else np.zeros_like(vector)
        return length

    def _choose_features(
        self,
        rows: Any,
        responses: NDArray[Any],
        weights: Floats | None,
        gammas: Floats,
        centre: Floats,
        seed: int,
        rng: np.random.RandomState,
    ) -> Frequencies:
        """Random features of the width with the largest τ on some samples, of equals the widest."""
        kernel, n = str(self.kernel), self.n_components or 1
        some = rows_for_widths(responses, rng)
        own = rows[some]
        tried = [
            replace(Frequencies.drawn(kernel, gamma, own, n, seed), centre=centre)
            for gamma in gammas.tolist()
        ]
        of = None if weights is None else weights[some]
        self.gammas_ = gammas
        self.loo_scores_ = rank_by_features(own, responses[some], of, tried)
        best = first_best(self.loo_scores_)
        self.gamma_ = float(gammas[best])
        return tried[best]
