"""Cumulative distributions of the rank margins of several methods.

Marrocco et al. (2010), figures 1 and 2: the fraction of all crucial pairs (i, k) with a margin
s_i − s_k of at most m, against m, on a logarithmic axis. `margrave.pairs` counts the pairs.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from margrave import _labels
from margrave._indexing import select_columns
from margrave._plotting import COLOURS, pyplot
from margrave._typing import Flags, Floats
from margrave._validation import find_attribute, fitted_classes, name_members
from margrave.pairs import CrucialPairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RESPONSES = ("decision_function", "predict_proba")

# Seven colours and four dashes: 28 different curves.
_DASHES = ("-", "--", "-.", (0, (1, 1)))


class RankMarginDisplay:
    """Distributions of the rank margins of several methods, on a logarithmic axis.

    The height of a curve at margin m is the fraction of the pairs of a positive and a negative
    sample with a margin of at most m: low and to the right is good. The dot at its left end is the
    smallest margin, the *rank margin*. Its height at 0 is the fraction of the pairs in the wrong
    order or tied. Make the display with `from_predictions` or `from_estimator`, or from curves with
    the constructor and `plot`.

    Parameters
    ----------
    margins : mapping of str to array-like
        For each method, the margins of the points of its curve, in increasing order.
    fractions : mapping of str to array-like
        For each method and margin, the fraction of the pairs with at most that margin.
    aucs : mapping of str to float
        For each method, the area under the ROC curve.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of the axes.
    lines_ : dict of str to matplotlib Line2D
        The curve of each method.

    Examples
    --------
    >>> from margrave.compare import RankMarginDisplay
    >>> y = ["ham", "ham", "spam", "spam"]
    >>> display = RankMarginDisplay.from_predictions(
    ...     y, {"first": [0.1, 0.4, 0.4, 0.9], "second": [1, 2, 4, 5]}
    ... )
    >>> display.aucs
    {'first': 0.875, 'second': 1.0}
    >>> float(display.margins["second"][0])
    1.0
    """

    def __init__(
        self,
        margins: Mapping[str, ArrayLike],
        fractions: Mapping[str, ArrayLike],
        *,
        aucs: Mapping[str, float],
    ) -> None:
        self.margins = {name: np.asarray(curve, dtype=float) for name, curve in margins.items()}
        self.fractions = {name: np.asarray(curve, dtype=float) for name, curve in fractions.items()}
        self.aucs = dict(aucs)

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        scores: Mapping[str, ArrayLike] | ArrayLike,
        *,
        positive: Any = None,
        normalise: bool = True,
        n_points: int = 200,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot the curves of scores.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels; exactly two different ones unless `positive` is set.
        scores : mapping of str to array-like of shape (n_samples,), or one array-like
            For each method, a score per sample; larger means more positive.
        positive : label, default=None
            The positive class; the others are negative. By default the larger of two labels.
        normalise : bool, default=True
            Whether to scale each method's scores to the interval [-1, 1], so that the margins are
            in [-2, 2] and comparable. If False, margins are in the units of the scores.
        n_points : int, default=200
            Number of evenly spaced margins at which each curve is computed exactly. The time is
            proportional to it.
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.

        Returns
        -------
        display : RankMarginDisplay
            The display, with its plot.
        """
        pyplot("RankMarginDisplay")  # raises before a long computation
        if not isinstance(n_points, int | np.integer) or n_points < 2:
            raise _error("n_points to be an integer of at least 2", repr(n_points))
        named = scores if isinstance(scores, Mapping) else {"scores": scores}
        if not named:
            raise _error("scores of at least one method", "none")
        _, is_positive = _find_positives(y, positive)
        margins, fractions, aucs = {}, {}, {}
        for name, own_scores in named.items():
            values = _check_scores(str(name), own_scores, len(is_positive))
            pairs = CrucialPairs(values[is_positive], values[~is_positive])
            grid = _grid(pairs, n_points)
            # Shifts do not change margins. Scaling the grid instead of the scores makes no ties.
            scale = 2 / (np.ptp(values) or 2.0) if normalise else 1.0
            margins[str(name)], fractions[str(name)] = grid * scale, pairs.cdf(grid)
            aucs[str(name)] = pairs.auc
        return cls(margins, fractions, aucs=aucs).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        positive: Any = None,
        response_method: str = "auto",
        normalise: bool = True,
        n_points: int = 200,
        ax: "Axes | None" = None,
    ) -> Self:
        """Score samples with fitted classifiers, and plot the curves.

        Parameters
        ----------
        estimator : classifier, mapping of str to classifier, or list of them or of (name, it)
            Fitted classifiers. By default the names are their types.
        X : array, sparse matrix or data frame
            The samples.
        y : array-like of shape (n_samples,)
            Their labels; exactly two different ones unless `positive` is set.
        positive : label, default=None
            As in `from_predictions`.
        response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
            The method that scores the samples: "auto" is the decision function if there is one,
            else the probability of the positive class.
        normalise : bool, default=True
            As in `from_predictions`.
        n_points : int, default=200
            As in `from_predictions`.
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.

        Returns
        -------
        display : RankMarginDisplay
            The display, with its plot.
        """
        pyplot("RankMarginDisplay")
        if response_method not in ("auto", *RESPONSES):
            allowed = ", ".join(map(repr, ("auto", *RESPONSES)))
            raise _error(f"response_method to be one of {allowed}", repr(response_method))
        is_single = hasattr(estimator, "predict")
        named = name_members([estimator] if is_single else estimator, "RankMarginDisplay")
        label, _ = _find_positives(y, positive)
        methods = RESPONSES if response_method == "auto" else (response_method,)
        scores = {name: _score(name, member, X, label, methods) for name, member in named}
        return cls.from_predictions(
            y, scores, positive=label, normalise=normalise, n_points=n_points, ax=ax
        )

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Plot the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.

        Returns
        -------
        self : RankMarginDisplay
            With `ax_`, `figure_` and `lines_`.
        """
        curves = (self.margins, self.fractions, self.aucs)
        if not self.margins or not curves[0].keys() == curves[1].keys() == curves[2].keys():
            names = " / ".join(str(list(named)) for named in curves)
            raise _error("margins, fractions and aucs for the same methods", names)
        if ax is None:
            _, ax = pyplot("RankMarginDisplay").subplots(figsize=(7.2, 4), layout="constrained")
        ax.axvline(0, color="0.6", linewidth=0.8, zorder=0)
        self.lines_ = {}
        for i, name in enumerate(self.margins):
            (self.lines_[name],) = ax.plot(
                self.margins[name],
                self.fractions[name],
                drawstyle="steps-post",  # between two points the fraction is at least the left one
                color=COLOURS[i % len(COLOURS)],
                linestyle=_DASHES[i % len(_DASHES)],
                marker="o",
                markersize=4,
                markevery=[0],
                label=f"{name} (AUC {self.aucs[name]:.3f})",
            )
        ylabel = "fraction of pairs with at most that margin"
        ax.set(yscale="log", xlabel="rank margin", ylabel=ylabel)
        smallest = min(float(curve[curve > 0].min()) for curve in self.fractions.values())
        ax.set_ylim(min(smallest / 1.5, 0.5), 1.3)
        ax.spines[["top", "right"]].set_visible(False)
        # Beside the curves, best first.
        best_first = sorted(self.lines_, key=lambda name: -self.aucs[name])
        handles = [self.lines_[name] for name in best_first]
        ax.legend(handles=handles, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _grid(pairs: CrucialPairs, n_points: int) -> Floats:
    """Return margins from the smallest to the largest, with 0 if it is between them."""
    smallest, largest = pairs.rank_margin, pairs.largest_margin
    grid = np.linspace(smallest, largest, n_points)
    return np.unique(np.append(grid, 0.0) if smallest < 0 < largest else grid)


def _find_positives(y: ArrayLike, positive: Any) -> tuple[Any, Flags]:
    """Return the positive label, and which samples have it."""
    labels = _labels.natural(y)
    if labels.ndim != 1:
        raise _error("y with one label for each sample", f"shape {labels.shape}")
    if _labels.has_missing(labels):
        raise _error("y with a label for each sample", "missing labels")
    classes = np.unique(labels)
    if len(classes) < 2 or (positive is None and len(classes) > 2):
        rule = "y with two labels" if len(classes) < 2 else "y with two labels, or positive="
        raise _error(rule, f"{len(classes)}: {_labels.shown(classes)}")
    if positive is None:
        positive = _labels.plain(classes[1])
    is_positive: Flags = labels == positive
    if not np.any(is_positive):
        raise _error(f"positive to be one of {_labels.shown(classes)}", repr(positive))
    return positive, is_positive


def _check_scores(name: str, scores: ArrayLike, n: int) -> Floats:
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (n,):
        raise _error(f"one score for each of the {n} samples", f"shape {values.shape} for {name!r}")
    if not np.isfinite(values).all():
        raise _error("finite scores", f"NaN or infinity for {name!r}")
    return values


def _score(name: str, member: Any, X: Any, label: Any, methods: Sequence[str]) -> Floats:
    """Score samples for a label, in the units of the classifier."""
    classes = fitted_classes(name, member).tolist()
    if label not in classes:
        raise _error(f"classifiers fitted on the class {label!r}", f"{name!r}, which was not")
    method = next((method for method in methods if hasattr(member, method)), None)
    if method is None:
        raise _error(f"classifiers with {' or '.join(methods)}", f"{name!r}, which has none")
    values = np.asarray(getattr(member, method)(select_columns(X, None, name, member)))
    position = classes.index(label)
    if values.ndim == 1 and len(classes) == 2:
        return values if position == 1 else -values
    # One column per pair of classes; three classes have as many pairs.
    is_ovo = find_attribute(member, "decision_function_shape") == "ovo"
    by_pairs = method == "decision_function" and len(classes) > 2 and is_ovo
    if by_pairs or values.ndim != 2 or values.shape[1] != len(classes):
        got = "a column for each pair of classes" if by_pairs else f"shape {values.shape}"
        rule = f"a {method} with a column for each of {len(classes)} classes"
        raise _error(rule, f"{got} from {name!r}")
    return values[:, position]


def _error(rule: str, got: str) -> ValueError:
    return ValueError(f"RankMarginDisplay needs {rule}; got {got}.")
