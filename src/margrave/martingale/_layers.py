"""Growing a program layer by layer, and walking samples through it.

What martingale boosting and its adaptive form share ("Interactive Martingale Boosting", document
004, section 4.3): a sample stands at a position, one number for each class, and begins at 0; the
samples at one position, or near it, share a node; the learner there moves each of them. How far a
sample moves, which samples share a node and where a way ends is left to the two classifiers
(`_boost`, `_adaptive`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from margrave._asking import rows_of
from margrave.martingale._program import Edge, Kind, Node, Program

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Key = tuple[int, ...]

Refine = Callable[[Key, Any, Codes], Any]
"""(key of a node, its learner, the rows that came) to the learner to keep."""


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
    """

    X: Any
    codes: Codes
    weights: Floats
    k: int

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


class Said(NamedTuple):
    """What a node says of its samples: a class for each, and the probabilities if asked for."""

    answers: Codes
    proba: Floats | None


class Departure(NamedTuple):
    """Samples that leave a node together: to which key, for which answer, and which they are."""

    key: Key
    answer: int | None
    members: Codes


class Lead(NamedTuple):
    """An edge to the layer that is placed next."""

    start: int
    key: Key
    answer: int | None


class Moves(ABC):
    """The rules by which samples move: one set for each kind of program."""

    needs_proba = False

    @abstractmethod
    def kind(self, layer: int, key: Key, mass: Floats, total: Floats) -> tuple[Kind, int | None]:
        """What a node is and, if no learner, what it answers; by the weight of each class."""

    @abstractmethod
    def step(self, said: list[Said], rows: list[Codes], samples: Samples) -> float:
        """How far a layer moves its samples."""

    @abstractmethod
    def moved(self, said: Said, step: float, k: int) -> Floats:
        """The change of each sample's position."""

    @abstractmethod
    def departures(self, layer: int, positions: Floats, answers: Codes) -> list[Departure]:
        """Samples at their new positions in a layer, by the node they come to."""

    def unreached(self, node: Node, classes: Codes) -> Iterator[tuple[Key, int]]:
        """Keys that a learner's answers lead to even if no sample went there, with the answer."""
        return iter(())

    def nearest(self, key: Key, known: dict[Key, int]) -> int:
        """The node for a key; one that training has not seen goes to the nearest."""
        if key not in known:
            keys = list(known)
            distance = np.abs(np.array(keys) - np.array(key)).sum(axis=1)
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
    keys : list of dict
        For each layer the place of each key in ``nodes``.
    edges : list of Edge
        In the order of their starts.
    learners : dict of int to classifier
        By node; they know the classes by their codes.
    steps : list of float
        How far each layer moves its samples.
    offset : ndarray of shape (k,)
        What is added to the logarithm of the probabilities at every node; 0 changes nothing.
    """

    moves: Moves
    k: int
    nodes: list[Node]
    keys: list[dict[Key, int]]
    edges: list[Edge]
    learners: dict[int, Any]
    steps: list[float]
    offset: Floats

    def said(self, node: int, X: Any) -> Said:
        """What a node says of some samples."""
        answer = self.nodes[node].answer
        if answer is not None:
            return constant(answer, X.shape[0], self.k)
        return said_by(self.learners[node], X, self.k, self.offset, self.moves.needs_proba)

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
        """
        n = X.shape[0]
        positions, at = np.zeros((n, self.k)), np.zeros(n, dtype=np.intp)
        for layer, step in enumerate(self.steps):
            for node in self.keys[layer].values():
                rows = np.flatnonzero(at == node)
                if not len(rows) or self.nodes[node].is_end:
                    continue
                said = self.said(node, rows_of(X, rows) if len(rows) < n else X)
                if seen is not None:
                    seen(node, rows, said.answers)
                positions[rows] += self.moves.moved(said, step, self.k)
                gone = self.moves.departures(layer + 1, positions[rows], said.answers)
                for key, _, members in gone:
                    at[rows[members]] = self.moves.nearest(key, self.keys[layer + 1])
        if seen is not None:
            for end in np.unique(at):
                rows = np.flatnonzero(at == end)
                seen(int(end), rows, np.full(len(rows), self.nodes[end].answer))
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
        for start in np.unique(last):
            came = self.codes[rows[last == start]]
            self.flows[int(start), node] = np.bincount(came, minlength=self.k)
        self.last[rows] = node

    def program(self, layered: Layered, classes: tuple[Any, ...]) -> Program:
        """The account of what was seen."""
        nodes, edges = layered.nodes, layered.edges
        counts = np.zeros((len(nodes), self.k, self.k), dtype=np.int64)
        for node, cells in self.counts.items():
            counts[node] = cells
        nothing = np.zeros(self.k, dtype=np.int64)
        flow = [self.flows.get((edge.start, edge.end), nothing) for edge in edges]
        return Program(
            classes, tuple(nodes), tuple(edges), counts, np.array(flow).reshape(-1, self.k)
        )


class Grown(NamedTuple):
    """A grown program, what it counted of its training samples, and where all of them ended."""

    layered: Layered
    tally: Tally
    ends: Codes
    positions: Floats


def grow(
    samples: Samples,
    moves: Moves,
    learner: Any,
    n_levels: int,
    *,
    balance: bool,
    n_jobs: int | None,
    seeds: np.random.SeedSequence,
    refine: Refine | None = None,
) -> Grown:
    """Train the learners of a program, layer by layer.

    Parameters
    ----------
    samples : Samples
        What to train on, and what comes along.
    moves : Moves
        The rules.
    learner : classifier
        Cloned at each node.
    n_levels : int
        Layers of learners.
    balance : bool
        Whether the classes weigh the same at every node.
    n_jobs : int or None
        Nodes of a layer at a time.
    seeds : SeedSequence
        One child for each node that is trained, in order, so that ``n_jobs`` changes nothing.
    refine : callable, optional
        Called in the job that trains a node, with its key, its learner and all rows that came.
    """
    n, k = len(samples.codes), samples.k
    total = samples.mass(np.arange(n))
    layered = Layered(moves, k, [], [], [], {}, [], np.zeros(k))
    grown = Grown(layered, Tally(samples.codes, k), np.zeros(n, np.intp), np.zeros((n, k)))
    train = partial(_train, Learner.of(learner), samples, balance, moves, refine)
    here: dict[Key, Codes] = {(0,) * k: np.arange(n)}
    leads: list[Lead] = []
    for layer in range(n_levels + 1):
        places = _place(layered, layer, here, leads, samples, total)
        asked = [(at, key) for key, at in places.items() if layered.nodes[at].kind == "learner"]
        trained = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(train)(seed, here[key], key)
            for (_, key), seed in zip(asked, seeds.spawn(len(asked)), strict=True)
        )
        said = {}
        for (node, _), (own, what) in zip(asked, trained, strict=True):
            layered.learners[node], said[node] = own, what
        if layer < n_levels:
            rows = [here[key] for _, key in asked]
            layered.steps.append(moves.step(list(said.values()), rows, samples))
        here, leads = _send(grown, layer, places, here, said, samples)
    return grown


def _place(
    layered: Layered,
    layer: int,
    here: dict[Key, Codes],
    leads: list[Lead],
    samples: Samples,
    total: Floats,
) -> dict[Key, int]:
    """Add the nodes of a layer, and the edges to them."""
    places: dict[Key, int] = {}
    for key in sorted(here):
        kind, answer = layered.moves.kind(layer, key, samples.mass(here[key]), total)
        places[key] = len(layered.nodes)
        layered.nodes.append(Node(layer, tuple(map(float, key)), kind, answer))
    layered.keys.append(places)
    layered.edges.extend(Edge(lead.start, places[lead.key], lead.answer) for lead in leads)
    return places


def _send(
    grown: Grown,
    layer: int,
    places: dict[Key, int],
    here: dict[Key, Codes],
    said: dict[int, Said],
    samples: Samples,
) -> tuple[dict[Key, Codes], list[Lead]]:
    """Move the samples of a layer: who comes to each key of the next, and the edges there."""
    layered, positions = grown.layered, grown.positions
    coming: dict[Key, list[Codes]] = {}
    leads: dict[tuple[int, Key], int | None] = {}
    for key, node in places.items():
        rows, one = here[key], layered.nodes[node]
        what = said[node] if node in said else constant(one.answer, len(rows), layered.k)
        counted = samples.weights[rows] > 0
        grown.tally.seen(node, rows[counted], what.answers[counted])
        if one.is_end:
            grown.ends[rows] = node
            continue
        positions[rows] += layered.moves.moved(what, layered.steps[layer], layered.k)
        moved = layered.moves.departures(layer + 1, positions[rows], what.answers)
        for to, answer, members in moved:
            coming.setdefault(to, []).append(rows[members])
            leads[node, to] = answer
        if node in said:
            for to, answer in layered.moves.unreached(one, layered.learners[node].classes_):
                coming.setdefault(to, [])
                leads.setdefault((node, to), answer)
    nobody = np.zeros(0, dtype=np.intp)
    arrived = {key: np.sort(np.concatenate([nobody, *rows])) for key, rows in coming.items()}
    return arrived, [Lead(start, key, answer) for (start, key), answer in leads.items()]


class Learner(NamedTuple):
    """A learner to clone, and what there is to know of it once."""

    template: Any
    takes_weights: bool
    random_states: tuple[str, ...]

    @classmethod
    def of(cls, template: Any) -> Learner:
        """Look at a learner: its random states that have no number are given one."""
        states = [
            name
            for name, value in template.get_params().items()
            if (name == "random_state" or name.endswith("__random_state")) and value is None
        ]
        return cls(template, has_fit_parameter(template, "sample_weight"), tuple(states))

    def trained(self, X: Any, codes: Codes, weights: Floats, seed: np.random.SeedSequence) -> Any:
        """A clone, trained; weights that it cannot take decide what it is trained on."""
        own = clone(self.template)
        if self.random_states:
            number = int(seed.generate_state(1)[0] >> 1)
            own.set_params(**dict.fromkeys(self.random_states, number))
        if (weights == (1 if self.takes_weights else weights[0])).all():
            return own.fit(X, codes)
        if self.takes_weights:
            return own.fit(X, codes, sample_weight=weights)
        return own.fit(*_drawn(X, codes, weights, seed))


def _train(
    learner: Learner,
    samples: Samples,
    balance: bool,
    moves: Moves,
    refine: Refine | None,
    seed: np.random.SeedSequence,
    rows: Codes,
    key: Key,
) -> tuple[Any, Said]:
    """Train a node, and ask it about all that came."""
    X = rows_of(samples.X, rows) if len(rows) < len(samples.codes) else samples.X
    weights = samples.balanced(rows) if balance else samples.weights[rows]
    counted = np.flatnonzero(weights)
    X_own = X if len(counted) == len(rows) else rows_of(X, counted)
    own = learner.trained(X_own, samples.codes[rows[counted]], weights[counted], seed)
    if refine is not None:
        own = refine(key, own, rows)
    if hasattr(own, "_forget_training"):
        own._forget_training()
    return own, said_by(own, X, samples.k, np.zeros(samples.k), moves.needs_proba)


def _drawn(
    X: Any, codes: Codes, weights: Floats, seed: np.random.SeedSequence
) -> tuple[Any, Codes]:
    """As many samples again, drawn by their weights, for learners that take none."""
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(codes), len(codes), p=weights / weights.sum())
    # One of each class at least: a learner that has not seen a class cannot answer it.
    first = np.unique(codes, return_index=True)[1]
    drawn[: len(first)] = first
    return rows_of(X, drawn), codes[drawn]


def constant(answer: int | None, n: int, k: int) -> Said:
    """One answer for all."""
    proba = np.zeros((n, k))
    proba[:, answer] = 1
    return Said(np.full(n, answer), proba)


def said_by(learner: Any, X: Any, k: int, offset: Floats, needs_proba: bool) -> Said:
    """What a learner says; with an offset, or where they are needed, from its probabilities."""
    if not needs_proba and not offset.any():
        return Said(np.asarray(learner.predict(X), dtype=np.intp), None)
    proba = np.zeros((X.shape[0], k))
    proba[:, learner.classes_] = learner.predict_proba(X)
    if offset.any():
        return Said(np.argmax(shifted(proba, offset), axis=1), proba)
    return Said(np.asarray(learner.predict(X), dtype=np.intp), proba)


def shifted(proba: Floats, offset: Floats) -> Floats:
    """Logarithms of probabilities plus the offset; -inf stays for classes that are not there."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(proba) + offset)
