"""Scores: what the members of a committee say about some samples, computed once.

Members may give probabilities, decision values or labels only, may have seen different classes,
and may look at different columns. Here they are brought onto the union of their classes and onto
one scale; combiners, selectors and steering work on this, never on the members again.

With two classes there is one value per sample and member, in [-1, 1] and larger for the second
class (the scores of "Rank margin"); with more there is one per class. A value is

- ``2 p - 1`` for a member that gives probabilities, with p = 0 for a class it has not seen;
- ``d / max |d|`` for one that gives decision values, the maximum taken over a reference set and
  kept, so that new data is scaled the same way and clipped to [-1, 1];
- ``±1`` for one that gives labels only, 0 where it rejects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.parallel import Parallel, delayed

from margrave import _labels
from margrave._dask.blocks import Blocks, is_dask
from margrave._dask.lazy import block_sizes, stack_blocks
from margrave._indexing import Columns, select_columns
from margrave._typing import AnyInts, Floats
from margrave._validation import fitted_classes, member_features, name_members
from margrave.scores._arrays import (
    array_classes,
    array_names,
    check_range,
    check_shape,
    check_sums,
    merge_summaries,
    only_kind,
    predicted_codes,
    read_only,
    read_values,
    summarise_block,
    to_unit_range,
    toward_second_class,
)
from margrave.scores._predictions import (
    Ask,
    Kind,
    MemberPredictions,
    ask_member,
    largest_size,
    on_scale,
    tree_input,
)


def ask_members(
    calls: Iterable[tuple[Any, ...]], n_members: int, n_jobs: int | None
) -> Iterator[MemberPredictions]:
    """The members' answers, some at a time in threads; a small tree is quicker than a dispatch."""
    jobs = effective_n_jobs(n_jobs)
    if jobs == 1:
        yield from (ask_member(*call) for call in calls)  # not all held at a time
        return
    some, at_once = iter(calls), -(-n_members // (4 * jobs))
    parts = iter(lambda: list(islice(some, at_once)), [])
    threads = Parallel(n_jobs=jobs, backend="threading", return_as="generator")
    for answers in threads(delayed(_each)(part) for part in parts):
        yield from answers


def _each(calls: Iterable[tuple[Any, ...]]) -> list[MemberPredictions]:
    """Members asked one after the other."""
    return [ask_member(*call) for call in calls]


def gather_predictions(
    answers: Iterable[MemberPredictions],
    names: tuple[str, ...],
    classes: NDArray[Any],
    features: tuple[Columns | None, ...],
    like: Any,
) -> dict[str, Any]:
    """What Scores hold: answers side by side, decision values divided by their scale."""
    codes: AnyInts | None = None
    values: Floats | None = None
    kinds: list[Kind] = []
    scales = np.ones(len(names)) if like is None else like.scales.copy()
    for j, answer in enumerate(answers):
        kinds.append(answer.kind)
        if j == len(names):
            break
        if answer.codes is not None:
            if codes is None:
                smallest = np.min_scalar_type(-len(classes))
                codes = np.empty((len(answer.codes), len(names)), dtype=smallest)
            codes[:, j] = answer.codes
        if answer.values is not None:
            if values is None:
                values = np.empty((len(answer.values), len(names), *answer.values.shape[1:]))
            own = answer.values
            if answer.kind == "decision":
                scales[j] = largest_size(own) if like is None else scales[j]
                own = on_scale(own, scales[j])
            values[:, j] = own
    if len(kinds) != len(names):
        got = "more" if len(kinds) > len(names) else str(len(kinds))
        raise ValueError(f"Scores need an answer of each of {len(names)} members; got {got}.")
    return {
        "classes": read_only(classes),
        "members": names,
        "codes": None if codes is None else read_only(codes),
        "values": None if values is None else read_only(values),
        "kinds": tuple(kinds),
        "scales": read_only(scales),
        "features": features,
    }


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """What K members say about n samples.

    Made by :meth:`of` from trained members, or by :meth:`from_arrays`. Of Dask collections, `codes`
    and `values` are Dask arrays, and members are asked about a block when it is needed.

    Attributes
    ----------
    classes : ndarray of shape (C,)
        The union of the members' classes, sorted.
    members : tuple of str
        The members' names.
    codes : ndarray of int, shape (n, K), or None
        The position in ``classes`` of each member's label; -1 where a member rejects.
    values : ndarray of float, shape (n, K) for two classes, else (n, K, C), or None
        How far each member leans to the second class (to each class), in [-1, 1].
    kinds : tuple of str
        Where each member's values come from: probability, decision, label or score.
    scales : ndarray of shape (K,)
        What decision values were divided by.
    features : tuple
        The columns each member looks at; None for all.

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
        """Ask trained members about samples.

        Parameters
        ----------
        members : sequence of classifiers, or of (name, classifier)
            Trained; each has ``classes_`` and ``predict``.
        X : array, sparse matrix, data frame or Dask collection
            The samples. Members with decision values are asked about all blocks of a Dask
            collection at once, for their scales, unless there is `like`.
        like : Scores, optional
            Scores of the same members on a reference set: classes, columns and scales are taken
            from there.
        classes : sequence of labels, optional
            More classes than the members know, to make room for.
        features : sequence (one entry per member) or mapping by name, optional
            The columns a member looks at: names, positions or a slice; None for all. A member
            that knows its column names finds them in a data frame by itself.
        ask : {"both", "labels", "values"}
            What to ask for; labels and values each cost a call of every member.
        n_jobs : int, optional
            Members asked at a time, in threads.

        Returns
        -------
        Scores
        """
        if ask not in ("both", "labels", "values"):
            raise ValueError(f"Scores.of needs ask='both', 'labels' or 'values'; got {ask!r}.")
        if like is not None and (features is not None or classes is not None):
            raise ValueError("Scores.of takes features and classes from like=; leave them out.")
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
            raise ValueError("Scores.of needs values in like= to scale new ones by; it has none.")
        if is_dask(X):
            return ask_lazily(named, X, like, (names, union, columns), ask, n_jobs)
        trees = tree_input(named, X) if all(one is None for one in columns) else None
        calls = (
            (name, member, trees or select_columns(X, chosen, name, member), union, ask)
            for (name, member), chosen in zip(named, columns, strict=True)
        )
        return cls(
            **gather_predictions(
                ask_members(calls, len(named), n_jobs), names, union, columns, like
            )
        )

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
        """Take what members said from arrays, or from Dask collections in one pass.

        Parameters
        ----------
        labels : array-like of shape (n, K), optional
            A label per sample and member. Left out, they follow from the values: the class with
            the largest one, the first of equals.
        proba, decision, scores : array-like, shape (n, K) for two classes or (n, K, C), optional
            At most one of them: probabilities (of the second class, or of each), decision values
            of any size, or scores already in [-1, 1]. One member's ``predict_proba(X)`` is
            ``proba[:, None, :]`` here.
        classes : sequence of labels, optional
            Sorted; by default the labels that occur, or 0, 1, ...
        members : sequence of str, optional
            Names; by default a data frame's columns, or member1, member2, ...
        reject_label : label, optional
            The label that means a member gave no answer.
        like : Scores, optional
            A reference set: classes, names and the scales of decision values are taken from there.
        """
        if is_dask(labels, proba, decision, scores):
            values_of = {"probability": proba, "decision": decision, "score": scores}
            return read_lazily(values_of, labels, classes, members, reject_label, like)
        kind, values = read_values(probability=proba, decision=decision, score=scores)
        told = None if labels is None else _labels.natural(labels)
        shape = check_shape(values, told)
        n_classes = None if values is None else (2 if values.ndim == 2 else shape[2])
        if like is not None:
            check_like(like, kind, classes, members)
            classes, members = like.classes.tolist(), like.members
        known = array_classes(classes, told, n_classes, reject_label)
        given = next((one for one in (proba, decision, scores, labels) if one is not None), None)
        names = array_names(members, given, shape[1])
        values = None if values is None else toward_second_class(values)
        if told is not None:
            codes = _labels.encode(told, known, "labels", reject_label)
        else:
            codes = predicted_codes(values, len(known))  # type: ignore[arg-type]  # one of the two is there
        answers = (
            MemberPredictions(kind, codes[:, j], None if values is None else values[:, j])
            for j in range(len(names))
        )
        return cls(**gather_predictions(answers, names, known, (None,) * len(names), like))

    @classmethod
    def side_by_side(cls, parts: Sequence[Scores]) -> Scores:
        """The members of several scores of the same samples, over the same classes.

        Parameters
        ----------
        parts : sequence of Scores
            Of different members, asked for the same.

        Returns
        -------
        Scores
        """
        first, arrays = parts[0], {}
        for name in ("codes", "values"):
            held = [getattr(part, name) for part in parts]
            arrays[name] = None if held[0] is None else read_only(np.concatenate(held, axis=1))
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
        told = self.codes if self.codes is not None else self.values
        count: Any = len(self) if told is None or not np.isnan(told.shape[0]) else "?"
        return (
            f"Scores({count} samples, {self.n_members} members: {members}, "
            f"{len(self.classes)} classes: {classes})"
        )

    def __len__(self) -> int:
        told = self.codes if self.codes is not None else self.values
        return 0 if told is None else len(told)

    @property
    def n_members(self) -> int:
        """Number of members, K."""
        return len(self.members)

    @property
    def reject_label(self) -> Any:
        """What :attr:`labels` hold where a member gave no answer: never a class."""
        return _labels.default_reject_label(self.classes)

    @property
    def labels(self) -> NDArray[Any]:
        """The members' labels, shape (n, K); :attr:`reject_label` where a member rejects."""
        codes = self._known_codes()
        if is_dask(codes):
            lazy: NDArray[Any] = decode_lazily(codes, self.classes, self.reject_label)
            return lazy
        return _labels.decode(codes, self.classes, self.reject_label)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Arrays come back from a pickle writable; ours are not."""
        for name, value in state.items():
            kept = read_only(value) if isinstance(value, np.ndarray) else value
            object.__setattr__(self, name, kept)

    def toward(self, label: Any = None) -> Floats:
        """How far each member leans to one class rather than the rest, in [-1, 1].

        Parameters
        ----------
        label : label, optional
            The class; may be left out with two classes, and is then the second.

        Returns
        -------
        ndarray of shape (n, K)
        """
        values = self._known_values()
        if label is None and len(self.classes) > 2:
            raise ValueError(
                f"Scores.toward needs one of the classes {_labels.shown(self.classes)}."
            )
        last = len(self.classes) - 1
        code = last
        if label is not None:
            code = int(_labels.encode([label], self.classes, "Scores.toward")[0])
        if values.ndim == 3:
            return values[:, :, code]
        return values if code == last else -values

    def raw(self) -> Floats:
        """The values in the members' own units: decision values undivided, others as they are."""
        values = self._known_values()
        return values * (self.scales if values.ndim == 2 else self.scales[:, None])

    def proba(self) -> Floats:
        """The members' probabilities, a new array of shape (n, K, C), exact to 1e-16.

        Raises
        ------
        ValueError
            If a member does not give probabilities.
        """
        others = [
            name
            for name, kind in zip(self.members, self.kinds, strict=True)
            if kind != "probability"
        ]
        if others:
            raise ValueError(
                "Scores.proba needs members with predict_proba; these lack it: "
                f"{', '.join(others)} (sklearn.calibration.CalibratedClassifierCV adds it)."
            )
        values = self._known_values()
        if values.ndim == 2:
            values = np.stack([-values, values], axis=2)[:, :, -len(self.classes) :]
        return (values + 1) / 2

    def rows(self, index: Any) -> Scores:
        """The same members on some of the samples.

        Parameters
        ----------
        index : mask, positions or slice
            The samples.

        Returns
        -------
        Scores
        """
        at = index
        if not is_dask(self.codes, self.values):
            at = np.atleast_1d(np.arange(len(self))[index])
        elif isinstance(index, int | np.integer):
            at = [index]
        return replace(
            self,
            codes=None if self.codes is None else read_only(self.codes[at]),
            values=None if self.values is None else read_only(self.values[at]),
        )

    def pick(self, members: Sequence[str]) -> Scores:
        """Some of the members on the same samples.

        Parameters
        ----------
        members : sequence of str
            Their names, in the order wanted.

        Returns
        -------
        Scores
        """
        different = set(members) <= set(self.members) and len(set(members)) == len(members)
        if isinstance(members, str) or not different or not len(members):
            raise ValueError(
                "Scores.pick needs a list of different names among "
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
            raise ValueError("Scores were made with ask='values' and hold no labels.")
        return self.codes

    def _known_values(self) -> Floats:
        if self.values is None:
            raise ValueError("Scores were made with ask='labels' and hold no values.")
        return self.values


def check_like(like: Scores, kind: Kind, classes: Any, members: Any) -> None:
    """Refuse what a reference set already says, and one that cannot scale decision values."""
    if classes is not None or members is not None:
        raise ValueError("Scores.from_arrays takes classes and members from like=; leave them out.")
    if kind == "decision" and (like.values is None or set(like.kinds) != {"decision"}):
        raise ValueError("Scores.from_arrays needs decision values in like= to scale new ones by.")


@dataclass(frozen=True)
class _Asker:
    """Asks members about a block, as they were asked about a reference set."""

    named: list[tuple[str, Any]]
    like: Scores
    ask: Ask
    n_jobs: int | None

    def __call__(self, X: Any, _: Any) -> Scores:
        return Scores.of(self.named, X, like=self.like, ask=self.ask, n_jobs=self.n_jobs)


@dataclass(frozen=True)
class _Taker:
    """Takes what members said from the arrays of a block."""

    kind: Kind
    like: Scores
    reject_label: Any

    def __call__(self, X: Any, labels: Any) -> Scores:
        told, values, known = X if self.kind == "label" else labels, None, self.like.classes
        check_shape(None if self.kind == "label" else X, told)
        if self.kind != "label":
            values = toward_second_class(to_unit_range(self.kind, np.asarray(X, dtype=np.float64)))
        if told is not None:
            codes = _labels.encode(_labels.natural(told), known, "labels", self.reject_label)
        else:
            codes = predicted_codes(values, len(known))  # type: ignore[arg-type]  # one of the two is there
        answers = (
            MemberPredictions(self.kind, codes[:, j], None if values is None else values[:, j])
            for j in range(codes.shape[1])
        )
        like = self.like
        return Scores(**gather_predictions(answers, like.members, known, like.features, like))


def ask_lazily(
    named: list[tuple[str, Any]],
    X: Any,
    like: Scores | None,
    known: tuple[tuple[str, ...], NDArray[Any], tuple[Columns | None, ...]],
    ask: Ask,
    n_jobs: int | None,
) -> Scores:
    """Ask members about each block when it is needed; `known` are names, classes and columns."""
    if like is None:
        like = _reference(*known, _kinds(named))
        if ask != "labels" and "decision" in like.kinds:
            like = replace(like, scales=read_only(_decision_scales(named, X, like)))
    return _make_lazily(_Asker(named, like, ask, n_jobs), X, None, like, ask)


def _kinds(named: list[tuple[str, Any]]) -> tuple[Kind, ...]:
    """Where members' values come from, without asking them."""
    return tuple(
        "probability"
        if hasattr(member, "predict_proba")
        else "decision"
        if hasattr(member, "decision_function")
        else "label"
        for _, member in named
    )


def _reference(
    names: tuple[str, ...],
    classes: NDArray[Any],
    features: tuple[Columns | None, ...],
    kinds: tuple[Kind, ...],
) -> Scores:
    """Scores of no samples, to scale others by."""
    more = (len(classes),) if len(classes) > 2 else ()
    values = read_only(np.empty((0, len(names), *more)))
    return Scores(classes, names, None, values, kinds, np.ones(len(names)), features)


def _decision_scales(named: list[tuple[str, Any]], X: Any, like: Scores) -> Floats:
    """The largest decision value of each member; one pass over the blocks."""
    at = [j for j, kind in enumerate(like.kinds) if kind == "decision"]
    some = [named[j] for j in at], [like.features[j] for j in at]
    sizes = np.ones(len(named))
    found = Blocks.of("Scores.of", X).reduce(_block_scales, _largest, *some, like.classes)
    sizes[at] = np.where(found > 0, found, 1.0)
    return sizes


def _block_scales(X: Any, named: Any, features: Any, classes: NDArray[Any]) -> Floats:
    raw = np.abs(Scores.of(named, X, classes=classes, features=features, ask="values").raw())
    return np.asarray(raw.max(axis=(0, *range(2, raw.ndim))))


def _largest(parts: list[Floats]) -> Floats:
    return np.asarray(np.max(parts, axis=0))


def _make_lazily(make: Any, X: Any, labels: Any, like: Scores, ask: Ask) -> Scores:
    """Scores whose arrays are Dask's: each block is asked about when it is needed."""
    import dask

    blocks = Blocks.of("Scores", X, labels=labels)
    sent = dask.delayed(make, pure=False, traverse=False)
    ask_members = dask.delayed(_make_block, pure=False, traverse=False)
    part_of = dask.delayed(_array_of, pure=False, traverse=False)
    told = [ask_members(sent, *part) for part in blocks.parts]
    sizes = block_sizes(X, len(blocks))
    codes = np.empty((0, len(like.members)), dtype=np.min_scalar_type(-len(like.classes)))
    empty = {"codes": codes, "values": np.asarray(like.values)[:0]}
    wanted = {"labels": ["codes"], "values": ["values"], "both": ["codes", "values"]}[ask]
    arrays = {
        name: stack_blocks([part_of(one, name, empty[name]) for one in told], sizes, empty[name])
        for name in wanted
    }
    return replace(like, codes=arrays.get("codes"), values=arrays.get("values"))


def _make_block(make: Any, X: Any, labels: Any) -> Scores | None:
    return make(X, labels) if len(X) else None


def _array_of(told: Scores | None, name: str, empty: NDArray[Any]) -> NDArray[Any]:
    part: NDArray[Any] = empty if told is None else getattr(told, name)
    return part


def decode_lazily(codes: Any, classes: NDArray[Any], reject_label: Any) -> Any:
    """The labels of codes, block by block, all of one type."""
    every = np.arange(-1, len(classes))  # whether or not one rejects
    kind = _labels.decode(every, classes, reject_label).dtype
    return codes.map_blocks(_decode_block, classes, reject_label, kind, dtype=kind)


def _decode_block(
    codes: AnyInts, classes: NDArray[Any], reject_label: Any, kind: np.dtype[Any]
) -> NDArray[Any]:
    return _labels.decode(codes, classes, reject_label).astype(kind, copy=False)


def read_lazily(
    given: dict[str, Any], labels: Any, classes: Any, members: Any, reject_label: Any, like: Any
) -> Scores:
    """Scores from Dask arrays; one pass checks them and finds labels and scales."""
    kind, X = only_kind(given)
    X, beside = (labels, None) if X is None else (X, labels)
    if not is_dask(X) or not (beside is None or hasattr(beside, "shape")):
        told = type(beside if is_dask(X) else X).__name__
        raise TypeError(
            "Scores.from_arrays needs values as a Dask collection where labels are one, and labels "
            f"as a Dask collection or an array; got a {told} beside a Dask collection."
        )
    shape = check_shape(None if kind == "label" else X, labels)
    if len(shape) == 3:
        X = X.rechunk({1: -1, 2: -1})
    n_classes = None if kind == "label" else (2 if len(shape) == 2 else shape[2])
    if like is not None:
        check_like(like, kind, classes, members)
        classes, members = like.classes.tolist(), like.members
    names = array_names(members, X, shape[1])
    blocks = Blocks.of("Scores.from_arrays", X, labels=beside)
    found = blocks.reduce(summarise_block, merge_summaries, kind, reject_label)
    if kind != "label":
        check_range(kind, found.low, found.high)
    check_sums(found.off, found.alone, found.n, found.low < found.high)
    answered = np.array(found.labels) if labels is not None else None
    known = array_classes(classes, answered, n_classes, reject_label)
    if answered is not None:
        _labels.encode(answered, known, "labels")
    if like is None:
        like = _reference(names, read_only(known), (None,) * len(names), (kind,) * len(names))
        if kind == "decision":
            like = replace(like, scales=read_only(np.where(found.largest > 0, found.largest, 1.0)))
    ask: Ask = "labels" if kind == "label" else "both"
    return _make_lazily(_Taker(kind, like, reject_label), X, beside, like, ask)
