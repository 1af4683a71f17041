"""The scores of a classifier over two features, with lines of equal certainty.

Pelckmans et al. (2008), figure 1: the maximal-average-margin classifier and a support vector
machine on Ripley's data, with contour lines of the certainty of a prediction. A line joins the
points with the same margin; its label is a statement about predictions with at least that margin.
"""

from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline

from margrave._plotting import BLACK, BLUE, VERMILION, pyplot
from margrave._typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OWNER = "CertaintyDisplay"


class Certainty(Protocol):
    """Statements about predictions, one entry per prediction, as in `margrave.mam`."""

    @property
    def margins(self) -> Floats:
        """Margins of the predictions."""

    @property
    def bound(self) -> Floats:
        """Upper bounds on the probability of an error with at least that margin."""

    @property
    def levels(self) -> Floats | None:
        """Margins at which errors on held-out samples are counted."""

    @property
    def held_out_error(self) -> Floats | None:
        """Upper bounds on the error rate of the predictions with a margin of at least a level."""


@runtime_checkable
class CertaintyClassifier(Protocol):
    """A classifier that states how certain its predictions are."""

    def certainty(
        self, X: Any, delta: float, *, held_out: tuple[Any, ArrayLike] | None = None
    ) -> Certainty:
        """Return statements about the predictions of samples."""


class CertaintyDisplay:
    """The scores of a classifier over two features, with lines of equal certainty.

    Make it with `from_estimator`.

    Parameters
    ----------
    grid : tuple of ndarray, each of shape (n_rows, n_columns)
        The two features at the points of the surface.
    scores : ndarray of shape (n_rows, n_columns)
        Scores of these points, above 0 for the second class.
    labels : dict of float to str
        The label of the line of each margin, on both sides of 0.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of the axes.
    surface_, border_, lines_ : matplotlib QuadContourSet
        The coloured surface, the decision boundary, and the lines of certainty (None if no line is
        within the surface).

    Examples
    --------
    >>> from margrave.compare import CertaintyDisplay
    >>> from margrave.datasets import load
    >>> from margrave.mam import MAMClassifier
    >>> train, test = load("ripley_train"), load("ripley_test")
    >>> model = MAMClassifier().fit(train.data, train.target)
    >>> display = CertaintyDisplay.from_estimator(
    ...     model, train.data, train.target, held_out=(test.data, test.target), n_lines=2
    ... )
    >>> list(display.labels.values())
    ['≤ 5.0%', '≤ 5.7%']
    """

    def __init__(
        self, grid: tuple[Floats, Floats], scores: Floats, labels: dict[float, str]
    ) -> None:
        self.grid = grid
        self.scores = np.asarray(scores, dtype=float)
        self.labels = dict(labels)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        held_out: tuple[Any, ArrayLike] | None = None,
        delta: float = 0.05,
        n_lines: int = 4,
        resolution: int = 120,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot a fitted classifier of two classes and two features.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier with `decision_function`. If it has `certainty`, as
            `margrave.mam.MAMClassifier`, or is a pipeline that ends in one, the label of a line is
            an upper bound on the error rate of the predictions beyond it, counted on `held_out`;
            without `held_out`, the bound of Pelckmans et al. (2008) on errors with such a margin,
            or "no guarantee". For other classifiers the labels are margins, up to 1; for a support
            vector machine `margrave.mam.SVMCertainty` has the bounds.
        X : array-like of shape (n_samples, 2)
            Samples that the surface covers.
        y : array-like of shape (n_samples,), default=None
            Their labels; if not None, the samples are plotted as dots.
        held_out : tuple (X, y), optional
            Samples that no step of the fit has used.
        delta : float, default=0.05
            The probability with which the statements may fail.
        n_lines : int, default=4
            Number of lines on each side of the decision boundary.
        resolution : int, default=120
            Number of points along each feature.
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.

        Returns
        -------
        display : CertaintyDisplay
            The display, with its plot.
        """
        pyplot(_OWNER)
        rows = np.asarray(X, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != 2:
            raise ValueError(f"{_OWNER} needs X with two features; got shape {rows.shape}.")
        names = list(getattr(X, "columns", ["first feature", "second feature"]))
        low, high = rows.min(axis=0), rows.max(axis=0)
        pad = 0.08 * np.where(high > low, high - low, 1.0)
        first, second = (np.linspace(low[j] - pad[j], high[j] + pad[j], resolution) for j in (0, 1))
        grid = np.meshgrid(first, second)
        points: Any = np.column_stack([grid[0].ravel(), grid[1].ravel()])
        if hasattr(X, "columns"):
            points = type(X)(points, columns=X.columns)
        scores = np.asarray(estimator.decision_function(points), dtype=float)
        if scores.ndim != 1:
            raise ValueError(f"{_OWNER} needs a classifier of two classes; got {scores.shape[1]}.")
        if not isinstance(n_lines, int | np.integer) or n_lines < 1:
            raise ValueError(f"{_OWNER} needs n_lines to be at least 1; got {n_lines!r}.")
        certainty = _compute_certainty(estimator, points, delta, held_out)
        if certainty is None:
            labels = {rho: f"{rho:.3g}" for rho in np.linspace(0, 1, n_lines + 1)[1:].tolist()}
        else:
            labels = _label_lines(certainty, n_lines)
        display = cls((grid[0], grid[1]), scores.reshape(grid[0].shape), labels).plot(ax)
        display.ax_.set(xlabel=names[0], ylabel=names[1])
        if y is not None:
            display._plot_samples(rows, np.asarray(y))
        return display

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Plot the surface and the lines.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.

        Returns
        -------
        self : CertaintyDisplay
            With `ax_`, `figure_`, `surface_`, `border_` and `lines_`.
        """
        plt = pyplot(_OWNER)
        self.ax_ = plt.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        largest = max(max(self.labels, default=0.0), 1e-12)
        shades = np.linspace(-largest, largest, 21)
        self.surface_ = self.ax_.contourf(
            *self.grid, self.scores, shades, cmap="RdBu", alpha=0.45, extend="both"
        )
        self.border_ = self.ax_.contour(
            *self.grid, self.scores, [0.0], colors=[BLACK], linewidths=1.6
        )
        both = {sign * rho: text for rho, text in self.labels.items() for sign in (-1, 1)}
        inside = [rho for rho in sorted(both) if self.scores.min() < rho < self.scores.max()]
        self.lines_ = None
        if inside:
            self.lines_ = self.ax_.contour(
                *self.grid, self.scores, inside, colors=[BLACK], linewidths=0.7, linestyles="--"
            )
            self.ax_.clabel(self.lines_, fmt={rho: both[rho] for rho in inside}, fontsize=8)
        return self

    def _plot_samples(self, rows: Floats, y: NDArray[Any]) -> None:
        """Plot the samples, in the colours of their classes."""
        for label, colour, mark in zip(np.unique(y), (VERMILION, BLUE), "os", strict=False):
            own = rows[y == label]
            self.ax_.scatter(own[:, 0], own[:, 1], s=14, c=colour, marker=mark, label=str(label))
        self.ax_.legend(loc="best", fontsize=8)


def _compute_certainty(
    estimator: Any, points: Any, delta: float, held_out: tuple[Any, ArrayLike] | None
) -> Certainty | None:
    """Return the certainty of an estimator, or of the last step of a pipeline, if it has one."""
    if isinstance(estimator, Pipeline) and isinstance(estimator[-1], CertaintyClassifier):
        transform = estimator[:-1].transform
        if held_out is not None:
            held_out = transform(held_out[0]), held_out[1]
        return estimator[-1].certainty(transform(points), delta, held_out=held_out)
    if isinstance(estimator, CertaintyClassifier):
        return estimator.certainty(points, delta, held_out=held_out)
    if held_out is not None:
        raise ValueError(
            f"{_OWNER} needs a classifier with `certainty` for held_out; "
            f"got {type(estimator).__name__}."
        )
    return None


def _label_lines(certainty: Certainty, n_lines: int) -> dict[float, str]:
    """Choose the margins of the lines, and label them with bounds on the error."""
    if certainty.levels is None or certainty.held_out_error is None:
        # The bound decreases with the margin, so the bound at a smaller margin holds at the line.
        order = np.argsort(certainty.margins)
        margins = certainty.margins[order]
        lines = margins[-1] * np.arange(1, n_lines + 1) / (n_lines + 1)
        at = np.maximum(np.searchsorted(margins, lines) - 1, 0)
        bounds = dict(zip(margins[at].tolist(), certainty.bound[order[at]], strict=True))
        return {rho: _format_bound(bound) for rho, bound in bounds.items() if rho > 0}
    levels, first = np.unique(certainty.levels, return_index=True)
    levels, first = levels[levels > 0], first[levels > 0]
    at = np.unique(np.linspace(0, len(levels) - 1, n_lines + 2).round().astype(int)[1:-1])
    return {float(levels[k]): _format_bound(certainty.held_out_error[first[k]]) for k in at}


def _format_bound(bound: float) -> str:
    return "no guarantee" if bound >= 1 else f"≤ {bound:.1%}"
