"""Error, bias and variance against the complexity of a model: Nair (2015), figure 1."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state

from margrave._plotting import BLACK, BLUE, VERMILION, pyplot
from margrave.compare._bias_variance import BiasVariance, bias_variance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours for colour-blind readers; markers for black-and-white prints.
_STYLES: dict[str, dict[str, Any]] = {
    "error": {"color": BLACK, "marker": "o", "linewidth": 2},
    "bias": {"color": BLUE, "marker": "s"},
    "variance": {"color": VERMILION, "marker": "^"},
    "noise": {"color": "#666666", "linestyle": ":"},
}


class BiasVarianceDisplay:
    """Error, bias and variance against a parameter.

    The lines add up: error = bias + variance, plus the noise if it is known. For the zero-one loss
    the variance is therefore the net variance, which can be below 0. Make the display with
    `from_estimator`, or from results with the constructor and `plot`.

    Parameters
    ----------
    results : sequence of BiasVariance
        One for each value of the parameter, all with the same loss.
    param_name : str
        Name of the parameter, for the axis.
    param_range : sequence
        Its values: numbers in order, or other values, which are then labels of the axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of the axes.
    lines_ : dict of str to matplotlib Line2D
        The lines "error", "bias", "variance" and, if it is known, "noise".

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from margrave.compare import BiasVarianceDisplay
    >>> X, y = make_moons(400, noise=0.3, random_state=0)
    >>> display = BiasVarianceDisplay.from_estimator(
    ...     DecisionTreeClassifier(), X[:200], y[:200], X[200:], y[200:],
    ...     param_name="max_depth", param_range=[1, 3, 5], n_rounds=10, random_state=0,
    ... )
    >>> display.ax_.get_xlabel()
    'max_depth'
    """

    def __init__(
        self, results: Sequence[BiasVariance], *, param_name: str, param_range: Sequence[Any]
    ) -> None:
        self.results = results
        self.param_name = param_name
        self.param_range = param_range

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        X_test: Any,
        y_test: ArrayLike,
        *,
        param_name: str,
        param_range: Sequence[Any],
        loss: str = "squared",
        n_rounds: int = 100,
        true_proba: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Decompose the error for each value of a parameter, and plot the terms.

        Parameters
        ----------
        estimator : classifier or regressor
            The estimator.
        X : array-like of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Their targets.
        X_test : array-like of shape (n_test, n_features)
            Test samples.
        y_test : array-like of shape (n_test,)
            Their targets.
        param_name : str
            The parameter to vary, as `set_params` of the estimator takes it.
        param_range : sequence
            Its values.
        loss : {"squared", "zero-one"}, default="squared"
            As in `bias_variance`.
        n_rounds : int, default=100
            As in `bias_variance`.
        true_proba : array-like of shape (n_test, n_classes), default=None
            As in `bias_variance`.
        random_state : int, RandomState instance or None, default=None
            Seed of the bootstrap. Every value of the parameter gets the same bootstrap samples, so
            that only the parameter makes a difference.
        n_jobs : int, default=None
            Number of parallel rounds.
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.

        Returns
        -------
        display : BiasVarianceDisplay
            The display, with its plot.
        """
        pyplot("BiasVarianceDisplay")  # raises before a long computation
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        results = [
            bias_variance(
                clone(estimator).set_params(**{param_name: value}),
                X,
                y,
                X_test,
                y_test,
                loss=loss,
                n_rounds=n_rounds,
                true_proba=true_proba,
                random_state=seed,
                n_jobs=n_jobs,
            )
            for value in param_range
        ]
        return cls(results, param_name=param_name, param_range=param_range).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Plot the lines.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.

        Returns
        -------
        self : BiasVarianceDisplay
            With `ax_`, `figure_` and `lines_`.
        """
        if not self.results or len(self.results) != len(self.param_range):
            raise ValueError(
                "BiasVarianceDisplay needs results with one for each value in param_range, and at "
                f"least one; got {len(self.results)} for {len(self.param_range)}."
            )
        if ax is None:
            _, ax = pyplot("BiasVarianceDisplay").subplots(layout="constrained")
        loss = self.results[0].loss
        square, net = ("²", "") if loss == "squared" else ("", "net ")
        terms = {
            "error": ("error", "error"),
            "bias": ("bias", f"bias{square}"),
            "variance": ("net_variance", f"{net}variance"),
        }
        if all(result.noise is not None for result in self.results):
            terms["noise"] = ("net_noise", f"{net}noise")
        ticks = _positions(self.param_range)
        self.lines_ = {}
        for name, (term, label) in terms.items():
            values = [getattr(result, term) for result in self.results]
            (self.lines_[name],) = ax.plot(ticks, values, label=label, **_STYLES[name])
        if len(ticks) <= 12:
            ax.set_xticks(ticks, labels=[str(value) for value in self.param_range])
        ax.set(xlabel=self.param_name, ylabel=f"{loss} loss")
        ax.spines[["top", "right"]].set_visible(False)
        # Beside the lines, in the order of their ends.
        top_down = sorted(self.lines_.values(), key=lambda line: -np.asarray(line.get_ydata())[-1])
        ax.legend(handles=top_down, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _positions(values: Sequence[Any]) -> Sequence[Any]:
    """Return numbers as they are, and the positions 0, 1, … for other values."""
    numeric = all(isinstance(v, int | float | np.integer | np.floating) for v in values)
    return values if numeric else range(len(values))
