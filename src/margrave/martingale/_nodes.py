"""Tuning a program node by node: every node (I-ALL), or the weak ones (I-SELECT).

Kulkarni et al. (2016), section 4.3, "Granularity of interaction". While the program grows, layer by
layer, a function sees the local confusion matrix of each node on the tuning samples that reach it,
and returns a preference; or a mapping or one text has the preferences.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Codes, Floats
from margrave._validation import is_number
from margrave.confusion import Confusion, Objective, Preference, PreferenceError
from margrave.martingale._growth import PreviousProgram
from margrave.martingale._layers import FittedProgram, Key, Samples
from margrave.martingale._learners import TunableLearner, TuningSamples
from margrave.martingale._request import (
    NotMetWarning,
    SearchResult,
    Step,
    Tuning,
    summarize,
)


@dataclass(frozen=True)
class NodeRequest:
    """A node of a program, as it is passed to a function that returns a preference for it.

    Attributes
    ----------
    votes : tuple of int
        The votes so far for each class, which identify the node.
    layer : int
        Its layer, 0 for the root.
    confusion : Confusion
        Its predictions for the tuning samples that reach it, of all classes.
    advantages : ndarray of shape (n_classes,)
        The recall of each class minus ½; NaN for a class without samples here.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.martingale import MartingaleBoostClassifier
    >>> X, y = load("pima", return_X_y=True)
    >>> model = MartingaleBoostClassifier(n_levels=2).fit(X[::2], y[::2])
    >>> def limit_fp(node):
    ...     fp = node.confusion.fp
    ...     print(f"layer {node.layer}, votes {node.votes}: {fp} false positives")
    ...     return f"fp <= {fp - 5}"
    ...
    >>> tuned = model.tune(limit_fp, X[1::2], y[1::2], granularity="all", max_models=2)
    layer 0, votes (0, 0): 53 false positives
    layer 1, votes (0, 1): 13 false positives
    layer 1, votes (1, 0): 79 false positives
    >>> tuned.tuning_.met
    True
    """

    votes: tuple[int, ...]
    layer: int
    confusion: Confusion
    advantages: Floats


NodePreference = Preference | str | None
NodePreferences = Mapping[tuple[int, ...], NodePreference] | Callable[[NodeRequest], NodePreference]


def parse_node_preferences(
    preferences: Preference | str | NodePreferences,
    classes: NDArray[Any],
    n_levels: int,
    owner: str,
) -> Preference | str | NodePreferences:
    """Validate the preferences about nodes; the keys of a mapping become tuples of int."""
    if isinstance(preferences, str | Preference) or callable(preferences):
        return preferences
    if not isinstance(preferences, Mapping):
        raise TypeError(
            f"{owner} needs a preference for all nodes, a mapping from their votes or a "
            f"callable; got {preferences!r}."
        )
    for key in preferences:
        if not _is_node(key, len(classes), n_levels):
            raise ValueError(
                f"{owner} needs nodes by their votes, {len(classes)} whole numbers "
                f"with a sum below {n_levels}, such as {(0,) * len(classes)} for the root; "
                f"got {key!r}."
            )
    return {tuple(map(int, key)): wanted for key, wanted in preferences.items()}


def _is_node(key: Any, k: int, n_levels: int) -> bool:
    """Whether a key can be the votes of a node with a learner."""
    if not isinstance(key, tuple) or len(key) != k or not all(map(is_number, key)):
        return False
    return all(vote >= 0 and vote == int(vote) for vote in key) and sum(key) < n_levels


@dataclass
class NodeTuner:
    """Tunes the nodes of a program while it is grown again."""

    preferences: Preference | str | NodePreferences  # one text for all nodes, or one for each
    X: Any  # the tuning set
    codes: Codes  # its classes
    classes: NDArray[Any]  # labels of all classes
    positive: Any  # the class that fp and fn refer to
    program: FittedProgram
    samples: Samples  # the training samples, which precede the tuning set in a growing program
    threshold: float | None  # only nodes with a smaller advantage are tuned
    max_models: int  # largest number of models to train for one node
    callback: Callable[[Step], Any] | None  # a true result leaves the other nodes unchanged
    owner: str  # the method that messages name
    results: dict[Key, Tuning] = field(default_factory=dict, init=False)
    strong: set[Key] = field(default_factory=set, init=False)  # advantage of at least the threshold
    cancelled: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        for learner in self.program.learners.values():
            if not isinstance(learner, TunableLearner):
                raise TypeError(
                    f"{self.owner} needs nodes with TunableLogistic or TunableRBFLogistic to tune "
                    f"them one by one; got {type(learner).__name__}. With granularity='quick' any "
                    "learner can be tuned."
                )
        if isinstance(self.preferences, str | Preference):  # raises if it does not fit the classes
            classes = tuple(self.classes.tolist())
            Objective(Preference(self.preferences), self.codes, classes, self.positive)
        self.n_training = len(self.samples.codes)
        self.previous = PreviousProgram(
            self.program, self.samples, tunable=True, is_requested=self.is_requested
        )

    def is_requested(self, key: Key) -> bool:
        """Whether a node may have a preference."""
        if self.cancelled:
            return False
        return not isinstance(self.preferences, Mapping) or self.preferences.get(key) is not None

    @property
    def has_changed(self) -> bool:
        """Whether some node did not meet its preference before."""
        return any(
            node.preference is None or not node.preference.met(node.before)
            for node in self.results.values()
        )

    def refine(self, key: Key, learner: TunableLearner, rows: Codes) -> TunableLearner:
        """Get the preference about a node, and tune its learner to it.

        ``learner`` has just been trained, with the hyperparameters of the previous one. The
        previous learner stays if it meets the preference.
        """
        previous = self.previous.learner(key, rows[rows < self.n_training])
        current: TunableLearner = learner if previous is None else previous
        local = TuningSamples.at_node(rows, self.n_training, self.codes, learner)
        if self.cancelled or local is None:
            return current
        X, known = self.X[local.rows], learner.classes_
        predictions = np.argmax(current._class_scores(X), axis=1)
        try:
            preference = self._find_preference(key, self._matrix(local.rows, known[predictions]))
            if preference is None:
                return current
            labels = tuple(self.classes[known].tolist())
            positive = self.positive if self.positive in labels else None
            objective = Objective(preference, local.codes, labels, positive)
            preference.check(objective.matrix(local.codes))
        except PreferenceError as error:
            if isinstance(self.preferences, str | Preference):
                return current  # one text for all nodes need not suit each of them
            error.add_note(f"This is the preference about the node at {key}.")
            raise
        if objective.evaluate(predictions).shortfall == 0:
            tuned, result = current, SearchResult.unchanged(predictions)
        else:
            tuned, result = learner._tune_node(objective, X, max_models=self.max_models)
        self._record(key, summarize(objective, result))
        return tuned

    def _record(self, key: Key, result: Tuning) -> None:
        self.results[key] = result
        if self.callback is not None:
            step = Step(len(self.results), len(self.program.learners), result.met, result.after)
            self.cancelled = bool(self.callback(step))

    def _matrix(self, rows: Codes, predictions: Codes) -> Confusion:
        """The confusion matrix of some tuning samples."""
        true, predicted = self.classes[self.codes[rows]], self.classes[predictions]
        classes = self.classes.tolist()
        return Confusion.of(true, predicted, classes=classes, positive=self.positive)

    def _find_preference(self, key: Key, matrix: Confusion) -> Preference | None:
        """The preference about a node; None for no change."""
        advantages = np.array([matrix.recall(label) for label in matrix.classes]) - 0.5
        if self.threshold is not None and np.nanmin(advantages) >= self.threshold:
            self.strong.add(key)
            return None
        if isinstance(self.preferences, str | Preference):
            wanted: NodePreference = self.preferences
        elif isinstance(self.preferences, Mapping):
            wanted = self.preferences.get(key)
        else:
            wanted = self.preferences(NodeRequest(key, sum(key), matrix, advantages))
        return None if wanted is None else _restrict_to_present(Preference(wanted), matrix)

    def report(self, before: Codes, after: Codes) -> Tuning:
        """Summarize all nodes; warn if one does not meet its preference."""
        everyone = np.arange(len(self.codes))
        missed = [key for key, node in self.results.items() if not node.met]
        if isinstance(self.preferences, Mapping) and not self.cancelled:
            done = {*self.results, *self.strong}
            missed += [key for key, text in self.preferences.items() if text and key not in done]
        if missed:
            n_requested = len({*self.results, *missed})
            warnings.warn(
                f"{self.owner} did not meet the preferences of {len(missed)} of {n_requested} "
                f"nodes, the first at votes {missed[0]}.",
                NotMetWarning,
                stacklevel=4,
            )
        return Tuning(
            None,
            not missed,
            self._matrix(everyone, before),
            self._matrix(everyone, after),
            None,
            sum(node.n_models for node in self.results.values()),
            self.cancelled,
            tuple(self.results.items()),
        )


def _restrict_to_present(preference: Preference, matrix: Confusion) -> Preference | None:
    """Name the classes of the bounds, and drop bounds on classes without samples at the node."""
    present = {label for label, row in zip(matrix.classes, matrix.counts, strict=True) if row.any()}
    kept = []
    for bound in preference.bounds:
        bound.cells(matrix)  # raises for an unknown class, and for fp without a positive class
        named = bound
        if len(matrix.classes) > 2 and bound.of_positive and not bound.labels:
            named = replace(bound, labels=(str(matrix.positive),))
        if {label for label in matrix.classes if str(label) in named.labels} <= present:
            kept.append(str(named))
    return Preference(*kept) if kept else None
