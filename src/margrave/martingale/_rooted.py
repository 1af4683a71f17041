"""Tuning a whole program to a preference on its global confusion matrix (I-ROOT).

"Interactive Martingale Boosting" (document 004), section 4.3. What is asked of the global matrix
has to reach the nodes, and what counts is the global matrix again. There are four ways to move it:

- the offset of the end: which final votes are enough for a class;
- one offset of the decision at every node, along the direction the request pulls the classes;
- costs of the classes at every node, with the program grown again;
- local targets, with the program grown again: a node keeps the same share of the errors that the
  request speaks of, and its learner is tuned to that (`_tuning`).

Every program is judged with the best of the two offsets it could have. The first candidate is the
program as it is with the offset of its end moved, as one would move a threshold; the best of all
is returned. (The document derives local targets only, and its program never looks at the global
matrix again.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import floor
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from margrave._typing import Codes, Floats
from margrave.confusion import Bound, Objective, ObjectiveValue
from margrave.martingale._growth import Refine
from margrave.martingale._layers import Key, Layered, class_scores, companions_at
from margrave.martingale._request import Outcome, Step
from margrave.martingale._tuning import ROUGH, target_states

# Offsets of the decision at the nodes, in log-odds along the direction of the request.
_REACH = np.array(sorted({*np.arange(-3.0, 6.5, 0.5)} - {0.0}, key=abs))
_FINER = np.array([-0.25, 0.25, -0.125, 0.125])
# Log-cost along the direction; settled on pima, german, housing_bin, cleveland_bin and
# breast_wisconsin, which are not in the experiment.
_COST = 2.0
_TABLE = 10_000_000  # numbers to keep of what all learners say
_CROWDED = 0.2  # share of the tuning samples from which on a node's penalties are tuned too


class Ways:
    """All ways of some samples through a program, for any offset at its nodes but none.

    Each learner is asked once about every sample; after that a walk is a few look-ups. (Where the
    answers would be too many to keep, parts of the samples are asked about again.)
    """

    def __init__(self, layered: Layered, X: Any) -> None:
        self.layered, self.X = layered, X
        self.child = np.repeat(np.arange(len(layered.nodes))[:, None], layered.k, axis=1)
        for edge in layered.edges:
            self.child[edge.start, edge.answer] = edge.end
        for place, node in enumerate(layered.nodes):
            if node.kind == "constant":
                self.child[place] = self.child[place, node.answer]
        self.asked = np.zeros(len(layered.nodes), dtype=np.intp)  # 0 for nodes without a learner
        self.asked[list(layered.learners)] = np.arange(1, len(layered.learners) + 1)
        width = (len(layered.learners) + 1) * layered.k
        step = max(_TABLE // width, 1)
        self.parts = [slice(at, at + step) for at in range(0, X.shape[0], step)]
        self.table = self._said(self.parts[0]) if len(self.parts) == 1 else None

    def _said(self, part: slice) -> Floats:
        """What every learner says of some samples; shape (n_learners + 1, n, k)."""
        X, k = self.X[part], self.layered.k
        said = [class_scores(learner, X, k) for learner in self.layered.learners.values()]
        return np.array([np.zeros((X.shape[0], k)), *said]) + self.layered.offset

    def ends(self, offsets: Floats) -> Codes:
        """Where samples end, for offsets of shape (m, k); shape (m, n)."""
        return np.concatenate([self._ends(offsets, part) for part in self.parts], axis=1)

    def _ends(self, offsets: Floats, part: slice) -> Codes:
        scores = self._said(part) if self.table is None else self.table
        rows = np.arange(scores.shape[1])
        at = np.zeros((len(offsets), len(rows)), dtype=np.intp)
        for _ in self.layered.steps:
            answers = np.argmax(scores[self.asked[at], rows] + offsets[:, None, :], axis=2)
            at = self.child[at, answers]
        return at


class Settled(NamedTuple):
    """A program that answers.

    Attributes
    ----------
    layered : Layered
        The program.
    votes : ndarray of shape (n_nodes, k)
        The final votes of each end.
    sharpness : float
        By how much they count in a score.
    log_cost : ndarray of shape (k,)
        Logarithms of the classes' costs it was grown with.
    """

    layered: Layered
    votes: Floats
    sharpness: float
    log_cost: Floats


@dataclass(frozen=True)
class Candidate:
    """A program with two offsets, and how it is judged.

    Attributes
    ----------
    program : Settled
        The program.
    node_offset, end_offset : ndarray of shape (k,)
        What is added at every node, and at the end.
    answers : ndarray of shape (m,)
        To the tuning set.
    value : ObjectiveValue
        How good they are.
    """

    program: Settled
    node_offset: Floats
    end_offset: Floats
    answers: Codes
    value: ObjectiveValue


class RootSearch:
    """The way from a program to one that meets a preference.

    Parameters
    ----------
    program : Settled
        The program as it is.
    offset : ndarray of shape (k,)
        The offset of its end.
    again : callable
        Grows another one, given the logarithms of the classes' costs, and a way to refine the
        nodes' learners or None.
    X : array of shape (m, d)
        The tuning samples.
    objective : Objective
        What is wanted of them.
    n_training : int
        How many training samples stand before them among the rows of a growing program.
    max_models : int
        Most programs to grow.
    callback : callable or None
        Called with a Step after each; a true answer cancels.
    """

    def __init__(
        self,
        program: Settled,
        offset: Floats,
        again: Callable[[Floats, Refine | None], Settled],
        X: Any,
        objective: Objective,
        n_training: int,
        max_models: int,
        callback: Callable[[Step], Any] | None,
    ) -> None:
        self.program, self.offset, self.again, self.X = program, offset, again, X
        self.objective, self.n_training, self.max_models = objective, n_training, max_models
        self.callback = callback
        self.n_models, self.cancelled = 0, False
        self.learners = list(program.layered.learners.values())

    def run(self) -> tuple[Candidate, Outcome]:
        """Try the ways in turn, cheap ones first, until there is nothing left to gain."""
        program, k = self.program, self.objective.k
        ends, _ = program.layered.walk(self.X)
        scores = program.sharpness * program.votes[ends] + self.offset
        before = scores.argmax(axis=1)
        value = self.objective.evaluate(before)
        if value.shortfall == 0:
            same = Candidate(program, np.zeros(k), self.offset, before, value)
            return same, Outcome(before, before, before, 0, cancelled=False)
        first = self.best = self._at(program, np.zeros(k), ends, starts=None)
        pull = (target_states(self.objective, scores) - softmax(scores, axis=1)).sum(axis=0)
        self.direction = pull / max(float(np.ptp(pull)), 1e-300)  # 1 between its ends
        self._consider(program, first)
        others = self._others(before)
        self.most = len(others)
        for grow in others:
            if self._over():
                break
            self.n_models += 1
            other = grow()
            at_end = other.layered.walk(self.X)[0]
            self._consider(other, self._at(other, np.zeros(k), at_end))
        else:
            self._over()
        outcome = Outcome(before, self.best.answers, first.answers, self.n_models, self.cancelled)
        return self.best, outcome

    def _others(self, before: Codes) -> list[partial[Settled]]:
        """Ways to grow the program again."""
        log_cost = self.program.log_cost
        ways = [partial(self.again, log_cost + _COST * self.direction, None)]
        local = LocalTargets(self.objective, before, self.X, self.n_training)
        if local.shares and all(hasattr(one, "_tuned") for one in self.learners):
            ways.append(partial(self.again, log_cost, local.refine))
        return ways[: self.max_models]

    def _over(self) -> bool:
        """Tell the callback; whether the search is over."""
        met = self.best.value.shortfall == 0
        if self.callback is not None:
            matrix = self.objective.matrix(self.best.answers)
            self.cancelled = bool(self.callback(Step(self.n_models, self.most, met, matrix)))
        return self.cancelled or (met and self.best.value.errors == 0)

    def _consider(self, program: Settled, as_is: Candidate) -> None:
        """Judge a program with every offset at its nodes, then with finer ones about the best.

        Without an offset learners answer as they predict, which need not be by probabilities.
        """
        self.best = min(self.best, as_is, key=_rank)
        leans = all(hasattr(one, "predict_proba") for one in self.learners)
        if not leans or not self.direction.any():
            return
        ways = Ways(program.layered, self.X)
        best = min(as_is, self._best_of(program, ways, _REACH[:, None] * self.direction), key=_rank)
        finer = best.node_offset + _FINER[:, None] * self.direction
        self.best = min(self.best, best, self._best_of(program, ways, finer), key=_rank)

    def _best_of(self, program: Settled, ways: Ways, offsets: Floats) -> Candidate:
        """The best of some offsets at the nodes; of equals the first."""
        offsets = offsets[[combined(program.layered, offset).any() for offset in offsets]]
        each = zip(offsets, ways.ends(offsets), strict=True)
        return min((self._at(program, offset, ends) for offset, ends in each), key=_rank)

    def _at(
        self,
        program: Settled,
        node_offset: Floats,
        ends: Codes,
        starts: Iterable[Floats] | None = (),
    ) -> Candidate:
        """A program with an offset at its nodes and the best one at its end."""
        scores = program.sharpness * program.votes
        objective, groups = self.objective.of_groups(ends)
        offset = self.offset + objective.best_offsets(scores[groups] + self.offset, starts)[0]
        answers = (scores + offset).argmax(axis=1)
        return Candidate(
            program, node_offset, offset, answers[ends], objective.evaluate(answers[groups])
        )


def combined(layered: Layered, node_offset: Floats) -> Floats:
    """The offset of a program's nodes after one more; one that is taken back is none at all."""
    offset = layered.offset + node_offset
    return np.where(np.abs(offset).max() < 1e-12, 0.0, offset)


def _rank(candidate: Candidate) -> ObjectiveValue:
    return candidate.value


@dataclass(frozen=True)
class LocalBounds:
    """Bounds at a node: they cannot contradict each other, so no preference need be read."""

    all_bounds: tuple[Bound, ...]


class LocalTargets:
    """What the request means at a node: the same share of the errors it speaks of.

    Parameters
    ----------
    objective : Objective
        What is wanted of the global matrix.
    before : ndarray of shape (m,)
        Answers when the request began.
    X
        The tuning samples.
    n_training : int
        How many training samples stand before them among the rows of a program.
    """

    def __init__(self, objective: Objective, before: Codes, X: Any, n_training: int) -> None:
        self.objective, self.X, self.n_training = objective, X, n_training
        matrix = objective.matrix(before)
        wrong = matrix.counts[:, :-1] * ~np.eye(objective.k, dtype=bool)
        self.shares: dict[tuple[int, int], Fraction] = {}  # of each cell's errors that may stay
        for bound in objective.preference.all_bounds:
            slack = bound.slack(matrix)
            amount, base = (mask[:, : objective.k] for mask in bound.cells(matrix))
            cells = wrong * (amount if bound.at_most else base & ~amount)
            wants_errors = not bound.at_most and not amount.diagonal().any()
            if slack < 0 and cells.any() and not wants_errors:
                share = max(1 + slack / int(cells.sum()), Fraction(0))
                for true, called in np.argwhere(cells).tolist():
                    kept = self.shares.get((true, called), Fraction(1))
                    self.shares[true, called] = min(share, kept)

    def refine(self, key: Key, learner: Any, rows: Codes) -> Any:
        """Tune a node to its share, if it has errors to lose."""
        came = companions_at(rows, self.n_training, self.objective.codes, learner)
        if came is None:
            return learner
        at, codes = came
        X, known = self.X[at], learner.classes_.tolist()
        answers = np.argmax(learner._class_scores(X), axis=1)
        wants = []
        for (true, called), share in self.shares.items():
            if true in known and called in known:
                cell = (codes == known.index(true)) & (answers == known.index(called))
                if cell.any():
                    kept = Fraction(floor(share * int(cell.sum())))
                    labels = str(true), str(called)
                    wants.append(
                        Bound("errors", labels, at_most=True, limit=kept, is_fraction=False)
                    )
        if not wants:
            return learner
        local = Objective(LocalBounds(tuple(wants)), codes, tuple(known))
        trains = int(len(at) >= _CROWDED * len(self.objective.codes))  # else its offset moves
        return learner._tuned(local, X, patience=0, max_models=trains, tol=ROUGH)[0]
