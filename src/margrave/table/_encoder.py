"""`TableEncoder`: guesses what each column of a table holds, and encodes it as numbers."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from margrave._messages import did_you_mean, near_names
from margrave._typing import Floats
from margrave.table._columns import CategoryEncoder, DateEncoder, NumberEncoder, TextEncoder
from margrave.table._kinds import Kind, guess_kind

if TYPE_CHECKING:
    import pandas


_MAX_SHOWN = 5  # names in a message
_PLURAL = {"number": "numbers", "category": "categories", "date": "dates", "text": "texts"}


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode any table as a dense matrix of numbers.

    The encoder guesses from the cells of a data frame what each column holds; the columns of an
    array are numbers.

    Parameters
    ----------
    max_categories : int, default=30
        Maximum number of columns for a category: the frequent values, and one for all others.
    text_components : int, default=64
        Maximum number of columns for a text, besides its length.
    random_state : int, RandomState instance or None, default=0
        Seed of the truncated SVD of texts.

    Attributes
    ----------
    kinds_ : dict
        The kind of each column: "number", "category", "date", "text" or "ignored".
    ignored_ : dict
        For each ignored column the reason: "constant", "all missing" or "an identifier".
    n_features_in_, feature_names_in_
        As in scikit-learn; names that are not strings are converted to strings.

    See Also
    --------
    sklearn.compose.ColumnTransformer : Combines transformers that you choose for each column.

    Notes
    -----
    *Numbers* are standardised. The median replaces a missing or infinite number; a column that had
    any in training also gets a 0/1 column that marks them. In new data a text among numbers counts
    as missing; a column without any number is an error. *Categories* get a 0/1 column for each
    value. In new data an unseen value, or a missing one where training had none, counts as
    infrequent, or is all zeros if training had no infrequent value. *Dates* become days since
    1970, month, weekday and hour (UTC), which are treated like numbers. *Texts* become TF-IDF
    weights of the words and word pairs that occur in at least two rows, reduced by a truncated
    SVD, and the logarithm of their length. All but the 0/1 columns have mean 0 and variance 1 in
    training, and are clipped to [-1e6, 1e6].

    The encoder strips spaces around a text, and a text of spaces is missing. If all dates of a
    column are ambiguous, such as 3/4/2020, it reads them day first.

    Examples
    --------
    >>> import pandas as pd
    >>> from margrave.table import TableEncoder
    >>> table = pd.DataFrame(
    ...     {"words": [120, 80, None], "from": ["shop", "friend", "shop"], "list": "yes"}
    ... )
    >>> encoder = TableEncoder().fit(table)
    >>> print(encoder.describe())
    1 number: words
    1 category: from
    1 ignored: list (constant)
    >>> encoder.get_feature_names_out()
    array(['words', 'words missing', 'from=friend', 'from=shop'], dtype=object)
    >>> encoder.transform(table).round(1)
    array([[ 1.2,  0. ,  0. ,  1. ],
           [-1.2,  0. ,  1. ,  0. ],
           [ 0. ,  1. ,  0. ,  1. ]])
    """

    def __init__(
        self, max_categories: int = 30, text_components: int = 64, random_state: Any = 0
    ) -> None:
        self.max_categories = max_categories
        self.text_components = text_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Guess the kinds of the columns and learn how to encode them.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            The table.
        y : Ignored
            Not used, present for scikit-learn's API.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If two columns have the same name, or all columns are ignored.
        """
        self._check_settings()
        _refuse_sparse(X)
        self.ignored_: dict[str, str] = {}
        self._by_name = _is_frame(X)
        if self._by_name:
            self._fit_frame(_with_text_names(X))
            return self
        values = validate_data(self, X, dtype=np.float64, ensure_all_finite=False)
        names = [f"x{j}" for j in range(values.shape[1])]
        self.kinds_: dict[str, Kind] = dict.fromkeys(names, "number")
        self.encoders_: list[Any] = [NumberEncoder(names).fit(values)]
        return self

    def transform(self, X: Any) -> Floats:
        """Encode a table.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            A table like that of ``fit``. The columns of a data frame are found by name; ignored
            and additional columns may be missing or differ.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)

        Raises
        ------
        ValueError
            If a column is missing, or a column of numbers or dates holds none.
        """
        check_is_fitted(self)
        _refuse_sparse(X)
        if not self._by_name:
            values = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
            encoded: Floats = self.encoders_[0].transform(values)
            return encoded
        frame = _with_text_names(X if _is_frame(X) else self._to_frame(X))
        if not len(frame):
            raise ValueError("TableEncoder needs X to have at least one row; got none.")
        self._check_columns(list(frame.columns))
        return np.hstack([encoder.transform(encoder.read(frame)) for encoder in self.encoders_])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the encoded columns.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns of an array; for a data frame they must be those of ``fit``.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        new_names = None if input_features is None else [str(name) for name in input_features]
        if new_names is not None and len(new_names) != self.n_features_in_:
            raise ValueError(
                "TableEncoder needs input_features to have length equal to number of features "
                f"({self.n_features_in_}); got {len(new_names)}."
            )
        fit_names = getattr(self, "feature_names_in_", None)
        if new_names is not None and fit_names is not None and new_names != list(fit_names):
            raise ValueError("input_features is not equal to feature_names_in_.")
        own = new_names if fit_names is None else None
        encoders = self.encoders_
        names = [name for encoder in encoders for name in encoder.names_out(own or encoder.names)]
        return np.array(names, dtype=object)

    def describe(self) -> str:
        """Return a summary of the kinds of columns, one line per kind.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        lines = []
        for kind in (*_PLURAL, "ignored"):
            names = [name for name, its_kind in self.kinds_.items() if its_kind == kind]
            if not names:
                continue
            line = f"{len(names)} {kind if len(names) == 1 else _PLURAL.get(kind, kind)}"
            if kind == "ignored":
                names = [f"{name} ({self.ignored_[name]})" for name in names]
            lines.append(f"{line}: {_list_names(names)}" if self._by_name else line)
        return "\n".join(lines)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _check_settings(self) -> None:
        for name, least in (("max_categories", 2), ("text_components", 1)):
            value: Any = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
                raise ValueError(
                    f"TableEncoder needs {name} to be an integer of at least {least}; "
                    f"got {value!r}."
                )

    def _fit_frame(self, frame: pandas.DataFrame) -> None:
        names = list(frame.columns)
        _check_repeated(names)
        if not frame.size:
            raise ValueError(
                "TableEncoder needs X to have rows and columns; "
                f"got {len(frame)} rows of {len(names)} columns."
            )
        validate_data(self, frame, skip_check_array=True)
        guesses = {name: guess_kind(frame[name]) for name in names}
        self.kinds_ = {name: guess.kind for name, guess in guesses.items()}
        self.ignored_ = {name: guess.why for name, guess in guesses.items() if guess.why}
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        by_kind = {kind: [name for name in names if self.kinds_[name] == kind] for kind in _PLURAL}
        encoders: list[Any] = [
            *(DateEncoder([name], guesses[name].format) for name in by_kind["date"]),
            *(TextEncoder([name], self.text_components, seed) for name in by_kind["text"]),
        ]
        if by_kind["category"]:
            encoders.insert(0, CategoryEncoder(by_kind["category"], self.max_categories))
        if by_kind["number"]:
            encoders.insert(0, NumberEncoder(by_kind["number"]))
        if not encoders:
            reasons = [f"{name!r} ({why})" for name, why in self.ignored_.items()]
            raise ValueError(
                "TableEncoder needs a column of X that is not ignored; got "
                f"{_list_names(reasons, 20)}."
            )
        self.encoders_ = [encoder.fit(encoder.read(frame)) for encoder in encoders]

    def _to_frame(self, X: Any) -> pandas.DataFrame:
        """Return an array as a data frame with the names of ``fit``."""
        import pandas

        values = validate_data(self, X, reset=False, dtype=None, ensure_all_finite=False)
        return pandas.DataFrame(values, columns=self.feature_names_in_)

    def _check_columns(self, names: Sequence[str]) -> None:
        """Check that each column that is not ignored is present once."""
        needed = [name for name, kind in self.kinds_.items() if kind != "ignored"]
        present = set(names)
        missing = [name for name in needed if name not in present]
        if missing:
            spare = {name.lower(): name for name in names if name not in set(needed)}
            near = [spare[low] for name in missing[:_MAX_SHOWN] for low in near_names(name, spare)]
            raise ValueError(
                f"TableEncoder needs columns that X lacks: {_list_names(list(map(repr, missing)))}."
                f"{did_you_mean(list(dict.fromkeys(near))[:_MAX_SHOWN])}"
            )
        _check_repeated([name for name in names if name in set(needed)])


def _is_frame(X: Any) -> bool:
    """Return whether X is a pandas data frame, without importing pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(X, pandas.DataFrame)


def _with_text_names(frame: pandas.DataFrame) -> pandas.DataFrame:
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _refuse_sparse(X: Any) -> None:
    if issparse(X):
        raise TypeError(
            "TableEncoder needs X to be a data frame or a dense array; got a sparse matrix. "
            "X.toarray() makes it dense."
        )


def _check_repeated(names: Sequence[str]) -> None:
    repeated = [repr(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            "TableEncoder needs a different name for each column of X; these repeat: "
            f"{_list_names(repeated)}."
        )


def _list_names(names: Sequence[str], shown: int = _MAX_SHOWN) -> str:
    """Return the first few names, and the number of the others."""
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" ... and {more} more" if more > 0 else "")
