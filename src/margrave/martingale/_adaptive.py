"""Adaptive martingale boosting: learners move samples by how sure they are.

Long and Servedio (2008), as in "Interactive Martingale Boosting" (document 004), section 5.4. A
learner's hypothesis is a real number h in [−1, 1] for two classes, 2p − 1; for k classes it is the
vector p − 1/k. A sample's position moves by step × h, and the step of a layer is the advantage
that its learners have over chance, so good layers move samples far. Samples at nearby positions
share a node, and the sign of the final position (for k classes its largest entry) is the label.

The document does not say how positions become nodes; here they are rounded, so that the same sample
always goes the same way. It cannot be tuned: :class:`MartingaleBoostClassifier` can.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from margrave._typing import Codes, Floats
from margrave._validation import Rules, is_number
from margrave.martingale._classifier import ProgramClassifier
from margrave.martingale._growth import Grown
from margrave.martingale._layers import Departure, Key, Moves, Said, Samples
from margrave.martingale._program import Kind, Node


class Positions(Moves):
    """Positions are real, and a node is a cell of them."""

    is_real = True

    def __init__(self, n_levels: int, width: float) -> None:
        self.n_levels, self.width = n_levels, width

    def kind(self, layer: int, key: Key, mass: Floats, total: Floats) -> tuple[Kind, int | None]:
        """A leaf, constant, or a learner."""
        if layer == self.n_levels:
            return "leaf", int(np.argmax(key))
        if (mass > 0).sum() == 1:
            return "constant", int(np.argmax(mass))
        return "learner", None

    def place(self, layer: int, key: Key) -> tuple[float, ...]:
        """The middle of a cell."""
        size = 1.0 if layer == self.n_levels else self.width
        return tuple(size * cell for cell in key)

    def step(self, said: list[Said], rows: list[Codes], samples: Samples) -> float:
        """The advantage of a layer: the mean of (k p − 1) / (k − 1) of the true classes.

        1 if its learners are sure and right, 0 if they know nothing; the classes weigh the same.
        """
        if not said:
            return 1.0
        at = np.concatenate(rows)
        proba = np.concatenate([one.proba for one in said if one.proba is not None])
        own = proba[np.arange(len(at)), samples.codes[at]]
        weights = samples.balanced(at)
        chance = 1 / samples.k
        advantage = float(weights @ (own - chance)) / float(weights.sum() * (1 - chance))
        return min(max(advantage, 0.0), 1.0)

    def departures(self, node: Node, answers: Codes, positions: Floats | None) -> list[Departure]:
        """By cells; after the last layer by the class that is ahead."""
        positions = np.zeros((len(answers), 0)) if positions is None else positions
        if node.layer == self.n_levels - 1:
            ahead = np.argmax(positions, axis=1)
            cells = np.eye(positions.shape[1])[ahead]
        else:
            cells = np.rint(positions / self.width)
        keys, which = np.unique(cells, axis=0, return_inverse=True)
        return [
            Departure(tuple(map(int, key)), None, np.flatnonzero(which.ravel() == at))
            for at, key in enumerate(keys.tolist())
        ]

    def unreached(self, node: Node, classes: Codes) -> Iterator[tuple[Key, int | None]]:
        """A leaf for each class."""
        if node.layer == self.n_levels - 1:
            for leaf in np.eye(len(node.position), dtype=np.int64).tolist():
                yield tuple(leaf), None


class AdaptiveMartingaleBoostClassifier(ProgramClassifier):
    """A layered program whose learners move samples by how sure they are.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=None
        The learner at every node; :class:`TunableLogistic` if None.
    n_levels : int, default=15
        Layers of learners.
    width : float, default=0.5
        Samples whose positions round to the same multiples of it share a node. A layer moves a
        position by at most 1 − 1/k, and by less with weak learners, which want narrower cells.
    balance : bool, default=True
        Whether each node gives its classes the same weight.
    n_jobs : int, default=None
        Nodes of a layer to train at a time, in threads.
    random_state : int, RandomState instance or None, default=None
        Seeds of learners that draw at random; the same for any ``n_jobs``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    program_ : Program
        The graph, with counts of the training samples; the last layer has a leaf for each class.
    learners_ : dict of int to classifier
        The learners by node of the program; they know the classes by their position.
    steps_ : ndarray of shape (n_levels,)
        How far each layer moves its samples: its advantage.
    sharpness_ : float
        β: the probabilities are a softmax of β times the final positions.

    Examples
    --------
    >>> from margrave import datasets
    >>> from margrave.martingale import AdaptiveMartingaleBoostClassifier
    >>> iris = datasets.load("iris")
    >>> model = AdaptiveMartingaleBoostClassifier(n_levels=3).fit(iris.data, iris.target)
    >>> print(model.program_)
    Program of 3 levels, 23 nodes: 4 learner, 16 constant, 3 leaf
    """

    def __init__(
        self,
        estimator: Any = None,
        n_levels: int = 15,
        *,
        width: float = 0.5,
        balance: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_levels = n_levels
        self.width = width
        self.balance = balance
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def steps_(self) -> Floats:
        """How far each layer moves its samples."""
        return np.array(self._layered.steps)

    def _rules(self) -> Rules:
        wide = is_number(self.width) and 0 < self.width < np.inf
        rules = super()._rules()
        sure = self.estimator is None or hasattr(self.estimator, "predict_proba")
        both = rules["estimator"][1] and sure
        return {
            **rules,
            "width": ("a number above 0", wide),
            "estimator": ("a classifier with predict_proba or None", both),
        }

    def _settle(self, grown: Grown) -> None:
        super()._settle(grown)
        del self._samples  # only tuning needs them again

    def _moves(self, k: int) -> Moves:
        return Positions(self.n_levels, self.width)

    def _standings(self, ends: Codes, positions: Floats) -> Floats:
        return positions
