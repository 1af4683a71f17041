"""The page of the study: a Markdown template and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from experiments._page import bold, save_figure, table, versions, write_page
from experiments.rank_margin import findings, margins, study, unbalanced
from experiments.rank_margin.paper import BOLD, METHODS, SOURCES, TABLES
from experiments.rank_margin.results import ALPHA, Column, Results
from margrave.compare import CriticalDifferenceDisplay, FriedmanHolm

TEMPLATE = Path(__file__).with_name("template.md")


def write(
    of_splits: Mapping[str, Results],
    of_cases: Mapping[str, Results],
    folder: Path,
    seed: int,
    strong: Sequence[str],
    run: str,
) -> Path:
    """Write the page and its figures, and return the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    splits = findings.ordered_splits(of_splits)
    lead = splits[0]
    results = of_splits[lead]
    _difference_figure(findings.friedman_strong(results), folder / "rank_margin_strong.png")
    figures, checked = _margins(results, lead, folder, seed)
    return write_page(
        TEMPLATE,
        folder / "marrocco.md",
        run=run,
        n_sets=len(results.titles),
        n_runs=results.values.shape[1],
        seed=seed,
        versions=versions(),
        lead=lead,
        choice=findings.describe_choice(of_splits),
        claims="\n".join(f"- {findings.describe_claim(of_splits, m)}" for m in findings.RIVALS),
        strong_findings=" ".join(findings.describe_strong(s, of_splits[s]) for s in splits),
        splits=_splits_table(of_splits),
        single=findings.describe_single(of_splits),
        alpha=f"{ALPHA:g}",
        tables="\n".join(
            _printed_table(of_splits[split], split, size)
            for split in splits
            for size in study.SIZES
        ),
        printed_tests="\n".join(
            f"Table {_number(size)}:\n\n{_text(findings.friedman_printed(results.titles, size))}\n"
            for size in study.SIZES
        ),
        same_rankboost=_same_rankboost(results.titles),
        matches=_matches_table(of_splits),
        figures=figures,
        sentences=_sentences_table(checked),
        n_sentences=len(checked),
        tally=_tally(checked),
        most=f"{margins.MOST:.0%}",
        few=f"{1 - margins.MOST:.0%}",
        n_strong=len(strong),
        strong=", ".join(strong),
        columns="\n\n".join(f"{s}:\n\n{_columns_table(of_splits[s])}" for s in splits),
        strong_tests="\n\n".join(
            f"{s}:\n\n{_text(findings.friedman_strong(of_splits[s]))}" for s in splits
        ),
        n_members=max(study.SIZES),
        n_fewer=min(study.SIZES),
        n_smallest=min(len(study.split(title, seed, lead).y_test) for title in results.titles),
        remarks="\n".join(_remarks(results)),
        deviations=_deviations(results, lead),
        largest=" and ".join(_largest_difference(results, size) for size in study.SIZES),
        **unbalanced.page_values(of_cases, seed),
    )


def _number(size: int) -> int:
    """Return the number of the paper's table with so many members."""
    return study.SIZES.index(size) + 2


def _text(tested: FriedmanHolm) -> str:
    return f"```text\n{tested}\n```"


def _splits_table(of_splits: Mapping[str, Results]) -> str:
    """Make a table of what each split, number of members and C of the SVM finds."""
    heading = ["split", "members", "distance from the paper", "C", "Friedman p"]
    heading += [f"against {rival}" for rival in findings.RIVALS]
    rows = []
    for split, results in of_splits.items():
        for size in study.SIZES:
            own = findings.members(size)[0]
            far = findings.distances(results, own, "RankMargin", size).mean()
            for svm, c in (("SVM", "SVM-light"), (study.OTHER_SVM, "1")):
                p = findings.friedman_members(results, size, svm).p_value
                cells = [findings.compare(results, size, rival, svm) for rival in findings.RIVALS]
                rows.append([split, str(size), f"{far:.3f}", c, f"{p:.4f}", *map(str, cells)])
    for size in study.SIZES:
        p = findings.friedman_printed(results.titles, size).p_value
        cells = [findings.compare_printed(results.titles, size, m) for m in findings.RIVALS]
        rows.append(["printed", str(size), "", "SVM-light", f"{p:.4f}", *map(str, cells)])
    return table(heading, rows)


def _printed_table(results: Results, split: str, size: int) -> str:
    """Make table 2 or 3, with the printed numbers and ours, and the tests of ours."""
    columns = findings.members(size)
    features: list[Column] = [("features", name) for name in study.FEATURES]
    heading = ["data set"]
    heading += ["RankMargin, paper", "ours", "RankBoost, paper", "ours", "features"]
    heading += ["SVM, paper", "ours", "features"]
    rows = []
    for title in results.titles:
        best = results.best_of(title, columns)
        printed = [
            bold(f"{mean:.3f} ± {sd:.3f}", method in BOLD[size][title])
            for method, (mean, sd) in zip(METHODS, TABLES[size][title], strict=True)
        ]
        ours = [_cell(results, title, column, column in best) for column in columns]
        raw = [_cell(results, title, column, False) for column in features]
        cells = [printed[0], ours[0], printed[1], ours[1], raw[0], printed[2], ours[2], raw[1]]
        rows.append([title, *cells])
    lines = [f"### {split}, {size} members (table {_number(size)})", "", table(heading, rows)]
    lines += [
        "",
        "Over the data sets, ours:",
        "",
        _text(findings.friedman_members(results, size)),
        "",
    ]
    return "\n".join(lines)


def _cell(results: Results, title: str, column: Column, is_best: bool) -> str:
    runs = results.runs(title, [column])
    return bold(f"{runs.mean():.3f} ± {runs.std(ddof=1):.3f}", is_best)


def _same_rankboost(titles: Sequence[str]) -> str:
    """Count the data sets with the same printed numbers of RankBoost in both tables."""
    first, second = (TABLES[size] for size in study.SIZES)
    j = METHODS.index("RankBoost")
    same = sum(first[title][j] == second[title][j] for title in titles)
    return f"{same} of {len(titles)}"


def _matches_table(of_splits: Mapping[str, Results]) -> str:
    """Make a table of the mean distance of each reading of each method from the paper."""
    readings = {method: (method, method) for method in METHODS} | {
        name: (name.split(",")[0], name) for name in study.FEATURES
    }
    rows = []
    for split, results in of_splits.items():
        cells = []
        for method, name in readings.values():
            committee = "features" if name in study.FEATURES else "{} Modest"
            far = [
                findings.distances(results, (committee.format(size), name), method, size).mean()
                for size in study.SIZES
            ]
            cells.append(f"{np.mean(far):.3f}")
        rows.append([split, *cells])
    return table(["split", *readings], rows)


def _margins(results: Results, split: str, folder: Path, seed: int) -> tuple[str, list[list[str]]]:
    """Draw figures 1 and 2; return the lines that include them, and a row for each sentence."""
    lines, rows = [], []
    for number, title in margins.FIGURES.items():
        if title not in results.titles:
            continue
        n_runs = results.values.shape[1]
        committees = [
            study.modest_committees(study.split(title, seed + run, split), seed + run)
            for run in range(n_runs)
        ]
        figure, axes = plt.subplots(2, 1, figsize=(8, 7), layout="constrained", sharex=True)
        measured = {}
        for ax, size in zip(axes, study.SIZES, strict=True):
            pairs = [margins.tuning_pairs(of_sizes[size]) for of_sizes in committees]
            margins.plot(pairs, ax)
            ax.set_title(f"{title}, {size} members")
            aucs = results.runs(title, findings.members(size))
            measured[size] = [
                margins.measure(own, dict(zip(METHODS, test, strict=True)))
                for own, test in zip(pairs, aucs, strict=True)
            ]
        name = f"rank_margin_figure_{number}.png"
        save_figure(figure, folder / name)
        lines += [f"![Margins on {title}]({name})", ""]
        for sentence in margins.SENTENCES:
            if sentence.figure == number:
                rows.append(_check(sentence, title, measured))
    return "\n".join(lines), rows


def _sentences_table(rows: Sequence[Sequence[str]]) -> str:
    heading = ["figure", "what the paper says", "measure"]
    heading += [f"true with {size} members" for size in study.SIZES]
    return table([*heading, "true of the means", "result"], rows)


def _tally(rows: Sequence[Sequence[str]]) -> str:
    """Count the sentences by their result, which is the last cell, and those true of the means."""
    results = [row[-1] for row in rows]
    counts = {name: results.count(name) for name in ("holds", "does not hold", "undecided")}
    everywhere = " and ".join(f"{size} members" for size in study.SIZES)
    n_true = sum(row[-2] == everywhere for row in rows)
    return (
        f"{n_true} are true of the means over the runs with both numbers of members; run by run "
        f"{counts['holds']} hold, {counts['does not hold']} fail, and {counts['undecided']} are "
        "undecided"
    )


def _check(
    sentence: margins.Sentence,
    title: str,
    measured: Mapping[int, Sequence[Mapping[str, margins.Measures]]],
) -> list[str]:
    """Make the row of a sentence: the runs in which it is true, the means, and the result."""
    cells, n_true, of_means = [], [], []
    for size, runs in measured.items():
        values = [run[sentence.measure] for run in runs]
        n_true.append(sum(map(sentence.is_true, values)))
        means = {name: float(np.mean([own[name] for own in values])) for name in values[0]}
        if sentence.is_true(means):
            of_means.append(f"{size} members")
        texts = (f"{name} {mean:.3f}" for name, mean in means.items())
        cells.append(f"{n_true[-1]} of {len(runs)} ({', '.join(texts)})")
    where, result = f"{sentence.figure}, {title}", margins.decide(n_true, len(runs))
    true_of_means = " and ".join(of_means) or "none"
    return [where, sentence.text, sentence.measure, *cells, true_of_means, result]


def _columns_table(results: Results) -> str:
    """Make a table of every combiner of the larger and of the strong committee, by data set."""
    shown = (f"{max(study.SIZES)} Modest", "features", "strong")
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


def _deviations(results: Results, split: str) -> str:
    """Count the printed standard deviations of RankMargin that are smaller than ours."""
    n = smaller = 0
    for size in study.SIZES:
        for title in results.titles:
            ours = results.runs(title, findings.members(size)[:1]).std(ddof=1)
            n, smaller = n + 1, smaller + bool(TABLES[size][title][0][1] < ours)
    return f"{smaller} of {n} ({split})"


def _largest_difference(results: Results, size: int) -> str:
    columns = findings.members(size)
    differences = results.means(columns) - findings.printed_means(results.titles, size)
    i, j = np.unravel_index(np.abs(differences).argmax(), differences.shape)
    where = f"{results.titles[int(i)]}, {METHODS[int(j)]}"
    return f"{differences[i, j]:+.3f} with {size} members ({where})"
