"""What the splits find about the claims of the paper, in numbers and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata, wilcoxon

from experiments.rank_margin import study
from experiments.rank_margin.paper import BOLD, METHODS, TABLES
from experiments.rank_margin.results import ALPHA, Column, Floats, Results
from margrave.compare import FriedmanHolm, friedman_holm

OURS = "ν by cv, logit"
RIVALS = ("RankBoost", "SVM")


def members(size: int, svm: str = "SVM") -> list[Column]:
    """Return the columns of the three methods of the paper that combine members."""
    return [(f"{size} Modest", svm if method == "SVM" else method) for method in METHODS]


def printed_means(titles: Sequence[str], size: int) -> Floats:
    """Return the means that the paper prints, by data set and method."""
    return np.array([[mean for mean, _ in TABLES[size][title]] for title in titles])


def distances(results: Results, column: Column, method: str, size: int) -> Floats:
    """Return the distance of each mean of a column from the mean that the paper prints."""
    printed = printed_means(results.titles, size)[:, METHODS.index(method)]
    return np.abs(results.means([column])[:, 0] - printed)


def mean_distance(results: Results) -> float:
    """Return the mean distance of RankMargin from the printed AUCs, over both tables."""
    own = [distances(results, members(size)[0], "RankMargin", size) for size in study.SIZES]
    return float(np.mean(own))


def ordered_splits(of_splits: Mapping[str, Results]) -> list[str]:
    """Return the splits with every combiner, the leading one first."""
    return sorted(study.FULL, key=lambda split: mean_distance(of_splits[split]))


def friedman_members(results: Results, size: int, svm: str = "SVM") -> FriedmanHolm:
    """Test the three methods of the paper over the data sets, against RankMargin."""
    return results.over_data_sets(members(size, svm), METHODS, control="RankMargin")


def friedman_printed(titles: Sequence[str], size: int) -> FriedmanHolm:
    """Test the means that the paper prints in the same way."""
    return friedman_holm(
        printed_means(titles, size), methods=METHODS, control="RankMargin", alpha=ALPHA
    )


@dataclass(frozen=True)
class Comparison:
    """RankMargin against a rival that combines the same members.

    Attributes
    ----------
    n_sets, n_wins : int
        Data sets, and those on which RankMargin has the larger mean.
    p : float
        Holm's p-value over the data sets.
    outcome : {"better", "worse", "not different"}
        RankMargin by the tests over the data sets.
    p_pair : float
        Wilcoxon's p-value over the data sets, which depends on these two methods only.
    is_higher : bool
        Whether RankMargin has the larger sum of Wilcoxon's ranks.
    n_better, n_worse : int
        Data sets on which RankMargin is better or worse by the tests over the runs.
    """

    n_sets: int
    n_wins: int
    p: float
    outcome: str
    p_pair: float
    is_higher: bool
    n_better: int
    n_worse: int

    @property
    def outcome_of_pair(self) -> str:
        """RankMargin by Wilcoxon's test."""
        if self.p_pair > ALPHA:
            return "not different"
        return "better" if self.is_higher else "worse"

    def __str__(self) -> str:
        p_values = f"Holm p = {self.p:.4f}, {self.outcome}; Wilcoxon p = {self.p_pair:.4f}"
        return f"{self.n_wins} of {self.n_sets} ({p_values})"


def compare(results: Results, size: int, rival: str, svm: str = "SVM") -> Comparison:
    """Compare RankMargin with a rival, as measured."""
    columns = members(size, svm)
    control, other = columns[0], columns[METHODS.index(rival)]
    of_runs = [results.over_runs(title, columns, control) for title in results.titles]
    return _comparison(
        friedman_members(results, size, svm),
        rival,
        results.means([control, other]),
        sum(str(other) in tested.worse for tested in of_runs),
        sum(str(other) in tested.better for tested in of_runs),
    )


def compare_printed(titles: Sequence[str], size: int, rival: str) -> Comparison:
    """Compare RankMargin with a rival, as printed; significance on a data set is bold print."""
    bold = [BOLD[size][title] for title in titles]
    return _comparison(
        friedman_printed(titles, size),
        rival,
        printed_means(titles, size)[:, [0, METHODS.index(rival)]],
        sum("RankMargin" in row and rival not in row for row in bold),
        sum(rival in row and "RankMargin" not in row for row in bold),
    )


def _comparison(
    tested: FriedmanHolm, rival: str, means: Floats, n_better: int, n_worse: int
) -> Comparison:
    outcome = "not different"
    if rival in tested.worse:
        outcome = "better"
    elif rival in tested.better:
        outcome = "worse"
    p = float(tested.adjusted[tested.methods.index(rival)])
    differences = np.round(means[:, 0] - means[:, 1], 12)  # rounding errors are no differences
    p_pair = float(wilcoxon(differences).pvalue)
    is_higher = bool(np.sign(differences) @ rankdata(np.abs(differences)) > 0)
    n_wins = int((differences > 0).sum())
    return Comparison(tested.n_rows, n_wins, p, outcome, p_pair, is_higher, n_better, n_worse)


def describe_choice(of_splits: Mapping[str, Results]) -> str:
    """State how the leading split was chosen."""
    lead, other = ordered_splits(of_splits)
    near = {split: mean_distance(results) for split, results in of_splits.items()}
    nearest = min(near, key=lambda split: near[split])
    pairs = [
        [distances(of_splits[s], members(size)[0], "RankMargin", size) for s in (lead, other)]
        for size in study.SIZES
    ]
    n_nearer = sum(int((first < second).sum()) for first, second in pairs)
    n = len(study.SIZES) * len(of_splits[lead].titles)
    return (
        "**The split.** The paper does not print the sizes of its training, tuning and test part. "
        f"Every combiner ran under {lead} and {other}. The page leads with {lead}, because there "
        "the AUCs of RankMargin, the method of the paper, are nearer to "
        f"the printed ones: mean distance {near[lead]:.3f}, with {other} {near[other]:.3f}; nearer "
        f"in {n_nearer} of the {n} cells of both tables. (Of all {len(near)} splits tried, "
        f"{nearest} is nearest, with {near[nearest]:.3f}.) This choice was made after the test "
        "AUCs were seen, and no p-value accounts for it; so both splits are shown."
    )


def describe_claim(of_splits: Mapping[str, Results], rival: str) -> str:
    """State what the splits find about RankMargin and a rival, beside the paper."""
    splits = ordered_splits(of_splits)
    titles = of_splits[splits[0]].titles
    cases = {
        f"{split} with {size} members": (of_splits[split], size)
        for split in splits
        for size in study.SIZES
    }
    found = {case: compare(*of, rival) for case, of in cases.items()}
    other_svm = {case: compare(*of, rival, study.OTHER_SVM) for case, of in cases.items()}
    printed = {f"{size} members": compare_printed(titles, size, rival) for size in study.SIZES}
    n_most = sum(2 * own.n_wins > len(titles) for own in found.values())
    counts = [
        str(of_splits[split].wins(("features", f"{rival}, features"), members(max(study.SIZES))[0]))
        for split in splits
    ]
    return " ".join(
        [
            f"**RankMargin against {rival}, both combining the members.**",
            f"It has the larger mean on most data sets in {n_most} of {len(cases)} cases (two "
            "splits, two sizes). At "
            f"α = {ALPHA:g} it is significantly {_outcomes(found)} by Friedman's and Holm's tests; "
            f"with C = 1 in the SVM instead of the default of SVM-light, {_outcomes(other_svm)}. "
            f"By Wilcoxon's test, which ignores the third method, it is "
            f"{_outcomes(found, pair=True)}.",
            f"The printed means, by the same tests: {_outcomes(printed)} by Friedman's and Holm's, "
            f"{_outcomes(printed, pair=True)} by Wilcoxon's.",
            f"{rival} fitted on the features has a larger mean than RankMargin with "
            f"{max(study.SIZES)} members on {' and '.join(counts)} of {len(titles)} data sets "
            f"({' and '.join(splits)}); it is fitted on the training and the tuning part together.",
        ]
    )


def _outcomes(found: Mapping[str, Comparison], *, pair: bool = False) -> str:
    """In which cases RankMargin is better and worse."""
    texts = []
    for outcome in ("better", "worse"):
        cases = [
            case
            for case, own in found.items()
            if (own.outcome_of_pair if pair else own.outcome) == outcome
        ]
        named = f"{len(cases)} ({', '.join(cases)})" if cases else "none"
        texts.append(f"{outcome} in {named}")
    return " and ".join(texts)


def describe_single(of_splits: Mapping[str, Results]) -> str:
    """State on how many single data sets RankMargin differs significantly from its rivals."""
    splits = ordered_splits(of_splits)
    titles = of_splits[splits[0]].titles
    sizes = " and ".join(map(str, study.SIZES))
    sentences = []
    for rival in RIVALS:
        printed = [compare_printed(titles, size, rival) for size in study.SIZES]
        found = {
            split: [compare(of_splits[split], size, rival) for size in study.SIZES]
            for split in splits
        }
        sentences.append(
            f"Against {rival}, with {sizes} members, the paper marks RankMargin better on "
            f"{_marks(printed)} of {len(titles)} data sets; here it is better on "
            + "; ".join(f"{_marks(own)} ({split})" for split, own in found.items())
            + "."
        )
    return " ".join(sentences)


def _marks(of_sizes: Sequence[Comparison]) -> str:
    better = " and ".join(str(own.n_better) for own in of_sizes)
    worse = " and ".join(str(own.n_worse) for own in of_sizes)
    return f"{better}, worse on {worse}"


def friedman_strong(results: Results) -> FriedmanHolm:
    """Test the combiners of the strong committee over the data sets, against the default."""
    columns = [column for column in results.columns if column[0] == "strong"]
    return results.over_data_sets(columns, [name for _, name in columns], control=OURS)


def describe_strong(split: str, results: Results) -> str:
    """State how the default compares with the other combiners of the strong committee."""
    tested = friedman_strong(results)
    ranks = dict(zip(tested.methods, tested.mean_ranks, strict=True))
    adjusted = dict(zip(tested.methods, tested.adjusted, strict=True))
    best = min(ranks.values())
    first = " and ".join(name for name in tested.methods if ranks[name] == best)
    verb = "have" if " and " in first else "has"
    own = "" if OURS in first else f"; the default, {OURS}, has {ranks[OURS]:.2f}"
    simple = "; ".join(
        f"{name} {ranks[name]:.2f}, Holm p = {adjusted[name]:.4f}"
        for name in ("stacking", "best member", "mean")
    )
    shown = [column for column in results.columns if column[0] in ("strong", "features")]
    overall = results.means(shown).mean(axis=0)
    winner = ", ".join(shown[int(overall.argmax())])
    return (
        f"With {split}, {first} {verb} the best mean rank, {best:.2f}{own} ({simple}). The "
        f"default, {OURS}, is significantly better than "
        f"{' and '.join(tested.worse) or 'no other combiner'} and significantly worse than "
        f"{' and '.join(tested.better) or 'none'}. The largest mean AUC of all rows is "
        f"{overall.max():.4f} ({winner})."
    )
