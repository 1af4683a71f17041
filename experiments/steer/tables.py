"""The tables of the page."""

from __future__ import annotations

from collections import Counter

import numpy as np

from experiments._page import bold, table
from experiments.steer.data import NOT_NEW
from experiments.steer.guarantees import (
    ACCEPTED,
    ACCEPTED_BY,
    MARGRAVE,
    RETUNE,
    REWEIGHT,
    STRATEGIES,
    TUNED,
    Case,
)
from experiments.steer.learn_then_test import HAS_MAPIE, METHODS
from experiments.steer.results import MIN_P, Results, is_higher

NONE = "–"
ORDER_STATISTIC = "order statistic"
"""The name of Margrave's rule where it is compared with the accepted model."""


def format_p(p: float, name: str = "") -> str:
    """Format a p-value, after its name if there is one."""
    if p < 1e-4:
        return f"{name} < 0.0001".strip()
    return f"{name} = {p:.2g}" if name else f"{p:.2g}"


def guarantees(results: Results) -> str:
    """Tabulate pooled test errors by rate and rule; bold where the target is missed."""
    heading = ["guaranteed", "threshold", "guarantees", "test errors", "pooled rate"]
    heading += ["exceeded", "by chance", "p", "p at the limit"]
    rows = []
    for percent in results.percents:
        for rule in (ACCEPTED, MARGRAVE, TUNED):
            one = results.pooled(percent, rule)
            name = ORDER_STATISTIC if rule == MARGRAVE else rule
            row = [f"{percent} %", name, str(one.n_cases), f"{one.wrong} of {one.m}"]
            row += [f"{one.wrong / one.m:.2%}", f"{one.exceeded:.1%}", f"{one.expected:.1%}"]
            row += [bold(format_p(p), p <= MIN_P) for p in (one.p, one.p_at_limit)]
            rows.append(row)
    return table(heading, rows)


def total_errors(results: Results) -> str:
    """Tabulate test errors of the accepted model and of the order-statistic threshold."""
    heading = ["guaranteed", "guarantees"]
    for name in (ACCEPTED, ORDER_STATISTIC):
        heading += [f"{name}: limited class", "other class", "total"]
    rows = []
    for percent in results.percents:
        cases = [case for case in results.cases if case.percent == percent]
        rows.append([f"{percent} %", str(len(cases)), *_both_errors(cases)])
    rows.append(["**all**", str(len(results.cases)), *_both_errors(results.cases)])
    return table(heading, rows)


def _both_errors(cases: list[Case]) -> list[str]:
    return _error_cells(cases, ACCEPTED) + _error_cells(cases, MARGRAVE)


def _error_cells(cases: list[Case], rule: str) -> list[str]:
    """Sum the test errors of the limited class, of the other class, and of both."""
    outcomes = [outcome for case in cases if (outcome := case.outcomes[rule])]
    names = ("wrong", "missed", "total")
    return [str(sum(getattr(outcome, name) for outcome in outcomes)) for name in names]


def rivals(results: Results) -> str:
    """Tabulate the rivals' recall beside Margrave's; bold where a rival is higher."""
    heading = [
        "score",
        "guarantees",
        "recall",
        f"difference to {MARGRAVE}",
        "higher on",
        "lower on",
    ]
    rest = [title for title in results.titles if title not in NOT_NEW]
    if some_not_new := len(rest) < len(results.titles):
        heading.append("difference on new data sets")
    blank = ["", "", "", ""][: 3 + some_not_new]
    rows = [[MARGRAVE, str(len(results.cases)), f"{results.mean_recall(MARGRAVE):.2f}", *blank]]
    for rule in results.rivals:
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


def strategies(results: Results) -> str:
    """Tabulate how often the opt-in strategies replace the score, and what they do there."""
    heading = ["request", "guarantees", "score replaced", "recall there", f"{MARGRAVE} there"]
    heading += ["total errors of accepted models there", f"{MARGRAVE} there"]
    rows = []
    for rule in (REWEIGHT, RETUNE):
        there = [case for case in results.cases if case.strategies[rule] != "move"]
        recalls = [
            f"{np.mean([case.recall(name) for case in there]):.1f}" if there else NONE
            for name in (rule, MARGRAVE)
        ]
        names = ", ".join(f'"{name}"' for name in STRATEGIES[rule] or ())
        replaced = f"{len(there)} ({len(there) / len(results.cases):.0%})"
        errors = [
            _error_cells(there, ACCEPTED_BY[name])[-1] if there else NONE
            for name in (rule, MARGRAVE)
        ]
        row = [f"`strategies=[{names}]`", str(len(results.cases)), replaced, *recalls, *errors]
        rows.append(row)
    return table(heading, rows)


def mapie(results: Results) -> str:
    """Tabulate for how many guarantees MAPIE finds a threshold, and its rates on test."""
    if not HAS_MAPIE:
        return 'MAPIE is not installed here (`pip install ".[mapie]"`), so it is left out.'
    heading = ["correction", "threshold found"]
    heading += [f"{percent} %: pooled rate (exceeded)" for percent in results.percents]
    rows = []
    for rule in METHODS:
        found = sum(case.outcomes[rule] is not None for case in results.cases)
        row = [rule, f"{found} of {len(results.cases)} ({found / len(results.cases):.0%})"]
        for percent in results.percents:
            one = results.pooled(percent, rule)
            row.append(f"{one.wrong / one.m:.2%} ({one.exceeded:.1%})" if one.n_cases else NONE)
        rows.append(row)
    return table(heading, rows)


def data_sets(results: Results) -> str:
    """Tabulate recall by data set; bold where a rival is higher by one standard error."""
    rows = []
    for title in results.titles:
        n = sum(len(run.cases) for run in results.runs if run.title == title)
        row = [title, str(n), f"{results.recall(title, MARGRAVE):.1f}"]
        for rule in results.rivals:
            recall = results.recall(title, rule)
            shown = NONE if np.isnan(recall) else f"{recall:.1f}"
            row.append(bold(shown, is_higher(results.difference(title, rule))))
        rows.append(row)
    return table(["data set", "guarantees", MARGRAVE, *results.rivals], rows)


def limits(results: Results) -> str:
    """Tabulate recall by limit, the mean over guarantees; bold is the highest of a row."""
    rules = [MARGRAVE, *(rule for rule in results.rivals if rule not in METHODS)]
    rows = []
    for side in ("fp", "fn"):
        for percent in results.percents:
            cases = [c for c in results.cases if (c.side, c.percent) == (side, percent)]
            if cases:
                means = [np.mean([case.recall(rule) for case in cases]) for rule in rules]
                cells = [bold(f"{mean:.1f}", mean == max(means)) for mean in means]
                rows.append([f"`{side} <= {percent}%`", str(len(cases)), *cells])
    return table(["limit", "guarantees", *rules], rows)


def best_members(results: Results) -> str:
    """List how often each member was the best."""
    counts = Counter(run.best_member for run in results.runs)
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())
