"""The graph of a martingale program: nodes in layers, edges, and what passed through them.

"Interactive Martingale Boosting" (document 004), section 4.3. A node is where samples stand after
some answers; a learner there answers for a class and sends a sample to the next layer. Nothing is
learned here: a program is an immutable account of counts, from which reach probabilities, local
confusion matrices, the advantages of definition 1 and the error rates of theorem 1 follow.

The document's theorem speaks of a power of the "incidence matrix"; it is the sum over all paths of
the products of the edges' weights, computed here layer by layer. On the samples that were counted
it equals the counted rate exactly, so fractions are used, not floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from margrave.confusion import Confusion

Kind = Literal["learner", "constant", "frozen", "empty", "leaf"]
KINDS: tuple[Kind, ...] = ("learner", "constant", "frozen", "empty", "leaf")


@dataclass(frozen=True)
class Node:
    """A node.

    Attributes
    ----------
    layer : int
        Its layer, 0 for the root.
    position : tuple of float
        Votes so far for each class.
    kind : {"learner", "constant", "frozen", "empty", "leaf"}
        Whether a learner answers here; samples of one class only came and it answers that class;
        it was frozen; no sample came; or it is the end. The last three end a sample's way.
    answer : int or None
        The class that a node without a learner answers.
    """

    layer: int
    position: tuple[float, ...]
    kind: Kind
    answer: int | None = None

    @property
    def is_end(self) -> bool:
        """Whether a sample's way ends here."""
        return self.kind in ("frozen", "empty", "leaf")


@dataclass(frozen=True)
class Edge:
    """An edge from one node to another of the next layer.

    Attributes
    ----------
    start, end : int
        The nodes.
    answer : int or None
        The class that the start answers for samples that go this way; None where positions are
        real numbers and an edge may carry both.
    """

    start: int
    end: int
    answer: int | None = None


@dataclass(frozen=True, eq=False)
class Program:
    """A layered program, with counts of the samples that went through it.

    Attributes
    ----------
    classes : tuple of labels
        The classes.
    nodes : tuple of Node
        Layer by layer; the first is the root.
    edges : tuple of Edge
        In the order of their starts.
    counts : ndarray of int, shape (n_nodes, n_classes, n_classes)
        For each node how many samples of a class (rows) it answered with each class (columns).
    flow : ndarray of int, shape (n_edges, n_classes)
        How many samples of each class took an edge.
    positive : label or None
        The class that the local matrices' ``fp`` and ``fn`` speak of; the second of two by
        default.
    """

    classes: tuple[Any, ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    counts: NDArray[np.int64] = field(repr=False)
    flow: NDArray[np.int64] = field(repr=False)
    positive: Any = None

    def __post_init__(self) -> None:
        k = len(self.classes)
        shapes = {"counts": (len(self.nodes), k, k), "flow": (len(self.edges), k)}
        for name, shape in shapes.items():
            own = np.array(getattr(self, name), dtype=np.int64)
            if own.shape != shape:
                raise ValueError(f"Program needs {name} of shape {shape}; got {own.shape}.")
            own.flags.writeable = False
            object.__setattr__(self, name, own)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Arrays come back from a pickle writeable; these are not."""
        self.__dict__.update(state)
        self.__post_init__()

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def n_levels(self) -> int:
        """How many layers of learners there are; the ends of the longest ways come after them."""
        return max(node.layer for node in self.nodes)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many samples of each class came to each node; shape (n_nodes, n_classes)."""
        came: NDArray[np.int64] = self.counts.sum(axis=2)
        return came

    @property
    def reach(self) -> NDArray[np.float64]:
        """The probability that a sample of each class comes to each node, counted."""
        sizes = self.sizes
        shares: NDArray[np.float64] = sizes / np.maximum(sizes[0], 1)
        return shares

    def at(self, votes: Sequence[float]) -> int:
        """Where a node is in ``nodes``.

        Parameters
        ----------
        votes : tuple of int
            Its votes so far for each class: its position.

        Returns
        -------
        int
        """
        for place, node in enumerate(self.nodes):
            if node.position == tuple(votes):
                return place
        raise ValueError(f"Program.at needs the votes of a node; got {votes!r}.")

    def confusion(self, node: int) -> Confusion:
        """The local confusion matrix of a node.

        Parameters
        ----------
        node : int
            Its place in ``nodes``.

        Returns
        -------
        Confusion
        """
        return Confusion(self.counts[node], self.classes, self.positive)

    @property
    def advantages(self) -> NDArray[np.float64]:
        """γ of each node for each class (definition 1): its share of right answers less ½.

        With two classes they are γ⁻ and γ⁺, in the order of ``classes``; not a number where no
        sample of the class came.
        """
        right = np.diagonal(self.counts, axis1=1, axis2=2)
        sizes = self.sizes
        shares = np.divide(right, sizes, out=np.full(sizes.shape, np.nan), where=sizes > 0)
        halved: NDArray[np.float64] = shares - 0.5
        return halved

    def error_rates(self) -> dict[Any, float]:
        """The share of each class that ends at a wrong answer, by the path sums of theorem 1.

        Returns
        -------
        dict
            By class; with two classes FP-rate and FN-rate are those of the negative and the
            positive one. Not a number for a class without samples.
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
        return sum((w for node, w in ends if node.is_end and node.answer != c), Fraction(0))

    def __str__(self) -> str:
        tally = {kind: sum(node.kind == kind for node in self.nodes) for kind in KINDS}
        kinds = ", ".join(f"{count} {kind}" for kind, count in tally.items() if count)
        return f"Program of {self.n_levels} levels, {len(self.nodes)} nodes: {kinds}"
