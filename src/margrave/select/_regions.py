"""Selection by region: the space is parted, and one member is in charge of each part.

"Multi-classifiers", slides on selection: the feature space is divided into K > 1 regions of
competence R_1, ..., R_K, usually K = L, and each is "associated with a classifier, which will be
responsible for deciding on the input objects in this part of the space". How regions are found is
in `_parting`; who is in charge is settled by a criterion on the region's tuning samples, which no
member was trained on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples

from margrave import _labels
from margrave._indexing import select_rows
from margrave._typing import AnyFloats, AnyInts
from margrave._validation import check_columns, check_parameters, is_count
from margrave.scores import Ask, Scores
from margrave.select._criterion import asked_for, checked_scorer, values
from margrave.select._explanations import RegionExplanation
from margrave.select._parting import check_regions, fitted_finder, function_of, regions_at
from margrave.select._selector import Selector


class RegionSelectionClassifier(Selector):
    """A committee with one member in charge of each region of the space.

    Parameters
    ----------
    estimators : list of classifiers, of (name, classifier), or a trained ensemble
        The members. With ``prefit=True`` this may be a trained ensemble of scikit-learn, such as
        a BaggingClassifier or a random forest, whose members are then taken.
    regions : {"kmeans", "members"}, name of a column, clusterer or callable, default="kmeans"
        How the space is parted:

        - "kmeans": around centres of the tuning samples;
        - "members": for each member the places where it is the best, by a tree that is grown on
          where each member is right;
        - the name of a column of a data frame: by its values;
        - a clusterer with ``predict``: a clone is trained on the tuning samples;
        - a function of samples, as ``predict`` is given them, that returns the region of each.
    n_regions : int, optional
        The number of regions of "kmeans"; as many as there are members if left out. For "members"
        the largest number of leaves of the tree; four for each member if left out.
    criterion : "accuracy", str or callable, default="accuracy"
        What is largest for the member in charge, on the region's tuning samples: accuracy, or a
        scorer of scikit-learn by name, as made by ``make_scorer``, or of your own, called with
        (member, positions of samples, labels): members only repeat what they said of these. Where
        it is not defined, as where a region lacks a class, the member that is best over all is in
        charge.
    prefit : bool, default=False
        Whether the members are trained already. The data given to ``fit`` is then the tuning data,
        which no member should have seen.
    tuning : int, float in (0, 1), splitter or list of folds, default=5
        Where the tuning data comes from otherwise: members' answers for samples they were not
        trained on in so many folds (the members are then trained on all), or a part kept from
        training.
    space : transformer, optional
        What samples pass before they are parted, such as a StandardScaler; learned from the tuning
        samples. Without it the columns are taken as they are, and must be numbers.
    features : sequence (one entry per member) or mapping by name, optional
        The columns each member looks at: names, positions or a slice; None for all.
    n_jobs : int, optional
        Members trained or asked at a time.
    random_state : int, RandomState or None, default=None
        The start of k-means, equal splits of the tree, and how a part is drawn if `tuning` is a
        float.

    Attributes
    ----------
    classes_ : ndarray
        All classes.
    estimators_ : list
        The trained members.
    named_estimators_ : Bunch
        The same by name.
    member_names_ : list of str
        Their names: as given, or by type.
    regions_ : ndarray of shape (K,)
        The regions that have tuning samples, as `region_of` calls them.
    member_of_region_ : ndarray of str, shape (K,)
        Who is in charge of each; of several best members the one that is best over all.
    member_elsewhere_ : str
        Who is in charge where no tuning sample was: the one that is best over all.
    competence_ : ndarray of shape (K, n_members)
        The criterion in each region. With ``regions="members"`` the regions were found on the same
        samples, so what is best there looks a little better than it is.
    competence_overall_ : ndarray of shape (n_members,)
        The criterion over all tuning samples.
    n_tuning_ : ndarray of int, shape (K,)
        How many tuning samples each region has.
    finder_ : estimator or None
        What finds the region of a sample; None if a function was given.
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
    True: region 0, logistic (0.755 on its 216 tuning samples)
    True: region 1, bayes (0.788 on its 184 tuning samples)
    """

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
        """Train the members (unless prefit), part the space, and put somebody in charge of each.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Passed to the members, and used in parting and in the criterion.
        **fit_params : dict
            Passed to the members; with metadata routing, to those that request them.

        Returns
        -------
        self
        """
        self._check_settings(X)
        owner = type(self).__name__
        scorer = checked_scorer(self.criterion, owner)
        judged = self._judge(X, y, sample_weight, fit_params, asked_for(scorer))
        self._check_number(len(judged.truth))
        self.reject_label_ = self._checked_reject_label()
        self._fit_space(judged.X)
        self._function = function_of(self.regions)
        placed = self._seen(judged.X)
        self.finder_ = fitted_finder(
            self.regions, judged, placed, self.n_regions, self.random_state
        )
        found = regions_at(self._function, self.finder_, judged.X, placed, owner)
        self.regions_, place = np.unique(found, return_inverse=True)
        parts: list[AnyInts] = [np.flatnonzero(place == r) for r in range(len(self.regions_))]
        everything = [np.arange(len(place))]
        self.competence_ = values(judged, self.classes_, scorer, parts, owner)
        self.competence_overall_ = values(judged, self.classes_, scorer, everything, owner)[0]
        self.n_tuning_ = np.bincount(place)
        names = np.array(self.member_names_)
        overall = np.nan_to_num(self.competence_overall_, nan=-np.inf)
        self.member_elsewhere_ = str(names[np.argmax(overall)])
        self.member_of_region_ = names[[in_charge(row, overall) for row in self.competence_]]
        return self

    def region_of(self, X: Any) -> NDArray[Any]:
        """The region each sample is in.

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
        return regions_at(self._function, self.finder_, X, self._seen(X), type(self).__name__)

    def predict(self, X: Any) -> NDArray[Any]:
        """What the member in charge says.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = np.empty(_num_samples(X), dtype=np.int64)
        for at, scores in self._in_charge(X, "labels"):
            codes[at] = scores.codes[:, 0]  # type: ignore[index]  # labels were asked for
        return _labels.decode(codes, self.classes_, self.reject_label_)

    @available_if(lambda self: _all_have_proba(self))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probabilities of the member in charge.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        self._check_fitted()
        proba = np.empty((_num_samples(X), len(self.classes_)))
        for at, scores in self._in_charge(X, "values"):
            proba[at] = scores.proba()[:, 0]
        return proba

    def explain(self, X: Any) -> RegionExplanation:
        """Which region each sample is in, and who is in charge there.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        RegionExplanation
            Print it for a line a sample.
        """
        regions = self.region_of(X)
        place, known = self._places(regions)
        members = self._members_at(place, known)
        number = np.array([self.member_names_.index(name) for name in members])
        there = self.competence_[place, number]
        return RegionExplanation(
            answers=self.predict(X),
            regions=regions,
            members=members,
            competence=np.where(known, there, self.competence_overall_[number]),
            n_tuning=np.where(known, self.n_tuning_[place], 0),
        )

    def _in_charge(self, X: Any, ask: Ask) -> Iterator[tuple[AnyInts, Scores]]:
        """For each member the samples it is in charge of, and what it says about them."""
        members = self._members_at(*self._places(self.region_of(X)))
        asked = zip(self.member_names_, self.estimators_, self._kept_columns or [], strict=True)
        for name, member, columns in asked:
            at = np.flatnonzero(members == name)
            if len(at):
                rows, pairs = select_rows(X, at), [(name, member)]
                scores = Scores.of(pairs, rows, classes=self.classes_, features=[columns], ask=ask)
                yield at, scores

    def _places(self, regions: NDArray[Any]) -> tuple[AnyInts, NDArray[np.bool_]]:
        """Where regions are among the known ones, and whether they are."""
        place = np.minimum(np.searchsorted(self.regions_, regions), len(self.regions_) - 1)
        return place, self.regions_[place] == regions

    def _members_at(self, place: AnyInts, known: NDArray[np.bool_]) -> NDArray[Any]:
        return np.where(known, self.member_of_region_[place], self.member_elsewhere_)

    def _seen(self, X: Any) -> Any:
        """Samples where they are parted; a function sees them as they are."""
        if self._function is None:
            return self._placed(X)
        # In arrays gaps are refused if anybody would; what tables have is up to who is in charge.
        if not hasattr(X, "columns") and not get_tags(self).input_tags.allow_nan:
            check_array(X, accept_sparse="csr", dtype=None)
        return None

    def _check_number(self, n_tuning: int) -> None:
        """At most as many regions as tuning samples."""
        if self.n_regions is not None and self.n_regions > n_tuning and self.regions == "kmeans":
            raise ValueError(
                f"{type(self).__name__} needs n_regions to be at most the {n_tuning} tuning "
                f"samples; got {self.n_regions}."
            )

    def _check_settings(self, X: Any) -> None:
        check_regions(self.regions, X, type(self).__name__)
        number = self.n_regions is None or is_count(self.n_regions)
        check_parameters(
            self,
            {
                "n_regions": ("None or a whole number of at least 1", number),
                "prefit": ("True or False", isinstance(self.prefit, bool | np.bool_)),
            },
        )

    def _fills_gaps(self) -> bool:
        return function_of(self.regions) is not None or super()._fills_gaps()


def in_charge(competence: AnyFloats, overall: AnyFloats) -> int:
    """The member with the largest criterion; of equals the best over all, then the first."""
    known = np.nan_to_num(competence, nan=-np.inf)
    best = known == known.max()
    return int(np.argmax(np.where(best, overall, -np.inf)) if best.any() else np.argmax(overall))


def _all_have_proba(model: RegionSelectionClassifier) -> bool:
    return all(hasattr(member, "predict_proba") for _, member in model._readable_pairs())
