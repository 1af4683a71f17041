"""Steer a committee on a folder of Parquet files, which may be larger than memory."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from margrave._messages import missing_extra
from margrave.app.messages import InputError
from margrave.app.request import Outcome, join_limits
from margrave.app.samples import Samples, Table, match_label
from margrave.committee import Progress
from margrave.confusion import Confusion, Preference
from margrave.scale import Draw, check_strategies, cluster, read_parquet, sample_table, tune_rows
from margrave.steer import (
    FileLedger,
    GroupsWarning,
    GuaranteeError,
    Reply,
    SplitSizes,
    check_confidence,
    describe_support,
)
from margrave.table import read_texts

_TIMEOUT = 3.0  # seconds: a wrong address is reported within ten, imports included


@contextmanager
def use_cluster(address: str | None) -> Iterator[None]:
    """Run the block on a Dask cluster.

    Parameters
    ----------
    address : str or None
        The address of the scheduler of a running cluster; None starts local processes.
    """
    with cluster(address, timeout=_TIMEOUT) as client:
        from distributed import KilledWorker

        if address is None:
            client.run(_silence_worker)  # the command reports an error once
        try:
            yield
        except KilledWorker as error:
            raise ValueError(
                "The Dask workers were killed repeatedly, probably because they ran out of memory. "
                "Use workers with more memory, or files with smaller row groups."
            ) from error


def _silence_worker() -> None:
    logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)


def check_folder_options(options: dict[str, Any], strategies: Sequence[str] | None) -> None:
    """Raise an error if a parameter needs all rows in memory."""
    for parameter, value in options.items():
        if value is not None:
            problem = "needs all rows in memory. Leave it out, or use a file instead of a folder."
            raise InputError(parameter, problem, code="needs_memory")
    check_strategies(strategies, "run_folder")


def open_folder(path: Path) -> Table:
    """Open a folder of Parquet files as a table that holds a Dask data frame."""
    try:
        # Workers may have another working directory.
        return Table(read_parquet(path.absolute()), path.absolute().name, path)
    except ModuleNotFoundError as error:
        message = missing_extra("A folder of files", str(error.name), "dask")
        raise ImportError(message) from error


def describe_folder(
    path: Path, *, target: str | None, positive: str | None = None, drop: Sequence[str] = ()
) -> Samples:
    """Split the columns of a folder into features and labels; only the file footers are read.

    Parameters
    ----------
    path : Path
        The folder.
    target : str or None
        The column with the labels.
    positive : str or None
        The positive class as text.
    drop : sequence of str
        Columns to leave out.
    """
    table = open_folder(path)
    frame: Any = table.frame
    target, features = table.select_columns(target, drop=drop)
    y = frame[target].map_partitions(
        _encode_block_labels, target, table.name, meta=(target, object), enforce_metadata=False
    )
    return Samples(table, target, frame[features], y, positive)


def _encode_block_labels(column: Any, target: str, name: str) -> Any:
    """Return the labels of a block in their own type, as for a single file."""
    from pandas import Series
    from pandas.api import types

    texts = read_texts(column)
    missing = int((texts == "").sum())
    if missing:
        raise InputError(
            "target",
            f"needs a value in every row; {target!r} of {name} has none in {missing} of the "
            f"{len(texts)} rows of a block. Fill in the missing values or remove these rows.",
            code="missing_values",
            table=name,
            column=target,
            n=missing,
        )
    if types.is_bool_dtype(column.dtype) or types.is_numeric_dtype(column.dtype):
        return Series(column.to_numpy(), index=column.index)
    return Series([str(text) for text in texts], index=column.index, dtype=object)


def run_folder(
    samples: Samples,
    wants: Sequence[Preference],
    *,
    confidence: float,
    certify: str | float,
    duplicates: str,
    seed: int,
    n_jobs: int | None,
    on_training: Callable[[Progress], None],
    on_reply: Callable[[str, Reply | None], None],
    ledger: Path,
    reserve: bool = False,
    anyway: bool = False,
) -> Outcome:
    """Train a committee on some rows, set its threshold on the others, and certify it.

    Parameters
    ----------
    samples : Samples
        The rows.
    wants, confidence, certify, duplicates, seed, n_jobs, on_training, on_reply, ledger, reserve
        As in :func:`run_request`.
    """
    check_confidence(confidence, "run_folder")
    accounts, frame = FileLedger(ledger, samples.target), samples.table.frame
    accounts.read()  # raises an error if the file is damaged
    draw = Draw.of(samples.X, samples.y, seed, duplicates)
    positive = draw.positive(
        None if samples.positive is None
        else match_label(samples.positive, draw.classes, "positive")
    )  # fmt: skip
    sizes = Confusion(np.diag(draw.sizes), draw.classes.tolist(), positive)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GroupsWarning)  # the command names its own option
        tuned = tune_rows(
            draw,
            certify=certify,
            guarantee=join_limits(wants, sizes),
            confidence=confidence,
            positive=positive,
            n_jobs=n_jobs,
            random_state=seed,
            callback=on_training,
        )
    replies = [tuned.start]
    for want in wants:
        on_reply(str(want), None)
        last = replies[-1]
        reply = tuned.reply(want.keeping(last.preference, last.after), last.after)
        replies.append(reply)
        on_reply(str(want), reply)
    model, refusal = None, None
    try:
        wanted = replies[-1].preference
        table = sample_table(frame.drop(columns=samples.target), list(samples.X.columns))
        use = partial(
            accounts.use,
            table,
            preference="" if wanted is None else str(wanted.limits),
            delta=1 - confidence,
            reserve=reserve,
        )
        delta = 1 - confidence
        model = tuned.accept(
            replies[-1],
            confidence,
            lambda name: use(name=name),
            lambda name: accounts.account(table, delta).part_of(name, delta, reserve),
            anyway,
        )
    except GuaranteeError as error:
        refusal = error
    by_class = np.bincount(tuned.codes, minlength=len(tuned.classes)).tolist()
    certified = dict(zip(tuned.classes, by_class, strict=True))
    roles = tuned.roles.parts
    parts = SplitSizes(
        roles["train"], roles["tune"], roles["certify"], tuned.n_copies, certify_by_class=certified
    )
    certificate = None if model is None else model.certificate_
    return Outcome(
        samples,
        tuple(replies),
        replies[-1],
        parts,
        dict(zip(draw.classes.tolist(), draw.sizes.tolist(), strict=True)),
        tuned.scorer.committee.encoder,
        f"{parts.train:,} rows to train the members, in memory\n"
        f"{parts.tune:,} other rows to set the threshold\n"
        f"{describe_support(certified, confidence)}",
        confidence,
        model,
        refusal,
        expected=None if certificate is None else certificate.expected,
    )
