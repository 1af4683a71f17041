"""Local selection: the members that are correct on the samples nearest to a query predict it.

"Multi-classifiers", slides on selection: "one member is chosen to label the input object x". The
region of competence is the neighbourhood of x in the tuning set. For a block of queries at a time,
the steps are: the members' predictions, neighbours, competence, selected members, votes. The
methods and their formulas are in `_competence`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import get_tags

from margrave import _labels
from margrave._indexing import count_rows, select_rows
from margrave._messages import did_you_mean, near_names
from margrave._typing import AnyFloats, AnyInts, Flags
from margrave._validation import check_columns, check_parameters, is_count
from margrave.scores import Ask
from margrave.select._base import BaseSelector, Predictions, TuningSet, row_blocks
from margrave.select._competence import (
    METHODS,
    N_PROFILES,
    MetaClassifier,
    MetaFeatures,
    Method,
    Neighbourhood,
    keep_first,
    ola,
    to_tenths,
)


class LocalSelectionClassifier(BaseSelector):
    """A committee that selects members for each sample, by their accuracy around it.

    Parameters
    ----------
    estimators : list of classifiers, of (name, classifier), or a fitted ensemble
        The members. With ``prefit=True`` this may be a fitted ensemble of scikit-learn, such as a
        BaggingClassifier or a random forest, whose members are used.
    method : str, default="knora-u"
        The method that selects members by their predictions for the `k` nearest samples of the
        tuning set, the neighbours:

        - "ola": the member that is correct on the most neighbours;
        - "lca": the same, over the neighbours of the class that the member predicts;
        - "mla": the same, with weights that decrease with the distance;
        - "rank": the member that is correct on the most neighbours before its first error;
        - "knora-e": all members that are correct on the most neighbours before their first error;
        - "knora-u": all members that are correct on any neighbour, with a vote for each of these;
        - "des-knn": of the half that is correct on the most neighbours, the members with the
          fewest errors in common with others;
        - "des-p": all members that are better than chance;
        - "knop": as "knora-u", with the samples for which the members' probabilities are most
          similar as neighbours;
        - "meta-des": all members that a classifier, fitted on the tuning set, predicts to be
          correct.

        The last two need members with ``predict_proba``.
    k : int, default=7
        Number of neighbours.
    index : object with ``fit(X)`` and ``kneighbors(X, n_neighbors, return_distance)``, optional
        Finds the neighbours; a clone is used. scikit-learn's NearestNeighbors by default.
    space : transformer, optional
        Transforms samples before distances are computed, such as a StandardScaler; a clone is
        fitted on the tuning set. By default the columns are used directly, and must be numbers.
    ties : {"first", "vote"}, default="first"
        For "ola", "lca", "mla" and "rank": whether the first of several best members predicts, or
        all of them vote.
    voting : {"hard", "soft"}, default="hard"
        Whether several members vote, or their probabilities are averaged.
    reject : bool, default=False
        Whether to reject a sample for which no member is competent. Otherwise all members vote.
    reject_label : label, optional
        The label of rejected samples. By default "rejected" for labels that are strings or
        booleans, and one below the smallest label for numbers; never a class.
    features : sequence (one entry per member) or mapping by name, optional
        The columns that each member uses: names, positions or a slice; None for all.
    prefit : bool, default=False
        Whether the members are fitted already. The data passed to ``fit`` is then the tuning set,
        which should not include training samples of any member.
    tuning : int, float in (0, 1), splitter or list of folds, default=5
        The tuning set if `prefit` is False. With folds, it consists of all held-out samples with
        out-of-fold predictions, after which the members are fitted on all samples; with a float, of
        this fraction of the samples, which the members are not fitted on.
    n_jobs : int, optional
        Number of members fitted or predicting at a time, and of jobs that search neighbours.
    random_state : int, RandomState or None, default=None
        Seed of the split if `tuning` is a float.

    Attributes
    ----------
    classes_ : ndarray
        All classes; the first of several with equal votes wins.
    estimators_ : list
        The fitted members.
    named_estimators_ : Bunch
        The fitted members by name.
    member_names_ : list of str
        The members' names; their types, numbered, by default.
    accuracy_ : ndarray of shape (n_members,)
        Each member's accuracy on the tuning set.
    n_tuning_ : int
        Number of samples in the tuning set.
    reject_label_ : label
        The label of rejected samples.
    space_ : transformer or None
        The fitted `space`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Samples are predicted in blocks, so memory does not grow with their number. Neighbours are
    searched only for samples on which members disagree, unless ``reject=True`` or
    ``voting="soft"``. A member that rejects a sample is not correct on it, and has no vote. Samples
    of weight 0 are not part of the tuning set; the competence is weighted by the other weights.

    `ties`, `voting` and `reject` can be changed on a fitted selector; other parameters need another
    fit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from margrave.select import LocalSelectionClassifier
    >>> iris = load_iris()
    >>> X, y = iris.data, iris.target_names[iris.target]
    >>> members = [
    ...     ("bayes", GaussianNB()),
    ...     ("logistic", LogisticRegression(max_iter=1000)),
    ...     ("tree", DecisionTreeClassifier(max_depth=2, random_state=0)),
    ... ]
    >>> model = LocalSelectionClassifier(members, method="ola").fit(X, y)
    >>> model.predict(X[[0, 52, 100]])
    array(['setosa', 'versicolor', 'virginica'], dtype='<U10')
    >>> print(model.explain(X[[52]]))
    versicolor: logistic predicts versicolor (0.857)
    """

    _memory: TuningMemory
    _meta_des: MetaDES | None

    def __init__(
        self,
        estimators: Any,
        method: str = "knora-u",
        k: int = 7,
        *,
        index: Any = None,
        space: Any = None,
        ties: Literal["first", "vote"] = "first",
        voting: Literal["hard", "soft"] = "hard",
        reject: bool = False,
        reject_label: Any = None,
        features: Any = None,
        prefit: bool = False,
        tuning: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimators = estimators
        self.method = method
        self.k = k
        self.index = index
        self.space = space
        self.ties = ties
        self.voting = voting
        self.reject = reject
        self.reject_label = reject_label
        self.features = features
        self.prefit = prefit
        self.tuning = tuning
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit the members, unless prefit, and store their predictions for the tuning set.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Passed to the members, and weights of the neighbours.
        **fit_params : dict
            Passed to the members; with metadata routing, to those that request them.

        Returns
        -------
        self
        """
        self._check_parameters()
        labels, ask = self._start(X, y), self._needed_predictions(METHODS[self.method])
        tuning = self._predict_tuning_set(X, labels, sample_weight, fit_params, ask)
        self.reject_label_ = self._checked_reject_label()
        self._fit_space(tuning.X)
        self._remember(tuning)
        self.accuracy_ = tuning.accuracy()
        self.n_tuning_ = len(tuning.labels)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels; ``reject_label_`` for rejected samples.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = [self._predict_codes(*block) for block in self._predicted_blocks(X)]
        return _labels.decode(np.concatenate(codes), self.classes_, self.reject_label_)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict probabilities: fractions of the votes, or averages with ``voting="soft"``.

        Where "ola", "lca", "mla" or "rank" select one member, these are its own probabilities, or
        its vote if a member has no probabilities. They are equal for a rejected sample.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        self._check_fitted()
        own_proba = self._method.single and all(
            hasattr(member, "predict_proba") for member in self.estimators_
        )
        blocks = self._predicted_blocks(X, "both" if own_proba else None)
        votes = np.concatenate([self._vote(self._select(*block)) for block in blocks])
        total = votes.sum(axis=1, keepdims=True)
        return np.where(total > 0, votes / np.where(total > 0, total, 1), 1 / votes.shape[1])

    def competence(self, X: Any) -> NDArray[np.float64]:
        """Return the competence of each member for each sample, by the method's measure.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_members)
        """
        return self._concatenate(X, lambda selection: selection.competence)

    def selected(self, X: Any) -> NDArray[np.bool_]:
        """Return which members are selected for each sample.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of bool, shape (n_samples, n_members)
            Where no member is competent, all are True; all False if such samples are rejected.
        """
        return self._concatenate(X, lambda selection: selection.selected)

    def explain(self, X: Any) -> LocalExplanation:
        """Return the members that predict each sample, with their votes and competence.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        LocalExplanation
            Prints as one line per sample.
        """
        parts = [self._select(*block) for block in self._predicted_blocks(X)]
        codes = np.concatenate([most_voted(self._vote(part)) for part in parts])
        votes = np.concatenate([part.predictions.codes for part in parts])
        return LocalExplanation(
            members=tuple(self.member_names_),
            predictions=_labels.decode(codes, self.classes_, self.reject_label_),
            votes=_labels.decode(votes, self.classes_, self.reject_label_),
            competence=np.concatenate([part.competence for part in parts]),
            selected=np.concatenate([part.selected for part in parts]),
            none_competent=np.concatenate([part.none_competent for part in parts]),
            neighbours=self._memory.rows[np.concatenate([part.neighbours for part in parts])],
        )

    # The steps of fit

    def _check_parameters(self) -> None:
        if self.method not in METHODS:
            hint = did_you_mean(near_names(str(self.method), METHODS))
            raise ValueError(
                f"{type(self).__name__} needs method to be one of {', '.join(METHODS)}; "
                f"got {self.method!r}.{hint}"
            )
        check_parameters(
            self,
            {
                "k": ("an integer of at least 1", is_count(self.k)),
                "prefit": ("True or False", isinstance(self.prefit, bool | np.bool_)),
            },
        )
        self._check_voting(self._pairs(), self.method)

    def _check_voting(self, members: list[tuple[str, Any]], name: str) -> None:
        """Check the parameters that can be changed after ``fit``."""
        check_parameters(
            self,
            {
                "ties": ("'first' or 'vote'", self.ties in ("first", "vote")),
                "voting": ("'hard' or 'soft'", self.voting in ("hard", "soft")),
                "reject": ("True or False", isinstance(self.reject, bool | np.bool_)),
            },
        )
        if self._needed_predictions(METHODS[name]) == "labels":
            return
        cause = "voting='soft'" if self.voting == "soft" else f"method={name!r}"
        self._check_probabilities(cause, members)

    def _needed_predictions(self, method: Method) -> Ask:
        return "both" if method.needs_proba or self.voting == "soft" else "labels"

    def _remember(self, tuning: TuningSet) -> None:
        """Store what predictions need of the tuning set, and fit the search of neighbours."""
        method, k, owner = METHODS[self.method], int(self.k), type(self).__name__
        X, n_samples = self._to_space(tuning.X), len(tuning.labels)
        largest = n_samples - int(method.learned)  # META-DES is fitted on neighbours of samples
        if k > largest:
            raise ValueError(
                f"{owner} needs k to be at most {largest}, as the tuning set has {n_samples} "
                f"samples; got {k}."
            )
        if method.by_profile:
            profiles = output_profiles(tuning.predictions.proba)
            search = NeighbourSearch.fit(None, profiles, k, self.n_jobs, owner)
        else:
            search = NeighbourSearch.fit(self.index, X, k, self.n_jobs, owner)
        self._memory = TuningMemory(
            method=self.method,
            labels=tuning.labels,
            correct=tuning.correct,
            weight=tuning.weight,
            rows=tuning.rows,
            n_classes=len(self.classes_),
            search=search,
        )
        self._meta_des = None
        if method.learned:
            self._meta_des = MetaDES.fit(self._memory, X, tuning.predictions, self.n_jobs)

    # The steps of predict, for a block of queries

    @property
    def _method(self) -> Method:
        """The method of the last fit."""
        return METHODS[self._memory.method]

    def _predicted_blocks(
        self, X: Any, ask: Ask | None = None
    ) -> Iterator[tuple[Any, Predictions]]:
        """Yield blocks of samples with the members' predictions."""
        self._check_fitted()
        members = list(zip(self.member_names_, self.estimators_, strict=True))
        self._check_voting(members, self._memory.method)
        check_columns(self, X)
        if count_rows(X) == 0:
            raise ValueError(f"{type(self).__name__} needs at least one sample; got none.")
        for at in row_blocks(count_rows(X), self._memory.block_size):
            rows = select_rows(X, at)
            yield rows, self._predictions(rows, ask or self._needed_predictions(self._method))

    def _concatenate(self, X: Any, get: Callable[[Selection], NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate([get(self._select(*block)) for block in self._predicted_blocks(X)])

    def _predict_codes(self, X: Any, predictions: Predictions) -> AnyInts:
        """Predict classes; where all members agree, the selected ones do."""
        codes = predictions.codes[:, 0].astype(np.int64)
        undecided = (predictions.codes != predictions.codes[:, :1]).any(axis=1)
        if self.reject or self.voting == "soft":
            undecided[:] = True
        at = np.flatnonzero(undecided)
        if len(at):
            selection = self._select(select_rows(X, at), predictions.at(at))
            codes[at] = most_voted(self._vote(selection))
        return codes

    def _select(self, X: Any, predictions: Predictions) -> Selection:
        """Select members by their competence near the queries."""
        method, memory = self._method, self._memory
        if method.by_profile:
            distance, at = memory.search.find(output_profiles(predictions.proba))
        else:
            distance, at = memory.search.find(self._to_space(X))
        near = memory.neighbourhood(at, distance, predictions)
        if self._meta_des is None:
            competence = method.competence(near)
        else:
            competence = self._meta_des.competence(memory, near, at, predictions)
        selected = method.select(competence, near)
        if method.single and self.ties == "first":
            selected = keep_first(selected)
        none_competent: Flags = np.logical_not(selected.any(axis=1))
        if not self.reject:
            selected[none_competent] = True
        return Selection(predictions, competence, selected, none_competent, at)

    def _vote(self, selection: Selection) -> AnyFloats:
        """Return the votes for each class, or the mean probabilities, of the selected members."""
        method, predictions = self._method, selection.predictions
        weight = None
        if method.weighted:  # where no member is competent, all votes count the same
            weight = np.where(selection.none_competent[:, None], 1.0, selection.competence)
        if predictions.has_proba and self.voting == "soft":
            return mean_proba(predictions.proba, selection.selected, weight)
        votes = count_votes(predictions.codes, selection.selected, weight, len(self.classes_))
        if predictions.has_proba and method.single:
            at = np.flatnonzero(np.count_nonzero(selection.selected, axis=1) == 1)
            votes[at] = predictions.proba[at, selection.selected[at].argmax(axis=1)]
        return votes


@dataclass(frozen=True)
class LocalExplanation:
    """The members that were selected for each sample, and why; it prints as one line per sample.

    Attributes
    ----------
    members : tuple of str
        The names of all L members.
    predictions : ndarray of shape (n,)
        The predicted labels.
    votes : ndarray of shape (n, L)
        The label that each member predicts, selected or not.
    competence : ndarray of shape (n, L)
        The competence of each member.
    selected : ndarray of bool, shape (n, L)
        Which members were selected: all where no member is competent, or none if such samples are
        rejected.
    none_competent : ndarray of bool, shape (n,)
        Where no member is competent.
    neighbours : ndarray of int, shape (n, k)
        The neighbours, nearest first, as rows of the data passed to ``fit``.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.select import LocalSelectionClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load("iris", return_X_y=True)
    >>> stump = DecisionTreeClassifier(max_depth=1, random_state=0)
    >>> model = LocalSelectionClassifier([("bayes", GaussianNB()), ("stump", stump)], method="ola")
    >>> explanation = model.fit(X, y).explain(X[[70]])
    >>> explanation.competence.round(2)
    array([[0.86, 0.43]])
    >>> print(explanation)
    virginica: bayes predicts virginica (0.857)
    """

    members: tuple[str, ...]
    predictions: NDArray[Any]
    votes: NDArray[Any]
    competence: NDArray[np.float64]
    selected: NDArray[np.bool_]
    none_competent: NDArray[np.bool_]
    neighbours: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.predictions)

    def __str__(self) -> str:
        return "\n".join(self._format_row(i) for i in range(len(self)))

    def _format_row(self, i: int, most: int = 4) -> str:
        if self.none_competent[i]:
            outcome = "all members vote" if self.selected[i].any() else "the sample is rejected"
            return f"{self.predictions[i]}: no member is competent; {outcome}"
        selected = np.flatnonzero(self.selected[i])
        order = selected[np.argsort(-self.competence[i, selected], kind="stable")]
        votes = [
            f"{self.members[j]} predicts {self.votes[i, j]} ({self.competence[i, j]:.3g})"
            for j in order[:most]
        ]
        more = f" and {len(order) - most} more" if len(order) > most else ""
        return f"{self.predictions[i]}: {', '.join(votes)}{more}"


# Neighbours


@runtime_checkable
class NeighbourIndex(Protocol):
    """An index of samples, such as scikit-learn's NearestNeighbors."""

    def fit(self, X: Any) -> Any:
        """Store samples."""

    def kneighbors(self, X: Any, n_neighbors: int, return_distance: bool) -> Any:
        """Return distances and positions of the nearest samples, each of shape (q, k)."""


@dataclass(frozen=True)
class NeighbourSearch:
    """A search of the k nearest samples of the tuning set."""

    index: NeighbourIndex
    k: int
    n_samples: int
    owner: str  # the estimator that messages name

    @classmethod
    def fit(cls, index: Any, X: Any, k: int, n_jobs: int | None, owner: str) -> NeighbourSearch:
        """Fit a clone of an index on samples; NearestNeighbors by default."""
        if index is None:
            index = NearestNeighbors(n_neighbors=k, n_jobs=n_jobs)
        if isinstance(index, type) or not isinstance(index, NeighbourIndex):
            raise ValueError(
                f"{owner} needs index to have fit and kneighbors, such as sklearn.neighbors."
                f"NearestNeighbors(); got {index!r}."
            )
        fitted = clone(index, safe=False)
        if hasattr(fitted, "__sklearn_tags__") and get_tags(fitted).target_tags.required:
            raise ValueError(
                f"{owner} needs an index that is fitted without labels, such as sklearn.neighbors."
                f"NearestNeighbors(); got a {type(index).__name__}."
            )
        fitted.fit(X)
        return cls(fitted, k, X.shape[0], owner)

    def find(self, X: Any, n_more: int = 0) -> tuple[AnyFloats, AnyInts]:
        """Return distances and positions of the k (+ n_more) nearest samples, nearest first."""
        k = self.k + n_more
        found = self.index.kneighbors(X, n_neighbors=k, return_distance=True)
        distance, at = np.asarray(found[0]), np.asarray(found[1])
        kind = type(self.index).__name__
        if at.shape != (X.shape[0], k) or distance.shape != at.shape or at.dtype.kind not in "iu":
            raise ValueError(
                f"{self.owner} needs an index that finds {k} neighbours of each sample; "
                f"kneighbors of {kind} returned shape {at.shape} for {X.shape[0]} samples."
            )
        low, high = int(at.min()), int(at.max())
        if low < 0 or high >= self.n_samples:
            raise ValueError(
                f"{self.owner} needs an index that finds positions among {self.n_samples} samples; "
                f"kneighbors of {kind} returned {low if low < 0 else high}."
            )
        return distance, at

    def find_others(self, X: Any, own: AnyInts) -> AnyInts:
        """Return the k nearest other samples of samples at positions `own` of the index."""
        found = self.find(X, n_more=1)[1]
        is_own = found == own[:, None]
        is_own[:, -1] |= ~is_own.any(axis=1)  # among many duplicates: leave out the last instead
        others: AnyInts = found[~is_own].reshape(len(found), self.k)
        return others


# Numbers that a block of queries may hold: one per member, and neighbour or class.
_LARGEST_BLOCK = 16_000_000


@dataclass(frozen=True)
class TuningMemory:
    """What predictions need of the tuning set."""

    method: str  # the method of the last fit
    labels: AnyInts  # (n,): positions of the classes
    correct: Flags  # (n, L): whether each member is correct
    weight: AnyFloats | None  # (n,); None if all are equal
    rows: AnyInts  # (n,): the rows of the samples in the data passed to ``fit``
    n_classes: int
    search: NeighbourSearch  # by features, or by output profiles for KNOP

    @property
    def block_size(self) -> int:
        """Number of queries in a block."""
        size = self.correct.shape[1] * max(self.search.k, 4 * self.n_classes)
        return max(_LARGEST_BLOCK // int(size), 1)

    def neighbourhood(
        self, at: AnyInts, distance: AnyFloats, predictions: Predictions
    ) -> Neighbourhood:
        """Describe the neighbours at positions of shape (q, k)."""
        return Neighbourhood(
            correct=self.correct[at],
            labels=self.labels[at],
            distance=distance,
            weight=None if self.weight is None else self.weight[at],
            predicted=predictions.codes,
            n_classes=self.n_classes,
        )


def output_profiles(proba: AnyFloats) -> AnyFloats:
    """Return the members' probabilities as one row per sample; of two classes, the second."""
    profiles = proba[:, :, 1:] if proba.shape[2] == 2 else proba
    return np.ascontiguousarray(profiles.reshape(len(profiles), -1))


@dataclass(frozen=True)
class MetaDES:
    """The competence that META-DES learns from the tuning set (Cruz et al., 2015)."""

    profiles: NeighbourSearch  # by output profiles
    true_class: NDArray[np.uint8]  # (n, L): probability of the true class, in tenths
    classifier: MetaClassifier

    @classmethod
    def fit(
        cls, memory: TuningMemory, X: Any, predictions: Predictions, n_jobs: int | None
    ) -> MetaDES:
        """Fit on the tuning set, with X in the space: each sample is a query to the others."""
        n_samples, proba = len(memory.labels), predictions.proba
        n_profiles, owner = min(N_PROFILES, n_samples - 1), memory.search.owner
        profiles = NeighbourSearch.fit(None, output_profiles(proba), n_profiles, n_jobs, owner)
        true_class = to_tenths(proba[np.arange(n_samples), :, memory.labels])
        sums, totals = np.zeros((2, 2 * memory.search.k + profiles.k + 2)), np.zeros(2)
        for rows in row_blocks(n_samples, memory.block_size):
            block = predictions.at(rows)
            at = memory.search.find_others(X[rows], rows)
            similar = profiles.find_others(output_profiles(block.proba), rows)
            near = memory.neighbourhood(at, np.ones(at.shape), block)
            features = _meta_features(near, true_class[at], memory.correct[similar], block)
            correct = memory.correct[rows]
            for outcome, mask in enumerate((~correct, correct)):
                weight = mask if memory.weight is None else mask * memory.weight[rows, None]
                sums[outcome] += features.sums(weight)
                totals[outcome] += weight.sum()
        return cls(profiles, true_class, MetaClassifier.fit(sums, totals))

    def competence(
        self, memory: TuningMemory, near: Neighbourhood, at: AnyInts, predictions: Predictions
    ) -> AnyFloats:
        """Return the competence for queries with neighbours at positions of shape (q, k)."""
        similar = self.profiles.find(output_profiles(predictions.proba))[1]
        features = _meta_features(near, self.true_class[at], memory.correct[similar], predictions)
        return self.classifier.competence(features)


def _meta_features(
    near: Neighbourhood, true_class: NDArray[np.uint8], similar: Flags, predictions: Predictions
) -> MetaFeatures:
    confidence = reduce(np.maximum, np.moveaxis(predictions.proba, 2, 0))  # classes are few
    return MetaFeatures.of(near.correct, true_class, ola(near), similar, confidence)


# Selected members and their votes


@dataclass(frozen=True)
class Selection:
    """The members that are selected for q queries."""

    predictions: Predictions  # of all members
    competence: AnyFloats  # (q, L)
    selected: Flags  # (q, L): which members vote
    none_competent: Flags  # (q,)
    neighbours: AnyInts  # (q, k): positions in the tuning set


def count_votes(
    codes: AnyInts, selected: Flags, weight: AnyFloats | None, n_classes: int
) -> AnyFloats:
    """Count the selected members' votes for each class, shape (q, C), with or without weights."""
    votes = np.empty((len(codes), n_classes))
    for c in range(n_classes):
        mask = (codes == c) & selected
        if weight is None:
            votes[:, c] = np.count_nonzero(mask, axis=1)
        else:
            votes[:, c] = np.einsum("ql,ql->q", mask, weight)
    return votes


def mean_proba(proba: AnyFloats, selected: Flags, weight: AnyFloats | None) -> AnyFloats:
    """Average the selected members' probabilities, shape (q, C), with or without weights."""
    weights = selected.astype(np.float64) if weight is None else selected * weight
    mean: NDArray[np.float64] = np.matmul(weights[:, None, :], proba)[:, 0]
    np.divide(mean, weights.sum(axis=1, keepdims=True), out=mean, where=mean > 0)
    return mean


def most_voted(votes: AnyFloats) -> AnyInts:
    """Return the class with the most votes, the first of equals; rejected without votes."""
    return np.where(votes.max(axis=1) > 0, votes.argmax(axis=1), _labels.REJECTED)
