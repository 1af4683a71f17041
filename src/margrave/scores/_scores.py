"""Scores: the predictions of a committee's members for some samples, computed once.

The class `Scores` comes first, then the helpers that collect the members' predictions.

Members may predict probabilities, decision values or labels only, may have been fitted on
different classes, and may use different columns. `Scores` holds their predictions over the union
of their classes and on one scale; combiners, selectors and steering work on these arrays.

With two classes there is one value per sample and member, in [-1, 1] and larger for the second
class (the scores of Marrocco et al., 2010); with more classes there is one value per class. It is

- ``2 p - 1`` for a member with probabilities, with p = 0 for a class it was not fitted on;
- ``d / max |d|`` for a member with decision values. The maximum over a reference set is kept, so
  that new data is scaled in the same way, and clipped to [-1, 1];
- ``±1`` for a member that predicts labels only, 0 where it rejects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.parallel import Parallel, delayed

from margrave import _labels
from margrave._indexing import Columns, select_columns
from margrave._typing import AnyInts, Floats
from margrave._validation import fitted_classes, member_features, name_members
from margrave.scores._arrays import (
    check_shape,
    find_classes,
    find_names,
    predict_codes,
    read_only,
    read_values,
    toward_second_class,
)
from margrave.scores._predictions import (
    Ask,
    Kind,
    MemberPredictions,
    largest_size,
    on_scale,
    predict_member,
    predict_proba,
    tree_input,
)

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """The predictions of K members for n samples.

    Use :meth:`of` to compute them with fitted members, or :meth:`from_arrays` to read them from
    arrays.

    Attributes
    ----------
    classes : ndarray of shape (C,)
        The union of the members' classes, sorted.
    members : tuple of str
        The members' names.
    codes : ndarray of int, shape (n, K), or None
        The position in ``classes`` of each member's label; -1 where a member rejects.
    values : ndarray of float, shape (n, K) for two classes, else (n, K, C), or None
        Each member's score for the second class (for each class), in [-1, 1].
    kinds : tuple of str
        The origin of each member's values: "probability", "decision", "label" or "score".
    scales : ndarray of shape (K,)
        The divisors of decision values; 1 for other kinds.
    features : tuple
        The columns that each member uses; None for all.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from margrave import Scores
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [GaussianNB().fit(X, y), DecisionTreeClassifier(max_depth=2).fit(X[:, 2:], y)]
    >>> Scores.of(members, X, features=[None, [2, 3]])
    Scores(150 samples, 2 members: gaussiannb, decisiontreeclassifier, 3 classes: 0, 1, 2)
    """

    classes: NDArray[Any]
    members: tuple[str, ...]
    codes: AnyInts | None
    values: Floats | None
    kinds: tuple[Kind, ...]
    scales: Floats
    features: tuple[Columns | None, ...]

    @classmethod
    def of(
        cls,
        members: Sequence[Any],
        X: Any,
        *,
        like: Scores | None = None,
        classes: ArrayLike | None = None,
        features: Sequence[Columns | None] | Mapping[str, Columns] | None = None,
        ask: Ask = "both",
        n_jobs: int | None = None,
    ) -> Scores:
        """Compute the predictions of fitted members.

        Parameters
        ----------
        members : sequence of classifiers, or of (name, classifier)
            Fitted; each has ``classes_`` and ``predict``.
        X : array, sparse matrix or data frame
            The samples.
        like : Scores, optional
            Scores of the same members on a reference set, whose classes, columns and scales are
            used.
        classes : sequence of labels, optional
            Classes to include besides those of the members.
        features : sequence (one entry per member) or mapping by name, optional
            The columns that a member uses: names, positions or a slice; None for all. In a data
            frame, a member that was fitted with column names selects its columns by itself.
        ask : {"both", "labels", "values"}
            What to compute; labels and values each cost one call of every member.
        n_jobs : int, optional
            Number of members that predict at a time, in threads.

        Returns
        -------
        Scores
        """
        if ask not in ("both", "labels", "values"):
            raise ValueError(f"Scores.of needs ask='both', 'labels' or 'values'; got {ask!r}.")
        if like is not None and (features is not None or classes is not None):
            raise ValueError(
                "Scores.of takes features and classes from like=; got them too. Leave them out."
            )
        named = name_members(members, "Scores.of")
        names = tuple(name for name, _ in named)
        if like is not None and like.members != names:
            raise ValueError(
                f"Scores.of needs the members of like=, {', '.join(like.members)}; "
                f"got {', '.join(names)}."
            )
        columns = like.features if like is not None else member_features(features, names)
        known = [(f"member {name!r}", fitted_classes(name, member)) for name, member in named]
        if classes is not None:
            known.append(("classes", np.asarray(classes)))
        union = like.classes if like is not None else _labels.union(known)
        if like is not None and like.values is None and ask != "labels":
            raise ValueError(
                "Scores.of needs like= to hold values, which scale the new ones; got labels only."
            )
        predictions = _call_members(
            partial(predict_member, classes=union, ask=ask), named, X, columns, n_jobs
        )
        return cls(**_gather_predictions(predictions, names, union, columns, like))

    @classmethod
    def from_arrays(
        cls,
        *,
        labels: ArrayLike | None = None,
        proba: ArrayLike | None = None,
        decision: ArrayLike | None = None,
        scores: ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
        members: Sequence[str] | None = None,
        reject_label: Any = None,
        like: Scores | None = None,
    ) -> Scores:
        """Read predictions from arrays.

        Parameters
        ----------
        labels : array-like of shape (n, K), optional
            A label per sample and member. By default the class with the largest value, the first
            of equals.
        proba, decision, scores : array-like, shape (n, K) for two classes or (n, K, C), optional
            At most one of them: probabilities (of the second class, or of each), decision values
            of any size, or scores already in [-1, 1]. Pass one member's ``predict_proba(X)`` as
            ``proba[:, None, :]``.
        classes : sequence of labels, optional
            Sorted; by default the labels that occur, or 0, 1, ...
        members : sequence of str, optional
            Names; by default a data frame's columns, or member1, member2, ...
        reject_label : label, optional
            The label of a sample that a member rejects.
        like : Scores, optional
            Scores of a reference set, whose classes, names and scales of decision values are used.

        Returns
        -------
        Scores
        """
        kind, values = read_values(probability=proba, decision=decision, score=scores)
        label_array = None if labels is None else _labels.natural(labels)
        shape = check_shape(values, label_array)
        n_classes = None if values is None else (2 if values.ndim == 2 else shape[2])
        if like is not None:
            _check_like(like, kind, classes, members)
            classes, members = like.classes.tolist(), like.members
        union = find_classes(classes, label_array, n_classes, reject_label)
        arrays = (proba, decision, scores, labels)
        names = find_names(members, next(a for a in arrays if a is not None), shape[1])
        values = None if values is None else toward_second_class(values)
        predictions = _split_members(kind, values, label_array, union, reject_label)
        return cls(**_gather_predictions(predictions, names, union, (None,) * len(names), like))

    @classmethod
    def side_by_side(cls, parts: Sequence[Scores]) -> Scores:
        """Join the scores of different members for the same samples and classes.

        Parameters
        ----------
        parts : sequence of Scores
            Scores of different members, all made with the same `ask`.

        Returns
        -------
        Scores
        """
        if not parts or not all(isinstance(part, Scores) for part in parts):
            raise TypeError("Scores.side_by_side needs a list of at least one Scores.")
        first, arrays = parts[0], {}
        for name in ("codes", "values"):
            own = [getattr(part, name) for part in parts]
            arrays[name] = None if own[0] is None else read_only(np.concatenate(own, axis=1))
        return cls(
            first.classes,
            sum((part.members for part in parts), ()),
            arrays["codes"],
            arrays["values"],
            sum((part.kinds for part in parts), ()),
            read_only(np.concatenate([part.scales for part in parts])),
            sum((part.features for part in parts), ()),
        )

    def __repr__(self) -> str:
        members, classes = (
            ", ".join([*map(str, names[:5]), *(["..."] if len(names) > 5 else [])])
            for names in (self.members, self.classes)
        )
        return (
            f"Scores({len(self)} samples, {self.n_members} members: {members}, "
            f"{len(self.classes)} classes: {classes})"
        )

    def __len__(self) -> int:
        array = self.codes if self.codes is not None else self.values
        return 0 if array is None else len(array)

    @property
    def n_members(self) -> int:
        """Number of members, K."""
        return len(self.members)

    @property
    def reject_label(self) -> Any:
        """The label of a rejected sample in :attr:`labels`; never a class."""
        return _labels.default_reject_label(self.classes)

    @property
    def labels(self) -> NDArray[Any]:
        """The members' labels, shape (n, K); :attr:`reject_label` where a member rejects."""
        return _labels.decode(self._known_codes(), self.classes, self.reject_label)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the arrays of a pickle read-only again."""
        for name, value in state.items():
            restored = read_only(value) if isinstance(value, np.ndarray) else value
            object.__setattr__(self, name, restored)

    def toward(self, label: Any = None) -> Floats:
        """Return each member's score for one class against the rest, in [-1, 1].

        Parameters
        ----------
        label : label, optional
            The class. With two classes it defaults to the second.

        Returns
        -------
        ndarray of shape (n, K)
        """
        values = self._known_values()
        if label is None and len(self.classes) > 2:
            raise ValueError(
                f"Scores.toward needs label to be one of {_labels.shown(self.classes)}; got None."
            )
        last = len(self.classes) - 1
        code = last
        if label is not None:
            code = int(_labels.encode([label], self.classes, "Scores.toward")[0])
        if values.ndim == 3:
            return values[:, :, code]
        return values if code == last else -values

    def raw(self) -> Floats:
        """Return the values in the members' own units: decision values are not scaled."""
        values = self._known_values()
        return values * (self.scales if values.ndim == 2 else self.scales[:, None])

    def proba(self) -> Floats:
        """Return the members' probabilities, exact to 1e-16.

        Returns
        -------
        ndarray of shape (n, K, C)
            A new array.

        Raises
        ------
        ValueError
            If a member has no probabilities.
        """
        others = [
            name
            for name, kind in zip(self.members, self.kinds, strict=True)
            if kind != "probability"
        ]
        if others:
            raise ValueError(
                "Scores.proba needs members with predict_proba; these have none: "
                f"{', '.join(others)}. sklearn.calibration.CalibratedClassifierCV adds it."
            )
        values = self._known_values()
        if values.ndim == 2:
            values = np.stack([-values, values], axis=2)[:, :, -len(self.classes) :]
        return (values + 1) / 2

    def rows(self, index: Any) -> Scores:
        """Select samples.

        Parameters
        ----------
        index : mask, positions or slice
            The samples to keep.

        Returns
        -------
        Scores
        """
        at = np.atleast_1d(np.arange(len(self))[index])
        return replace(
            self,
            codes=None if self.codes is None else read_only(self.codes[at]),
            values=None if self.values is None else read_only(self.values[at]),
        )

    def pick(self, members: Sequence[str]) -> Scores:
        """Select members.

        Parameters
        ----------
        members : sequence of str
            The names of the members to keep, in the new order.

        Returns
        -------
        Scores
        """
        different = set(members) <= set(self.members) and len(set(members)) == len(members)
        if isinstance(members, str) or not different or not len(members):
            raise ValueError(
                "Scores.pick needs members to be a list of different names among "
                f"{', '.join(self.members)}; got {members!r}."
            )
        at = [self.members.index(name) for name in members]
        return replace(
            self,
            members=tuple(members),
            codes=None if self.codes is None else read_only(self.codes[:, at]),
            values=None if self.values is None else read_only(self.values[:, at]),
            kinds=tuple(self.kinds[j] for j in at),
            scales=self.scales[at],
            features=tuple(self.features[j] for j in at),
        )

    def _known_codes(self) -> AnyInts:
        if self.codes is None:
            raise ValueError(
                "These Scores hold no labels: they were made with ask='values'. Use ask='both'."
            )
        return self.codes

    def _known_values(self) -> Floats:
        if self.values is None:
            raise ValueError(
                "These Scores hold no values: they were made with ask='labels'. Use ask='both'."
            )
        return self.values


# Collecting the members' predictions


def each_proba(
    named: Sequence[tuple[str, Any]],
    X: Any,
    classes: NDArray[Any],
    features: Sequence[Columns | None] | None = None,
    n_jobs: int | None = None,
) -> Iterator[Floats]:
    """Yield the probabilities of each member, of shape (n, C), as the member predicts them.

    With `n_jobs=None`, those of one member are in memory at a time. `Scores` needs all at once, and
    rounds probabilities below 1e-16 to 0.

    Parameters
    ----------
    named : sequence of (name, classifier)
        Fitted members with probabilities.
    X : array, sparse matrix or data frame
        The samples.
    classes : ndarray of shape (C,)
        The classes of the committee; a member has probability 0 for those it was not fitted on.
    features : sequence, optional
        The columns that each member uses; None for all.
    n_jobs : int, optional
        Number of members that predict at a time, in threads.
    """
    columns = [None] * len(named) if features is None else features
    yield from _call_members(partial(predict_proba, classes=classes), named, X, columns, n_jobs)


def _call_members(
    predict: Callable[[str, Any, Any], Result],
    named: Sequence[tuple[str, Any]],
    X: Any,
    columns: Sequence[Columns | None],
    n_jobs: int | None,
) -> Iterator[Result]:
    """Yield the members' predictions in order; each thread computes a batch of members.

    Batches, because a small tree predicts faster than a thread is dispatched.
    """
    trees = tree_input(named, X) if all(chosen is None for chosen in columns) else None
    calls = (
        (name, member, trees or select_columns(X, chosen, name, member))
        for (name, member), chosen in zip(named, columns, strict=True)
    )
    jobs = effective_n_jobs(n_jobs)
    if jobs == 1:
        yield from (predict(*call) for call in calls)  # one in memory at a time
        return
    batch_size = -(-len(named) // (4 * jobs))
    batches = iter(lambda: list(islice(calls, batch_size)), [])
    threads = Parallel(n_jobs=jobs, backend="threading", return_as="generator")
    for predictions in threads(delayed(_call_batch)(predict, batch) for batch in batches):
        yield from predictions


def _call_batch(
    predict: Callable[[str, Any, Any], Result], calls: Iterable[tuple[str, Any, Any]]
) -> list[Result]:
    return [predict(*call) for call in calls]


def _split_members(
    kind: Kind,
    values: Floats | None,
    labels: NDArray[Any] | None,
    classes: NDArray[Any],
    reject_label: Any,
) -> Iterator[MemberPredictions]:
    """Split arrays of labels, of values or of both into the predictions of each member."""
    if labels is not None:
        codes = _labels.encode(labels, classes, "labels", reject_label)
    else:
        codes = predict_codes(values, len(classes))  # type: ignore[arg-type]  # one of the two is there
    return (
        MemberPredictions(kind, codes[:, j], None if values is None else values[:, j])
        for j in range(codes.shape[1])
    )


def _gather_predictions(
    predictions: Iterable[MemberPredictions],
    names: tuple[str, ...],
    classes: NDArray[Any],
    features: tuple[Columns | None, ...],
    like: Scores | None,
) -> dict[str, Any]:
    """Return the fields of Scores: predictions side by side, decision values scaled."""
    codes: AnyInts | None = None
    values: Floats | None = None
    kinds: list[Kind] = []
    scales = np.ones(len(names)) if like is None else like.scales.copy()
    for j, prediction in enumerate(predictions):
        kinds.append(prediction.kind)
        if j == len(names):
            break
        if prediction.codes is not None:
            if codes is None:
                smallest = np.min_scalar_type(-len(classes))
                codes = np.empty((len(prediction.codes), len(names)), dtype=smallest)
            codes[:, j] = prediction.codes
        own = prediction.values
        if own is not None:
            if values is None:
                values = np.empty((len(own), len(names), *own.shape[1:]))
            if prediction.kind == "decision":
                scales[j] = largest_size(own) if like is None else scales[j]
                own = on_scale(own, scales[j])
            values[:, j] = own
    if len(kinds) != len(names):
        got = "more" if len(kinds) > len(names) else str(len(kinds))
        raise ValueError(f"Scores need predictions of {len(names)} members; got {got}.")
    return {
        "classes": read_only(classes),
        "members": names,
        "codes": None if codes is None else read_only(codes),
        "values": None if values is None else read_only(values),
        "kinds": tuple(kinds),
        "scales": read_only(scales),
        "features": features,
    }


def _check_like(like: Scores, kind: Kind, classes: Any, members: Any) -> None:
    """Check that a reference set can scale decision values, and that nothing contradicts it."""
    if classes is not None or members is not None:
        raise ValueError(
            "Scores.from_arrays takes classes and members from like=; got them too. Leave them out."
        )
    if kind == "decision" and (like.values is None or set(like.kinds) != {"decision"}):
        raise ValueError(
            "Scores.from_arrays scales decision by the decision values of like=; got a like= that "
            "has none."
        )
