"""Setting a decision so that a promise holds for new samples, on samples no step has seen.

Two routes, by what is promised:

- *Order statistics*, for two classes and shares of a fixed base (``fp``, ``fn``, ``recall``,
  ``alarms``, ...): each bound allows all cuts on one side of one of the scores, at its part δ/m of
  the error probability; the cut is taken where all allow it.
- *A path that is tested*, for everything else (precision, accuracy, rejects, more than two
  classes): decisions that were fixed before, on the tuning samples, are tested one after another
  until the first fails (Learn then Test, Angelopoulos et al., 2021). A decision passes if every
  bound passes, each at the full δ: a wrong pass needs the broken bound to pass, and the first wrong
  one on the path ends it, so several bounds cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from margrave import _labels
from margrave._dask.blocks import is_dask
from margrave._extensions import load_extension
from margrave._typing import Codes, Floats
from margrave.committee import FittedMembers
from margrave.confusion import Bound, Confusion, Objective, Preference, count_predictions
from margrave.steer._certificate import Certificate, make_cells, make_guarantees
from margrave.steer._order_statistic import (
    GuaranteeError,
    forbids_rejecting,
    has_order_statistics,
    is_trivial,
    largest_allowed_count,
    one_sided_bounds,
    p_value,
    samples_needed,
    supported_rate,
)
from margrave.steer._scorer import Scorer
from margrave.steer._thresholds import Decision, Threshold, best_decision, best_rejecting_decision
from margrave.steer._tuning_data import Candidate, Rows, TuningData, encode_labels

# How much of each limit the decisions on the path use of what is allowed on the tuning samples.
_USED = tuple(np.linspace(1, 0, 21).round(3).tolist())
# How many cuts of two classes are on it.
_GRID = 101
# How many times the samples at hand are tried when saying how many would be needed.
_TIMES = (1.25, 1.5, 2, 3, 5, 7.5, 10, 20, 50, 100, 1000)


@dataclass(frozen=True)
class TightenedBounds:
    """Bounds that a judge is given in place of a preference's own."""

    all_bounds: tuple[Bound, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be promised, fixed before the certify samples are looked at.

    Attributes
    ----------
    preference : Preference
        In shares.
    classes : tuple of labels
        All classes.
    positive : label or None
        The positive one.
    decision : Decision
        As the dialog left it.
    path : tuple of Decision
        What is tested one after another, the safest first; empty for order statistics.
    prices : tuple of float
        Of the decisions on the path, on the tuning samples.
    expected : tuple of tuple of (share, share of the samples)
        For each decision and bound, what the tuning samples let expect.
    """

    preference: Preference
    classes: tuple[Any, ...]
    positive: Any
    decision: Decision
    path: tuple[Decision, ...] = ()
    costs: tuple[float, ...] = ()
    expected: tuple[Any, ...] = ()

    def matrix(self, answers: Codes, codes: Codes) -> Confusion:
        """The confusion matrix of some answers."""
        return count_predictions(answers, codes, self.classes, self.positive)


def make_plan(
    preference: Preference,
    decision: Decision,
    held: Floats,
    objective: Objective,
    n_certify: int,
    may_reject: bool,
) -> Plan:
    """What to promise, and the path if one has to be tested.

    Parameters
    ----------
    preference : Preference
        What was asked of the tuning samples.
    decision : Decision
        Where the dialog stands.
    scores : ndarray
        Scores of the tuning samples.
    objective : Objective
        Of the tuning samples.
    n_certify : int
        How many samples the promise will be tested on.
    may_reject : bool
        Whether samples may get no answer.
    """
    empty = objective.matrix(objective.codes)
    wanted = preference.in_rates(empty)
    plan = Plan(wanted, objective.classes, objective.positive, decision)
    if objective.k == 2 and not decision.rejects and has_order_statistics(wanted, empty):
        return plan
    thresholds = (
        _threshold_grid(held, objective.counts)
        if objective.k == 2
        else _offset_path(objective, wanted, held)
    )
    points = [decision, *thresholds]
    if may_reject:
        points += _rejecting_path(objective, wanted, held)
    judged = [_expected(one, held, objective, wanted) for one in points]
    p = [_expected_p(rates, wanted, n_certify) for rates, _ in judged]
    order = np.argsort(p, kind="stable")
    return replace(
        plan,
        path=tuple(points[i] for i in order),
        costs=tuple(judged[i][1] for i in order),
        expected=tuple(judged[i][0] for i in order),
    )


def _threshold_grid(held: Floats, counts: NDArray[np.int64] | None) -> list[Decision]:
    """Cuts of two classes, all over the scores; each may stand for several samples."""
    shares = np.linspace(0, 1, _GRID)
    grid = np.unique(
        np.quantile(held, shares) if counts is None else _weighted_quantiles(held, counts, shares)
    )
    return [Threshold(threshold, threshold) for threshold in grid.tolist()]


def _weighted_quantiles(held: Floats, counts: NDArray[np.int64], shares: Floats) -> Floats:
    """The scores up to which some shares of the samples are."""
    order = np.argsort(held, kind="stable")
    under = np.cumsum(counts[order])
    at = np.searchsorted(under, shares * under[-1], "left")
    found: Floats = held[order][np.minimum(at, len(order) - 1)]
    return found


def _offset_path(objective: Objective, wanted: Preference, held: Floats) -> list[Decision]:
    """Offsets of more classes that keep to a part of all limits, or of one."""
    found: list[Decision] = []
    for but in ("", *({bound.word for bound in wanted.bounds} if len(wanted.bounds) > 1 else ())):
        for used in _USED:
            strict = _tightened_objective(objective, wanted, used, but)
            found.append(best_decision(strict, held, near=found[-1] if found else None))
    return found


def _rejecting_path(objective: Objective, wanted: Preference, held: Floats) -> list[Decision]:
    """Decisions that reject: all that may be, and less."""
    found: list[Decision] = []
    for but in ("rejected", ""):
        for used in _USED:
            strict = _tightened_objective(objective, wanted, used, but)
            found.append(best_rejecting_decision(strict, held, near=found[-1] if found else None))
    return found


def _tightened_objective(
    objective: Objective, wanted: Preference, used: float, but: str = ""
) -> Objective:
    """A judge of the same samples that allows a part of each limit, but for one word."""
    bounds = [
        one if one.implied or one.word == but else _tightened(one, used)
        for one in wanted.all_bounds
    ]
    return replace(objective, preference=TightenedBounds(tuple(bounds)))


def _tightened(bound: Bound, used: float) -> Bound:
    part = type(bound.limit)(used)
    limit = bound.limit * part if bound.at_most else 1 - (1 - bound.limit) * part
    return replace(bound, limit=limit.limit_denominator(10**9))


def _expected(
    decision: Decision, held: Floats, objective: Objective, wanted: Preference
) -> tuple[tuple[tuple[float, float], ...], float]:
    """For each bound its share and base, as on the tuning samples; and the price."""
    answers = decision.predict(held)
    matrix = objective.matrix(answers)
    rates = []
    for bound in wanted.bounds:
        amount, base = (int(matrix.counts[mask].sum()) for mask in bound.cells(matrix))
        rates.append((amount / base if base else 0.0, base / matrix.n))
    found = objective.evaluate(answers)
    return tuple(rates), found.cost + 1e-6 * found.errors


def _expected_p(rates: Sequence[tuple[float, float]], wanted: Preference, n: float) -> float:
    """The largest p-value of the bounds if n samples were like the tuning samples."""
    worst = 0.0
    for (rate, base), bound in zip(rates, wanted.bounds, strict=True):
        if forbids_rejecting(bound):
            worst = max(worst, float(rate > 0))
            continue
        size = int(base * n)
        count = int(np.ceil(rate * size) if bound.at_most else np.floor(rate * size))
        worst = max(worst, float(p_value(count, size, float(bound.limit), bound.at_most)))
    return worst


@dataclass(frozen=True, eq=False)
class DecisionSet:
    """A decision that keeps a plan's promise.

    Attributes
    ----------
    decision : Decision
        Set on the certify samples.
    route : str
        "order statistics" or "tested path".
    delta : float
        Error probability of each bound.
    n_tested : int
        How many decisions were tested; one if the decision is an order statistic.
    """

    decision: Decision
    route: str
    delta: float
    n_tested: int = 1


def set_decision(plan: Plan, scores: Floats, codes: Codes, delta: float) -> DecisionSet:
    """Set the decision so that the promise holds with probability 1 − δ.

    Raises
    ------
    GuaranteeError
        If the samples cannot support it.
    """
    empty = plan.matrix(codes, codes)
    if not plan.path:
        bounds = one_sided_bounds(plan.preference, empty)
        share = delta / max(len(bounds), 1)
        return DecisionSet(
            _order_statistic_threshold(plan, bounds, scores, codes, share),
            "order statistics",
            share,
        )
    passed = 0
    for decision in plan.path:
        if _tested_p(plan, decision, scores, codes) > delta:
            break
        passed += 1
    if not passed:
        raise GuaranteeError(_too_few(plan, codes, delta), looked=True)
    best = int(np.argmin(plan.costs[:passed]))
    tested = min(passed + 1, len(plan.path))
    return DecisionSet(plan.path[best], "tested path", delta, tested)


def _tested_p(plan: Plan, decision: Decision, scores: Floats, codes: Codes) -> float:
    """The largest p-value of the bounds."""
    matrix = plan.matrix(decision.predict(scores), codes)
    worst = 0.0
    for bound in plan.preference.all_bounds:
        amount, base = (int(matrix.counts[mask].sum()) for mask in bound.cells(matrix))
        if forbids_rejecting(bound):
            worst = max(worst, float(decision.rejects))
            continue
        worst = max(worst, float(p_value(amount, base, float(bound.limit), bound.at_most)))
    return worst


def _order_statistic_threshold(
    plan: Plan, bounds: list[Any], scores: Floats, codes: Codes, delta: float
) -> Decision:
    """The cut that all bounds allow: as far as one goes, or where the dialog had it."""
    lowest, highest = -np.inf, np.inf
    for bound, rows, answer in bounds:
        known = np.sort(scores[rows[codes]])
        limit = float(bound.limit if bound.at_most else 1 - bound.limit)
        allowed = largest_allowed_count(len(known), limit, delta)
        if allowed < 0:
            raise GuaranteeError(_needs_more(bound, limit, len(known), rows, plan, delta))
        if allowed >= len(known):
            continue
        if answer == 1:  # above the cut: at most so many scores may be
            lowest = max(lowest, float(known[len(known) - allowed - 1]))
        else:  # at or below it
            highest = min(highest, float(np.nextafter(known[allowed], -np.inf)))
    if lowest > highest:
        told = " and ".join(f"'{bound}'" for bound, *_ in bounds)
        raise GuaranteeError(
            f"{told} cannot be promised together on these {len(codes)} samples: keeping one breaks "
            "the other. Allow some samples to be rejected (such as 'rejected <= 10%'), ask for "
            "less, or bring more certify samples.",
            looked=True,
        )
    tuned = plan.decision
    threshold = min(max(tuned.high, lowest), highest) if isinstance(tuned, Threshold) else lowest
    if np.isinf(highest) and np.isfinite(lowest):
        threshold = lowest
    elif np.isinf(lowest) and np.isfinite(highest):
        threshold = highest
    return Threshold(threshold, threshold)


def _needs_more(
    bound: Bound, limit: float, n: int, rows: NDArray[np.bool_], plan: Plan, delta: float
) -> str:
    """Why a bound cannot be promised, and what could be."""
    named = [repr(label) for label, there in zip(plan.classes, rows, strict=True) if there]
    of = "" if len(named) == len(plan.classes) else f" of {' or '.join(named)}"
    least = samples_needed(limit, delta)
    could = supported_rate(n, delta)
    best = f"{could if bound.at_most else 100 - could:.2f}%"
    m = len(plan.preference.bounds)
    shared = f" (it is shared by {m} promises)" if m > 1 else ""
    if least is None:
        return f"'{bound}' cannot be proven by any number of samples; {n} support {best} at best."
    return (
        f"'{bound}' at confidence {1 - delta:.10g}{shared} needs {least} samples{of} that no step "
        f"has seen; there are {n}, which support a limit of {best} at best."
    )


def _too_few(plan: Plan, codes: Codes, delta: float) -> str:
    """Why no decision on a path passed, and how many samples might do."""
    n = len(codes)
    told = f"'{plan.preference}' cannot be promised at confidence {1 - delta:.10g} on {n} samples"
    if any(_expected_p(rates, plan.preference, n) <= delta for rates in plan.expected[:1]):
        return f"{told}: by the tuning samples it could be, but these say otherwise."
    for times in _TIMES:
        if any(_expected_p(rates, plan.preference, n * times) <= delta for rates in plan.expected):
            size = int(n * times)
            return f"{told}; by the tuning samples about {size} certify samples would be needed."
    return f"{told}, and by the tuning samples no number would do: ask for less."


APART = "the classes certify in another proportion than they have in the data"
"""How a note begins that speaks of the certify samples, and so not of others."""
_DIGITS = 6  # what does not depend on the company samples are in


def check_confidence(confidence: Any, owner: str) -> None:
    """Refuse what is no confidence."""
    number = isinstance(confidence, int | float | np.floating) and not isinstance(confidence, bool)
    if not number or not 0 < confidence < 1:
        raise ValueError(f"{owner} needs confidence to be a number in (0, 1); got {confidence!r}.")


def fingerprint(said: Floats, codes: Codes) -> str:
    """What tells samples from others, whatever their order: what is said about them."""
    rows = np.round(np.column_stack([said.reshape(len(codes), -1), codes]), _DIGITS)
    return str(joblib.hash(rows[np.lexsort(rows.T)]))


def issue_certificate(
    plan: Plan,
    scores: Floats,
    codes: Codes,
    *,
    requested: str,
    strategy: str,
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
    requested, strategy, tuning, number, notes, renews, start
        For the record.
    confidence, delta : float
        What is stated, and what may be spent.
    """
    check_confidence(confidence, "SteeredClassifier")
    sizes = np.bincount(codes, minlength=len(plan.classes))
    if not sizes.all():
        raise GuaranteeError(
            "A promise needs certify samples of every class; there are none of "
            f"{_labels.plain(plan.classes[int(np.argmin(sizes))])!r}."
        )
    if all(is_trivial(float(one.limit), one.at_most) for one in plan.preference.bounds):
        raise GuaranteeError(f"'{plan.preference}' promises nothing: no model could break it.")
    found = set_decision(plan, scores, codes, delta)
    matrix = plan.matrix(found.decision.predict(scores), codes)
    record = Certificate(
        preference=str(plan.preference),
        requested=requested,
        confidence=float(confidence),
        delta=float(delta),
        number=number,
        route=found.route,
        strategy=strategy,
        guarantees=make_guarantees(plan.preference, matrix, found.delta),
        confusion=matrix,
        cells=make_cells(matrix, 1 - (1 - confidence) / found.n_tested),
        tuning=tuning,
        issued=date.today().isoformat(),
        samples=fingerprint(scores, codes),
        notes=notes,
        renews=renews,
        start=start,
    )
    return found.decision, record


def renew_certificate(
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
        scores, codes = load_extension("dask").draw_rows(scores, y, classes, owner)
    else:
        y = y.compute() if is_dask(y) else y
        check_consistent_length(scores, y)
        codes = _labels.encode(y, classes, f"{owner}: y")
    if fingerprint(scores, codes) == before.samples:
        raise GuaranteeError(
            "SteeredClassifier.recertify needs samples that no step has seen; the promise was set "
            "on these."
        )
    return issue_certificate(
        plan,
        scores,
        codes,
        requested=before.requested,
        strategy=before.strategy,
        tuning=before.tuning,
        confidence=confidence,
        delta=1 - confidence,
        number=1,
        notes=tuple(note for note in before.notes if not note.startswith(APART)),
        renews=before.renews or before.issued,
    )


@dataclass(frozen=True, eq=False)
class CertificationSet:
    """Samples that no step has seen, as the members see them.

    Attributes
    ----------
    X : Rows
        The samples.
    codes : ndarray
        Their classes.
    name : str
        What tells them from other samples.
    at : ndarray or None
        Their positions in the table that the dialog began with; None if they are not from it.
    """

    X: Rows
    codes: Codes
    name: str
    at: Codes | None = None

    @classmethod
    def of(
        cls, X: Any, codes: Codes, committee: FittedMembers, at: Codes | None = None
    ) -> CertificationSet:
        """The part, named by what a panel says about its samples."""
        return cls(Rows(X), codes, fingerprint(committee.raw(X), codes), at)


def make_certification_set(
    X: Any, y: ArrayLike, committee: FittedMembers, owner: str
) -> CertificationSet:
    """Certify samples that a user brings."""
    codes = encode_labels(X, y, committee.classes, owner)
    return CertificationSet.of(committee.encode(X), codes, committee)


@dataclass(frozen=True, eq=False)
class Certified:
    """What a certified model is made of.

    Attributes
    ----------
    scorer : Scorer
        Of new samples.
    decision : Decision
        Set on the certify samples.
    plan : Plan
        What is promised.
    certificate : Certificate
        The record.
    """

    scorer: Scorer
    decision: Decision
    plan: Plan
    certificate: Certificate


def certify(
    wanted: Preference,
    candidate: Candidate,
    start: Candidate,
    data: TuningData,
    part: CertificationSet,
    *,
    confidence: float,
    delta: float,
    number: int = 1,
    notes: tuple[str, ...] = (),
) -> Certified:
    """Set the decision of an option so that a promise holds, on samples that no step has seen.

    Parameters
    ----------
    wanted : Preference
        What to promise.
    candidate, start : Candidate
        What is certified, and what the dialog began with.
    data : TuningData
        The tuning samples.
    part : CertifyPart
        The certify samples.
    confidence, delta, number, notes
        As in :func:`issue_certificate`.
    """
    if overlaps_tuning_set(data, part):
        raise GuaranteeError(
            "Dialog.accept needs samples that no step has seen; these are tuning samples."
        )
    objective = data.objective(wanted)
    plan = make_plan(
        wanted,
        candidate.decision,
        candidate.scores,
        objective,
        len(part.codes),
        wanted.allows_rejecting,
    )
    scores, at_start = (one.scorer.score_encoded(part.X.X) for one in (candidate, start))
    decision, certificate = issue_certificate(
        plan,
        scores,
        part.codes,
        requested=str(wanted),
        strategy=candidate.strategy,
        tuning=data.matrix(candidate.predictions),
        confidence=confidence,
        delta=delta,
        number=number,
        notes=notes,
        start=plan.matrix(start.decision.predict(at_start), part.codes),
    )
    scorer = replace(candidate.scorer, committee=candidate.scorer.committee.without_training_data())
    return Certified(scorer, decision, plan, certificate)


def describe_support(codes: Codes, classes: tuple[Any, ...], confidence: float) -> str:
    """What samples of these classes can support."""
    sizes = np.bincount(codes, minlength=len(classes)).tolist()
    lines = [f"{sum(sizes)} samples are set aside. At confidence {confidence:.9g} they support"]
    for label, n in zip(classes, sizes, strict=True):
        rate = supported_rate(n, 1 - confidence)
        lines.append(f"  limits of {rate:.2f}% and more on the mistakes with {label} ({n})")
    return "\n".join(lines)


# Samples are the same if they are to so many digits; so many have to be different from each other
# to tell, and so many of the new ones among them.
_SAME_DIGITS, _DISTINCT, _MOST_KNOWN = 6, 0.95, 0.5


def overlaps_tuning_set(data: TuningData, part: CertificationSet) -> bool:
    """Whether most of the certify samples are tuning samples.

    Where many tuning samples are alike, new ones may well be like them: that tells nothing.
    """
    known, new = data.X.X, part.X.X
    if not (isinstance(known, np.ndarray) and isinstance(new, np.ndarray)):
        known, new = data.raw, data.committee.raw(new)
    rows = {row.tobytes() for row in np.round(known, _SAME_DIGITS)}
    if len(rows) < _DISTINCT * len(known):
        return False
    return bool(
        np.mean([row.tobytes() in rows for row in np.round(new, _SAME_DIGITS)]) > _MOST_KNOWN
    )
