"""Competence: how far each member can be trusted near a query. Pure functions of arrays.

"Multi-classifiers", slides on selection, leaves open how a member's region is found. Here it is
found for each query q by itself, from its k nearest tuning samples x_1, ..., x_k (nearest first),
whose classes y_j are known and which no member was trained on. Member i is right or wrong at each:
``r_ij`` is 1 or 0. With weights v_j of the samples (1 unless given) the competences are

- ``ola``, overall local accuracy: Σ_j v_j r_ij / Σ_j v_j;
- ``lca``, local class accuracy: the same over the samples of the class that i gives to q, only;
- ``mla``, modified: lca with v_j divided by the distance of x_j;
- ``rank``: the weight of the samples before the first at which i is wrong;
- counts: Σ_j v_j r_ij.

Woods, Kegelmeyer and Bowyer (1997) for ola and lca; Smits (2002) for mla; Sabourin et al. (1993)
for rank; Ko, Sabourin and Britto (2008) for the uses of rank and counts as KNORA. In ola's paper
lca is over samples that i itself gives that class; we do as DESlib does, so that answers agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrave._typing import AnyFloats, AnyInts, Flags

# Two samples at the same place: as near as this.
_NEAREST = 1e-10


@dataclass(frozen=True)
class Near:
    """What is known around q queries: their k nearest tuning samples and L members there.

    Attributes
    ----------
    right : ndarray of bool, shape (q, k, L)
        Whether each member is right at each neighbour, nearest first.
    truth : ndarray of int, shape (q, k)
        The neighbours' classes.
    distance : ndarray of shape (q, k)
        How far they are.
    weight : ndarray of shape (q, k) or None
        How much they count; None for one each.
    answers : ndarray of int, shape (q, L)
        What the members say about the queries themselves; -1 for no answer.
    n_classes : int
        Number of classes.
    """

    right: Flags
    truth: AnyInts
    distance: AnyFloats
    weight: AnyFloats | None
    answers: AnyInts
    n_classes: int


def counts(near: Near) -> AnyFloats:
    """How many neighbours each member is right at, shape (q, L)."""
    return _summed(near.right, near.weight)


def ola(near: Near) -> AnyFloats:
    """The share of the neighbours each member is right at, shape (q, L)."""
    looked_at = near.right.shape[1] if near.weight is None else near.weight.sum(axis=1)[:, None]
    share: AnyFloats = counts(near) / looked_at
    return share


def lca(near: Near) -> AnyFloats:
    """The same among neighbours of the class that the member gives to the query; 0 of none."""
    return _class_accuracy(near, near.weight)


def mla(near: Near) -> AnyFloats:
    """Lca with nearer neighbours counting more: by one over their distance."""
    nearness = 1 / np.maximum(near.distance, _NEAREST)
    return _class_accuracy(near, nearness if near.weight is None else nearness * near.weight)


def rank(near: Near) -> AnyFloats:
    """How many of the nearest neighbours the member is right at before it is wrong once."""
    so_far = near.right[:, 0].copy()
    run = np.zeros(
        so_far.shape, dtype=_count_type(near.right.shape[1]) if near.weight is None else np.float64
    )
    for j in range(near.right.shape[1]):
        so_far &= near.right[:, j]
        run += so_far if near.weight is None else so_far * near.weight[:, j, None]
    return run.astype(np.float64)


def double_faults(near: Near) -> AnyFloats:
    """How often each member is wrong together with another: over neighbours, and over the others.

    The sum over pairs is one over the neighbours: a member that is wrong at x_j shares this with
    all the others that are, so L members take k L steps, not k L².
    """
    wrong = ~near.right
    together = np.maximum(wrong.sum(axis=2, dtype=np.float64) - 1, 0)
    if near.weight is not None:
        together = together * near.weight
    faults: AnyFloats = np.matmul(together[:, None, :], wrong.astype(np.float64))[:, 0]
    return faults


def _class_accuracy(near: Near, weight: AnyFloats | None) -> AnyFloats:
    same = near.truth[:, :, None] == near.answers[:, None, :]
    right = _summed(near.right & same, weight)
    return np.divide(right, _summed(same, weight), out=np.zeros_like(right), where=right > 0)


def _summed(which: Flags, weight: AnyFloats | None) -> AnyFloats:
    """The weight of the neighbours for which something holds, (q, k, L) to (q, L)."""
    if weight is None:
        small = _count_type(which.shape[1])
        count: AnyFloats = which.view(np.uint8).sum(axis=1, dtype=small).astype(np.float64)
        return count
    total: AnyFloats = np.matmul(weight[:, None, :], which.astype(np.float64))[:, 0]
    return total


def _count_type(k: int) -> type[np.unsignedinteger[Any]]:
    """The smallest type for counts up to k: sums of bytes are quick."""
    return np.uint8 if k < 256 else np.uint64
