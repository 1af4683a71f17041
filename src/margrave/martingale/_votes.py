"""The rules of martingale boosting: every learner casts one vote, and a node is the votes so far.

"Interactive Martingale Boosting" (document 004), sections 4.3 and 4.6, after Long and Servedio
(2005). With two classes a node is v_{i,j}: i votes for the second class after j layers. With k
classes layer t could have C(t + k − 1, k − 1) nodes; only those that samples come to are made, and
an empty one at the end of each edge that none took.

Where the document leaves something open or is wrong: its leaf i is positive iff i > L/2, which
gives the middle leaf of an even L to the negatives, so here ties are settled by the training data
that come to a leaf; its freezing rule takes the minimum over the classes, which for k > 2 would
freeze everything, so the second-largest is taken; and a frozen node answers the class that
reaches it with the largest probability, not the one with most samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Codes, Floats
from margrave.martingale._layers import Departure, Key, Moves, Said, Samples
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
            by = reach if mass[leading].any() else total
            return "leaf" if layer == self.n_levels else "empty", _first(leading, by)
        if np.sort(reach)[-2] < self.least:
            return "frozen", int(np.argmax(reach))
        if (mass > 0).sum() == 1:
            return "constant", int(np.argmax(mass))
        return "learner", None

    def step(self, said: list[Said], rows: list[Codes], samples: Samples) -> float:
        """One vote."""
        return 1.0

    def departures(self, node: Node, answers: Codes, positions: Floats | None) -> list[Departure]:
        """To one more vote for the answer."""
        return [
            Departure(_voted(node, answer), answer, np.flatnonzero(answers == answer))
            for answer in np.flatnonzero(np.bincount(answers)).tolist()
        ]

    def unreached(self, node: Node, classes: Codes) -> Iterator[tuple[Key, int | None]]:
        """Every class that a learner knows is an edge."""
        for answer in classes.tolist():
            yield _voted(node, answer), answer


def _voted(node: Node, answer: int) -> Key:
    """The votes after one more."""
    return tuple(int(vote) + (c == answer) for c, vote in enumerate(node.position))


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
