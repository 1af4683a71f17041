"""The history of a dialog: every reply, and from where it was asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave.confusion import Confusion
from margrave.steer._reply import Comparison, Reply
from margrave.steer._steered import SteeredClassifier


@dataclass
class History:
    """Replies as a tree: a request from an earlier step branches off.

    Attributes
    ----------
    replies : list of Reply
        In the order they were given, the start first.
    parents : list of int
        From which step each was asked.
    at : int
        Where the dialog stands.
    undone : list of int
        Steps that were left by undoing, the last one last.
    """

    replies: list[Reply]
    parents: list[int] = field(default_factory=lambda: [0])
    at: int = 0
    undone: list[int] = field(default_factory=list)

    @property
    def reply(self) -> Reply:
        """The reply where the dialog stands."""
        return self.replies[self.at]

    def add(self, reply: Reply, parent: int) -> None:
        """Keep a reply to a request that was made at a step, and stand there."""
        self.replies.append(reply)
        self.parents.append(parent)
        self.at, self.undone = len(self.replies) - 1, []

    def undo(self) -> None:
        """Stand where the request was made."""
        if self.at == 0:
            raise ValueError("Dialog.undo has nothing to undo: the dialog is at its start.")
        self.undone.append(self.at)
        self.at = self.parents[self.at]

    def redo(self) -> None:
        """Take back an undo."""
        if not self.undone:
            raise ValueError("Dialog.redo has nothing to redo.")
        self.at = self.undone.pop()

    def goto(self, step: Any) -> None:
        """Stand at a step."""
        self.at, self.undone = self.number(step, "goto"), []

    def number(self, step: Any, method: str) -> int:
        """A step that exists."""
        whole = isinstance(step, int | np.integer) and not isinstance(step, bool)
        if not whole or not 0 <= step < len(self.replies):
            raise ValueError(
                f"Dialog.{method} needs a step from 0 to {len(self.replies) - 1}; got {step!r}."
            )
        return int(step)


class Conversation:
    """What a dialog shows of its history, and how its user goes back and forth in it."""

    _history: History
    _codes: NDArray[np.intp]

    @property
    def history(self) -> tuple[Reply, ...]:
        """All replies, the start first."""
        return tuple(self._history.replies)

    @property
    def position(self) -> int:
        """Where the dialog stands in its history."""
        return self._history.at

    @property
    def reply(self) -> Reply:
        """The reply where the dialog stands."""
        return self._history.reply

    @property
    def confusion(self) -> Confusion:
        """The tuning samples by the current model."""
        return self.reply.after

    @property
    def model(self) -> SteeredClassifier:
        """The current model, which promises nothing yet."""
        return self.reply.model

    def undo(self) -> Reply:
        """Go back to where the last request was made.

        Returns
        -------
        Reply
        """
        self._history.undo()
        return self.reply

    def redo(self) -> Reply:
        """Take back an undo.

        Returns
        -------
        Reply
        """
        self._history.redo()
        return self.reply

    def goto(self, step: int) -> Reply:
        """Go to a step of the history; a request from there branches off.

        Parameters
        ----------
        step : int
            Its number; 0 is the start.

        Returns
        -------
        Reply
        """
        self._history.goto(step)
        return self.reply

    def compare(self, a: int, b: int) -> Comparison:
        """Two steps side by side.

        Parameters
        ----------
        a, b : int
            Their numbers.

        Returns
        -------
        Comparison
        """
        steps = [self._history.number(step, "compare") for step in (a, b)]
        first, second = (self._history.replies[step] for step in steps)
        codes = self._codes
        one, two = (reply.option.answers for reply in (first, second))
        return Comparison(
            first,
            second,
            int((one != two).sum()),
            int(((one == codes) & (two != codes)).sum()),
            int(((one != codes) & (two == codes)).sum()),
        )
