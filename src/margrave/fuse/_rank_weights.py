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
from margrave._weights import checked_weights
from margrave.fuse._rank_problem import RankMarginWeights, silent_members, weigh
from margrave.scores import Scores

Floats = NDArray[np.float64]

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
    scores : Scores, or array-like of shape (n_samples, K)
        What the members say, in [-1, 1], larger for the positive class.
    y : array-like of shape (n_samples,)
        Labels, of two kinds unless `positive` is given.
    nu : float in [0, 1], default=0.0
        Maximise the mean margin of this share of the crucial pairs, the worst ones. 0 is the worst
        pair alone, the document's program, which one mislabelled sample decides; 1 the mean of
        all, which picks a single member.
    sample_weight : array-like of shape (n_samples,), optional
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
    known = scores.classes if isinstance(scores, Scores) else None
    of_positives, positive = _checked_labels(y, known, positive)
    values, names = _checked_scores(scores, positive)
    if of_positives.shape != (len(values),):
        raise ValueError(
            f"{_OWNER} needs y with a label for each of {len(values)} samples; got shape "
            f"{of_positives.shape}."
        )
    weight = None
    if sample_weight is not None:
        weight = checked_weights(sample_weight, len(values), _OWNER)
    for chosen, name in ((of_positives, "positive"), (~of_positives, "negative")):
        if not (chosen if weight is None else chosen & (weight > 0)).any():
            raise ValueError(
                f"{_OWNER} needs samples of both classes with a weight above 0; got no {name} one."
            )
    silent = silent_members(values, weight)
    if silent.all():
        raise ValueError(
            f"{_OWNER} needs a member that tells samples apart; each says the same of all."
        )
    if silent.any():
        told = ", ".join(name for name, one in zip(names, silent, strict=True) if one)
        warnings.warn(
            f"{_OWNER}: these members say the same of all samples and get the weight 0: {told}.",
            UserWarning,
            stacklevel=2,
        )
    found = weigh(values, of_positives, weight, nu, hardest, tol, max_iter)
    if found.gap > tol:
        warnings.warn(
            f"{_OWNER} stopped after {found.n_iter} rounds with a gap of {found.gap:.2g}, above "
            f"tol={tol:g}; raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return found


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
        raise ValueError(
            f"{_OWNER} needs scores with a row per sample and a column per member; got shape "
            f"{values.shape}."
        )
    low, high = values.min(), values.max()
    if not np.isfinite(low + high):
        raise ValueError(f"{_OWNER} needs finite scores; got NaN or infinity.")
    if low < -1 or high > 1:
        raise ValueError(
            f"{_OWNER} needs scores in [-1, 1]; got {low:g} to {high:g}. "
            "Scores.from_arrays(decision=...) or (proba=...) brings them there."
        )
    names = scores.columns if hasattr(scores, "columns") else range(values.shape[1])
    return values, [str(name) for name in names]


def _checked_labels(
    y: ArrayLike, known: NDArray[Any] | None, positive: Any
) -> tuple[NDArray[np.bool_], Any]:
    """Which samples are positive, and the label of these; labels are among those known."""
    labels = _labels.natural(y)
    classes = _labels.union([("y", labels)])
    if known is not None:
        _labels.encode(classes, known, f"{_OWNER}, y")
        classes = known
    if positive is None:
        if len(classes) != 2:
            raise ValueError(
                f"{_OWNER} needs y with two classes, or positive=; got {len(classes)}: "
                f"{_labels.shown(classes)}."
            )
        positive = classes[1]
    chosen: NDArray[np.bool_] = labels == positive
    return chosen, positive
