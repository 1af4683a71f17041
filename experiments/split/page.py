"""The page of the study: verdicts and tables in a Markdown template, with the plots beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from experiments._page import bold, listed, table, versions, write_page
from experiments.martingale.results import Gap
from experiments.split import data, figures
from experiments.split.results import (
    MAPIE,
    PLANNED,
    PLANNED_ORDER_STATISTIC,
    RIVALS,
    SMALL,
    Case,
    Key,
    Results,
    both_certify,
    by_problem,
    by_source,
    difference,
    mean_recall,
)
from experiments.split.trainings import FIXED, MIN_TRAINING
from experiments.steer import findings
from experiments.steer.chance import N_DRAWS
from experiments.steer.guarantees import ORDER_STATISTIC
from experiments.steer.results import MIN_P, is_higher
from experiments.steer.rivals import CONFIDENCE, MARGRAVE
from experiments.steer.tables import NONE, format_p, percent

TEMPLATE = Path(__file__).with_name("template.md")
WANTED = 0.3
"""The target on the allowance: the largest difference to the order statistic, in points."""
NO_MAPIE = ' It is not installed here (`pip install ".[mapie]"`), so the study leaves it out.'


def write(results: Results, folder: Path, run: str) -> Path:
    """Write the page and its plots; return the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    figures.write_all(results, folder)
    return write_page(
        TEMPLATE,
        folder / "split.md",
        run=run + (f" (incomplete: {listed(results.incomplete)})" if results.incomplete else ""),
        seed=results.seed,
        versions=versions() + (f", mapie {version('mapie')}" if MAPIE in RIVALS else ""),
        n_problems=len({case.title for case in results.cases}),
        n_sources=len({case.source for case in results.cases}),
        n_splits=results.plan.n_splits,
        n_steering=results.plan.n_steering,
        n_cases=f"{len(results.cases):,}",
        max_rows=f"{data.MAX_ROWS:,}",
        min_minority=data.MIN_MINORITY,
        min_training=MIN_TRAINING,
        confidence=f"{CONFIDENCE:g}",
        percents=listed(f"{each} %" for each in results.percents),
        targets="\n".join(f"- {sentence}" for sentence in targets(results)),
        best=results.best_fixed(MARGRAVE),
        splits=tabulate_splits(results.cases),
        fixed=tabulate_fixed(results),
        certified=certified(results),
        rivals=tabulate_rivals(results),
        mapie="" if MAPIE in RIVALS else NO_MAPIE,
        guarantees=tabulate_guarantees(results),
        n_draws=f"{N_DRAWS:,}",
        sizes=tabulate_sizes(results),
        expected=expected(results.cases),
    )


def targets(results: Results) -> list[str]:
    """Report every target."""
    return [
        findings.guarantees(results.guarantees),
        allowance(results.cases),
        rivals(results),
        fixed_splits(results),
        planning(results.cases),
    ]


def _report(name: str, met: bool, text: str) -> str:
    return f"{name}: {bold('met' if met else 'missed', True)}. {text}"


def allowance(cases: Sequence[Case]) -> str:
    """Report whether accepted models use the whole allowance."""
    gap = difference(cases, PLANNED, PLANNED_ORDER_STATISTIC)
    if gap is None:
        return "Use of the allowance: not measured."
    at_fixed = [
        mean_recall(cases, (MARGRAVE, at)) - mean_recall(cases, (ORDER_STATISTIC, at))
        for at in FIXED
    ]
    return _report(
        "Use of the allowance",
        abs(gap.mean) <= WANTED,
        f"At the planned split, the recall of accepted models minus that of the {ORDER_STATISTIC} "
        f"is {gap} points, by construction, because both are the same threshold there; the target "
        f"is at most {WANTED:g} points in either direction. At the fixed splits, the difference is "
        f"{min(at_fixed):+.2f} to {max(at_fixed):+.2f} points, because `accept` leaves out samples "
        "that allow no more errors.",
    )


def certified(results: Results) -> str:
    """Report how many requests the planned split certifies."""
    n = sum(case.is_certified(PLANNED) for case in results.cases)
    return f"{n:,} of {len(results.cases):,}"


def rivals(results: Results) -> str:
    """Report whether a rival is ahead at the planned split."""
    gaps = {rule: difference(results.cases, (rule, None), PLANNED) for rule in RIVALS}
    known = {rule: gap for rule, gap in gaps.items() if gap is not None}
    name, target = "Rivals at the planned split", "none is ahead by more than one standard error"
    return _compare(name, known, is_higher, target)


def fixed_splits(results: Results) -> str:
    """Report whether a rival is ahead at the fixed split that is the best for it."""
    cases = results.cases
    known = {
        f"{rule} at {best}": gap
        for rule in RIVALS
        if (gap := difference(cases, (rule, best := results.best_fixed(rule)), PLANNED))
    }
    name, target = "Rivals at their best fixed split", "none is level or ahead on average"
    text = _compare(name, known, lambda gap: gap.mean >= 0, target)
    both = {}
    for rule in RIVALS:
        key = rule, results.best_where_both(rule)
        some = both_certify(cases, key, PLANNED)
        if gap := difference(some, key, PLANNED):
            both[f"{rule} at {key[1]}"] = gap, len(some)
    if not both:
        return text
    strongest, (gap, n) = max(both.items(), key=lambda one: one[1][0].mean)
    return (
        f"{text} These numbers count refused requests as 0. Over the requests that both certify, "
        f"the strongest is {strongest}: {gap} points over {n:,} of {len(cases):,} requests, "
        f"{findings.describe_difference(gap)}."
    )


def _compare(name: str, gaps: Mapping[str, Gap], wins: Callable[[Gap], bool], target: str) -> str:
    if not gaps:
        return f"{name}: not measured."
    winners = [rule for rule, gap in gaps.items() if wins(gap)]
    strongest = max(gaps, key=lambda rule: gaps[rule].mean)
    text = f"The strongest is {strongest}: its recall minus {MARGRAVE}'s is {gaps[strongest]} "
    text += f"points. The target is that {target}."
    if winners:
        text += f" Ahead: {listed(winners)}."
    return _report(name, not winners, text)


def planning(cases: Sequence[Case]) -> str:
    """Report whether planning takes less time than training."""
    plan = np.array([case.facts["planning"] for case in cases])
    train = np.array([case.facts["seconds"] for case in cases]) - plan
    return _report(
        "Time of planning",
        float(plan.sum()) < float(train.sum()),
        f"It takes {percent(plan.sum() / train.sum(), 0)} of the time of training the committee "
        f"once; it takes longer than training for {percent(float(np.mean(plan > train)), 1)} of "
        "the requests.",
    )


def expected(cases: Sequence[Case]) -> str:
    """Compare the recall that the plan expects with that on the test sets."""
    wanted = np.mean(by_source(cases, lambda case: 100 * case.facts["expected"]))
    return f"{wanted:.1f} %; the test sets show {mean_recall(cases, PLANNED):.1f} %"


def tabulate_splits(cases: Sequence[Case]) -> str:
    """Tabulate Margrave at each split; bold if it is ahead of the planned one."""
    heading = ["split", "certified", "recall", "minus planned", "where both certify"]
    n_planned = sum(case.is_certified(PLANNED) for case in cases)
    rows = [["planned", f"{n_planned:,}", f"{mean_recall(cases, PLANNED):.2f}", NONE, NONE]]
    for at in FIXED:
        key = MARGRAVE, at
        both = both_certify(cases, key, PLANNED)
        n_certified = sum(case.is_certified(key) for case in cases)
        row = [str(at), f"{n_certified:,}", f"{mean_recall(cases, key):.2f}"]
        rows.append([*row, *(_mark(difference(some, key, PLANNED)) for some in (cases, both))])
    return table(heading, rows)


def tabulate_fixed(results: Results) -> str:
    """Tabulate Margrave at the planned split and at its best fixed one, by size and origin."""
    best: Key = (MARGRAVE, results.best_fixed(MARGRAVE))
    heading = ["problems", "number (sources)", "planned", f"fixed, {best[1]}", "difference"]
    heading += ["over problems", f"where both certify, {best[1]}"]
    small, large = f"fewer than {SMALL:,} rows", f"{SMALL:,} rows or more"
    parts = {
        f"{small}, new": [case for case in results.small if case.is_new],
        f"{small}, steering": [case for case in results.small if not case.is_new],
        small: results.small,
        f"{large}, new": [case for case in results.large if case.is_new],
        f"{large}, steering": [case for case in results.large if not case.is_new],
        large: results.large,
        "all": results.cases,
    }
    rows = []
    for part, cases in parts.items():
        if cases:
            gains = by_problem(cases, lambda case: case.recall(PLANNED) - case.recall(best))
            row = [part, f"{len(gains)} ({len({case.source for case in cases})})"]
            row += [f"{mean_recall(cases, key):.2f}" for key in (PLANNED, best)]
            row.append(str(difference(cases, PLANNED, best) or NONE))
            row.append(f"{np.mean(list(gains.values())):+.2f}")
            both = both_certify(cases, PLANNED, best)
            row.append(str(difference(both, PLANNED, best) or NONE))
            rows.append([bold(cell, not part.endswith(("new", "steering"))) for cell in row])
    return table(heading, rows)


def tabulate_rivals(results: Results) -> str:
    """Tabulate the rivals at the planned split and at the fixed ones; bold if ahead."""
    cases = results.cases
    heading = ["score", "planned split", f"minus {MARGRAVE}", *map(str, FIXED)]
    heading += ["best of these minus planned", "best where both certify"]
    rows = []
    for rule in (MARGRAVE, ORDER_STATISTIC, *RIVALS):
        best, best_both = (rule, results.best_fixed(rule)), (rule, results.best_where_both(rule))
        both = difference(both_certify(cases, PLANNED, best_both), best_both, PLANNED)
        at_planned = difference(cases, (rule, None), PLANNED) if rule != MARGRAVE else None
        row = [rule, f"{mean_recall(cases, (rule, None)):.2f}", _mark(at_planned)]
        row += [f"{mean_recall(cases, (rule, at)):.2f}" for at in FIXED]
        row.append(_mark(difference(cases, best, PLANNED)))
        rows.append([*row, f"{_mark(both)} ({best_both[1]})"])
    return table(heading, rows)


def _mark(gap: Gap | None) -> str:
    """Format a rival's difference, bold if it is ahead by more than one standard error."""
    return bold(str(gap), is_higher(gap)) if gap else NONE


def tabulate_guarantees(results: Results) -> str:
    """Tabulate pooled test errors at the planned split; bold where the target is missed."""
    heading = ["guaranteed", "threshold", "guarantees", "test errors", "pooled rate"]
    heading += ["exceeded", "by chance", "p"]
    rows = []
    pooled = results.guarantees
    for rate in pooled.percents:
        for rule in (MARGRAVE, ORDER_STATISTIC):
            one = pooled.pooled(rate, rule)
            row = [f"{rate} %", rule, str(one.n_cases), f"{one.wrong:,} of {one.m:,}"]
            row += [percent(one.wrong / one.m, 2), percent(one.exceeded, 1)]
            row += [percent(one.expected, 1), bold(format_p(one.p), one.p <= MIN_P)]
            rows.append(row)
    return table(heading, rows)


def tabulate_sizes(results: Results) -> str:
    """Tabulate what the planned split sets aside, and what each split certifies, by limit."""
    splits: dict[Key, str] = {PLANNED: "planned"}
    splits |= {(MARGRAVE, at): str(at) for at in FIXED}
    heading = ["guaranteed", "requests", "of the limited class", "of the other class"]
    heading += [f"certified: {name}" for name in splits.values()]
    rows = []
    for rate in results.percents:
        cases = [case for case in results.cases if case.request.percent == rate]
        aside = np.array([case.set_aside(None) for case in cases])
        row = [f"{rate} %", str(len(cases)), *(percent(each, 0) for each in aside.mean(axis=0))]
        for key in splits:
            row.append(percent(sum(case.is_certified(key) for case in cases) / len(cases), 0))
        rows.append(row)
    return table(heading, rows)
