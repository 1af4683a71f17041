"""The members that a selection chooses, over two features.

Multi-classifiers, slide "Selection (ii)", shows the regions of three classifiers in a plane. This
display does so for any fitted selection of :mod:`margrave.select`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave._plotting import BLACK, COLOURS, pyplot
from margrave._typing import Flags, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OWNER = "RegionDisplay"
_OTHERS, _REJECTED = "others", "rejected"
_GREY, _DARK = "#999999", "#555555"
_MARKERS = "os^vDP*X"


@runtime_checkable
class Selection(Protocol):
    """A fitted selection, such as those of `margrave.select`."""

    @property
    def member_names_(self) -> Sequence[str]:
        """Names of the members."""

    def explain(self, X: Any) -> Any:
        """Explain which members are selected for samples."""


@runtime_checkable
class MembersExplanation(Protocol):
    """An explanation with a competence for each sample and member.

    An explanation without `selected` has one member for each sample, in `members`.
    """

    @property
    def members(self) -> Sequence[str]:
        """Names of the members."""

    @property
    def competence(self) -> Floats:
        """Competence of each member for each sample."""

    @property
    def selected(self) -> Flags:
        """Whether each member is selected for each sample."""


class RegionDisplay:
    """The member that a selection chooses at each point of a plane of two features.

    Make it with `from_estimator`.

    Parameters
    ----------
    grid : tuple of ndarray, each of shape (n_rows, n_columns)
        The two features at the points of the plane.
    members : ndarray of str, shape (n_rows, n_columns)
        The selected member at these points.
    order : sequence of str, optional
        All members, in the order of their colours.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of the axes.
    surface_ : matplotlib QuadMesh
        The coloured plane.
    shown_ : list of str
        The members with a colour of their own: those with the most points. The others are grey.

    Examples
    --------
    >>> from margrave.compare import RegionDisplay
    >>> from margrave.datasets import load
    >>> from margrave.select import RegionSelectionClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> train = load("ripley_train")
    >>> tree = DecisionTreeClassifier(max_depth=3)
    >>> members = [("logistic", LogisticRegression()), ("tree", tree)]
    >>> model = RegionSelectionClassifier(members, n_regions=4, random_state=0)
    >>> model = model.fit(train.data, train.target)
    >>> display = RegionDisplay.from_estimator(model, train.data, train.target)
    >>> sorted(display.shown_)
    ['logistic', 'tree']
    """

    def __init__(
        self,
        grid: tuple[Floats, Floats],
        members: NDArray[Any],
        order: Sequence[str] | None = None,
    ) -> None:
        self.grid = grid
        self.members = np.asarray(members)
        self.order = np.unique(self.members).tolist() if order is None else list(order)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        features: Sequence[int | str] = (0, 1),
        resolution: int = 120,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot a fitted selection.

        Parameters
        ----------
        estimator : RegionSelectionClassifier or LocalSelectionClassifier
            A fitted selection. If several members are selected, the plot shows the one with the
            largest competence, the first one in a tie.
        X : array-like of shape (n_samples, n_features)
            Samples that the plane covers. The other features have their median, or their most
            frequent value if they are not numbers.
        y : array-like of shape (n_samples,), default=None
            Their labels; if not None, the samples are plotted with a marker for each label.
        features : two positions or names, default=(0, 1)
            The features of the plane.
        resolution : int, default=120
            Number of points along each feature.
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.

        Returns
        -------
        display : RegionDisplay
            The display, with its plot.
        """
        pyplot(_OWNER)
        if not isinstance(estimator, Selection):
            raise ValueError(
                f"{_OWNER} needs a fitted selection of margrave.select; "
                f"got {type(estimator).__name__}."
            )
        names = _feature_names(X)
        positions = _find_features(names, features)
        rows = np.column_stack([_column(X, j) for j in positions])
        finite = rows[np.isfinite(rows).all(axis=1)]
        low, high = finite.min(axis=0), finite.max(axis=0)
        pad = 0.05 * np.where(high > low, high - low, 1.0)
        grid = np.meshgrid(
            *(np.linspace(low[j] - pad[j], high[j] + pad[j], resolution) for j in (0, 1))
        )
        points = _fill_features(X, dict(zip(positions, map(np.ravel, grid), strict=True)))
        members = _selected_members(estimator.explain(points)).reshape(grid[0].shape)
        order = [*estimator.member_names_, _REJECTED]
        display = cls((grid[0], grid[1]), members, order).plot(ax)
        display.ax_.set(xlabel=names[positions[0]], ylabel=names[positions[1]])
        if y is not None:
            display._plot_samples(rows, np.asarray(y))
        return display

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Plot the plane.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.

        Returns
        -------
        self : RegionDisplay
            With `ax_`, `figure_`, `surface_` and `shown_`.
        """
        plt = pyplot(_OWNER)
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        self.ax_ = plt.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        names, counts = np.unique(self.members, return_counts=True)
        most = names[np.argsort(-counts, kind="stable")][: len(COLOURS)].tolist()
        self.shown_: list[str] = sorted(most, key=self.order.index)
        numbers = np.full(self.members.shape, len(self.shown_))
        for number, name in enumerate(self.shown_):
            numbers[self.members == name] = number
        colours = [*self._colours(), _GREY]
        self.surface_ = self.ax_.pcolormesh(
            *self.grid,
            numbers,
            cmap=ListedColormap(colours),
            vmin=-0.5,
            vmax=len(colours) - 0.5,
            alpha=0.4,
            shading="nearest",
            linewidth=0,
            rasterized=True,
        )
        shown = [*self.shown_, *([_OTHERS] if len(names) > len(self.shown_) else [])]
        self._patches = [
            Patch(facecolor=colour, alpha=0.4, label=name)
            for name, colour in zip(shown, colours, strict=False)
        ]
        self.ax_.legend(handles=self._patches, loc="best", fontsize=8)
        return self

    def _colours(self) -> list[str]:
        """Colour the members; if they are few, each has the same colour in every plot."""
        members = [name for name in self.order if name != _REJECTED]
        few = len(members) <= len(COLOURS)
        colours = dict(zip(members if few else self.shown_, COLOURS, strict=False))
        return [_DARK if name == _REJECTED else colours.get(name, _GREY) for name in self.shown_]

    def _plot_samples(self, rows: Floats, y: NDArray[Any]) -> None:
        """Plot the samples, with a marker for each label."""
        samples = []
        for number, label in enumerate(np.unique(y)):
            own, marker = rows[y == label], _MARKERS[number % len(_MARKERS)]
            face = BLACK if number % 2 == 0 else "white"
            samples.append(
                self.ax_.scatter(
                    own[:, 0],
                    own[:, 1],
                    s=9,
                    c=face,
                    marker=marker,
                    edgecolors=BLACK,
                    linewidths=0.5,
                    label=str(label),
                    zorder=2,
                )
            )
        self.ax_.legend(handles=[*self._patches, *samples], loc="best", fontsize=8)


def _feature_names(X: Any) -> list[str]:
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    return [f"feature {j}" for j in range(np.shape(X)[1])]


def _find_features(names: list[str], features: Sequence[int | str]) -> list[int]:
    """Return the positions of two features."""
    at = [names.index(feature) if feature in names else feature for feature in features]
    are_positions = all(isinstance(j, int | np.integer) and 0 <= j < len(names) for j in at)
    if not are_positions or len(set(at)) != 2 or len(at) != 2:
        raise ValueError(
            f"{_OWNER} needs two different features among {len(names)}, by name or position; "
            f"got {list(features)!r}."
        )
    return [int(j) for j in at]


def _column(X: Any, j: int) -> Floats:
    """Return a feature as floats."""
    if hasattr(X, "iloc"):
        return np.asarray(X.iloc[:, j], dtype=float)
    dense = X[:, [j]].toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=float)[:, [j]]
    return np.asarray(dense[:, 0], dtype=float)


def _fill_features(X: Any, chosen: dict[int, Floats]) -> Any:
    """Make samples with these values; the other features have their median, or their mode."""
    n = len(next(iter(chosen.values())))
    if not hasattr(X, "iloc"):
        columns = [chosen.get(j, np.nanmedian(_column(X, j))) for j in range(np.shape(X)[1])]
        return np.column_stack([np.broadcast_to(column, n) for column in columns])
    values = {}
    for j, (name, column) in enumerate(X.items()):
        is_number = getattr(column.dtype, "kind", "O") in "iuf"
        typical = column.median() if is_number else column.mode().iloc[0]
        values[name] = chosen[j] if j in chosen else [typical] * n
    return type(X)(values)


def _selected_members(explanation: Any) -> NDArray[Any]:
    """Return the member of each sample: of several, the one with the largest competence."""
    if not isinstance(explanation, MembersExplanation):
        return np.asarray(explanation.members)
    competence = np.where(explanation.selected, explanation.competence, -np.inf)
    names = np.array([*explanation.members, _REJECTED])
    best: NDArray[Any] = names[competence.argmax(axis=1)]
    best[~explanation.selected.any(axis=1)] = _REJECTED
    return best
