"""What the splits find about the claims of the paper, in numbers and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata, wilcoxon

from experiments._page import listed
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


def leading_split(of_splits: Mapping[str, Results]) -> str:
    """Return the split with every combiner whose AUCs are nearest to the printed ones."""
    return min(study.FULL, key=lambda split: mean_distance(of_splits[split]))


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
    lead = leading_split(of_splits)
    near = {split: mean_distance(results) for split, results in of_splits.items()}
    others = listed(f"{near[split]:.3f} with {split}" for split in of_splits if split != lead)
    return (
        f"Of {listed(study.FULL)}, the splits that we ran with every combiner, this page shows "
        f"{lead}, because its AUCs of RankMargin are nearer to the printed ones. Their mean "
        f"distance is {near[lead]:.3f} ({others}). We chose it after we had seen the test AUCs, "
        "and no p-value accounts for that."
    )


def describe_rival(results: Results, rival: str) -> str:
    """State what the leading split finds about RankMargin and a rival, beside the paper."""
    n = len(results.titles)
    found = [compare(results, size, rival) for size in study.SIZES]
    printed = [compare_printed(results.titles, size, rival) for size in study.SIZES]
    is_ahead, is_printed_ahead = (
        all(2 * own.n_wins > n for own in of_sizes) for of_sizes in (found, printed)
    )
    lead = f"RankMargin is {'' if is_ahead else 'not '}ahead of {rival}"
    lead += ", as printed" if is_ahead == is_printed_ahead else ", unlike the printed means"
    return (
        f"**{lead}.** With {_both(study.SIZES)} members it has the larger mean AUC on "
        f"{_both(own.n_wins for own in found)} of {n} data sets; the paper prints "
        f"{_both(own.n_wins for own in printed)}. Over the data sets, Holm's procedure finds the "
        f"difference significant in {_n_different(found)} of {len(found)} cases (printed means: "
        f"{_n_different(printed)}), and Wilcoxon's test in {_n_different(found, pair=True)} "
        f"({_n_different(printed, pair=True)})."
    )


def describe_single(results: Results) -> str:
    """State on how many single data sets RankMargin differs significantly from its rivals."""
    texts = []
    for rival in RIVALS:
        printed = [compare_printed(results.titles, size, rival) for size in study.SIZES]
        found = [compare(results, size, rival) for size in study.SIZES]
        texts.append(
            f"better than {rival} on {_both(own.n_better for own in printed)} (here on "
            f"{_both(own.n_better for own in found)}) and as worse on "
            f"{_both(own.n_worse for own in printed)} (here on "
            f"{_both(own.n_worse for own in found)})"
        )
    return (
        f"Of {len(results.titles)} single data sets, with {_both(study.SIZES)} members, the paper "
        f"marks RankMargin as significantly {'; as '.join(texts)}."
    )


def describe_other_splits(of_splits: Mapping[str, Results]) -> str:
    """State what the other splits find, and what the other C of the SVM changes."""
    lead = leading_split(of_splits)
    cases = [(split, size) for split in of_splits for size in study.SIZES]
    others = [case for case in cases if case[0] != lead]
    wins = []
    for rival in RIVALS:
        n_wins = [compare(of_splits[split], size, rival).n_wins for split, size in others]
        wins.append(f"than {rival} on {min(n_wins)} to {max(n_wins)}")
    names = listed(split for split in of_splits if split != lead)
    by_holm, by_wilcoxon = (
        _differences(of_splits, others, attribute) for attribute in ("outcome", "outcome_of_pair")
    )
    with_c = _differences(of_splits, cases, "outcome", study.OTHER_SVM)
    return (
        f"With the other splits ({names}) RankMargin has a larger mean {listed(wins)} of "
        f"{len(of_splits[lead].titles)} data sets. In these {len(others)} cases Holm's procedure "
        f"finds {by_holm}, and Wilcoxon's test finds {by_wilcoxon}. With C = 1 in the SVM, Holm's "
        f"procedure finds, in the {len(cases)} cases of all splits, {with_c}."
    )


def _differences(
    of_splits: Mapping[str, Results],
    cases: Sequence[tuple[str, int]],
    attribute: str,
    svm: str = "SVM",
) -> str:
    """Name the cases in which RankMargin is significantly better or worse than a rival."""
    texts = []
    for rival in RIVALS:
        outcomes = {
            f"{split}, {size} members": getattr(
                compare(of_splits[split], size, rival, svm), attribute
            )
            for split, size in cases
        }
        for outcome in ("better", "worse"):
            where = [case for case, own in outcomes.items() if own == outcome]
            if where:
                texts.append(
                    f"RankMargin {outcome} than {rival} in {len(where)} ({'; '.join(where)})"
                )
    return listed(texts) if texts else "no significant difference"


def describe_readings(results: Results) -> str:
    """State how near both readings of RankBoost and the SVM are to the printed AUCs."""
    near = {}
    for rival in RIVALS:
        columns = [
            [(f"{size} Modest", rival), ("features", f"{rival}, features")] for size in study.SIZES
        ]
        near[rival] = [
            float(
                np.mean(
                    [
                        distances(results, own, rival, size)
                        for own, size in zip(of_sizes, study.SIZES, strict=True)
                    ]
                )
            )
            for of_sizes in zip(*columns, strict=True)
        ]
    members_text, features_text = (
        listed(f"{near[rival][i]:.3f} ({rival})" for rival in RIVALS) for i in range(2)
    )
    return (
        f"As combiners of the members, they are on average {members_text} from the printed AUCs; "
        f"fitted on the features, {features_text}."
    )


def describe_features(results: Results) -> str:
    """State how RankMargin compares with models of the features."""
    size = max(study.SIZES)
    own = members(size)[0]
    wins = [results.wins(("features", f"{rival}, features"), own) for rival in RIVALS]
    return (
        f"{listed(RIVALS)} without members, fitted on the features of the training and the tuning "
        f"set together, have a larger mean AUC than RankMargin with {size} members on "
        f"{_both(wins)} of {len(results.titles)} data sets."
    )


def friedman_strong(results: Results) -> FriedmanHolm:
    """Test the combiners of the strong committee over the data sets, against the default."""
    columns = [column for column in results.columns if column[0] == "strong"]
    return results.over_data_sets(columns, [name for _, name in columns], control=OURS)


def describe_strong(split: str, results: Results) -> str:
    """State how the default compares with the other combiners of the strong committee."""
    tested = friedman_strong(results)
    ranks = dict(zip(tested.methods, tested.mean_ranks, strict=True))
    best = min(ranks.values())
    first = [name for name in tested.methods if ranks[name] == best]
    verb = "have" if len(first) > 1 else "has"
    own = "" if OURS in first else f" (the default: {ranks[OURS]:.2f})"
    return (
        f"With {split}, {listed(first)} {verb} the best mean rank, {best:.2f}{own}. The default is "
        f"significantly better than {listed(tested.worse)} and significantly worse than "
        f"{listed(tested.better)}."
    )


def describe_committees(results: Results) -> str:
    """State how much the members matter, and how much the combiner."""
    modest = f"{max(study.SIZES)} Modest"
    ranges = []
    for committee in (modest, "strong"):
        means = results.means([(committee, name) for name in study.COMBINERS]).mean(axis=0)
        ranges.append(f"{means.min():.3f} to {means.max():.3f}")
    return (
        f"With the {max(study.SIZES)} members of the paper, the mean AUCs of "
        f"{len(study.COMBINERS)} combiners range from {ranges[0]}; with common classifiers as "
        f"members, from {ranges[1]}."
    )


def _both(numbers: Iterable[int]) -> str:
    return listed(map(str, numbers))


def _n_different(found: Sequence[Comparison], *, pair: bool = False) -> int:
    outcomes = [own.outcome_of_pair if pair else own.outcome for own in found]
    return sum(outcome != "not different" for outcome in outcomes)
