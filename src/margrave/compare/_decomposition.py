"""Bias and variance of an estimator, by bootstrap of its training set.

Survey of Ensemble Classifiers (Nair, 2015), section 3. Here are the resampling and the result; the
equations are in `_terms`.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.utils import check_random_state, column_or_1d, resample
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.parallel import Parallel, delayed

from margrave import _labels
from margrave._typing import Floats
from margrave.compare._terms import PointTerms, squared_terms, zero_one_terms

LOSSES = ("squared", "zero-one")
_MAX_SEED = np.iinfo(np.int32).max


@dataclass(frozen=True)
class BiasVariance:
    """Error, bias and variance, as means over the test points.

    ``error = net_noise + bias + net_variance``, up to rounding.

    Parameters
    ----------
    loss : {"squared", "zero-one"}
        The loss that was decomposed.
    n_rounds : int
        Number of training sets drawn.
    error : float
        Mean loss over rounds and points.
    bias : float
        Loss of the main prediction: the *squared* bias for the squared loss.
    variance : float
        Loss of the predictions against the main one.
    net_variance : float
        What the variance adds to the error. The variance itself for the squared loss; for zero-one
        less than that, because variance helps where the main prediction is wrong.
    noise : float or None
        Loss of the best possible prediction; None if it is not known and thus part of the bias.
    net_noise : float
        What the noise adds to the error apart from the bias; 0 if it is not known.
    points : PointTerms
        The same terms at each test point.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from margrave.compare import bias_variance
    >>> X, y = make_moons(400, noise=0.3, random_state=0)
    >>> parts = bias_variance(
    ...     DecisionTreeClassifier(), X[:200], y[:200], X[200:], y[200:],
    ...     loss="zero-one", n_rounds=20, random_state=0,
    ... )
    >>> bool(abs(parts.error - parts.bias - parts.net_variance) < 1e-12)
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
    """Split the error of an estimator into bias, variance and, if it can be known, noise.

    The training set is drawn anew with replacement in each round, the estimator trained on it, and
    its predictions for the test points collected; the table of predictions is then decomposed, as
    the survey [1]_ does for the squared loss and Domingos [2]_ for the zero-one loss.

    Parameters
    ----------
    estimator : classifier or regressor
        Cloned for each round. Where its `random_state` is None (also that of an estimator inside
        it), each round sets a seed.
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
        Number of training sets to draw.
    true_proba : array-like of shape (n_test, n_classes), default=None
        True probabilities of the classes at the test points, columns in sorted order of the labels
        in `y`; known for made data only. With them the error is the expected one
        under these probabilities, whatever labels `y_test` drew, and the noise is told apart.
    random_state : int, RandomState instance or None, default=None
        Seed of the resampling. An int gives the same result for every `n_jobs`.
    n_jobs : int, default=None
        Rounds in parallel, as in scikit-learn.

    Returns
    -------
    result : BiasVariance
        The parts, as means and at each test point.

    Notes
    -----
    A resample may lack a class: it gets probability 0 there and is never predicted. A resample with
    one class alone predicts that class, without asking the estimator, as many refuse to train.
    With the zero-one loss an answer that is no class, such as a rejection, is one more wrong class.

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
    classes = _classes(targets, test_targets) if is_classifier(estimator) else None
    truth = _truth(test_targets, classes, true_proba)
    seeds = check_random_state(random_state).randint(_MAX_SEED, size=n_rounds)
    table = np.stack(
        Parallel(n_jobs=n_jobs)(
            delayed(_round)(estimator, X, targets, X_test, classes, loss, seed) for seed in seeds
        )
    )
    if loss == "zero-one":
        # One more column, never true, for answers that are not a class.
        points = zero_one_terms(table, np.pad(truth, ((0, 0), (0, 1))))
    else:
        hidden = np.zeros(len(truth))
        noise = hidden if true_proba is None else (truth * (1 - truth)).sum(axis=1)
        points = squared_terms(table, truth, noise)
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


def _round(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    X_test: Any,
    classes: NDArray[Any] | None,
    loss: str,
    seed: int,
) -> NDArray[Any]:
    """Train on one resample and predict: positions of classes, probabilities, or values.

    Any answer that is not a class, such as a rejection, gets the position after the last class.
    """
    rng = check_random_state(seed)
    rows, targets = resample(X, y, random_state=rng)
    if classes is not None and len(np.unique(targets)) == 1:
        model = DummyClassifier().fit(rows, targets)
    else:
        model = _seeded(clone(estimator), rng).fit(rows, targets)
    if classes is None:
        return np.reshape(np.asarray(model.predict(X_test), dtype=np.float64), (-1, 1))
    position = {label: i for i, label in enumerate(classes.tolist())}
    if loss == "zero-one":
        labels = column_or_1d(model.predict(X_test)).tolist()
        return np.array([position.get(label, len(classes)) for label in labels])
    seen = model.predict_proba(X_test)
    proba = np.zeros((len(seen), len(classes)))
    proba[:, [position[label] for label in model.classes_.tolist()]] = seen
    return proba


def _seeded(model: Any, rng: np.random.RandomState) -> Any:
    """Set every `random_state` of the model that is None."""
    unset = [
        name
        for name, value in sorted(model.get_params().items())
        if value is None and name.rpartition("__")[2] == "random_state"
    ]
    return model.set_params(**{name: rng.randint(_MAX_SEED) for name in unset})


def _classes(y: NDArray[Any], y_test: NDArray[Any]) -> NDArray[Any]:
    """Return the labels to learn, sorted, after a check that the test asks for no others."""
    classes: NDArray[Any] = unique_labels(y)
    learnt = set(classes.tolist())
    strange = [label for label in dict.fromkeys(y_test.tolist()) if label not in learnt]
    if strange:
        raise _error(
            "y_test", "with labels that are in y", _labels.shown(np.array(strange, dtype=object))
        )
    return classes


def _truth(
    y_test: NDArray[Any], classes: NDArray[Any] | None, true_proba: ArrayLike | None
) -> Floats:
    """Return the expected targets, one column a class or one for a regression."""
    if classes is None:
        return np.asarray(y_test, dtype=np.float64).reshape(-1, 1)
    if true_proba is None:
        return np.asarray(y_test[:, np.newaxis] == classes, dtype=np.float64)
    proba = np.asarray(true_proba, dtype=np.float64)
    expected = (len(y_test), len(classes))
    if proba.shape != expected:
        raise _error("true_proba", f"of shape {expected}", f"shape {proba.shape}")
    if not (np.all(proba >= 0) and np.allclose(proba.sum(axis=1), 1)):
        raise _error("true_proba", "with rows of at least 0 that sum to 1", "others")
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
    shapes = {"": _shape(X), "_test": _shape(X_test)}
    for part, targets in (("", y), ("_test", y_test)):
        n_rows = shapes[part][0]
        if n_rows == 0:
            raise _error(f"X{part}", "with at least one row", "none")
        if len(targets) != n_rows:
            rule = f"with one target for each of the {n_rows} rows of X{part}"
            raise _error(f"y{part}", rule, str(len(targets)))
    if shapes[""][1:] != shapes["_test"][1:]:
        rule = f"with rows of the same shape as those of X, {shapes[''][1:]}"
        raise _error("X_test", rule, str(shapes["_test"][1:]))


def _shape(X: Any) -> tuple[int, ...]:
    shape: tuple[int, ...] = X.shape if hasattr(X, "shape") else np.shape(X)
    return shape


def _error(parameter: str, rule: str, got: str) -> ValueError:
    return ValueError(f"bias_variance needs {parameter} {rule}; got {got}.")
