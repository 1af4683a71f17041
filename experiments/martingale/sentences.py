"""The sentences of the page, with computed numbers and conclusions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from experiments.martingale import choice, tables
from experiments.martingale.claims import Claim, implied_fractions
from experiments.martingale.data import favoured
from experiments.martingale.measures import ALONE
from experiments.martingale.paper import (
    GRID,
    NODES,
    NODES_FROZEN,
    PROGRAM_MET,
    PROGRAM_REQUESTED,
    PROGRAM_TIMES,
    TABLE_2,
    TABLE_2_METHODS,
    TABLE_3,
    TABLE_4,
    TUNED,
)
from experiments.martingale.results import Gap, Results, on_class, overall
from experiments.martingale.study import GRANULAR_LEVELS

ENSEMBLES = ("random forest", "gradient boosting")


def listed(texts: Sequence[str]) -> str:
    """Join texts with commas and "and"; "none" without texts."""
    if len(texts) < 2:
        return texts[0] if texts else "none"
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def describe_gap(gap: Gap) -> str:
    """Describe the sign of a difference."""
    return {1: "above", 0: "not significantly different from", -1: "below"}[gap.sign]


def requests(results: Results) -> list[str]:
    """The results of the requests, a sentence for each tuning."""
    titles = results.titles("requests")
    texts = []
    for name in results.methods("requests", titles[0]):
        total = results.total("requests", name)
        each = {title: results.total("requests", name, [title]) for title in titles}
        missed = [
            f"{title} ({one.tuned}, {one.wanted:.0f} wanted)"
            for title, one in each.items()
            if not one.holds
        ]
        signs = [results.excess("requests", title, name).sign for title in titles]
        rivals = {"start": "the start models", "LR": "LR", "forest": "forests"}
        others = listed([f"{text} {total.at_equal_count[key]:.0f}" for key, text in rivals.items()])
        texts.append(
            f"{name}: the requested cell on test is at most two standard errors above the request "
            f"on {len(titles) - len(missed)} of {len(titles)} sets"
            + (f", not on {listed(missed)}" if missed else "")
            + f". At the same counts there the tuned models make {total.other} errors in the other "
            f"cell, {others}: {tables.change(total.other, total.at_equal_count['LR'])} against LR, "
            f"significantly fewer on {signs.count(-1)} of {len(signs)} sets and more on "
            f"{signs.count(1)}."
        )
    return texts


def target(results: Results) -> str:
    """Whether tuning reaches what it should."""
    titles = results.titles("requests")
    least = -(-2 * len(titles) // 3)
    verdicts = []
    for name in results.methods("requests", titles[0]):
        total = results.total("requests", name)
        each = [results.total("requests", name, [title]) for title in titles]
        fewer = sum(results.excess("requests", title, name).mean < 0 for title in titles)
        reached = {
            "the request": all(one.holds for one in each),
            "the pooled errors": total.other <= total.at_equal_count["LR"],
            f"the number of sets ({fewer})": fewer >= least,
        }
        missed = [what for what, is_met in reached.items() if not is_met]
        verdicts.append(f"{name} {f'misses {listed(missed)}' if missed else 'meets it'}")
    return (
        "Target of a tuned model: on every set the requested cell on test is at most two standard "
        "errors above the request, pooled it has no more errors in the other cell than LR at equal "
        f"counts, and fewer on at least {least} of {len(titles)} sets, by any margin after the "
        "correction below. "
        f"{'; '.join(verdicts)}."
    )


def by_construction(results: Results) -> str:
    """The results on the tuning set, which say little."""
    names = results.methods("requests", results.titles("requests")[0])
    totals = [results.total("requests", name) for name in names]
    n, n_met, n_more = (
        sum(getattr(one, name) for one in totals) for name in ("n", "n_met", "n_more")
    )
    text = (
        f"{n_met} of {n} requests about one cell are met on the tuning set, and {n_more} with more "
        "errors in total there than the moved threshold of the same model"
    )
    if (n_met, n_more) == (n, 0):
        text += (
            ". Both hold by construction: the moved threshold is the first candidate, and it "
            "meets any limit on one cell"
        )
    return f"{text}. (The authors' program met {PROGRAM_MET} of {PROGRAM_REQUESTED}.)"


def chosen_rule(results: Results) -> str:
    """The rule that the choice gives, and whether it is the default."""
    rules = results.methods("choice", results.titles("choice")[0])
    valid = [rule for rule in rules if not tables.n_missed(results, rule)]
    if not valid:
        return "No rule meets the requests on every set."
    best = min(valid, key=lambda rule: results.total("choice", rule).ratio("LR"))
    verb = "is" if best == choice.DEFAULT else "is not"
    return f"The choice is {best}, which {verb} the default."


def control(results: Results) -> str:
    """How fair the comparison at equal counts is."""
    made, compared = results.total("requests", "LR-Tune").control
    return (
        f"As a control, LR's own moved thresholds make {made:.0f} errors in the other cell; this "
        f"comparison, at their own counts, has {compared:.0f} ({tables.change(compared, made)})."
    )


def reproduced(found: Sequence[Claim], number: int | None = None) -> str:
    """How many of the differences in the paper are found."""
    counts = Counter(claim.found for claim in found if number in (None, claim.table))
    which = "the tables print" if number is None else "this table prints"
    return (
        f"Of {counts.total()} differences that {which}, {counts[1]} are found here, {counts[0]} "
        f"are not significant, and {counts[-1]} significantly have the other sign."
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
    """The printed numbers that are impossible."""
    wrong = [
        f"{one.method} on {one.title}"
        for one in implied_fractions(results.titles("table 2"))
        if not one.possible
    ]
    return f"No class has a fraction near the one that these numbers imply: {listed(wrong)}."


def tuned_requests(results: Results) -> str:
    """How many requests of table 2 were met on the tuning set."""
    texts = []
    for method in ("LR-Tune", "MB-Tune", "MB-Tune-Freeze"):
        met = [
            split[method].met
            for title in results.titles("table 2")
            for split in results.found["table 2", title]
        ]
        texts.append(f"{method} {sum(map(bool, met))} of {len(met)}")
    return f"Requests met on the tuning set: {listed(texts)}."


def programs(results: Results) -> str:
    """The sizes of the programs."""
    sizes = {
        title: results.mean("table 2", title, "MB", lambda evaluation: evaluation.n_learners)
        for title in results.titles("table 2")
    }
    means = listed([f"{size:.1f} on {title}" for title, size in sizes.items()])
    return (
        f"Learners that a program of {results.plan.size.n_levels} levels has, on average: {means}."
    )


def freezing(results: Results) -> str:
    """The effect of ε."""
    one, levels = results.frozen, results.plan.size.n_levels
    nodes = levels * (levels + 1) // 2
    return (
        f"On the first training set of {results.plan.pictured}, {one.free} of {nodes} nodes have "
        f"a learner without freezing and {one.left} with ε = {one.epsilon:g}; the paper has "
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
    texts = []
    for method in ("half the errors", "half the errors on the favoured class"):
        gap = results.gap("grid", "Liver", method, "grid search", overall)
        texts.append(
            f"with a request for {method}, tuning is {describe_gap(gap)} grid search ({gap} points)"
        )
    return f"{'; '.join(texts).capitalize()}. The paper has {TUNED - GRID:+.2f}."


def errors_by_levels(results: Results) -> str:
    """Figure 4 in words."""
    title, c = results.plan.pictured, favoured(results.plan.pictured)
    levels = results.plan.levels

    def means(name: str, level: int) -> tuple[float, float]:
        on_favoured = results.mean("levels", title, (name, level), lambda one: one.errors(c))
        return on_favoured, 100 - results.mean("levels", title, (name, level), overall)

    few, rate = means("LR-Tune", ALONE)
    texts = []
    for name in ("MB", "MB-Tune", "MB-Tune-Freeze"):
        points = [means(name, level) for level in levels]
        fewer = sum(on_favoured < few for on_favoured, _ in points)
        better = sum(errors < rate for _, errors in points)
        both = sum(a < few and b < rate for a, b in points)
        texts.append(f"{name} {fewer}, {better} and {both}")
    alone, deepest = (means(*model)[0] for model in (("LR", ALONE), ("MB", levels[-1])))
    return (
        f"Before tuning LR has {alone:.0f} errors on the favoured class and MB with {levels[-1]} "
        f"levels {deepest:.0f}; each got a request for half of its own. "
        f"Number of {len(levels)} depths with fewer errors than LR-Tune on the favoured class, "
        f"in all, and both: {'; '.join(texts)}."
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
        texts.append(f"{name} is {describe_gap(gap)} it ({gap} points)")
    return (
        f"Accuracy on the tuned class, the mean of {deep[0]} to {deep[-1]} levels against that of "
        f"{shallow[0]} to {shallow[-1]}: {'; '.join(texts)}."
    )


def times(results: Results) -> str:
    """The time of tuning relative to that of training."""
    ratios = {}
    for title in results.titles("times"):
        ours = tables.mean_times(results, title)
        ratios[title] = (ours["MB-Tune"] / ours["MB"], TABLE_3[title][1] / TABLE_3[title][0])
    each = listed([f"{a:.1f} on {t} (paper {b:.1f})" for t, (a, b) in ratios.items()])
    theirs = PROGRAM_TIMES[1] / PROGRAM_TIMES[0]
    return (
        f"Time of training with one request, as a multiple of training: {each}. The authors' "
        f"program, run on Spambase, took {theirs:.0f} times as long."
    )


def granularity(results: Results) -> str:
    """How many nodes get a request."""
    part = f"granularity {GRANULAR_LEVELS[0]}"
    texts = []
    for title in results.titles(part):
        every, weak = (
            results.mean(part, title, name, lambda evaluation: evaluation.n_requested)
            for name in ("I-ALL", "I-SELECT")
        )
        theirs = TABLE_4[title]["I-ALL"][0], TABLE_4[title]["I-SELECT"][0]
        texts.append(f"{weak:.1f} of {every:.1f} on {title} (paper {theirs[1]} of {theirs[0]})")
    return f"With {GRANULAR_LEVELS[0]} levels I-SELECT requests {listed(texts)}."


def noise(results: Results) -> str:
    """The best at both ends, by data set."""
    first, last = results.plan.rates[0], results.plan.rates[-1]
    texts = []
    for title in results.titles("noise"):
        names = {}
        for rate in (first, last):
            methods = [name for name, of in results.methods("noise", title) if of == rate]
            means = {m: results.mean("noise", title, (m, rate), overall) for m in methods}
            names[rate] = max(means, key=lambda name: means[name])
        texts.append(f"{title}: {names[first]} and {names[last]}")
    return f"Best at {first:.0%} and at {last:.0%} of wrong labels: {'; '.join(texts)}."


def verdict_on_noise(results: Results) -> list[str]:
    """Wins and losses at the highest rate."""
    last = results.plan.rates[-1]
    sentences = []
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
        sentences.append(
            f"With {last:.0%} of the training labels wrong {one} is above {'; '.join(where[1])}. "
            f"It is below {'; '.join(where[-1])}."
        )
    return sentences
