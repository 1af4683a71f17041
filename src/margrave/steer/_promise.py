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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._judge import Judge, counted
from margrave._typing import Codes, Floats
from margrave.confusion import Confusion
from margrave.preference import Bound, Preference
from margrave.steer._decision import Cut, Decision, doubtful, moved
from margrave.steer._statistics import is_trivial, most_allowed, needed, p_value, smallest_rate

# How much of each limit the decisions on the path use of what is allowed on the tuning samples.
_USED = tuple(np.linspace(1, 0, 21).round(3).tolist())
# How many cuts of two classes are on it.
_GRID = 101
# How many times the samples at hand are tried when saying how many would be needed.
_TIMES = (1.25, 1.5, 2, 3, 5, 7.5, 10, 20, 50, 100, 1000)


class PromiseError(ValueError):
    """The samples at hand cannot support a promise; the message says what would.

    Attributes
    ----------
    looked : bool
        Whether the certify samples' scores were looked at, so that they are spent.
    """

    __module__ = "margrave.steer"

    def __init__(self, message: str, looked: bool = False) -> None:
        spent = " The certify samples are spent by this test." if looked else ""
        super().__init__(message + spent)
        self.looked = looked


@dataclass(frozen=True)
class Tightened:
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
    prices: tuple[float, ...] = ()
    expected: tuple[Any, ...] = ()

    def matrix(self, answers: Codes, codes: Codes) -> Confusion:
        """The confusion matrix of some answers."""
        return counted(answers, codes, self.classes, self.positive)


def forbids_rejecting(bound: Bound) -> bool:
    """Whether a bound says that nothing is rejected: kept by the decision, not by chance."""
    return bound.word == "rejected" and bound.at_most and bound.limit == 0


def sides(preference: Preference, matrix: Confusion) -> list[tuple[Bound, NDArray[np.bool_], int]]:
    """Bounds of two classes as shares of some classes that may get one answer; [] if one is not.

    Returns
    -------
    list of (bound, of which classes, which answer is limited)
    """
    found = []
    for bound in preference.all_bounds:
        if forbids_rejecting(bound):
            continue
        if bound.word == "rejected":
            return []
        amount, base = bound.cells(matrix)
        rows = np.asarray(base.any(axis=1))
        whole_rows = bool((base == rows[:, None]).all())
        answers = [int(a) for a in np.flatnonzero(amount[rows].any(axis=0))]
        if not whole_rows or len(answers) != 1 or not amount[rows, answers[0]].all():
            return []
        if not is_trivial(float(bound.limit), bound.at_most):
            found.append((bound, rows, answers[0] if bound.at_most else 1 - answers[0]))
    return found


def _by_order(wanted: Preference, matrix: Confusion) -> bool:
    """Whether every bound that can be broken has an order statistic."""
    open_to_chance = [
        bound
        for bound in wanted.bounds
        if not forbids_rejecting(bound) and not is_trivial(float(bound.limit), bound.at_most)
    ]
    return len(sides(wanted, matrix)) == len(open_to_chance)


def planned(
    preference: Preference,
    decision: Decision,
    held: Floats,
    judge: Judge,
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
    held : ndarray
        Scores of the tuning samples.
    judge : Judge
        Of the tuning samples.
    n_certify : int
        How many samples the promise will be tested on.
    may_reject : bool
        Whether samples may get no answer.
    """
    empty = judge.matrix(judge.codes)
    wanted = preference.in_rates(empty)
    plan = Plan(wanted, judge.classes, judge.positive, decision)
    if judge.k == 2 and not decision.rejects and _by_order(wanted, empty):
        return plan
    cuts = _cuts(held, judge.counts) if judge.k == 2 else _offsets(judge, wanted, held)
    points = [decision, *cuts]
    if may_reject:
        points += _bands(judge, wanted, held)
    judged = [_expected(one, held, judge, wanted) for one in points]
    p = [_expected_p(rates, wanted, n_certify) for rates, _ in judged]
    order = np.argsort(p, kind="stable")
    return replace(
        plan,
        path=tuple(points[i] for i in order),
        prices=tuple(judged[i][1] for i in order),
        expected=tuple(judged[i][0] for i in order),
    )


def _cuts(held: Floats, counts: NDArray[np.int64] | None) -> list[Decision]:
    """Cuts of two classes, all over the scores; each may stand for several samples."""
    shares = np.linspace(0, 1, _GRID)
    grid = np.unique(np.quantile(held, shares) if counts is None else _upto(held, counts, shares))
    return [Cut(cut, cut) for cut in grid.tolist()]


def _upto(held: Floats, counts: NDArray[np.int64], shares: Floats) -> Floats:
    """The scores up to which some shares of the samples are."""
    order = np.argsort(held, kind="stable")
    under = np.cumsum(counts[order])
    at = np.searchsorted(under, shares * under[-1], "left")
    found: Floats = held[order][np.minimum(at, len(order) - 1)]
    return found


def _offsets(judge: Judge, wanted: Preference, held: Floats) -> list[Decision]:
    """Offsets of more classes that keep to a part of all limits, or of one."""
    found: list[Decision] = []
    for but in ("", *({bound.word for bound in wanted.bounds} if len(wanted.bounds) > 1 else ())):
        for used in _USED:
            strict = _strict(judge, wanted, used, but)
            found.append(moved(strict, held, near=found[-1] if found else None))
    return found


def _bands(judge: Judge, wanted: Preference, held: Floats) -> list[Decision]:
    """Decisions that reject: all that may be, and less."""
    found: list[Decision] = []
    for but in ("rejected", ""):
        for used in _USED:
            strict = _strict(judge, wanted, used, but)
            found.append(doubtful(strict, held, near=found[-1] if found else None))
    return found


def _strict(judge: Judge, wanted: Preference, used: float, but: str = "") -> Judge:
    """A judge of the same samples that allows a part of each limit, but for one word."""
    bounds = [
        one if one.implied or one.word == but else _tightened(one, used)
        for one in wanted.all_bounds
    ]
    return replace(judge, preference=Tightened(tuple(bounds)))


def _tightened(bound: Bound, used: float) -> Bound:
    part = type(bound.limit)(used)
    limit = bound.limit * part if bound.at_most else 1 - (1 - bound.limit) * part
    return replace(bound, limit=limit.limit_denominator(10**9))


def _expected(
    decision: Decision, held: Floats, judge: Judge, wanted: Preference
) -> tuple[tuple[tuple[float, float], ...], float]:
    """For each bound its share and base, as on the tuning samples; and the price."""
    answers = decision.answers(held)
    matrix = judge.matrix(answers)
    rates = []
    for bound in wanted.bounds:
        amount, base = (int(matrix.counts[mask].sum()) for mask in bound.cells(matrix))
        rates.append((amount / base if base else 0.0, base / matrix.n))
    found = judge.verdict(answers)
    return tuple(rates), found.price + 1e-6 * found.errors


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
class Settled:
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


def settled(plan: Plan, scores: Floats, codes: Codes, delta: float) -> Settled:
    """Set the decision so that the promise holds with probability 1 − δ.

    Raises
    ------
    PromiseError
        If the samples cannot support it.
    """
    empty = plan.matrix(codes, codes)
    if not plan.path:
        bounds = sides(plan.preference, empty)
        share = delta / max(len(bounds), 1)
        return Settled(_cut(plan, bounds, scores, codes, share), "order statistics", share)
    passed = 0
    for decision in plan.path:
        if _tested_p(plan, decision, scores, codes) > delta:
            break
        passed += 1
    if not passed:
        raise PromiseError(_too_few(plan, codes, delta), looked=True)
    best = int(np.argmin(plan.prices[:passed]))
    tested = min(passed + 1, len(plan.path))
    return Settled(plan.path[best], "tested path", delta, tested)


def _tested_p(plan: Plan, decision: Decision, scores: Floats, codes: Codes) -> float:
    """The largest p-value of the bounds."""
    matrix = plan.matrix(decision.answers(scores), codes)
    worst = 0.0
    for bound in plan.preference.all_bounds:
        amount, base = (int(matrix.counts[mask].sum()) for mask in bound.cells(matrix))
        if forbids_rejecting(bound):
            worst = max(worst, float(decision.rejects))
            continue
        worst = max(worst, float(p_value(amount, base, float(bound.limit), bound.at_most)))
    return worst


def _cut(plan: Plan, bounds: list[Any], scores: Floats, codes: Codes, delta: float) -> Decision:
    """The cut that all bounds allow: as far as one goes, or where the dialog had it."""
    lowest, highest = -np.inf, np.inf
    for bound, rows, answer in bounds:
        known = np.sort(scores[rows[codes]])
        limit = float(bound.limit if bound.at_most else 1 - bound.limit)
        allowed = most_allowed(len(known), limit, delta)
        if allowed < 0:
            raise PromiseError(_needs_more(bound, limit, len(known), rows, plan, delta))
        if allowed >= len(known):
            continue
        if answer == 1:  # above the cut: at most so many scores may be
            lowest = max(lowest, float(known[len(known) - allowed - 1]))
        else:  # at or below it
            highest = min(highest, float(np.nextafter(known[allowed], -np.inf)))
    if lowest > highest:
        told = " and ".join(f"'{bound}'" for bound, *_ in bounds)
        raise PromiseError(
            f"{told} cannot be promised together on these {len(codes)} samples: keeping one breaks "
            "the other. Allow some samples to be rejected (such as 'rejected <= 10%'), ask for "
            "less, or bring more certify samples.",
            looked=True,
        )
    tuned = plan.decision
    cut = min(max(tuned.high, lowest), highest) if isinstance(tuned, Cut) else lowest
    if np.isinf(highest) and np.isfinite(lowest):
        cut = lowest
    elif np.isinf(lowest) and np.isfinite(highest):
        cut = highest
    return Cut(cut, cut)


def _needs_more(
    bound: Bound, limit: float, n: int, rows: NDArray[np.bool_], plan: Plan, delta: float
) -> str:
    """Why a bound cannot be promised, and what could be."""
    named = [repr(label) for label, there in zip(plan.classes, rows, strict=True) if there]
    of = "" if len(named) == len(plan.classes) else f" of {' or '.join(named)}"
    least = needed(limit, delta)
    could = supported(n, delta)
    best = f"{could if bound.at_most else 100 - could:.2f}%"
    m = len(plan.preference.bounds)
    shared = f" (it is shared by {m} promises)" if m > 1 else ""
    if least is None:
        return f"'{bound}' cannot be proven by any number of samples; {n} support {best} at best."
    return (
        f"'{bound}' at confidence {1 - delta:.10g}{shared} needs {least} samples{of} that no step "
        f"has seen; there are {n}, which support a limit of {best} at best."
    )


def supported(n: int, delta: float) -> float:
    """The smallest share that n samples can support, in %, rounded up to what is written."""
    return float(np.ceil(1e4 * smallest_rate(n, delta) - 1e-9) / 100)


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
