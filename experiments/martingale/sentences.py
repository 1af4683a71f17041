"""The sentences of the page, with computed numbers and conclusions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.stats import t

from experiments._page import listed
from experiments.martingale import choice, tables
from experiments.martingale.claims import Claim, favoured_fractions, implied_fractions
from experiments.martingale.data import favoured
from experiments.martingale.measures import ALONE
from experiments.martingale.paper import (
    GRID,
    PROGRAM_MET,
    PROGRAM_REQUESTED,
    TABLE_2,
    TABLE_2_METHODS,
    TUNED,
)
from experiments.martingale.requests import Total
from experiments.martingale.results import Gap, Results, on_class, overall

ENSEMBLES = ("random forest", "gradient boosting")
OWN = ("LR", "MB", "AMB", "MB-Tune")


def describe_gap(gap: Gap) -> str:
    """Describe the sign of a difference."""
    return {1: "above", 0: "not significantly different from", -1: "below"}[gap.sign]


def default_request(results: Results) -> str:
    """The requests to a logistic regression that is tuned with the defaults."""
    name, titles = "LR-Tune", results.titles("requests")
    total = results.total("requests", name)
    exceeded = tables.too_many(results, name)
    signs = [results.excess("requests", title, name).sign for title in titles]
    return (
        f"A tuned LR keeps its requests on the test sets of {len(titles) - len(exceeded)} of "
        f"{len(titles)} data sets"
        + (f", not on {listed(exceeded)}" if exceeded else "")
        + f". In the other cell it makes {total.other:,} errors, {_percent(total)} than LR with a "
        f"moved threshold; the difference is significant on {len(titles) - signs.count(0)} of "
        f"{len(titles)} sets. A random forest makes {total.at_equal_count['forest']:,.0f}."
    )


def _percent(total: Total) -> str:
    """How many fewer or more errors than LR, in per cent."""
    change = total.ratio("LR") - 1
    return f"{100 * abs(change):.0f} % {'fewer' if change < 0 else 'more'}"


def by_construction(results: Results) -> str:
    """The results on the tuning set, which say little."""
    totals = [results.total("requests", name) for name in tables.REQUESTED.values()]
    n, n_met = sum(one.n for one in totals), sum(one.n_met for one in totals)
    text = f"On the tuning set, {n_met} of {n} requests are met"
    if n_met == n:
        text += ", which says little: a moved threshold meets any limit on one cell there"
    return f"{text}."


def program_met() -> str:
    """The requests that the authors' program met."""
    return f"{PROGRAM_MET} of {PROGRAM_REQUESTED}"


def chosen_rule(results: Results) -> str:
    """The rule that the choice gives, and whether it is the default."""
    titles = results.titles("choice")
    rules = results.methods("choice", titles[0])
    n_missed = {rule: len(tables.too_many(results, rule, "choice")) for rule in rules}
    ratios = {rule: results.total("choice", rule).ratio("LR") for rule in rules}
    valid = [rule for rule in rules if not n_missed[rule]]
    each = "; ".join(f"{rule} ({ratios[rule]:.3f}, {n_missed[rule]})" for rule in rules)
    text = (
        f"We chose `min_gain` on {len(titles)} other data sets: the smallest ratio to LR, of the "
        "rules that have too many errors on no set. Ratio, and number of sets with too many "
        f"errors: {each}."
    )
    if not valid:
        return f"{text} No rule qualifies."
    best = min(valid, key=lambda rule: ratios[rule])
    verb = "is" if best == choice.DEFAULT else "is not"
    return f"{text} The choice, {best}, {verb} the default."


def reproduced(found: Sequence[Claim]) -> str:
    """How many of the differences in the paper are found."""
    counts = Counter(claim.found for claim in found)
    return (
        f"Of {counts.total()} differences that the tables print, {counts[1]} are found here, "
        f"{counts[0]} are not significant, and {counts[-1]} are significant with the opposite "
        "sign. The p-values are not corrected for the number of differences."
    )


def p_of_significant(results: Results) -> str:
    """Give the two-sided p-value of a mean that is two standard errors from 0, over the splits."""
    return f"{2 * t.sf(2, results.plan.n_splits - 1):.2f}"


def reproduced_in(found: Sequence[Claim], number: int) -> str:
    """Which of the differences of a table are found, and which have the opposite sign."""
    mine = [claim for claim in found if claim.table == number]
    names = {}
    for sign in (1, -1):
        titles: dict[str, list[str]] = {}
        for claim in mine:
            if claim.found == sign:
                titles.setdefault(claim.what, []).append(claim.title)
        names[sign] = "; ".join(f"{what} ({listed(own)})" for what, own in titles.items()) or "none"
    counts = Counter(claim.found for claim in mine)
    return (
        f"Found here, of {len(mine)} printed differences: {names[1]}. Significant with the "
        f"opposite sign: {names[-1]}. Not significant: {counts[0]}."
    )


def distance(results: Results) -> str:
    """How far the printed accuracies of table 2 are from ours."""
    away = {}
    for title in results.titles("table 2"):
        for method, value in zip(TABLE_2_METHODS, TABLE_2[title][2], strict=True):
            if value is not None:
                ours = results.mean("table 2", title, method, overall)
                away[title, method] = value - ours
    above = sum(difference > 0 for difference in away.values())
    (title, method), most = max(away.items(), key=lambda one: abs(one[1]))
    return (
        f"{above} of the {len(away)} overall accuracies of table 2 are printed higher than they "
        f"are here. The mean difference is {np.mean(list(away.values())):+.1f} points, the largest "
        f"{most:+.1f} ({title}, {method})."
    )


def impossible(results: Results) -> list[str]:
    """The printed numbers that are impossible."""
    titles = results.titles("table 2")
    actual = favoured_fractions(titles)
    return [
        "{} on {}: {:.2f}, {:.2f} and {:.2f} % imply {:.3f} to {:.3f}, but it is {:.3f}.".format(
            one.method, one.title, *one.printed, one.low, one.high, actual[one.title]
        )
        for one in implied_fractions(titles)
        if not one.possible
    ]


def best_of_all(results: Results) -> str:
    """Which model has the best accuracy, and where it is a common ensemble."""
    titles = results.titles("beside")
    every = [("table 2", name) for name in OWN]
    every += [("beside", name) for name in results.methods("beside", titles[0])]
    means = {
        name: {title: results.mean(part, title, name, overall) for title in titles}
        for part, name in every
    }
    ahead = 0
    for title in titles:
        best = max(of_sets[title] for of_sets in means.values())
        ahead += any(means[name][title] > best - 1e-9 for name in ENSEMBLES)
    averages = listed(
        [f"{name} {np.mean(list(means[name].values())):.1f}" for name in (*OWN, *ENSEMBLES)]
    )
    return (
        f"Mean test accuracies in %: {averages}. A random forest or gradient boosting is the most "
        f"accurate of {len(every)} models on {ahead} of {len(titles)} data sets; the models "
        "include MB and AMB over trees and over RBF features."
    )


def grid(results: Results) -> str:
    """Grid search against tuning."""
    methods = ("grid search", "half the errors")
    ours, tuned = (results.mean("grid", "Liver", method, overall) for method in methods)
    gap = results.gap("grid", "Liver", methods[1], methods[0], overall)
    met = [split[methods[1]].met for split in results.found["grid", "Liver"]]
    return (
        f"The paper prints {GRID:.2f} % for grid search and {TUNED:.2f} % for tuning "
        f"({TUNED - GRID:+.2f}). Here grid search has {ours:.2f} %, and LR tuned to half of its "
        f"errors, a request that is met on the tuning set in {sum(met)} of {len(met)} splits, has "
        f"{tuned:.2f} %: this is {describe_gap(gap)} grid search ({gap} points)."
    )


def errors_by_levels(results: Results) -> str:
    """Figure 4 in words."""
    title, c = results.plan.pictured, favoured(results.plan.pictured)
    levels = results.plan.levels

    def means(name: str, level: int) -> tuple[float, float]:
        on_tuned = results.mean("levels", title, (name, level), lambda one: one.errors(c))
        return on_tuned, 100 - results.mean("levels", title, (name, level), overall)

    few, rate = means("LR-Tune", ALONE)
    texts = []
    for name in ("MB", "MB-Tune", "MB-Tune-Freeze"):
        points = [means(name, level) for level in levels]
        fewer = sum(on_tuned < few for on_tuned, _ in points)
        better = sum(errors < rate for _, errors in points)
        both = sum(a < few and b < rate for a, b in points)
        texts.append(f"{name} {fewer}, {better} and {both}")
    return (
        "The paper reports that the tuned programs have fewer false positives than LR-Tune and "
        f"also fewer errors. Here we count, of {len(levels)} programs of each kind, one for each "
        "number of levels, those with fewer errors than LR-Tune on the tuned class, in total, and "
        f"both: {'; '.join(texts)}."
    )


def by_levels(results: Results) -> str:
    """Figure 5 in words."""
    title, of = results.plan.pictured, on_class(favoured(results.plan.pictured))
    levels = results.plan.levels
    shallow, deep = levels[: max(len(levels) // 3, 1)], levels[-max(len(levels) // 3, 1) :]
    texts = []
    for name in ("MB", "MB-Tune", "MB-Tune-Freeze"):
        low, high = (
            np.mean([results.values("levels", title, (name, n), of) for n in some], axis=0)
            for some in (shallow, deep)
        )
        gap = Gap.of(high - low)
        significant = "significant" if gap.sign else "not significant"
        texts.append(f"{name} {gap} points ({significant})")
    return (
        "The paper reports a steady rise of the accuracy on the tuned class. Here, the mean of "
        f"{deep[0]} to {deep[-1]} levels minus that of {shallow[0]} to {shallow[-1]}: "
        f"{'; '.join(texts)}."
    )


def noise_verdict(results: Results) -> str:
    """MB and AMB against LR at the highest rate."""
    last, titles = results.plan.rates[-1], results.titles("noise")
    texts = []
    for one in ("MB", "AMB"):
        gaps = [results.gap("noise", title, (one, last), ("LR", last), overall) for title in titles]
        signs = [gap.sign for gap in gaps]
        texts.append(
            f"{one} is significantly better on {signs.count(1)} and worse on {signs.count(-1)}"
        )
    return (
        f"With {100 * last:g} % of the training labels wrong, compared with LR on {len(titles)} "
        f"data sets, {'; '.join(texts)}."
    )
