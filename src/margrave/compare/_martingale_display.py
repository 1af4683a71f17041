"""A plot of a martingale program: its nodes in layers, and the samples that flow between them.

Kulkarni et al. (2016), figure 2, with the reach probabilities and the local class balances of
section 4.3 as sizes and colours.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from margrave._plotting import COLOURS, pyplot
from margrave._typing import Flags, Floats, Ints
from margrave._validation import find_attribute

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Node(Protocol):
    """A node of a program."""

    @property
    def layer(self) -> int:
        """Number of the layer; 0 for the root."""

    @property
    def position(self) -> Sequence[float]:
        """Votes for each class, integers or not."""

    @property
    def kind(self) -> str:
        """One of "learner", "constant", "frozen", "empty" and "leaf"."""

    @property
    def prediction(self) -> int | None:
        """The class that the node predicts, as its position in `classes`; None for a learner."""


class Edge(Protocol):
    """An edge of a program."""

    @property
    def start(self) -> int:
        """Position of the first node in `nodes`."""

    @property
    def end(self) -> int:
        """Position of the second node in `nodes`."""


class Program(Protocol):
    """What the display needs of a program."""

    classes: Sequence[Any]
    nodes: Sequence[Node]
    edges: Sequence[Edge]
    counts: Ints
    reach: Floats
    flow: Ints


@dataclass(frozen=True)
class _NodeStyle:
    """The style of a kind of node; lengths in points."""

    marker: str
    area: float  # of a marker of size 1
    ring: float
    least: float  # the diameter of a circle with the area of the smallest marker
    label: str


_STYLES = {
    "learner": _NodeStyle("o", math.pi / 4, 0.6, 3, "learner"),
    "constant": _NodeStyle("D", 1.0, 1.0, 5, "one class only"),
    "frozen": _NodeStyle("s", 1.0, 2.2, 5, "frozen"),
    "leaf": _NodeStyle("h", 0.65, 1.0, 3, "leaf"),
    "empty": _NodeStyle("X", 0.625, 0.6, 4, "empty"),
}
_SHADE = 0.6  # darkens the colours of rings
_EVEN, _EVEN_EDGE, _NO_SAMPLE = 0.86, 0.76, 0.7  # greys
_SLOT_INCHES, _LEGEND_INCHES, _ROW_INCHES = 0.46, 2.1, 0.21
_SMALL_ROOT, _LARGE_ROOT, _THIN = 6.0, 30.0, 0.6  # points


class MartingaleDisplay:
    """A plot of a martingale program, with the root at the top.

    The area of a node is the fraction of the samples that reach it: the mean of the reach
    probabilities over the classes. Its colour mixes the colours of the classes by the same
    probabilities, so that a rare class counts as much as a frequent one. The width and colour of an
    edge show the same for the samples that pass it. A node that predicts a class has a ring in the
    (darker) colour of that class.

    With two classes the horizontal position of a node is the number of votes for the second class
    minus that for the first. With more classes, the nodes of a layer are in the order of their
    votes. Make the display with `from_estimator`, or from a program with the constructor and
    `plot`.

    Parameters
    ----------
    program : object
        A program, as `program_` of a fitted martingale booster: with `classes`; `nodes`, each with
        a `layer`, a `position` (votes for each class, integers or not), a `kind` ("learner",
        "constant", "frozen", "empty" or "leaf") and a `prediction` (a position in `classes`, or
        None); `edges`, each with the positions in `nodes` of its `start` and `end`; `counts` of
        shape (n_nodes, n_classes, n_classes), by class and prediction; `reach` of shape (n_nodes,
        n_classes); and `flow` of shape (n_edges, n_classes), in samples.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of the axes.
    nodes_ : dict of str to matplotlib PathCollection
        The plotted nodes of each kind; small ones after large ones.
    edges_ : matplotlib LineCollection
        The edges that samples pass; wide ones first.
    places_ : ndarray of shape (n_nodes, 2)
        The position of each node on the axes; NaN if it is not plotted.

    Examples
    --------
    >>> from margrave.compare import MartingaleDisplay
    >>> from margrave.martingale import MartingaleBoostClassifier
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> display = MartingaleDisplay.from_estimator(MartingaleBoostClassifier(n_levels=3).fit(X, y))
    >>> display.ax_.get_xlabel()
    'votes for 1 minus votes for 0'
    """

    def __init__(self, program: Program) -> None:
        attributes = list(Program.__annotations__)
        missing = [name for name in attributes if not hasattr(program, name)]
        if missing:
            raise TypeError(
                f"MartingaleDisplay needs a program with {', '.join(attributes)}; "
                f"got {type(program).__name__} without {', '.join(missing)}."
            )
        self.program = program

    @classmethod
    def from_estimator(cls, estimator: Any, ax: "Axes | None" = None, **kw: Any) -> Self:
        """Plot the program of a fitted martingale booster.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier with `program_`, or a pipeline or a search that ends in one.
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure, as large as necessary, if None.
        **kw : dict
            Passed to `plot`.

        Returns
        -------
        display : MartingaleDisplay
            The display, with its plot.
        """
        program = find_attribute(estimator, "program_")
        if program is None:
            raise TypeError(
                "MartingaleDisplay.from_estimator needs a fitted martingale booster, with "
                f"program_; got {type(estimator).__name__} without it."
            )
        return cls(program).plot(ax, **kw)

    def plot(
        self, ax: "Axes | None" = None, *, show_empty: bool = False, legend: bool = True
    ) -> Self:
        """Plot the program.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure, as large as necessary, if None.
        show_empty : bool, default=False
            Whether to plot nodes that no sample reaches, and edges that no sample passes.
        legend : bool, default=True
            Whether to add a legend, to the right of the axes.

        Returns
        -------
        self : MartingaleDisplay
            With `ax_`, `figure_`, `nodes_`, `edges_` and `places_`.
        """
        plt = pyplot("MartingaleDisplay")
        program = self.program
        nonempty = np.array([node.kind != "empty" for node in program.nodes])
        drawn = nonempty | np.asarray(program.reach, dtype=bool).any(axis=1) | show_empty
        self.places_ = _place_nodes(program.nodes, drawn, len(program.classes))
        layers = Counter(self.places_[drawn, 1].tolist())
        across, down = max(layers.values()), max(layers) + 1
        if ax is None:
            inches = np.clip(_SLOT_INCHES * np.array([across, down]), 3, 9)
            if legend:  # at most eleven lines, and one for each class
                inches[1] = max(inches[1], _ROW_INCHES * (11 + len(program.classes)))
            around = np.array([_LEGEND_INCHES * legend + 0.5, 0.6])
            _, ax = plt.subplots(figsize=inches + around, layout="constrained")
        else:
            inches = np.array(ax.get_window_extent().size) / ax.figure.dpi
        # The areas of a layer add up to at most that of the root.
        slot = 72 * min(1.3 * inches[0] / across, 0.8 * inches[1] / down)
        diameter = float(np.clip(slot, _SMALL_ROOT, _LARGE_ROOT))
        self._draw_axes(ax, 0.6 * diameter / 72 / inches)
        self._draw_edges(ax, 0.6 * diameter, show_empty)
        self._draw_nodes(ax, diameter)
        if legend:
            self._draw_legend(ax, plt, diameter)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_axes(self, ax: "Axes", pad: Floats) -> None:
        """Set up the axes; `pad` is a fraction of their size."""
        from matplotlib.ticker import MaxNLocator

        across, down = np.nanmax(np.abs(self.places_), axis=0)
        beside, above = (pad + 0.02) * (2 * across or 1, down or 1)
        ax.set(xlim=(-across - beside, across + beside), ylim=(down + above, -above))
        ax.set_ylabel("layer")
        integers: dict[str, Any] = {"integer": True, "min_n_ticks": 1, "steps": [1, 2, 5, 10]}
        ax.yaxis.set_major_locator(MaxNLocator("auto", **integers))
        ax.spines[["top", "right", "left", "bottom"]].set_visible(False)
        ax.tick_params(length=0)
        if len(self.program.classes) != 2:
            ax.set_xticks([])
            return
        first, second = map(_escape, self.program.classes)
        ax.set_xlabel(f"votes for {second} minus votes for {first}")
        ax.grid(axis="x", color="0.94")
        ax.set_axisbelow(True)
        drawn = self.places_[~np.isnan(self.places_)]
        if np.array_equal(drawn, np.round(drawn)):
            ax.xaxis.set_major_locator(MaxNLocator("auto", **integers))

    def _draw_edges(self, ax: "Axes", widest: float, show_empty: bool) -> None:
        from matplotlib.collections import LineCollection

        program = self.program
        n_samples = np.asarray(program.counts)[0].sum(axis=1)
        flow = np.reshape(program.flow, (len(program.edges), len(n_samples)))  # without edges too
        rates = flow / np.maximum(n_samples, 1)
        fractions = _mean_rates(rates, n_samples > 0)
        ends = np.array([(edge.start, edge.end) for edge in program.edges], dtype=int)
        lines = self.places_[ends.reshape(-1, 2)]
        drawn = ~np.isnan(lines).any(axis=(1, 2)) & ((fractions > 0) | show_empty)
        at = np.flatnonzero(drawn)[np.argsort(-fractions[drawn], kind="stable")]
        self.edges_ = LineCollection(
            list(lines[at]),
            linewidths=np.maximum(widest * fractions[at], _THIN),
            colors=0.4
            + 0.6 * _mix_colours(rates[at], (_EVEN_EDGE - 0.4) / 0.6),  # paler than nodes
            capstyle="round",
            zorder=1,
        )
        ax.add_collection(self.edges_, autolim=False)

    def _draw_nodes(self, ax: "Axes", diameter: float) -> None:
        program = self.program
        reach = np.asarray(program.reach, dtype=np.float64)
        fractions = _mean_rates(reach, reach[0] > 0)
        colours = _mix_colours(reach, _EVEN)
        class_colours = _class_colours(len(program.classes))
        drawn = ~np.isnan(self.places_[:, 0])
        self.nodes_ = {}
        for kind, style in _STYLES.items():
            of_kind = drawn & [node.kind == kind for node in program.nodes]
            if not of_kind.any():
                continue
            at = np.flatnonzero(of_kind)[np.argsort(-fractions[of_kind], kind="stable")]
            sizes = _marker_sizes(fractions[at], style, diameter)
            predicted = [program.nodes[i].prediction for i in at]
            rings = [
                colours[i] if label is None else class_colours[label]
                for i, label in zip(at, predicted, strict=True)
            ]
            options: dict[str, Any] = {
                "linewidths": np.minimum(style.ring, 0.3 * np.sqrt(sizes)),
                "facecolors": colours[at],
                "edgecolors": _SHADE * np.array(rings),
            }
            x, y = self.places_[at].T
            self.nodes_[kind] = ax.scatter(
                x, y, s=sizes, marker=style.marker, zorder=2, clip_on=False, **options
            )

    def _draw_legend(self, ax: "Axes", plt: Any, diameter: float) -> None:
        """Add a legend of the colours, the sizes and the plotted kinds of nodes."""

        def entry(
            label: str, marker: str = "o", size: float = 8, ring: float = 0, **style: Any
        ) -> Any:
            dots = {"linestyle": "", "markersize": size, "markeredgewidth": ring}
            return plt.Line2D([], [], label=label, marker=marker, **dots, **style)

        names = [_escape(label) for label in self.program.classes]
        entries = [entry("reached by", "")]
        for name, colour in zip(names, _class_colours(len(names)), strict=True):
            entries.append(entry(f"only {name}", color=colour))
        equally = "both equally" if len(names) == 2 else "all equally"
        entries.append(entry(equally, color=str(_EVEN)))
        entries.append(entry("\nfraction of samples", ""))
        least = (_STYLES["learner"].least / diameter) ** 2
        labels = {size: f"{size:.0%}" for size in (0.25, 0.05) if size > 2 * least}
        for size, label in {**labels, least: f"{100 * least:.2g}% or less"}.items():
            entries.append(entry(label, size=diameter * math.sqrt(size), color="0.6"))
        entries.append(entry("\nnode (ring: prediction)", ""))
        for kind in self.nodes_:
            style = _STYLES[kind]
            grey: dict[str, Any] = {"color": "0.78", "markeredgecolor": "0.3"}
            entries.append(entry(style.label, style.marker, ring=style.ring, **grey))
        box = ax.legend(handles=entries, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        for text, handle in zip(box.get_texts(), entries, strict=True):
            if not handle.get_marker():
                text.set_fontweight("bold")


def _place_nodes(nodes: Sequence[Node], drawn: Flags, k: int) -> Floats:
    """Place each node horizontally by its votes, and vertically by its layer."""
    places = np.full((len(nodes), 2), np.nan)
    layers: dict[int, list[int]] = {}
    for at in np.flatnonzero(drawn).tolist():
        layers.setdefault(nodes[at].layer, []).append(at)
    for layer, members in layers.items():
        places[members, 1] = layer
        if k == 2:
            places[members, 0] = [nodes[at].position[1] - nodes[at].position[0] for at in members]
        else:  # most votes for the first class on the left, as with two classes
            members.sort(key=lambda at: tuple(nodes[at].position), reverse=True)
            places[members, 0] = np.arange(len(members)) - (len(members) - 1) / 2
    return places


def _mean_rates(rates: Floats, has_samples: Flags) -> Floats:
    """Average the rates over the classes that have samples."""
    means: Floats = rates[:, has_samples].sum(axis=1) / max(int(has_samples.sum()), 1)
    return means


def _class_colours(k: int) -> Floats:
    from matplotlib.colors import to_rgb

    return np.array([to_rgb(COLOURS[c % len(COLOURS)]) for c in range(k)])


def _mix_colours(rates: Floats, even: float) -> Floats:
    """Mix the colours of the classes by their rates; what all classes have in common is grey.

    With two classes this is the diverging scale from one colour through the grey to the other.
    """
    total = rates.sum(axis=1, keepdims=True)
    weights = np.divide(rates, total, out=np.zeros(rates.shape), where=total > 0)
    common = weights.min(axis=1, keepdims=True)
    k = rates.shape[1]
    mixed: Floats = (weights - common) @ _class_colours(k) + common * k * even
    mixed[total[:, 0] == 0] = _NO_SAMPLE
    return mixed


def _marker_sizes(fractions: Floats, style: _NodeStyle, diameter: float) -> Floats:
    """Compute sizes for which the markers of every kind have the same area."""
    squares = np.maximum(diameter**2 * fractions, style.least**2)
    sizes: Floats = squares * (math.pi / 4) / style.area
    return sizes


def _escape(label: Any) -> str:
    """Return a label as text that matplotlib does not read as a formula."""
    return str(label).replace("$", r"\$")
