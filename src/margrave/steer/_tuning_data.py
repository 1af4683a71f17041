"""Samples that a dialog keeps, in a form that a file can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from margrave import _labels
from margrave._dask.blocks import is_dask
from margrave._indexing import select_rows
from margrave._typing import Codes, Floats
from margrave.committee import FittedMembers
from margrave.confusion import Confusion, Objective, Preference
from margrave.select._region_scores import fit_region_scores
from margrave.steer._scorer import (
    Combination,
    Scorer,
    SingleMember,
    combine_scores,
    decimals_for,
    needs_samples,
)

# Kinds of arrays that a file holds as they are; other columns are kept as texts, numbers or None.
_PLAIN = "biufUM"


class Rows:
    """Samples as they were given: an array, a sparse matrix or a data frame.

    Parameters
    ----------
    X : array, sparse matrix or data frame
        The samples.
    """

    def __init__(self, X: Any) -> None:
        self.X = X.tocsr() if hasattr(X, "tocsr") else X

    def __getitem__(self, at: NDArray[np.intp]) -> Any:
        """Some of them."""
        return select_rows(self.X, at)

    def __getstate__(self) -> dict[str, Any]:
        """A data frame as its columns."""
        if not hasattr(self.X, "columns"):
            return {"X": self.X}
        names = list(self.X.columns)
        columns = [_plain(self.X.iloc[:, j]) for j in range(len(names))]
        return {"names": names, "columns": columns}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A data frame again."""
        if "X" in state:
            self.X = state["X"]
            return
        import pandas

        self.X = pandas.DataFrame(dict(enumerate(state["columns"])))
        self.X.columns = state["names"]


def _plain(column: Any) -> NDArray[Any]:
    """A column as an array without objects of pandas."""
    values = column.to_numpy()
    if values.dtype.kind in _PLAIN:
        return np.asarray(values)
    missing = column.isna().to_numpy()
    plain = [
        None if no else value.item() if isinstance(value, np.generic) else value
        for value, no in zip(values.tolist(), missing, strict=True)
    ]
    return np.array([*plain, None], dtype=object)[:-1]


@dataclass(frozen=True, eq=False)
class TuningData:
    """Tuning samples, and what members say about them that were not trained on them.

    Attributes
    ----------
    committee : FittedMembers
        The members, for new samples.
    raw : ndarray of shape (n, K) or (n, K, k)
        What they, or members trained without the sample, say about each.
    codes : ndarray of shape (n,)
        True classes.
    positive : label or None
        The class that ``fp`` and ``fn`` speak of.
    folds : list of (training, held out) positions
        In which what is learned from tuning samples is judged on others.
    X : Rows
        The tuning samples as the members see them.
    trained_on : bool
        Whether the tuning samples are also what the members were trained on (each sample judged
        by members trained without it).
    in_time : bool
        Whether they are in the order of time, so that no learner may be trained on what came later.
    at : ndarray of shape (n,) or None
        Their positions in the table that the dialog began with; None without one.
    """

    committee: FittedMembers
    raw: Floats
    codes: Codes
    positive: Any
    folds: list[tuple[Codes, Codes]]
    X: Rows
    trained_on: bool
    in_time: bool = False
    at: Codes | None = None

    @property
    def k(self) -> int:
        """Number of classes."""
        return len(self.committee.classes)

    @property
    def labels(self) -> tuple[Any, ...]:
        """The classes."""
        return tuple(self.committee.classes.tolist())

    def rows(self, at: Codes) -> Any:
        """Some of the tuning samples."""
        return self.X[at]

    def matrix(self, answers: Codes) -> Confusion:
        """The confusion matrix of answers to these samples."""
        counts = np.zeros((self.k, self.k + 1), dtype=np.int64)
        np.add.at(counts, (self.codes, answers), 1)  # -1 is the last column
        return Confusion(counts, self.labels, self.positive)

    def objective(self, preference: Preference) -> Objective:
        """The judge of a preference on these samples."""
        return Objective(preference, self.codes, self.labels, self.positive)

    def cross_fit(self, learn: Callable[[Codes], Combination]) -> tuple[Scorer, Floats]:
        """A scorer learned from all samples, and scores of each by one learned from others.

        Parameters
        ----------
        learn : callable
            Given positions of samples, what makes scores of the members' answers.
        """
        held = [(at, self._told(learn(training), at)) for training, at in self.folds]
        everything = np.arange(len(self.codes))
        combine = learn(everything)
        scorer = Scorer(self.committee, combine, decimals_for(self._told(combine, everything)))
        return scorer, self.gathered(held, scorer.decimals)

    def _told(self, combine: Combination, at: Codes) -> Floats:
        """Scores of some of the samples."""
        return combine_scores(
            combine, self.raw[at], self.rows(at) if needs_samples(combine) else None
        )

    @cached_property
    def region_scores(self) -> tuple[Scorer, Floats]:
        """A scorer with one member in charge of each region, and its scores of the samples.

        It does not depend on what is asked.
        """
        raw, codes, combine_scores = self.raw, self.codes, self.committee.gives_probabilities
        return self.cross_fit(
            lambda at: fit_region_scores(raw[at], combine_scores, codes[at], self.k, self.rows(at))
        )

    def __getstate__(self) -> dict[str, Any]:
        """What a file holds: without what can be computed again."""
        return {name: value for name, value in vars(self).items() if name != "by_regions"}

    def members_alone(self) -> Iterator[tuple[str, Floats]]:
        """Each member's own scores of the samples."""
        for j, name in enumerate(self.committee.names):
            alone = SingleMember(bool(self.committee.gives_probabilities[j]))
            yield name, alone(self.raw[:, j : j + 1])

    def gathered(self, parts: list[tuple[Codes, Floats]], decimals: int) -> Floats:
        """Scores of folds, put together in the order of the samples."""
        first = parts[0][1]
        scores: Floats = np.empty((len(self.codes), *first.shape[1:]))
        for at, told in parts:
            scores[at] = told
        return np.asarray(np.round(scores, decimals), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A way to decide: how samples are scored, and how scores become answers.

    Attributes
    ----------
    strategy : str
        The name of the way it came by.
    scorer : Scorer
        Scores of new samples.
    scores : ndarray
        Scores of the tuning samples, by what was not learned from them.
    decision : Decision
        From scores to answers.
    """

    strategy: str
    scorer: Scorer
    scores: Floats
    decision: Any

    @property
    def predictions(self) -> Codes:
        """The tuning samples' answers."""
        codes: Codes = self.decision.predict(self.scores)
        return codes


Options = Iterator[Candidate]


def encode_labels(X: Any, y: ArrayLike, classes: NDArray[Any], owner: str) -> Codes:
    """Positions of labels, one for each sample."""
    refuse_dask(X, y, owner)
    check_consistent_length(X, y)
    return _labels.encode(column_or_1d(_labels.natural(y)), classes, f"{owner}: y")


def refuse_dask(X: Any, y: Any, owner: str) -> None:
    """A dialog is held in memory."""
    if is_dask(X, y):
        raise ValueError(
            f"{owner} needs samples in memory; got a Dask collection. SteeredClassifier sets a "
            "threshold on all of its rows; margrave.scale.sample draws rows for a dialog."
        )
