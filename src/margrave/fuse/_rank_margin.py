"""A committee that ranks: weights by the rank margin, as a scikit-learn estimator.

"A Linear Combination of Classifiers via Rank Margin Maximization" (Marrocco et al.), equation (3):
the committee's score is ``Σ_j w_j f_j(x)``, with weights found on tuning data that the members were
not trained on. With more than two classes each has weights of its own, against all the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn import get_config
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from margrave import _labels
from margrave._dask.blocks import is_dask
from margrave._dask.lazy import predict_lazily
from margrave._indexing import select_rows
from margrave._typing import Floats
from margrave.committee import Committee, group_folds_hint, is_fraction, make_folds
from margrave.fuse._combination import Asked, Combination, combine
from margrave.fuse._rank_margin_blocks import fit_blocks
from margrave.fuse._rank_problem import RankMarginWeights
from margrave.fuse._rank_settings import checked_settings
from margrave.pairs import CrucialPairs


class RankMarginClassifier(Committee):
    """A committee weighed so that its ranking has the largest margin.

    For those who need the ranking right, and know neither costs nor shares of the classes.

    Parameters
    ----------
    estimators : list of classifiers, or of (name, classifier)
        The members, with probabilities, decision values or labels only.
    nu : float in [0, 1] or "cv", default="cv"
        Share of the crucial pairs, the worst ones, whose mean margin is maximised; 0 is the
        document's program, the worst pair alone; 1 picks the member with the largest mean margin,
        or shares the weight of equals (all members, on the scale "logit"). "cv" chooses by AUC
        among 0.02, 0.05, 0.1, 0.2, 0.3 and 0.5, by cross-validation within the tuning data.
    scale : {"logit", "probability", "rank", "decision"}, default="logit"
        How members' values come to [-1, 1], learned on the tuning data: log-odds with the same
        mean margin for every member; 2p - 1, as in the document; shares of the tuning samples
        below; or from the smallest to the largest value.
    negatives : str, optional
        ``"hardest 10%"``: only pairs with that share of the negatives, those that score highest.
    positive : label, optional
        The class that is looked for, of two; by default the second. It decides which samples
        `negatives` means, and where `combined_scores`, `result_` and `margin_distribution_` point;
        `decision_function` and `predict_proba` follow `classes_`, as in all of scikit-learn.
    tuning : int, float in (0, 1), splitter or list of folds, default=5
        Where the tuning data comes from: members' answers for samples they were not trained on in
        so many folds, the members then trained on all; or a part of the data held out from them.
        Without effect if `prefit`.
    calibrate : bool, default=True
        Whether `decision_function` is a log-odds and there is `predict_proba`, from a sigmoid
        learned on the tuning data. Else `predict` cuts where the balanced accuracy is largest.
    prefit : bool, default=False
        Whether the members are trained already. The data given to ``fit`` is then the tuning data,
        which no member should have seen. Without it clones of the members are trained anew.
    tol : float or "auto", default="auto"
        How close to the largest margin the weights are proven to be. The search starts at equal
        weights and ends with the proof; "auto" is half a standard error of the margin, because
        what is within it is not told apart by this much data, and a short way from equal weights
        is a good guess.
    n_jobs : int, optional
        Members trained or asked at a time.
    random_state : int, RandomState or None, default=None
        How a part is drawn if `tuning` is a float.

    Attributes
    ----------
    classes_ : ndarray
        All classes. With more than two, attributes below have an entry for each.
    weights_ : ndarray of shape (K,), or (n_classes, K) for more than two classes
        The members' weights, on scores of the chosen scale; 0 for a member that says the same of
        all tuning samples, or ranks them no better than chance, unless all do.
    nu_ : float, or ndarray of shape (n_classes,)
        The share used.
    rank_margin_ : float, or ndarray of shape (n_classes,)
        The smallest margin over all pairs of the tuning data, on scores in [-1, 1].
    margin_distribution_ : CrucialPairs, or list of them
        The committee's scores on the tuning data, as pairs: AUC, distribution and quantiles of the
        margins.
    result_ : RankMarginWeights, or list of them
        What was proven about the weights of the members that are heard; its active pairs are rows
        of the data given to ``fit``.
    auc_by_nu_ : dict, or list of them
        With ``nu="cv"``, the cross-validated AUC of each share; else empty.
    estimators_ : list
        The trained members.
    named_estimators_ : Bunch
        The same by name.
    member_names_ : list of str
        Their names: as given, or by type.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    AUC and margins on the tuning data are of the data that chose the weights; measure the committee
    on other data. Folds from an int are stratified and keep the order of the samples. For samples
    that belong together or drift in time pass a list of (training, held out) positions, such as
    ``list(GroupKFold().split(X, y, groups))``. Samples that are never held out do not take part in
    the weights. The folds in which ν is chosen are always the same, so that `fit` is repeatable.

    On Dask, members are asked anew in each of about ten passes, so many for each of C > 2 classes.
    ν and `tol` come from 100,000 drawn rows, as many a class (10,000 at least, or all it has), and
    `margin_distribution_` has 100,000 a class; all else is of all rows, some by sorted summaries.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from margrave.fuse import RankMarginClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> members = [
    ...     ("logistic", make_pipeline(StandardScaler(), LogisticRegression())),
    ...     ("bayes", GaussianNB()),
    ... ]
    >>> committee = RankMarginClassifier(members).fit(X[::2], y[::2])
    >>> committee.weights_.sum().round(6)
    np.float64(1.0)
    >>> committee.margin_distribution_.auc > 0.99
    True
    """

    def __init__(
        self,
        estimators: Any,
        *,
        nu: float | Literal["cv"] = "cv",
        scale: Literal["logit", "probability", "rank", "decision"] = "logit",
        negatives: str | None = None,
        positive: Any = None,
        tuning: Any = 5,
        calibrate: bool = True,
        prefit: bool = False,
        tol: float | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimators = estimators
        self.nu = nu
        self.scale = scale
        self.negatives = negatives
        self.positive = positive
        self.tuning = tuning
        self.calibrate = calibrate
        self.prefit = prefit
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Train the members (unless prefit), and weigh them on tuning data.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Dask collection
            Samples. Dask collections need ``prefit=True``, since members are trained in memory.
        y : array-like or Dask collection of shape (n_samples,)
            Labels.
        sample_weight : array-like or Dask collection of shape (n_samples,), optional
            Passed to the members, and used in scales, margins and probabilities. In the margins a
            sample counts within its class: weighing a whole class changes nothing there.
        **fit_params : dict
            Passed to the members; with metadata routing, to those that request them.

        Returns
        -------
        self
        """
        asked = checked_settings(self)
        if is_dask(X, y, sample_weight):
            return fit_blocks(self, X, y, sample_weight, fit_params, asked)
        if "groups" in fit_params and not get_config()["enable_metadata_routing"]:
            raise ValueError(group_folds_hint("RankMarginClassifier"))
        labels = self._start(X, y)
        if (labels == labels[0]).all():
            raise ValueError(
                "RankMarginClassifier needs samples of at least two classes; got one class, "
                f"{_labels.plain(labels[0])!r}."
            )
        sample_weight = self._checked_weight(sample_weight, len(labels))
        weight = np.ones(len(labels))
        if sample_weight is not None:
            weight = sample_weight / sample_weight.max()  # sums of large ones may overflow
        rows = np.arange(len(labels))
        if self.prefit:
            self._take_prefit(X, fit_params)
            self._check_classes(labels, weight)
            raw = self._raw(X)
        else:
            self.classes_ = np.unique(labels)
            self._check_classes(labels, weight)
            params = self._routed(sample_weight, fit_params)
            if is_fraction(self.tuning):
                rows = self._train_on_a_part(
                    X, labels, params, float(self.tuning), self.random_state
                )
                raw = self._raw(select_rows(X, rows))
            else:
                rows, raw = self._cross_fitted(X, labels, params)
                self._keep(self._train(X, labels, params), labels)
            self._check_classes(labels[rows], weight[rows])
        self._combine(raw, labels[rows], weight[rows], rows, asked)
        return self

    def decision_function(self, X: Any) -> Floats:
        """How far the committee leans to a class: its log-odds, unless ``calibrate=False``.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Dask collection
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes above 0 for the second; with more one column for each class.
        """
        if is_dask(X):
            return self._lazily("decision_function", X)
        decision = self._by_class(X, Combination.decision)
        return -decision if decision.ndim == 1 and self._positive_code == 0 else decision

    def combined_scores(self, X: Any) -> Floats:
        """The weighted sum of the members' scores: what the margins are differences of.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Dask collection
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            In [-1, 1]; with two classes larger for the positive one.
        """
        if is_dask(X):
            return self._lazily("combined_scores", X)
        return self._by_class(X, Combination.scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class the committee leans to.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Dask collection
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if is_dask(X):
            return self._lazily("predict", X)
        decision = self.decision_function(X)
        codes = np.argmax(decision, axis=1) if decision.ndim == 2 else (decision > 0).astype(int)
        answers: NDArray[Any] = self.classes_[codes]
        return answers

    @available_if(lambda self: self.calibrate)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities; with more than two classes, each by itself and then divided.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Dask collection
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        if is_dask(X):
            return self._lazily("predict_proba", X)
        proba: Floats = expit(self.decision_function(X))
        if proba.ndim == 1:
            return np.column_stack([1 - proba, proba])
        total = proba.sum(axis=1, keepdims=True)
        shares = np.full_like(proba, 1 / proba.shape[1])
        np.divide(proba, total, out=shares, where=total > 0)
        return shares

    def _combine(
        self,
        raw: Floats,
        y: NDArray[Any],
        weight: Floats,
        rows: NDArray[np.int64],
        asked: Asked,
    ) -> None:
        """Weights for each class; with two, for the positive one."""
        codes = _labels.encode(y, self.classes_, "y")
        probabilities = np.array([hasattr(one, "predict_proba") for one in self.estimators_])
        combined = [
            combine(values, probabilities, codes == code, weight, asked)
            for code, values in self._sides(raw)
        ]
        # Pairs as rows of the data, not of its tuning part.
        results = [replace(one.found, active=rows[one.found.active]) for one in combined]
        self._keep_combined(combined, results, [one.margins.smallest_margin for one in combined])

    def _keep_combined(
        self, combined: list[Combination], results: list[RankMarginWeights], smallest: list[float]
    ) -> None:
        """Store what was learned; with two classes not in lists."""
        pairs = [one.margins for one in combined]
        self._combined: list[Combination] = combined
        self.result_: Any = results
        self.auc_by_nu_: Any = [one.auc_by_nu for one in combined]
        self.weights_: Floats = np.array([one.weights for one in results])
        self.nu_: Any = np.array([one.nu for one in results])
        self.rank_margin_: Any = np.array(smallest)
        self.margin_distribution_: CrucialPairs | list[CrucialPairs] = pairs
        if len(combined) == 1:
            self.result_, self.auc_by_nu_ = results[0], combined[0].auc_by_nu
            self.weights_, self.nu_ = results[0].weights, results[0].nu
            self.margin_distribution_, self.rank_margin_ = pairs[0], smallest[0]

    def _by_class(self, X: Any, told: Callable[[Combination, Floats], Floats]) -> Floats:
        """What the combination of each class tells; a single column as a vector."""
        sides = self._sides(self._raw(X))
        columns = [told(one, raw) for one, (_, raw) in zip(self._combined, sides, strict=True)]
        return columns[0] if len(columns) == 1 else np.column_stack(columns)

    def _lazily(self, method: str, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        labels, n_classes = method == "predict", len(self.classes_)
        flat = labels or (n_classes == 2 and method != "predict_proba")
        empty = np.empty((0,) if flat else (0, n_classes), self.classes_.dtype if labels else float)
        return predict_lazily(f"{type(self).__name__}.{method}", self, method, X, empty)

    def _sides(self, raw: Floats) -> list[tuple[int, Floats]]:
        """Classes with what the members say toward each; with two, the positive one."""
        if raw.ndim == 3:
            return [(code, raw[:, :, code]) for code in range(raw.shape[2])]
        code = self._positive_code
        return [(code, raw if code == 1 else -raw)]

    def _check_classes(self, y: NDArray[Any], weight: Floats) -> None:
        """Every class has samples, and the positive one is one of two."""
        self._check_positive()
        codes = _labels.encode(y, self.classes_, "y")
        self._check_mass(np.bincount(codes, weights=weight, minlength=len(self.classes_)))

    def _check_positive(self) -> None:
        self._positive_code = 1
        if self.positive is not None:
            if len(self.classes_) > 2:
                raise ValueError(
                    "RankMarginClassifier takes positive= with two classes only; with "
                    f"{len(self.classes_)} each is ranked against the others."
                )
            place = _labels.encode([self.positive], self.classes_, "RankMarginClassifier")
            self._positive_code = int(place[0])

    def _check_mass(self, mass: NDArray[Any]) -> None:
        if not mass.all():
            missing = _labels.plain(self.classes_[np.argmin(mass)])
            raise ValueError(
                "RankMarginClassifier needs tuning samples of every class, with a weight above 0; "
                f"got none of class {missing!r}."
            )

    def _raw(self, X: Any) -> Floats:
        """What the trained members say, in their own units."""
        return self._ask(X, "values").raw()

    def _cross_fitted(
        self, X: Any, y: NDArray[Any], params: dict[str, dict[str, Any]]
    ) -> tuple[NDArray[np.int64], Floats]:
        """Samples held out, fold by fold, and what members say that were trained without them.

        A member that tells no two samples of any fold apart says the same of all: that folds
        differ in their classes' shares says nothing about a sample.
        """
        folds = make_folds(self.tuning, X, y, "RankMarginClassifier")
        parts = list(self._held_out(X, y, folds, params, "values"))
        told = [scores.raw() for _, scores in parts]
        raw = np.concatenate(told)
        apart = [np.ptp(one, axis=0) > 0 for one in told if len(one) > 1]
        if apart:
            raw = np.where(np.any(apart, axis=0), raw, raw[0])
        return np.concatenate([rows for rows, _ in parts]), raw
