"""Rows of the tuning set: those in a cell of the matrix, and those that changed between steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

import numpy as np
from fastapi import Query
from numpy.typing import NDArray

from margrave import ParameterError
from margrave.app.samples import match_label
from margrave.steer import CellRows, Comparison, Dialog
from margrave.studio.views import Label, Record, View

if TYPE_CHECKING:
    import pandas


_LONGEST = 200  # characters shown of a value
_MEMBER, _COLUMN = "member:", "column:"


Text = Annotated[str | None, Query(max_length=1000)]
Number = Annotated[int, Query(ge=0)]
Fate = Literal["right", "wrong", "rejected"]


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


@dataclass(frozen=True)
class Steps:
    """A selection of the rows that two steps predict differently.

    `newly` selects the rows that only the second step predicts right, predicts wrong, or rejects.
    """

    first: Number
    second: Number
    newly: Fate | None = None

    def select(self, comparison: Comparison) -> tuple[CellRows, CellRows]:
        """The selected rows, as the first and as the second step predicts them."""
        rows = comparison.rows_first, comparison.rows_second
        if self.newly is None:
            return rows
        new = newly(comparison)[self.newly]
        return rows[0].select(new), rows[1].select(new)


def newly(comparison: Comparison) -> dict[Fate, NDArray[np.bool_]]:
    """Which rows only the second of two steps predicts right, predicts wrong, or rejects."""
    before, after = (_fates(rows) for rows in (comparison.rows_first, comparison.rows_second))
    return {fate: (after == fate) & (before != fate) for fate in get_args(Fate)}


def _fates(rows: CellRows) -> NDArray[np.str_]:
    """Whether each row is predicted right, predicted wrong, or rejected."""
    rejected = np.array([label is None for label in rows.predicted], dtype=bool)
    fates = np.where(rows.predicted == rows.true, "right", np.where(rejected, "rejected", "wrong"))
    return np.asarray(fates, dtype=np.str_)


@dataclass(frozen=True)
class Page:
    """One page of rows, in some order.

    `sort` is "row", "true", "predicted", "certainty", "member:" and the name of a member, or
    "column:" and the name of a column; for rows that changed also "before" or "certainty_before".
    """

    sort: Annotated[str, Query(max_length=1000)] = "certainty"
    descending: bool = False
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0
    limit: Annotated[int, Query(ge=1, le=200)] = 25

    def select(self, own: dict[str, NDArray[Any]], values: pandas.DataFrame) -> NDArray[np.intp]:
        """The places of the rows on this page; missing values come last in both directions."""
        keys = own.get(self.sort)
        if keys is None:
            keys = self._keys_of_column(values, list(own))
        elif keys.dtype == object:  # predictions, with None for rejected rows
            labels = sorted(set(keys.tolist()) - {None})
            places = {label: place for place, label in enumerate(labels)}
            keys = np.array([places.get(label, len(places)) for label in keys.tolist()])
        order = np.argsort(keys, kind="stable")
        return (order[::-1] if self.descending else order)[self.offset : self.offset + self.limit]

    def _keys_of_column(self, values: pandas.DataFrame, own: list[str]) -> NDArray[Any]:
        columns = [f"{_COLUMN}{name}" for name in values.columns]
        if self.sort not in columns:
            allowed = f"one of {', '.join(own)}, or {_COLUMN} and the name of a column"
            raise ParameterError.of("Page", "sort", allowed, self.sort)
        column = values.iloc[:, columns.index(self.sort)]
        if column.dtype.kind not in "biufM":
            column = column.astype(str).where(column.notna())
        return column.rank(
            method="dense", na_option="top" if self.descending else "bottom"
        ).to_numpy()


class Row(View):
    """A row of the tuning set: its number in the table, its prediction and the members' votes."""

    row: int
    true: Label
    predicted: Label | None
    certainty: float
    votes: list[Label]
    values: list[str]


class ChangedRow(Row):
    """A row that changed between two steps; `before` is the prediction of the first one."""

    before: Label | None
    certainty_before: float


class Rows(View):
    """One page of the rows in a cell."""

    total: int
    columns: list[str]
    members: list[str]
    rows: list[Row]

    @classmethod
    def of(cls, chosen: CellRows, frame: pandas.DataFrame, page: Page) -> Self:
        """Show one page of some rows.

        `frame` is the tuning set as in the user's table, with the row numbers as index.
        """
        return cls(**_one_page(chosen, None, frame, page))


class ChangedRows(View):
    """One page of the rows that changed between two steps; the counts are those of all pages."""

    total: int
    columns: list[str]
    members: list[str]
    rows: list[ChangedRow]
    n_changed: int
    n_newly: dict[Fate, int]

    @classmethod
    def of(cls, comparison: Comparison, steps: Steps, frame: pandas.DataFrame, page: Page) -> Self:
        """Show one page of the rows that changed; `frame` as in `Rows.of`."""
        before, after = steps.select(comparison)
        return cls(
            **_one_page(after, before, frame, page),
            n_changed=comparison.n_changed,
            n_newly={fate: int(new.sum()) for fate, new in newly(comparison).items()},
        )


def rows_table(
    chosen: CellRows, frame: pandas.DataFrame, before: CellRows | None = None
) -> pandas.DataFrame:
    """All of some rows, as a table."""
    table = frame.iloc[chosen.positions].copy()
    for place, (name, column) in enumerate(_own_columns(chosen, before, table).items()):
        while name in table.columns:  # a column of the user keeps its name
            name += "_"
        table.insert(place, name, column.round(4) if column.dtype.kind == "f" else column)
    return table.reset_index(drop=True)


def _own_columns(
    chosen: CellRows, before: CellRows | None, values: pandas.DataFrame
) -> dict[str, NDArray[Any]]:
    """The columns of some rows that are not in the user's table."""
    earlier: dict[str, NDArray[Any]] = {}
    if before is not None:
        earlier = {"before": before.predicted, "certainty_before": before.certainty}
    return {
        "row": values.index.to_numpy(dtype=np.intp) + 1,
        "true": chosen.true,
        **earlier,
        "predicted": chosen.predicted,
        "certainty": chosen.certainty,
        **{f"{_MEMBER}{name}": votes for name, votes in chosen.votes.items()},
    }


def _one_page(
    chosen: CellRows, before: CellRows | None, frame: pandas.DataFrame, page: Page
) -> Record:
    """One page of some rows, and how many there are."""
    values = frame.iloc[chosen.positions]
    own = _own_columns(chosen, before, values)
    shown = page.select(own, values)
    values = values.iloc[shown]
    lists = {name: column[shown].tolist() for name, column in own.items()}
    texts = [_texts(values.iloc[:, j]) for j in range(values.shape[1])]
    rows = [
        {
            **{name: column[i] for name, column in lists.items()},
            "votes": [lists[f"{_MEMBER}{name}"][i] for name in chosen.votes],
            "values": [column[i] for column in texts],
        }
        for i in range(len(shown))
    ]
    columns = [str(name) for name in frame.columns]
    return {"total": len(chosen), "columns": columns, "members": list(chosen.votes), "rows": rows}


def _texts(column: pandas.Series[Any]) -> list[str]:
    """The values as short texts, "" for missing ones."""
    missing = column.isna().to_numpy()
    return ["" if no else _short(value) for value, no in zip(column.tolist(), missing, strict=True)]


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
