"""Bad inputs to the library: every estimator and public function, with every kind of bad value.

A case is a line of Python, so that a failure can be repeated::

    from tools.audit.inputs import blame
    blame("VoteClassifier(PAIR).fit(np.full((60, 4), np.nan), y)")

A case holds if it gives a result, or raises an error of a kind that says what is wrong.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Iterator
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
from numpy.linalg import LinAlgError
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import PolynomialFeatures
from sklearn.tree import DecisionTreeClassifier
from tests.test_estimators import ESTIMATORS, OTHERS, PAIR
from tools.audit._attacks import Attack
from tools.audit._children import Child

from margrave import (
    Confusion,
    Preference,
    Scores,
    catalogue,
    compare,
    datasets,
    fuse,
    mam,
    martingale,
    members,
    pairs,
    select,
    steer,
)
from margrave.members import EncodedLabelsClassifier
from margrave.steer import Dialog, Frontier, RowSample
from margrave.table import TableEncoder

CLEAR = (ValueError, TypeError, ImportError, OverflowError, FloatingPointError)
"""Errors that name what is wrong: a value, a type, a missing package, a number too large."""

SECONDS = 30.0  # for one case on a busy machine; most take milliseconds
FEW_WARNINGS = 9  # RuntimeWarnings of a case that are not blamed; more are a storm

# The names that the lines use, beside those imported above.

X, _classes = make_classification(60, 4, n_informative=3, n_redundant=0, random_state=0)
y = np.array(["no", "yes"])[_classes]
FITTED = [(name, member.fit(X, y)) for name, member in PAIR]
SCORES = X[:, 0]
MATRIX = Confusion([[40, 10], [5, 45]], classes=["no", "yes"])

BAD_X = (
    "np.full((60, 4), np.nan)",
    "np.where(np.eye(60, 4) > 0, np.nan, X)",
    "np.where(np.eye(60, 4) > 0, np.inf, X)",
    "np.where(np.eye(60, 4) > 0, -np.inf, X)",
    "X * 1e308",
    "X * 1e200",
    "X * 1e-320",
    "X.astype(str)",
    "np.full((60, 4), 'a')",
    "np.full((60, 4), None)",
    "np.full((60, 4), object())",
    "X + 1j",
    "X[:0]",
    "X[:, :0]",
    "X[:1]",
    "X[0]",
    "X.reshape(60, 2, 2)",
    "np.zeros((60, 4))",
    "sparse.csr_matrix(X)",
    "sparse.coo_matrix((60, 4))",
    "np.full((60, 4), np.datetime64('2020-01-01'))",
    "pd.DataFrame({'a': pd.date_range('2020-01-01', periods=60), 'b': 1.0})",
    "pd.DataFrame({'a': pd.Categorical(['u', 'v'] * 30), 'b': 1.0})",
    "pd.DataFrame({'a': ['u', None] * 30, 'b': pd.array([1, None] * 30, dtype='Int64')})",
    "pd.DataFrame(X, columns=['a', 'a', 'b', 'b'])",
    "[[1.0, 2.0]] * 59 + [[1.0]]",
    "None",
    "'text'",
    "7",
    "{'a': 1}",
    "X.tolist()",
    "X > 0",
)
BAD_Y = (
    "np.full(60, 'yes')",
    "y[:59]",
    "y[:0]",
    "np.where(np.arange(60) == 3, np.nan, 1.0)",
    "np.where(np.arange(60) == 3, np.inf, 1.0)",
    "np.linspace(0, 1, 60)",
    "np.arange(60)",
    "np.where(np.arange(60) == 0, 'rare', y)",
    "None",
    "'yes'",
    "7",
    "np.column_stack([y, y])",
    "y.reshape(-1, 1)",
    "np.array([None] * 60)",
    "np.array([1, 'a'] * 30, dtype=object)",
    "np.array([None, 'a'] * 30, dtype=object)",
    "[{}] * 60",
    "[[1], [2, 3]] * 30",
    "pd.Series(pd.array([0, None] * 30, dtype='Int64'))",
    "pd.Series(pd.Categorical(y), index=range(100, 160))",
    "np.array([0, 2**63 - 1] * 30)",
    "np.array([b'a', b'b'] * 30)",
    "np.array(['2020-01-01', '2021-01-01'] * 30, dtype='datetime64[D]')",
    "np.array([0, 1] * 30) + 1j",
    "y == 'yes'",
    "sparse.csr_matrix(np.ones((60, 1)))",
)
BAD_WEIGHTS = (
    "np.zeros(60)",
    "-np.ones(60)",
    "np.full(60, np.nan)",
    "np.full(60, np.inf)",
    "np.ones(59)",
    "np.ones((60, 2))",
    "'balanced'",
    "['a'] * 60",
    "7",
    "np.full(60, 1e308)",
    "np.full(60, 1e-320)",
    "np.eye(1, 60)[0]",
    "(y == 'yes').astype(float)",
    "np.ones(60) + 1j",
    "{}",
)
BAD_VALUES = (
    "None",
    "'nonsense'",
    "''",
    "b'x'",
    "float('nan')",
    "float('inf')",
    "-1",
    "0",
    "-0.5",
    "1.5",
    "True",
    "'1'",
    "[]",
    "[1, 2]",
    "{}",
    "object()",
    "1j",
    "-(10**400)",
    "np.array([0.5, 0.5])",
    "np.array([])",
    "LogisticRegression",
    "('a', 'b', 'c')",
)
BAD_SAMPLES = (*BAD_X, *BAD_Y, *BAD_WEIGHTS)
BAD_WORDS = (
    "'fp <='",
    "'fp <= -1'",
    "'fp <= 101%'",
    "'fp <= 1e9999'",
    "'fp <= nan'",
    "'fp <= ' + '9' * 400",
    "'fp <= 0.' + '0' * 400 + '1'",
    "'recall(nobody) >= 90%'",
    "'fp <= 5%, ' * 200",
    "'fp <= 5, fp >= 6'",
    "'(' * 1000",
    "'fp' * 5000",
    "'ﬀ ≤ ½'",
    "'fp <= ٣%'",
    "'fp <= 5%\\x00'",
    "'cost(fp) * 3'",
    "7",
    "None",
    "[]",
    "b'fp <= 5%'",
    "MATRIX",
)

# Calls of functions and methods: each value of the named list in turn takes the place of `_`.
CALLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Confusion(_)", BAD_SAMPLES + BAD_VALUES),
    ("Confusion([[1, 2], [3, 4]], classes=_)", BAD_VALUES + BAD_Y),
    ("Confusion([[1, 2], [3, 4]], positive=_)", BAD_VALUES),
    ("Confusion.of(_, y)", BAD_Y + BAD_VALUES),
    ("Confusion.of(y, _)", BAD_Y + BAD_VALUES),
    ("Confusion.of(y, y, classes=_)", BAD_VALUES + BAD_Y),
    ("Confusion.of(y, y, repeats=_)", BAD_WEIGHTS + BAD_VALUES),
    ("Confusion.of(y, y, reject_label=_)", BAD_VALUES),
    ("MATRIX.edit('no', 'yes', _)", (*BAD_VALUES, "'9' * 400", "10**400")),
    ("MATRIX.edit(_, 'yes', 3)", BAD_VALUES),
    ("MATRIX.edit('no', _, 3)", BAD_VALUES),
    ("MATRIX.precision(_)", BAD_VALUES),
    ("MATRIX.recall(_)", BAD_VALUES),
    ("Preference(_)", BAD_WORDS + BAD_VALUES),
    ("Preference('fp <= 5%', classes=_)", BAD_VALUES),
    ("Preference('fp <= 5%', positive=_)", BAD_VALUES),
    ("Preference('fp <= 5%').met(_)", BAD_VALUES),
    ("Preference('fp <= 5%').keeping(_, MATRIX)", BAD_VALUES),
    ("Preference.of(_)", BAD_VALUES),
    ("Scores.of(_, X)", BAD_VALUES),
    ("Scores.of(FITTED, _)", BAD_X),
    ("Scores.of(FITTED, X, classes=_)", BAD_Y + BAD_VALUES),
    ("Scores.of(FITTED, X, features=_)", BAD_VALUES),
    ("Scores.of(FITTED, X, ask=_)", BAD_VALUES),
    ("Scores.from_arrays(labels=_)", BAD_SAMPLES),
    ("Scores.from_arrays(proba=_)", BAD_SAMPLES),
    ("Scores.from_arrays(decision=_)", BAD_SAMPLES),
    ("Scores.from_arrays(scores=_)", BAD_SAMPLES),
    ("Scores.from_arrays(decision=X, members=_)", BAD_VALUES),
    ("Scores.of(FITTED, X).pick(_)", BAD_VALUES),
    ("Scores.of(FITTED, X).toward(_)", BAD_VALUES),
    ("Scores.side_by_side(_)", BAD_VALUES),
    ("pairs.CrucialPairs(_, SCORES)", BAD_SAMPLES),
    ("pairs.CrucialPairs(SCORES, _)", BAD_SAMPLES),
    ("pairs.CrucialPairs.of(_, y)", BAD_SAMPLES),
    ("pairs.CrucialPairs.of(SCORES, _)", BAD_Y),
    ("pairs.CrucialPairs.of(SCORES, y, positive=_)", BAD_VALUES),
    ("pairs.CrucialPairs.of(SCORES, y).quantile(_)", BAD_VALUES + BAD_WEIGHTS),
    ("pairs.CrucialPairs.of(SCORES, y).cdf(_)", BAD_VALUES + BAD_WEIGHTS),
    ("pairs.CrucialPairs.of(SCORES, y).hinge(_)", BAD_VALUES),
    ("pairs.minimum_margin(_, y)", BAD_SAMPLES),
    ("pairs.sample_margins(SCORES, _)", BAD_Y),
    ("fuse.rank_margin_weights(_, y)", BAD_X),
    ("fuse.rank_margin_weights(X, _)", BAD_Y),
    ("fuse.rank_margin_weights(X, y, nu=_)", BAD_VALUES),
    ("fuse.rank_margin_weights(X, y, tol=_)", BAD_VALUES),
    ("fuse.rank_margin_weights(X, y, max_iter=_)", BAD_VALUES),
    ("fuse.rank_margin_weights(X, y, sample_weight=_)", BAD_WEIGHTS),
    ("fuse.rank_margin_weights(X, y, negatives=_)", BAD_VALUES),
    ("mam.kernel_sum(_, X, SCORES)", BAD_X),
    ("mam.kernel_sum(X, _, SCORES)", BAD_X),
    ("mam.kernel_sum(X, X, _)", BAD_WEIGHTS + BAD_Y),
    ("mam.kernel_sum(X, X, SCORES, _)", BAD_VALUES),
    ("mam.kernel_sum(X, X, SCORES, gamma=_)", BAD_VALUES),
    ("mam.kernel_sum(X, X, SCORES, 'poly', degree=_)", BAD_VALUES),
    ("mam.rank_transform(_)", BAD_SAMPLES),
    ("mam.rank_transform(SCORES, _)", BAD_WEIGHTS),
    ("mam.MAMClassifier().fit(X, y).certainty(_)", BAD_X),
    ("mam.MAMClassifier().fit(X, y).certainty(X, delta=_)", BAD_VALUES),
    ("mam.MAMClassifier().fit(X, y).certainty(X, transform=_)", BAD_VALUES),
    ("mam.MAMClassifier().fit(X, y).certainty(X, held_out=_)", BAD_VALUES),
    ("mam.MAMClassifier().fit(X, y).margin_bound(_)", BAD_VALUES),
    ("mam.MAMClassifier().fit(X, y).rademacher_bound(_)", BAD_VALUES),
    ("mam.MAMClassifier('linear').partial_fit(X, y, classes=_)", BAD_Y + BAD_VALUES),
    ("compare.friedman_holm(_)", BAD_SAMPLES),
    ("compare.friedman_holm(X, control=_)", BAD_VALUES),
    ("compare.friedman_holm(X, methods=_)", BAD_VALUES),
    ("compare.friedman_holm(X, alpha=_)", BAD_VALUES),
    ("compare.bias_variance(_, X, y, X, y, n_rounds=3)", BAD_VALUES),
    ("compare.bias_variance(PAIR[1][1], _, y, X, y, n_rounds=3)", BAD_X),
    ("compare.bias_variance(PAIR[1][1], X, _, X, y, n_rounds=3)", BAD_Y),
    ("compare.bias_variance(PAIR[1][1], X, y, _, y, n_rounds=3)", BAD_X),
    ("compare.bias_variance(PAIR[1][1], X, y, X, _, n_rounds=3)", BAD_Y),
    ("compare.bias_variance(PAIR[1][1], X, y, X, y, n_rounds=_)", BAD_VALUES),
    ("compare.bias_variance(PAIR[1][1], X, y, X, y, n_rounds=3, loss=_)", BAD_VALUES),
    ("compare.bias_variance(PAIR[1][1], X, y, X, y, n_rounds=3, true_proba=_)", BAD_SAMPLES),
    ("catalogue.make(_)", BAD_VALUES),
    ("catalogue.make('logistic', random_state=_)", BAD_VALUES),
    ("catalogue.describe(_)", BAD_VALUES),
    ("datasets.load(_)", tuple(set(BAD_VALUES) - {"'nonsense'", "'1'"})),  # these ask the network
    ("TableEncoder().fit(_)", BAD_X),
    ("TableEncoder(max_categories=_).fit(pd.DataFrame(X))", BAD_VALUES),
    ("TableEncoder(text_components=_).fit(pd.DataFrame(X))", BAD_VALUES),
    ("select.Oracle(PAIR).fit(X, y).predict(X, _)", BAD_Y),
    ("select.Oracle(_).fit(X, y)", BAD_VALUES),
    ("Dialog(_, X, y)", BAD_VALUES),
    ("Dialog(FITTED, _, y)", BAD_X),
    ("Dialog(FITTED, X, _)", BAD_Y),
    ("Dialog(FITTED, X, y, positive=_)", BAD_VALUES),
    ("Dialog(FITTED, X, y, groups=_)", BAD_Y + BAD_VALUES),
    ("Dialog.from_data(_, y, committee=['logistic'])", BAD_X),
    ("Dialog.from_data(X, _, committee=['logistic'])", BAD_Y),
    ("Dialog.from_data(X, y, committee=_)", BAD_VALUES[1:]),
    ("Dialog.from_data(X, y, committee=['logistic'], tune=_)", BAD_VALUES),
    ("Dialog.from_data(X, y, committee=['logistic'], certify=_)", BAD_VALUES),
    ("Dialog.from_data(X, y, committee=['logistic'], certify=(_, y))", BAD_X),
    ("Dialog.from_data(X, y, committee=['logistic'], certify=(X, _))", BAD_Y),
    ("Dialog.from_data(X, y, committee=['logistic'], guarantee=_)", BAD_WORDS),
    ("Dialog.from_data(X, y, committee=['logistic'], confidence=_)", BAD_VALUES),
    ("Dialog.from_data(X, y, committee=['logistic'], positive=_)", BAD_VALUES),
    ("Dialog.from_data(X, y, committee=['logistic'], groups=_)", BAD_Y + BAD_VALUES),
    ("Dialog.from_data(X, y, committee=['logistic'], time=_)", BAD_Y + BAD_VALUES),
    ("Dialog.from_data(X, y, committee='martingale', levels=_)", (*BAD_VALUES, "10**30")),
    ("Dialog.from_data(X, y, committee='martingale').grow(_)", (*BAD_VALUES, "10**30")),
    ("Dialog.from_data(X, y, committee=['logistic'], n_jobs=_)", BAD_VALUES),
    ("Dialog.from_data(X, y, committee=['logistic'], random_state=_)", BAD_VALUES),
    ("Dialog.plan_split(_, y)", BAD_X),
    ("Dialog.plan_split(X, _)", BAD_Y),
    ("Dialog(FITTED, X, y).prefer(_, strategies=['move'])", BAD_WORDS + BAD_VALUES),
    ("Dialog(FITTED, X, y).prefer('fp <= 5', strategies=_)", BAD_VALUES),
    ("Dialog(FITTED, X, y).prefer('fp <= 5', at=_)", BAD_VALUES),
    ("Dialog(FITTED, X, y).goto(_)", BAD_VALUES),
    ("Dialog(FITTED, X, y).compare(0, _)", BAD_VALUES),
    ("Dialog(FITTED, X, y).rows(_)", BAD_VALUES),
    ("Dialog(FITTED, X, y).rows('no', _)", BAD_VALUES),
    ("Dialog(FITTED, X, y).support(_)", BAD_VALUES),
    ("Dialog(FITTED, X, y).tune_nodes(_)", BAD_VALUES),
    ("Dialog(FITTED, X, y).grow(_)", BAD_VALUES),
    ("martingale.MartingaleBoostClassifier(n_levels=_).fit(X, y)", ("10**30",)),
    ("martingale.AdaptiveMartingaleBoostClassifier(n_levels=_).fit(X, y)", ("10**30",)),
    ("preferring().accept(_, y)", BAD_X),
    ("preferring().accept(X, _)", BAD_Y),
    ("preferring().accept(X, y, confidence=_)", BAD_VALUES),
    ("preferring().check_accept(confidence=_)", BAD_VALUES),
    ("preferring().model.check(_, y)", BAD_X),
    ("preferring().model.check(X, _)", BAD_Y),
    ("preferring().model.check(X, y, level=_)", BAD_VALUES),
    ("preferring().model.confusion(X, _)", BAD_Y),
    ("preferring().model.recertify(_, y)", BAD_X),
    ("preferring().model.recertify(X, _)", BAD_Y),
    ("Use(_, '2026-01-31', 'fp <= 5%', 'certified')", BAD_VALUES),
    ("Use(0.05, '2026-01-31', 'fp <= 5%', _)", BAD_VALUES),
    ("Account(_, RowSample.of(X))", BAD_VALUES),
    ("Account(0.05, _)", BAD_VALUES),
    ("Account(0.05, RowSample.of(X), uses=_)", BAD_VALUES),
    ("Account.from_dict(_)", BAD_VALUES),
    ("Account.from_dict({**Account(0.05, RowSample.of(X)).to_dict(), 'uses': _})", BAD_VALUES),
    ("Dialog.load(_)", BAD_VALUES),
    ("trusted_types(_)", BAD_VALUES),
    ("Dialog.from_bytes(_)", BAD_VALUES),
    ("Dialog.restore(_)", BAD_VALUES),
    ("Frontier.of(_, y)", BAD_VALUES),
    ("Frontier.of({'a': _}, y)", BAD_SAMPLES),
    ("Frontier.of({'a': SCORES}, _)", BAD_Y),
    ("Frontier.of({'a': SCORES}, y, _)", BAD_VALUES),
    ("Frontier.of({'a': SCORES}, y).best(_)", BAD_VALUES),
    ("Frontier.of({'a': SCORES}, y).best(prior=_)", BAD_VALUES),
    ("Frontier.of({'a': SCORES}, y).least_fn(_)", BAD_VALUES),
    ("Frontier.of({'a': SCORES}, y).least_fp(3, _)", BAD_VALUES),
    ("Frontier.of({'a': SCORES}, y).winners(_)", BAD_VALUES),
    ("Frontier.of({'a': SCORES}, y).winners(prior=_)", BAD_VALUES),
)

# A ValueError or a TypeError with one of these messages comes from inside an algorithm and does not
# say which input is wrong. What Python and numpy say of a value of a wrong type ("'float' object is
# not iterable") does.
LEAKED = re.compile(
    r"operands could not be broadcast|shapes .* not aligned"
    r"|zero-size array|cannot reshape|not supported between instances|not enough values to unpack"
    r"|too many values to unpack|attempt to get arg|axis \d is out of bounds|can't multiply"
    r"|exceeds the limit \(\d+ digits\)|buffer source array|cannot convert float NaN"
)


def preferring() -> Dialog:
    """Make a dialog with a step that can be accepted."""
    dialog = Dialog(FITTED, X, y)
    dialog.prefer("fp <= 50%", strategies=["move"])
    return dialog


def _source(estimator: Any) -> str:
    """Return the line that makes an estimator."""
    line = re.sub(r"\s+", " ", repr(estimator))
    return line.replace(re.sub(r"\s+", " ", repr(PAIR)), "PAIR")


MODULES = (catalogue, compare, datasets, fuse, mam, martingale, members, pairs, select, steer)
KINDS = (
    *(Confusion, Preference, Scores, Dialog, Frontier, RowSample),
    *(TableEncoder, EncodedLabelsClassifier),
)
NAMES: dict[str, Any] = {
    **{module.__name__.rpartition(".")[2]: module for module in MODULES},
    **{name: getattr(module, name) for module in MODULES for name in module.__all__},
    **{kind.__name__: kind for kind in (*KINDS, LogisticRegression, PolynomialFeatures)},
    **{kind.__name__: kind for kind in (DecisionTreeClassifier, KNeighborsClassifier)},
    "np": np,
    "pd": pd,
    "sparse": sparse,
    "X": X,
    "y": y,
    "SCORES": SCORES,
    "MATRIX": MATRIX,
    "PAIR": PAIR,
    "FITTED": FITTED,
    "preferring": preferring,
}
"""The names that the lines use."""


def lines_of_estimators() -> Iterator[str]:
    """Lines that fit each estimator on bad samples, or ask it about them."""
    for estimator in (*ESTIMATORS, *OTHERS):
        source = _source(estimator)
        yield from (f"{source}.fit({bad}, y)" for bad in BAD_X)
        yield from (f"{source}.fit(X, {bad})" for bad in BAD_Y)
        if "sample_weight" in signature(estimator.fit).parameters:
            yield from (f"{source}.fit(X, y, sample_weight={bad})" for bad in BAD_WEIGHTS)
        for method in ("predict", "predict_proba", "decision_function"):
            if hasattr(estimator, method) or hasattr(type(estimator), method):
                yield from (f"{source}.fit(X, y).{method}({bad})" for bad in BAD_X)


def lines_of_parameters() -> Iterator[str]:
    """Lines that fit each estimator with a bad parameter."""
    for estimator in ESTIMATORS:
        source = _source(estimator)
        for name in estimator.get_params(deep=False):
            yield from (f"{source}.set_params({name}={bad}).fit(X, y)" for bad in BAD_VALUES)


def lines_of_functions() -> Iterator[str]:
    """Lines that call public functions and methods with a bad argument."""
    for call, values in CALLS:
        before, after = re.split(r"(?<!\w)_(?!\w)", call)
        yield from (before + bad + after for bad in values)


def blame(line: str) -> str | None:
    """Evaluate a line; return None if it holds, or else what happened."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = eval(line, NAMES)  # noqa: S307 - our own lines
            problem = _bad_numbers(result)
        except Exception as error:
            problem = _bad_error(error)
    storm = [one for one in caught if issubclass(one.category, RuntimeWarning)]
    if problem is None and len(storm) > FEW_WARNINGS:
        problem = f"{len(storm)} warnings, such as {storm[0].message}"
    return problem


def _bad_error(error: Exception) -> str | None:
    """Blame an error that does not tell a user what is wrong."""
    text = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    if not isinstance(error, CLEAR):
        return text
    if isinstance(error, LinAlgError | UnicodeError) or len(str(error)) < 15:
        return text
    return text if LEAKED.search(str(error)) else None


def _bad_numbers(result: Any) -> str | None:
    """Blame a fitted model whose probabilities for usual samples are not numbers."""
    if not hasattr(result, "predict_proba") or getattr(result, "n_features_in_", 0) != X.shape[1]:
        return None
    found = result.predict_proba(X)
    return None if np.isfinite(found).all() else "predict_proba(X) is not finite"


def run(seed: int, count: int | None) -> Iterator[Attack]:
    """Evaluate the lines, or `count` of each kind chosen at random."""
    expected = "a result, or an error that says what is wrong"
    with Child(blame, SECONDS) as child:
        for name, lines in (
            ("bad samples, labels and weights to estimators", list(lines_of_estimators())),
            ("bad parameters of estimators", list(lines_of_parameters())),
            ("bad arguments of functions", list(lines_of_functions())),
        ):
            attack = Attack(name, expected)
            if count is not None and count < len(lines):
                lines = random.Random(seed).sample(lines, count)  # noqa: S311
            for line in lines:
                problem = child.run(line)
                attack.check(problem is None, f"{line}  ->  {problem}")
            yield attack
