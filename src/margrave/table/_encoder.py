"""Any table as numbers for a learner: the kinds of its columns guessed, then each encoded."""

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


_SHOWN = 5  # names in a message
_PLURAL = {"number": "numbers", "category": "categories", "date": "dates", "text": "texts"}


class TableEncoder(TransformerMixin, BaseEstimator):
    """Any table as a dense matrix of numbers.

    What each column of a data frame holds is guessed from its cells; the columns of an array are
    numbers.

    Parameters
    ----------
    max_categories : int, default=30
        Columns that a category becomes at most: the frequent values, and one for all others.
    text_components : int, default=64
        Columns that a text becomes at most, besides its length.
    random_state : int, RandomState instance or None, default=0
        For the components of texts.

    Attributes
    ----------
    kinds_ : dict
        For each column "number", "category", "date", "text" or "ignored".
    ignored_ : dict
        For each ignored column why: "constant", "all missing" or "an identifier".
    n_features_in_, feature_names_in_
        As in scikit-learn; names that are no text become text.

    See Also
    --------
    sklearn.compose.ColumnTransformer : The same by hand.

    Notes
    -----
    *Numbers* are standardised; a missing or infinite one becomes the median, with a column that
    says so if there were any in training. In new data a text among numbers counts as missing,
    unless all are: then it is another column, and an error. *Categories* have a 0/1 column for
    each value; in new data an unseen value, or a first missing one, counts as infrequent, or as
    none where no value is. *Dates* become days since 1970, month, weekday and hour (UTC), and are
    treated like numbers. *Texts* are TF-IDF weights of words and pairs of words that come in two
    rows at least, reduced by a truncated SVD, and the logarithm of the length. All but the 0/1
    columns have mean 0 and variance 1 in training, and stay within 1e6 of it.

    Spaces around a text do not count, and a text of spaces is missing. Dates that may be day or
    month first throughout are taken day first.

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
        y : ignored
            As in scikit-learn.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If two columns have the same name, or no column has anything to learn from.
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
            A table like that of ``fit``. The columns of a data frame are found by their names:
            others, and those that are ignored, do not matter.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)

        Raises
        ------
        ValueError
            If a column is not there, or holds no number or date where all were.
        """
        check_is_fitted(self)
        _refuse_sparse(X)
        if not self._by_name:
            values = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
            encoded: Floats = self.encoders_[0].transform(values)
            return encoded
        frame = _with_text_names(X if _is_frame(X) else self._framed(X))
        if not len(frame):
            raise ValueError("TableEncoder needs X to have rows; got none.")
        self._check_columns(list(frame.columns))
        return np.hstack([one.transform(one.read(frame)) for one in self.encoders_])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of the matrix.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names for the columns of an array; for a data frame those of ``fit``.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        given = None if input_features is None else [str(name) for name in input_features]
        if given is not None and len(given) != self.n_features_in_:
            raise ValueError(
                "TableEncoder needs input_features to have length equal to number of features "
                f"({self.n_features_in_}); got {len(given)}."
            )
        known = getattr(self, "feature_names_in_", None)
        if given is not None and known is not None and given != list(known):
            raise ValueError("input_features is not equal to feature_names_in_.")
        own = given if known is None else None
        names = [name for one in self.encoders_ for name in one.names_out(own or one.names)]
        return np.array(names, dtype=object)

    def describe(self) -> str:
        """What the columns were taken for: a line for each kind.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        lines = []
        for kind in (*_PLURAL, "ignored"):
            names = [name for name, own in self.kinds_.items() if own == kind]
            if not names:
                continue
            line = f"{len(names)} {kind if len(names) == 1 else _PLURAL.get(kind, kind)}"
            if kind == "ignored":
                names = [f"{name} ({self.ignored_[name]})" for name in names]
            lines.append(f"{line}: {_cut(names)}" if self._by_name else line)
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
                    f"TableEncoder needs {name} to be a whole number of at least {least}; "
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
        of = {kind: [name for name in names if self.kinds_[name] == kind] for kind in _PLURAL}
        encoders: list[Any] = [
            *(DateEncoder([name], guesses[name].format) for name in of["date"]),
            *(TextEncoder([name], self.text_components, seed) for name in of["text"]),
        ]
        if of["category"]:
            encoders.insert(0, CategoryEncoder(of["category"], self.max_categories))
        if of["number"]:
            encoders.insert(0, NumberEncoder(of["number"]))
        if not encoders:
            told = [f"{name!r} ({why})" for name, why in self.ignored_.items()]
            raise ValueError(
                f"TableEncoder needs a column to learn from; all are ignored: {_cut(told, 20)}."
            )
        self.encoders_ = [one.fit(one.read(frame)) for one in encoders]

    def _framed(self, X: Any) -> pandas.DataFrame:
        """An array as a data frame with the names of ``fit``."""
        import pandas

        values = validate_data(self, X, reset=False, dtype=None, ensure_all_finite=False)
        return pandas.DataFrame(values, columns=self.feature_names_in_)

    def _check_columns(self, given: Sequence[str]) -> None:
        """All columns that matter are there, once."""
        wanted = [name for name, kind in self.kinds_.items() if kind != "ignored"]
        among = set(given)
        missing = [name for name in wanted if name not in among]
        if missing:
            known = set(wanted)
            spare = {name.lower(): name for name in given if name not in known}
            near = [spare[low] for name in missing[:_SHOWN] for low in near_names(name, spare)]
            raise ValueError(
                f"TableEncoder needs columns that X lacks: {_cut([repr(one) for one in missing])}."
                f"{did_you_mean(list(dict.fromkeys(near))[:_SHOWN])}"
            )
        _check_repeated([name for name in given if name in set(wanted)])


def _is_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas; who has none need not import it."""
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
    twice = [repr(name) for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(
            f"TableEncoder needs a different name for each column; these repeat: {_cut(twice)}."
        )


def _cut(names: Sequence[str], shown: int = _SHOWN) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" ... and {more} more" if more > 0 else "")
