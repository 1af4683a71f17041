"""The error of a boosted classifier after each round; Nair (2015), figure 2, depicts the rounds."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from margrave._labels import encode
from margrave._plotting import BLUE, VERMILION, pyplot
from margrave._typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours for colour-blind readers; dashes for black-and-white prints.
_STYLES: dict[str, dict[str, Any]] = {
    "training": {"color": BLUE, "linestyle": "--"},
    "test": {"color": VERMILION},
}


class BoostingDisplay:
    """The errors of a boosted classifier after each of its rounds.

    A dotted line is the error after the first round: for AdaBoost, the error of its base classifier
    alone. Make the display with `from_estimator`, or from errors with the constructor and `plot`.

    Parameters
    ----------
    training_errors : array-like of shape (n_rounds,)
        The fraction of the training samples that are predicted wrongly after each round.
    test_errors : array-like of shape (n_rounds,), default=None
        The same for test samples.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of the axes.
    lines_ : dict of str to matplotlib Line2D
        The lines "training", "first round" and, if there are test errors, "test".

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from margrave import catalogue
    >>> from margrave.compare import BoostingDisplay
    >>> X, y = make_moons(400, noise=0.3, random_state=0)
    >>> model = catalogue.make("real-adaboost", random_state=0).fit(X[:200], y[:200])
    >>> display = BoostingDisplay.from_estimator(model, X[:200], y[:200], X[200:], y[200:])
    >>> len(display.test_errors)
    50
    >>> bool(display.test_errors[-1] < display.test_errors[0])
    True
    """

    def __init__(self, training_errors: ArrayLike, test_errors: ArrayLike | None = None) -> None:
        self.training_errors = np.asarray(training_errors, dtype=float)
        self.test_errors = None if test_errors is None else np.asarray(test_errors, dtype=float)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        X_test: Any = None,
        y_test: ArrayLike | None = None,
        *,
        ax: "Axes | None" = None,
    ) -> Self:
        """Count the errors after each round of a fitted classifier, and plot them.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier with `staged_predict`, such as scikit-learn's AdaBoost and gradient
            boosting, `RealAdaBoostClassifier` and `ModestAdaBoostClassifier`.
        X : array-like of shape (n_samples, n_features)
            Its training samples.
        y : array-like of shape (n_samples,)
            Their labels.
        X_test : array-like of shape (n_test, n_features), default=None
            Test samples.
        y_test : array-like of shape (n_test,), default=None
            Their labels.
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.

        Returns
        -------
        display : BoostingDisplay
            The display, with its plot.
        """
        pyplot("BoostingDisplay")  # raises before a long computation
        if not hasattr(estimator, "staged_predict") or not is_classifier(estimator):
            raise ValueError(
                "BoostingDisplay needs estimator to be a boosted classifier with staged_predict; "
                f"got {type(estimator).__name__}."
            )
        if (X_test is None) != (y_test is None):
            given, missing = ("X_test", "y_test") if y_test is None else ("y_test", "X_test")
            raise ValueError(
                f"BoostingDisplay needs X_test and y_test together; got {given} without {missing}."
            )
        check_is_fitted(estimator)
        test_errors = None if y_test is None else _staged_errors(estimator, X_test, y_test)
        return cls(_staged_errors(estimator, X, y), test_errors).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Plot the lines.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.

        Returns
        -------
        self : BoostingDisplay
            With `ax_`, `figure_` and `lines_`.
        """
        errors = {"training": self.training_errors, "test": self.test_errors}
        curves = {name: curve for name, curve in errors.items() if curve is not None}
        shapes = [curve.shape for curve in curves.values()]
        if len(set(shapes)) > 1 or len(shapes[0]) != 1 or not shapes[0][0]:
            raise ValueError(
                "BoostingDisplay needs training_errors, and test_errors if any, with one number "
                f"for each round, and at least one round; got shapes {shapes}."
            )
        if ax is None:
            _, ax = pyplot("BoostingDisplay").subplots(layout="constrained")
        rounds = np.arange(1, shapes[0][0] + 1)
        self.lines_ = {}
        for name, curve in curves.items():
            (self.lines_[name],) = ax.plot(rounds, curve, label=f"{name} error", **_STYLES[name])
        last = list(curves)[-1]
        label = f"{last} error, first round"
        self.lines_["first round"] = ax.axhline(
            curves[last][0], color="#666666", linestyle=":", label=label
        )
        ax.set(xlabel="rounds of boosting", ylabel="error rate")
        ax.set_ylim(bottom=0)
        ax.locator_params(axis="x", integer=True)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))  # beside the lines
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _staged_errors(estimator: Any, X: Any, y: ArrayLike) -> Floats:
    """Compute the error rate after each round."""
    labels = column_or_1d(y)
    check_consistent_length(X, labels)
    encode(labels, estimator.classes_, "BoostingDisplay: labels")  # raises for unknown labels
    return np.array([np.mean(predicted != labels) for predicted in estimator.staged_predict(X)])
