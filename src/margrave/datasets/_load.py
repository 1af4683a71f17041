"""The public functions: `load` a data set, and list the `names` of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from margrave._messages import did_you_mean, missing_extra, near_names
from margrave.datasets._facts import Facts, all_facts
from margrave.datasets._sources import find_file, read_set
from margrave.datasets._table import TARGET, Arrays

if TYPE_CHECKING:
    import pandas as pd


def names(available: bool = False) -> tuple[str, ...]:
    """Return the names of the data sets, sorted.

    Parameters
    ----------
    available : bool, default=False
        Return only the sets that can be loaded without a network: those in the package, and those
        with a file in the folder that the environment variable MARGRAVE_DATA names.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> from margrave.datasets import names
    >>> names()[:3]
    ('abalone', 'australian', 'auto_mpg')
    >>> "spambase" in names(available=True)
    True
    """
    known = all_facts().values()
    return tuple(facts.name for facts in known if not available or find_file(facts) is not None)


@overload
def load(name: str, *, as_frame: bool = False, return_X_y: Literal[False] = False) -> Bunch: ...


@overload
def load(
    name: str, *, as_frame: Literal[False] = False, return_X_y: Literal[True]
) -> tuple[NDArray[np.float64], NDArray[Any]]: ...


@overload
def load(
    name: str, *, as_frame: Literal[True], return_X_y: Literal[True]
) -> tuple[pd.DataFrame, pd.Series[Any]]: ...


def load(name: str, *, as_frame: bool = False, return_X_y: bool = False) -> Any:
    """Load a data set by name.

    The sources are the package, then the folder that the environment variable MARGRAVE_DATA names
    (``NAME.csv`` or ``NAME.csv.gz``), then OpenML, if the number of the set there is known. Files
    of the package are checked by their SHA-256, other copies by the number of rows, features and
    missing values and by the class counts, or the range, of the target.

    Parameters
    ----------
    name : str
        One of `names()`.
    as_frame : bool, default=False
        Return pandas objects: categorical columns with their values, and a Series as the target.
    return_X_y : bool, default=False
        Return only ``(data, target)``.

    Returns
    -------
    Bunch or tuple
        With these entries; the arrays are copies.

        - data: float64, missing values NaN, a categorical column as positions in `categories`.
        - target: text, integers or floats, as in the source.
        - frame: data and target as one DataFrame; None unless `as_frame`.
        - feature_names; target_names: the labels, sorted, none for a real-valued target.
        - positive: the positive label; None unless there are two classes.
        - categories: the sorted values of each categorical column, by name.
        - two_class: the name of this set's two-class version, or None.
        - name, DESCR, source, licence: the description, the origin and the terms of use.

    Raises
    ------
    ValueError
        If the name is unknown, or a file is damaged or contains another set.
    FileNotFoundError
        If no source has the set.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> spam = load("spambase")
    >>> spam.data.shape, spam.positive, spam.target_names
    ((4601, 57), 'spam', ['nonspam', 'spam'])
    >>> X, y = load("titanic", return_X_y=True)
    >>> X[0], y[0]
    (array([2., 1., 1.]), np.str_('No'))
    >>> load("titanic").categories["class"]
    ('1st', '2nd', '3rd', 'Crew')
    """
    facts = _find_facts(name)
    arrays = read_set(facts)
    frame = _make_frame(arrays) if as_frame else None
    data = arrays.data if frame is None else frame.drop(columns=TARGET)
    target = arrays.target if frame is None else frame[TARGET]
    if return_X_y:
        return data, target
    return Bunch(data=data, target=target, frame=frame, **_metadata(facts, arrays))


def _metadata(facts: Facts, arrays: Arrays) -> dict[str, Any]:
    """Return the entries of the result of `load` that are not data."""
    return {
        "feature_names": list(arrays.feature_names),
        "target_names": [] if facts.classes is None else np.unique(arrays.target).tolist(),
        "positive": facts.positive,
        "categories": arrays.categories,
        "two_class": facts.two_class,
        "name": facts.name,
        "DESCR": facts.describe(),
        "source": facts.source,
        "licence": facts.licence,
    }


def _find_facts(name: str) -> Facts:
    """Find the facts about a set; the error for an unknown name suggests similar names."""
    known = all_facts()
    if name in known:
        return known[name]
    raise ValueError(
        "margrave.datasets.load needs name to be one of margrave.datasets.names(); "
        f"got {name!r}.{did_you_mean(near_names(str(name), known))}"
    )


def _make_frame(arrays: Arrays) -> pd.DataFrame:
    """Make a DataFrame of features and target, with categories instead of their codes."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        feature = "margrave.datasets.load(as_frame=True)"
        raise ImportError(missing_extra(feature, "pandas", "app")) from error
    columns: dict[str, Any] = {}
    for name, column in zip(arrays.feature_names, arrays.data.T, strict=True):
        values = arrays.categories.get(name)
        if values is None:
            columns[name] = column
        else:
            codes = np.where(np.isnan(column), -1, column).astype(np.intp)
            columns[name] = pd.Categorical.from_codes(codes, categories=pd.Index(values))
    return pd.DataFrame({**columns, TARGET: arrays.target})
