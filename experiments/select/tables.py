"""The tables of the page."""

from __future__ import annotations

from experiments._page import bold, table
from experiments.select.comparing import METHODS, OUTSIDE, REFERENCES
from experiments.select.meta_des import META_DES
from experiments.select.results import TARGET, Results
from experiments.select.ties import REASONS
from experiments.select.timing import own_seconds, seconds

NONE = "–"


def methods(results: Results) -> str:
    """Make a table of each method over all sets."""
    heading = ["method", "queries", "same prediction", "ties", "same outside ties"]
    heading += ["accuracy, Margrave", "accuracy, DESlib"]
    rows = []
    for method in METHODS:
        one, has_peer = results.counts(method), results.peer is not None
        row = [
            method,
            f"{one.n:,}",
            format_fraction(one.same) if has_peer else NONE,
            f"{one.tied:.1%}",
        ]
        row.append(format_fraction(one.same_outside) if has_peer else NONE)
        row.append(f"{100 * results.mean_accuracy(method):.2f}")
        row.append(f"{100 * results.mean_of_theirs(method):.2f}" if has_peer else NONE)
        rows.append(row)
    return table(heading, rows)


def format_fraction(fraction: float) -> str:
    """Format a fraction; it is 100 % only if it equals 1."""
    return "100 %" if fraction == 1 else f"{min(fraction, 0.9999):.2%}"


def outside(results: Results) -> str:
    """Make a table of the agreement outside ties by set and method; bold: target missed."""
    titles = results.plan.titles
    heading = ["method", *(f"{title} ({results.n_classes(title)})" for title in titles)]
    rows = []
    for method in METHODS:
        row = [method]
        for title in titles:
            one = results.counts(method, [title])
            agreed = bold(format_fraction(one.same_outside), one.same_outside < TARGET)
            row.append(f"{agreed if results.peer else NONE} ({one.tied:.0%})")
        rows.append(row)
    return table(heading, rows)


def ties(results: Results) -> str:
    """Make a table of ties by reason, with the number of different predictions."""
    rows = []
    for method in METHODS:
        one = results.counts(method)
        cells = [
            f"{one.ties[why]} ({one.apart[why]})" if one.ties[why] else NONE for why in REASONS
        ]
        rows.append([method, *cells, str(one.apart[OUTSIDE])])
    return table(["method", *REASONS, "differs without a tie"], rows)


def meta_des(results: Results) -> str:
    """Make a table of META-DES by set, with its own neighbours and with those of DESlib."""
    if results.peer is None:
        return ""
    heading = [
        "data set",
        "tuning samples",
        "other neighbours in DESlib",
        "its own neighbour there",
    ]
    heading += ["same outside ties", "fitted on DESlib's neighbours", "coefficients differ by"]
    rows = []
    for title in results.plan.titles:
        own, fitted = results.counts(META_DES, [title]), results.meta_des([title])
        row = [title, f"{fitted.n:,}", f"{fitted.others:,}", f"{fitted.own:,}"]
        row.append(bold(format_fraction(own.same_outside), own.same_outside < TARGET))
        same = fitted.counts.same_outside
        row.append(bold(format_fraction(same), same < TARGET))
        rows.append([*row, f"{fitted.difference:.1g}"])
    return table(heading, rows)


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
    heading = ["method", "Margrave, s", "neighbours", "DESlib, s", "neighbours"]
    heading += ["times as long", "the rest, times as long"]
    n, rows = results.plan.size.n_query, []
    for method in METHODS:
        mine = seconds(results.ours, method, n)
        row = [method, f"{mine:.3g}", f"{results.ours['methods'][method]['kneighbors']:.3g}"]
        if results.theirs is None:
            rows.append([*row, *[NONE] * 4])
            continue
        other = seconds(results.theirs, method, n)
        timed = results.theirs["methods"][method]
        few = f" (from {timed['queries']} queries)" if timed["queries"] < n else ""
        row += [f"{other:.3g}{few}", f"{timed['kneighbors'] * n / timed['queries']:.3g}"]
        own = own_seconds(results.ours, method, n), own_seconds(results.theirs, method, n)
        row += [f"{other / mine:.3g}", f"{own[1] / own[0]:.3g}"]
        rows.append(row)
    return table(heading, rows)
