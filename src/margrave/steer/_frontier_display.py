"""The frontier as pictures: the curves of trade-offs, and a map of what wins where.

The plane of false positives and false negatives is that of the trajectories in "Interactive
Martingale Boosting" (document 004); the map, over cost ratios and priors, shows the imprecise
environments of document 000. Both show what :class:`margrave.steer.Frontier` holds.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from margrave._typing import Floats
from margrave.compare._plotting import COLOURS, pyplot
from margrave.steer._frontier import Frontier, Winner

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Pairs = Sequence[tuple[float, float]]

_DASHES = ("-", (0, (5, 1.5)), "-.", (0, (1, 1)))
_NAMED = 8  # regions of the map
_OTHERS = "0.88"  # grey
_BESIDE: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1, 0.5)}  # never over curves


class FrontierDisplay:
    """The trade-offs of several ways of deciding, as curves.

    The height of a curve is the fewest misses (false negatives) with at most so many false alarms
    (false positives): low and to the left is good. The dashed line is the convex hull; its corners
    are all that can be best when costs and priors become known, and `plot_winners` shows for which.
    Make the display with `from_scores` or `from_frontier`, or with the constructor and `plot`.

    Parameters
    ----------
    frontier : Frontier
        What to draw.
    points : sequence of (fp, fn), or mapping of str to (fp, fn), default=()
        Counts to mark, such as those of the classifier in use; with names for the legend or not.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure around it.
    lines_ : dict of str to matplotlib Line2D
        The curve of each way.
    hull_ : matplotlib Line2D
        The convex hull.
    points_ : list of matplotlib Line2D
        The points.
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
    'false alarms (of 4 ham)'
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
        """Draw the curves of scores at hand.

        Parameters
        ----------
        scores : mapping of str to array-like of shape (n_samples,)
            For each way of deciding, a score per sample; larger means more positive.
        y : array-like of shape (n_samples,)
            Labels, of exactly two kinds unless `positive` is given.
        positive : label, default=None
            The positive class; the others are negative. By default the larger of two labels.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **kwargs : dict
            As in `from_frontier`.

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
            What to draw.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        points : sequence of (fp, fn), or mapping of str to (fp, fn), default=()
            Counts to mark.
        **kwargs : dict
            As in `plot`.

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
    ) -> Self:
        """Draw the curves; if not logarithmic, where something happens.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        scale : {"rate", "count"}, default="rate"
            Whether the axes show shares of the negatives and of the positives, or counts.
        log : bool, default=False
            Whether the axes are logarithmic, from one sample on; below it they are linear.
        trajectory : sequence of (fp, fn), default=None
            Counts on the way from a first model to a last one, drawn as numbered points.

        Returns
        -------
        self : FrontierDisplay
            With `ax_`, `figure_`, `lines_`, `hull_`, `points_` and `trajectory_`.
        """
        if scale not in ("rate", "count"):
            raise _error("plot", "scale to be 'rate' or 'count'", repr(scale))
        named = self.points if isinstance(self.points, Mapping) else {}
        marked = _pairs("points", list(named.values()) if named else self.points)
        steps = _pairs("trajectory", () if trajectory is None else trajectory)
        if ax is None:
            _, ax = pyplot("FrontierDisplay").subplots(figsize=(7.2, 4.6), layout="constrained")
        n = np.array([self.frontier.n_negative, self.frontier.n_positive])
        unit = 1 / n if scale == "rate" else np.ones(2)
        self._draw_axes(ax, unit, scale, log, np.concatenate([marked, steps]))
        self._draw_curves(ax, unit, log)
        self.points_: list[Any] = []
        for i, place in enumerate(marked * unit):
            look: dict[str, Any] = {"marker": "Xsd^vP*"[i % 7], "color": "black", "linestyle": ""}
            label = _word(list(named)[i]) if named else None
            self.points_ += ax.plot(*place, label=label, markersize=7, zorder=4, **look)
        self.trajectory_ = _draw_trajectory(ax, steps * unit) if len(steps) else None
        ax.legend(frameon=False, **_BESIDE)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_axes(self, ax: "Axes", unit: Floats, scale: str, log: bool, shown: Floats) -> None:
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        frontier, whole = self.frontier, scale == "count"
        n = np.array([frontier.n_negative, frontier.n_positive])
        ends = unit * (n if log else _ends(frontier, shown))
        if log:
            ax.set_xscale("symlog", linthresh=unit[0], linscale=0.4)
            ax.set_yscale("symlog", linthresh=unit[1], linscale=0.4)
        for axis, one, end in zip((ax.xaxis, ax.yaxis), unit, ends, strict=True):
            if log:
                axis.set_ticks([0, *_ticks(one, end)])
                axis.set_ticks([], minor=True)
            else:
                axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=whole))
            axis.set_major_formatter(FuncFormatter(_whole if whole else _percent))
        # A little room, so that what lies on an axis is seen.
        low = -0.25 * unit if log else -0.015 * ends
        ax.set(xlim=(low[0], ends[0]), ylim=(low[1], ends[1]))
        others = f"not {_word(frontier.positive)}"
        negative = others if frontier.negative is None else _word(frontier.negative)
        ax.set_xlabel(f"false alarms (of {frontier.n_negative:,} {negative})")
        ax.set_ylabel(f"misses (of {frontier.n_positive:,} {_word(frontier.positive)})")
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
                drawstyle="steps-post",  # until the next cut it cannot be fewer
                color=COLOURS[i % len(COLOURS)],
                linestyle=_DASHES[i // len(COLOURS) % len(_DASHES)],
                linewidth=1.4,
                label=_word(curve.name),
            )
        corners = np.array([(vertex.fp, vertex.fn) for vertex in frontier.hull], dtype=float)
        x, every = corners[:, 0], 1
        if log:  # what is straight in rates is not on these axes
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
        """Draw a map of what costs least, over cost ratios and priors.

        Each region is a corner of the convex hull: a way and its cut. At most eight are named,
        the largest.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        cost_ratio : (float, float), default=(0.1, 10)
            What a false negative costs, in false positives: the least and the most.
        prior : (float, float), default=(0.05, 0.95)
            The share of positives to expect: the least and the most.

        Returns
        -------
        self : FrontierDisplay
            With `ax_`, `figure_` and `regions_`.
        """
        winners = self.frontier.winners(cost_ratio, prior)
        for word, given in (("cost_ratio", cost_ratio), ("prior", prior)):
            if np.size(given) != 2 or np.ptp(given) == 0:
                raise _error("plot_winners", f"{word} to be two different numbers", repr(given))
        if ax is None:
            _, ax = pyplot("FrontierDisplay").subplots(figsize=(7.6, 4.4), layout="constrained")
        shares = np.linspace(*prior, 401)
        odds = shares / (1 - shares)
        # The slope is odds × ratio: a region reaches from one ratio to another, at each prior.
        sides = [np.clip([one.low / odds, one.high / odds], *cost_ratio) for one in winners]
        areas = [float(np.log(high / low).mean()) for low, high in sides]
        named = sorted(np.argsort(areas)[::-1][:_NAMED].tolist())
        colours = self._colours([winners[i] for i in named])
        self.regions_: list[tuple[Winner, Any]] = []
        handles: list[Any] = []
        for i, (winner, (low, high)) in enumerate(zip(winners, sides, strict=True)):
            colour = colours[named.index(i)] if i in named else _OTHERS
            look: dict[str, Any] = {"facecolor": colour, "edgecolor": "white", "linewidth": 0.6}
            words = f"{_word(winner.name)}: {winner.fp:,} / {winner.fn:,}"
            region = ax.fill_betweenx(shares, low, high, label=words, **look)
            self.regions_.append((winner, region))
            if i in named:
                handles.insert(0, region)  # from the top, as they lie on the map
        if len(winners) > len(named):
            words = f"{len(winners) - len(named)} others"
            handles.append(ax.fill_between([], [], color=_OTHERS, label=words))
        self._finish_map(ax, cost_ratio, prior, handles)
        return self

    def _colours(self, named: list[Winner]) -> list[tuple[float, ...]]:
        """The colour of its way for each, paler from one cut of the way to the next."""
        from matplotlib.colors import to_rgb

        names = [curve.name for curve in self.frontier.curves]
        total, seen = Counter(one.name for one in named), Counter[str]()
        colours = []
        for one in named:
            pale = 0.75 * (seen[one.name] + 0.3) / max(total[one.name], 2)
            seen[one.name] += 1
            tint = to_rgb(COLOURS[names.index(one.name) % len(COLOURS)])
            colours.append(tuple(part + pale * (1 - part) for part in tint))
        return colours

    def _finish_map(self, ax: "Axes", cost_ratio: Any, prior: Any, handles: list[Any]) -> None:
        from matplotlib.ticker import FuncFormatter

        frontier = self.frontier
        here = frontier.n_positive / (frontier.n_positive + frontier.n_negative)
        if prior[0] < here < prior[1]:
            look: dict[str, Any] = {"color": "black", "linewidth": 0.8, "linestyle": ":"}
            handles.append(ax.axhline(here, label=f"these samples ({_percent(here)})", **look))
        ax.set(xscale="log", xlim=tuple(cost_ratio), ylim=tuple(prior))
        ax.xaxis.set_ticks(_ticks(*cost_ratio))
        ax.xaxis.set_ticks([], minor=True)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}"))
        ax.yaxis.set_major_formatter(FuncFormatter(_percent))
        ax.set_xlabel("cost of a miss, in false alarms")
        ax.set_ylabel(f"share of {_word(frontier.positive)}")
        ax.legend(handles=handles, title="false alarms / misses", frameon=False, **_BESIDE)
        self.ax_, self.figure_ = ax, ax.figure


def _ends(frontier: Frontier, shown: Floats) -> Floats:
    """How far the axes reach, in counts: to the same rates, around what happens."""
    n = np.array([frontier.n_negative, frontier.n_positive])
    # Where a way makes about as many mistakes of one kind as of the other, as rates.
    even = [
        float(np.max(np.stack([curve.fp, curve.fn], 1) / n, axis=1).min())
        for curve in frontier.curves
    ]
    reach = max(4 * min(even), 1.5 * max(even), 3 / n.min(), *(1.15 * shown / n).flat)
    ends: Floats = n * min(reach, 1.0)
    return ends


def _ticks(low: float, high: float) -> list[float]:
    """Of 1, 2 and 5, and ten times as much or as little, those within a range."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = [float(f"{digit}e{decade}") for decade in decades for digit in (1, 2, 5)]
    return [step for step in steps if low <= step <= high]


def _percent(rate: float, _: Any = None) -> str:
    return f"{100 * rate:.3g}%"


def _whole(count: float, _: Any = None) -> str:
    return f"{count:,.0f}"


def _draw_trajectory(ax: "Axes", places: Floats) -> Any:
    """Numbered points, joined by arrows."""
    from matplotlib.patheffects import withStroke

    (line,) = ax.plot(*places.T, linestyle="", marker="o", markersize=4, color="black", zorder=5)
    numbers: dict[tuple[float, float], list[str]] = {}
    for i, (x, y) in enumerate(places.tolist()):
        numbers.setdefault((x, y), []).append(str(i + 1))
    for start, end in pairwise(places):
        look = {"arrowstyle": "-|>", "color": "black", "linewidth": 0.9, "shrinkA": 3, "shrinkB": 3}
        if (start != end).any():
            ax.annotate("", end, start, arrowprops=look, zorder=5)
    halo = [withStroke(linewidth=2.5, foreground="white")]  # above curves, below arrows
    for place, texts in numbers.items():
        words = ax.annotate(", ".join(texts), place, (0, 5), textcoords="offset points", zorder=4.5)
        words.set(size=9, ha="center", path_effects=halo)
    return line


def _pairs(word: str, given: Any) -> Floats:
    """Counts as an array of two columns."""
    places = np.asarray(given, dtype=np.float64) if len(given) else np.empty((0, 2))
    fits = places.ndim == 2 and places.shape[1] == 2
    if not fits or not (np.isfinite(places) & (places >= 0)).all():
        raise _error("plot", f"{word} to be pairs (fp, fn) of counts", repr(given))
    return places


def _word(label: Any) -> str:
    """A label as text, that no part of is read as a formula."""
    text = str(label).replace("$", r"\$")
    return text if isinstance(label, str) else f"class {text}"


def _error(method: str, rule: str, got: str) -> ValueError:
    return ValueError(f"FrontierDisplay.{method} needs {rule}; got {got}.")
