"""The martingale program that answers at a step of a dialog, and the tuning samples at its nodes.

"Interactive Martingale Boosting" (document 004), section 4.3: local confusion matrices on the
holdout samples, the global one as the sum over all paths (theorem 1), and the weak nodes.
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
from margrave.steer._scorer import Scorer, SingleMember
from margrave.steer._strategies import Request, join_pipeline, split_pipeline
from margrave.steer._thresholds import Decision, Threshold, default_decision
from margrave.steer._tuning_data import Candidate, TuningData

Votes = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class SteeredProgram:
    """The program that answers in an option, and the tuning samples as it sees them.

    Attributes
    ----------
    candidate : Candidate
        Of which it is the only member.
    data : TuningData
        The tuning samples.
    before : Pipeline or None
        What samples pass before it.
    model : MartingaleBoostClassifier
        The program.
    """

    candidate: Candidate
    data: TuningData
    before: Any
    model: MartingaleBoostClassifier

    @classmethod
    def of(cls, candidate: Candidate, data: TuningData) -> SteeredProgram | None:
        """None if there is no program, or it was trained on the tuning samples."""
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
        """The tuning samples."""
        member = self.candidate.scorer.committee.members[0]
        rows = select_columns(self.data.X.X, None, "program", member)
        return rows if self.before is None else self.before.transform(rows)

    @property
    def labels(self) -> NDArray[Any]:
        """Their labels."""
        return self.data.committee.classes[self.data.codes]

    def program(self) -> Program:
        """The program on the tuning samples, with the answers that are given at its ends."""
        measured = self.model._measured_by(self.rows, self.labels, self._decided)
        return replace(measured, positive=self.data.positive)

    def _decided(self, proba: Floats) -> Codes:
        """Answers by the decision of the option; where it rejects, by the votes."""
        values = 2 * proba - 1  # as members are heard
        raw = values[:, -1:] if self.data.k == 2 else values[:, None, :]
        answers = self.candidate.decision.predict(self.candidate.scorer.score_raw(raw))
        return np.asarray(np.where(answers < 0, proba.argmax(axis=1), answers))

    def weak(self, threshold: float) -> Iterator[Votes]:
        """Nodes with a smaller advantage for some class, that can be asked, as the program grows.

        A node can be asked if tuning samples of every class come to it that its learner knows.
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
                yield votes_of(program, place)

    def with_program(self, strategy: str, model: Any, preference: Preference | None) -> Candidate:
        """The option with another program, and a decision on its scores."""
        old = self.candidate
        committee = replace(old.scorer.committee, members=[join_pipeline(self.before, model)])
        scorer = replace(old.scorer, committee=committee)
        held = scorer.score_encoded(self.data.X.X)
        return self.best_candidate(strategy, scorer, held, preference)

    def best_candidate(
        self, strategy: str, scorer: Scorer, held: Floats, preference: Preference | None
    ) -> Candidate:
        """Untouched scores are left so; a decision that was moved is set anew, as by "move"."""
        decision, data = self.candidate.decision, self.data
        if preference is None or _is_plain(decision):
            return Candidate(strategy, scorer, held, default_decision(data.k))
        objective, known = data.objective(preference), [self.candidate]
        request = Request(preference, data, objective, known, may_reject=decision.rejects)
        return request.best_candidate(strategy, scorer, held)


def votes_of(program: Program, place: int) -> Votes:
    """The votes of a node: what it is called by."""
    return tuple(int(vote) for vote in program.nodes[place].position)


def _is_plain(decision: Decision) -> bool:
    """Whether it is that of an untouched classifier."""
    if isinstance(decision, Threshold):
        return decision.low == decision.high == 0
    return not decision.rejects and not np.any(getattr(decision, "offset", 0))
