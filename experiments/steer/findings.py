"""Sentences of the page: whether each target is met, and what the numbers show besides."""

from __future__ import annotations

from collections import Counter

import numpy as np

from experiments.martingale.results import Gap
from experiments.steer.guarantees import ACCEPTED, MARGRAVE, OWN, RETUNE, TUNED
from experiments.steer.learn_then_test import HAS_MAPIE, HOLM, SEQUENCE
from experiments.steer.results import MIN_P, Results, is_higher, is_lower
from experiments.steer.tables import format_p, percent


def targets(results: Results) -> list[str]:
    """Report both targets."""
    return [guarantees(results), cost(results)]


def guarantees(results: Results) -> str:
    """Report whether the accepted models keep their guarantees on test."""
    rules = (ACCEPTED, MARGRAVE)
    least = min(results.pooled(p, rule).p for p in results.percents for rule in rules)
    return (
        f"Guarantees: **{_verdict(least > MIN_P)}**. {describe_exceeded(results, ACCEPTED)} The "
        "target is that no rate has more test errors than valid guarantees explain "
        f"(p > {MIN_P:g}, also if the whole allowance is used); the smallest p is "
        f"{format_p(least)}."
    )


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


def describe_exceeded(results: Results, rule: str) -> str:
    """Tell how often the test set shows more than the guaranteed rate."""
    each = [results.pooled(p, rule) for p in results.percents]
    n = sum(one.n_cases for one in each)
    exceeded, expected = (
        sum(getattr(one, name) * one.n_cases for one in each) / n
        for name in ("exceeded", "expected")
    )
    return (
        f"The test set shows more than the guaranteed rate for {percent(exceeded, 1)} of the {n} "
        f"guarantees; chance alone explains {percent(expected, 1)}, because test sets are finite."
    )


def cost(results: Results) -> str:
    """Report whether Margrave's recall is at least that of the strongest rival."""
    if results.strongest is None:
        return "Cost: not measured."
    rule, gap = results.strongest
    return (
        f"Cost: **{_verdict(not is_higher(gap))}**. At the same guarantee, the strongest rival is "
        f"{rule}: its recall of the other class minus {MARGRAVE}'s is {gap} points (± one standard "
        f"error over the data sets), {_describe_difference(gap)}. The target is that no rival is "
        f"ahead of {MARGRAVE} by more than one standard error."
    )


def _describe_difference(gap: Gap) -> str:
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


def total_errors(results: Results) -> str:
    """Compare all test errors of accepted models with those of order statistics."""
    accepted, whole = (
        sum(outcome.total for case in results.cases if (outcome := case.outcomes[rule]))
        for rule in (ACCEPTED, MARGRAVE)
    )
    return (
        f"Over all guarantees, accepted models make {accepted:,} test errors of either kind, and "
        f"thresholds at the order statistic {whole:,}."
    )


def best_member(results: Results) -> str:
    """Name the member that is the best one most often."""
    name, count = Counter(run.best_member for run in results.runs).most_common(1)[0]
    return f"most often {name}, in {count} of {len(results.runs)} splits"


def others(results: Results) -> str:
    """List the rivals by what their mean difference shows."""
    gaps = {rule: results.mean_difference(rule) for rule in results.rivals if rule not in OWN}
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


def strategies(results: Results) -> str:
    """Tell how often the opt-in strategy replaces the score, and what it does there."""
    there = [case for case in results.cases if case.strategies[RETUNE] != "move"]
    text = f"`retune` does so for {len(there)} of {len(results.cases)}"
    if there:
        own, plain = (np.mean([case.recall(name) for case in there]) for name in (RETUNE, MARGRAVE))
        text += f" guarantees, where the recall is {own:.1f} % with it and {plain:.1f} % without"
    return text + "."


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
