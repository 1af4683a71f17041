"""Weights for trained classifiers that rank positives above negatives with the largest margin.

"A Linear Combination of Classifiers via Rank Margin Maximization" (Marrocco et al.), section 3,
for arrays of any size, and with the slack that its section 5 asks for: ν = 0 is the document's
linear program, ν > 0 the mean margin of the worst share ν of the crucial pairs, and ν = 1 the mean
margin of all pairs, which is linear in the weights and picks the member with the largest difference
of class means. Over the unit sphere instead of the simplex, ν = 1 is the ranker of "A Risk
Minimization Principle for a Class of Parzen Estimators" (Pelckmans et al.) on two classes.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from margrave import _labels
from margrave._dask.blocks import Blocks, is_dask
from margrave._typing import Floats
from margrave._validation import check_sample_weight
from margrave.fuse._rank_blocks import Passes, weigh_blocks
from margrave.fuse._rank_look import Reading, numbers
from margrave.fuse._rank_problem import RankMarginWeights, silent_members, weigh
from margrave.scores import Scores

_OWNER = "rank_margin_weights"


def rank_margin_weights(
    scores: Scores | ArrayLike,
    y: ArrayLike,
    nu: float = 0.0,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-4,
    max_iter: int = 200,
    *,
    positive: Any = None,
    negatives: str | None = None,
) -> RankMarginWeights:
    """Weigh classifiers so that positives are ranked above negatives with the largest margin.

    Parameters
    ----------
    scores : Scores, array-like or Dask collection of shape (n_samples, K)
        What the members say, in [-1, 1], larger for the positive class.
    y : array-like or Dask collection of shape (n_samples,)
        Labels, of two kinds unless `positive` is given.
    nu : float in [0, 1], default=0.0
        Maximise the mean margin of this share of the crucial pairs, the worst ones. 0 is the worst
        pair alone, the document's program, which one mislabelled sample decides; 1 the mean of
        all, which picks a single member.
    sample_weight : array-like or Dask collection of shape (n_samples,), optional
        How much each sample counts within its class; with ``nu=0`` it matters only whether it is
        0, unless a tie is to be settled.
    tol : float, default=1e-4
        Stop when the margin is proven to be this close to the best.
    max_iter : int, default=200
        Most rounds; ending there gives a warning, and `gap` says how far it got.
    positive : label, optional
        The positive class, the others are negative; by default the larger of two labels.
    negatives : str, optional
        ``"hardest 10%"``: only pairs with the negatives that score highest, that share of them.
        For those who can afford few false alarms, and do not care how the easy ones are ordered.

    Returns
    -------
    RankMarginWeights

    Notes
    -----
    A member that says the same of all samples gets the weight 0, with a warning: its margins are
    all 0, which beats every honest member on pairs that are hard, and ranks nothing. For the same
    reason members should be of one scale, as :class:`RankMarginClassifier` brings them to: a small
    `nu` favours whoever says little. Members with the same scores share their weight arbitrarily.

    Time is O(n K) for ``nu=0`` and a gap that is not tiny, else O(n (K + log n)) per round; rounds
    are a handful, and hardly depend on n.

    Dask arrays and data frames are gone through block by block, once a round and twice besides
    (`n_passes` of the result), and never come into memory. With ``nu=0`` the optimum is that of the
    same rows in memory. With ``nu > 0`` margins are summed up in bins of the score: `margin` is
    then a value that is reached for certain, and what bins hide is a part of `gap`: a few widths
    of a bin at most, and less than 1e-6 where the scores are spread out over [-1, 1]. `rho` is off
    by a few widths too, and `n_active` by the pairs there. A bin is at first 1e-4 wide or so, and
    1e-5 if the search needs it; with more than ten members it stays wider, to bound the memory.

    Examples
    --------
    >>> from margrave.fuse import rank_margin_weights
    >>> scores = [[0.9, 0.2], [-0.2, 0.6], [0.1, -0.7], [-0.8, 0.1]]
    >>> found = rank_margin_weights(scores, [1, 1, 0, 0])
    >>> found.weights.round(3), round(found.rho, 3)
    (array([0.471, 0.529]), 0.547)
    >>> found.active
    array([[1, 2],
           [1, 3]])
    """
    hardest = _checked_settings(nu, negatives, tol, max_iter)
    if is_dask(scores.values if isinstance(scores, Scores) else scores, y, sample_weight):
        found = _on_blocks(scores, y, nu, sample_weight, hardest, tol, max_iter, positive)
    else:
        found = _in_memory(scores, y, nu, sample_weight, hardest, tol, max_iter, positive)
    if found.gap > tol:
        warnings.warn(
            f"{_OWNER} stopped after {found.n_iter} rounds with a gap of {found.gap:.2g}, above "
            f"tol={tol:g}; raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return found


def _in_memory(
    scores: Scores | ArrayLike,
    y: ArrayLike,
    nu: float,
    sample_weight: ArrayLike | None,
    hardest: float,
    tol: float,
    max_iter: int,
    positive: Any,
) -> RankMarginWeights:
    """The weights, for arrays."""
    labels = _labels.natural(y)
    positive = _checked_positive(_labels.union([("y", labels)]), scores, positive)
    of_positives: NDArray[np.bool_] = labels == positive
    values, names = _checked_scores(scores, positive)
    if of_positives.shape != (len(values),):
        raise ValueError(_other_shape("y", len(values), of_positives.shape))
    weight = None
    if sample_weight is not None:
        weight = check_sample_weight(sample_weight, len(values), _OWNER)
    counts = [
        int(np.count_nonzero(chosen if weight is None else chosen & (weight > 0)))
        for chosen in (of_positives, ~of_positives)
    ]
    _check_both(positive, *counts)
    _check_silent(silent_members(values, weight), names)
    return weigh(values, of_positives, weight, nu, hardest, tol, max_iter)


def _on_blocks(
    scores: Any,
    y: Any,
    nu: float,
    sample_weight: Any,
    hardest: float,
    tol: float,
    max_iter: int,
    positive: Any,
) -> RankMarginWeights:
    """The weights, for Dask collections."""
    X = scores
    known = isinstance(scores, Scores)
    if known:
        positive = _checked_positive(scores.classes, scores, positive)
        X = scores.toward(positive)
    names = _checked_collections(X, y, sample_weight)
    blocks = Blocks.of(_OWNER, X, y=y, sample_weight=sample_weight)
    passes, reading = Passes.over(blocks, len(names)), Reading(_OWNER, numbers, positive)
    looked = passes.look(reading)
    label = _checked_positive(looked.classes, scores, positive)
    _check_range(looked.low, looked.high)
    check_sample_weight(looked.weights, 2, _OWNER)
    if positive is None:  # groups are by label
        sides = [looked.groups.get(one) for one in looked.classes.tolist()[::-1]]
    else:
        sides = [looked.groups.get(True), looked.groups.get(False)]
    _check_both(label, *(0 if one is None else one.n for one in sides))
    groups = [one for one in sides if one is not None]
    low = np.minimum(*(one.smallest for one in groups))
    high = np.maximum(*(one.largest for one in groups))
    _check_silent(low == high, list(scores.members) if known else names)
    both = groups[0], groups[1]
    reading = Reading(_OWNER, numbers, label)
    return weigh_blocks(passes, reading, looked, both, nu, hardest, tol, max_iter)


def _checked_collections(scores: Any, y: Any, sample_weight: Any) -> list[str]:
    """The members' names; refuse collections that do not fit, as far as that is seen from here."""
    if not is_dask(scores):
        raise TypeError(
            f"{_OWNER} needs scores as a Dask collection where y or sample_weight is one; got "
            f"{type(scores).__name__}. dask.array.from_array makes one."
        )
    if scores.ndim != 2 or scores.shape[1] == 0:
        raise ValueError(_no_table(_shape(scores)))
    n_samples = _shape(scores)[0]
    for name, given in (("y", y), ("sample_weight", sample_weight)):
        shape = None if given is None else _shape(given)
        if shape is None:
            continue
        known = not (np.isnan(n_samples) or np.isnan(shape[0]))
        if len(shape) != 1 or (known and shape[0] != n_samples):
            raise ValueError(_other_shape(name, n_samples, shape))
    return [str(name) for name in getattr(scores, "columns", range(scores.shape[1]))]


def _shape(given: Any) -> tuple[float, ...]:
    """The shape, with NaN for a number of rows that is not known."""
    own = given.shape if hasattr(given, "shape") else np.shape(given)
    return tuple(one if isinstance(one, int | float) else np.nan for one in own)


def _other_shape(name: str, n_samples: float, shape: tuple[float, ...]) -> str:
    what = "a label" if name == "y" else "a number"
    return f"{_OWNER} needs {name} with {what} for each of {n_samples} samples; got shape {shape}."


def _no_table(shape: tuple[float, ...]) -> str:
    return (
        f"{_OWNER} needs scores with a row per sample and a column per member; got shape {shape}."
    )


def _check_range(low: float, high: float) -> None:
    """Refuse scores that are not numbers in [-1, 1]."""
    if not np.isfinite(low + high):
        raise ValueError(f"{_OWNER} needs finite scores; got NaN or infinity.")
    if low < -1 or high > 1:
        raise ValueError(
            f"{_OWNER} needs scores in [-1, 1]; got {low:g} to {high:g}. "
            "Scores.from_arrays(decision=...) or (proba=...) brings them there."
        )


def _check_both(positive: Any, n_positives: int, n_negatives: int) -> None:
    """Refuse samples of one class; the numbers are of samples with a weight above 0."""
    for count, which in ((n_positives, "this"), (n_negatives, "any other")):
        if not count:
            raise ValueError(
                f"{_OWNER} needs samples of the class positive={_labels.plain(positive)!r} and of "
                f"another class; got none of {which} class. "
                "A sample with a sample_weight of 0 does not count."
            )


def _check_silent(silent: NDArray[np.bool_], names: list[str]) -> None:
    """Warn of members that say the same of all samples; refuse if all do."""
    if silent.all():
        raise ValueError(
            f"{_OWNER} needs a member that tells samples apart; each says the same of all."
        )
    if silent.any():
        told = ", ".join(name for name, one in zip(names, silent, strict=True) if one)
        warnings.warn(
            f"{_OWNER}: these members say the same of all samples and get the weight 0: {told}.",
            UserWarning,
            stacklevel=4,
        )


def _checked_settings(nu: Any, negatives: Any, tol: Any, max_iter: Any) -> float:
    """The share of the negatives that counts; refuse settings that mean nothing."""
    if not is_number(nu) or not 0 <= nu <= 1:
        raise ValueError(f"{_OWNER} needs nu in [0, 1], a share of the pairs; got {nu!r}.")
    if not is_number(tol) or not 0 < tol < np.inf:
        raise ValueError(f"{_OWNER} needs tol to be a finite number above 0; got {tol!r}.")
    if isinstance(max_iter, bool) or not isinstance(max_iter, int | np.integer) or max_iter < 1:
        raise ValueError(
            f"{_OWNER} needs max_iter to be an integer of at least 1; got {max_iter!r}."
        )
    return hardest_share(negatives, _OWNER)


def hardest_share(negatives: str | None, owner: str) -> float:
    """The share in ``"hardest 10%"``; 1 for None."""
    if negatives is None:
        return 1.0
    told = re.fullmatch(r"\s*hardest\s+(\d+(?:\.\d*)?|\.\d+)\s*%\s*", str(negatives))
    share = float(told[1]) / 100 if told else 0.0
    if not 0 < share <= 1:
        raise ValueError(
            f"{owner} needs negatives to be None or like 'hardest 10%'; got {negatives!r}."
        )
    return share


def is_number(value: Any) -> bool:
    """Whether a setting is a number; True and False are not."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _checked_scores(scores: Scores | ArrayLike, positive: Any) -> tuple[Floats, list[str]]:
    """The members' scores toward the positive class, in [-1, 1], and their names."""
    if isinstance(scores, Scores):
        return scores.toward(positive), list(scores.members)
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{_OWNER} needs scores that are numbers; got {error}.") from error
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(_no_table(values.shape))
    _check_range(float(values.min()), float(values.max()))
    names = scores.columns if hasattr(scores, "columns") else range(values.shape[1])
    return values, [str(name) for name in names]


def _checked_positive(classes: NDArray[Any], scores: Any, positive: Any) -> Any:
    """The positive label; those of y are among the classes of Scores."""
    if isinstance(scores, Scores):
        _labels.encode(classes, scores.classes, f"{_OWNER}, y")
        classes = scores.classes
    if positive is not None:
        return positive
    if len(classes) != 2:
        raise ValueError(
            f"{_OWNER} needs y with two classes, or positive=; got {len(classes)}: "
            f"{_labels.shown(classes)}."
        )
    return classes[1]
