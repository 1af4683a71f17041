"""A martingale program as a picture: its nodes in layers, and the samples that flow between them.

"Interactive Martingale Boosting" (document 004), figure 2, with the reach probabilities and local
class balances of section 4.3 drawn instead of written. Any object with the attributes of
:class:`MartingaleDisplay`'s parameter will do: nothing is asked of the package that grows programs.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from margrave._plotting import COLOURS, pyplot
from margrave._typing import Floats
from margrave._validation import find_attribute

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS = ("classes", "nodes", "edges", "counts", "reach", "flow")


@dataclass(frozen=True)
class _Look:
    """How a kind of node is drawn: lengths in points."""

    marker: str
    area: float  # of the marker, where its size is 1
    ring: float
    least: float  # the diameter of a circle as large as the smallest
    words: str


_LOOKS = {
    "learner": _Look("o", math.pi / 4, 0.6, 3, "learner"),
    "constant": _Look("D", 1.0, 1.0, 5, "one class only"),
    "frozen": _Look("s", 1.0, 2.2, 5, "frozen"),
    "leaf": _Look("h", 0.65, 1.0, 3, "leaf"),
    "empty": _Look("X", 0.625, 0.6, 4, "empty"),
}
_SHADE = 0.6  # of the colours of rings
_EVEN, _EVEN_EDGE, _NO_SAMPLE = 0.86, 0.76, 0.7  # greys
_SLOT_INCHES, _LEGEND_INCHES, _ROW_INCHES = 0.46, 2.1, 0.21
_SMALL_ROOT, _LARGE_ROOT, _THIN = 6.0, 30.0, 0.6  # points


class MartingaleDisplay:
    """A martingale program as a picture, with the root on top.

    The area of a node is the share of samples that come to it: the mean over the classes of the
    probabilities to reach it. Its colour says of which classes they are, by the same probabilities,
    so that a rare class counts as much as a frequent one. The width and colour of an edge say the
    same of the samples that take it. Nodes that end a sample's way, and those that only one class
    came to, have a ring in the (darker) colour of their answer.

    With two classes a node stands at its votes for the second less those for the first; with more,
    the nodes of a layer stand side by side in the order of their votes. Make the display with
    `from_estimator`, or from a program at hand with the constructor and `plot`.

    Parameters
    ----------
    program : object
        A program, as `program_` of a trained martingale booster: with `classes`; `nodes`, each with
        a `layer`, a `position` (votes for each class, whole or not), a `kind` ("learner",
        "constant", "frozen", "empty" or "leaf") and a `prediction` (a place in `classes`, or None);
        `edges`, each with the places in `nodes` of its `start` and `end`; `counts` of shape
        (n_nodes, n_classes, n_classes), by class and answer; `reach` of shape (n_nodes, n_classes);
        and `flow` of shape (n_edges, n_classes), in samples.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure around it.
    nodes_ : dict of str to matplotlib PathCollection
        The nodes of each kind that was drawn; small ones after large ones.
    edges_ : matplotlib LineCollection
        The edges that samples took; wide ones first.
    places_ : ndarray of shape (n_nodes, 2)
        Where each node of the program is on the axes; not a number if it was not drawn.

    Examples
    --------
    >>> from margrave.compare import MartingaleDisplay
    >>> from margrave.martingale import MartingaleBoostClassifier
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> display = MartingaleDisplay.from_estimator(MartingaleBoostClassifier(n_levels=3).fit(X, y))
    >>> display.ax_.get_xlabel()
    'votes for 1 less votes for 0'
    """

    def __init__(self, program: Any) -> None:
        missing = [part for part in PARTS if not hasattr(program, part)]
        if missing:
            raise TypeError(
                f"MartingaleDisplay needs a program with {', '.join(PARTS)}; "
                f"got {type(program).__name__} without {', '.join(missing)}."
            )
        self.program = program

    @classmethod
    def from_estimator(cls, estimator: Any, ax: "Axes | None" = None, **kw: Any) -> Self:
        """Draw the program of a trained martingale booster.

        Parameters
        ----------
        estimator : classifier
            Trained, with `program_`; or a pipeline or a search that ends in one.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure, as large as the program needs, if None.
        **kw : dict
            As in `plot`.

        Returns
        -------
        display : MartingaleDisplay
            The display, drawn.
        """
        program = find_attribute(estimator, "program_")
        if program is None:
            raise TypeError(
                "MartingaleDisplay.from_estimator needs a trained martingale booster, with "
                f"program_; got {type(estimator).__name__} without it."
            )
        return cls(program).plot(ax, **kw)

    def plot(
        self, ax: "Axes | None" = None, *, show_empty: bool = False, legend: bool = True
    ) -> Self:
        """Draw the program.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure, as large as the program needs, if None.
        show_empty : bool, default=False
            Whether to draw nodes that no sample came to, and edges that none took.
        legend : bool, default=True
            Whether to draw the legend, to the right of the axes.

        Returns
        -------
        self : MartingaleDisplay
            With `ax_`, `figure_`, `nodes_`, `edges_` and `places_`.
        """
        plt = pyplot("MartingaleDisplay")
        program = self.program
        known = np.array([node.kind != "empty" for node in program.nodes])
        drawn = known | np.asarray(program.reach, dtype=bool).any(axis=1) | show_empty
        self.places_ = _places(program.nodes, drawn, len(program.classes))
        layers = Counter(self.places_[drawn, 1].tolist())
        across, down = max(layers.values()), max(layers) + 1
        if ax is None:
            inches = np.clip(_SLOT_INCHES * np.array([across, down]), 3, 9)
            if legend:  # at most eleven rows, and one for each class
                inches[1] = max(inches[1], _ROW_INCHES * (11 + len(program.classes)))
            around = np.array([_LEGEND_INCHES * legend + 0.5, 0.6])
            _, ax = plt.subplots(figsize=inches + around, layout="constrained")
        else:
            inches = np.array(ax.get_window_extent().size) / ax.figure.dpi
        # A layer's areas add up to at most that of the root, so neighbours are smaller than it.
        room = 72 * min(1.3 * inches[0] / across, 0.8 * inches[1] / down)
        diameter = float(np.clip(room, _SMALL_ROOT, _LARGE_ROOT))
        self._draw_axes(ax, 0.6 * diameter / 72 / inches)
        self._draw_edges(ax, 0.6 * diameter, show_empty)
        self._draw_nodes(ax, diameter)
        if legend:
            self._draw_legend(ax, plt, diameter)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_axes(self, ax: "Axes", pad: Floats) -> None:
        """Layers on the left, for two classes their votes below; pads in shares of the axes."""
        from matplotlib.ticker import MaxNLocator

        across, down = np.nanmax(np.abs(self.places_), axis=0)
        beside, above = (pad + 0.02) * (2 * across or 1, down or 1)
        ax.set(xlim=(-across - beside, across + beside), ylim=(down + above, -above))
        ax.set_ylabel("layer")
        whole: dict[str, Any] = {"integer": True, "min_n_ticks": 1, "steps": [1, 2, 5, 10]}
        ax.yaxis.set_major_locator(MaxNLocator("auto", **whole))
        ax.spines[["top", "right", "left", "bottom"]].set_visible(False)
        ax.tick_params(length=0)
        if len(self.program.classes) != 2:
            ax.set_xticks([])
            return
        first, second = map(_words, self.program.classes)
        ax.set_xlabel(f"votes for {second} less votes for {first}")
        ax.grid(axis="x", color="0.94")
        ax.set_axisbelow(True)
        drawn = self.places_[~np.isnan(self.places_)]
        if np.array_equal(drawn, np.round(drawn)):
            ax.xaxis.set_major_locator(MaxNLocator("auto", **whole))

    def _draw_edges(self, ax: "Axes", widest: float, show_empty: bool) -> None:
        from matplotlib.collections import LineCollection

        program = self.program
        came = np.asarray(program.counts)[0].sum(axis=1)
        flow = np.reshape(program.flow, (len(program.edges), len(came)))  # there may be none
        rates = flow / np.maximum(came, 1)
        shares = _mean_share(rates, came > 0)
        ends = np.array([(edge.start, edge.end) for edge in program.edges], dtype=int)
        lines = self.places_[ends.reshape(-1, 2)]
        kept = ~np.isnan(lines).any(axis=(1, 2)) & ((shares > 0) | show_empty)
        at = np.flatnonzero(kept)[np.argsort(-shares[kept], kind="stable")]
        self.edges_ = LineCollection(
            list(lines[at]),
            linewidths=np.maximum(widest * shares[at], _THIN),
            colors=0.4 + 0.6 * _mixed(rates[at], (_EVEN_EDGE - 0.4) / 0.6),  # paler than nodes
            capstyle="round",
            zorder=1,
        )
        ax.add_collection(self.edges_, autolim=False)

    def _draw_nodes(self, ax: "Axes", diameter: float) -> None:
        program = self.program
        reach = np.asarray(program.reach, dtype=np.float64)
        shares = _mean_share(reach, reach[0] > 0)
        tints, answers = _mixed(reach, _EVEN), _tints(len(program.classes))
        drawn = ~np.isnan(self.places_[:, 0])
        self.nodes_ = {}
        for kind, look in _LOOKS.items():
            ours = drawn & [node.kind == kind for node in program.nodes]
            if not ours.any():
                continue
            at = np.flatnonzero(ours)[np.argsort(-shares[ours], kind="stable")]
            sizes = _marker_sizes(shares[at], look, diameter)
            rings = [
                tints[i] if node.prediction is None else answers[node.prediction]
                for i, node in ((i, program.nodes[i]) for i in at)
            ]
            styles: dict[str, Any] = {
                "linewidths": np.minimum(look.ring, 0.3 * np.sqrt(sizes)),  # leaves room for colour
                "facecolors": tints[at],
                "edgecolors": _SHADE * np.array(rings),
            }
            x, y = self.places_[at].T
            self.nodes_[kind] = ax.scatter(
                x, y, s=sizes, marker=look.marker, zorder=2, clip_on=False, **styles
            )

    def _draw_legend(self, ax: "Axes", plt: Any, diameter: float) -> None:
        """In three parts: colours, sizes and shapes; only of what was drawn."""

        def entry(
            label: str, marker: str = "o", size: float = 8, ring: float = 0, **look: Any
        ) -> Any:
            dots = {"linestyle": "", "markersize": size, "markeredgewidth": ring}
            return plt.Line2D([], [], label=label, marker=marker, **dots, **look)

        names = [_words(label) for label in self.program.classes]
        tints = _tints(len(names))
        parts = [entry("reached by", "")]
        parts += [entry(f"only {n}", color=tint) for n, tint in zip(names, tints, strict=True)]
        parts.append(entry("both alike" if len(names) == 2 else "all alike", color=str(_EVEN)))
        parts.append(entry("\nshare that comes", ""))
        least = (_LOOKS["learner"].least / diameter) ** 2
        told = {share: f"{share:.0%}" for share in (0.25, 0.05) if share > 2 * least}
        for share, words in {**told, least: f"{100 * least:.2g}% or less"}.items():
            parts.append(entry(words, size=diameter * math.sqrt(share), color="0.6"))
        parts.append(entry("\nnode (ring: its answer)", ""))
        for kind in self.nodes_:
            look = _LOOKS[kind]
            grey: dict[str, Any] = {"color": "0.78", "markeredgecolor": "0.3"}
            parts.append(entry(look.words, look.marker, ring=look.ring, **grey))
        box = ax.legend(handles=parts, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        for text, part in zip(box.get_texts(), parts, strict=True):
            if not part.get_marker():
                text.set_fontweight("bold")


def _places(nodes: Sequence[Any], drawn: NDArray[np.bool_], k: int) -> Floats:
    """The place of each node: across by its votes, and down by its layer."""
    places = np.full((len(nodes), 2), np.nan)
    layers: dict[int, list[int]] = {}
    for at in np.flatnonzero(drawn).tolist():
        layers.setdefault(nodes[at].layer, []).append(at)
    for layer, there in layers.items():
        places[there, 1] = layer
        if k == 2:
            places[there, 0] = [nodes[at].position[1] - nodes[at].position[0] for at in there]
        else:  # most votes for the first class on the left, as with two
            there.sort(key=lambda at: tuple(nodes[at].position), reverse=True)
            places[there, 0] = np.arange(len(there)) - (len(there) - 1) / 2
    return places


def _mean_share(rates: Floats, there: NDArray[np.bool_]) -> Floats:
    """The mean of the rates over the classes that have samples."""
    means: Floats = rates[:, there].sum(axis=1) / max(int(there.sum()), 1)
    return means


def _tints(k: int) -> Floats:
    """A colour for each class."""
    from matplotlib.colors import to_rgb

    return np.array([to_rgb(COLOURS[c % len(COLOURS)]) for c in range(k)])


def _mixed(rates: Floats, even: float) -> Floats:
    """The classes' colours mixed by their rates; what all classes have in common is a grey.

    With two classes this is the diverging scale from one colour through the grey to the other.
    """
    total = rates.sum(axis=1, keepdims=True)
    shares = np.divide(rates, total, out=np.zeros(rates.shape), where=total > 0)
    common = shares.min(axis=1, keepdims=True)
    mixed: Floats = (shares - common) @ _tints(rates.shape[1]) + common * rates.shape[1] * even
    mixed[total[:, 0] == 0] = _NO_SAMPLE
    return mixed


def _marker_sizes(shares: Floats, look: _Look, diameter: float) -> Floats:
    """Sizes that give markers of every kind the same area at the same share."""
    squares = np.maximum(diameter**2 * shares, look.least**2)
    sizes: Floats = squares * (math.pi / 4) / look.area
    return sizes


def _words(label: Any) -> str:
    """A label as text, that no part of is read as a formula."""
    return str(label).replace("$", r"\$")
