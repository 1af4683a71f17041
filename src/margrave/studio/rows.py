"""The rows in a cell of the matrix, with the votes of the members and the certainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrave import _labels
from margrave._typing import Codes
from margrave.app._samples import match_label
from margrave.steer._dialog import Dialog
from margrave.steer._tuning_data import TuningData
from margrave.studio.views import Record, certainty_of, votes_of

if TYPE_CHECKING:
    import pandas


_LONGEST = 200  # characters shown of a value
_MEMBER = "member:"


@dataclass(frozen=True)
class Cell:
    """A selection of rows by true class and prediction; None for any.

    Attributes
    ----------
    true, predicted : str or None
        Labels as text.
    rejected : bool
        Whether to select the rejected rows.
    """

    true: str | None = None
    predicted: str | None = None
    rejected: bool = False

    def select(self, tuning_data: TuningData, predictions: Codes) -> Codes:
        """Positions of the selected rows in the tuning set."""
        classes = tuning_data.committee.classes
        selected = np.ones(len(predictions), dtype=bool)
        if self.true is not None:
            selected &= tuning_data.codes == _code(self.true, classes, "true")
        if self.rejected:
            selected &= predictions == _labels.REJECTED
        elif self.predicted is not None:
            selected &= predictions == _code(self.predicted, classes, "predicted")
        return np.flatnonzero(selected)


def _code(text: str, classes: NDArray[Any], name: str) -> int:
    """The position of a class in `classes`, from its label as text."""
    label = match_label(text, classes, name)
    return int(classes.tolist().index(label))


def rows_record(
    dialog: Dialog,
    frame: pandas.DataFrame,
    cell: Cell,
    *,
    sort: str,
    descending: bool,
    offset: int,
    limit: int,
) -> Record:
    """One page of the rows in a cell.

    Parameters
    ----------
    dialog : Dialog
        The dialog, at its current step.
    frame : DataFrame
        The tuning set as in the user's table, with the row numbers as index.
    cell : Cell
        The cell.
    sort : str
        "row", "certainty", the name of a column, or "member:" and the name of a member.
    descending : bool
        Whether the largest come first.
    offset, limit : int
        The first row of the page, and the largest number of rows.
    """
    tuning_data, reply = dialog._data, dialog.reply  # read once: another step may follow meanwhile
    predictions, votes = reply.candidate.predictions, votes_of(dialog)
    certainty = certainty_of(reply)
    chosen = cell.select(tuning_data, predictions)
    names = list(tuning_data.committee.names)
    keys = _keys(frame, sort, chosen, certainty, votes, names, descending)
    order = np.argsort(keys, kind="stable")
    shown = chosen[order[::-1] if descending else order][offset : offset + limit]
    values = frame.iloc[shown]
    texts = [_texts(values.iloc[:, j]) for j in range(values.shape[1])]
    classes = dialog.classes
    rows = [
        {
            "row": int(values.index[i]) + 1,
            "true": classes[tuning_data.codes[at]],
            "predicted": None if predictions[at] < 0 else classes[predictions[at]],
            "certainty": float(certainty[at]),
            "votes": [classes[vote] for vote in votes[at].tolist()],
            "values": [column[i] for column in texts],
        }
        for i, at in enumerate(shown.tolist())
    ]
    columns = [str(name) for name in frame.columns]
    return {"total": len(chosen), "columns": columns, "members": names, "rows": rows}


def rows_table(dialog: Dialog, frame: pandas.DataFrame, cell: Cell) -> pandas.DataFrame:
    """All rows in a cell, as a table."""
    tuning_data, reply = dialog._data, dialog.reply
    predictions, votes, classes = reply.candidate.predictions, votes_of(dialog), dialog.classes
    chosen = cell.select(tuning_data, predictions)
    table = frame.iloc[chosen].copy()
    added: dict[str, Any] = {
        "row": table.index.to_numpy() + 1,
        "true": [classes[code] for code in tuning_data.codes[chosen]],
        "predicted": [None if code < 0 else classes[code] for code in predictions[chosen]],
        "certainty": certainty_of(reply)[chosen].round(4),
    }
    for j, name in enumerate(tuning_data.committee.names):
        added[f"{_MEMBER}{name}"] = [classes[vote] for vote in votes[chosen, j]]
    for place, (name, column) in enumerate(added.items()):
        while name in table.columns:  # a column of the user keeps its name
            name += "_"
        table.insert(place, name, column)
    return table.reset_index(drop=True)


def _keys(
    frame: pandas.DataFrame,
    sort: str,
    chosen: Codes,
    certainty: NDArray[np.float64],
    votes: Codes,
    names: list[str],
    descending: bool,
) -> NDArray[Any]:
    """The sort keys of the rows; missing values come last in both directions."""
    if sort == "row":
        places: Codes = frame.index.to_numpy(dtype=np.intp)
        return places[chosen]
    if sort == "certainty":
        return certainty[chosen]
    if sort.startswith(_MEMBER) and sort.removeprefix(_MEMBER) in names:
        return np.asarray(votes[chosen, names.index(sort.removeprefix(_MEMBER))])
    columns = [str(name) for name in frame.columns]
    if sort not in columns:
        raise ValueError(f"The rows cannot be sorted by {sort!r}: there is no such column.")
    column = frame.iloc[chosen, columns.index(sort)]
    if column.dtype.kind not in "biufM":
        column = column.astype(str).where(column.notna())
    return column.rank(method="dense", na_option="top" if descending else "bottom").to_numpy()


def _texts(column: pandas.Series[Any]) -> list[str]:
    """The values as short texts, "" for missing ones."""
    missing = column.isna().to_numpy()
    return ["" if no else _short(value) for value, no in zip(column.tolist(), missing, strict=True)]


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
