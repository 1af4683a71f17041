"""A committee as a scikit-learn estimator: naming, training and asking its members.

What combiners and selectors share, whatever they do with the answers: members come as a list or as
(name, classifier) pairs and are trained on clones, or taken as they are with ``prefit=True``;
their parameters are reached as ``name__parameter``; fit parameters are routed to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import StratifiedKFold, check_cv, train_test_split
from sklearn.utils import Bunch, check_consistent_length, column_or_1d
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data
from threadpoolctl import threadpool_limits

from margrave import _labels
from margrave._dask.lazy import check_in_memory
from margrave._dask.nested import stay_local
from margrave._indexing import Columns, select_columns, select_rows
from margrave._typing import Codes, Flags, Floats
from margrave._validation import (
    check_columns,
    check_labels,
    check_sample_weight,
    common_input_tags,
    fitted_classes,
    member_features,
    name_members,
)
from margrave.scores import Ask, Scores


class Committee(ClassifierMixin, BaseEstimator):
    """Base of the estimators that hold trained members.

    A subclass takes ``estimators``, ``prefit`` and ``n_jobs`` in its constructor; ``features`` if
    members may look at different columns, ``reject_label`` if it may reject. Its ``fit`` calls
    :meth:`_start`, :meth:`_train` (or :meth:`_take_prefit`) and :meth:`_keep`; everything later
    goes through :meth:`_ask`.
    """

    estimators: Any
    features: Any = None
    reject_label: Any = None
    _takes: dict[str, bool] | None = None
    _kept_columns: list[Columns | None] | None = None
    prefit: bool
    n_jobs: int | None
    classes_: NDArray[Any]
    estimators_: list[Any]
    member_names_: list[str]

    @property
    def named_estimators_(self) -> Bunch:
        """The trained members by name."""
        check_is_fitted(self)
        return Bunch(**dict(zip(self.member_names_, self.estimators_, strict=True)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, with those of the members as ``name__parameter``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the members'.

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
        """Set parameters, whole members by their name, or a member's as ``name__parameter``.

        Parameters
        ----------
        **params : dict
            What to set.

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
        """Share of the samples answered right; a rejected one is not.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), optional
            How much each sample counts.

        Returns
        -------
        float
        """
        labels = column_or_1d(y)
        check_consistent_length(X, labels, sample_weight)
        return float(np.average(self.predict(X) == labels, weights=sample_weight))

    def _readable_pairs(self) -> list[tuple[str, Any]]:
        """Members with their names; none where something is wrong with them, which fit tells."""
        try:
            return self._pairs()
        except ValueError:
            return []

    def get_metadata_routing(self) -> MetadataRouter:
        """Where fit parameters go: to the members that ask for them.

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
        takes = self._takes  # of trained members: they are many, and asked for at every call
        if takes is None:
            takes = common_input_tags([member for _, member in self._readable_pairs()])
        for name, taken in takes.items():
            setattr(tags.input_tags, name, taken)
        return tags

    def _pairs(self) -> list[tuple[str, Any]]:
        """The members as given, with names that can be told from our own parameters."""
        owner = type(self).__name__
        if isinstance(self.estimators, Mapping):
            raise ValueError(
                f"{owner} needs a list of members; got a {type(self.estimators).__name__}."
            )
        pairs = name_members(self.estimators, owner)
        own = super().get_params(deep=False)
        for name, _ in pairs:
            if "__" in name or name in own:
                raise ValueError(
                    f"{owner} needs names for its members without '__' that are not its own "
                    f"parameters; got {name!r}."
                )
        return pairs

    def _start(self, X: Any, y: ArrayLike) -> NDArray[Any]:
        """Check the members, X and y as far as it does not depend on the members."""
        self._pairs()
        check_in_memory(type(self).__name__, X, y)
        validate_data(self, X, skip_check_array=True)
        return check_labels(X, y, type(self).__name__)

    def _checked_weight(self, sample_weight: Any, n_samples: int) -> NDArray[np.float64] | None:
        """One finite weight per sample, or None."""
        if sample_weight is None:
            return None
        return check_sample_weight(sample_weight, n_samples, f"{type(self).__name__}.fit")

    def _one_per_member(self, parameter: str) -> NDArray[np.float64]:
        """A parameter that holds a weight for each member: none negative, not all zero."""
        n_members, given = len(self._pairs()), getattr(self, parameter)
        try:
            values = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.array(np.nan)
        if values.shape != (n_members,):
            raise ValueError(
                f"{type(self).__name__} needs {parameter} with a number for each of {n_members} "
                f"members; got {given!r}."
            )
        with np.errstate(over="ignore"):
            total = values.sum()
        if not np.isfinite(total) or (values < 0).any() or not values.any():
            raise ValueError(
                f"{type(self).__name__} needs {parameter} with finite numbers, none negative and "
                f"not all zero; got {values.tolist()}."
            )
        return values

    def _checked_reject_label(self) -> Any:
        """What a rejected sample is answered with: the one given, never a class."""
        owner = type(self).__name__
        if self.reject_label is None:
            return _labels.default_reject_label(self.classes_)
        if _labels.is_missing(self.reject_label):
            raise ValueError(f"{owner} needs a reject_label that is not NaN or missing.")
        if self.reject_label in self.classes_.tolist():
            raise ValueError(
                f"{owner} needs a reject_label that is not a class; {self.reject_label!r} "
                f"is among {_labels.shown(self.classes_)}."
            )
        return self.reject_label

    def _take_prefit(self, X: Any, fit_params: dict[str, Any]) -> None:
        """Keep the members as they were given; all of them are trained and can answer for X."""
        if fit_params:
            raise ValueError(
                f"{type(self).__name__}.fit has nobody to pass {', '.join(fit_params)} to: the "
                "members are prefit."
            )
        self._keep([member for _, member in self._pairs()])
        self._ask(select_rows(X, [0]), "labels")

    def _routed(self, sample_weight: Any, fit_params: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """The fit parameters of each member."""
        given = dict(fit_params)
        if sample_weight is not None:
            given["sample_weight"] = sample_weight
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **given)
            return {name: dict(routed[name].fit) for name, _ in self._pairs()}
        for name, member in self._pairs():
            for key in given:
                if not has_fit_parameter(member, key):
                    raise ValueError(
                        f"{type(self).__name__}: member {name!r} ({type(member).__name__}) takes "
                        f"no {key}; leave it out, or enable metadata routing and request it where "
                        "it is taken."
                    )
        return dict.fromkeys([name for name, _ in self._pairs()], given)

    def _train(self, X: Any, y: NDArray[Any], params: dict[str, dict[str, Any]]) -> list[Any]:
        """Clones of the members, trained side by side."""
        return fit_members(
            self._pairs(), X, y, columns=self._columns(), params=params, n_jobs=self.n_jobs
        )[0]

    def _columns(self) -> dict[str, Columns | None]:
        """The columns each member looks at; None for all."""
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
        """Train the members on one part of the data; give back the rows of the other, for tuning.

        Parameters
        ----------
        X, y
            All samples.
        params : dict
            Fit parameters of each member; those with an entry per sample are split.
        fraction : float
            The share of the tuning part.
        random_state
            How it is drawn, with the same classes' shares where that can be.
        """
        training, tuning = train_test_split(
            np.arange(len(y)),
            test_size=fraction,
            random_state=random_state,
            stratify=y if _can_stratify(y, fraction) else None,
        )
        self._keep(self._train_on(X, y, params, training), y)
        rows: NDArray[np.int64] = tuning
        return rows

    def _train_on(
        self, X: Any, y: NDArray[Any], params: dict[str, dict[str, Any]], rows: NDArray[np.int64]
    ) -> list[Any]:
        """Clones of the members, trained on some of the samples."""
        own = {name: _split_params(given, rows, len(y)) for name, given in params.items()}
        return self._train(select_rows(X, rows), y[rows], own)

    def _held_out(
        self,
        X: Any,
        y: NDArray[Any],
        folds: list[Any],
        params: dict[str, dict[str, Any]],
        ask: Ask,
    ) -> list[tuple[NDArray[np.int64], Scores]]:
        """What members trained without some samples say about these, fold by fold.

        Parameters
        ----------
        X, y
            All samples.
        folds : list of (training, held out) positions or masks
            The held out ones need not be all samples.
        params : dict
            Fit parameters of each member; those with an entry per sample are split.
        ask : {"labels", "values"}
            What to ask for.
        """
        places = np.arange(len(y))
        parts = [(places[training], places[held_out]) for training, held_out in folds]
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
        """Store the trained members and all classes they or the labels know."""
        names = [name for name, _ in self._pairs()]
        sets: list[tuple[str, Any]] = [] if y is None else [("y", y)]
        for name, member in zip(names, members, strict=True):
            sets.append((f"member {name!r}", fitted_classes(name, member)))
        self.classes_ = _labels.union(sets)
        self.estimators_ = members
        self.member_names_ = names
        self._takes = common_input_tags(members)
        self._kept_columns = list(self._columns().values())

    @property
    def asks_as_given(self) -> bool:
        """Whether every member is given samples as they come, and not some of the columns."""
        return all(columns is None for columns in self._kept_columns or [])

    def _ask(self, X: Any, ask: Ask) -> Scores:
        """What the trained members say about new samples."""
        check_is_fitted(self, "estimators_")
        check_in_memory(type(self).__name__, X)
        check_columns(self, X)
        fitted = FittedMembers(
            self.member_names_, self.estimators_, self.classes_, features=self._kept_columns
        )
        return fitted.scores(X, ask, self.n_jobs)


def _split_params(params: dict[str, Any], rows: Any, n_samples: int) -> dict[str, Any]:
    """Fit parameters for some of the samples."""
    return {
        key: select_rows(value, rows) if _per_sample(value, n_samples) else value
        for key, value in params.items()
    }


def _per_sample(value: Any, n_samples: int) -> bool:
    """Whether a fit parameter has an entry for each sample."""
    return (
        not isinstance(value, str | dict) and hasattr(value, "__len__") and len(value) == n_samples
    )


def _can_stratify(y: NDArray[Any], fraction: float) -> bool:
    """Whether each class can be in both parts."""
    classes, sizes = np.unique(y, return_counts=True)
    smaller = min(np.floor(len(y) * fraction), np.floor(len(y) * (1 - fraction)))
    return bool(sizes.min() >= 2 and smaller >= len(classes))


@dataclass(frozen=True)
class FittedMembers:
    """Trained classifiers that answer together.

    Attributes
    ----------
    names : list of str
        Their names.
    members : list of classifiers
        Trained.
    classes : ndarray
        All classes.
    encoder : transformer or None
        What samples pass before the members see them.
    columns : list of str, int or None
        The columns of samples, by name, or how many there are; None if only the first member, or
        the encoder, knows.
    features : list or None
        The columns that each member looks at; None for all.
    """

    names: list[str]
    members: list[Any]
    classes: NDArray[Any]
    encoder: Any = None
    columns: list[str] | int | None = None
    features: list[Columns | None] | None = None

    @property
    def gives_probabilities(self) -> Flags:
        """Which members give probabilities."""
        return np.array([hasattr(member, "predict_proba") for member in self.members])

    def scores(self, X: Any, ask: Ask = "values", n_jobs: int | None = None) -> Scores:
        """What the members say about encoded samples."""
        pairs = list(zip(self.names, self.members, strict=True))
        with stay_local():  # members are asked here; a cluster trains them
            return Scores.of(
                pairs, X, classes=self.classes, features=self.features, ask=ask, n_jobs=n_jobs
            )

    def raw(self, X: Any, n_jobs: int | None = None) -> Floats:
        """What the members say about encoded samples, in their own units."""
        return self.scores(X, n_jobs=n_jobs).raw()

    def without_training_data(self) -> FittedMembers:
        """The same without the training data that members keep to be tuned; for new samples."""
        return replace(self, members=[_drop_training_data(member) for member in self.members])

    def encode(self, X: Any) -> Any:
        """Samples as the members see them."""
        return X if self.encoder is None else self.encoder.transform(X)


def describe_columns(X: Any) -> list[str] | int | None:
    """The columns of samples, by name, or how many there are."""
    names = list(getattr(X, "columns", []))
    if names:
        return names if all(isinstance(name, str) for name in names) else len(names)
    shape: tuple[int, ...] = getattr(X, "shape", ())
    return int(shape[1]) if len(shape) == 2 else None


def _drop_training_data(model: Any) -> Any:
    """A model without the training data that it, or what it is made of, keeps to be tuned."""
    if hasattr(model, "_forget_training"):
        return copy(model)._forget_training()
    parts: dict[str, Any] = {}
    if isinstance(getattr(model, "steps", None), list):
        parts["steps"] = [(name, _drop_training_data(step)) for name, step in model.steps]
    if isinstance(getattr(model, "estimators_", None), list):
        parts["estimators_"] = [_drop_training_data(member) for member in model.estimators_]
    if hasattr(model, "best_estimator_"):
        parts["best_estimator_"] = _drop_training_data(model.best_estimator_)
    if not parts:
        return model
    other = copy(model)
    for name, value in parts.items():
        setattr(other, name, value)
    return other


# With fewer samples threads cost more than they bring: five times as much on a busy machine.
_MANY = 20_000


@dataclass(frozen=True)
class Progress:
    """How far the training of a committee is.

    Attributes
    ----------
    done, total : int
        Models trained, and to be trained; of a program by itself, levels.
    member : str
        Whose model was the last.
    """

    done: int
    total: int
    member: str


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
    callback: Callable[[Progress], Any] | None = None,
    refit: bool = True,
) -> tuple[list[Any], list[Scores]]:
    """Train clones of members on all samples, and on each fold to predict what it holds out.

    Parameters
    ----------
    members : list of (name, classifier)
        Clones of them are trained.
    X, y
        Samples and labels.
    folds : sequence of (training, held out) positions
        What is held out in one fold is in no other.
    columns : mapping, optional
        The columns that each member looks at; all by default.
    params : mapping, optional
        Fit parameters of each member; those with an entry per sample are split.
    ask : {"values", "labels", "both"}
        What to predict.
    n_jobs : int, optional
        Models trained at a time.
    callback : callable, optional
        Called with a :class:`Progress` after each model.
    refit : bool, default=True
        Whether to train on all samples too.

    Returns
    -------
    trained : list of classifiers
        Trained on all samples; None for each without `refit`.
    out_of_fold : list of Scores
        Of what each fold holds out, by members trained without it.
    """
    classes = np.unique(y)
    jobs: list[tuple[int, int, _OneMember, tuple[Codes, Codes] | None]] = []
    for j, (name, member) in enumerate(members):
        own = _OneMember(
            name,
            member,
            columns[name] if columns else None,
            params[name] if params else {},
            classes,
            ask,
        )
        jobs.extend((j, f, own, fold) for f, fold in enumerate(folds))
        if refit:
            jobs.append((j, -1, own, None))
    trained: list[Any] = [None] * len(members)
    scores: list[list[Any]] = [[None] * len(members) for _ in folds]
    with threadpool_limits(1 if len(y) < _MANY else None):
        results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
            delayed(_fit_one)(own, X, y, fold, (j, f)) for j, f, own, fold in jobs
        )
        for done, ((j, f), result) in enumerate(results, start=1):
            if f < 0:
                trained[j] = result
            else:
                scores[f][j] = result
            if callback is not None:
                callback(Progress(done, len(jobs), members[j][0]))
    return trained, [Scores.side_by_side(parts) for parts in scores]


@dataclass(frozen=True, eq=False)
class _OneMember:
    """A member to be trained: what it looks at, what it is given, and what is asked of it."""

    name: str
    member: Any
    columns: Columns | None
    params: dict[str, Any]
    classes: NDArray[Any]
    ask: Ask


def _fit_one(
    own: _OneMember, X: Any, y: NDArray[Any], fold: tuple[Codes, Codes] | None, job: tuple[int, int]
) -> tuple[tuple[int, int], Any]:
    """A member trained on all samples; or what one predicts that is trained without a fold."""
    member, params = clone(own.member), own.params
    with stay_local():
        if fold is None:
            return job, member.fit(select_columns(X, own.columns, own.name, None), y, **params)
        training, held_out = fold
        seen = select_columns(select_rows(X, training), own.columns, own.name, None)
        member.fit(seen, y[training], **_split_params(params, training, len(y)))
        rows, features = select_rows(X, held_out), [own.columns]
        named = [(own.name, member)]
        return job, Scores.of(named, rows, classes=own.classes, features=features, ask=own.ask)


def check_tuning(tuning: Any, owner: str) -> None:
    """Refuse what is neither a number of folds, a share, a splitter nor a list of folds."""
    share = is_fraction(tuning) and not 0 < tuning < 1
    count = isinstance(tuning, int | np.integer) and tuning < 2
    if share or count or isinstance(tuning, str):
        raise ValueError(
            f"{owner} needs tuning to be a number of folds of at least 2, a share in (0, 1), a "
            f"splitter or a list of folds; got {tuning!r}."
        )


def is_fraction(tuning: Any) -> bool:
    """Whether a part is kept from training, so that there are no folds."""
    return isinstance(tuning, float | np.floating)


def make_folds(tuning: Any, X: Any, y: NDArray[Any], owner: str) -> list[Any]:
    """Folds as a user asks for them: a number, a splitter or a list."""
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
    """What to do with groups, for a message."""
    return (
        f"{owner} needs the folds of samples in groups as a list: "
        "tuning=list(GroupKFold().split(X, y, groups))."
    )


def stratified_folds(y: NDArray[Any], n_folds: int, owner: str) -> list[Any]:
    """Folds with the classes' shares, fewer if a class is small."""
    classes, sizes = np.unique(y, return_counts=True)
    if sizes.min() < 2:
        raise ValueError(
            f"{owner} needs at least two samples of each class to cross-validate; "
            f"{_labels.plain(classes[sizes.argmin()])!r} has one."
        )
    return list(StratifiedKFold(min(n_folds, int(sizes.min()))).split(y, y))
