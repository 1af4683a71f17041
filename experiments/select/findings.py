"""Sentences of the page, computed from the results."""

from __future__ import annotations

from experiments.select.comparing import METHODS, OUTSIDE, PEER_PYTHON, SINGLE, VOTE, MethodCounts
from experiments.select.meta_des import META_DES
from experiments.select.results import TARGET, Results
from experiments.select.timing import seconds

ABSENT = (
    "DESlib is not installed, so this page has only the numbers of Margrave. DESlib needs "
    "scikit-learn below 1.6, and thus an environment of its own: `make reproduce` tries to make "
    f"one at `{PEER_PYTHON.parents[1]}`; or set `MARGRAVE_DESLIB` to an interpreter that has it."
)


def peer(results: Results) -> str:
    """List the versions of the peer."""
    if results.peer is None:
        return ABSENT
    return f"The peer: {', '.join(f'{name} {version}' for name, version in results.peer.items())}."


def targets(results: Results) -> list[str]:
    """State for every target whether it is met."""
    return [agreement(results), minority(results), faster(results), better(results)]


def agreement(results: Results) -> str:
    """State whether both libraries predict the same outside ties."""
    target = f"At least {TARGET:.0%} the same predictions outside ties, each method on each set"
    if results.peer is None:
        return f"{target}: not measured."
    missed = results.missed()
    counts = [results.counts(method) for method in METHODS]
    apart, compared = (
        sum(one.apart[OUTSIDE] for one in counts),
        sum(_outside(one) for one in counts),
    )
    which = "; ".join(f"{method} on {title}" for method, title in missed)
    return (
        f"{target}: **{'missed' if missed else 'met'}**{f' ({which})' if missed else ''}. "
        f"{apart} of {compared:,} predictions outside ties differ; with ties, "
        f"{sum(one.apart.total() for one in counts)} of {sum(one.n for one in counts):,}."
    )


def _outside(one: MethodCounts) -> int:
    return one.n - one.ties.total()


def minority(results: Results) -> str:
    """State whether ties are few enough for the first target to be meaningful."""
    each = {
        (method, title): results.counts(method, [title]).tied
        for method in METHODS
        for title in results.plan.titles
    }
    method, title = max(each, key=lambda pair: each[pair])
    most = each[method, title]
    return (
        f"Ties are a minority everywhere: **{'met' if most < 0.5 else 'missed'}**. The "
        f"largest fraction is {most:.0%}, {method} on {title}; the mean is {_mean(each):.0%}."
    )


def _mean(each: dict[tuple[str, str], float]) -> float:
    return sum(each.values()) / len(each)


def faster(results: Results) -> str:
    """State whether Margrave is faster."""
    if results.theirs is None:
        return "Time beside DESlib: not measured."
    n = results.plan.size.n_query
    ratio = {
        method: seconds(results.theirs, method, n) / seconds(results.ours, method, n)
        for method in METHODS
    }
    least, most = min(ratio, key=lambda m: ratio[m]), max(ratio, key=lambda m: ratio[m])
    verdict = "met" if ratio[least] > 1 else "missed"
    return (
        f"Faster than DESlib in each method, on one synthetic problem: **{verdict}**. DESlib"
        f" takes {ratio[least]:.3g} times as long in {least} and {ratio[most]:.3g} times in {most}."
    )


def better(results: Results) -> str:
    """Compare the accuracy of selection with the references."""
    mean = {name: results.mean_accuracy(name) for name in (*METHODS, VOTE, SINGLE)}
    best = max(METHODS, key=lambda method: mean[method])
    gaps = {m: [results.gap(m, reference) for reference in (VOTE, SINGLE)] for m in METHODS}
    above = [m for m in METHODS if all(gap.mean > gap.error for gap in gaps[m])]
    below = [m for m in METHODS if all(gap.mean < -gap.error for gap in gaps[m])]
    to_vote, to_single = gaps[best]
    return (
        f"No target: the mean accuracy of the majority vote is {mean[VOTE]:.1%}, that of the best "
        f"member on the tuning samples {mean[SINGLE]:.1%}. The highest of the methods is {best}, "
        f"{to_vote} points above the vote and {to_single} above that member (± one standard error "
        f"over {len(results.plan.titles)} sets, which is not a test). Above both by more than "
        f"that: {', '.join(above) or 'none'}; below both: {', '.join(below) or 'none'}."
    )


def meta_des(results: Results) -> str:
    """State whether META-DES has the same model and predictions with the neighbours of DESlib."""
    if results.peer is None:
        return "This was not measured."
    fitted, own = results.meta_des(), results.counts(META_DES)
    apart, n = fitted.counts.apart[OUTSIDE], _outside(fitted.counts)
    to = f"to {fitted.difference:.1g}" if fitted.difference else "to the last digit"
    return (
        f"Fitted on the neighbours that DESlib used, Margrave has the same coefficients {to}, and "
        f"{apart} of {n:,} predictions outside ties differ (on its own neighbours "
        f"{own.apart[OUTSIDE]} of {_outside(own):,})."
    )
