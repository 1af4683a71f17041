"""Rank-margin weights and committees on Dask collections.

`rank_margin_weights` takes scores. `fit` takes samples and a `RankMarginClassifier` with members
that are already trained: each step of its fit is a pass over the blocks, in which the members
predict again: their values for the scale, the passes of `_rank_passes` for the weights, and the
combined scores for threshold and slope. Steps that need all scores at a time, the choice of ν and
the tolerance "auto", use rows drawn from each class; the scores of other rows drawn are kept as
``margin_distribution_``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave import _labels
from margrave._indexing import largest_keys, select_rows
from margrave._typing import Flags, Floats, Ints
from margrave._validation import check_sample_weight, fitted_classes
from margrave.committee import FittedMembers
from margrave.confusion import balanced_threshold
from margrave.fuse import (
    Combination,
    CombinationSettings,
    LinearScale,
    MarginSettings,
    RankMarginClassifier,
    RankMarginWeights,
    RankScale,
    TuningSet,
    check_both_classes,
    check_class_weights,
    check_constant_members,
    check_in_range,
    check_several_classes,
    check_table,
    choose_nu,
    choose_tol,
    find_positive,
    find_positive_code,
    fit_sigmoid,
    fitted_members,
    logit_scale,
    members_above_chance,
    range_scale,
    store_combinations,
    use_prefit_members,
    values_by_class,
    warn_not_converged,
)
from margrave.pairs import CrucialPairs
from margrave.scale._blocks import Blocks, concatenate, is_dask
from margrave.scale._dask import import_dask
from margrave.scale._fit import fit
from margrave.scale._rank_passes import (
    Passes,
    ScoreReader,
    joint_range,
    maximize_block_margin,
    read_numbers,
)
from margrave.scale._sample import KeepLargest, KeyedRows
from margrave.scale._summary import SortedSummary
from margrave.scores import replace_by_log_odds

_WEIGHTS = "scale.rank_margin_weights"
_CLASSIFIER = "scale.fit(RankMarginClassifier)"

MAX_DRAWN = 100_000
"""The most rows that are drawn where all scores are needed at a time."""

MIN_DRAWN_PER_CLASS = 10_000
"""The fewest rows that are drawn from a class that has as many, even with many classes."""

FOR_CHOICE, FOR_MARGINS = 0x43484F49, 0x4D415247
"""Streams of random numbers: for the rows that select ν and the tolerance, and for the margins."""


def rank_margin_weights(
    scores: Any,
    y: Any,
    nu: float = 0.0,
    sample_weight: Any = None,
    tol: float = 1e-4,
    max_iter: int = 200,
    *,
    positive: Any = None,
    negatives: str | None = None,
) -> RankMarginWeights:
    """Compute rank-margin weights from scores that may be larger than memory.

    It computes what :func:`margrave.fuse.rank_margin_weights` does for arrays in memory.

    Parameters
    ----------
    scores : Dask array or data frame of shape (n_samples, K)
        The members' scores in [-1, 1], larger for the positive class.
    y : Dask array or series of shape (n_samples,)
        Labels, with two classes unless `positive` is set.
    nu : float in [0, 1], default=0.0
        The fraction of the crucial pairs, the worst ones, whose mean margin is maximized.
    sample_weight : Dask array or series of shape (n_samples,), optional
        Weights of the samples within their class.
    tol : float, default=1e-4
        The search stops when the gap to the optimum is at most this.
    max_iter : int, default=200
        Maximum number of iterations.
    positive : label, optional
        The positive class; all others are negative. By default the larger of two labels.
    negatives : str, optional
        ``"hardest 10%"`` uses only pairs with that fraction of the negatives, those with the
        highest scores.

    Returns
    -------
    margrave.fuse.RankMarginWeights
        The weights; `n_passes` is the number of passes over the blocks.

    Notes
    -----
    There is one pass for each iteration, and two more. With ``nu=0`` the optimum is that of the
    same rows in memory. With ``nu > 0`` margins are summed over bins of the score: `margin` is then
    a lower bound of the mean margin, and `gap` includes the error of the bins: a few widths of a
    bin at most, and less than 1e-6 for scores that are spread out over [-1, 1]. `rho` has an error
    of a few widths too, and `n_active` of the pairs there. Bins are first about 1e-4 wide, and 1e-5
    if the search needs it; with more than ten members they are wider, to limit the memory.

    Examples
    --------
    >>> import dask.array as da
    >>> from margrave import scale
    >>> scores = da.from_array([[0.9, 0.2], [-0.2, 0.6], [0.1, -0.7], [-0.8, 0.1]], chunks=(2, 2))
    >>> result = scale.rank_margin_weights(scores, da.from_array([1, 1, 0, 0], chunks=2))
    >>> result.weights.round(3), round(result.rho, 3)
    (array([0.471, 0.529]), 0.547)
    """
    settings = MarginSettings.checked(nu, negatives, tol, max_iter)
    names = _member_names(scores)
    blocks = Blocks.of_columns(_WEIGHTS, scores=scores, y=y, sample_weight=sample_weight)
    passes = Passes.over(blocks, len(names))
    first = passes.first(ScoreReader(_WEIGHTS, read_numbers, positive))
    label = find_positive(first.classes, positive)
    check_in_range(first.low, first.high)
    check_sample_weight(first.weights, 2, _WEIGHTS)
    keys = first.classes.tolist()[::-1] if positive is None else [True, False]
    summaries = [first.by_class.get(key) for key in keys]
    check_both_classes(label, *(0 if one is None else one.n for one in summaries))
    positives, negatives_ = (one for one in summaries if one is not None)
    check_constant_members(joint_range(positives, negatives_), names, stacklevel=3)
    reader = ScoreReader(_WEIGHTS, read_numbers, label)
    result = maximize_block_margin(passes, reader, first, (positives, negatives_), settings)
    warn_not_converged(_WEIGHTS, result, settings.tol, "raise max_iter or tol", stacklevel=3)
    return result


def _member_names(scores: Any) -> list[str]:
    """Check that scores are a table, and return the names of its columns."""
    if not is_dask(scores):
        import_dask(_WEIGHTS)
        raise TypeError(
            f"{_WEIGHTS} needs scores to be a Dask array or data frame; got "
            f"{type(scores).__name__}. Convert an array with dask.array.from_array, or use "
            "margrave.fuse.rank_margin_weights."
        )
    shape = tuple(size if isinstance(size, int) else np.nan for size in scores.shape)
    check_table(shape)
    return [str(name) for name in getattr(scores, "columns", range(int(shape[1])))]


@fit.register
def _fit_rank_margin(
    committee: RankMarginClassifier, X: Any, y: Any, sample_weight: Any = None
) -> RankMarginClassifier:
    """Learn the weights of trained members on Dask collections."""
    settings = CombinationSettings.of(committee)
    if not committee.prefit:
        raise ValueError(
            f"{_CLASSIFIER} needs prefit=True, since members are trained in memory; got "
            f"prefit={committee.prefit!r}. Draw rows with scale.sample(X, y), and train the "
            "members on them."
        )
    blocks = Blocks.of_samples(_CLASSIFIER, X, y=y, sample_weight=sample_weight)
    is_frame = hasattr(X, "columns")
    use_prefit_members(committee, X._meta if is_frame else np.empty((0, X.shape[1])))
    members = BlockMembers.of(committee)
    first: ValuesPass = blocks.reduce(summarize_values, ValuesPass.merged, members, settings.scale)
    check_sample_weight(first.weights, 2, _CLASSIFIER)
    classes = committee.classes_
    check_several_classes(classes[first.mass > 0])
    check_class_weights(classes, first.mass)
    drawn = None
    if isinstance(settings.nu, str) or isinstance(settings.tol, str):
        limit = max_per_class(len(classes))
        drawn = blocks.reduce(draw_block, DrawnRows.merged, classes, limit, numbered=True)
    store_combinations(committee, _fit_combinations(blocks, members, first, settings, drawn))
    return committee


def _fit_combinations(
    blocks: Blocks,
    members: BlockMembers,
    first: ValuesPass,
    settings: CombinationSettings,
    drawn: DrawnRows | None,
) -> list[Combination]:
    """Learn scale, weights and threshold of each class.

    Parameters
    ----------
    blocks : Blocks
        Samples, labels, and weights or None.
    members : BlockMembers
        The members.
    first : ValuesPass
        The result of the first pass.
    settings : CombinationSettings
        The settings.
    drawn : DrawnRows, optional
        Samples in memory, on which ν and the tolerance are selected.
    """
    classes, probabilities = members.fitted.classes, members.fitted.gives_probabilities
    drawn_values = None if drawn is None else members.by_class(drawn.X)
    codes = range(len(classes)) if len(first.by_class) > 1 else [members.positive_code]
    learned = []
    for position, (code, values) in enumerate(zip(codes, first.by_class, strict=True)):
        scale, mean_margins = values.scale(settings.scale, probabilities)
        used = members_above_chance(mean_margins)
        nu, tol, auc_by_nu = settings.nu, settings.tol, dict[float, float]()
        if drawn is not None and drawn_values is not None:
            rows = drawn.against_rest(code)
            raw, positive = drawn_values[position][1][rows], drawn.codes[rows] == code
            weight = drawn.weight[rows] / drawn.weight[rows].max()
            tuning = TuningSet(raw, probabilities, positive, weight)
            nu, auc_by_nu = choose_nu(tuning, settings)
            fractions = _drawn_fractions(positive, first.counts, code)
            tol = choose_tol(scale(raw)[:, used], positive, weight, nu, settings, fractions)
        read = ScaledValues(members, position, scale, used)
        reader = ScoreReader(_CLASSIFIER, read, classes[code])
        passes = Passes.over(blocks, len(used))
        scores_pass = passes.first(reader)
        both = scores_pass.by_class[True], scores_pass.by_class[False]
        search = settings.search(float(nu), float(tol))
        result = maximize_block_margin(passes, reader, scores_pass, both, search)
        warn_not_converged(_CLASSIFIER, result, search.tol, "raise tol", stacklevel=5)
        learned.append((scale, result, auc_by_nu))
    weighted = [(scale, result.weights) for scale, result, _ in learned]
    last: list[CombinedScores] = blocks.reduce(
        combine_block, merge_combined, members, weighted, numbered=True
    )
    return [
        Combination(
            scale,
            result,
            *combined.threshold(settings.calibrate),
            CrucialPairs(*(rows.parts[0] for rows in combined.drawn)),
            float(combined.lowest_positive - combined.highest_negative),
            auc_by_nu,
        )
        for (scale, result, auc_by_nu), combined in zip(learned, last, strict=True)
    ]


def _drawn_fractions(positive: Flags, counts: Floats, code: int) -> tuple[float, float]:
    """Return the fractions of a class and of the others that were drawn."""
    own = counts[code]
    return float(positive.sum() / own), float((~positive).sum() / (counts.sum() - own))


# The members' values


@dataclass(frozen=True, eq=False)
class BlockMembers:
    """The trained members, as they are sent to the blocks.

    Attributes
    ----------
    fitted : FittedMembers
        The members.
    positive_code : int
        The positive class, of two.
    unknown : ndarray of bool
        The values that a member with decision values does not have, for classes unknown to it.
    n_jobs : int, optional
        The number of members that predict in parallel.
    """

    fitted: FittedMembers
    positive_code: int
    unknown: Flags
    n_jobs: int | None

    @classmethod
    def of(cls, committee: RankMarginClassifier) -> BlockMembers:
        """Return the members of a committee."""
        fitted = fitted_members(committee)
        unknown = [
            ~np.isin(fitted.classes, fitted_classes(name, member))
            if hasattr(member, "decision_function") and not hasattr(member, "predict_proba")
            else np.zeros(len(fitted.classes), dtype=bool)
            for name, member in zip(fitted.names, fitted.members, strict=True)
        ]
        flags = np.array(unknown)
        flags = flags if len(fitted.classes) > 2 else flags[:, -1]
        return cls(fitted, find_positive_code(committee), flags, committee.n_jobs)

    def by_class(self, X: Any) -> list[tuple[int, Floats]]:
        """Return codes of classes, with the members' values for each."""
        # In memory an unknown value is replaced by the smallest of all samples.
        raw = np.where(self.unknown, -1.0, self.fitted.raw(X, self.n_jobs))
        return values_by_class(raw, self.positive_code)


@dataclass(frozen=True, eq=False)
class ScaledValues:
    """Reads a block: the members' scores for a class on their scale, 0 for members not used."""

    members: BlockMembers
    position: int
    scale: LinearScale | RankScale
    used: Flags

    def __call__(self, _owner: str, X: Any) -> Floats:
        """Return scores of shape (n, K)."""
        return np.where(self.used, self.scale(self.members.by_class(X)[self.position][1]), 0.0)


@dataclass(frozen=True, eq=False)
class ValueSummary:
    """Summary of the members' values for a class, in their own units.

    Attributes
    ----------
    total : ndarray of shape (2,)
        The weight of the other classes, and of the class.
    mean, square : ndarray of shape (2, K)
        Means of both, and weighted sums of squares around them, of log-odds for the scale "logit".
    low, high : ndarray of shape (K,)
        The range of the values.
    summaries : tuple of SortedSummary
        The values of each member, for the scale "rank".
    """

    total: Floats
    mean: Floats
    square: Floats
    low: Floats
    high: Floats
    summaries: tuple[SortedSummary, ...]

    @classmethod
    def of(cls, raw: Floats, log_odds: Flags, masses: Floats, ranks: bool) -> ValueSummary:
        """Summarize a block, with weights in two columns: of the others, and of the class."""
        values, total = replace_by_log_odds(raw, log_odds), masses.sum(axis=0)
        safe = np.where(total > 0, total, 1.0)[:, None]
        mean = masses.T @ values / safe
        square = np.array([masses[:, k] @ (values - mean[k]) ** 2 for k in range(2)])
        summaries = tuple(SortedSummary.of(column, masses) for column in raw.T) if ranks else ()
        return cls(total, mean, square, raw.min(axis=0), raw.max(axis=0), summaries)

    @classmethod
    def merged(cls, parts: list[ValueSummary]) -> ValueSummary:
        """Merge the summaries of several blocks."""
        totals, means = (
            np.array([part.total for part in parts]),
            np.array([part.mean for part in parts]),
        )
        total = totals.sum(axis=0)
        safe = np.where(total > 0, total, 1.0)[:, None]
        mean = (totals[:, :, None] * means).sum(axis=0) / safe
        square = np.sum([part.square for part in parts], axis=0)
        square = square + (totals[:, :, None] * (means - mean) ** 2).sum(axis=0)
        by_member = zip(*(part.summaries for part in parts), strict=True)
        return cls(
            total,
            mean,
            square,
            np.min([part.low for part in parts], axis=0),
            np.max([part.high for part in parts], axis=0),
            tuple(SortedSummary.merged(list(own)) for own in by_member),
        )

    def scale(self, name: str, probabilities: Flags) -> tuple[LinearScale | RankScale, Floats]:
        """Return the scale, and the members' mean margins on it."""
        if name == "rank":
            ranks = RankScale.of((one.values, one.masses.sum(1)) for one in self.summaries)
            margins = [
                np.interp(one.values, knots, own) @ (one.masses / one.total) @ [-1.0, 1.0]
                for one, knots, own in zip(self.summaries, ranks.knots, ranks.ranks, strict=True)
            ]
            return ranks, np.array(margins)
        if name == "logit":
            centre = self.mean.mean(axis=0)
            around = self.square + self.total[:, None] * (self.mean - centre) ** 2
            variance = around.sum(axis=0) / self.total.sum()
            means = self.mean[1], self.mean[0]
            linear = logit_scale(self.low, self.high, probabilities, means, variance)
        else:
            linear = range_scale(name, self.low, self.high, probabilities)
        return linear, linear.slope * (self.mean[1] - self.mean[0])


@dataclass(frozen=True, eq=False)
class ValuesPass:
    """The result of the first pass.

    Attributes
    ----------
    weights : tuple of float
        The range of the sample weights.
    mass, counts : ndarray of shape (n_classes,)
        The weight of each class, and its number of samples with weight.
    by_class : list of ValueSummary
        The members' values for each class; empty for blocks without weight.
    """

    weights: tuple[float, float]
    mass: Floats
    counts: Floats
    by_class: list[ValueSummary]

    @classmethod
    def merged(cls, parts: list[ValuesPass]) -> ValuesPass:
        """Merge the results of several blocks."""
        low, high = zip(*(part.weights for part in parts), strict=True)
        present = [part.by_class for part in parts if part.by_class]
        return cls(
            (float(np.min(low)), float(np.max(high))),
            np.sum([part.mass for part in parts], axis=0),
            np.sum([part.counts for part in parts], axis=0),
            [ValueSummary.merged(list(own)) for own in zip(*present, strict=True)],
        )


def summarize_values(X: Any, y: Any, weight: Any, members: BlockMembers, scale: str) -> ValuesPass:
    """Return the part of the first pass for one block."""
    classes = members.fitted.classes
    codes, own = _codes_and_weights(y, weight, classes)
    used = own > 0
    mass: Floats = np.bincount(codes[used], own[used], len(classes)).astype(np.float64)
    counts: Floats = np.bincount(codes[used], minlength=len(classes)).astype(np.float64)
    by_class = []
    if used.any():
        log_odds = members.fitted.gives_probabilities & (scale == "logit")
        for code, raw in members.by_class(X):
            masses = np.where((codes == code)[:, None] == [False, True], own[:, None], 0.0)[used]
            by_class.append(ValueSummary.of(raw[used], log_odds, masses, scale == "rank"))
    return ValuesPass((float(own.min()), float(own.max())), mass, counts, by_class)


def _codes_and_weights(y: Any, weight: Any, classes: NDArray[Any]) -> tuple[Ints, Floats]:
    """Return the classes of a block's rows as codes, and the rows' weights."""
    codes = np.asarray(_labels.encode(y, classes, f"{_CLASSIFIER}, y"), dtype=np.int64)
    own = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=np.float64)
    return codes, own


# The combined scores


@dataclass(frozen=True, eq=False)
class CombinedScores:
    """Combined scores for a class.

    Attributes
    ----------
    summary : SortedSummary
        The sorted scores, with the weights of the class and of the others.
    mean, square : float
        Their mean, and the sum of squares around it.
    lowest_positive, highest_negative : float
        The scores of the worst pair.
    drawn : tuple of KeyedRows
        The scores of rows drawn from the class and from the others.
    """

    summary: SortedSummary
    mean: float
    square: float
    lowest_positive: float
    highest_negative: float
    drawn: tuple[KeyedRows, KeyedRows]

    @classmethod
    def of(cls, scores: Floats, weight: Floats, positive: Flags, keys: Floats) -> CombinedScores:
        """Summarize a block with at least one row."""
        masses = np.where(positive[:, None] == [True, False], weight[:, None], 0.0)
        positives, negatives = (
            KeyedRows(keys[own], (scores[own],)).largest(MAX_DRAWN) for own in (positive, ~positive)
        )
        return cls(
            SortedSummary.of(scores, masses),
            float(scores.mean()),
            float(((scores - scores.mean()) ** 2).sum()),
            scores[positive].min(initial=np.inf),
            scores[~positive].max(initial=-np.inf),
            (positives, negatives),
        )

    @classmethod
    def merged(cls, parts: list[CombinedScores]) -> CombinedScores:
        """Merge the summaries of several blocks."""
        n = np.array([part.summary.n for part in parts])
        means = np.array([part.mean for part in parts])
        mean = float(n @ means / n.sum())
        keep = KeepLargest(MAX_DRAWN)
        positives, negatives = (keep([part.drawn[k] for part in parts]) for k in range(2))
        return cls(
            SortedSummary.merged([part.summary for part in parts]),
            mean,
            float(sum(part.square for part in parts) + n @ (means - mean) ** 2),
            min(part.lowest_positive for part in parts),
            max(part.highest_negative for part in parts),
            (positives, negatives),
        )

    def threshold(self, calibrate: bool) -> tuple[float, float]:
        """Return slope and threshold."""
        u, v = self.summary.masses.T
        if not calibrate:
            return 1.0, balanced_threshold(self.summary.values, u / u.sum(), v / v.sum())
        n = self.summary.n
        std = float(np.sqrt(self.square / n))
        return fit_sigmoid(self.summary.values, u, v, n, self.mean, std)


def combine_block(
    number: int, X: Any, y: Any, weight: Any, members: BlockMembers, weighted: list[Any]
) -> list[CombinedScores] | None:
    """Combine the scores of a block, for each class; None if no row has weight."""
    codes, own = _codes_and_weights(y, weight, members.fitted.classes)
    used = own > 0
    if not used.any():
        return None
    keys = random_keys(FOR_MARGINS, number, len(codes))[used]
    return [
        CombinedScores.of((scale(raw) @ weights)[used], own[used], (codes == code)[used], keys)
        for (code, raw), (scale, weights) in zip(members.by_class(X), weighted, strict=True)
    ]


def merge_combined(parts: list[list[CombinedScores]]) -> list[CombinedScores]:
    """Merge the combined scores of several blocks."""
    return [CombinedScores.merged(list(own)) for own in zip(*parts, strict=True)]


# Rows drawn into memory. `margrave.scale.sample` draws the rows on which members are trained, so
# these use random numbers of their own.


def random_keys(stream: int, number: int, n: int) -> Floats:
    """Return a random number for each row of a block; rows with the largest are drawn."""
    return np.random.default_rng([0, number, stream]).random(n)


def max_per_class(n_classes: int) -> int:
    """Return the number of rows to draw from each class."""
    return max(MAX_DRAWN // max(n_classes, 2), MIN_DRAWN_PER_CLASS)


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Rows with weight: in each class those with the largest keys, in their order."""

    X: Any
    codes: Ints
    weight: Floats
    keys: Floats
    limit: int

    def limit_per_class(self) -> DrawnRows:
        """Keep at most `limit` rows of each class."""
        kept = np.zeros(len(self.codes), dtype=bool)
        for code in np.unique(self.codes):
            own = np.flatnonzero(self.codes == code)
            kept[own[largest_keys(self.keys[own], self.limit)]] = True
        return self if kept.all() else self.rows(np.flatnonzero(kept))

    def rows(self, at: Ints) -> DrawnRows:
        """Return some of the rows."""
        return DrawnRows(
            select_rows(self.X, at), self.codes[at], self.weight[at], self.keys[at], self.limit
        )

    def against_rest(self, code: int) -> Ints:
        """Return the rows of a class, and at most `limit` of the others with equal probability."""
        own = self.codes == code
        rest = np.flatnonzero(~own)
        return np.sort(
            np.append(np.flatnonzero(own), rest[largest_keys(self.keys[rest], self.limit)])
        )

    @classmethod
    def merged(cls, parts: list[DrawnRows]) -> DrawnRows:
        """Merge the rows of several blocks."""
        together = cls(
            concatenate([part.X for part in parts]),
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.weight for part in parts]),
            np.concatenate([part.keys for part in parts]),
            parts[0].limit,
        )
        return together.limit_per_class()


def draw_block(
    number: int, X: Any, y: Any, weight: Any, classes: NDArray[Any], limit: int
) -> DrawnRows | None:
    """Draw at most `limit` rows of each class from a block; None if no row has weight."""
    codes, own = _codes_and_weights(y, weight, classes)
    used = np.flatnonzero(own > 0)
    if not len(used):
        return None
    keys = random_keys(FOR_CHOICE, number, len(codes))
    return DrawnRows(X, codes, own, keys, limit).rows(used).limit_per_class()
