"""Certification: set a decision on the certification set so that a guarantee holds on new samples.

The plan (:mod:`margrave.steer._plan`) says which decisions may be certified, and how they are
tested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._errors import ParameterError
from margrave._indexing import concatenate_rows, count_rows, select_rows
from margrave._messages import format_count, name_class
from margrave._typing import Codes, Flags, Floats, Ints
from margrave.committee import FittedMembers
from margrave.confusion import Bound, Confusion, Objective, Preference
from margrave.steer._certificate import Certificate, Use, make_cells, make_guarantees
from margrave.steer._copies import FEW, MANY, find_copies
from margrave.steer._expected import (
    IMPROBABLE,
    ExpectedCertificate,
    expect_certificate,
    find_nearest,
)
from margrave.steer._ledger import Grant
from margrave.steer._order_statistic import (
    GuaranteeError,
    is_trivial,
    largest_allowed_count,
    samples_needed,
    supported_rate,
)
from margrave.steer._plan import Draws, TuningScores, certify_draws, make_plan, planning_sizes
from margrave.steer._plan import Plan as Plan
from margrave.steer._row_hashes import (
    NEAR,
    ROW,
    RowHashes,
    UsedRows,
    one_of_each,
    one_of_each_group,
)
from margrave.steer._scorer import Scorer
from margrave.steer._thresholds import Decision, Offsets, Threshold
from margrave.steer._tuning_data import Candidate, Rows, TuningData, encode_labels


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
    used : ndarray of bool
        The samples of the certification set that were used.
    n_tested : int
        Number of decisions that were tested; 1 for order statistics.
    """

    decision: Decision
    route: str
    delta: float
    used: NDArray[np.bool_]
    n_tested: int = 1


def set_decision(plan: Plan, scores: Floats, codes: Codes, delta: float) -> CertifiedDecision:
    """Set the decision so that the guarantee holds with probability 1 − δ.

    Raises
    ------
    GuaranteeError
        If the certification set cannot support it.
    """
    check_sizes(plan, class_sizes(plan, codes), delta)
    used = _choose_samples(plan, scores, codes, delta)
    found = certify_draws(plan, Draws.of(scores[used], codes[used]), delta)
    part = plan.part(delta)
    if not found.certified[0]:
        raise GuaranteeError(
            f"'{plan.preference.limits}' cannot be guaranteed at confidence {1 - delta:.10g}: the "
            f"rates of the {len(codes):,} samples of the certification set do not support it. "
            "Request less strict limits, allow rejection (such as 'rejected <= 10%'), or use a "
            "larger certification set.",
            code="not_supported" if plan.path else "conflict",
            used_up=True,
            bounds=[str(bound) for bound in plan.preference.bounds],
            confidence=1 - delta,
            n=len(codes),
        )
    return CertifiedDecision(found.decisions[0], plan.route, part, used, int(found.n_tested[0]))


def class_sizes(plan: Plan, codes: Codes) -> Ints:
    """Count the samples of each class."""
    return np.bincount(codes, minlength=len(plan.classes))


def _choose_samples(plan: Plan, scores: Floats, codes: Codes, delta: float) -> NDArray[np.bool_]:
    """Choose which samples to use: all, or fewer of a class where more make it only stricter.

    The choice is pseudo-random. It is a function of the set of samples, whatever their order, so
    that changing the order of the rows changes nothing.
    """
    used = np.ones(len(codes), dtype=bool)
    numbers = plan.limited_sizes(class_sizes(plan, codes), delta)
    if numbers:
        # By the rounded scores, then by class; the exact scores order the samples that are left.
        order = np.lexsort([scores, codes, _round_like(scores, scores)])
        rng = np.random.default_rng(int(fingerprint(scores, codes), 16))
        order = order[rng.permutation(len(order))]
        for rows, n in numbers:
            used[order[rows[codes[order]]][n:]] = False
    return used


def check_sizes(plan: Plan, sizes: Ints, delta: float) -> None:
    """Raise an error if no predictions for sets with these class sizes could prove some bound."""
    part, m = plan.part(delta), plan.n_parts
    for bound, _, base in plan.cells():
        if bound.word == "rejected" and bound.at_most:
            continue  # a decision that rejects nothing meets it
        if is_trivial(float(bound.limit), bound.at_most):
            continue
        rows = np.asarray(base.any(axis=1))
        n, limit = int(sizes[rows].sum()), float(bound.limit)
        limit = limit if bound.at_most else 1 - limit
        if largest_allowed_count(n, limit, part) < 0:
            labels = [label for label, has in zip(plan.classes, rows, strict=True) if has]
            of = "" if rows.all() else f" of {' or '.join(map(name_class, labels))}"
            raise GuaranteeError(
                _describe_too_few(bound, limit, n, of, part, m),
                code="too_few_samples",
                bound=str(bound),
                confidence=1 - part,
                n=n,
                needed=samples_needed(limit, part),
                supported=supported_rate(n, part) / 100,
            )


def _describe_too_few(bound: Bound, limit: float, n: int, of: str, delta: float, m: int) -> str:
    """Say how many samples a bound needs, and which limit the n samples support."""
    least = samples_needed(limit, delta)
    rate = supported_rate(n, delta)
    best = f"{rate if bound.at_most else 100 - rate:.2f}%"
    divided = f" (the error probability is divided by {m})" if m > 1 else ""
    if least is None:
        return (
            f"'{bound}' cannot be guaranteed with any number of samples; the {n:,} samples{of} in "
            f"the certification set support a limit of {best} at best."
        )
    return (
        f"'{bound}' at confidence {1 - delta:.10g}{divided} needs {least:,} samples{of} in the "
        f"certification set; it has {n:,}, which support a limit of {best} at best."
    )


PROPORTIONS_DIFFER = "the class proportions of the certification set differ from those of the data"
"""The start of a note that is about one certification set, and not about later ones."""
_DIGITS = 6  # of the largest score; more digits may depend on the other samples of the same call


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
    rows = np.column_stack([_round_like(scores, scores).reshape(len(codes), -1), codes])
    return str(joblib.hash(rows[np.lexsort(rows.T)]))


def _round_like(values: Floats, scores: Floats) -> Floats:
    """Round values to so many digits of the largest score."""
    largest = np.max(np.abs(scores), initial=0.0, where=np.isfinite(scores))
    mantissa, exponent = np.frexp(largest)
    exponent += mantissa > 1 - 1e-9  # a power of two is on the same side, whatever the rounding
    rounded = np.round(np.ldexp(values, -exponent), _DIGITS)
    return np.asarray(np.ldexp(rounded, exponent) + 0.0)  # no negative zeros


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
    start: Codes | None = None,
    expected: ExpectedCertificate | None = None,
) -> tuple[Decision, Certificate]:
    """Set the decision of a plan, and issue its certificate.

    Parameters
    ----------
    plan : Plan
        What to guarantee.
    scores, codes : ndarray
        Scores and true classes of the certification set.
    requested, strategy, tuning, number, earlier, notes, renews, expected
        Attributes of the certificate.
    start : ndarray, optional
        The predictions for the certification set at the start of the dialog.
    confidence, delta : float
        The confidence that the certificate states, and the error probability that it may use.
    """
    check_confidence(confidence, "SteeredClassifier")
    _check_contents(plan, class_sizes(plan, codes))
    certified = set_decision(plan, scores, codes, delta)
    used = certified.used
    matrix = plan.matrix(certified.decision.predict(scores[used]), codes[used])
    certificate = Certificate(
        preference=str(plan.preference.limits),
        requested=requested,
        goal=str(plan.preference.goal(matrix)),
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
        notes=(*notes, *_notes_on_unused(plan, codes, used)),
        renews=renews,
        start=None if start is None else plan.matrix(start[used], codes[used]),
        expected=expected,
    )
    return certified.decision, certificate


def _notes_on_unused(plan: Plan, codes: Codes, used: NDArray[np.bool_]) -> list[str]:
    """Say of which classes samples were not used, and why."""
    notes = []
    for c, label in enumerate(plan.classes):
        n, n_unused = int((codes == c).sum()), int((~used & (codes == c)).sum())
        if n_unused:
            notes.append(
                f"{n_unused:,} of the {n:,} samples of {name_class(label)} in the certification "
                "set, drawn at random, were not used: with all of them no more errors would be "
                "allowed, and the limit would be harder to meet."
            )
    return notes


def _check_contents(plan: Plan, sizes: Ints) -> None:
    """Raise an error if a class has no samples, or if every model meets the preference."""
    if not sizes.all():
        missing = _labels.plain(plan.classes[int(np.argmin(sizes))])
        raise GuaranteeError(
            "A guarantee needs samples of every class in the certification set; it has none of "
            f"{name_class(missing)}.",
            code="too_few_samples",
            label=missing,
            n=0,
        )
    wanted = plan.preference
    if all(is_trivial(float(bound.limit), bound.at_most) for bound in wanted.bounds):
        raise GuaranteeError(
            f"'{wanted.limits}' guarantees nothing: every model meets it. Request a stricter "
            "limit.",
            code="trivial",
            preference=str(wanted.limits),
        )


@dataclass(frozen=True, eq=False)
class Prospect:
    """A candidate to certify, and the class sizes of the certification set.

    Attributes
    ----------
    scores : ndarray
        The candidate's scores of the tuning set.
    objective : Objective
        The objective on the tuning set.
    matrix : Confusion
        The candidate's confusion matrix of the tuning set.
    sizes : ndarray of int
        The class sizes.
    confidence : float
        The confidence.
    plan : Plan
        What is guaranteed and how. It is made for the whole error probability, so that the same
        request has the same plan, whatever is left of it.
    """

    scores: Floats
    objective: Objective
    matrix: Confusion
    sizes: Ints
    confidence: float
    plan: Plan

    @classmethod
    def of(
        cls,
        wanted: Preference,
        candidate: Candidate,
        data: TuningData,
        codes: Codes,
        confidence: float,
    ) -> Prospect:
        """Make the plan."""
        sizes = np.bincount(codes, minlength=data.k)
        decision, scores, objective = candidate.decision, candidate.scores, data.objective(wanted)
        plan = make_plan(wanted, decision, scores, objective, sizes, 1 - confidence)
        matrix = data.matrix(candidate.predictions)
        return cls(scores, objective, matrix, sizes, confidence, plan)

    def expect(self, delta: float) -> ExpectedCertificate:
        """Return the expected certificate, with the nearest preference if it is improbable.

        Parameters
        ----------
        delta : float
            The error probability that the certificate may use.

        Raises
        ------
        GuaranteeError
            If a class has no samples, or if every model meets the preference.
        """
        _check_contents(self.plan, self.sizes)
        tuning = TuningScores.of(self.scores, self.objective)
        sizes = planning_sizes(self.plan, self.objective, self.sizes)
        expected = expect_certificate(self.plan, tuning, self.matrix, sizes, self.confidence, delta)
        if expected.useful >= IMPROBABLE:
            return expected
        nearest = find_nearest(self.plan.preference, self.scores, self.objective, sizes, delta)
        return replace(expected, nearest=None if nearest is None else str(nearest))

    def check(self, delta: float, anyway: bool) -> ExpectedCertificate:
        """Return the expected certificate, or raise an error if there is probably none.

        Parameters
        ----------
        delta : float
            The error probability that the certificate may use.
        anyway : bool
            Whether to go on if a useful model is probably not certified.

        Raises
        ------
        GuaranteeError
            If the class sizes or the simulation say so. Nothing is used up.
        """
        _check_contents(self.plan, self.sizes)
        check_sizes(self.plan, self.sizes, delta)
        expected = self.expect(delta)
        if anyway or expected.useful >= IMPROBABLE:
            return expected
        limits, nearest = self.plan.preference.limits, expected.nearest
        if expected.probability >= IMPROBABLE:
            found = [cell for cell in expected.cells if cell.true == cell.predicted]
            worst = min(found, key=lambda cell: cell.rate or 0.0)
            problem = (
                f"'{limits}' is probably met by a useless model only: it would predict "
                f"{name_class(worst.true)} for {worst.rate or 0.0:.1%} of {name_class(worst.true)}."
            )
        else:
            problem = (
                f"'{limits}' is probably not certified: if the certification set is like the "
                f"tuning set, the probability is {expected.probability:.0%} (confidence "
                f"{1 - delta:.10g}, {self.sizes.sum():,} samples)."
            )
        problem += " The certification set was not used."
        if nearest is not None:
            problem += f" The nearest limits that probably give a useful model: '{nearest}'."
        error = GuaranteeError(
            f"{problem} To certify anyway, pass anyway=True.",
            code="improbable",
            bounds=[str(bound) for bound in self.plan.preference.bounds],
            confidence=1 - delta,
            n=int(self.sizes.sum()),
            probability=expected.probability,
            useful=expected.useful,
            nearest=nearest,
        )
        error.summary = problem
        raise error


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
    one_of : str
        What they are one of each of: "group", "group and class", or "" without groups.
    """

    X: Rows
    codes: Codes
    name: str
    rows: RowHashes
    notes: tuple[str, ...] = ()
    at: Codes | None = None
    one_of: str = ROW

    @classmethod
    def of(
        cls,
        X: Any,
        codes: Codes,
        committee: FittedMembers,
        rows: RowHashes,
        notes: tuple[str, ...] = (),
        at: Codes | None = None,
        one_of: str = ROW,
    ) -> CertificationSet:
        """Make the set; the scores of the members identify its samples."""
        return cls(Rows(X), codes, fingerprint(committee.raw(X), codes), rows, notes, at, one_of)


def make_certification_set(
    X: Any,
    y: ArrayLike,
    committee: FittedMembers,
    used: UsedRows,
    known: Any,
    owner: str,
    encoded: bool = False,
    groups: NDArray[Any] | None = None,
    one_of: str = ROW,
) -> CertificationSet:
    """Make a certification set of samples that the user passes: one of each set of copies.

    Parameters
    ----------
    X, y : array-like
        The samples.
    committee : FittedMembers
        Encodes the samples.
    used : UsedRows
        The rows that the model was built from.
    known : array-like
        These rows, or some of them. Copies of them are left out.
    owner : str
        Whom the errors are about.
    encoded : bool, default=False
        Whether `known` is encoded.
    groups : ndarray, optional
        The group of each sample.
    one_of : str
        What the set then has one sample of each of, as in `CertificationSet`.

    Raises
    ------
    GuaranteeError
        If some of the samples equal used rows, or if so many are copies that the user has to
        decide.
    """
    codes, rows = encode_labels(X, y, committee.classes, owner), used.hash(X)
    refuse_used_rows(used, rows, owner)
    copies = find_copies(
        X, codes, encoded=committee.encoder is not None, all_near=used.duplicates == NEAR
    )
    copies.check(used.duplicates, committee.classes, GuaranteeError)
    notes = copies.notes(used.duplicates, committee.classes)
    is_copy = find_used_copies(used, known, committee.encode(X) if encoded else X, codes, owner)
    if is_copy.any():
        n = format_count(int(is_copy.sum()), "row")
        notes += (
            f"{n} that equal or nearly equal rows that the model was built from were left out.",
        )
    kept = one_of_each(copies.sets, 0) if used.together else np.arange(len(codes))
    kept = kept[~is_copy[kept]]
    if groups is not None:
        kept = one_of_each_group(rows.exact, codes, groups, one_of, kept)
        notes += (describe_groups(one_of),)
    encoded_rows = committee.encode(select_rows(X, kept))
    return CertificationSet.of(
        encoded_rows, codes[kept], committee, rows[kept], notes, one_of=one_of
    )


def describe_groups(one_of: str) -> str:
    """Say, for a certificate, what rates are over."""
    return f"the certification set has one sample of each {one_of}, so rates are over groups."


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
    part: Callable[[str], float] | None = None,
    anyway: bool = False,
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
    part : callable, optional
        Called with the name of the request before `use` is. It returns the error probability that
        the certificate will be able to use; by default the whole.
    anyway : bool, default=False
        Whether to use the certification set also if a useful model is probably not certified.
    """
    X, codes = certification_set.X.X, certification_set.codes
    prospect = Prospect.of(wanted, candidate, data, codes, confidence)
    plan, scores = prospect.plan, candidate.scorer.score_encoded(X)
    name = name_request(plan, scores, codes, confidence)
    expected = prospect.check(1 - confidence if part is None else part(name), anyway)
    with nullcontext(Grant(1 - confidence)) if use is None else use(name) as grant:
        decision, certificate = issue_certificate(
            plan,
            scores,
            codes,
            requested=str(wanted.limits),
            strategy=candidate.strategy,
            tuning=data.matrix(candidate.predictions),
            confidence=confidence,
            delta=grant.part,
            number=grant.number,
            earlier=grant.earlier,
            notes=certification_set.notes,
            start=start.decision.predict(start.scorer.score_encoded(X)),
            expected=expected,
        )
    scorer = replace(candidate.scorer, committee=candidate.scorer.committee.without_training_data())
    used = replace(data.used.with_rows(certification_set.rows), one_of=certification_set.one_of)
    return Certified(scorer, decision, plan, certificate, used)


def name_request(plan: Plan, scores: Floats, codes: Codes, confidence: float) -> str:
    """Return a name that requests share if the same tests are made on the same samples.

    These are determined by the scores and classes of the certification set, by the preference with
    its positive class and the confidence, and by the plan: the decisions of the tested path, or the
    decision from which order statistics set one that rejects. Without rejection, order statistics
    guarantee the same for all thresholds that they allow.
    """
    samples = fingerprint(scores, codes)
    positive = None if plan.positive is None else plan.classes.index(plan.positive)
    wanted = (str(plan.preference.limits), positive, round(confidence, 9))
    decisions = plan.path or ((plan.decision,) if plan.may_reject else ())
    tests = [_round_like(_numbers(one), scores).tolist() for one in decisions]
    return str(joblib.hash((samples, *wanted, tests)))


def _numbers(decision: Decision) -> Floats:
    """Return the numbers that determine a decision."""
    if isinstance(decision, Threshold):
        return np.array([decision.low, decision.high])
    if isinstance(decision, Offsets):
        return np.append(decision.offset, decision.doubt)
    raise TypeError(f"A plan needs thresholds or offsets; got {decision!r}.")


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


def find_used_copies(used: UsedRows, known: Any, X: Any, codes: Codes, owner: str) -> Flags:
    """Return which rows are copies of rows that a model was built from; none if they are few.

    They are compared with `known`, which may be some of these rows only.

    Raises
    ------
    GuaranteeError
        If they are a quarter of the rows or more.
    """
    both, n = concatenate_rows(known, X), count_rows(known)
    if not used.together or both is None or not len(codes):
        return np.zeros(len(codes), dtype=bool)
    new = np.arange(n + len(codes)) >= n
    both_codes, all_near = np.append(np.zeros_like(codes, shape=n), codes), used.duplicates == NEAR
    copies = find_copies(both, both_codes, all_near=all_near, new=new)
    is_copy = np.isin(copies.sets[n:], copies.sets[:n])
    if is_copy.mean() >= MANY:
        raise GuaranteeError(
            f"{owner} needs samples that no step has used; {is_copy.sum():,} of these "
            f"{len(codes):,} equal rows that the model was built from, but for an identifier or "
            "the like, or nearly do. Pass newly labelled samples; or set duplicates='independent' "
            "from the start, if equal rows are independent observations.",
            code="used_samples",
            n_used=int(is_copy.sum()),
            n=len(codes),
        )
    by_class = np.bincount(codes[is_copy], minlength=codes.max() + 1)
    return is_copy & bool(all_near or (by_class > FEW * np.bincount(codes)).any())


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
