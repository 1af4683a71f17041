"""A committee as a scikit-learn estimator: naming, training and asking its members.

What combiners and selectors share, whatever they do with the answers: members come as a list or as
(name, classifier) pairs and are trained on clones, or taken as they are with ``prefit=True``;
their parameters are reached as ``name__parameter``; fit parameters are routed to them.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Bunch, check_array, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from margrave import _labels
from margrave._asking import Ask, classes_of, named_members
from margrave.scores import Scores


class Committee(ClassifierMixin, BaseEstimator):
    """Base of the estimators that hold trained members.

    A subclass takes ``estimators``, ``prefit`` and ``n_jobs`` in its constructor. Its ``fit``
    calls :meth:`_start`, :meth:`_train` (or :meth:`_take_prefit`) and :meth:`_keep`; everything
    later goes through :meth:`_ask`.
    """

    estimators: Any
    prefit: bool
    n_jobs: int | None
    classes_: NDArray[Any]
    estimators_: list[Any]

    @property
    def named_estimators_(self) -> Bunch:
        """The trained members by name."""
        check_is_fitted(self)
        return Bunch(**dict(zip(self._names(), self.estimators_, strict=True)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, with those of named members as ``name__parameter``.

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
            for name, member in self._given_pairs():
                params[name] = member
                nested = member.get_params(deep=True) if hasattr(member, "get_params") else {}
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
        pairs = self._given_pairs()
        replaced = {name: params.pop(name) for name, _ in pairs if name in params}
        if replaced:
            self.estimators = [(name, replaced.get(name, member)) for name, member in pairs]
        super().set_params(**params)
        return self

    def _given_pairs(self) -> list[tuple[str, Any]]:
        """Members that were given with a name."""
        given = self.estimators if isinstance(self.estimators, list | tuple) else []
        return [entry for entry in given if isinstance(entry, tuple) and len(entry) == 2]

    def get_metadata_routing(self) -> MetadataRouter:
        """Where fit parameters go: to the members that ask for them.

        Returns
        -------
        MetadataRouter
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        for name, member in self._pairs():
            if hasattr(member, "fit"):
                router.add(**{name: member}, method_mapping=to_fit)
        return router

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            inputs = [get_tags(member).input_tags for _, member in self._pairs()]
        except (ValueError, AttributeError, TypeError):
            return tags  # what is wrong with the members is said by fit
        tags.input_tags.sparse = all(member.sparse for member in inputs)
        tags.input_tags.allow_nan = all(member.allow_nan for member in inputs)
        return tags

    def _pairs(self) -> list[tuple[str, Any]]:
        return named_members(self.estimators, type(self).__name__)

    def _names(self) -> list[str]:
        return [name for name, _ in self._pairs()]

    def _start(self, X: Any, y: ArrayLike) -> NDArray[Any]:
        """Check the members, X and y as far as it does not depend on the members."""
        self._pairs()
        validate_data(self, X, skip_check_array=True)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        check_consistent_length(X, y)
        given = check_array(y, dtype=None, ensure_2d=False, input_name="y")
        labels: NDArray[Any] = column_or_1d(given, warn=True)
        check_classification_targets(labels)
        _labels.union([("y", labels)])
        return labels

    def _checked_weight(self, sample_weight: Any, n_samples: int) -> NDArray[np.float64] | None:
        """One finite weight per sample, or None."""
        if sample_weight is None:
            return None
        weights = np.asarray(sample_weight, dtype=np.float64)
        if weights.shape != (n_samples,) or not np.isfinite(weights).all():
            raise ValueError(
                f"{type(self).__name__}.fit needs sample_weight with a finite number for each of "
                f"{n_samples} samples; got shape {weights.shape}."
            )
        return weights

    def _one_per_member(self, parameter: str) -> NDArray[np.float64]:
        """A parameter that holds a weight for each member: none negative, not all zero."""
        n_members = len(self._names())
        values = np.array(getattr(self, parameter), dtype=np.float64)
        if values.shape != (n_members,):
            raise ValueError(
                f"{type(self).__name__} needs {parameter} with a number for each of {n_members} "
                f"members; got shape {values.shape}."
            )
        if not np.isfinite(values).all() or (values < 0).any() or not values.any():
            raise ValueError(
                f"{type(self).__name__} needs {parameter} with finite numbers, none negative and "
                f"not all zero; got {values.tolist()}."
            )
        return values

    def _take_prefit(self) -> list[Any]:
        """The members as they were given, all of them trained."""
        for name, member in self._pairs():
            classes_of(name, member)
        return [member for _, member in self._pairs()]

    def _routed(self, sample_weight: Any, fit_params: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """The fit parameters of each member."""
        given = dict(fit_params)
        if sample_weight is not None:
            given["sample_weight"] = sample_weight
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **given)
            return {name: dict(routed[name].fit) for name in self._names()}
        for name, member in self._pairs():
            for key in given:
                if not has_fit_parameter(member, key):
                    raise ValueError(
                        f"{type(self).__name__}: member {name!r} ({type(member).__name__}) takes "
                        f"no {key}; leave it out, or enable metadata routing and request it where "
                        "it is taken."
                    )
        return dict.fromkeys(self._names(), given)

    def _train(self, X: Any, y: NDArray[Any], params: dict[str, dict[str, Any]]) -> list[Any]:
        """Clones of the members, trained side by side."""
        trained: list[Any] = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_member)(clone(member), X, y, params[name])
            for name, member in self._pairs()
        )
        return trained

    def _keep(self, members: list[Any], y: NDArray[Any] | None = None) -> None:
        """Store the trained members and all classes they or the labels know."""
        sets: list[tuple[str, Any]] = [] if y is None else [("y", y)]
        for name, member in zip(self._names(), members, strict=True):
            sets.append((f"member {name!r}", classes_of(name, member)))
        self.classes_ = _labels.union(sets)
        self.estimators_ = members

    def _ask(self, X: Any, ask: Ask) -> Scores:
        """What the trained members say about new samples."""
        check_is_fitted(self, "estimators_")
        if hasattr(self, "n_features_in_") and getattr(X, "ndim", 2) == 1:
            raise ValueError(
                f"{type(self).__name__} expects X with {self.n_features_in_} columns; got one row "
                "or column only. Reshape your data: X.reshape(1, -1) makes one sample of it."
            )
        validate_data(self, X, reset=False, skip_check_array=True)
        members = list(zip(self._names(), self.estimators_, strict=True))
        return Scores.of(members, X, classes=self.classes_, ask=ask, n_jobs=self.n_jobs)


def _fit_member(member: Any, X: Any, y: NDArray[Any], params: dict[str, Any]) -> Any:
    return member.fit(X, y, **params)
