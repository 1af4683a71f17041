"""Read a user's table as samples: features, labels, groups and times.

The names of columns and classes are checked before training. An error about a row names its line
in the file.
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
from margrave.app.messages import InputError
from margrave.app.tables import place_of, read_table
from margrave.table import guess_kind, read_dates, read_numbers, read_texts

if TYPE_CHECKING:
    import pandas


_TARGET = "target"  # the target column of the data sets of the package
_MANY = 20  # a target with more distinct non-integer values is a number, not a class
_SHOWN = 8  # names in a message


@dataclass(frozen=True, eq=False)
class Table:
    """A table and its source.

    Attributes
    ----------
    frame : DataFrame
        The table.
    name : str
        The name in messages and reports.
    path : Path or None
        The file; None for a data set of the package.
    positive : label or None
        The positive class, if known.
    digest : str
        SHA-256 of the stored copy if the table was uploaded; otherwise empty.
    is_regression : bool
        Whether the target of a data set of the package is a number.
    encoding : str or None
        The encoding of the file, as in :func:`~margrave.app.tables.read_table`.
    """

    frame: pandas.DataFrame
    name: str
    path: Path | None = None
    positive: Any = None
    digest: str = ""
    is_regression: bool = False
    encoding: str | None = None

    def column(self, name: str, parameter: str) -> pandas.Series[Any]:
        """Return the column that a parameter names."""
        names = [str(column) for column in self.frame.columns]
        if name in names:
            return self.frame[name]
        near = near_names(name, names)[:_SHOWN]
        hint = did_you_mean(near) or f" The columns are {list_names(names)}."
        raise InputError(
            parameter,
            f"must name a column of {self.name}; got {name!r}.{hint}",
            code="unknown_column",
            table=self.name,
            received=name,
            near=near,
        )

    def check_complete(self, missing: Flags, name: str, parameter: str) -> None:
        """Raise an error if a column has missing values."""
        rows = np.flatnonzero(missing)
        if not len(rows):
            return
        first = int(rows[0])
        place = (
            f"row {first + 1}"
            if self.path is None
            else place_of(self.path, first, encoding=self.encoding)
        )
        many = "" if len(rows) == 1 else f" (and {len(rows) - 1} more)"
        raise InputError(
            parameter,
            f"needs a value in every row; {name!r} of {self.name} has none in {place}{many}. "
            "Fill in the missing values or remove these rows.",
            code="missing_values",
            table=self.name,
            column=name,
            n=len(rows),
        )

    def select_columns(
        self,
        target: str | None,
        group: str | None = None,
        time: str | None = None,
        drop: Sequence[str] = (),
    ) -> tuple[str, list[str]]:
        """Check the names of columns; return the target and the features."""
        columns = [str(name) for name in self.frame.columns]
        if target is None and self.path is not None:
            names = list_names(columns)
            problem = f"is missing. Name the column with the classes, one of {names}."
            raise InputError("target", problem, code="missing")
        target = target or _TARGET
        self.column(target, "target")
        others = {"group": group, "time": time}
        for parameter, name in [*others.items(), *(("drop", name) for name in drop)]:
            if name is not None:
                self.column(name, parameter)
            if name == target and parameter != "drop":
                problem = f"must name another column than the target; got {name!r}."
                raise InputError(parameter, problem, code="same_column", received=name)
        features = [name for name in columns if name not in {target, group, time, *drop}]
        if not features:
            raise InputError(
                "data",
                f"must have feature columns; {self.name} has none besides those that are named. "
                "Add columns, or drop fewer.",
                code="no_features",
                table=self.name,
            )
        return target, features


@dataclass(frozen=True, eq=False)
class Samples:
    """The features and labels of a table.

    Attributes
    ----------
    table : Table
        The table.
    target : str
        The column with the labels.
    X : DataFrame
        The features; of a folder, a Dask data frame.
    y : ndarray
        The labels; of a folder, a Dask series.
    positive : label or None
        The positive class, in the type of the labels; of a folder, as text.
    groups, time : ndarray or None
        The group and the time of each sample.

    Examples
    --------
    >>> from margrave.app import read_samples
    >>> samples = read_samples("iris", target="target")
    >>> samples.X.shape, samples.y[:2].tolist()
    ((150, 4), ['setosa', 'setosa'])
    """

    table: Table
    target: str
    X: pandas.DataFrame
    y: NDArray[Any]
    positive: Any = None
    groups: NDArray[Any] | None = None
    time: NDArray[Any] | None = None


def find_table(data: str, *, encoding: str | None = None, decimal: str | None = None) -> Table:
    """Read a table from a file, or load a data set of the package by its name."""
    path = Path(data)
    if data in datasets.names() and not path.is_file():
        if encoding is not None or decimal is not None:
            raise InputError(
                "decimal" if encoding is None else "encoding",
                f"must be left out for a data set of the package; got it for {data!r}.",
                code="text_file",
            )
        bunch = datasets.load(data, as_frame=True)
        is_regression = not len(bunch.target_names)
        return Table(bunch.frame, data, positive=bunch.positive, is_regression=is_regression)
    if path.exists():
        frame = read_table(path, encoding=encoding, decimal=decimal)
        return Table(frame, path.name, path, encoding=encoding)
    near = near_names(data, datasets.names(available=True))
    raise InputError(
        "data",
        f"must be a file or a name that `margrave data` lists; got {data!r}.{did_you_mean(near)}",
        code="unknown_data",
        received=data,
        near=near,
    )


def read_samples(
    data: str,
    *,
    target: str,
    positive: Any = None,
    group: str | None = None,
    time: str | None = None,
    drop: Sequence[str] = (),
    encoding: str | None = None,
    decimal: str | None = None,
) -> Samples:
    """Read samples from a table, as the command line and the studio do.

    Parameters
    ----------
    data : str
        A CSV or Parquet file, or the name of a data set of the package.
    target : str
        The column with the labels.
    positive : label, optional
        The positive class.
    group, time : str, optional
        The columns with the group and with the time of each sample.
    drop : sequence of str
        Columns to leave out.
    encoding : str, optional
        The encoding of a text file, such as "cp1252" or "utf-16"; by default UTF-8.
    decimal : {".", ","}, optional
        The decimal mark of a text file. By default a point, and a file that seems to have decimal
        commas is refused; with an explicit point, such numbers stay text.

    Returns
    -------
    Samples
        With ``X``, ``y``, ``positive``, ``groups`` and ``time``, as in `Dialog.from_data`.

    Examples
    --------
    >>> from margrave.app import read_samples
    >>> samples = read_samples("iris", target="target")
    >>> samples.X.shape, samples.y[0]
    ((150, 4), np.str_('setosa'))
    """
    label = None if positive is None else str(positive)
    table = find_table(data, encoding=encoding, decimal=decimal)
    return samples_of(table, target=target, positive=label, group=group, time=time, drop=drop)


def samples_of(
    table: Table,
    *,
    target: str | None,
    positive: str | None = None,
    group: str | None = None,
    time: str | None = None,
    drop: Sequence[str] = (),
) -> Samples:
    """Make samples from a table, as the options describe it.

    Parameters
    ----------
    table : Table
        The table.
    target : str or None
        The column with the labels; optional for a data set of the package.
    positive : str or None
        The positive class as text.
    group, time : str or None
        The columns with the group and with the time of each sample.
    drop : sequence of str
        Columns to leave out.
    """
    target, features = table.select_columns(target, group, time, drop)
    y = _read_classes(table, target)
    known = table.positive if target == _TARGET else None
    return Samples(
        table,
        target,
        table.frame[features],
        y,
        known if positive is None else match_label(positive, np.unique(y), "positive"),
        None if group is None else read_groups(table, group),
        None if time is None else _read_times(table, time),
    )


def read_labels(table: Table, target: str, classes: NDArray[Any]) -> NDArray[Any]:
    """Return the labels of new samples in the type of a model's classes."""
    texts = _read_complete(table, target, "target")
    codes: dict[str, int] = {}
    for text in dict.fromkeys(texts.tolist()):
        position = _labels.find(text, classes)
        if position is None:
            needed = f"of the classes {_labels.shown(classes)}"
            raise _wrong_column(table, target, "target", needed, f"has {text!r}")
        codes[text] = position
    return np.asarray(classes[[codes[text] for text in texts]])


def match_label(text: str, classes: NDArray[Any], parameter: str) -> Any:
    """Return the class that is written as a text."""
    position = _labels.find(text, classes)
    if position is not None:
        return classes.tolist()[position]
    near = near_names(text, map(str, classes.tolist()))
    raise InputError(
        parameter,
        f"must be one of the classes {_labels.shown(classes)}; got {text!r}.{did_you_mean(near)}",
        code="unknown_class",
        received=text,
        classes=classes.tolist(),
        near=near,
    )


def _read_complete(table: Table, name: str, parameter: str) -> NDArray[Any]:
    """Return the texts of a column that has a value in every row."""
    texts = read_texts(table.column(name, parameter))
    table.check_complete(texts == "", name, parameter)
    return texts


def _read_classes(table: Table, target: str) -> NDArray[Any]:
    """Return the labels in their own type: numbers, Booleans, or text without outer spaces."""
    from pandas.api import types

    texts, column = _read_complete(table, target, "target"), table.frame[target]
    if types.is_bool_dtype(column.dtype):
        return np.array(column.to_numpy(dtype=bool))
    if not types.is_numeric_dtype(column.dtype):
        return np.array([str(text) for text in texts])
    values = column.to_numpy(dtype=None if column.dtype.kind in "iuf" else float)
    distinct = np.unique(values)
    fractions = values.dtype.kind == "f" and len(distinct) > _MANY and (distinct % 1 != 0).any()
    if fractions or (table.is_regression and target == _TARGET):
        what = f"is a number with {len(distinct)} different values"
        advice = " Name another column, or add one with classes, such as low and high."
        raise _wrong_column(table, target, "target", "of classes", what, advice)
    return np.array(values)


def read_groups(table: Table, name: str) -> NDArray[Any]:
    """Return the group of each sample as a number."""
    texts = _read_complete(table, name, "group")
    return np.unique(texts.astype(str), return_inverse=True)[1]


def _read_times(table: Table, name: str) -> NDArray[Any]:
    """Return the time of each sample as a number."""
    column = table.column(name, "time")
    guess = guess_kind(column)
    if guess.why in ("constant", "all missing"):
        raise _wrong_column(table, name, "time", "with different times", f"is {guess.why}")
    if guess.kind == "date":
        dates = read_dates(column, guess.format)
        table.check_complete(np.isnat(dates), name, "time")
        return np.array(dates.astype(np.int64))
    if guess.kind != "number":
        cell = next(text for text in read_texts(column) if text)
        raise _wrong_column(table, name, "time", "of numbers or dates", f"has {cell!r}")
    numbers = read_numbers(column)
    table.check_complete(np.isnan(numbers), name, "time")
    return numbers


def _wrong_column(
    table: Table, name: str, parameter: str, needed: str, found: str, advice: str = ""
) -> InputError:
    return InputError(
        parameter,
        f"must name a column {needed}; {name!r} of {table.name} {found}.{advice}",
        code="wrong_column",
        table=table.name,
        column=name,
    )


def list_names(names: Sequence[str]) -> str:
    """Quote the first names and the last one for a message: the last column is often the target."""
    shown = list(map(repr, names))
    if len(names) > _SHOWN + 1:
        shown[_SHOWN - 1 : -1] = [f"... {len(names) - _SHOWN} more ..."]
    return ", ".join(shown)
