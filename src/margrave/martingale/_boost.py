"""Martingale boosting: a branching program in which every learner casts one vote.

"Interactive Martingale Boosting" (document 004), sections 4.3 and 4.6, after Long and Servedio
(2005). A node is the vector of votes so far, so ways that got the same votes in another order meet
again. Each node trains on the samples that came to it, its classes reweighted to the same weight,
and sends each along the edge of its answer. After the last layer the class with most votes is the
label. The rules are in `_votes`, tuning by the global matrix in `_rooted` and node by node in
`_nodewise`; this file is the estimator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from margrave._typing import Codes, Floats
from margrave._validation import Rules, is_count, is_number
from margrave.confusion import Objective, Preference
from margrave.martingale._again import There
from margrave.martingale._classifier import ProgramClassifier, sharpness
from margrave.martingale._growth import Grown, Refine, is_ours
from margrave.martingale._layers import Layered, Moves, Samples
from margrave.martingale._nodewise import NodeWise, Wants
from margrave.martingale._program import Program
from margrave.martingale._request import (
    Step,
    Tuning,
    check_limits,
    check_positive,
    check_wanted,
    make_objective,
    report,
    tuning_codes,
)
from margrave.martingale._rooted import RootSearch, Settled, combined
from margrave.martingale._votes import Votes, standing

Granularity = Literal["root", "all", "select"]


class MartingaleBoostClassifier(ProgramClassifier):
    """A layered program of learners; each casts a vote, and the votes so far choose the next.

    Parameters
    ----------
    estimator : classifier, default=None
        The learner at every node; :class:`TunableLogistic` if None. One that takes no
        ``sample_weight`` is trained on samples drawn by their weights.
    n_levels : int, default=15
        Layers of learners. An odd number leaves no tie between two classes.
    balance : bool, default=True
        Whether each node gives its classes the same weight, so that its learner has an advantage
        on both sides.
    freeze : float, default=None
        ε: a node ends with the class that reaches it most, once the second-largest of the
        classes' probabilities to reach it is below ``ε / (2 · C(L + k − 1, k))``, which for two
        classes is the document's ``ε / (L (L + 1))``. None or 0 freezes nothing.
    n_jobs : int, default=None
        Nodes of a layer to train at a time, in threads.
    random_state : int, RandomState instance or None, default=None
        Seeds of learners that draw at random; the same for any ``n_jobs``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    program_ : Program
        The graph, with counts of the training samples.
    learners_ : dict of int to classifier
        The learners by node of the program; they know the classes by their position.
    sharpness_ : float
        β: the probabilities are a softmax of β times the final votes and the offset.
    offset_, node_offset_ : ndarray of shape (n_classes,)
        What tuning adds to the scores of the classes at the end, and at every node.
    tuning_ : Tuning or None
        What the last :meth:`tune` did.

    Notes
    -----
    A fitted program keeps its training data, since tuning grows it again.

    Examples
    --------
    >>> from margrave import datasets
    >>> from margrave.martingale import MartingaleBoostClassifier
    >>> iris = datasets.load("iris")
    >>> model = MartingaleBoostClassifier(n_levels=5).fit(iris.data, iris.target)
    >>> print(model.program_)
    Program of 5 levels, 26 nodes: 8 learner, 11 constant, 7 leaf
    >>> model.error_rates()
    {'setosa': 0.0, 'versicolor': 0.02, 'virginica': 0.0}
    """

    def __init__(
        self,
        estimator: Any = None,
        n_levels: int = 15,
        *,
        balance: bool = True,
        freeze: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_levels = n_levels
        self.balance = balance
        self.freeze = freeze
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _rules(self) -> Rules:
        freezes = self.freeze is None or (is_number(self.freeze) and 0 <= self.freeze < np.inf)
        return {**super()._rules(), "freeze": ("None or a number of at least 0", freezes)}

    def tune(
        self,
        preference: Preference | str | Wants,
        X_tune: ArrayLike,
        y_tune: ArrayLike,
        *,
        granularity: Granularity = "root",
        advantage_threshold: float = 0.3,
        positive: Any = None,
        max_models: int | None = None,
        callback: Callable[[Step], Any] | None = None,
    ) -> Self:
        """A copy whose answers to the tuning set keep to a preference.

        Parameters
        ----------
        preference : Preference, str, mapping or callable
            With granularity "root", what is wanted of the confusion matrix on the tuning set. Else
            what is wanted of the local matrix of each node: one text for all nodes; a mapping
            from a node's votes, such as ``(0, 0)`` for the root, to a preference; or a callable
            that is given a :class:`NodeRequest` and returns a preference, or None to leave
            the node as it is.
        X_tune, y_tune : array-like
            Samples that were not trained on, of every class.
        granularity : {"root", "all", "select"}, default="root"
            Whether the global matrix is tuned (I-ROOT), every node (I-ALL), or those nodes whose
            smallest advantage on the tuning samples is below ``advantage_threshold`` (I-SELECT).
        advantage_threshold : float, default=0.3
            See ``granularity``.
        positive : label, optional
            The class that ``fp`` and ``fn`` speak of; by default the second of two.
        max_models : int, optional
            With "root", most programs to grow again (2; with 0 only offsets move); else most
            models to train for one node (20).
        callback : callable, optional
            Called with a :class:`Step` before each program that is grown and at the end, or after
            each node; a true answer stops the search, and the best so far is returned.

        Returns
        -------
        MartingaleBoostClassifier
            With ``tuning_`` for what was done. If the preference is not met, the nearest one
            that was found, with a :class:`NotMetWarning`. What was tuned is in the trained
            program, not in the parameters: a clone of it starts anew.
        """
        samples = self._training("tune")
        owner = f"{type(self).__name__}.tune"
        if granularity == "root":
            hint = ", or granularity='all' or 'select' for what is wanted of nodes"
            wanted = check_wanted(preference, owner, hint)
        if max_models is not None:
            check_limits(owner, max_models=max_models)
        rows = self._validated(X_tune, reset=False)
        if granularity == "root":
            objective = make_objective(
                wanted, y_tune, self.classes_, positive, rows.shape[0], owner
            )
            best, outcome = self._root_search(rows, objective, max_models, callback).run()
            tuned = self._with(best.program, best.node_offset, best.end_offset)
            tuned.tuning_ = report(objective, outcome, owner)
            return tuned
        if granularity not in ("all", "select"):
            raise ValueError(
                f"{owner} needs granularity to be 'root', 'all' or 'select'; got {granularity!r}."
            )
        if not is_number(advantage_threshold):
            raise ValueError(
                f"{owner} needs advantage_threshold to be a number; got {advantage_threshold!r}."
            )
        check_positive(positive, self.classes_, owner)
        asked = NodeWise(
            preference,
            rows,
            tuning_codes(y_tune, self.classes_, rows.shape[0], owner),
            self.classes_,
            positive,
            there=There(self._layered, samples, ours=True),
            n_training=len(samples.codes),
            threshold=advantage_threshold if granularity == "select" else None,
            max_models=20 if max_models is None else max_models,
            callback=callback,
        )
        asked.check(self.learners_.values(), self.n_levels, owner)
        return self._asked(asked, owner)

    def grow(self, levels: int = 1) -> Self:
        """A copy with more levels, trained on the same samples.

        Nodes that were there keep their learners, tuned ones too, and so do the offsets; what was
        not there is trained. Where nothing was tuned, it is what :meth:`fit` would give with as
        many levels. ``freeze`` freezes less in a larger program: nodes that were frozen may grow
        on, and a node to which other samples come than before is trained on them, with its
        settings.

        Parameters
        ----------
        levels : int, default=1
            How many more.

        Returns
        -------
        MartingaleBoostClassifier

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.martingale import MartingaleBoostClassifier
        >>> iris = datasets.load("iris")
        >>> model = MartingaleBoostClassifier(n_levels=3).fit(iris.data, iris.target)
        >>> print(model.grow(2).program_)
        Program of 5 levels, 26 nodes: 8 learner, 11 constant, 7 leaf
        """
        samples = self._training("grow")
        if not is_count(levels):
            raise ValueError(
                f"{type(self).__name__}.grow needs levels to be a whole number of at least 1; "
                f"got {levels!r}."
            )
        taller = self._fitted_copy(n_levels=self.n_levels + int(levels))
        # Others may draw at random, and where nodes freeze they get other seeds: trained anew.
        ours = is_ours(self._learner())
        there = There(self._layered, samples, ours=ours, taller=True)
        grown = taller._grown(
            samples,
            np.exp(self._log_cost),
            there=there if ours or not self.freeze else None,
            offset=self.node_offset_,
        )
        program = taller._settled(grown, self._log_cost)
        taller = taller._with(program, np.zeros(len(self.classes_)), self.offset_)
        taller.tuning_ = None
        return taller

    def _asked(self, asked: NodeWise, owner: str) -> Self:
        """A copy that was grown again, with its nodes tuned as asked."""
        grown = self._grown(
            self._samples.with_companions(asked.X, asked.codes),
            np.exp(self._log_cost),
            asked.refine,
            asked.there,
            self.node_offset_,  # of all nodes: from now on each has its own
        )
        program = self._settled(grown, self._log_cost) if asked.changed else self._as_it_is
        tuned = self._with(program, np.zeros(len(self.classes_)), self.offset_)
        before, after = (np.argmax(one._scores_of(asked.X), axis=1) for one in (self, tuned))
        tuned.tuning_ = asked.report(before, after, owner)
        return tuned

    def _root_search(
        self, rows: Any, objective: Objective, max_models: int | None, callback: Any
    ) -> RootSearch:
        return RootSearch(
            self._as_it_is,
            self.offset_,
            partial(self._again, self._samples.with_companions(rows, objective.codes)),
            rows,
            objective,
            len(self._samples.codes),
            2 if max_models is None else max_models,
            callback,
        )

    @property
    def _as_it_is(self) -> Settled:
        return Settled(self._layered, self._votes, self.sharpness_, self._log_cost)

    def _again(self, samples: Samples, log_cost: Floats, refine: Refine | None) -> Settled:
        """Another program on the training samples; the tuning samples come along."""
        return self._settled(self._grown(samples, np.exp(log_cost), refine), log_cost)

    def _settled(self, grown: Grown, log_cost: Floats) -> Settled:
        votes = self._final_votes(grown.layered)
        return Settled(grown.layered, votes, self._sharpness(grown), log_cost)

    def _with(self, program: Settled, node_offset: Floats, end_offset: Floats) -> Self:
        """A copy that answers by another program and other offsets."""
        tuned = self._fitted_copy()
        answers = (program.sharpness * program.votes + end_offset).argmax(axis=1)
        ends = {
            place: int(answers[place])
            for place, node in enumerate(program.layered.nodes)
            if node.is_end
        }
        tuned._layered = replace(
            program.layered,
            offset=combined(program.layered, node_offset),
            end_answers=ends,
            learners=dict(program.layered.learners),
        )
        tuned._votes, tuned.sharpness_, tuned._log_cost = program[1:]
        tuned.offset_, tuned.learners_ = end_offset.copy(), dict(program.layered.learners)
        known = self._samples
        tuned.program_ = tuned._layered.program(known.X, known.codes, self.program_.classes)
        return tuned

    def _unbiased(self) -> Self:
        """A copy without an offset of its end, for those who decide on its scores themselves."""
        nothing = np.zeros(len(self.classes_))
        return self._with(self._as_it_is, nothing, nothing)

    def _measured_by(self, X: Any, y: Any, decide: Callable[[Floats], Codes]) -> Program:
        """The program with the counts of samples, its ends answering as another decides.

        Parameters
        ----------
        X, y
            The samples.
        decide : callable
            From probabilities, of shape (n, k), to answers.
        """
        ends = [place for place, node in enumerate(self._layered.nodes) if node.is_end]
        proba = softmax(self.sharpness_ * self._votes[ends] + self.offset_, axis=1)
        answers = dict(zip(ends, decide(proba).tolist(), strict=True))
        return self._counted(replace(self._layered, end_answers=answers), X, y)

    def _training(self, what: str) -> Samples:
        """The training samples, which an accepted model has no more."""
        check_is_fitted(self)
        if not hasattr(self, "_samples"):
            raise ValueError(
                f"{type(self).__name__}.{what} needs the training data, which this model has "
                "given away: it answers, and that is all."
            )
        return self._samples

    def _forget_training(self) -> Self:
        """Drop the training data: the model answers, but cannot be tuned or grown any more."""
        self.__dict__.pop("_samples", None)
        return self

    @property
    def node_offset_(self) -> Floats:
        """What is added to the logarithms of the probabilities at every node."""
        return self._layered.offset

    def _moves(self, k: int) -> Moves:
        return Votes(self.n_levels, self.freeze, k)

    def _settle(self, grown: Grown) -> None:
        self._votes = self._final_votes(grown.layered)
        self._log_cost = np.zeros(grown.layered.k)
        self.tuning_: Tuning | None = None
        super()._settle(grown)

    def _final_votes(self, layered: Layered) -> Floats:
        return np.array([standing(node, self.n_levels) for node in layered.nodes])

    def _sharpness(self, grown: Grown) -> float:
        """As of the samples, but all that end at a node together."""
        samples, k = self._samples, len(self.classes_)
        cells = grown.ends[: len(samples.codes)] * k + samples.codes  # without what came along
        n_nodes = len(grown.layered.nodes)
        mass: Floats = np.bincount(cells, samples.weights, n_nodes * k).astype(float)
        mass = mass.reshape(n_nodes, k)
        came = mass.any(axis=1)
        return sharpness(self._final_votes(grown.layered)[came], mass[came])

    def _standings(self, ends: Codes, positions: Floats) -> Floats:
        return np.asarray(self._votes[ends])
