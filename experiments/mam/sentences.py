"""The results in sentences, which are computed from the numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.mam.classifying import BALANCED, MAM, OTHERS, PRINTED, SVM
from experiments.mam.coverage import N_HELD_OUT
from experiments.mam.data import ORDINAL as ORDINAL_SETS
from experiments.mam.data import RAETSCH, missing
from experiments.mam.holding import BAR, BOUND, KINDS, MARGIN, Holding
from experiments.mam.large import FORMS as LARGE_FORMS
from experiments.mam.large import METHODS as LARGE_METHODS
from experiments.mam.large import OTHERS as LARGE_OTHERS
from experiments.mam.ordering import (
    HAS_MORD,
    KERNEL_RIDGE,
    N_CLASSES,
    ORDINAL,
    PEER,
    RANKER,
    TRUTH,
    USUAL_RIDGE,
)
from experiments.mam.results import ALPHA, Results
from margrave.compare import FriedmanHolm

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
    if results.large:
        found.append(large(results))
    return [*found, bounds(results), looseness(results)]


def sentence(results: Results, form: str) -> str:
    """Whether the paper's sentence on classification is found, for a form of MAM."""
    better = results.tested(form).better
    if better:
        return f"not found: {form} is significantly worse than {listed(better)}"
    worse = [other for other in OTHERS if results.gap(form, other).mean > 0]
    if not worse:
        return f"more than found: {form} is worse than none of them on average"
    average = f"{form} is worse than {listed(worse)} on average"
    if disagree(results.tested(form)):
        return f"undecided: {average}, significantly so by some tests only"
    return f"found: {average}, but not significantly so"


def disagree(tested: FriedmanHolm) -> bool:
    """Whether Friedman's test finds no difference, but its variant or Holm's procedure would."""
    return not tested.differ and min(tested.f_p_value, float(tested.adjusted.min())) <= ALPHA


def in_numbers(tested: FriedmanHolm) -> str:
    """The tests behind a sentence, for the method that is most different from the control."""
    adjusted = dict(zip(tested.methods, tested.adjusted, strict=True))
    others = [name for name in tested.methods if name != tested.control]
    first = min(others, key=lambda name: float(adjusted[name]))
    return (
        f"Friedman p = {tested.p_value:.2g}, Iman-Davenport p = {tested.f_p_value:.2g}; "
        f"Holm p = {adjusted[first]:.2g} for {first}"
    )


def classification(results: Results) -> str:
    """MAM with its defaults beside the other methods."""
    gaps = listed([f"{MAM} − {other} {results.gap(MAM, other)}" for other in OTHERS])
    n = len(results.titles)
    most, where = results.largest_gap(MAM, SVM)
    tests = in_numbers(results.tested(MAM))
    times = [
        f"{other} {results.times(other, MAM):.2g} ({results.times(other, MAM, known=True):.2g})"
        for other in OTHERS
    ]
    return (
        "Classification with Margrave's defaults, which add a threshold to the paper's rule. "
        '"Slightly (but not significantly so) worse than the other methods": '
        f"**{sentence(results, MAM)}** (α = {ALPHA:g}, {n} sets; {tests}). Its "
        f"mean error is {results.mean_errors(MAM).mean():.1f} %; in points, {gaps} (± one "
        f"standard error over the sets), the most to {SVM} being {most:+.1f}, on {where}. "
        f"{_faster(results)} Times as long as MAM, in brackets once the settings are known: "
        f"{listed(times)}."
    )


def _faster(results: Results) -> str:
    """Whether the paper's sentence on time is found."""
    slower, known = (
        [other for other in OTHERS if results.times(other, MAM, known=known) > 1]
        for known in (False, True)
    )
    found = "found" if len(slower) == len(OTHERS) else f"found for {listed(slower)} only"
    if slower and len(known) < len(OTHERS):
        found += f" if the search for settings counts, else for {listed(known) or 'none'} only"
    verdict = found if slower else "not found"
    return f'"Reduces … computation time": **{verdict}**; "memory" was not measured.'


def forms(results: Results) -> str:
    """The paper's own form, and the balanced one."""
    parts = []
    for form in (PRINTED, BALANCED):
        mean, gap = results.mean_errors(form).mean(), results.gap(form, SVM)
        parts.append(f"{mean:.1f} %, − {SVM} {gap}; the sentence is {sentence(results, form)}")
    return f"Classification as printed in the paper: {parts[0]}. Balanced: {parts[1]}."


def section_5(results: Results) -> str:
    """The synthetic data of the paper."""
    each = [f"{name} {results.taus(name).mean():.3f}" for name in results.artificial_rankers]
    gap = results.tau_gap(KERNEL_RIDGE, RANKER)
    return (
        f"Order, the synthetic data of the paper. Kendall's τ: {', '.join(each)}. \"The benefit of "
        f'function estimation": **{_FOUND[gap.sign]}**, {KERNEL_RIDGE} − {RANKER} is {gap} '
        f"hundredths{_at_usual_width(results)}. Of what is possible {RANKER} reaches "
        f"{_fraction(results, RANKER):.0%}, {KERNEL_RIDGE} {_fraction(results, KERNEL_RIDGE):.0%}."
    )


def _at_usual_width(results: Results) -> str:
    """The same difference for the ridge regression whose width is not selected."""
    if USUAL_RIDGE not in results.artificial_rankers:
        return ""
    return f", but that of {USUAL_RIDGE} {results.tau_gap(USUAL_RIDGE, RANKER)}"


def _fraction(results: Results, method: str) -> float:
    """τ as a fraction of the best possible one."""
    return float(results.taus(method).mean() / results.taus(TRUTH).mean())


def binned(results: Results) -> str:
    """The sets in bins."""
    each = [f"{name} {results.binned_taus(name).mean():.3f}" for name in results.rankers]
    ahead = results.binned_taus(KERNEL_RIDGE) > results.binned_taus(RANKER)
    tested = results.ranks_tested()
    n = tested.n_rows
    text = (
        f"Order, data sets in bins. Mean τ is {', '.join(each)}; {KERNEL_RIDGE} is ahead of "
        f"{RANKER} on {ahead.sum()} of {len(ahead)}. "
    )
    if tested.better:
        text += f"Significantly better than {RANKER} over {n} sets: {listed(tested.better)}"
    elif disagree(tested):
        text += f"Whether any is significantly better than {RANKER} over {n} sets is undecided"
    else:
        text += f"None is significantly better than {RANKER} over {n} sets, which are few"
    text += f" ({in_numbers(tested)}). "
    grades = [
        f"{name} {results.accuracies(name).mean():.1f} % right and {results.offs(name).mean():.3f} "
        "classes off"
        for name in results.graders
    ]
    best = min(results.graders, key=lambda name: float(results.offs(name).mean()))
    verdict = "is nearest" if best == ORDINAL else f"is not as near as {best}"
    return f"{text}As classes: {', '.join(grades)}; {ORDINAL} {verdict} on average."


def large(results: Results) -> str:
    """Who wins on the large sets, and by how much."""
    sizes, won, gaps = results.plan.sizes, [], []
    for title in results.plan.large:
        best = results.best_on_large(title, LARGE_METHODS)
        form = results.best_on_large(title, LARGE_FORMS)
        other = results.best_on_large(title, LARGE_OTHERS)
        if best is not None:
            won.append(f"{best.method} on {title} ({100 * best.error:.2f} %)")
        if form is not None and other is not None:
            variance = sum(run.error * (1 - run.error) for run in (form, other)) / sizes.test
            gap = f"{100 * (form.error - other.error):+.2f} ± {100 * np.sqrt(variance):.2f}"
            gaps.append(f"{title} {gap} ({form.method} − {other.method})")
    late = [f"{run.method} on {run.title}" for run in results.large if not run.finished]
    return (
        f"Large data: {sizes.train:,} training samples, and at most {sizes.limit} seconds of CPU "
        f"time to learn and to predict. The least error: **{listed(won) or 'none'}**. The best "
        "form of MAM − the best other method, in points ± one standard error, as of independent "
        f"samples: {listed(gaps) or 'none'}. Over the limit: {listed(late) or 'none'}."
    )


def bounds(results: Results) -> str:
    """Whether the bounds hold."""
    checks = [(one, kind) for one in results.holdings for kind in KINDS]
    broken = [f"{kind} at {describe_setting(one)}" for one, kind in checks if one.broken(kind)]
    start = f"Bounds. {len(checks)} statements were checked, each on many samples, at a level of "
    if broken:
        return f"{start}{BAR:g} each: **{len(broken)} fail too often**: {'; '.join(broken)}."
    worst = max(checks, key=lambda check: check[0].failures[check[1]] / check[0].runs)
    one, kind = worst
    theorems = sum(one.failures[kind] for one in results.holdings for kind in (MARGIN, BOUND))
    return (
        f"{start}{BAR:g} each: **none fails more often than it may, on this one distribution**. "
        f"The most failures are of {kind}: {one.failures[kind]} of {one.runs} at "
        f"{describe_setting(one)}. {MARGIN} and {BOUND} fail {theorems} times: they are theorems, "
        "and loose, so this checks the code and not the theory."
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
