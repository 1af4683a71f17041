"""Selection by region: the samples' space is parted, and one member answers in each part.

"Multi-classifiers", slides on selection: "the feature space is divided into K regions of
competence", each with the member that is best there. Here the regions are the leaves of a tree that
is grown on where the members err. Scores of different members are compared, so each is brought to
log-odds in each region by itself: what a specialist says elsewhere is no measure for it. Its
log-odds (decision values over their spread) are scaled, its answer adds as far as it can be trusted
there, and last how frequent the classes are; the member with the least log-loss is in charge.
Everything is shrunk, with the weight of some samples, so that no small region decides by chance.

The slides' other regions, clusters of the samples (k-means), do not know where members differ. A
committee without specialists gains nothing by regions; so they are offered only where the log-loss
is smaller than the committee's beyond chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.tree import DecisionTreeRegressor

from margrave._indexing import select_columns, select_rows
from margrave._typing import Codes, Flags, Floats
from margrave.scores import replace_by_log_odds

# Regions for each member, if there are samples for so many.
_REGIONS = 2
_LEAST_SAMPLES = 30
# What holds everywhere counts like so many samples of the region.
_EVERYWHERE = 30
# Growing regions on more samples takes longer and finds the same; a mean loss takes fewer.
_MOST_SAMPLES = 10_000
_FEW_SAMPLES = 1_000
# Values that differ less are equal, or a tie would fall to either side.
DECIMALS = 9
_ROUNDS = 50
_LARGEST_STEP = 2.0
_HALVINGS = 20
_SAME = 1e-9
_CLOSE = 1e-4


@dataclass(frozen=True)
class Regions:
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
        values = _matrix(select_columns(X, self.columns, "regions", None))
        values = values.toarray() if hasattr(values, "toarray") else values
        at, rows = np.zeros(len(values), dtype=np.intp), np.arange(len(values))
        while (inner := ~self.is_leaf[at]).any():
            node, row = at[inner], rows[inner]
            low = values[row, self.feature[node]] <= self.threshold[node]
            at[inner] = np.where(low, self.left[node], self.right[node])
        return np.asarray((np.cumsum(self.is_leaf) - 1)[at], dtype=np.intp)


@dataclass(frozen=True)
class RegionScores:
    """A committee of which one member answers in each region.

    Attributes
    ----------
    leaves : Leaves
        The regions.
    log_odds : ndarray of bool, shape (K,)
        Which members give probabilities.
    size : ndarray of shape (K,)
        What decision values are divided by; 1 for log-odds.
    charge : ndarray of shape (n_regions,)
        The member in charge.
    scale : ndarray of shape (n_regions,)
        What its values are multiplied by.
    trust : ndarray of shape (n_regions,)
        What its answer adds to the log-odds toward it.
    shift : ndarray of shape (n_regions, sides)
        What is added besides; one side for two classes, else one for each class against the rest.
    weights : ndarray of shape (K,)
        The share of the tuning samples that each member is in charge of.
    """

    leaves: Regions
    log_odds: Flags
    size: Floats
    charge: Codes
    scale: Floats
    trust: Floats
    shift: Floats
    weights: Floats

    @property
    def needs_samples(self) -> bool:
        """Regions are found from the samples themselves."""
        return True

    def __call__(self, raw: Floats, X: Any = None) -> Floats:
        """Log-odds for raw values of shape (n, K) or (n, K, k), and the samples themselves."""
        region, rows = self.leaves(X), np.arange(len(raw))
        who = self.charge[region]
        values = _values(raw, self.log_odds)[rows, who] / self.size[who, None]
        told = self.scale[region, None] * values
        told = told + self.trust[region, None] * _toward(raw)[rows, who] + self.shift[region]
        return np.asarray(told[:, 0] if raw.ndim == 2 else told)


def can_split(X: Any) -> bool:
    """Whether samples are numbers, all of them there: an array, a sparse matrix or a data frame."""
    matrix = _matrix(X)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        return False
    values = matrix.data if hasattr(matrix, "tocsr") else matrix
    with np.errstate(over="ignore"):
        return bool(np.isfinite(np.asarray(values, dtype=np.float32)).all())  # as trees see them


def fit_region_scores(
    raw: Floats, probabilities: Flags, codes: Codes, k: int, X: Any
) -> RegionScores:
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
        The samples; `can_split`.
    """
    target = codes[:, None] == (np.array([1]) if k == 2 else np.arange(k))
    toward, values = _toward(raw), _values(raw, probabilities)
    spread = values.std(axis=(0, 2))
    size = np.where(probabilities | (spread < _SAME), 1.0, spread)
    values = values / size[:, None]
    leaves = _grow_regions(X, ((toward > 0) != target[:, None]).any(axis=2))
    region = leaves(X)
    few = _evenly_spaced(len(codes), _FEW_SAMPLES)
    told, _ = _fit_scale_and_trust(values[few], toward[few], target[few])
    everywhere = _losses(told, target[few]).mean(axis=0)
    charge, (scale, trust) = np.zeros(leaves.n, dtype=np.intp), np.zeros((2, leaves.n))
    shift = np.zeros((leaves.n, target.shape[1]))
    for r in range(leaves.n):
        at = region == r
        told, each = _fit_scale_and_trust(values[at], toward[at], target[at])
        losses = _losses(told, target[at]).sum(axis=0)
        charge[r] = best = int(np.argmin(losses + _EVERYWHERE * everywhere))
        scale[r], trust[r] = each[:, best]
        shift[r] = _fit_shift(told[:, best], target[at])
    weights = np.bincount(charge[region], minlength=raw.shape[1]) / len(codes)
    return RegionScores(leaves, probabilities, size, charge, scale, trust, shift, weights)


def _matrix(X: Any) -> Any:
    """Samples as an array or a sparse matrix; a data frame of numbers as such."""
    if hasattr(X, "dtypes") and all(getattr(one, "kind", "O") in "biuf" for one in X.dtypes):
        return X.to_numpy(dtype=np.float64)
    return X if hasattr(X, "tocsr") else np.asarray(X)


def _values(raw: Floats, log_odds: Flags) -> Floats:
    """What members say, of shape (n, K, sides); nothing of a class that one has not seen."""
    values = replace_by_log_odds(np.nan_to_num(raw), log_odds)
    return np.asarray(values[:, :, None] if raw.ndim == 2 else values)


def _toward(raw: Floats) -> Floats:
    """1 where a member's own answer is the side's class, else -1; shape (n, K, sides)."""
    said = np.round(raw, DECIMALS)
    if raw.ndim == 2:
        return np.where(said > 0, 1.0, -1.0)[:, :, None]
    answers = np.nan_to_num(said, nan=-np.inf).argmax(axis=2)
    return np.where(answers[:, :, None] == np.arange(raw.shape[2]), 1.0, -1.0)


def _fit_scale_and_trust(values: Floats, toward: Floats, target: Flags) -> tuple[Floats, Floats]:
    """Log-odds of members, (n, K, sides), and what they are made with: scale and trust, (2, K).

    Those of the least log-loss, by Newton's way; as if there were some samples more for which
    values are right as they are, and their answers say nothing besides.
    """
    x, signs, true = _flatten(values), _flatten(toward), target.reshape(-1, 1)
    found = np.vstack([np.ones(x.shape[1]), np.zeros(x.shape[1])])
    least = _with_prior(found, x, signs, true)
    for _ in range(_ROUNDS):
        step = _step(found, x, signs, true)
        shorter = np.ones(x.shape[1])
        for _ in range(_HALVINGS):
            nearer = np.maximum(found - shorter * step, 0.0)  # who is rather wrong says nothing
            loss = _with_prior(nearer, x, signs, true)
            better = loss <= least * (1 + _SAME)
            if better.all():
                break
            shorter[~better] /= 2
        moved = np.abs(np.where(better, nearer - found, 0.0)).max()
        found, least = np.where(better, nearer, found), np.where(better, loss, least)
        if moved < _CLOSE:
            break
    return found[0][:, None] * values + found[1][:, None] * toward, found


def _with_prior(found: Floats, x: Floats, signs: Floats, true: Flags) -> Floats:
    """The log-loss of scale and trust for each member, and how far these are from (1, 0)."""
    odds = found[0] * x + found[1] * signs
    losses = np.logaddexp(0, np.where(true, -odds, odds)).sum(axis=0)
    return np.asarray(losses + ((found[0] - 1) ** 2 + _EVERYWHERE * found[1] ** 2 / 4) / 2)


def _step(found: Floats, x: Floats, signs: Floats, true: Flags) -> Floats:
    """Newton's step for scale and trust, (2, K); what would fall below 0 stays there."""
    p = expit(found[0] * x + found[1] * signs)
    error, weight = p - true, p * (1 - p)
    of_scale = (error * x).sum(axis=0) + found[0] - 1
    of_trust = (error * signs).sum(axis=0) + _EVERYWHERE * found[1] / 4
    stays = (found == 0) & (np.array([of_scale, of_trust]) > 0)
    of_scale, of_trust = np.where(stays[0], 0, of_scale), np.where(stays[1], 0, of_trust)
    a, c = (weight * x * x).sum(axis=0) + 1, weight.sum(axis=0) + _EVERYWHERE / 4
    b = np.where(stays.any(axis=0), 0.0, (weight * x * signs).sum(axis=0))
    steps = np.array([c * of_scale - b * of_trust, a * of_trust - b * of_scale])
    return np.asarray(steps / (a * c - b * b))


def _losses(told: Floats, target: Flags) -> Floats:
    """Log-losses, shape (n, K), of log-odds of shape (n, K, sides)."""
    losses = np.logaddexp(0, np.where(target[:, None], -told, told))
    return np.asarray(losses.sum(axis=2))


def significantly_better(held: Floats, other: Floats, codes: Codes) -> bool:
    """Whether log-odds have a smaller log-loss than others, by two standard errors."""
    target = codes[:, None] == (np.array([1]) if held.ndim == 1 else np.arange(held.shape[1]))
    before, after = (_losses(one.reshape(len(codes), 1, -1), target) for one in (other, held))
    gained = before - after
    return bool(gained.mean() > 2 * gained.std() / np.sqrt(len(gained)))


def _flatten(told: Floats) -> Floats:
    """All sides of all samples one below the other, shape (n sides, K)."""
    return np.moveaxis(told, 1, 2).reshape(-1, told.shape[1])


def _fit_shift(told: Floats, target: Flags) -> Floats:
    """What is to be added to each side for the least log-loss, by Newton's way.

    As if there were some samples more for which nothing should be added.
    """
    found = np.zeros(told.shape[1])
    for _ in range(_ROUNDS):
        p = expit(told + found)
        slope = (p - target).sum(axis=0) + _EVERYWHERE * found / 4
        step = slope / ((p * (1 - p)).sum(axis=0) + _EVERYWHERE / 4)
        found -= np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
        if np.abs(step).max() < _SAME:
            break
    return found


def _evenly_spaced(n: int, most: int) -> Codes:
    """Positions of so many of n samples, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))


def _grow_regions(X: Any, wrong: Flags) -> Regions:
    """Regions that differ in who is wrong there."""
    n, members = wrong.shape
    some = _evenly_spaced(n, _MOST_SAMPLES)
    tree = DecisionTreeRegressor(
        max_leaf_nodes=_REGIONS * members, min_samples_leaf=_LEAST_SAMPLES, random_state=0
    )
    tree = tree.fit(_matrix(select_rows(X, some)), wrong[some].astype(np.float64)).tree_
    used, place = np.unique(tree.feature[tree.feature >= 0], return_inverse=True)
    feature = tree.feature.astype(np.intp)
    feature[feature >= 0] = place
    names = list(X.columns) if hasattr(X, "columns") else []
    by_name = len(set(names)) == len(names) > 0 and all(isinstance(one, str) for one in names)
    columns = [names[j] if by_name else int(j) for j in used]
    return Regions(columns, feature, tree.threshold.copy(), tree.children_left, tree.children_right)
