"""The tables of the page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments._page import bold, table
from experiments._parts import Floats
from experiments.mam.classifying import MAM, METHODS
from experiments.mam.data import RAETSCH
from experiments.mam.holding import KINDS
from experiments.mam.large import METHODS as LARGE_METHODS
from experiments.mam.large import Large
from experiments.mam.ordering import RANKER, TRUTH
from experiments.mam.results import Results


def errors(results: Results) -> str:
    """Test error by set; bold: the least of a row."""
    rows = []
    for title in results.titles:
        each = [results.errors(title, method) for method in METHODS]
        best = min(float(values.mean()) for values in each)
        cells = [f"{values.mean():.1f} ± {values.std(ddof=1):.1f}" for values in each]
        marked = [
            bold(cell, values.mean() == best) for cell, values in zip(cells, each, strict=True)
        ]
        source = RAETSCH[title]
        rows.append([title, f"{source.train} / {source.test}", *marked])
    means = [f"{results.mean_errors(method).mean():.2f}" for method in METHODS]
    rows.append(["mean", "", *_least(means, [float(mean) for mean in means])])
    return table(["data set", "train / test", *METHODS], rows)


def _least(cells: Sequence[str], values: Sequence[float] | Floats) -> list[str]:
    return [bold(cell, value == min(values)) for cell, value in zip(cells, values, strict=True)]


def _milliseconds(seconds: float) -> str:
    thousandths = 1000 * seconds
    return f"{thousandths:.0f}" if thousandths >= 10 else f"{thousandths:.1f}"


def seconds(results: Results) -> str:
    """Seconds by set, and how they compare."""
    rows = [
        [title, *(f"{results.seconds(title, method):.2g}" for method in METHODS)]
        for title in results.titles
    ]
    for name, known in (("times MAM", False), ("times MAM, settings known", True)):
        ratios = [f"{results.times(method, MAM, known=known):.3g}" for method in METHODS]
        rows.append([name, *ratios])
    return table(["data set", *METHODS], rows)


def section_5(results: Results) -> str:
    """Kendall's τ on the synthetic data."""
    rows = []
    for name in results.artificial_rankers:
        taus = results.taus(name)
        gap = "" if name == RANKER else str(results.tau_gap(name, RANKER))
        time = "" if name == TRUTH else _milliseconds(results.ranking_seconds(name))
        rows.append([name, f"{taus.mean():.3f} ± {taus.std(ddof=1):.3f}", gap, time])
    return table(["ranker", "τ", f"− {RANKER}, hundredths", "milliseconds"], rows)


def rankers(results: Results) -> str:
    """Kendall's τ on the sets in bins; bold: the most of a row."""
    taus = np.column_stack([results.binned_taus(name) for name in results.rankers])
    rows = []
    for (title, bins), values in zip(results.cells, taus, strict=True):
        rows.append([title, str(bins), *_least([f"{v:.3f}" for v in values], -values)])
    means = taus.mean(axis=0)
    rows.append(["mean", "", *_least([f"{v:.3f}" for v in means], -means)])
    times = [_milliseconds(results.binned_seconds(name)) for name in results.rankers]
    rows.append(["milliseconds", "", *times])
    return table(["data set", "bins", *results.rankers], rows)


def graders(results: Results) -> str:
    """Accuracy and distance on the sets in bins; bold: the best of a row."""
    names = results.graders
    right = np.column_stack([results.accuracies(name) for name in names])
    off = np.column_stack([results.offs(name) for name in names])
    rows = []
    cells = [(title, str(bins)) for title, bins in results.cells]
    for cell, accuracies, offs in zip(
        [*cells, ("mean", "")],
        np.vstack([right, right.mean(axis=0)]),
        np.vstack([off, off.mean(axis=0)]),
        strict=True,
    ):
        row = _least([f"{v:.1f}" for v in accuracies], -accuracies)
        rows.append([*cell, *row, *_least([f"{v:.3f}" for v in offs], offs)])
    times = [_milliseconds(results.graded_seconds(name)) for name in names]
    rows.append(["milliseconds", "", *times, *[""] * len(names)])
    heading = ["data set", "bins", *(f"{name}: % right" for name in names)]
    return table([*heading, *(f"{name}: off" for name in names)], rows)


def bounds(results: Results) -> str:
    """Failures and distance from the truth by setting; bold: more failures than chance makes."""
    heading = ["δ", "n", "width", "threshold", "samples", *(f"{kind} fails" for kind in KINDS)]
    heading += ["(14) vacuous", "(14) − truth", "held out − truth"]
    rows = []
    for one in results.holdings:
        failures = [bold(str(one.failures[kind]), one.broken(kind)) for kind in KINDS]
        row = [f"{one.delta:g}", str(one.setting.n)]
        row += ["leave-one-out" if one.setting.by_loo else "fixed"]
        row += ["accuracy" if one.setting.threshold else "none", str(one.runs), *failures]
        row += [f"{one.vacuous:.0%}", f"{one.loose:.3f}", f"{one.loose_counted:.3f}"]
        rows.append(row)
    return table(heading, rows)


def large_errors(results: Results) -> str:
    """Test error in % on the large sets; bold: the least of a row."""
    rows = []
    for title in results.plan.large:
        runs = results.on_large(title, LARGE_METHODS)
        best = results.best_on_large(title, LARGE_METHODS)
        cells = [f"{100 * run.error:.2f}" if run.finished else _over(results) for run in runs]
        marks = [best is not None and run.error == best.error for run in runs]
        rows.append([title, *map(bold, cells, marks)])
    return table(["data set", *LARGE_METHODS], rows)


def large_seconds(results: Results) -> str:
    """Seconds to learn and to predict on the large sets."""
    rows = [
        [title, *(_fit_and_predict(run, results) for run in results.on_large(title, LARGE_METHODS))]
        for title in results.plan.large
    ]
    return table(["data set", *LARGE_METHODS], rows)


def _fit_and_predict(run: Large, results: Results) -> str:
    if not run.finished:
        return _over(results)
    times = (f"{time:.1f}" if time >= 1 else f"{time:.2f}" for time in (run.fit, run.predict))
    return " + ".join(times)


def _over(results: Results) -> str:
    return f"over {results.plan.sizes.limit} s"
