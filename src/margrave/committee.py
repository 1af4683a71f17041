"""Committees: the base class of combiners and selectors, fitted members, and their training.

`Committee` is a scikit-learn estimator with members, given as a list or as (name, classifier)
pairs: it fits clones of them, or uses them as they are with ``prefit=True``. `FittedMembers` holds
the result. `train_members` fits clones on all samples and on folds, one member after the other, and
`fit_members` waits for all of them; the last functions make folds.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, replace
from threading import Lock, Thread
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from joblib import cpu_count, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import StratifiedKFold, check_cv, train_test_split
from sklearn.utils import Bunch, check_consistent_length, column_or_1d
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data
from threadpoolctl import ThreadpoolController

from margrave import _labels
from margrave._indexing import Columns, select_columns, select_rows
from margrave._parallel import is_cluster, limit_threads, stay_local
from margrave._typing import Codes, Flags, Floats
from margrave._validation import (
    check_columns,
    check_labels,
    check_samples,
    common_input_tags,
    fitted_classes,
    member_features,
    name_members,
    read_sample_weight,
)
from margrave.confusion import Confusion
from margrave.scores import Ask, Scores, each_proba


class Committee(ClassifierMixin, BaseEstimator):
    """Base class of the estimators that combine members or select among them.

    The constructor of a subclass takes ``estimators``, ``prefit`` and ``n_jobs``; ``features`` if
    members may use different columns, ``reject_label`` if the subclass may reject. Its ``fit``
    calls :meth:`_start`, :meth:`_train` (or :meth:`_take_prefit`) and :meth:`_keep`; its
    prediction methods call :meth:`_ask` or :meth:`_each_proba`. Fit parameters are routed to the
    members, whose own parameters are available as ``name__parameter``.
    """

    estimators: Any
    features: Any = None
    reject_label: Any = None
    _input_tags: dict[str, bool] | None = None
    _kept_columns: list[Columns | None] | None = None
    prefit: bool
    n_jobs: int | None
    classes_: NDArray[Any]
    estimators_: list[Any]
    member_names_: list[str]

    @property
    def named_estimators_(self) -> Bunch:
        """The fitted members by name."""
        check_is_fitted(self)
        return Bunch(**dict(zip(self.member_names_, self.estimators_, strict=True)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with those of the members as ``name__parameter``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the members' parameters.

        Returns
        -------
        dict
        """
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            parts = [(key, value) for key, value in params.items() if key != "estimators"]
            for name, part in [*parts, *self._readable_pairs()]:
                params[name] = part
                has_own = hasattr(part, "get_params") and not isinstance(part, type)
                nested = part.get_params(deep=True) if has_own else {}
                params.update({f"{name}__{key}": value for key, value in nested.items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, members by name, or a member's parameters as ``name__parameter``.

        Parameters
        ----------
        **params : dict
            The new values.

        Returns
        -------
        self
        """
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        pairs = self._readable_pairs()
        replaced = {name: params.pop(name) for name, _ in pairs if name in params}
        if replaced:
            self.estimators = [(name, replaced.get(name, member)) for name, member in pairs]
        super().set_params(**params)
        return self

    def score(self, X: Any, y: ArrayLike, sample_weight: Any = None) -> float:
        """Return the accuracy; a rejected sample counts as an error.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights.

        Returns
        -------
        float
        """
        labels = column_or_1d(y)
        check_consistent_length(X, labels, sample_weight)
        return float(np.average(self.predict(X) == labels, weights=sample_weight))

    def _readable_pairs(self) -> list[tuple[str, Any]]:
        """Return (name, member) pairs; none if they are invalid, which ``fit`` reports."""
        try:
            return self._pairs()
        except ValueError:
            return []

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata routing: fit parameters go to the members that request them.

        Returns
        -------
        MetadataRouter
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        for name, member in self._readable_pairs():
            if hasattr(member, "fit"):
                router.add(**{name: member}, method_mapping=to_fit)
        return router

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        input_tags = self._input_tags  # kept, because collecting many members' tags is slow
        if input_tags is None:
            input_tags = common_input_tags([member for _, member in self._readable_pairs()])
        for name, value in input_tags.items():
            setattr(tags.input_tags, name, value)
        return tags

    def _pairs(self) -> list[tuple[str, Any]]:
        """Return (name, member) pairs; no name may be one of the committee's own parameters."""
        owner = type(self).__name__
        if isinstance(self.estimators, Mapping):
            raise ValueError(
                f"{owner} needs estimators to be a list; got a {type(self.estimators).__name__}."
            )
        pairs = name_members(self.estimators, owner)
        own = super().get_params(deep=False)
        for name, _ in pairs:
            if "__" in name or name in own:
                raise ValueError(
                    f"{owner} needs names in estimators that have no '__' and are not its own "
                    f"parameters; got {name!r}."
                )
        return pairs

    def _start(self, X: Any, y: ArrayLike) -> NDArray[Any]:
        """Check the members' names, X and y, and return the labels; the members check the rest."""
        owner = type(self).__name__
        self._pairs()
        check_samples(X, owner)  # or scikit-learn looks for the first row of a dict
        validate_data(self, X, skip_check_array=True)
        return check_labels(X, y, owner)

    def _checked_weight(self, sample_weight: Any, n_samples: int) -> NDArray[np.float64] | None:
        """Return one finite weight per sample, or None."""
        if sample_weight is None:
            return None
        return read_sample_weight(sample_weight, n_samples, f"{type(self).__name__}.fit")

    def _one_per_member(self, parameter: str) -> NDArray[np.float64]:
        """Return a parameter that holds a weight per member: none negative, not all zero."""
        n_members, value = len(self._pairs()), getattr(self, parameter)
        try:
            values = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.array(np.nan)
        if values.shape != (n_members,):
            raise ValueError(
                f"{type(self).__name__} needs {parameter} with a number for each of {n_members} "
                f"members; got {value!r}."
            )
        with np.errstate(over="ignore"):
            total = values.sum()
        if not np.isfinite(total) or (values < 0).any() or not values.any():
            raise ValueError(
                f"{type(self).__name__} needs {parameter} with finite numbers, none negative and "
                f"not all zero; got {values.tolist()}."
            )
        return values

    def _check_probabilities(
        self, cause: str = "", members: list[tuple[str, Any]] | None = None
    ) -> None:
        """Check that each member has probabilities.

        Parameters
        ----------
        cause : str
            The setting that needs them, such as "voting='soft'"; empty if all settings do.
        members : list of (name, classifier), optional
            By default the members passed to the constructor.
        """
        owner = type(self).__name__ + (f" with {cause}" if cause else "")
        for name, member in self._pairs() if members is None else members:
            if not hasattr(member, "predict_proba"):
                raise ValueError(
                    f"{owner} needs members with predict_proba; {name!r} "
                    f"({type(member).__name__}) has none "
                    "(sklearn.calibration.CalibratedClassifierCV adds it)."
                )

    def _checked_reject_label(self) -> Any:
        """Return the label of a rejected sample, which is never a class."""
        owner = type(self).__name__
        if self.reject_label is None:
            return _labels.default_reject_label(self.classes_)
        if _labels.is_missing(self.reject_label):
            raise ValueError(
                f"{owner} needs a reject_label that is not NaN or missing; "
                f"got {self.reject_label!r}."
            )
        if self.reject_label in self.classes_.tolist():
            raise ValueError(
                f"{owner} needs a reject_label that is not a class; got {self.reject_label!r}, "
                f"which is among {_labels.shown(self.classes_)}."
            )
        return self.reject_label

    def _take_prefit(self, X: Any, fit_params: dict[str, Any]) -> None:
        """Store fitted members, and check that each can predict X."""
        if fit_params:
            raise ValueError(
                f"{type(self).__name__}.fit takes no fit parameters with prefit=True; "
                f"got {', '.join(fit_params)}. Leave them out."
            )
        self._keep([member for _, member in self._pairs()])
        self._ask(select_rows(X, [0]), "labels")

    def _routed(self, sample_weight: Any, fit_params: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the fit parameters of each member."""
        params = dict(fit_params)
        if sample_weight is not None:
            params["sample_weight"] = sample_weight
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **params)
            return {name: dict(routed[name].fit) for name, _ in self._pairs()}
        for name, member in self._pairs():
            for key in params:
                if not has_fit_parameter(member, key):
                    raise ValueError(
                        f"{type(self).__name__}: member {name!r} ({type(member).__name__}) takes "
                        f"no {key}. Leave it out, or enable metadata routing and request it for "
                        "the members that take it."
                    )
        return dict.fromkeys([name for name, _ in self._pairs()], params)

    def _train(self, X: Any, y: NDArray[Any], params: dict[str, dict[str, Any]]) -> list[Any]:
        """Fit clones of the members on all samples, and return them."""
        return fit_members(
            self._pairs(), X, y, columns=self._columns(), params=params, n_jobs=self.n_jobs
        )[0]

    def _columns(self) -> dict[str, Columns | None]:
        """Return the columns that each member uses; None for all."""
        names = tuple(name for name, _ in self._pairs())
        chosen = member_features(self.features, names, type(self).__name__)
        return dict(zip(names, chosen, strict=True))

    def _train_on_a_part(
        self,
        X: Any,
        y: NDArray[Any],
        params: dict[str, dict[str, Any]],
        fraction: float,
        random_state: Any,
    ) -> NDArray[np.int64]:
        """Fit the members on the training rows of a split, and return the rows of the tuning set.

        Parameters
        ----------
        X, y
            All samples.
        params : dict
            Fit parameters of each member; those with an entry per sample are split.
        fraction : float
            Fraction of the samples in the tuning set.
        random_state : int, RandomState instance or None
            Seed of the split, which is stratified if each class is large enough.
        """
        training, tuning = train_test_split(
            np.arange(len(y)),
            test_size=fraction,
            random_state=random_state,
            stratify=y if _can_stratify(y, fraction) else None,
        )
        own = {name: _split_params(all_rows, training, len(y)) for name, all_rows in params.items()}
        self._keep(self._train(select_rows(X, training), y[training], own), y)
        rows: NDArray[np.int64] = tuning
        return rows

    def _held_out(
        self,
        X: Any,
        y: NDArray[Any],
        folds: list[Any],
        params: dict[str, dict[str, Any]],
        ask: Ask,
    ) -> list[tuple[NDArray[np.int64], Scores]]:
        """Return the out-of-fold predictions: for each fold, the held-out rows and their Scores.

        Parameters
        ----------
        X, y
            All samples.
        folds : list of (training, held out) positions or masks
            Together the folds need not hold out all samples.
        params : dict
            Fit parameters of each member; those with an entry per sample are split.
        ask : {"labels", "values"}
            What to compute.
        """
        rows = np.arange(len(y))
        parts = [(rows[training], rows[held_out]) for training, held_out in folds]
        _, scores = fit_members(
            self._pairs(),
            X,
            y,
            parts,
            columns=self._columns(),
            params=params,
            ask=ask,
            n_jobs=self.n_jobs,
            refit=False,
        )
        return list(zip([held_out for _, held_out in parts], scores, strict=True))

    def _keep(self, members: list[Any], y: NDArray[Any] | None = None) -> None:
        """Store the fitted members, and the union of their classes and those of y."""
        names = [name for name, _ in self._pairs()]
        sets: list[tuple[str, Any]] = [] if y is None else [("y", y)]
        for name, member in zip(names, members, strict=True):
            sets.append((f"member {name!r}", fitted_classes(name, member)))
        self.classes_ = _labels.union(sets)
        self.estimators_ = members
        self.member_names_ = names
        self._input_tags = common_input_tags(members)
        self._kept_columns = list(self._columns().values())

    @property
    def uses_all_columns(self) -> bool:
        """Whether every member uses all columns."""
        return all(columns is None for columns in self._kept_columns or [])

    def _ask(self, X: Any, ask: Ask) -> Scores:
        """Return the fitted members' predictions for new samples."""
        return self._fitted_members(X).scores(X, ask, self.n_jobs)

    def _each_proba(self, X: Any) -> Iterator[Floats]:
        """Yield each fitted member's probabilities for new samples, of shape (n, n_classes)."""
        return self._fitted_members(X).each_proba(X, self.n_jobs)

    def _fitted_members(self, X: Any) -> FittedMembers:
        """Return the fitted members, if X has the columns of the training samples."""
        check_is_fitted(self, "estimators_")
        check_columns(self, X)
        return FittedMembers(
            self.member_names_, self.estimators_, self.classes_, features=self._kept_columns
        )


@dataclass(frozen=True)
class FittedMembers:
    """The fitted members of a committee, with all that is needed to predict new samples.

    Attributes
    ----------
    names : list of str
        The members' names.
    members : list of classifiers
        The fitted members.
    classes : ndarray
        The classes of the committee.
    encoder : transformer or None
        Encodes the samples for the members.
    columns : list of str, int or None
        The names of the input columns, or their number; None if only the encoder or the first
        member knows them.
    features : list or None
        The columns that each member uses; None for all.
    """

    names: list[str]
    members: list[Any]
    classes: NDArray[Any]
    encoder: Any = None
    columns: list[str] | int | None = None
    features: list[Columns | None] | None = None

    @property
    def gives_probabilities(self) -> Flags:
        """Which members have probabilities."""
        return np.array([hasattr(member, "predict_proba") for member in self.members])

    def scores(self, X: Any, ask: Ask = "values", n_jobs: int | None = None) -> Scores:
        """Return the members' predictions for encoded samples."""
        pairs = list(zip(self.names, self.members, strict=True))
        with stay_local():  # a cluster fits the members, but they predict in this process
            return Scores.of(
                pairs, X, classes=self.classes, features=self.features, ask=ask, n_jobs=n_jobs
            )

    def each_proba(self, X: Any, n_jobs: int | None = None) -> Iterator[Floats]:
        """Yield each member's probabilities for encoded samples, of shape (n, n_classes)."""
        pairs = list(zip(self.names, self.members, strict=True))
        with stay_local():
            yield from each_proba(pairs, X, self.classes, self.features, n_jobs)

    def raw(self, X: Any, n_jobs: int | None = None) -> Floats:
        """Return the members' values for encoded samples, in their own units."""
        return self.scores(X, n_jobs=n_jobs).raw()

    def without_training_data(self) -> FittedMembers:
        """Return a copy for prediction only: without the training data that members keep."""
        return replace(self, members=[_drop_training_data(member) for member in self.members])

    def encode(self, X: Any) -> Any:
        """Encode samples for the members."""
        return X if self.encoder is None else self.encoder.transform(X)


def describe_columns(X: Any) -> list[str] | int | None:
    """Return the names of the columns of X, or their number; None if X is not a table."""
    names = list(getattr(X, "columns", []))
    if names:
        return names if all(isinstance(name, str) for name in names) else len(names)
    shape: tuple[int, ...] = getattr(X, "shape", ())
    return int(shape[1]) if len(shape) == 2 else None


@runtime_checkable
class KeepsTrainingData(Protocol):
    """A model that keeps its training data so that it can be tuned."""

    def without_training_data(self) -> Any:
        """Return a copy that only predicts."""


def _drop_training_data(model: Any) -> Any:
    """Return a copy of a model without the training data that it or its parts keep for tuning."""
    if isinstance(model, KeepsTrainingData):
        return model.without_training_data()
    parts: dict[str, Any] = {}
    if isinstance(getattr(model, "steps", None), list):
        parts["steps"] = [(name, _drop_training_data(step)) for name, step in model.steps]
    if isinstance(getattr(model, "estimators_", None), list):
        parts["estimators_"] = [_drop_training_data(member) for member in model.estimators_]
    if hasattr(model, "best_estimator_"):
        parts["best_estimator_"] = _drop_training_data(model.best_estimator_)
    if not parts:
        return model
    light = copy(model)
    for name, value in parts.items():
        setattr(light, name, value)
    return light


# With fewer samples BLAS threads slow training down, five times on a busy machine.
_MIN_SAMPLES_FOR_THREADS = 20_000


@dataclass(frozen=True)
class Progress:
    """The progress of training a committee.

    Attributes
    ----------
    done, total : int
        Number of models fitted so far, and in all; for a single martingale program, of levels.
    member : str
        The member whose model was fitted last; empty at the start.
    finished : tuple of str
        The members of which all models are fitted.
    running, waiting : tuple of str
        The members that are being trained, and those that come next.
    confusion : Confusion or None
        The provisional confusion matrix: that of the members in `scored` on the tuning set.
    scored : tuple of str
        The finished members; without those that have finished since the last matrix.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> X, y = load("iris", return_X_y=True)
    >>> seen = []
    >>> dialog = Dialog.from_data(X, y, committee="logistic", random_state=0, callback=seen.append)
    >>> [f"{progress.done} of {progress.total}" for progress in seen]
    ['0 of 6', '1 of 6', '2 of 6', '3 of 6', '4 of 6', '5 of 6', '6 of 6']
    >>> seen[-1].finished
    ('logistic',)
    """

    done: int
    total: int
    member: str
    finished: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    confusion: Confusion | None = None
    scored: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class TrainedMember:
    """A member of which all models are fitted.

    Attributes
    ----------
    position : int
        Its position in the committee.
    model : classifier or None
        Fitted on all samples; None without `refit`.
    out_of_fold : list of Scores
        For each fold, the predictions for its held-out samples.
    """

    position: int
    model: Any
    out_of_fold: list[Scores]


def fit_members(
    members: list[tuple[str, Any]],
    X: Any,
    y: NDArray[Any],
    folds: Sequence[tuple[Codes, Codes]] = (),
    *,
    columns: Mapping[str, Columns | None] | None = None,
    params: Mapping[str, dict[str, Any]] | None = None,
    ask: Ask = "values",
    n_jobs: int | None = None,
    refit: bool = True,
) -> tuple[list[Any], list[Scores]]:
    """Fit clones of members on all samples, and on each fold to predict its held-out samples.

    Parameters
    ----------
    members, X, y, folds, columns, params, ask, n_jobs, refit
        As in :func:`train_members`.

    Returns
    -------
    fitted : list of classifiers
        Fitted on all samples; None for each without `refit`.
    out_of_fold : list of Scores
        For each fold, the predictions for its held-out samples.
    """
    news = train_members(
        members, X, y, folds, columns=columns, params=params, ask=ask, n_jobs=n_jobs, refit=refit
    )
    trained = sorted((one for _, one in news if one is not None), key=lambda one: one.position)
    scores = zip(*(one.out_of_fold for one in trained), strict=True)
    return [one.model for one in trained], [Scores.side_by_side(parts) for parts in scores]


def train_members(
    members: list[tuple[str, Any]],
    X: Any,
    y: NDArray[Any],
    folds: Sequence[tuple[Codes, Codes]] = (),
    *,
    columns: Mapping[str, Columns | None] | None = None,
    params: Mapping[str, dict[str, Any]] | None = None,
    ask: Ask = "values",
    n_jobs: int | None = None,
    refit: bool = True,
) -> Generator[tuple[Progress, TrainedMember | None]]:
    """Fit clones of members in their order; yield at the start and after each model.

    Close the generator to stop the training. Models that are being fitted are then finished in the
    background; see :func:`wait_for_closed_trainings`.

    Parameters
    ----------
    members : list of (name, classifier)
        The members to clone.
    X, y
        Samples and labels.
    folds : sequence of (training, held out) positions
        No two folds hold out the same sample.
    columns : mapping, optional
        The columns that each member uses; all by default.
    params : mapping, optional
        Fit parameters of each member; those with an entry per sample are split.
    ask : {"values", "labels", "both"}
        What to predict.
    n_jobs : int, optional
        Number of models fitted at a time: in threads, unless joblib's configuration says otherwise.
    refit : bool, default=True
        Whether to fit on all samples too.

    Yields
    ------
    progress : Progress
        The progress at the start, and after a model.
    trained : TrainedMember or None
        The member, if this was the last of its models.
    """
    classes = np.unique(y)
    jobs: list[tuple[int, int]] = []  # the positions of the member and of the fold, -1 for none
    own: list[_OneMember] = []
    for j, (name, member) in enumerate(members):
        chosen, fit_params = columns[name] if columns else None, params[name] if params else {}
        own.append(_OneMember(name, member, chosen, fit_params, classes, ask))
        jobs += [(j, f) for f in (*range(len(folds)), *([-1] if refit else []))]
    at_a_time = min(effective_n_jobs(n_jobs), len(jobs))
    if at_a_time > 1:
        # The first member alone, so that its scores are ready soon; then the models of two members
        # in turns, which wait less for Python's lock than those of one.
        jobs.sort(key=lambda job: ((job[0] + 1) // 2, job[1] % (len(folds) + 1), job[0]))
    threads = _threads_of_a_model(len(y), at_a_time)
    process = os.getpid()
    results: dict[tuple[int, int], Any] = {}
    closed = False

    def calls() -> Iterator[Any]:
        for j, f in jobs:
            if closed:
                return
            fold = None if f < 0 else folds[f]
            yield delayed(_fit_one)(own[j], X, y, fold, (j, f), threads, process)

    def progress_after(member: str) -> Progress:
        pending = [job for job in jobs if job not in results]
        unfinished, running = (
            dict.fromkeys(members[i][0] for i, _ in some) for some in (pending, pending[:at_a_time])
        )
        return Progress(
            len(results),
            len(jobs),
            member,
            tuple(name for name, _ in members if name not in unfinished),
            tuple(running),
            tuple(name for name in unfinished if name not in running),
        )

    with _blas.limit(threads):
        # Few models are dispatched before they can be fitted, so that few wait after the close.
        fits = Parallel(
            n_jobs=n_jobs, prefer="threads", pre_dispatch="n_jobs", return_as="generator_unordered"
        )(calls())
        try:
            yield progress_after(""), None
            for (j, f), result in fits:
                results[j, f] = result
                progress, trained = progress_after(members[j][0]), None
                if members[j][0] in progress.finished:
                    scores = [results[j, f] for f in range(len(folds))]
                    trained = TrainedMember(j, results.get((j, -1)), scores)
                yield progress, trained
        finally:
            closed = True
            if len(results) < len(jobs):
                _finish_in_background(fits)


_closed_trainings: set[Thread] = set()


def _finish_in_background(fits: Iterator[Any]) -> None:
    """Let the models that are being fitted finish: a thread that fits cannot be ended."""

    def finish() -> None:
        with suppress(Exception):  # these models are not used
            for _ in fits:
                pass
        _closed_trainings.discard(thread)

    thread = Thread(target=finish, daemon=True)
    _closed_trainings.add(thread)
    thread.start()


def wait_for_closed_trainings(seconds: float | None = None) -> bool:
    """Wait until no training that was stopped still fits models, and so needs cores and memory.

    Parameters
    ----------
    seconds : float, optional
        How long to wait for each of them; by default until it ends.

    Returns
    -------
    bool
        Whether all of them have ended.

    Examples
    --------
    >>> from margrave.committee import wait_for_closed_trainings
    >>> wait_for_closed_trainings()
    True
    """
    for thread in tuple(_closed_trainings):
        thread.join(seconds)
    return not _closed_trainings


class _BlasLimit:
    """A limit on the threads of BLAS, which holds for the whole process.

    Each training removes its own limit: until then threadpoolctl lets no other thread set one. A
    training that overlaps with others may have found their limit, so the last one restores what
    the first one has found.
    """

    def __init__(self) -> None:
        self._lock, self._trainings = Lock(), 0
        self._first: Any
        # Those that the latest training has found: its models may be fitted after its end.
        self.libraries = ThreadpoolController()

    @contextmanager
    def limit(self, threads: int | None) -> Iterator[None]:
        """Limit the threads during a training."""
        with self._lock:
            self.libraries = ThreadpoolController()
            own = self.libraries.select(user_api=["blas"]).limit(limits=threads)
            if not self._trainings:
                self._first = own
            self._trainings += 1
        try:
            with own:
                yield
        finally:
            with self._lock:
                self._trainings -= 1
                if not self._trainings:
                    with self._first:  # at its end, threadpoolctl restores what it has found
                        pass


_blas = _BlasLimit()


@dataclass(frozen=True, eq=False)
class _OneMember:
    """A member to fit: its columns, its fit parameters, and what it predicts out of fold."""

    name: str
    member: Any
    columns: Columns | None
    params: dict[str, Any]
    classes: NDArray[Any]
    ask: Ask


def _threads_of_a_model(n_samples: int, at_a_time: int) -> int | None:
    """Return how many threads a model may use: small ones would wait for each other.

    None means no limit, for a large model that is fitted alone or on a cluster.
    """
    if n_samples < _MIN_SAMPLES_FOR_THREADS:
        return 1
    return None if at_a_time == 1 or is_cluster() else max(1, cpu_count() // at_a_time)


def _fit_one(
    own: _OneMember,
    X: Any,
    y: NDArray[Any],
    fold: tuple[Codes, Codes] | None,
    job: tuple[int, int],
    threads: int | None,
    process: int,
) -> tuple[tuple[int, int], Any]:
    """Fit a member on all samples and return it, or on a fold and return its predictions."""
    member, params = clone(own.member), own.params
    if os.getpid() == process:  # it has limited BLAS, but the limit of OpenMP holds for one thread
        limited = _blas.libraries.select(user_api=["openmp"]).limit(limits=threads)
    else:
        limited = limit_threads(threads)
    with stay_local(), limited:
        if fold is None:
            return job, member.fit(select_columns(X, own.columns, own.name, None), y, **params)
        training, held_out = fold
        X_train = select_columns(select_rows(X, training), own.columns, own.name, None)
        member.fit(X_train, y[training], **_split_params(params, training, len(y)))
        X_test, features = select_rows(X, held_out), [own.columns]
        named = [(own.name, member)]
        return job, Scores.of(named, X_test, classes=own.classes, features=features, ask=own.ask)


def _split_params(params: dict[str, Any], rows: Any, n_samples: int) -> dict[str, Any]:
    """Return the fit parameters for some of the samples."""
    return {
        key: select_rows(value, rows) if _is_per_sample(value, n_samples) else value
        for key, value in params.items()
    }


def _is_per_sample(value: Any, n_samples: int) -> bool:
    """Return whether a fit parameter has an entry for each sample."""
    return (
        not isinstance(value, str | dict) and hasattr(value, "__len__") and len(value) == n_samples
    )


# Folds of the tuning set


def check_tuning(tuning: Any, owner: str) -> None:
    """Check that tuning is a number of folds, a fraction, a splitter or a list of folds."""
    bad_fraction = is_fraction(tuning) and not 0 < tuning < 1
    bad_count = isinstance(tuning, int | np.integer) and tuning < 2
    folds = tuning if isinstance(tuning, list | tuple) else ()
    bad_folds = not all(isinstance(fold, list | tuple) and len(fold) == 2 for fold in folds)
    if bad_fraction or bad_count or bad_folds or isinstance(tuning, str):
        raise ValueError(
            f"{owner} needs tuning to be a number of folds of at least 2, a fraction in (0, 1), a "
            f"splitter or a list of folds; got {tuning!r}."
        )


def is_fraction(tuning: Any) -> bool:
    """Return whether tuning holds out one fraction of the samples instead of using folds."""
    return isinstance(tuning, float | np.floating)


def make_folds(tuning: Any, X: Any, y: NDArray[Any], owner: str) -> list[Any]:
    """Return the folds that tuning describes: a number, a splitter or a list."""
    if isinstance(tuning, int | np.integer):
        return stratified_folds(y, int(tuning), owner)
    try:
        folds = list(check_cv(tuning, y, classifier=True).split(X, y))
    except ValueError as error:
        if "groups" not in str(error):
            raise
        raise ValueError(group_folds_hint(owner)) from error
    if not folds:
        raise ValueError(f"{owner} needs tuning with at least one fold; got none.")
    return folds


def group_folds_hint(owner: str) -> str:
    """Return the message for a splitter that needs groups."""
    return (
        f"{owner} cannot pass groups to a splitter; make tuning a list of folds: "
        "tuning=list(GroupKFold().split(X, y, groups))."
    )


def stratified_folds(y: NDArray[Any], n_folds: int, owner: str) -> list[Any]:
    """Return stratified folds, fewer if a class has fewer samples."""
    classes, sizes = np.unique(y, return_counts=True)
    if sizes.min() < 2:
        raise ValueError(
            f"{owner} needs at least two samples of each class in y to cross-validate; "
            f"{_labels.plain(classes[sizes.argmin()])!r} has one."
        )
    return list(StratifiedKFold(min(n_folds, int(sizes.min()))).split(y, y))


def _can_stratify(y: NDArray[Any], fraction: float) -> bool:
    """Return whether each class can be in both parts of a split."""
    classes, sizes = np.unique(y, return_counts=True)
    smaller = min(np.floor(len(y) * fraction), np.floor(len(y) * (1 - fraction)))
    return bool(sizes.min() >= 2 and smaller >= len(classes))
