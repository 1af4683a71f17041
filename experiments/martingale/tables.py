"""The tables of the page, with the results of the paper beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments._page import table
from experiments.martingale import noise
from experiments.martingale.claims import MARKS, Claim
from experiments.martingale.data import favoured
from experiments.martingale.paper import (
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
)
from experiments.martingale.results import Of, Results, on_class, overall
from experiments.martingale.study import GRANULARITY

# Columns of table 2 that the paper does not print: the part of the results, and the method.
UNPRINTED = (("table 2", "LR"), ("beside", "random forest"))
NONE = "–"
# The tunings of the requests, by their names in the table.
REQUESTED = {
    "LR-Tune": "LR-Tune",
    "MB-Tune": "MB-Tune quick, any gain",
    "AMB-Tune": "AMB-Tune quick",
}


def requests(results: Results) -> str:
    """The requests on the test sets: the requested cell, and the other one at equal counts."""
    heading = ["tuned", "wanted", "tuned model", "too many", "other cell: tuned model"]
    heading += ["LR", "forest", "tuned model / LR"]
    rows = []
    for short, name in REQUESTED.items():
        total = results.total("requests", name)
        rivals = [total.at_equal_count[rival] for rival in ("LR", "forest")]
        others = [f"{one:,.0f}" for one in (total.other, *rivals)]
        wanted = f"{total.wanted:,.0f} ± {2 * total.error:.0f}"
        exceeded = ", ".join(too_many(results, name)) or "none"
        rows.append(
            [short, wanted, f"{total.tuned:,}", exceeded, *others, f"{total.ratio('LR'):.2f}"]
        )
    return table(heading, rows)


def too_many(results: Results, name: str, part: str = "requests") -> list[str]:
    """Data sets with more than two standard errors too many in the requested cell."""
    titles = results.titles(part)
    return [title for title in titles if not results.total(part, name, [title]).holds]


def table_1(results: Results) -> str:
    """Table 1, its columns as rows."""
    titles = results.titles("table 1")
    rows = [
        [method, *(_both(results, "table 1", t, method, overall, TABLE_1[t][at]) for t in titles)]
        for at, method in enumerate(TABLE_1_METHODS)
    ]
    return table(["", *titles], rows)


def table_2(results: Results) -> str:
    """Table 2 on the tuned class and on all samples, with columns that it does not print."""
    heading = ["data set", "accuracy on", *TABLE_2_METHODS, *(name for _, name in UNPRINTED)]
    rows = []
    for title in results.titles("table 2"):
        for place, row, of in (
            (f"{_tuned_class(title)} (tuned)", TABLE_2[title][0], on_class(favoured(title))),
            ("all", TABLE_2[title][2], overall),
        ):
            cells = [
                NONE if value is None else _both(results, "table 2", title, method, of, value)
                for method, value in zip(TABLE_2_METHODS, row, strict=True)
            ]
            cells += [f"{results.mean(part, title, name, of):.2f}" for part, name in UNPRINTED]
            rows.append([title, place, *cells])
    return table(heading, rows)


def _tuned_class(title: str) -> str:
    source = SOURCES[title]
    if source.positive is None:
        return str(source.favoured)
    return "+" if source.favoured == source.positive else "−"


def _both(results: Results, part: str, title: str, key: Any, of: Of, value: float) -> str:
    """An accuracy of the paper, and ours."""
    return f"{value:.2f} / {results.mean(part, title, key, of):.2f}"


def program(results: Results) -> str:
    """The accuracies that the paper prints, the authors' own program, and ours."""
    rows = []
    for title in (title for title in results.titles("table 2") if title in PROGRAM):
        in_paper = dict(zip(TABLE_2_METHODS, TABLE_2[title][2], strict=True))
        cells = []
        for method, theirs in zip(PROGRAM_METHODS, PROGRAM[title], strict=True):
            ours = results.mean("table 2", title, method, overall)
            cells.append(f"{in_paper[method]:.1f} / {theirs:.1f} / {ours:.1f}")
        rows.append([title, *cells])
    return table(["data set", *PROGRAM_METHODS], rows)


def differences(found: Sequence[Claim]) -> str:
    """Differences that table 2 prints, marked by whether they are found, by data set."""
    mine = [claim for claim in found if claim.table == 2]
    titles = list(dict.fromkeys(claim.title for claim in mine))
    rows = []
    for what in dict.fromkeys(claim.what for claim in mine):
        by_title = {claim.title: MARKS[claim.found] for claim in mine if claim.what == what}
        rows.append([what, *(by_title.get(title, NONE) for title in titles)])
    return table(["difference", *titles], rows)


def times(results: Results) -> str:
    """Table 3: the time of training, and how many times longer tuning takes."""
    heading = ["data set", "MB in ms, paper", "ours"]
    for method in TABLE_3_METHODS[1:]:
        heading += [f"{method} / MB, paper", "ours"]
    rows = []
    for title in results.titles("times"):
        found = results.found["times", title]
        ours = {method: float(np.mean([one[method] for one in found])) for method in found[0]}
        first, *others = TABLE_3[title]
        cells = [str(first), f"{ours['MB']:.0f}"]
        for method, theirs in zip(TABLE_3_METHODS[1:], others, strict=True):
            cells += [f"{theirs / first:.1f}", f"{ours[method] / ours['MB']:.1f}"]
        rows.append([title, *cells, f"{ours['MB-Tune quick'] / ours['MB']:.1f}"])
    return table([*heading, "MB-Tune quick / MB"], rows)


def granularity(results: Results) -> str:
    """Table 4."""
    heading = ["data set", "granularity", "nodes", "Acc⁻", "Acc⁺", "Acc"]
    rows = []
    for title in results.titles(GRANULARITY):
        for name, (nodes, *theirs) in TABLE_4[title].items():
            requested = results.mean(GRANULARITY, title, name, lambda one: one.n_requested)
            cells = [NONE if nodes is None else f"{nodes} / {requested:.1f}"]
            for value, of in zip(theirs, (on_class(0), on_class(1), overall), strict=True):
                cells.append(_both(results, GRANULARITY, title, name, of, float(value or 0)))
            rows.append([title, name, *cells])
    return table(heading, rows)


def with_noise(results: Results) -> str:
    """Accuracy without wrong training labels and with the most of them."""
    titles = results.titles("noise")
    first, last = results.plan.rates[0], results.plan.rates[-1]
    rows = []
    for method in noise.METHODS:
        cells = []
        for title in titles:
            means = (
                results.mean("noise", title, (method, rate), overall) for rate in (first, last)
            )
            cells.append(" → ".join(f"{mean:.1f}" for mean in means))
        rows.append([method, *cells])
    return table(["", *titles], rows)
