"""Encoders of columns: one for numbers, categories, dates and texts each.

An encoder reads its columns from a data frame (``read``) and turns their values into a matrix
(``fit``, ``transform``). Its learned attributes hold only numbers, text and scikit-learn
estimators, so that skops can store it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from margrave._typing import Floats
from margrave.table._kinds import date_parts, read_dates, read_numbers, read_texts

if TYPE_CHECKING:
    import pandas


LARGEST_NUMBER = 1e100  # larger numbers have no finite variance in float64
LARGEST_SCALED = (
    1e6  # standard deviations; larger values add no information and may overflow float32
)
_WORDS = 20_000  # words and pairs of words in the vocabulary of a text column


class _Scaled:
    """Replaces missing values by the median and standardises each column."""

    def fit(self, values: Floats) -> Self:
        """Learn medians, means and variances."""
        # Keep only the imputer's medians: it holds a dtype, which skops does not trust.
        imputer = SimpleImputer(strategy="median", keep_empty_features=True)
        self.medians_ = np.nan_to_num(imputer.fit(_bounded(values)).statistics_)
        self.scaler_ = StandardScaler().fit(self._filled(values))
        return self

    def transform(self, values: Floats) -> Floats:
        """Encode numbers."""
        scaled: Floats = self.scaler_.transform(self._filled(values))
        return np.clip(scaled, -LARGEST_SCALED, LARGEST_SCALED)

    def _filled(self, values: Floats) -> Floats:
        bounded = _bounded(values)
        return np.where(np.isnan(bounded), self.medians_, bounded)


def _bounded(values: Floats) -> Floats:
    return np.clip(np.where(np.isfinite(values), values, np.nan), -LARGEST_NUMBER, LARGEST_NUMBER)


class NumberEncoder:
    """Standardises numbers; adds a 0/1 column for each that had missing values in training."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def read(self, frame: pandas.DataFrame) -> Floats:
        """Read the encoder's columns from a data frame."""
        return np.stack([read_numbers(frame[name]) for name in self.names], axis=1)

    def fit(self, values: Floats) -> Self:
        """Learn from the values that `read` returns."""
        self.scaled_ = _Scaled().fit(values)
        self.gaps_ = np.flatnonzero(~np.isfinite(values).all(axis=0))
        return self

    def transform(self, values: Floats) -> Floats:
        """Encode the values that `read` returns."""
        gaps = ~np.isfinite(values[:, self.gaps_])
        return np.hstack([self.scaled_.transform(values), gaps])

    def names_out(self, names: Sequence[str]) -> list[str]:
        """Return the names of the encoded columns, from `names` of the columns read."""
        return [*names, *(f"{names[j]} missing" for j in self.gaps_.tolist())]


class CategoryEncoder:
    """Makes a 0/1 column per frequent value, and one for the others; missing is a value too."""

    def __init__(self, names: list[str], max_categories: int) -> None:
        self.names = names
        self.max_categories = max_categories

    def read(self, frame: pandas.DataFrame) -> NDArray[Any]:
        """Read the encoder's columns from a data frame."""
        cells = np.stack([read_texts(frame[name]) for name in self.names], axis=1)
        cells[cells == ""] = "missing"
        return cells

    def fit(self, cells: NDArray[Any]) -> Self:
        """Learn from the values that `read` returns."""
        self.one_hot_ = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=self.max_categories,
            sparse_output=False,
        ).fit(cells)
        return self

    def transform(self, cells: NDArray[Any]) -> Floats:
        """Encode the values that `read` returns."""
        encoded: Floats = self.one_hot_.transform(cells)
        return encoded

    def names_out(self, names: Sequence[str]) -> list[str]:
        """Return the names of the encoded columns, from `names` of the columns read."""
        out = []
        parts = self.one_hot_.categories_, self.one_hot_.infrequent_categories_
        for name, levels, rare in zip(names, *parts, strict=True):
            others = set() if rare is None else set(rare)
            out += [f"{name}={level}" for level in levels if level not in others]
            out += [f"{name} other"] if others else []
        return out


class DateEncoder:
    """Standardises days, month, weekday and, if there are times, hour; flags missing dates."""

    def __init__(self, names: list[str], format: str) -> None:  # noqa: A002 - pandas' word
        self.names = names
        self.format = format

    def read(self, frame: pandas.DataFrame) -> Floats:
        """Read the encoder's columns from a data frame."""
        return date_parts(read_dates(frame[self.names[0]], self.format))

    def fit(self, parts: Floats) -> Self:
        """Learn from the values that `read` returns."""
        with_times = bool(np.any(parts[:, 0] % 1 > 0))
        self.parts_ = ["days", "month", "weekday", "hour"][: 4 if with_times else 3]
        self.gaps_ = bool(np.isnan(parts[:, 0]).any())
        self.scaled_ = _Scaled().fit(parts[:, : len(self.parts_)])
        return self

    def transform(self, parts: Floats) -> Floats:
        """Encode the values that `read` returns."""
        scaled = self.scaled_.transform(parts[:, : len(self.parts_)])
        return np.hstack([scaled, np.isnan(parts[:, :1])]) if self.gaps_ else scaled

    def names_out(self, names: Sequence[str]) -> list[str]:
        """Return the names of the encoded columns, from `names` of the columns read."""
        parts = [*self.parts_, "missing"] if self.gaps_ else self.parts_
        return [f"{names[0]} {part}" for part in parts]


class TextEncoder:
    """Standardises few components of TF-IDF weights of words and word pairs, and the length."""

    def __init__(self, names: list[str], components: int, seed: int) -> None:
        self.names = names
        self.components = components
        self.seed = seed

    def read(self, frame: pandas.DataFrame) -> NDArray[Any]:
        """Read the encoder's columns from a data frame."""
        return read_texts(frame[self.names[0]])

    def fit(self, cells: NDArray[Any]) -> Self:
        """Learn from the values that `read` returns."""
        self.words_ = TfidfVectorizer(
            ngram_range=(1, 2), sublinear_tf=True, min_df=2, max_features=_WORDS
        )
        self.svd_: Any = None
        self.n_parts_ = 0
        try:
            weights = self.words_.fit_transform(cells)
        except ValueError:  # no word is in two cells
            self.words_ = None
        else:
            self.n_parts_ = weights.shape[1]
            if self.n_parts_ > self.components:
                self._fit_svd(weights)
        self.scaled_ = _Scaled().fit(self._parts(cells))
        return self

    def _fit_svd(self, weights: Any) -> None:
        n_components = min(self.components, weights.shape[0])
        self.svd_ = TruncatedSVD(n_components, random_state=self.seed)
        with np.errstate(invalid="ignore", divide="ignore"):  # explained ratios of variance 0
            self.svd_.fit(weights)
        sizes = self.svd_.singular_values_
        self.n_parts_ = int(np.sum(sizes > 1e-6 * sizes[0]))  # the others are rounding errors

    def transform(self, cells: NDArray[Any]) -> Floats:
        """Encode the values that `read` returns."""
        return self.scaled_.transform(self._parts(cells))

    def _parts(self, cells: NDArray[Any]) -> Floats:
        lengths = np.log1p([[len(cell)] for cell in cells])
        if self.words_ is None:
            return lengths
        weights = self.words_.transform(cells)
        parts = weights.toarray() if self.svd_ is None else self.svd_.transform(weights)
        return np.hstack([parts[:, : self.n_parts_], lengths])

    def names_out(self, names: Sequence[str]) -> list[str]:
        """Return the names of the encoded columns, from `names` of the columns read."""
        return [*(f"{names[0]} part {i + 1}" for i in range(self.n_parts_)), f"{names[0]} length"]
