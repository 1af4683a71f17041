"""Bounds on the errors of a margin classifier, and estimates from held-out samples.

Pelckmans et al. (2008), section 3, equations (9) to (15), with two corrections. (13) and (14)
subtract the complexity and the last term where they must be added: from (12),

    E[Yf] ≥ m − R − 3B √(2 ln(2/δ)/n),

with m the mean margin of the samples, Markov's inequality for B − Yf ≥ 0 gives

    P(Yf ≤ −ρ) ≤ (B − m + R + 3B √(2 ln(2/δ)/n)) / (B + ρ).

As printed, a richer class would have the smaller bound. The signs of (15) are right. Section 3.3
uses g(z) = (1 − z)₊ with "g(0) = 0": it is 1 there and decreases, so (15) does not allow it.

The bounds hold for the probability, over new samples, of an error with a margin of at least ρ. That
is not the probability that one prediction is wrong. They are often larger than 1, and then there is
no guarantee. Counts on held-out samples give usable numbers for the same event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta
from sklearn.utils import column_or_1d

from margrave._errors import ParameterError
from margrave._labels import encode
from margrave._typing import Codes, Flags, Floats
from margrave._validation import is_number
from margrave.mam._parameters import power_fraction

Transform = Callable[[Floats], Floats]
ErrorRates = Callable[[Floats], tuple[Floats, Floats, Floats]]

N_LEVELS = 20
"""Number of margins at which errors on held-out samples are counted; each uses δ / 20."""


@dataclass(frozen=True)
class Certainty:
    r"""Bounds on the errors of some predictions.

    All numbers are probabilities over new samples. They are not the probability that a single
    prediction is wrong: each concerns all predictions with at least the same margin.

    Attributes
    ----------
    margins : ndarray of shape (n,)
        The margin of each prediction: the distance of its score from the threshold, or with more
        than two classes from the second largest score.
    bound : ndarray of shape (n,)
        An upper bound on the probability of an error with at least this margin, by equation (14)
        or (15) of Pelckmans et al. (2008); 1 where there is no guarantee.
    held_out : ndarray of shape (n,) or None
        An upper bound on the same probability, from errors on the held-out samples.
    held_out_error : ndarray of shape (n,) or None
        An upper bound on the error rate of the predictions with a margin of at least `levels`, from
        the held-out samples.
    levels : ndarray of shape (n,) or None
        The margins at which errors were counted: the largest that is not above the prediction's.
    delta : float
        The bound holds with probability 1 − delta for all predictions together, and so do the two
        held-out numbers.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.mam import MAMClassifier
    >>> train, test = load("ripley_train"), load("ripley_test")
    >>> model = MAMClassifier().fit(train.data, train.target)
    >>> held_out = test.data[500:], test.target[500:]
    >>> certainty = model.certainty(test.data[:2], held_out=held_out)
    >>> print(*certainty.in_words(), sep="\n")
    no guarantee; held out: at most 5.9% of those with a margin of at least 0.22 are wrong
    no guarantee; held out: at most 6.2% of those with a margin of at least 0.411 are wrong
    >>> certainty.vacuous
    array([ True,  True])
    """

    margins: Floats
    bound: Floats
    held_out: Floats | None = None
    held_out_error: Floats | None = None
    levels: Floats | None = None
    delta: float = 0.05

    @property
    def vacuous(self) -> Flags:
        """Where the bound gives no guarantee."""
        return self.bound >= 1

    def in_words(self) -> list[str]:
        """Describe each prediction in one line.

        Returns
        -------
        list of str
            The bound and, if there are held-out samples, the error rate on them.
        """
        lines = []
        for i, bound in enumerate(self.bound):
            line = "no guarantee"
            if bound < 1:
                line = f"at most {bound:.1%} of all predictions are errors with such a margin"
            if self.held_out_error is not None and self.levels is not None:
                line += (
                    f"; held out: at most {self.held_out_error[i]:.1%} of those with a margin of "
                    f"at least {self.levels[i]:.3g} are wrong"
                )
            lines.append(line)
        return lines


@dataclass(frozen=True)
class TrainingMargins:
    """What the bounds need of a classifier's training samples."""

    margins: Floats  # (n,): y (f(x) − threshold) of the samples, where y is ±1
    complexity: float  # R of unit directions on them
    bound: float | None  # B; None if it is unknown
    threshold: float | None  # the threshold; None if none was selected
    fraction: float  # the fraction of δ that is left after a width was selected on these samples


@dataclass(frozen=True)
class MarginBound:
    """The terms of equations (12) to (15), for one classifier and one δ."""

    mean: float  # m, the mean margin of the samples; of transformed margins in (15)
    complexity: float  # R, or L_g R in (15)
    deviation: float  # 3B √(2 ln(2/δ)/n)
    bound: float  # B, the largest possible margin; B′ in (15)

    @property
    def expected(self) -> float:
        """The lower bound on the expected margin, equation (12)."""
        return self.mean - self.complexity - self.deviation

    def error(self, rho: Floats | float) -> Floats:
        """Compute the bound on P(Yf ≤ −ρ), equations (13) to (15); above 1 it is vacuous."""
        return np.asarray((self.bound - self.expected) / (self.bound + np.asarray(rho)))


def trace_bound(trace: float, n: int) -> float:
    """Bound the empirical Rademacher complexity (9) of unit directions by (10): 2/n √tr Ω."""
    return 2 / n * float(np.sqrt(trace))


def deviation(bound: float, n: int, delta: float) -> float:
    """Compute 3B √(2 ln(2/δ)/n), the last term of (12)."""
    return 3 * bound * float(np.sqrt(2 * np.log(2 / delta) / n))


def threshold_complexity(
    threshold: float | None, limit: float | None, n: int, delta: float
) -> tuple[float, float]:
    """Compute what a selected threshold adds to the complexity, and the δ that is left.

    Thresholds between −b and b increase the complexity by at most 2b/√n.

    Parameters
    ----------
    threshold : float or None
        The threshold; None if none was selected.
    limit : float or None
        b, if it is known in advance. Else it is the next power of two above the threshold, and each
        power 2^j uses a fraction of δ.
    n : int
        Number of samples.
    delta : float
        δ.
    """
    if threshold is None:
        return 0.0, delta
    if limit is not None:
        return 2 * limit / np.sqrt(n), delta
    power = int(np.ceil(np.log2(abs(threshold)))) if threshold else 0
    with np.errstate(over="ignore"):
        size = float(np.ldexp(1.0, power))
    return 2 * size / np.sqrt(n), delta * power_fraction(power)


def check_delta(delta: float, owner: str) -> None:
    """Raise an error for a δ that is not a probability."""
    if not (is_number(delta) and 0 < delta < 1):
        raise ParameterError.of(owner, "delta", "a number above 0 and below 1", delta)


def margin_bound(
    training: TrainingMargins,
    delta: float,
    transform: str | Transform | None,
    bound: float | None,
    lipschitz: float | None,
    owner: str,
) -> tuple[MarginBound, Transform]:
    """Compute (12) or (15) for a classifier, and the transform of its margins.

    A threshold can move margins beyond B, so they are clipped there: a transform with a Lipschitz
    constant of 1.
    """
    n = len(training.margins)
    if bound is not None and not _is_size(bound):
        raise ParameterError.of(owner, "bound", "a finite number above 0", bound)
    known = training.bound if transform is not None or bound is None else bound
    # Margins that are clipped at B do not distinguish thresholds beyond 2B; those of kernels with a
    # limit of their own are kept within it.
    limit = training.bound if training.bound is not None or known is None else 2 * known
    added, left = threshold_complexity(training.threshold, limit, n, delta * training.fraction)
    change, size, slope = _transform(training, transform, known, bound, lipschitz, owner)
    mean = float(np.mean(change(training.margins)))
    complexity = slope * (training.complexity + added)
    return MarginBound(mean, complexity, deviation(size, n, left), size), change


def _transform(
    training: TrainingMargins,
    transform: str | Transform | None,
    known: float | None,
    bound: float | None,
    lipschitz: float | None,
    owner: str,
) -> tuple[Transform, float, float]:
    """Return the function g of (15), its bound B′ and its Lipschitz constant."""
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
        raise ParameterError.of(owner, "transform", "None, 'clip' or callable", transform)
    if not (_is_size(bound) and _is_size(lipschitz)):
        raise ValueError(
            f"{owner} needs bound and lipschitz, numbers above 0, for a callable transform: its "
            f"largest value and its steepest slope; got {bound!r} and {lipschitz!r}."
        )
    _check_transform(transform, training.margins, bound, lipschitz, owner)
    return (lambda z: np.asarray(transform(z), dtype=np.float64)), float(bound), float(lipschitz)


def _is_size(value: float | None) -> TypeGuard[float]:
    return value is not None and is_number(value) and 0 < value < np.inf


def _check_transform(
    transform: Transform, margins: Floats, bound: float, lipschitz: float, owner: str
) -> None:
    """Raise an error for a transform that violates the conditions of (15) at the margins."""
    places = np.unique(np.concatenate([margins, -margins, [0.0]]))
    values = np.asarray(transform(places), dtype=np.float64)
    if values.shape != places.shape or not np.isfinite(values).all():
        raise ValueError(
            f"{owner} needs a callable transform to return a finite number for each margin."
        )
    rises = np.diff(values)
    violations = {
        "be 0 at 0": abs(float(values[places == 0.0][0])) > 1e-12,
        "never decrease": bool((rises < 0).any()),
        f"stay within {bound:g}": bool((np.abs(values) > bound * (1 + 1e-12)).any()),
        f"be no steeper than {lipschitz:g}": bool(
            (rises > lipschitz * np.diff(places) * (1 + 1e-9) + 1e-12).any()
        ),
    }
    for condition, violated in violations.items():
        if violated:
            raise ValueError(f"{owner} needs a callable transform to {condition}.")


def highest_rate(n_errors: Floats, n: Floats, delta: float) -> Floats:
    """Compute Clopper and Pearson's upper limits on rates, each with probability 1 − δ."""
    some = np.maximum(n, 1)
    highest = beta.ppf(1 - delta, n_errors + 1, np.maximum(some - n_errors, 1e-300))
    return np.where((n == 0) | (n_errors >= n), 1.0, highest)


def count_errors(levels: Floats, wrong: Flags, margins: Floats, delta: float) -> ErrorRates:
    """Bound P(error, margin ≥ ρ) and P(error | margin ≥ ρ) from held-out samples.

    Errors are counted at fixed levels, which divide δ. Between levels the value of the first at the
    next lower level is a bound, since it decreases. The second is reported for that level, which
    is returned too.

    Parameters
    ----------
    levels : ndarray
        Increasing margins that do not depend on the held-out samples, the first of them 0.
    wrong : ndarray of bool of shape (n,)
        Which held-out samples are predicted wrong.
    margins : ndarray of shape (n,)
        The margins of the predictions.
    delta : float
        Both hold together with probability 1 − delta.
    """
    each = delta / (2 * len(levels))
    certain = margins[:, None] >= levels
    n_wrong = (certain & wrong[:, None]).sum(axis=0)
    joint = highest_rate(n_wrong, np.full(len(levels), len(wrong)), each)
    conditional = highest_rate(n_wrong, certain.sum(axis=0), each)

    def rates(rho: Floats) -> tuple[Floats, Floats, Floats]:
        place = np.searchsorted(levels, rho, side="right") - 1
        return joint[place], conditional[place], levels[place]

    return rates


def held_out_scores(classifier: Any, held_out: tuple[ArrayLike, ArrayLike]) -> tuple[Floats, Codes]:
    """Return the scores of held-out samples and the codes of their labels."""
    if not isinstance(held_out, tuple | list) or len(held_out) != 2:
        raise ValueError(
            f"certainty needs held_out to be a pair (X, y); got {type(held_out).__name__}."
        )
    scores = classifier.decision_function(held_out[0])
    labels = column_or_1d(held_out[1])
    if len(labels) != len(scores):
        raise ValueError(
            "certainty needs held_out with a label for each sample; "
            f"got {len(scores)} samples and {len(labels)} labels."
        )
    return scores, encode(labels, classifier.classes_, "held_out")


def margin_levels(margins: Any) -> Floats:
    """Choose the levels: 0, and quantiles of the margins of the training samples."""
    quantiles = np.quantile(np.abs(margins), np.linspace(0, 1, N_LEVELS, endpoint=False)[1:])
    return np.unique(np.concatenate([[0.0], quantiles]))
