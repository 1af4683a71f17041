"""The tables of the page."""

from __future__ import annotations

from experiments._page import bold, table
from experiments.select.comparing import METHODS, REFERENCES
from experiments.select.results import TARGET, Results
from experiments.select.timing import own_seconds, seconds

NONE = "–"


def methods(results: Results) -> str:
    """Make a table of each method over all sets; bold: a set that misses the target."""
    heading = ["method", "queries", "same prediction", "ties", "same outside ties"]
    heading += ["on the worst set", "accuracy, Margrave", "accuracy, DESlib"]
    rows = []
    for method in METHODS:
        one, has_peer = results.counts(method), results.peer is not None
        row = [
            method,
            f"{one.n:,}",
            format_fraction(one.same) if has_peer else NONE,
            f"{100 * one.tied:.1f} %",
        ]
        least = min(results.counts(method, [t]).same_outside for t in results.plan.titles)
        row.append(format_fraction(one.same_outside) if has_peer else NONE)
        row.append(bold(format_fraction(least), least < TARGET) if has_peer else NONE)
        row.append(f"{100 * results.mean_accuracy(method):.2f}")
        row.append(f"{100 * results.mean_of_theirs(method):.2f}" if has_peer else NONE)
        rows.append(row)
    return table(heading, rows)


def format_fraction(fraction: float) -> str:
    """Format a fraction; it is 100 % only if it equals 1."""
    return "100 %" if fraction == 1 else f"{100 * min(fraction, 0.9999):.2f} %"


def accuracy(results: Results) -> str:
    """Make a table of accuracies of our methods and references; bold: the best method."""
    names = (*METHODS, *REFERENCES)
    rows = []
    for title in results.plan.titles:
        each = {name: results.accuracy(name, title) for name in names}
        rows.append([title, *_percents(each)])
    each = {name: results.mean_accuracy(name) for name in names}
    rows.append(["mean", *_percents(each)])
    return table(["data set", *names], rows)


def _percents(each: dict[str, float]) -> list[str]:
    best = max(each[method] for method in METHODS)
    return [
        bold(f"{100 * each[name]:.1f}", name in METHODS and each[name] == best) for name in each
    ]


def times(results: Results) -> str:
    """Make a table of the times of both libraries, and their ratio."""
    heading = ["method", "Margrave, s", "DESlib, s", "times as long", "the rest, times as long"]
    n, rows = results.plan.size.n_query, []
    for method in METHODS:
        mine = seconds(results.ours, method, n)
        row = [method, f"{mine:.3g}"]
        if results.theirs is None:
            rows.append([*row, *[NONE] * 3])
            continue
        other, timed = seconds(results.theirs, method, n), results.theirs["methods"][method]
        few = f" (from {timed['queries']} queries)" if timed["queries"] < n else ""
        own = own_seconds(results.ours, method, n), own_seconds(results.theirs, method, n)
        ratios = other / mine, own[1] / own[0]
        rows.append([*row, f"{other:.3g}{few}", *(f"{_round(ratio):g}" for ratio in ratios)])
    return table(heading, rows)


def _round(ratio: float) -> float:
    """Round to three digits."""
    return float(f"{ratio:.3g}")
