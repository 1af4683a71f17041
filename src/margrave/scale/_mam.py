"""Fit the maximal-average-margin classifier and ranker on Dask collections.

The linear kernel and random features need sums over the rows, which are added block by block:
equations (5) and (22) of Pelckmans et al. (2008). The classifier needs one pass for the linear
kernel; with random features one for the mean, the variance and a sample of the rows, and one for
the sums. The ranker needs one order of all responses (21): the first pass computes a sorted summary
of them, and the second pass the sum. Ranks are exact if there are no more different responses than
the summary holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import assert_all_finite, check_array, column_or_1d

from margrave._labels import encode, union
from margrave._typing import Codes, Floats
from margrave._validation import is_number, refuse_zero_weights
from margrave.mam import (
    ClassTotals,
    FeatureSelection,
    MAMClassifier,
    MAMRanker,
    RandomFeatures,
    RankTotals,
    Reservoir,
    candidates_around,
    check_classes,
    check_classifier,
    check_different,
    check_ranker,
    check_responses,
    check_weighted_classes,
    class_factors,
    classifier_for_prediction,
    feature_sums,
    fit_from_rank_totals,
    fit_from_totals,
    ranker_for_prediction,
    select_class_features,
    select_rank_features,
    single_thread,
)
from margrave.scale._blocks import Blocks
from margrave.scale._fit import fit
from margrave.scale._mam_blocks import (
    ROWS,
    Moments,
    block_rows,
    block_weights,
    check_approximable,
    check_features,
    check_sums,
    encode_block,
    merge_reservoirs,
    reservoir_size,
    sample_block,
    sums_by_label,
    weight_columns,
    weighted_row_sums,
)
from margrave.scale._predict import prediction_model
from margrave.scale._summary import SortedSummary

_LARGEST_SEED = 2**31 - 1
_LARGEST_INTEGER = 2**53  # up to which float64 holds all integers
_CLASSIFIER, _RANKER = "MAMClassifier", "MAMRanker"
_CELLS = 2**19  # of rows with a column for every class, at a time
_FEWEST_ROWS = 2048


@fit.register(MAMClassifier)
def fit_classifier(
    estimator: MAMClassifier, X: Any, y: Any, sample_weight: Any = None
) -> MAMClassifier:
    """Fit a classifier with the linear kernel or random features."""
    check_classifier(estimator)
    linear = estimator.kernel == "linear"
    check_approximable(estimator, linear)
    factors = _check_factors(estimator.class_weight)
    blocks = Blocks.of_samples("scale.fit(MAMClassifier)", X, y=y, sample_weight=sample_weight)
    check_features(estimator, X)
    rng = check_random_state(estimator.random_state)
    seed, keys = rng.randint(_LARGEST_SEED), rng.randint(_LARGEST_SEED)
    n_columns = blocks.n_columns
    request = BlockRequest(n_columns, factors, keys, reservoir_size(n_columns), linear)
    found = blocks.reduce(sum_labels, MergeLabels(request.n_kept), request, numbered=True)
    check_classes(found.labels)
    if factors:
        class_factors(factors, found.labels)
    if not found.counts.any() and not isinstance(estimator.class_weight, dict):
        refuse_zero_weights(_CLASSIFIER)
    check_weighted_classes(int(np.count_nonzero(found.counts)))
    estimator.classes_ = found.labels
    sums, kept, selection = found.sums, found.kept, None
    if sums is None:
        moments = found.moments
        gammas = candidates_around(moments.scale_gamma(estimator.kernel), estimator)
        selection = select_class_features(
            estimator, kept.X, kept.labels, kept.weights, gammas, moments.centre, seed, rng
        )
        sums = blocks.reduce(
            sum_classes, _add, request, found.labels, found.exponent, selection.features
        )
    return fit_from_totals(
        estimator,
        ClassTotals(sums, found.weights, kept),
        selection,
        n_samples=int(found.counts.sum()),
        exponent=found.exponent,
        rng=rng,
    )


def _check_factors(class_weight: Any) -> dict[Any, float]:
    """Return the factors of labels; whether the labels occur is not known yet."""
    if not isinstance(class_weight, dict):
        return {}
    for factor in class_weight.values():
        if not (is_number(factor) and 0 <= factor < np.inf):
            raise ValueError(
                "MAMClassifier needs class_weight to have numbers of at least 0; "
                f"got {class_weight!r}."
            )
    return class_weight


@dataclass(frozen=True)
class BlockRequest:
    """What the passes of the classifier compute for every block."""

    n_features: int  # the number of columns
    factors: dict[Any, float]  # the factors of the weights by label, 1 for other labels
    seed: int  # for the keys of rows
    n_kept: int  # rows to keep
    linear: bool  # whether the first pass sums the rows themselves, or computes their moments


@dataclass(frozen=True, eq=False)
class LabelSums:
    """The result of the first pass of the classifier, by label.

    The classes are known after all blocks: until then there is a sum for every label. The keys of
    rows depend on the number of their block, so that the result does not depend on the order in
    which workers finish.
    """

    labels: NDArray[Any]  # (n_labels,): the labels, sorted
    counts: NDArray[np.int64]  # (n_labels,): the number of rows of each with a weight above 0
    weights: Floats  # (n_labels,): their weights, divided by 2 to the power of `exponent`
    sums: Floats | None  # (n_labels, n_features): weighted sums of the rows
    kept: Reservoir  # some rows; their labels are positions in `labels`
    moments: Any  # Moments of random features, else None
    exponent: int  # of the largest weight


def sum_labels(number: int, X: Any, y: Any, sample_weight: Any, request: BlockRequest) -> LabelSums:
    """Compute the first pass for one block."""
    rows = block_rows(X, request.n_features, _CLASSIFIER)
    labels, codes = encode_block(y)
    weights = _class_weights(labels, codes, sample_weight, request)
    exponent = int(np.frexp(weights.max())[1])
    weights = np.ldexp(weights, -exponent)
    sums = moments = None
    with single_thread():
        if request.linear:
            sums = sums_by_label(rows, codes, weights, len(labels))
            check_sums(sums, rows, _CLASSIFIER)
            if not weights.all():  # rows of weight 0 are not in the sums
                unused = rows[np.flatnonzero(weights == 0)]
                check_sums(np.asarray(unused.sum(dtype=np.float64)), rows, _CLASSIFIER)
        else:
            moments = Moments.of(rows, weights, _CLASSIFIER)
    return LabelSums(
        labels,
        np.bincount(codes[weights > 0], minlength=len(labels)),
        np.asarray(np.bincount(codes, weights, len(labels)), dtype=np.float64),
        sums,
        sample_block(rows, codes, weights, (request.seed, number), request.n_kept),
        moments,
        exponent,
    )


@dataclass(frozen=True)
class MergeLabels:
    """Merges the first pass of blocks, and keeps so many rows."""

    n_kept: int

    def __call__(self, parts: list[LabelSums]) -> LabelSums:
        labels = union(("MAMClassifier, y", part.labels) for part in parts)
        exponent = max((part.exponent for part in parts if part.counts.any()), default=0)
        counts = np.zeros(len(labels), dtype=np.int64)
        weights = np.zeros(len(labels))
        sums = None if parts[0].sums is None else np.zeros((len(labels), parts[0].sums.shape[1]))
        kept, shifts = [], []
        for part in parts:
            places = encode(part.labels, labels, _CLASSIFIER)
            shift = part.exponent - exponent
            counts[places] += part.counts
            weights[places] += np.ldexp(part.weights, shift)
            if sums is not None and part.sums is not None:
                sums[places] += np.ldexp(part.sums, shift)
            shifted = np.ldexp(part.kept.weights, shift)
            kept.append(replace(part.kept, labels=places[part.kept.labels], weights=shifted))
            shifts.append(shift)
        moments = [part.moments for part in parts if part.moments is not None]
        return LabelSums(
            labels,
            counts,
            weights,
            sums,
            merge_reservoirs(kept, self.n_kept),
            Moments.merged(moments, shifts) if moments else None,
            exponent,
        )


def sum_classes(
    X: Any,
    y: Any,
    sample_weight: Any,
    request: BlockRequest,
    classes: NDArray[Any],
    exponent: int,
    features: RandomFeatures,
) -> Floats:
    """Compute Σ s_i φ(x_i) of every class in one block, some rows at a time."""
    rows = block_rows(X, request.n_features, _CLASSIFIER)
    labels, codes = encode_block(y)
    weights = _class_weights(labels, codes, sample_weight, request)
    codes, s = encode(labels, classes, _CLASSIFIER)[codes], np.ldexp(weights, -exponent)
    sums = np.zeros((len(classes), 2 * features.directions.shape[1]))
    with single_thread(), np.errstate(invalid="ignore"):
        for part in gen_batches(len(rows), max(_CELLS // len(classes), _FEWEST_ROWS)):
            columns = weight_columns(codes[part], s[part], len(classes))
            sums += feature_sums(rows[part], columns, features, 1)
    check_sums(sums, rows, _CLASSIFIER)
    return sums


def _add(parts: list[Floats]) -> Floats:
    return np.asarray(np.sum(parts, axis=0))


def _class_weights(
    labels: NDArray[Any], codes: Codes, sample_weight: Any, request: BlockRequest
) -> Floats:
    """Multiply the weights of the rows by the factors of their labels."""
    weights = block_weights(sample_weight, len(codes), _CLASSIFIER)
    if weights is None:
        weights = np.ones(len(codes))
    if not request.factors:
        return weights
    factors = np.array([request.factors.get(label, 1.0) for label in labels.tolist()], dtype=float)
    return np.asarray(weights * factors[codes])


@fit.register(MAMRanker)
def fit_ranker(estimator: MAMRanker, X: Any, y: Any, sample_weight: Any = None) -> MAMRanker:
    """Fit a ranker with the linear kernel or random features."""
    check_ranker(estimator)
    linear = estimator.kernel == "linear"
    check_approximable(estimator, linear)
    blocks = Blocks.of_samples("scale.fit(MAMRanker)", X, y=y, sample_weight=sample_weight)
    check_features(estimator, X)
    rng = check_random_state(estimator.random_state)
    seed, keys = rng.randint(_LARGEST_SEED), rng.randint(_LARGEST_SEED)
    if linear:
        without_rows = Blocks(tuple(part[1:] for part in blocks.parts), 1, blocks.owner)
        found = without_rows.reduce(summarize_responses, MergeResponses())
    else:
        n_kept = reservoir_size(blocks.n_columns)
        found = blocks.reduce(summarize_rows, MergeResponses(n_kept), keys, n_kept, numbered=True)
    if not found.summary.n:
        refuse_zero_weights(_RANKER)
    check_different(len(found.summary.values), found.summary.values[0])
    selection = _select_features(estimator, found, seed, rng)
    features = None if selection is None else selection.features
    ranking = Ranking(found.summary, found.exponent, blocks.n_columns, features)
    sums = blocks.reduce(sum_ranks, _add_rank_sums, ranking)
    fit_from_rank_totals(estimator, _rank_totals(sums, found), selection)
    return estimator


@dataclass(frozen=True, eq=False)
class Responses:
    """The result of the first pass of the ranker."""

    # Responses with a weight above 0; weights are divided by 2 to the power of `exponent`.
    summary: SortedSummary
    exponent: int  # of the largest weight
    # Some rows with their responses, for the width of random features.
    kept: Reservoir | None = None
    moments: Moments | None = None  # mean and variance of the rows, for random features


def summarize_responses(y: Any, sample_weight: Any) -> Responses:
    """Summarize the responses of one block."""
    values, weights, exponent = _check_block_responses(y, sample_weight)
    present = weights > 0
    return Responses(SortedSummary.of(values[present], weights[present, None]), exponent)


def summarize_rows(
    number: int, X: Any, y: Any, sample_weight: Any, seed: int, n_kept: int
) -> Responses:
    """Summarize the responses and the rows of one block."""
    rows = block_rows(X, np.shape(X)[1], _RANKER)
    values, weights, _ = _check_block_responses(y, sample_weight)
    with single_thread():
        moments = Moments.of(rows, weights, _RANKER)
    kept = sample_block(rows, values, weights, (seed, number), n_kept)
    return replace(summarize_responses(y, sample_weight), kept=kept, moments=moments)


@dataclass(frozen=True)
class MergeResponses:
    """Merges the first pass of blocks, and keeps so many rows."""

    n_kept: int = 0

    def __call__(self, parts: list[Responses]) -> Responses:
        exponent = max((part.exponent for part in parts if part.summary.n), default=0)
        shifts = [part.exponent - exponent for part in parts]
        summaries = [
            replace(
                part.summary,
                masses=np.ldexp(part.summary.masses, shift),
                error=np.ldexp(part.summary.error, shift),
            )
            for part, shift in zip(parts, shifts, strict=True)
        ]
        kept = [
            replace(part.kept, weights=np.ldexp(part.kept.weights, shift))
            for part, shift in zip(parts, shifts, strict=True)
            if part.kept is not None
        ]
        moments = [part.moments for part in parts if part.moments is not None]
        return Responses(
            SortedSummary.merged(summaries),
            exponent,
            merge_reservoirs(kept, self.n_kept) if kept else None,
            Moments.merged(moments, shifts) if moments else None,
        )


def _select_features(
    ranker: MAMRanker, found: Responses, seed: int, rng: np.random.RandomState
) -> FeatureSelection | None:
    """Draw random features, if there are any, and select their width on the rows that were kept."""
    kept, moments = found.kept, found.moments
    if kept is None or moments is None:
        return None
    gammas = candidates_around(moments.scale_gamma(ranker.kernel), ranker)
    return select_rank_features(
        ranker, kept.X, kept.labels, kept.weights, gammas, moments.centre, seed, rng
    )


@dataclass(frozen=True, eq=False)
class Ranking:
    """The arguments of the second pass: the order of the responses and the features."""

    summary: SortedSummary
    exponent: int
    n_features: int
    features: RandomFeatures | None


@dataclass(frozen=True, eq=False)
class RankSums:
    """The result of the second pass of the ranker."""

    sums: Floats  # (2, n_features): Σ c_i φ(x_i) and Σ s_i φ(x_i)
    coefficients: float  # Σ c_i, which is 0 if ranks are exact
    squares: Floats  # (2,): Σ c_i² and, for the linear kernel, Σ ‖x_i‖²


def sum_ranks(X: Any, y: Any, sample_weight: Any, ranking: Ranking) -> RankSums:
    """Compute the sums of one block, with ranks among all responses."""
    rows = block_rows(X, ranking.n_features, _RANKER)
    values, weights, exponent = _check_block_responses(y, sample_weight)
    s = np.ldexp(weights, exponent - ranking.exponent)
    total = float(ranking.summary.total[0])
    c = s * (2 * ranking.summary.middle(values)[:, 0] - total)
    columns = np.stack([c, s]).T
    squared = 0.0
    with single_thread(), np.errstate(over="ignore", invalid="ignore"):
        if ranking.features is None:
            sums = weighted_row_sums(rows, columns)
            for part in gen_batches(len(rows), ROWS):
                numbers = rows[part].astype(np.float64, copy=False).ravel("K")
                squared += float(numbers @ numbers)
        else:
            sums = feature_sums(rows, columns, ranking.features, 1)
    check_sums(np.append(sums, squared), rows, _RANKER)
    return RankSums(sums, float(c.sum()), np.array([float(c @ c), squared]))


def _add_rank_sums(parts: list[RankSums]) -> RankSums:
    with np.errstate(over="ignore", invalid="ignore"):
        return RankSums(
            np.sum([part.sums for part in parts], axis=0),
            float(np.sum([part.coefficients for part in parts])),
            np.sum([part.squares for part in parts], axis=0),
        )


def _rank_totals(sums: RankSums, found: Responses) -> RankTotals:
    """Compute the direction from the sums of all blocks."""
    summary = found.summary
    total = float(summary.total[0])
    vector = sums.sums[0]
    if not summary.is_exact:  # approximate ranks do not sum to 0
        vector = vector - sums.coefficients / total * sums.sums[1]
    size = float(np.sqrt(sums.squares[0]))
    dtype = None
    if found.kept is None:
        with np.errstate(over="ignore"):
            size *= float(np.sqrt(sums.squares[1]))
    else:
        dtype = np.dtype(np.float32 if found.kept.X.dtype == np.float32 else np.float64)
    error = float(summary.error[0]) / total
    return RankTotals(vector, size, summary.n, total, found.exponent, error, dtype)


def _check_block_responses(y: Any, sample_weight: Any) -> tuple[Floats, Floats, int]:
    """Check responses and weights of a block; divide the weights by a power of two."""
    check_responses(y)
    values = column_or_1d(np.asarray(check_array(y, ensure_2d=False, ensure_all_finite=False)))
    assert_all_finite(values, input_name="y")
    if values.dtype.kind in "iu":
        low, high = int(values.min()), int(values.max())
        if low < -_LARGEST_INTEGER or high > _LARGEST_INTEGER:
            raise ValueError(
                "scale.fit(MAMRanker) needs y with integers from -2**53 to 2**53; got "
                f"{low} to {high}. Only their order counts: subtract a constant, such as the "
                "smallest."
            )
    weights = block_weights(sample_weight, len(values), _RANKER)
    numbers = values.astype(np.float64)
    if weights is None:
        return numbers, np.ones(len(values)), 0
    exponent = int(np.frexp(weights.max())[1])
    return numbers, np.ldexp(weights, -exponent), exponent


@prediction_model.register
def _(model: MAMClassifier) -> MAMClassifier:
    return classifier_for_prediction(model)


@prediction_model.register
def _(model: MAMRanker) -> MAMRanker:
    return ranker_for_prediction(model)
