"""Sentences of the page: whether each target is met, and what the numbers show besides."""

from __future__ import annotations

from collections import Counter

from experiments.martingale.results import Gap
from experiments.steer.guarantees import ORDER_STATISTIC, RIVALS, TUNED
from experiments.steer.learn_then_test import HAS_MAPIE, HOLM, SEQUENCE
from experiments.steer.results import MIN_P, Results, is_higher, is_lower
from experiments.steer.rivals import MARGRAVE
from experiments.steer.tables import format_p, percent


def targets(results: Results) -> list[str]:
    """Report both targets."""
    return [guarantees(results), cost(results)]


def guarantees(results: Results) -> str:
    """Report whether the accepted models keep their guarantees on test."""
    each = [results.pooled(p, MARGRAVE) for p in results.percents]
    order_statistics = [results.pooled(p, ORDER_STATISTIC) for p in results.percents]
    least = min(one.p for one in (*each, *order_statistics))
    n = sum(one.n_cases for one in each)
    exceeded, expected = (
        sum(getattr(one, name) * one.n_cases for one in each) / n
        for name in ("exceeded", "expected")
    )
    return (
        f"Guarantees: **{_verdict(least > MIN_P)}**. For {percent(exceeded, 1)} of the {n:,} "
        "accepted models, the test set shows more than the guaranteed rate; for the same models, "
        f"chance alone explains {percent(expected, 1)}, because test sets are finite. The target "
        "is that no rate has more test errors than valid guarantees explain "
        f"(p > {MIN_P:g}, also with the order statistic); the smallest p is {format_p(least)}."
    )


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


def cost(results: Results) -> str:
    """Report whether Margrave's recall is at least that of the strongest rival."""
    if results.strongest is None:
        return "Cost: not measured."
    rule, gap = results.strongest
    return (
        f"Cost: **{_verdict(not is_higher(gap))}**. At the same guarantee, the strongest rival is "
        f"{rule}: its recall of the other class minus {MARGRAVE}'s is {gap} points (± one standard "
        f"error over the data sets), {describe_difference(gap)}. The target is that no rival is "
        f"ahead of {MARGRAVE} by more than one standard error."
    )


def describe_difference(gap: Gap) -> str:
    """Describe a rival's difference, in words that its standard error supports."""
    if is_higher(gap):
        return f"so {MARGRAVE} loses to it"
    if is_lower(gap):
        return f"so {MARGRAVE} is ahead of it"
    return (
        "which is no significant difference. It does not show that the two are equal: within two "
        f"standard errors, {MARGRAVE} may be up to {gap.mean + 2 * gap.error:.2f} points behind"
    )


def tuning_quantile(results: Results) -> str:
    """Report the threshold without a guarantee by the same measure."""
    exceeded = [results.pooled(p, TUNED).exceeded for p in results.percents]
    return (
        f"Depending on the rate, {100 * min(exceeded):.0f} to {percent(max(exceeded), 0)} of the "
        "test sets show more than the limit."
    )


def best_member(results: Results) -> str:
    """Name the member that is the best one most often."""
    name, count = Counter(run.best_member for run in results.runs).most_common(1)[0]
    return f"most often {name}, in {count} of {len(results.runs)} splits"


def others(results: Results) -> str:
    """List the rivals by what their mean difference shows."""
    gaps = {rule: results.mean_difference(rule) for rule in RIVALS}
    higher = [rule for rule, gap in gaps.items() if is_higher(gap)]
    lower = [rule for rule, gap in gaps.items() if is_lower(gap)]
    unclear = [rule for rule, gap in gaps.items() if gap and rule not in higher + lower]
    return (
        f"Ahead of {MARGRAVE} by more than one standard error: {_join(higher)}. Behind it by more "
        f"than two: {_join(lower)}. Neither: {_join(unclear)}. A result against {MARGRAVE} needs "
        "less evidence here than one for it."
    )


def _join(names: list[str]) -> str:
    return "; ".join(names) or "none"


def mapie(results: Results) -> str:
    """Tell for how many guarantees MAPIE finds a threshold."""
    if not HAS_MAPIE:
        return 'MAPIE is not installed here (`pip install ".[mapie]"`), so the study leaves it out.'
    found = {
        rule: sum(case.outcomes[rule] is not None for case in results.cases)
        for rule in (HOLM, SEQUENCE)
    }
    n = len(results.cases)
    return (
        f"Bonferroni–Holm, MAPIE's default correction, finds a threshold for {found[HOLM]} of {n} "
        f"guarantees; the fixed sequence finds one for {found[SEQUENCE]}."
    )
