"""Martingale boosting: a layered program in which every learner casts one vote.

Kulkarni et al. (2016), sections 4.3 and 4.6, after Long and Servedio (2005). A node stands for the
votes so far, so paths with the same votes in another order meet again. Each node trains on the
samples that reach it, with its classes reweighted to the same total weight, and sends each sample
along the edge of its prediction. After the last layer the class with most votes is the label.

The parts, in the order of the paper: the graph and its theorem (`_program`), how samples walk
through its layers (`_layers`), the learners at the nodes (`_learners`, `_logistic`), growth
(`_growth`), tuning by the global confusion matrix (I-ROOT, `_root`) and node by node (I-ALL and
I-SELECT, `_nodes`). `_adaptive` has the other classifier of this base.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from functools import partial
from math import comb
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from margrave import _labels
from margrave._errors import ParameterError
from margrave._typing import Codes, Floats
from margrave._validation import (
    MOST_LEVELS,
    Rules,
    check_parameters,
    is_classifier_or_none,
    is_count,
    is_number,
    validate_numbers,
)
from margrave.confusion import Preference
from margrave.martingale._base import ScoreClassifier
from margrave.martingale._growth import (
    GrowthResult,
    NodeTrainer,
    PreviousProgram,
    Refine,
    grow,
)
from margrave.martingale._layers import Branch, FittedProgram, Key, Routing, Samples, Walk
from margrave.martingale._learners import LearnerTemplate, NodePredictions, fits_arrays
from margrave.martingale._logistic import TunableLogistic
from margrave.martingale._nodes import NodePreferences, NodeTuner, parse_node_preferences
from margrave.martingale._program import Kind, Node, Program
from margrave.martingale._request import (
    Step,
    Tuning,
    check_limits,
    check_positive,
    check_preference,
    encode_tuning_labels,
    make_objective,
    report,
)
from margrave.martingale._root import RootSearch, ScoredProgram, add_node_offset

Granularity = Literal["root", "quick", "all", "select"]


class ProgramClassifier(ScoreClassifier):
    """Base of the classifiers that send samples through a program."""

    estimator: Any
    n_levels: int
    balance: bool
    n_jobs: int | None
    random_state: Any
    tuning_: Tuning | None
    _samples: Samples | None  # None once the training data are dropped
    _votes: Floats | None  # (n_nodes, k): the final votes of each end; None for real positions
    _log_cost: Floats  # (k,): logarithms of the costs of the classes that the program grew with

    @abstractmethod
    def _routing(self, k: int) -> Routing:
        """How samples move."""

    @abstractmethod
    def _votes_of(self, program: FittedProgram) -> Floats | None:
        """The final votes of each end; None if samples have real positions."""

    @abstractmethod
    def _decide_ends(self, program: ScoredProgram, offset: Floats) -> FittedProgram:
        """The program with predictions that an offset at its end has changed."""

    def _rules(self) -> Rules:
        """Each parameter with its allowed values, in words, and whether it has one of them."""
        return {
            "estimator": ("a classifier or None", is_classifier_or_none(self.estimator)),
            "n_levels": (
                f"a whole number from 1 to {MOST_LEVELS}",
                is_count(self.n_levels, MOST_LEVELS),
            ),
        }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        learner_tags = get_tags(self._learner()).input_tags
        tags.input_tags.sparse = learner_tags.sparse
        tags.input_tags.allow_nan = learner_tags.allow_nan
        return tags

    def _learner(self) -> Any:
        return TunableLogistic() if self.estimator is None else self.estimator

    def _validate(self, X: Any, y: Any = None, *, reset: bool) -> Any:
        tags = get_tags(self).input_tags
        checks: dict[str, Any] = {
            "accept_sparse": "csr" if tags.sparse else False,
            "ensure_all_finite": not tags.allow_nan,
            "reset": reset,
        }
        return validate_numbers(self, X, *([y] if reset else []), **checks)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the program.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their labels, of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; equal if None. Samples of weight 0 are left out. The counts of ``program_``
            are numbers of samples, without weights.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        return self._fit(X, y, sample_weight)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        callback: Callable[[int], Any] | None = None,
    ) -> Self:
        """Grow the program, and call back with the number of layers after each."""
        check_parameters(self, self._rules())
        rows, labels = self._validate(X, y, reset=True)
        encoded = self._encode_samples(rows, labels, sample_weight)
        self.classes_ = encoded.classes
        # Drawn once, so that tuning grows with the seeds of fit.
        self._entropy = int(check_random_state(self.random_state).randint(2**31 - 1))
        samples = Samples(
            encoded.X,
            encoded.codes,
            encoded.weights,
            len(encoded.classes),
            getattr(self, "feature_names_in_", None),
        )
        self._samples, self.tuning_ = samples, None
        grown, no_cost = self._grow(samples, callback=callback), np.zeros(samples.k)
        self._set_program(self._score_program(grown.program, grown.walk, samples, no_cost), no_cost)
        self.program_ = grown.counter.program(grown.program, tuple(self.classes_.tolist()))
        return self

    def _grow(
        self,
        samples: Samples,
        costs: Floats | None = None,
        refine: Refine | None = None,
        previous: PreviousProgram | None = None,
        offset: Floats | None = None,
        one_by_one: bool = False,
        callback: Callable[[int], Any] | None = None,
    ) -> GrowthResult:
        """Grow a program, from a previous one if there is one.

        ``offset`` is added to that of each new learner that fits arrays; with other learners, to
        the log-probabilities at every node. ``one_by_one`` trains the nodes in their order, not in
        parallel, for a callback that sees them.
        """
        k = samples.k
        offset = np.zeros(k) if offset is None else offset
        routing = self._routing(k)
        template = LearnerTemplate.of(self._learner(), self.classes_.tolist(), offset)
        trainer = NodeTrainer(
            samples,
            template,
            owner=type(self).__name__,
            balance=self.balance,
            costs=np.ones(k) if costs is None else costs,
            offset=np.zeros(k) if template.fits_arrays else offset.copy(),
            needs_proba=routing.uses_positions,
            refine=refine,
            previous=previous,
        )
        return grow(
            trainer,
            routing,
            self.n_levels,
            n_jobs=1 if one_by_one else self.n_jobs,
            seeds=np.random.SeedSequence(self._entropy),
            callback=callback,
        )

    def _set_program(self, program: ScoredProgram, end_offset: Floats) -> None:
        """Set the fitted attributes, except the counts."""
        self._fitted_program, self.learners_ = program.program, program.program.learners
        self._votes, self.sharpness_ = program.votes, program.sharpness
        self._log_cost, self.offset_ = program.log_cost, end_offset

    def _score_program(
        self, program: FittedProgram, walk: Walk, samples: Samples, log_cost: Floats
    ) -> ScoredProgram:
        """Fit β to samples that walked through a program, without those of weight 0."""
        counted = np.flatnonzero(samples.weights)
        codes, weights = samples.codes[counted], samples.weights[counted]
        votes = self._votes_of(program)
        positions = walk.positions[counted]
        mass: Floats = np.eye(samples.k)[codes] * weights[:, None]
        if votes is not None:  # samples at the same end have the same votes: add them up
            reached, end = np.unique(walk.ends[counted], return_inverse=True)
            positions = votes[reached]
            sums = np.bincount(end * samples.k + codes, weights, positions.size)
            mass = sums.astype(float).reshape(positions.shape)
        return ScoredProgram(program, votes, fit_sharpness(positions, mass), log_cost)

    @property
    def _scored_program(self) -> ScoredProgram:
        return ScoredProgram(self._fitted_program, self._votes, self.sharpness_, self._log_cost)

    def _regrow(
        self, samples: Samples, log_cost: Floats, refine: Refine | None, *, one_by_one: bool
    ) -> ScoredProgram:
        """Grow another program on the training samples, with the tuning set passing through."""
        one_by_one = one_by_one and refine is not None
        grown = self._grow(samples, np.exp(log_cost), refine, one_by_one=one_by_one)
        return self._score_program(grown.program, grown.walk, samples, log_cost)

    def _with_program(
        self, program: ScoredProgram, node_offset: Floats, end_offset: Floats
    ) -> Self:
        """A copy with another program and other offsets."""
        samples = self._require_training_data("tune")
        fitted = replace(
            self._decide_ends(program, end_offset),
            offset=add_node_offset(program.program, node_offset),
            learners=dict(program.program.learners),
        )
        tuned = self._fitted_copy()
        tuned._set_program(replace(program, program=fitted), end_offset.copy())
        tuned.program_ = fitted.count(samples.X, samples.codes, self.program_.classes)
        return tuned

    def _without_end_offset(self) -> Self:
        """A copy without an offset at its end, for callers that decide by its scores."""
        no_offset = np.zeros(len(self.classes_))
        return self._with_program(self._scored_program, no_offset, no_offset)

    def _tune_globally(
        self,
        preference: Preference | str,
        X_tune: ArrayLike,
        y_tune: ArrayLike,
        positive: Any,
        *,
        quick: bool,
        max_models: int | None,
        min_gain: float = 0.0,
        callback: Callable[[Step], Any] | None,
    ) -> Self:
        """A copy whose global matrix of the tuning set meets a preference, or the nearest one."""
        samples, owner = self._require_training_data("tune"), f"{type(self).__name__}.tune"
        rows = self._validate(X_tune, reset=False)
        objective = make_objective(
            preference, y_tune, self.classes_, positive, rows.shape[0], owner
        )
        grown_on = samples.with_tuning_set(rows, objective.codes)
        if max_models is None:
            max_models = 2 if quick else 20
        search = RootSearch(
            self._scored_program,
            self.offset_,
            partial(self._regrow, grown_on, one_by_one=callback is not None and not quick),
            rows,
            objective,
            n_training=len(samples.codes),
            quick=quick,
            max_models=max_models,
            min_gain=min_gain,
            callback=callback,
        )
        best, result = search.run()
        tuned = self._with_program(best.program, best.node_offset, best.end_offset)
        tuned.tuning_ = report(objective, result, owner, stacklevel=4)
        return tuned

    def _scores(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        return self._scores_of(self._validate(X, reset=False))

    def _scores_of(self, rows: Any) -> Floats:
        """A score for each class, of validated samples."""
        return self._scored_program.scores(self._fitted_program.walk(rows)) + self.offset_

    def _require_training_data(self, method: str) -> Samples:
        check_is_fitted(self, "_fitted_program")
        if self._samples is None:
            raise ValueError(
                f"{type(self).__name__}.{method} needs the training data, which this model no "
                "longer keeps: it can only predict. Use the model from before it was accepted."
            )
        return self._samples

    def without_training_data(self) -> Self:
        """Return a copy that predicts, but can no longer be tuned or get more levels.

        Returns
        -------
        object
            The same predictions, in a smaller file.
        """
        light = copy(self)
        light._samples = None
        return light

    def decision_path(self, X: ArrayLike) -> sparse.csr_matrix:
        """Return the nodes that samples reach.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        indicator : sparse matrix of shape (n_samples, n_nodes)
            1 where a sample (row) reaches a node of ``program_`` (column).
        """
        check_is_fitted(self)
        samples = self._validate(X, reset=False)
        visits: list[tuple[int, Codes]] = []
        self._fitted_program.walk(samples, lambda node, rows, _: visits.append((node, rows)))
        rows = np.concatenate([at for _, at in visits])
        nodes = np.repeat([node for node, _ in visits], [len(at) for _, at in visits])
        ones = np.ones(len(rows), dtype=np.int64)
        shape = (samples.shape[0], len(self.program_))
        return sparse.csr_matrix((ones, (rows, nodes)), shape=shape)

    def measured(self, X: ArrayLike, y: ArrayLike) -> Program:
        """Return the program with the counts of other samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        Program
        """
        check_is_fitted(self)
        return self._count(self._fitted_program, X, y)

    def _count(self, program: FittedProgram, X: Any, y: Any) -> Program:
        """Validate samples, and count them in a program."""
        rows = self._validate(X, reset=False)
        codes = _labels.encode(y, self.classes_, f"{type(self).__name__}.measured: y")
        if codes.shape != (rows.shape[0],):
            raise ValueError(
                f"{type(self).__name__}.measured needs y with a label for each of "
                f"{rows.shape[0]} samples; got shape {codes.shape}."
            )
        return program.count(rows, codes, tuple(self.classes_.tolist()))

    def error_rates(
        self, X: ArrayLike | None = None, y: ArrayLike | None = None
    ) -> dict[Any, float]:
        """Return the error rate of each class, by theorem 1 of Kulkarni et al. (2016).

        Parameters
        ----------
        X, y : array-like, optional
            Samples to count; by default the training samples.

        Returns
        -------
        dict
            By class. With two classes, those of the negative and the positive class are the rates
            of false positives and false negatives.
        """
        check_is_fitted(self)
        if X is None and y is None:
            return self.program_.error_rates()
        if X is None or y is None:
            raise ValueError(
                f"{type(self).__name__}.error_rates needs both X and y, or neither for the "
                "training samples."
            )
        return self.measured(X, y).error_rates()


class MartingaleBoostClassifier(ProgramClassifier):
    """Martingale boosting: a layered program of learners, each of which casts a vote.

    The votes so far select the next learner. :meth:`tune` changes the program until the confusion
    matrix of a tuning set meets a preference.

    Parameters
    ----------
    estimator : classifier, default=None
        The learner at every node; :class:`TunableLogistic` if None. If its ``fit`` has no
        ``sample_weight``, it is trained on samples drawn by their weights.
    n_levels : int, default=15
        Number of layers of learners, at most 1000. An odd number leaves no tie between two classes.
    balance : bool, default=True
        Whether the classes have the same total weight at each node, so that its learner has an
        advantage for every class.
    freeze : float, default=None
        ε: a node is frozen, and predicts the class with the largest reach probability, if the
        second-largest reach probability is below ``ε / (2 · C(L + k − 1, k))``; for two classes
        this is ``ε / (L (L + 1))`` of the paper. None or 0 freezes nothing.
    n_jobs : int, default=None
        Number of nodes of a layer to train at a time, in threads.
    random_state : int, RandomState instance or None, default=None
        Seeds of learners with randomness; the result is the same for any ``n_jobs``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    program_ : Program
        The graph, with counts of the training samples.
    learners_ : dict of int to classifier
        The learners by node of the program; their classes are positions in ``classes_``.
    sharpness_ : float
        β: the probabilities are the softmax of β times the final votes plus the offset.
    offset_, node_offset_ : ndarray of shape (n_classes,)
        Added by tuning to the scores of the classes at the end, and at every node.
    tuning_ : Tuning or None
        The result of the last :meth:`tune`; None before it.

    Notes
    -----
    A fitted program keeps its training data, because tuning grows it again.

    :meth:`Program.error_bounds` bounds the error rates by the advantages of the nodes, as
    ``model.program_.error_bounds()`` on the training samples and as
    ``model.measured(X, y).error_bounds()`` on others.

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
        valid = self.freeze is None or (is_number(self.freeze) and 0 <= self.freeze < np.inf)
        return {**super()._rules(), "freeze": ("None or a number of at least 0", valid)}

    @property
    def node_offset_(self) -> Floats:
        """Added to the log-probabilities at every node."""
        return self._fitted_program.offset

    def tune(
        self,
        preference: Preference | str | NodePreferences,
        X_tune: ArrayLike,
        y_tune: ArrayLike,
        *,
        granularity: Granularity = "quick",
        advantage_threshold: float = 0.3,
        positive: Any = None,
        max_models: int | None = None,
        callback: Callable[[Step], Any] | None = None,
    ) -> Self:
        """Return a copy whose predictions for the tuning set meet a preference.

        Parameters
        ----------
        preference : Preference, str, mapping or callable
            With granularity "root" or "quick", the requested bounds on the confusion matrix of the
            tuning set. Otherwise the bounds on the local matrix of each node: one text for all
            nodes; a mapping from the votes of a node, such as ``(0, 0)`` for the root, to a
            preference; or a callable from a :class:`NodeRequest` to a preference, or to None for
            no change.
        X_tune, y_tune : array-like
            Samples of every class that the model was not trained on.
        granularity : {"root", "quick", "all", "select"}, default="quick"
            Whether to tune the global matrix by tuning all nodes to local targets (I-ROOT), or in
            its quick form, which mostly moves offsets; or to tune every node (I-ALL), or the nodes
            whose smallest advantage on the tuning set is below ``advantage_threshold`` (I-SELECT)
            to their own preferences. Of learners other than :class:`TunableLogistic` and
            :class:`TunableRBFLogistic` only the first two can be tuned, by offsets and by costs of
            the classes.
        advantage_threshold : float, default=0.3
            See ``granularity``.
        positive : label, optional
            The class that ``fp`` and ``fn`` refer to; by default the second of two.
        max_models : int, optional
            With "quick", the largest number of programs to grow again (2; with 0 only offsets
            move); otherwise the largest number of models to train for one node (20).
        callback : callable, optional
            Called with a :class:`Step` after each node, unless quick; with "root" and "quick"
            before each new program and at the end too. If it returns a true value, the search stops
            and returns the best model so far.

        Returns
        -------
        MartingaleBoostClassifier
            A tuned copy, with the result in ``tuning_``. If the preference is not met, the nearest
            model of the search, with a :class:`NotMetWarning`. Tuning changes the fitted program,
            not the parameters: a clone is untuned.

        Notes
        -----
        The global matrix is tuned by the best of many candidates, which on a small tuning set is
        often the best only by chance: the limit may be missed on new samples.
        """
        samples = self._require_training_data("tune")
        owner = f"{type(self).__name__}.tune"
        if max_models is not None:
            check_limits(owner, max_models=max_models)
        if granularity in ("root", "quick"):
            hint = ", or granularity='all' or 'select' for preferences about nodes"
            return self._tune_globally(
                check_preference(preference, owner, hint),
                X_tune,
                y_tune,
                positive,
                quick=granularity == "quick",
                max_models=max_models,
                callback=callback,
            )
        if granularity not in ("all", "select"):
            raise ValueError(
                f"{owner} needs granularity to be 'root', 'quick', 'all' or 'select'; "
                f"got {granularity!r}."
            )
        rows = self._validate(X_tune, reset=False)
        if not is_number(advantage_threshold):
            raise ValueError(
                f"{owner} needs advantage_threshold to be a number; got {advantage_threshold!r}."
            )
        check_positive(positive, self.classes_, owner)
        tuner = NodeTuner(
            parse_node_preferences(preference, self.classes_, self.n_levels, owner),
            rows,
            encode_tuning_labels(y_tune, self.classes_, rows.shape[0], owner),
            self.classes_,
            positive,
            self._fitted_program,
            samples,
            threshold=advantage_threshold if granularity == "select" else None,
            max_models=20 if max_models is None else max_models,
            callback=callback,
            owner=owner,
        )
        return self._tune_nodes(tuner, samples)

    def _tune_nodes(self, tuner: NodeTuner, samples: Samples) -> Self:
        """Grow a copy again, and tune its nodes meanwhile."""
        grown_on = samples.with_tuning_set(tuner.X, tuner.codes)
        grown = self._grow(
            grown_on,
            np.exp(self._log_cost),
            tuner.refine,
            tuner.previous,
            self.node_offset_,  # now part of the offset of each learner
            one_by_one=True,
        )
        program = self._scored_program
        if tuner.has_changed:
            program = self._score_program(grown.program, grown.walk, grown_on, self._log_cost)
        tuned = self._with_program(program, np.zeros(samples.k), self.offset_)
        before, after = (np.argmax(model._scores_of(tuner.X), axis=1) for model in (self, tuned))
        tuned.tuning_ = tuner.report(before, after)
        return tuned

    def grow(self, levels: int = 1) -> Self:
        """Return a copy with more levels, trained on the same samples.

        Existing nodes keep their learners, tuned ones included, and the offsets stay; only new
        nodes are trained. Without tuning the result is that of :meth:`fit` with as many levels.
        ``freeze`` freezes fewer nodes in a larger program, so frozen nodes may grow on; a node that
        other samples reach than before is trained on them, with its hyperparameters.

        Parameters
        ----------
        levels : int, default=1
            Number of levels to add.

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
        samples = self._require_training_data("grow")
        most = MOST_LEVELS - self.n_levels
        if not is_count(levels, most):
            allowed = f"a whole number of at least 1, and {MOST_LEVELS} levels in total"
            raise ParameterError.of(f"{type(self).__name__}.grow", "levels", allowed, levels)
        taller = self._fitted_copy(n_levels=self.n_levels + int(levels))
        tunable = fits_arrays(self._learner())
        previous = None
        # Other learners may have randomness, and freezing changes their seeds: train them again.
        if tunable or not self.freeze:
            previous = PreviousProgram(
                self._fitted_program, samples, tunable=tunable, adds_levels=True
            )
        costs, offset = np.exp(self._log_cost), self.node_offset_
        grown = taller._grow(samples, costs, previous=previous, offset=offset)
        program = taller._score_program(grown.program, grown.walk, samples, self._log_cost)
        taller = taller._with_program(program, np.zeros(samples.k), self.offset_)
        taller.tuning_ = None
        return taller

    # The program with its final votes

    def _routing(self, k: int) -> Routing:
        return VoteRouting(self.n_levels, self.freeze, k)

    _votes: Floats

    def _votes_of(self, program: FittedProgram) -> Floats:
        return np.array([final_votes(node, self.n_levels) for node in program.nodes])

    def _decide_ends(self, program: ScoredProgram, offset: Floats) -> FittedProgram:
        fitted = program.program
        ends = [index for index, node in enumerate(fitted.nodes) if node.is_end]
        scores = program.scores(Walk.to(np.array(ends))) + offset
        predictions = dict(zip(ends, scores.argmax(axis=1).tolist(), strict=True))
        return replace(fitted, end_predictions=predictions)

    def _end_scores(self) -> Floats:
        """The scores of samples that end at each node, shape (n_nodes, n_classes)."""
        return self.sharpness_ * self._votes + self.offset_

    def _measured_with(self, X: Any, y: Any, decide: Callable[[Floats], Codes]) -> Program:
        """The program with the counts of samples, and another decision at its ends.

        ``decide`` maps probabilities, of shape (n, k), to predicted classes.
        """
        program = self._fitted_program
        ends = [index for index, node in enumerate(program.nodes) if node.is_end]
        predictions = decide(softmax(self._end_scores()[ends], axis=1))
        predicted = dict(zip(ends, predictions.tolist(), strict=True))
        return self._count(replace(program, end_predictions=predicted), X, y)


class VoteRouting(Routing):
    """One vote a layer; a node stands for the votes so far.

    With two classes a node is v_{i,j} of the paper: i votes for the second class after j layers.
    With k classes layer t could have C(t + k − 1, k − 1) nodes; only those that samples reach are
    made, and an empty one at the end of each edge that no sample takes.

    Three rules differ from the paper. Its leaf i is positive iff i > L/2, which makes the middle
    leaf of an even L negative; here the training samples that reach a leaf settle a tie. It freezes
    by the minimum over the classes, which for k > 2 would freeze everything; here by the
    second-largest. And a frozen node predicts the class with the largest reach probability, not the
    one with most samples.
    """

    def __init__(self, n_levels: int, freeze: float | None, k: int) -> None:
        self.n_levels = n_levels
        # For two classes this is the paper's ε / (L (L + 1)).
        self.min_reach = 0.0 if freeze is None else freeze / (2 * comb(n_levels + k - 1, k))

    def node_kind(
        self, layer: int, key: Key, mass: Floats, total: Floats
    ) -> tuple[Kind, int | None]:
        """A leaf, a frozen or empty node, a node of one class, or a learner."""
        votes, reach = np.array(key), mass / total
        leading = votes == votes.max()
        if layer == self.n_levels or not mass.any():
            # Most votes; the samples at the node settle a tie, or all samples if there are none.
            tie_break = reach if mass[leading].any() else total
            prediction = int(np.argmax(np.where(leading, tie_break, -1)))
            return "leaf" if layer == self.n_levels else "empty", prediction
        if np.sort(reach)[-2] < self.min_reach:
            return "frozen", int(np.argmax(reach))
        if (mass > 0).sum() == 1:
            return "constant", int(np.argmax(mass))
        return "learner", None

    def step(
        self, predictions: list[NodePredictions], rows: list[Codes], samples: Samples
    ) -> float:
        """One vote."""
        return 1.0

    def branches(self, node: Node, predictions: Codes, positions: Floats | None) -> list[Branch]:
        """To one more vote for the predicted class."""
        return [
            Branch(_add_vote(node, code), code, np.flatnonzero(predictions == code))
            for code in np.flatnonzero(np.bincount(predictions)).tolist()
        ]

    def required_children(self, node: Node, classes: Codes) -> Iterator[tuple[Key, int | None]]:
        """An edge for every class that the learner can predict."""
        for code in classes.tolist():
            yield _add_vote(node, code), code


def _add_vote(node: Node, code: int) -> Key:
    return tuple(int(vote) + (c == code) for c, vote in enumerate(node.position))


def final_votes(node: Node, n_levels: int) -> Floats:
    """The votes at the end of a path.

    A path that ends early casts its remaining votes for the prediction. A prediction that does not
    lead (a tie that the training samples settled, a frozen node) leads by half a vote.
    """
    votes = np.array(node.position)
    if node.prediction is None:
        return votes
    votes[node.prediction] += n_levels - node.layer
    others = np.delete(votes, node.prediction).max()
    votes[node.prediction] = max(votes[node.prediction], others + 0.5)
    return votes


def fit_sharpness(positions: Floats, mass: Floats) -> float:
    """The β ≥ 0 with the largest likelihood, bounded by what the number of samples supports.

    ``mass`` is the weight of each class at each of the final positions; both of shape (m, k).
    """
    lead = float(np.ptp(positions, axis=1).max())
    largest = float(np.log(mass.sum() + 1)) / max(lead, 1e-12)
    behind = positions - positions.max(axis=1, keepdims=True)
    weights, own = mass.sum(axis=1), float((mass * behind).sum())

    def loss(beta: float) -> float:
        return float(weights @ np.log(np.exp(beta * behind).sum(axis=1))) - beta * own

    found = minimize_scalar(loss, bounds=(0.0, largest), method="bounded")
    return max(float(found.x), 1e-6 * largest)
