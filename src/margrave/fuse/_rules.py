"""Votes: unanimity, majority, plurality, with a threshold and with weights.

"Multi-classifiers", fusion slides (i) to (v). Member i of L votes d_{i,k} = 1 for one class k with
weight w_i; the votes for a class are ``v_k = Σ_{i=1..L} w_i d_{i,k}`` (the slide's sum over weights
runs to c, the number of classes; it means L). With W = Σ w_i the answer is the class with most
votes, the first in ``classes_`` of equals, if

- plurality: always, or with a threshold α if ``v_k >= α W``;
- majority: if ``v_k > W / 2`` (the slide's 50 % + 1);
- unanimity: if ``v_k = W``, which is the threshold α = 1;

and otherwise the extra class ω_{c+1}: the sample is rejected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave import _labels

RULES = ("plurality", "majority", "unanimity")
# Votes are sums of a few weights: two sums that differ by less than this share of W are equal.
ROUNDING = 1e-12
_BLOCK = 20_000


def count_votes(codes: NDArray[Any], weights: NDArray[Any], n_classes: int) -> NDArray[Any]:
    """The votes v_k of each sample: sums of the weights of those who voted for k.

    Parameters
    ----------
    codes : ndarray of int, shape (n, L)
        The class each member votes for; -1 abstains.
    weights : ndarray of shape (L,)
        The members' weights; counts stay whole numbers if the weights are.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n, n_classes)
    """
    votes = np.empty((len(codes), n_classes), dtype=weights.dtype)
    equal = bool((weights == 1).all())  # then counting needs no sums
    width = n_classes + 1  # a first column takes the abstentions
    for start in range(0, len(codes), _BLOCK):
        block = codes[start : start + _BLOCK]
        rows = len(block)
        cells = (block + (np.arange(rows) * width + 1)[:, None]).ravel()
        repeated = None if equal else np.broadcast_to(weights, block.shape).ravel()
        sums = np.bincount(cells, weights=repeated, minlength=rows * width)
        votes[start : start + rows] = sums.reshape(rows, width)[:, 1:]
    return votes


def decide(
    votes: NDArray[Any], total: float, rule: str = "plurality", threshold: float | None = None
) -> NDArray[np.int64]:
    """The class each sample is given, as a code; -1 where the rule rejects it."""
    slack = ROUNDING * total
    winner = np.zeros(len(votes), dtype=np.int64)
    most = votes[:, 0].astype(np.float64)
    for code in range(1, votes.shape[1]):
        winner[votes[:, code] > most + slack] = code
        np.maximum(most, votes[:, code], out=most)
    if rule == "majority":
        enough = most > total / 2 + slack
    elif rule == "unanimity":
        enough = most >= total - slack
    else:
        enough = most >= (threshold or 0.0) * total - slack
    # Where everyone abstained there is no winner under any rule.
    return np.where(enough & (most > 0), winner, _labels.REJECTED)


@dataclass(frozen=True)
class VoteExplanation:
    """Who voted what.

    Attributes
    ----------
    members : tuple of str
        The members' names.
    weights : ndarray of shape (L,)
        The weight of each vote.
    votes : ndarray of shape (n, L)
        The label each member votes for.
    classes : ndarray of shape (C,)
        The classes.
    counts : ndarray of shape (n, C)
        Votes for each class.
    answers : ndarray of shape (n,)
        What the committee answers.
    """

    members: tuple[str, ...]
    weights: NDArray[Any]
    votes: NDArray[Any]
    classes: NDArray[Any]
    counts: NDArray[Any]
    answers: NDArray[Any]

    def __str__(self) -> str:
        return "\n".join(self.row(i) for i in range(len(self.answers)))

    def row(self, i: int) -> str:
        """One sample in a line: the answer, then each class that got votes and from whom."""
        parts = []
        for label, count in zip(self.classes, self.counts[i], strict=True):
            by = [
                name
                for name, vote in zip(self.members, self.votes[i], strict=True)
                if vote == label
            ]
            if by:
                parts.append(f"{label} {count:g} ({', '.join(by)})")
        return f"{self.answers[i]}: {'; '.join(parts) or 'no votes'}"
