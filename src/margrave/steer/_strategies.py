"""Ways to meet a preference, each a small class with one method.

"Interactive Martingale Boosting" tunes its learners; a threshold can be moved, the doubtful can be
rejected, a committee can be weighed anew, or parted into regions with a member each. They are
compared on equal terms: every option carries scores of the tuning samples that were not learned
from them, and the judge is the same.

A new way is a class with a name, whether it is dear (not part of the first reply), whether it
rejects, and ``options(request)``; it is passed to ``prefer(ways=...)``, or added to `STRATEGIES`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from margrave._indexing import select_columns
from margrave._messages import did_you_mean, near_names
from margrave._typing import Codes, Floats
from margrave.confusion import Objective, Preference, PreferenceError
from margrave.fuse._log_odds import LogOddsCombination, fit_focused_log_odds, fit_log_odds
from margrave.martingale import MartingaleBoostClassifier, NotMetWarning
from margrave.scores import Scores
from margrave.select._region_scores import can_split, significantly_better
from margrave.steer._scorer import MeanScore, Scorer, SingleMember
from margrave.steer._thresholds import Decision, best_decision, best_rejecting_decision, evaluate
from margrave.steer._tuning_data import Candidate, TuningData

# Shares of a class that a re-weighed committee looks at: the hard end, and a little more.
_HARDEST = (0.1, 0.3)
# A learner that is tuned on samples it was trained beside keeps one in so many for tuning.
_TUNING_FOLDS = 3
# It is tuned once for each fold, so each search is a short one.
_SEARCH = {"patience": 2, "max_models": 8}


def _never() -> bool:
    return False


@dataclass(frozen=True, eq=False)
class Request:
    """What a way is asked.

    Attributes
    ----------
    preference : Preference
        What is wanted on the tuning samples.
    data : TuningData
        The tuning samples.
    objective : Objective
        Of the preference, on them.
    known : sequence of Candidate
        The start of the dialog and where it stands.
    may_reject : bool
        Whether the preference and the user allow that samples get no answer.
    stopped : callable
        Whether the user has cancelled; to be asked between long steps.
    """

    preference: Preference
    data: TuningData
    objective: Objective
    known: Sequence[Candidate]
    may_reject: bool = False
    stopped: Callable[[], bool] = _never

    def best_candidate(self, strategy: str, scorer: Scorer, held: Floats) -> Candidate:
        """The best decision on some scores."""
        decision: Decision = best_decision(self.objective, held)
        if self.may_reject:
            other = best_rejecting_decision(self.objective, held)
            decision = min(decision, other, key=lambda one: evaluate(self.objective, one, held))
        return Candidate(strategy, scorer, held, decision)


class Strategy(Protocol):
    """A way to meet a preference; one of your own has these four.

    Attributes
    ----------
    name : str
        For replies.
    slow : bool
        Whether it takes long, so that the first reply does not wait for it.
    rejects : bool
        Whether it is about giving no answer.
    """

    name: str
    slow: bool
    rejects: bool

    def candidates(self, request: Request) -> Iterator[Candidate]:
        """What it offers, the sooner the better."""


class MoveThreshold:
    """Move the cut (for more than two classes, the offsets) of the scores there are."""

    name, slow, rejects = "move", False, False

    def candidates(self, request: Request) -> Iterator[Candidate]:
        """The known scores with the best decision that answers always."""
        for known in request.known:
            decision = best_decision(request.objective, known.scores)
            yield Candidate(self.name, known.scorer, known.scores, decision)


class RejectCloseCalls:
    """Give no answer where scores are close, as far as the preference allows."""

    name, slow, rejects = "reject", False, True

    def candidates(self, request: Request) -> Iterator[Candidate]:
        """The known scores with the best band of doubt."""
        for known in request.known if request.may_reject else ():
            decision = best_rejecting_decision(request.objective, known.scores)
            yield Candidate(self.name, known.scorer, known.scores, decision)


class Reweight:
    """Weigh the committee anew, with the hard end of the class that is limited in focus."""

    name, slow, rejects = "reweight", True, False

    def candidates(self, request: Request) -> Iterator[Candidate]:
        """The committee weighed, if it was not; then with several shares of the hard end."""
        data, start = request.data, request.known[0]
        raw, codes, heard = data.raw, data.codes, data.committee.gives_probabilities
        if raw.shape[1] < 2:
            return
        scorer, held = _weighted_committee(request)
        if scorer is not start.scorer:
            yield request.best_candidate(self.name, scorer, held)
        if data.k > 2:
            return
        toward = _strictest_class(request)
        for hardest in _HARDEST:
            if request.stopped():
                return
            other, told = data.cross_fit(
                lambda at, h=hardest: fit_focused_log_odds(raw[at], heard, codes[at], toward, h)  # type: ignore[misc]
            )
            yield request.best_candidate(self.name, *_mean(scorer, held, other, told))


def _weighted_committee(request: Request) -> tuple[Scorer, Floats]:
    """The committee weighed, and its scores of the tuning samples: the start's, if it is that."""
    data, start = request.data, request.known[0]
    if isinstance(start.scorer.combine, LogOddsCombination):
        return start.scorer, start.scores
    raw, heard, codes = data.raw, data.committee.gives_probabilities, data.codes
    return data.cross_fit(lambda at: fit_log_odds(raw[at], heard, codes[at], data.k))


def _mean(one: Scorer, held: Floats, other: Scorer, told: Floats) -> tuple[Scorer, Floats]:
    """The mean of two scores of the same committee, also of the tuning samples."""
    both = replace(one, combine=MeanScore(one.combine, other.combine))
    return both, np.round((held + told) / 2, one.decimals)


def _strictest_class(request: Request) -> int:
    """Of two classes, the one whose false answers are limited most, as a share of the samples."""
    matrix = request.objective.matrix(request.data.codes)  # all right: what is missing is 0
    sizes = matrix.counts.sum(axis=1)
    strictest, found = np.inf, 1
    for bound in request.preference.bounds:
        amount, base = (mask[:, :2] for mask in bound.cells(matrix))
        wrong = (amount if bound.at_most else base) & ~np.eye(2, dtype=bool)
        limit = float(bound.limit) / (1 if bound.share else float(sizes[base.any(axis=1)].sum()))
        limit = limit if bound.at_most else 1 - limit
        for answer in np.flatnonzero(wrong.any(axis=0)):
            if limit < strictest:
                strictest, found = limit, int(answer)
    return found


class SelectByRegion:
    """Part the samples' space into regions, with one member in charge of each."""

    name, slow, rejects = "select", True, False

    def candidates(self, request: Request) -> Iterator[Candidate]:
        """The score of the members in charge, and its mean with the committee's.

        Either only if it is better than the committee's, whatever is asked: of scores that are as
        good, the one that looks best for a request owes that to chance.
        """
        data = request.data
        if self.why_not(request) or request.stopped():
            return
        scorer, held = data.region_scores
        if request.stopped():
            return
        weighed, committee = _weighted_committee(request)
        for one, told in ((scorer, held), _mean(weighed, committee, scorer, held)):
            if significantly_better(told, committee, data.codes):
                yield request.best_candidate(self.name, one, told)

    def why_not(self, request: Request) -> str:
        """Why it offers nothing; for a message."""
        data = request.data
        if data.raw.shape[1] < 2:
            return "it needs two or more members"
        if not can_split(data.X.X):
            return "it needs samples of numbers, none of them missing"
        if data.region_scores[0].combine.leaves.n < 2:  # type: ignore[attr-defined]
            return "there are no regions in which the members differ"
        return ""


class Retune:
    """Tune the learners that can be: logistic regressions and martingale programs."""

    name, slow, rejects = "retune", True, False

    def candidates(self, request: Request) -> Iterator[Candidate]:
        """Each tuned learner alone, and in its place in the committee."""
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
            held = np.round(single(raw), scorer.decimals)
            yield request.best_candidate(self.name, scorer, held)
            if len(committee.members) > 1:
                yield request.best_candidate(self.name, *_in_committee(data, j, tuned, raw))


def _in_committee(data: TuningData, j: int, tuned: Any, raw: Floats) -> tuple[Scorer, Floats]:
    """The committee with one member exchanged, and its scores of the tuning samples."""
    committee, told = data.committee, data.raw.copy()
    told[:, j] = raw[:, 0]
    members = [*committee.members[:j], tuned, *committee.members[j + 1 :]]
    changed = replace(data, committee=replace(committee, members=members), raw=told)
    heard = committee.gives_probabilities
    return changed.cross_fit(lambda at: fit_log_odds(told[at], heard, data.codes[at], data.k))


def _retune_member(request: Request, member: Any) -> tuple[Any, Floats]:
    """A tuned member, and what members say about each sample that were tuned without it.

    None if the user cancels.
    """
    data = request.data
    classes = data.committee.classes
    wanted = request.preference.in_rates(request.objective.matrix(data.codes))
    parts = []
    everything = np.arange(len(data.codes))
    tuned = None
    for training, held in [*data.folds, (everything, everything[:0])]:
        with threadpool_limits(1):  # matrices are small
            tuned = _tune_on(data, member, wanted, training, request.stopped)
        if request.stopped():
            return None, data.raw
        if len(held):
            told = Scores.of([tuned], data.rows(held), classes=classes, ask="values").raw()
            parts.append((held, told))
    return tuned, data.gathered(parts, 15)


def _tune_on(
    data: TuningData, member: Any, wanted: Preference, at: Codes, stopped: Callable[[], bool]
) -> Any:
    """A member tuned on some of the tuning samples.

    Where these are also what members are trained on, it is trained on a part and tuned on the rest,
    then trained on all of them with the hyperparameters found.
    """
    labels = data.committee.classes[data.codes]
    learned, tuning = at[:0], at
    if data.trained_on:
        turn = np.empty(len(at), dtype=int)  # class by class, every third sample
        for c in range(data.k):
            of_class = np.flatnonzero(data.codes[at] == c)
            turn[of_class] = np.arange(len(of_class)) % _TUNING_FOLDS
        learned, tuning = at[turn > 0], at[turn == 0]
        member = clone(member).fit(data.rows(learned), labels[learned])
    before, learner = split_pipeline(member)
    rows = select_columns(data.rows(tuning), None, "tuned", member)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMetWarning)  # it is judged with the other options
        tuned = learner.tune(
            wanted,
            rows if before is None else before.transform(rows),
            labels[tuning],
            positive=data.positive,
            callback=lambda _: stopped(),
            **(_SEARCH if hasattr(learner, "log_penalty") else {}),
        )
    tuned = _without_offset(tuned)
    whole = join_pipeline(before, tuned)
    if len(learned) and hasattr(tuned, "log_penalty"):  # what was found is in its parameters
        whole = clone(whole).fit(data.rows(at), labels[at])
    return whole


def split_pipeline(member: Any) -> tuple[Any, Any]:
    """What samples pass before the learner (None if nothing), and the learner."""
    if not isinstance(member, Pipeline):
        return None, member
    return (member[:-1] if len(member) > 1 else None), member[-1]


def join_pipeline(before: Any, learner: Any) -> Any:
    """A learner with what samples pass before it."""
    return learner if before is None else Pipeline([*before.steps, ("tuned", learner)])


def _is_tunable(member: Any, classes: NDArray[Any]) -> bool:
    """Whether it ends in a learner that is tuned, and knows all classes."""
    learner = split_pipeline(member)[1]
    return hasattr(learner, "tune") and np.array_equal(learner.classes_, classes)


def _without_offset(tuned: Any) -> Any:
    """A tuned learner without what shifts all its scores: the decision is made on them later.

    Else scores of folds, each with its own, could not be compared. The ends of a program then
    answer by votes alone; what was tuned at its nodes stays.
    """
    if isinstance(tuned, MartingaleBoostClassifier):
        return tuned._unbiased()
    offset = np.zeros(len(tuned.classes_))
    if hasattr(tuned, "log_penalty"):  # a cost moves the log-odds by its logarithm
        offset = -np.log([tuned.class_cost[label] for label in tuned.classes_.tolist()])
        tuned.set_params(offset=dict(zip(tuned.classes_.tolist(), offset.tolist(), strict=True)))
    tuned.offset_ = offset
    return tuned


STRATEGIES: tuple[Strategy, ...] = (
    MoveThreshold(),
    RejectCloseCalls(),
    Reweight(),
    SelectByRegion(),
    Retune(),
)


_ATTRIBUTES = ("name", "slow", "rejects", "candidates")


def get_strategies(
    strategies: Sequence[str | Strategy] | str | None, owner: str
) -> tuple[Strategy, ...]:
    """Ways by name, or of one's own; all if None."""
    known = {strategy.name: strategy for strategy in STRATEGIES}
    if strategies is None:
        return STRATEGIES
    found: list[Strategy] = []
    for one in [strategies] if isinstance(strategies, str) else strategies:
        if isinstance(one, str) and one not in known:
            near = did_you_mean(near_names(one, known))
            raise ValueError(
                f"{owner} needs strategies to be among {', '.join(known)}; got {one!r}.{near}"
            )
        if not isinstance(one, str) and not all(hasattr(one, name) for name in _ATTRIBUTES):
            raise ValueError(
                f"{owner} needs strategies to be names, or objects with name, slow, rejects and "
                f"candidates; got {one!r}."
            )
        found.append(known[one] if isinstance(one, str) else one)
    if not found:
        raise ValueError(f"{owner} needs at least one strategy; got none.")
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Found:
    """The best option so far.

    Attributes
    ----------
    candidate : Candidate
        The option.
    seconds : float
        How long the search has taken.
    n_candidates : int
        How many options were compared.
    final : bool
        Whether the search has ended.
    cancelled : bool
        Whether the user stopped it.
    """

    candidate: Candidate
    seconds: float
    n_candidates: int
    final: bool
    cancelled: bool = False


class Search:
    """A request, and the best option so far.

    Parameters
    ----------
    wanted : Preference
        What is asked.
    data : TuningData
        The tuning samples.
    known : sequence of Candidate
        The start of the dialog, and where it stands.
    strategies : sequence of Strategy
        Who may make options.
    stopped : callable
        Whether the user has cancelled.
    """

    def __init__(
        self,
        wanted: Preference,
        data: TuningData,
        known: Sequence[Candidate],
        strategies: Sequence[Strategy],
        stopped: Callable[[], bool] | None = None,
    ) -> None:
        self.wanted, self.strategies = wanted, strategies
        self.objective: Objective = data.objective(wanted)
        rejecting = wanted.allows_rejecting and any(strategy.rejects for strategy in strategies)
        self.request = Request(
            wanted, data, self.objective, known, may_reject=rejecting, stopped=stopped or _never
        )
        self.best: Candidate | None = None
        self.fast: Candidate | None = None
        self.n_candidates = 0
        self.began = perf_counter()

    def run(self) -> Iterator[Found]:
        """Better and better options; the last one is final.

        The fast strategies are compared before the first one is given.
        """
        if list(self._tried(slow=False)):
            yield self.found()
        for _ in self._tried(slow=True):
            yield self.found()
        if self.best is None:
            raise PreferenceError(
                f"Dialog.prefer needs a way that applies to '{self.wanted}'; "
                f"{', '.join(map(self._nothing, self.strategies))} offered nothing."
            )
        yield self.found(final=True, cancelled=self.request.stopped())

    def found(self, *, final: bool = False, cancelled: bool = False) -> Found:
        """The best option so far."""
        if self.best is None:
            raise RuntimeError("There is no option yet.")
        seconds = perf_counter() - self.began
        return Found(self.best, seconds, self.n_candidates, final, cancelled)

    def _nothing(self, strategy: Strategy) -> str:
        """A way that offered nothing, with its reason if it tells one."""
        tells = getattr(strategy, "why_not", None)
        if tells is None:
            return strategy.name
        return f"{strategy.name} ({tells(self.request) or 'it is not better than the others here'})"

    def _tried(self, slow: bool) -> Iterator[bool]:
        """Try the options of the cheap or of the dear ways; True for each that is better."""
        evaluate = None if self.best is None else self.objective.evaluate(self.best.predictions)
        for strategy in self.strategies:
            if strategy.slow != slow:
                continue
            if slow and self.request.stopped():
                return
            for candidate in strategy.candidates(self.request):
                self.n_candidates += 1
                found = self.objective.evaluate(candidate.predictions)
                better = evaluate is None or found < evaluate
                if better and (not slow or self._worth_it(candidate)):
                    evaluate, self.best = found, candidate
                    if not slow:
                        self.fast = candidate
                    yield True
                if slow and self.request.stopped():
                    return

    def _worth_it(self, candidate: Candidate) -> bool:
        """Whether an option meets more than the cheap ways' best, or costs less beyond chance.

        Of several options that are as good, the one that looks best on these samples owes that to
        chance. So a dear one has to be better by two standard errors of the difference: of the
        samples that only one of the two gets wrong, each would be as likely to be either's.
        """
        if self.fast is None:
            return True
        fast, found = (self.objective.evaluate(one.predictions) for one in (self.fast, candidate))
        if found.shortfall < fast.shortfall:
            return True
        before, after = (self.objective.is_cost(one.predictions) for one in (self.fast, candidate))
        fewer, more = int((before & ~after).sum()), int((after & ~before).sum())
        return fewer > more and (fewer - more) ** 2 > 4 * (fewer + more)
