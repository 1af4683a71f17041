"""Who is in charge where: the regions of a selection over two features.

"Multi-classifiers", Selection (ii), shows the regions of three classifiers on a plane; this draws
such a picture for any trained selection of :mod:`margrave.select`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave._plotting import BLACK, COLOURS, pyplot
from margrave._typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OWNER = "RegionDisplay"
_OTHERS, _NOBODY = "others", "nobody"
_GREY, _DARK = "#999999", "#555555"
_MARKS = "os^vDP*X"


class RegionDisplay:
    """The member in charge at each place of a plane of two features.

    Make it with `from_estimator`.

    Parameters
    ----------
    grid : tuple of ndarray, each of shape (n_rows, n_columns)
        The two features at the places of the plane.
    members : ndarray of str, shape (n_rows, n_columns)
        Who is in charge there.
    order : sequence of str, optional
        All members, in the order of their colours.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure around it.
    surface_ : matplotlib QuadMesh
        The coloured places.
    shown_ : list of str
        The members with a colour of their own: those with most places. The rest is grey.

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
        """Draw a trained selection.

        Parameters
        ----------
        estimator : RegionSelectionClassifier or LocalSelectionClassifier
            Trained. Where several members are asked, the one with the largest competence is shown,
            the first of equals.
        X : array-like of shape (n_samples, n_features)
            Samples that the plane is drawn around. Features that are not drawn have their median,
            or their most frequent value if they are no numbers.
        y : array-like of shape (n_samples,), default=None
            Their labels; if given, samples are drawn as marks.
        features : two positions or names, default=(0, 1)
            The features to draw.
        resolution : int, default=120
            Places along each feature.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        display : RegionDisplay
            The display, drawn.
        """
        pyplot(_OWNER)
        if not (hasattr(estimator, "selected") or hasattr(estimator, "region_of")):
            raise ValueError(
                f"{_OWNER} needs a selection of margrave.select; got {type(estimator).__name__}."
            )
        names = _names(X)
        at = _positions(names, features)
        rows = np.column_stack([_column(X, j) for j in at])
        drawn = rows[np.isfinite(rows).all(axis=1)]
        low, high = drawn.min(axis=0), drawn.max(axis=0)
        room = 0.05 * np.where(high > low, high - low, 1.0)
        grid = np.meshgrid(
            *(np.linspace(low[j] - room[j], high[j] + room[j], resolution) for j in (0, 1))
        )
        samples = _usual(X, dict(zip(at, (one.ravel() for one in grid), strict=True)))
        members = _in_charge(estimator.explain(samples)).reshape(grid[0].shape)
        order = [*estimator.member_names_, _NOBODY]
        display = cls((grid[0], grid[1]), members, order).plot(ax)
        display.ax_.set(xlabel=names[at[0]], ylabel=names[at[1]])
        if y is not None:
            display._marks(rows, np.asarray(y))
        return display

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        display : RegionDisplay
            Itself.
        """
        plt = pyplot(_OWNER)
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        self.ax_ = plt.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        names, counts = np.unique(self.members, return_counts=True)
        most = names[np.argsort(-counts, kind="stable")][: len(COLOURS)].tolist()
        self.shown_: list[str] = sorted(most, key=self.order.index)
        places = np.full(self.members.shape, len(self.shown_))
        for number, name in enumerate(self.shown_):
            places[self.members == name] = number
        colours = [*self._colours(), _GREY]
        self.surface_ = self.ax_.pcolormesh(
            *self.grid,
            places,
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
        """Of those shown; where members are few, each has the same colour in every picture."""
        members = [name for name in self.order if name != _NOBODY]
        few = len(members) <= len(COLOURS)
        numbers = dict(zip(members if few else self.shown_, COLOURS, strict=False))
        return [_DARK if name == _NOBODY else numbers.get(name, _GREY) for name in self.shown_]

    def _marks(self, rows: Floats, y: NDArray[Any]) -> None:
        """Draw the samples, with a mark for each label."""
        drawn = []
        for number, label in enumerate(np.unique(y)):
            own, mark = rows[y == label], _MARKS[number % len(_MARKS)]
            face = BLACK if number % 2 == 0 else "white"
            drawn.append(
                self.ax_.scatter(
                    own[:, 0],
                    own[:, 1],
                    s=9,
                    c=face,
                    marker=mark,
                    edgecolors=BLACK,
                    linewidths=0.5,
                    label=str(label),
                    zorder=2,
                )
            )
        self.ax_.legend(handles=[*self._patches, *drawn], loc="best", fontsize=8)


def _names(X: Any) -> list[str]:
    """The features' names."""
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    return [f"feature {j}" for j in range(np.shape(X)[1])]


def _positions(names: list[str], features: Sequence[int | str]) -> list[int]:
    """Where the two features are."""
    at = [names.index(one) if one in names else one for one in features]
    fits = all(isinstance(one, int | np.integer) and 0 <= one < len(names) for one in at)
    if not fits or len(set(at)) != 2 or len(at) != 2:
        raise ValueError(
            f"{_OWNER} needs two different features among {len(names)}, by name or position; "
            f"got {list(features)!r}."
        )
    return [int(one) for one in at]


def _column(X: Any, j: int) -> Floats:
    """A feature as numbers."""
    if hasattr(X, "iloc"):
        return np.asarray(X.iloc[:, j], dtype=float)
    dense = X[:, [j]].toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=float)[:, [j]]
    return np.asarray(dense[:, 0], dtype=float)


def _usual(X: Any, drawn: dict[int, Floats]) -> Any:
    """Samples with given values of some features; others have their median, or what is frequent."""
    n = len(next(iter(drawn.values())))
    if not hasattr(X, "iloc"):
        columns = [drawn.get(j, np.nanmedian(_column(X, j))) for j in range(np.shape(X)[1])]
        return np.column_stack([np.broadcast_to(column, n) for column in columns])
    values = {}
    for j, (name, column) in enumerate(X.items()):
        numbers = getattr(column.dtype, "kind", "O") in "iuf"
        usual = column.median() if numbers else column.mode().iloc[0]
        values[name] = drawn[j] if j in drawn else [usual] * n
    return type(X)(values)


def _in_charge(told: Any) -> NDArray[Any]:
    """Who is in charge of each sample, from what `explain` says."""
    if not hasattr(told, "selected"):
        return np.asarray(told.members)
    trusted = np.where(told.selected, told.competence, -np.inf)
    names = np.array([*told.members, _NOBODY])
    best: NDArray[Any] = names[trusted.argmax(axis=1)]
    best[~told.selected.any(axis=1)] = _NOBODY
    return best
