"""Samples of the tuning set: behind a cell of the confusion matrix, or that two steps change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._errors import ParameterError
from margrave._labels import REJECTED
from margrave._typing import Codes, Flags, Floats
from margrave.steer._certificate import Change, list_changes
from margrave.steer._reply import Reply
from margrave.steer._thresholds import lead_of_largest
from margrave.steer._tuning_data import TuningData


@dataclass(frozen=True, eq=False)
class CellRows:
    """Samples of the tuning set, with their predictions by the model of a step and by the members.

    Attributes
    ----------
    positions : ndarray of shape (n,)
        Positions in the tuning set.
    at : ndarray of shape (n,) or None
        Positions in the table that the dialog started with; None without a table.
    true : ndarray of shape (n,)
        The true classes.
    predicted : ndarray of shape (n,)
        The predicted classes, as objects; None for rejected samples.
    margin : ndarray of shape (n,)
        The distance of the score from the threshold or, for more than two classes, from the next
        class. The scores of different strategies have different scales.
    certainty : ndarray of shape (n,)
        The fraction of the tuning set with a smaller margin.
    votes : dict of str to ndarray of shape (n,)
        The prediction of each member alone.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load("pima", return_X_y=True)
    >>> dialog = Dialog(GaussianNB().fit(X[::2], y[::2]), X[1::2], y[1::2])
    >>> missed = dialog.rows(true="pos", predicted="neg")
    >>> largest_margins = missed.margin.argsort()[::-1]
    >>> len(missed), missed.positions[largest_margins[:3]].tolist()
    (52, [4, 98, 54])
    """

    positions: Codes
    at: Codes | None
    true: NDArray[Any]
    predicted: NDArray[Any]
    margin: Floats
    certainty: Floats
    votes: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.positions)

    def select(self, which: Codes | Flags) -> CellRows:
        """Select some of the samples.

        Parameters
        ----------
        which : ndarray of int or bool
            Places among these samples, or a flag for each of them.

        Returns
        -------
        CellRows
        """
        return CellRows(
            self.positions[which],
            None if self.at is None else self.at[which],
            self.true[which],
            self.predicted[which],
            self.margin[which],
            self.certainty[which],
            {name: votes[which] for name, votes in self.votes.items()},
        )


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two steps of a dialog, compared on the tuning set.

    Attributes
    ----------
    first, second : Reply
        The two steps.
    rows_first, rows_second : CellRows
        The samples whose predictions differ, as each of the two steps predicts them.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load("pima", return_X_y=True)
    >>> dialog = Dialog(GaussianNB().fit(X[::2], y[::2]), X[1::2], y[1::2])
    >>> replies = dialog.prefer("fn <= 40"), dialog.prefer("fn <= 20")
    >>> print(dialog.compare(1, 2))
    fn <= 40 (move) -> fn <= 20 (move)
      neg predicted pos: 43 -> 95 (+52)
      pos predicted neg: 40 -> 20 (-20)
      72 of 384 predictions differ: 52 correct only in the first, 20 only in the second
    """

    first: Reply
    second: Reply
    rows_first: CellRows
    rows_second: CellRows

    @property
    def n_changed(self) -> int:
        """Number of samples whose predictions differ."""
        return len(self.rows_first)

    @property
    def n_only_first(self) -> int:
        """Number of samples that only the first model predicts correctly."""
        return _count_correct(self.rows_first)

    @property
    def n_only_second(self) -> int:
        """Number of samples that only the second model predicts correctly."""
        return _count_correct(self.rows_second)

    @property
    def changes(self) -> tuple[Change, ...]:
        """The cells of errors and of rejected samples whose counts differ."""
        return list_changes(self.first.after, self.second.after)

    def __str__(self) -> str:
        lines = [f"{_describe_request(self.first)} -> {_describe_request(self.second)}"]
        lines += [f"  {change}" for change in self.changes]
        lines.append(
            f"  {self.n_changed:,} of {self.first.after.n:,} predictions differ: "
            f"{self.n_only_first:,} correct only in the first, {self.n_only_second:,} only in the "
            "second"
        )
        return "\n".join(lines)


def _count_correct(rows: CellRows) -> int:
    return int((rows.predicted == rows.true).sum())


def _describe_request(reply: Reply) -> str:
    return reply.strategy if reply.preference is None else f"{reply.preference} ({reply.strategy})"


def select_rows_of_cell(
    reply: Reply, data: TuningData, votes_data: TuningData, true: Any, predicted: Any, rejected: Any
) -> CellRows:
    """Select the samples of a cell; `votes_data` has the members as they are at this step."""
    predictions = reply.candidate.predictions
    selected: Flags = np.ones(len(predictions), dtype=bool)
    if true is not None:
        selected &= data.codes == _code(true, data.labels, "true")
    if rejected:
        selected &= predictions == REJECTED
    elif predicted is not None:
        selected &= predictions == _code(predicted, data.labels, "predicted")
    return describe_rows(np.flatnonzero(selected), reply, data, votes_data)


def describe_rows(
    positions: Codes, reply: Reply, data: TuningData, votes_data: TuningData
) -> CellRows:
    """Describe samples of the tuning set as the model of a step predicts them."""
    candidate, classes = reply.candidate, data.committee.classes
    values = candidate.decision.decision_values(candidate.scores)
    margin = lead_of_largest(values) if values.ndim == 2 else np.abs(values)
    certainty = np.searchsorted(np.sort(margin), margin, "left") / len(margin)
    labels = np.array([*data.labels, None], dtype=object)  # -1, rejected, is the last
    return CellRows(
        positions,
        None if data.at is None else data.at[positions],
        classes[data.codes[positions]],
        labels[candidate.predictions[positions]],
        margin[positions],
        certainty[positions],
        {
            name: classes[_predict_alone(scores)[positions]]
            for name, scores in votes_data.members_alone()
        },
    )


def _predict_alone(scores: Floats) -> Codes:
    """Predict positions of classes by the scores of one member."""
    return scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)


def _code(label: Any, labels: tuple[Any, ...], parameter: str) -> int:
    if label not in labels:
        raise ParameterError.of(
            "Dialog.rows", parameter, f"one of {', '.join(map(repr, labels))}", label
        )
    return labels.index(label)
