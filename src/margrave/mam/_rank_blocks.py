"""The ranker of document 002, section 4, learned from Dask collections.

Ranks (21) need one order of all responses: a first pass makes a sorted summary of them. As long as
there are no more different responses than it holds, ranks are exact; beyond that they are off by
what the summary says. A second pass makes the sum of (22).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import assert_all_finite, check_array, column_or_1d

from margrave._dask.blocks import Blocks
from margrave._dask.summary import SortedSummary
from margrave._typing import Floats
from margrave._validation import is_number, refuse_zero_weights
from margrave.mam._block_moments import Moments
from margrave.mam._block_rows import (
    ROWS,
    block_rows,
    block_weights,
    check_columns,
    check_sums,
    plain_sums,
    refuse_no_responses,
)
from margrave.mam._features import LARGEST_SEED, Frequencies, feature_sums, precision
from margrave.mam._kept import Kept, most_kept
from margrave.mam._parameters import is_linear
from margrave.mam._rank_features import FeatureRanker, feature_length
from margrave.mam._rank_leave_out import length_beyond
from margrave.mam._sums import slices
from margrave.mam._threads import alone
from margrave.mam._widths import widths_around

_OWNER = "MAMRanker"
_LARGEST = 2**53  # up to which float64 holds all integers


@dataclass(frozen=True, eq=False)
class Responses:
    """What the first pass finds.

    Attributes
    ----------
    summary : SortedSummary
        Responses with a weight above 0; weights are divided by 2 to the power of `exponent`.
    exponent : int
        Of the largest weight.
    kept : Kept or None
        Some rows with their responses, for the width of random features.
    moments : Moments or None
        Middle and spread of the rows, likewise.
    """

    summary: SortedSummary
    exponent: int
    kept: Kept | None = None
    moments: Moments | None = None


@dataclass(frozen=True, eq=False)
class RankSums:
    """What the second pass finds.

    Attributes
    ----------
    sums : ndarray of shape (2, n_features)
        Σ c_i φ(x_i) and Σ s_i φ(x_i).
    coefficients : float
        Σ c_i, which is 0 where ranks are exact.
    squares : ndarray of shape (2,)
        Σ c_i² and, for the features themselves, Σ ‖x_i‖².
    """

    sums: Floats
    coefficients: float
    squares: Floats


@dataclass(frozen=True, eq=False)
class Ranking:
    """What the second pass knows: responses in order, their weights and the features."""

    summary: SortedSummary
    exponent: int
    n_features: int
    frequencies: Frequencies | None


def check_ordered(y: Any) -> None:
    """Refuse responses that are labels, not numbers, or pandas categories."""
    values = np.asarray(y)
    if y is None or values.dtype.kind not in "USO":
        return
    if not all(is_number(one) or one is None for one in values.ravel()):
        raise ValueError(
            "MAMRanker.fit needs y to be numbers, which have an order; got other labels. "
            "MAMOrdinalClassifier takes them, with their order."
        )


def responses_of(y: Any, sample_weight: Any) -> Responses:
    """Summarise the responses of one block."""
    values, weights, exponent = _weighed(y, sample_weight)
    there = weights > 0
    return Responses(SortedSummary.of(values[there], weights[there, None]), exponent)


def rows_of(number: int, X: Any, y: Any, sample_weight: Any, seed: int, most: int) -> Responses:
    """Summarise the responses of one block and its rows."""
    rows = block_rows(X, np.shape(X)[1], _OWNER)
    values, weights, exponent = _weighed(y, sample_weight)
    there = weights > 0
    with alone():
        moments = Moments.of(rows, weights, _OWNER)
    return Responses(
        SortedSummary.of(values[there], weights[there, None]),
        exponent,
        Kept.of_block(rows, values, weights, (seed, number), most),
        moments,
    )


@dataclass(frozen=True)
class Merge:
    """Puts together what blocks say, and keeps so many rows."""

    most: int = 0

    def __call__(self, parts: list[Responses]) -> Responses:
        exponent = max((one.exponent for one in parts if one.summary.n), default=0)
        shifts = [one.exponent - exponent for one in parts]
        summaries = [
            replace(
                one.summary,
                masses=np.ldexp(one.summary.masses, shift),
                error=np.ldexp(one.summary.error, shift),
            )
            for one, shift in zip(parts, shifts, strict=True)
        ]
        kept = [
            replace(one.kept, weights=np.ldexp(one.kept.weights, shift))
            for one, shift in zip(parts, shifts, strict=True)
            if one.kept is not None
        ]
        moments = [one.moments for one in parts if one.moments is not None]
        return Responses(
            SortedSummary.merged(summaries),
            exponent,
            Kept.merged(kept, self.most) if kept else None,
            Moments.merged(moments, shifts) if moments else None,
        )


def rank_sums(X: Any, y: Any, sample_weight: Any, known: Ranking) -> RankSums:
    """The sums of one block, by ranks among all responses."""
    rows = block_rows(X, known.n_features, _OWNER)
    values, weights, exponent = _weighed(y, sample_weight)
    s = np.ldexp(weights, exponent - known.exponent)
    total = float(known.summary.total[0])
    c = s * (2 * known.summary.middle(values)[:, 0] - total)
    columns = np.stack([c, s]).T
    squared = 0.0
    with alone(), np.errstate(over="ignore", invalid="ignore"):
        if known.frequencies is None:
            sums = plain_sums(rows, columns)
            squared = _squared(rows)
        else:
            sums = feature_sums(rows, columns, known.frequencies, 1)
    check_sums(np.append(sums, squared), rows, _OWNER)
    return RankSums(sums, float(c.sum()), np.array([float(c @ c), squared]))


def added(parts: list[RankSums]) -> RankSums:
    """All of them together."""
    with np.errstate(over="ignore", invalid="ignore"):
        return RankSums(
            np.sum([one.sums for one in parts], axis=0),
            float(np.sum([one.coefficients for one in parts])),
            np.sum([one.squares for one in parts], axis=0),
        )


def _weighed(y: Any, sample_weight: Any) -> tuple[Floats, Floats, int]:
    """Responses and weights of one block, the weights divided by a power of two, and that power."""
    check_ordered(y)
    values = column_or_1d(np.asarray(check_array(y, ensure_2d=False, ensure_all_finite=False)))
    assert_all_finite(values, input_name="y")
    _check_integers(values)
    weights = block_weights(sample_weight, len(values), "MAMRanker.fit")
    numbers = values.astype(np.float64)
    if weights is None:
        return numbers, np.ones(len(values)), 0
    exponent = int(np.frexp(weights.max())[1])
    return numbers, np.ldexp(weights, -exponent), exponent


def _check_integers(values: NDArray[Any]) -> None:
    """Refuse integers that float64 cannot tell apart."""
    if values.dtype.kind not in "iu":
        return
    low, high = int(values.min()), int(values.max())
    if low < -_LARGEST or high > _LARGEST:
        raise ValueError(
            "MAMRanker.fit takes integers from -2**53 to 2**53 as y from Dask collections; got "
            f"{low} to {high}. Only their order counts: subtract a constant, such as the smallest."
        )


def _squared(X: NDArray[Any]) -> float:
    """Σ ‖x‖², in float64."""
    found = 0.0
    for part in slices(len(X), ROWS):
        wide = X[part].astype(np.float64, copy=False).ravel("K")
        found += float(wide @ wide)
    return found


class BlockRanker(FeatureRanker):
    """Base of the ranker: what it learns from blocks, by a sorted summary and sums."""

    def _learn_blocks(self, X: Any, y: Any, sample_weight: Any) -> None:
        plain = is_linear(self.kernel)
        if not plain and self.n_components is None:
            raise ValueError(
                "MAMRanker.fit takes Dask collections with kernel='linear' or with n_components "
                f"only; got kernel={self.kernel!r}, with which every sample is kept. "
                "Set n_components, or draw rows into memory with margrave.scale.sample."
            )
        if y is None:
            refuse_no_responses(self)
        blocks = Blocks.of("MAMRanker.fit", X, y=y, sample_weight=sample_weight)
        check_columns(self, X, reset=True)
        rng = check_random_state(self.random_state)
        seed, keys = rng.randint(LARGEST_SEED), rng.randint(LARGEST_SEED)
        if plain:
            beside = Blocks(tuple(part[1:] for part in blocks.parts), 1, blocks.owner)
            found = beside.reduce(responses_of, Merge())
        else:
            most = most_kept(blocks.n_columns)
            found = blocks.reduce(rows_of, Merge(most), keys, most, numbered=True)
        if not found.summary.n:
            refuse_zero_weights("MAMRanker.fit")
        self._check_values(len(found.summary.values), found.summary.values[0])
        self._forget()
        if hasattr(self, "ranks_"):
            del self.ranks_  # one for each sample: too many
        self._frequencies = self._features_of(found, seed, rng)
        known = Ranking(found.summary, found.exponent, blocks.n_columns, self._frequencies)
        self._settle_sums(blocks.reduce(rank_sums, added, known), found)

    def _features_of(
        self, found: Responses, seed: int, rng: np.random.RandomState
    ) -> Frequencies | None:
        """Random features of the best width, around the middle of all rows."""
        if found.kept is None or found.moments is None:
            self.gamma_ = None
            return None
        usual = found.moments.usual_gamma(self.kernel)
        gammas = widths_around(usual, self.gamma, self.gammas)
        kept, centre = found.kept, found.moments.centre
        return self._choose_features(kept.X, kept.codes, kept.weights, gammas, centre, seed, rng)

    def _settle_sums(self, sums: RankSums, found: Responses) -> None:
        """Direction and length from the sums of all blocks."""
        total = float(found.summary.total[0])
        vector = sums.sums[0]
        if not found.summary.is_exact:  # ranks that are a little off do not sum to 0
            vector = vector - sums.coefficients / total * sums.sums[1]
        size = float(np.sqrt(sums.squares[0]))
        if found.kept is None:
            with np.errstate(over="ignore"):
                size *= float(np.sqrt(sums.squares[1]))
            length = length_beyond(vector, size, found.summary.n)
        else:
            length = feature_length(vector, size, precision(found.kept.X))
        self.coef_ = vector / length if length else np.zeros_like(vector)
        self.lambda_ = float(np.ldexp(length / total, found.exponent))
        self.rank_error_ = float(found.summary.error[0]) / total
