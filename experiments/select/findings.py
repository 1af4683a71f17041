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
    versions = ", ".join(f"{name} {version}" for name, version in results.peer.items())
    return f"Environment of DESlib: {versions}."


def targets(results: Results) -> list[str]:
    """State for every target whether it is met."""
    return [agreement(results), minority(results), faster(results), helps(results)]


def agreement(results: Results) -> str:
    """State whether both libraries predict the same outside ties."""
    target = f"at least {TARGET:.0%} outside ties, each method on each set".replace("%", " %")
    if results.peer is None:
        return f"Same predictions ({target}): not measured."
    missed = results.missed()
    counts = [results.counts(method) for method in METHODS]
    apart, compared = (
        sum(one.apart[OUTSIDE] for one in counts),
        sum(_outside(one) for one in counts),
    )
    which = ", ".join(f"{method} on {title}" for method, title in missed)
    return (
        f"Same predictions ({target}): **{'missed' if missed else 'met'}**"
        f"{f', by {which}' if missed else ''}. {apart} of {compared:,} predictions outside ties "
        f"differ; with ties, {sum(one.apart.total() for one in counts)} of "
        f"{sum(one.n for one in counts):,}."
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
        f"Ties are a minority everywhere: **{'met' if most < 0.5 else 'missed'}**. The largest "
        f"fraction is {100 * most:.0f} %, for {method} on {title}; the mean is "
        f"{100 * _mean(each):.0f} %. A tie cannot count against either library, so with many ties "
        "the first target shows less."
    )


def _mean(each: dict[tuple[str, str], float]) -> float:
    return sum(each.values()) / len(each)


def faster(results: Results) -> str:
    """State whether Margrave is faster."""
    if results.theirs is None:
        return "Time compared with DESlib: not measured."
    n = results.plan.size.n_query
    ratio = {
        method: seconds(results.theirs, method, n) / seconds(results.ours, method, n)
        for method in METHODS
    }
    whole = [method for method in METHODS if results.theirs["methods"][method]["queries"] >= n]
    verdict = "met" if min(ratio.values()) > 1 else "missed"
    text = f"Faster than DESlib with each method, on one synthetic problem: **{verdict}**."
    if whole:
        least, most = min(whole, key=lambda m: ratio[m]), max(whole, key=lambda m: ratio[m])
        text += f" DESlib takes {ratio[least]:.3g} times ({least}) to {ratio[most]:.3g} times "
        text += f"({most}) as long."
    for method in METHODS:
        if method not in whole:
            few = results.theirs["methods"][method]["queries"]
            text += f" With {method}, we measured {few:,} of the {n:,} queries and extrapolated "
            text += f"linearly: {ratio[method]:.3g} times."
    return text


def helps(results: Results) -> str:
    """State how the best method compares with the vote and the single best member."""
    best = _best(results)
    to_vote, to_single = (results.gap(best, reference) for reference in (VOTE, SINGLE))
    return (
        f"Accuracy, without a target: the best method on average, {best}, is {to_vote} points "
        f"above the majority vote and {to_single} above the single best member (± one standard "
        f"error over {len(results.plan.titles)} sets)."
    )


def _best(results: Results) -> str:
    return max(METHODS, key=results.mean_accuracy)


def better(results: Results) -> str:
    """List the methods that are above or below both references."""
    gaps = {m: [results.gap(m, reference) for reference in (VOTE, SINGLE)] for m in METHODS}
    above = [m for m in METHODS if all(gap.mean > gap.error for gap in gaps[m])]
    below = [m for m in METHODS if all(gap.mean < -gap.error for gap in gaps[m])]
    return (
        "Above both the vote and the single best member by more than one standard error: "
        f"{', '.join(above) or 'none'}. Below both: {', '.join(below) or 'none'}."
    )


def meta_des(results: Results) -> str:
    """State whether META-DES has the same model and predictions with the neighbours of DESlib."""
    if results.peer is None:
        return "This was not measured."
    fitted, own = results.meta_des(), results.counts(META_DES)
    apart, n = fitted.counts.apart[OUTSIDE], _outside(fitted.counts)
    to = f"to {fitted.difference:.1g}" if fitted.difference else "to the last digit"
    return (
        f"Fitted on DESlib's neighbours, Margrave has the same coefficients {to}, and {apart} of "
        f"{n:,} predictions outside ties differ; on its own neighbours, {own.apart[OUTSIDE]} of "
        f"{_outside(own):,} do."
    )
