"""The page of the study: a Markdown template and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from experiments._page import bold, save_figure, table, versions, write_page
from experiments.rank_margin import findings, margins, study, unbalanced
from experiments.rank_margin.paper import BOLD, METHODS, SOURCES, TABLES
from experiments.rank_margin.results import ALPHA, Results

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
    lead = findings.leading_split(of_splits)
    results = of_splits[lead]
    checked = _margins(results, lead, folder, seed)
    return write_page(
        TEMPLATE,
        folder / "marrocco.md",
        run=run,
        n_sets=len(results.titles),
        n_runs=results.values.shape[1],
        seed=seed,
        versions=versions(),
        lead=lead,
        verdict="\n".join(f"- {findings.describe_rival(results, m)}" for m in findings.RIVALS),
        tally=_tally(checked),
        committees=findings.describe_committees(results),
        choice=findings.describe_choice(of_splits),
        alpha=f"{ALPHA:g}",
        tables=_printed_table(results),
        tests=_tests_table(results),
        single=findings.describe_single(results),
        other_splits=findings.describe_other_splits(of_splits),
        same_rankboost=_same_rankboost(results.titles),
        readings=findings.describe_readings(results),
        features=findings.describe_features(results),
        sentences=_sentences_table(checked),
        most=f"{100 * margins.MOST:.0f} %",
        few=f"{100 * (1 - margins.MOST):.0f} %",
        n_strong=len(strong),
        strong=", ".join(strong),
        ours=findings.OURS,
        combiners=_combiners_table(results),
        strong_findings=" ".join(
            findings.describe_strong(split, of_splits[split])
            for split in study.FULL
            if split != lead
        ),
        n_members=max(study.SIZES),
        n_fewer=min(study.SIZES),
        n_smallest=min(len(study.split(title, seed, lead).y_test) for title in results.titles),
        remarks="\n".join(_remarks(results)),
        deviations=_deviations(results),
        **unbalanced.page_values(of_cases, seed),
    )


def _printed_table(results: Results) -> str:
    """Make tables 2 and 3 in one, with the printed means and ours."""
    heading = ["data set", *(f"{method}, {size}" for size in study.SIZES for method in METHODS)]
    rows = []
    for title in results.titles:
        cells = []
        for size in study.SIZES:
            columns = findings.members(size)
            best, ours = results.best_of(title, columns), results.runs(title, columns).mean(axis=0)
            for k, method in enumerate(METHODS):
                printed = bold(f"{TABLES[size][title][k][0]:.3f}", method in BOLD[size][title])
                cells.append(f"{printed} / {bold(f'{ours[k]:.3f}', columns[k] in best)}")
        rows.append([title, *cells])
    return table(heading, rows)


def _tests_table(results: Results) -> str:
    """Make a table of the tests over the data sets, of the printed means and of ours."""
    heading = ["means"]
    for rival in findings.RIVALS:
        heading += [f"larger than {rival}", "Holm p", "Wilcoxon p"]
    rows = []
    for number, size in enumerate(study.SIZES, start=2):
        printed = [findings.compare_printed(results.titles, size, m) for m in findings.RIVALS]
        found = [findings.compare(results, size, m) for m in findings.RIVALS]
        for name, of_rivals in ((f"table {number}, printed", printed), ("ours", found)):
            cells = []
            for own in of_rivals:
                cells.append(f"{own.n_wins} of {own.n_sets}")
                cells.append(bold(f"{own.p:.4f}", own.outcome != "not different"))
                cells.append(bold(f"{own.p_pair:.4f}", own.outcome_of_pair != "not different"))
            rows.append([name, *cells])
    return table(heading, rows)


def _same_rankboost(titles: Sequence[str]) -> str:
    """Count the data sets with the same printed numbers of RankBoost in both tables."""
    first, second = (TABLES[size] for size in study.SIZES)
    j = METHODS.index("RankBoost")
    same = sum(first[title][j] == second[title][j] for title in titles)
    return f"{same} of {len(titles)}"


def _margins(results: Results, split: str, folder: Path, seed: int) -> list[list[str]]:
    """Draw figures 1 and 2; return a row for each sentence about them."""
    rows = []
    for number, title in margins.FIGURES.items():
        if title not in results.titles:
            continue
        n_runs = results.values.shape[1]
        committees = [
            study.modest_committees(study.split(title, seed + run, split), seed + run)
            for run in range(n_runs)
        ]
        figure, axes = plt.subplots(
            1, 2, figsize=(10, 4.2), layout="constrained", sharex=True, sharey=True
        )
        measured, lowest = {}, []
        for ax, size in zip(axes, study.SIZES, strict=True):
            pairs = [margins.tuning_pairs(of_sizes[size]) for of_sizes in committees]
            aucs = results.runs(title, findings.members(size))
            margins.plot(pairs, dict(zip(METHODS, aucs.mean(axis=0), strict=True)), ax)
            ax.set_title(f"{title}, {size} members")
            lowest.append(ax.get_ylim()[0])
            measured[size] = [
                margins.measure(own, dict(zip(METHODS, test, strict=True)))
                for own, test in zip(pairs, aucs, strict=True)
            ]
        axes[1].set_ylabel("")
        axes[1].set_ylim(bottom=min(lowest))
        save_figure(figure, folder / f"rank_margin_figure_{number}.png")
        for sentence in margins.SENTENCES:
            if sentence.figure == number:
                rows.append(_check(sentence, measured))
    return rows


def _sentences_table(rows: Sequence[Sequence[str]]) -> str:
    heading = ["figure", "what the paper says", "measure"]
    heading += [f"runs, {size} members" for size in study.SIZES]
    return table([*heading, "means", "result"], rows)


def _tally(rows: Sequence[Sequence[str]]) -> str:
    """Count the sentences by their result, which is the last cell, and those true of the means."""
    results = [row[-1] for row in rows]
    counts = {name: results.count(name) for name in ("holds", "does not hold", "undecided")}
    n_true = sum(row[-2] == "true" for row in rows)
    return (
        f"Of {len(rows)} checks of what the paper says about them, {n_true} are true of the means "
        f"over the runs; run by run {counts['holds']} hold, {counts['does not hold']} fail and "
        f"{counts['undecided']} are undecided."
    )


def _check(
    sentence: margins.Sentence,
    measured: Mapping[int, Sequence[Mapping[str, margins.Measures]]],
) -> list[str]:
    """Make the row of a sentence: the runs in which it is true, the means, and the result."""
    cells, n_true, of_means = [], [], []
    for runs in measured.values():
        values = [run[sentence.measure] for run in runs]
        n_true.append(sum(map(sentence.is_true, values)))
        means = {name: float(np.mean([own[name] for own in values])) for name in values[0]}
        of_means.append(sentence.is_true(means))
        cells.append(f"{n_true[-1]} of {len(runs)}")
    true_of_means = "true" if all(of_means) else "partly" if any(of_means) else "false"
    result = margins.decide(n_true, len(runs))
    return [str(sentence.figure), sentence.text, sentence.measure, *cells, true_of_means, result]


def _combiners_table(results: Results) -> str:
    """Make a table of the combiners: mean AUCs of both committees, tests of the strong one."""
    tested = findings.friedman_strong(results)
    modest = f"{max(study.SIZES)} Modest"
    rows = []
    for i in np.argsort(tested.mean_ranks, kind="stable"):
        name = tested.methods[i]
        means = [results.means([(of, name)]).mean() for of in (modest, "strong")]
        p = "" if name == findings.OURS else f"{tested.adjusted[i]:.4f}"
        cells = [*(f"{mean:.4f}" for mean in means), f"{tested.mean_ranks[i]:.2f}"]
        rows.append([name, *cells, bold(p, name in (*tested.better, *tested.worse))])
    heading = ["combiner", f"mean AUC, {modest}", "mean AUC, strong", "mean rank, strong"]
    return table([*heading, "Holm p, strong"], rows)


def _remarks(results: Results) -> list[str]:
    lines = [f"- {title}: {SOURCES[title].remark}" for title in results.titles]
    lines = [line for line in lines if not line.endswith(": ")]
    missing = [title for title in SOURCES if title not in results.titles]
    if missing:
        lines.append(f"- Not in this run: {', '.join(missing)}.")
    return lines


def _deviations(results: Results) -> str:
    """Compare the printed standard deviations of RankMargin with ours."""
    cells = [(size, title) for size in study.SIZES for title in results.titles]
    printed = np.array([TABLES[size][title][0][1] for size, title in cells])
    ours = np.array(
        [results.runs(title, findings.members(size)[:1]).std(ddof=1) for size, title in cells]
    )
    return (
        f"smaller than ours in {(printed < ours).sum()} of {len(cells)} cells (on average "
        f"{printed.mean():.3f} and {ours.mean():.3f})"
    )
