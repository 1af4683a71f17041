"""Issuing a certificate: the decision is set on the certify samples, and what they say is kept."""

from __future__ import annotations

from datetime import date
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length

from margrave import _labels
from margrave._typing import Codes, Floats
from margrave.confusion import Confusion
from margrave.scale._blocks import is_dask
from margrave.steer._certificate import Certificate, cells, promises
from margrave.steer._decision import Decision
from margrave.steer._promise import Plan, PromiseError, settled
from margrave.steer._roles import drawn_rows
from margrave.steer._statistics import is_trivial

APART = "the classes certify in another proportion than they have in the data"
"""How a note begins that speaks of the certify samples, and so not of others."""
_DIGITS = 6  # what does not depend on the company samples are in


def check_confidence(confidence: Any, owner: str) -> None:
    """Refuse what is no confidence."""
    number = isinstance(confidence, int | float | np.floating) and not isinstance(confidence, bool)
    if not number or not 0 < confidence < 1:
        raise ValueError(f"{owner} needs confidence to be a number in (0, 1); got {confidence!r}.")


def name_of(said: Floats, codes: Codes) -> str:
    """What tells samples from others, whatever their order: what is said about them."""
    rows = np.round(np.column_stack([said.reshape(len(codes), -1), codes]), _DIGITS)
    return str(joblib.hash(rows[np.lexsort(rows.T)]))


def issued(
    plan: Plan,
    scores: Floats,
    codes: Codes,
    *,
    asked: str,
    way: str,
    tuning: Confusion,
    confidence: float,
    delta: float,
    number: int,
    notes: tuple[str, ...] = (),
    renews: str = "",
    start: Confusion | None = None,
) -> tuple[Decision, Certificate]:
    """A decision that keeps the plan's promise, and its certificate.

    Parameters
    ----------
    plan : Plan
        What to promise.
    scores, codes : ndarray
        Of the certify samples.
    asked, way, tuning, number, notes, renews, start
        For the record.
    confidence, delta : float
        What is stated, and what may be spent.
    """
    check_confidence(confidence, "SteeredClassifier")
    sizes = np.bincount(codes, minlength=len(plan.classes))
    if not sizes.all():
        raise PromiseError(
            "A promise needs certify samples of every class; there are none of "
            f"{_labels.plain(plan.classes[int(np.argmin(sizes))])!r}."
        )
    if all(is_trivial(float(one.limit), one.at_most) for one in plan.preference.bounds):
        raise PromiseError(f"'{plan.preference}' promises nothing: no model could break it.")
    found = settled(plan, scores, codes, delta)
    matrix = plan.matrix(found.decision.answers(scores), codes)
    record = Certificate(
        preference=str(plan.preference),
        asked=asked,
        confidence=float(confidence),
        delta=float(delta),
        number=number,
        route=found.route,
        way=way,
        promises=promises(plan.preference, matrix, found.delta),
        confusion=matrix,
        cells=cells(matrix, 1 - (1 - confidence) / found.n_tested),
        tuning=tuning,
        issued=date.today().isoformat(),
        samples=name_of(scores, codes),
        notes=notes,
        renews=renews,
        start=start,
    )
    return found.decision, record


def renewed(
    before: Certificate,
    plan: Plan,
    scores: Any,
    y: Any,
    classes: NDArray[Any],
    confidence: float,
) -> tuple[Decision, Certificate]:
    """A certificate set anew on fresh labels, and its decision.

    Of scores of Dask so many rows are drawn as may certify.
    """
    owner = "SteeredClassifier.recertify"
    if is_dask(scores):
        scores, codes = drawn_rows(scores, y, classes, owner)
    else:
        y = y.compute() if is_dask(y) else y
        check_consistent_length(scores, y)
        codes = _labels.encode(y, classes, f"{owner}: y")
    if name_of(scores, codes) == before.samples:
        raise PromiseError(
            "SteeredClassifier.recertify needs samples that no step has seen; the promise was set "
            "on these."
        )
    return issued(
        plan,
        scores,
        codes,
        asked=before.asked,
        way=before.way,
        tuning=before.tuning,
        confidence=confidence,
        delta=1 - confidence,
        number=1,
        notes=tuple(note for note in before.notes if not note.startswith(APART)),
        renews=before.renews or before.issued,
    )
