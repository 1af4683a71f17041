"""The tables of the page."""

from __future__ import annotations

import numpy as np

from experiments._page import bold, table
from experiments.steer.data import NOT_NEW
from experiments.steer.guarantees import ORDER_STATISTIC, RIVALS, THRESHOLDS
from experiments.steer.learn_then_test import METHODS
from experiments.steer.results import MIN_P, Results, is_higher
from experiments.steer.rivals import MARGRAVE

NONE = "–"


def format_p(p: float, name: str = "") -> str:
    """Format a p-value, after its name if there is one."""
    if p < 1e-4:
        return f"{name} < 0.0001".strip()
    return f"{name} = {p:.2g}" if name else f"{p:.2g}"


def percent(fraction: float, digits: int) -> str:
    """Format a fraction in percent."""
    return f"{100 * fraction:.{digits}f} %"


def guarantees(results: Results) -> str:
    """Tabulate pooled test errors by rate and rule; bold where the target is missed."""
    heading = ["guaranteed", "threshold", "guarantees", "test errors", "pooled rate"]
    heading += ["exceeded", "by chance", "p"]
    rows = []
    for rate in results.percents:
        for rule in THRESHOLDS:
            one = results.pooled(rate, rule)
            row = [f"{rate} %", rule, str(one.n_cases), f"{one.wrong:,} of {one.m:,}"]
            row += [percent(one.wrong / one.m, 2), percent(one.exceeded, 1)]
            row += [percent(one.expected, 1), bold(format_p(one.p), one.p <= MIN_P)]
            rows.append(row)
    return table(heading, rows)


def rivals(results: Results) -> str:
    """Tabulate the rivals' recall beside Margrave's; bold where a rival is higher."""
    heading = [
        "score",
        "guarantees",
        "recall",
        f"minus {MARGRAVE}",
        "higher on",
        "lower on",
    ]
    rest = [title for title in results.titles if title not in NOT_NEW]
    if some_not_new := len(rest) < len(results.titles):
        heading.append("the same on new data sets")
    blank = [""] * (3 + some_not_new)
    rows = [[MARGRAVE, str(len(results.cases)), f"{results.mean_recall(MARGRAVE):.2f}", *blank]]
    for rule in (ORDER_STATISTIC, *RIVALS):
        found = sum(case.outcomes[rule] is not None for case in results.cases)
        gap = results.mean_difference(rule)
        recall = f"{results.mean_recall(rule):.2f}" if found else NONE
        row = [bold(rule, is_higher(gap)), str(found), recall]
        row.append(bold(str(gap or NONE), is_higher(gap)))
        means = [np.mean(each) for t in results.titles if (each := results.differences(t, rule))]
        row += [str(sum(mean > 0 for mean in means)), str(sum(mean < 0 for mean in means))]
        if some_not_new:
            gap = results.mean_difference(rule, rest)
            row.append(bold(str(gap or NONE), is_higher(gap)))
        rows.append(row)
    return table(heading, rows)


def data_sets(results: Results) -> str:
    """Tabulate recall by data set; bold where a score is higher by one standard error.

    The thresholds by MAPIE, which use Margrave's score, are left out.
    """
    rules = [rule for rule in RIVALS if rule not in METHODS]
    rows = []
    for title in results.titles:
        n = sum(len(run.cases) for run in results.runs if run.title == title)
        row = [title, str(n), f"{results.recall(title, MARGRAVE):.1f}"]
        for rule in rules:
            recall = results.recall(title, rule)
            shown = NONE if np.isnan(recall) else f"{recall:.1f}"
            row.append(bold(shown, is_higher(results.difference(title, rule))))
        rows.append(row)
    return table(["data set", "guarantees", MARGRAVE, *rules], rows)
