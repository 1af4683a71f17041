"""The tables of the page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments._page import bold, table
from experiments._parts import Floats
from experiments.mam.classifying import MAM, METHODS
from experiments.mam.data import RAETSCH
from experiments.mam.holding import BOUND, KINDS
from experiments.mam.large import METHODS as LARGE_METHODS
from experiments.mam.large import Large
from experiments.mam.ordering import RANKER
from experiments.mam.results import Results


def errors(results: Results) -> str:
    """Mean test error by set, bold: the least of a row; then times as a multiple of MAM's."""
    rows = []
    for title in results.titles:
        each = [float(results.errors(title, method).mean()) for method in METHODS]
        rows.append([f"{title} ({RAETSCH[title].train})", *_least(_tenths(each), each)])
    means = [float(results.mean_errors(method).mean()) for method in METHODS]
    rows.append(["**mean**", *_least(_tenths(means), means)])
    for name, known in (("time, times MAM", False), ("time, settings known", True)):
        ratios = [f"{results.times(method, MAM, known=known):.2g}" for method in METHODS]
        rows.append([name, *ratios])
    return table(["data set (training samples)", *METHODS], rows)


def _tenths(values: Sequence[float]) -> list[str]:
    return [f"{value:.1f}" for value in values]


def _least(cells: Sequence[str], values: Sequence[float] | Floats) -> list[str]:
    return [bold(cell, value == min(values)) for cell, value in zip(cells, values, strict=True)]


def rankers(results: Results) -> str:
    """Kendall's τ of every ranker on the synthetic data and on the sets in bins."""
    heading = ["ranker", "τ, synthetic", f"− {RANKER}, hundredths"]
    if results.binned:
        heading += ["τ, sets in bins", f"ahead of {RANKER}", "milliseconds"]
        ours = results.binned_taus(RANKER)
    rows = []
    for name in results.artificial_rankers:
        taus = results.taus(name)
        gap = "" if name == RANKER else str(results.tau_gap(name, RANKER))
        row = [name, f"{taus.mean():.3f}", gap]
        if name in results.rankers:
            binned = results.binned_taus(name)
            ahead = "" if name == RANKER else f"{(binned > ours).sum()} of {len(binned)}"
            row += [f"{binned.mean():.3f}", ahead, _milliseconds(results.binned_seconds(name))]
        elif results.binned:
            row += ["", "", ""]
        rows.append(row)
    return table(heading, rows)


def _milliseconds(seconds: float) -> str:
    thousandths = 1000 * seconds
    return f"{thousandths:.0f}" if thousandths >= 10 else f"{thousandths:.1f}"


def bounds(results: Results) -> str:
    """Failures and distance from the truth by δ and n, over the settings of the classifier.

    Bold: a setting with more failures than chance makes.
    """
    heading = ["δ", "n", *(f"{kind} fails" for kind in KINDS)]
    heading += [f"{BOUND} vacuous", f"{BOUND} − truth", "held out − truth"]
    rows = []
    for delta, n in sorted({(one.delta, one.setting.n) for one in results.holdings}):
        group = [one for one in results.holdings if (one.delta, one.setting.n) == (delta, n)]
        runs = sum(one.runs for one in group)
        row = [f"{delta:g}", str(n)]
        for kind in KINDS:
            failures = sum(one.failures[kind] for one in group)
            broken = any(one.broken(kind) for one in group)
            row.append(bold(f"{failures} of {runs}", broken))
        row.append(f"{100 * np.mean([one.vacuous for one in group]):.0f} %")
        row += [
            f"{np.mean([getattr(one, name) for one in group]):.2f}"
            for name in ("loose", "loose_counted")
        ]
        rows.append(row)
    return table(heading, rows)


def large(results: Results) -> str:
    """Test error in % on the large sets, and seconds to learn and predict; bold: the least."""
    rows = []
    for title in results.plan.large:
        runs = results.on_large(title, LARGE_METHODS)
        best = results.best_on_large(title, LARGE_METHODS)
        row = [
            bold(_error(run, results), best is not None and run.error == best.error) + _seconds(run)
            for run in runs
        ]
        rows.append([title, *row])
    return table(["data set", *LARGE_METHODS], rows)


def _error(run: Large, results: Results) -> str:
    return f"{100 * run.error:.2f}" if run.finished else f"over {results.plan.sizes.limit} s"


def _seconds(run: Large) -> str:
    if not run.finished:
        return ""
    seconds = run.fit + run.predict
    return f" ({seconds:.0f} s)" if seconds >= 10 else f" ({seconds:.2g} s)"
