"""Samples on their way through a program.

What martingale boosting and its adaptive form share ("Interactive Martingale Boosting", document
004, section 4.3): a sample stands at a position, one number for each class, and begins at 0; the
samples at one position, or near it, share a node; the learner there moves each of them. How far a
sample moves, which samples share a node and where a way ends is left to the two classifiers
(`_boost`, `_adaptive`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import softmax

from margrave._indexing import select_rows
from margrave._typing import Codes, Floats
from margrave.martingale._program import Edge, Kind, Node, Program

Key = tuple[int, ...]


@dataclass(frozen=True)
class Samples:
    """Samples a program grows on; those of weight 0 only come along.

    Attributes
    ----------
    X
        Their features.
    codes : ndarray of shape (n,)
        Their classes, 0 … k − 1.
    weights : ndarray of shape (n,)
        Their weights.
    k : int
        Number of classes.
    labels : tuple
        The classes as the user knows them; their codes by default.
    names : ndarray of str or None
        Names of the features.
    """

    X: Any
    codes: Codes
    weights: Floats
    k: int
    labels: tuple[Any, ...] = ()
    names: Any = None

    def __post_init__(self) -> None:
        if not self.labels:
            object.__setattr__(self, "labels", tuple(range(self.k)))

    def mass(self, rows: Codes) -> Floats:
        """The weight of each class among some samples."""
        mass: Floats = np.bincount(self.codes[rows], self.weights[rows], self.k).astype(float)
        return mass

    def balanced(self, rows: Codes) -> Floats:
        """Weights of some samples under which their classes weigh the same, and the sum stays."""
        mass = self.mass(rows)
        each = mass.sum() / max(int((mass > 0).sum()), 1)
        factor = np.divide(each, mass, out=np.zeros(self.k), where=mass > 0)
        return np.asarray(self.weights[rows] * factor[self.codes[rows]])

    def with_companions(self, X: Any, codes: Codes) -> Samples:
        """These samples and, after them, others of weight 0."""
        are_sparse = sparse.issparse(self.X) or sparse.issparse(X)
        parts = [sparse.csr_matrix(part) if are_sparse else part for part in (self.X, X)]
        both = sparse.vstack(parts, format="csr") if are_sparse else np.vstack(parts)
        weights = np.append(self.weights, np.zeros(len(codes)))
        return replace(self, X=both, codes=np.append(self.codes, codes), weights=weights)


def companions_at(
    rows: Codes, n_training: int, codes: Codes, learner: Any
) -> tuple[Codes, Codes] | None:
    """Which companions came to a node, and as which of its learner's classes.

    Parameters
    ----------
    rows : ndarray
        All that came, of the training samples and, after them, the companions.
    n_training : int
        How many training samples there are.
    codes : ndarray of shape (n_companions,)
        Classes of the companions.
    learner : classifier
        That of the node; companions of classes that it does not know are left out.

    Returns
    -------
    tuple of ndarrays or None
        None if a class of the learner has no companion: there is nothing to judge it by.
    """
    at = rows[rows >= n_training] - n_training
    at = at[np.isin(codes[at], learner.classes_)]
    own = np.searchsorted(learner.classes_, codes[at])
    return (at, own) if np.bincount(own, minlength=len(learner.classes_)).all() else None


class Said(NamedTuple):
    """What a node says of its samples: a class for each, and the probabilities if asked for."""

    answers: Codes
    proba: Floats | None


class Departure(NamedTuple):
    """Samples that leave a node together: to which key, for which answer, and which they are."""

    key: Key
    answer: int | None
    members: Codes


class Moves(ABC):
    """The rules by which samples move: one set for each kind of program."""

    is_real = False  # whether samples move by probabilities, each to a position of its own

    @abstractmethod
    def kind(self, layer: int, key: Key, mass: Floats, total: Floats) -> tuple[Kind, int | None]:
        """What a node is and, if no learner, what it answers; by the weight of each class."""

    def place(self, layer: int, key: Key) -> tuple[float, ...]:
        """The position of a node."""
        return tuple(map(float, key))

    @abstractmethod
    def step(self, said: list[Said], rows: list[Codes], samples: Samples) -> float:
        """How far a layer moves its samples."""

    @abstractmethod
    def departures(self, node: Node, answers: Codes, positions: Floats | None) -> list[Departure]:
        """Samples that leave a node, by the node they come to; with positions if they are real."""

    @abstractmethod
    def unreached(self, node: Node, classes: Codes) -> Iterator[tuple[Key, int | None]]:
        """Keys that must be there even if no sample went to them, with the answers for them."""

    def nearest(self, key: Key, known: dict[Key, int]) -> int:
        """The node for a key; one that training has not seen goes to the nearest."""
        if key not in known:
            keys = list(known)
            distance = np.abs(np.array(keys, dtype=float) - np.array(key, dtype=float)).sum(axis=1)
            return known[keys[int(np.argmin(distance))]]
        return known[key]


@dataclass(frozen=True)
class Layered:
    """A grown program: its nodes, and the learners that answer at them.

    Attributes
    ----------
    moves : Moves
        The rules.
    k : int
        Number of classes.
    nodes : list of Node
        Layer by layer.
    keys : list of list of tuple
        The keys of the nodes, for each layer.
    edges : list of Edge
        In the order of their starts.
    learners : dict of int to classifier
        By node; they know the classes by their codes.
    steps : list of float
        How far each layer moves its samples.
    offset : ndarray of shape (k,)
        What is added to the logarithm of the probabilities at every node; 0 changes nothing.
    end_answers : dict of int to int
        Answers of ends that are not those they were grown with.
    """

    moves: Moves
    k: int
    nodes: list[Node]
    keys: list[list[Key]]
    edges: list[Edge]
    learners: dict[int, Any]
    steps: list[float]
    offset: Floats
    end_answers: dict[int, int] = field(default_factory=dict)

    def places(self) -> list[dict[Key, int]]:
        """For each layer where the nodes of its keys are."""
        firsts = np.cumsum([0, *map(len, self.keys)]).tolist()
        return [
            {key: first + at for at, key in enumerate(keys)}
            for first, keys in zip(firsts, self.keys, strict=False)
        ]

    def node(self, place: int) -> Node:
        """A node, with the answer it gives now."""
        node = self.nodes[place]
        return replace(node, answer=self.end_answers.get(place, node.answer))

    def said(self, node: int, X: Any) -> Said:
        """What a node says of some samples."""
        answer = self.nodes[node].answer
        if answer is not None:
            return constant(answer, X.shape[0], self.k)
        return said_by(self.learners[node], X, self.k, self.offset, self.moves.is_real)

    def walk(
        self, X: Any, seen: Callable[[int, Codes, Codes], None] | None = None
    ) -> tuple[Codes, Floats]:
        """Where samples end, and at which position.

        Parameters
        ----------
        X
            The samples.
        seen : callable, optional
            Called with each node that samples come to, their rows and the answers.

        Returns
        -------
        ends : ndarray of shape (n,)
            Nodes.
        positions : ndarray of shape (n, k)
            0 where they are not real.
        """
        n = X.shape[0]
        positions, at = np.zeros((n, self.k)), np.zeros(n, dtype=np.intp)
        places = self.places()
        for layer, step in enumerate(self.steps):
            for node in places[layer].values():
                rows = np.flatnonzero(at == node)
                if not len(rows) or self.nodes[node].is_end:
                    continue
                said = self.said(node, select_rows(X, rows) if len(rows) < n else X)
                if seen is not None:
                    seen(node, rows, said.answers)
                at_rows = None
                if said.proba is not None and self.moves.is_real:
                    positions[rows] += moved(said.proba, step)
                    at_rows = positions[rows]
                gone = self.moves.departures(self.nodes[node], said.answers, at_rows)
                for key, _, members in gone:
                    at[rows[members]] = self.moves.nearest(key, places[layer + 1])
        if seen is not None:
            for end in np.unique(at):
                rows = np.flatnonzero(at == end)
                seen(int(end), rows, np.full(len(rows), self.node(int(end)).answer))
        return at, positions

    def program(self, X: Any, codes: Codes, classes: tuple[Any, ...]) -> Program:
        """The program, with the counts of some samples."""
        tally = Tally(codes, self.k)
        self.walk(X, tally.seen)
        return tally.program(self, classes)


class Tally:
    """Counts samples as they come to nodes."""

    def __init__(self, codes: Codes, k: int) -> None:
        self.codes, self.k = codes, k
        self.counts: dict[int, Any] = {}
        self.flows: dict[tuple[int, int], Any] = {}
        self.last = np.full(len(codes), -1)

    def seen(self, node: int, rows: Codes, answers: Codes) -> None:
        """Count the samples that come to a node, by their classes and answers."""
        cells = np.bincount(self.codes[rows] * self.k + answers, minlength=self.k**2)
        self.counts[node] = cells.reshape(self.k, self.k)
        last = self.last[rows]
        for start in np.flatnonzero(np.bincount(last + 1)) - 1:
            came = self.codes[rows[last == start]]
            self.flows[int(start), node] = np.bincount(came, minlength=self.k)
        self.last[rows] = node

    def program(self, layered: Layered, classes: tuple[Any, ...]) -> Program:
        """The account of what was seen."""
        nodes = tuple(map(layered.node, range(len(layered.nodes))))
        counts = np.zeros((len(nodes), self.k, self.k), dtype=np.int64)
        for node, cells in self.counts.items():
            counts[node] = cells
        # Samples that were not trained on may take ways of their own between real positions.
        known = {(edge.start, edge.end) for edge in layered.edges}
        new = [Edge(*pair) for pair in self.flows if pair not in known and pair[0] >= 0]
        edges = sorted([*layered.edges, *new], key=lambda edge: edge.start)
        nothing = np.zeros(self.k, dtype=np.int64)
        flow = [self.flows.get((edge.start, edge.end), nothing) for edge in edges]
        return Program(classes, nodes, tuple(edges), counts, np.array(flow).reshape(-1, self.k))


def moved(proba: Floats, step: float) -> Floats:
    """The change of positions: as far as a node is sure, times the step."""
    return np.asarray(step * (proba - 1 / proba.shape[1]))


def constant(answer: int | None, n: int, k: int) -> Said:
    """One answer for all."""
    proba = np.zeros((n, k))
    proba[:, answer] = 1
    return Said(np.full(n, answer), proba)


def said_by(learner: Any, X: Any, k: int, offset: Floats, needs_proba: bool) -> Said:
    """What a learner says; with an offset, or where they are needed, from its probabilities."""
    if needs_proba or offset.any() or hasattr(learner, "_class_scores"):
        scores = class_scores(learner, X, k) + offset
        proba = softmax(scores, axis=1) if needs_proba else None
        return Said(np.argmax(scores, axis=1), proba)
    return Said(np.asarray(learner.predict(X), dtype=np.intp), None)


def class_scores(learner: Any, X: Any, k: int) -> Floats:
    """Logarithms of a learner's probabilities, up to a number for each sample.

    -inf for classes that it does not know.
    """
    scores = np.full((X.shape[0], k), -np.inf)
    if hasattr(learner, "_class_scores"):  # ours, and X needs no checks any more
        scores[:, learner.classes_] = learner._class_scores(X)
        return scores
    with np.errstate(divide="ignore"):
        scores[:, learner.classes_] = np.log(learner.predict_proba(X))
    return scores
