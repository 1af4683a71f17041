"""Selection by region: the space is split into regions, and one member predicts in each.

"Multi-classifiers", slides on selection: the feature space is divided into K > 1 regions of
competence R_1, ..., R_K, usually K = L, and each is "associated with a classifier, which will be
responsible for deciding on the input objects in this part of the space". Regions "are not
associated with specific classes, nor do they need to be of a certain shape or size". The steps of
``fit`` are: the members' predictions for the tuning set, the regions, and the member that is best
in each by a criterion.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.metrics import get_scorer
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import check_array, get_tags
from sklearn.utils.metaestimators import available_if

from margrave import _labels
from margrave._indexing import count_rows, select_rows
from margrave._typing import AnyFloats, AnyInts, Flags
from margrave._validation import check_columns, check_parameters, is_count
from margrave.scores import Ask, Scores
from margrave.select._base import BaseSelector, TuningSet


class RegionSelectionClassifier(BaseSelector):
    """A committee that selects one member for each region of the space.

    Parameters
    ----------
    estimators : list of classifiers, of (name, classifier), or a fitted ensemble
        The members. With ``prefit=True`` this may be a fitted ensemble of scikit-learn, such as a
        BaggingClassifier or a random forest, whose members are used.
    regions : {"kmeans", "members"}, name of a column, clusterer or callable, default="kmeans"
        The regions:

        - "kmeans": the clusters of k-means on the tuning set;
        - "members": one region per member, where it is the most accurate according to a regression
          tree, fitted on which members are correct;
        - the name of a column of a data frame: one region per value;
        - a clusterer with ``predict``: a clone is fitted on the tuning set;
        - a function that returns the region of each row of X.
    n_regions : int, optional
        The number of clusters for "kmeans", by default the number of members. For "members", the
        largest number of leaves of the tree, by default four per member.
    criterion : "accuracy", str or callable, default="accuracy"
        The member with the largest criterion on the tuning set's samples of a region is selected
        for the region. Accuracy, or a scorer of scikit-learn: its name, the result of
        ``make_scorer``, or a function of (member, positions of samples, labels), whose member
        returns its stored predictions for positions. Where the criterion is not defined, as in a
        region that lacks a class, the member that is best on the whole tuning set is selected.
    prefit : bool, default=False
        Whether the members are fitted already. The data passed to ``fit`` is then the tuning set,
        which should not include training samples of any member.
    tuning : int, float in (0, 1), splitter or list of folds, default=5
        The tuning set if `prefit` is False. With folds, it consists of all held-out samples with
        out-of-fold predictions, after which the members are fitted on all samples; with a float, of
        this fraction of the samples, which the members are not fitted on.
    space : transformer, optional
        Transforms samples before regions are computed, such as a StandardScaler; a clone is fitted
        on the tuning set. By default the columns are used directly, and must be numbers.
    features : sequence (one entry per member) or mapping by name, optional
        The columns that each member uses: names, positions or a slice; None for all.
    n_jobs : int, optional
        Number of members fitted or predicting at a time.
    random_state : int, RandomState or None, default=None
        Seed of k-means, of the tree, and of the split if `tuning` is a float.

    Attributes
    ----------
    classes_ : ndarray
        All classes.
    estimators_ : list
        The fitted members.
    named_estimators_ : Bunch
        The fitted members by name.
    member_names_ : list of str
        The members' names; their types, numbered, by default.
    regions_ : ndarray of shape (K,)
        The regions that have samples of the tuning set, as `region_of` returns them.
    member_of_region_ : ndarray of str, shape (K,)
        The member selected for each region; of several best members, the one that is best on the
        whole tuning set.
    member_elsewhere_ : str
        The member for other regions: the one that is best on the whole tuning set.
    competence_ : ndarray of shape (K, n_members)
        The criterion in each region. With ``regions="members"`` the same samples determine the
        regions, so the largest values are optimistic.
    competence_overall_ : ndarray of shape (n_members,)
        The criterion on the whole tuning set.
    n_tuning_ : ndarray of int, shape (K,)
        Number of samples of the tuning set in each region.
    finder_ : estimator or None
        Finds the region of a sample; None if a function or a column does.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from margrave.select import RegionSelectionClassifier
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = np.where(X[:, 0] > 0, X[:, 1] > 0, np.abs(X[:, 1]) < 0.7)
    >>> members = [("logistic", LogisticRegression()), ("bayes", GaussianNB())]
    >>> model = RegionSelectionClassifier(members, random_state=0).fit(X, y)
    >>> model.member_of_region_
    array(['logistic', 'bayes'], dtype='<U8')
    >>> print(model.explain([[1.0, 1.0], [-1.0, 0.0]]))
    True: region 0, logistic (0.755 on 216 samples of the tuning set)
    True: region 1, bayes (0.788 on 184 samples of the tuning set)
    """

    finder_: Any

    def __init__(
        self,
        estimators: Any,
        regions: Any = "kmeans",
        n_regions: int | None = None,
        criterion: Any = "accuracy",
        *,
        prefit: bool = False,
        tuning: Any = 5,
        space: Any = None,
        features: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimators = estimators
        self.regions = regions
        self.n_regions = n_regions
        self.criterion = criterion
        self.prefit = prefit
        self.tuning = tuning
        self.space = space
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit the members, unless prefit, find the regions, and select a member for each.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Passed to the members, and used for regions and criterion.
        **fit_params : dict
            Passed to the members; with metadata routing, to those that request them.

        Returns
        -------
        self
        """
        self._check_parameters(X)
        scorer = check_criterion(self.criterion, type(self).__name__)
        labels = self._start(X, y)
        ask = needed_predictions(scorer, labels)
        tuning = self._predict_tuning_set(X, labels, sample_weight, fit_params, ask)
        self.reject_label_ = self._checked_reject_label()
        position = self._fit_regions(tuning)
        self._select_members(tuning, position, scorer)
        self.n_tuning_ = np.bincount(position)
        return self

    def region_of(self, X: Any) -> NDArray[Any]:
        """Return the region of each sample.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        self._check_fitted()
        check_columns(self, X)
        return self._find_regions(self._region_input(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels, each by the member of the sample's region.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        members = self._members_at(*self._positions(self.region_of(X)))
        codes = np.empty(len(members), dtype=np.int64)
        for at, scores in self._predict_by_member(X, members, "labels"):
            codes[at] = np.asarray(scores.codes)[:, 0]
        return _labels.decode(codes, self.classes_, self.reject_label_)

    @available_if(lambda self: _all_have_proba(self))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict probabilities, each by the member of the sample's region.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        members = self._members_at(*self._positions(self.region_of(X)))
        proba = np.empty((len(members), len(self.classes_)))
        for at, scores in self._predict_by_member(X, members, "values"):
            proba[at] = scores.proba()[:, 0]
        return proba

    def explain(self, X: Any) -> RegionExplanation:
        """Return the region of each sample, and the member that predicts it.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        RegionExplanation
            Prints as one line per sample.
        """
        regions = self.region_of(X)
        position, known = self._positions(regions)
        members = self._members_at(position, known)
        number = np.array([self.member_names_.index(name) for name in members])
        local = self.competence_[position, number]
        return RegionExplanation(
            predictions=self.predict(X),
            regions=regions,
            members=members,
            competence=np.where(known, local, self.competence_overall_[number]),
            n_tuning=np.where(known, self.n_tuning_[position], 0),
        )

    # The steps of fit

    def _check_parameters(self, X: Any) -> None:
        check_regions(self.regions, X, type(self).__name__)
        valid = self.n_regions is None or is_count(self.n_regions)
        check_parameters(
            self,
            {
                "n_regions": ("None or an integer of at least 1", valid),
                "prefit": ("True or False", isinstance(self.prefit, bool | np.bool_)),
            },
        )

    def _fit_regions(self, tuning: TuningSet) -> AnyInts:
        """Find the regions, and return the position in ``regions_`` of each sample's region."""
        n_tuning = len(tuning.labels)
        if self.regions == "kmeans" and self.n_regions is not None and self.n_regions > n_tuning:
            raise ValueError(
                f"{type(self).__name__} needs n_regions to be at most the {n_tuning} samples of "
                f"the tuning set; got {self.n_regions}."
            )
        self._fit_space(tuning.X)
        self._region_function = region_function(self.regions)
        X = self._region_input(tuning.X)
        self.finder_ = None
        if self._region_function is None:
            self.finder_ = fit_finder(self.regions, tuning, X, self.n_regions, self.random_state)
        self.regions_, position = np.unique(self._find_regions(X), return_inverse=True)
        return position

    def _select_members(self, tuning: TuningSet, position: AnyInts, scorer: Any) -> None:
        """Select the best member overall, and in each region."""
        everything = np.arange(len(position))
        parts = [np.flatnonzero(position == r) for r in range(len(self.regions_))]
        evaluation = (tuning, self.classes_, scorer, type(self).__name__)
        self.competence_ = evaluate_members(parts, *evaluation)
        self.competence_overall_ = evaluate_members([everything], *evaluation)[0]
        names = np.array(self.member_names_)
        overall = np.nan_to_num(self.competence_overall_, nan=-np.inf)
        self.member_elsewhere_ = str(names[np.argmax(overall)])
        self.member_of_region_ = names[[best_member(row, overall) for row in self.competence_]]

    # The steps of predict

    def _region_input(self, X: Any) -> Any:
        """Return the samples as a function needs them, unchanged, or else in the space."""
        if self._region_function is None:
            return self._to_space(X)
        # In arrays, refuse missing values that a member would refuse; the function and the members
        # decide about those of data frames.
        if not hasattr(X, "columns") and not get_tags(self).input_tags.allow_nan:
            check_array(X, accept_sparse="csr", dtype=None)
        return X

    def _find_regions(self, X: Any) -> NDArray[Any]:
        """Return the region of each sample of `_region_input`."""
        if self._region_function is not None:
            regions = np.asarray(self._region_function(X))
        elif isinstance(self.finder_, DecisionTreeRegressor):  # predicts the members' accuracy
            regions = self.finder_.predict(X).reshape(X.shape[0], -1).argmax(axis=1)
        else:
            regions = np.asarray(self.finder_.predict(X))
        if regions.shape != (count_rows(X),):
            raise ValueError(
                f"{type(self).__name__} needs one region for each of {count_rows(X)} samples; got "
                f"regions of shape {regions.shape}."
            )
        return regions

    def _positions(self, regions: NDArray[Any]) -> tuple[AnyInts, Flags]:
        """Return the positions of regions in ``regions_``, and whether they are there."""
        position = np.minimum(np.searchsorted(self.regions_, regions), len(self.regions_) - 1)
        return position, self.regions_[position] == regions

    def _members_at(self, position: AnyInts, known: Flags) -> NDArray[Any]:
        """Return the name of the member that predicts each sample."""
        return np.where(known, self.member_of_region_[position], self.member_elsewhere_)

    def _predict_by_member(
        self, X: Any, members: NDArray[Any], ask: Ask
    ) -> Iterator[tuple[AnyInts, Scores]]:
        """Yield, for each member, the positions of its samples and its predictions for them."""
        fitted = zip(self.member_names_, self.estimators_, self._kept_columns or [], strict=True)
        for name, member, columns in fitted:
            at = np.flatnonzero(members == name)
            if len(at):
                rows, pairs = select_rows(X, at), [(name, member)]
                yield (
                    at,
                    Scores.of(pairs, rows, classes=self.classes_, features=[columns], ask=ask),
                )

    def _accepts_missing(self) -> bool:
        return region_function(self.regions) is not None or super()._accepts_missing()


def _all_have_proba(model: RegionSelectionClassifier) -> bool:
    return all(hasattr(member, "predict_proba") for _, member in model._readable_pairs())


@dataclass(frozen=True)
class RegionExplanation:
    """The region of each sample and the member that predicts it; it prints as one line per sample.

    Attributes
    ----------
    predictions : ndarray of shape (n,)
        The predicted labels.
    regions : ndarray of shape (n,)
        The region of each sample.
    members : ndarray of str, shape (n,)
        The member that predicts it.
    competence : ndarray of shape (n,)
        The criterion of that member on the region's samples of the tuning set; on the whole tuning
        set if the region has none.
    n_tuning : ndarray of int, shape (n,)
        Number of samples of the tuning set in the region.

    Examples
    --------
    >>> import numpy as np
    >>> from margrave.select import RegionSelectionClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = np.where(X[:, 0] > 0, X[:, 1] > 0, np.abs(X[:, 1]) < 0.7)
    >>> members = [("logistic", LogisticRegression()), ("bayes", GaussianNB())]
    >>> model = RegionSelectionClassifier(members, random_state=0).fit(X, y)
    >>> explanation = model.explain([[1.0, 1.0], [-1.0, 0.0]])
    >>> explanation.members.tolist(), explanation.n_tuning.tolist()
    (['logistic', 'bayes'], [216, 184])
    """

    predictions: NDArray[Any]
    regions: NDArray[Any]
    members: NDArray[Any]
    competence: NDArray[np.float64]
    n_tuning: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.predictions)

    def __str__(self) -> str:
        return "\n".join(self._format_row(i) for i in range(len(self)))

    def _format_row(self, i: int) -> str:
        n_tuning = self.n_tuning[i]
        part = f"{n_tuning} samples of the tuning set"
        if not n_tuning:
            part = "the whole tuning set, as the region has no samples"
        return (
            f"{self.predictions[i]}: region {self.regions[i]}, {self.members[i]} "
            f"({self.competence[i]:.3g} on {part})"
        )


# Regions

_LEARNED_REGIONS = ("kmeans", "members")
# For "members": leaves per member, and samples in a leaf, which estimate the members' accuracy.
_LEAVES_PER_MEMBER = 4
_MIN_SAMPLES_LEAF = 20
_KMEANS_STARTS = 3


class ColumnRegions:
    """Regions by the values of a column of a data frame; unlike a closure, it can be pickled."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, X: Any) -> NDArray[Any]:
        """Return the values."""
        return np.asarray(X[self.name])


def check_regions(regions: Any, X: Any, owner: str) -> None:
    """Check that regions are a known name, a column of X, a clusterer or a function."""
    if isinstance(regions, str) and regions in (*_LEARNED_REGIONS, *getattr(X, "columns", ())):
        return
    if _is_clusterer(regions):
        if hasattr(regions, "predict"):
            return
        raise ValueError(
            f"{owner} needs regions to be a clusterer with predict, for new samples; "
            f"{type(regions).__name__} has none."
        )
    if isinstance(regions, str) or not callable(regions):
        raise ValueError(
            f"{owner} needs regions to be 'kmeans', 'members', the name of a column of a data "
            f"frame, a clusterer with predict, or a function of X; got {regions!r}."
        )


def _is_clusterer(regions: Any) -> bool:
    return hasattr(regions, "fit")


def region_function(regions: Any) -> Any:
    """Return the function that returns the region of each sample; None if regions are learned."""
    if isinstance(regions, str) and regions not in _LEARNED_REGIONS:
        return ColumnRegions(regions)
    return regions if callable(regions) and not _is_clusterer(regions) else None


def fit_finder(
    regions: Any, tuning: TuningSet, X: Any, n_regions: int | None, random_state: Any
) -> Any:
    """Fit k-means, the tree of "members" or a clusterer on the tuning set, X in the space."""
    n_tuning, n_members = tuning.predictions.codes.shape
    if not isinstance(regions, str):
        return clone(regions).fit(X)
    if regions == "kmeans" or n_regions == 1:  # a tree has at least two leaves
        n_clusters = n_regions or min(n_members, n_tuning)
        kmeans = KMeans(n_clusters, n_init=_KMEANS_STARTS, random_state=random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct samples
            return kmeans.fit(X, sample_weight=tuning.weight)
    tree = DecisionTreeRegressor(
        max_leaf_nodes=n_regions or max(_LEAVES_PER_MEMBER * n_members, 2),
        min_samples_leaf=_MIN_SAMPLES_LEAF,
        random_state=random_state,
    )
    return tree.fit(X, tuning.correct.astype(np.float64), sample_weight=tuning.weight)


# The criterion: accuracy, or any scorer of scikit-learn


def best_member(competence: AnyFloats, overall: AnyFloats) -> int:
    """Return the member with the largest criterion; of equals the best overall, then the first."""
    known = np.nan_to_num(competence, nan=-np.inf)
    best = known == known.max()
    return int(np.argmax(np.where(best, overall, -np.inf)) if best.any() else np.argmax(overall))


def check_criterion(criterion: Any, owner: str) -> Any:
    """Return the scorer of a criterion; None for accuracy, which needs none."""
    if isinstance(criterion, str) and criterion == "accuracy":
        return None
    if not isinstance(criterion, str) and not callable(criterion):
        raise ValueError(
            f"{owner} needs criterion to be 'accuracy', the name of a scorer or a scorer; "
            f"got {criterion!r}."
        )
    try:
        return get_scorer(criterion)
    except ValueError as error:
        raise ValueError(
            f"{owner} needs criterion to be 'accuracy' or a name that "
            f"sklearn.metrics.get_scorer_names() returns; got {criterion!r}."
        ) from error


def needed_predictions(scorer: Any, labels: NDArray[Any]) -> Ask:
    """Return what a scorer needs: labels if it can score a member that predicts nothing else.

    A function of the user may use probabilities only where there are some, so it gets both.
    """
    if scorer is None:
        return "labels"
    if not isinstance(scorer, type(get_scorer("accuracy"))):
        return "both"
    correct = StoredMember(np.unique(labels), labels, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            scorer(correct, np.arange(len(labels)), labels)
        except (AttributeError, TypeError, ValueError):
            return "both"
    return "labels"


class StoredMember(ClassifierMixin, BaseEstimator):
    """Stored predictions as a classifier of positions, for scorers.

    The members that predicted the tuning set may be gone: each fold has its own.
    """

    def __init__(self, classes: NDArray[Any], labels: NDArray[Any], proba: Any) -> None:
        self.classes = classes
        self.labels = labels
        self.proba = proba

    @property
    def classes_(self) -> NDArray[Any]:
        """All classes."""
        return self.classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, at: Any) -> NDArray[Any]:
        """Return the labels at positions."""
        labels: NDArray[Any] = self.labels[at]
        return labels

    @available_if(lambda self: self.proba is not None)  # type: ignore[untyped-decorator]
    def predict_proba(self, at: Any) -> AnyFloats:
        """Return the probabilities at positions."""
        proba: AnyFloats = self.proba[at]
        return proba


def evaluate_members(
    parts: Sequence[AnyInts], tuning: TuningSet, classes: NDArray[Any], scorer: Any, owner: str
) -> AnyFloats:
    """Return the criterion of each member on parts of the tuning set, shape (parts, L).

    NaN where it is not defined, as in a part that lacks a class.
    """
    n_members, n_classes = tuning.predictions.codes.shape[1], len(np.unique(tuning.labels))
    values = np.empty((len(parts), n_members))
    if scorer is None:
        correct = tuning.correct
        for r, at in enumerate(parts):
            weight = None if tuning.weight is None else tuning.weight[at]
            values[r] = np.average(correct[at], axis=0, weights=weight)
        return values
    labels = classes[tuning.labels]
    members = [_stored_member(tuning, classes, j) for j in range(n_members)]
    for r, at in enumerate(parts):
        lacks_class = len(np.unique(tuning.labels[at])) < n_classes
        for j, member in enumerate(members):
            try:
                values[r, j] = _score(scorer, member, at, labels[at], tuning.weight, owner)
            except ValueError:
                if not lacks_class:
                    raise
                values[r, j] = np.nan
    return values


def _stored_member(tuning: TuningSet, classes: NDArray[Any], j: int) -> StoredMember:
    predictions = tuning.predictions
    codes, reject_label = predictions.codes[:, j], _labels.default_reject_label(classes)
    proba = predictions.proba[:, j] if predictions.has_proba else None
    return StoredMember(classes, _labels.decode(codes, classes, reject_label), proba)


def _score(
    scorer: Any, member: StoredMember, at: AnyInts, labels: NDArray[Any], weight: Any, owner: str
) -> float:
    takes_weights = "sample_weight" in signature(scorer).parameters
    weights = {"sample_weight": weight[at]} if weight is not None and takes_weights else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # the value is NaN
        try:
            return float(scorer(member, at, labels, **weights))
        except AttributeError as error:
            raise ValueError(
                f"{owner} needs members with predict_proba for this criterion; one has none "
                "(sklearn.calibration.CalibratedClassifierCV adds it)."
            ) from error
