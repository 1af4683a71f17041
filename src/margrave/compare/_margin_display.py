"""The cumulative distribution of the rank margins of several methods, as curves.

"A Linear Combination of Classifiers via Rank Margin Maximization" (Marrocco et al.), figures 1 and
2: over all pairs of a positive and a negative sample, the share with a margin s_i − s_k of at most
m, against m, with a logarithmic share. The counts are those of `margrave.pairs`.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._indexing import select_columns
from margrave._plotting import COLOURS, pyplot
from margrave._typing import Floats
from margrave._validation import find_attribute, fitted_classes, name_members
from margrave.pairs import CrucialPairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RESPONSES = ("decision_function", "predict_proba")

# Seven colours and four dashes: 28 curves before a pair comes back.
_DASHES = ("-", "--", "-.", (0, (1, 1)))


class RankMarginDisplay:
    """Distributions of the rank margins of several methods, on a logarithmic axis.

    The height of a curve at margin m is the share of pairs of a positive and a negative sample
    whose margin is at most m: low and to the right is good. The dot at its left end is the smallest
    margin, the *rank margin*. Its height at 0 is the share of pairs in the wrong order or tied.
    Make the display with `from_predictions` or `from_estimator`, or from curves at hand with the
    constructor and `plot`.

    Parameters
    ----------
    margins : mapping of str to array-like
        For each method, the margins at which the distribution is known, in rising order; the
        smallest one first.
    shares : mapping of str to array-like
        For each method, the shares of pairs with a margin of at most those.
    aucs : mapping of str to float
        For each method, the area under the ROC curve.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure around it.
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
        shares: Mapping[str, ArrayLike],
        *,
        aucs: Mapping[str, float],
    ) -> None:
        self.margins = {name: np.asarray(given, dtype=float) for name, given in margins.items()}
        self.shares = {name: np.asarray(given, dtype=float) for name, given in shares.items()}
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
        """Draw the curves of scores at hand.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels, of exactly two kinds unless `positive` is given.
        scores : mapping of str to array-like of shape (n_samples,), or one array-like
            For each method, a score per sample; larger means more positive.
        positive : label, default=None
            The positive class; the others are negative. By default the larger of two labels.
        normalise : bool, default=True
            Whether to measure margins as if each method's scores were scaled and shifted onto
            [-1, 1] by their own smallest and largest, so that margins are within [-2, 2] and
            methods can be compared. False leaves them in the units of the scores.
        n_points : int, default=200
            Number of margins, evenly spaced, at which each curve is computed; each is exact. More
            cost more, where there are many samples.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        display : RankMarginDisplay
            The display, drawn.
        """
        pyplot("RankMarginDisplay")  # before the work, which may be long
        if not isinstance(n_points, int | np.integer) or n_points < 2:
            raise _error("n_points to be an integer of at least 2", repr(n_points))
        named = scores if isinstance(scores, Mapping) else {"scores": scores}
        if not named:
            raise _error("scores of at least one method", "none")
        _, chosen = _positives(y, positive)
        margins, shares, aucs = {}, {}, {}
        for name, given in named.items():
            values = _checked(str(name), given, len(chosen))
            pairs = CrucialPairs(values[chosen], values[~chosen])
            grid = _grid(pairs, n_points)
            # Margins are differences: a shift is nothing to them, and scaling the grid instead of
            # the scores makes no ties.
            scale = 2 / (np.ptp(values) or 2.0) if normalise else 1.0
            margins[str(name)], shares[str(name)] = grid * scale, pairs.cdf(grid)
            aucs[str(name)] = pairs.auc
        return cls(margins, shares, aucs=aucs).plot(ax)

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
        """Ask trained classifiers for scores, and draw their curves.

        Parameters
        ----------
        estimator : classifier, mapping of str to classifier, or list of them or of (name, it)
            Trained. Those without a name are called by their type.
        X : array, sparse matrix or data frame
            The samples.
        y : array-like of shape (n_samples,)
            Their labels, of exactly two kinds unless `positive` is given.
        positive : label, default=None
            As in `from_predictions`.
        response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
            What to ask for: "auto" is the decision function where there is one, else the
            probability of the positive class.
        normalise : bool, default=True
            As in `from_predictions`.
        n_points : int, default=200
            As in `from_predictions`.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        display : RankMarginDisplay
            The display, drawn.
        """
        pyplot("RankMarginDisplay")
        if response_method not in ("auto", *RESPONSES):
            allowed = ", ".join(map(repr, ("auto", *RESPONSES)))
            raise _error(f"response_method to be one of {allowed}", repr(response_method))
        alone = hasattr(estimator, "predict")
        named = name_members([estimator] if alone else estimator, "RankMarginDisplay")
        label, _ = _positives(y, positive)
        methods = RESPONSES if response_method == "auto" else (response_method,)
        scores = {name: _response(name, member, X, label, methods) for name, member in named}
        return cls.from_predictions(
            y, scores, positive=label, normalise=normalise, n_points=n_points, ax=ax
        )

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        self : RankMarginDisplay
            With `ax_`, `figure_` and `lines_`.
        """
        if not self.margins or not self.margins.keys() == self.shares.keys() == self.aucs.keys():
            names = " / ".join(str(list(part)) for part in (self.margins, self.shares, self.aucs))
            raise _error("margins, shares and aucs for the same methods", names)
        if ax is None:
            _, ax = pyplot("RankMarginDisplay").subplots(figsize=(7.2, 4), layout="constrained")
        ax.axvline(0, color="0.6", linewidth=0.8, zorder=0)
        self.lines_ = {}
        for i, name in enumerate(self.margins):
            (self.lines_[name],) = ax.plot(
                self.margins[name],
                self.shares[name],
                drawstyle="steps-post",  # between two points the share has not yet grown
                color=COLOURS[i % len(COLOURS)],
                linestyle=_DASHES[i % len(_DASHES)],
                marker="o",
                markersize=4,
                markevery=[0],
                label=f"{name} (AUC {self.aucs[name]:.3f})",
            )
        ax.set(yscale="log", xlabel="rank margin", ylabel="share of pairs with at most that margin")
        smallest = min(float(shares[shares > 0].min()) for shares in self.shares.values())
        ax.set_ylim(min(smallest / 1.5, 0.5), 1.3)
        ax.spines[["top", "right"]].set_visible(False)
        # Beside the curves, never over them, best first.
        best_first = sorted(self.lines_, key=lambda name: -self.aucs[name])
        handles = [self.lines_[name] for name in best_first]
        ax.legend(handles=handles, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _grid(pairs: CrucialPairs, n_points: int) -> Floats:
    """Margins from the smallest to the largest, with 0 if it is between them."""
    smallest, largest = pairs.smallest_margin, pairs.largest_margin
    grid = np.linspace(smallest, largest, n_points)
    return np.unique(np.append(grid, 0.0) if smallest < 0 < largest else grid)


def _positives(y: ArrayLike, positive: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Return the positive label, and which samples have it."""
    labels = _labels.natural(y)
    if labels.ndim != 1:
        raise _error("y with one label for each sample", f"shape {labels.shape}")
    if _labels.has_missing(labels):
        raise _error("y with a label for each sample", "missing ones")
    kinds = np.unique(labels)
    if len(kinds) < 2 or (positive is None and len(kinds) > 2):
        rule = "y with two labels" if len(kinds) < 2 else "y with two labels, or positive="
        raise _error(rule, f"{len(kinds)}: {_labels.shown(kinds)}")
    if positive is None:
        positive = _labels.plain(kinds[1])
    chosen: NDArray[np.bool_] = labels == positive
    if not np.any(chosen):
        raise _error(f"positive to be one of {_labels.shown(kinds)}", repr(positive))
    return positive, chosen


def _checked(name: str, scores: ArrayLike, n: int) -> Floats:
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (n,):
        raise _error(f"one score for each of the {n} samples", f"shape {values.shape} for {name!r}")
    if not np.isfinite(values).all():
        raise _error("finite scores", f"NaN or infinity for {name!r}")
    return values


def _response(name: str, member: Any, X: Any, label: Any, methods: Sequence[str]) -> Floats:
    """How far a classifier leans to a label, in its own units."""
    classes = fitted_classes(name, member).tolist()
    if label not in classes:
        raise _error(f"classifiers that know the class {label!r}", f"{name!r}, which does not")
    method = next((method for method in methods if hasattr(member, method)), None)
    if method is None:
        raise _error(f"classifiers with {' or '.join(methods)}", f"{name!r}, which has none")
    values = np.asarray(getattr(member, method)(select_columns(X, None, name, member)))
    place = classes.index(label)
    if values.ndim == 1 and len(classes) == 2:
        return values if place == 1 else -values
    # Three classes also have three pairs: the number of columns does not tell.
    pairwise = find_attribute(member, "decision_function_shape") == "ovo"
    by_pairs = method == "decision_function" and len(classes) > 2 and pairwise
    if by_pairs or values.ndim != 2 or values.shape[1] != len(classes):
        got = "columns for pairs of them" if by_pairs else f"shape {values.shape}"
        rule = f"a {method} with a column for each of {len(classes)} classes"
        raise _error(rule, f"{got} from {name!r}")
    return values[:, place]


def _error(rule: str, got: str) -> ValueError:
    return ValueError(f"RankMarginDisplay needs {rule}; got {got}.")
