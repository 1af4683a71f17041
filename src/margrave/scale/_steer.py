"""Steering of Dask collections, which need not fit into memory, by a threshold.

The training set has a limited number of rows, in memory. The tuning set is scored block by block,
and exact counts choose the threshold. The certification set has a limited number of rows, with one
score of each in memory. Where that limit is reached, a rare class still has its whole fraction if
the guarantee is only about rates within a class. For other guarantees the classes keep their
proportions, and few rows of a rare class are left. There are three or four passes: the labels, the
training set, the scores, and the scores again if too many of them are different.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from margrave import _labels
from margrave._errors import ParameterError
from margrave._indexing import select_rows
from margrave._messages import name_class
from margrave._typing import Codes, Floats
from margrave.committee import Progress
from margrave.confusion import Confusion, Objective, Preference, Tally
from margrave.scale._blocks import Blocks, concatenate
from margrave.scale._fit import fit
from margrave.scale._frontier import Runs, summary_of, tally_of
from margrave.scale._predict import empty_result, plain_rows
from margrave.scale._roles import (
    CERTIFY,
    OWNER,
    TRAIN,
    TUNE,
    Draw,
    Roles,
    draw_certifying,
    merge_certifying,
)
from margrave.scale._sample import KeyedRows
from margrave.scale._summary import SortedSummary
from margrave.steer import (
    PROPORTIONS_DIFFER,
    Candidate,
    Check,
    Grant,
    GuaranteeError,
    Prospect,
    Reply,
    RowHashes,
    RowSample,
    Scorer,
    SteeredClassifier,
    Threshold,
    adopt_fit,
    best_threshold,
    certification_fraction,
    check_certified,
    check_confidence,
    check_predictions,
    get_strategies,
    hash_rows,
    hash_samples,
    issue_certificate,
    make_model,
    make_plan,
    name_request,
    one_of_each,
    rates_within_classes,
    recertify_scores,
    score_samples,
    start_from_table,
)

MOVE = "move"


def check_strategies(strategies: Any, owner: str) -> None:
    """Raise an error for strategies that need the tuning set in memory."""
    if strategies is None:
        return
    names = [strategy.name for strategy in get_strategies(strategies, owner)]
    others = [repr(name) for name in names if name != MOVE]
    if others:
        allowed = f"left out, or {MOVE!r}, for rows that do not fit into memory"
        raise ParameterError(
            f"{owner} needs strategies to be {allowed}; got {', '.join(others)}. Draw rows with "
            "margrave.scale.sample for the other strategies.",
            parameter="strategies",
            allowed=allowed,
            received=names,
        )


@dataclass(frozen=True, eq=False)
class TunedRows:
    """A trained scorer, and its scores of the tuning and the certification set.

    Attributes
    ----------
    scorer : Scorer
        Scores new samples.
    roles : Roles
        The role of every row.
    positive : label
        The class that ``fp`` and ``fn`` refer to.
    tally : Tally
        The scores of the tuning set, by class.
    scores, codes : ndarray
        The scores and the classes of the certification set.
    estimator : classifier, list or None
        The estimator to steer, not trained.
    n_copies : int
        Rows that equal another row of the certification set; they are left out.
    """

    scorer: Scorer
    roles: Roles
    positive: Any
    tally: Tally
    scores: Floats
    codes: Codes
    estimator: Any = None
    n_copies: int = 0

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes."""
        return tuple(self.roles.classes.tolist())

    def matrix(self, threshold: float) -> Confusion:
        """Count the tuning set in a confusion matrix, at a threshold between runs of scores."""
        under = self.tally.upto(threshold)
        counts = np.column_stack([under, self.tally.under[-1] - under])
        return Confusion(counts, self.classes, self.positive)

    @property
    def start(self) -> Reply:
        """The start, before any preference."""
        matrix, candidate = self.matrix(0.0), self._candidate(0.0)
        return Reply(None, True, matrix, matrix, "start", 0.0, 1, True, candidate=candidate)

    def _candidate(self, threshold: float) -> Candidate:
        scores, _, _ = self._entries
        return Candidate(MOVE, self.scorer, scores, Threshold(threshold, threshold))

    @property
    def _entries(self) -> tuple[Floats, Codes, NDArray[np.int64]]:
        """The tally as scores, classes and numbers of samples."""
        place, codes = np.nonzero(self.tally.counts)
        return self.tally.highs[place], codes, self.tally.counts[place, codes]

    def objective(self, wanted: Preference) -> Objective:
        """Make the objective of a preference on the tuning set."""
        _, codes, counts = self._entries
        return Objective(wanted, codes, self.classes, self.positive, counts)

    def reply(self, wanted: Preference, before: Confusion) -> Reply:
        """Reply to a preference with the best threshold."""
        began = perf_counter()
        wanted.check_counts(before)
        decision = best_threshold(self.objective(wanted), self.tally)
        after, n_candidates = self.matrix(decision.high), len(self.tally.thresholds)
        seconds, candidate = perf_counter() - began, self._candidate(decision.high)
        met = wanted.met(after)
        return Reply(
            wanted, met, before, after, MOVE, seconds, n_candidates, True, candidate=candidate
        )

    def accept(
        self,
        reply: Reply,
        confidence: float,
        use: Callable[[str], AbstractContextManager[Grant]] | None = None,
        part: Callable[[str], float] | None = None,
        anyway: bool = False,
    ) -> SteeredClassifier:
        """Make the model of a reply, with a guarantee from the certification set.

        Parameters
        ----------
        reply : Reply
            The reply.
        confidence : float
            The confidence of the guarantee.
        use : callable, optional
            Called with the name of the request; it returns a context manager that gives what the
            certificate may use. By default this is the whole error probability.
        part : callable, optional
            Called with the name before `use` is. It returns the error probability that the
            certificate will be able to use; by default the whole.
        anyway : bool, default=False
            As in :meth:`margrave.steer.Dialog.accept`.
        """
        wanted, candidate = reply.preference, reply.candidate
        if wanted is None:
            raise RuntimeError("There is no preference to guarantee.")
        sizes = self.roles.counts.sum(axis=0)
        if self.roles.proportions_differ and not rates_within_classes(
            wanted, sizes, self.classes, self.positive
        ):
            raise GuaranteeError(
                f"'{wanted}' cannot be guaranteed: {PROPORTIONS_DIFFER}, and not all bounds are "
                "rates within a class. Limit only such rates, as in fp <= 2%.",
                code="not_supported",
                preference=str(wanted),
            )
        scores, objective = candidate.scores, self.objective(wanted)
        by_class, delta = np.bincount(self.codes, minlength=2), 1 - confidence
        plan = make_plan(wanted, candidate.decision, scores, objective, by_class, delta)
        prospect = Prospect(scores, objective, reply.after, by_class, confidence, plan)
        default = Threshold(0.0, 0.0)
        name = name_request(plan, self.scores, self.codes, confidence)
        expected = prospect.check(delta if part is None else part(name), anyway)
        with nullcontext(Grant(delta)) if use is None else use(name) as grant:
            decision, certificate = issue_certificate(
                plan,
                self.scores,
                self.codes,
                requested=str(wanted.limits),
                strategy=reply.strategy,
                tuning=reply.after,
                confidence=confidence,
                delta=grant.part,
                number=grant.number,
                earlier=grant.earlier,
                notes=(
                    self._split_note,
                    *([self._proportions_note] if self.roles.proportions_differ else []),
                    *([self._copies_note] if self.n_copies else []),
                ),
                start=default.predict(self.scores),
                expected=expected,
            )
        return make_model(
            self.scorer,
            decision,
            plan,
            certificate,
            estimator=self.estimator,
            preference=str(wanted),
            positive=self.positive,
            confidence=confidence,
            duplicates="group" if self.roles.together else "independent",
        )

    @property
    def _copies_note(self) -> str:
        return (
            f"{self.n_copies:,} rows of the certification set equal others in all features and "
            "were left out; equal rows were kept together, so rates are over distinct rows."
        )

    @property
    def _split_note(self) -> str:
        parts = self.roles.parts
        return (
            f"the members were trained on {parts['train']:,} rows, and the threshold was tuned on "
            f"{parts['tune']:,} others."
        )

    @property
    def _proportions_note(self) -> str:
        sizes, certify = self.roles.counts.sum(axis=0).tolist(), self.roles.counts[CERTIFY].tolist()
        counts = [
            f"{n:,} of {size:,} rows of {name_class(label)}"
            for n, size, label in zip(certify, sizes, self.classes, strict=True)
        ]
        return (
            f"{PROPORTIONS_DIFFER} ({' and '.join(counts)}): only rates within a class are those "
            "of the data."
        )


def tune_rows(
    draw: Draw,
    *,
    estimator: Any = None,
    certify: Any = "auto",
    guarantee: Preference | None = None,
    confidence: float = 0.95,
    positive: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callable[[Progress], Any] | None = None,
) -> TunedRows:
    """Train on the training set, and score all other rows.

    Parameters
    ----------
    draw : Draw
        The rows.
    estimator, certify, confidence, positive, n_jobs, random_state
        As in :class:`SteeredClassifier`.
    guarantee : Preference, optional
        The preference to guarantee later.
    callback : callable, optional
        Called after each trained model.
    """
    check_confidence(confidence, OWNER)
    positive = draw.positive(positive)
    labels = tuple(draw.classes.tolist())
    fraction = certification_fraction(
        certify, guarantee, draw.sizes, labels, positive, 1 - confidence
    )
    roles = draw.steering_roles(
        fraction, rates_within_classes(guarantee, draw.sizes, labels, positive)
    )
    if guarantee is not None:
        guarantee.check_counts(Confusion(np.diag(roles.counts[TUNE]), labels, positive))
    X, codes = training_rows(draw, roles)
    start = start_from_table(
        X,
        draw.classes[codes],
        committee=estimator,
        certify=None,
        positive=positive,
        duplicates="group" if draw.together else "independent",
        n_jobs=n_jobs,
        random_state=random_state,
        callback=callback,
    )
    trained = start.candidate.scorer
    scorer = replace(trained, committee=trained.committee.without_training_data())
    scored = draw.blocks.reduce(_score_block, _join_scores, roles, scorer, numbered=True)
    scored, n_certify = scored.of_different_rows(), len(scored.codes)
    tally = _count_scores(draw, roles, scorer, scored.summary)
    if draw.together:  # copies of a row have the same key, and so the counts differ a little
        sets = (codes, None, scored.codes)
        counts = [tally.under[-1] if own is None else np.bincount(own, minlength=2) for own in sets]
        roles = replace(roles, counts=np.stack(counts))
    return TunedRows(
        scorer,
        roles,
        positive,
        tally,
        scored.scores,
        scored.codes,
        start.estimator,
        n_certify - len(scored.codes),
    )


def sample_table(table: Any, features: list[str]) -> RowSample:
    """Sample the rows of a Dask data frame for a ledger, in one pass.

    Parameters
    ----------
    table : Dask data frame
        All columns but the labels.
    features : list of str
        The columns that a model uses.
    """
    return Blocks.of_samples(OWNER, table).reduce(_sample_block, _join_samples, features)


def _sample_block(table: Any, features: list[str]) -> RowSample:
    rows = plain_rows(table)
    return RowSample.of(rows[features], rows)


def _join_samples(samples: list[RowSample]) -> RowSample:
    return RowSample.merged([sample.hashes for sample in samples])


@fit.register
def _fit_steered(
    estimator: SteeredClassifier, X: Any, y: Any, sample_weight: Any = None
) -> SteeredClassifier:
    """Train the members on some rows, set the threshold on others, and certify it on the rest."""
    if sample_weight is not None:
        raise ValueError(f"{OWNER} needs sample_weight to be None; got weights. Leave them out.")
    check_strategies(estimator.strategies, OWNER)
    draw = Draw.of(X, y, estimator.random_state, estimator.duplicates)
    if estimator.preference is None:
        roles = draw.training_roles()
        rows, codes = training_rows(draw, roles)
        fitted, tuning = clone(estimator).fit(rows, draw.classes[codes]), None
    else:
        wanted = Preference(estimator.preference)
        tuned = tune_rows(
            draw,
            estimator=estimator.estimator,
            certify=estimator.certify,
            guarantee=wanted,
            confidence=estimator.confidence,
            positive=estimator.positive,
            n_jobs=estimator.n_jobs,
            random_state=estimator.random_state,
        )
        reply, roles = tuned.reply(wanted, tuned.start.after), tuned.roles
        certify = estimator.certify is not None
        fitted = tuned.accept(reply, estimator.confidence, anyway=True) if certify else reply.model
        tuning = reply.after
    adopt_fit(estimator, fitted, tuning, stacklevel=4)  # of the caller of scale.fit
    estimator.parts_ = roles.parts
    return estimator


@empty_result.register
def _(model: SteeredClassifier, method: str) -> NDArray[Any]:
    if method != "predict":
        return empty_result.dispatch(object)(model, method)
    # of a type that holds every possible prediction
    codes = np.array([0, _labels.REJECTED])[: 1 + model.decision_.rejects]
    return _labels.decode(codes, model.classes_, model.reject_label_)[:0]


def check(model: SteeredClassifier, X: Any, y: Any, *, level: float = 0.05) -> Check:
    """Test on a Dask collection whether the guarantees of a model still hold, in one pass.

    Parameters
    ----------
    model : SteeredClassifier
        A model with a certificate.
    X : Dask array or data frame of shape (n_samples, n_features)
        Samples that have been labelled since the certificate was issued.
    y : Dask array or series of shape (n_samples,)
        True labels.
    level : float in (0, 1), default=0.05
        Largest probability of a false alarm, if the guarantees hold.

    Returns
    -------
    Check
        As from :meth:`margrave.steer.SteeredClassifier.check`.

    Examples
    --------
    >>> import dask.array as da
    >>> from margrave import scale
    >>> from margrave.steer import SteeredClassifier
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(3000, random_state=0)
    >>> model = SteeredClassifier(LogisticRegression(), preference="fp <= 20%", random_state=0)
    >>> model = model.fit(X[:2000], y[:2000])
    >>> X_new, y_new = da.from_array(X[2000:], chunks=250), da.from_array(y[2000:], chunks=250)
    >>> scale.check(model, X_new, y_new).alarm
    False
    """
    owner = "scale.check"
    check_certified(model, owner)
    blocks = Blocks.of_samples(owner, X, y=y)
    predicted, codes, *hashes = blocks.reduce(_check_block, _join_checked, model, owner)
    return check_predictions(
        model, predicted, codes, RowHashes(*hashes) if hashes else None, level, owner
    )


def recertify(
    model: SteeredClassifier, X: Any, y: Any, *, confidence: float | None = None
) -> SteeredClassifier:
    """Compute a new decision and certificate of a model on a Dask collection, in one pass.

    Parameters
    ----------
    model : SteeredClassifier
        A model with a certificate.
    X : Dask array or data frame of shape (n_samples, n_features)
        Samples that have not been used before. At most 1,000,000 of them, drawn at random, are the
        new certification set.
    y : Dask array or series of shape (n_samples,)
        True labels.
    confidence : float in (0, 1), default=None
        Confidence of the new certificate. None is the confidence of the current one.

    Returns
    -------
    SteeredClassifier
        As from :meth:`margrave.steer.SteeredClassifier.recertify`.

    Examples
    --------
    >>> import dask.array as da
    >>> from margrave import scale
    >>> from margrave.steer import SteeredClassifier
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(3000, random_state=0)
    >>> model = SteeredClassifier(
    ...     LogisticRegression(), preference="accuracy >= 80%", random_state=0
    ... )
    >>> model = model.fit(X[:2000], y[:2000])
    >>> X_new, y_new = da.from_array(X[2000:], chunks=250), da.from_array(y[2000:], chunks=250)
    >>> renewed = scale.recertify(model, X_new, y_new, confidence=0.9)
    >>> renewed.certificate_.confidence, renewed.certificate_.confusion.n
    (0.9, 1000)
    """
    owner = "scale.recertify"
    check_certified(model, owner)
    blocks = Blocks.of_samples(owner, X, y=y)
    drawn = blocks.reduce(_draw_block, merge_certifying, model, owner, numbered=True)
    scores, codes, *hashes = drawn.parts
    rows = RowHashes(*hashes) if hashes else None
    return recertify_scores(model, scores, codes, rows, confidence, owner)


def _check_block(X: Any, y: Any, model: SteeredClassifier, owner: str) -> list[NDArray[Any]]:
    rows = plain_rows(X)
    predicted = model.decision_.predict(score_samples(model, rows))
    codes = _labels.encode(_labels.natural(y), model.classes_, f"{owner}, y")
    hashes = hash_samples(model, rows)
    return [predicted, codes, *([] if hashes is None else [hashes.exact, hashes.rounded])]


def _join_checked(parts: list[list[NDArray[Any]]]) -> list[NDArray[Any]]:
    return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]


def _draw_block(number: int, X: Any, y: Any, model: SteeredClassifier, owner: str) -> KeyedRows:
    rows = plain_rows(X)
    codes = _labels.encode(y, model.classes_, f"{owner}, y")
    hashes = hash_samples(model, rows)
    scores = score_samples(model, rows)
    both = [] if hashes is None else [hashes.exact, hashes.rounded]
    return draw_certifying(number, scores, codes, *both)


def training_rows(draw: Draw, roles: Roles) -> tuple[Any, Codes]:
    """Load the training set and its classes, in one pass."""
    parts, codes = draw.blocks.reduce(_load_block, _join_blocks, roles, numbered=True)
    rows = concatenate(parts)
    return rows.reset_index(drop=True) if hasattr(rows, "iloc") else rows, codes


def _load_block(number: int, X: Any, y: Any, roles: Roles) -> tuple[list[Any], Codes] | None:
    role, codes = roles.of(number, X, y)
    at = np.flatnonzero(role == TRAIN)
    return ([plain_rows(select_rows(X, at))], codes[at]) if len(at) else None


def _join_blocks(parts: list[tuple[list[Any], Codes]]) -> tuple[list[Any], Codes]:
    rows = [block for blocks, _ in parts for block in blocks]
    return rows, np.concatenate([codes for _, codes in parts])


@dataclass(frozen=True, eq=False)
class _Scored:
    """A summary of the tuning set's scores, and the scores and classes of the certification set.

    With ``rows``, the hashes of the certification set, unless equal rows are independent.
    """

    summary: SortedSummary
    scores: Floats
    codes: Codes
    rows: NDArray[np.uint64] | None

    def of_different_rows(self) -> _Scored:
        """Keep one of each set of equal rows in the certification set."""
        if self.rows is None:
            return self
        kept = one_of_each(self.rows, 0)
        return _Scored(self.summary, self.scores[kept], self.codes[kept], self.rows[kept])


def _score_rows(
    number: int, X: Any, y: Any, roles: Roles, scorer: Scorer, scored: tuple[int, ...]
) -> tuple[NDArray[np.int64], Codes, Floats, Codes]:
    """Return roles, classes, scores and places of a block's rows that have one of some roles."""
    role, codes = roles.of(number, X, y)
    at = np.flatnonzero(np.isin(role, scored))
    scores = scorer(plain_rows(select_rows(X, at))) if len(at) else np.zeros(0)
    return role[at], codes[at], scores, at


def _score_block(number: int, X: Any, y: Any, roles: Roles, scorer: Scorer) -> _Scored:
    role, codes, scores, at = _score_rows(number, X, y, roles, scorer, (TUNE, CERTIFY))
    tune, certify = role == TUNE, role == CERTIFY
    summary = summary_of(scores[tune], codes[tune])
    rows = hash_rows(plain_rows(select_rows(X, at[certify]))) if roles.together else None
    return _Scored(summary, scores[certify], codes[certify], rows)


def _join_scores(parts: list[_Scored]) -> _Scored:
    rows = [part.rows for part in parts if part.rows is not None]
    return _Scored(
        SortedSummary.merged([part.summary for part in parts]),
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.codes for part in parts]),
        np.concatenate(rows) if rows else None,
    )


def _count_scores(draw: Draw, roles: Roles, scorer: Scorer, summary: SortedSummary) -> Tally:
    """Count the tuning set exactly; the default threshold 0 is always among the thresholds."""
    if summary.is_exact:
        return tally_of(summary)
    ends = np.union1d(summary.values, 0.0)
    return tally_of(
        draw.blocks.reduce(_count_block, Runs.merged, roles, scorer, ends, numbered=True)
    )


def _count_block(number: int, X: Any, y: Any, roles: Roles, scorer: Scorer, ends: Floats) -> Runs:
    _, codes, scores, _ = _score_rows(number, X, y, roles, scorer, (TUNE,))
    return Runs.of(scores, codes, ends)
