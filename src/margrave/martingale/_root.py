"""Tuning a whole program to a preference on its global confusion matrix (I-ROOT).

Kulkarni et al. (2016), sections 4.3 and 4.4. The request about the global matrix becomes a local
target at every node: the node keeps the same fraction of the errors that the request mentions. The
program is grown again, and the hyperparameters of each learner are tuned to the target of its node
by their hypergradient (`_tuning`). In the quick form only large nodes train a model, at most one,
and the others move their offset; it also grows a program with other costs of the classes, which is
all that other learners than a `TunableLearner` allow.

The paper's program never evaluates the global matrix again. Here every program is, with the best of
two offsets:

- at the end: how many final votes a class needs, or how large its final position has to be;
- for votes, one at every node, in the direction of the request.

The first candidate is the original program with the offset at its end moved, like a threshold, and
the search returns the best candidate. On a small tuning set that is often the best only by chance.
So it may have to be clearly better than the first (`margrave.confusion.Objective.beats`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import floor
from typing import Any

import numpy as np
from scipy.special import softmax

from margrave._typing import Codes, Floats
from margrave.confusion import (
    FEWEST_ERRORS,
    Bound,
    BoundsAndGoal,
    Objective,
    ObjectiveValue,
)
from margrave.martingale._growth import Refine
from margrave.martingale._layers import FittedProgram, Key, Walk
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
# breast_wisconsin, which are none of the six sets of the experiment.
_LOG_COST = 2.0
_MIN_PULL = 1e-9  # samples; a smaller sum of the changes of probabilities is rounding
_MAX_TABLE = 10_000_000  # scores of all learners to keep in memory
_LARGE_NODE = 0.2  # quick form: fraction of the tuning set from which a node trains a model


@dataclass(frozen=True)
class ScoredProgram:
    """A program, and what makes the ends of its paths scores."""

    program: FittedProgram
    votes: Floats | None  # (n_nodes, k): the final votes of each end; None for real positions
    sharpness: float  # β, the factor of the votes or positions in a score
    log_cost: Floats  # (k,): logarithms of the costs of the classes that it was grown with

    def scores(self, walk: Walk) -> Floats:
        """Scores of the classes for samples that walked through it, without offset."""
        positions = walk.positions if self.votes is None else self.votes[walk.ends]
        return np.asarray(self.sharpness * positions)


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
    quick: bool  # whether to use the quick form
    max_models: int  # largest number of models to train for one node; if quick, of programs to grow
    min_gain: float  # standard errors by which the result has to beat the first candidate
    # Called with a Step before each program, after each tuned node unless quick, and at the end; a
    # true result cancels the search
    callback: Callable[[Step], Any] | None
    n_programs: int = field(default=0, init=False)  # grown again
    # Of each tuned node: a list, because nodes may be tuned in several threads
    n_node_models: list[int] = field(default_factory=list, init=False)
    cancelled: bool = field(default=False, init=False)

    @property
    def n_models(self) -> int:
        """Programs grown again, and models trained at nodes unless quick."""
        return self.n_programs + sum(self.n_node_models)

    def run(self) -> tuple[ProgramCandidate, SearchResult]:
        """Try the moves in turn, fast ones first, until nothing is left to improve."""
        program, no_offset = self.program, np.zeros(self.objective.k)
        walk = program.program.walk(self.X)
        scores = program.scores(walk) + self.end_offset
        before = scores.argmax(axis=1)
        value = self.objective.evaluate(before)
        if value.shortfall == 0:
            same = ProgramCandidate(program, no_offset, self.end_offset, before, value)
            return same, SearchResult.unchanged(before)
        first = self.best = self._make_candidate(program, no_offset, walk, local=False)
        pull = (target_states(self.objective, scores) - softmax(scores, axis=1)).sum(axis=0)
        span = float(np.ptp(pull))  # 0 but for rounding if the request has no direction
        self.direction = pull / span if span > _MIN_PULL else np.zeros_like(pull)  # spans 1
        self._consider(program, first)
        regrowths = self._regrowths(before)
        n_learners = 0 if self.quick else len(program.program.learners)
        self.most = len(regrowths) + n_learners * self.max_models
        for regrow in regrowths:
            self._report_progress()
            if self._is_over:
                break
            self.n_programs += 1
            other = regrow()
            other_walk = other.program.walk(self.X)
            self._consider(other, self._make_candidate(other, no_offset, other_walk))
        if not self.objective.beats(self.best.predictions, first.predictions, self.min_gain):
            self.best = first
        self._report_progress()
        result = SearchResult(
            before, self.best.predictions, first.predictions, self.n_models, self.cancelled
        )
        return self.best, result

    def _regrowths(self, before: Codes) -> list[partial[ScoredProgram]]:
        """The moves that grow the program again."""
        log_cost, regrowths = self.program.log_cost, []
        learners = self.program.program.learners.values()
        are_tunable = all(isinstance(one, TunableLearner) for one in learners)
        local = LocalTargets(self.objective, before, self.X, self.n_training, self._tune_node)
        has_targets = are_tunable and bool(local.fractions)
        if self.direction.any() and (self.quick or not has_targets):
            costs = log_cost + _LOG_COST * self.direction
            regrowths.append(partial(self.regrow, costs, None))
        if has_targets:
            regrowths.append(partial(self.regrow, log_cost, local.refine))
        return regrowths[: self.max_models] if self.quick else regrowths

    def _tune_node(self, learner: TunableLearner, target: Objective, X: Any) -> TunableLearner:
        """Tune the learner of a node to its local target, about the tuning samples X there."""
        if self.quick:
            is_large = X.shape[0] >= _LARGE_NODE * len(self.objective.codes)
            return learner._tune_node(
                target, X, patience=0, max_models=int(is_large), tol=ROUGH_TOL
            )[0]
        if self.cancelled:
            return learner
        tuned, result = learner._tune_node(target, X, max_models=self.max_models)
        self.n_node_models.append(result.n_models)
        self._report_progress()
        return tuned

    def _report_progress(self) -> None:
        if self.callback is not None and not self.cancelled:
            met = self.best.value.shortfall == 0
            matrix = self.objective.matrix(self.best.predictions)
            most = max(self.n_models, self.most)  # a new program may have more learners
            self.cancelled = bool(self.callback(Step(self.n_models, most, met, matrix)))

    @property
    def _is_over(self) -> bool:
        return self.cancelled or self.best.value.shortfall == self.best.value.errors == 0

    def _consider(self, program: ScoredProgram, plain: ProgramCandidate) -> None:
        """Evaluate a program with every offset at its nodes, then with finer ones near the best.

        Without an offset learners predict by ``predict``, which may differ from probabilities.
        Real positions are fine enough: they need no offset at the nodes.
        """
        self.best = min(self.best, plain, key=_value)
        learners = program.program.learners.values()
        have_proba = all(hasattr(one, "predict_proba") for one in learners)
        if program.votes is None or not have_proba or not self.direction.any():
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
        candidates = (self._make_candidate(program, offset, Walk.to(ends)) for offset, ends in each)
        return min(candidates, key=_value)

    def _make_candidate(
        self,
        program: ScoredProgram,
        node_offset: Floats,
        walk: Walk,
        *,
        local: bool = True,
    ) -> ProgramCandidate:
        """Give a program with an offset at its nodes the best offset at its end."""
        scores, offset, objective = program.scores(walk), self.end_offset, self.objective
        own_scores = scores
        if program.votes is not None:  # samples at the same end have the same scores
            objective, ends = objective.of_groups(walk.ends)
            own_scores = program.scores(Walk.to(ends))
        change, _ = objective.best_offsets(own_scores + offset, local=local)
        offset = offset + change
        predictions = (scores + offset).argmax(axis=1)
        value = self.objective.evaluate(predictions)
        return ProgramCandidate(program, node_offset, offset, predictions, value)


def _value(candidate: ProgramCandidate) -> ObjectiveValue:
    return candidate.value


# Local targets


class LocalTargets:
    """The request at a node: to keep the same fraction of the errors that the request mentions.

    ``before`` are the predictions of the original program for the tuning set X, which follows
    ``n_training`` training samples in a growing program. ``tune`` tunes a learner to the objective
    at its node, which is about some tuning samples.
    """

    def __init__(
        self,
        objective: Objective,
        before: Codes,
        X: Any,
        n_training: int,
        tune: Callable[[TunableLearner, Objective, Any], TunableLearner],
    ) -> None:
        self.objective, self.X, self.n_training, self.tune = objective, X, n_training, tune
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
        wanted = BoundsAndGoal(tuple(bounds), FEWEST_ERRORS)
        objective = Objective(wanted, local.codes, tuple(known), every_class=False)
        return self.tune(learner, objective, X)
