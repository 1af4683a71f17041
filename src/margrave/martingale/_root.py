"""Tuning a whole program to a preference on its global confusion matrix (I-ROOT).

Kulkarni et al. (2016), section 4.3. A request about the global matrix has to reach the nodes, and
is evaluated on the global matrix again. Four moves can change it:

- the offset at the end: how many final votes a class needs;
- one offset of the decision at every node, in the direction of the request;
- costs of the classes at every node, with the program grown again;
- local targets, with the program grown again: a node keeps the same fraction of the errors that the
  request mentions, and its learner is tuned to that (`_tuning`).

Every program is evaluated with the best of its two offsets. The first candidate is the original
program with the offset at its end moved, like a threshold; the search returns the best candidate.
(The paper has only local targets, and its program never evaluates the global matrix again.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import floor
from typing import Any

import numpy as np
from scipy.special import softmax

from margrave._typing import Codes, Floats
from margrave.confusion import Bound, Objective, ObjectiveValue
from margrave.martingale._growth import Refine
from margrave.martingale._layers import FittedProgram, Key
from margrave.martingale._learners import (
    TunableLearner,
    TuningSamples,
    class_scores,
)
from margrave.martingale._request import SearchResult, Step
from margrave.martingale._tuning import ROUGH_TOL, target_states

# Offsets of the decision at the nodes, in log-odds along the direction of the request.
_NODE_OFFSETS = np.array(sorted({*np.arange(-3.0, 6.5, 0.5)} - {0.0}, key=abs))
_FINER_OFFSETS = np.array([-0.25, 0.25, -0.125, 0.125])
# Log-cost along the direction; chosen on pima, german, housing_bin, cleveland_bin and
# breast_wisconsin, which are not part of the experiment.
_LOG_COST = 2.0
_MAX_TABLE = 10_000_000  # scores of all learners to keep in memory
_LARGE_NODE = 0.2  # fraction of the tuning set from which a node's penalties are tuned too


@dataclass(frozen=True)
class ScoredProgram:
    """A program with the scores of its ends."""

    program: FittedProgram
    votes: Floats  # (n_nodes, k): the final votes of each end
    sharpness: float  # β, the factor of the votes in a score
    log_cost: Floats  # (k,): logarithms of the costs of the classes that it was grown with

    @property
    def scores(self) -> Floats:
        """Scores of the classes at each end, without offset; shape (n_nodes, k)."""
        return self.sharpness * self.votes


def add_node_offset(program: FittedProgram, node_offset: Floats) -> Floats:
    """The offset at a program's nodes plus another; exactly 0 if they cancel."""
    offset = program.offset + node_offset
    return np.where(np.abs(offset).max() < 1e-12, 0.0, offset)


class PathTable:
    """The paths of some samples through a program, for any offset at its nodes but 0.

    Each learner scores every sample once; after that a walk is a few look-ups. (If the scores
    exceed `_MAX_TABLE`, they are computed again for parts of the samples.)
    """

    def __init__(self, program: FittedProgram, X: Any) -> None:
        self.program, self.X, self.child = program, X, program.children()
        self.learner_number = np.zeros(len(program.nodes), dtype=np.intp)  # 0: no learner
        self.learner_number[list(program.learners)] = np.arange(1, len(program.learners) + 1)
        width = (len(program.learners) + 1) * program.k
        step = max(_MAX_TABLE // width, 1)
        self.parts = [slice(at, at + step) for at in range(0, X.shape[0], step)]
        self.table = self._scores(self.parts[0]) if len(self.parts) == 1 else None

    def _scores(self, part: slice) -> Floats:
        """Scores by every learner of some samples; shape (n_learners + 1, n, k)."""
        X, k = self.X[part], self.program.k
        scores = [class_scores(learner, X, k) for learner in self.program.learners.values()]
        return np.array([np.zeros((X.shape[0], k)), *scores]) + self.program.offset

    def ends(self, offsets: Floats) -> Codes:
        """The nodes where samples end, shape (m, n), for offsets of shape (m, k)."""
        return np.concatenate([self._part_ends(offsets, part) for part in self.parts], axis=1)

    def _part_ends(self, offsets: Floats, part: slice) -> Codes:
        scores = self._scores(part) if self.table is None else self.table
        rows = np.arange(scores.shape[1])
        at = np.zeros((len(offsets), len(rows)), dtype=np.intp)
        for _ in self.program.steps:
            own = scores[self.learner_number[at], rows]
            at = self.child[at, np.argmax(own + offsets[:, None, :], axis=2)]
        return at


@dataclass(frozen=True)
class ProgramCandidate:
    """A program with two offsets, its predictions and the value of the objective."""

    program: ScoredProgram
    node_offset: Floats
    end_offset: Floats
    predictions: Codes
    value: ObjectiveValue


@dataclass
class RootSearch:
    """The search from a program for one that meets a preference."""

    program: ScoredProgram  # the original program
    end_offset: Floats  # (k,): the offset at its end
    # Grows another program, from the logarithms of the costs of the classes, and a function that
    # tunes the learners of the nodes or None.
    regrow: Callable[[Floats, Refine | None], ScoredProgram]
    X: Any  # (m, d): the tuning set
    objective: Objective  # the preference, and the classes of the tuning set
    n_training: int  # number of training samples, which precede the tuning set in a growing program
    max_models: int  # largest number of programs to grow
    # Called with a Step before each program and at the end; a true result cancels the search
    callback: Callable[[Step], Any] | None
    n_models: int = field(default=0, init=False)
    cancelled: bool = field(default=False, init=False)

    def run(self) -> tuple[ProgramCandidate, SearchResult]:
        """Try the moves in turn, fast ones first, until nothing is left to improve."""
        program, no_offset = self.program, np.zeros(self.objective.k)
        ends = program.program.walk(self.X).ends
        scores = program.scores[ends] + self.end_offset
        before = scores.argmax(axis=1)
        value = self.objective.evaluate(before)
        if value.shortfall == 0:
            same = ProgramCandidate(program, no_offset, self.end_offset, before, value)
            return same, SearchResult.unchanged(before)
        first = self.best = self._make_candidate(program, no_offset, ends, starts=None)
        pull = (target_states(self.objective, scores) - softmax(scores, axis=1)).sum(axis=0)
        self.direction = pull / max(float(np.ptp(pull)), 1e-300)  # spans 1
        self._consider(program, first)
        regrowths = self._regrowths(before)
        for regrow in regrowths:
            self._report_progress(len(regrowths))
            if self._is_over:
                break
            self.n_models += 1
            other = regrow()
            other_ends = other.program.walk(self.X).ends
            self._consider(other, self._make_candidate(other, no_offset, other_ends))
        else:
            self._report_progress(len(regrowths))
        result = SearchResult(
            before, self.best.predictions, first.predictions, self.n_models, self.cancelled
        )
        return self.best, result

    def _regrowths(self, before: Codes) -> list[partial[ScoredProgram]]:
        """The moves that grow the program again."""
        log_cost = self.program.log_cost
        regrowths = [partial(self.regrow, log_cost + _LOG_COST * self.direction, None)]
        local = LocalTargets(self.objective, before, self.X, self.n_training)
        learners = self.program.program.learners.values()
        if local.fractions and all(isinstance(one, TunableLearner) for one in learners):
            regrowths.append(partial(self.regrow, log_cost, local.refine))
        return regrowths[: self.max_models]

    def _report_progress(self, most: int) -> None:
        if self.callback is not None:
            met = self.best.value.shortfall == 0
            matrix = self.objective.matrix(self.best.predictions)
            self.cancelled = bool(self.callback(Step(self.n_models, most, met, matrix)))

    @property
    def _is_over(self) -> bool:
        return self.cancelled or self.best.value.shortfall == self.best.value.errors == 0

    def _consider(self, program: ScoredProgram, plain: ProgramCandidate) -> None:
        """Evaluate a program with every offset at its nodes, then with finer ones near the best.

        Without an offset learners predict by ``predict``, which may differ from probabilities.
        """
        self.best = min(self.best, plain, key=_value)
        learners = self.program.program.learners.values()
        if not all(hasattr(one, "predict_proba") for one in learners) or not self.direction.any():
            return
        paths = PathTable(program.program, self.X)
        coarse = _NODE_OFFSETS[:, None] * self.direction
        best = min(plain, self._best_of(program, paths, coarse), key=_value)
        finer = best.node_offset + _FINER_OFFSETS[:, None] * self.direction
        self.best = min(self.best, best, self._best_of(program, paths, finer), key=_value)

    def _best_of(
        self, program: ScoredProgram, paths: PathTable, offsets: Floats
    ) -> ProgramCandidate:
        """The best of several offsets at the nodes; the first of equal ones."""
        offsets = offsets[[add_node_offset(program.program, one).any() for one in offsets]]
        each = zip(offsets, paths.ends(offsets), strict=True)
        candidates = (self._make_candidate(program, offset, ends) for offset, ends in each)
        return min(candidates, key=_value)

    def _make_candidate(
        self,
        program: ScoredProgram,
        node_offset: Floats,
        ends: Codes,
        starts: Iterable[Floats] | None = (),
    ) -> ProgramCandidate:
        """Give a program with an offset at its nodes the best offset at its end."""
        scores, offset = program.scores, self.end_offset
        objective, groups = self.objective.of_groups(ends)
        offset = offset + objective.best_offsets(scores[groups] + offset, starts)[0]
        predictions = (scores + offset).argmax(axis=1)
        value = objective.evaluate(predictions[groups])
        return ProgramCandidate(program, node_offset, offset, predictions[ends], value)


def _value(candidate: ProgramCandidate) -> ObjectiveValue:
    return candidate.value


# Local targets


@dataclass(frozen=True)
class LocalBounds:
    """Bounds at a node. They cannot contradict each other, so they need not be a Preference."""

    all_bounds: tuple[Bound, ...]


class LocalTargets:
    """The request at a node: to keep the same fraction of the errors that the request mentions.

    ``before`` are the predictions of the original program for the tuning set X, which follows
    ``n_training`` training samples in a growing program.
    """

    def __init__(self, objective: Objective, before: Codes, X: Any, n_training: int) -> None:
        self.objective, self.X, self.n_training = objective, X, n_training
        matrix = objective.matrix(before)
        wrong = matrix.counts[:, :-1] * ~np.eye(objective.k, dtype=bool)
        self.fractions: dict[tuple[int, int], Fraction] = {}  # of each cell's errors that may stay
        for bound in objective.preference.all_bounds:
            slack = bound.slack(matrix)
            amount, base = (mask[:, : objective.k] for mask in bound.cells(matrix))
            cells = wrong * (amount if bound.at_most else base & ~amount)
            needs_errors = not bound.at_most and not amount.diagonal().any()
            if slack < 0 and cells.any() and not needs_errors:
                fraction = max(1 + slack / int(cells.sum()), Fraction(0))
                for true, predicted in np.argwhere(cells).tolist():
                    known = self.fractions.get((true, predicted), Fraction(1))
                    self.fractions[true, predicted] = min(fraction, known)

    def refine(self, key: Key, learner: TunableLearner, rows: Codes) -> TunableLearner:
        """Tune a node to its local target, if it has errors to remove."""
        local = TuningSamples.at_node(rows, self.n_training, self.objective.codes, learner)
        if local is None:
            return learner
        X, known = self.X[local.rows], learner.classes_.tolist()
        predictions = np.argmax(learner._class_scores(X), axis=1)
        bounds = []
        for (true, predicted), fraction in self.fractions.items():
            if true in known and predicted in known:
                cell = local.codes == known.index(true)
                cell &= predictions == known.index(predicted)
                if cell.any():
                    limit = Fraction(floor(fraction * int(cell.sum())))
                    labels = str(true), str(predicted)
                    bounds.append(
                        Bound("errors", labels, at_most=True, limit=limit, is_fraction=False)
                    )
        if not bounds:
            return learner
        objective = Objective(LocalBounds(tuple(bounds)), local.codes, tuple(known))
        # At a small node only the offset moves.
        max_models = int(len(local.rows) >= _LARGE_NODE * len(self.objective.codes))
        return learner._tune_node(objective, X, patience=0, max_models=max_models, tol=ROUGH_TOL)[0]
