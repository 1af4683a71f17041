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
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from margrave._asking import columns_for
from margrave._judge import Judge
from margrave._near import did_you_mean, near_names
from margrave._typing import Codes, Floats
from margrave.martingale import MartingaleBoostClassifier, NotMetWarning
from margrave.preference import Preference
from margrave.scores import Scores
from margrave.steer._combining import Alone, Combined, Mean, combined, focused
from margrave.steer._decision import Decision, doubtful, moved, verdict
from margrave.steer._material import Material, Option
from margrave.steer._panel import Scorer
from margrave.steer._selecting import can_be_parted, selected, surely_better

# Shares of a class that a re-weighed committee looks at: the hard end, and a little more.
_HARDEST = (0.1, 0.3)
# A learner that is tuned on samples it was trained beside keeps one in so many for tuning.
_TUNING_FOLDS = 3
# It is tuned once for each fold, so each search is a short one.
_SEARCH = {"patience": 2, "max_models": 8}
# What was found for samples that are still steered.
_PARTED: WeakKeyDictionary[Material, tuple[Scorer, Floats]] = WeakKeyDictionary()


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
    stopped: Callable[[], bool] = bool  # never, since bool() is False

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
        scorer, held = _parted(material)
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
        if _parted(material)[0].combine.leaves.n < 2:  # type: ignore[attr-defined]
            return "there are no regions in which the members differ"
        return ""


def _parted(material: Material) -> tuple[Scorer, Floats]:
    """The score by regions, and scores of the tuning samples; whatever is asked, it is the same."""
    if material not in _PARTED:
        raw, codes, heard = material.raw, material.codes, material.panel.probabilities
        _PARTED[material] = material.cross_fitted(
            lambda at: selected(raw[at], heard, codes[at], material.k, material.rows(at))
        )
    return _PARTED[material]


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
    before, learner = parted(member)
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
    whole = joined(before, tuned)
    if len(learned) and hasattr(tuned, "log_penalty"):  # what was found is in its parameters
        whole = clone(whole).fit(material.rows(at), labels[at])
    return whole


def parted(member: Any) -> tuple[Any, Any]:
    """What samples pass before the learner (None if nothing), and the learner."""
    if not isinstance(member, Pipeline):
        return None, member
    return (member[:-1] if len(member) > 1 else None), member[-1]


def joined(before: Any, learner: Any) -> Any:
    """A learner with what samples pass before it."""
    return learner if before is None else Pipeline([*before.steps, ("tuned", learner)])


def _can_be_tuned(member: Any, classes: NDArray[Any]) -> bool:
    """Whether it ends in a learner that is tuned, and knows all classes."""
    learner = parted(member)[1]
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
