"""The tuning set of a dialog, and candidates on it, in a form that a file can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from margrave import _labels
from margrave._indexing import select_rows
from margrave._typing import Codes, Floats
from margrave.committee import FittedMembers
from margrave.confusion import Confusion, Objective, Preference
from margrave.steer._row_hashes import UsedRows
from margrave.steer._scorer import ScoreCombination, Scorer, SingleMember, decimals_for

# Kinds of arrays that a file holds unchanged; other columns become texts, numbers or None.
_PLAIN = "biufUM"


class Rows:
    """Rows of an array, a sparse matrix or a data frame.

    Parameters
    ----------
    X : array, sparse matrix or data frame
        The rows.
    """

    def __init__(self, X: Any) -> None:
        self.X = X.tocsr() if hasattr(X, "tocsr") else X

    def __getitem__(self, at: NDArray[np.intp]) -> Any:
        """Select rows by position."""
        return select_rows(self.X, at)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: a data frame as its columns."""
        if not hasattr(self.X, "columns"):
            return {"X": self.X}
        names = list(self.X.columns)
        columns = [_to_plain_array(self.X.iloc[:, j]) for j in range(len(names))]
        return {"names": names, "columns": columns}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state; a data frame from its columns."""
        if "X" in state:
            self.X = state["X"]
            return
        import pandas

        self.X = pandas.DataFrame(dict(enumerate(state["columns"])))
        self.X.columns = state["names"]


def _to_plain_array(column: Any) -> NDArray[Any]:
    """Convert a column to an array without pandas objects."""
    values = column.to_numpy()
    if values.dtype.kind in _PLAIN:
        return np.asarray(values)
    missing = column.isna().to_numpy()
    plain = [
        None if is_missing else value.item() if isinstance(value, np.generic) else value
        for value, is_missing in zip(values.tolist(), missing, strict=True)
    ]
    return np.array([*plain, None], dtype=object)[:-1]


@dataclass(frozen=True, eq=False)
class TuningData:
    """A tuning set, and the out-of-fold predictions of the members for it.

    Attributes
    ----------
    committee : FittedMembers
        The members, for new samples.
    raw : ndarray of shape (n, K) or (n, K, k)
        The raw values of the members, or of members trained without the sample.
    codes : ndarray of shape (n,)
        Positions of the true classes.
    positive : label or None
        The class that ``fp`` and ``fn`` refer to.
    folds : list of (training, held out) positions
        The folds of the cross-fitting within the tuning set.
    X : Rows
        The encoded samples, as the members take them.
    trained_on : bool
        Whether the members were trained on the tuning set; its predictions are then out-of-fold.
        In a large table it is only a part of the training set: retuned members have less to train
        on.
    used : UsedRows
        The rows that the members were trained on, as far as they are known, and the tuning set.
    in_time : bool
        Whether the samples are in the order of time, so that no member may be trained on later
        ones.
    at : ndarray of shape (n,) or None
        Positions of the samples in the table that the dialog started with; None without a table.
    """

    committee: FittedMembers
    raw: Floats
    codes: Codes
    positive: Any
    folds: list[tuple[Codes, Codes]]
    X: Rows
    trained_on: bool
    used: UsedRows
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
        """Select samples by position."""
        return self.X[at]

    def matrix(self, predictions: Codes) -> Confusion:
        """Count predictions for these samples in a confusion matrix."""
        counts = np.zeros((self.k, self.k + 1), dtype=np.int64)
        np.add.at(counts, (self.codes, predictions), 1)  # -1, rejected, is the last column
        return Confusion(counts, self.labels, self.positive)

    def objective(self, preference: Preference) -> Objective:
        """Make the objective of a preference on these samples."""
        return Objective(preference, self.codes, self.labels, self.positive)

    def cross_fit(self, learn: Callable[[Codes], ScoreCombination]) -> tuple[Scorer, Floats]:
        """Return a scorer fitted on all samples, and out-of-fold scores of the samples.

        Parameters
        ----------
        learn : callable
            Takes positions of samples, and returns a combination fitted on them.
        """
        parts = [(at, learn(training)(self.raw[at])) for training, at in self.folds]
        combine = learn(np.arange(len(self.codes)))
        scorer = Scorer(self.committee, combine, decimals_for(combine(self.raw)))
        return scorer, self.join_folds(parts, scorer.decimals)

    def members_alone(self) -> Iterator[tuple[str, Floats]]:
        """Yield the name and the scores of each member alone."""
        for j, name in enumerate(self.committee.names):
            alone = SingleMember(bool(self.committee.gives_probabilities[j]))
            yield name, alone(self.raw[:, j : j + 1])

    def join_folds(self, parts: list[tuple[Codes, Floats]], decimals: int) -> Floats:
        """Join the scores of folds, in the order of the samples."""
        first = parts[0][1]
        scores: Floats = np.empty((len(self.codes), *first.shape[1:]))
        for at, values in parts:
            scores[at] = values
        return np.asarray(np.round(scores, decimals), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A classifier that a strategy offers: a scorer, and a decision on its scores.

    Attributes
    ----------
    strategy : str
        The name of the strategy.
    scorer : Scorer
        Scores new samples.
    scores : ndarray
        Out-of-fold scores of the tuning set.
    decision : Decision
        Turns scores into predictions.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load("pima", return_X_y=True)
    >>> dialog = Dialog(GaussianNB().fit(X[::2], y[::2]), X[1::2], y[1::2])
    >>> candidate = dialog.prefer("fn <= 30").candidate
    >>> candidate.strategy, candidate.scores.shape
    ('move', (384,))
    >>> candidate.predictions[:6]  # positions of the classes
    array([0, 0, 0, 1, 0, 1])
    """

    strategy: str
    scorer: Scorer
    scores: Floats
    decision: Any

    @property
    def predictions(self) -> Codes:
        """The predictions for the tuning set; -1 for rejected samples."""
        codes: Codes = self.decision.predict(self.scores)
        return codes

    def same_as(self, other: Candidate) -> bool:
        """Whether another candidate has the same scorer and the same predictions."""
        same = self.scorer is other.scorer
        return same and np.array_equal(self.predictions, other.predictions)


def encode_labels(X: Any, y: ArrayLike, classes: NDArray[Any], owner: str) -> Codes:
    """Encode labels as positions of classes, one for each sample."""
    check_consistent_length(X, y)
    return _labels.encode(column_or_1d(_labels.natural(y)), classes, f"{owner}: y")
