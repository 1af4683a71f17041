"""Growing a program again from what is there: nodes stay as they are, or keep their settings.

"Interactive Martingale Boosting" (document 004), figure 3: after every edit the program is grown
again. A node to which the same training samples come stays, to the last digit; one to which others
come is trained on them, with the settings that were found for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from margrave._typing import Codes
from margrave.martingale._layers import Key, Layered, Samples
from margrave.martingale._program import Node


def never(key: Key) -> bool:  # noqa: ARG001 - of any node
    """Nothing is asked of a node."""
    return False


class There:
    """The nodes of a program and their learners, by their votes.

    Parameters
    ----------
    layered : Layered
        The program.
    samples : Samples
        What it was trained on.
    ours : bool
        Whether its learners are ours, and can have settings of their own: the offset of all nodes
        becomes each learner's.
    taller : bool, default=False
        Whether it grows by more levels: then what ends a way by the number of levels is decided
        anew.
    asks : callable, optional
        Whether something is wanted of a node: it does not stay then.
    """

    def __init__(
        self,
        layered: Layered,
        samples: Samples,
        *,
        ours: bool,
        taller: bool = False,
        asks: Callable[[Key], bool] = never,
    ) -> None:
        keys = [key for layer in layered.keys for key in layer]
        self.ours, self.taller, self.asks, self.offset = ours, taller, asks, layered.offset
        self.nodes = dict(zip(keys, layered.nodes, strict=True))
        self.learners = {keys[node]: learner for node, learner in layered.learners.items()}
        self.rows: dict[Key, Codes] = dict.fromkeys(keys, np.zeros(0, dtype=np.intp))
        layered.walk(samples.X, lambda node, rows, _: self.rows.update({keys[node]: rows}))

    def node(self, key: Key, rows: Codes) -> Node | None:
        """The node that is there, if it stays: the same training samples come."""
        known = self.nodes.get(key)
        if known is None or self.asks(key) or (self.taller and known.kind in ("frozen", "leaf")):
            return None
        return known if np.array_equal(self.rows[key], rows) else None

    def kept(self, key: Key, rows: Codes) -> Any:
        """The learner of a node that stays; None if it is trained."""
        return None if self.node(key, rows) is None else self.same(key, rows)

    def same(self, key: Key, rows: Codes) -> Any:
        """The learner that is there, as it is, if the same training samples come; else None."""
        one = self.learners.get(key)
        if one is None or not np.array_equal(self.rows[key], rows):
            return None
        if not self.ours or not self.offset.any():
            return one
        own = self._offset(one)
        moved = one._fitted_copy(offset=own)
        moved.offset_ = np.array(list(own.values()))
        return moved

    def like(self, key: Key, classes: Codes) -> Any:
        """The learner that is there, to train another of; None for the usual one.

        That is trained where there was none, or other classes come, or learners are not ours.
        """
        one = self.learners.get(key)
        if one is None or not self.ours or not np.array_equal(one.classes_, classes):
            return None
        return clone(one).set_params(offset=self._offset(one))

    def _offset(self, one: Any) -> dict[Any, float]:
        """Its offset and that of all nodes."""
        own = one.offset_ + self.offset[one.classes_]
        return dict(zip(one.classes_.tolist(), own.tolist(), strict=True))
