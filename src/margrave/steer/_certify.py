"""Certification: set a decision on the certification set so that a guarantee holds on new samples.

There are two routes:

- *Order statistics*, for two classes and rates with a fixed base (``fp``, ``fn``, ``recall``,
  ``alarms``, ...). Each of m bounds gets the part δ/m of the error probability and allows all
  thresholds on one side of one of the scores. Of the thresholds that all bounds allow, the
  decision is the one nearest to the tuned threshold.
- *A tested path*, for all other preferences (precision, accuracy, rejection, more than two
  classes). Decisions that the tuning set determined are tested one after another until the first
  one fails (Learn then Test, Angelopoulos et al., 2021). A decision passes if every bound passes
  at the full δ. The tests need no correction for several bounds, because a false guarantee needs
  the violated bound itself to pass; nor for several decisions, because the first failure ends the
  path. Of those that pass, the decision with the fewest errors on the tuning set is certified.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._errors import ParameterError
from margrave._indexing import select_rows
from margrave._messages import name_class
from margrave._typing import Codes, Floats
from margrave.committee import FittedMembers
from margrave.confusion import Bound, Confusion, Objective, Preference, count_predictions
from margrave.steer._certificate import Certificate, Use, make_cells, make_guarantees
from margrave.steer._ledger import Grant
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
from margrave.steer._row_hashes import (
    RowHashes,
    UsedRows,
    notes_on_copies,
    one_of_each,
    warn_of_near_copies,
)
from margrave.steer._scorer import Scorer
from margrave.steer._thresholds import Decision, Threshold, best_decision, best_rejecting_decision
from margrave.steer._tuning_data import Candidate, Rows, TuningData, encode_labels

# The fractions of each limit that the decisions on a path may use on the tuning set.
_FRACTIONS = tuple(np.linspace(1, 0, 21).round(3).tolist())
# The number of thresholds for two classes on a path.
_GRID = 101
# Sizes to try for a certification set that is large enough, as multiples of its present size.
_MULTIPLES = (1.25, 1.5, 2, 3, 5, 7.5, 10, 20, 50, 100, 1000)


@dataclass(frozen=True)
class TightenedBounds:
    """Stricter bounds that replace those of a preference in an objective."""

    all_bounds: tuple[Bound, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """What to guarantee and how, fixed before the certification set is used.

    Attributes
    ----------
    preference : Preference
        The preference to guarantee, in rates.
    classes : tuple of labels
        All classes.
    positive : label or None
        The positive class.
    decision : Decision
        The decision that was tuned on the tuning set.
    path : tuple of Decision
        The decisions to test one after another, the safest first; empty for order statistics.
    values : tuple of (int, int)
        The errors and the rejected samples of these decisions on the tuning set.
    expected : tuple of tuple of (float, float)
        For each of these decisions and each bound, the rate and its base as a fraction of all
        samples, on the tuning set.
    """

    preference: Preference
    classes: tuple[Any, ...]
    positive: Any
    decision: Decision
    path: tuple[Decision, ...] = ()
    values: tuple[tuple[int, int], ...] = ()
    expected: tuple[Any, ...] = ()

    def matrix(self, predictions: Codes, codes: Codes) -> Confusion:
        """Return the confusion matrix of some predictions."""
        return count_predictions(predictions, codes, self.classes, self.positive)


def make_plan(
    preference: Preference,
    decision: Decision,
    scores: Floats,
    objective: Objective,
    n_certify: int,
    may_reject: bool,
) -> Plan:
    """Choose the route, and make the path of decisions if one has to be tested.

    Parameters
    ----------
    preference : Preference
        The preference that was requested on the tuning set.
    decision : Decision
        The decision that was tuned on the tuning set.
    scores : ndarray
        Scores of the tuning set.
    objective : Objective
        The objective on the tuning set.
    n_certify : int
        Size of the certification set.
    may_reject : bool
        Whether the decision may reject samples.
    """
    empty = objective.matrix(objective.codes)
    wanted = preference.in_rates(empty)
    plan = Plan(wanted, objective.classes, objective.positive, decision)
    if _uses_order_statistics(wanted, decision, empty):
        return plan
    path = [decision]
    if objective.k == 2:
        path += _threshold_grid(scores, objective.counts)
    else:
        path += _offset_path(objective, wanted, scores)
    if may_reject:
        path += _rejecting_path(objective, wanted, scores)
    expected = [_expected_rates(point, scores, objective, wanted) for point in path]
    p = [_expected_p(rates, wanted, n_certify) for rates, _ in expected]
    order = np.argsort(p, kind="stable")
    return replace(
        plan,
        path=tuple(path[i] for i in order),
        values=tuple(expected[i][1] for i in order),
        expected=tuple(expected[i][0] for i in order),
    )


def _uses_order_statistics(wanted: Preference, decision: Decision, matrix: Confusion) -> bool:
    two = len(matrix.classes) == 2
    return two and not decision.rejects and has_order_statistics(wanted, matrix)


def _threshold_grid(scores: Floats, counts: NDArray[np.int64] | None) -> list[Decision]:
    """Return thresholds at quantiles of the scores, each of which may have a count."""
    q = np.linspace(0, 1, _GRID)
    grid = np.unique(
        np.quantile(scores, q) if counts is None else _weighted_quantiles(scores, counts, q)
    )
    return [Threshold(threshold, threshold) for threshold in grid.tolist()]


def _weighted_quantiles(scores: Floats, counts: NDArray[np.int64], q: Floats) -> Floats:
    """Return quantiles of scores that occur several times."""
    order = np.argsort(scores, kind="stable")
    under = np.cumsum(counts[order])
    at = np.searchsorted(under, q * under[-1], "left")
    quantiles: Floats = scores[order][np.minimum(at, len(order) - 1)]
    return quantiles


def _offset_path(objective: Objective, wanted: Preference, scores: Floats) -> list[Decision]:
    """Find offsets that use fractions of all limits, or of all but those of one word."""
    path: list[Decision] = []
    words = dict.fromkeys(bound.word for bound in wanted.bounds if len(wanted.bounds) > 1)
    for fixed in ("", *words):
        for fraction in _FRACTIONS:
            tightened = _tighten_objective(objective, wanted, fraction, fixed)
            path.append(best_decision(tightened, scores, near=path[-1] if path else None))
    return path


def _rejecting_path(objective: Objective, wanted: Preference, scores: Floats) -> list[Decision]:
    """Find decisions that reject as many samples as allowed, or a fraction of them."""
    path: list[Decision] = []
    for fixed in ("rejected", ""):
        for fraction in _FRACTIONS:
            tightened = _tighten_objective(objective, wanted, fraction, fixed)
            path.append(best_rejecting_decision(tightened, scores, near=path[-1] if path else None))
    return path


def _tighten_objective(
    objective: Objective, wanted: Preference, fraction: float, fixed: str
) -> Objective:
    """Return an objective that allows a fraction of each limit, except those of a fixed word."""
    bounds = [
        bound if bound.word == fixed else _tighten_bound(bound, fraction)
        for bound in wanted.all_bounds
    ]
    return replace(objective, preference=TightenedBounds(tuple(bounds)))


def _tighten_bound(bound: Bound, fraction: float) -> Bound:
    exact = type(bound.limit)(fraction)
    limit = bound.limit * exact if bound.at_most else 1 - (1 - bound.limit) * exact
    return replace(bound, limit=limit.limit_denominator(10**9))


def _expected_rates(
    decision: Decision, scores: Floats, objective: Objective, wanted: Preference
) -> tuple[tuple[tuple[float, float], ...], tuple[int, int]]:
    """Return the rate and base of each bound on the tuning set; the errors, and the rejected."""
    predictions = decision.predict(scores)
    matrix = objective.matrix(predictions)
    rates = []
    for bound in wanted.all_bounds:
        amount, base = (int(matrix.counts[mask].sum()) for mask in bound.cells(matrix))
        rates.append((amount / base if base else 0.0, base / matrix.n))
    value = objective.evaluate(predictions)
    return tuple(rates), (value.errors, value.n_rejected)


def _expected_p(rates: Sequence[tuple[float, float]], wanted: Preference, n: float) -> float:
    """Return the largest p-value of the bounds on n samples with the rates of the tuning set."""
    worst = 0.0
    for (rate, base), bound in zip(rates, wanted.all_bounds, strict=True):
        if forbids_rejecting(bound):
            worst = max(worst, float(rate > 0))
            continue
        size = int(base * n)
        count = int(np.ceil(rate * size) if bound.at_most else np.floor(rate * size))
        worst = max(worst, float(p_value(count, size, float(bound.limit), bound.at_most)))
    return worst


@dataclass(frozen=True, eq=False)
class CertifiedDecision:
    """A decision that the guarantee of a plan holds for.

    Attributes
    ----------
    decision : Decision
        The decision, set on the certification set.
    route : str
        "order statistics" or "tested path".
    delta : float
        Error probability of each bound.
    n_tested : int
        Number of decisions that were tested; 1 for order statistics.
    """

    decision: Decision
    route: str
    delta: float
    n_tested: int = 1


def set_decision(plan: Plan, scores: Floats, codes: Codes, delta: float) -> CertifiedDecision:
    """Set the decision so that the guarantee holds with probability 1 − δ.

    Raises
    ------
    GuaranteeError
        If the certification set cannot support it.
    """
    truth = plan.matrix(codes, codes)
    bounds = [] if plan.path else one_sided_bounds(plan.preference, truth)
    delta /= max(len(bounds), 1)
    _check_sizes(plan.preference, truth, delta, len(bounds))
    if not plan.path:
        threshold = _order_statistic_threshold(plan, bounds, scores, codes, delta)
        return CertifiedDecision(threshold, "order statistics", delta)
    n_passed = 0
    for decision in plan.path:
        if _measured_p(plan, decision, scores, codes) > delta:
            break
        n_passed += 1
    if not n_passed:
        raise GuaranteeError(
            _describe_failed_path(plan, codes, delta),
            code="not_supported",
            used_up=True,
            bounds=[str(bound) for bound in plan.preference.bounds],
            confidence=1 - delta,
            n=len(codes),
        )
    best = min(range(n_passed), key=plan.values.__getitem__)
    n_tested = min(n_passed + 1, len(plan.path))
    return CertifiedDecision(plan.path[best], "tested path", delta, n_tested)


def _measured_p(plan: Plan, decision: Decision, scores: Floats, codes: Codes) -> float:
    """Return the largest p-value of the bounds on the certification set."""
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
    """Return the threshold nearest to the tuned one that all bounds allow."""
    lowest, highest = -np.inf, np.inf
    for bound, rows, prediction in bounds:
        ordered = np.sort(scores[rows[codes]])
        n, limit = len(ordered), float(bound.limit if bound.at_most else 1 - bound.limit)
        allowed = largest_allowed_count(n, limit, delta)
        if allowed >= n:
            continue
        if prediction == 1:  # at most `allowed` scores above the threshold
            lowest = max(lowest, float(ordered[n - allowed - 1]))
        else:  # at most `allowed` scores at or below it
            highest = min(highest, float(np.nextafter(ordered[allowed], -np.inf)))
    if lowest > highest:
        names = " and ".join(f"'{bound}'" for bound, *_ in bounds)
        raise GuaranteeError(
            f"{names} cannot be guaranteed together on the {len(codes):,} samples of the "
            "certification set: meeting one breaks the other. Allow rejection (such as "
            "'rejected <= 10%'), request less strict limits, or use a larger certification set.",
            code="conflict",
            used_up=True,
            bounds=[str(bound) for bound, *_ in bounds],
            n=len(codes),
        )
    if not isinstance(plan.decision, Threshold):
        raise TypeError(f"Order statistics need a threshold; got {plan.decision!r}.")
    threshold = min(max(plan.decision.high, lowest), highest)
    return Threshold(threshold, threshold)


def _check_sizes(wanted: Preference, truth: Confusion, delta: float, n_guarantees: int) -> None:
    """Raise an error if no predictions for the certification set could prove some bound.

    Parameters
    ----------
    wanted : Preference
        The preference, in rates.
    truth : Confusion
        The certification set, with every sample predicted right.
    delta : float
        Error probability of each bound.
    n_guarantees : int
        The number of bounds that the error probability was divided among; 0 if it was not.
    """
    for bound in wanted.all_bounds:
        if forbids_rejecting(bound) or is_trivial(float(bound.limit), bound.at_most):
            continue
        rows = np.asarray(bound.cells(truth)[1].any(axis=1))
        n, limit = int(truth.counts[rows].sum()), float(bound.limit)
        limit = limit if bound.at_most else 1 - limit
        if largest_allowed_count(n, limit, delta) < 0:
            labels = [label for label, has in zip(truth.classes, rows, strict=True) if has]
            of = "" if rows.all() else f" of {' or '.join(map(name_class, labels))}"
            raise GuaranteeError(
                _describe_too_few(bound, limit, n, of, delta, n_guarantees),
                code="too_few_samples",
                bound=str(bound),
                confidence=1 - delta,
                n=n,
                needed=samples_needed(limit, delta),
                supported=supported_rate(n, delta) / 100,
            )


def _describe_too_few(bound: Bound, limit: float, n: int, of: str, delta: float, m: int) -> str:
    """Say how many samples a bound needs, and which limit the n samples support."""
    least = samples_needed(limit, delta)
    rate = supported_rate(n, delta)
    best = f"{rate if bound.at_most else 100 - rate:.2f}%"
    divided = f" (the error probability is divided among {m} guarantees)" if m > 1 else ""
    if least is None:
        return (
            f"'{bound}' cannot be guaranteed with any number of samples; the {n:,} samples{of} in "
            f"the certification set support a limit of {best} at best."
        )
    return (
        f"'{bound}' at confidence {1 - delta:.10g}{divided} needs {least:,} samples{of} in the "
        f"certification set; it has {n:,}, which support a limit of {best} at best."
    )


def _describe_failed_path(plan: Plan, codes: Codes, delta: float) -> str:
    """Say that no decision on a path passed, and how many samples might be enough."""
    n, wanted = len(codes), plan.preference
    failure = (
        f"'{wanted}' cannot be guaranteed at confidence {1 - delta:.10g} on the {n:,} samples of "
        "the certification set"
    )
    if any(_expected_p(rates, wanted, n) <= delta for rates in plan.expected[:1]):
        return f"{failure}: its rates do not support it, although those of the tuning set do."
    for multiple in _MULTIPLES:
        if any(_expected_p(rates, wanted, n * multiple) <= delta for rates in plan.expected):
            size = int(n * multiple)
            return (
                f"{failure}; with the rates of the tuning set, about {size:,} samples are needed."
            )
    return (
        f"{failure}, and with the rates of the tuning set no number of samples is enough. Request "
        "less strict limits."
    )


PROPORTIONS_DIFFER = "the class proportions of the certification set differ from those of the data"
"""The start of a note that is about one certification set, and not about later ones."""
_DIGITS = 6  # more digits may depend on the other samples of the same call


def check_confidence(confidence: Any, owner: str) -> None:
    """Raise an error if `confidence` is not a number in (0, 1)."""
    number = isinstance(confidence, int | float | np.floating) and not isinstance(confidence, bool)
    if not number or not 0 < confidence < 1:
        raise ParameterError(
            f"{owner} needs a confidence in (0, 1); got {confidence!r}.",
            parameter="confidence",
            allowed="a number in (0, 1)",
            received=confidence,
        )


def fingerprint(scores: Floats, codes: Codes) -> str:
    """Return a hash of the scores and classes of some samples, whatever their order."""
    rows = np.round(np.column_stack([scores.reshape(len(codes), -1), codes]), _DIGITS)
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
    earlier: tuple[Use, ...] = (),
    notes: tuple[str, ...] = (),
    renews: str = "",
    start: Confusion | None = None,
) -> tuple[Decision, Certificate]:
    """Set the decision of a plan, and issue its certificate.

    Parameters
    ----------
    plan : Plan
        What to guarantee.
    scores, codes : ndarray
        Scores and true classes of the certification set.
    requested, strategy, tuning, number, earlier, notes, renews, start
        Attributes of the certificate.
    confidence, delta : float
        The confidence that the certificate states, and the error probability that it may use.
    """
    check_confidence(confidence, "SteeredClassifier")
    _check_contents(plan.preference, plan.matrix(codes, codes))
    certified = set_decision(plan, scores, codes, delta)
    matrix = plan.matrix(certified.decision.predict(scores), codes)
    certificate = Certificate(
        preference=str(plan.preference),
        requested=requested,
        confidence=float(confidence),
        delta=float(delta),
        number=number,
        earlier=earlier,
        route=certified.route,
        strategy=strategy,
        guarantees=make_guarantees(plan.preference, matrix, certified.delta),
        confusion=matrix,
        cells=make_cells(matrix, 1 - (1 - confidence) / certified.n_tested),
        tuning=tuning,
        issued=date.today().isoformat(),
        samples=fingerprint(scores, codes),
        notes=notes,
        renews=renews,
        start=start,
    )
    return certified.decision, certificate


def _check_contents(wanted: Preference, truth: Confusion) -> None:
    """Raise an error if a class has no samples, or if every model meets the preference."""
    sizes = truth.counts.sum(axis=1)
    if not sizes.all():
        missing = _labels.plain(truth.classes[int(np.argmin(sizes))])
        raise GuaranteeError(
            "A guarantee needs samples of every class in the certification set; it has none of "
            f"{name_class(missing)}.",
            code="too_few_samples",
            label=missing,
            n=0,
        )
    if all(is_trivial(float(bound.limit), bound.at_most) for bound in wanted.bounds):
        raise GuaranteeError(
            f"'{wanted}' guarantees nothing: every model meets it. Request a stricter limit.",
            code="trivial",
            preference=str(wanted),
        )


def check_guarantee(
    wanted: Preference,
    decision: Decision,
    data: TuningData,
    certification_set: CertificationSet,
    delta: float,
) -> None:
    """Raise the error of :func:`certify` that the size of the certification set determines.

    Parameters
    ----------
    wanted : Preference
        What to guarantee.
    decision : Decision
        The decision that was tuned on the tuning set.
    data : TuningData
        The tuning set.
    certification_set : CertificationSet
        The certification set; only its number of samples of each class is used.
    delta : float
        The error probability that the certificate may use.
    """
    codes = certification_set.codes
    truth = count_predictions(codes, codes, data.labels, data.positive)
    rates = wanted.in_rates(data.matrix(data.codes))
    _check_contents(rates, truth)
    ordered = _uses_order_statistics(rates, decision, truth)
    n_guarantees = len(one_sided_bounds(rates, truth)) if ordered else 0
    _check_sizes(rates, truth, delta / max(n_guarantees, 1), n_guarantees)


def renew_certificate(
    before: Certificate,
    plan: Plan,
    scores: Floats,
    codes: Codes,
    confidence: float,
    notes: tuple[str, ...],
    owner: str,
    use: Callable[..., AbstractContextManager[Grant]] | None = None,
) -> tuple[Decision, Certificate]:
    """Set the decision of a certified model again, on newly labelled samples.

    With `use`, called with the name of the request, it may use what the entered context gives.
    """
    if fingerprint(scores, codes) == before.samples:
        raise GuaranteeError(
            f"{owner} needs samples that no step has used; got the certification set of the "
            "current certificate. Pass newly labelled samples.",
            code="used_samples",
        )
    name = name_request(plan, scores, codes, confidence)
    with nullcontext(Grant(1 - confidence)) if use is None else use(name=name) as grant:
        return issue_certificate(
            plan,
            scores,
            codes,
            requested=before.requested,
            strategy=before.strategy,
            tuning=before.tuning,
            confidence=confidence,
            delta=grant.part,
            number=grant.number,
            earlier=grant.earlier,
            notes=notes,
            renews=before.renews or before.issued,
        )


@dataclass(frozen=True, eq=False)
class CertificationSet:
    """Labelled samples that no step of the dialog has used.

    Attributes
    ----------
    X : Rows
        The samples, encoded for the members.
    codes : ndarray
        Positions of their true classes.
    name : str
        Fingerprint that identifies the samples.
    rows : RowHashes
        The hashes of the samples.
    notes : tuple of str
        Notes about the samples, for a certificate.
    at : ndarray or None
        Their positions in the data that the dialog was made from; None for other samples.
    """

    X: Rows
    codes: Codes
    name: str
    rows: RowHashes
    notes: tuple[str, ...] = ()
    at: Codes | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        codes: Codes,
        committee: FittedMembers,
        rows: RowHashes,
        notes: tuple[str, ...] = (),
        at: Codes | None = None,
    ) -> CertificationSet:
        """Make the set; the scores of the members identify its samples."""
        return cls(Rows(X), codes, fingerprint(committee.raw(X), codes), rows, notes, at)


def make_certification_set(
    X: Any, y: ArrayLike, committee: FittedMembers, used: UsedRows, owner: str
) -> CertificationSet:
    """Make a certification set of samples that the user passes: one of each set of equal rows.

    Raises
    ------
    GuaranteeError
        If some of them were used before.
    """
    codes, rows = encode_labels(X, y, committee.classes, owner), used.hash(X)
    refuse_used_rows(used, rows, owner)
    warn_of_near_copies(rows, stacklevel=6)
    notes = notes_on_copies(rows, used.together)
    if used.together:
        kept = one_of_each(rows.exact, 0)
        X, codes, rows = select_rows(X, kept), codes[kept], rows[kept]
    return CertificationSet.of(committee.encode(X), codes, committee, rows, notes)


@dataclass(frozen=True, eq=False)
class Certified:
    """The parts of a certified model.

    Attributes
    ----------
    scorer : Scorer
        Computes the scores of new samples.
    decision : Decision
        The decision, set on the certification set.
    plan : Plan
        What is guaranteed and how.
    certificate : Certificate
        The certificate.
    used : UsedRows
        All rows that the model was built from, with the certification set.
    """

    scorer: Scorer
    decision: Decision
    plan: Plan
    certificate: Certificate
    used: UsedRows


def certify(
    wanted: Preference,
    candidate: Candidate,
    start: Candidate,
    data: TuningData,
    certification_set: CertificationSet,
    *,
    confidence: float,
    use: Callable[[str], AbstractContextManager[Grant]] | None = None,
) -> Certified:
    """Certify a candidate: set its decision on the certification set.

    Parameters
    ----------
    wanted : Preference
        What to guarantee.
    candidate, start : Candidate
        The candidate to certify, and the one at the start of the dialog.
    data : TuningData
        The tuning set.
    certification_set : CertificationSet
        The certification set.
    confidence : float
        The confidence.
    use : callable, optional
        Called with the name of the request. It returns a context manager, entered for as long as
        the labels of the certification set are used, that gives what the certificate may use. By
        default this is the whole error probability.
    """
    X, codes = certification_set.X.X, certification_set.codes
    plan, scores = plan_request(wanted, candidate, data, certification_set)
    start_predictions = start.decision.predict(start.scorer.score_encoded(X))
    name = name_request(plan, scores, codes, confidence)
    with nullcontext(Grant(1 - confidence)) if use is None else use(name) as grant:
        decision, certificate = issue_certificate(
            plan,
            scores,
            codes,
            requested=str(wanted),
            strategy=candidate.strategy,
            tuning=data.matrix(candidate.predictions),
            confidence=confidence,
            delta=grant.part,
            number=grant.number,
            earlier=grant.earlier,
            notes=certification_set.notes,
            start=plan.matrix(start_predictions, codes),
        )
    scorer = replace(candidate.scorer, committee=candidate.scorer.committee.without_training_data())
    used = data.used.with_rows(certification_set.rows)
    return Certified(scorer, decision, plan, certificate, used)


def plan_request(
    wanted: Preference,
    candidate: Candidate,
    data: TuningData,
    certification_set: CertificationSet,
) -> tuple[Plan, Floats]:
    """Return what to guarantee and how, and the scores of the certification set."""
    X, n = certification_set.X.X, len(certification_set.codes)
    decision, tuning = candidate.decision, candidate.scores
    plan = make_plan(wanted, decision, tuning, data.objective(wanted), n, wanted.allows_rejecting)
    return plan, candidate.scorer.score_encoded(X)


def name_request(plan: Plan, scores: Floats, codes: Codes, confidence: float) -> str:
    """Return a name that requests share if the same tests are made on the same samples.

    These are determined by the scores and classes of the certification set, by the preference with
    its positive class and the confidence, and by the tested path, for which its values on the
    tuning set stand.
    """
    samples = fingerprint(scores, codes)
    positive = None if plan.positive is None else plan.classes.index(plan.positive)
    wanted = (str(plan.preference), positive, round(confidence, 9))
    return str(joblib.hash((samples, *wanted, plan.values)))


def refuse_used_rows(used: UsedRows, rows: RowHashes, owner: str, allowed: float = 0.0) -> int:
    """Raise an error if more than a fraction of rows was used before; return how many were."""
    n, n_used = len(rows), used.count(rows)
    if n_used > allowed * n:
        if used.together:
            hint = (
                " If equal rows are independent observations, set duplicates='independent' from "
                "the start."
            )
        else:
            hint = " These are more than rows of the same distribution would be."
        raise GuaranteeError(
            f"{owner} needs samples that no step has used; {n_used:,} of these {n:,} equal rows "
            f"that the model was built from. Pass newly labelled samples.{hint}",
            code="used_samples",
            n_used=n_used,
            n=n,
        )
    return n_used


def describe_support(
    sizes: Mapping[Any, int], confidence: float, delta: float | None = None
) -> str:
    """Describe the limits that a certification set supports; `delta` is what is left of it.

    Parameters
    ----------
    sizes : mapping of label to int
        The number of samples of each class.
    confidence, delta : float
        The confidence, and the error probability that is left.
    """
    delta = 1 - confidence if delta is None else delta
    lines = [
        f"The certification set has {sum(sizes.values()):,} samples. At confidence "
        f"{confidence:.9g} it supports"
    ]
    for label, n in sizes.items():
        rate = supported_rate(n, delta)
        lines.append(
            f"  limits of {rate:.2f}% or more on the error rate of {name_class(label)} "
            f"({n:,} samples)"
        )
    return "\n".join(lines)
