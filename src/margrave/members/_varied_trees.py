"""Varied trees: a forest whose trees have different parameters, drawn at random.

"Multi-classifiers", Data level (iv): the trees of a random forest, "each built using a random
bootstrap sample", "can be built by sampling from the feature set, from the training set, or just
varying randomly some of the parameters of the tree". `RandomForestClassifier` samples features and
rows; here the parameters vary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

from margrave._messages import did_you_mean, near_names
from margrave._validation import check_parameters, is_count
from margrave.members._bagging import BaggedMember, BaggingVariant

_PARAMETERS: dict[str, Sequence[Any]] = {
    "criterion": ("gini", "entropy"),
    "max_depth": (None, 5, 10),
    "max_features": (None, "sqrt", 0.5),
}


class VariedTreesClassifier(BaggingVariant):
    """A forest of decision trees with different parameters, drawn at random for each tree.

    Each tree is fitted on a bootstrap sample, with a value for each of its parameters that is drawn
    from a list, independently of the others. The prediction is the mean of the trees' probabilities
    [1]_.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    parameters : dict of str to list, default=None
        The values to draw from, for each parameter of
        :class:`~sklearn.tree.DecisionTreeClassifier` that varies; the others have their defaults.
        None draws `criterion` from "gini" and "entropy", `max_depth` from None, 5 and 10, and
        `max_features` from None, "sqrt" and 0.5.
    n_jobs : int, default=None
        Number of parallel jobs of `fit` and the predictions, as in scikit-learn.
    random_state : int, RandomState instance or None, default=None
        Seed of the bootstrap samples, of the parameters and of the trees.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    estimators_ : list of DecisionTreeClassifier
        The fitted trees. As in scikit-learn's bagging, their classes are the positions of the
        labels in `classes_`.
    parameters_ : list of dict
        The drawn parameters of each tree.
    bagging_ : BaggingClassifier
        The ensemble of the trees.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if `X` has names that are all strings.

    Notes
    -----
    With one value for each parameter, this is bagging of that tree. `sample_weight` sets the
    probabilities of drawing the rows, as in scikit-learn's bagging (1.8 and later).

    References
    ----------
    .. [1] "Multi-classifiers", lecture slides, Data level (iv): variants of bagging.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margrave.members import VariedTreesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> depths = {"max_depth": [1, 2, 3]}
    >>> model = VariedTreesClassifier(5, parameters=depths, random_state=0).fit(X, y)
    >>> [drawn["max_depth"] for drawn in model.parameters_]
    [3, 1, 3, 3, 1]
    >>> model.predict(X[[0, 50, 100]])
    array([0, 1, 2])
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        parameters: Mapping[str, Sequence[Any]] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.parameters = parameters
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def parameters_(self) -> list[dict[str, Any]]:
        """The drawn parameters of each tree."""
        return [member.parameters_ for member in self.bagging_.estimators_]

    def _bagged(self) -> BaggedMember:
        varied = _PARAMETERS if self.parameters is None else self.parameters
        return _VariedMember(DecisionTreeClassifier(), varied)

    def _check_parameters(self) -> None:
        varied = {} if self.parameters is None else self.parameters
        is_valid = isinstance(varied, Mapping) and all(map(_is_list, varied.values()))
        rules = {
            "n_estimators": ("an integer of at least 1", is_count(self.n_estimators)),
            "parameters": ("None or a dict of lists, none empty", is_valid),
        }
        check_parameters(self, rules)
        if any(isinstance(weight, Mapping) for weight in varied.get("class_weight", [])):
            raise ValueError(
                f"{type(self).__name__} needs class_weight in parameters to have None or "
                "'balanced'; got a dict. Pass sample_weight to fit instead."
            )
        known = set(DecisionTreeClassifier().get_params()) - {"random_state"}
        for name in varied:
            if name not in known:
                hint = did_you_mean(near_names(str(name), sorted(known)))
                raise ValueError(
                    f"{type(self).__name__} needs parameters of DecisionTreeClassifier, other than "
                    f"random_state, in parameters; got {name!r}.{hint}"
                )


def _is_list(values: Any) -> bool:
    is_sequence = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str)
    return is_sequence and len(values) > 0


class _VariedMember(BaggedMember):
    """A tree that draws its parameters before it is fitted."""

    def __init__(
        self,
        estimator: DecisionTreeClassifier,
        parameters: Mapping[str, Sequence[Any]],
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.parameters = parameters
        self.random_state = random_state

    def fit(self, X: NDArray[Any], y: NDArray[Any], sample_weight: ArrayLike | None = None) -> Self:
        rng = check_random_state(self.random_state)
        self.parameters_ = {
            name: values[rng.randint(len(values))] for name, values in self.parameters.items()
        }
        tree = clone(self.estimator).set_params(**self.parameters_)
        self.estimator_ = tree.fit(X, y, sample_weight=sample_weight)
        return self
