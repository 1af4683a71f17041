"""Scores of Dask collections: what members say of a block is asked when it is needed.

The same values as in memory: scales of decision values come from one pass over all blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave import _labels
from margrave._asking import Answer, Ask, Columns, Kind
from margrave._given import (
    array_classes,
    array_names,
    block_sizes,
    check_range,
    check_sums,
    checked_shape,
    codes_of,
    frozen,
    leaning,
    merged_seen,
    on_its_way,
    seen,
    stacked,
    the_one,
)
from margrave._typing import AnyInts, Floats
from margrave.scale._blocks import Blocks, is_dask
from margrave.scores._gathering import gathered
from margrave.scores._scores import Scores, check_like


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
        checked_shape(None if self.kind == "label" else X, told)
        if self.kind != "label":
            values = leaning(on_its_way(self.kind, np.asarray(X, dtype=np.float64)))
        if told is not None:
            codes = _labels.encode(_labels.natural(told), known, "labels", self.reject_label)
        else:
            codes = codes_of(values, len(known))  # type: ignore[arg-type]  # one of the two is there
        answers = (
            Answer(self.kind, codes[:, j], None if values is None else values[:, j])
            for j in range(codes.shape[1])
        )
        like = self.like
        return Scores(**gathered(answers, like.members, known, like.features, like))


def lazily_asked(
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
            like = replace(like, scales=frozen(_sizes(named, X, like)))
    return _lazily(_Asker(named, like, ask, n_jobs), X, None, like, ask)


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
    values = frozen(np.empty((0, len(names), *more)))
    return Scores(classes, names, None, values, kinds, np.ones(len(names)), features)


def _sizes(named: list[tuple[str, Any]], X: Any, like: Scores) -> Floats:
    """The largest decision value of each member; one pass over the blocks."""
    at = [j for j, kind in enumerate(like.kinds) if kind == "decision"]
    some = [named[j] for j in at], [like.features[j] for j in at]
    sizes = np.ones(len(named))
    found = Blocks.of("Scores.of", X).reduce(_block_sizes, _largest, *some, like.classes)
    sizes[at] = np.where(found > 0, found, 1.0)
    return sizes


def _block_sizes(X: Any, named: Any, features: Any, classes: NDArray[Any]) -> Floats:
    raw = np.abs(Scores.of(named, X, classes=classes, features=features, ask="values").raw())
    return np.asarray(raw.max(axis=(0, *range(2, raw.ndim))))


def _largest(parts: list[Floats]) -> Floats:
    return np.asarray(np.max(parts, axis=0))


def _lazily(make: Any, X: Any, labels: Any, like: Scores, ask: Ask) -> Scores:
    """Scores whose arrays are Dask's: each block is asked about when it is needed."""
    import dask

    blocks = Blocks.of("Scores", X, labels=labels)
    sent = dask.delayed(make, pure=False, traverse=False)
    asked = dask.delayed(_made, pure=False, traverse=False)
    part_of = dask.delayed(_part_of, pure=False, traverse=False)
    told = [asked(sent, *part) for part in blocks.parts]
    sizes = block_sizes(X, len(blocks))
    codes = np.empty((0, len(like.members)), dtype=np.min_scalar_type(-len(like.classes)))
    empty = {"codes": codes, "values": np.asarray(like.values)[:0]}
    wanted = {"labels": ["codes"], "values": ["values"], "both": ["codes", "values"]}[ask]
    arrays = {
        name: stacked([part_of(one, name, empty[name]) for one in told], sizes, empty[name])
        for name in wanted
    }
    return replace(like, codes=arrays.get("codes"), values=arrays.get("values"))


def _made(make: Any, X: Any, labels: Any) -> Scores | None:
    return make(X, labels) if len(X) else None


def _part_of(told: Scores | None, name: str, empty: NDArray[Any]) -> NDArray[Any]:
    part: NDArray[Any] = empty if told is None else getattr(told, name)
    return part


def lazily_decoded(codes: Any, classes: NDArray[Any], reject_label: Any) -> Any:
    """The labels of codes, block by block, all of one type."""
    every = np.arange(-1, len(classes))  # whether or not one rejects
    kind = _labels.decode(every, classes, reject_label).dtype
    return codes.map_blocks(_decoded, classes, reject_label, kind, dtype=kind)


def _decoded(
    codes: AnyInts, classes: NDArray[Any], reject_label: Any, kind: np.dtype[Any]
) -> NDArray[Any]:
    return _labels.decode(codes, classes, reject_label).astype(kind, copy=False)


def lazily_taken(
    given: dict[str, Any], labels: Any, classes: Any, members: Any, reject_label: Any, like: Any
) -> Scores:
    """Scores from Dask arrays; one pass checks them and finds labels and scales."""
    kind, X = the_one(given)
    X, beside = (labels, None) if X is None else (X, labels)
    if not is_dask(X) or not (beside is None or hasattr(beside, "shape")):
        told = type(beside if is_dask(X) else X).__name__
        raise TypeError(
            "Scores.from_arrays needs values as a Dask collection where labels are one, and labels "
            f"as a Dask collection or an array; got a {told} beside a Dask collection."
        )
    shape = checked_shape(None if kind == "label" else X, labels)
    if len(shape) == 3:
        X = X.rechunk({1: -1, 2: -1})
    n_classes = None if kind == "label" else (2 if len(shape) == 2 else shape[2])
    if like is not None:
        check_like(like, kind, classes, members)
        classes, members = like.classes.tolist(), like.members
    names = array_names(members, X, shape[1])
    blocks = Blocks.of("Scores.from_arrays", X, labels=beside)
    found = blocks.reduce(seen, merged_seen, kind, reject_label)
    if kind != "label":
        check_range(kind, found.low, found.high)
    check_sums(found.off, found.alone, found.n, found.low < found.high)
    answered = np.array(found.labels) if labels is not None else None
    known = array_classes(classes, answered, n_classes, reject_label)
    if answered is not None:
        _labels.encode(answered, known, "labels")
    if like is None:
        like = _reference(names, frozen(known), (None,) * len(names), (kind,) * len(names))
        if kind == "decision":
            like = replace(like, scales=frozen(np.where(found.largest > 0, found.largest, 1.0)))
    ask: Ask = "labels" if kind == "label" else "both"
    return _lazily(_Taker(kind, like, reject_label), X, beside, like, ask)
