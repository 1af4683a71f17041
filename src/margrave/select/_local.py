"""Local selection: who answers a query is settled among its nearest tuning samples.

"Multi-classifiers", slides on selection: "one member is chosen to label the input object x". The
region of competence is the neighbourhood of x; the methods are in `_methods`, the formulas in
`_competence`, `_choosing` and `_meta`. Everything is computed from arrays, a block of queries at a
time: what the members say about tuning samples and queries, neighbours, competence, choice, votes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _num_samples

from margrave import _labels
from margrave._indexing import select_rows
from margrave._messages import did_you_mean, near_names
from margrave._typing import AnyFloats, AnyInts, Flags
from margrave._validation import check_columns, check_parameters, is_count
from margrave.scores import Ask
from margrave.select._choosing import first_only
from margrave.select._chosen import Chosen, decided, shares, tally
from margrave.select._explanations import LocalExplanation
from margrave.select._memory import Memory
from margrave.select._methods import METHODS, Method
from margrave.select._selector import Selector, Told, blocks


class LocalSelectionClassifier(Selector):
    """A committee that asks, for each sample, those of its members that are right around it.

    Parameters
    ----------
    estimators : list of classifiers, of (name, classifier), or a trained ensemble
        The members. With ``prefit=True`` this may be a trained ensemble of scikit-learn, such as
        a BaggingClassifier or a random forest, whose members are then taken.
    method : str, default="knora-u"
        How members are chosen, by their answers to the `k` nearest tuning samples:

        - "ola": the one that is right most often there;
        - "lca": the same, among those of the class that the member gives to the query;
        - "mla": the same, nearer ones counting more;
        - "rank": the one that is right at the most before it is wrong once;
        - "knora-e": all that are right at the most before they are wrong once;
        - "knora-u": all that are right at any, with a vote for each of these;
        - "des-knn": the half that is right most often, of these those that fail alone;
        - "des-p": all that are right more often than by chance;
        - "knop": as "knora-u", at the tuning samples that the members answer most alike;
        - "meta-des": all that are right more probably than not, by what was learned from the
          tuning samples.

        The last two need members with probabilities.
    k : int, default=7
        How many tuning samples to look at.
    index : object with ``fit(X)`` and ``kneighbors(X, n_neighbors, return_distance)``, optional
        What finds them; scikit-learn's NearestNeighbors if left out. A clone of it is used.
    space : transformer, optional
        What samples pass before distances are taken, such as a StandardScaler; learned from the
        tuning samples. Without it the columns are taken as they are, and must be numbers.
    ties : {"first", "vote"}, default="first"
        Where "ola", "lca", "mla" and "rank" find several best members: the first of them answers,
        or all of them vote.
    voting : {"hard", "soft"}, default="hard"
        Whether several members vote, or the mean of their probabilities decides.
    reject : bool, default=False
        Whether a sample is rejected where no member is competent. Else all members vote there.
    reject_label : label, optional
        What a rejected sample is answered with. By default "rejected" for labels that are strings
        or booleans, and one below the smallest label for numbers; never a class.
    features : sequence (one entry per member) or mapping by name, optional
        The columns each member looks at: names, positions or a slice; None for all.
    prefit : bool, default=False
        Whether the members are trained already. The data given to ``fit`` is then the tuning data,
        which no member should have seen.
    tuning : int, float in (0, 1), splitter or list of folds, default=5
        Where the tuning data comes from otherwise: members' answers for samples they were not
        trained on in so many folds (the members are then trained on all), or a part kept from
        training.
    n_jobs : int, optional
        Members trained or asked at a time, and searches for neighbours.
    random_state : int, RandomState or None, default=None
        How a part is drawn if `tuning` is a float.

    Attributes
    ----------
    classes_ : ndarray
        All classes; equal votes go to the first of them.
    estimators_ : list
        The trained members.
    named_estimators_ : Bunch
        The same by name.
    member_names_ : list of str
        Their names: as given, or by type.
    accuracy_ : ndarray of shape (n_members,)
        Each member's share of right answers over all tuning samples.
    n_tuning_ : int
        How many tuning samples there are.
    reject_label_ : label
        What a rejected sample is answered with.
    space_ : transformer or None
        The trained space.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Samples are answered in blocks, so memory does not grow with their number. Neighbours are looked
    for only where members disagree, unless samples may be rejected or ``voting="soft"``. A member
    that rejects a sample is not right there, and has no vote. Tuning samples of weight 0 are left
    out; other weights say how much a neighbour counts.

    `ties`, `voting` and `reject` may be set anew on a fitted selection; the rest takes another fit.

    The formulas are in :mod:`margrave.select._competence`.

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
    versicolor: line says versicolor (0.857)
    """

    _memory: Memory

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
        """Train the members (unless prefit), and keep what they say about the tuning samples.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Passed to the members, and how much each tuning sample counts.
        **fit_params : dict
            Passed to the members; with metadata routing, to those that request them.

        Returns
        -------
        self
        """
        self._check_settings()
        judged = self._judge(X, y, sample_weight, fit_params, self._asks(METHODS[self.method]))
        self.reject_label_ = self._checked_reject_label()
        self._fit_space(judged.X)
        placed = self._placed(judged.X)
        owner = type(self).__name__
        self._memory = Memory.of(
            judged,
            placed,
            self.method,
            int(self.k),
            len(self.classes_),
            self.index,
            self.n_jobs,
            owner,
        )
        self.accuracy_ = judged.accuracy()
        self.n_tuning_ = len(judged.truth)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Answers; ``reject_label_`` where nobody is competent and this is to be rejected.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = np.concatenate([self._codes(rows, told) for rows, told in self._heard(X)])
        return _labels.decode(codes, self.classes_, self.reject_label_)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Shares of the votes, or mean probabilities with ``voting="soft"``.

        Where "ola", "lca", "mla" or "rank" ask one member these are its own; one vote, where
        members have no probabilities. All are equal where a sample is rejected.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        self._check_fitted()
        can = all(hasattr(member, "predict_proba") for member in self.estimators_)
        heard = self._heard(X, "both" if self._method.one and can else None)
        told_by_class = [self._tally(self._chosen(rows, told)) for rows, told in heard]
        return shares(np.concatenate(told_by_class))

    def competence(self, X: Any) -> NDArray[np.float64]:
        """How far each member is trusted at each sample, by the method's measure.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_members)
        """
        return self._over_blocks(X, lambda chosen: chosen.competence)

    def selected(self, X: Any) -> NDArray[np.bool_]:
        """Who is asked about each sample.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of bool, shape (n_samples, n_members)
            All True where nobody is competent; all False if such samples are rejected.
        """
        return self._over_blocks(X, lambda chosen: chosen.members)

    def explain(self, X: Any) -> LocalExplanation:
        """Who decided each sample, and for what.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        LocalExplanation
            Print it for a line a sample.
        """
        parts = [self._chosen(rows, told) for rows, told in self._heard(X)]
        codes = np.concatenate([decided(self._tally(part)) for part in parts])
        heard = np.concatenate([part.told.codes for part in parts])
        return LocalExplanation(
            members=tuple(self.member_names_),
            answers=_labels.decode(codes, self.classes_, self.reject_label_),
            votes=_labels.decode(heard, self.classes_, self.reject_label_),
            competence=np.concatenate([part.competence for part in parts]),
            selected=np.concatenate([part.members for part in parts]),
            nobody=np.concatenate([part.nobody for part in parts]),
            neighbours=self._memory.rows[np.concatenate([part.neighbours for part in parts])],
        )

    # A block of queries

    @property
    def _method(self) -> Method:
        """The method that it was fitted for; another one takes another fit."""
        return self._memory.rule

    def _asks(self, method: Method) -> Ask:
        """What members are asked for."""
        return "both" if method.needs_proba or self.voting == "soft" else "labels"

    def _heard(self, X: Any, ask: Ask | None = None) -> Iterator[tuple[Any, Told]]:
        """Samples and what the members say about them, block by block."""
        self._check_fitted()
        self._check_voting([*zip(self.member_names_, self.estimators_, strict=True)], self._method)
        check_columns(self, X)
        if _num_samples(X) == 0:
            raise ValueError(f"{type(self).__name__} needs at least one sample; got none.")
        ask = ask or self._asks(self._method)
        for at in blocks(_num_samples(X), self._memory.block):
            rows = select_rows(X, at)
            yield rows, self._hear(rows, ask)

    def _over_blocks(self, X: Any, told: Callable[[Chosen], NDArray[Any]]) -> NDArray[Any]:
        heard = self._heard(X)
        return np.concatenate([told(self._chosen(rows, said)) for rows, said in heard])

    def _codes(self, X: Any, told: Told) -> AnyInts:
        """Answers; where all members agree, whoever is chosen says the same."""
        codes = told.codes[:, 0].astype(np.int64)
        open_ = (told.codes != told.codes[:, :1]).any(axis=1)
        if self.reject or self.voting == "soft":
            open_[:] = True
        at = np.flatnonzero(open_)
        if len(at):
            codes[at] = decided(self._tally(self._chosen(select_rows(X, at), told.at(at))))
        return codes

    def _chosen(self, X: Any, told: Told) -> Chosen:
        """Who is chosen for queries."""
        method, memory = self._method, self._memory
        placed = None if method.profiles else self._placed(X)
        competence, near, at = memory.competence(placed, told)
        members = method.choose(competence, near)
        if method.one and self.ties == "first":
            members = first_only(members)
        nobody: Flags = np.logical_not(members.any(axis=1))
        if not self.reject:
            members[nobody] = True
        return Chosen(told, competence, members, nobody, at)

    def _tally(self, chosen: Chosen) -> AnyFloats:
        """What those chosen say together, by class."""
        method, soft = self._method, self.voting == "soft"
        return tally(chosen, method.weighs, soft, method.one, len(self.classes_))

    def _check_settings(self) -> None:
        if self.method not in METHODS:
            near = did_you_mean(near_names(str(self.method), METHODS))
            raise ValueError(
                f"{type(self).__name__} needs method to be one of {', '.join(METHODS)}; "
                f"got {self.method!r}.{near}"
            )
        check_parameters(
            self,
            {
                "k": ("a whole number of at least 1", is_count(self.k)),
                "prefit": ("True or False", isinstance(self.prefit, bool | np.bool_)),
            },
        )
        self._check_voting(self._pairs(), METHODS[self.method])

    def _check_voting(self, members: list[tuple[str, Any]], method: Method) -> None:
        """What may be set anew on a fitted selection."""
        check_parameters(
            self,
            {
                "ties": ("'first' or 'vote'", self.ties in ("first", "vote")),
                "voting": ("'hard' or 'soft'", self.voting in ("hard", "soft")),
                "reject": ("True or False", isinstance(self.reject, bool | np.bool_)),
            },
        )
        if self._asks(method) == "labels":
            return
        for name, member in members:
            if not hasattr(member, "predict_proba"):
                what = "voting='soft'" if self.voting == "soft" else f"method={method.name!r}"
                raise ValueError(
                    f"{type(self).__name__} with {what} needs members with predict_proba; "
                    f"{name!r} ({type(member).__name__}) has none "
                    "(sklearn.calibration.CalibratedClassifierCV adds it)."
                )
