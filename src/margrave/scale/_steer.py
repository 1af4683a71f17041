"""Steering by threshold where the rows do not fit into memory: Dask collections.

Members are trained on a bounded number of rows, in memory. All rows that are tuned on are scored
block by block, and the cut is chosen by exact counts. A bounded number certifies, with one score of
each in memory. Where that bound is reached, a rare class still certifies with its whole share if
all that is promised are rates within a class; for other promises the classes keep their proportion,
and few of a rare one are left. Three or four passes: the labels, the rows to train on, the scores,
and once more the scores if there are too many different ones to keep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from margrave._dask.summary import SortedSummary
from margrave._indexing import select_rows
from margrave._typing import Codes, Floats
from margrave.committee import Progress
from margrave.confusion import Confusion, Objective, Preference, Tally
from margrave.scale._frontier import Runs, summary_of, tally_of
from margrave.scale._predict import plain_rows
from margrave.scale._roles import CERTIFY, OWNER, TRAIN, TUNE, Draw, Roles
from margrave.steer._certify import APART, check_confidence, issue_certificate, make_plan
from margrave.steer._dialog import Dialog
from margrave.steer._order_statistic import GuaranteeError
from margrave.steer._reply import Reply
from margrave.steer._scorer import Scorer
from margrave.steer._split import certification_fraction, rates_within_classes
from margrave.steer._steered import SteeredClassifier
from margrave.steer._strategies import get_strategies
from margrave.steer._thresholds import Threshold, best_threshold
from margrave.steer._tuning_data import Candidate

MOVE = "move"


def check_strategies(strategies: Any, owner: str) -> None:
    """Refuse ways that look at the tuning samples themselves."""
    names = (
        []
        if strategies is None
        else [strategy.name for strategy in get_strategies(strategies, owner)]
    )
    others = [name for name in names if name != MOVE]
    if others:
        raise ValueError(
            f"{owner} needs to be left out, or to be {MOVE!r}, for rows that do not fit into "
            f"memory; got {', '.join(map(repr, others))}. margrave.scale.sample draws rows into "
            "memory for the other strategies."
        )


@dataclass(frozen=True, eq=False)
class TunedRows:
    """A trained scorer, and what it says about all rows that it was not trained on.

    Attributes
    ----------
    scorer : Scorer
        Of new samples.
    roles : Roles
        Who saw which rows.
    positive : label
        The class that ``fp`` and ``fn`` speak of.
    tally : Tally
        The scores of the rows that are tuned on, of either class.
    scores, codes : ndarray
        Of the rows that certify.
    estimator : classifier, list or None
        What is steered, not trained.
    """

    scorer: Scorer
    roles: Roles
    positive: Any
    tally: Tally
    scores: Floats
    codes: Codes
    estimator: Any = None

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes."""
        return tuple(self.roles.classes.tolist())

    def matrix(self, threshold: float) -> Confusion:
        """The confusion matrix of the tuning rows at a cut between runs of their scores."""
        under = self.tally.upto(threshold)
        counts = np.column_stack([under, self.tally.under[-1] - under])
        return Confusion(counts, self.classes, self.positive)

    @property
    def start(self) -> Reply:
        """The tuning rows before anything is asked."""
        matrix = self.matrix(0.0)
        return Reply(None, True, matrix, matrix, "start", 0.0, 1, True, candidate=self._at(0.0))

    def _at(self, threshold: float) -> Candidate:
        held, _, _ = self._entries
        return Candidate(MOVE, self.scorer, held, Threshold(threshold, threshold))

    @property
    def _entries(self) -> tuple[Floats, Codes, NDArray[np.int64]]:
        """The tally as scores, classes and how many samples each stands for."""
        place, codes = np.nonzero(self.tally.counts)
        return self.tally.highs[place], codes, self.tally.counts[place, codes]

    def objective(self, wanted: Preference) -> Objective:
        """The judge of a preference on the tuning rows."""
        _, codes, counts = self._entries
        return Objective(wanted, codes, self.classes, self.positive, counts)

    def reply(self, wanted: Preference, before: Confusion) -> Reply:
        """The best cut for a preference."""
        began = perf_counter()
        wanted.check_counts(before)
        decision = best_threshold(self.objective(wanted), self.tally)
        after, n_candidates = self.matrix(decision.high), len(self.tally.thresholds)
        took, candidate = perf_counter() - began, self._at(decision.high)
        met = wanted.met(after)
        return Reply(
            wanted, met, before, after, MOVE, took, n_candidates, True, candidate=candidate
        )

    def accepted(self, reply: Reply, confidence: float) -> SteeredClassifier:
        """The model of a reply with a promise, set on the rows that certify."""
        wanted, candidate = reply.preference, reply.candidate
        if wanted is None:
            raise RuntimeError("There is nothing to promise.")
        sizes = self.roles.counts.sum(axis=0)
        if self.roles.apart and not rates_within_classes(
            wanted, sizes, self.classes, self.positive
        ):
            raise GuaranteeError(
                f"'{wanted}' cannot be promised on these certify samples: {APART}, and not all of "
                "it are rates within a class."
            )
        n, objective = len(self.codes), self.objective(wanted)
        plan = make_plan(
            wanted, candidate.decision, candidate.scores, objective, n, may_reject=False
        )
        plain = Threshold(0.0, 0.0)
        decision, certificate = issue_certificate(
            plan,
            self.scores,
            self.codes,
            requested=str(wanted),
            strategy=reply.strategy,
            tuning=reply.after,
            confidence=confidence,
            delta=1 - confidence,
            number=1,
            notes=(self.told, *([self.told_apart] if self.roles.apart else [])),
            start=plan.matrix(plain.predict(self.scores), self.codes),
        )
        return SteeredClassifier._from_parts(
            self.scorer,
            decision,
            plan,
            certificate,
            estimator=self.estimator,
            preference=str(wanted),
            positive=self.positive,
            confidence=confidence,
        )

    @property
    def told(self) -> str:
        """The parts, in words."""
        parts = self.roles.parts
        return (
            f"the members were trained on {parts['train']:,} rows, and the cut was tuned on "
            f"{parts['tune']:,} others."
        )

    @property
    def told_apart(self) -> str:
        """In which proportion the classes certify, in words."""
        sizes, certify = self.roles.counts.sum(axis=0).tolist(), self.roles.counts[CERTIFY].tolist()
        each = [
            f"{n:,} of {size:,} rows of {label}"
            for n, size, label in zip(certify, sizes, self.classes, strict=True)
        ]
        return f"{APART} ({' and '.join(each)}): only rates within a class are those of the data."


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
    """Train on some rows, and score all others.

    Parameters
    ----------
    draw : Draw
        The rows.
    estimator, certify, confidence, positive, n_jobs, random_state
        As in :class:`SteeredClassifier`.
    guarantee : Preference, optional
        What is going to be asked for.
    callback : callable, optional
        Called after each model that is trained.
    """
    check_confidence(confidence, OWNER)
    positive = draw.positive(positive)
    labels = tuple(draw.classes.tolist())
    share = certification_fraction(certify, guarantee, draw.sizes, labels, positive, 1 - confidence)
    roles = draw.shared(share, rates_within_classes(guarantee, draw.sizes, labels, positive))
    if guarantee is not None:
        guarantee.check_counts(Confusion(np.diag(roles.counts[TUNE]), labels, positive))
    X, codes = training_rows(draw, roles)
    dialog = Dialog.from_data(
        X,
        draw.classes[codes],
        committee=estimator,
        certify=None,
        positive=positive,
        n_jobs=n_jobs,
        random_state=random_state,
        callback=callback,
    )
    model, steered = dialog.model, dialog._ledger.estimator
    scorer = Scorer(
        model.scorer_.committee.without_training_data(),
        model.scorer_.combine,
        model.scorer_.decimals,
    )
    found = draw.blocks.reduce(_score_block, _join_scores, roles, scorer, numbered=True)
    tally = _tally(draw, roles, scorer, found.summary)
    return TunedRows(scorer, roles, positive, tally, found.scores, found.codes, steered)


def fit_steered(
    model: SteeredClassifier, X: Any, y: Any
) -> tuple[SteeredClassifier, Confusion | None]:
    """What a classifier learns from Dask collections, and the matrix of the tuning rows."""
    check_strategies(model.strategies, f"{OWNER}'s strategies")
    draw = Draw.of(X, y, model.random_state)
    if model.preference is None:
        roles = draw.trained()
        rows, codes = training_rows(draw, roles)
        made = clone(model).fit(rows, draw.classes[codes])
        made.parts_ = roles.parts
        return made, None
    wanted = Preference(model.preference)
    found = tune_rows(
        draw,
        estimator=model.estimator,
        certify=model.certify,
        guarantee=wanted,
        confidence=model.confidence,
        positive=model.positive,
        n_jobs=model.n_jobs,
        random_state=model.random_state,
    )
    reply = found.reply(wanted, found.start.after)
    made = reply.model if model.certify is None else found.accepted(reply, model.confidence)
    made.parts_ = found.roles.parts
    return made, reply.after


def training_rows(draw: Draw, roles: Roles) -> tuple[Any, Codes]:
    """The rows to train on, in memory, and their classes: one pass."""
    parts, codes = draw.blocks.reduce(_take_block, _join_blocks, roles, numbered=True)
    return _concatenate(parts), codes


def _take_block(number: int, X: Any, y: Any, roles: Roles) -> tuple[list[Any], Codes] | None:
    role, codes = roles.of(number, y)
    at = np.flatnonzero(role == TRAIN)
    return ([plain_rows(select_rows(X, at))], codes[at]) if len(at) else None


def _join_blocks(parts: list[tuple[list[Any], Codes]]) -> tuple[list[Any], Codes]:
    return [one for part, _ in parts for one in part], np.concatenate([codes for _, codes in parts])


def _concatenate(parts: Sequence[Any]) -> Any:
    if not hasattr(parts[0], "iloc"):
        return np.concatenate(parts)
    import pandas

    return pandas.concat(parts, ignore_index=True)


@dataclass(frozen=True, eq=False)
class _Scored:
    """Rows that were not trained on: a summary of those to tune on, and those that certify."""

    summary: SortedSummary
    scores: Floats
    codes: Codes


def _others(
    number: int, X: Any, y: Any, roles: Roles, scorer: Scorer, wanted: tuple[int, ...]
) -> tuple[NDArray[np.int64], Codes, Floats]:
    """Roles, classes and scores of a block's rows with some of the roles."""
    role, codes = roles.of(number, y)
    at = np.flatnonzero(np.isin(role, wanted))
    scores = scorer(plain_rows(select_rows(X, at))) if len(at) else np.zeros(0)
    return role[at], codes[at], scores


def _score_block(number: int, X: Any, y: Any, roles: Roles, scorer: Scorer) -> _Scored:
    role, codes, scores = _others(number, X, y, roles, scorer, (TUNE, CERTIFY))
    tune, certify = role == TUNE, role == CERTIFY
    return _Scored(summary_of(scores[tune], codes[tune]), scores[certify], codes[certify])


def _join_scores(parts: list[_Scored]) -> _Scored:
    return _Scored(
        SortedSummary.merged([one.summary for one in parts]),
        np.concatenate([one.scores for one in parts]),
        np.concatenate([one.codes for one in parts]),
    )


def _tally(draw: Draw, roles: Roles, scorer: Scorer, summary: SortedSummary) -> Tally:
    """The tuning rows, counted exactly; where nothing is moved, at 0, is a cut too."""
    if summary.is_exact:
        return tally_of(summary)
    ends = np.union1d(summary.values, 0.0)
    return tally_of(draw.blocks.reduce(_run, Runs.merged, roles, scorer, ends, numbered=True))


def _run(number: int, X: Any, y: Any, roles: Roles, scorer: Scorer, ends: Floats) -> Runs:
    _, codes, scores = _others(number, X, y, roles, scorer, (TUNE,))
    return Runs.of(scores, codes, ends)
