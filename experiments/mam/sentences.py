"""The results in sentences, which are computed from the numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.mam.classifying import BALANCED, MAM, OTHERS, PRINTED, SVM
from experiments.mam.coverage import N_HELD_OUT
from experiments.mam.data import ORDINAL as ORDINAL_SETS
from experiments.mam.data import RAETSCH, missing
from experiments.mam.holding import BAR, KINDS, Holding
from experiments.mam.ordering import (
    HAS_MORD,
    KERNEL_RIDGE,
    N_CLASSES,
    ORDINAL,
    PEER,
    RANKER,
    TRUTH,
)
from experiments.mam.results import ALPHA, Results

_FOUND = {1: "found", 0: "not found", -1: "not found: the difference has the opposite sign"}


def listed(names: Sequence[str]) -> str:
    """A, b and c."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def in_short(results: Results) -> list[str]:
    """The whole study in a few sentences."""
    found = [classification(results), forms(results), section_5(results)]
    if results.binned:
        found.append(binned(results))
    return [*found, bounds(results), looseness(results)]


def sentence(results: Results, form: str) -> str:
    """Whether the paper's sentence on classification is found, for a form of MAM."""
    better = results.tested(form).better
    if better:
        return f"not found: {form} is significantly worse than {listed(better)}"
    worse = [other for other in OTHERS if results.gap(form, other).mean > 0]
    if not worse:
        return f"more than found: {form} is worse than none of them on average"
    just = "found, but only just" if _only_by_holm(results, form) else "found"
    return f"{just}: {form} is worse than {listed(worse)} on average, but not significantly so"


def _only_by_holm(results: Results, form: str) -> bool:
    """Whether Holm's procedure would find a difference, but Friedman's test does not."""
    tested = results.tested(form)
    return not tested.differ and float(tested.adjusted.min()) <= ALPHA


def in_numbers(results: Results, form: str) -> str:
    """The tests behind the sentence."""
    tested = results.tested(form)
    at = dict(zip(tested.methods, tested.adjusted, strict=True))
    first = min(OTHERS, key=lambda name: float(at[name]))
    text = f"Friedman p = {tested.p_value:.2g}; Holm p = {at[first]:.2g} for {first}"
    if _only_by_holm(results, form):
        text += ", which counts only if Friedman's test finds a difference"
    return text


def classification(results: Results) -> str:
    """MAM with its defaults beside the other methods."""
    gaps = listed([f"{MAM} − {other} {results.gap(MAM, other)}" for other in OTHERS])
    near, n = len(results.near(MAM)), len(results.titles)
    most, where = results.largest_gap(MAM, SVM)
    times = [
        f"{other} {results.times(other, MAM):.2g} ({results.times(other, MAM, known=True):.2g})"
        for other in OTHERS
    ]
    return (
        'Classification. "Slightly (but not significantly so) worse than the other methods": '
        f"**{sentence(results, MAM)}** (α = {ALPHA:g}, {n} sets; {in_numbers(results, MAM)}). Its "
        f"mean error is {results.mean_errors(MAM).mean():.1f} %; in points, {gaps} (± one "
        f"standard error over the sets), the most to {SVM} being {most:+.1f}, on {where}. On "
        f"{near} of {n} sets it is at most one standard deviation above the SVM's. "
        f"{_faster(results)} Times as long as MAM, in brackets once the settings are known: "
        f"{listed(times)}."
    )


def _faster(results: Results) -> str:
    """Whether the paper's sentence on time is found."""
    slower = [other for other in OTHERS if results.times(other, MAM) > 1]
    found = "found" if len(slower) == len(OTHERS) else f"found for {listed(slower)} only"
    return f'"Reduces … computation time": **{found if slower else "not found"}**.'


def forms(results: Results) -> str:
    """The paper's own form, and the balanced one."""
    parts = []
    for form in (PRINTED, BALANCED):
        mean, gap = results.mean_errors(form).mean(), results.gap(form, SVM)
        parts.append(f"{mean:.1f} %, − {SVM} {gap}; the sentence is {sentence(results, form)}")
    return f"As printed: {parts[0]}. Balanced: {parts[1]}."


def section_5(results: Results) -> str:
    """The synthetic data of the paper."""
    each = [f"{name} {results.taus(name).mean():.3f}" for name in results.artificial_rankers]
    gap = results.tau_gap(KERNEL_RIDGE, RANKER)
    return (
        f"Order, the synthetic data of the paper. Kendall's τ: {', '.join(each)}. \"The benefit of "
        f'function estimation": **{_FOUND[gap.sign]}**, {KERNEL_RIDGE} − {RANKER} is {gap} '
        f"hundredths. Of what is possible {RANKER} reaches {_fraction(results, RANKER):.0%}, "
        f"{KERNEL_RIDGE} {_fraction(results, KERNEL_RIDGE):.0%}."
    )


def _fraction(results: Results, method: str) -> float:
    """τ as a fraction of the best possible one."""
    return float(results.taus(method).mean() / results.taus(TRUTH).mean())


def binned(results: Results) -> str:
    """The sets in bins."""
    each = [f"{name} {results.binned_taus(name).mean():.3f}" for name in results.rankers]
    ahead = results.binned_taus(KERNEL_RIDGE) > results.binned_taus(RANKER)
    tested = results.ranks_tested()
    text = (
        f"Order, data sets in bins. Mean τ is {', '.join(each)}; {KERNEL_RIDGE} is ahead of "
        f"{RANKER} on {ahead.sum()} of {len(ahead)}. "
    )
    if tested.better:
        text += f"Significantly better than {RANKER} over the sets: {listed(tested.better)}. "
    else:
        text += f"None is significantly better than {RANKER} over the sets. "
    grades = [
        f"{name} {results.accuracies(name).mean():.1f} % right and {results.offs(name).mean():.3f} "
        "classes off"
        for name in results.graders
    ]
    best = min(results.graders, key=lambda name: float(results.offs(name).mean()))
    verdict = "is nearest" if best == ORDINAL else f"is not as near as {best}"
    return f"{text}As classes: {', '.join(grades)}; {ORDINAL} {verdict} on average."


def bounds(results: Results) -> str:
    """Whether the bounds hold."""
    checks = [(one, kind) for one in results.holdings for kind in KINDS]
    broken = [f"{kind} at {describe_setting(one)}" for one, kind in checks if one.broken(kind)]
    start = f"Bounds. {len(checks)} statements were checked, each on many samples, at a level of "
    if broken:
        return f"{start}{BAR:g} each: **{len(broken)} fail too often**: {'; '.join(broken)}."
    worst = max(checks, key=lambda check: check[0].failures[check[1]] / check[0].runs)
    one, kind = worst
    return (
        f"{start}{BAR:g} each: **all hold as often as they guarantee**. The most failures are of "
        f"{kind}: {one.failures[kind]} of {one.runs} at {describe_setting(one)}."
    )


def describe_setting(one: Holding) -> str:
    """A setting and δ, short."""
    width = "width by leave-one-out" if one.setting.by_loo else "fixed width"
    threshold = "threshold for accuracy" if one.setting.threshold else "no threshold"
    return f"n = {one.setting.n}, {width}, {threshold}, δ = {one.delta:g}"


def looseness(results: Results) -> str:
    """How far from the truth they are, at the smallest δ."""
    least = min(one.delta for one in results.holdings)
    each = []
    for n in sorted({one.setting.n for one in results.holdings}):
        of_n = [one for one in results.holdings if one.setting.n == n and one.delta == least]
        vacuous = np.mean([one.vacuous for one in of_n])
        loose = np.mean([one.loose for one in of_n])
        counted = np.mean([one.loose_counted for one in of_n])
        each.append(
            f"with n = {n}, (14) is vacuous for {vacuous:.0%} of the predictions and is above "
            f"the true probability by {loose:.2f} on average, the count by {counted:.2f}"
        )
    return (
        f"How loose they are, at δ = {least:g}, beside a count on {N_HELD_OUT} held-out samples: "
        f"{'; '.join(each)}."
    )


def printed(results: Results) -> str:
    """How (14) does with the paper's signs, at a fixed width and both δ."""
    each = []
    for n in sorted({one.setting.n for one in results.holdings}):
        of_n = [one for one in results.holdings if one.setting.n == n and not one.setting.by_loo]
        signs = [(one.printed, one.runs) for one in of_n if one.printed is not None]
        failures, runs = (sum(counts) for counts in zip(*signs, strict=True))
        each.append(f"{failures} of {runs} times with n = {n}")
    return (
        "With the signs as printed, at a fixed width and without a threshold, (14) fails "
        f"{listed(each)}."
    )


def not_there(results: Results) -> str:
    """Sets that are not at hand."""
    gone = missing(results.plan.raetsch, RAETSCH) + missing(results.plan.ordinal, ORDINAL_SETS)
    if not gone:
        return "All of them are here."
    return f"Not in this run: {', '.join(gone)}."


def peer() -> str:
    """Describe the ordinal peer."""
    if HAS_MORD:
        return (
            f"*{PEER}* is an ordinal logistic regression (all thresholds) on {N_CLASSES} classes "
            "of equal size; it ranks by the score that its thresholds split."
        )
    return f"An ordinal peer, *{PEER}*, is not installed: not in this run."
