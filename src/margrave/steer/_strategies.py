"""Ways to meet a preference, each a small class with one method.

"Interactive Martingale Boosting" tunes its learners; a threshold can be moved, the doubtful can be
rejected, a committee can be weighed anew, or parted into regions with a member each. They are
compared on equal terms: every option carries scores of the tuning samples that were not learned
from them, and the judge is the same.

A new way is a class with a name, whether it is dear (not part of the first reply), whether it
rejects, and ``options(request)``; it is passed to ``prefer(ways=...)``, or added to `WAYS`.
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

from margrave._indexing import columns_for
from margrave._messages import did_you_mean, near_names
from margrave._typing import Codes, Floats
from margrave.confusion import Judge, Preference, PreferenceError
from margrave.fuse._log_odds import Combined, combined, focused
from margrave.martingale import MartingaleBoostClassifier, NotMetWarning
from margrave.scores import Scores
from margrave.select._region_scores import can_be_parted, surely_better
from margrave.steer._scorer import Alone, Mean, Scorer
from margrave.steer._thresholds import Decision, doubtful, moved, verdict
from margrave.steer._tuning_data import Material, Option

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
    material : Material
        The tuning samples.
    judge : Judge
        Of the preference, on them.
    known : sequence of Option
        The start of the dialog and where it stands.
    may_reject : bool
        Whether the preference and the user allow that samples get no answer.
    stopped : callable
        Whether the user has cancelled; to be asked between long steps.
    """

    preference: Preference
    material: Material
    judge: Judge
    known: Sequence[Option]
    may_reject: bool = False
    stopped: Callable[[], bool] = _never

    def decided(self, way: str, scorer: Scorer, held: Floats) -> Option:
        """The best decision on some scores."""
        decision: Decision = moved(self.judge, held)
        if self.may_reject:
            other = doubtful(self.judge, held)
            decision = min(decision, other, key=lambda one: verdict(self.judge, one, held))
        return Option(way, scorer, held, decision)


class Way(Protocol):
    """A way to meet a preference; one of your own has these four.

    Attributes
    ----------
    name : str
        For replies.
    dear : bool
        Whether it takes long, so that the first reply does not wait for it.
    rejects : bool
        Whether it is about giving no answer.
    """

    name: str
    dear: bool
    rejects: bool

    def options(self, request: Request) -> Iterator[Option]:
        """What it offers, the sooner the better."""


class MoveDecision:
    """Move the cut (for more than two classes, the offsets) of the scores there are."""

    name, dear, rejects = "move", False, False

    def options(self, request: Request) -> Iterator[Option]:
        """The known scores with the best decision that answers always."""
        for known in request.known:
            decision = moved(request.judge, known.held)
            yield Option(self.name, known.scorer, known.held, decision)


class RejectDoubtful:
    """Give no answer where scores are close, as far as the preference allows."""

    name, dear, rejects = "reject", False, True

    def options(self, request: Request) -> Iterator[Option]:
        """The known scores with the best band of doubt."""
        for known in request.known if request.may_reject else ():
            decision = doubtful(request.judge, known.held)
            yield Option(self.name, known.scorer, known.held, decision)


class Reweigh:
    """Weigh the committee anew, with the hard end of the class that is limited in focus."""

    name, dear, rejects = "reweigh", True, False

    def options(self, request: Request) -> Iterator[Option]:
        """The committee weighed, if it was not; then with several shares of the hard end."""
        material, start = request.material, request.known[0]
        raw, codes, heard = material.raw, material.codes, material.panel.probabilities
        if raw.shape[1] < 2:
            return
        scorer, held = _weighed(request)
        if scorer is not start.scorer:
            yield request.decided(self.name, scorer, held)
        if material.k > 2:
            return
        toward = _rare_answer(request)
        for hardest in _HARDEST:
            if request.stopped():
                return
            other, told = material.cross_fitted(
                lambda at, h=hardest: focused(raw[at], heard, codes[at], toward, h)  # type: ignore[misc]
            )
            yield request.decided(self.name, *_mean(scorer, held, other, told))


def _weighed(request: Request) -> tuple[Scorer, Floats]:
    """The committee weighed, and its scores of the tuning samples: the start's, if it is that."""
    material, start = request.material, request.known[0]
    if isinstance(start.scorer.combine, Combined):
        return start.scorer, start.held
    raw, heard, codes = material.raw, material.panel.probabilities, material.codes
    return material.cross_fitted(lambda at: combined(raw[at], heard, codes[at], material.k))


def _mean(one: Scorer, held: Floats, other: Scorer, told: Floats) -> tuple[Scorer, Floats]:
    """The mean of two scores of the same committee, also of the tuning samples."""
    both = replace(one, combine=Mean(one.combine, other.combine))
    return both, np.round((held + told) / 2, one.decimals)


def _rare_answer(request: Request) -> int:
    """Of two classes, the one whose false answers are limited most, as a share of the samples."""
    matrix = request.judge.matrix(request.material.codes)  # all right: what is missing is 0
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

    name, dear, rejects = "select", True, False

    def options(self, request: Request) -> Iterator[Option]:
        """The score of the members in charge, and its mean with the committee's.

        Either only if it is better than the committee's, whatever is asked: of scores that are as
        good, the one that looks best for a request owes that to chance.
        """
        material = request.material
        if self.why_not(request) or request.stopped():
            return
        scorer, held = material.by_regions
        if request.stopped():
            return
        weighed, committee = _weighed(request)
        for one, told in ((scorer, held), _mean(weighed, committee, scorer, held)):
            if surely_better(told, committee, material.codes):
                yield request.decided(self.name, one, told)

    def why_not(self, request: Request) -> str:
        """Why it offers nothing; for a message."""
        material = request.material
        if material.raw.shape[1] < 2:
            return "it needs two or more members"
        if not can_be_parted(material.X.X):
            return "it needs samples of numbers, none of them missing"
        if material.by_regions[0].combine.leaves.n < 2:  # type: ignore[attr-defined]
            return "there are no regions in which the members differ"
        return ""


class Retune:
    """Tune the learners that can be: logistic regressions and martingale programs."""

    name, dear, rejects = "retune", True, False

    def options(self, request: Request) -> Iterator[Option]:
        """Each tuned learner alone, and in its place in the committee."""
        material, panel = request.material, request.material.panel
        if material.in_time:
            return
        for j, member in enumerate(panel.members):
            if not _can_be_tuned(member, panel.classes) or request.stopped():
                continue
            tuned, raw = _retuned(request, member)
            if tuned is None:
                return
            alone = replace(panel, names=[panel.names[j]], members=[tuned])
            single = Alone(bool(alone.probabilities[0]))
            scorer = Scorer(alone, single, request.known[0].scorer.decimals)
            held = np.round(single(raw), scorer.decimals)
            yield request.decided(self.name, scorer, held)
            if len(panel.members) > 1:
                yield request.decided(self.name, *_in_committee(material, j, tuned, raw))


def _in_committee(material: Material, j: int, tuned: Any, raw: Floats) -> tuple[Scorer, Floats]:
    """The committee with one member exchanged, and its scores of the tuning samples."""
    panel, told = material.panel, material.raw.copy()
    told[:, j] = raw[:, 0]
    members = [*panel.members[:j], tuned, *panel.members[j + 1 :]]
    changed = replace(material, panel=replace(panel, members=members), raw=told)
    heard = panel.probabilities
    return changed.cross_fitted(
        lambda at: combined(told[at], heard, material.codes[at], material.k)
    )


def _retuned(request: Request, member: Any) -> tuple[Any, Floats]:
    """A tuned member, and what members say about each sample that were tuned without it.

    None if the user cancels.
    """
    material = request.material
    classes = material.panel.classes
    wanted = request.preference.in_rates(request.judge.matrix(material.codes))
    parts = []
    everything = np.arange(len(material.codes))
    tuned = None
    for training, held in [*material.folds, (everything, everything[:0])]:
        with threadpool_limits(1):  # matrices are small
            tuned = _tuned(material, member, wanted, training, request.stopped)
        if request.stopped():
            return None, material.raw
        if len(held):
            told = Scores.of([tuned], material.rows(held), classes=classes, ask="values").raw()
            parts.append((held, told))
    return tuned, material.gathered(parts, 15)


def _tuned(
    material: Material, member: Any, wanted: Preference, at: Codes, stopped: Callable[[], bool]
) -> Any:
    """A member tuned on some of the tuning samples.

    Where these are also what members are trained on, it is trained on a part and tuned on the rest,
    then trained on all of them with the hyperparameters found.
    """
    labels = material.panel.classes[material.codes]
    learned, tuning = at[:0], at
    if material.trained_on:
        turn = np.empty(len(at), dtype=int)  # class by class, every third sample
        for c in range(material.k):
            of_class = np.flatnonzero(material.codes[at] == c)
            turn[of_class] = np.arange(len(of_class)) % _TUNING_FOLDS
        learned, tuning = at[turn > 0], at[turn == 0]
        member = clone(member).fit(material.rows(learned), labels[learned])
    before, learner = split_pipeline(member)
    rows = columns_for(material.rows(tuning), None, "tuned", member)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMetWarning)  # it is judged with the other options
        tuned = learner.tune(
            wanted,
            rows if before is None else before.transform(rows),
            labels[tuning],
            positive=material.positive,
            callback=lambda _: stopped(),
            **(_SEARCH if hasattr(learner, "log_penalty") else {}),
        )
    tuned = _unbiased(tuned)
    whole = join_pipeline(before, tuned)
    if len(learned) and hasattr(tuned, "log_penalty"):  # what was found is in its parameters
        whole = clone(whole).fit(material.rows(at), labels[at])
    return whole


def split_pipeline(member: Any) -> tuple[Any, Any]:
    """What samples pass before the learner (None if nothing), and the learner."""
    if not isinstance(member, Pipeline):
        return None, member
    return (member[:-1] if len(member) > 1 else None), member[-1]


def join_pipeline(before: Any, learner: Any) -> Any:
    """A learner with what samples pass before it."""
    return learner if before is None else Pipeline([*before.steps, ("tuned", learner)])


def _can_be_tuned(member: Any, classes: NDArray[Any]) -> bool:
    """Whether it ends in a learner that is tuned, and knows all classes."""
    learner = split_pipeline(member)[1]
    return hasattr(learner, "tune") and np.array_equal(learner.classes_, classes)


def _unbiased(tuned: Any) -> Any:
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


WAYS: tuple[Way, ...] = (MoveDecision(), RejectDoubtful(), Reweigh(), SelectByRegion(), Retune())


_WAY = ("name", "dear", "rejects", "options")


def chosen(ways: Sequence[str | Way] | str | None, owner: str) -> tuple[Way, ...]:
    """Ways by name, or of one's own; all if None."""
    known = {way.name: way for way in WAYS}
    if ways is None:
        return WAYS
    found: list[Way] = []
    for one in [ways] if isinstance(ways, str) else ways:
        if isinstance(one, str) and one not in known:
            near = did_you_mean(near_names(one, known))
            raise ValueError(
                f"{owner} needs ways to be among {', '.join(known)}; got {one!r}.{near}"
            )
        if not isinstance(one, str) and not all(hasattr(one, name) for name in _WAY):
            raise ValueError(
                f"{owner} needs ways to be names, or objects with name, dear, rejects and options; "
                f"got {one!r}."
            )
        found.append(known[one] if isinstance(one, str) else one)
    if not found:
        raise ValueError(f"{owner} needs at least one way; got none.")
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Found:
    """The best option so far.

    Attributes
    ----------
    option : Option
        The option.
    seconds : float
        How long the search has taken.
    n_options : int
        How many options were compared.
    final : bool
        Whether the search has ended.
    cancelled : bool
        Whether the user stopped it.
    """

    option: Option
    seconds: float
    n_options: int
    final: bool
    cancelled: bool = False


class Search:
    """A request, and the best option so far.

    Parameters
    ----------
    wanted : Preference
        What is asked.
    material : Material
        The tuning samples.
    known : sequence of Option
        The start of the dialog, and where it stands.
    ways : sequence of Way
        Who may make options.
    stopped : callable
        Whether the user has cancelled.
    """

    def __init__(
        self,
        wanted: Preference,
        material: Material,
        known: Sequence[Option],
        ways: Sequence[Way],
        stopped: Callable[[], bool] | None = None,
    ) -> None:
        self.wanted, self.ways = wanted, ways
        self.judge: Judge = material.judge(wanted)
        rejecting = wanted.allows_rejecting and any(way.rejects for way in ways)
        self.request = Request(
            wanted, material, self.judge, known, may_reject=rejecting, stopped=stopped or _never
        )
        self.best: Option | None = None
        self.cheap: Option | None = None
        self.n_options = 0
        self.began = perf_counter()

    def run(self) -> Iterator[Found]:
        """Better and better options; the last one is final.

        The fast strategies are compared before the first one is given.
        """
        if list(self._tried(dear=False)):
            yield self.found()
        for _ in self._tried(dear=True):
            yield self.found()
        if self.best is None:
            raise PreferenceError(
                f"Dialog.prefer needs a way that applies to '{self.wanted}'; "
                f"{', '.join(map(self._nothing, self.ways))} offered nothing."
            )
        yield self.found(final=True, cancelled=self.request.stopped())

    def found(self, *, final: bool = False, cancelled: bool = False) -> Found:
        """The best option so far."""
        if self.best is None:
            raise RuntimeError("There is no option yet.")
        seconds = perf_counter() - self.began
        return Found(self.best, seconds, self.n_options, final, cancelled)

    def _nothing(self, way: Way) -> str:
        """A way that offered nothing, with its reason if it tells one."""
        tells = getattr(way, "why_not", None)
        if tells is None:
            return way.name
        return f"{way.name} ({tells(self.request) or 'it is not better than the others here'})"

    def _tried(self, dear: bool) -> Iterator[bool]:
        """Try the options of the cheap or of the dear ways; True for each that is better."""
        verdict = None if self.best is None else self.judge.verdict(self.best.answers)
        for way in self.ways:
            if way.dear != dear:
                continue
            if dear and self.request.stopped():
                return
            for option in way.options(self.request):
                self.n_options += 1
                found = self.judge.verdict(option.answers)
                better = verdict is None or found < verdict
                if better and (not dear or self._worth_it(option)):
                    verdict, self.best = found, option
                    if not dear:
                        self.cheap = option
                    yield True
                if dear and self.request.stopped():
                    return

    def _worth_it(self, option: Option) -> bool:
        """Whether an option meets more than the cheap ways' best, or costs less beyond chance.

        Of several options that are as good, the one that looks best on these samples owes that to
        chance. So a dear one has to be better by two standard errors of the difference: of the
        samples that only one of the two gets wrong, each would be as likely to be either's.
        """
        if self.cheap is None:
            return True
        cheap, found = (self.judge.verdict(one.answers) for one in (self.cheap, option))
        if found.shortfall < cheap.shortfall:
            return True
        before, after = (self.judge.unspoken(one.answers) for one in (self.cheap, option))
        fewer, more = int((before & ~after).sum()), int((after & ~before).sum())
        return fewer > more and (fewer - more) ** 2 > 4 * (fewer + more)
