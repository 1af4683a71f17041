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
    BEFORE,
    MAPIE,
    NEW_SCORE,
    PLANNED,
    RIVALS,
    SMALL,
    Case,
    Results,
    by_problem,
    by_source,
    difference,
    mean_recall,
)
from experiments.split.trainings import FRACTIONS, MIN_TRAINING
from experiments.steer import findings
from experiments.steer.chance import N_DRAWS
from experiments.steer.guarantees import ACCEPTED, MARGRAVE
from experiments.steer.results import MIN_P, is_higher
from experiments.steer.rivals import CONFIDENCE
from experiments.steer.tables import NONE, ORDER_STATISTIC, format_p, percent

TEMPLATE = Path(__file__).with_name("template.md")
WANTED = 3.0
"""The target on small problems: so many points of recall over the rule before."""
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
        before=tabulate_before(results),
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
        certified(results),
        small(difference(results.small, PLANNED, BEFORE)),
        large(difference(results.large, PLANNED, BEFORE)),
        rivals(results),
        fixed_splits(results),
        planning(results.cases),
    ]


def _report(name: str, met: bool, text: str) -> str:
    return f"{name}: {bold('met' if met else 'missed', True)}. {text}"


def certified(results: Results) -> str:
    """Report whether all requests are certified that some split can certify."""
    n = len(results.cases)
    planned, before = (sum(c.is_certified(key) for c in results.cases) for key in (PLANNED, BEFORE))
    return _report(
        "Refusals",
        planned == n,
        f"The planned split certifies {planned:,} of the {n:,} requests that some split can "
        f"certify; the target is all. The rule before certifies {before:,}.",
    )


def small(gap: Gap | None) -> str:
    """Report the gain on small problems."""
    name = f"Problems with fewer than {SMALL:,} rows"
    if gap is None:
        return f"{name}: not measured."
    text = f"The planned split gains {gap} points of recall; the target is {WANTED:g}."
    return _report(name, gap.mean >= WANTED, text)


def large(gap: Gap | None) -> str:
    """Report the difference on larger problems."""
    if gap is None:
        return "Larger problems: not measured."
    text = f"The difference is {gap} points; the target is no loss beyond one standard error."
    return _report("Larger problems", gap.mean >= -gap.error, text)


def rivals(results: Results) -> str:
    """Report whether a rival is ahead at the planned split."""
    gaps = {rule: difference(results.cases, (rule, "planned"), PLANNED) for rule in RIVALS}
    name, target = "Rivals at the planned split", "none is ahead by more than one standard error"
    return _compare(name, gaps, is_higher, target)


def fixed_splits(results: Results) -> str:
    """Report whether a rival is ahead at the fixed split that is the best for it."""
    gaps = {
        f"{rule} at {percent(at, 0)}": difference(results.cases, (rule, at), PLANNED)
        for rule, at in ((rule, results.best_fixed(rule)) for rule in RIVALS)
    }
    name, target = "Rivals at their best fixed split", "none is level or ahead on average"
    return _compare(name, gaps, lambda gap: gap.mean >= 0, target)


def _compare(
    name: str, gaps: Mapping[str, Gap | None], wins: Callable[[Gap], bool], target: str
) -> str:
    known = {rule: gap for rule, gap in gaps.items() if gap is not None}
    if not known:
        return f"{name}: not measured."
    winners = [rule for rule, gap in known.items() if wins(gap)]
    strongest = max(known, key=lambda rule: known[rule].mean)
    text = f"The strongest is {strongest}, {known[strongest]} points; the target is that {target}."
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


def tabulate_before(results: Results) -> str:
    """Tabulate the planned split and the rule before, by size and origin of the problems."""
    heading = ["problems", "number (sources)", "before", "planned", "difference"]
    heading += ["by the split alone", "over problems", "where both certify"]
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
            both = [c for c in cases if c.is_certified(PLANNED) and c.is_certified(BEFORE)]
            gains = by_problem(cases, lambda case: case.recall(PLANNED) - case.recall(BEFORE))
            row = [part, f"{len(gains)} ({len({case.source for case in cases})})"]
            row += [f"{mean_recall(cases, key):.2f}" for key in (BEFORE, PLANNED)]
            row += [str(difference(cases, PLANNED, key) or NONE) for key in (BEFORE, NEW_SCORE)]
            row.append(f"{np.mean(list(gains.values())):+.2f}")
            row.append(str(difference(both, PLANNED, BEFORE) or NONE))
            rows.append([bold(cell, not part.endswith(("new", "steering"))) for cell in row])
    return table(heading, rows)


def tabulate_rivals(results: Results) -> str:
    """Tabulate the rivals at the planned split and at their best fixed one; bold if ahead."""
    cases = results.cases
    heading = ["score", "planned split", f"minus {MARGRAVE}", *(percent(at, 0) for at in FRACTIONS)]
    heading += ["best of these minus planned", "where both certify"]
    rows = []
    for rule in (MARGRAVE, *RIVALS):
        best = rule, results.best_fixed(rule)
        both = [case for case in cases if case.is_certified(PLANNED) and case.is_certified(best)]
        at_planned = difference(cases, (rule, "planned"), PLANNED) if rule != MARGRAVE else None
        gaps = [difference(cases, best, PLANNED), difference(both, best, PLANNED)]
        row = [rule, f"{mean_recall(cases, (rule, 'planned')):.2f}", _mark(at_planned)]
        row += [f"{mean_recall(cases, (rule, at)):.2f}" for at in FRACTIONS]
        rows.append([*row, *(_mark(gap) for gap in gaps)])
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
        for rule, name in {MARGRAVE: ORDER_STATISTIC, ACCEPTED: ACCEPTED}.items():
            one = pooled.pooled(rate, rule)
            row = [f"{rate} %", name, str(one.n_cases), f"{one.wrong:,} of {one.m:,}"]
            row += [percent(one.wrong / one.m, 2), percent(one.exceeded, 1)]
            row += [percent(one.expected, 1), bold(format_p(one.p), one.p <= MIN_P)]
            rows.append(row)
    return table(heading, rows)


def tabulate_sizes(results: Results) -> str:
    """Tabulate what the planned split sets aside, and what each split certifies, by limit."""
    splits = {PLANNED: "planned", BEFORE: "before"}
    splits |= {(MARGRAVE, at): percent(at, 0) for at in FRACTIONS}
    heading = ["guaranteed", "requests", "of the limited class", "of the other class"]
    heading += [f"certified: {name}" for name in splits.values()]
    rows = []
    for rate in results.percents:
        cases = [case for case in results.cases if case.request.percent == rate]
        aside = np.array([case.set_aside("planned") for case in cases])
        row = [f"{rate} %", str(len(cases)), *(percent(each, 0) for each in aside.mean(axis=0))]
        for key in splits:
            row.append(percent(sum(case.is_certified(key) for case in cases) / len(cases), 0))
        rows.append(row)
    return table(heading, rows)
