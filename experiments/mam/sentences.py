"""The results in sentences, which are computed from the numbers."""

from __future__ import annotations

import numpy as np

from experiments._page import listed
from experiments.mam.classifying import MAM, OTHERS, PRINTED, SVM
from experiments.mam.data import ORDINAL as ORDINAL_SETS
from experiments.mam.data import RAETSCH, missing
from experiments.mam.holding import BOUND, KINDS, MARGIN, Holding
from experiments.mam.large import FORMS as LARGE_FORMS
from experiments.mam.large import METHODS as LARGE_METHODS
from experiments.mam.large import OTHERS as LARGE_OTHERS
from experiments.mam.ordering import (
    HAS_MORD,
    KERNEL_RIDGE,
    N_CLASSES,
    PEER,
    RANKER,
    TRUTH,
)
from experiments.mam.results import ALPHA, Results
from margrave.compare import FriedmanHolm

CONFIRMED, NOT_CONFIRMED, UNDECIDED = "confirmed", "not confirmed", "undecided"
_COMPARED = (RANKER, KERNEL_RIDGE)
_BY_SIGN = {1: CONFIRMED, 0: NOT_CONFIRMED, -1: f"{NOT_CONFIRMED}, the difference is negative"}


def verdicts(results: Results) -> list[str]:
    """The whole study in a few sentences."""
    found = [classification(results), time(results), order(results)]
    if results.large:
        found.append(large(results))
    return [*found, bounds(results)]


# Classification


def verdict(results: Results, form: str) -> str:
    """Whether the paper's sentence on classification is confirmed, for a form of MAM."""
    better = results.tested(form).better
    if better:
        return f"{NOT_CONFIRMED}: it is significantly worse than {listed(better)}"
    worse = [other for other in OTHERS if results.gap(form, other).mean > 0]
    if not worse:
        return f"{CONFIRMED}, and more: on average it is worse than none of them"
    average = f"on average it is worse than {listed(worse)}"
    if disagree(results.tested(form)):
        return f"{UNDECIDED}: {average}, but only some of the tests find a significant difference"
    return f"{CONFIRMED}: {average}, but not significantly"


def disagree(tested: FriedmanHolm) -> bool:
    """Whether Friedman's test finds no difference, but its variant or Holm's procedure would."""
    return not tested.differ and min(tested.f_p_value, float(tested.adjusted.min())) <= ALPHA


def in_numbers(tested: FriedmanHolm) -> str:
    """The tests behind a verdict, for the method that is most different from the control."""
    adjusted = dict(zip(tested.methods, tested.adjusted, strict=True))
    others = [name for name in tested.methods if name != tested.control]
    first = min(others, key=lambda name: float(adjusted[name]))
    return (
        f"Friedman p = {tested.p_value:.2g}, Iman-Davenport p = {tested.f_p_value:.2g}, "
        f"Holm p = {adjusted[first]:.2g} for {first}"
    )


def classification(results: Results) -> str:
    """MAM with its defaults and as printed beside the other methods."""
    means = {name: results.mean_errors(name).mean() for name in (MAM, PRINTED, *OTHERS)}
    others = listed([f"{name} {means[name]:.1f} %" for name in OTHERS])
    return (
        'Classification, "slightly (but not significantly so) worse than the other methods": '
        f"**{verdict(results, MAM)}**. The mean error of MAM with Margrave's defaults is "
        f"{means[MAM]:.1f} % on {len(results.titles)} sets; {others}. MAM as the paper prints it "
        f"({means[PRINTED]:.1f} %): **{verdict(results, PRINTED)}**."
    )


def gaps(results: Results) -> str:
    """The differences behind the verdict, and the tests."""
    each = listed([f"{results.gap(MAM, other)} to {other}" for other in OTHERS])
    most, where = results.largest_gap(MAM, SVM)
    return (
        "The mean difference in error of MAM, in points ± one standard error over the sets, is "
        f"{each}; the largest difference to {SVM} is {most:+.1f} points, on {where}. For MAM as "
        f"printed the difference to {SVM} is {results.gap(PRINTED, SVM)}. Tests over the sets at "
        f"α = {ALPHA:g} against the other methods: {in_numbers(results.tested(MAM))} (MAM); "
        f"{in_numbers(results.tested(PRINTED))} (MAM as printed)."
    )


def time(results: Results) -> str:
    """Whether the paper's sentence on time is confirmed."""
    slower, known = (
        [other for other in OTHERS if results.times(other, MAM, known=known) > 1]
        for known in (False, True)
    )
    found = CONFIRMED if len(slower) == len(OTHERS) else f"{CONFIRMED} against {listed(slower)}"
    if slower and len(known) < len(OTHERS):
        found += f" if the search for settings counts; without it, only against {listed(known)}"
    times = listed([f"{results.times(other, MAM):.2g} times ({other})" for other in OTHERS])
    return (
        '"Reduces the required amount of … computation time": '
        f"**{found if slower else NOT_CONFIRMED}**. The others take {times} as long as MAM. Memory "
        "was not measured."
    )


# Order


def order(results: Results) -> str:
    """The benefit of function estimation, on the synthetic data of the paper and in bins."""
    gap = results.tau_gap(KERNEL_RIDGE, RANKER)
    text = (
        'Order, "the benefit of using function estimation": '
        f"**{_BY_SIGN[gap.sign]}**. On the paper's synthetic data, a ridge regression on ranks has "
        f"a Kendall's τ of {results.taus(KERNEL_RIDGE).mean():.3f}, against "
        f"{results.taus(RANKER).mean():.3f} for the MAM ranker"
    )
    if results.binned:
        ahead = results.binned_taus(KERNEL_RIDGE) > results.binned_taus(RANKER)
        text += f". On data sets in bins it is ahead in {ahead.sum()} of {len(ahead)} cases"
    return f"{text}."


def section_5(results: Results) -> str:
    """How near to the possible two rankers come on the synthetic data."""
    reached = [100 * results.taus(name).mean() / results.taus(TRUTH).mean() for name in _COMPARED]
    return (
        f"On the synthetic data, {RANKER} reaches {reached[0]:.0f} % of the τ that is possible, "
        f"and {KERNEL_RIDGE} {reached[1]:.0f} %."
    )


def binned(results: Results) -> str:
    """The tests on the sets in bins, and the classifiers of ordered classes."""
    if not results.binned:
        return "No set in bins is at hand."
    tested = results.ranks_tested()
    n = tested.n_rows
    if tested.better:
        text = f"Significantly better than {RANKER} over {n} sets: {listed(tested.better)}"
    elif disagree(tested):
        text = f"Whether a ranker is significantly better than {RANKER} over {n} sets is undecided"
    else:
        text = f"No ranker is significantly better than {RANKER} over {n} sets, which are few"
    grades = [
        f"{name} {results.accuracies(name).mean():.1f} %, {results.offs(name).mean():.2f} classes"
        for name in results.graders
    ]
    best = min(results.graders, key=lambda name: float(results.offs(name).mean()))
    return (
        f"{text} ({in_numbers(tested)}). As classifiers of the bins, by accuracy and mean distance "
        f"from the true class: {'; '.join(grades)}. The nearest on average is {best}."
    )


# Large data


def large(results: Results) -> str:
    """Who wins on the large sets."""
    sizes, won = results.plan.sizes, []
    for title in results.plan.large:
        best = results.best_on_large(title, LARGE_METHODS)
        if best is not None:
            won.append((best.method, title))
    of_mam = [title for method, title in won if method in LARGE_FORMS]
    rest = [f"{method} ({title})" for method, title in won if method not in LARGE_FORMS]
    where = f", {listed(of_mam)}" if of_mam else ""
    return (
        f"Large data ({sizes.train:,} training samples, {sizes.limit} seconds): **a form of MAM "
        f"has the smallest error on {len(of_mam)} of {len(results.plan.large)} sets**{where}. "
        f"The best on the others: {', '.join(rest) or 'none'}."
    )


def large_gaps(results: Results) -> str:
    """By how much the best form of MAM differs from the best other method."""
    found = []
    for title in results.plan.large:
        form = results.best_on_large(title, LARGE_FORMS)
        other = results.best_on_large(title, LARGE_OTHERS)
        if form is not None and other is not None:
            errors = (run.error * (1 - run.error) for run in (form, other))
            spread = 100 * np.sqrt(sum(errors) / results.plan.sizes.test)
            gap = f"{100 * (form.error - other.error):+.2f} ± {spread:.2f}"
            found.append(f"{gap} on {title}")
    return (
        "The error of the best form of MAM minus that of the best other method, in points ± one "
        f"standard error, as if they were tested on different samples: {listed(found)}."
    )


# Bounds


def bounds(results: Results) -> str:
    """Whether the bounds hold, and what they are worth."""
    checks = [(one, kind) for one in results.holdings for kind in KINDS]
    broken = [f"{kind} at {describe_setting(one)}" for one, kind in checks if one.broken(kind)]
    if broken:
        result = f"**{len(broken)} of {len(checks)} fail too often**: {'; '.join(broken)}"
    else:
        result = f"**none of {len(checks)} checks fails more often than it may**"
    return f"Bounds, with two signs corrected: {result}. {looseness(results)}"


def describe_setting(one: Holding) -> str:
    """A setting and δ, short."""
    width = "width by leave-one-out" if one.setting.by_loo else "fixed width"
    threshold = "threshold for accuracy" if one.setting.threshold else "no threshold"
    return f"n = {one.setting.n}, {width}, {threshold}, δ = {one.delta:g}"


def looseness(results: Results) -> str:
    """How far bound (14) is from the truth, at the smallest δ."""
    least = min(one.delta for one in results.holdings)
    each = []
    for n in sorted({one.setting.n for one in results.holdings}):
        of_n = [one for one in results.holdings if one.setting.n == n and one.delta == least]
        each.append(f"{np.mean([one.loose for one in of_n]):.2f} with n = {n}")
    return (
        f"But they are loose: at δ = {least:g}, {BOUND} is above the true probability by "
        f"{listed(each)}, on average."
    )


def theorems(results: Results) -> str:
    """How often the theorems fail."""
    counts = sum(one.failures[kind] for one in results.holdings for kind in (MARGIN, BOUND))
    return (
        f"{MARGIN} and {BOUND} fail {counts} times. They are theorems, and loose, so this checks "
        "the code and not the theory."
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
        f"With the printed signs, {BOUND} fails {listed(each)} (fixed width, no threshold, both "
        "values of δ)."
    )


# What is at hand


def not_there(results: Results) -> str:
    """Sets that are not at hand."""
    gone = missing(results.plan.raetsch, RAETSCH) + missing(results.plan.ordinal, ORDINAL_SETS)
    return f" Not in this run: {', '.join(gone)}." if gone else ""


def peer() -> str:
    """Describe the ordinal peer."""
    if HAS_MORD:
        return (
            f"*{PEER}*: an ordinal logistic regression on {N_CLASSES} classes of equal size, or on "
            "the bins."
        )
    return f"*{PEER}*, an ordinal logistic regression, is not installed, so it is not in this run."
