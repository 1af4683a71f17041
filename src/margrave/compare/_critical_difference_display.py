"""The critical difference diagram: Demšar (2006), figure 1."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from margrave._plotting import VERMILION, pyplot
from margrave._typing import Floats
from margrave.compare._friedman_holm import FriedmanHolm, friedman_holm

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TESTS = ("nemenyi", "holm")

# Heights in lines of text, downwards from the axis of ranks.
_TOP, _RULER, _FIRST_BAR, _BAR_STEP = -3.6, -2.6, 0.55, 0.55
_ROW_INCHES = 0.25
_BAR: dict[str, Any] = {"color": "black", "linewidth": 4, "solid_capstyle": "butt", "zorder": 3}
_SMALL: dict[str, Any] = {"fontsize": "small", "color": "0.3"}


class CriticalDifferenceDisplay:
    """Mean ranks of methods on an axis, with bars that join methods without a difference.

    The best method is on the left. With ``test="nemenyi"`` all pairs are compared: a bar joins
    methods whose mean ranks differ by less than the critical difference, which is shown above the
    axis. With ``test="holm"`` one bar joins the control and the methods that do not differ from it;
    the control is coloured. If Friedman's test finds no difference, one bar joins all methods. Make
    the display with `from_results`, or from a result with the constructor and `plot` [1]_.

    Parameters
    ----------
    result : FriedmanHolm
        The result of `friedman_holm`.
    test : {"nemenyi", "holm"}, default="nemenyi"
        Compare all pairs, or each method with the control.

    Attributes
    ----------
    groups : list of tuple of str
        The methods under each bar, best first.
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of the axes.
    bars_ : list of matplotlib Line2D
        A bar for each group.
    labels_ : dict of str to matplotlib Text
        The label of each method.

    References
    ----------
    .. [1] J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of
       Machine Learning Research 7, 2006, figure 1.

    Examples
    --------
    >>> from margrave.compare import CriticalDifferenceDisplay
    >>> display = CriticalDifferenceDisplay.from_results(
    ...     {"a": [9, 8, 9, 7, 9, 8], "b": [8, 7, 8, 6, 8, 9], "c": [5, 6, 5, 5, 4, 5]},
    ... )
    >>> display.groups
    [('a', 'b'), ('b', 'c')]
    """

    def __init__(self, result: FriedmanHolm, *, test: str = "nemenyi") -> None:
        if test not in TESTS:
            raise ValueError(
                "CriticalDifferenceDisplay needs test to be one of "
                f"{', '.join(map(repr, TESTS))}; got {test!r}."
            )
        self.result = result
        self.test = test

    @classmethod
    def from_results(
        cls,
        results: Any,
        *,
        control: str | None = None,
        methods: Sequence[str] | None = None,
        larger_is_better: bool = True,
        alpha: float = 0.05,
        test: str = "nemenyi",
        ax: "Axes | None" = None,
    ) -> Self:
        """Compare methods with `friedman_holm`, and plot the result.

        Parameters
        ----------
        results : array-like of shape (n_rows, n_methods), data frame, or mapping
            As in `friedman_holm`.
        control : str, default=None
            As in `friedman_holm`; used by ``test="holm"``.
        methods : sequence of str, default=None
            As in `friedman_holm`.
        larger_is_better : bool, default=True
            As in `friedman_holm`.
        alpha : float, default=0.05
            As in `friedman_holm`.
        test : {"nemenyi", "holm"}, default="nemenyi"
            Compare all pairs, or each method with the control.
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure, as high as necessary, if None.

        Returns
        -------
        display : CriticalDifferenceDisplay
            The display, with its plot.
        """
        result = friedman_holm(
            results,
            control=control,
            methods=methods,
            larger_is_better=larger_is_better,
            alpha=alpha,
        )
        return cls(result, test=test).plot(ax)

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """The methods under each bar, best first."""
        order, ranks = self._order()
        names = [self.result.methods[i] for i in order]
        return [tuple(names[first : last + 1]) for first, last in self._runs(order, ranks)]

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Plot the diagram.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure, as high as necessary, if None.

        Returns
        -------
        self : CriticalDifferenceDisplay
            With `ax_`, `figure_`, `bars_` and `labels_`.
        """
        order, ranks = self._order()
        runs = self._runs(order, ranks)
        heights = _FIRST_BAR + _BAR_STEP * np.arange(len(runs))
        first_label = _FIRST_BAR + _BAR_STEP * len(runs) + 0.6
        bottom = first_label + (len(ranks) + 1) // 2 + 1
        if ax is None:
            inches = (7.2, _ROW_INCHES * (bottom - _TOP))
            plt = pyplot("CriticalDifferenceDisplay")
            _, ax = plt.subplots(figsize=inches, layout="constrained")
        self._draw_axis(ax, bottom)
        self._draw_labels(ax, order, ranks, first_label)
        overhang = 0.007 * (len(ranks) - 1)  # beyond the lines of the methods
        self.bars_ = [
            ax.plot([ranks[first] - overhang, ranks[last] + overhang], [height, height], **_BAR)[0]
            for height, (first, last) in zip(heights, runs, strict=True)
        ]
        self._draw_key(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _order(self) -> tuple[list[int], Floats]:
        """Return the positions of the methods, best first, and their mean ranks."""
        order = np.argsort(self.result.mean_ranks, kind="stable")
        return order.tolist(), self.result.mean_ranks[order]

    def _runs(self, order: list[int], ranks: Floats) -> list[tuple[int, int]]:
        """Return the first and last method of each maximal group without a difference."""
        if not self.result.differ:
            return [(0, len(ranks) - 1)]
        if self.test == "holm":
            not_different = np.flatnonzero(~self.result.rejected[order])
            runs = [(int(not_different[0]), int(not_different[-1]))]
        else:
            ends = np.searchsorted(ranks, ranks + self.result.critical_difference, "left") - 1
            runs = [
                (first, int(last))
                for first, last in enumerate(ends)
                if first == 0 or last > ends[first - 1]
            ]
        return [(first, last) for first, last in runs if last > first]

    def _draw_axis(self, ax: "Axes", bottom: float) -> None:
        result, k = self.result, len(self.result.methods)
        ax.set(xlim=(1, k), ylim=(bottom, _TOP), xticks=range(1, k + 1), yticks=[])
        ax.spines[["left", "right", "bottom"]].set_visible(False)
        ax.spines["top"].set_position(("data", 0))
        ax.xaxis.set_ticks_position("top")
        ax.xaxis.set_label_position("top")
        ax.set_xlabel("mean rank (1 is best)")
        found = "differences" if result.differ else "no difference"
        p = f"= {result.p_value:.2g}" if result.p_value >= 0.0001 else "< 0.0001"
        text = f"Friedman's test over {result.n_rows} rows: p {p}, {found} at α = {result.alpha:g}"
        ax.text((1 + k) / 2, bottom - 0.5, text, ha="center", va="center", **_SMALL)

    def _draw_labels(self, ax: "Axes", order: list[int], ranks: Floats, first: float) -> None:
        """Label the better half on the left and the worse half on the right, extremes on top."""
        k = len(ranks)
        half = (k + 1) // 2
        self.labels_ = {}
        for i, (position, rank) in enumerate(zip(order, ranks, strict=True)):
            name, left = self.result.methods[position], i < half
            height = first + (i if left else k - 1 - i)
            side = 1 - 0.02 * (k - 1) if left else k + 0.02 * (k - 1)
            is_control = self.test == "holm" and name == self.result.control
            colour = VERMILION if is_control else "0.4"
            corners = [rank, rank, side], [0, height, height]
            ax.plot(*corners, color=colour, linewidth=1.6 if is_control else 1, clip_on=False)
            self.labels_[name] = ax.annotate(
                f"{name}  {rank:.2f}" if left else f"{rank:.2f}  {name}",
                (side, height),
                xytext=(-4 if left else 4, 0),
                textcoords="offset points",
                ha="right" if left else "left",
                va="center",
                color=VERMILION if is_control else "black",
                annotation_clip=False,
            )

    def _draw_key(self, ax: "Axes") -> None:
        """Draw the critical difference, or explain the bar, above the axis."""
        result, axis_width = self.result, len(self.result.methods) - 1
        width = result.critical_difference
        text, height = f"critical difference {width:.2f}", _RULER
        if self.test == "holm":
            text = f"bar: not different from {result.control} (Holm's procedure)"
        elif width > axis_width:
            text += ", wider than the axis"
        else:
            ax.plot([1, 1 + width], [_RULER, _RULER], "k|-", markersize=8, clip_on=False)
            height -= 0.25
        ax.text(1, height, text, ha="left", va="bottom", **_SMALL)
