"""Rare positives: the combiners where 1 to 5 % of the training samples are positive.

Marrocco et al. (2010), section 5, propose unbalanced data for future work. Here positives of larger
data sets are left out of the training and the tuning set until the wanted fraction is left. The
test set keeps all of its positives, so that few false positives can be counted precisely; in the
average precision they are weighted to the wanted fraction. Committees and combiners are those of
`study`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import average_precision_score, roc_curve
from sklearn.model_selection import train_test_split

from experiments._page import bold, table
from experiments._parts import Floats, Ints, Parts, split_rest
from experiments.rank_margin import study
from experiments.rank_margin.findings import OURS
from experiments.rank_margin.paper import Source
from experiments.rank_margin.results import Results, by_split
from margrave.compare import FriedmanHolm

N_RUNS = 4
FRACTIONS = (0.01, 0.02, 0.05)
LEVELS = (0.01, 0.05)
MODEST = f"{max(study.SIZES)} Modest"
COMMITTEES = (MODEST, "strong")
COMBINERS = ("RankMargin", "RankBoost", "SVM", "best member", "mean", "stacking", OURS)
MEASURES = ("AUC", "average precision", *(f"recall at {level:.0%} FPR" for level in LEVELS))
SHOWN = ("AUC", "recall at 1% FPR")
# Every two-class set of `margrave.datasets` with at least 1,000 negatives, and every set of more
# classes with as many outside its first class; of several versions of a set, the bundled one.
SETS = {
    "Banana": Source("raetsch_banana", 1),
    "Ringnorm": Source("ringnorm", 1),
    "Segment": Source("segment", "brickface"),
    "Spambase": Source("spambase", "spam"),
    "Splice": Source("splice", "EI"),
    "Titanic": Source("titanic", "Yes"),
    "Twonorm": Source("twonorm", 1),
    "Waveform": Source("raetsch_waveform", 1),
}


def split(title: str, fraction: float, seed: int) -> Parts:
    """Split a data set into thirds; in training and tuning set `fraction` is positive."""
    X, y = study.load(SETS[title])
    X_rest, X_test, y_rest, y_test = train_test_split(
        X, y, test_size=1 / 3, stratify=y, random_state=seed
    )
    kept = thin(y_rest, fraction, seed)
    return split_rest(X_rest[kept], y_rest[kept], X_test, y_test, seed, 1 / 2)


def thin(y: Ints, fraction: float, seed: int) -> Ints:
    """Return rows of which `fraction` is positive: all negatives, and some positives at random.

    With the same seed, the positives of a smaller fraction are among those of a larger one.
    """
    positives, negatives = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    n_kept = round(fraction / (1 - fraction) * len(negatives))
    drawn = np.random.default_rng(seed).permutation(positives)[:n_kept]
    return np.sort(np.concatenate([negatives, drawn]))


def measure(scores: Floats, y: Ints, fraction: float) -> dict[str, float]:
    """Compute every measure on the test set; the recalls at no more false positives than given."""
    weight = np.where(y == 1, fraction / y.mean(), (1 - fraction) / (1 - y.mean()))
    fpr, recall, _ = roc_curve(y, scores, drop_intermediate=False)
    values = (
        study.auc(scores, y),
        average_precision_score(y, scores, sample_weight=weight),
        *(recall[fpr <= level].max() for level in LEVELS),
    )
    return {name: float(value) for name, value in zip(MEASURES, values, strict=True)}


def case(fraction: float, name: str) -> str:
    """Name a fraction of positives and a measure."""
    return f"{fraction:.0%}, {name}"


def one_run(
    title: str, fraction: float, run: int, seed: int, strong: tuple[str, ...], nu: float | str
) -> list[study.Run]:
    """Measure every combiner of both committees on one split; a run for each measure."""
    parts = split(title, fraction, seed + run)
    committees = {
        MODEST: study.modest_committees(parts, seed + run)[max(study.SIZES)],
        "strong": study.strong_committee(parts, strong, seed + run),
    }
    every = study.combiners(nu)
    measured = {
        (committee, combiner): measure(every[combiner](outputs), parts.y_test, fraction)
        for committee, outputs in committees.items()
        for combiner in COMBINERS
    }
    return [
        study.Run(
            case(fraction, name), title, run, {of: values[name] for of, values in measured.items()}
        )
        for name in MEASURES
    ]


def all_runs(
    titles: Sequence[str],
    n_runs: int,
    seed: int,
    strong: tuple[str, ...],
    n_jobs: int,
    nu: float | str = "cv",
) -> Iterator[list[study.Run]]:
    """Yield every run of every data set and fraction, in the order in which they end."""
    jobs = (
        delayed(one_run)(title, fraction, run, seed, strong, nu)
        for title in titles
        for fraction in FRACTIONS
        for run in range(n_runs)
    )
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)


def collect(titles: list[str], runs: Iterable[list[study.Run]]) -> dict[str, Results]:
    """Collect the runs by `case`."""
    return by_split(titles, (run for of_measures in runs for run in of_measures))


# The section of the page


def page_values(of_cases: Mapping[str, Results], seed: int) -> dict[str, str]:
    """Return the values of the template that this section fills in."""
    results = of_cases[case(FRACTIONS[0], "AUC")]
    fewest = [int(split(t, FRACTIONS[0], seed).both[1].sum()) for t in results.titles]
    return {
        "rare_fractions": "{:g}, {:g} or {:g} %".format(
            *(100 * fraction for fraction in FRACTIONS)
        ),
        "rare_n_sets": str(len(results.titles)),
        "rare_titles": ", ".join(results.titles),
        "rare_runs": str(results.values.shape[1]),
        "rare_fewest": f"{min(fewest)} to {max(fewest)}",
        "rare_finding": "\n".join(f"- {describe(of_cases, c)}" for c in COMMITTEES),
        "rare_measures": _measures_table(of_cases),
    }


def friedman(results: Results, committee: str) -> FriedmanHolm:
    """Test the combiners of a committee over the data sets, against the default."""
    columns = [(committee, combiner) for combiner in COMBINERS]
    return results.over_data_sets(columns, COMBINERS, control=OURS)


def describe(of_cases: Mapping[str, Results], committee: str) -> str:
    """State who has the best ranks, and from whom the default differs."""
    tested = [friedman(results, committee) for results in of_cases.values()]
    first = [
        name
        for own in tested
        for name, rank in zip(own.methods, own.mean_ranks, strict=True)
        if rank == min(own.mean_ranks)
    ]
    worse = [name for own in tested for name in own.worse]
    better = [name for own in tested for name in own.better]
    return (
        f"{committee} committee: the best mean rank belongs to {_counts(first)} of {len(tested)} "
        f"cases. The default is significantly better than {_counts(worse)}, and worse than "
        f"{_counts(better)}."
    )


def _counts(names: Sequence[str]) -> str:
    """Name each once with its number, the most frequent first."""
    counts = sorted(((names.count(name), name) for name in set(names)), reverse=True)
    return ", ".join(f"{name} in {count}" for count, name in counts) or "none"


def _measures_table(of_cases: Mapping[str, Results]) -> str:
    """Make a table of the means of the strong committee over the data sets; the largest is bold."""
    shown = [(name, fraction) for name in SHOWN for fraction in FRACTIONS]
    columns = [("strong", combiner) for combiner in COMBINERS]
    means = [of_cases[case(fraction, name)].means(columns).mean(axis=0) for name, fraction in shown]
    rows = [
        [
            combiner,
            *(bold(f"{values[i]:.3f}", values[i] == values.max()) for values in means),
        ]
        for i, combiner in enumerate(COMBINERS)
    ]
    heading = [f"{name} ({fraction:.0%})".replace("%", " %") for name, fraction in shown]
    return table(["combiner", *heading], rows)
