"""The rows behind a cell: which samples they are, what each member says of them, how sure it is."""

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


_LONGEST = 200  # characters of a value that are shown
_MEMBER = "member:"


@dataclass(frozen=True)
class Cell:
    """Which samples: of a class, with an answer; None for any.

    Attributes
    ----------
    true, answer : str or None
        Labels as text.
    rejected : bool
        Whether those without an answer.
    """

    true: str | None = None
    answer: str | None = None
    rejected: bool = False

    def chosen(self, tuning_data: TuningData, answers: Codes) -> Codes:
        """Positions of these tuning samples, by their answers."""
        classes = tuning_data.committee.classes
        fits = np.ones(len(answers), dtype=bool)
        if self.true is not None:
            fits &= tuning_data.codes == _code(self.true, classes, "true")
        if self.rejected:
            fits &= answers == _labels.REJECTED
        elif self.answer is not None:
            fits &= answers == _code(self.answer, classes, "answer")
        return np.flatnonzero(fits)


def _code(text: str, classes: NDArray[Any], name: str) -> int:
    """The position of a class that is given as text."""
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
    """Some of the samples behind a cell.

    Parameters
    ----------
    dialog : Dialog
        Where it stands.
    frame : DataFrame
        The tuning samples as the user has them, with their place in the table as index.
    cell : Cell
        Which of them.
    sort : str
        "row", "certainty", a column, or "member:" and a name.
    descending : bool
        The largest first.
    offset, limit : int
        Which of those to show.
    """
    tuning_data, reply = dialog._data, dialog.reply  # once: a step may be taken meanwhile
    answers, certainty, votes = reply.candidate.predictions, certainty_of(reply), votes_of(dialog)
    chosen = cell.chosen(tuning_data, answers)
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
            "answer": None if answers[at] < 0 else classes[answers[at]],
            "certainty": float(certainty[at]),
            "votes": [classes[vote] for vote in votes[at].tolist()],
            "values": [column[i] for column in texts],
        }
        for i, at in enumerate(shown.tolist())
    ]
    columns = [str(name) for name in frame.columns]
    return {"total": len(chosen), "columns": columns, "members": names, "rows": rows}


def rows_table(dialog: Dialog, frame: pandas.DataFrame, cell: Cell) -> pandas.DataFrame:
    """All samples behind a cell, as a table."""
    tuning_data, reply = dialog._data, dialog.reply
    answers, votes, classes = reply.candidate.predictions, votes_of(dialog), dialog.classes
    chosen = cell.chosen(tuning_data, answers)
    table = frame.iloc[chosen].copy()
    told: dict[str, Any] = {
        "row": table.index.to_numpy() + 1,
        "true": [classes[code] for code in tuning_data.codes[chosen]],
        "answer": [None if code < 0 else classes[code] for code in answers[chosen]],
        "certainty": certainty_of(reply)[chosen].round(4),
    }
    for j, name in enumerate(tuning_data.committee.names):
        told[f"{_MEMBER}{name}"] = [classes[vote] for vote in votes[chosen, j]]
    for place, (name, column) in enumerate(told.items()):
        while name in table.columns:  # a user's column of that name stays
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
    """What the samples are sorted by; those that have none come last in both directions."""
    if sort == "row":
        places: Codes = frame.index.to_numpy(dtype=np.intp)
        return places[chosen]
    if sort == "certainty":
        return certainty[chosen]
    if sort.startswith(_MEMBER) and sort.removeprefix(_MEMBER) in names:
        return np.asarray(votes[chosen, names.index(sort.removeprefix(_MEMBER))])
    columns = [str(name) for name in frame.columns]
    if sort not in columns:
        raise ValueError(f"There is no column {sort!r} to sort by.")
    column = frame.iloc[chosen, columns.index(sort)]
    if column.dtype.kind not in "biufM":
        column = column.astype(str).where(column.notna())
    return column.rank(method="dense", na_option="top" if descending else "bottom").to_numpy()


def _texts(column: pandas.Series[Any]) -> list[str]:
    """Values as short texts; nothing where there is none."""
    missing = column.isna().to_numpy()
    return ["" if no else _short(value) for value, no in zip(column.tolist(), missing, strict=True)]


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
