"""Bounds in words: "at most 5 of 279 nonspam called spam"."""

from __future__ import annotations

import numpy as np

from margrave.confusion import Confusion
from margrave.preference import Bound, decimal


def sentence(bound: Bound, matrix: Confusion) -> str:
    """A bound in words.

    Parameters
    ----------
    bound : Bound
        A share, or a count of the samples of the matrix.
    matrix : Confusion
        What it speaks of.
    """
    amount, base = bound.cells(matrix)
    limit = f"{'at most' if bound.at_most else 'at least'} "
    if bound.share:
        limit += f"{decimal(100 * bound.limit)} %"
    else:
        limit += f"{decimal(bound.limit)} of {int(matrix.counts[base].sum())}"
    k = len(matrix.classes)
    labels = [str(label) for label in matrix.classes]
    answered = [*(f"called {label}" for label in labels), "given no answer"]
    rows = np.flatnonzero(base.any(axis=1))
    everyone = "of all samples" if bound.share else "samples"
    if bound.word == "precision":
        of = int(np.flatnonzero(amount.any(axis=0))[0])
        return f"{limit} of what is called {labels[of]} is {labels[of]}"
    if bound.word in ("accuracy", "correct") and len(rows) == k:
        return f"{limit} {everyone} get a right answer"
    if bound.word == "errors" and len(rows) == k:
        return f"{limit} {everyone} get a wrong answer"
    columns = np.flatnonzero(amount.any(axis=0))
    what = " or ".join(answered[c] for c in columns)
    if len(rows) == k:
        return f"{limit} {everyone} are {what}"
    return f"{limit} {'of ' if bound.share else ''}{' or '.join(labels[r] for r in rows)} {what}"
