"""Selection by region: the samples' space is parted, and one member answers in each part.

"Multi-classifiers", slides on selection: "the feature space is divided into K regions of
competence", each with the member that is best there. Here the regions are the leaves of a tree that
is grown on where the members err, and scores of different members are compared, so each is first
brought to calibrated log-odds (Platt's line, as :mod:`margrave.fuse` has it). In a region these are
corrected by how far the member's answers can be trusted there, and by how frequent the classes are;
the member with the least log-loss is in charge. Everything is shrunk towards what holds everywhere,
with the weight of some samples, so that no small region decides by chance.

The slides' other regions, clusters of the samples (k-means), do not know where members differ. A
committee without specialists gains nothing by regions; so they are offered only where the log-loss
is smaller than the committee's beyond chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.tree import DecisionTreeRegressor

from margrave._asking import columns_for, rows_of
from margrave.fuse._combination import _NO_SLOPE
from margrave.fuse._scales import _unbounded
from margrave.steer._combining import Mean
from margrave.steer._panel import Combine

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Flags = NDArray[np.bool_]

# Regions for each member, if there are samples for so many.
_REGIONS = 2
_LEAST_SAMPLES = 30
# What holds everywhere counts like so many samples of the region.
_EVERYWHERE = 30
# Growing regions on more samples takes longer and finds the same.
_MOST_SAMPLES = 10_000
# Values that differ less are equal, or a tie would fall to either side.
DECIMALS = 9
_ROUNDS = 50
_LARGEST_STEP = 2.0
_SAME = 1e-9


@dataclass(frozen=True)
class Leaves:
    """Regions: the leaves of a tree, numbered in the order of its nodes.

    Attributes
    ----------
    columns : list of str or of int
        The columns it looks at: their names, or their places.
    feature : ndarray of shape (n_nodes,)
        Which of these; negative for a leaf.
    threshold : ndarray of shape (n_nodes,)
        To the left where the number is not above it.
    left, right : ndarray of shape (n_nodes,)
        The nodes below.
    """

    columns: list[Any]
    feature: Codes
    threshold: Floats
    left: Codes
    right: Codes

    @property
    def is_leaf(self) -> Flags:
        """Which nodes are leaves."""
        return np.asarray(self.feature < 0)

    @property
    def n(self) -> int:
        """How many regions there are."""
        return int(self.is_leaf.sum())

    def __call__(self, X: Any) -> Codes:
        """The region of each sample."""
        if not self.columns:
            return np.zeros(X.shape[0] if hasattr(X, "shape") else len(X), dtype=np.intp)
        values = _matrix(columns_for(X, self.columns, "regions", None))
        values = values.toarray() if hasattr(values, "toarray") else values
        at, rows = np.zeros(len(values), dtype=np.intp), np.arange(len(values))
        while (inner := ~self.is_leaf[at]).any():
            node, row = at[inner], rows[inner]
            low = values[row, self.feature[node]] <= self.threshold[node]
            at[inner] = np.where(low, self.left[node], self.right[node])
        return np.asarray((np.cumsum(self.is_leaf) - 1)[at], dtype=np.intp)


@dataclass(frozen=True)
class Selected:
    """A committee of which one member answers in each region.

    Attributes
    ----------
    leaves : Leaves
        The regions.
    log_odds : ndarray of bool, shape (K,)
        Which members give probabilities.
    slope, start : ndarray of shape (K, sides)
        A member's log-odds are ``slope · value + start``; one side for two classes, else one for
        each class against the rest.
    charge : ndarray of shape (n_regions,)
        The member in charge.
    trust : ndarray of shape (n_regions,)
        What its answer adds to the log-odds toward it.
    shift : ndarray of shape (n_regions, sides)
        What is added besides.
    weights : ndarray of shape (K,)
        The share of the tuning samples that each member is in charge of.
    """

    leaves: Leaves
    log_odds: Flags
    slope: Floats
    start: Floats
    charge: Codes
    trust: Floats
    shift: Floats
    weights: Floats

    @property
    def looks(self) -> bool:
        """It looks at the samples."""
        return True

    def __call__(self, raw: Floats, X: Any = None) -> Floats:
        """Log-odds for raw values of shape (n, K) or (n, K, k), and the samples themselves."""
        region, rows = self.leaves(X), np.arange(len(raw))
        who = self.charge[region]
        values = self.slope * _values(raw, self.log_odds) + self.start
        told = values[rows, who] + self.trust[region, None] * _toward(raw)[rows, who]
        told = told + self.shift[region]
        return np.asarray(told[:, 0] if raw.ndim == 2 else told)


def regions_of(combine: Combine) -> Selected | None:
    """What selects by region in a score, if anything does."""
    if isinstance(combine, Mean):
        return regions_of(combine.first) or regions_of(combine.second)
    return combine if isinstance(combine, Selected) else None


def can_be_parted(X: Any) -> bool:
    """Whether samples are numbers, all of them there: an array, a sparse matrix or a data frame."""
    matrix = _matrix(X)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        return False
    values = matrix.data if hasattr(matrix, "tocsr") else matrix
    with np.errstate(over="ignore"):
        return bool(np.isfinite(np.asarray(values, dtype=np.float32)).all())  # as trees see them


def selected(raw: Floats, probabilities: Flags, codes: Codes, k: int, X: Any) -> Selected:
    """Find regions and who is in charge, on what members say about samples not trained on.

    Parameters
    ----------
    raw : ndarray of shape (n, K), or (n, K, k) for more than two classes
        What the members say, in their own units.
    probabilities : ndarray of bool, shape (K,)
        Which members give probabilities.
    codes : ndarray of shape (n,)
        True classes.
    k : int
        Number of classes.
    X : array, sparse matrix or data frame
        The samples; `can_be_parted`.
    """
    target = codes[:, None] == (np.array([1]) if k == 2 else np.arange(k))
    toward = _toward(raw)
    values = _values(raw, probabilities)
    slope, start = _lines(values, target)
    told = slope * values + start
    leaves = _grown(X, ((toward > 0) != target[:, None]).any(axis=2))
    region, everywhere = leaves(X), _losses(told, target).mean(axis=0)
    charge, trust = np.zeros(leaves.n, dtype=np.intp), np.zeros(leaves.n)
    shift = np.zeros((leaves.n, target.shape[1]))
    for r in range(leaves.n):
        at = region == r
        here, signs, true = told[at], toward[at], target[at]
        each = np.maximum(_added(_flat(here), _flat(signs), true.reshape(-1, 1)), 0.0)
        losses = _losses(here + each[:, None] * signs, true).sum(axis=0)
        charge[r] = best = int(np.argmin(losses + _EVERYWHERE * everywhere))
        trust[r] = each[best]
        corrected = here[:, best] + trust[r] * signs[:, best]
        shift[r] = _added(corrected, np.ones_like(corrected), true)
    weights = np.bincount(charge[region], minlength=raw.shape[1]) / len(codes)
    return Selected(leaves, probabilities, slope, start, charge, trust, shift, weights)


def _matrix(X: Any) -> Any:
    """Samples as an array or a sparse matrix; a data frame of numbers as such."""
    if hasattr(X, "dtypes") and all(getattr(one, "kind", "O") in "biuf" for one in X.dtypes):
        return X.to_numpy(dtype=np.float64)
    return X if hasattr(X, "tocsr") else np.asarray(X)


def _values(raw: Floats, log_odds: Flags) -> Floats:
    """What members say, of shape (n, K, sides); nothing of a class that one has not seen."""
    values = _unbounded(np.nan_to_num(raw), log_odds)
    return np.asarray(values[:, :, None] if raw.ndim == 2 else values)


def _toward(raw: Floats) -> Floats:
    """1 where a member's own answer is the side's class, else -1; shape (n, K, sides)."""
    said = np.round(raw, DECIMALS)
    if raw.ndim == 2:
        return np.where(said > 0, 1.0, -1.0)[:, :, None]
    answers = np.nan_to_num(said, nan=-np.inf).argmax(axis=2)
    return np.where(answers[:, :, None] == np.arange(raw.shape[2]), 1.0, -1.0)


def _lines(values: Floats, target: Flags) -> tuple[Floats, Floats]:
    """Slopes and starts of calibrated log-odds, each of shape (K, sides), by Newton's way.

    As Platt's in :mod:`margrave.fuse`, for all members at once; one that ranks no better than
    chance has no slope, and says how frequent the class is.
    """
    n_class = target.sum(axis=0)
    n_rest = len(target) - n_class
    aim = np.where(target, (n_class + 1) / (n_class + 2), 1 / (n_rest + 2))[:, None]
    centre, spread = values.mean(axis=0), values.std(axis=0)
    x = (values - centre) / np.where(spread > _SAME, spread, np.inf)
    slope = np.zeros(x.shape[1:])
    prior = np.log((n_class + 1) / (n_rest + 1)) + slope
    start = prior.copy()
    for _ in range(_ROUNDS):
        p = expit(slope * x + start)
        error, weight = p - aim, p * (1 - p)
        of_slope, of_start = _total(error, x), error.sum(axis=0)
        # With a little for a member that says nothing.
        a, b, c = _total(weight, x * x) + _SAME, _total(weight, x), weight.sum(axis=0)
        size = a * c - b * b
        steps = [(c * of_slope - b * of_start) / size, (a * of_start - b * of_slope) / size]
        slope, start = (
            was - np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
            for was, step in zip((slope, start), steps, strict=True)
        )
        if np.abs(steps).max() < _SAME:
            break
    slope, start = np.where(slope > _NO_SLOPE, slope, 0), np.where(slope > _NO_SLOPE, start, prior)
    slope /= np.where(spread > _SAME, spread, 1.0)
    return slope, start - slope * centre


def _total(one: Floats, other: Floats) -> Floats:
    """The sum of products over samples."""
    return np.asarray(np.einsum("njc,njc->jc", one, other))


def _losses(told: Floats, target: Flags) -> Floats:
    """Log-losses, shape (n, K), of log-odds of shape (n, K, sides)."""
    losses = np.logaddexp(0, np.where(target[:, None], -told, told))
    return np.asarray(losses.sum(axis=2))


def surely_better(held: Floats, other: Floats, codes: Codes) -> bool:
    """Whether log-odds have a smaller log-loss than others, by two standard errors."""
    target = codes[:, None] == (np.array([1]) if held.ndim == 1 else np.arange(held.shape[1]))
    before, after = (_losses(one.reshape(len(codes), 1, -1), target) for one in (other, held))
    gained = before - after
    return bool(gained.mean() > 2 * gained.std() / np.sqrt(len(gained)))


def _flat(told: Floats) -> Floats:
    """All sides of all samples one below the other, shape (n sides, K)."""
    return np.moveaxis(told, 1, 2).reshape(-1, told.shape[1])


def _added(told: Floats, signs: Floats, target: Flags) -> Floats:
    """What is to be added along the signs for the least log-loss, for each column; by Newton's way.

    As if there were some samples more for which nothing should be added.
    """
    found = np.zeros(told.shape[1])
    for _ in range(_ROUNDS):
        p = expit(told + found * signs)
        slope = ((p - target) * signs).sum(axis=0) + _EVERYWHERE * found / 4
        step = slope / ((p * (1 - p)).sum(axis=0) + _EVERYWHERE / 4)
        found -= np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
        if np.abs(step).max() < _SAME:
            break
    return found


def _grown(X: Any, wrong: Flags) -> Leaves:
    """Regions that differ in who is wrong there."""
    n, members = wrong.shape
    some = np.unique(np.linspace(0, n - 1, min(n, _MOST_SAMPLES)).astype(np.intp))
    tree = DecisionTreeRegressor(
        max_leaf_nodes=_REGIONS * members, min_samples_leaf=_LEAST_SAMPLES, random_state=0
    )
    tree = tree.fit(_matrix(rows_of(X, some)), wrong[some].astype(np.float64)).tree_
    used, place = np.unique(tree.feature[tree.feature >= 0], return_inverse=True)
    feature = tree.feature.astype(np.intp)
    feature[feature >= 0] = place
    names = list(X.columns) if hasattr(X, "columns") else []
    by_name = len(set(names)) == len(names) > 0 and all(isinstance(one, str) for one in names)
    columns = [names[j] if by_name else int(j) for j in used]
    return Leaves(columns, feature, tree.threshold.copy(), tree.children_left, tree.children_right)
