"""The rows in a cell of the matrix, with the votes of the members and the certainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from fastapi import Query
from numpy.typing import NDArray

from margrave import ParameterError
from margrave.app.samples import match_label
from margrave.steer import CellRows, Dialog
from margrave.studio.views import Label, View

if TYPE_CHECKING:
    import pandas


_LONGEST = 200  # characters shown of a value
_MEMBER = "member:"


Text = Annotated[str | None, Query(max_length=1000)]


@dataclass(frozen=True)
class Cell:
    """A selection of rows by true class and prediction, as texts; None for any."""

    true: Text = None
    predicted: Text = None
    rejected: bool = False

    def select(self, dialog: Dialog) -> CellRows:
        """The selected rows of the tuning set, at the current step."""
        classes = np.array(dialog.classes)
        texts = {"true": self.true, "predicted": None if self.rejected else self.predicted}
        labels = {
            name: match_label(text, classes, name)
            for name, text in texts.items()
            if text is not None
        }
        return dialog.rows(**labels, rejected=self.rejected)


class Row(View):
    """A row of the tuning set: its number in the table, its prediction and the members' votes."""

    row: int
    true: Label
    predicted: Label | None
    certainty: float
    votes: list[Label]
    values: list[str]


class Rows(View):
    """One page of the rows in a cell."""

    total: int
    columns: list[str]
    members: list[str]
    rows: list[Row]

    @classmethod
    def of(
        cls, chosen: CellRows, frame: pandas.DataFrame, *, sort: str, descending: bool, page: slice
    ) -> Self:
        """Select one page of some rows of the tuning set.

        `frame` is the tuning set as in the user's table, with the row numbers as index; `sort` is
        "row", "certainty", the name of a column, or "member:" and the name of a member.
        """
        order = np.argsort(_keys(frame, sort, chosen, descending), kind="stable")
        shown = (order[::-1] if descending else order)[page]
        values = frame.iloc[chosen.positions[shown]]
        texts = [_texts(values.iloc[:, j]) for j in range(values.shape[1])]
        true, predicted, certainty, *votes = (
            array[shown].tolist()
            for array in (chosen.true, chosen.predicted, chosen.certainty, *chosen.votes.values())
        )
        rows = [
            Row(
                row=int(number) + 1,
                true=true[i],
                predicted=predicted[i],
                certainty=certainty[i],
                votes=[labels[i] for labels in votes],
                values=[column[i] for column in texts],
            )
            for i, number in enumerate(values.index)
        ]
        columns = [str(name) for name in frame.columns]
        return cls(total=len(chosen), columns=columns, members=list(chosen.votes), rows=rows)


def rows_table(chosen: CellRows, frame: pandas.DataFrame) -> pandas.DataFrame:
    """All rows in a cell, as a table."""
    table = frame.iloc[chosen.positions].copy()
    added: dict[str, Any] = {
        "row": table.index.to_numpy() + 1,
        "true": chosen.true,
        "predicted": chosen.predicted,
        "certainty": chosen.certainty.round(4),
        **{f"{_MEMBER}{name}": votes for name, votes in chosen.votes.items()},
    }
    for place, (name, column) in enumerate(added.items()):
        while name in table.columns:  # a column of the user keeps its name
            name += "_"
        table.insert(place, name, column)
    return table.reset_index(drop=True)


def _keys(frame: pandas.DataFrame, sort: str, chosen: CellRows, descending: bool) -> NDArray[Any]:
    """The sort keys of the rows; missing values come last in both directions."""
    if sort == "row":
        return frame.index.to_numpy(dtype=np.intp)[chosen.positions]
    if sort == "certainty":
        return chosen.certainty
    if sort.startswith(_MEMBER) and sort.removeprefix(_MEMBER) in chosen.votes:
        return chosen.votes[sort.removeprefix(_MEMBER)]
    columns = [str(name) for name in frame.columns]
    if sort not in columns:
        allowed = "row, certainty, a column, or member: and the name of a member"
        raise ParameterError.of("Rows.of", "sort", allowed, sort)
    column = frame.iloc[chosen.positions, columns.index(sort)]
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
