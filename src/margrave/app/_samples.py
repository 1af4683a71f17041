"""A user's table as samples: features, labels, what belongs together, when it came.

What the command line says of a table ("--target spam --time sent") is checked here before anything
is trained, and a row that cannot be used is told with its line in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrave import _labels, datasets
from margrave._messages import did_you_mean, near_names
from margrave._typing import Flags
from margrave.app._table_file import place_of, read_table
from margrave.table._kinds import guess_kind, read_dates, read_numbers, read_texts

if TYPE_CHECKING:
    import pandas


_TARGET = "target"  # in the data sets of the package
_MANY = 20  # different fractions in a target that is no class
_SHOWN = 8  # names in a message


@dataclass(frozen=True, eq=False)
class Table:
    """A table, and where it is from.

    Attributes
    ----------
    frame : DataFrame
        The table.
    name : str
        As the user gave it.
    path : Path or None
        Its file; None for a data set of the package.
    positive : label or None
        The positive class, where it is known.
    digest : str
        SHA-256 of what is kept of a file that is not here; empty for others.
    """

    frame: pandas.DataFrame
    name: str
    path: Path | None = None
    positive: Any = None
    digest: str = ""

    def column(self, name: str, option: str) -> pandas.Series[Any]:
        """A column that an option names."""
        names = [str(one) for one in self.frame.columns]
        if name in names:
            return self.frame[name]
        lower = {one.lower(): one for one in names}
        near = [lower[one] for one in near_names(name, lower)][:_SHOWN]
        more = did_you_mean(near) or f" Its columns are {listed(names)}."
        raise ValueError(f"{option} needs a column of {self.name}; there is no {name!r}.{more}")

    def refuse_missing(self, missing: Flags, name: str, option: str) -> None:
        """Refuse a column that is not there in every row."""
        rows = np.flatnonzero(missing)
        if not len(rows):
            return
        first = int(rows[0])
        place = f"row {first + 1}" if self.path is None else place_of(self.path, first)
        many = "" if len(rows) == 1 else f" (and {len(rows) - 1} more)"
        raise ValueError(
            f"{option} needs a value in every row; {name!r} of {self.name} has none in "
            f"{place}{many}."
        )


@dataclass(frozen=True, eq=False)
class Samples:
    """What a dialog is made of.

    Attributes
    ----------
    table : Table
        Where they are from.
    target : str
        The column with the labels.
    X : DataFrame
        The features.
    y : ndarray
        The labels.
    positive : label or None
        The positive class, in the labels' type.
    groups, time : ndarray or None
        Which belong together, and when they came.
    """

    table: Table
    target: str
    X: pandas.DataFrame
    y: NDArray[Any]
    positive: Any = None
    groups: NDArray[Any] | None = None
    time: NDArray[Any] | None = None


def find_table(data: str) -> Table:
    """A table by the path of its file, or by its name among the data sets of the package."""
    path = Path(data)
    if data in datasets.names() and not path.is_file():
        found = datasets.load(data, as_frame=True)
        return Table(found.frame, data, positive=found.positive)
    if path.exists():
        return Table(read_table(path), path.name, path)
    near = did_you_mean(near_names(data, datasets.names(available=True)))
    raise ValueError(
        f"DATA needs to be a file, or a name that `margrave data` lists; got {data!r}.{near}"
    )


def read_samples(
    data: str,
    *,
    target: str,
    positive: Any = None,
    group: str | None = None,
    time: str | None = None,
    drop: Sequence[str] = (),
) -> Samples:
    """Samples from a table, as the command line and the studio read it.

    Parameters
    ----------
    data : str
        A CSV or Parquet file, or the name of a data set of the package.
    target, group, time : str
        Columns with labels, with what belongs together and with the time.
    positive : label, optional
        The positive class.
    drop : sequence of str
        Columns that are not to be used.

    Returns
    -------
    Samples
        With ``X``, ``y``, ``positive``, ``groups`` and ``time``, as `Dialog.from_data` takes them.

    Examples
    --------
    >>> from margrave.app import read_samples
    >>> samples = read_samples("iris", target="target")
    >>> samples.X.shape, samples.y[0]
    ((150, 4), np.str_('setosa'))
    """
    known = None if positive is None else str(positive)
    table = find_table(data)
    return samples_of(table, target=target, positive=known, group=group, time=time, drop=drop)


def samples_of(
    table: Table,
    *,
    target: str | None,
    positive: str | None = None,
    group: str | None = None,
    time: str | None = None,
    drop: Sequence[str] = (),
) -> Samples:
    """Samples as a user describes them.

    Parameters
    ----------
    table : Table
        The table.
    target, group, time : str or None
        Columns with labels, with what belongs together and with the time.
    positive : str or None
        The positive class as text.
    drop : sequence of str
        Columns that are not to be used.
    """
    if target is None:
        if table.path is not None:
            names = listed([str(name) for name in table.frame.columns])
            raise ValueError(f"--target needs the column with the classes: one of {names}.")
        target = _TARGET
    if group is not None and time is not None:
        raise ValueError(
            "--group and --time cannot be used together yet: rows are parted by one of them."
        )
    y = _classes_in(table.column(target, "--target"), table, target)
    used = {"--target": target, "--group": group, "--time": time}
    taken = [name for name in used.values() if name is not None]
    if len(set(taken)) < len(taken):
        raise ValueError(f"--target, --group and --time need different columns; got {taken}.")
    for name in drop:
        table.column(name, "--drop")
    left = [name for name in table.frame.columns if name not in {*taken, *drop}]
    if not left:
        raise ValueError(f"{table.name} needs columns to learn from besides {listed(taken)}.")
    known = (
        table.positive if positive is None else match_label(positive, np.unique(y), "--positive")
    )
    return Samples(
        table,
        target,
        table.frame[left],
        y,
        known,
        None if group is None else _groups(table, group),
        None if time is None else _times(table, time),
    )


def labels_of(table: Table, target: str, classes: NDArray[Any]) -> NDArray[Any]:
    """Labels of new samples, in the type of the classes of a model."""
    column = table.column(target, "--target")
    texts = read_texts(column)
    table.refuse_missing(texts == "", target, "--target")
    # A model may know 1 where a file has "1" or 1.0.
    known = {
        text: match_label(text, classes, f"--target {target}")
        for text in dict.fromkeys(texts.tolist())
    }
    return np.array([known[text] for text in texts], dtype=classes.dtype)


def match_label(text: str, classes: NDArray[Any], option: str) -> Any:
    """The class that a text means."""
    for label in classes.tolist():
        if str(label) == text or (isinstance(label, bool) and str(label).lower() == text.lower()):
            return label
        if isinstance(label, int | float) and not isinstance(label, bool) and _same(text, label):
            return label
    lower = {str(label).lower(): repr(label) for label in classes.tolist()}
    near = [lower[one] for one in near_names(text, lower)]
    more = f" Did you mean {' or '.join(near)}?" if near else ""
    raise ValueError(
        f"{option} needs one of the classes {_labels.shown(classes)}; got {text!r}.{more}"
    )


def _same(text: str, number: float) -> bool:
    try:
        return float(text) == number
    except ValueError:
        return False


def _classes_in(column: pandas.Series[Any], table: Table, target: str) -> NDArray[Any]:
    """Labels in their own type: numbers, Booleans or text without spaces around it."""
    from pandas.api import types

    texts = read_texts(column)
    table.refuse_missing(texts == "", target, "--target")
    if types.is_bool_dtype(column.dtype):
        return np.array(column.to_numpy(dtype=bool))
    if not types.is_numeric_dtype(column.dtype):
        return np.array([str(text) for text in texts])
    values = column.to_numpy(dtype=None if column.dtype.kind in "iuf" else float)
    distinct = np.unique(values)
    if values.dtype.kind == "f" and len(distinct) > _MANY and (distinct % 1 != 0).any():
        raise ValueError(
            f"--target needs a column of classes; {target!r} of {table.name} holds "
            f"{len(distinct)} different numbers."
        )
    return np.array(values)


def _groups(table: Table, name: str) -> NDArray[Any]:
    """A number for each group."""
    texts = read_texts(table.column(name, "--group"))
    table.refuse_missing(texts == "", name, "--group")
    return np.unique(texts.astype(str), return_inverse=True)[1]


def _times(table: Table, name: str) -> NDArray[Any]:
    """Times as numbers, from numbers or dates."""
    column = table.column(name, "--time")
    guess = guess_kind(column)
    if guess.why in ("constant", "all missing"):
        raise ValueError(f"--time needs different times; {name!r} of {table.name} is {guess.why}.")
    if guess.kind == "date":
        dates = read_dates(column, guess.format)
        table.refuse_missing(np.isnat(dates), name, "--time")
        return np.array(dates.astype(np.int64))
    if guess.kind != "number":
        cell = next(text for text in read_texts(column) if text)
        raise ValueError(
            f"--time needs a column of numbers or dates; {name!r} of {table.name} has {cell!r}."
        )
    numbers = read_numbers(column)
    table.refuse_missing(np.isnan(numbers), name, "--time")
    return numbers


def listed(names: Sequence[str]) -> str:
    """Names for a message."""
    more = len(names) - _SHOWN
    return ", ".join(map(repr, names[:_SHOWN])) + (f" ... and {more} more" if more > 0 else "")
