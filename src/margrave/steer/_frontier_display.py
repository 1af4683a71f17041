"""Plots of a frontier: its curves, and a map of the winners over cost ratios and priors.

Kulkarni et al. (2016) draw trajectories in the plane of false positives and false negatives. The
map shows the imprecise environments of Marrocco et al. (2010).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from margrave._plotting import COLOURS, pyplot
from margrave._typing import Floats
from margrave.steer._frontier import Frontier, Winner

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Pairs = Sequence[tuple[float, float]]

_DASHES = ("-", (0, (5, 1.5)), "-.", (0, (1, 1)))
_MOST_NAMED = 8  # regions of the map
_OTHERS = "0.88"  # grey
_BESIDE: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1, 0.5)}  # never over curves


class FrontierDisplay:
    """Plot of the curves of a frontier.

    The height of a curve is the fewest false negatives for a number of false positives: low and to
    the left is good. The dashed line is the convex hull. Whatever the costs and priors are, one of
    its corners costs least; `plot_winners` shows which one. Make the display with
    :meth:`Frontier.plot` or `from_scores`, or with the constructor and `plot`.

    Parameters
    ----------
    frontier : Frontier
        The frontier to draw.
    points : sequence of (fp, fn), or mapping of str to (fp, fn), default=()
        Counts to mark, such as those of the classifier in use. The legend shows the names of a
        mapping.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure of the axes.
    lines_ : dict of str to matplotlib Line2D
        The line of each curve.
    hull_ : matplotlib Line2D
        The convex hull.
    points_ : list of matplotlib Line2D
        The marked points.
    trajectory_ : matplotlib Line2D or None
        The points of the trajectory.
    regions_ : list of (Winner, matplotlib collection)
        The regions of the map, after `plot_winners`.

    Examples
    --------
    >>> from margrave.steer import FrontierDisplay
    >>> scores = {"sharp": [1, 2, 3, 7, 4, 8, 9, 10], "even": [1, 2, 3, 4, 2, 3, 5, 6]}
    >>> display = FrontierDisplay.from_scores(scores, ["ham"] * 4 + ["spam"] * 4)
    >>> display.ax_.get_xlabel()
    'false positives (of 4 ham)'
    >>> list(display.lines_)
    ['sharp', 'even']
    """

    def __init__(
        self, frontier: Frontier, points: Pairs | Mapping[str, tuple[float, float]] = ()
    ) -> None:
        self.frontier = frontier
        self.points = points

    @classmethod
    def from_scores(
        cls,
        scores: Mapping[str, ArrayLike],
        y: ArrayLike,
        positive: Any = None,
        ax: "Axes | None" = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curves of several scores.

        Parameters
        ----------
        scores : mapping of str to array-like of shape (n_samples,)
            For each curve, a score per sample; larger means more positive.
        y : array-like of shape (n_samples,)
            Labels of two classes; of more only with `positive`.
        positive : label, default=None
            The positive class; the others are negative. By default the larger of two labels.
        ax : matplotlib Axes, default=None
            The axes to draw on; those of a new figure if None.
        **kwargs : dict
            Passed to `from_frontier`.

        Returns
        -------
        display : FrontierDisplay
            The display, drawn.
        """
        return cls.from_frontier(Frontier.of(scores, y, positive), ax, **kwargs)

    @classmethod
    def from_frontier(
        cls,
        frontier: Frontier,
        ax: "Axes | None" = None,
        *,
        points: Pairs | Mapping[str, tuple[float, float]] = (),
        **kwargs: Any,
    ) -> Self:
        """Draw the curves of a frontier.

        Parameters
        ----------
        frontier : Frontier
            The frontier to draw.
        ax : matplotlib Axes, default=None
            The axes to draw on; those of a new figure if None.
        points : sequence of (fp, fn), or mapping of str to (fp, fn), default=()
            Counts to mark.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : FrontierDisplay
            The display, drawn.
        """
        return cls(frontier, points).plot(ax, **kwargs)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        scale: str = "rate",
        log: bool = False,
        trajectory: Pairs | None = None,
        parents: Sequence[int] | None = None,
    ) -> Self:
        """Draw the curves; linear axes show only the part around the trade-offs.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to draw on; those of a new figure if None.
        scale : {"rate", "count"}, default="rate"
            Whether the axes show fractions of the negatives and of the positives, or counts.
        log : bool, default=False
            Whether the axes are logarithmic, from one sample on; below it they are linear.
        trajectory : sequence of (fp, fn), default=None
            Counts of a sequence of models, drawn as points that are numbered from 0.
        parents : sequence of int, default=None
            For each point, the number of the point that it is reached from, such as
            `Dialog.parents`; the arrows follow it. By default each point follows the one before.

        Returns
        -------
        self : FrontierDisplay
            The display, with `ax_`, `figure_`, `lines_`, `hull_`, `points_` and `trajectory_`.
        """
        if scale not in ("rate", "count"):
            raise _error("plot", "scale to be 'rate' or 'count'", repr(scale))
        named = self.points if isinstance(self.points, Mapping) else {}
        marked = _check_pairs("points", list(named.values()) if named else self.points)
        steps = _check_pairs("trajectory", () if trajectory is None else trajectory)
        joined = _check_parents(parents, len(steps))
        if ax is None:
            _, ax = pyplot("FrontierDisplay").subplots(figsize=(7.2, 4.6), layout="constrained")
        n = np.array([self.frontier.n_negative, self.frontier.n_positive])
        unit = 1 / n if scale == "rate" else np.ones(2)
        self._draw_axes(ax, unit, scale, log, np.concatenate([marked, steps]))
        self._draw_curves(ax, unit, log)
        self.points_: list[Any] = []
        for i, place in enumerate(marked * unit):
            look: dict[str, Any] = {"marker": "Xsd^vP*"[i % 7], "color": "black", "linestyle": ""}
            label = _format_label(list(named)[i]) if named else None
            self.points_ += ax.plot(*place, label=label, markersize=7, zorder=4, **look)
        self.trajectory_ = _draw_trajectory(ax, steps * unit, joined) if len(steps) else None
        ax.legend(frameon=False, **_BESIDE)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_axes(self, ax: "Axes", unit: Floats, scale: str, log: bool, shown: Floats) -> None:
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        frontier, whole = self.frontier, scale == "count"
        n = np.array([frontier.n_negative, frontier.n_positive])
        ends = unit * (n if log else _axis_ends(frontier, shown))
        if log:
            ax.set_xscale("symlog", linthresh=unit[0], linscale=0.4)
            ax.set_yscale("symlog", linthresh=unit[1], linscale=0.4)
        for axis, smallest, end in zip((ax.xaxis, ax.yaxis), unit, ends, strict=True):
            if log:
                axis.set_ticks([0, *_ticks(smallest, end)])
                axis.set_ticks([], minor=True)
            else:
                axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=whole))
            axis.set_major_formatter(FuncFormatter(_format_count if whole else _format_percent))
        # A margin, so that points on an axis are visible.
        low = -0.25 * unit if log else -0.015 * ends
        ax.set(xlim=(low[0], ends[0]), ylim=(low[1], ends[1]))
        positive = _format_label(frontier.positive)
        negative = f"not {positive}"
        if frontier.negative is not None:
            negative = _format_label(frontier.negative)
        ax.set_xlabel(f"false positives (of {frontier.n_negative:,} {negative})")
        ax.set_ylabel(f"false negatives (of {frontier.n_positive:,} {positive})")
        ax.spines[["top", "right"]].set_visible(False)

    def _draw_curves(self, ax: "Axes", unit: Floats, log: bool) -> None:
        frontier = self.frontier
        self.lines_ = {}
        for i, curve in enumerate(frontier.curves):
            x = np.concatenate([[0], curve.fp, [frontier.n_negative]]) * unit[0]
            y = np.concatenate([[frontier.n_positive], curve.fn, [0]]) * unit[1]
            (self.lines_[curve.name],) = ax.plot(
                x,
                y,
                drawstyle="steps-post",  # constant up to the next threshold
                color=COLOURS[i % len(COLOURS)],
                linestyle=_DASHES[i // len(COLOURS) % len(_DASHES)],
                linewidth=1.4,
                label=_format_label(curve.name),
            )
        corners = np.array([(vertex.fp, vertex.fn) for vertex in frontier.hull], dtype=float)
        x, every = corners[:, 0], 1
        if log:  # the hull is straight in rates, so curved on these axes
            every = 20
            inner = [np.linspace(*ends, every, endpoint=False) for ends in pairwise(x)]
            x = np.append(np.concatenate(inner) if inner else [], x[-1])
        (self.hull_,) = ax.plot(
            x * unit[0],
            np.interp(x, *corners.T) * unit[1],
            linestyle=(0, (4, 3)),
            linewidth=0.9,
            color="0.35",
            marker="o",
            markersize=3,
            markevery=every,
            zorder=3,
            label="convex hull",
        )

    def plot_winners(
        self,
        ax: "Axes | None" = None,
        cost_ratio: tuple[float, float] = (0.1, 10.0),
        prior: tuple[float, float] = (0.05, 0.95),
    ) -> Self:
        """Draw a map of the winners over cost ratios and priors.

        Each region is a corner of the convex hull: a curve and its threshold. The legend names the
        eight largest regions at most.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to draw on; those of a new figure if None.
        cost_ratio : (float, float), default=(0.1, 10)
            The range of the cost of a false negative, in false positives.
        prior : (float, float), default=(0.05, 0.95)
            The range of the expected proportion of positives.

        Returns
        -------
        self : FrontierDisplay
            The display, with `ax_`, `figure_` and `regions_`.
        """
        winners = self.frontier.winners(cost_ratio, prior)
        for name, ends in (("cost_ratio", cost_ratio), ("prior", prior)):
            if np.size(ends) != 2 or np.ptp(ends) == 0:
                raise _error("plot_winners", f"{name} to be two different numbers", repr(ends))
        if ax is None:
            _, ax = pyplot("FrontierDisplay").subplots(figsize=(7.6, 4.4), layout="constrained")
        priors = np.linspace(*prior, 401)
        odds = priors / (1 - priors)
        # The slope is odds × ratio: a region extends from one ratio to another, at each prior.
        sides = [
            np.clip([winner.low / odds, winner.high / odds], *cost_ratio) for winner in winners
        ]
        areas = [float(np.log(high / low).mean()) for low, high in sides]
        named = sorted(np.argsort(areas)[::-1][:_MOST_NAMED].tolist())
        colours = self._colours([winners[i] for i in named])
        self.regions_: list[tuple[Winner, Any]] = []
        handles: list[Any] = []
        for i, (winner, (low, high)) in enumerate(zip(winners, sides, strict=True)):
            colour = colours[named.index(i)] if i in named else _OTHERS
            look: dict[str, Any] = {"facecolor": colour, "edgecolor": "white", "linewidth": 0.6}
            label = f"{_format_label(winner.name)}: {winner.fp:,} / {winner.fn:,}"
            region = ax.fill_betweenx(priors, low, high, label=label, **look)
            self.regions_.append((winner, region))
            if i in named:
                handles.insert(0, region)  # from the top, as on the map
        if len(winners) > len(named):
            label = f"{len(winners) - len(named)} others"
            handles.append(ax.fill_between([], [], color=_OTHERS, label=label))
        self._finish_map(ax, cost_ratio, prior, handles)
        return self

    def _colours(self, named: list[Winner]) -> list[tuple[float, ...]]:
        """Give each winner the colour of its curve, paler from one threshold to the next."""
        from matplotlib.colors import to_rgb

        names = [curve.name for curve in self.frontier.curves]
        total, coloured = Counter(winner.name for winner in named), Counter[str]()
        colours = []
        for winner in named:
            pale = 0.75 * (coloured[winner.name] + 0.3) / max(total[winner.name], 2)
            coloured[winner.name] += 1
            tint = to_rgb(COLOURS[names.index(winner.name) % len(COLOURS)])
            colours.append(tuple(part + pale * (1 - part) for part in tint))
        return colours

    def _finish_map(self, ax: "Axes", cost_ratio: Any, prior: Any, handles: list[Any]) -> None:
        from matplotlib.ticker import FuncFormatter

        frontier = self.frontier
        observed = frontier.n_positive / (frontier.n_positive + frontier.n_negative)
        if prior[0] < observed < prior[1]:
            look: dict[str, Any] = {"color": "black", "linewidth": 0.8, "linestyle": ":"}
            label = f"these samples ({_format_percent(observed)})"
            handles.append(ax.axhline(observed, label=label, **look))
        ax.set(xscale="log", xlim=tuple(cost_ratio), ylim=tuple(prior))
        ax.xaxis.set_ticks(_ticks(*cost_ratio))
        ax.xaxis.set_ticks([], minor=True)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}"))
        ax.yaxis.set_major_formatter(FuncFormatter(_format_percent))
        ax.set_xlabel("cost of a false negative, in false positives")
        ax.set_ylabel(f"proportion of {_format_label(frontier.positive)}")
        ax.legend(
            handles=handles, title="false positives / false negatives", frameon=False, **_BESIDE
        )
        self.ax_, self.figure_ = ax, ax.figure


def _axis_ends(frontier: Frontier, shown: Floats) -> Floats:
    """Choose the ends of linear axes, in counts: the same rate, which shows the trade-offs."""
    n = np.array([frontier.n_negative, frontier.n_positive])
    # The rate at which a curve's false positive rate is nearest to its false negative rate.
    even = [
        float(np.max(np.stack([curve.fp, curve.fn], 1) / n, axis=1).min())
        for curve in frontier.curves
    ]
    reach = max(4 * min(even), 1.5 * max(even), 3 / n.min(), *(1.15 * shown / n).flat)
    ends: Floats = n * min(reach, 1.0)
    return ends


def _ticks(low: float, high: float) -> list[float]:
    """List the numbers 1, 2 and 5, times powers of ten, within a range."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = [float(f"{digit}e{decade}") for decade in decades for digit in (1, 2, 5)]
    return [step for step in steps if low <= step <= high]


def _format_percent(rate: float, _: Any = None) -> str:
    return f"{100 * rate:.3g}%"


def _format_count(count: float, _: Any = None) -> str:
    return f"{count:,.0f}"


def _draw_trajectory(ax: "Axes", places: Floats, parents: Sequence[int]) -> Any:
    """Draw numbered points, each with an arrow from its parent."""
    from matplotlib.patheffects import withStroke

    (line,) = ax.plot(*places.T, linestyle="", marker="o", markersize=4, color="black", zorder=5)
    numbers: dict[tuple[float, float], list[str]] = {}
    for i, (x, y) in enumerate(places.tolist()):
        numbers.setdefault((x, y), []).append(str(i))
    for start, end in zip(places[list(parents)], places, strict=True):
        look = {"arrowstyle": "-|>", "color": "black", "linewidth": 0.9, "shrinkA": 3, "shrinkB": 3}
        if (start != end).any():
            ax.annotate("", end, start, arrowprops=look, zorder=5)
    halo = [withStroke(linewidth=2.5, foreground="white")]  # above curves, below arrows
    for place, texts in numbers.items():
        label = ax.annotate(", ".join(texts), place, (0, 5), textcoords="offset points", zorder=4.5)
        label.set(size=9, ha="center", path_effects=halo)
    return line


def _check_pairs(name: str, pairs: Any) -> Floats:
    """Convert pairs of counts to an array of two columns."""
    array = np.asarray(pairs, dtype=np.float64) if len(pairs) else np.empty((0, 2))
    fits = array.ndim == 2 and array.shape[1] == 2
    if not fits or not (np.isfinite(array) & (array >= 0)).all():
        raise _error("plot", f"{name} to be pairs (fp, fn) of counts", repr(pairs))
    return array


def _check_parents(parents: Sequence[int] | None, n_steps: int) -> Sequence[int]:
    """Return the parent of each step; by default the step before, and the start for the start."""
    if parents is None:
        return [max(step - 1, 0) for step in range(n_steps)]
    if len(parents) != n_steps or not set(parents) <= set(range(n_steps)):
        rule = f"parents to be {n_steps} numbers of points of the trajectory, one for each point"
        raise _error("plot", rule, repr(parents))
    return parents


def _format_label(label: Any) -> str:
    """Format a label as text that matplotlib does not read as a formula."""
    text = str(label).replace("$", r"\$")
    return text if isinstance(label, str) else f"class {text}"


def _error(method: str, rule: str, got: str) -> ValueError:
    return ValueError(f"FrontierDisplay.{method} needs {rule}; got {got}.")
