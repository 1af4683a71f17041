"""The page of the study: a Markdown template and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from experiments._page import bold, save_figure, table, versions, write_page
from experiments.rank_margin import study
from experiments.rank_margin.paper import METHODS, SOURCES, TABLES
from experiments.rank_margin.results import ALPHA, Column, Results
from margrave.compare import (
    CriticalDifferenceDisplay,
    FriedmanHolm,
    RankMarginDisplay,
    friedman_holm,
)

TEMPLATE = Path(__file__).with_name("template.md")
FIGURES = {1: "Contraceptive", 2: "Liver"}
OURS = "ν by cv, logit"


def write(results: Results, folder: Path, seed: int, strong: Sequence[str], run: str) -> Path:
    """Write the page and its figures, and return the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    of_strong = [column for column in results.columns if column[0] == "strong"]
    tested = results.over_data_sets(of_strong, [name for _, name in of_strong], control=OURS)
    _difference_figure(tested, folder / "rank_margin_strong.png")
    return write_page(
        TEMPLATE,
        folder / "rank_margin.md",
        run=run,
        n_sets=len(results.titles),
        n_runs=results.values.shape[1],
        seed=seed,
        versions=versions(),
        verdict=" ".join(_verdict(results, size) for size in study.SIZES),
        alpha=f"{ALPHA:g}",
        tables="\n".join(_printed_table(results, size) for size in study.SIZES),
        figures="\n".join(_margin_figures(results, folder, seed)),
        n_strong=len(strong),
        strong=", ".join(strong),
        columns=_columns_table(results),
        n_members=study.SIZES[-1],
        fractions=_fractions_table(results),
        strong_tests=tested,
        remarks="\n".join(_remarks(results)),
        largest=" and ".join(_largest_difference(results, size) for size in study.SIZES),
    )


def _printed_table(results: Results, size: int) -> str:
    """Make table 2 or 3, with the printed numbers and ours, and the same tests of both."""
    members: list[Column] = [(f"{size} Modest", method) for method in METHODS]
    features: list[Column] = [("features", name) for name in study.FEATURES]
    heading = ["data set"]
    heading += ["RankMargin, paper", "ours", "RankBoost, paper", "ours", "features"]
    heading += ["SVM, paper", "ours", "features"]
    rows = []
    for title in results.titles:
        best = results.best_of(title, members)
        printed = [f"{mean:.3f} ({sd:.3f})" for mean, sd in TABLES[size][title]]
        ours = [_cell(results, title, column, best) for column in members]
        raw = [_cell(results, title, column, set()) for column in features]
        cells = [printed[0], ours[0], printed[1], ours[1], raw[0], printed[2], ours[2], raw[1]]
        rows.append([title, *cells])
    tested, theirs = _both_tests(results, size)
    lines = [f"### Table {study.SIZES.index(size) + 2}: {size} members", "", table(heading, rows)]
    lines += ["", "Over the data sets, ours:", "", "```text", str(tested), "```", ""]
    lines += ["The printed means, by the same tests:", "", "```text", str(theirs), "```", ""]
    return "\n".join(lines)


def _both_tests(results: Results, size: int) -> tuple[FriedmanHolm, FriedmanHolm]:
    """Run the same tests over the data sets, of our means and of the printed ones."""
    members: list[Column] = [(f"{size} Modest", method) for method in METHODS]
    ours = results.over_data_sets(members, METHODS, control="RankMargin")
    printed = _printed_means(results, size)
    return ours, friedman_holm(printed, methods=METHODS, control="RankMargin", alpha=ALPHA)


def _verdict(results: Results, size: int) -> str:
    """State whether the best of the three methods in the paper is the best here."""
    ours, theirs = _both_tests(results, size)
    first, printed_first = (one.methods[int(np.argmin(one.mean_ranks))] for one in (ours, theirs))
    ranks = ", ".join(
        f"{name} {rank:.2f}" for name, rank in zip(ours.methods, ours.mean_ranks, strict=True)
    )
    verb = "is" if first == printed_first else "is not"
    finding = "finds a difference" if ours.differ else "finds no difference"
    return (
        f"With {size} members, that {printed_first} has the best mean rank {verb} reproduced "
        f"(here: {ranks}; Friedman's test {finding} at α = {ALPHA:g})."
    )


def _cell(results: Results, title: str, column: Column, best: set[Column]) -> str:
    runs = results.runs(title, [column])
    return bold(f"{runs.mean():.3f} ({runs.std(ddof=1):.3f})", column in best)


def _printed_means(results: Results, size: int) -> list[list[float]]:
    return [[mean for mean, _ in TABLES[size][title]] for title in results.titles]


def _margin_figures(results: Results, folder: Path, seed: int) -> list[str]:
    """Draw figures 1 and 2, and return the lines that include them."""
    lines = []
    for number, title in FIGURES.items():
        if title not in results.titles:
            continue
        parts = study.split(*study.load(title), seed=seed)
        figure, axes = plt.subplots(2, 1, figsize=(8, 7), layout="constrained", sharex=True)
        for ax, size in zip(axes, study.SIZES, strict=True):
            outputs = study.modest_committee(parts, size, seed)
            on_tuning = replace(outputs, test=outputs.tune)
            curves = {name: study.COMBINERS[name](on_tuning) for name in (*METHODS, OURS)}
            RankMarginDisplay.from_predictions(outputs.y_tune, curves, ax=ax)
            ax.set_title(f"{title}, {size} members")
        name = f"rank_margin_figure_{number}.png"
        save_figure(figure, folder / name)
        lines += [f"![Margins on {title}]({name})", ""]
    return lines


def _columns_table(results: Results) -> str:
    """Make a table of every combiner of the larger and of the strong committee, by data set."""
    shown = (f"{study.SIZES[-1]} Modest", "features", "strong")
    columns = [column for column in results.columns if column[0] in shown]
    means, ranks = results.means(columns), results.mean_ranks(columns)
    overall = means.mean(axis=0)
    rows = []
    for j, (committee, combiner) in enumerate(columns):
        cells = [bold(f"{mean:.3f}", mean == means[i].max()) for i, mean in enumerate(means[:, j])]
        cells += [
            bold(f"{overall[j]:.4f}", overall[j] == overall.max()),
            bold(f"{ranks[j]:.1f}", ranks[j] == ranks.min()),
        ]
        rows.append([committee, combiner, *cells])
    return table(["committee", "combiner", *results.titles, "mean", "rank"], rows)


def _fractions_table(results: Results) -> str:
    """Make a table of RankMargin with the larger committee, for several splits."""
    size = study.SIZES[-1]
    headings = [study.format_fractions(fractions) for fractions in study.OTHER_FRACTIONS]
    columns: list[Column] = [
        (committee, "RankMargin") for committee in (f"{size} Modest", *headings)
    ]
    rows = []
    for title in results.titles:
        mean, deviation = TABLES[size][title][0]
        cells = [f"{mean:.3f} ({deviation:.3f})"]
        cells += [_cell(results, title, column, set()) for column in columns]
        rows.append([title, *cells])
    printed = np.array(_printed_means(results, size))[:, :1]
    distances = np.abs(results.means(columns) - printed).mean(axis=0)
    cells = [f"{distance:.3f}" for distance in distances]
    rows.append(["mean distance from the paper", "", *cells])
    return table(["data set", "paper", "thirds", *headings], rows)


def _difference_figure(tested: FriedmanHolm, path: Path) -> None:
    figure, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
    CriticalDifferenceDisplay(tested).plot(ax)
    save_figure(figure, path)


def _remarks(results: Results) -> list[str]:
    lines = [f"- {title}: {SOURCES[title].remark}" for title in results.titles]
    lines = [line for line in lines if not line.endswith(": ")]
    missing = [title for title in SOURCES if title not in results.titles]
    if missing:
        lines.append(f"- Not in this run: {', '.join(missing)}.")
    return lines


def _largest_difference(results: Results, size: int) -> str:
    columns: list[Column] = [(f"{size} Modest", method) for method in METHODS]
    differences = results.means(columns) - _printed_means(results, size)
    i, j = np.unravel_index(np.abs(differences).argmax(), differences.shape)
    where = f"{results.titles[int(i)]}, {METHODS[int(j)]}"
    return f"{differences[i, j]:+.3f} with {size} members ({where})"
