"""What the numbers say, computed, never written down before."""

from __future__ import annotations

from experiments.select.comparing import METHODS, OUTSIDE, PLACE, SINGLE, VOTE, Found
from experiments.select.results import BAR, Results
from experiments.select.tables import share
from experiments.select.timing import seconds

ABSENT = (
    "DESlib is not here, so this page has Margrave's side only. It needs scikit-learn below 1.6, "
    "and so an environment of its own: `make reproduce` makes one, as far as it can, at "
    f"`{PLACE.parents[1]}`; or name an interpreter that has it in the variable `MARGRAVE_DESLIB`."
)


def peer(results: Results) -> str:
    """What the peer runs with."""
    if results.peer is None:
        return ABSENT
    return f"The peer: {', '.join(f'{name} {version}' for name, version in results.peer.items())}."


def bars(results: Results) -> list[str]:
    """Every bar, in order."""
    return [agreement(results), minority(results), faster(results), better(results)]


def agreement(results: Results) -> str:
    """Whether both answer alike outside ties."""
    bar = f"At least {BAR:.0%} the same answers outside ties, each method on each set"
    if results.peer is None:
        return f"{bar}: not measured."
    missed = results.missed()
    found = [results.found(method) for method in METHODS]
    apart, compared = sum(one.apart[OUTSIDE] for one in found), sum(_outside(one) for one in found)
    which = "; ".join(f"{method} on {title}" for method, title in missed)
    return (
        f"{bar}: **{'missed' if missed else 'kept'}**{f' ({which})' if missed else ''}. "
        f"{apart} of {compared:,} answers outside ties differ; of all, ties too, "
        f"{sum(one.apart.total() for one in found)} of {sum(one.n for one in found):,}."
    )


def _outside(one: Found) -> int:
    return one.n - one.ties.total()


def minority(results: Results) -> str:
    """Whether ties are few enough for that to say something."""
    each = {
        (method, title): results.found(method, [title]).tied
        for method in METHODS
        for title in results.plan.titles
    }
    method, title = max(each, key=lambda pair: each[pair])
    most = each[method, title]
    return (
        f"Ties are a minority everywhere: **{'kept' if most < 0.5 else 'missed'}**. The most are "
        f"{most:.0%}, of {method} on {title}; over all methods and sets {_mean(each):.0%}."
    )


def _mean(each: dict[tuple[str, str], float]) -> float:
    return sum(each.values()) / len(each)


def faster(results: Results) -> str:
    """How the times compare."""
    if results.theirs is None:
        return "Time beside DESlib: not measured."
    n = results.plan.size.n_query
    ratio = {
        method: seconds(results.theirs, method, n) / seconds(results.ours, method, n)
        for method in METHODS
    }
    least, most = min(ratio, key=lambda m: ratio[m]), max(ratio, key=lambda m: ratio[m])
    return (
        f"Faster than DESlib in each method: **{'kept' if ratio[least] > 1 else 'missed'}**. DESlib"
        f" takes {ratio[least]:.3g} times as long in {least} and {ratio[most]:.3g} times in {most}."
    )


def better(results: Results) -> str:
    """Whether selection is worth it here."""
    vote, single = results.mean_accuracy(VOTE), results.mean_accuracy(SINGLE)
    above = [m for m in METHODS if results.mean_accuracy(m) > max(vote, single)]
    below = [m for m in METHODS if results.mean_accuracy(m) < min(vote, single)]
    return (
        f"No bar: the majority vote is right on {vote:.1%} on average, the member that is best on "
        f"the tuning samples on {single:.1%}. Above both: {', '.join(above) or 'none'}; below "
        f"both: {', '.join(below) or 'none'}."
    )


def full_of_ties(results: Results) -> str:
    """What becomes of META-DES where samples tie with each other."""
    if results.peer is None or not results.plan.beside:
        return "It is not in this run."
    one = results.found("meta-des", results.plan.beside)
    return (
        f"There META-DES agrees on {share(one.same_outside)} of the queries outside ties, and on "
        f"{share(one.same)} of all."
    )
