"""A committee that ranks, with weights that maximize the rank margin, as a scikit-learn estimator.

Marrocco et al. (2010), equation (3): the committee's score is ``f_c(x) = Σ_j w_j f_j(x)``. The
weights are learned on a tuning set that the members were not trained on. With more than two classes
each has its own weights, against all others.

The estimator comes first, then the steps that it applies to the members' values for each class: the
fraction ν (`choose_nu`), the scale (`_scales`), the weights (`_rank_weights`), and the threshold
and slope of the combined score (`fit_sigmoid`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn import get_config
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from margrave import _labels
from margrave._indexing import select_rows
from margrave._typing import Flags, Floats, Ints
from margrave._validation import check_parameters, is_number
from margrave.committee import (
    Committee,
    FittedMembers,
    check_tuning,
    group_folds_hint,
    is_fraction,
    make_folds,
)
from margrave.confusion import balanced_threshold
from margrave.fuse._rank_weights import (
    ArrayOracle,
    MarginSettings,
    RankMarginWeights,
    hardest_fraction,
    maximize_margin,
    warn_not_converged,
)
from margrave.fuse._scales import SCALES, LinearScale, RankScale, learn_scale
from margrave.fuse._tail import WeightedScores, standard_error
from margrave.pairs import CrucialPairs

_OWNER = "RankMarginClassifier"

NUS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
"""The fractions of the pairs that ``nu="cv"`` compares."""

# The fraction for too few samples to cross-validate.
_DEFAULT_NU = 0.1
_N_FOLDS = 5
_MAX_SAMPLES_FOR_CV = 20_000
_MIN_TOL = 1e-4
_MAX_ITER = 500
# Scores this close are equal.
_SAME = 1e-12
# A slope that is practically 0, but that can be divided by.
_NO_SLOPE = 1e-6


class RankMarginClassifier(Committee):
    """A committee with weights that maximize the margin of its ranking.

    It is for problems where the ranking matters and neither costs nor class frequencies are known.

    Parameters
    ----------
    estimators : list of classifiers, or of (name, classifier)
        The members, with probabilities, decision values or labels only.
    nu : float in [0, 1] or "cv", default="cv"
        The fraction of the crucial pairs, the worst ones, whose mean margin is maximized. 0 is the
        paper's program, the worst pair alone; 1 selects the member with the largest mean margin, or
        divides the weight among equal ones (all members, on the scale "logit"). "cv" selects by AUC
        among 0.02, 0.05, 0.1, 0.2, 0.3 and 0.5, by cross-validation within the tuning set.
    scale : {"logit", "probability", "rank", "decision"}, default="logit"
        The scale of the members' values in [-1, 1], learned on the tuning set: log-odds with the
        same mean margin for every member; 2p - 1, as in the paper; ranks in the tuning set; or
        from the smallest to the largest value.
    negatives : str, optional
        ``"hardest 10%"`` uses only pairs with that fraction of the negatives, those with the
        highest scores.
    positive : label, optional
        The positive class, of two; by default the second. It determines which samples are
        `negatives`, and the direction of `combined_scores`, `result_` and `margin_distribution_`;
        `decision_function` and `predict_proba` follow `classes_`, as always in scikit-learn.
    tuning : int, float in (0, 1), splitter or list of folds, default=5
        The tuning set: out-of-fold predictions for that many folds, after which the members are
        trained on all samples; or the fraction of the samples that is held out from the members.
        Ignored if `prefit`.
    calibrate : bool, default=True
        Whether `decision_function` is a log-odds and `predict_proba` exists, from a sigmoid that is
        learned on the tuning set. Otherwise the threshold of `predict` maximizes the balanced
        accuracy.
    prefit : bool, default=False
        Whether the members are already trained. The data passed to ``fit`` is then the tuning set,
        which no member should have been trained on. By default ``fit`` trains clones of them.
    tol : float or "auto", default="auto"
        The search starts at equal weights and stops when the gap between the margin and its
        optimum is at most this. "auto" is half a standard error of the margin, and never below
        0.0001; for ``nu=0`` it is 0.0001. The data cannot distinguish margins that are closer than
        the standard error, so the search stays near equal weights then.
    n_jobs : int, optional
        The number of members that are trained or that predict in parallel.
    random_state : int, RandomState or None, default=None
        The seed of the split if `tuning` is a float.

    Attributes
    ----------
    classes_ : ndarray
        All classes. With more than two, the attributes below have an entry for each.
    weights_ : ndarray of shape (K,), or (n_classes, K) for more than two classes
        The members' weights, for scores on the chosen scale; 0 for a member that is constant on the
        tuning set, or ranks it no better than chance, unless all members do.
    nu_ : float, or ndarray of shape (n_classes,)
        The fraction of the pairs.
    rank_margin_ : float, or ndarray of shape (n_classes,)
        The smallest margin over all pairs of the tuning set, for scores in [-1, 1].
    margin_distribution_ : CrucialPairs, or list of them
        The committee's scores on the tuning set, as pairs: AUC, distribution and quantiles of the
        margins.
    result_ : RankMarginWeights, or list of them
        The result of the search; its active pairs are rows of the data passed to ``fit``.
    auc_by_nu_ : dict, or list of them
        With ``nu="cv"``, the cross-validated AUC of each fraction; otherwise empty.
    estimators_ : list
        The trained members.
    named_estimators_ : Bunch
        The same by name.
    member_names_ : list of str
        Their names, by default by type.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    AUC and margins on the tuning set are optimistic, since the weights were chosen on it; evaluate
    the committee on other data. Folds from an int are stratified and keep the order of the samples.
    For grouped samples or time series pass a list of (training, held out) positions, such as
    ``list(GroupKFold().split(X, y, groups))``. Samples that are never held out do not influence the
    weights. The folds that select ν are always the same, so that `fit` is repeatable.

    :func:`margrave.scale.fit` fits a committee with ``prefit=True`` on Dask collections.

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

    result_: Any
    auc_by_nu_: Any
    weights_: Floats
    nu_: Any
    rank_margin_: Any
    margin_distribution_: CrucialPairs | list[CrucialPairs]
    _combinations: list[Combination]
    _positive_code: int

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
        """Train the members (unless prefit), and learn their weights on the tuning set.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Passed to the members, and used in scales, margins and probabilities. In the margins
            weights are relative to the class: a factor for a whole class changes nothing there.
        **fit_params : dict
            Passed to the members; with metadata routing, to those that request them.

        Returns
        -------
        self
        """
        settings = CombinationSettings.of(self)
        if "groups" in fit_params and not get_config()["enable_metadata_routing"]:
            raise ValueError(group_folds_hint(_OWNER))
        labels = self._start(X, y)
        check_several_classes(np.unique(labels))
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
                rows, raw = self._cross_fit(X, labels, params)
                self._keep(self._train(X, labels, params), labels)
            self._check_classes(labels[rows], weight[rows])
        codes = _labels.encode(labels[rows], self.classes_, "y")
        probabilities = fitted_members(self).gives_probabilities
        combinations = [
            fit_combination(TuningSet(values, probabilities, codes == code, weight[rows]), settings)
            for code, values in values_by_class(raw, self._positive_code)
        ]
        store_combinations(self, [one.with_rows(rows) for one in combinations])
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return the log-odds of the classes, or with ``calibrate=False`` scores minus thresholds.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes above 0 for the second; with more one column for each class.
        """
        decision = self._apply(Combination.decision, X)
        return -decision if decision.ndim == 1 and self._positive_code == 0 else decision

    def combined_scores(self, X: Any) -> Floats:
        """Return the weighted sum of the members' scores, whose differences are the margins.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores in [-1, 1]; with two classes larger for the positive one.
        """
        return self._apply(Combination.scores, X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class with the largest decision value.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decision = self.decision_function(X)
        codes = np.argmax(decision, axis=1) if decision.ndim == 2 else (decision > 0).astype(int)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    @available_if(lambda self: self.calibrate)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return calibrated probabilities; more than two classes are calibrated one by one.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        proba: Floats = expit(self.decision_function(X))
        if proba.ndim == 1:
            return np.column_stack([1 - proba, proba])
        total = proba.sum(axis=1, keepdims=True)
        normalized = np.full_like(proba, 1 / proba.shape[1])
        np.divide(proba, total, out=normalized, where=total > 0)
        return normalized

    def _apply(self, method: Callable[[Combination, Floats], Floats], X: Any) -> Floats:
        """Apply a method of the combination of each class; a single column becomes a vector."""
        values = values_by_class(self._raw(X), self._positive_code)
        columns = [
            method(one, own) for one, (_, own) in zip(self._combinations, values, strict=True)
        ]
        return columns[0] if len(columns) == 1 else np.column_stack(columns)

    def _check_classes(self, y: NDArray[Any], weight: Floats) -> None:
        """Check the positive class, and that every class has samples with weight."""
        self._positive_code = find_positive_code(self)
        codes = _labels.encode(y, self.classes_, "y")
        mass = np.bincount(codes, weights=weight, minlength=len(self.classes_))
        check_class_weights(self.classes_, mass)

    def _raw(self, X: Any) -> Floats:
        """Return the trained members' values, in their own units."""
        return self._ask(X, "values").raw()

    def _cross_fit(
        self, X: Any, y: NDArray[Any], params: dict[str, dict[str, Any]]
    ) -> tuple[Ints, Floats]:
        """Return the held-out rows, fold by fold, and the members' out-of-fold values.

        A member that is constant within every fold becomes constant: the differences between folds
        come from their class frequencies, and say nothing about a sample.
        """
        folds = make_folds(self.tuning, X, y, _OWNER)
        parts = self._held_out(X, y, folds, params, "values")
        values = [scores.raw() for _, scores in parts]
        raw = np.concatenate(values)
        varies = [np.ptp(one, axis=0) > 0 for one in values if len(one) > 1]
        if varies:
            raw = np.where(np.any(varies, axis=0), raw, raw[0])
        return np.concatenate([rows for rows, _ in parts]), raw


# Steps of the fit that margrave.scale shares


def use_prefit_members(committee: RankMarginClassifier, X: Any) -> None:
    """Store the prefit members, the classes, and the columns of X, which need not have rows."""
    pairs = committee._pairs()
    validate_data(committee, X, skip_check_array=True)
    committee._keep([member for _, member in pairs])
    committee._positive_code = find_positive_code(committee)


def fitted_members(committee: RankMarginClassifier) -> FittedMembers:
    """Return the trained members, with all that they need to predict."""
    return FittedMembers(committee.member_names_, committee.estimators_, committee.classes_)


def find_positive_code(committee: RankMarginClassifier) -> int:
    """Return the position of the positive class among two."""
    if committee.positive is None:
        return 1
    classes = committee.classes_
    if len(classes) > 2:
        raise ValueError(
            f"{_OWNER} needs positive to be None with more than two classes; got "
            f"{committee.positive!r} with {len(classes)} classes. It ranks each class against the "
            "others."
        )
    return int(_labels.encode([committee.positive], classes, _OWNER)[0])


def check_several_classes(classes: NDArray[Any]) -> None:
    """Check that samples are of more than one class."""
    if len(classes) < 2:
        raise ValueError(
            f"{_OWNER} needs samples of at least two classes; got one class, "
            f"{_labels.plain(classes[0])!r}."
        )


def check_class_weights(classes: NDArray[Any], mass: NDArray[Any]) -> None:
    """Check that the tuning set has samples of every class, with the weights `mass`."""
    if not mass.all():
        raise ValueError(
            f"{_OWNER} needs a tuning set with samples of every class, with a weight above 0; "
            f"got none of class {_labels.plain(classes[np.argmin(mass)])!r}."
        )


def values_by_class(raw: Floats, positive_code: int) -> list[tuple[int, Floats]]:
    """Return classes with the members' values for each; of two classes only the positive one."""
    if raw.ndim == 3:
        return [(code, raw[:, :, code]) for code in range(raw.shape[2])]
    return [(positive_code, raw if positive_code == 1 else -raw)]


def store_combinations(committee: RankMarginClassifier, combinations: list[Combination]) -> None:
    """Set the learned attributes; with two classes they are not lists."""
    results = [one.result for one in combinations]
    committee._combinations = combinations
    committee.result_ = results
    committee.auc_by_nu_ = [one.auc_by_nu for one in combinations]
    committee.weights_ = np.array([result.weights for result in results])
    committee.nu_ = np.array([result.nu for result in results])
    committee.rank_margin_ = np.array([one.rank_margin for one in combinations])
    committee.margin_distribution_ = [one.margins for one in combinations]
    if len(combinations) == 1:
        (one,) = combinations
        committee.result_, committee.auc_by_nu_ = one.result, one.auc_by_nu
        committee.weights_, committee.nu_ = one.result.weights, one.result.nu
        committee.margin_distribution_, committee.rank_margin_ = one.margins, one.rank_margin


# One class against the rest


@dataclass(frozen=True)
class CombinationSettings:
    """The settings of a combination.

    Attributes
    ----------
    scale : str
        One of `margrave.fuse._scales.SCALES`.
    nu : float or "cv"
        The fraction of the pairs.
    hardest : float
        The fraction of the negatives whose pairs count.
    tol : float or "auto"
        The tolerance; "auto" is half a standard error of the margin.
    calibrate : bool
        Whether the threshold is where both classes are equally probable; otherwise it maximizes the
        balanced accuracy.
    """

    scale: str
    nu: float | str
    hardest: float
    tol: float | str
    calibrate: bool

    @classmethod
    def of(cls, committee: RankMarginClassifier) -> CombinationSettings:
        """Check the parameters of a RankMarginClassifier."""
        nu, tol = committee.nu, committee.tol
        nu_allowed = nu == "cv" or (is_number(nu) and 0 <= nu <= 1)
        tol_allowed = tol == "auto" or (is_number(tol) and 0 < tol < np.inf)
        is_bool = isinstance(committee.calibrate, bool | np.bool_)
        check_parameters(
            committee,
            {
                "scale": (f"one of {', '.join(SCALES)}", committee.scale in SCALES),
                "nu": ("'cv' or a number in [0, 1]", nu_allowed),
                "tol": ("'auto' or a finite number above 0", tol_allowed),
                "calibrate": ("True or False", is_bool),
            },
        )
        check_tuning(committee.tuning, _OWNER)
        hardest = hardest_fraction(committee.negatives, _OWNER)
        return cls(committee.scale, nu, hardest, tol, bool(committee.calibrate))

    def search(self, nu: float, tol: float) -> MarginSettings:
        """Return the settings of the search for weights."""
        return MarginSettings(float(nu), self.hardest, float(tol), _MAX_ITER)


@dataclass(frozen=True)
class Combination:
    """The combination of the members for one class.

    Attributes
    ----------
    scale : LinearScale or RankScale
        The scale of the members' values in [-1, 1].
    result : RankMarginWeights
        The weights.
    slope, threshold : float
        ``slope · (score - threshold)`` is the log-odds of the class; slope 1 if not calibrated.
    margins : CrucialPairs
        The combined scores of the tuning set.
    rank_margin : float
        The smallest margin over all pairs of the tuning set.
    auc_by_nu : dict
        The cross-validated AUC of each ν.
    """

    scale: LinearScale | RankScale
    result: RankMarginWeights
    slope: float
    threshold: float
    margins: CrucialPairs
    rank_margin: float
    auc_by_nu: dict[float, float]

    def scores(self, raw: Floats) -> Floats:
        """Return the weighted sum of the members' scores, in [-1, 1]: equation (3)."""
        scores: Floats = self.scale(raw) @ self.result.weights
        return scores

    def decision(self, raw: Floats) -> Floats:
        """Return decision values, above 0 for the class."""
        return self.slope * (self.scores(raw) - self.threshold)

    def with_rows(self, rows: Ints) -> Combination:
        """Return the combination with active pairs as positions in `rows`."""
        return replace(self, result=replace(self.result, active=rows[self.result.active]))


@dataclass(frozen=True, eq=False)
class TuningSet:
    """The members' values for one class on the tuning set.

    Attributes
    ----------
    raw : ndarray of shape (n, K)
        The values, in the members' own units.
    probabilities : ndarray of bool, shape (K,)
        Which members have probabilities.
    positive : ndarray of bool, shape (n,)
        The samples of the class.
    weight : ndarray of shape (n,)
        Sample weights.
    """

    raw: Floats
    probabilities: Flags
    positive: Flags
    weight: Floats

    def rows(self, at: Ints) -> TuningSet:
        """Return some of the samples."""
        return TuningSet(self.raw[at], self.probabilities, self.positive[at], self.weight[at])

    def learn_scale(self, name: str) -> LinearScale | RankScale:
        """Learn a scale of the members' values."""
        return learn_scale(name, self.raw, self.probabilities, self.positive, self.weight)


def fit_combination(tuning: TuningSet, settings: CombinationSettings) -> Combination:
    """Learn ν, scale, weights and threshold on the tuning set."""
    used = np.flatnonzero(tuning.weight > 0)
    tuning = tuning.rows(used)
    nu, auc_by_nu = choose_nu(tuning, settings)
    scale, result, tol = _fit_weights(tuning, nu, settings)
    warn_not_converged(_OWNER, result, tol, "raise tol", stacklevel=4)
    combined = scale(tuning.raw) @ result.weights
    positive, weight = tuning.positive, tuning.weight
    if settings.calibrate:
        u, v = (np.where(of, weight, 0.0) for of in (positive, ~positive))
        moments = len(combined), float(combined.mean()), float(combined.std())
        slope, threshold = fit_sigmoid(combined, u, v, *moments)
    else:
        u, v = (np.where(of, weight / weight[of].sum(), 0.0) for of in (positive, ~positive))
        slope, threshold = 1.0, balanced_threshold(combined, u, v)
    margins = CrucialPairs(combined[positive], combined[~positive])
    result = replace(result, active=used[result.active])
    rank_margin = margins.rank_margin
    return Combination(scale, result, slope, threshold, margins, rank_margin, auc_by_nu)


def choose_nu(tuning: TuningSet, settings: CombinationSettings) -> tuple[float, dict[float, float]]:
    """Return ν, selected by cross-validation if it is "cv", and the AUC of each candidate."""
    if not isinstance(settings.nu, str):
        return float(settings.nu), {}
    auc_by_nu = _cross_validate_nu(tuning, settings)
    # Among equal ones the largest, which uses most pairs.
    nu = max(auc_by_nu, key=lambda one: (auc_by_nu[one], one)) if auc_by_nu else _DEFAULT_NU
    return nu, auc_by_nu


def _cross_validate_nu(tuning: TuningSet, settings: CombinationSettings) -> dict[float, float]:
    """Return the mean AUC of each ν on folds that neither scale nor weights were learned on."""
    positive = tuning.positive
    by_class = [np.flatnonzero(of) for of in (positive, ~positive)]
    if len(positive) > _MAX_SAMPLES_FOR_CV:  # a rare class remains complete
        generator = np.random.default_rng(0)
        by_class = [generator.permutation(rows)[: _MAX_SAMPLES_FOR_CV // 2] for rows in by_class]
    rows, n_folds = np.sort(np.concatenate(by_class)), min(_N_FOLDS, *map(len, by_class))
    if n_folds < 2:
        return {}
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    folds = [(rows[a], rows[b]) for a, b in splitter.split(rows, positive[rows])]
    means = dict.fromkeys(NUS, 0.0)
    for training, held_out in folds:
        part = tuning.rows(training)
        for nu in means:
            scale, result, _ = _fit_weights(part, nu, settings)
            combined = scale(tuning.raw[held_out]) @ result.weights
            means[nu] += _auc(combined, positive[held_out], settings.hardest) / n_folds
    return means


def _auc(scores: Floats, positive: Flags, hardest: float) -> float:
    """Return the AUC over the pairs with the hardest negatives only."""
    negatives = np.sort(scores[~positive])
    kept = negatives[-max(round(hardest * len(negatives)), 1) :]
    return CrucialPairs(scores[positive], kept).auc


def _fit_weights(
    tuning: TuningSet, nu: float, settings: CombinationSettings
) -> tuple[LinearScale | RankScale, RankMarginWeights, float]:
    """Return scale and weights for one ν, and the tolerance."""
    scale = tuning.learn_scale(settings.scale)
    scores, positive, weight = scale(tuning.raw), tuning.positive, tuning.weight
    a, b = (weight[of] / weight[of].sum() for of in (positive, ~positive))
    used = members_above_chance(a @ scores[positive] - b @ scores[~positive])
    scores[:, ~used] = 0.0
    tol = choose_tol(scores[:, used], positive, weight, nu, settings)
    oracle = ArrayOracle.of(scores, positive, weight, settings.search(nu, tol))
    return scale, maximize_margin(oracle), tol


def members_above_chance(mean_margins: Floats) -> Flags:
    """Return which members have a mean margin above 0; all if none has.

    The others rank no better than chance, and could get weight only because their errors happen to
    be opposite to those of other members.
    """
    above: Flags = mean_margins > _SAME
    return above if above.any() else np.ones_like(above)


def choose_tol(
    scores: Floats,
    positive: Flags,
    weight: Floats,
    nu: float,
    settings: CombinationSettings,
    fractions: tuple[float, float] = (1.0, 1.0),
) -> float:
    """Return the tolerance; for "auto" half a standard error of the margin of the mean score.

    `fractions` are those of the positives and of the negatives, if these samples are a part of all.
    """
    if not isinstance(settings.tol, str):
        return float(settings.tol)
    error = 0.0
    if nu > 0 and positive.any() and not positive.all():
        mean = scores.mean(axis=1)
        positives, negatives = (
            WeightedScores(mean[of], weight[of] / weight[of].sum()) for of in (positive, ~positive)
        )
        error = standard_error(positives, negatives, nu, settings.hardest, fractions)
    return max(error / 2, _MIN_TOL)


def fit_sigmoid(
    values: Floats, u: Floats, v: Floats, n: int, mean: float, std: float
) -> tuple[float, float]:
    """Learn slope and threshold of ``log p/(1-p) = slope (score - threshold)`` (Platt, 1999).

    The targets (N⁺ + 1)/(N⁺ + 2) and 1/(N⁻ + 2) keep the slope finite for scores that separate the
    classes. For a score that ranks no better than chance the slope is 0, and all samples are
    assigned to the larger class.

    Parameters
    ----------
    values, u, v : ndarray of shape (m,)
        Scores, and the weights of the positives and of the negatives with these scores.
    n : int
        Number of samples.
    mean, std : float
        Mean and standard deviation of the samples' scores.
    """
    unit = n / (u.sum() + v.sum())
    u, v = u * unit, v * unit
    n_positive, n_negative = u.sum(), v.sum()
    prior = float(np.log((n_positive + 1) / (n_negative + 1)))
    if np.ptp(values) < _SAME:
        return _NO_SLOPE, -prior / _NO_SLOPE
    x = (values - mean) / std
    total = u + v
    targets = u * ((n_positive + 1) / (n_positive + 2)) + v * (1 / (n_negative + 2))

    def loss(coefficients: Floats) -> tuple[float, Floats]:
        z = coefficients[0] * x + coefficients[1]
        error = total * expit(z) - targets
        value = total @ np.logaddexp(0, z) - targets @ z
        return float(value), np.array([error @ x, error.sum()])

    solution = minimize(loss, [1.0, prior], jac=True, bounds=[(0, None), (None, None)])
    slope, offset = solution.x[0], solution.x[1]
    if slope < _NO_SLOPE:
        return _NO_SLOPE, -prior / _NO_SLOPE
    return float(slope / std), float(mean - offset * std / slope)
