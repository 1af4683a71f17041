"""The surface of a classifier over two features, with lines of equal certainty.

"A Risk Minimization Principle for a Class of Parzen Estimators" (Pelckmans et al.), figure 1: the
maximal-average-margin classifier and a support vector machine on Ripley's data, with contour lines
of how certain a prediction is. A line joins the places with one margin; its label is what is known
of predictions that are at least as sure.
"""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave._plotting import BLACK, BLUE, VERMILION, pyplot
from margrave._typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OWNER = "CertaintyDisplay"


class CertaintyDisplay:
    """A classifier's scores over two features, with lines that say how certain they are.

    Make it with `from_estimator`.

    Parameters
    ----------
    grid : tuple of ndarray, each of shape (n_rows, n_columns)
        The two features at the places of the surface.
    scores : ndarray of shape (n_rows, n_columns)
        Scores there, above 0 for the second class.
    labels : dict of float to str
        What to write on the line of each margin, drawn on both sides of 0.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure around it.
    surface_, border_, lines_ : matplotlib QuadContourSet
        The coloured surface, the line where the decision changes, and the lines of certainty (None
        if all are outside).

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
        """Draw a trained classifier of two classes and two features.

        Parameters
        ----------
        estimator : classifier
            A trained classifier with `decision_function`. If it has `certainty`, as
            `margrave.mam.MAMClassifier`, or is a pipeline that ends in one, a line says at most
            which share of the predictions inside it is wrong, counted on `held_out`; without that,
            the document's bound on mistakes with such a margin, or "no guarantee". If it has not,
            lines say the margin, up to 1.
        X : array-like of shape (n_samples, 2)
            Samples that the surface is drawn around.
        y : array-like of shape (n_samples,), default=None
            Their labels; if given, samples are drawn as dots.
        held_out : tuple (X, y), optional
            Samples that no step has seen.
        delta : float, default=0.05
            How often the lines may be wrong.
        n_lines : int, default=4
            Lines on each side of the border.
        resolution : int, default=120
            Places along each feature.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        display : CertaintyDisplay
            The display, drawn.
        """
        pyplot(_OWNER)
        rows = np.asarray(X, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != 2:
            raise ValueError(f"{_OWNER} needs X with two features; got shape {rows.shape}.")
        names = list(getattr(X, "columns", ["first feature", "second feature"]))
        low, high = rows.min(axis=0), rows.max(axis=0)
        room = 0.08 * np.where(high > low, high - low, 1.0)
        first, second = (
            np.linspace(low[j] - room[j], high[j] + room[j], resolution) for j in (0, 1)
        )
        grid = np.meshgrid(first, second)
        places: Any = np.column_stack([grid[0].ravel(), grid[1].ravel()])
        if hasattr(X, "columns"):
            places = type(X)(places, columns=X.columns)
        scores = np.asarray(estimator.decision_function(places), dtype=float)
        if scores.ndim != 1:
            raise ValueError(f"{_OWNER} needs a classifier of two classes; got {scores.shape[1]}.")
        if not isinstance(n_lines, int | np.integer) or n_lines < 1:
            raise ValueError(f"{_OWNER} needs n_lines to be at least 1; got {n_lines!r}.")
        found = _certainty(estimator, places, delta, held_out)
        if found is not None:
            labels = _said(found, n_lines)
        else:
            labels = {rho: f"{rho:.3g}" for rho in np.linspace(0, 1, n_lines + 1)[1:].tolist()}
        display = cls((grid[0], grid[1]), scores.reshape(grid[0].shape), labels).plot(ax)
        display.ax_.set(xlabel=names[0], ylabel=names[1])
        if y is not None:
            display._dots(rows, np.asarray(y))
        return display

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        display : CertaintyDisplay
            Itself.
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

    def _dots(self, rows: Floats, y: NDArray[Any]) -> None:
        """Draw the samples, in the colours of their sides."""
        for label, colour, mark in zip(np.unique(y), (VERMILION, BLUE), "os", strict=False):
            own = rows[y == label]
            self.ax_.scatter(own[:, 0], own[:, 1], s=14, c=colour, marker=mark, label=str(label))
        self.ax_.legend(loc="best", fontsize=8)


def _certainty(
    estimator: Any, places: Any, delta: float, held_out: tuple[Any, ArrayLike] | None
) -> Any:
    """What an estimator, or the last step of a pipeline, says of its certainty; None if nothing."""
    if hasattr(estimator, "certainty"):
        return estimator.certainty(places, delta, held_out=held_out)
    if hasattr(estimator, "steps") and hasattr(estimator.steps[-1][1], "certainty"):
        before, last = estimator[:-1], estimator.steps[-1][1]
        if held_out is not None:
            held_out = before.transform(held_out[0]), held_out[1]
        return last.certainty(before.transform(places), delta, held_out=held_out)
    if held_out is not None:
        raise ValueError(
            f"{_OWNER} needs a classifier with `certainty` for held_out; "
            f"got {type(estimator).__name__}."
        )
    return None


def _said(certainty: Any, n_lines: int) -> dict[float, str]:
    """Margins to draw lines at, with what is known of predictions that have at least these."""
    margins = certainty.margins
    if certainty.levels is None:
        # The bound falls with the margin: at one that is not above the line's it holds there too.
        ends = np.sort(margins)
        places = np.searchsorted(ends, ends[-1] * np.arange(1, n_lines + 1) / (n_lines + 1)) - 1
        known = {float(ends[place]): place for place in np.maximum(places, 0)}
        order = np.argsort(margins)
        return {
            rho: _share(certainty.bound[order[place]]) for rho, place in known.items() if rho > 0
        }
    levels, first = np.unique(certainty.levels, return_index=True)
    above = levels > 0
    levels, first = levels[above], first[above]
    some = np.unique(np.linspace(0, len(levels) - 1, n_lines + 2).round().astype(int)[1:-1])
    return {float(levels[k]): _share(certainty.held_out_error[first[k]]) for k in some}


def _share(value: float) -> str:
    return "no guarantee" if value >= 1 else f"≤ {value:.1%}"
