"""Strategies that meet a preference, each a small class, and the search that compares them.

A strategy moves the threshold, rejects close calls, or retunes the members as Kulkarni et al.
(2016) do. The first two are the default; the last is slow, and is tried if the user names it. The
comparison is fair: every candidate has out-of-fold scores for the tuning set, and one objective
evaluates them all.

A new strategy is a class with the attributes of `Strategy`. Pass an instance to
``prefer(strategies=...)``, or add it to `STRATEGIES` to select it by name.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from margrave._errors import MargraveError, ParameterError
from margrave._indexing import select_columns
from margrave._messages import did_you_mean, near_names
from margrave._parallel import limit_threads
from margrave._typing import Codes, Floats
from margrave.confusion import Objective, Preference, PreferenceError
from margrave.fuse import fit_log_odds
from margrave.martingale import (
    AdaptiveMartingaleBoostClassifier,
    MartingaleBoostClassifier,
    NotMetWarning,
    TunableLogistic,
)
from margrave.scores import Scores
from margrave.steer._scorer import Scorer, SingleMember
from margrave.steer._thresholds import Decision, best_decision, best_rejecting_decision, evaluate
from margrave.steer._tuning_data import Candidate, TuningData

# Where the tuning set is also the training set, one sample in so many is kept for tuning.
_TUNING_FOLDS = 3
# In tuning a member every improvement counts: the tuned members are compared on out-of-fold
# predictions. A member is tuned once for each fold, so each search is short.
_SEARCHES: dict[type, dict[str, float]] = {
    TunableLogistic: {"min_gain": 0, "patience": 2, "max_models": 8},
    AdaptiveMartingaleBoostClassifier: {"min_gain": 0},
}


def _never() -> bool:
    return False


@dataclass(frozen=True, eq=False)
class Request:
    """A preference to meet on a tuning set, as a strategy receives it.

    Attributes
    ----------
    preference : Preference
        The preference to meet on the tuning set.
    data : TuningData
        The tuning set.
    objective : Objective
        The objective of the preference on the tuning set.
    known : sequence of Candidate
        The candidate that the dialog starts with and the current one, if it has other scores.
    may_reject : bool
        Whether the preference and the user allow rejected samples.
    stopped : callable
        Returns whether the user has cancelled; call it between long steps.
    current : Candidate or None
        The current candidate. For more than two classes and with rejection a search may miss it.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> from sklearn.naive_bayes import GaussianNB
    >>> class StartScores:
    ...     name, slow, rejects = "start scores", False, False
    ...
    ...     def candidates(self, request):
    ...         print(request.preference, "on", len(request.data.codes), "samples")
    ...         start = request.known[0]
    ...         yield request.best_candidate(self.name, start.scorer, start.scores)
    ...
    >>> X, y = load("pima", return_X_y=True)
    >>> dialog = Dialog(GaussianNB().fit(X[::2], y[::2]), X[1::2], y[1::2])
    >>> reply = dialog.prefer("fn <= 30", strategies=[StartScores()])
    fn <= 30 on 384 samples
    """

    preference: Preference
    data: TuningData
    objective: Objective
    known: Sequence[Candidate]
    may_reject: bool = False
    stopped: Callable[[], bool] = _never
    current: Candidate | None = None
    _decisions: dict[Candidate, Decision] = field(default_factory=dict, init=False, repr=False)

    def decide(self, known: Candidate) -> Decision:
        """Find the best decision without rejection on known scores, once."""
        if known not in self._decisions:
            self._decisions[known] = best_decision(self.objective, known.scores)
        return self._decisions[known]

    def best_candidate(self, strategy: str, scorer: Scorer, scores: Floats) -> Candidate:
        """Make a candidate of a scorer, with the best decision on its scores."""
        decision: Decision = best_decision(self.objective, scores)
        if self.may_reject:
            rejecting = best_rejecting_decision(self.objective, scores, decision)
            decision = min(
                decision, rejecting, key=lambda each: evaluate(self.objective, each, scores)
            )
        return Candidate(strategy, scorer, scores, decision)


class Strategy(Protocol):
    """Protocol of a strategy that meets a preference.

    Attributes
    ----------
    name : str
        The name that replies show.
    slow : bool
        Whether it takes long; the first reply does not wait for a slow strategy.
    rejects : bool
        Whether its purpose is to reject samples.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> from sklearn.naive_bayes import GaussianNB
    >>> class KnownScores:
    ...     name, slow, rejects = "known scores", False, False
    ...
    ...     def candidates(self, request):
    ...         for known in request.known:
    ...             yield request.best_candidate(self.name, known.scorer, known.scores)
    ...
    >>> X, y = load("pima", return_X_y=True)
    >>> dialog = Dialog(GaussianNB().fit(X[::2], y[::2]), X[1::2], y[1::2])
    >>> reply = dialog.prefer("fn <= 30", strategies=[KnownScores()])
    >>> reply.strategy, reply.met
    ('known scores', True)
    """

    name: str
    slow: bool
    rejects: bool

    def candidates(self, request: Request) -> Iterator[Candidate]:
        """Yield candidates, each as soon as it is known."""


class MoveThreshold:
    """Move the threshold (for more than two classes, the offsets) on the known scores."""

    name, slow, rejects = "move", False, False

    def candidates(self, request: Request) -> Iterator[Candidate]:
        """Yield the known scores, each with the best decision that rejects nothing."""
        current = request.current  # the search for two classes cannot miss it
        if request.data.k > 2 and current is not None and not current.decision.rejects:
            yield replace(current, strategy=self.name)
        for known in request.known:
            yield Candidate(self.name, known.scorer, known.scores, request.decide(known))


class RejectCloseCalls:
    """Reject samples whose scores are close to the threshold, as the preference allows."""

    name, slow, rejects = "reject", False, True

    def candidates(self, request: Request) -> Iterator[Candidate]:
        """Yield the known scores, each with the best decision that may reject."""
        if request.may_reject and request.current and request.current.decision.rejects:
            yield replace(request.current, strategy=self.name)
        for known in request.known if request.may_reject else ():
            moved = request.decide(known)
            decision = best_rejecting_decision(request.objective, known.scores, moved)
            yield Candidate(self.name, known.scorer, known.scores, decision)


class Retune:
    """Retune the members that have ``tune``: logistic regressions and martingale programs.

    Members that were trained on the tuning set are trained on it again. In a large table it is a
    fifth of the training samples, so they may be weaker; the comparison counts this.
    """

    name, slow, rejects = "retune", True, False

    def candidates(self, request: Request) -> Iterator[Candidate]:
        """Yield each tuned member alone, and in its place in the committee."""
        data, committee = request.data, request.data.committee
        if data.in_time:
            return
        for j, member in enumerate(committee.members):
            if not _is_tunable(member, committee.classes) or request.stopped():
                continue
            tuned, raw = _retune_member(request, member)
            if tuned is None:
                return
            alone = replace(committee, names=[committee.names[j]], members=[tuned])
            single = SingleMember(bool(alone.gives_probabilities[0]))
            scorer = Scorer(alone, single, request.known[0].scorer.decimals)
            scores = np.round(single(raw), scorer.decimals)
            yield request.best_candidate(self.name, scorer, scores)
            if len(committee.members) > 1:
                yield request.best_candidate(self.name, *_replace_member(data, j, tuned, raw))


def _replace_member(
    data: TuningData, j: int, tuned: Any, tuned_raw: Floats
) -> tuple[Scorer, Floats]:
    """Return the committee with another member j, and its scores for the tuning set."""
    committee, raw = data.committee, data.raw.copy()
    raw[:, j] = tuned_raw[:, 0]
    members = [*committee.members[:j], tuned, *committee.members[j + 1 :]]
    changed = replace(data, committee=replace(committee, members=members), raw=raw)
    gives_proba = committee.gives_probabilities
    return changed.cross_fit(lambda at: fit_log_odds(raw[at], gives_proba, data.codes[at]))


def _retune_member(request: Request, member: Any) -> tuple[Any, Floats]:
    """Return a tuned member, and out-of-fold values of the tuning set by members tuned likewise.

    The member is None if the user cancels.
    """
    data = request.data
    classes = data.committee.classes
    wanted = request.preference.in_rates(request.objective.matrix(data.codes))
    parts = []
    everything = np.arange(len(data.codes))
    tuned = None
    for training, held_out in [*data.folds, (everything, everything[:0])]:
        with limit_threads(1):  # matrices are small
            tuned = _tune_on(data, member, wanted, training, request.stopped)
        if request.stopped():
            return None, data.raw
        if len(held_out):
            raw = Scores.of([tuned], data.rows(held_out), classes=classes, ask="values").raw()
            parts.append((held_out, raw))
    return tuned, data.join_folds(parts, 15)


def _tune_on(
    data: TuningData, member: Any, wanted: Preference, at: Codes, stopped: Callable[[], bool]
) -> Any:
    """Tune a member on some samples of the tuning set.

    Where the members were trained on the tuning set, the member is trained on some of these samples
    and tuned on the others, then trained on all of them with the tuned hyperparameters.
    """
    labels = data.committee.classes[data.codes]
    training, tuning = at[:0], at
    if data.trained_on:
        fold = np.empty(len(at), dtype=int)  # class by class, every third sample
        for c in range(data.k):
            of_class = np.flatnonzero(data.codes[at] == c)
            fold[of_class] = np.arange(len(of_class)) % _TUNING_FOLDS
        training, tuning = at[fold > 0], at[fold == 0]
        member = clone(member).fit(data.rows(training), labels[training])
    before, learner = split_pipeline(member)
    rows = select_columns(data.rows(tuning), None, "tuned", member)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMetWarning)  # the search compares all candidates
        tuned = learner.tune(
            wanted,
            rows if before is None else before.transform(rows),
            labels[tuning],
            positive=data.positive,
            callback=lambda _: stopped(),
            **_search_options(learner),
        )
    tuned = _without_offset(tuned)
    whole = join_pipeline(before, tuned)
    if len(training) and hasattr(tuned, "log_penalty"):  # its parameters are the tuned ones
        whole = clone(whole).fit(data.rows(at), labels[at])
    return whole


def _search_options(learner: Any) -> dict[str, float]:
    """The options of `tune` for one of our learners; none for others."""
    return next((own for kind, own in _SEARCHES.items() if isinstance(learner, kind)), {})


def split_pipeline(member: Any) -> tuple[Any, Any]:
    """Split a member into its preprocessing (None if there is none) and its learner."""
    if not isinstance(member, Pipeline):
        return None, member
    return (member[:-1] if len(member) > 1 else None), member[-1]


def join_pipeline(before: Any, learner: Any) -> Any:
    """Join preprocessing, if any, and a learner."""
    return learner if before is None else Pipeline([*before.steps, ("tuned", learner)])


def _is_tunable(member: Any, classes: NDArray[Any]) -> bool:
    """Whether a member's learner has ``tune`` and was trained on all classes."""
    learner = split_pipeline(member)[1]
    return hasattr(learner, "tune") and np.array_equal(learner.classes_, classes)


def _without_offset(tuned: Any) -> Any:
    """Remove the offset that tuning added to a learner's scores; the decision comes later.

    Every fold has an offset of its own, so their scores could not be compared otherwise. The ends
    of a martingale program then predict by votes alone; its nodes stay tuned.
    """
    if isinstance(tuned, MartingaleBoostClassifier | AdaptiveMartingaleBoostClassifier):
        return tuned._without_end_offset()
    offset = np.zeros(len(tuned.classes_))
    if hasattr(tuned, "log_penalty"):  # a class cost adds its logarithm to the log-odds
        offset = -np.log([tuned.class_cost[label] for label in tuned.classes_.tolist()])
        tuned.set_params(offset=dict(zip(tuned.classes_.tolist(), offset.tolist(), strict=True)))
    tuned.offset_ = offset
    return tuned


DEFAULT_STRATEGIES: tuple[Strategy, ...] = (MoveThreshold(), RejectCloseCalls())
STRATEGIES: tuple[Strategy, ...] = (*DEFAULT_STRATEGIES, Retune())


_ATTRIBUTES = ("name", "slow", "rejects", "candidates")


def get_strategies(
    strategies: Sequence[str | Strategy] | str | None, owner: str
) -> tuple[Strategy, ...]:
    """Look up strategies by name, and check those that are objects; None is the default."""
    known = {strategy.name: strategy for strategy in STRATEGIES}
    if strategies is None:
        return DEFAULT_STRATEGIES
    chosen: list[Strategy] = []
    for strategy in [strategies] if isinstance(strategies, str) else strategies:
        if isinstance(strategy, str):
            if strategy not in known:
                near = did_you_mean(near_names(strategy, known))
                raise ParameterError(
                    f"{owner} needs strategies among {', '.join(known)}; got {strategy!r}.{near}",
                    parameter="strategies",
                    allowed=list(known),
                    received=strategy,
                )
            strategy = known[strategy]
        elif not all(hasattr(strategy, name) for name in _ATTRIBUTES):
            allowed = f"names, or objects with the attributes {', '.join(_ATTRIBUTES)}"
            raise ParameterError.of(owner, "strategies", allowed, strategy)
        chosen.append(strategy)
    if not chosen:
        raise ParameterError(
            f"{owner} needs at least one of the strategies; got none.",
            parameter="strategies",
            allowed=list(known),
            received=[],
        )
    return tuple(chosen)


@dataclass(frozen=True, eq=False)
class Found:
    """The best candidate so far in a search.

    Attributes
    ----------
    candidate : Candidate
        The candidate.
    seconds : float
        How long the search has taken.
    n_candidates : int
        How many candidates were compared.
    final : bool
        Whether the search has ended.
    cancelled : bool
        Whether the user stopped the search.
    """

    candidate: Candidate
    seconds: float
    n_candidates: int
    final: bool
    cancelled: bool = False


class StoppedError(MargraveError):
    """The user stopped a training, or a search before its first candidate.

    Attributes
    ----------
    code : str
        "stopped".
    fields : dict
        Of a training, the number of fits ``done`` and their ``total``.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog, StoppedError
    >>> X, y = load("iris", return_X_y=True)
    >>> try:
    ...     Dialog.from_data(X, y, committee="logistic", stop=lambda: True)
    ... except StoppedError as error:
    ...     print(error)
    The training was stopped after 0 of 6 fits.
    """

    __module__ = "margrave.steer"


class Search:
    """Search the candidates of several strategies for the best one.

    `current` is the candidate of the current step. It stays unless another one is better; if the
    request is `settled`, in any case.
    """

    def __init__(
        self,
        wanted: Preference,
        data: TuningData,
        known: Sequence[Candidate],
        strategies: Sequence[Strategy],
        stopped: Callable[[], bool] | None = None,
        current: Candidate | None = None,
        settled: bool = False,
    ) -> None:
        self.wanted, self.strategies = wanted, () if settled else strategies
        self.objective: Objective = data.objective(wanted)
        rejecting = wanted.allows_rejecting and any(strategy.rejects for strategy in strategies)
        self.request = Request(
            wanted,
            data,
            self.objective,
            known,
            may_reject=rejecting,
            stopped=stopped or _never,
            current=current,
        )
        self.best: Candidate | None = current if settled else None
        self.fast: Candidate | None = None
        self.n_candidates = int(settled)
        self.began = perf_counter()

    def run(self) -> Iterator[Found]:
        """Yield better and better candidates; the last one is final.

        All fast strategies are compared before the first candidate is yielded.
        """
        if list(self._improvements(slow=False)) or self.best is not None:
            yield self.found()
        for _ in self._improvements(slow=True):
            yield self.found()
        if self.best is None and self.request.stopped():
            raise StoppedError("The search was stopped before its first candidate.", code="stopped")
        if self.best is None:
            tried = ", ".join(strategy.name for strategy in self.strategies)
            raise PreferenceError(
                f"No strategy applies to '{self.wanted}'; got no candidate from {tried}. "
                "Add other strategies.",
                code="no_candidate",
                preference=str(self.wanted),
                strategies=[strategy.name for strategy in self.strategies],
            )
        yield self.found(final=True, cancelled=self.request.stopped())

    def run_to_end(self) -> Candidate:
        """Return the final candidate; after Ctrl-C in a slow strategy, the best so far."""
        fast_done = False
        try:
            for _ in self.run():
                fast_done = True
        except KeyboardInterrupt:
            if not fast_done:
                raise
        return self.found().candidate

    def found(self, *, final: bool = False, cancelled: bool = False) -> Found:
        """Return the best candidate so far."""
        if self.best is None:
            raise RuntimeError("There is no candidate yet.")
        seconds = perf_counter() - self.began
        return Found(self.best, seconds, self.n_candidates, final, cancelled)

    def _improvements(self, slow: bool) -> Iterator[None]:
        """Try the candidates of the fast or of the slow strategies; yield at each better one."""
        best = None if self.best is None else self.objective.evaluate(self.best.predictions)
        for strategy in self.strategies:
            if strategy.slow != slow:
                continue
            if slow and self.request.stopped():
                return
            for candidate in strategy.candidates(self.request):
                self.n_candidates += 1
                value = self.objective.evaluate(candidate.predictions)
                better = best is None or value < best
                if better and (not slow or self._beats_fast(candidate)):
                    best, self.best = value, candidate
                    if not slow:
                        self.fast = candidate
                    yield
                if slow and self.request.stopped():
                    return

    def _beats_fast(self, candidate: Candidate) -> bool:
        """Whether a candidate is clearly better than the fast ones."""
        return self.fast is None or self.objective.beats(
            candidate.predictions, self.fast.predictions
        )
