"""Bias and variance of an estimator, by bootstrap of its training set.

Nair (2015), section 3, equation (1), decomposes the error at a point:

    error = bias² + variance + irreducible error.

This holds for the squared loss. The zero-one loss has the decomposition of Domingos (2000),
equation (1): with y_m the main (most frequent) prediction, y* the best one and N the noise,

    error = c₁·N + bias + c₂·variance,   bias = [y_m ≠ y*],   variance = P(y ≠ y_m).

c₂ is 1 if y_m = y*, else −P(y = y* | y ≠ y_m), which is −1 with two classes. Nair's sum without
signs would be wrong there: where the main prediction is wrong, variance lowers the error.

Single labels do not show the noise. Without the true probabilities y* is the observed label, N is
0, and the noise is part of the bias.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.utils import check_random_state, column_or_1d, resample
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed

from margrave import _labels
from margrave._typing import Floats

LOSSES = ("squared", "zero-one")
_MAX_SEED = np.iinfo(np.int32).max


def bias_variance(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    X_test: Any,
    y_test: ArrayLike,
    *,
    loss: str = "squared",
    n_rounds: int = 100,
    true_proba: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> BiasVariance:
    """Decompose the error of an estimator into bias, variance and, if it is known, noise.

    Each round fits the estimator on a bootstrap sample of the training set and predicts the test
    points. The predictions of all rounds are then decomposed, by Nair [1]_ for the squared loss and
    by Domingos [2]_ for the zero-one loss.

    Parameters
    ----------
    estimator : classifier or regressor
        Cloned for each round. If its `random_state` is None, or that of an estimator inside it,
        each round sets a seed.
    X : array-like of shape (n_samples, n_features)
        Training samples.
    y : array-like of shape (n_samples,)
        Their targets.
    X_test : array-like of shape (n_test, n_features)
        Test samples.
    y_test : array-like of shape (n_test,)
        Their targets; for a classifier, labels that are in `y`.
    loss : {"squared", "zero-one"}, default="squared"
        The squared loss of a classifier is that of its probabilities, summed over the classes
        (the Brier score, which is 0 to 2): each label counts as 1 for its class and 0 for the
        others. The zero-one loss is for classifiers.
    n_rounds : int, default=100
        Number of bootstrap samples.
    true_proba : array-like of shape (n_test, n_classes), default=None
        True probabilities of the classes at the test points, columns in sorted order of the labels
        in `y`; known only for synthetic data. With them the error is the expected error under these
        probabilities, whatever the labels in `y_test`, and the noise is a separate term.
    random_state : int, RandomState instance or None, default=None
        Seed of the bootstrap. An int gives the same result for every `n_jobs`.
    n_jobs : int, default=None
        Number of parallel rounds, as in scikit-learn.

    Returns
    -------
    result : BiasVariance
        The terms, as means and at each test point.

    Notes
    -----
    A bootstrap sample may lack a class, which then has probability 0 and is never predicted. If a
    bootstrap sample has only one class, that class is predicted without the estimator, because many
    estimators need two. With the zero-one loss a prediction that is not a class, such as a
    rejection, counts as one more wrong class.

    References
    ----------
    .. [1] A. V. Nair, "Survey of Ensemble Classifiers", 2015, section 3.
    .. [2] P. Domingos, "A unified bias-variance decomposition", ICML 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from margrave.compare import bias_variance
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> print(bias_variance(LinearRegression(), X, 2 * X.ravel(), X, 2 * X.ravel()))
    squared loss, 100 rounds (noise is part of the bias)
    error          0.0000
    bias²          0.0000
    variance       0.0000
    """
    _check_settings(estimator, loss, n_rounds, true_proba)
    targets, test_targets = column_or_1d(y), column_or_1d(y_test)
    _check_samples(X, targets, X_test, test_targets)
    classes = _find_classes(targets, test_targets) if is_classifier(estimator) else None
    truth = _expected_targets(test_targets, classes, true_proba)
    seeds = check_random_state(random_state).randint(_MAX_SEED, size=n_rounds)
    predictions = np.stack(
        Parallel(n_jobs=n_jobs)(
            delayed(fit_and_predict)(estimator, X, targets, X_test, classes, loss, seed)
            for seed in seeds
        )
    )
    if loss == "zero-one":
        # One more column, never true, for predictions that are not a class.
        points = zero_one_terms(predictions, np.pad(truth, ((0, 0), (0, 1))))
    else:
        unknown = np.zeros(len(truth))
        noise = unknown if true_proba is None else (truth * (1 - truth)).sum(axis=1)
        points = squared_terms(predictions, truth, noise)
    return BiasVariance(
        loss=loss,
        n_rounds=n_rounds,
        error=float(points.error.mean()),
        bias=float(points.bias.mean()),
        variance=float(points.variance.mean()),
        net_variance=float(points.net_variance.mean()),
        noise=None if true_proba is None else float(points.noise.mean()),
        net_noise=float(points.net_noise.mean()),
        points=points,
    )


@dataclass(frozen=True)
class BiasVariance:
    """Error, bias and variance, as means over the test points.

    ``error = net_noise + bias + net_variance``, up to rounding.

    Parameters
    ----------
    loss : {"squared", "zero-one"}
        The loss.
    n_rounds : int
        Number of bootstrap samples.
    error : float
        Mean loss over rounds and points.
    bias : float
        Loss of the main prediction: the *squared* bias for the squared loss.
    variance : float
        Mean loss of the predictions with the main prediction as the target.
    net_variance : float
        What the variance adds to the error. It equals the variance for the squared loss, and is
        smaller for the zero-one loss, because variance lowers the error where the main prediction
        is wrong.
    noise : float or None
        Loss of the best possible prediction; None if it is unknown and thus part of the bias.
    net_noise : float
        What the noise adds to the error apart from the bias; 0 if it is unknown.
    points : PointTerms
        The same terms at each test point.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from margrave.compare import bias_variance
    >>> X, y = make_moons(400, noise=0.3, random_state=0)
    >>> terms = bias_variance(
    ...     DecisionTreeClassifier(), X[:200], y[:200], X[200:], y[200:],
    ...     loss="zero-one", n_rounds=20, random_state=0,
    ... )
    >>> bool(abs(terms.error - terms.bias - terms.net_variance) < 1e-12)
    True
    """

    loss: str
    n_rounds: int
    error: float
    bias: float
    variance: float
    net_variance: float
    noise: float | None
    net_noise: float
    points: PointTerms = field(repr=False, compare=False)

    def __str__(self) -> str:
        squared = self.loss == "squared"
        lines = [("error", self.error), ("bias²" if squared else "bias", self.bias)]
        lines += [("variance", self.variance)]
        lines += [] if squared else [("net variance", self.net_variance)]
        lines += [] if self.noise is None else [("noise", self.noise)]
        lines += [] if squared or self.noise is None else [("net noise", self.net_noise)]
        where = " (noise is part of the bias)" if self.noise is None else ""
        return "\n".join(
            [f"{self.loss} loss, {self.n_rounds} rounds{where}"]
            + [f"{name:<14}{value:7.4f}" for name, value in lines]
        )


@dataclass(frozen=True, eq=False)
class PointTerms:
    """The terms at each test point; ``error = net_noise + bias + net_variance`` at every point.

    Parameters
    ----------
    error : ndarray of shape (n_test,)
        Expected loss.
    bias : ndarray of shape (n_test,)
        Loss of the main prediction: the squared bias, or 0 or 1.
    variance : ndarray of shape (n_test,)
        Expected loss of a prediction with the main prediction as the target.
    net_variance : ndarray of shape (n_test,)
        What the variance adds to the error (c₂·variance); below 0 where it lowers the error.
    noise : ndarray of shape (n_test,)
        Expected loss of the best prediction; 0 if it is unknown.
    net_noise : ndarray of shape (n_test,)
        What the noise adds to the error (c₁·noise).

    Examples
    --------
    >>> from margrave.compare import bias_variance
    >>> from margrave.datasets import load
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load("iris", return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=1, random_state=0)
    >>> samples = X[::2], y[::2], X[1::2], y[1::2]
    >>> points = bias_variance(tree, *samples, loss="zero-one", n_rounds=10, random_state=0).points
    >>> points.bias.shape, int(points.bias.sum())  # test points with a wrong main prediction
    ((75,), 25)
    """

    error: Floats
    bias: Floats
    variance: Floats
    net_variance: Floats
    noise: Floats
    net_noise: Floats


def fit_and_predict(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    X_test: Any,
    classes: NDArray[Any] | None,
    loss: str,
    seed: int,
) -> NDArray[Any]:
    """Fit on one bootstrap sample and predict positions of classes, probabilities, or values.

    The position of a prediction that is not a class, such as a rejection, is the number of classes.
    """
    rng = check_random_state(seed)
    rows, targets = resample(X, y, random_state=rng)
    if classes is not None and len(np.unique(targets)) == 1:
        model = DummyClassifier().fit(rows, targets)
    else:
        model = _set_seeds(clone(estimator), rng).fit(rows, targets)
    if classes is None:
        return np.reshape(np.asarray(model.predict(X_test), dtype=np.float64), (-1, 1))
    position = {label: i for i, label in enumerate(classes.tolist())}
    if loss == "zero-one":
        labels = column_or_1d(model.predict(X_test)).tolist()
        return np.array([position.get(label, len(classes)) for label in labels])
    predicted = model.predict_proba(X_test)
    proba = np.zeros((len(predicted), len(classes)))
    proba[:, [position[label] for label in model.classes_.tolist()]] = predicted
    return proba


def _set_seeds(model: Any, rng: np.random.RandomState) -> Any:
    """Set every `random_state` of the model that is None."""
    unset = [
        name
        for name, value in sorted(model.get_params().items())
        if value is None and name.rpartition("__")[2] == "random_state"
    ]
    return model.set_params(**{name: rng.randint(_MAX_SEED) for name in unset})


def squared_terms(predictions: Floats, truth: Floats, noise: Floats) -> PointTerms:
    """Decompose the squared loss, summed over the last axis.

    Parameters
    ----------
    predictions : ndarray of shape (n_rounds, n_test, n_outputs)
        The predictions of each round.
    truth : ndarray of shape (n_test, n_outputs)
        The expected target: labels as 0 and 1 in the column of their class, true probabilities, or
        the values of a regression.
    noise : ndarray of shape (n_test,)
        Variance of the target around it; 0 if it is unknown.

    Returns
    -------
    terms : PointTerms
        The net terms equal the terms.
    """
    main = predictions.mean(axis=0)
    variance = np.square(predictions - main).sum(axis=2).mean(axis=0)
    return PointTerms(
        error=np.square(predictions - truth).sum(axis=2).mean(axis=0) + noise,
        bias=np.square(main - truth).sum(axis=1),
        variance=variance,
        net_variance=variance,
        noise=noise,
        net_noise=noise,
    )


def zero_one_terms(predictions: NDArray[np.intp], truth: Floats) -> PointTerms:
    """Decompose the zero-one loss.

    Parameters
    ----------
    predictions : ndarray of shape (n_rounds, n_test)
        Positions of the predicted classes.
    truth : ndarray of shape (n_test, n_classes)
        True probabilities, or labels as 0 and 1 in the column of their class.

    Returns
    -------
    terms : PointTerms
        The main and the best prediction are the first class in a tie.
    """
    points = np.arange(predictions.shape[1])
    # frequency[i, c] = P(y = c) at point i over the rounds.
    frequency = np.stack([(predictions == c).mean(axis=0) for c in range(truth.shape[1])], axis=1)
    main, best = frequency.argmax(axis=1), truth.argmax(axis=1)
    best_frequency = frequency[points, best]
    biased = main != best
    variance = 1 - frequency[points, main]
    noise = 1 - truth[points, best]
    # P(y = t, t ≠ y*), with the prediction y and the target t independent.
    matches_noise = (frequency * truth).sum(axis=1) - best_frequency * truth[points, best]
    return PointTerms(
        error=1 - (frequency * truth).sum(axis=1),
        bias=biased.astype(np.float64),
        variance=variance,
        # P(y = y* | y ≠ y_m)·P(y ≠ y_m) is P(y = y*) where y_m ≠ y*.
        net_variance=np.where(biased, -best_frequency, variance),
        noise=noise,
        # c₁ = P(y = y*) − P(y ≠ y*)·P(y = t | y ≠ y*, t ≠ y*), times N = P(t ≠ y*).
        net_noise=best_frequency * noise - matches_noise,
    )


def _find_classes(y: NDArray[Any], y_test: NDArray[Any]) -> NDArray[Any]:
    """Return the sorted labels of `y`, and check that `y_test` has no others."""
    classes = _labels.union([("y", y)])
    check_classification_targets(y)
    known = set(classes.tolist())
    unknown = [label for label in dict.fromkeys(y_test.tolist()) if label not in known]
    if unknown:
        raise _error(
            "y_test", "with labels that are in y", _labels.shown(np.array(unknown, dtype=object))
        )
    return classes


def _expected_targets(
    y_test: NDArray[Any], classes: NDArray[Any] | None, true_proba: ArrayLike | None
) -> Floats:
    """Return the expected targets, one column per class, or one column for a regression."""
    if classes is None:
        return np.asarray(y_test, dtype=np.float64).reshape(-1, 1)
    if true_proba is None:
        return np.asarray(y_test[:, np.newaxis] == classes, dtype=np.float64)
    proba = np.asarray(true_proba, dtype=np.float64)
    expected = (len(y_test), len(classes))
    if proba.shape != expected:
        raise _error("true_proba", f"of shape {expected}", f"shape {proba.shape}")
    if not (np.all(proba >= 0) and np.allclose(proba.sum(axis=1), 1)):
        raise _error("true_proba", "with rows of at least 0 that sum to 1", "other rows")
    return proba


def _check_settings(estimator: Any, loss: str, n_rounds: int, true_proba: object) -> None:
    kind = type(estimator).__name__
    if not hasattr(estimator, "fit") or not (is_classifier(estimator) or is_regressor(estimator)):
        raise _error("estimator", "to be a classifier or a regressor", repr(estimator))
    if loss not in LOSSES:
        raise _error("loss", f"to be one of {', '.join(map(repr, LOSSES))}", repr(loss))
    if not isinstance(n_rounds, int | np.integer) or n_rounds < 1:
        raise _error("n_rounds", "to be an integer of at least 1", repr(n_rounds))
    if is_regressor(estimator):
        if loss == "zero-one":
            raise _error("loss", f"to be 'squared' for a regressor such as {kind}", repr(loss))
        if true_proba is not None:
            raise _error("true_proba", f"to be None for a regressor such as {kind}", "an array")
    elif loss == "squared" and not hasattr(estimator, "predict_proba"):
        raise _error("loss", f"to be 'zero-one' for {kind}, which has no predict_proba", repr(loss))


def _check_samples(X: Any, y: NDArray[Any], X_test: Any, y_test: NDArray[Any]) -> None:
    for parameter, samples in (("X", X), ("X_test", X_test)):
        if not _shape(samples):
            raise _error(parameter, "with a row for each sample", type(samples).__name__)
    shapes = {"": _shape(X), "_test": _shape(X_test)}
    for suffix, targets in (("", y), ("_test", y_test)):
        n_rows = shapes[suffix][0]
        if n_rows == 0:
            raise _error(f"X{suffix}", "with at least one row", "none")
        if len(targets) != n_rows:
            rule = f"with one target for each of the {n_rows} rows of X{suffix}"
            raise _error(f"y{suffix}", rule, str(len(targets)))
    if shapes[""][1:] != shapes["_test"][1:]:
        rule = f"with rows of the same shape as those of X, {shapes[''][1:]}"
        raise _error("X_test", rule, str(shapes["_test"][1:]))


def _shape(X: Any) -> tuple[int, ...]:
    shape: tuple[int, ...] = X.shape if hasattr(X, "shape") else np.shape(X)
    return shape


def _error(parameter: str, rule: str, got: str) -> ValueError:
    return ValueError(f"bias_variance needs {parameter} {rule}; got {got}.")
