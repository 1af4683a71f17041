"""The samples of the tuning set behind a cell of the confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._errors import ParameterError
from margrave._labels import REJECTED
from margrave._typing import Codes, Flags, Floats
from margrave.steer._reply import Reply
from margrave.steer._thresholds import lead_of_largest
from margrave.steer._tuning_data import TuningData


@dataclass(frozen=True, eq=False)
class CellRows:
    """Samples of the tuning set, with their predictions by the current model and by the members.

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


def select_rows_of_cell(
    reply: Reply, data: TuningData, votes_data: TuningData, true: Any, predicted: Any, rejected: Any
) -> CellRows:
    """Select the samples of a cell; `votes_data` has the members as they are at this step."""
    predictions, classes = reply.candidate.predictions, data.committee.classes
    selected: Flags = np.ones(len(predictions), dtype=bool)
    if true is not None:
        selected &= data.codes == _code(true, data.labels, "true")
    if rejected:
        selected &= predictions == REJECTED
    elif predicted is not None:
        selected &= predictions == _code(predicted, data.labels, "predicted")
    positions = np.flatnonzero(selected)
    values = reply.candidate.decision.decision_values(reply.candidate.scores)
    margin = lead_of_largest(values) if values.ndim == 2 else np.abs(values)
    certainty = np.searchsorted(np.sort(margin), margin, "left") / len(margin)
    labels = np.array([*data.labels, None], dtype=object)  # -1, rejected, is the last
    return CellRows(
        positions,
        None if data.at is None else data.at[positions],
        classes[data.codes[positions]],
        labels[predictions[positions]],
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
