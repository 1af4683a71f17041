"""The two functions that users call: `load` a data set, and list the `names` of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from margrave._messages import did_you_mean, missing_extra, near_names
from margrave.datasets._facts import Facts, all_facts
from margrave.datasets._find import find, local_file
from margrave.datasets._table import TARGET, Arrays

if TYPE_CHECKING:
    import pandas as pd


def names(available: bool = False) -> tuple[str, ...]:
    """Give the names of the data sets, sorted.

    Parameters
    ----------
    available : bool, default=False
        Give only those that can be loaded right now without a network: the ones in the package and
        the ones with a file in the folder that the environment variable MARGRAVE_DATA names.

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
    return tuple(facts.name for facts in known if not available or local_file(facts) is not None)


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

    It is looked for in the package, then in the folder that the environment variable MARGRAVE_DATA
    names (``NAME.csv`` or ``NAME.csv.gz``), then, where its number there is known, on OpenML. The
    package's files are checked by their SHA-256, any other copy by its rows, its features and the
    class counts, or the range, of its target.

    Parameters
    ----------
    name : str
        One of `names()`.
    as_frame : bool, default=False
        Give pandas objects: categorical columns with their values, and a Series as the target.
    return_X_y : bool, default=False
        Give ``(data, target)`` only.

    Returns
    -------
    Bunch or tuple
        With these entries; every array is new and may be changed.

        - data: float64, missing values NaN, a categorical column as positions in `categories`.
        - target: text, integers or floats, as in the source.
        - frame: data and target as one DataFrame; None unless `as_frame`.
        - feature_names; target_names: the labels, sorted, none for a real-valued target.
        - positive: the positive label; None unless there are two classes.
        - categories: the sorted values of each categorical column, by name.
        - two_class: the name of this set's two-class version, or None.
        - name, DESCR, source, licence: what it is, where it is from, what it may be used for.

    Raises
    ------
    ValueError
        If the name is not known, or a file is damaged or not the set that is meant.
    FileNotFoundError
        If the set is in none of the three places.

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
    facts = _known(name)
    arrays = find(facts)
    frame = _frame(arrays) if as_frame else None
    data = arrays.data if frame is None else frame.drop(columns=TARGET)
    target = arrays.target if frame is None else frame[TARGET]
    if return_X_y:
        return data, target
    return Bunch(data=data, target=target, frame=frame, **_about(facts, arrays))


def _about(facts: Facts, arrays: Arrays) -> dict[str, Any]:
    """Give the entries of `load`'s answer that are not data."""
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


def _known(name: str) -> Facts:
    """Look a name up; an unknown one is answered with the nearest."""
    known = all_facts()
    if name in known:
        return known[name]
    raise ValueError(
        "margrave.datasets.load needs name to be one of margrave.datasets.names(); "
        f"got {name!r}.{did_you_mean(near_names(str(name), known))}"
    )


def _frame(arrays: Arrays) -> pd.DataFrame:
    """Give features and target as one DataFrame, codes turned back into categories."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        what = "margrave.datasets.load(as_frame=True)"
        raise ImportError(missing_extra(what, "pandas", "app")) from error
    columns: dict[str, Any] = {}
    for name, column in zip(arrays.feature_names, arrays.data.T, strict=True):
        values = arrays.categories.get(name)
        if values is None:
            columns[name] = column
        else:
            codes = np.where(np.isnan(column), -1, column).astype(np.intp)
            columns[name] = pd.Categorical.from_codes(codes, categories=pd.Index(values))
    return pd.DataFrame({**columns, TARGET: arrays.target})
