"""What a dialog knows about its tuning samples: everything that a way may look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrave._judge import Judge
from margrave._typing import Codes, Floats
from margrave.confusion import Confusion
from margrave.preference import Preference
from margrave.steer._combining import Alone
from margrave.steer._panel import Combine, Panel, Scorer, decimals_for, heard, looks
from margrave.steer._rows import Rows


@dataclass(frozen=True, eq=False)
class Material:
    """Tuning samples, and what members say about them that were not trained on them.

    Attributes
    ----------
    panel : Panel
        The members, for new samples.
    raw : ndarray of shape (n, K) or (n, K, k)
        What they, or members trained without the sample, say about each.
    codes : ndarray of shape (n,)
        True classes.
    positive : label or None
        The class that ``fp`` and ``fn`` speak of.
    folds : list of (training, held out) positions
        In which what is learned from tuning samples is judged on others.
    X : Rows
        The tuning samples as the members see them.
    trained_on : bool
        Whether the tuning samples are also what the members were trained on (each sample judged
        by members trained without it).
    in_time : bool
        Whether they are in the order of time, so that no learner may be trained on what came later.
    at : ndarray of shape (n,) or None
        Their positions in the table that the dialog began with; None without one.
    """

    panel: Panel
    raw: Floats
    codes: Codes
    positive: Any
    folds: list[tuple[Codes, Codes]]
    X: Rows
    trained_on: bool
    in_time: bool = False
    at: Codes | None = None

    @property
    def k(self) -> int:
        """Number of classes."""
        return len(self.panel.classes)

    @property
    def labels(self) -> tuple[Any, ...]:
        """The classes."""
        return tuple(self.panel.classes.tolist())

    def rows(self, at: Codes) -> Any:
        """Some of the tuning samples."""
        return self.X[at]

    def matrix(self, answers: Codes) -> Confusion:
        """The confusion matrix of answers to these samples."""
        counts = np.zeros((self.k, self.k + 1), dtype=np.int64)
        np.add.at(counts, (self.codes, answers), 1)  # -1 is the last column
        return Confusion(counts, self.labels, self.positive)

    def judge(self, preference: Preference) -> Judge:
        """The judge of a preference on these samples."""
        return Judge(preference, self.codes, self.labels, self.positive)

    def cross_fitted(self, learn: Callable[[Codes], Combine]) -> tuple[Scorer, Floats]:
        """A scorer learned from all samples, and scores of each by one learned from others.

        Parameters
        ----------
        learn : callable
            Given positions of samples, what makes scores of the members' answers.
        """
        held = [(at, self._told(learn(training), at)) for training, at in self.folds]
        everything = np.arange(len(self.codes))
        combine = learn(everything)
        scorer = Scorer(self.panel, combine, decimals_for(self._told(combine, everything)))
        return scorer, self.gathered(held, scorer.decimals)

    def _told(self, combine: Combine, at: Codes) -> Floats:
        """Scores of some of the samples."""
        return heard(combine, self.raw[at], self.rows(at) if looks(combine) else None)

    def members_alone(self) -> Iterator[tuple[str, Floats]]:
        """Each member's own scores of the samples."""
        for j, name in enumerate(self.panel.names):
            alone = Alone(bool(self.panel.probabilities[j]))
            yield name, alone(self.raw[:, j : j + 1])

    def gathered(self, parts: list[tuple[Codes, Floats]], decimals: int) -> Floats:
        """Scores of folds, put together in the order of the samples."""
        first = parts[0][1]
        scores: Floats = np.empty((len(self.codes), *first.shape[1:]))
        for at, told in parts:
            scores[at] = told
        return np.asarray(np.round(scores, decimals), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Option:
    """A way to decide: how samples are scored, and how scores become answers.

    Attributes
    ----------
    way : str
        The name of the way it came by.
    scorer : Scorer
        Scores of new samples.
    held : ndarray
        Scores of the tuning samples, by what was not learned from them.
    decision : Decision
        From scores to answers.
    """

    way: str
    scorer: Scorer
    held: Floats
    decision: Any

    @property
    def answers(self) -> Codes:
        """The tuning samples' answers."""
        codes: Codes = self.decision.answers(self.held)
        return codes


Options = Iterator[Option]
