"""Columns of a table that say which rows belong together, number the rows, or date them.

A guarantee assumes that rows are independent. They are not if a patient, customer or device has
several rows, and the column that names it looks like any other category or number. Such a column is
found by its name, and by how its values repeat. Without a telling name, its values have to look
like identifiers, and rows of a value have to agree in the labels or another column more than rows
of neighbouring values do. Ages and amounts do not pass this: rows of nearly the same age are nearly
as similar.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Codes, Flags, Floats
from margrave.table._kinds import guess_kind

if TYPE_CHECKING:
    import pandas

# Words in the names of columns: who may have several rows, and what may if it is identified.
_WHO = (
    "account applicant borrower client consumer customer device donor driver employee family "
    "household individual machine member merchant participant passenger patient person player "
    "policyholder respondent sender sensor student subject subscriber supplier user vehicle visitor"
)
_WHAT = (
    "admission batch booking card case claim contract encounter invoice item loan order policy "
    "product project session ticket trip visit"
)
_IDENTIFY, _NUMBER = "guid id ident identifier uid uuid", "code hash key no nr num number"
# A measurement, a count or a place, whatever its values.
_MEASURE = (
    "age amount balance cost count days duration frequency hours income index length level minutes "
    "months n plz postal postcode price quantity rank rate ratio score seconds size sum temp "
    "temperature total value weight year years zip zipcode"
)
_TIME = "date datetime day month time timestamp ts week year"
_OF_A_PERSON = "birth birthdate birthday born dob"
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LIKE_A_CODE = re.compile(r"\S*\d\S*|[\d -]+")
_EPOCH = ((1e8, 4e9), (1e11, 4e12))  # seconds and milliseconds since 1970

_FEW, _FEW_NAMED = 20, 10  # distinct values of a category; also if its name is that of an entity
_REPEATED = 0.02  # of the rows at least have the value of another one
_ROWS, _LARGEST = 1.2, 0.1  # for each value at least, and the largest part of the rows that has it
_LONG = 30  # mean number of characters of a text that is no name
_PAIRS, _SAMPLE = 3000, 200  # rows that are compared with another one, values that are read
_CLOSE = 0.05  # of the rows at most lie between two numbers that agree
# Rows of a value agree more often than neighbours: by so much of what is possible, and by so many
# standard errors.
_AGREE, _SIGNIFICANT = 0.1, 4.0


@dataclass(frozen=True)
class Finding:
    """A column that should probably not be an ordinary feature.

    Attributes
    ----------
    column : str
        The name of the column.
    kind : {"entity", "identifier", "time"}
        Whether it says which rows belong together, only numbers the rows, or dates them.
    reason : str
        What was found, as the beginning of a sentence.
    rows_each : float
        The mean number of rows of an entity.
    """

    column: str
    kind: Literal["entity", "identifier", "time"]
    reason: str
    rows_each: float = 0.0

    def advise(self, use: str) -> str:
        """Describe the finding, and what to do with an option of the front end."""
        advice = {
            "entity": f"if these rows belong together, use {use}; otherwise the guarantee does not "
            "hold for new ones",
            "identifier": f"it says nothing about new rows; {use} leaves it out",
            "time": f"if the model will predict later rows, use {use}",
        }
        return f"{self.reason}: {advice[self.kind]}."

    @property
    def note(self) -> str:
        """What a certificate says of a feature that names entities or numbers the rows."""
        if self.kind == "identifier":
            return f"{self.reason}; if new rows have other numbers, the guarantee may not hold."
        return (
            f"{self.reason}; these rows were counted as independent. If they belong together, the "
            "guarantee does not hold for new ones."
        )


def find_roles(X: Any, y: NDArray[Any]) -> tuple[Finding, ...]:
    """Find the columns of a data frame that name entities, number the rows or date them.

    Anything but a data frame has no named columns, and nothing is found in it.
    """
    if not hasattr(X, "iloc") or not hasattr(X, "columns") or len(X) < 2 * _FEW:
        return ()
    columns = [_Column.of(X.iloc[:, j]) for j in range(X.shape[1])]
    labels = _Column.of_codes(np.unique(y, return_inverse=True)[1])
    found: list[tuple[Finding, _Column]] = []
    for name, column in zip(map(str, X.columns), columns, strict=True):
        others = [labels, *(one for one in columns if one is not column)]
        finding = _find_role(name, column, others)
        if finding is not None:
            found.append((finding, column))
    entities = [column for finding, column in found if finding.kind == "entity"]
    return tuple(
        finding
        for finding, column in found
        if not (finding.kind == "entity" and any(_determines(one, column) for one in entities))
    )


def _determines(fine: _Column, coarse: _Column) -> bool:
    """Return whether rows with the same value of one column have the same of a coarser one.

    The age of a patient is the same in all rows of the patient, and groups need the patient only.
    """
    if fine.codes is None or coarse.codes is None or fine.codes.max() <= coarse.codes.max():
        return False
    pairs = np.unique(fine.codes * (coarse.codes.max() + 1) + coarse.codes)
    return len(pairs) == len(np.unique(fine.codes))


@dataclass(frozen=True, eq=False)
class _Column:
    """A column of a table.

    Attributes
    ----------
    kind : {"number", "text", "date"}
        What it holds; whole numbers and texts have `codes`.
    values : ndarray of shape (n_samples,)
        The numbers, NaN if they are missing; or the codes.
    codes : ndarray of shape (n_samples,) or None
        The number of the value of each row, -1 if it is missing.
    different : ndarray or None
        The different values, in the order of the codes.
    """

    kind: Literal["number", "text", "date"]
    values: NDArray[Any]
    codes: Codes | None = None
    different: NDArray[Any] | None = None

    @classmethod
    def of_codes(cls, codes: Codes) -> _Column:
        """Make a column of categories."""
        return cls("text", codes, codes, np.unique(codes))

    @classmethod
    def of(cls, cells: pandas.Series[Any]) -> _Column:
        """Read a column."""
        import pandas
        from pandas.api import types

        if types.is_numeric_dtype(cells.dtype) and not types.is_complex_dtype(cells.dtype):
            values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
            known = values[np.isfinite(values)]
            if not len(known) or (known != np.floor(known)).any():
                return cls("number", values)
            codes, different = pandas.factorize(np.where(np.isfinite(values), values, np.nan))
            return cls("number", values, codes, np.asarray(different))
        if str(cells.dtype).startswith(("datetime", "period")):
            return cls("date", np.zeros(len(cells)))
        try:
            codes, found = pandas.factorize(cells.astype(object))
        except TypeError:  # cells such as lists, which only the user's own members read
            return cls("number", np.zeros(len(cells)))
        different = np.asarray(found, dtype=object)
        guess = guess_kind(pandas.Series(_sample(different), dtype=object))
        return cls("date" if guess.kind == "date" else "text", codes, codes, different)

    def agree(self, a: Codes, b: Codes) -> Flags:
        """Return whether pairs of rows agree: equal, or numbers with few others between them."""
        if self.kind != "number" or (self.different is not None and len(self.different) <= _FEW):
            return np.asarray(self.values[a] == self.values[b])
        ordered = np.sort(self.values[:: max(len(self.values) // _PAIRS, 1)])  # NaN last
        first, second = (np.searchsorted(ordered, self.values[at]) for at in (a, b))
        return np.asarray(np.abs(first - second) <= _CLOSE * len(ordered))


def _words(name: str) -> list[str]:
    """Divide a name in snake or camel case into words; "userid" has two."""
    words = []
    for word in map(str.lower, _WORD.findall(name)):
        stem = word.removesuffix("id")
        words += [stem, "id"] if stem != word and _any([stem], _WHO, _WHAT) else [word]
    return words


def _any(words: Sequence[str], *lists: str) -> bool:
    return any(word in one.split() for word in words for one in lists)


def _find_role(name: str, column: _Column, others: Sequence[_Column]) -> Finding | None:
    """Find the role of a column, if it has one; `others` are the labels and other columns."""
    words = _words(name)
    if column.kind == "date":
        own = not _any(words, _OF_A_PERSON)
        return Finding(name, "time", f"{name!r} has dates") if own else None
    if column.kind == "number" and _any(words, _TIME) and _is_time(column.values):
        return Finding(name, "time", f"{name!r} has the times of the rows")
    if column.codes is None or column.different is None:
        return None
    counts = np.bincount(column.codes[column.codes >= 0])
    n, n_present, n_different = len(column.codes), int(counts.sum()), len(counts)
    numbered = column.kind == "number" and n_different == n
    if numbered and (np.diff(column.values) == 1).all():
        return Finding(name, "identifier", f"{name!r} numbers the rows")
    last = words[-1:]
    is_identified = _any(last, _IDENTIFY) or (_any(last, _NUMBER) and _any(words, _WHO, _WHAT))
    if _any(words, _MEASURE):
        return None
    if numbered and is_identified:
        return Finding(name, "identifier", f"{name!r} has a different number in every row")
    is_many = n_different > max(_FEW, n**0.5)
    if n_present - n_different < _REPEATED * n or n_different < _FEW_NAMED:
        return None
    mean = n_present / n_different
    each = f"{mean:.1f}" if mean < 10 else f"{mean:,.0f}"
    reason = f"{name!r} has {each} rows for each of {n_different:,} values"
    like_codes = column.kind == "number" or _like_codes(column.different)
    short = np.mean([len(text) for text in _sample(column.different)]) <= _LONG
    is_named = is_identified or (_any(last, _WHO) and short)  # not the subject of a mail
    few = _any(words, _WHO, _WHAT) and like_codes  # may be few, such as 12 devices
    if is_named and (is_many or few):
        return Finding(name, "entity", reason, mean)
    spread = n_present >= _ROWS * n_different and counts.max() <= _LARGEST * n
    if not (is_many and spread and like_codes):
        return None
    if column.kind == "number" and not _like_numbering(column.different, counts):
        return None
    if not _rows_agree(column, others):
        return None
    return Finding(name, "entity", f"{reason}, and rows of a value resemble each other", mean)


def _is_time(values: Floats) -> bool:
    """Return whether numbers increase from row to row, or are seconds since 1970."""
    if not np.isfinite(values).all():
        return False
    increase = (np.diff(values) >= 0).all() and len(np.unique(values)) > _FEW
    return bool(increase or any(low < values.min() and values.max() < high for low, high in _EPOCH))


def _like_codes(different: NDArray[Any]) -> bool:
    """Return whether texts look like codes, such as P0123: single words with digits."""
    like = [_LIKE_A_CODE.fullmatch(text) is not None for text in _sample(different)]
    return float(np.mean(like)) > 0.95


def _sample(different: NDArray[Any]) -> list[str]:
    return [str(one).strip() for one in different[:: max(len(different) // _SAMPLE, 1)]]


def _like_numbering(different: Floats, counts: Codes) -> bool:
    """Return whether whole numbers look like identifiers.

    They are spread evenly, and how often one occurs says nothing about the next one.
    """
    order = different.argsort()
    numbers, counts = different[order], counts[order]
    even = np.linspace(0, 1, len(numbers))
    distance = np.abs((numbers - numbers[0]) / (numbers[-1] - numbers[0]) - even).max()
    if distance > max(0.1, 1.6 / len(numbers) ** 0.5):  # a test of Kolmogorov and Smirnov at 1 %
        return False
    deviations = counts - counts.mean()
    variance = (deviations**2).mean()
    correlation = (deviations[1:] * deviations[:-1]).mean() / variance if variance > 0 else 0.0
    return bool(correlation < max(0.2, 3 / len(counts) ** 0.5))


def _rows_agree(column: _Column, others: Sequence[_Column]) -> bool:
    """Return whether rows of a value agree more often than rows of two neighbouring values."""
    codes, different = column.codes, column.different
    if codes is None or different is None:
        return False
    random, rows = np.random.default_rng(0), np.flatnonzero(codes >= 0)
    ordered = different if column.kind == "number" else different.astype(str)
    rank = ordered.argsort().argsort()[codes[rows]]
    order = np.lexsort((random.random(len(rows)), rank))
    rows, rank = rows[order], rank[order]
    start, sizes = np.unique(rank, return_index=True, return_counts=True)[1:]
    first = np.flatnonzero(rank[1:] == rank[:-1])
    first = random.permutation(first)[:_PAIRS]
    of = rank[first]
    next_to = np.where(of + 1 < len(sizes), of + 1, of - 1)
    neighbour = start[next_to] + (random.random(len(of)) * sizes[next_to]).astype(np.intp)
    a, b, c = rows[first], rows[first + 1], rows[neighbour]
    _, value, n_pairs = np.unique(of, return_inverse=True, return_counts=True)
    for other in others:
        if other.kind == "date":
            continue
        within, beside = other.agree(a, b), other.agree(a, c)
        gains = np.bincount(value, weights=within.astype(float) - beside) / n_pairs
        error = gains.std() / len(gains) ** 0.5
        possible = 1 - beside.mean()
        if gains.mean() >= max(_AGREE * possible, _SIGNIFICANT * error) and gains.mean() > 0:
            return True
    return False
