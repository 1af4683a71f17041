"""A description of a table: its columns, its first rows, and a guess of the target."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from margrave.table import Guess, guess_kind, read_numbers

if TYPE_CHECKING:
    import pandas

_EXAMPLES = 3
_PREVIEW = 5  # rows
_LONGEST_CELL = 60  # characters of a cell that are shown
_KINDS = {"constant": "constant", "all missing": "empty", "an identifier": "identifier"}
_NO_FEATURE = {
    "constant": "the same in every row",
    "all missing": "no values",
    "an identifier": "different in nearly every row, as an identifier is",
}
_TARGETS = ("target", "class", "label", "y", "outcome", "response", "diagnosis")
_CLASSES = 20  # distinct values of a column that looks like classes
_NAMED_CLASSES = 100  # and of one whose name says so
_FEW, _SHORT = 20, 30  # distinct values of any category, and characters in the mean of one
_LIKE_A_DATE = re.compile(r"\d{1,4}[-/.]\d")


def facts_of(frame: pandas.DataFrame) -> dict[str, Any]:
    """Describe a table, as the page shows it before training.

    Parameters
    ----------
    frame : DataFrame
        The table.

    Returns
    -------
    dict
        ``rows``, ``target`` (a guess, or None), ``columns`` (of each the name, the
        kind, why, how many distinct and missing values, and examples) and ``preview`` (the first
        rows as text).
    """
    columns = [_column_facts(frame[label], str(label)) for label in frame.columns]
    head = frame.head(_PREVIEW)
    texts = [[_short(_cell(cell)) for cell in head[label].tolist()] for label in frame.columns]
    return {
        "rows": len(frame),
        "target": guess_target(frame, columns),
        "columns": columns,
        "preview": {
            "columns": [column["name"] for column in columns],
            "rows": [list(row) for row in zip(*texts, strict=True)],
        },
    }


def guess_target(frame: pandas.DataFrame, columns: Sequence[dict[str, Any]]) -> str | None:
    """The column that is most likely to hold the classes.

    One with a name such as "target" or "class" and at most 100 values; else the last one that
    has 2 to 20 values, whole numbers or words, in every row.
    """
    of = {str(column["name"]): column for column in columns}
    by_name = {re.sub(r"[\W_]", "", name.lower()): name for name in reversed(of)}
    cells = {str(label): frame[label] for label in frame.columns}
    for name in [by_name[name] for name in _TARGETS if name in by_name]:
        if _like_classes(of[name], cells[name], _NAMED_CLASSES):
            return name
    for name in reversed(of):
        if not of[name]["missing"] and _like_classes(of[name], cells[name], _CLASSES):
            return name
    return None


def _like_classes(column: dict[str, Any], cells: pandas.Series[Any], most: int) -> bool:
    distinct: int = column["distinct"]
    present: int = len(cells) - column["missing"]
    if not 2 <= distinct <= most or (distinct > 2 and present < 2 * distinct):
        return False
    if column["kind"] != "number":
        return bool(column["kind"] == "category")
    numbers = read_numbers(cells)
    return bool((numbers[np.isfinite(numbers)] % 1 == 0).all())


def _column_facts(column: pandas.Series[Any], name: str) -> dict[str, Any]:
    from pandas.api import types

    counts = column.value_counts(sort=False)  # in the order of the rows
    counts = counts[counts > 0]  # a category may have no row
    guess = _guess(column, counts.index)
    kind = _KINDS.get(guess.why, guess.kind)
    if kind == "category":
        counts = counts.sort_values(ascending=False, kind="stable")
    if types.is_numeric_dtype(column.dtype):
        numbers = counts.index.to_numpy(dtype=np.float64, na_value=np.nan)
        counts = counts[np.isfinite(numbers)]
        distinct, texts = len(counts), [_cell(cell) for cell in counts.index[:_EXAMPLES]]
    else:
        cells = np.array([_cell(cell) for cell in counts.index], dtype=object)
        counts = counts[cells != ""]
        different = dict.fromkeys(cells[cells != ""].tolist())
        distinct, texts = len(different), list(different)[:_EXAMPLES]
    return {
        "name": name,
        "kind": kind,
        "why": _why(guess, column, distinct),
        "distinct": distinct,
        "missing": int(len(column) - counts.sum()),
        "examples": [_short(text) for text in texts],
    }


def _guess(column: pandas.Series[Any], distinct: pandas.Index[Any]) -> Guess:
    """The result of guess_kind, with a shortcut for few short words: a category by its rule 5."""
    import pandas

    if isinstance(column.dtype, pandas.StringDtype) and len(distinct) <= _FEW:
        words = {cell.strip() for cell in distinct.tolist()} - {""}
        short = len(words) > 1 and all(len(word) <= _SHORT for word in words)
        if short and not any(_LIKE_A_DATE.match(word) for word in words):
            numbers = pandas.to_numeric(pandas.Series(sorted(words)), errors="coerce")
            if numbers.isna().any():
                return Guess("category")
    return guess_kind(column)


def _why(guess: Guess, column: pandas.Series[Any], distinct: int) -> str:
    """Why a column has its kind, in a few words."""
    if guess.kind == "number":
        numbers = read_numbers(column)
        known = numbers[np.isfinite(numbers)]
        if not len(known) or str(column.dtype).startswith("bool"):
            return "true or false" if len(known) else "numbers"
        return f"numbers from {_cell(float(known.min()))} to {_cell(float(known.max()))}"
    if guess.kind == "date":
        first = {"%d": ", day first", "%m": ", month first"}.get(guess.format[:2], "")
        return f"dates{first}"
    if guess.kind == "category":
        return f"{distinct} different values"
    return "texts of several words" if guess.kind == "text" else _NO_FEATURE[guess.why]


def _cell(cell: Any) -> str:
    """A cell as text, "" for a missing one."""
    if isinstance(cell, bool | np.bool_ | int | np.integer):
        return str(cell)
    if isinstance(cell, float | np.floating):
        number = float(cell)
        if not np.isfinite(number):
            return ""
        return str(int(number)) if number % 1 == 0 and abs(number) < 1e15 else f"{number:.6g}"
    if isinstance(cell, str):
        return cell.strip()
    text = str(cell)
    return "" if text in ("None", "NaT", "nan", "<NA>") else text.removesuffix(" 00:00:00")


def _short(text: str) -> str:
    line = " ".join(text[: 4 * _LONGEST_CELL].split())
    whole = len(text) <= 4 * _LONGEST_CELL and len(line) <= _LONGEST_CELL
    return line if whole else line[: _LONGEST_CELL - 1] + "…"
