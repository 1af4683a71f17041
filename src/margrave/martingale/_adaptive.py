"""Adaptive martingale boosting: learners move samples by their confidence.

Long and Servedio (2008), as in Kulkarni et al. (2016), section 5.4. The hypothesis of a learner is
a real number h in [−1, 1] for two classes, 2p − 1; for k classes it is the vector p − 1/k. The
position of a sample moves by step × h. The step of a layer is the advantage of its learners over
chance, so good layers move samples far. Samples at nearby positions are at one node, and the sign
of the final position (for k classes its largest entry) gives the label.

The paper does not define how positions become nodes; here they are rounded, so that the same sample
always takes the same path. Its AMB-Tune is :meth:`AdaptiveMartingaleBoostClassifier.tune`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from margrave._typing import Codes, Floats
from margrave._validation import Rules, is_number
from margrave.confusion import Preference
from margrave.martingale._boost import ProgramClassifier
from margrave.martingale._layers import Branch, FittedProgram, Key, Routing, Samples
from margrave.martingale._learners import NodePredictions
from margrave.martingale._program import Kind, Node
from margrave.martingale._request import Step, check_limits, check_min_gain, check_preference
from margrave.martingale._root import ScoredProgram


class AdaptiveMartingaleBoostClassifier(ProgramClassifier):
    """Martingale boosting whose learners move samples by their confidence.

    :meth:`tune` changes the program until the confusion matrix of a tuning set meets a preference.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=None
        The learner at every node; :class:`TunableLogistic` if None.
    n_levels : int, default=15
        Number of layers of learners, at most 1000.
    width : float, default=0.5
        Samples whose positions round to the same multiples of it are at one node. A layer moves a
        position by at most 1 − 1/k, and by less with weak learners, which need narrower cells.
    balance : bool, default=True
        Whether the classes have the same total weight at each node.
    n_jobs : int, default=None
        Number of nodes of a layer to train at a time, in threads.
    random_state : int, RandomState instance or None, default=None
        Seeds of learners with randomness; the result is the same for any ``n_jobs``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    program_ : Program
        The graph, with counts of the training samples; the last layer has a leaf for each class.
    learners_ : dict of int to classifier
        The learners by node of the program; their classes are positions in ``classes_``.
    steps_ : ndarray of shape (n_levels,)
        How far each layer moves its samples: its advantage over chance.
    sharpness_ : float
        β: the probabilities are the softmax of β times the final positions plus the offset.
    offset_ : ndarray of shape (n_classes,)
        Added by tuning to the scores of the classes.
    tuning_ : Tuning or None
        The result of the last :meth:`tune`; None before it.

    Notes
    -----
    A fitted program keeps its training data, because tuning grows it again.

    Examples
    --------
    >>> from margrave import datasets
    >>> from margrave.martingale import AdaptiveMartingaleBoostClassifier
    >>> iris = datasets.load("iris")
    >>> model = AdaptiveMartingaleBoostClassifier(n_levels=3).fit(iris.data, iris.target)
    >>> print(model.program_)
    Program of 3 levels, 23 nodes: 4 learner, 16 constant, 3 leaf
    """

    def __init__(
        self,
        estimator: Any = None,
        n_levels: int = 15,
        *,
        width: float = 0.5,
        balance: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_levels = n_levels
        self.width = width
        self.balance = balance
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def steps_(self) -> Floats:
        """How far each layer moves its samples."""
        return np.array(self._fitted_program.steps)

    def _rules(self) -> Rules:
        wide = is_number(self.width) and 0 < self.width < np.inf
        rules = super()._rules()
        has_proba = self.estimator is None or hasattr(self.estimator, "predict_proba")
        return {
            **rules,
            "width": ("a number above 0", wide),
            "estimator": (
                "a classifier with predict_proba or None",
                rules["estimator"][1] and has_proba,
            ),
        }

    def tune(
        self,
        preference: Preference | str,
        X_tune: ArrayLike,
        y_tune: ArrayLike,
        *,
        granularity: Literal["root", "quick"] = "quick",
        positive: Any = None,
        max_models: int | None = None,
        min_gain: float = 3.0,
        callback: Callable[[Step], Any] | None = None,
    ) -> Self:
        """Return a copy whose predictions for the tuning set meet a preference.

        Parameters
        ----------
        preference : Preference or str
            The requested bounds on the confusion matrix of the tuning set.
        X_tune, y_tune : array-like
            Samples of every class that the model was not trained on.
        granularity : {"root", "quick"}, default="quick"
            Whether to tune all nodes to local targets (I-ROOT), or mostly to move offsets.
        positive : label, optional
            The class that ``fp`` and ``fn`` refer to; by default the second of two.
        max_models : int, optional
            With "quick", the largest number of programs to grow again (2; with 0 only the offset
            moves); with "root", the largest number of models to train for one node (20).
        min_gain : float, default=3.0
            A new program has to have fewer errors than this one with its offset moved, by more than
            so many standard errors of the difference; a smaller shortfall always counts. With 0 any
            improvement counts.
        callback : callable, optional
            Called with a :class:`Step` before each new program and at the end; with "root" after
            each node too. If it returns a true value, the search stops and returns the best model
            so far.

        Returns
        -------
        AdaptiveMartingaleBoostClassifier
            A tuned copy, with the result in ``tuning_``. If the preference is not met, the nearest
            model of the search, with a :class:`NotMetWarning`. Tuning changes the fitted program,
            not the parameters: a clone is untuned.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.martingale import AdaptiveMartingaleBoostClassifier
        >>> pima = datasets.load("pima")
        >>> X, y = pima.data, pima.target
        >>> model = AdaptiveMartingaleBoostClassifier(n_levels=5).fit(X[::2], y[::2])
        >>> tuned = model.tune("fn <= 20", X[1::2], y[1::2])
        >>> tuned.tuning_.met, tuned.tuning_.after.fn <= 20
        (True, True)
        """
        owner = f"{type(self).__name__}.tune"
        if granularity not in ("root", "quick"):
            raise ValueError(
                f"{owner} needs granularity to be 'root' or 'quick'; got {granularity!r}."
            )
        if max_models is not None:
            check_limits(owner, max_models=max_models)
        check_min_gain(min_gain, owner)
        return self._tune_globally(
            check_preference(preference, owner),
            X_tune,
            y_tune,
            positive,
            quick=granularity == "quick",
            max_models=max_models,
            min_gain=min_gain,
            callback=callback,
        )

    def _routing(self, k: int) -> Routing:
        return PositionRouting(self.n_levels, self.width)

    def _votes_of(self, program: FittedProgram) -> None:
        return None

    def _decide_ends(self, program: ScoredProgram, offset: Floats) -> FittedProgram:
        routing = PositionRouting(self.n_levels, self.width, offset / program.sharpness)
        return replace(program.program, routing=routing)


class PositionRouting(Routing):
    """Positions are real numbers, and a node is a cell of them.

    ``end_offset`` is added to the final positions that decide the leaf.
    """

    uses_positions = True

    def __init__(self, n_levels: int, width: float, end_offset: Floats | float = 0.0) -> None:
        self.n_levels, self.width, self.end_offset = n_levels, width, end_offset

    def node_kind(
        self, layer: int, key: Key, mass: Floats, total: Floats
    ) -> tuple[Kind, int | None]:
        """A leaf, a node of one class, or a learner."""
        if layer == self.n_levels:
            return "leaf", int(np.argmax(key))
        if (mass > 0).sum() == 1:
            return "constant", int(np.argmax(mass))
        return "learner", None

    def position(self, layer: int, key: Key) -> tuple[float, ...]:
        """The centre of a cell."""
        size = 1.0 if layer == self.n_levels else self.width
        return tuple(size * cell for cell in key)

    def step(
        self, predictions: list[NodePredictions], rows: list[Codes], samples: Samples
    ) -> float:
        """The advantage of a layer: the mean of (k p − 1) / (k − 1) of the true classes.

        1 if its learners are certain and right, 0 at chance; every class has the same weight.
        """
        if not predictions:
            return 1.0
        at = np.concatenate(rows)
        proba = np.concatenate([one.proba for one in predictions if one.proba is not None])
        own = proba[np.arange(len(at)), samples.codes[at]]
        weights = samples.balanced(at)
        chance = 1 / samples.k
        advantage = float(weights @ (own - chance)) / float(weights.sum() * (1 - chance))
        return min(max(advantage, 0.0), 1.0)

    def branches(self, node: Node, predictions: Codes, positions: Floats | None) -> list[Branch]:
        """By cells; after the last layer by the class with the largest position."""
        positions = np.zeros((len(predictions), 0)) if positions is None else positions
        if node.layer == self.n_levels - 1:
            largest = np.argmax(positions + self.end_offset, axis=1)
            cells = np.eye(positions.shape[1])[largest]
        else:
            cells = np.rint(positions / self.width)
        keys, cell = np.unique(cells, axis=0, return_inverse=True)
        return [
            Branch(tuple(map(int, key)), None, np.flatnonzero(cell.ravel() == number))
            for number, key in enumerate(keys.tolist())
        ]

    def required_children(self, node: Node, classes: Codes) -> Iterator[tuple[Key, int | None]]:
        """A leaf for each class."""
        if node.layer == self.n_levels - 1:
            for leaf in np.eye(len(node.position), dtype=np.int64).tolist():
                yield tuple(leaf), None
