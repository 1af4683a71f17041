"""How far to trust a prediction: the document's bounds, and a number from unseen samples.

Document 002, (13) to (15), with the signs of `margrave.mam._bounds`. They hold for the probability,
over new samples, of a mistake with a margin of at least ρ. That is not the probability that this
prediction is wrong. They are often larger than 1, and then there is no guarantee. Samples that
nothing has seen give usable numbers for the same event, by counting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Floats
from margrave._validation import is_number
from margrave.mam._bounds import MarginBound, check_delta, deviation, highest_rate, of_cut

Transform = Callable[[Floats], Floats]
Counted = Callable[[Floats], tuple[Floats, Floats, Floats]]

LEVELS = 20
"""Margins at which unseen mistakes are counted; each gets δ / 20."""


@dataclass(frozen=True)
class Certainty:
    """How far some predictions can be trusted.

    All numbers are probabilities over new samples. None is the probability that a given prediction
    is wrong: they are about all predictions that are about as sure.

    Attributes
    ----------
    margins : ndarray of shape (n,)
        How sure each prediction is: the distance of its score from the cut, or with more than two
        classes from the next score.
    bound : ndarray of shape (n,)
        (14) or (15): at most so large is the probability of a mistake with at least this margin. 1
        where there is no guarantee.
    held_out : ndarray of shape (n,) or None
        The same probability, bounded by counting mistakes on the held-out samples.
    held_out_error : ndarray of shape (n,) or None
        Of the predictions with a margin of at least `levels`, to which this one belongs, at most so
        large a share is wrong; counted on the held-out samples.
    levels : ndarray of shape (n,) or None
        Margins at which mistakes were counted: the last that is not above the prediction's own.
    delta : float
        The bound holds with probability 1 − delta for all predictions together, and so do the two
        held-out numbers.
    """

    margins: Floats
    bound: Floats
    held_out: Floats | None = None
    held_out_error: Floats | None = None
    levels: Floats | None = None
    delta: float = 0.05

    @property
    def vacuous(self) -> NDArray[np.bool_]:
        """Where the document's bound says nothing."""
        return self.bound >= 1

    def in_words(self) -> list[str]:
        """One line for each prediction."""
        lines = []
        for i, bound in enumerate(self.bound):
            line = "no guarantee"
            if bound < 1:
                line = f"of all predictions at most {bound:.1%} are mistakes with such a margin"
            if self.held_out_error is not None and self.levels is not None:
                line += (
                    f"; held out: at most {self.held_out_error[i]:.1%} wrong of those with a "
                    f"margin of {self.levels[i]:.3g} or more"
                )
            lines.append(line)
        return lines


@dataclass(frozen=True)
class Evidence:
    """What a classifier knows of its own training samples.

    Attributes
    ----------
    margins : ndarray of shape (n,)
        y (f(x) − cut) of the samples, y being ±1.
    complexity : float
        R of unit directions on them.
    bound : float or None
        B; None if it is not known.
    cut : float or None
        The cut; None if none was chosen.
    share : float
        The share of δ that is left after a width was chosen on these samples.
    """

    margins: Floats
    complexity: float
    bound: float | None
    cut: float | None
    share: float


def margin_bound(
    evidence: Evidence,
    delta: float,
    transform: str | Transform | None,
    bound: float | None,
    lipschitz: float | None,
    owner: str,
) -> tuple[MarginBound, Transform]:
    """(12) or (15) for a classifier, and the transform that its margins go through.

    A cut moves margins beyond B, so with one they are clipped there: a transform as any other, with
    a Lipschitz constant of 1.
    """
    check_delta(delta, owner)
    n = len(evidence.margins)
    if bound is not None and not _is_size(bound):
        raise ValueError(f"{owner} needs bound to be a finite number above 0; got {bound!r}.")
    known = evidence.bound if transform is not None or bound is None else bound
    # Beyond 2B all cuts are the same to margins that are clipped at B; those of kernels with a
    # limit of their own are kept within it.
    limit = evidence.bound if evidence.bound is not None or known is None else 2 * known
    share, left = of_cut(evidence.cut, limit, n, delta * evidence.share)
    change, size, slope = _transform(evidence, transform, known, bound, lipschitz, owner)
    mean = float(np.mean(change(evidence.margins)))
    complexity = slope * (evidence.complexity + share)
    return MarginBound(mean, complexity, deviation(size, n, left), size), change


def _transform(
    evidence: Evidence,
    transform: str | Transform | None,
    known: float | None,
    bound: float | None,
    lipschitz: float | None,
    owner: str,
) -> tuple[Transform, float, float]:
    """The function g of (15), its bound B′ and its Lipschitz constant."""
    if transform is None or (isinstance(transform, str) and transform == "clip"):
        size = known if transform is None else (1.0 if bound is None else bound)
        if size is None:
            raise ValueError(
                f"{owner} needs bound, the largest length of a sample in feature space, for a "
                "kernel that has no limit of its own; or transform='clip', which needs none."
            )
        limit = float(size)
        return (lambda z: np.clip(z, -limit, limit)), limit, 1.0
    if not callable(transform):
        raise ValueError(
            f"{owner} needs transform to be None, 'clip' or callable; got {transform!r}."
        )
    if not (_is_size(bound) and _is_size(lipschitz)) or bound is None or lipschitz is None:
        raise ValueError(
            f"{owner} needs bound and lipschitz, numbers above 0, for a transform of your own: its "
            f"largest value and its steepest slope; got {bound!r} and {lipschitz!r}."
        )
    _check_transform(transform, evidence.margins, bound, lipschitz, owner)
    return (lambda z: np.asarray(transform(z), dtype=np.float64)), float(bound), float(lipschitz)


def _is_size(value: float | None) -> bool:
    return value is not None and is_number(value) and 0 < value < np.inf


def _check_transform(
    transform: Transform, margins: Floats, bound: float, lipschitz: float, owner: str
) -> None:
    """Refuse a transform that is not what (15) asks for, as far as the margins show it."""
    places = np.unique(np.concatenate([margins, -margins, [0.0]]))
    values = np.asarray(transform(places), dtype=np.float64)
    if values.shape != places.shape or not np.isfinite(values).all():
        raise ValueError(
            f"{owner} needs a transform of your own to return a finite number for each margin."
        )
    rises = np.diff(values)
    faults = {
        "be 0 at 0": abs(float(values[places == 0.0][0])) > 1e-12,
        "never fall": bool((rises < 0).any()),
        f"stay within {bound:g}": bool((np.abs(values) > bound * (1 + 1e-12)).any()),
        f"be no steeper than {lipschitz:g}": bool(
            (rises > lipschitz * np.diff(places) * (1 + 1e-9) + 1e-12).any()
        ),
    }
    for what, broken in faults.items():
        if broken:
            raise ValueError(f"{owner} needs a transform of your own to {what}.")


def counted(levels: Floats, wrong: NDArray[np.bool_], margins: Floats, delta: float) -> Counted:
    """Two functions of ρ from unseen samples: P(mistake, margin ≥ ρ) and P(mistake | margin ≥ ρ).

    Counted at fixed levels, with δ shared among them. Between levels the first is bounded by its
    value at the next lower one, since it only gets rarer. The second is not, and is told for that
    level, which is returned too.

    Parameters
    ----------
    levels : ndarray
        Rising margins that do not depend on the unseen samples, the first of them 0.
    wrong : ndarray of bool of shape (n,)
        Which unseen samples are predicted wrong.
    margins : ndarray of shape (n,)
        How sure the predictions are.
    delta : float
        Both hold together with probability 1 − delta.
    """
    each = delta / (2 * len(levels))
    sure = margins[:, None] >= levels
    n_wrong = (sure & wrong[:, None]).sum(axis=0)
    of_all = highest_rate(n_wrong, np.full(len(levels), len(wrong)), each)
    of_sure = highest_rate(n_wrong, sure.sum(axis=0), each)

    def at(rho: Floats) -> tuple[Floats, Floats, Floats]:
        place = np.searchsorted(levels, rho, side="right") - 1
        return of_all[place], of_sure[place], levels[place]

    return at


def levels_of(margins: Any) -> Floats:
    """Where to count: 0, and quantiles of margins that are known already."""
    quantiles = np.quantile(np.abs(margins), np.linspace(0, 1, LEVELS, endpoint=False)[1:])
    return np.unique(np.concatenate([[0.0], quantiles]))
