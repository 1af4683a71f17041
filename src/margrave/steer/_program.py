"""The martingale program of a step of a dialog, and the tuning set at its nodes.

Kulkarni et al. (2016), section 4.3: local confusion matrices on the holdout set, the global one as
the sum over all paths (theorem 1), and the weak nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._indexing import select_columns
from margrave._typing import Codes, Floats
from margrave.confusion import Preference
from margrave.martingale import MartingaleBoostClassifier, Program
from margrave.steer._scorer import SingleMember
from margrave.steer._strategies import Request, join_pipeline, split_pipeline
from margrave.steer._thresholds import Decision, Threshold, default_decision
from margrave.steer._tuning_data import Candidate, TuningData

Votes = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class SteeredProgram:
    """A candidate whose only member is a martingale program, with the tuning set.

    Attributes
    ----------
    candidate : Candidate
        The candidate.
    data : TuningData
        The tuning set.
    before : Pipeline or None
        The preprocessing of the member; None if there is none.
    model : MartingaleBoostClassifier
        The program.
    """

    candidate: Candidate
    data: TuningData
    before: Any
    model: MartingaleBoostClassifier

    @classmethod
    def of(cls, candidate: Candidate, data: TuningData) -> SteeredProgram | None:
        """Take the program of a candidate; None if it has none, or was trained on these samples."""
        committee = candidate.scorer.committee
        if data.trained_on or len(committee.members) > 1:
            return None
        before, model = split_pipeline(committee.members[0])
        alone = isinstance(candidate.scorer.combine, SingleMember)
        if not alone or not isinstance(model, MartingaleBoostClassifier):
            return None
        return cls(candidate, data, before, model)

    @property
    def rows(self) -> Any:
        """The tuning set, as the program takes it."""
        member = self.candidate.scorer.committee.members[0]
        rows = select_columns(self.data.X.X, None, "program", member)
        return rows if self.before is None else self.before.transform(rows)

    @property
    def labels(self) -> NDArray[Any]:
        """The labels of the tuning set."""
        return self.data.committee.classes[self.data.codes]

    def program(self) -> Program:
        """Return the program with the counts of the tuning set and the decisions at its ends."""
        measured = self.model._measured_with(self.rows, self.labels, self._decide)
        return replace(measured, positive=self.data.positive)

    def _decide(self, proba: Floats) -> Codes:
        """Predict by the candidate's decision; where it rejects, by the votes."""
        values = 2 * proba - 1  # the scale of raw values
        raw = values[:, -1:] if self.data.k == 2 else values[:, None, :]
        predictions = self.candidate.decision.predict(self.candidate.scorer.score_raw(raw))
        return np.asarray(np.where(predictions < 0, proba.argmax(axis=1), predictions))

    def weak(self, threshold: float) -> Iterator[Votes]:
        """Yield the weak nodes: those with an advantage below the threshold for some class.

        Nodes are in the order in which the program grows. A node is left out if no sample of the
        tuning set reaches it from some class that its learner was trained on.
        """
        program = self.program()
        for place, learner in sorted(self.model.learners_.items()):
            known = learner.classes_
            counts = program.counts[place][known]
            sizes = counts.sum(axis=1)
            if not sizes.all():
                continue
            right = counts[np.arange(len(known)), known]
            if (right / sizes - 0.5).min() < threshold:
                yield tuple(int(vote) for vote in program.nodes[place].position)

    def with_program(self, strategy: str, model: Any, preference: Preference | None) -> Candidate:
        """Replace the program; a decision that was moved is set again, as "move" does."""
        old, data = self.candidate, self.data
        committee = replace(old.scorer.committee, members=[join_pipeline(self.before, model)])
        scorer = replace(old.scorer, committee=committee)
        scores = scorer.score_encoded(data.X.X)
        if preference is None or _is_default(old.decision):
            return Candidate(strategy, scorer, scores, default_decision(data.k))
        objective = data.objective(preference)
        request = Request(preference, data, objective, [old], may_reject=old.decision.rejects)
        return request.best_candidate(strategy, scorer, scores)


def _is_default(decision: Decision) -> bool:
    """Whether a decision is that of a classifier that was not steered."""
    if isinstance(decision, Threshold):
        return decision.low == decision.high == 0
    return not decision.rejects and not np.any(getattr(decision, "offset", 0))
