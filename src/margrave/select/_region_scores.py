"""Selection by region: the feature space is split into regions, and one member predicts in each.

Multi-classifiers (slides), on selection: "the feature space is divided into K regions of
competence", each with the member that is best there. Here the regions are the leaves of a tree
fitted to the members' errors. Scores of different members must be comparable, so each member is
calibrated in each region separately: a specialist's scores elsewhere say nothing about it there.
Its log-odds (or decision values over their spread) are scaled; then its predicted label adds a
trust term, and the class frequencies add a shift. The member with the smallest log-loss is
selected. All parameters are shrunk with a prior worth some samples, so that chance does not decide
in a small region.

The slides' other regions, clusters of the samples (k-means), do not depend on where members differ.
A committee without specialists gains nothing from regions; they are offered only where their
log-loss is significantly smaller than the committee's.
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

# Maximum number of regions per member, and minimum number of samples per region.
_REGIONS = 2
_MIN_SAMPLES = 30
# Weight of the priors, in samples: the loss over all regions, and parameters that change nothing.
_EVERYWHERE = 30
# More samples make the tree slower and not better; a mean loss needs fewer.
_MAX_TREE_SAMPLES = 10_000
_MAX_LOSS_SAMPLES = 1_000
# Values are rounded before they are compared: a rounding error must not break a tie.
DECIMALS = 9
_ROUNDS = 50
_LARGEST_STEP = 2.0
_HALVINGS = 20
_TINY = 1e-9
_CONVERGED = 1e-4


@dataclass(frozen=True)
class Regions:
    """Regions of the feature space: the leaves of a tree, numbered in the order of its nodes.

    Attributes
    ----------
    columns : list of str or of int
        The names or positions of the columns that the tree uses.
    feature : ndarray of shape (n_nodes,)
        The position in `columns` that a node compares; negative for a leaf.
    threshold : ndarray of shape (n_nodes,)
        A sample goes to the left if its value is at most the threshold.
    left, right : ndarray of shape (n_nodes,)
        The child nodes.
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
        """Number of regions."""
        return int(self.is_leaf.sum())

    def __call__(self, X: Any) -> Codes:
        """Return the region of each sample."""
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
    """Scores by the member selected in each region.

    Attributes
    ----------
    leaves : Regions
        The regions.
    log_odds : ndarray of bool, shape (K,)
        Which members have probabilities, whose log-odds are used.
    size : ndarray of shape (K,)
        Divisors of decision values; 1 for log-odds.
    charge : ndarray of shape (n_regions,)
        The member selected in each region.
    scale : ndarray of shape (n_regions,)
        Factor of its values.
    trust : ndarray of shape (n_regions,)
        Log-odds that its predicted label adds for this label.
    shift : ndarray of shape (n_regions, sides)
        Log-odds to add; one side for two classes, else one for each class against the rest.
    weights : ndarray of shape (K,)
        Fraction of the tuning set for which each member is selected.
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
        """Whether the scores depend on the samples themselves; always true."""
        return True

    def __call__(self, raw: Floats, X: Any = None) -> Floats:
        """Return the log-odds for raw values of shape (n, K) or (n, K, k) of the samples X."""
        region, rows = self.leaves(X), np.arange(len(raw))
        member = self.charge[region]
        values = _values(raw, self.log_odds)[rows, member] / self.size[member, None]
        odds = self.scale[region, None] * values
        odds = odds + self.trust[region, None] * _toward(raw)[rows, member] + self.shift[region]
        return np.asarray(odds[:, 0] if raw.ndim == 2 else odds)


def can_split(X: Any) -> bool:
    """Return whether X is a matrix, sparse matrix or data frame of finite numbers."""
    matrix = _matrix(X)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        return False
    values = matrix.data if hasattr(matrix, "tocsr") else matrix
    with np.errstate(over="ignore"):
        return bool(np.isfinite(np.asarray(values, dtype=np.float32)).all())  # trees use float32


def fit_region_scores(
    raw: Floats, probabilities: Flags, codes: Codes, k: int, X: Any
) -> RegionScores:
    """Fit the regions and select a member for each, on out-of-fold predictions.

    Parameters
    ----------
    raw : ndarray of shape (n, K), or (n, K, k) for more than two classes
        The members' values, in their own units.
    probabilities : ndarray of bool, shape (K,)
        Which members have probabilities.
    codes : ndarray of shape (n,)
        True classes.
    k : int
        Number of classes.
    X : array, sparse matrix or data frame
        The samples, for which `can_split` is true.
    """
    target = codes[:, None] == (np.array([1]) if k == 2 else np.arange(k))
    toward, values = _toward(raw), _values(raw, probabilities)
    spread = values.std(axis=(0, 2))
    size = np.where(probabilities | (spread < _TINY), 1.0, spread)
    values = values / size[:, None]
    leaves = _grow_regions(X, ((toward > 0) != target[:, None]).any(axis=2))
    region = leaves(X)
    few = _evenly_spaced(len(codes), _MAX_LOSS_SAMPLES)
    odds, _ = _fit_scale_and_trust(values[few], toward[few], target[few])
    overall = _losses(odds, target[few]).mean(axis=0)
    charge, (scale, trust) = np.zeros(leaves.n, dtype=np.intp), np.zeros((2, leaves.n))
    shift = np.zeros((leaves.n, target.shape[1]))
    for r in range(leaves.n):
        at = region == r
        odds, parameters = _fit_scale_and_trust(values[at], toward[at], target[at])
        losses = _losses(odds, target[at]).sum(axis=0)
        charge[r] = best = int(np.argmin(losses + _EVERYWHERE * overall))
        scale[r], trust[r] = parameters[:, best]
        shift[r] = _fit_shift(odds[:, best], target[at])
    weights = np.bincount(charge[region], minlength=raw.shape[1]) / len(codes)
    return RegionScores(leaves, probabilities, size, charge, scale, trust, shift, weights)


def _matrix(X: Any) -> Any:
    """Return X as an array or a sparse matrix; a data frame of numbers as floats."""
    if hasattr(X, "dtypes") and all(getattr(dtype, "kind", "O") in "biuf" for dtype in X.dtypes):
        return X.to_numpy(dtype=np.float64)
    return X if hasattr(X, "tocsr") else np.asarray(X)


def _values(raw: Floats, log_odds: Flags) -> Floats:
    """Return values of shape (n, K, sides); 0 for a class that a member was not fitted on."""
    values = replace_by_log_odds(np.nan_to_num(raw), log_odds)
    return np.asarray(values[:, :, None] if raw.ndim == 2 else values)


def _toward(raw: Floats) -> Floats:
    """Return 1 where a member predicts the side's class, else -1; shape (n, K, sides)."""
    rounded = np.round(raw, DECIMALS)
    if raw.ndim == 2:
        return np.where(rounded > 0, 1.0, -1.0)[:, :, None]
    predicted = np.nan_to_num(rounded, nan=-np.inf).argmax(axis=2)
    return np.where(predicted[:, :, None] == np.arange(raw.shape[2]), 1.0, -1.0)


def _fit_scale_and_trust(values: Floats, toward: Floats, target: Flags) -> tuple[Floats, Floats]:
    """Return the members' log-odds, (n, K, sides), and their scale and trust, (2, K).

    Newton's method minimises the log-loss plus a prior for scale 1 and trust 0; neither may be
    negative.
    """
    x, signs, true = _flatten(values), _flatten(toward), target.reshape(-1, 1)
    current = np.vstack([np.ones(x.shape[1]), np.zeros(x.shape[1])])
    smallest = _penalised_loss(current, x, signs, true)
    for _ in range(_ROUNDS):
        step = _newton_step(current, x, signs, true)
        length = np.ones(x.shape[1])
        for _ in range(_HALVINGS):
            trial = np.maximum(current - length * step, 0.0)
            loss = _penalised_loss(trial, x, signs, true)
            better = loss <= smallest * (1 + _TINY)
            if better.all():
                break
            length[~better] /= 2
        moved = np.abs(np.where(better, trial - current, 0.0)).max()
        current, smallest = np.where(better, trial, current), np.where(better, loss, smallest)
        if moved < _CONVERGED:
            break
    return current[0][:, None] * values + current[1][:, None] * toward, current


def _penalised_loss(parameters: Floats, x: Floats, signs: Floats, true: Flags) -> Floats:
    """Return each member's log-loss, plus the prior's penalty for scale and trust off (1, 0)."""
    scale, trust = parameters
    odds = scale * x + trust * signs
    losses = np.logaddexp(0, np.where(true, -odds, odds)).sum(axis=0)
    return np.asarray(losses + ((scale - 1) ** 2 + _EVERYWHERE * trust**2 / 4) / 2)


def _newton_step(parameters: Floats, x: Floats, signs: Floats, true: Flags) -> Floats:
    """Return the Newton step for scale and trust, (2, K); 0 for one that is held at its bound."""
    scale, trust = parameters
    p = expit(scale * x + trust * signs)
    error, weight = p - true, p * (1 - p)
    of_scale = (error * x).sum(axis=0) + scale - 1
    of_trust = (error * signs).sum(axis=0) + _EVERYWHERE * trust / 4
    held = (parameters == 0) & (np.array([of_scale, of_trust]) > 0)
    of_scale, of_trust = np.where(held[0], 0, of_scale), np.where(held[1], 0, of_trust)
    a, c = (weight * x * x).sum(axis=0) + 1, weight.sum(axis=0) + _EVERYWHERE / 4
    b = np.where(held.any(axis=0), 0.0, (weight * x * signs).sum(axis=0))
    steps = np.array([c * of_scale - b * of_trust, a * of_trust - b * of_scale])
    return np.asarray(steps / (a * c - b * b))


def _losses(odds: Floats, target: Flags) -> Floats:
    """Return log-losses of shape (n, K), of log-odds of shape (n, K, sides)."""
    losses = np.logaddexp(0, np.where(target[:, None], -odds, odds))
    return np.asarray(losses.sum(axis=2))


def significantly_better(odds: Floats, other: Floats, codes: Codes) -> bool:
    """Return whether log-odds have a smaller log-loss than others, by two standard errors."""
    target = codes[:, None] == (np.array([1]) if odds.ndim == 1 else np.arange(odds.shape[1]))
    before, after = (_losses(o.reshape(len(codes), 1, -1), target) for o in (other, odds))
    gain = before - after
    return bool(gain.mean() > 2 * gain.std() / np.sqrt(len(gain)))


def _flatten(values: Floats) -> Floats:
    """Stack the sides of all samples: shape (n * sides, K)."""
    return np.moveaxis(values, 1, 2).reshape(-1, values.shape[1])


def _fit_shift(odds: Floats, target: Flags) -> Floats:
    """Return the shift of each side: Newton's method on the log-loss, with a prior for 0."""
    shift = np.zeros(odds.shape[1])
    for _ in range(_ROUNDS):
        p = expit(odds + shift)
        slope = (p - target).sum(axis=0) + _EVERYWHERE * shift / 4
        step = slope / ((p * (1 - p)).sum(axis=0) + _EVERYWHERE / 4)
        shift -= np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
        if np.abs(step).max() < _TINY:
            break
    return shift


def _evenly_spaced(n: int, limit: int) -> Codes:
    """Return at most `limit` evenly spaced positions among n."""
    return np.unique(np.linspace(0, n - 1, min(n, limit)).astype(np.intp))


def _grow_regions(X: Any, wrong: Flags) -> Regions:
    """Fit a tree to the members' errors; its leaves are the regions."""
    n, n_members = wrong.shape
    some = _evenly_spaced(n, _MAX_TREE_SAMPLES)
    tree = DecisionTreeRegressor(
        max_leaf_nodes=_REGIONS * n_members, min_samples_leaf=_MIN_SAMPLES, random_state=0
    )
    tree = tree.fit(_matrix(select_rows(X, some)), wrong[some].astype(np.float64)).tree_
    used, place = np.unique(tree.feature[tree.feature >= 0], return_inverse=True)
    feature = tree.feature.astype(np.intp)
    feature[feature >= 0] = place
    names = list(X.columns) if hasattr(X, "columns") else []
    by_name = len(set(names)) == len(names) > 0 and all(isinstance(name, str) for name in names)
    columns = [names[j] if by_name else int(j) for j in used]
    return Regions(columns, feature, tree.threshold.copy(), tree.children_left, tree.children_right)
