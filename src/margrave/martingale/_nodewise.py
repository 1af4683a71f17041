"""Tuning a program node by node: every node (I-ALL), or the weak ones (I-SELECT).

"Interactive Martingale Boosting" (document 004), section 4.3, "Granularity of interaction". As the
program grows, layer by layer, each node's local confusion matrix on the tuning samples that come
to it is shown, and what is wanted of it is asked of a person, or taken from a mapping or a text.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Codes, Floats
from margrave._validation import is_number
from margrave.confusion import Confusion, Objective, Preference, PreferenceError
from margrave.martingale._again import There
from margrave.martingale._layers import Key, companions_at
from margrave.martingale._request import NotMetWarning, Outcome, Step, Tuning, account

_PATIENCE = 4


@dataclass(frozen=True)
class NodeRequest:
    """A node whose preference is asked for.

    Attributes
    ----------
    votes : tuple of int
        The votes so far for each class: the name of the node.
    layer : int
        Its layer, 0 for the root.
    confusion : Confusion
        Its answers to the tuning samples that come to it, of all classes.
    advantages : ndarray of shape (n_classes,)
        Its share of right answers less ½, for each class; not a number for one that did not come.
    """

    votes: tuple[int, ...]
    layer: int
    confusion: Confusion
    advantages: Floats


Want = Preference | str | None
Wants = Mapping[tuple[int, ...], Want] | Callable[[NodeRequest], Want]


class NodeWise:
    """What is wanted of the nodes of a program, asked as it grows.

    Parameters
    ----------
    wants : Preference, str, mapping or callable
        One text for all nodes, or something for each.
    X, codes
        The tuning samples and their classes.
    classes : ndarray of labels
        All classes.
    positive : label or None
        The class that ``fp`` and ``fn`` speak of.
    there : There
        The nodes of the program that is asked.
    n_training : int
        How many training samples stand before the tuning samples among the program's rows.
    threshold : float or None
        Only nodes with a smaller advantage are asked.
    max_models : int
        Most models to train for one node.
    callback : callable or None
        Called with a Step after each node; a true answer leaves the others as they are.
    """

    def __init__(
        self,
        wants: Preference | str | Wants,
        X: Any,
        codes: Codes,
        classes: NDArray[Any],
        positive: Any,
        *,
        there: There,
        n_training: int,
        threshold: float | None,
        max_models: int,
        callback: Callable[[Step], Any] | None,
    ) -> None:
        self.wants, self.X, self.codes = wants, X, codes
        self.classes, self.positive, self.n_training = classes, positive, n_training
        self.there, self.threshold = there, threshold
        there.asks = self.asks
        self.max_models, self.callback = max_models, callback
        self.nodes: dict[Key, Tuning] = {}
        self.strong: set[Key] = set()  # not asked, for their advantage
        self.most, self.cancelled = 0, False

    def check(self, learners: Collection[Any], n_levels: int, owner: str) -> None:
        """Refuse learners that cannot be tuned, and wants that are none."""
        self.most = len(learners)
        for learner in learners:
            if not hasattr(learner, "_tuned"):
                raise TypeError(
                    f"{owner} needs nodes with a TunableLogistic to tune them one by one; got "
                    f"{type(learner).__name__}. With granularity='root' any learner can be tuned."
                )
        if isinstance(self.wants, str | Preference):  # does it fit the classes at all
            Objective(
                Preference(self.wants), self.codes, tuple(self.classes.tolist()), self.positive
            )
        elif not isinstance(self.wants, Mapping) and not callable(self.wants):
            raise TypeError(
                f"{owner} needs a preference for all nodes, a mapping from their votes or a "
                f"callable; got {self.wants!r}."
            )
        if isinstance(self.wants, Mapping):
            wants: dict[Key, Want] = {}
            for key, want in self.wants.items():
                if not _is_node(key, len(self.classes), n_levels):
                    raise ValueError(
                        f"{owner} needs nodes by their votes, {len(self.classes)} whole numbers "
                        f"with a sum below {n_levels}, such as {(0,) * len(self.classes)} for the "
                        f"root; got {key!r}."
                    )
                wants[tuple(map(int, key))] = want
            self.wants = wants

    @property
    def changed(self) -> bool:
        """Whether some node did not do what was wanted of it before."""
        return any(
            node.preference is None or not node.preference.met(node.before)
            for node in self.nodes.values()
        )

    def asks(self, key: Key) -> bool:
        """Whether something may be wanted of a node."""
        if self.cancelled:
            return False
        return not isinstance(self.wants, Mapping) or self.wants.get(key) is not None

    def refine(self, key: Key, learner: Any, rows: Codes) -> Any:
        """Ask what is wanted of a node, and tune its learner to that.

        The learner is trained as the one that is there was, or is like it; that one stays unless
        more is wanted of it.
        """
        same = self.there.same(key, rows[rows < self.n_training])
        same = learner if same is None else same
        came = companions_at(rows, self.n_training, self.codes, learner)
        if self.cancelled or came is None:
            return same
        (at, codes), known = came, learner.classes_
        answers = np.argmax(same._class_scores(self.X[at]), axis=1)
        try:
            wanted = self._wanted(key, self._matrix(at, known[answers]))
            if wanted is None:
                return same
            labels = tuple(self.classes[known].tolist())
            positive = self.positive if self.positive in labels else None
            objective = Objective(wanted, codes, labels, positive)
            wanted.check(objective.matrix(codes))
        except PreferenceError as error:
            if isinstance(self.wants, str | Preference):
                return same  # a text for all nodes need not suit each of them
            error.add_note(f"This was wanted of the node at {key}.")
            raise
        if objective.evaluate(answers).shortfall == 0:
            tuned, outcome = same, Outcome(answers, answers, answers, 0, cancelled=False)
        else:
            tuned, outcome = learner._tuned(objective, self.X[at], _PATIENCE, self.max_models)
        self.nodes[key] = account(objective, outcome)
        if self.callback is not None:
            done = self.nodes[key]
            step = Step(len(self.nodes), self.most, done.met, done.after)
            self.cancelled = bool(self.callback(step))
        return tuned

    def _matrix(self, at: Codes, answers: Codes) -> Confusion:
        """The confusion matrix of some tuning samples."""
        true, called = self.classes[self.codes[at]], self.classes[answers]
        classes = self.classes.tolist()
        return Confusion.of(true, called, classes=classes, positive=self.positive)

    def _wanted(self, key: Key, matrix: Confusion) -> Preference | None:
        """What is wanted of a node, if it is asked."""
        advantages = np.array([matrix.recall(label) for label in matrix.classes]) - 0.5
        if self.threshold is not None and np.nanmin(advantages) >= self.threshold:
            self.strong.add(key)
            return None
        if isinstance(self.wants, str | Preference):
            wanted: Want = self.wants
        elif isinstance(self.wants, Mapping):
            wanted = self.wants.get(key)
        else:
            wanted = self.wants(NodeRequest(key, sum(key), matrix, advantages))
        return None if wanted is None else _for_those_there(Preference(wanted), matrix)

    def report(self, before: Codes, after: Codes, owner: str) -> Tuning:
        """What was done, with a warning if a node missed what was wanted of it."""
        everyone = np.arange(len(self.codes))
        matrices = self._matrix(everyone, before), self._matrix(everyone, after)
        missed = [key for key, node in self.nodes.items() if not node.met]
        if isinstance(self.wants, Mapping) and not self.cancelled:
            told = {*self.nodes, *self.strong}
            missed += [key for key, want in self.wants.items() if want and key not in told]
        if missed:
            asked = len({*self.nodes, *missed})
            warnings.warn(
                f"{owner} did not meet what was wanted of {len(missed)} of {asked} nodes, the "
                f"first at votes {missed[0]}.",
                NotMetWarning,
                stacklevel=4,
            )
        n_models = sum(node.n_models for node in self.nodes.values())
        return Tuning(
            None, not missed, *matrices, None, n_models, self.cancelled, tuple(self.nodes.items())
        )


def _for_those_there(wanted: Preference, matrix: Confusion) -> Preference | None:
    """Bounds with their classes written out, without those of classes that have not come."""
    there = {label for label, row in zip(matrix.classes, matrix.counts, strict=True) if row.any()}
    kept = []
    for bound in wanted.bounds:
        bound.cells(matrix)  # refuses a class that is none, and fp where none is positive
        named = bound
        if len(matrix.classes) > 2 and bound.of_positive and not bound.labels:
            named = replace(bound, labels=(str(matrix.positive),))
        if {label for label in matrix.classes if str(label) in named.labels} <= there:
            kept.append(str(named))
    return Preference(*kept) if kept else None


def _is_node(key: Any, k: int, n_levels: int) -> bool:
    """Whether a key can be the votes of a node with a learner."""
    if not isinstance(key, tuple) or len(key) != k or not all(map(is_number, key)):
        return False
    return all(vote >= 0 and vote == int(vote) for vote in key) and sum(key) < n_levels
