"""Sentences of the page: whether each target is met, and what the numbers show besides."""

from __future__ import annotations

from experiments.martingale.results import Gap
from experiments.steer.guarantees import ACCEPTED, MARGRAVE, OWN, TUNED
from experiments.steer.results import MIN_P, Results, is_higher, is_lower
from experiments.steer.tables import format_p


def guarantees(results: Results) -> str:
    """Report whether the accepted models keep their guarantees on test."""
    rules = (ACCEPTED, MARGRAVE)
    met = all(results.pooled(p, rule).p > MIN_P for p in results.percents for rule in rules)
    return _target(
        f"Guarantees (for each rate, the number of test errors has p > {MIN_P:g})",
        met,
        f"Accepted models: {describe_exceeded(results, ACCEPTED)}. Order statistics of their "
        f"scores: {describe_exceeded(results, MARGRAVE)}. On random splits the guarantees hold by "
        "construction, so this tests the implementation.",
    )


def cost(results: Results) -> str:
    """Report whether Margrave's recall is at least that of the strongest rival."""
    target = (
        "Cost (mean recall of the other class not below that of the strongest rival by more than "
        "one standard error)"
    )
    if results.strongest is None:
        return f"{target}: not measured."
    rule, gap = results.strongest
    numbers = (
        f"The strongest rival, by these results, is {rule}: {gap} points to {MARGRAVE} (± one "
        f"standard error over the data sets), {_describe_difference(gap)}."
    )
    return _target(target, not is_higher(gap), numbers)


def _describe_difference(gap: Gap) -> str:
    """Describe a rival's difference, in words that its standard error supports."""
    if is_higher(gap):
        return f"so {MARGRAVE} loses to it"
    if is_lower(gap):
        return "which is lower"
    return (
        "no significant difference, which does not show that they are equal: within two standard "
        f"errors, {MARGRAVE} may be up to {gap.mean + 2 * gap.error:.2f} points behind it"
    )


def targets(results: Results) -> list[str]:
    """Report all targets."""
    return [guarantees(results), cost(results)]


def _target(target: str, met: bool, numbers: str) -> str:
    return f"{target}: **{'met' if met else 'missed'}**. {numbers}"


def describe_exceeded(results: Results, rule: str) -> str:
    """Give p by rate, and how often the rate is exceeded on test."""
    each = {percent: results.pooled(percent, rule) for percent in results.percents}
    n = sum(one.n_cases for one in each.values())
    exceeded, expected = (
        sum(getattr(one, name) * one.n_cases for one in each.values()) / n
        for name in ("exceeded", "expected")
    )
    p = ", ".join(f"{format_p(one.p, 'p')} at {percent} %" for percent, one in each.items())
    return f"{p}; {exceeded:.1%} of {n} exceeded on test, {expected:.1%} expected by chance"


def tuning_quantile(results: Results) -> str:
    """Report the tuning quantile by the same measure."""
    return f"Thresholds at the tuning quantile: {describe_exceeded(results, TUNED)}."


def score(results: Results) -> str:
    """Report for how many guarantees Margrave's score is the start committee's."""
    n, n_cases = results.n_start_scores, len(results.cases)
    if n == n_cases:
        return (
            f"By default a request moves the threshold of the start committee, so {MARGRAVE}'s "
            "score here *is* the start committee's for every guarantee: they are one row, and "
            "their difference of 0 is no result."
        )
    return (
        f"{MARGRAVE}'s score is the start committee's for {n} of {n_cases} guarantees; for the "
        "others another strategy replaced it."
    )


def other(results: Results) -> list[str]:
    """List the rivals by their mean difference, and the data sets where each is higher."""
    gaps = {rule: results.mean_difference(rule) for rule in results.rivals if rule not in OWN}
    higher = [rule for rule, gap in gaps.items() if is_higher(gap)]
    lower = [rule for rule, gap in gaps.items() if is_lower(gap)]
    groups = {
        f"Higher recall than {MARGRAVE} by more than one standard error": higher,
        f"Lower recall than {MARGRAVE} by more than two standard errors": lower,
        "Neither": [r for r in gaps if gaps[r] and r not in higher + lower],
    }
    lines = []
    for heading, rules in groups.items():
        named = [f"{rule} ({gaps[rule]})" for rule in rules]
        lines.append(f"{heading}: {', '.join(named) or 'none'}.")
    own = [rule for rule in results.rivals if rule in OWN]
    named = [f"{rule} ({results.mean_difference(rule)})" for rule in own]
    lines.append(f"{MARGRAVE}'s own options: {', '.join(named)}.")
    for rule in results.rivals:
        titles = [t for t in results.titles if is_higher(results.difference(t, rule))]
        if titles:
            lines.append(f"{_capitalised(rule)} is higher on {', '.join(titles)}.")
    return lines


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]
