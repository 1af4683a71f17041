"""What those chosen for some queries say together: votes, or probabilities, and the answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margrave import _labels
from margrave._typing import AnyFloats, AnyInts, Flags
from margrave.select._choosing import mean_proba, votes
from margrave.select._selector import Told


@dataclass(frozen=True)
class Chosen:
    """Some queries, and who was chosen for them.

    Attributes
    ----------
    told : Told
        What all L members say about q queries.
    competence : ndarray of shape (q, L)
        How far each is trusted.
    members : ndarray of bool, shape (q, L)
        Who is asked.
    nobody : ndarray of bool, shape (q,)
        Where nobody is competent.
    neighbours : ndarray of int, shape (q, k)
        The tuning samples it was seen at.
    """

    told: Told
    competence: AnyFloats
    members: Flags
    nobody: Flags
    neighbours: AnyInts


def tally(chosen: Chosen, weighs: bool, soft: bool, one: bool, n_classes: int) -> AnyFloats:
    """Votes, or mean probabilities, for each class.

    Parameters
    ----------
    chosen : Chosen
        Who is asked.
    weighs : bool
        Whether each counts by competence; where nobody has any, all count the same.
    soft : bool
        Whether probabilities are averaged.
    one : bool
        Whether a member that is asked alone gives its probabilities, if it has any, and no vote.
    n_classes : int
        Number of classes.
    """
    weight = np.where(chosen.nobody[:, None], 1.0, chosen.competence) if weighs else None
    proba = chosen.told.proba
    if proba is not None and soft:
        return mean_proba(proba, chosen.members, weight)
    told = votes(chosen.told.codes, chosen.members, weight, n_classes)
    if proba is not None and one:
        at = np.flatnonzero(np.count_nonzero(chosen.members, axis=1) == 1)
        told[at] = proba[at, chosen.members[at].argmax(axis=1)]
    return told


def shares(told: AnyFloats) -> NDArray[np.float64]:
    """The same with a sum of one; all equal where nothing was said."""
    total = told.sum(axis=1, keepdims=True)
    return np.where(total > 0, told / np.where(total > 0, total, 1), 1 / told.shape[1])


def decided(told: AnyFloats) -> AnyInts:
    """The class with most, the first of equals; rejected where nothing was said."""
    return np.where(told.max(axis=1) > 0, told.argmax(axis=1), _labels.REJECTED)
