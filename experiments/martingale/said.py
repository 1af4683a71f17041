"""The sentences of the page: every number and every verdict in them is computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from experiments.martingale import tables
from experiments.martingale.claims import Claim, implied_shares
from experiments.martingale.data import favoured
from experiments.martingale.document import (
    GRID,
    NODES,
    NODES_FROZEN,
    PROGRAM_ASKED,
    PROGRAM_MET,
    PROGRAM_TIMES,
    TABLE_2,
    TABLE_2_METHODS,
    TABLE_3,
    TABLE_4,
    TUNED,
)
from experiments.martingale.measures import ALONE
from experiments.martingale.requests import Tally
from experiments.martingale.results import Gap, Results, on_class, overall
from experiments.martingale.study import ASKED, GRANULAR_LEVELS

ENSEMBLES = ("random forest", "gradient boosting")


def listed(texts: Sequence[str]) -> str:
    """One, two and three; or none."""
    if len(texts) < 2:
        return texts[0] if texts else "none"
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def told(gap: Gap) -> str:
    """How one stands to another."""
    return {1: "above", 0: "not told from", -1: "below"}[gap.sign]


def requests(results: Results) -> list[str]:
    """What became of the requests, a sentence for each learner."""
    said = []
    for name in ASKED:
        tally = results.total(name)
        dearer = f"with more in {tally.dearer}" if tally.dearer else "never with more"
        said.append(
            f"`{name}` meets {tally.met} of {tally.asked} requests on the tuning part, {dearer} "
            "errors in the other cell than its own moved threshold and with fewer in "
            f"{tally.cheaper / tally.asked:.0%}; its models make {tally.test} errors on the test "
            f"parts, the thresholds {tally.test_threshold} "
            f"({tables.change(tally.test, tally.test_threshold)}){_beside_logistic(tally)}."
        )
    said.append(f"The authors' program met {PROGRAM_MET} of {PROGRAM_ASKED}.")
    return said


def _beside_logistic(tally: Tally) -> str:
    """Where the learner is another one, a logistic regression's threshold too."""
    if tally.test_logistic == tally.test_threshold:
        return ""
    than = tables.change(tally.test, tally.test_logistic)
    return f", thresholds of a single LR at the same counts {tally.test_logistic} ({than})"


def reproduced(found: Sequence[Claim], number: int | None = None) -> str:
    """How many of the printed differences are found."""
    counts = Counter(claim.found for claim in found if number in (None, claim.table))
    which = "the tables print" if number is None else "this table prints"
    return (
        f"Of {counts.total()} differences that {which}, {counts[1]} are found here, {counts[0]} "
        f"are not told from 0, and {counts[-1]} are the other way round."
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


def impossible(results: Results) -> str:
    """Which printed figures cannot be right."""
    wrong = [
        f"{one.method} on {one.title}"
        for one in implied_shares(results.titles("table 2"))
        if not one.possible
    ]
    return f"No class has a share near the one that these figures need: {listed(wrong)}."


def tuned_requests(results: Results) -> str:
    """Whether the requests of table 2 were met on the tuning part."""
    said = []
    for method in ("LR-Tune", "MB-Tune", "MB-Tune-Freeze"):
        met = [
            split[method].met
            for title in results.titles("table 2")
            for split in results.found["table 2", title]
        ]
        said.append(f"{method} {sum(map(bool, met))} of {len(met)}")
    return f"Requests met on the tuning part: {listed(said)}."


def programs(results: Results) -> str:
    """How large the programs are."""
    sizes = {
        title: results.mean("table 2", title, "MB", lambda judged: judged.n_learners)
        for title in results.titles("table 2")
    }
    means = listed([f"{size:.1f} on {title}" for title, size in sizes.items()])
    return (
        f"Learners that a program of {results.plan.size.n_levels} levels has, on average: {means}."
    )


def freezing(results: Results) -> str:
    """What ε does."""
    one, levels = results.frozen, results.plan.size.n_levels
    nodes = levels * (levels + 1) // 2
    return (
        f"On the first training part of {results.plan.pictured}, {one.free} of {nodes} nodes have "
        f"a learner without freezing and {one.left} with ε = {one.epsilon:g}; the document has "
        f"{NODES_FROZEN} of {NODES} nodes frozen on Spambase."
    )


def best_of_all(results: Results) -> str:
    """Where a common ensemble is the best."""
    leaders = tables.leaders(results)
    best = listed([f"{title} ({', '.join(names)})" for title, names in leaders.items()])
    ahead = sum(not set(ENSEMBLES).isdisjoint(names) for names in leaders.values())
    return (
        "Highest accuracy among LR, MB, AMB, MB-Tune, other learners at the nodes and other "
        f"ensembles: {best}. A random forest or gradient boosting is ahead on {ahead} of "
        f"{len(leaders)} sets."
    )


def grid(results: Results) -> str:
    """Grid search against tuning."""
    said = []
    for method in ("half the errors", "half the errors on the favoured class"):
        gap = results.gap("grid", "Liver", method, "grid search", overall)
        said.append(f"asked for {method}, tuning is {told(gap)} grid search ({gap} points)")
    return f"{'; '.join(said).capitalize()}. The document has {TUNED - GRID:+.2f}."


def errors_by_levels(results: Results) -> str:
    """Figure 4 in words."""
    title, c = results.plan.pictured, favoured(results.plan.pictured)
    levels = results.plan.levels

    def means(name: str, level: int) -> tuple[float, float]:
        on_favoured = results.mean("levels", title, (name, level), lambda one: one.errors(c))
        return on_favoured, 100 - results.mean("levels", title, (name, level), overall)

    few, share = means("LR-Tune", ALONE)
    said = []
    for name in ("MB", "MB-Tune", "MB-Tune-Freeze"):
        points = [means(name, level) for level in levels]
        fewer = sum(on_favoured < few for on_favoured, _ in points)
        better = sum(errors < share for _, errors in points)
        both = sum(a < few and b < share for a, b in points)
        said.append(f"{name} {fewer}, {better} and {both}")
    alone, deepest = (means(*model)[0] for model in (("LR", ALONE), ("MB", levels[-1])))
    return (
        f"Before tuning LR has {alone:.0f} errors on the favoured class and MB with {levels[-1]} "
        f"levels {deepest:.0f}; each was asked for half of its own. "
        f"Of {len(levels)} depths, so many have fewer errors on the favoured class than LR-Tune, "
        f"fewer errors in all, and both: {'; '.join(said)}."
    )


def by_levels(results: Results) -> str:
    """Figure 5 in words."""
    title, of = results.plan.pictured, on_class(favoured(results.plan.pictured))
    levels = results.plan.levels
    shallow, deep = levels[: max(len(levels) // 3, 1)], levels[-max(len(levels) // 3, 1) :]
    said = []
    for name in ("MB", "MB-Tune", "MB-Tune-Freeze"):
        low, high = (
            np.mean([results.values("levels", title, (name, n), of) for n in some], axis=0)
            for some in (shallow, deep)
        )
        gap = Gap.of(high - low)
        said.append(f"{name} is {told(gap)} it ({gap} points)")
    return (
        f"Accuracy on the tuned class, the mean of {deep[0]} to {deep[-1]} levels against that of "
        f"{shallow[0]} to {shallow[-1]}: {'; '.join(said)}."
    )


def times(results: Results) -> str:
    """How much longer tuning takes."""
    ratios = {}
    for title in results.titles("times"):
        ours = tables.mean_times(results, title)
        ratios[title] = (ours["MB-Tune"] / ours["MB"], TABLE_3[title][1] / TABLE_3[title][0])
    each = listed([f"{a:.1f} on {t} (document {b:.1f})" for t, (a, b) in ratios.items()])
    theirs = PROGRAM_TIMES[1] / PROGRAM_TIMES[0]
    return (
        f"Training with one request takes so many times as long as training: {each}. The authors' "
        f"program, run on Spambase, took {theirs:.0f} times as long."
    )


def granularity(results: Results) -> str:
    """How many nodes are asked."""
    part = f"granularity {GRANULAR_LEVELS[0]}"
    said = []
    for title in results.titles(part):
        every, weak = (
            results.mean(part, title, name, lambda judged: judged.asked)
            for name in ("I-ALL", "I-SELECT")
        )
        theirs = TABLE_4[title]["I-ALL"][0], TABLE_4[title]["I-SELECT"][0]
        said.append(f"{weak:.1f} of {every:.1f} on {title} (document {theirs[1]} of {theirs[0]})")
    return f"With {GRANULAR_LEVELS[0]} levels I-SELECT asks {listed(said)}."


def noise(results: Results) -> str:
    """The best at both ends, by data set."""
    first, last = results.plan.rates[0], results.plan.rates[-1]
    said = []
    for title in results.titles("noise"):
        names = {}
        for rate in (first, last):
            methods = [name for name, of in results.methods("noise", title) if of == rate]
            means = {m: results.mean("noise", title, (m, rate), overall) for m in methods}
            names[rate] = max(means, key=lambda name: means[name])
        said.append(f"{title}: {names[first]} and {names[last]}")
    return f"Best at {first:.0%} and at {last:.0%} of wrong labels: {'; '.join(said)}."


def verdict_on_noise(results: Results) -> list[str]:
    """Wins and losses at the highest rate."""
    last = results.plan.rates[-1]
    said = []
    for one in ("MB", "AMB"):
        where: dict[int, list[str]] = {1: [], -1: []}
        for other in (other for name, other in tables.RIVALS if name == one):
            for sign, texts in where.items():
                sets = [
                    title
                    for title in results.titles("noise")
                    if results.gap("noise", title, (one, last), (other, last), overall).sign == sign
                ]
                texts.append(f"{other} on {listed(sets)}")
        said.append(
            f"With {last:.0%} of the training labels wrong {one} is above {'; '.join(where[1])}. "
            f"It is below {'; '.join(where[-1])}."
        )
    return said
