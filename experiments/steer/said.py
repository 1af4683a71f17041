"""What the numbers say of each bar: kept or missed, computed, never written down before."""

from __future__ import annotations

from experiments.steer.data import KNOWN
from experiments.steer.results import BAR, Results
from experiments.steer.rivals import LOG_ODDS, MEMBER, OURS, SEQUENCE, STACKING, START, TUNED
from experiments.steer.tables import shown_p

MOST_WORSE = 2
LEAST_MET = 0.98


def value(bar: str, kept: bool, numbers: str) -> str:
    """A bar, whether it is kept, and the numbers."""
    return f"{bar}: **{'kept' if kept else 'missed'}**. {numbers}"


def named(rule: str) -> str:
    """A rule within a sentence."""
    return f"the {rule}" if rule in (MEMBER, START) else rule


def guarantees(results: Results) -> str:
    """Whether pooled test counts suit the promises."""
    ours = {percent: results.pooled(percent, OURS) for percent in results.percents}
    each = ", ".join(f"{percent} %: p = {shown_p(one.p)}" for percent, one in ours.items())
    return value(
        f"Promises (for each rate, as many wrong ones on test have p > {BAR:g})",
        all(one.p > BAR for one in ours.values()),
        f"{each}; {_broken(results, OURS)}.",
    )


def quantile(results: Results) -> str:
    """How the tuning quantile does by the same count."""
    tuned = {percent: results.pooled(percent, TUNED) for percent in results.percents}
    each = ", ".join(f"{percent} %: p = {shown_p(one.p)}" for percent, one in tuned.items())
    return f"Cutting at the tuning samples' quantile, by the same count: {each}; " + (
        f"{_broken(results, TUNED)}."
    )


def _broken(results: Results, rule: str) -> str:
    each = [(results.pooled(percent, rule), percent) for percent in results.percents]
    n = sum(one.guarantees for one, _ in each)
    seen = sum(one.broken * one.guarantees for one, _ in each) / n
    chance = sum(one.expected * one.guarantees for one, _ in each) / n
    return (
        f"the test part shows {seen:.1%} of {n} promises broken, where chance makes it {chance:.1%}"
    )


def cost(results: Results) -> str:
    """Whether the other class is found more often than by the best member and by stacking."""
    ours, member, stacking = (results.recall(rule) for rule in (OURS, MEMBER, STACKING))
    gaps = " and ".join(
        f"{results.gap_over_sets(rule)} points to {named(rule)}" for rule in (MEMBER, STACKING)
    )
    return value(
        "Price (mean recall of the other class above the best member's and above stacking's)",
        ours > member and ours > stacking,
        f"{OURS} {ours:.2f} %, {MEMBER} {member:.2f} %, {STACKING} {stacking:.2f} %; {gaps} (± one "
        "standard error over the data sets).",
    )


def worse(results: Results) -> str:
    """On how many sets Margrave is worse than the best member."""
    names = results.worse(MEMBER)
    which = f" ({', '.join(names)})" if names else ""
    return value(
        f"Worse than the best member by more than one standard error on at most {MOST_WORSE} sets",
        len(names) <= MOST_WORSE,
        f"On {len(names)} of {len(results.titles)}{which}.",
    )


def met(results: Results) -> str:
    """Whether requests are met."""
    tally = results.tally()
    return value(
        f"Requests (at least {LEAST_MET:.0%} met on the tuning samples)",
        tally.met >= LEAST_MET * tally.asked,
        f"{tally.met} of {tally.asked}, {tally.met / max(tally.asked, 1):.1%}.",
    )


def errors(results: Results) -> str:
    """Whether the models of the replies err less than the best member's moved threshold."""
    ours, member, start = results.tally().errors
    return value(
        "Errors (fewer on test, pooled over the requests, than the best member's threshold moved)",
        ours < member,
        f"{ours} against {member} ({_change(ours, member)}); the start committee's threshold "
        f"moved makes {start}.",
    )


def _change(new: int, old: int) -> str:
    return f"{new / old - 1:+.1%}" if old else "none there"


def bars(results: Results) -> list[str]:
    """Every bar, in order."""
    return [of(results) for of in (guarantees, cost, worse, met, errors)]


def plainly(results: Results) -> list[str]:
    """What is worse than hoped, as far as it is."""
    found = []
    for rule in (LOG_ODDS, START):
        gap = results.gap_over_sets(rule)
        if gap.mean <= 0:
            found.append(
                f"On average {named(rule)} does not cost more than {OURS}: {gap} points to it."
            )
        elif abs(gap.mean) <= gap.error:
            found.append(f"{OURS} is hardly told from {named(rule)}: {gap} points to it.")
    for rule in (MEMBER, STACKING):
        names = ", ".join(results.worse(rule))
        if names:
            found.append(f"By more than a standard error {OURS} is below {named(rule)} on {names}.")
    worst = min(results.titles, key=lambda title: results.gap(title, MEMBER).mean)
    gap = results.gap(worst, MEMBER)
    if gap.mean < 0:
        found.append(f"The worst set against the best member is {worst}: {gap} points.")
    found += _of_requests(results)
    return found or ["Nothing that was measured."]


def of_known(results: Results) -> str:
    """Whether the price holds without the sets that the committee has met."""
    rest = [title for title in results.titles if title not in KNOWN]
    if len(rest) == len(results.titles):
        return "None of them is in this run."
    gaps = {rule: results.gap_over_sets(rule, rest) for rule in (MEMBER, STACKING)}
    told = " and ".join(f"{gap} points to {named(rule)}" for rule, gap in gaps.items())
    holds = "kept" if all(gap.mean > 0 for gap in gaps.values()) else "missed"
    return f"Without them the bar on the price is {holds}: {told}."


def _of_requests(results: Results) -> list[str]:
    """Where requests cost more than with the best member, and whether they are kept less often."""
    tallies = {title: results.tally(title) for title in results.titles}
    dearer = [title for title, one in tallies.items() if one.errors[0] > one.errors[1]]
    found = []
    if dearer:
        found.append(f"Requests make more test errors than the best member on {', '.join(dearer)}.")
    total = results.tally()
    if total.cell > total.member_cell:
        found.append(
            "In the cells that were asked for, the models of the replies make more errors on test "
            f"than the best member's moved threshold, {total.cell} against {total.member_cell}: "
            "a part of the gain in all errors is that they keep less to the request on new samples."
        )
    return found


def peer(results: Results) -> str:
    """MAPIE's best form in a sentence; nothing if it is not there."""
    if SEQUENCE not in results.rules:
        return ""
    n, theirs, ours = results.beside(SEQUENCE)
    return (
        f"Where the fixed sequence finds a threshold ({n} of {len(results.cases)} promises) the "
        f"recall is {theirs:.1f} %, {OURS}'s {ours:.1f} %."
    )
