"""The tables of the page, with the results of the paper beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from experiments._page import bold, table
from experiments.martingale import noise
from experiments.martingale.claims import Claim, favoured_fractions, implied_fractions
from experiments.martingale.data import favoured
from experiments.martingale.paper import (
    GRID,
    PROGRAM,
    PROGRAM_METHODS,
    SOURCES,
    TABLE_1,
    TABLE_1_METHODS,
    TABLE_2,
    TABLE_2_METHODS,
    TABLE_3,
    TABLE_3_METHODS,
    TABLE_4,
    TUNED,
)
from experiments.martingale.requests import Total
from experiments.martingale.results import Of, Results, on_class, on_rest, overall
from experiments.martingale.study import GRANULAR_LEVELS

UNPRINTED = ("LR", "LR-Tune", "Ada", "Ada-Tune", "MB-Tune quick")
NONE = "–"
RIVALS = (
    ("MB", "LR"),
    ("AMB", "LR"),
    ("MB", "AdaBoost-LR"),
    ("AMB", "AdaBoost-LR"),
    ("MB", "AdaBoost-stumps"),
    ("AMB", "AdaBoost-stumps"),
    ("MB", "random forest"),
    ("MB-Freeze", "MB"),
    ("MB-Freeze", "LR"),
    ("AMB", "random forest"),
    ("MB-stumps", "AdaBoost-stumps"),
    ("AMB-stumps", "AdaBoost-stumps"),
)


def cell(results: Results, part: str, title: str, key: Any, of: Of = overall) -> str:
    """Mean and standard deviation over the splits."""
    if key not in results.methods(part, title):
        return NONE
    values = results.values(part, title, key, of)
    return f"{values.mean():.2f} ({values.std(ddof=1):.1f})"


def printed(value: float | None) -> str:
    """A number of the paper."""
    return NONE if value is None else f"{value:.2f}"


def change(new: float, old: float) -> str:
    """In per cent."""
    return f"{new / old - 1:+.0%}"


def requested_cell(results: Results) -> str:
    """The requested cell on the test sets; bold: more than two standard errors too many."""
    heading = ["tuned", "data set", "requests", "met", "wanted", "tuned model"]
    heading += ["its threshold moved", "LR's threshold moved"]
    rows = []
    for name, title, total in _totals(results):
        cells = [total.n, total.n_met, f"{total.wanted:.0f} ± {2 * total.error:.0f}"]
        cells += [bold(str(total.tuned), not total.holds), total.threshold, total.logistic]
        rows.append([name, title, *map(str, cells)])
    return table(heading, rows)


def other_cell(results: Results) -> str:
    """The other cell at equal counts of the requested one."""
    heading = ["tuned", "data set", "count of the requested cell", "tuned model", "start model"]
    heading += ["LR", "forest", "tuned model / LR", "difference from LR, per split"]
    rows = []
    for name, title, total in _totals(results):
        cells = [f"{one:.0f}" for one in (total.other, *total.at_equal_count.values())]
        gap = NONE if title == "all" else str(results.excess("requests", title, name))
        rows.append([name, title, str(total.tuned), *cells, f"{total.ratio('LR'):.2f}", gap])
    return table(heading, rows)


def _totals(results: Results) -> Iterator[tuple[str, str, Total]]:
    """Each tuning on each data set, and on all."""
    titles = results.titles("requests")
    for name in results.methods("requests", titles[0]):
        for title in titles:
            yield name, title, results.total("requests", name, [title])
        yield name, "all", results.total("requests", name)


def choice(results: Results) -> str:
    """The rules of tuning on other data sets, pooled."""
    heading = ["rule", "requested cell: wanted", "tuned model", "sets with too many"]
    heading += ["other cell: tuned model", "LR at equal counts", "tuned model / LR"]
    rows = []
    for rule in results.methods("choice", results.titles("choice")[0]):
        total = results.total("choice", rule)
        cells = [f"{total.wanted:.0f}", total.tuned, n_missed(results, rule), total.other]
        cells += [f"{total.at_equal_count['LR']:.0f}", f"{total.ratio('LR'):.3f}"]
        rows.append([rule, *map(str, cells)])
    return table(heading, rows)


def n_missed(results: Results, rule: str) -> int:
    """Data sets on which a rule has too many errors in the requested cell."""
    titles = results.titles("choice")
    return sum(not results.total("choice", rule, [title]).holds for title in titles)


def table_1(results: Results) -> str:
    """Table 1, its columns as rows."""
    titles = results.titles("table 1")
    heading = ["", *(text for title in titles for text in (f"{title}, paper", "ours"))]
    rows = []
    for at, method in enumerate(TABLE_1_METHODS):
        pairs = ((printed(TABLE_1[t][at]), cell(results, "table 1", t, method)) for t in titles)
        rows.append([method, *(text for pair in pairs for text in pair)])
    return table(heading, rows)


def table_2(results: Results) -> str:
    """Table 2, the columns that it does not print first."""
    heading = ["data set", "accuracy on", *UNPRINTED]
    heading += [text for method in TABLE_2_METHODS for text in (f"{method}, paper", "ours")]
    rows = []
    for title in results.titles("table 2"):
        c = favoured(title)
        for place, row, of in zip(
            _places(title), TABLE_2[title], (on_class(c), on_rest(c), overall), strict=True
        ):
            cells = [cell(results, "table 2", title, method, of) for method in UNPRINTED]
            for method, value in zip(TABLE_2_METHODS, row, strict=True):
                cells += [printed(value), cell(results, "table 2", title, method, of)]
            rows.append([title, place, *cells])
    return table(heading, rows)


def _places(title: str) -> tuple[str, str, str]:
    source = SOURCES[title]
    if source.positive is None:
        return f"{source.favoured} (tuned)", "the rest", "all"
    signs = ("+", "−") if source.favoured == source.positive else ("−", "+")
    return f"{signs[0]} (tuned)", signs[1], "all"


def program(results: Results) -> str:
    """The authors' own program, run, beside ours; accuracy on all samples."""
    titles = [title for title in results.titles("table 2") if title in PROGRAM]
    heading = ["data set", *(t for name in PROGRAM_METHODS for t in (f"{name}, theirs", "ours"))]
    rows = []
    for title in titles:
        each = zip(PROGRAM_METHODS, PROGRAM[title], strict=True)
        pairs = ((f"{value:.1f}", cell(results, "table 2", title, name)) for name, value in each)
        rows.append([title, *(text for pair in pairs for text in pair)])
    return table(heading, rows)


def fractions(results: Results) -> str:
    """The fractions of the favoured class that the printed accuracies imply; bold: impossible."""
    titles = results.titles("table 2")
    actual = favoured_fractions(titles)
    found = {(one.title, one.method): one for one in implied_fractions(titles)}
    rows = []
    for title in titles:
        cells = []
        for method in TABLE_2_METHODS:
            one = found.get((title, method))
            text = NONE if one is None else f"{one.low:.3f} to {one.high:.3f}"
            cells.append(bold(text, one is not None and not one.possible))
        rows.append([title, f"{actual[title]:.3f}", *cells])
    return table(["data set", "favoured class", *TABLE_2_METHODS], rows)


def differences(found: Sequence[Claim], number: int) -> str:
    """Differences that a table prints, and ours, by data set."""
    mine = [claim for claim in found if claim.table == number]
    titles = list(dict.fromkeys(claim.title for claim in mine))
    rows = []
    for what in dict.fromkeys(claim.what for claim in mine):
        by_title = {claim.title: str(claim) for claim in mine if claim.what == what}
        rows.append([what, *(by_title.get(title, NONE) for title in titles)])
    return table(["paper / ours", *titles], rows)


def beside(results: Results) -> str:
    """Accuracy of other learners at the nodes and of other ensembles; bold: the best of a set."""
    best, titles = leaders(results), results.titles("beside")
    rows = []
    for part, method in _compared(results):
        cells = [bold(cell(results, part, t, method), method in best[t]) for t in titles]
        mean = np.mean([results.mean(part, title, method, overall) for title in titles])
        rows.append([method, *cells, f"{mean:.2f}"])
    return table(["", *titles, "mean"], rows)


def leaders(results: Results) -> dict[str, list[str]]:
    """The best of a data set, by accuracy; several if they tie."""
    found = {}
    for title in results.titles("beside"):
        means = {m: results.mean(p, title, m, overall) for p, m in _compared(results)}
        best = max(means.values())
        found[title] = [method for method, mean in means.items() if mean > best - 1e-9]
    return found


def _compared(results: Results) -> list[tuple[str, str]]:
    others = results.methods("beside", results.titles("beside")[0])
    own = [("table 2", name) for name in ("LR", "MB", "AMB", "MB-Tune")]
    return own + [("beside", name) for name in others]


def grid(results: Results) -> str:
    """Section 5.1."""
    paper = {"grid search": GRID, "half the errors": TUNED}
    rows = []
    for method in results.methods("grid", "Liver"):
        met = [split[method].met for split in results.found["grid", "Liver"]]
        requests_met = NONE if met[0] is None else f"{sum(met)} of {len(met)}"
        ours = cell(results, "grid", "Liver", method)
        rows.append([method, printed(paper.get(method)), ours, requests_met])
    return table(["", "paper", "ours", "request met"], rows)


def times(results: Results) -> str:
    """Table 3, and how many times longer tuning takes."""
    heading = ["data set"]
    for method in TABLE_3_METHODS:
        heading += [f"{method}, paper (ms)", "ours"]
        heading += [] if method == "MB" else ["ratio to MB, paper", "ours"]
    heading += ["MB-Tune quick", "ratio to MB", "learners, MB", *TABLE_3_METHODS[1:]]
    rows = []
    for title in results.titles("times"):
        ours = mean_times(results, title)
        cells = []
        for method, theirs in zip(TABLE_3_METHODS, TABLE_3[title], strict=True):
            cells += [str(theirs), f"{ours[method]:.0f}"]
            if method != "MB":
                cells += [f"{theirs / TABLE_3[title][0]:.1f}", f"{ours[method] / ours['MB']:.1f}"]
        quick = ours["MB-Tune quick"]
        cells += [f"{quick:.0f}", f"{quick / ours['MB']:.1f}"]
        for method in TABLE_3_METHODS:
            n = results.mean("table 2", title, method, lambda evaluation: evaluation.n_learners)
            cells.append(f"{n:.1f}")
        rows.append([title, *cells])
    return table(heading, rows)


def mean_times(results: Results, title: str) -> dict[str, float]:
    """In ms, over the splits."""
    found = results.found["times", title]
    return {method: float(np.mean([one[method] for one in found])) for method in found[0]}


def granularity(results: Results) -> str:
    """Table 4."""
    heading = ["data set", "levels", "granularity", "nodes requested, paper", "ours"]
    heading += [t for sign in ("Acc⁻", "Acc⁺", "Acc") for t in (f"{sign}, paper", "ours")]
    rows = []
    for level in GRANULAR_LEVELS:
        part = f"granularity {level}"
        for title in results.titles(part):
            for name in results.methods(part, title):
                nodes, *theirs = TABLE_4[title].get(name, (None, None, None, None))
                requested = results.mean(part, title, name, lambda one: one.n_requested)
                cells = [NONE, NONE] if nodes is None else [str(nodes), f"{requested:.1f}"]
                for value, of in zip(theirs, (on_class(0), on_class(1), overall), strict=True):
                    cells += [printed(value), cell(results, part, title, name, of)]
                rows.append([title, str(level), name, *cells])
    return table(heading, rows)


def with_noise(results: Results) -> str:
    """Accuracy by the fraction of wrong training labels; bold: the best of a column."""
    rates = results.plan.rates
    rows = []
    for title in results.titles("noise"):
        means = {
            (method, rate): results.mean("noise", title, (method, rate), overall)
            for method in noise.METHODS
            for rate in rates
        }
        for method in noise.METHODS:
            cells = []
            for rate in rates:
                best = max(means[other, rate] for other in noise.METHODS)
                text = cell(results, "noise", title, (method, rate))
                cells.append(bold(text, means[method, rate] == best))
            lost = means[method, rates[-1]] - means[method, rates[0]]
            rows.append([title, method, *cells, f"{lost:+.2f}"])
    heading = ["data set", "", *(f"{rate:.0%}" for rate in rates), "last less first"]
    return table(heading, rows)


def rivals(results: Results) -> str:
    """Where martingale boosting wins against others as labels get noisier, and where it loses."""
    rows = []
    for one, other in RIVALS:
        cells: dict[int, list[str]] = {1: [], 0: [], -1: []}
        for title in results.titles("noise"):
            by_sign: dict[int, list[str]] = {1: [], 0: [], -1: []}
            for rate in results.plan.rates:
                gap = results.gap("noise", title, (one, rate), (other, rate), overall)
                by_sign[gap.sign].append(f"{100 * rate:g}")
            for sign, rates in by_sign.items():
                if rates:
                    cells[sign].append(f"{title} {', '.join(rates)}")
        rows.append([one, other, *("; ".join(cells[sign]) or NONE for sign in (1, 0, -1))])
    return table(["", "against", "above at (%)", "no significant difference", "below"], rows)
