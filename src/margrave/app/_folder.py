"""One whole request about a folder of Parquet files, which need not fit into memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from margrave._messages import missing_extra
from margrave.app._job import Parts, Result
from margrave.app._samples import Table, listed, match_label
from margrave.committee import Progress
from margrave.confusion import Confusion, Preference
from margrave.scale import cluster, read_parquet
from margrave.scale._roles import Draw
from margrave.scale._steer import TunedRows, tune_rows
from margrave.steer._certify import check_confidence, describe_support
from margrave.steer._order_statistic import GuaranteeError
from margrave.steer._reply import Reply
from margrave.steer._steered import SteeredClassifier
from margrave.table._kinds import read_texts

_PATIENCE = 3.0  # seconds: with all that has to be loaded, an answer is due within ten


@contextmanager
def working(address: str | None, here: bool) -> Iterator[None]:
    """Work on a cluster: one that is there, or processes of this machine if they are wanted.

    Parameters
    ----------
    address : str or None
        Of a scheduler.
    here : bool
        Whether to start processes where there is no address.
    """
    if address is None and not here:
        yield
        return
    with cluster(address, timeout=_PATIENCE) as client:
        from distributed import KilledWorker

        if address is None:
            client.run(_hush)  # what is wrong is told once, by the command
        try:
            yield
        except KilledWorker as error:
            raise ValueError(
                "The workers were lost again and again, most likely for want of memory: smaller "
                "row groups in the files, or workers with more memory, would do."
            ) from error


def _hush() -> None:
    logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)


@dataclass(frozen=True, eq=False)
class Folder:
    """The rows of a folder of files.

    Attributes
    ----------
    table : Table
        All columns, as a Dask data frame.
    target : str
        The column with the labels.
    X, y : Dask data frame and series
        The features and the labels.
    positive : str or None
        The positive class as text.
    """

    table: Table
    target: str
    X: Any
    y: Any
    positive: str | None = None


def open_folder(path: Path) -> Table:
    """A folder of Parquet files as a table of Dask."""
    try:
        # Workers may have been started elsewhere.
        return Table(read_parquet(path.absolute()), path.absolute().name, path)
    except ModuleNotFoundError as error:
        message = missing_extra("A folder of files", str(error.name), "dask")
        raise ImportError(message) from error


def folder_of(
    path: Path, *, target: str | None, positive: str | None = None, drop: Sequence[str] = ()
) -> Folder:
    """A folder as a user describes it; only the ends of its files are read.

    Parameters
    ----------
    path : Path
        The folder.
    target : str or None
        The column with the labels.
    positive : str or None
        The positive class as text.
    drop : sequence of str
        Columns that are not to be used.
    """
    table = open_folder(path)
    frame: Any = table.frame
    if target is None:
        names = listed([str(name) for name in frame.columns])
        raise ValueError(f"--target needs the column with the classes: one of {names}.")
    column: Any = table.column(target, "--target")
    for name in drop:
        table.column(name, "--drop")
    left = [name for name in frame.columns if name not in {target, *drop}]
    if not left:
        raise ValueError(f"{table.name} needs columns to learn from besides {listed([target])}.")
    y = column.map_partitions(
        _labels_in, target, table.name, meta=(target, object), enforce_metadata=False
    )
    return Folder(table, target, frame[left], y, positive)


def _labels_in(column: Any, target: str, name: str) -> Any:
    """Labels of a block in their own type, as those of a single file."""
    from pandas import Series
    from pandas.api import types

    texts = read_texts(column)
    missing = int((texts == "").sum())
    if missing:
        raise ValueError(
            f"--target needs a value in every row; {target!r} of {name} has none in {missing} of "
            f"{len(texts)} rows that are read together."
        )
    if types.is_bool_dtype(column.dtype) or types.is_numeric_dtype(column.dtype):
        return Series(column.to_numpy(), index=column.index)
    return Series([str(text) for text in texts], index=column.index, dtype=object)


@dataclass(frozen=True, eq=False)
class FolderOutcome(Result):
    """What became of a request about a folder.

    Attributes
    ----------
    samples : Folder
        What was asked about.
    tuned : Tuned
        What was trained, and how it scores.
    replies : tuple of Reply
        To what was asked.
    confidence, model, refusal
        As in :class:`Outcome`.
    """

    samples: Folder
    tuned: TunedRows
    replies: tuple[Reply, ...]
    confidence: float
    model: SteeredClassifier | None = None
    refusal: str = ""

    @property
    def start(self) -> Reply:
        """The rows before anything was asked."""
        return self.tuned.start

    @property
    def reply(self) -> Reply:
        """The last reply."""
        return self.replies[-1]

    @property
    def parts(self) -> Parts:
        """Who saw how many rows."""
        return Parts(**self.tuned.roles.parts, unused=0)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.tuned.roles.counts.sum())

    @property
    def encoder(self) -> Any:
        """What columns were taken for."""
        return self.tuned.scorer.committee.encoder

    def told_parts(self) -> str:
        """The parts, in words."""
        parts, support = (
            self.parts,
            describe_support(self.tuned.codes, self.tuned.classes, self.confidence),
        )
        return (
            f"{parts.train:,} rows to train the members on, in memory\n"
            f"{parts.tune:,} other rows to set the cut on\n{support}"
        )


def run_folder(
    samples: Folder,
    wants: Sequence[Preference],
    *,
    confidence: float = 0.95,
    certify: Any = "auto",
    seed: int | None = 0,
    n_jobs: int | None = None,
    on_training: Callable[[Progress], Any] | None = None,
    on_reply: Callable[[str, Reply | None], Any] | None = None,
) -> FolderOutcome:
    """Train a committee on some rows, move its cut on all others, and accept.

    Parameters
    ----------
    samples : Folder
        The rows.
    wants, confidence, certify, seed, n_jobs, on_training, on_reply
        As in :func:`run_request`.
    """
    check_confidence(confidence, "--confidence")
    draw = Draw.of(samples.X, samples.y, seed)
    positive = draw.positive(
        None if samples.positive is None
        else match_label(samples.positive, draw.classes, "--positive")
    )  # fmt: skip
    sizes = Confusion(np.diag(draw.sizes), draw.classes.tolist(), positive)
    for want in wants:
        want.check_counts(sizes)
    found = tune_rows(
        draw,
        certify=certify,
        guarantee=Preference(*wants),
        confidence=confidence,
        positive=positive,
        n_jobs=n_jobs,
        random_state=seed,
        callback=on_training,
    )
    replies = [found.start]
    for want in wants:
        if on_reply is not None:
            on_reply(str(want), None)
        last = replies[-1]
        reply = found.reply(want.keeping(last.preference, last.after), last.after)
        replies.append(reply)
        if on_reply is not None:
            on_reply(str(want), reply)
    outcome = FolderOutcome(samples, found, tuple(replies[1:]), confidence)
    try:
        return replace(outcome, model=found.accepted(replies[-1], confidence))
    except GuaranteeError as error:
        return replace(outcome, refusal=str(error))
