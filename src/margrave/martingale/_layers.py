"""A grown program: samples walk through its layers, and are counted at its nodes.

Kulkarni et al. (2016), section 4.3: a sample has a position, one number for each class, and starts
at 0. The samples at one position, or near it, are at one node, and the learner there moves each of
them. How far a sample moves, which samples are at one node and where a path ends are decided by
:class:`Routing`: by votes (`_boost`), or by real positions (`_adaptive`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from margrave._indexing import select_rows
from margrave._typing import Codes, Floats
from margrave.martingale._learners import NodePredictions, predict_constant, predict_node
from margrave.martingale._program import Edge, Kind, Node, Program

Key = tuple[int, ...]
"""Identifies a node within its layer: its votes, or its cell of real positions."""


@dataclass(frozen=True)
class Samples:
    """Samples that a program grows on; those of weight 0 pass through it without effect."""

    X: Any  # (n, d): their features
    codes: Codes  # (n,): their classes, 0 … k − 1
    weights: Floats
    k: int  # number of classes
    feature_names: Any = None

    def mass(self, rows: Codes) -> Floats:
        """Total weight of each class among some samples."""
        mass: Floats = np.bincount(self.codes[rows], self.weights[rows], self.k).astype(float)
        return mass

    def balanced(self, rows: Codes) -> Floats:
        """Weights of some samples, rescaled so that all classes have the same total weight.

        This is the reweighting of the two-sided weak learner; the sum of the weights stays.
        """
        mass = self.mass(rows)
        each = mass.sum() / max(int((mass > 0).sum()), 1)
        factor = np.divide(each, mass, out=np.zeros(self.k), where=mass > 0)
        return np.asarray(self.weights[rows] * factor[self.codes[rows]])

    def with_tuning_set(self, X: Any, codes: Codes) -> Samples:
        """Append a tuning set, with weight 0: it takes the same paths, so nodes can be tuned."""
        are_sparse = sparse.issparse(self.X) or sparse.issparse(X)
        parts = [sparse.csr_matrix(part) if are_sparse else part for part in (self.X, X)]
        both = sparse.vstack(parts, format="csr") if are_sparse else np.vstack(parts)
        weights = np.append(self.weights, np.zeros(len(codes)))
        return replace(self, X=both, codes=np.append(self.codes, codes), weights=weights)


class Branch(NamedTuple):
    """Samples that leave a node together: the key they move to, the prediction and the samples."""

    key: Key
    prediction: int | None
    members: Codes


class Routing(ABC):
    """How samples move through a program."""

    n_levels: int  # number of layers of learners
    uses_positions = False  # whether samples have real positions, moved by probabilities

    @abstractmethod
    def node_kind(
        self, layer: int, key: Key, mass: Floats, total: Floats
    ) -> tuple[Kind, int | None]:
        """The kind of a node and, without a learner, its prediction; by the weight of each class.

        ``mass`` is the weight at the node, ``total`` that of all samples.
        """

    def position(self, layer: int, key: Key) -> tuple[float, ...]:
        """The position of a node."""
        return tuple(map(float, key))

    @abstractmethod
    def step(
        self, predictions: list[NodePredictions], rows: list[Codes], samples: Samples
    ) -> float:
        """How far a layer moves its samples, from the predictions of its learners."""

    @abstractmethod
    def branches(self, node: Node, predictions: Codes, positions: Floats | None) -> list[Branch]:
        """Group the samples that leave a node by the key that they move to."""

    @abstractmethod
    def required_children(self, node: Node, classes: Codes) -> Iterator[tuple[Key, int | None]]:
        """Keys that exist even if no sample moves to them, and the predictions that lead there."""

    def nearest(self, key: Key, known: dict[Key, int]) -> int:
        """The node of a key; a key without training samples goes to the nearest node."""
        if key not in known:
            keys = list(known)
            distance = np.abs(np.array(keys, dtype=float) - np.array(key, dtype=float)).sum(axis=1)
            return known[keys[int(np.argmin(distance))]]
        return known[key]


class Walk(NamedTuple):
    """Where samples end: their nodes, shape (n,), and positions, shape (n, k), 0 for votes."""

    ends: Codes
    positions: Floats

    @classmethod
    def to(cls, ends: Codes) -> Walk:
        """A walk by votes to some nodes."""
        return cls(ends, np.zeros((len(ends), 0)))


@dataclass(frozen=True)
class FittedProgram:
    """A program with the learners at its nodes."""

    routing: Routing  # how samples move
    k: int  # number of classes
    nodes: list[Node]  # layer by layer
    keys: list[list[Key]]  # the keys of the nodes, for each layer
    edges: list[Edge]  # in the order of their starts
    learners: dict[int, Any]  # by node; their classes are codes
    steps: list[float]  # how far each layer moves its samples
    offset: Floats  # (k,): added to the log-probabilities at every node; 0 changes nothing
    end_predictions: dict[int, int] = field(default_factory=dict)  # that tuning has changed

    def indices(self) -> list[dict[Key, int]]:
        """For each layer, the index of the node of each key."""
        firsts = np.cumsum([0, *map(len, self.keys)]).tolist()
        return [
            {key: first + number for number, key in enumerate(keys)}
            for first, keys in zip(firsts, self.keys, strict=False)
        ]

    def node(self, index: int) -> Node:
        """A node, with its present prediction."""
        node = self.nodes[index]
        return replace(node, prediction=self.end_predictions.get(index, node.prediction))

    def children(self) -> Codes:
        """The node that follows each node and predicted class, shape (n_nodes, k).

        An end follows itself. Only for programs whose edges have a prediction.
        """
        child = np.repeat(np.arange(len(self.nodes))[:, None], self.k, axis=1)
        for edge in self.edges:
            child[edge.start, edge.prediction] = edge.end
        for index, node in enumerate(self.nodes):
            if node.kind == "constant":
                child[index] = child[index, node.prediction]
        return child

    def predict(self, node: int, X: Any) -> NodePredictions:
        """Predictions of a node for some samples."""
        prediction = self.nodes[node].prediction
        if prediction is not None:
            return predict_constant(prediction, X.shape[0], self.k)
        return predict_node(
            self.learners[node], X, self.k, self.offset, self.routing.uses_positions
        )

    def walk(self, X: Any, visit: Callable[[int, Codes, Codes], None] | None = None) -> Walk:
        """Move samples from the root to the ends.

        ``visit`` is called with each node that samples reach, their rows and predicted classes.
        """
        n = X.shape[0]
        positions, at = np.zeros((n, self.k)), np.zeros(n, dtype=np.intp)
        indices = self.indices()
        for layer, step in enumerate(self.steps):
            for node in indices[layer].values():
                rows = np.flatnonzero(at == node)
                if not len(rows) or self.nodes[node].is_end:
                    continue
                predictions = self.predict(node, select_rows(X, rows) if len(rows) < n else X)
                if visit is not None:
                    visit(node, rows, predictions.classes)
                own_positions = None
                if predictions.proba is not None and self.routing.uses_positions:
                    positions[rows] += displacement(predictions.proba, step)
                    own_positions = positions[rows]
                for key, _, members in self.routing.branches(
                    self.nodes[node], predictions.classes, own_positions
                ):
                    at[rows[members]] = self.routing.nearest(key, indices[layer + 1])
        if visit is not None:
            for end in np.unique(at):
                rows = np.flatnonzero(at == end)
                visit(int(end), rows, np.full(len(rows), self.node(int(end)).prediction))
        return Walk(at, positions)

    def count(self, X: Any, codes: Codes, classes: tuple[Any, ...]) -> Program:
        """The program with the counts of some samples."""
        counter = FlowCounter(codes, self.k)
        self.walk(X, counter.visit)
        return counter.program(self, classes)


def displacement(proba: Floats, step: float) -> Floats:
    """The change of real positions: step × (p − 1/k)."""
    return np.asarray(step * (proba - 1 / proba.shape[1]))


class FlowCounter:
    """Counts samples at nodes and along edges while they walk."""

    def __init__(self, codes: Codes, k: int) -> None:
        self.codes, self.k = codes, k
        self.counts: dict[int, Any] = {}
        self.takers: dict[tuple[int, int], Codes] = {}  # the samples that took an edge
        self.last_node = np.full(len(codes), -1)
        self.predicted = np.zeros(len(codes), dtype=np.intp)  # at the last node

    def visit(self, node: int, rows: Codes, predictions: Codes) -> None:
        """Count the samples that reach a node, by their classes and predictions."""
        self.counts[node] = self._tally(rows, predictions)
        last = self.last_node[rows]
        for start in np.flatnonzero(np.bincount(last + 1)) - 1:
            self.takers[int(start), node] = rows[last == start]
        self.last_node[rows] = node
        self.predicted[rows] = predictions

    def _tally(self, rows: Codes, predictions: Codes) -> Codes:
        """The confusion matrix of some samples."""
        cells = np.bincount(self.codes[rows] * self.k + predictions, minlength=self.k**2)
        return cells.reshape(self.k, self.k)

    def program(self, fitted: FittedProgram, classes: tuple[Any, ...]) -> Program:
        """The record of all counts, when all samples are at the ends of their paths."""
        nodes = tuple(map(fitted.node, range(len(fitted.nodes))))
        counts = np.zeros((len(nodes), self.k, self.k), dtype=np.int64)
        for node, cells in self.counts.items():
            counts[node] = cells
        # Between real positions, new samples may take edges that no training sample took.
        known = {(edge.start, edge.end) for edge in fitted.edges}
        new = [Edge(*pair) for pair in self.takers if pair not in known and pair[0] >= 0]
        edges = sorted([*fitted.edges, *new], key=lambda edge: edge.start)
        outcomes = np.zeros((len(edges), self.k, self.k), dtype=np.int64)
        for number, edge in enumerate(edges):
            rows = self.takers.get((edge.start, edge.end))
            if rows is not None:
                outcomes[number] = self._tally(rows, self.predicted[rows])
        return Program(classes, nodes, tuple(edges), counts, outcomes)
