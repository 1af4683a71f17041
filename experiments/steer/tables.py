"""The tables of the page."""

from __future__ import annotations

from collections import Counter

import numpy as np

from experiments._page import bold, table
from experiments.steer import rivals
from experiments.steer.asking import Tally
from experiments.steer.data import KNOWN
from experiments.steer.results import BAR, Results
from experiments.steer.rivals import LOG_ODDS, MAPIE, MEMBER, OURS, SEQUENCE, STACKING, START, TUNED

COMPARED = (MEMBER, STACKING, LOG_ODDS, START)
NONE = "–"


def shown_p(p: float) -> str:
    """A p-value, short."""
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def guarantees(results: Results) -> str:
    """Pooled counts on the test part, by rate and rule; bold: below the bar."""
    heading = ["promised", "rule", "promises", "wrong on test", "pooled rate"]
    heading += ["seen broken", "by chance", "p", "p at the limit"]
    rows = []
    for percent in results.percents:
        for rule in (OURS, TUNED):
            one = results.pooled(percent, rule)
            row = [f"{percent} %", rule, str(one.guarantees), f"{one.wrong} of {one.m}"]
            row += [f"{one.wrong / one.m:.2%}", f"{one.broken:.1%}", f"{one.expected:.1%}"]
            row += [bold(shown_p(p), p <= BAR) for p in (one.p, one.p_at_limit)]
            rows.append(row)
    return table(heading, rows)


def strategies(results: Results) -> str:
    """How Margrave's models were found, by rate."""
    names = sorted({case.strategy for case in results.cases})
    rows = []
    for percent in results.percents:
        counts = Counter(case.strategy for case in results.cases if case.percent == percent)
        rows.append([f"{percent} %", *(str(counts[name]) for name in names)])
    return table(["promised", *names], rows)


def cost(results: Results) -> str:
    """Recall of the other class by data set; differences bold where Margrave is worse."""
    heading = ["data set", "promises", OURS, *COMPARED]
    heading += [f"{OURS} − {rule}" for rule in (MEMBER, STACKING)]
    rows = []
    for title in results.titles:
        row = [title, str(_n_promises(results, title))]
        row += [f"{results.recalls(title, rule).mean():.1f}" for rule in (OURS, *COMPARED)]
        for rule in (MEMBER, STACKING):
            gap = results.gap(title, rule)
            row.append(bold(str(gap), gap.mean < -gap.error))
        rows.append(row)
    rows.append(_overall(results, "mean", results.titles))
    rest = [title for title in results.titles if title not in KNOWN]
    if len(rest) < len(results.titles):
        rows.append(_overall(results, "without the three that were not new", rest))
    return table(heading, rows)


def _overall(results: Results, name: str, titles: list[str]) -> list[str]:
    row = [name, ""]
    row += [f"{results.recall(rule, titles):.2f}" for rule in (OURS, *COMPARED)]
    row += [str(results.gap_over_sets(rule, titles)) for rule in (MEMBER, STACKING)]
    return [bold(cell, cell != "") for cell in row]


def _n_promises(results: Results, title: str) -> int:
    return sum(len(run.cases) for run in results.runs if run.title == title)


def by_rate(results: Results) -> str:
    """Recall of the other class by side and rate, the mean over promises."""
    rows = []
    for side in ("fp", "fn"):
        for percent in results.percents:
            cases = [c for c in results.cases if (c.side, c.percent) == (side, percent)]
            if cases:
                means = [np.mean([c.recall(rule) for c in cases]) for rule in (OURS, *COMPARED)]
                best = max(means)
                cells = [bold(f"{mean:.1f}", mean == best) for mean in means]
                rows.append([f"{side} <= {percent}%", str(len(cases)), *cells])
    return table(["promised", "promises", OURS, *COMPARED], rows)


def mapie(results: Results) -> str:
    """Where it finds a threshold, its test rates and recall beside ours."""
    if not rivals.HAS_MAPIE:
        return 'MAPIE is not installed here (`pip install ".[mapie]"`), so it is left out.'
    heading = ["", "promises", "threshold found", "seen broken, by rate", "recall", f"{OURS} there"]
    rows = []
    for rule in (MAPIE, SEQUENCE):
        n, theirs, ours = results.beside(rule)
        broken = [
            f"{percent} %: {one.broken:.1%} (rate {one.wrong / one.m:.2%})"
            for percent in results.percents
            if (one := results.pooled(percent, rule)).guarantees
        ]
        share = f"{n} ({n / len(results.cases):.0%})"
        cells = [rule, str(len(results.cases)), share, "; ".join(broken) or NONE]
        rows.append([*cells, f"{theirs:.1f}", f"{ours:.1f}"])
    return table(heading, rows)


def requests(results: Results) -> str:
    """Requests by data set."""
    heading = ["data set", "requests", "met", "test errors", "best member", "start committee"]
    heading += ["in the cell asked for", "best member", "start committee"]
    rows = [[title, *_tallied(results.tally(title))] for title in results.titles]
    rows.append(["**all**", *(f"**{text}**" for text in _tallied(results.tally()))])
    return table(heading, rows)


def _tallied(tally: Tally) -> list[str]:
    in_cell = (tally.cell, tally.member_cell, tally.start_cell)
    return [str(number) for number in (tally.asked, tally.met, *tally.errors, *in_cell)]


def members(results: Results) -> str:
    """How often each member was the best, in words."""
    counts = Counter(run.member for run in results.runs)
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())
