"""Martingale boosting: a branching program in which every learner casts one vote.

"Interactive Martingale Boosting" (document 004), sections 4.3 and 4.6, after Long and Servedio
(2005). A node is the vector of votes so far, so ways that got the same votes in another order meet
again. Each node trains on the samples that came to it, its classes reweighted to the same weight,
and sends each along the edge of its answer. After the last layer the class with most votes is the
label.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._rules import Rules as ParameterRules
from margrave.martingale._classifier import ProgramClassifier
from margrave.martingale._layers import Codes, Departure, Floats, Key, Moves, Said, Samples
from margrave.martingale._program import Kind, Node


class Votes(Moves):
    """One vote a layer; a node is the votes so far."""

    def __init__(self, n_levels: int, freeze: float | None, k: int) -> None:
        self.n_levels = n_levels
        # The document's rule for two classes, min < ε / (L (L + 1)), is the case k = 2.
        self.least = 0.0 if freeze is None else freeze / (2 * comb(n_levels + k - 1, k))

    def kind(self, layer: int, key: Key, mass: Floats, total: Floats) -> tuple[Kind, int | None]:
        """A leaf, frozen, empty, constant, or a learner."""
        votes, reach = np.array(key), mass / total
        leading = votes == votes.max()
        if layer == self.n_levels or not mass.any():
            # Most votes; a tie is settled by who came, then by who there is.
            by = reach if mass.any() else total
            return "leaf" if layer == self.n_levels else "empty", _first(leading, by)
        if np.sort(reach)[-2] < self.least:
            return "frozen", int(np.argmax(reach))
        if (mass > 0).sum() == 1:
            return "constant", int(np.argmax(mass))
        return "learner", None

    def step(self, said: list[Said], rows: list[Codes], samples: Samples) -> float:
        """One vote."""
        return 1.0

    def moved(self, said: Said, step: float, k: int) -> Floats:
        """A vote for the answer."""
        return np.asarray(np.eye(k)[said.answers] * step)

    def departures(self, layer: int, positions: Floats, answers: Codes) -> list[Departure]:
        """One node for each answer: all come from one."""
        gone = []
        for answer in np.unique(answers):
            members = np.flatnonzero(answers == answer)
            key = tuple(positions[members[0]].astype(int).tolist())
            gone.append(Departure(key, int(answer), members))
        return gone

    def unreached(self, node: Node, classes: Codes) -> Iterator[tuple[Key, int]]:
        """Every class that a learner knows is an edge."""
        for answer in classes.tolist():
            votes = [int(vote) + (c == answer) for c, vote in enumerate(node.position)]
            yield tuple(votes), answer


def _first(among: NDArray[np.bool_], by: Floats) -> int:
    """The class with the largest value among some."""
    return int(np.argmax(np.where(among, by, -1)))


def standing(node: Node, n_levels: int) -> Floats:
    """The votes at the end of a way.

    A way that ends early casts its other votes for the answer, and an answer that does not lead
    (a tie that the training data settled, a frozen node) leads by half a vote.
    """
    votes = np.array(node.position)
    if node.answer is None:
        return votes
    votes[node.answer] += n_levels - node.layer
    rest = np.delete(votes, node.answer).max()
    votes[node.answer] = max(votes[node.answer], rest + 0.5)
    return votes


class MartingaleBoostClassifier(ProgramClassifier):
    """A layered program of learners; each casts a vote, and the votes so far choose the next.

    Parameters
    ----------
    estimator : classifier, default=None
        The learner at every node; :class:`TunableLogistic` if None. One that takes no
        ``sample_weight`` is trained on samples drawn by their weights.
    n_levels : int, default=15
        Layers of learners. An odd number leaves no tie between two classes.
    balance : bool, default=True
        Whether each node gives its classes the same weight, so that its learner has an advantage
        on both sides.
    freeze : float, default=None
        ε: a node ends with the class that reaches it most, once the second-largest of the
        classes' probabilities to reach it is below ``ε / (2 · C(L + k − 1, k))``, which for two
        classes is the document's ``ε / (L (L + 1))``. None or 0 freezes nothing.
    n_jobs : int, default=None
        Nodes of a layer to train at a time, in threads.
    random_state : int, RandomState instance or None, default=None
        Seeds of learners that draw at random; the same for any ``n_jobs``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    program_ : Program
        The graph, with counts of the training samples.
    learners_ : dict of int to classifier
        The learners by node of the program; they know the classes by their position.
    sharpness_ : float
        β: the probabilities are a softmax of β times the final votes.
    tuning_ : Tuning or None
        What the last :meth:`tune` did.

    Examples
    --------
    >>> from margrave import datasets
    >>> from margrave.martingale import MartingaleBoostClassifier
    >>> iris = datasets.load("iris")
    >>> model = MartingaleBoostClassifier(n_levels=5).fit(iris.data, iris.target)
    >>> print(model.program_)
    >>> model.error_rates()
    """

    def __init__(
        self,
        estimator: Any = None,
        n_levels: int = 15,
        *,
        balance: bool = True,
        freeze: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_levels = n_levels
        self.balance = balance
        self.freeze = freeze
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _rules(self) -> ParameterRules:
        number = isinstance(self.freeze, int | float) and not isinstance(self.freeze, bool)
        freezes = self.freeze is None or (number and self.freeze >= 0)
        return {**super()._rules(), "freeze": ("None or a number of at least 0", freezes)}

    def _moves(self, k: int) -> Moves:
        return Votes(self.n_levels, self.freeze, k)

    def _standings(self, ends: Codes, positions: Floats) -> Floats:
        by_node = np.array([standing(node, self.n_levels) for node in self._layered.nodes])
        return np.asarray(by_node[ends])
