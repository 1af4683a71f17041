"""Growing a program: its learners are trained layer by layer.

Kulkarni et al. (2016), section 4.3 and figure 3. The learners of a layer are trained in parallel,
each on the samples that reach its node, and send them to the next layer (`_layers`). Samples of
weight 0 pass through without being trained on: a tuning set takes the same paths, so that nodes can
be tuned while the program grows. After every edit the program is grown again, from
:class:`PreviousProgram`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from margrave._indexing import select_rows
from margrave._parallel import stay_local
from margrave._typing import Codes, Floats
from margrave.martingale._layers import (
    FittedProgram,
    FlowCounter,
    Key,
    Routing,
    Samples,
    Walk,
    displacement,
)
from margrave.martingale._learners import (
    LearnerTemplate,
    NodePredictions,
    TunableLearner,
    predict_constant,
    predict_node,
)
from margrave.martingale._program import Edge, Node

Refine = Callable[[Key, Any, Codes], Any]
"""From the key of a node, its trained learner and the rows that reach it to the final learner."""


class GrowthResult(NamedTuple):
    """A grown program, the counts of its training samples, and where all samples end."""

    program: FittedProgram
    counter: FlowCounter
    walk: Walk


class TrainedNode(NamedTuple):
    """The learner of a node, and its predictions for all samples that reach the node."""

    learner: Any
    predictions: NodePredictions


class PreviousProgram:
    """The nodes of a program that is grown again, by their keys.

    A node that the same training samples reach stays, to the last digit. One that other samples
    reach is trained on them, with the hyperparameters that tuning found for it.
    If its learners are ``tunable``, the offset of all nodes becomes part of the offset of each. If
    the new program ``adds_levels``, nodes that end paths because of the number of levels are
    decided again. A node that ``is_requested``, because it may have a preference, does not stay.
    """

    def __init__(
        self,
        program: FittedProgram,
        samples: Samples,
        *,
        tunable: bool,
        adds_levels: bool = False,
        is_requested: Callable[[Key], bool] | None = None,
    ) -> None:
        keys = [key for layer in program.keys for key in layer]
        self.tunable, self.adds_levels, self.offset = tunable, adds_levels, program.offset
        self.is_requested = is_requested
        self.nodes = dict(zip(keys, program.nodes, strict=True))
        self.learners = {keys[node]: learner for node, learner in program.learners.items()}
        self.rows: dict[Key, Codes] = dict.fromkeys(keys, np.zeros(0, dtype=np.intp))
        program.walk(samples.X, lambda node, rows, _: self.rows.update({keys[node]: rows}))

    def node(self, key: Key, rows: Codes) -> Node | None:
        """The node of a key if it stays, with these training samples; else None."""
        known = self.nodes.get(key)
        if known is None or (self.is_requested is not None and self.is_requested(key)):
            return None
        if self.adds_levels and known.kind in ("frozen", "leaf"):
            return None
        return known if np.array_equal(self.rows[key], rows) else None

    def staying_learner(self, key: Key, rows: Codes) -> Any:
        """The learner of a node that stays; None if it has to be trained."""
        return None if self.node(key, rows) is None else self.learner(key, rows)

    def learner(self, key: Key, rows: Codes) -> Any:
        """The learner of a key if it was trained on these samples; else None."""
        learner = self.learners.get(key)
        if learner is None or not np.array_equal(self.rows[key], rows):
            return None
        if not self.tunable or not self.offset.any():
            return learner
        return learner._with_offset(self._total_offset(learner))

    def unfitted_learner(self, key: Key, classes: Codes) -> Any:
        """The learner of a key, to train on other samples of the same classes.

        None if the node had no learner, or one of other classes, or one that is not tunable.
        """
        learner = self.learners.get(key)
        if learner is None or not self.tunable or not np.array_equal(learner.classes_, classes):
            return None
        total = self._total_offset(learner).tolist()
        return clone(learner).set_params(
            offset=dict(zip(learner.classes_.tolist(), total, strict=True))
        )

    def _total_offset(self, learner: TunableLearner) -> Floats:
        return np.asarray(learner.offset_ + self.offset[learner.classes_])


@dataclass(frozen=True)
class NodeTrainer:
    """Trains the learner of a node."""

    samples: Samples  # the training samples and, with weight 0, the tuning set
    template: LearnerTemplate
    owner: str  # the estimator that error messages name
    balance: bool  # whether the classes have the same total weight at every node
    costs: Floats  # (k,): factors of the weights of the classes at every node
    offset: Floats  # (k,): added to the log-probabilities at every node
    needs_proba: bool  # whether the routing needs probabilities
    refine: Refine | None = None  # tunes a trained learner
    previous: PreviousProgram | None = None  # learners that stay, and hyperparameters of others

    def train(self, seed: np.random.SeedSequence, rows: Codes, key: Key) -> TrainedNode:
        """Train the learner of a node on the samples that reach it, and predict them all."""
        samples, previous = self.samples, self.previous
        X = select_rows(samples.X, rows) if len(rows) < len(samples.codes) else samples.X
        weights = samples.balanced(rows) if self.balance else samples.weights[rows]
        weights = weights * self.costs[samples.codes[rows]]
        counted = np.flatnonzero(weights)
        like = None
        codes = samples.codes[rows[counted]]
        if previous is not None:
            staying = previous.staying_learner(key, rows[counted])
            if staying is not None:
                return TrainedNode(staying, self._predict(staying, X))
            like = previous.unfitted_learner(key, np.unique(codes))
        own_X = X if len(counted) == len(rows) else select_rows(X, counted)
        try:
            with stay_local():
                own = self.template.train(
                    own_X, codes, weights[counted], seed, samples.feature_names, like
                )
            predictions = None if self.refine is not None else self._predict(own, X)
        except Exception as error:
            error.add_note(
                f"{self.owner} trains {type(self.template.learner).__name__} at each node; this "
                f"was the one at {key}, which {len(counted)} samples reach. A learner that needs "
                "many samples needs fewer levels."
            )
            raise
        if self.refine is not None:
            own = self.refine(key, own, rows)
        if predictions is None:
            predictions = self._predict(own, X)
        if isinstance(own, TunableLearner):
            own = own.without_training_data()
        return TrainedNode(own, predictions)

    def _predict(self, learner: Any, X: Any) -> NodePredictions:
        return predict_node(learner, X, self.samples.k, self.offset, self.needs_proba)


def grow(
    trainer: NodeTrainer,
    routing: Routing,
    n_levels: int,
    *,
    n_jobs: int | None,
    seeds: np.random.SeedSequence,
    callback: Callable[[int], Any] | None = None,
) -> GrowthResult:
    """Grow a program layer by layer, on the samples of the trainer.

    Every trained node has a child of ``seeds``, in order, so that ``n_jobs`` changes nothing.
    ``callback`` is called with the number of trained layers after each.
    """
    growth = _Growth(trainer, routing)
    # If all samples take one edge, the next node has the same samples, and a learner without
    # randomness would be the same.
    can_repeat = trainer.template.fits_arrays and trainer.previous is None
    known: dict[Any, TrainedNode] = {}
    with Parallel(n_jobs=n_jobs, prefer="threads") as parallel:
        for layer in range(n_levels + 1):
            growth.add_nodes(layer)
            keys = growth.learner_keys()
            rows = [growth.arrivals[key] for key in keys]
            names = [at.tobytes() for at in rows] if can_repeat else keys
            jobs = list(zip(seeds.spawn(len(keys)), rows, keys, strict=True))
            trained = _train_layer(parallel, trainer, jobs, names, known)
            known = dict(zip(names, trained, strict=True)) if can_repeat else {}
            growth.add_learners(keys, trained)
            if layer < n_levels:
                growth.add_step([node.predictions for node in trained], rows)
                if callback is not None:
                    callback(layer + 1)
            growth.move_samples(layer)
    return GrowthResult(growth.program, growth.counter, growth.walk)


def _train_layer(
    parallel: Parallel,
    trainer: NodeTrainer,
    jobs: list[tuple[Any, ...]],
    names: list[Any],
    known: dict[Any, TrainedNode],
) -> list[TrainedNode]:
    """Train the nodes of a layer, except those whose name is known."""
    new = [number for number, name in enumerate(names) if name not in known]
    if parallel.n_jobs != 1:  # large nodes first, so that no worker waits for one
        new.sort(key=lambda number: -len(jobs[number][1]))
    found = parallel(delayed(trainer.train)(*jobs[number]) for number in new)
    trained = known | {names[number]: node for number, node in zip(new, found, strict=True)}
    return [trained[name] for name in names]


class _Growth:
    """A program while it grows, and the samples that have arrived at its next layer."""

    def __init__(self, trainer: NodeTrainer, routing: Routing) -> None:
        self.samples, self.previous = trainer.samples, trainer.previous
        n, k = len(self.samples.codes), self.samples.k
        self.total = self.samples.mass(np.arange(n))
        self.program = FittedProgram(routing, k, [], [], [], {}, [], trainer.offset)
        self.counter = FlowCounter(self.samples.codes, k)
        self.walk = Walk(np.zeros(n, np.intp), np.zeros((n, k)))
        self.arrivals: dict[Key, Codes] = {(0,) * k: np.arange(n)}  # rows by key of the next layer
        self.open_edges: dict[tuple[int, Key], int | None] = {}  # (start, key) to prediction
        self.indices: dict[Key, int] = {}  # of the nodes of the last layer
        self.predictions: dict[int, NodePredictions] = {}  # of its learners

    def add_nodes(self, layer: int) -> None:
        """Add a node for each key that samples have arrived at, and the edges to it."""
        program, samples = self.program, self.samples
        self.indices = {}
        for key in sorted(self.arrivals):
            rows, node = self.arrivals[key], None
            if self.previous is not None:
                node = self.previous.node(key, rows[samples.weights[rows] > 0])
            if node is None:
                kind, prediction = program.routing.node_kind(
                    layer, key, samples.mass(rows), self.total
                )
                node = Node(layer, program.routing.position(layer, key), kind, prediction)
            self.indices[key] = len(program.nodes)
            program.nodes.append(node)
        program.keys.append(list(self.indices))
        program.edges.extend(
            Edge(start, self.indices[key], prediction)
            for (start, key), prediction in self.open_edges.items()
        )

    def learner_keys(self) -> list[Key]:
        """Keys of the last layer that need a learner."""
        nodes = self.program.nodes
        return [key for key, index in self.indices.items() if nodes[index].kind == "learner"]

    def add_learners(self, keys: list[Key], trained: list[TrainedNode]) -> None:
        """Add the learners of the last layer."""
        self.predictions = {}
        for key, node in zip(keys, trained, strict=True):
            index = self.indices[key]
            self.program.learners[index] = node.learner
            self.predictions[index] = node.predictions

    def add_step(self, predictions: list[NodePredictions], rows: list[Codes]) -> None:
        """Add the step of the last layer."""
        self.program.steps.append(self.program.routing.step(predictions, rows, self.samples))

    def move_samples(self, layer: int) -> None:
        """Move the samples of the last layer, and count the training samples among them."""
        program, routing, weights = self.program, self.program.routing, self.samples.weights
        all_counted = bool(weights.all())
        coming: dict[Key, list[Codes]] = {}
        self.open_edges = {}
        for key, index in self.indices.items():
            rows, node = self.arrivals[key], program.nodes[index]
            learned = self.predictions.get(index)
            found = learned or predict_constant(node.prediction, len(rows), program.k)
            counted = slice(None) if all_counted else weights[rows] > 0
            self.counter.visit(index, rows[counted], found.classes[counted])
            if node.is_end:
                self.walk.ends[rows] = index
                continue
            positions = None
            if found.proba is not None and routing.uses_positions:
                self.walk.positions[rows] += displacement(found.proba, program.steps[layer])
                positions = self.walk.positions[rows]
            for branch in routing.branches(node, found.classes, positions):
                coming.setdefault(branch.key, []).append(rows[branch.members])
                self.open_edges[index, branch.key] = branch.prediction
            classes = found.classes[:1] if learned is None else program.learners[index].classes_
            for to, prediction in routing.required_children(node, classes):
                coming.setdefault(to, [])
                self.open_edges.setdefault((index, to), prediction)
        if routing.uses_positions and layer + 1 < routing.n_levels:
            coming = self._join_cells(coming)
        no_rows = np.zeros(0, dtype=np.intp)
        # Each part is sorted already, and a stable sort merges them.
        self.arrivals = {
            key: np.sort(np.concatenate([no_rows, *parts]), kind="stable")
            for key, parts in coming.items()
        }

    def _join_cells(self, coming: dict[Key, list[Codes]]) -> dict[Key, list[Codes]]:
        """Send tuning samples in cells without training samples to the nearest cell with some."""
        weights, routing = self.samples.weights, self.program.routing
        # Sorted as in the program, so that of two nearest cells the same one is taken later.
        cells = sorted(key for key, parts in coming.items() if weights[np.concatenate(parts)].any())
        numbers = {key: number for number, key in enumerate(cells)}
        target = {key: cells[routing.nearest(key, numbers)] for key in coming}
        self.open_edges = {(start, target[key]): None for start, key in self.open_edges}
        joined: dict[Key, list[Codes]] = {}
        for key, parts in coming.items():
            joined.setdefault(target[key], []).extend(parts)
        return joined
