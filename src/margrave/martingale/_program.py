"""The graph of a martingale program: nodes in layers, edges, and counts of samples.

Kulkarni et al. (2016), section 4.3. A node stands for the votes so far; the learner there predicts
a class and so sends a sample to a node of the next layer. Nothing is learned here: a program is an
immutable record of counts. From them follow the reach probabilities, the local confusion matrices,
the advantages of definition 1, the error rates of theorem 1 and their bounds.

The theorem is stated with a power of the "incidence matrix". That is the sum over all paths of the
products of the edges' weights, computed here layer by layer. On the counted samples it equals the
counted rate exactly, so it uses fractions, not floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from margrave.confusion import Confusion

Kind = Literal["learner", "constant", "frozen", "empty", "leaf"]


@dataclass(frozen=True)
class Node:
    """A node of a program.

    Attributes
    ----------
    layer : int
        Its layer, 0 for the root.
    position : tuple of float
        Votes so far for each class.
    kind : {"learner", "constant", "frozen", "empty", "leaf"}
        A node with a learner; one that only samples of one class reach, and that predicts it; a
        frozen node; one that no sample reaches; or a node of the last layer. Paths end at the last
        three kinds.
    prediction : int or None
        The class that a node without a learner predicts.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.martingale import MartingaleBoostClassifier
    >>> X, y = load("iris", return_X_y=True)
    >>> program = MartingaleBoostClassifier(n_levels=2).fit(X, y).program_
    >>> for node in program.nodes[:4]:
    ...     print(node.layer, node.position, node.kind)
    0 (0.0, 0.0, 0.0) learner
    1 (0.0, 0.0, 1.0) learner
    1 (0.0, 1.0, 0.0) learner
    1 (1.0, 0.0, 0.0) constant
    """

    layer: int
    position: tuple[float, ...]
    kind: Kind
    prediction: int | None = None

    @property
    def is_end(self) -> bool:
        """Whether paths end here."""
        return self.kind in ("frozen", "empty", "leaf")


@dataclass(frozen=True)
class Edge:
    """An edge of a program, from a node to one of the next layer.

    Attributes
    ----------
    start, end : int
        The nodes.
    prediction : int or None
        The class that the start predicts for the samples that take the edge; None if positions are
        real numbers, since samples of several predicted classes may take it.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.martingale import MartingaleBoostClassifier
    >>> X, y = load("iris", return_X_y=True)
    >>> program = MartingaleBoostClassifier(n_levels=2).fit(X, y).program_
    >>> edge, samples = program.edges[1], program.flow[1]
    >>> program.classes[edge.prediction], samples.tolist()
    ('versicolor', [0, 47, 1])
    >>> program.nodes[edge.end].position
    (0.0, 1.0, 0.0)
    """

    start: int
    end: int
    prediction: int | None = None


@dataclass(frozen=True, eq=False)
class Program:
    """A layered program, with counts of the samples that passed through it.

    Attributes
    ----------
    classes : tuple of labels
        The classes.
    nodes : tuple of Node
        Layer by layer; the first is the root.
    edges : tuple of Edge
        In the order of their starts.
    counts : ndarray of int, shape (n_nodes, n_classes, n_classes)
        For each node the number of samples of a class (row) predicted as each class (column).
    outcomes : ndarray of int, shape (n_edges, n_classes, n_classes)
        For each edge the number of samples of a class (row) that took it, by the class that the end
        of their path predicts (column). Off the diagonal are the routes of the errors.
    positive : label or None
        The class that ``fp`` and ``fn`` of the local matrices refer to; by default the second of
        two.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.martingale import MartingaleBoostClassifier
    >>> X, y = load("iris", return_X_y=True)
    >>> program = MartingaleBoostClassifier(n_levels=3).fit(X, y).program_
    >>> print(program)
    Program of 3 levels, 13 nodes: 4 learner, 4 constant, 5 leaf
    >>> program.counts[0]
    array([[50,  0,  0],
           [ 0, 47,  3],
           [ 0,  1, 49]])
    >>> program.error_rates()
    {'setosa': 0.0, 'versicolor': 0.04, 'virginica': 0.02}
    """

    classes: tuple[Any, ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    counts: NDArray[np.int64] = field(repr=False)
    outcomes: NDArray[np.int64] = field(repr=False)
    positive: Any = None

    def __post_init__(self) -> None:
        k = len(self.classes)
        shapes = {"counts": (len(self.nodes), k, k), "outcomes": (len(self.edges), k, k)}
        for name, shape in shapes.items():
            own = np.array(getattr(self, name), dtype=np.int64)
            if own.shape != shape:
                raise ValueError(f"Program needs {name} of shape {shape}; got {own.shape}.")
            own.flags.writeable = False
            object.__setattr__(self, name, own)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the arrays read-only again, which a pickle forgets."""
        self.__dict__.update(state)
        self.__post_init__()

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def n_levels(self) -> int:
        """Number of layers of learners; the ends of the longest paths follow them."""
        return max(node.layer for node in self.nodes)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of samples of each class that reach each node; shape (n_nodes, n_classes)."""
        sizes: NDArray[np.int64] = self.counts.sum(axis=2)
        return sizes

    @property
    def reach(self) -> NDArray[np.float64]:
        """The fraction of the samples of each class that reach each node."""
        sizes = self.sizes
        fractions: NDArray[np.float64] = sizes / np.maximum(sizes[0], 1)
        return fractions

    @property
    def flow(self) -> NDArray[np.int64]:
        """Number of samples of each class that took each edge; shape (n_edges, n_classes)."""
        flow: NDArray[np.int64] = self.outcomes.sum(axis=2)
        return flow

    @property
    def node_outcomes(self) -> NDArray[np.int64]:
        """The ``outcomes`` of the samples that pass through each node.

        Of shape (n_nodes, n_classes, n_classes); that of the root is the global confusion matrix.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.martingale import MartingaleBoostClassifier
        >>> pima = datasets.load("pima")
        >>> model = MartingaleBoostClassifier(n_levels=3).fit(pima.data, pima.target)
        >>> program = model.program_
        >>> fp = program.node_outcomes[:, 0, 1]  # false positives that pass through each node
        >>> bool(fp[0] == (model.predict(pima.data[pima.target == "neg"]) == "pos").sum())
        True
        """
        outcomes = np.zeros_like(self.counts)
        outcomes[0] = self.counts[[node.is_end for node in self.nodes]].sum(axis=0)
        for edge, own in zip(self.edges, self.outcomes, strict=True):
            outcomes[edge.end] += own
        return outcomes

    def at(self, votes: Sequence[float]) -> int:
        """The index of a node in ``nodes``.

        Parameters
        ----------
        votes : tuple of int
            Its votes so far for each class: its position.

        Returns
        -------
        int
        """
        for index, node in enumerate(self.nodes):
            if node.position == tuple(votes):
                return index
        raise ValueError(f"Program.at needs the votes of a node; got {votes!r}.")

    def confusion(self, node: int) -> Confusion:
        """The local confusion matrix of a node.

        Parameters
        ----------
        node : int
            Its index in ``nodes``.

        Returns
        -------
        Confusion
        """
        return Confusion(self.counts[node], self.classes, self.positive)

    @property
    def advantages(self) -> NDArray[np.float64]:
        """γ of each node for each class (definition 1): the recall of the class less ½.

        With two classes they are γ⁻ and γ⁺, in the order of ``classes``. NaN where no sample of
        the class reaches the node.
        """
        right = np.diagonal(self.counts, axis1=1, axis2=2)
        sizes = self.sizes
        recalls = np.divide(right, sizes, out=np.full(sizes.shape, np.nan), where=sizes > 0)
        advantages: NDArray[np.float64] = recalls - 0.5
        return advantages

    def error_rates(self) -> dict[Any, float]:
        """The error rate of each class, by the path sums of theorem 1.

        Returns
        -------
        dict
            By class. With two classes, those of the negative and the positive class are the
            FP-rate and the FN-rate. NaN for a class without samples.
        """
        return {
            label: float("nan") if rate is None else float(rate)
            for label, rate in zip(self.classes, self.exact_error_rates, strict=True)
        }

    @cached_property
    def exact_error_rates(self) -> tuple[Fraction | None, ...]:
        """The error rates as fractions; None for a class without samples."""
        return tuple(self._error_rate(c) for c in range(len(self.classes)))

    def _error_rate(self, c: int) -> Fraction | None:
        sizes = self.sizes[:, c].tolist()
        if not sizes[0]:
            return None
        weight = [Fraction(0)] * len(self.nodes)  # of all paths from the root to a node
        weight[0] = Fraction(1)
        for edge, flow in zip(self.edges, self.flow[:, c].tolist(), strict=True):
            if flow:  # edges are in the order of their starts, so those weights are complete
                weight[edge.end] += weight[edge.start] * Fraction(flow, sizes[edge.start])
        ends = zip(self.nodes, weight, strict=True)
        return sum((w for node, w in ends if node.is_end and node.prediction != c), Fraction(0))

    def error_bounds(self) -> dict[Any, float]:
        """An upper bound on the error rate of each class, from the margins of the nodes.

        It holds for the samples that were counted, and says nothing about new samples.

        Returns
        -------
        dict
            By class: a number between its error rate and 1. NaN for a class without samples.

        Notes
        -----
        Among the samples of class *i* at a node, let r be the fraction predicted *i*, and e the
        fraction predicted *j*. With T levels the bound of class *i* is the smaller of

        - exp(−2 Γ² / T), where Γ is the sum of the advantages r − ½ along a path,
        - the sum over the other classes *j* of exp(−M² / (2 T)), where M is the sum of r − e along
          a path,

        each for the path with the smallest sum, of those that samples of class *i* take to a leaf.
        A negative sum counts as 0. Errors that no vote decides are added as counted: samples of
        class *i* at frozen and empty nodes that predict another class, and at leaves that tuning
        has given another label although *i* has most votes there.

        With two classes both are the same. If r − ½ is γ at all nodes, they are exp(−2 γ² T).
        Kulkarni et al. (2016) mention a bound for more classes, but not its formula; this one is
        derived in "Martingale programs" of the documentation.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.martingale import MartingaleBoostClassifier
        >>> iris = datasets.load("iris")
        >>> model = MartingaleBoostClassifier(n_levels=5).fit(iris.data, iris.target)
        >>> {label: round(bound, 2) for label, bound in model.program_.error_bounds().items()}
        {'setosa': 0.08, 'versicolor': 0.39, 'virginica': 0.48}
        """
        if any(edge.prediction is None for edge in self.edges):
            raise ValueError(
                "Program.error_bounds needs a program of votes; the edges of this one have no "
                "prediction, as in AdaptiveMartingaleBoostClassifier."
            )
        return {label: self._error_bound(c) for c, label in enumerate(self.classes)}

    def _error_bound(self, c: int) -> float:
        sizes = self.sizes[:, c]
        if not sizes[0]:
            return float("nan")
        predicted = self.counts[:, c] / np.maximum(sizes, 1)[:, None]
        margins = predicted[:, [c]] - predicted
        margins[:, c] = 2 * predicted[:, c] - 1  # twice the advantage
        smallest = np.full(margins.shape, np.inf)  # sum along a path from the root to a node
        smallest[0] = 0
        for edge, flow in zip(self.edges, self.flow[:, c].tolist(), strict=True):
            if flow:  # in the order of their starts, as in _error_rate
                candidate = smallest[edge.start] + margins[edge.start]
                smallest[edge.end] = np.minimum(smallest[edge.end], candidate)
        leaves = [node.kind == "leaf" for node in self.nodes]
        sums = smallest[leaves].min(axis=0, initial=np.inf).clip(min=0)
        bounds = np.exp(-(sums**2) / (2 * max(self.n_levels, 1)))
        by_votes = min(float(bounds[c]), float(np.delete(bounds, c).sum()))
        others = [node.is_end and _errs_without_votes(node, c) for node in self.nodes]
        return min(1.0, int(sizes[others].sum()) / int(sizes[0]) + by_votes)

    def __str__(self) -> str:
        tally = {kind: sum(node.kind == kind for node in self.nodes) for kind in get_args(Kind)}
        kinds = ", ".join(f"{count} {kind}" for kind, count in tally.items() if count)
        return f"Program of {self.n_levels} levels, {len(self.nodes)} nodes: {kinds}"


def _errs_without_votes(end: Node, c: int) -> bool:
    """Whether an end has another label than a class, but not because of the final votes."""
    votes = end.position
    leads = all(votes[c] > other for code, other in enumerate(votes) if code != c)
    return end.prediction != c and (end.kind != "leaf" or leads)
